package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEmbed builds and runs the program in examples/embed, a module of its own that brings a kind, a channel, a provider and a trigger. It needs nothing that
// is not there already: its dependencies are those of this module.
func TestEmbed(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "embed")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../examples/embed"
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program cannot be built; if dependencies have changed, run go mod tidy in examples/embed: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if want := "a postcard: Buy tea for 36?\nthe execution has ended: SUCCESS\nthe parrot says: Thank you! Said by an african-grey.\nring 1: SUCCESS, {\"item\":\"coffee\",\"price\":20}\n"; err != nil || string(out) != want {
		t.Errorf("it says\n%s(%v), want\n%s", out, err, want)
	}
}
