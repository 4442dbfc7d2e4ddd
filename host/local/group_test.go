package local_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// tryingJournal is a journal in which something else may happen when a row is appended.
type tryingJournal struct {
	store.Journal
	// try is called with how many rows were to be appended before; it says whether this one is.
	try   func(before int) error
	tries int
}

// Append implements store.Journal. Rows of one execution come one after the other.
func (j *tryingJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	if j.try != nil {
		j.tries++
		if err := j.try(j.tries - 1); err != nil {
			return err
		}
	}
	return j.Journal.Append(ctx, p, rows...)
}

// grouped starts an execution of so many nodes side by side in one process, and returns the attempts that are to be run.
func grouped(t *testing.T, width int, run func(context.Context) (node.Outcome, error)) (*shop, *tryingJournal, []engine.Attempt) {
	t.Helper()
	s := wideShop(t, width, run)
	journal := &tryingJournal{Journal: s.stores.Journal}
	s.stores.Journal = journal
	s.first = s.open()
	s.start()
	next, err := s.first.Attend(s.ref)
	if err != nil || len(next.Run) != width {
		t.Fatalf("to be run are %v: %v", next.Run, err)
	}
	list := make([]engine.Attempt, width)
	for i, w := range next.Run {
		list[i] = w.Attempt
	}
	return s, journal, list
}

// TestRun_PanicOverAGroup: when dealing with outcomes panics, those of others that were in the same group are recorded later.
func TestRun_PanicOverAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, journal, list := grouped(t, 4, func(context.Context) (node.Outcome, error) {
			<-release
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		})
		journal.try = func(before int) error {
			switch before {
			case 0:
				time.Sleep(time.Second) // the others wait for their turn meanwhile
			case 1:
				panic("it cannot be dealt with")
			}
			return nil
		}
		panics, ends := make(chan any, len(list)), make(chan ran, len(list))
		for _, at := range list {
			go func() {
				defer func() {
					if r := recover(); r != nil {
						panics <- r
					}
				}()
				next, err := s.first.Run(t.Context(), s.ref, at, local.WasNothing, func(local.Was) {})
				ends <- ran{next, err}
			}()
		}
		synctest.Wait() // all of them run
		close(release)
		<-panics
		for range len(list) - 1 {
			if e := <-ends; e.err != nil {
				t.Error(e.err)
			}
		}
		next, err := s.first.Attend(s.ref)
		if err != nil || len(next.Run) != 1 {
			t.Errorf("left to be run are %v: %v", next.Run, err)
		}
	})
}

// TestRun_LinesOfAGroup: what runs have said is stored once, also if their row is refused and the outcome of one of them counts no longer.
func TestRun_LinesOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := map[string]chan struct{}{"n0": make(chan struct{}), "n1": make(chan struct{}), "n2": make(chan struct{})}
		s, journal, list := grouped(t, len(release), func(ctx context.Context) (node.Outcome, error) {
			call := ctx.Value(calling{}).(*node.Call)
			call.Log(node.Notice, "at work", nil)
			<-release[call.NodeID]
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		})
		ends := make(chan ran, len(list))
		for _, at := range list {
			go func() { ends <- <-s.run(t.Context(), s.first, at, local.WasNothing) }()
		}
		synctest.Wait()
		if lost := <-s.run(t.Context(), s.open(), list[0], local.WasBegun); lost.err != nil {
			t.Fatal(lost.err)
		}
		if _, err := s.first.Attend(s.ref); err != nil { // it knows of the one that was lost
			t.Fatal(err)
		}
		journal.try = func(before int) error {
			switch before {
			case 0:
				time.Sleep(time.Millisecond) // the others wait for their turn meanwhile
			case 1:
				time.Sleep(time.Second) // what is stored apart from the row is, meanwhile
				return fault.New(fault.Conflict, "another was faster")
			}
			return nil
		}
		for _, name := range []string{"n2", "n0", "n1"} {
			close(release[name])
			synctest.Wait()
		}
		for range list {
			if e := <-ends; e.err != nil {
				t.Error(e.err)
			}
		}
		s.first.Close() // what is stored apart from a row is, too
		page, err := s.stores.Logs.Lines(t.Context(), identity.System("one"), store.LogQuery{Execution: "x"})
		said := map[string]int{}
		for _, line := range page.Lines {
			if line.Message == "at work" {
				said[line.Activation]++
			}
		}
		if err != nil || len(said) != len(list) {
			t.Errorf("stored are %v, %v", said, err)
		}
		for activation, times := range said {
			if times != 1 {
				t.Errorf("what %s has said is stored %d times", activation, times)
			}
		}
	})
}

// TestRun_GroupGrows: outcomes that come while a row is refused are in the next one.
func TestRun_GroupGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, journal, list := grouped(t, 3, func(context.Context) (node.Outcome, error) {
			<-release
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		})
		journal.try = func(before int) error {
			if before > 0 {
				return nil
			}
			time.Sleep(time.Second) // the others wait for their turn meanwhile
			return fault.New(fault.Conflict, "another was faster")
		}
		ends := make(chan ran, len(list))
		for _, at := range list {
			go func() { ends <- <-s.run(t.Context(), s.first, at, local.WasNothing) }()
		}
		synctest.Wait() // all of them run
		close(release)
		for range list {
			if e := <-ends; e.err != nil || e.next.Status != engine.StatusSuccess {
				t.Errorf("one comes to %+v, %v", e.next, e.err)
			}
		}
		if journal.tries != 2 {
			t.Errorf("there were %d tries; want one that was refused, and one for all", journal.tries)
		}
	})
}
