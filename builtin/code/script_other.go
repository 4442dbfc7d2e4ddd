//go:build !linux

package code

import (
	"context"

	"tandem/fault"
)

// run refuses: only Linux puts a process under its limits before it runs.
func (p *process) run(context.Context) (processEnd, error) {
	return processEnd{}, fault.New(fault.Unsupported, "host processes can only be run on Linux")
}

// IsWarden says whether this process was started to look after a host process, which only Linux has.
func IsWarden() bool { return false }

// Warden is not called here.
func Warden() {}
