package hosttest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// bench runs a case: it starts processes, does what people and services do, and starts the next process when one has
// died. It belongs to the goroutine of the test; the world and the fuse are everybody's.
type bench struct {
	t     testing.TB
	ctx   context.Context
	rig   Rig
	fate  Fate
	world *world
	who   identity.Principal
	// manual cases decide about unknown outcomes themselves.
	manual bool
	// obliging people answer every question there is.
	obliging bool
	// loose cases leave something behind on purpose: executions that wait for ever.
	loose bool
	// damaged are executions whose journals cannot be read.
	damaged    map[string]bool
	maxRunning int
	maxTasks   int
	workers    int

	definitions map[string]*workflow.Definition
	graphs      map[string]*workflow.Graph
	// find finds revisions for readers.
	find func(context.Context, identity.Principal, string, string) (*node.Revision, error)

	// notes are what the hosts have in their register.
	notes notes
	// resting says that the next process runs nothing.
	resting bool

	number  int // of the process
	crashes int
	first   int // how many writes the first process made
	fuse    *Fuse
	host    Host
	changed chan struct{}
	// repeats says that runs may be repeated although no process has died: the connection to one was lost.
	repeats bool

	mu      sync.Mutex
	givenUp []string
	beside  []*Fuse // of processes beside the one of the bench
	joined  int     // how many of them there have been
}

func newBench(t testing.TB, rig Rig, fate Fate, maxRunning int) *bench {
	b := &bench{
		t: t, ctx: context.Background(), rig: rig, fate: fate, maxRunning: maxRunning, workers: 8, who: principal("one"),
		definitions: map[string]*workflow.Definition{}, graphs: map[string]*workflow.Graph{}, changed: make(chan struct{}, 1),
	}
	b.world = newWorld(b.notify)
	b.find = b.finder(&process{world: newWorld(func() {}), fuse: newFuse(store.Stores{}, Blow{}, 0, nil)})
	t.Cleanup(func() { // of a case that was ended by a failure
		if b.host != nil {
			b.killAll()
			b.host.Close()
		}
	})
	return b
}

func principal(workspace string) identity.Principal {
	return identity.Principal{Workspace: workspace, User: workspace, Roles: []identity.Role{identity.Admin}}
}

func (b *bench) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// open starts the next process.
func (b *bench) open() {
	b.t.Helper()
	for {
		var blow Blow
		if b.number < len(b.fate.Blows) {
			blow = b.fate.Blows[b.number]
		}
		latency := b.fate.Latency
		if latency != 0 {
			latency += uint64(b.number)
		}
		b.number++
		b.fuse = newFuse(b.rig.Stores(), blow, latency, b.world.appended)
		b.fuse.cleared = b.notify
		h, err := b.rig.Start(b.ctx, b.setup(&process{world: b.world, fuse: b.fuse}))
		if err == nil {
			b.host = h
			return
		}
		if !b.dead() {
			b.t.Fatalf("start of process %d: %v", b.number, err)
		}
		b.buried()
	}
}

func (b *bench) abandoned(f *Fuse) func(store.Ref, error) {
	return func(ref store.Ref, err error) {
		select {
		case <-f.blown:
			return
		default:
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.givenUp = append(b.givenUp, fmt.Sprintf("execution %q was given up: %v", ref.Execution, err))
		b.notify()
	}
}

func (b *bench) dead() bool {
	select {
	case <-b.fuse.blown:
		return true
	default:
		return false
	}
}

// buried notes the death of a process.
func (b *bench) buried() {
	if b.number == 1 {
		b.first = b.fuse.Writes()
	}
	b.crashes++
	if b.rig.Restart != nil {
		b.rig.Restart()
	}
}

// reopen goes on after a death.
func (b *bench) reopen() {
	b.t.Helper()
	b.host.Close()
	b.buried()
	b.open()
}

// damage writes a row into the journal of an execution that waits, as no host would write it, and wakes the execution.
func (b *bench) damage(id string) {
	b.t.Helper()
	if _, err := b.host.Act(b.ctx, b.who, host.Request{Execution: id, Action: host.ActionLook}); err != nil && !b.dead() {
		b.t.Fatal(err)
	}
	p, last := identity.System(b.who.Workspace), store.Row{}
	for row, err := range b.rig.Stores().Journal.Rows(b.ctx, p, id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		last = row
	}
	b.damaged = map[string]bool{id: true}
	if err := b.rig.Stores().Journal.Append(b.ctx, p, &store.Append{
		Execution: id, After: last.Seq, Time: last.Time, Body: []byte(`{"facts":[`),
		Change: &store.Change{Status: engine.StatusRunning, Started: last.Time},
	}); err != nil {
		b.t.Fatal(err)
	}
	for { // what the first look left in memory is let go in a moment; until then a look does not read the journal
		_, err := b.host.Act(b.ctx, b.who, host.Request{Execution: id, Action: host.ActionLook})
		if host.IsUnreadable(err) || b.dead() {
			return
		}
		if err != nil {
			b.t.Fatalf("it was woken with %v", err)
		}
		runtime.Gosched()
	}
}

// crash ends the process and starts the next.
func (b *bench) crash() {
	b.t.Helper()
	b.killAll()
	b.reopen()
}

// stop stops the process in order and starts the next. What runs gets a grace, in which something is done; stopped looks at how it
// left things. Both may be nil.
func (b *bench) stop(grace time.Duration, meanwhile, stopped func()) {
	b.t.Helper()
	over, cancel := context.WithCancel(b.ctx)
	cancel()
	b.host.Drain(over) // it has begun with that
	if meanwhile != nil {
		meanwhile()
	}
	ctx, cancel := context.WithTimeout(b.ctx, grace)
	defer cancel()
	b.host.Drain(ctx)
	b.host.Close()
	if stopped != nil {
		stopped()
	}
	if b.number == 1 {
		b.first = b.fuse.Writes()
	}
	b.fuse.Kill()
	if b.rig.Restart != nil {
		b.rig.Restart()
	}
	b.open()
}

// finder finds revisions with the kinds of a process.
func (b *bench) finder(p *process) func(context.Context, identity.Principal, string, string) (*node.Revision, error) {
	kinds := p.registry()
	var mu sync.Mutex
	ready := map[string]*node.Revision{}
	return func(_ context.Context, _ identity.Principal, id, _ string) (*node.Revision, error) {
		mu.Lock()
		defer mu.Unlock()
		if r := ready[id]; r != nil {
			return r, nil
		}
		def := b.definitions[id]
		if def == nil {
			return nil, fault.Newf(fault.NotFound, "workflow %q is not known", id)
		}
		r, err := node.Prepare(def, b.graphs[id], kinds, nil)
		ready[id] = r
		return r, err
	}
}

func (b *bench) childOf(_ context.Context, _ identity.Principal, id, _ string) (host.StartRequest, error) {
	return b.request(id)
}

func (b *bench) request(id string) (host.StartRequest, error) {
	graph := b.graphs[id]
	if graph == nil {
		return host.StartRequest{}, fault.Newf(fault.NotFound, "workflow %q is not known", id)
	}
	r := host.StartRequest{WorkflowID: id, WorkflowName: id, Revision: 1, RevisionHash: graph.Hash, TriggerType: "MANUAL",
		Initial: json.RawMessage(`{"start":5}`)}
	if len(graph.Triggers) > 0 {
		r.Trigger = graph.Nodes[graph.Triggers[0]].ID
	}
	return r, nil
}

// save adds workflows, before they are used.
func (b *bench) save(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		source, problems := workflow.Parse([]byte(text), workflow.Options{Kinds: catalogue{}})
		if source == nil || workflow.HasErrors(problems) {
			b.t.Fatalf("parse %s: %v", text, problems)
		}
		def := source.Definition
		graph, problems := workflow.Compile(def, catalogue{})
		if graph == nil {
			b.t.Fatalf("compile %s: %v", text, problems)
		}
		b.definitions[def.Metadata.ID], b.graphs[def.Metadata.ID] = def, graph
	}
}

// flow writes a workflow: nodes as "id KIND {configurations}", connections as "a -> b" or "a.key -> b".
func flow(id string, nodes, connections []string) string {
	text := "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n"
	for _, n := range nodes {
		var name, kind string
		if _, err := fmt.Sscanf(n, "%s %s", &name, &kind); err != nil {
			panic(fmt.Sprintf("node %q: %v", n, err))
		}
		typ, subtype := "TEST", kind
		if kind == "MANUAL" {
			typ = "TRIGGER"
		}
		text += "  - {id: " + name + ", description: d, type: " + typ + ", subtype: " + subtype
		if config := n[len(name)+1+len(kind):]; config != "" {
			text += ", configurations: " + config
		}
		text += "}\n"
	}
	if len(connections) == 0 {
		return text
	}
	text += "connections:\n"
	for _, c := range connections {
		var from, to string
		if _, err := fmt.Sscanf(c, "%s -> %s", &from, &to); err != nil {
			panic(fmt.Sprintf("connection %q: %v", c, err))
		}
		key := ""
		for i, r := range from {
			if r == '.' {
				from, key = from[:i], ", output_key: "+from[i+1:]
				break
			}
		}
		text += "  - {from_node: " + from + ", to_node: " + to + key + "}\n"
	}
	return text
}

// survive does something as a client that tries again when the server was gone. Again says that it was tried before.
func (b *bench) survive(do func(again bool) error) error {
	b.t.Helper()
	again := false
	for {
		err := do(again)
		if b.dead() {
			b.reopen()
			if err == nil {
				return nil // it was answered, so it must not be lost
			}
			again = true
			continue
		}
		if !store.Waits(err) {
			return err
		}
		again = true
		b.pause(time.Second)
	}
}

// pause lets time pass.
func (b *bench) pause(d time.Duration) {
	clock := time.NewTimer(d)
	defer clock.Stop()
	select {
	case <-clock.C:
	case <-b.fuse.blown:
	}
}

// start starts an execution.
func (b *bench) start(id, flow string, change ...func(*host.StartRequest)) {
	b.t.Helper()
	if err := b.tryStart(id, flow, change...); err != nil {
		b.t.Fatalf("start of %q: %v", id, err)
	}
}

func (b *bench) tryStart(id, flow string, change ...func(*host.StartRequest)) error {
	b.t.Helper()
	r, err := b.request(flow)
	if err != nil {
		return err
	}
	r.ID = id
	for _, f := range change {
		f(&r)
	}
	return b.survive(func(again bool) error {
		started, err := b.host.Start(b.ctx, b.who, r)
		if again && fault.CodeOf(err) == fault.Conflict {
			return nil
		}
		if err == nil && started.Execution != id && !started.Repeated {
			b.t.Errorf("start of %q answers %+v", id, started)
		}
		return err
	})
}

// act does something to an execution and expects that it can be done.
func (b *bench) act(id string, action host.Action, change ...func(*host.Request)) engine.Status {
	b.t.Helper()
	status, err := b.tryAct(id, action, change...)
	if err != nil {
		b.t.Fatalf("%s of %q: %v", action, id, err)
	}
	return status
}

func (b *bench) tryAct(id string, action host.Action, change ...func(*host.Request)) (status engine.Status, err error) {
	b.t.Helper()
	r := host.Request{Execution: id, Action: action, By: "ann"}
	for _, f := range change {
		f(&r)
	}
	err = b.survive(func(again bool) error {
		var err error
		status, err = b.host.Act(b.ctx, b.who, r)
		if code := fault.CodeOf(err); again && (code == fault.Conflict || code == fault.NotFound) {
			return nil // it was done, and the answer was lost
		}
		return err
	})
	return status, err
}

func (b *bench) fork(r host.ForkRequest) {
	b.t.Helper()
	err := b.survive(func(again bool) error {
		_, err := b.host.Fork(b.ctx, b.who, r)
		if again && fault.CodeOf(err) == fault.Conflict {
			return nil
		}
		return err
	})
	if err != nil {
		b.t.Fatalf("fork of %q: %v", r.Source, err)
	}
}

// await waits until something holds, through as many processes as it takes.
func (b *bench) await(what string, holds func() bool) {
	b.t.Helper()
	limit := cmp.Or(b.rig.Patience, 3*time.Minute)
	clock := time.NewTimer(limit)
	defer clock.Stop()
	for {
		if b.dead() {
			b.reopen()
		}
		b.decide()
		if b.dead() {
			continue
		}
		if holds() {
			return
		}
		b.mu.Lock()
		gone := b.givenUp
		b.mu.Unlock()
		if len(gone) > 0 {
			b.dump()
			b.t.Fatalf("waiting for %s: %v", what, gone)
		}
		select {
		case <-b.changed:
		case <-b.fuse.blown:
		case <-clock.C:
			b.dump()
			b.t.Fatalf("waited %v in vain for %s (process %d, fate %+v)", limit, what, b.number, b.fate)
		}
	}
}

// decide answers questions about unknown outcomes truthfully, as an operator who has looked would do.
func (b *bench) decide() {
	b.t.Helper()
	if b.manual || b.deaths() == 0 && !b.obliging {
		return
	}
	who := b.who
	defer func() { b.who = who }()
	for _, e := range b.all() {
		b.who = principal(e.Workspace)
		if e.Status != engine.StatusWaitingForHuman && e.Status != engine.StatusRunning {
			continue
		}
		view, _ := b.view(e.ID)
		for ask, q := range view.Questions { // order does not matter: each has its own answer
			r := host.Request{Ask: ask, Outcome: engine.AskDone, Value: json.RawMessage(`{"n":3}`), Dedup: "decided " + string(ask)}
			switch {
			case q.Purpose == engine.PurposeOutcomeUnknown:
				r.Choice = engine.ChoiceNotDone
				if r.Value = b.world.truth(e.Workspace, e.ID, q.Activation); r.Value != nil {
					r.Choice = engine.ChoiceDone
				}
			case !b.obliging:
				continue
			}
			b.act(e.ID, host.ActionAnswer, func(to *host.Request) {
				to.Ask, to.Outcome, to.Choice, to.Value, to.Dedup = r.Ask, r.Outcome, r.Choice, r.Value, r.Dedup
			})
		}
	}
}

// all lists every execution of the bench's workspaces.
func (b *bench) all() (list []store.Execution) {
	b.t.Helper()
	for _, workspace := range []string{"one", "two"} {
		page, err := b.rig.Stores().Executions.List(b.ctx, identity.System(workspace),
			store.ExecutionQuery{Page: store.Page{Size: store.MaxPageSize}})
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, page.Executions...)
	}
	return list
}

func (b *bench) summary(id string) store.Execution {
	b.t.Helper()
	e, err := b.rig.Stores().Executions.Get(b.ctx, b.who, id)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		b.t.Fatal(err)
	}
	return e
}

// journal is that of an execution.
func (b *bench) journal(id string) host.Journal {
	b.t.Helper()
	e := b.summary(id)
	if e.ID == "" {
		b.t.Fatalf("execution %q is not there", id)
	}
	r, err := b.find(b.ctx, b.who, e.WorkflowID, e.RevisionHash)
	if err != nil {
		b.t.Fatal(err)
	}
	return host.Journal{Source: b.rig.Source(b.rig.Stores()), Principal: identity.System(e.Workspace), Execution: id, Graph: r.Graph,
		Revision: b.rig.Revision(r)}
}

func (b *bench) view(id string) (*host.View, host.Start) {
	b.t.Helper()
	view, start, err := b.journal(id).View(b.ctx)
	if err != nil {
		b.t.Fatalf("view of %q: %v", id, err)
	}
	return view, start
}

// ends waits for the end of an execution.
func (b *bench) ends(id string, want engine.Status) {
	b.t.Helper()
	b.reaches(id, want)
}

// reaches waits until an execution has a status.
func (b *bench) reaches(id string, want engine.Status) {
	b.t.Helper()
	b.await(fmt.Sprintf("%q to be %s", id, want), func() bool {
		e := b.summary(id)
		if e.Status.Final() && e.Status != want {
			b.dump()
			b.t.Fatalf("execution %q ended with %s (%s), not with %s", id, e.Status, e.Error, want)
		}
		return e.Status == want
	})
}

// node waits until what a view says of a node fits.
func (b *bench) node(id, name string, fits func(n *host.NodeView) bool) {
	b.t.Helper()
	b.await(fmt.Sprintf("node %q of %q", name, id), func() bool {
		if b.summary(id).ID == "" {
			return false
		}
		view, _ := b.view(id)
		n := view.Nodes[name]
		return n != nil && fits(n)
	})
}
