package postgrestest

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Gate stands between a process and its server. Closed it lets nothing through, in neither direction, and nobody is told: what is sent
// waits in it, as in a network that is parted.
type Gate struct {
	target string
	mu     sync.Mutex
	// pass is closed while the gate is open.
	pass    chan struct{}
	servers []net.Conn
}

// NewGate is a gate before the server of a database, and the address of the database behind it. It is open.
func NewGate(t testing.TB, address string) (string, *Gate) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "tandem-gate")
	if err != nil {
		t.Fatal(err)
	}
	const name = ".s.PGSQL.5432"
	g := &Gate{target: filepath.Join(u.Query().Get("host"), name), pass: make(chan struct{})}
	close(g.pass)
	l, err := net.Listen("unix", filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Open()
		if err := errors.Join(l.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	go func() { // it ends when the listener is closed
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go g.carry(client)
		}
	}()
	q := u.Query()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String(), g
}

func (g *Gate) waits() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pass
}

// Close lets nothing through any more.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass = make(chan struct{})
}

// Open lets through what waits, and what comes.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.pass:
	default:
		close(g.pass)
	}
}

// Forsake ends the connections of the server, as it does itself when it hears nothing for a while. The other ends are not told.
func (g *Gate) Forsake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, server := range g.servers {
		_ = server.Close()
	}
}

func (g *Gate) carry(client net.Conn) {
	<-g.waits()
	server, err := net.Dial("unix", g.target)
	if err != nil {
		_ = client.Close()
		return
	}
	g.mu.Lock()
	g.servers = append(g.servers, server)
	g.mu.Unlock()
	pass := func(from, to net.Conn) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			<-g.waits()
			if n > 0 {
				if _, failed := to.Write(buffer[:n]); failed != nil {
					err = failed
				}
			}
			if err != nil {
				_ = client.Close()
				_ = server.Close()
				return
			}
		}
	}
	go pass(server, client)
	pass(client, server)
}
