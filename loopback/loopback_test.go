package loopback

import (
	"net"
	"strconv"
	"testing"
)

// TestFreeAddress: somebody can listen there, on a port that systems do not give away by themselves.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < firstPort || n >= firstPort+manyPorts {
		t.Errorf("it is on port %s", port)
	}
}
