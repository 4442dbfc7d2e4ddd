package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tandem/console"
	"tandem/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	if err := os.Setenv("GOGC", "400"); err != nil { // for the processes that tests start by hundreds, whose start is most of what they do
		panic(err)
	}
	testscript.Main(m, map[string]func(){"tandem": main, "toolbox": toolbox})
}

// TestScripts runs the command as a user does; see testdata/script. With TANDEM_UPDATE=1 in the environment the expected
// outputs in the scripts are rewritten, to be read before they are kept.
func TestScripts(t *testing.T) {
	t.Parallel()
	b := &background{running: map[*testscript.TestScript]*process{}}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("TANDEM_UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("GOGC", os.Getenv("GOGC"))
			if cache, err := os.UserCacheDir(); err == nil { // where the interpreter is compiled already
				env.Setenv("XDG_CACHE_HOME", cache)
			}
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"bigfile": makeBigFile, "status": expectStatus, "background": b.start, "interrupt": b.interrupt, "keep": keep,
		},
	})
}

// expectStatus runs a command that must end with a certain exit status: status 2 tandem validate.
func expectStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("run %q: %v", args[1:], err)
		}
		got = strconv.Itoa(exit.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("%q ended with status %s, want %s", args[1:], got, args[0])
	}
}

// makeBigFile makes a file of 50 MB that takes no space: bigfile NAME.
func makeBigFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bigfile NAME")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(50_000_000))
	ts.Check(f.Close())
}

// A report that could not be written is not a success, whatever is in it.
func TestValidate_Unwritable(t *testing.T) {
	t.Parallel()
	example := filepath.Join("..", "..", "examples", "price_check.yaml")
	for _, args := range [][]string{{"validate", example}, {"validate", "--json", example}, {"graph", example}} {
		cmd := newRoot()
		cmd.SetArgs(args)
		cmd.SetOut(brokenWriter{})
		var problem console.ProblemError
		if err := cmd.Execute(); !errors.As(err, &problem) || !errors.Is(err, errBroken) {
			t.Errorf("%v: error %v, want that of the writer", args, err)
		}
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
