package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/validation"
	"tandem/workflow"
)

// user is who acts in these tests.
var user = identity.Principal{Workspace: "default", User: "ann", Roles: []identity.Role{identity.Admin}} // read-only

func openInstance(t *testing.T, dir string) *Instance {
	t.Helper()
	i, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// long says that tests have the time for everything (`make test-long`).
func long() bool { return os.Getenv("TANDEM_LONG") != "" }

// often is how often a test does the same again: in the long form the second of the numbers.
func often(short, most int) int {
	if long() {
		return most
	}
	return short
}

// closeAfter closes an instance when the test and those below it have ended, and lets go of it: what a test has handed to Cleanup is kept until all tests
// have ended, and an instance is some ten megabytes.
func closeAfter(t testing.TB, i *Instance) {
	t.Helper()
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		i = nil
	})
}

func (i *Instance) saveText(t *testing.T, text string) {
	t.Helper()
	source, problems := workflow.Parse([]byte(text), workflow.Options{Kinds: i.kinds})
	if source == nil {
		t.Fatal(problems)
	}
	if problems := source.Validate(validation.Rules(i.kinds)); workflow.HasErrors(problems) {
		t.Fatal(problems)
	}
	if _, err := i.Save(t.Context(), user, source.Definition); err != nil {
		t.Fatal(err)
	}
}

func (i *Instance) startText(t *testing.T, id, inputs string) string {
	t.Helper()
	execution, err := i.Start(t.Context(), user, id, json.RawMessage(inputs))
	if err != nil {
		t.Fatal(err)
	}
	return execution
}

func (i *Instance) ends(t *testing.T, execution string, want engine.Status) store.Execution {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e, err := i.Wait(ctx, user, execution)
	if err != nil || e.Status != want {
		for row, err := range i.stores.Journal.Rows(t.Context(), user, execution, 0) {
			t.Logf("%d %s %v", row.Seq, row.Body, err)
		}
		t.Fatalf("execution %+v, %v; want %s", e, err, want)
	}
	return e
}

const loopFlow = `
metadata: {id: loops, name: loops, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: check, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "data.n > 3"}}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 2}}
  - {id: work, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {got: "{{item}}"}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.2}}
  - {id: no, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: check}
  - {from_node: check, to_node: each, output_key: "true"}
  - {from_node: check, to_node: no, output_key: "false"}
  - {from_node: each, to_node: work, output_key: iteration, conversion_function: "{'item': item, 'twice': item * 2}"}
  - {from_node: work, to_node: each}
  - {from_node: each, to_node: nap, output_key: completed}
`

func TestInstance_RunsAWorkflow(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, loopFlow)
	execution := i.startText(t, "loops", `{"n":5,"list":[1,2,3]}`)
	i.ends(t, execution, engine.StatusSuccess)
	var last string
	for row, err := range i.stores.Journal.Rows(t.Context(), user, execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = string(row.Body)
	}
	var row struct {
		Values []struct{ Results []map[string]any }
	}
	if err := json.Unmarshal([]byte(last), &row); err != nil || len(row.Values) != 1 || len(row.Values[0].Results) != 3 {
		t.Fatalf("last row %s: %v", last, err)
	}
	for n, r := range row.Values[0].Results {
		if r["got"] != float64(n+1) || r["twice"] != float64(2*n+2) {
			t.Errorf("iteration %d gave %v", n, r)
		}
	}
}

func TestInstance_GoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, loopFlow)
	execution := i.startText(t, "loops", `{"n":5,"list":[1,2,3]}`)
	if err := i.Close(); err != nil { // wherever it stands
		t.Fatal(err)
	}
	again := openInstance(t, dir)
	defer again.Close()
	again.ends(t, execution, engine.StatusSuccess)
}

const parentFlow = `
metadata: {id: parent, name: parent, description: d}
nodes:
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: child, revision: latest}, input_params: {x: 7}}
  - {id: after, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: sub, to_node: after}
`

func TestInstance_Children(t *testing.T) {
	t.Parallel()
	t.Run("TheParentWaitsAndGetsTheOutputs", func(t *testing.T) {
		t.Parallel()
		i := openInstance(t, sqlitetest.Dir(t))
		defer i.Close()
		i.saveText(t, parentFlow)
		i.saveText(t, `
metadata: {id: child, name: child, description: d}
nodes:
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.01}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {y: "{{x}}"}}
connections:
  - {from_node: nap, to_node: out}
`)
		execution := i.startText(t, "parent", `{}`)
		i.ends(t, execution, engine.StatusSuccess)
		child := engine.ChildID(execution, "sub", 0)
		if e, err := i.stores.Executions.Get(t.Context(), user, child); err != nil || e.Parent != execution || e.Status != engine.StatusSuccess {
			t.Errorf("child %+v, %v", e, err)
		}
		left, err := i.stores.Timers.Upcoming(t.Context(), user, store.Timer{}, 10)
		if err != nil || len(left) != 0 {
			t.Errorf("timers left %v, %v", left, err)
		}
	})
	t.Run("AChildThatDoesNotExistFailsTheNode", func(t *testing.T) {
		t.Parallel()
		i := openInstance(t, sqlitetest.Dir(t))
		defer i.Close()
		i.saveText(t, parentFlow)
		execution := i.startText(t, "parent", `{}`)
		if e := i.ends(t, execution, engine.StatusError); e.Error == "" {
			t.Errorf("execution %+v", e)
		}
	})
	t.Run("CancelReachesThem", func(t *testing.T) {
		t.Parallel()
		i := openInstance(t, sqlitetest.Dir(t))
		defer i.Close()
		i.saveText(t, parentFlow)
		i.saveText(t, `
metadata: {id: child, name: child, description: d}
nodes:
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 3600}}
`)
		execution := i.startText(t, "parent", `{}`)
		if _, err := i.host.Act(t.Context(), user, host.Request{Execution: execution, Action: host.ActionCancel, Dedup: "1"}); err != nil {
			t.Fatal(err)
		}
		i.ends(t, execution, engine.StatusCanceled)
	})
}

// A condition sees what other nodes write while it waits.
func TestInstance_WaitsForACondition(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, `
metadata: {id: waits, name: waits, description: d}
nodes:
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.1}}
  - {id: write, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {flag: ready}}
  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: condition, wait_condition: "runtime.flag == 'ready'", check_interval_seconds: 0.1, timeout_seconds: 10}}
connections:
  - {from_node: nap, to_node: write}
`)
	i.ends(t, i.startText(t, "waits", `{}`), engine.StatusSuccess)
}

// A request that comes too late is answered in the journal, once, and does no harm.
func TestInstance_RefusesWhatComesTooLate(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, `
metadata: {id: short, name: short, description: d}
nodes:
  - {id: a, description: d, type: CALL, subtype: EMPTY}
`)
	execution := i.startText(t, "short", `{}`)
	i.ends(t, execution, engine.StatusSuccess)
	refused := make(chan host.Row, 1)
	stop := i.Watch(user, execution, func(row host.Row, _ []engine.Command) { refused <- row })
	defer stop()
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: execution, Action: host.ActionPause, Dedup: "1"}); err != nil {
		t.Fatal(err)
	}
	row := <-refused
	if f, ok := row.Facts[0].(engine.RequestRefused); !ok || f.Request != string(host.ActionPause) || f.Error.Code != fault.Conflict {
		t.Errorf("row %+v", row)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	again := openInstance(t, dir)
	defer again.Close()
	pending, err := again.stores.Inbox.Pending(t.Context(), user, execution)
	if err != nil || len(pending) != 0 {
		t.Errorf("pending %v, %v", pending, err)
	}
	again.ends(t, execution, engine.StatusSuccess)
}

// A long execution comes back from its snapshot and what follows it.
func TestInstance_ComesBackFromASnapshot(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, `
metadata: {id: long, name: long, description: d}
nodes:
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}, input_params: {list: "{{list}}"}}
  - {id: work, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {got: "{{item}}"}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 1}}
connections:
  - {from_node: each, to_node: work, output_key: iteration}
  - {from_node: work, to_node: each}
  - {from_node: each, to_node: nap, output_key: completed}
`)
	list, err := json.Marshal(make([]int, 100))
	if err != nil {
		t.Fatal(err)
	}
	parked := make(chan struct{}, 1)
	request, err := i.request(t.Context(), user, "long", json.RawMessage(`{"list":`+string(list)+`}`))
	if err != nil {
		t.Fatal(err)
	}
	stop := i.Watch(user, request.ID, func(row host.Row, _ []engine.Command) {
		for _, f := range row.Facts {
			if s, ok := f.(engine.NodeSuspended); ok && s.Activation == "nap" {
				parked <- struct{}{}
			}
		}
	})
	if _, err := i.host.Start(t.Context(), user, request); err != nil {
		t.Fatal(err)
	}
	<-parked
	stop()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	again := openInstance(t, dir)
	defer again.Close()
	snap, ok, err := again.stores.Journal.LastSnapshot(t.Context(), user, request.ID)
	if err != nil || !ok || snap.Seq < 100 {
		t.Fatalf("snapshot at %d, %v, %v", snap.Seq, ok, err)
	}
	again.ends(t, request.ID, engine.StatusSuccess)
	outputs, err := again.Outputs(t.Context(), user, request.ID)
	if err != nil {
		t.Fatal(err)
	}
	var nap struct{ Results []any }
	if err := json.Unmarshal(outputs["nap"], &nap); err != nil || len(nap.Results) != 100 {
		t.Errorf("outputs %s, %v", outputs["nap"], err)
	}
}

// fullDisk is a journal that has no room for a while.
type fullDisk struct {
	store.Journal
	refusals atomic.Int32
}

func (d *fullDisk) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	if rows[0].Create == nil && d.refusals.Add(-1) >= 0 {
		return fmt.Errorf("append: %w", store.ErrFull)
	}
	return d.Journal.Append(ctx, p, rows...)
}

func TestLocal_KeepsOutcomesWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, loopFlow)
	disk := &fullDisk{Journal: i.stores.Journal}
	disk.refusals.Store(2)
	ended := make(chan engine.Status, 1)
	h, err := local.New(t.Context(), local.Options{
		Journal: disk, Inbox: i.stores.Inbox, Timers: i.stores.Timers, Executions: i.stores.Executions, Revision: i.revision, Child: i.Request, Blobs: i.stores.Blobs, Logs: i.stores.Logs, Workers: 2,
		Recorded: func(_ store.Ref, _ *workflow.Graph, _ host.Row, commands []engine.Command) {
			for _, c := range commands {
				if f, ok := c.(engine.Finish); ok {
					ended <- f.Status
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	request, err := i.request(t.Context(), user, "loops", json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(), user, request); err != nil {
		t.Fatal(err)
	}
	if status := <-ended; status != engine.StatusSuccess || disk.refusals.Load() >= 0 {
		t.Errorf("status %s after %d refusals", status, 2-disk.refusals.Load())
	}
}

// fullBlobs has no room for one large value: the one after so many others.
type fullBlobs struct {
	store.Blobs
	before atomic.Int32
}

func (d *fullBlobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	if d.before.Add(-1) == -1 {
		return store.Blob{}, fmt.Errorf("put: %w", store.ErrFull)
	}
	return d.Blobs.Put(ctx, p, r)
}

// A start is refused when there is no room for a large value, be it of the first row or of one that was run ahead of it. Nothing
// of it is left, and it can be tried again.
func TestLocal_RefusesAStartWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, strings.Replace(napFlow, "SECONDS", "3600", 1))
	disk := &fullBlobs{Blobs: i.stores.Blobs}
	h, err := local.New(t.Context(), local.Options{
		Journal: i.stores.Journal, Inbox: i.stores.Inbox, Timers: i.stores.Timers, Executions: i.stores.Executions, Revision: i.revision,
		Child: i.Request, Blobs: disk, Logs: i.stores.Logs, Workers: 2, RunAhead: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	request, err := i.request(t.Context(), user, "nap", json.RawMessage(`{"text":"`+strings.Repeat("0123456789abcdef", 2<<10)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	refused := int32(0)
	for ; ; refused++ {
		disk.before.Store(refused)
		_, err := h.Start(t.Context(), user, request)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("without room for value %d: %v", refused, err)
		}
		if _, err := i.stores.Executions.Get(t.Context(), user, request.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("without room for value %d something is left: %v", refused, err)
		}
	}
	if disk.before.Load() < 0 {
		t.Errorf("a start waited until there was room for value %d", refused)
	}
	if refused < 2 {
		t.Errorf("%d large values: none of a row that was run ahead", refused)
	}
}

// Somebody who waits for an execution is told when this process cannot go on with it.
func TestInstance_WaitingEndsWhenTheExecutionIsGivenUp(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, waitingFlow)
	execution := i.startText(t, "kid", `{}`)
	broken := errors.New("the disk is gone")
	done := make(chan error, 1)
	go func() {
		_, err := i.Wait(context.Background(), user, execution)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			return
		default:
			i.givenUp(store.Ref{Workspace: user.Workspace, Execution: execution}, broken) // until it has begun to wait
		}
	}
}
