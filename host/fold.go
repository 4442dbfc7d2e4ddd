package host

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
	"tandem/workflow"
)

// Revision is what a fold has to know about the workflow that is executed.
type Revision interface {
	// Syncs returns the names that a node's output_params list.
	Syncs(node int) []string
	// Declares returns the names of a node's outputs as its template declares them.
	Declares(node int) []string
	// Iterations prepares the iterations of a scope. Run is the run that opened the scope, values what it refers to; the
	// callee may use the layers during the call. It is called once for every scope that is open.
	Iterations(run engine.RunNode, values *Inputs, data Data) (Opened, error)
	// Inspect returns the input that a run gets, and a list of where its values came from.
	Inspect(run engine.RunNode, values *Inputs, data Data) (input, origins json.RawMessage, err error)
	// Sent returns what a run sends, as people may see it: without secrets, and bounded.
	Sent(run engine.RunNode, values *Inputs, data Data) (json.RawMessage, error)
}

// Iterate returns what iteration index of a scope gets, given the scope's state: the payload of the entry key and the
// variables its body can read.
type Iterate func(state json.RawMessage, index int64) (entry Entry, vars map[string]json.RawMessage, err error)

// Opened is a scope that is open, prepared once for all of its iterations.
type Opened struct {
	Iterate Iterate
	// Apart is what its body can read by name but its iterations do not get as input.
	Apart []dataflow.Apart
	// Prepared belongs to the runtime, which finds it in the [Data] of the scope's turns; these do not get the values of the
	// scope's input again. Nil: they do.
	Prepared any
}

// Data is what a run reads from its execution.
type Data struct {
	Execution string
	Start     Start
	// Now is when the run was decided: the clock of a pure node.
	Now    time.Time
	Layers *dataflow.Layers
	// Edits are laid over the input of the run, and EditsOf over the values that its connections bring.
	Edits   []dataflow.Edit
	EditsOf map[engine.Ref][]dataflow.Edit
	// Lock is what the owner writes the layers under; a run reads them under its read lock.
	Lock *sync.RWMutex
	View dataflow.View
	// Apart is what the loops around the run do not hand on, the inner ones first; Handed says that one hands its input to the run.
	Apart  []dataflow.Apart
	Handed bool
	// Prepared is that of the scope whose turn it is.
	Prepared any
	// Entry are the fields that the only connection of the run brings: the input of the iteration that it begins, or a value with large
	// fields kept apart; for a trigger the input of the execution, if large fields are kept apart; nil for any other run.
	Entry []payload.Member
	// Joined is for a run with several connections: the fields of those values that have large fields kept apart, by reference.
	Joined map[engine.Ref][]payload.Member
}

// Fold is an execution in memory: the engine's state, the data layers, and what is kept of open scopes, all derived from the rows of its
// journal. It belongs to the owner of the execution; only jobs read it at the same time, through the lock they get.
type Fold struct {
	graph    *workflow.Graph
	revision Revision
	load     Loader
	id       string
	start    Start

	state *engine.State
	view  *View
	// showing is a row that the view is being brought to.
	showing sync.WaitGroup
	layers  *dataflow.Layers
	lock    *sync.RWMutex
	values  *values
	shared  shared
	// turn is the row that was begun last. It may not be in the journal yet, so its values are looked for in it first.
	turn *Turn
	room Turn // its room

	// runs is the last RunNode of every activation that runs or has a scope open; since when it runs.
	runs map[engine.ActivationID]openRun
	// frames are the scopes that are open, by the activation that opened them.
	frames map[engine.ActivationID]*frame
	// overlays are the iterations whose data overlay is open, by path.
	overlays map[string]bool
	// traced, unless nil, is called with each change of the data.
	traced func(Traced)
}

// openRun is a run that was requested, and since when. The command is a RunNode as the engine has made it: those are large, and one
// that is in an interface already need not be copied.
type openRun struct {
	wanted engine.Command
	since  int64
}

// command is what is to be run; empty for a run that is not open.
func (r openRun) command() engine.RunNode {
	run, _ := r.wanted.(engine.RunNode)
	return run
}

// Loader reads what a fold no longer has in memory: a row of the journal, a large value.
type Loader struct {
	Row  func(execution string, seq uint64) (Row, error)
	Blob func(Blob) (json.RawMessage, error)
}

// NewFold returns the fold of an empty journal.
func NewFold(graph *workflow.Graph, revision Revision, programs engine.Programs, load Loader) *Fold {
	return &Fold{
		graph: graph, revision: revision, load: load, state: engine.New(graph, programs), view: NewView(graph), lock: &sync.RWMutex{},
		values: newValues(), runs: map[engine.ActivationID]openRun{}, frames: map[engine.ActivationID]*frame{},
		overlays: map[string]bool{},
	}
}

// Reload changes where the fold reads what it no longer has in memory.
func (f *Fold) Reload(load Loader) { f.load = load }

// State is the engine's state; callers must not apply events to it.
func (f *Fold) State() *engine.State { return f.state }

// Context returns the data layers as an activation in a scope sees them now.
func (f *Fold) Context(scope string) (dataflow.Context, error) {
	return f.layers.Context(dataflow.View{Scope: scope, AsOf: f.state.Seq()})
}

// Outputs returns the execution's outputs by node id: of the nodes its start names, else of the last ones at the top
// level, as far as they have succeeded.
func (f *Fold) Outputs() (map[string]json.RawMessage, error) {
	c, err := f.Context("")
	if err != nil {
		return nil, err
	}
	names := f.start.Outputs
	if len(names) == 0 {
		for _, n := range f.graph.Bodies[0].Last {
			names = append(names, f.graph.Nodes[n].ID)
		}
	}
	outputs := map[string]json.RawMessage{}
	for _, id := range names {
		if c.StepResults[id].IsSuccess {
			outputs[id] = c.StepResults[id].Output
		}
	}
	return outputs, nil
}

// Apply folds one row that is in the journal.
func (f *Fold) Apply(row Row) ([]engine.Command, error) {
	t := f.Begin(row.Time)
	if t.row.Seq != row.Seq {
		return nil, fault.Newf(fault.Unreadable, "row %d follows row %d; the journal has a gap", row.Seq, f.state.Seq())
	}
	switch {
	case row.Unreadable != nil:
		return nil, Unreadable(row.Unreadable, "the row cannot be read: %w")
	case row.Closed:
		return nil, fault.New(fault.Unreadable, "the execution was ended because its journal could not be read; start a new one")
	}
	t.row.Values, t.row.Large, t.row.Beside, t.row.Told, t.read = row.Values, row.Large, row.Beside, row.Told, true
	if row.Seq == 1 {
		f.id = executionOf(row)
	}
	f.values.addRow(f.level(&row), &row)
	var all []engine.Command
	for _, fact := range row.Facts {
		commands, err := t.Add(fact)
		if err != nil {
			return nil, Unreadable(err, "%w")
		}
		all = append(all, commands...)
	}
	f.view.Apply(&t.row)
	return all, nil
}

// Turn is a row in the making: facts are added to it one by one, and it is appended to the journal before anything is
// done about the commands.
type Turn struct {
	fold   *Fold
	row    Row
	before engine.Status
	// read says that the row comes from the journal.
	read bool
	// vouched is how many of its values have been checked.
	vouched int
	// started is what the execution is started with, if it is known without reading the row.
	started *Start
}

// Begin starts the next row. The one before must not be used any more.
func (f *Fold) Begin(now int64) *Turn {
	f.showing.Wait()
	f.room = Turn{fold: f, row: Row{Seq: f.state.Seq() + 1, Time: now}, before: f.state.Status()}
	f.turn = &f.room
	return f.turn
}

// Expect makes room for so many facts, each of which has a value.
func (t *Turn) Expect(facts int) {
	if facts > manyAtOnce {
		t.row.Facts, t.row.Values, t.row.Told = make([]engine.Fact, 0, facts), make([]json.RawMessage, 0, facts), make([]Told, 0, facts)
	}
}

// Row is the row as it stands.
func (t *Turn) Row() *Row { return &t.row }

// Put adds a value to the row and returns its reference.
func (t *Turn) Put(value json.RawMessage) engine.Ref { return t.PutBeside(value) }

// PutBeside is Put for a value that has large fields in common with others. They are not in value; the row names them.
func (t *Turn) PutBeside(value json.RawMessage, beside ...payload.Part) engine.Ref {
	n := len(t.row.Values)
	t.row.Values = append(t.row.Values, value)
	for _, p := range beside {
		if t.row.Beside == nil {
			t.row.Beside = map[int][]Beside{}
		}
		t.row.Beside[n] = append(t.row.Beside[n], Beside{At: p.At, Key: p.Key, value: p.Value})
	}
	ref := Place{t.fold.start.Level(), t.row.Seq, n}.Ref()
	t.fold.values.putValue(ref, value, beside...)
	return ref
}

// Add applies a fact. One that the engine refuses is not part of the row.
func (t *Turn) Add(fact engine.Fact) ([]engine.Command, error) {
	f := t.fold
	commands, err := f.state.Apply(engine.Event{Seq: t.row.Seq, Time: t.row.Time, Fact: fact})
	if err != nil {
		return nil, err
	}
	t.row.Facts = append(t.row.Facts, fact)
	f.lock.Lock()
	defer f.lock.Unlock()
	if err := f.follow(t.row.Seq, t.row.Time, fact, commands); err != nil {
		return nil, Unreadable(err, "row %d: %w", t.row.Seq) // the engine has accepted the fact, so what it refers to is wrong
	}
	return slices.Clone(commands), nil
}

// follow brings layers and frames up to date with the engine.
func (f *Fold) follow(seq uint64, now int64, fact engine.Fact, commands []engine.Command) error {
	switch fact := fact.(type) {
	case engine.ExecutionCreated:
		return f.created(fact)
	case engine.ExecutionForked:
		if err := f.forked(fact); err != nil {
			return err
		}
	default:
		f.start.request(RequestedBy(fact))
	}
	if err := f.record(seq, fact, commands); err != nil {
		return err
	}
	if opened, ok := fact.(engine.ScopeOpened); ok {
		fr := newFrame(now, opened.Discard, opened.Program != "")
		fr.level = f.start.Level()
		f.frames[opened.Activation] = fr
	}
	for _, c := range commands {
		if err := f.recordEnd(seq, fact, c); err != nil {
			return err
		}
		if err := f.command(seq, now, c); err != nil {
			return err
		}
	}
	return nil
}

// recordEnd writes a failure that the engine decided (a timeout, an interruption, an unknown outcome) into the layers.
func (f *Fold) recordEnd(seq uint64, fact engine.Fact, c engine.Command) error {
	end, ok := c.(engine.EndNode)
	if !ok || end.Status != engine.NodeFailure || end.Error == nil {
		return nil
	}
	switch fact := fact.(type) { // these have been recorded with their outputs
	case engine.NodeFailed:
		if fact.Activation == end.Activation {
			return nil
		}
	case engine.NodeCompleted:
		if fact.Activation == end.Activation {
			return nil
		}
	}
	if run, ran := f.runs[end.Activation]; !ran || (run.command().Scope != "" && !f.overlays[run.command().Scope]) {
		return nil
	}
	return f.recordFailure(seq, end.Activation, end.Error, nil)
}

func (f *Fold) created(c engine.ExecutionCreated) (err error) {
	var start Start
	if f.turn != nil && f.turn.started != nil {
		start = *f.turn.started
	} else {
		raw, err := f.Value(c.Input)
		if err != nil {
			return err
		}
		if start, err = readStart(c.Execution, raw); err == nil && start.Given {
			start, err = f.givenStart(start)
		}
		if err != nil {
			return err
		}
	}
	f.id, f.start = c.Execution, start
	f.layers, err = dataflow.New(dataflow.Start{
		ExecutionID: c.Execution, WorkflowID: start.WorkflowID, Initial: start.Initial, Trigger: start.Trigger, Kept: len(start.beside) > 0,
	})
	return err
}

// command records a command.
func (f *Fold) command(seq uint64, now int64, command engine.Command) error {
	switch c := command.(type) {
	case engine.RunNode:
		if run, open := f.runs[c.Activation]; open && run.command().Generation == c.Generation {
			now = run.since // the clock of an activation stands still, however often it is woken or tried
		}
		f.runs[c.Activation] = openRun{command, now}
		return f.openOverlay(c.Scope, seq)
	case engine.CloseScope:
		f.closeIteration(c)
		if c.Failed {
			f.forgetInside(c.Scope + "/")
		}
		if !f.overlays[c.Scope] {
			return nil // nothing ran in it
		}
		delete(f.overlays, c.Scope)
		return f.closeOverlay(c.Scope, seq)
	case engine.EndNode:
		f.noteFailure(c)
		if _, kept := f.state.Activation(c.Activation); !kept { // one that is kept can be retried, with its scope
			delete(f.runs, c.Activation)
			delete(f.frames, c.Activation)
		}
	}
	return nil
}

// forgetInside drops what is kept of activations in a scope that was cut off.
func (f *Fold) forgetInside(prefix string) {
	inside := func(id engine.ActivationID) bool { return strings.HasPrefix(string(id), prefix) }
	maps.DeleteFunc(f.runs, func(id engine.ActivationID, _ openRun) bool { return inside(id) })
	maps.DeleteFunc(f.frames, func(id engine.ActivationID, _ *frame) bool { return inside(id) })
}

// openOverlay opens the data overlays on the way to a scope.
func (f *Fold) openOverlay(path string, seq uint64) error {
	if path == "" || f.overlays[path] {
		return nil
	}
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		if err := f.openOverlay(path[:i], seq); err != nil {
			return err
		}
	}
	_, vars, err := f.iteration(path)
	if err != nil {
		return err
	}
	f.overlays[path] = true
	return f.layers.OpenScope(path, seq, vars)
}

// iteration is what an iteration gets, derived from its scope's state.
func (f *Fold) iteration(path string) (entry Entry, vars map[string]json.RawMessage, err error) {
	owner, index, ref, ok := f.state.ScopeState(path)
	if !ok {
		return Entry{}, nil, fault.Newf(fault.Internal, "the scope %q is not open", path)
	}
	fr := f.frames[owner]
	if fr == nil {
		return Entry{}, nil, fault.Newf(fault.Internal, "%q has opened no scope", owner)
	}
	if fr.program {
		return Entry{}, nil, nil
	}
	outer, _ := owner.Split()
	state, err := f.loopState(ref, outer)
	if err != nil {
		return Entry{}, nil, err
	}
	if err := f.prepare(owner, fr); err != nil {
		return Entry{}, nil, err
	}
	return fr.scope.Iterate(state, index)
}

// prepare prepares a scope for its iterations, once.
func (f *Fold) prepare(owner engine.ActivationID, fr *frame) error {
	if fr.scope.Iterate != nil {
		return nil
	}
	opened, ok := f.runs[owner]
	if !ok {
		return fault.Newf(fault.Internal, "the run with which %q opened its scope is not known", owner)
	}
	run := opened.command()
	run.Cause = engine.Cause{Kind: engine.CauseRun}
	values, err := f.Inputs(run)
	if err != nil {
		return err
	}
	data, err := f.Data(run)
	if err != nil {
		return err
	}
	data.Lock = &sync.RWMutex{} // the owner is at work, and may hold its own
	fr.scope, err = f.revision.Iterations(run, values, data)
	return err
}

// turns returns the scope whose turn a run is, prepared; nil for any other run.
func (f *Fold) turns(run engine.RunNode) (*frame, error) {
	fr := f.frames[run.Activation]
	if fr == nil || fr.program || run.Cause.Kind != engine.CauseTurn {
		return nil, nil
	}
	return fr, f.prepare(run.Activation, fr)
}

// apart is what the loops around a scope do not hand on, the inner ones first.
func (f *Fold) apart(scope string) ([]dataflow.Apart, error) {
	var list []dataflow.Apart
	for owner, ok := OwnerOf(scope); ok; owner, ok = OwnerOf(scope) {
		if fr := f.frames[owner]; fr != nil && !fr.program {
			if err := f.prepare(owner, fr); err != nil {
				return nil, err
			}
			list = append(list, fr.scope.Apart...)
		}
		scope, _ = owner.Split()
	}
	return list, nil
}

// Tool is the tool that a running activation belongs to, if it is a step that names one.
func (f *Fold) Tool(id engine.ActivationID) string {
	if step := f.runs[id].command().Step; step != nil {
		return step.Tool
	}
	return ""
}

// Execution is the execution's id, and what it was started with.
func (f *Fold) Execution() (id string, start Start) { return f.id, f.start }

// Data is what a run reads from the execution, as of the row that made the activation ready.
func (f *Fold) Data(run engine.RunNode) (Data, error) {
	edits, of, err := f.edits(run)
	if err != nil {
		return Data{}, err
	}
	data := Data{
		Execution: f.id, Start: f.start, Now: time.UnixMilli(f.runs[run.Activation].since).UTC(), Edits: edits, EditsOf: of,
		Layers: f.layers, Lock: f.lock, View: dataflow.View{Scope: run.Scope, AsOf: run.AsOf},
		Handed: slices.ContainsFunc(run.Inputs, func(in engine.Input) bool { return in.Edge >= 0 && f.graph.Edges[in.Edge].Entry }),
	}
	if data.Apart, err = f.apart(run.Scope); err != nil {
		return Data{}, err
	}
	if slices.ContainsFunc(run.Inputs, f.entersIteration) {
		entry, _, err := f.iteration(run.Scope)
		if err != nil {
			return Data{}, err
		}
		data.Entry = entry.Fields
	} else if data.Entry, err = f.handed(run); err != nil {
		return Data{}, err
	} else if len(edits)+len(of) == 0 && f.fires(run) {
		data.Entry = f.start.entry()
	}
	if data.Joined, err = f.joins(run); err != nil {
		return Data{}, err
	}
	scope, err := f.turns(run)
	if scope != nil {
		data.Prepared = scope.scope.Prepared
	}
	return data, err
}

// fires says whether a run is that of the trigger that the execution begins at.
func (f *Fold) fires(run engine.RunNode) bool {
	return run.Node >= 0 && len(run.Inputs) == 0 && run.Input == "" && run.Step == nil && run.Cause.Kind == engine.CauseRun &&
		slices.Contains(f.graph.Triggers, run.Node)
}

// Inputs returns every value that a run refers to. They are read in the owner's goroutine, so that a run needs only the layers of the fold.
// A connection that brings an iteration's own payload has no reference; it is found under [EntryRef], or, if it has fields, in [Data].
func (f *Fold) Inputs(run engine.RunNode) (*Inputs, error) {
	values := &Inputs{}
	var few [8]engine.Ref // which is enough for most
	refs := append(few[:0], run.Input, run.Cause.Ref, run.Cause.Memo, run.Cause.State)
	if run.Cause.Wake != nil {
		refs = append(refs, run.Cause.Wake.Ref)
	}
	inputs := run.Inputs
	if scope, err := f.turns(run); err != nil {
		return nil, err
	} else if scope != nil && scope.scope.Prepared != nil {
		inputs = nil // they are in what was prepared
	}
	for _, in := range inputs {
		refs = append(refs, in.Ref)
		if f.entersIteration(in) {
			entry, _, err := f.iteration(run.Scope)
			if err != nil {
				return nil, err
			}
			if entry.Fields != nil {
				entry.Value = noFields // they are in Data
			}
			values.set(EntryRef, entry.Value)
		}
	}
	if run.Step != nil {
		refs = append(refs, run.Step.Values...)
		if state, ok := f.scopeState(run.Scope); ok {
			value, err := f.Value(state)
			if err != nil {
				return nil, err
			}
			values.set(StateRef, value)
		}
	}
	if run.Cause.Closed != nil {
		refs = append(refs, run.Cause.Closed.Values...)
	}
	fields, err := f.handed(run)
	if err != nil {
		return nil, err
	}
	joined, err := f.joins(run)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		if fields != nil && ref == run.Inputs[0].Ref || joined[ref] != nil {
			values.set(ref, noFields) // they are in Data
			continue
		}
		value, err := f.Value(ref)
		if err != nil {
			return nil, err
		}
		values.set(ref, value)
	}
	if err := f.editInputs(run, values); err != nil {
		return nil, err
	}
	return values, nil
}

// scopeState is the reference of the state of a scope; the top level has none.
func (f *Fold) scopeState(path string) (engine.Ref, bool) {
	if path == "" {
		return "", false
	}
	_, _, ref, ok := f.state.ScopeState(path)
	return ref, ok && ref != ""
}

// EntryRef stands for the payload of the iteration that a run belongs to, StateRef for the state of the scope that a step of
// a program belongs to.
const (
	EntryRef engine.Ref = "entry"
	StateRef engine.Ref = "state"
)
