package hosttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// finish stops the last process and looks whether everything is as it must be.
func (b *bench) finish() Report {
	b.t.Helper()
	if b.dead() {
		b.reopen()
	}
	b.await("the rest to end", func() bool {
		return b.loose || !slices.ContainsFunc(b.all(), func(e store.Execution) bool { return !e.Status.Final() })
	})
	if b.number == 1 {
		b.first = b.fuse.Writes()
	}
	b.await("the inboxes to be empty", func() bool {
		refs, err := b.rig.Stores().Inbox.PendingExecutions(b.ctx, identity.System(""))
		if err != nil {
			b.t.Fatal(err)
		}
		return len(refs) == 0
	})
	if !b.loose {
		b.await("the timers to be gone", func() bool {
			left, err := b.rig.Stores().Timers.Upcoming(b.ctx, identity.System(""), store.Timer{}, 10)
			if err != nil {
				b.t.Fatal(err)
			}
			return len(left) == 0
		})
	}
	b.host.Close()
	report := Report{Writes: b.first, Crashes: b.deaths(), Ends: map[string]string{}, Logs: map[string]map[engine.ActivationID][]string{}}
	for _, e := range b.all() {
		b.who = principal(e.Workspace)
		report.Ends[e.Workspace+"/"+e.ID] = b.check(e)
		logs, problems := b.logs(e)
		report.Logs[e.Workspace+"/"+e.ID] = logs
		report.Problems = append(report.Problems, problems...)
	}
	deaths := b.deaths()
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	for _, p := range b.world.problems {
		b.t.Error(p)
	}
	once := map[call]int{}
	for c, n := range b.world.effects { // order does not matter: each is checked
		if b.world.once[c] {
			c.generation = 0
			once[c] += n
		}
		switch {
		case once[c] > 1 && !b.manual:
			b.t.Errorf("%v: an effect that must not be repeated happened %d times", c, once[c])
		case n > 1+deaths && !b.manual && !b.repeats:
			b.t.Errorf("%v: happened %d times with %d crashes", c, n, deaths)
		}
	}
	if b.t.Failed() || b.fate.Tell {
		b.world.mu.Unlock()
		b.dump()
		b.world.mu.Lock()
		b.t.Logf("fate %+v", b.fate)
	}
	return report
}

// check looks at one execution: its journal, its summary, its view and its outputs must tell the same story.
func (b *bench) check(e store.Execution) string {
	b.t.Helper()
	seq, last := uint64(0), int64(0)
	told := map[string]bool{}
	for row, err := range b.journal(e.ID).Rows(b.ctx, 0) {
		if err != nil {
			b.t.Fatalf("rows of %q: %v", e.ID, err)
		}
		if row.Seq != seq+1 || row.Time < last {
			b.t.Errorf("execution %q: row %d@%d follows row %d@%d", e.ID, row.Seq, row.Time, seq, last)
		}
		seq, last = row.Seq, row.Time
		for _, t := range row.Told {
			key := fmt.Sprint(t.Activation, t.Generation, t.Attempt, t.Node, t.Ask)
			if t.Node == engine.NodeWaitingInput || t.Node == engine.NodeRetrying {
				if told[key] {
					b.t.Errorf("execution %q: row %d tells again that %q is %s", e.ID, row.Seq, t.Activation, t.Node)
				}
				told[key] = true
			}
		}
	}
	view, start := b.view(e.ID)
	if view.Status != e.Status || view.Seq != seq {
		b.t.Errorf("execution %q: the view says %s at %d, the summary %s, the journal ends at %d", e.ID, view.Status, view.Seq, e.Status, seq)
	}
	if b.damaged[e.ID] {
		return string(e.Status)
	}
	b.whole(e, view)
	fold, err := b.journal(e.ID).Fold(b.ctx)
	if err != nil {
		b.t.Fatalf("fold of %q: %v", e.ID, err)
	}
	if got := fold.State().Status(); got != e.Status {
		b.t.Errorf("execution %q: the engine says %s, the summary %s", e.ID, got, e.Status)
	}
	if !e.Status.Final() {
		return string(e.Status)
	}
	for id, a := range view.Open { // order does not matter: none may be there
		b.t.Errorf("execution %q: the view has %q still open as %s", e.ID, id, a.Status)
	}
	if len(view.Questions) > 0 || len(fold.State().Outstanding()) > 0 {
		b.t.Errorf("execution %q has ended and still asks %v, wants %v", e.ID, view.Questions, fold.State().Outstanding())
	}
	for name, n := range view.Nodes { // order does not matter: each is checked
		b.readable(e.ID, name, start, n)
	}
	outputs, err := fold.Outputs()
	if err != nil {
		b.t.Fatalf("outputs of %q: %v", e.ID, err)
	}
	text, err := json.Marshal(outputs)
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("%s %s", e.Status, text)
}

// readable reads what a node has put out.
func (b *bench) readable(id, name string, start host.Start, n *host.NodeView) {
	b.t.Helper()
	for _, o := range n.Outputs {
		value, large, err := b.journal(id).Value(b.ctx, start, o.Ref)
		if err == nil && large != nil {
			value, err = b.rig.Source(b.rig.Stores()).Blob(b.ctx, b.who, *large)
		}
		if err != nil || !json.Valid(value) {
			b.t.Errorf("execution %q: output %q of %q cannot be read: %v", id, o.Key, name, err)
		}
	}
	if n.Status == engine.NodeDone && len(n.Outputs) == 0 {
		b.t.Errorf("execution %q: %q has completed without output", id, name)
	}
}

// whole compares what was restored from a snapshot with what the whole journal tells.
func (b *bench) whole(e store.Execution, restored *host.View) {
	b.t.Helper()
	journal := b.journal(e.ID)
	journal.Source = noSnapshots{journal.Source}
	view, _, err := journal.View(b.ctx)
	if err != nil {
		b.t.Fatalf("view of %q without its snapshot: %v", e.ID, err)
	}
	b.same(e.ID, "view", restored, view)
	want, err := journal.Fold(b.ctx)
	if err != nil {
		b.t.Fatalf("fold of %q without its snapshot: %v", e.ID, err)
	}
	got, err := b.journal(e.ID).Fold(b.ctx)
	if err != nil {
		b.t.Fatalf("fold of %q: %v", e.ID, err)
	}
	b.same(e.ID, "view of the fold", got.View(), want.View())
	one, err := got.State().Snapshot()
	if err != nil {
		b.t.Fatal(err)
	}
	two, err := want.State().Snapshot()
	if err != nil {
		b.t.Fatal(err)
	}
	if string(one) != string(two) {
		b.t.Errorf("execution %q: the snapshot and the journal disagree:\n%s\n%s", e.ID, one, two)
	}
}

func (b *bench) same(id, what string, got, want any) {
	b.t.Helper()
	one, err := json.Marshal(got)
	if err != nil {
		b.t.Fatal(err)
	}
	two, err := json.Marshal(want)
	if err != nil {
		b.t.Fatal(err)
	}
	if string(one) != string(two) {
		b.t.Errorf("execution %q: the %s from the snapshot and from the whole journal differ:\n%s\n%s", id, what, one, two)
	}
}

// noSnapshots is a source without snapshots.
type noSnapshots struct{ host.Source }

// Snapshot implements [host.Source].
func (noSnapshots) Snapshot(context.Context, identity.Principal, string) ([]byte, bool, error) {
	return nil, false, nil
}

// dump logs everything that is on disk.
func (b *bench) dump() {
	b.t.Helper()
	executions := b.all()
	slices.SortFunc(executions, func(x, y store.Execution) int { return int(x.Created - y.Created) })
	for _, e := range executions {
		b.t.Logf("execution %q of %q: %s %s", e.ID, e.WorkflowID, e.Status, e.Error)
		for row, err := range b.rig.Stores().Journal.Rows(b.ctx, identity.System(e.Workspace), e.ID, 0) {
			body := string(row.Body)
			if len(body) > 1500 {
				body = body[:1500] + "…"
			}
			b.t.Logf("  %d@%d %s %v", row.Seq, row.Time, body, err)
		}
		items, err := b.rig.Stores().Inbox.Pending(b.ctx, identity.System(e.Workspace), e.ID)
		b.t.Logf("  inbox %+v %v", items, err)
	}
	timers, err := b.rig.Stores().Timers.Upcoming(b.ctx, identity.System("one"), store.Timer{}, 100)
	b.t.Logf("timers %+v %v", timers, err)
}
