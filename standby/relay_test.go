package standby_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tandem/standby"
)

// fickle is a listener that gives what it is told to.
type fickle struct {
	errs   []error // first of all
	conns  chan net.Conn
	closed chan struct{}
}

func (f *fickle) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *fickle) Close() error {
	close(f.closed)
	return nil
}

func (f *fickle) Addr() net.Addr { return &net.TCPAddr{} }

// failed is the error of a system call, as a listener gives it.
func failed(n syscall.Errno) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", n)}
}

// TestRelay_Shortage goes on when the machine has had too few open files, and ends with what does not pass.
func TestRelay_Shortage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fickle{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		for range 10 {
			f.errs = append(f.errs, failed(syscall.EMFILE), failed(syscall.ENFILE), failed(syscall.ECONNABORTED))
		}
		here, there := net.Pipe()
		f.conns <- here
		began := time.Now()
		relay := standby.NewRelay(f)
		got, err := relay.Listen(false).Accept()
		check(t, err)
		if got != here {
			t.Error("another connection was accepted")
		}
		if waited := time.Since(began); waited < 10*time.Second || waited > 30*time.Second { // of the test's own clock
			t.Errorf("it has paused for %v", waited)
		}
		check(t, relay.Close())
		check(t, errors.Join(here.Close(), there.Close()))
	})
	t.Run("Close", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fickle{closed: make(chan struct{})}
			for range 100 {
				f.errs = append(f.errs, failed(syscall.EMFILE))
			}
			relay := standby.NewRelay(f)
			time.Sleep(10 * time.Second)
			began := time.Now()
			check(t, relay.Close())
			if waited := time.Since(began); waited != 0 {
				t.Errorf("closing has waited for %v", waited)
			}
			if _, err := relay.Listen(false).Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after closing: %v", err)
			}
		})
	})
	t.Run("Other", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			relay := standby.NewRelay(&fickle{errs: []error{failed(syscall.EINVAL)}, closed: make(chan struct{})})
			if _, err := relay.Listen(false).Accept(); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("it ends with %v", err)
			}
			check(t, relay.Close())
		})
	})
}
