// Package loopback has addresses of this machine for the servers of tests.
package loopback

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports that are tried. They are below those that systems give to whoever connects somewhere.
const (
	firstPort = 20_000
	manyPorts = 12_000
)

// FreeAddress is an address that nobody listens on, for a server that is started in a moment and again after it was killed. A port that the
// system has chosen could be taken meanwhile by anybody who connects somewhere; this one is not.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(manyPorts))))
		if err != nil {
			continue // somebody listens there
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
	t.Fatal("found no free port")
	return ""
}
