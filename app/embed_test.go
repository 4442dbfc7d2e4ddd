package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEmbed builds and runs the program in examples/embed, a module of its own that brings a kind, a channel, a provider and a trigger. Its own list of
// dependencies is whole.
func TestEmbed(t *testing.T) {
	t.Parallel()
	goes := func(work string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = "../examples/embed"
		cmd.Env = append(os.Environ(), "GOWORK="+work)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the program cannot be built; if dependencies have changed, run go mod tidy in examples/embed: %v\n%s", err, out)
		}
	}
	goes("off", "list", "-mod=readonly", "-deps", "-f", "{{.DepsErrors}}", ".")
	// In a workspace the packages of this module are those that the tests are made of, which are compiled already.
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "go.work")
	if err := os.WriteFile(work, fmt.Appendf(nil, "go 1.26.0\n\nuse (\n\t%s\n\t%s/examples/embed\n)\n", root, root), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "embed")
	goes(work, "build", "-ldflags=-s -w", "-o", program, ".")
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if want := "a postcard: Buy tea for 36?\nthe execution has ended: SUCCESS\nthe parrot says: Thank you! Said by an african-grey.\nring 1: SUCCESS, {\"item\":\"coffee\",\"price\":20}\n"; err != nil || string(out) != want {
		t.Errorf("it says\n%s(%v), want\n%s", out, err, want)
	}
}
