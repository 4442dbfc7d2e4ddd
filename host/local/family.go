package local

import (
	"sync"

	"tandem/fault"
	"tandem/store"
)

// families counts the executions that have come of one that somebody started: its children, their children and so on. The
// depth of such a tree is bounded by the engine; this bounds its breadth, and keeps one from growing whose root was
// canceled: the word travels from parent to child, and a tree may grow faster than that.
type families struct {
	limit int

	mu  sync.Mutex
	all map[store.Ref]*family
}

// family is a tree, by its root.
type family struct {
	open     int
	canceled bool
}

// maxFamily is how many executions below one root are open at the same time.
const maxFamily = 10_000

// join admits an execution to its family.
func (f *families) join(root store.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	tree := f.all[root]
	if tree == nil {
		tree = &family{}
		f.all[root] = tree
	}
	switch {
	case tree.canceled:
		return fault.Newf(fault.Canceled, "execution %q, which this one would belong to, was canceled", root.Execution)
	case tree.open >= f.limit:
		return fault.Newf(fault.RecursionLimit, "execution %q has %d executions below it that have not ended, and more are not started; start fewer sub-workflows at once", root.Execution, tree.open)
	}
	tree.open++
	return nil
}

// leave says that an execution of a family has ended.
func (f *families) leave(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil && tree.open > 0 { // one that another process has started was not counted
		tree.open--
		f.tidy(root, tree)
	}
}

// cancel keeps a family from growing until its root has ended.
func (f *families) cancel(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil {
		tree.canceled = true
	}
}

// ended says that a root has ended. Its family may be retried with it.
func (f *families) ended(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil {
		tree.canceled = false
		f.tidy(root, tree)
	}
}

func (f *families) tidy(root store.Ref, tree *family) {
	if tree.open == 0 && !tree.canceled {
		delete(f.all, root)
	}
}
