package turns

import (
	"testing"

	"tandem/fault"
	"tandem/store"
)

func TestFamilies(t *testing.T) {
	t.Parallel()
	root := store.Ref{Workspace: "w", Execution: "root"}
	f := NewFamilies(2)
	for range 2 {
		if err := f.Join(root); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Join(root); fault.CodeOf(err) != fault.RecursionLimit {
		t.Errorf("a third one: %v", err)
	}
	f.Leave(root)
	f.Cancel(root)
	if err := f.Join(root); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("below a canceled root: %v", err)
	}
	f.Ended(root)
	if err := f.Join(root); err != nil {
		t.Errorf("below a root that was retried: %v", err)
	}
	f.Leave(root)
	f.Leave(root)
	f.Leave(root)
	if len(f.all) != 0 {
		t.Errorf("families are left: %v", f.all)
	}
}
