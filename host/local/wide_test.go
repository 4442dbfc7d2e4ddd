package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// slowJournal is a journal as a database of several processes is: transactions that write come one after the other, and everything takes
// its time.
type slowJournal struct {
	store.Journal
	turn *slowTurn
}

// slowTurn is whose turn it is to write, and what has come of it. Who has put something into taken may write.
type slowTurn struct {
	taken          chan struct{}
	rows, refusals int
}

// What things take.
const (
	slowLook, slowCommit  = 500 * time.Microsecond, 1500 * time.Microsecond
	slowRead, slowReadRow = 300 * time.Microsecond, 20 * time.Microsecond
	slowNode              = 20 * time.Millisecond
)

// Append implements store.Journal.
func (j slowJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	j.turn.taken <- struct{}{}
	defer func() { <-j.turn.taken }()
	time.Sleep(slowLook)
	err := j.Journal.Append(ctx, p, rows...)
	if errors.Is(err, store.ErrConflict) {
		j.turn.refusals++
		return err
	}
	j.turn.rows++
	time.Sleep(slowCommit)
	return err
}

// Rows implements store.Journal.
func (j slowJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		time.Sleep(slowRead)
		for row, err := range j.Journal.Rows(ctx, p, execution, after) {
			time.Sleep(slowReadRow)
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestRun_OneWideExecution has one execution of many nodes run by one process, by two and by four, each of which has room for as many
// runs: more processes make it no slower. The clock is one of a bubble, so that the times are what is said above and nothing else.
func TestRun_OneWideExecution(t *testing.T) {
	t.Parallel()
	const width = 200
	took := map[int]time.Duration{}
	for _, processes := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			turn := &slowTurn{taken: make(chan struct{}, 1)}
			took[processes] = wide(t, width, processes, func(j store.Journal) store.Journal { return slowJournal{j, turn} })
			t.Logf("%d processes: %s, %d rows, %d refused", processes, took[processes], turn.rows, turn.refusals)
		})
	}
	for _, processes := range []int{2, 4} {
		if took[processes] > took[processes/2] {
			t.Errorf("%d processes take %s, and %d take %s", processes, took[processes], processes/2, took[processes/2])
		}
	}
}

// wide has an execution of so many nodes side by side run by so many processes, and returns how long that takes.
func wide(t *testing.T, width, processes int, journal func(store.Journal) store.Journal) time.Duration {
	t.Helper()
	const room = 12 // of each process
	s := wideShop(t, width, func(context.Context) (node.Outcome, error) {
		time.Sleep(slowNode)
		return node.Done{"result": json.RawMessage(`{}`)}, nil
	})
	s.stores.Journal = journal(s.stores.Journal)
	free := make(chan *local.Host, processes*room)
	for range processes {
		h := s.open()
		for range room {
			free <- h
		}
		if s.first == nil {
			s.first = h
		}
	}
	s.start()
	next, err := s.first.Attend(s.ref)
	if err != nil || len(next.Run) != width {
		t.Fatalf("to be run are %d: %v", len(next.Run), err)
	}
	began := time.Now()
	var all sync.WaitGroup
	ended := make(chan struct{}, width)
	for _, w := range next.Run {
		h := <-free
		all.Go(func() {
			next, err := h.Run(t.Context(), s.ref, w.Attempt, local.WasNothing, func(local.Was) {})
			if err != nil || len(next.Run) > 0 {
				t.Errorf("a run comes to %+v, %v", next, err)
			}
			if next.Status == engine.StatusSuccess {
				ended <- struct{}{}
			}
			free <- h
		})
	}
	all.Wait()
	if len(ended) == 0 {
		t.Error("nobody was told of the end")
	}
	return time.Since(began)
}

// wideShop is an execution, not started yet, of so many nodes side by side.
func wideShop(t *testing.T, width int, run func(context.Context) (node.Outcome, error)) *shop {
	t.Helper()
	def := &workflow.Definition{Metadata: workflow.Metadata{ID: "f", Name: "f"}}
	def.Metadata.Settings.MaxConcurrentActivations = width
	for i := range width {
		id := fmt.Sprint("n", i)
		def.Nodes = append(def.Nodes, workflow.Node{ID: id, Name: id, Type: "TEST", Subtype: "WORK", Configurations: json.RawMessage("{}")})
	}
	return &shop{t: t, stores: hosttest.NewDisk().Stores(), revision: prepareShop(t, def, run), ref: store.Ref{Workspace: "one", Execution: "x"}}
}

// start starts the execution.
func (s *shop) start() {
	s.t.Helper()
	p := identity.Principal{Workspace: "one", User: "u"}
	if _, err := s.first.Start(s.t.Context(), p, host.StartRequest{
		ID: s.ref.Execution, WorkflowID: "f", WorkflowName: "f", Revision: 1, RevisionHash: s.revision.Graph.Hash,
		TriggerType: "MANUAL", Initial: json.RawMessage(`{}`),
	}); err != nil {
		s.t.Fatal(err)
	}
}
