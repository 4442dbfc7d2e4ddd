package standby

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"tandem/shortage"
)

// Pauses after a connection could not be accepted, until the machine has again what it lacks.
const (
	firstPause = 5 * time.Millisecond
	longPause  = time.Second
)

// Relay hands the connections of a listener to one server after another, so that nobody is turned away in between. It must be closed.
type Relay struct {
	listener net.Listener
	conns    chan net.Conn
	quit     chan struct{}
	ended    chan struct{}
	err      error // why; after ended
}

// NewRelay accepts what comes in by a listener.
func NewRelay(listener net.Listener) *Relay {
	r := &Relay{listener: listener, conns: make(chan net.Conn), quit: make(chan struct{}), ended: make(chan struct{})}
	go r.accept() // it ends with Close
	return r
}

func (r *Relay) accept() {
	defer close(r.ended)
	pause := firstPause
	for {
		c, err := r.listener.Accept()
		if err != nil {
			if !passes(err) {
				r.err = err
				return
			}
			select {
			case <-time.After(pause):
			case <-r.quit:
				r.err = net.ErrClosed
				return
			}
			pause = min(2*pause, longPause)
			continue
		}
		pause = firstPause
		select {
		case r.conns <- c:
		case <-r.quit:
			r.err = errors.Join(net.ErrClosed, c.Close())
			return
		}
	}
}

// passes says that a listener goes on after an error: who came has left again, or the machine lacks something, such as files that may
// be open.
func passes(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout() || shortage.Is(err) || errors.Is(err, syscall.ECONNABORTED)
}

// Close closes the listener, and waits until nothing more comes in. It is called once.
func (r *Relay) Close() error {
	close(r.quit)
	err := r.listener.Close()
	<-r.ended
	return err
}

// Listen is the listener for the next server. Closing it leaves the relay open, and what comes in waits for another, unless it is the last.
func (r *Relay) Listen(last bool) net.Listener {
	return &part{Relay: r, last: last, closed: make(chan struct{})}
}

// part is a listener for one server.
type part struct {
	*Relay
	last   bool
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (p *part) Accept() (net.Conn, error) {
	select {
	case <-p.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-p.ended:
		return nil, p.err
	}
}

// Close implements [net.Listener].
func (p *part) Close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		if p.last {
			err = p.Relay.Close()
		}
	})
	return err
}

// Addr implements [net.Listener].
func (p *part) Addr() net.Addr { return p.listener.Addr() }
