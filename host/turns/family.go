package turns

import (
	"sync"

	"tandem/store"
)

// Families count the executions that have come of one that somebody started: its children, their children and so on. The
// depth of such a tree is bounded by the engine; this bounds its breadth, and keeps one from growing whose root was
// canceled: the word travels from parent to child, and a tree may grow faster than that. It is for a process that starts all of them; where
// several do, the store counts ([store.Below]).
type Families struct {
	limit int

	mu  sync.Mutex
	all map[store.Ref]*family
}

// family is a tree, by its root.
type family struct {
	open     int
	canceled bool
}

// MaxFamily is how many executions below one root are open at the same time.
const MaxFamily = 10_000

// NewFamilies makes families that may have so many open executions each.
func NewFamilies(limit int) *Families { return &Families{limit: limit, all: map[store.Ref]*family{}} }

// Join admits an execution to its family.
func (f *Families) Join(root store.Ref) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	tree := f.all[root]
	if tree == nil {
		tree = &family{}
		f.all[root] = tree
	}
	if err := (store.Below{Root: root.Execution, Limit: f.limit}).Refuse(tree.open, tree.canceled); err != nil {
		return err
	}
	tree.open++
	return nil
}

// Leave says that an execution of a family has ended.
func (f *Families) Leave(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil && tree.open > 0 { // one that another process has started was not counted
		tree.open--
		f.tidy(root, tree)
	}
}

// Cancel keeps a family from growing until its root has ended.
func (f *Families) Cancel(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil {
		tree.canceled = true
	}
}

// Ended says that a root has ended. Its family may be retried with it.
func (f *Families) Ended(root store.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tree := f.all[root]; tree != nil {
		tree.canceled = false
		f.tidy(root, tree)
	}
}

func (f *Families) tidy(root store.Ref, tree *family) {
	if tree.open == 0 && !tree.canceled {
		delete(f.all, root)
	}
}
