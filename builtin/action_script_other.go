//go:build !linux

package builtin

import (
	"context"

	"tandem/fault"
)

// run refuses: only Linux puts a process under its limits before it runs.
func (p *process) run(context.Context) (processEnd, error) {
	return processEnd{}, fault.New(fault.Unsupported, "host processes can only be run on Linux")
}
