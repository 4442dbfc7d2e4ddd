package hosttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// wantRuns checks how often an activation began. Each crash may have cost one more.
func (b *bench) wantRuns(id string, a engine.ActivationID, want int) {
	b.t.Helper()
	got := b.world.count(b.world.runs, b.at(id, a))
	if got < want || got > want+b.deaths() {
		b.t.Errorf("%q of %q began %d times, want %d (%d crashes)", a, id, got, want, b.deaths())
	}
}

// wantOutput checks what an execution has put out.
func (b *bench) wantOutput(id, want string) {
	b.t.Helper()
	fold, err := b.journal(id).Fold(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	outputs, err := fold.Outputs()
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := json.Marshal(outputs)
	if err != nil {
		b.t.Fatal(err)
	}
	if string(got) != want {
		b.t.Errorf("%q has put out %s, want %s", id, got, want)
	}
}

// wantError checks why an execution failed.
func (b *bench) wantError(id string, code, node string) {
	b.t.Helper()
	view, _ := b.view(id)
	if view.Error == nil || string(view.Error.Code) != code || string(view.ErrorNode) != node {
		b.t.Errorf("%q failed with %v at %q, want %s at %q", id, view.Error, view.ErrorNode, code, node)
	}
}

// status is what a view says of a node.
func (b *bench) status(id, node string) engine.NodeStatus {
	b.t.Helper()
	view, _ := b.view(id)
	if n := view.Nodes[node]; n != nil {
		return n.Status
	}
	return ""
}

// handedOver starts an execution. Who starts it can follow it from its first row on, or is handed what the journal would tell.
func (b *bench) handedOver(id string) {
	b.t.Helper()
	r, err := b.request(id)
	if err != nil {
		b.t.Fatal(err)
	}
	followed := 0
	r.ID, r.Follow = id, func() { followed++ }
	started, err := b.host.Start(b.ctx, b.who, r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.await(fmt.Sprintf("the end of %q", id), func() bool { return b.summary(id).Status.Final() })
	if started.Ended == nil {
		if followed != 1 {
			b.t.Errorf("%q was followed %d times and not handed over", id, followed)
		}
		return
	}
	view, _ := b.view(id)
	want, err := json.Marshal(view)
	got, err2 := json.Marshal(started.Ended.View)
	if err := errors.Join(err, err2); err != nil {
		b.t.Fatal(err)
	}
	if followed != 0 || string(got) != string(want) || !started.Ended.Whole() {
		b.t.Errorf("%q was followed %d times and handed over as %s, the journal has %s", id, followed, got, want)
	}
	for _, n := range view.Nodes { // order does not matter
		for _, o := range n.Outputs {
			if _, ok := started.Ended.Value(o.Ref); !ok {
				b.t.Errorf("the output of %q of %q is not handed over", n.ID, id)
			}
		}
	}
}

// OnlyBrief is the case of an execution that needs nothing but brief pure runs: a host that runs ahead writes it at once.
const OnlyBrief = "Flow/OnlyBriefOnes"

// flowCases are the cases of executions that follow their graph: chains and branches, loops, and what is kept of them.
func flowCases() []Case { return slices.Concat(chainCases(), loopCases(), keptCases()) }

// chainCases are chains, fan-outs and branches.
func chainCases() []Case {
	return []Case{
		{Name: "Flow/Chain", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"t MANUAL", "a WORK", "b WORK {effect: idempotent}", "c WORK {effect: once}", "d BRIEF", "e WORK"},
				[]string{"t -> a", "a -> b", "b -> c", "c -> d", "d -> e"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"e":{"e":30}}`)
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				if n != "c" || b.deaths() == 0 {
					b.wantRuns("x", engine.ActivationID(n), 1)
				}
			}
			if n := b.world.count(b.world.effects, b.at("x", "c")); n != 1 {
				b.t.Errorf("the effect of c happened %d times", n)
			}
		}},
		{Name: OnlyBrief, Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a BRIEF", "b BRIEF", "c BRIEF"}, []string{"a -> b", "b -> c"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			if e := b.summary("x"); e.Started == 0 || e.Ended < e.Started || e.Updated != e.Ended {
				b.t.Errorf("the summary is %+v", e)
			}
		}},
		{Name: "Flow/BriefOnesUnderAKey", run: func(b *bench) {
			b.save(flow("f", []string{"a BRIEF", "b BRIEF"}, []string{"a -> b"}))
			key := func(r *host.StartRequest) { r.Key, r.KeyHash = "once", "hash" }
			b.start("x", "f", key)
			b.start("y", "f", key) // runs ahead, and finds that there is one
			b.ends("x", engine.StatusSuccess)
			if list := b.all(); len(list) != 1 || list[0].ID != "x" {
				b.t.Errorf("there are %+v", list)
			}
		}},
		{Name: "Flow/FollowedOrHandedOver", run: func(b *bench) {
			b.save(flow("brief", []string{"a BRIEF", "b BRIEF"}, []string{"a -> b"}), flow("large", []string{"a BRIEF {pad: 150000}", "b BRIEF"}, []string{"a -> b"}),
				flow("failing", []string{"a BRIEF", "b BRIEF {pad: much, max_retries: 0}"}, []string{"a -> b"}), flow("longer", []string{"a BRIEF", "b WORK"}, []string{"a -> b"}))
			for id := range b.graphs { // order does not matter
				b.handedOver(id)
			}
		}},
		{Name: "Flow/BriefOnesWithLargeResults", run: func(b *bench) {
			// The join wants a value that is far back by then, with a lot of other values after it.
			nodes, edges := []string{"a BRIEF", "b0 BRIEF", "j BRIEF"}, []string{"a -> j"}
			for i := range 30 {
				nodes = append(nodes, fmt.Sprintf("b%d BRIEF", i+1), fmt.Sprintf("big%d BRIEF {pad: 150000}", i))
				edges = append(edges, fmt.Sprintf("b%d -> b%d", i, i+1), fmt.Sprintf("b%d -> big%d", i, i))
			}
			b.save(flow("f", nodes, append(edges, "b30 -> j")))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Flow/FanOutAndJoin", Crashes: true, run: func(b *bench) {
			nodes, edges := []string{"t WORK", "j WORK"}, []string{}
			for i := range 6 {
				nodes = append(nodes, fmt.Sprintf("p%d WORK {effect: idempotent, ms: %d}", i, 1+i%3))
				edges = append(edges, fmt.Sprintf("t -> p%d", i), fmt.Sprintf("p%d -> j", i))
			}
			b.save(flow("f", nodes, edges))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("x", "j", 1)
			view, _ := b.view("x")
			if len(view.Nodes) != 8 {
				b.t.Errorf("the view has %d nodes", len(view.Nodes))
			}
		}},
		{Name: "Flow/DeadBranchIsSkipped", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"c CHOICE {key: no}", "y WORK", "z WORK", "n WORK", "j WORK"},
				[]string{"c.yes -> y", "y -> z", "c.no -> n", "z -> j", "n -> j"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			if y, z, j := b.status("x", "y"), b.status("x", "z"), b.status("x", "j"); y != engine.NodeSkip || z != engine.NodeSkip || j != engine.NodeDone {
				b.t.Errorf("y is %s, z is %s, j is %s", y, z, j)
			}
			b.wantRuns("x", "y", 0)
		}},
	}
}

// loopCases are loops.
func loopCases() []Case {
	return []Case{
		{Name: "Flow/SequentialLoop", Crashes: true, run: func(b *bench) { b.loop("count: 4", 4, 0) }},
		{Name: "Flow/ConcurrentLoop", Crashes: true, run: func(b *bench) { b.loop("count: 7, concurrency: 3", 7, 0) }},
		{Name: "Flow/LoopByTurns", Crashes: true, run: func(b *bench) { b.loop("count: 3, turns: true", 3, 0) }},
		{Name: "Flow/LoopKeepsGoing", Crashes: true, run: func(b *bench) { b.loop("count: 5, concurrency: 2, keep_going: true", 5, 1) }},
		{Name: "Flow/EmptyLoop", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"l EACH {count: 0}", "w WORK"}, []string{"l.iteration -> w", "w -> l"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			if got := b.status("x", "w"); got != engine.NodeSkip {
				b.t.Errorf("the body of an empty loop is %q", got)
			}
		}},
		{Name: "Flow/NestedLoops", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"o EACH {count: 2, concurrency: 2}", "i EACH {count: 2}", "w WORK {effect: idempotent}", "d WORK"},
				[]string{"o.iteration -> i", "i.iteration -> w", "w -> i", "i.completed -> o", "o.completed -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			for _, id := range []engine.ActivationID{"o[0]/i[0]/w", "o[0]/i[1]/w", "o[1]/i[0]/w", "o[1]/i[1]/w"} {
				b.wantRuns("x", id, 1)
			}
		}},
		{Name: "Flow/LoopThatFails", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"l EACH {count: 5, concurrency: 2}", "w WORK {fail_item: 2, ms: 1}", "d WORK"},
				[]string{"l.iteration -> w", "w -> l", "l.completed -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.wantRuns("x", "l[4]/w", 0)
			b.wantRuns("x", "d", 0)
		}},
		{Name: "Flow/LongLoopIsSnapshot", Crashes: false, run: func(b *bench) {
			b.save(flow("f", []string{"l EACH {count: 20}", "w WAIT {seconds: 0.01}", "d WORK"}, []string{"l.iteration -> w", "w -> l", "l.completed -> d"}))
			b.start("x", "f")
			b.await("a snapshot", func() bool {
				_, ok, err := b.rig.Stores().Journal.LastSnapshot(b.ctx, b.who, "x")
				return err == nil && ok
			})
			b.crash()
			b.ends("x", engine.StatusSuccess)
		}},
	}
}

// keptCases look at what is kept of an execution: large values, lines, keys of starts, workspaces.
func keptCases() []Case {
	return []Case{
		{Name: "Flow/LargeValues", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {pad: 40000, effect: idempotent}", "b WORK", "c WORK {pad: 40000}"}, []string{"a -> b", "b -> c"}))
			b.start("x", "f", func(r *host.StartRequest) {
				r.Initial = json.RawMessage(`{"big":"` + strings.Repeat("x", 50_000) + `"}`)
			})
			b.ends("x", engine.StatusSuccess)
			large := 0
			for row, err := range b.rig.Source(b.rig.Stores()).Rows(b.ctx, b.who, "x", 0) {
				if err != nil {
					b.t.Fatal(err)
				}
				large += len(row.Large)
			}
			if large != 3 {
				b.t.Errorf("%d values are kept beside the journal, want 3", large)
			}
			view, start := b.view("x")
			value, _, err := b.journal("x").Value(b.ctx, start, view.Nodes["b"].Outputs[0].Ref)
			if err != nil || string(value) != `{"b":40001}` {
				b.t.Errorf("b made %s of it, %v", value, err)
			}
		}},
		{Name: "Flow/SharedFields", Crashes: true, run: (*bench).sharesFields},
		{Name: "Flow/Lines", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {lines: 250}"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			page, err := b.rig.Stores().Logs.Lines(b.ctx, b.who, store.LogQuery{Execution: "x", Limit: 1000})
			// A disk that is full takes outcomes, not every line.
			if err != nil || len(page.Lines) < 50 || len(b.fate.Blows)+len(b.fate.Beside) == 0 && len(page.Lines) != 250 {
				b.t.Errorf("%d lines, %v", len(page.Lines), err)
			}
		}},
		{Name: "Flow/IdempotentStart", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK"}, nil))
			keyed := func(id, hash string) (started host.Started, err error) {
				r, err := b.request("f")
				if err != nil {
					return started, err
				}
				r.ID, r.Key, r.KeyHash = id, "key", hash
				err = b.survive(func(again bool) (err error) {
					if started, err = b.host.Start(b.ctx, b.who, r); again && isConflict(err) {
						r.ID += "again" // clients do not choose ids, so a repetition comes with another
						started, err = b.host.Start(b.ctx, b.who, r)
					}
					return err
				})
				return started, err
			}
			first, err := keyed("x", "h")
			if err != nil || first.Repeated && b.deaths() == 0 {
				b.t.Errorf("the first start answers %+v, %v", first, err)
			}
			if s, err := keyed("y", "h"); err != nil || s.Execution != first.Execution || !s.Repeated {
				b.t.Errorf("the repetition answers %+v, %v", s, err)
			}
			if _, err := keyed("z", "other"); !isConflict(err) {
				b.t.Errorf("another request under the same key: %v", err)
			}
			b.ends(first.Execution, engine.StatusSuccess)
			if n := len(b.all()); n != 1 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "Flow/SameIdInTwoWorkspaces", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WAIT {signal: go}", "b WORK"}, []string{"a -> b"}))
			for _, w := range []string{"one", "two"} {
				b.who = principal(w)
				b.start("x", "f")
			}
			for _, w := range []string{"two", "one"} {
				b.who = principal(w)
				b.signal("x", "a", "go", w)
				b.ends("x", engine.StatusSuccess)
			}
			if _, err := b.rig.Stores().Executions.Get(b.ctx, identity.System("three"), "x"); err == nil {
				b.t.Error("a third workspace sees an execution")
			}
		}},
	}
}

// loop runs a loop to its end and looks at its results.
func (b *bench) loop(config string, count int, failed int) {
	b.t.Helper()
	item := "{effect: idempotent}"
	if failed > 0 {
		item = "{effect: idempotent, fail_item: 2}"
	}
	b.save(flow("f", []string{"t WORK", "l EACH {" + config + "}", "w WORK " + item, "v BRIEF", "d WORK"},
		[]string{"t -> l", "l.iteration -> w", "w -> v", "v -> l", "l.completed -> d"}))
	b.start("x", "f")
	b.ends("x", engine.StatusSuccess)
	for i := range count {
		b.wantRuns("x", engine.ActivationID(fmt.Sprintf("l[%d]/w", i)), 1)
	}
	view, start := b.view("x")
	value, _, err := b.journal("x").Value(b.ctx, start, view.Nodes["l"].Outputs[0].Ref)
	if err != nil {
		b.t.Fatal(err)
	}
	var out struct {
		Results   []map[string]int
		Succeeded int
		Failed    int
	}
	if err := json.Unmarshal(value, &out); err != nil || len(out.Results) != count || out.Succeeded != count-failed ||
		out.Failed != failed {
		b.t.Errorf("the loop put out %s, %v", value, err)
	}
	for i, r := range out.Results {
		if want := 2 + 4*i; r["v"] != want && !(failed > 0 && i == 2 && r == nil) {
			b.t.Errorf("iteration %d gave %v, want %d", i, r, want)
		}
	}
}

// sharesFields runs a loop whose body hands large fields on, once shared and once copied. The results are the same, and what is shared is
// kept once.
func (b *bench) sharesFields() {
	shared, sharedNames := b.handsOn("true")
	copied, copiedNames := b.handsOn("false")
	if shared != copied {
		b.t.Errorf("what is shared comes to %s, what is not to %s", shared, copied)
	}
	// what it begins with, the two outputs that every execution has, and the two fields; else each of eight handed on would be one more
	if sharedNames > 5 || copiedNames < 9 {
		b.t.Errorf("%d values are kept for what is shared, %d for what is not", sharedNames, copiedNames)
	}
}

// handsOn runs the loop of sharesFields and returns what it has put out, and how many large values its journal names.
func (b *bench) handsOn(share string) (made string, names int) {
	id := "x" + share
	b.save(flow("f"+share, []string{"t MANUAL", "l EACH {count: 4, whole: true}", "h HAND {share: " + share + "}", "k HAND {share: " + share + "}", "w WORK {effect: idempotent}", "d WORK"},
		[]string{"t -> l", "l.iteration -> h", "h -> k", "k -> w", "w -> l", "l.completed -> d"}))
	b.start(id, "f"+share, func(r *host.StartRequest) {
		r.Initial = json.RawMessage(`{"first":1,"big":"` + strings.Repeat("x", 50_000) + `","n":{"list":["` + strings.Repeat("y", 40_000) + `"]}}`)
	})
	b.ends(id, engine.StatusSuccess)
	fold, err := b.journal(id).Fold(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	outputs, err := fold.Outputs()
	if err != nil {
		b.t.Fatal(err)
	}
	view, start := b.view(id)
	value, _, err := b.journal(id).Value(b.ctx, start, view.Nodes["w"].Outputs[0].Ref)
	if err != nil {
		b.t.Fatal(err)
	}
	hashes := map[string]bool{}
	b.namedBy(id, hashes)
	return string(outputs["d"]) + string(value), len(hashes)
}
