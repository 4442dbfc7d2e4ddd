package shortage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"tandem/fault"
	"tandem/shortage"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EMFILE}, true},
		{fmt.Errorf("write blob: %w", &fs.PathError{Op: "open", Path: "f", Err: syscall.ENFILE}), true},
		{&fs.PathError{Op: "fork/exec", Path: "/bin/sh", Err: syscall.EAGAIN}, true},
		{errors.Join(errors.New("x"), os.NewSyscallError("pipe2", syscall.EMFILE)), true},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		{&net.DNSError{Err: "dial udp 127.0.0.1:53: socket: " + syscall.EMFILE.Error(), Name: "h"}, true},
		{fault.New(fault.Internal, "x").WithCause(syscall.ENOMEM), true},
		{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, false},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}, false},
		{syscall.ENOSPC, false},
		{errors.New("too many open files"), false}, // a service may say so
		{nil, false},
	} {
		if got := shortage.Is(c.err); got != c.want {
			t.Errorf("Is(%v) = %v", c.err, got)
		}
	}
}

func TestOr(t *testing.T) {
	t.Parallel()
	otherwise := fault.New(fault.Internal, "it could not be started").With("x", 1)
	got := shortage.Or(syscall.EMFILE, otherwise)
	if got.Code != fault.Shortage || !got.Retryable || !errors.Is(got, syscall.EMFILE) || got.Details["x"] != 1 {
		t.Errorf("of a shortage: %+v", got)
	}
	if got := shortage.Or(syscall.EACCES, otherwise); got.Code != fault.Internal || got.Retryable || !errors.Is(got, syscall.EACCES) {
		t.Errorf("of something else: %+v", got)
	}
}
