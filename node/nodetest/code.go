package nodetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tandem/node"
	"tandem/sandbox"
)

// Main runs the tests of a package whose kinds run code: the sandbox starts this very program again as its child.
func Main(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	code := m.Run()
	interpreters().Close()
	os.Exit(code)
}

// interpreters is the real sandbox, made when the first test wants it. What it compiles is kept from one run of the tests to
// the next: compiling an interpreter takes seconds, and with the race detector a minute. read-only
var interpreters = sync.OnceValue(func() *sandbox.Pool {
	dir, err := sandbox.MachineCache()
	if err != nil {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("tandem-sandbox-%d", os.Getuid()))
	}
	return sandbox.New(sandbox.Options{Dir: dir})
})

// Code runs code as an instance does. The tests of the package must begin with [Main].
func Code(ctx context.Context, c node.Code) (node.CodeResult, error) {
	r, err := interpreters().Run(ctx, sandbox.Call{
		Tenant: "w", Language: sandbox.Language(c.Language), Source: c.Source, Entry: c.Entry, Input: c.Input, Aliases: c.Aliases,
		TimeLimit: c.TimeLimit, MemoryMB: c.MemoryMB, Now: time.Unix(0, 0),
	})
	return node.CodeResult{Value: r.Value, Stdout: r.Stdout, Stderr: r.Stderr, Duration: r.Duration}, err
}
