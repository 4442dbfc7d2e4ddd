//go:build unix

package benchmark

import (
	"syscall"
	"time"
)

// processTime is the processor time that this process has used, zero if the system does not tell.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
