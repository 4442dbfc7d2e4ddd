package host_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/workflow"
)

// kinds knows steps and loops, which is all that a fold can tell apart.
type kinds struct{}

func (kinds) Kind(name string) (workflow.Kind, bool) {
	k := workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) {
		return workflow.Plan{Effect: workflow.Pure, MaxRetries: 1}, nil
	}}
	if name == "TEST.LOOP" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

func (kinds) Names() []string                     { return []string{"TEST.LOOP", "TEST.STEP"} }
func (kinds) Alias(string, string) (string, bool) { return "", false }

// revision is a workflow whose loops go through the list in their state.
type revision struct{}

func (revision) Syncs(int) []string    { return nil }
func (revision) Declares(int) []string { return nil }

func (revision) Iterations(run engine.RunNode, values *host.Inputs, data host.Data) (host.Opened, error) {
	if values.Len() != 1 || run.Activation != "each" || data.Execution != "exec" {
		return host.Opened{}, fmt.Errorf("run %+v with %+v", run, values)
	}
	return host.Opened{Iterate: func(state json.RawMessage, index int64) (host.Entry, map[string]json.RawMessage, error) {
		var items []json.RawMessage
		if err := json.Unmarshal(state, &items); err != nil {
			return host.Entry{}, nil, err
		}
		vars := map[string]json.RawMessage{"item": items[index], "index": json.RawMessage(fmt.Sprint(index))}
		return host.Entry{Value: json.RawMessage(fmt.Sprintf(`{"item":%s}`, items[index]))}, vars, nil
	}}, nil
}

func (revision) Sent(engine.RunNode, *host.Inputs, host.Data) (json.RawMessage, error) {
	return nil, nil
}

func (revision) Inspect(engine.RunNode, *host.Inputs, host.Data) (input, origins json.RawMessage, err error) {
	return json.RawMessage(`{}`), json.RawMessage(`[]`), nil
}

// book is a journal in memory and the fold of it.
type book struct {
	t     *testing.T
	graph *workflow.Graph
	rows  []host.Row
	fold  *host.Fold
	runs  map[engine.ActivationID]engine.RunNode
}

func open(t *testing.T) *book {
	t.Helper()
	def := &workflow.Definition{
		Nodes: []workflow.Node{
			{ID: "start", Name: "begin", Type: "TEST", Subtype: "STEP"}, {ID: "each", Type: "TEST", Subtype: "LOOP"},
			{ID: "work", Type: "TEST", Subtype: "STEP"}, {ID: "end", Type: "TEST", Subtype: "STEP"},
		},
		Connections: []workflow.Connection{
			{ID: "c1", FromNode: "start", ToNode: "each", OutputKey: "result"},
			{ID: "c2", FromNode: "each", ToNode: "work", OutputKey: "iteration"},
			{ID: "c3", FromNode: "work", ToNode: "each", OutputKey: "result"},
			{ID: "c4", FromNode: "each", ToNode: "end", OutputKey: "completed"},
		},
	}
	graph, problems := workflow.Compile(def, kinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	b := &book{t: t, graph: graph, runs: map[engine.ActivationID]engine.RunNode{}}
	b.fold = b.reread(nil)
	b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ExecutionCreated{
			Semantics: engine.Semantics, Execution: "exec", Revision: graph.Hash,
			Input: put(json.RawMessage(`{"workflow_id":"w","initial":{"city":"Hangzhou"}}`)),
		}
	})
	b.do(func(func(json.RawMessage) engine.Ref) engine.Fact { return engine.ExecutionStarted{} })
	return b
}

// reread folds rows through their stored form.
func (b *book) reread(rows []host.Row) *host.Fold {
	b.t.Helper()
	load := host.Loader{Row: func(_ string, seq uint64) (host.Row, error) { return b.rows[seq-1], nil }}
	fold := host.NewFold(b.graph, revision{}, nil, load)
	for _, row := range rows {
		body, err := row.Encode()
		if err != nil {
			b.t.Fatal(err)
		}
		stored, err := host.DecodeRow(row.Seq, row.Time, body)
		if err != nil {
			b.t.Fatal(err)
		}
		if _, err := fold.Apply(stored); err != nil {
			b.t.Fatalf("row %d: %v", row.Seq, err)
		}
	}
	return fold
}

func (b *book) do(fact func(put func(json.RawMessage) engine.Ref) engine.Fact) {
	b.t.Helper()
	turn := b.fold.Begin(int64(1000 + len(b.rows)))
	commands, err := turn.Add(fact(turn.Put))
	if err != nil {
		b.t.Fatal(err)
	}
	turn.Tell(commands)
	b.rows = append(b.rows, *turn.Row())
	for _, c := range commands {
		if run, ok := c.(engine.RunNode); ok {
			b.runs[run.Activation] = run
		}
	}
}

func (b *book) complete(id engine.ActivationID, key, payload string) {
	b.t.Helper()
	b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeCompleted{Attempt: b.runs[id].Attempt, Outputs: []engine.Output{{Key: key, Ref: put(json.RawMessage(payload))}}}
	})
}

func (b *book) input(id engine.ActivationID) string {
	b.t.Helper()
	run := b.runs[id]
	values, err := b.fold.Inputs(run)
	if err != nil {
		b.t.Fatal(err)
	}
	ref := run.Inputs[0].Ref
	if ref == "" {
		ref = host.EntryRef
	}
	return string(values.Value(ref))
}

func TestFold_Scopes(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.complete("start", "result", `{"list":["a","b"],"city":"Ningbo"}`)
	if got := b.input("each"); got != `{"list":["a","b"],"city":"Ningbo"}` {
		t.Errorf("each gets %s", got)
	}
	b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ScopeOpened{Attempt: b.runs["each"].Attempt, Count: 2, Concurrency: 2, State: put(json.RawMessage(`["a","b"]`))}
	})
	for id, want := range map[engine.ActivationID]string{"each[0]/work": `{"item":"a"}`, "each[1]/work": `{"item":"b"}`} {
		if got := b.input(id); got != want {
			t.Errorf("%s gets %s, want %s", id, got, want)
		}
	}
	b.complete("each[1]/work", "result", `{"size":2}`)
	inner, err := b.fold.Context("each[0]")
	if err != nil {
		t.Fatal(err)
	}
	if _, seen := inner.RuntimeMetadata["size"]; seen || string(inner.Variables["item"]) != `"a"` {
		t.Errorf("an iteration sees its neighbour: %+v", inner)
	}
	b.complete("each[0]/work", "result", `{"size":1}`)
	scope, ok := b.fold.Scope("each")
	results, err := scope.Results()
	if err != nil || !ok || len(results) != 2 || string(results[0]) != `{"size":1}` || string(results[1]) != `{"size":2}` {
		t.Errorf("results %s, %v", results, err)
	}
	b.complete("each", "completed", `{"results":[1,2]}`)
	top, err := b.fold.Context("")
	if err != nil {
		t.Fatal(err)
	}
	if string(top.RuntimeMetadata["size"]) != "2" || string(top.RuntimeMetadata["city"]) != `"Ningbo"` || string(top.InitialMetadata["city"]) != `"Hangzhou"` {
		t.Errorf("layers %s", top.RuntimeMetadata)
	}
	b.complete("end", "result", `{}`)
	if b.fold.State().Status() != engine.StatusSuccess {
		t.Errorf("status %s", b.fold.State().Status())
	}
	if _, left := b.fold.Scope("each"); left {
		t.Error("a closed scope is still kept")
	}
}

func TestFold_Apply(t *testing.T) {
	t.Parallel()
	t.Run("RowsGiveTheSameFold", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.complete("start", "result", `{"x":1}`)
		b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
			return engine.ScopeOpened{Attempt: b.runs["each"].Attempt, Count: 2, Concurrency: 2, State: put(json.RawMessage(`[1,2]`))}
		})
		b.complete("each[1]/work", "result", `{"y":2}`)
		again := b.reread(b.rows)
		want, err := b.fold.State().Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.State().Snapshot()
		if err != nil || string(got) != string(want) {
			t.Errorf("state differs: %v\n%s\n%s", err, got, want)
		}
		for _, scope := range []string{"", "each[0]"} {
			w, werr := b.fold.Context(scope)
			g, gerr := again.Context(scope)
			if werr != nil || gerr != nil || !cmp.Equal(w, g) {
				t.Errorf("layers in %q differ: %v %v %s", scope, werr, gerr, cmp.Diff(w, g))
			}
		}
		for id, run := range b.runs {
			if a, open := again.State().Activation(id); !open || a.Status != engine.NodeRunning || a.Iterations > 0 {
				continue
			}
			w, werr := b.fold.Inputs(run)
			g, gerr := again.Inputs(run)
			if werr != nil || gerr != nil || !reflect.DeepEqual(w, g) {
				t.Errorf("inputs of %s differ: %v %v", id, werr, gerr)
			}
		}
	})
	t.Run("ASnapshotAndTheRestGiveTheSameFold", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.complete("start", "result", `{"x":1}`)
		b.do(func(put func(json.RawMessage) engine.Ref) engine.Fact {
			return engine.ScopeOpened{Attempt: b.runs["each"].Attempt, Count: 3, Concurrency: 2, State: put(json.RawMessage(`[1,2,3]`))}
		})
		b.complete("each[1]/work", "result", `{"y":2}`)
		b.complete("each[0]/work", "result", `{"y":1}`)
		b.complete("each[2]/work", "result", `{"y":3}`)
		b.complete("each", "completed", `{"results":[]}`)
		want, err := b.fold.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		load := host.Loader{Row: func(_ string, seq uint64) (host.Row, error) { return b.rows[seq-1], nil }}
		for cut := 1; cut <= len(b.rows); cut++ {
			snap, err := b.reread(b.rows[:cut]).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			fold, err := host.RestoreFold(b.graph, revision{}, nil, load, snap)
			if err != nil {
				t.Fatalf("restore at row %d: %v", cut, err)
			}
			if again, err := fold.Snapshot(); err != nil || string(again) != string(snap) {
				t.Errorf("row %d: the snapshot does not survive: %v\n%s\n%s", cut, err, again, snap)
			}
			for _, row := range b.rows[cut:] {
				if _, err := fold.Apply(row); err != nil {
					t.Fatalf("row %d after a snapshot at %d: %v", row.Seq, cut, err)
				}
			}
			if got, err := fold.Snapshot(); err != nil || string(got) != string(want) {
				t.Errorf("cut at %d: %v\n%s\n%s", cut, err, got, want)
			}
		}
		if _, err := host.RestoreFold(b.graph, revision{}, nil, load, []byte(`{"engine":`)); fault.CodeOf(err) != fault.Internal {
			t.Errorf("broken snapshot: %v", err)
		}
	})
	t.Run("RefusesAGap", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		row := b.rows[1]
		row.Seq = 9
		if _, err := b.reread(b.rows[:1]).Apply(row); fault.CodeOf(err) != fault.Unreadable {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ARefusedFactIsNotPartOfTheRow", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		turn := b.fold.Begin(2000)
		if _, err := turn.Add(engine.TimerFired{Timer: "nobody"}); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("error %v", err)
		}
		if len(turn.Row().Facts) != 0 {
			t.Errorf("row %+v", turn.Row())
		}
	})
	t.Run("ARowThatWasNotWrittenLeavesNoValueBehind", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.fold.Begin(2000).Put(json.RawMessage(`{"x":"stale"}`))
		b.complete("start", "result", `{"x":"fresh"}`)
		if got := b.input("each"); got != `{"x":"fresh"}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("ValuesThatWereLetGoAreReadAgain", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.complete("start", "result", `{"x":1}`)
		turn := b.fold.Begin(2000)
		for range 2000 {
			turn.Put(json.RawMessage(`"filler"`))
		}
		if got := b.input("each"); got != `{"x":1}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("AFailureThatTheEngineDecidedIsKeptToo", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		for range engine.MaxRecoveries + 1 {
			b.do(func(func(json.RawMessage) engine.Ref) engine.Fact { return engine.ExecutionRecovered{} })
		}
		c, err := b.fold.Context("")
		if err != nil {
			t.Fatal(err)
		}
		if s := c.StepResults["start"]; s.IsSuccess || s.ErrorMessage == "" {
			t.Errorf("step %+v", s)
		}
	})
	t.Run("AFailureIsKeptAndHidesNoSuccess", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.do(func(func(json.RawMessage) engine.Ref) engine.Fact {
			return engine.NodeFailed{Attempt: b.runs["start"].Attempt, Error: fault.New(fault.InvalidInput, "no list")}
		})
		c, err := b.fold.Context("")
		if err != nil {
			t.Fatal(err)
		}
		if s := c.StepResults["start"]; s.IsSuccess || s.ErrorMessage != "no list" || s.StepName != "begin" {
			t.Errorf("step %+v", s)
		}
	})
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	for _, want := range []host.Place{{Seq: 17, N: 3}, {Level: 2, Seq: 1, N: 0}} {
		if got, err := host.ParseRef(want.Ref()); err != nil || got != want {
			t.Errorf("%s: got %+v %v", want.Ref(), got, err)
		}
	}
	for _, ref := range []engine.Ref{"", "r", "r1", "r1.", "x1.2", "r1.-2", "r-1.2", "r0:1.2", "r:1.2", host.EntryRef} {
		if _, err := host.ParseRef(ref); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%q: error %v", ref, err)
		}
	}
}
