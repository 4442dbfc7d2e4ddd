//go:build !unix

package benchmark

import "time"

// processTime is the processor time that this process has used, zero if the system does not tell.
func processTime() time.Duration { return 0 }
