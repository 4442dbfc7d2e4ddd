package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forgetful is the directory whose children are programs that do not ask whether they are children.
const forgetful = "forgetful"

func isForgetful() bool { return IsChild() && filepath.Base(os.Args[1]) == forgetful }

// TestNew_InAChild: a program that does not ask whether it is a child starts no children of its own when it is one, and is told what it lacks.
func TestNew_InAChild(t *testing.T) {
	t.Parallel()
	pool := New(Options{Dir: filepath.Join(t.TempDir(), forgetful)})
	t.Cleanup(pool.Close)
	_, err := pool.Run(t.Context(), Call{Tenant: "ws", Language: JavaScript, Source: "x => x", Input: []byte(`1`)})
	if err == nil || !strings.Contains(err.Error(), "its main must begin by asking sandbox.IsChild") {
		t.Errorf("%v", err)
	}
}
