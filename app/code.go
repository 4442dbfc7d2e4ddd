package app

import (
	"context"
	"time"

	"tandem/node"
	"tandem/sandbox"
)

// interpreter runs the code of nodes and connections in the sandbox, each workspace by itself.
type interpreter struct{ pool *sandbox.Pool }

// Run implements node.Interpreter.
func (i interpreter) Run(ctx context.Context, workspace string, now time.Time, seed string, c node.Code) (node.CodeResult, error) {
	call := sandbox.Call{
		Tenant: workspace, Language: sandbox.Language(c.Language), Source: c.Source, Entry: c.Entry, Input: c.Input, Aliases: c.Aliases,
		TimeLimit: c.TimeLimit, MemoryMB: c.MemoryMB, Now: now, Seed: []byte(seed), Begun: c.Begun, Waiting: func() {
			if c.Waiting != nil {
				c.Waiting(waitsForPython)
			}
		},
	}
	if c.Printed != nil {
		call.Printed = func(stream sandbox.Stream, text string) { c.Printed(string(stream), text) }
	}
	result, err := i.pool.Run(ctx, call)
	return node.CodeResult{Value: result.Value, Stdout: result.Stdout, Stderr: result.Stderr, Duration: result.Duration}, err
}
