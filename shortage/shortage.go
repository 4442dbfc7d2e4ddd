// Package shortage tells that the machine has run out of something for now: open files, processes, memory. What failed for that
// has not failed for good: the same call may succeed a moment later. A full disk is not meant; the stores have an error for it.
//
// It looks at errors and touches nothing. Every package that starts processes, opens files or connects may import it.
package shortage

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"tandem/fault"
)

// numbers are what the system says; read-only. EAGAIN is that of a process that cannot be started.
var numbers = [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOBUFS}

// Is says whether an error comes of a shortage.
func Is(err error) bool {
	for _, n := range numbers {
		if errors.Is(err, n) {
			return true
		}
	}
	// A lookup of a name keeps only the words of the system.
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		for _, n := range numbers {
			if strings.Contains(dns.Err, n.Error()) {
				return true
			}
		}
	}
	return false
}

// Or returns an error that may be tried again when err comes of a shortage, and otherwise the one given. Err is the cause of both.
func Or(err error, otherwise *fault.Error) *fault.Error {
	if !Is(err) {
		return otherwise.WithCause(err)
	}
	f := fault.New(fault.Shortage, otherwise.Message+": the machine has run out of open files, processes or memory for now").WithCause(err)
	f.Details = otherwise.Details
	return f
}
