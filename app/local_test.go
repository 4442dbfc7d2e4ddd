package app

import (
	"context"
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// hostOn starts a host on an instance's store, with a journal of the test's own and somebody who is told of every row.
func hostOn(t *testing.T, i *Instance, journal store.Journal, told Watcher) *local.Host {
	t.Helper()
	h, err := local.New(t.Context(), local.Options{
		Journal: journal, Inbox: i.stores.Inbox, Timers: i.stores.Timers, Executions: i.stores.Executions,
		Revision: i.revision, Child: i.Request, Blobs: i.stores.Blobs, Logs: i.stores.Logs, Workers: 2,
		Recorded: func(ref store.Ref, _ *workflow.Graph, row host.Row, commands []engine.Command) {
			i.recorded(ref, row, commands)
			if told != nil {
				told(row, commands)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// startOn starts an execution on a host of the test's own.
func startOn(t *testing.T, i *Instance, h *local.Host, workflow string) host.StartRequest {
	t.Helper()
	r, err := i.request(t.Context(), user, workflow, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(), user, r); err != nil {
		t.Fatal(err)
	}
	return r
}

const waitingFlow = `
metadata: {id: kid, name: kid, description: d}
nodes:
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
`

func subFlow(wait string) string {
	return `
metadata: {id: par, name: par, description: d}
nodes:
  - {id: k, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: latest, wait: ` + wait + `}}
`
}

// gate is a journal that stops before an execution is created.
type gate struct {
	store.Journal
	stops   func(*store.Execution) bool
	reached chan struct{}
	open    chan struct{}
}

func (g *gate) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	a := rows[0]
	if a.Create != nil && g.stops(a.Create) {
		close(g.reached)
		select {
		case <-g.open:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return g.Journal.Append(ctx, p, rows...)
}

// A process that dies between the row that wants a child and the child's own first row has not lost the child, also when
// nobody waits for it.
func TestLocal_StartsAChildAfterACrash(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"true", "false"} {
		t.Run("Wait"+wait, func(t *testing.T) {
			t.Parallel()
			i := openInstance(t, sqlitetest.Dir(t))
			defer i.Close()
			i.saveText(t, subFlow(wait))
			i.saveText(t, waitingFlow)
			g := &gate{
				Journal: i.stores.Journal, reached: make(chan struct{}), open: make(chan struct{}),
				stops: func(e *store.Execution) bool { return e.TriggerType == "PARENT" },
			}
			h := hostOn(t, i, g, nil)
			r := startOn(t, i, h, "par")
			<-g.reached
			h.Close()
			child := engine.ChildID(r.ID, "k", 0)
			created := make(chan struct{}, 1)
			stop := i.Watch(user, child, func(row host.Row, _ []engine.Command) {
				if row.Seq == 1 {
					created <- struct{}{}
				}
			})
			defer stop()
			h = hostOn(t, i, i.stores.Journal, nil)
			defer h.Close()
			<-created
		})
	}
}

// What a parent tells its child is on disk with the row that decided it.
func TestLocal_TellsAChildWithTheRow(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, subFlow("true"))
	i.saveText(t, waitingFlow)
	waits, cancelled, release := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	h := hostOn(t, i, i.stores.Journal, func(row host.Row, _ []engine.Command) {
		for _, f := range row.Facts {
			switch f := f.(type) {
			case engine.NodeSuspended:
				if f.Activation == "w" {
					waits <- struct{}{}
				}
			case engine.CancelRequested:
				if f.By == "ann" {
					close(cancelled)
					<-release // the row is on disk, and nothing has been done about it
				}
			}
		}
	})
	r := startOn(t, i, h, "par")
	<-waits
	if _, err := h.Act(t.Context(), user, host.Request{Execution: r.ID, Action: host.ActionCancel, By: "ann", Dedup: "1"}); err != nil {
		t.Fatal(err)
	}
	<-cancelled
	items, err := i.stores.Inbox.Pending(t.Context(), user, engine.ChildID(r.ID, "k", 0))
	if err != nil || len(items) != 1 || items[0].Kind != string(host.ActionCancel) {
		t.Errorf("the child's inbox has %+v, %v", items, err)
	}
	close(release)
	i.ends(t, r.ID, engine.StatusCanceled)
	h.Close()
}

// A start of an execution that is there already does not swallow what comes for it meanwhile.
func TestLocal_ASecondStartLosesNothing(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, waitingFlow)
	first := hostOn(t, i, i.stores.Journal, nil)
	waits := make(chan struct{}, 1)
	r, err := i.request(t.Context(), user, "kid", json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	stop := i.Watch(user, r.ID, func(row host.Row, _ []engine.Command) {
		if _, ok := row.Facts[0].(engine.NodeSuspended); ok {
			waits <- struct{}{}
		}
	})
	defer stop()
	if _, err := first.Start(t.Context(), user, r); err != nil {
		t.Fatal(err)
	}
	<-waits
	first.Close()
	g := &gate{Journal: i.stores.Journal, reached: make(chan struct{}), open: make(chan struct{}), stops: func(*store.Execution) bool { return true }}
	h := hostOn(t, i, g, nil)
	defer h.Close()
	second := make(chan error, 1)
	go func() {
		_, err := h.Start(context.Background(), user, r)
		second <- err
	}()
	<-g.reached
	if _, err := h.Act(t.Context(), user, host.Request{Execution: r.ID, Action: host.ActionSignal, Node: "w", Signal: "go", Dedup: "1"}); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	if err := <-second; err == nil {
		t.Error("an execution was started twice")
	}
	i.ends(t, r.ID, engine.StatusSuccess)
}

// A loop that was canceled with a failure elsewhere, revived, and then comes back from a snapshot, still knows its items.
func TestLocal_ARevivedLoopSurvivesASnapshot(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, `
metadata: {id: both, name: both, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: bad, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: later, revision: latest}}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.01}}
connections:
  - {from_node: start, to_node: bad}
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: nap, output_key: iteration}
  - {from_node: nap, to_node: each}
`)
	list, err := json.Marshal(map[string]any{"list": make([]int, 60)})
	if err != nil {
		t.Fatal(err)
	}
	id := i.startText(t, "both", string(list))
	i.ends(t, id, engine.StatusError)
	i.saveText(t, `
metadata: {id: later, name: later, description: d}
nodes:
  - {id: a, description: d, type: CALL, subtype: EMPTY}
`)
	long := make(chan struct{})
	rows := 0
	stop := i.Watch(user, id, func(host.Row, []engine.Command) {
		if rows++; rows == 80 {
			close(long)
		}
	})
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionRetry, Activation: "bad", Dedup: "1"}); err != nil {
		t.Fatal(err)
	}
	<-long
	stop()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	again := openInstance(t, dir)
	defer again.Close()
	if snap, ok, err := again.stores.Journal.LastSnapshot(t.Context(), user, id); err != nil || !ok || snap.Seq < 30 {
		t.Fatalf("snapshot at %d, %v, %v", snap.Seq, ok, err)
	}
	again.ends(t, id, engine.StatusSuccess)
}
