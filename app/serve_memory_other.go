//go:build !linux

package app

import (
	"log/slog"
	"runtime/debug"
)

// restAfterStart gives back what only starting has needed.
func restAfterStart(*slog.Logger) { debug.FreeOSMemory() }
