package engine

import (
	"cmp"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/workflow"
)

// The snapshot is the state's one canonical encoding: two states that a host could tell apart differ in it, and the
// same journal always gives the same bytes. What follows from the rest is not in it.
type (
	stateJSON struct {
		Created  ExecutionCreated `json:"created"`
		Seq      uint64           `json:"seq"`
		Ord      uint64           `json:"ord"`
		Started  bool             `json:"started,omitempty"`
		Paused   bool             `json:"paused,omitempty"`
		Final    Status           `json:"final,omitempty"`
		Limit    TimerID          `json:"limit,omitempty"`
		Failures []failure        `json:"failures,omitempty"`
		Early    []SignalReceived `json:"early,omitempty"`
		Deferred []TimerID        `json:"deferred,omitempty"`
		Timers   []timerJSON      `json:"timers,omitempty"`
		Again    []again          `json:"again,omitempty"`
		Root     *scopeJSON       `json:"root"`
	}

	timerJSON struct {
		ID         TimerID      `json:"id"`
		Purpose    TimerPurpose `json:"purpose"`
		Activation ActivationID `json:"activation,omitempty"`
		Until      int64        `json:"until"`
	}

	scopeJSON struct {
		Index       int64           `json:"index"`
		Program     json.RawMessage `json:"program"`
		Activations []actJSON       `json:"activations,omitempty"`
		Timers      []namedTimer    `json:"timers,omitempty"`
		Result      json.RawMessage `json:"result,omitempty"`
		Values      []Ref           `json:"values,omitempty"`
		Torn        bool            `json:"torn,omitempty"`
		Ending      *ending         `json:"ending,omitempty"`
	}

	namedTimer struct {
		Name  string  `json:"name"`
		Timer TimerID `json:"timer"`
	}

	actJSON struct {
		Name       string       `json:"name"`
		Node       int          `json:"node"`
		Step       *Step        `json:"step,omitempty"`
		Ord        uint64       `json:"ord"`
		Phase      phase        `json:"phase"`
		Generation uint32       `json:"generation,omitempty"`
		InnerGen   uint32       `json:"inner_generation,omitempty"`
		Attempt    uint32       `json:"attempt"`
		Retries    uint32       `json:"retries,omitempty"`
		Recoveries uint32       `json:"recoveries,omitempty"`
		Blamed     uint32       `json:"blamed,omitempty"`
		Spawned    uint32       `json:"spawned,omitempty"`
		Started    bool         `json:"started,omitempty"`
		Inquires   bool         `json:"inquires,omitempty"`
		Effected   bool         `json:"effected,omitempty"`
		Opened     bool         `json:"opened,omitempty"`
		Canceling  bool         `json:"canceling,omitempty"`
		Unknown    bool         `json:"unknown,omitempty"`
		Again      bool         `json:"again,omitempty"`
		Causes     []AgainCause `json:"causes,omitempty"`
		TimedOut   bool         `json:"timed_out,omitempty"`
		AsOf       uint64       `json:"as_of"`
		Cause      Cause        `json:"cause"`
		Inputs     []Input      `json:"inputs,omitempty"`
		Input      Ref          `json:"input,omitempty"`
		Timer      TimerID      `json:"timer,omitempty"`
		Wait       *waitJSON    `json:"wait,omitempty"`
		Frame      *frameJSON   `json:"frame,omitempty"`
		Error      *fault.Error `json:"error,omitempty"`
	}

	waitJSON struct {
		Ord      uint64    `json:"ord"`
		Timer    TimerID   `json:"timer,omitempty"`
		Signal   string    `json:"signal,omitempty"`
		Ask      AskID     `json:"ask,omitempty"`
		Question *Question `json:"question,omitempty"`
		Unknown  bool      `json:"unknown,omitempty"`
		Why      Doubt     `json:"why,omitzero"`
		Child    *Child    `json:"child,omitempty"`
		ChildID  string    `json:"child_id,omitempty"`
		Memo     Ref       `json:"memo,omitempty"`
		Unsent   bool      `json:"unsent,omitempty"`
		Asks     bool      `json:"asks,omitempty"`
	}

	frameJSON struct {
		Program     string          `json:"program,omitempty"`
		Config      json.RawMessage `json:"config,omitempty"`
		Count       int64           `json:"count"`
		Concurrency int64           `json:"concurrency"`
		KeepGoing   bool            `json:"keep_going,omitempty"`
		Turns       bool            `json:"turns,omitempty"`
		Entry       []Verdict       `json:"entry,omitempty"`
		State       Ref             `json:"state,omitempty"`
		Deadline    TimerID         `json:"deadline,omitempty"`
		Next        int64           `json:"next"`
		Succeeded   int64           `json:"succeeded,omitempty"`
		Failed      int64           `json:"failed,omitempty"`
		Stopped     bool            `json:"stopped,omitempty"`
		Turning     bool            `json:"turning,omitempty"`
		TurnOnce    bool            `json:"turn_once,omitempty"`
		Closing     bool            `json:"closing,omitempty"`
		Ending      *ending         `json:"ending,omitempty"`
		Result      json.RawMessage `json:"result,omitempty"`
		Values      []Ref           `json:"values,omitempty"`
		Iterations  []*scopeJSON    `json:"iterations,omitempty"`
	}
)

// Snapshot returns the state in its canonical encoding.
func (s *State) Snapshot() ([]byte, error) {
	if s.root == nil {
		return nil, fault.New(fault.Conflict, "the state is empty; there is nothing to take a snapshot of")
	}
	snap := stateJSON{
		Created: s.created, Seq: s.seq, Ord: s.ord, Started: s.started, Paused: s.paused, Final: s.final, Limit: s.limit,
		Failures: s.failures, Early: s.early, Deferred: s.deferred, Again: s.again,
	}
	for id, t := range s.timers { // order does not matter: sorted below
		snap.Timers = append(snap.Timers, timerJSON{id, t.purpose, t.activation, t.until})
	}
	slices.SortFunc(snap.Timers, func(a, b timerJSON) int { return cmp.Compare(a.ID, b.ID) })
	root, err := s.root.snapshot()
	if err != nil {
		return nil, err
	}
	snap.Root = root
	return json.Marshal(snap)
}

func (sc *Scope) snapshot() (*scopeJSON, error) {
	program, err := sc.program.Snapshot()
	if err != nil {
		return nil, fault.Newf(fault.Internal, "snapshot of scope %q: %w", sc.path, err)
	}
	snap := &scopeJSON{Index: sc.index, Program: program, Result: sc.result, Values: sc.values, Torn: sc.torn, Ending: sc.ending}
	for _, name := range sortedKeys(sc.timers) {
		snap.Timers = append(snap.Timers, namedTimer{name, sc.timers[name]})
	}
	for _, a := range sc.sorted() {
		act, err := a.snapshot()
		if err != nil {
			return nil, err
		}
		snap.Activations = append(snap.Activations, act)
	}
	return snap, nil
}

func (a *activation) snapshot() (actJSON, error) {
	snap := actJSON{
		Name: a.name, Node: a.node, Step: a.step, Ord: a.ord, Phase: a.phase, Generation: a.gen, InnerGen: a.innerGen, Attempt: a.attempt,
		Retries: a.retries, Recoveries: a.recoveries, Blamed: a.blamed, Spawned: a.spawned, Started: a.started, Inquires: a.inquires,
		Effected: a.effected, Opened: a.opened, Canceling: a.canceling, Unknown: a.unknown, Again: a.again, Causes: a.causes,
		TimedOut: a.timedOut, AsOf: a.asOf, Cause: a.cause, Inputs: a.inputs, Input: a.input, Timer: a.timer, Error: a.err,
	}
	if w := a.wait; w != nil {
		snap.Wait = &waitJSON{w.ord, w.timer, w.signal, w.ask, w.question, w.unknown, w.why, w.child, w.childID, w.memo, w.unsent, w.asks}
	}
	f := a.frame
	if f == nil {
		return snap, nil
	}
	snap.Frame = &frameJSON{
		Program: f.program, Config: f.config, Count: f.count, Concurrency: f.concurrency, KeepGoing: f.keepGoing,
		Turns: f.turns, Entry: f.entry, State: f.state, Deadline: f.deadline, Next: f.next, Succeeded: f.succeeded,
		Failed: f.failed, Stopped: f.stopped, Turning: f.turning, TurnOnce: f.turnOnce, Closing: f.closing,
		Ending: f.ending, Result: f.result, Values: f.values,
	}
	for _, sc := range f.sorted() {
		inner, err := sc.snapshot()
		if err != nil {
			return snap, err
		}
		snap.Frame.Iterations = append(snap.Frame.Iterations, inner)
	}
	return snap, nil
}

// Restore makes a state from a snapshot. Graph and programs must be those it was taken with.
func Restore(graph *workflow.Graph, programs Programs, data []byte) (*State, error) {
	var snap stateJSON
	if err := json.Unmarshal(data, &snap); err != nil {
		return nil, fault.Newf(fault.Invalid, "snapshot: %w", err)
	}
	s := New(graph, programs)
	switch {
	case snap.Root == nil:
		return nil, fault.New(fault.Invalid, "snapshot: it has no root")
	case snap.Created.Revision != s.graph.Hash:
		return nil, fault.Newf(fault.Invalid, "snapshot: it is of revision %q, the graph is %q; load the pinned revision", snap.Created.Revision, s.graph.Hash)
	}
	if err := checkSemantics(snap.Created.Semantics); err != nil {
		return nil, err
	}
	s.created, s.seq, s.ord = snap.Created, snap.Seq, snap.Ord
	s.started, s.paused, s.final, s.limit = snap.Started, snap.Paused, snap.Final, snap.Limit
	s.failures, s.early, s.deferred, s.again = snap.Failures, snap.Early, snap.Deferred, snap.Again
	for _, t := range snap.Timers {
		s.timers[t.ID] = timer{t.Purpose, t.Activation, t.Until}
	}
	root, err := s.restoreScope(snap.Root, nil, s.created.Program, Setup{Graph: s.graph, Config: s.created.Config}, 0)
	if err != nil {
		return nil, err
	}
	s.root = root
	waiting := s.sorted(func(a *activation) bool { return a.wait != nil })
	slices.SortFunc(waiting, func(a, b *activation) int { return cmp.Compare(a.wait.ord, b.wait.ord) })
	for _, a := range waiting {
		s.register(a)
	}
	return s, nil
}

// restoreDepth bounds the nesting of a snapshot, which comes from disk.
const restoreDepth = 1000

func (s *State) restoreScope(snap *scopeJSON, owner *activation, name string, setup Setup, depth int) (*Scope, error) {
	if depth > restoreDepth {
		return nil, fault.New(fault.Invalid, "snapshot: scopes are nested too deep")
	}
	sc := &Scope{st: s, owner: owner, index: snap.Index, result: snap.Result, values: snap.Values, torn: snap.Torn, ending: snap.Ending,
		acts: make(map[string]*activation, len(snap.Activations))}
	if owner != nil {
		sc.path = iterationPath(owner.id, snap.Index)
	}
	program, err := s.restoreProgram(name, setup, snap.Program)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "snapshot: scope %q: %w", sc.path, err)
	}
	sc.program = program
	s.scopes[sc.path] = sc
	for _, t := range snap.Timers {
		if sc.timers == nil {
			sc.timers = map[string]TimerID{}
		}
		sc.timers[t.Name] = t.Timer
	}
	for i := range snap.Activations {
		if err := s.restoreActivation(sc, &snap.Activations[i], depth); err != nil {
			return nil, err
		}
	}
	return sc, nil
}

func (s *State) restoreProgram(name string, setup Setup, data json.RawMessage) (Program, error) {
	if name == "" {
		return restoreGraphProgram(setup, data)
	}
	switch name {
	case ProgramToolLoop:
		return restoreToolLoop(setup, data)
	case ProgramFilling:
		return restoreFilling(data)
	}
	factory, ok := s.programs[name]
	if !ok {
		return nil, fault.Newf(fault.Invalid, "program %q is not registered with this engine", name)
	}
	return factory.Restore(setup, data)
}

func (s *State) restoreActivation(sc *Scope, snap *actJSON, depth int) error {
	if snap.Node >= len(s.graph.Nodes) || (snap.Node < 0 && snap.Step == nil) {
		return fault.Newf(fault.Invalid, "snapshot: activation %q in scope %q names no node", snap.Name, sc.path)
	}
	a := &activation{
		id: joinID(sc.path, snap.Name), scope: sc, name: snap.Name, node: snap.Node, step: snap.Step, ord: snap.Ord,
		gen: snap.Generation, innerGen: snap.InnerGen, attempt: snap.Attempt, retries: snap.Retries, recoveries: snap.Recoveries,
		blamed: snap.Blamed, spawned: snap.Spawned, started: snap.Started, inquires: snap.Inquires, effected: snap.Effected,
		opened: snap.Opened, canceling: snap.Canceling, unknown: snap.Unknown, again: snap.Again, causes: snap.Causes,
		timedOut: snap.TimedOut, asOf: snap.AsOf, cause: snap.Cause, inputs: snap.Inputs, input: snap.Input, timer: snap.Timer,
		err: snap.Error,
	}
	if w := snap.Wait; w != nil {
		a.wait = &wait{w.Ord, w.Timer, w.Signal, w.Ask, w.Question, w.Unknown, w.Why, w.Child, w.ChildID, w.Memo, w.Unsent, false}
		s.childAsks(a.wait, w.Asks)
	}
	sc.acts[a.name] = a
	a.phase = snap.Phase
	s.count(a, 1)
	if snap.Frame == nil {
		return nil
	}
	f := snap.Frame
	a.frame = &frame{
		program: f.Program, config: f.Config, count: f.Count, concurrency: f.Concurrency, keepGoing: f.KeepGoing,
		turns: f.Turns, entry: f.Entry, state: f.State, deadline: f.Deadline, next: f.Next, succeeded: f.Succeeded,
		failed: f.Failed, stopped: f.Stopped, turning: f.Turning, turnOnce: f.TurnOnce, closing: f.Closing,
		ending: f.Ending, result: f.Result, values: f.Values, iterations: make(map[int64]*Scope, len(f.Iterations)),
	}
	setup := Setup{Graph: s.graph, Config: f.Config}
	if a.node >= 0 {
		setup.Body = s.graph.Nodes[a.node].Opens
	}
	for _, inner := range f.Iterations {
		it, err := s.restoreScope(inner, a, f.Program, setup, depth+1)
		if err != nil {
			return err
		}
		a.frame.iterations[it.index] = it
	}
	return nil
}
