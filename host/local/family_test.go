package local_test

import (
	"context"
	"testing"
	"testing/synctest"

	"tandem/host/hosttest"
	"tandem/identity"
	"tandem/store"
)

// treeJournal notes what is told to the store about trees of executions.
type treeJournal struct {
	store.Journal
	below    chan<- store.Below
	canceled chan<- string
}

// Append implements store.Journal.
func (j treeJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	err := j.Journal.Append(ctx, p, rows...)
	for _, a := range rows {
		if err == nil && a.Below != nil {
			j.below <- *a.Below
		}
		if err == nil && a.CancelTree {
			j.canceled <- a.Execution
		}
	}
	return err
}

// TestCarried_TreesAreCountedByTheStore: where several processes start executions, the store is told which tree one begins in, and which
// was canceled.
func TestCarried_TreesAreCountedByTheStore(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if c.Name != "Child/IsWaitedFor" && c.Name != "Child/IsCanceledWithItsParent" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk, below, canceled := hosttest.NewDisk(), make(chan store.Below, 100), make(chan string, 100)
				rig := carriedRig(t, disk)
				stores := rig.Stores
				rig.Stores = func() store.Stores {
					s := stores()
					s.Journal = treeJournal{s.Journal, below, canceled}
					return s
				}
				c.Play(t, rig, hosttest.Fate{})
				if len(below) == 0 {
					t.Fatal("the store was not told of a tree")
				}
				if b := <-below; b.Root != "x" || b.Limit != 10_000 {
					t.Errorf("it was told of %+v", b)
				}
				if c.Name == "Child/IsCanceledWithItsParent" && (len(canceled) == 0 || <-canceled != "x") {
					t.Error("it was not told that the tree was canceled")
				}
			})
		})
	}
}
