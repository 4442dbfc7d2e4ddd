package engine

import (
	"cmp"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// State is everything the engine knows about one execution: a fold of its journal. It has one owner at a time, who
// applies the journal's events to it in order; it does nothing by itself.
type State struct {
	graph    *workflow.Graph
	programs Programs

	created ExecutionCreated
	seq     uint64
	ord     uint64 // numbers activations, timers and waits in the order they came to be
	started bool
	paused  bool
	final   Status
	// limit is the timer of the execution's wall time, if it has one.
	limit    TimerID
	failures []failure
	early    []SignalReceived // signals that no activation waited for yet, oldest first
	deferred []TimerID        // timers that fired during a pause and act on resume
	again    []again          // questions that are asked again, in the order they were named

	root   *Scope
	scopes map[string]*Scope // every scope in the state, by path

	// What follows can be derived from the scopes and is kept for speed.
	timers   map[TimerID]timer
	asks     map[AskID]*ask
	keyed    map[string]AskID // the open questions that several activations may wait for, by their key
	children map[string]*activation
	waiters  map[signalKey][]*activation // oldest wait first
	active   int                         // activations that are ready or running
	asking   int                         // activations that wait for a person
	// asksBelow counts activations whose child waits for a person.
	asksBelow int

	// What follows lives during one Apply.
	now      int64
	out      []Command
	idle     []*Scope
	effected []*activation // to be decided about after a revival
}

type timer struct {
	purpose TimerPurpose
	// activation is the activation that the timer belongs to; for a join, that of the joining node.
	activation ActivationID
	until      int64
}

// ask is a question and the activations that wait for its answer.
type ask struct {
	question Question
	waiters  []*activation
}

type signalKey struct{ node, name string }

// failure is a failure that nothing handled.
type failure struct {
	Activation ActivationID `json:"activation,omitempty"`
	Error      *fault.Error `json:"error"`
}

// New returns the empty state of an execution of graph. Graph may be nil for an execution whose top level is run by
// another program.
func New(graph *workflow.Graph, programs Programs) *State {
	if graph == nil {
		graph = &workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}
	}
	return &State{
		graph: graph, programs: programs,
		scopes: map[string]*Scope{}, timers: map[TimerID]timer{}, asks: map[AskID]*ask{}, keyed: map[string]AskID{},
		children: map[string]*activation{}, waiters: map[signalKey][]*activation{},
	}
}

// Apply folds one event into the state and returns what is to be done about it. An event that cannot follow is refused
// with a *fault.Error (conflict, not_found, invalid) and changes nothing. The caller may use the commands until the
// next Apply.
func (s *State) Apply(e Event) ([]Command, error) {
	if e.Seq < s.seq {
		return nil, fault.Newf(fault.Conflict, "event %d comes after event %d; the journal is read in order", e.Seq, s.seq)
	}
	s.out = s.out[:0]
	before := s.seq
	s.seq, s.now = e.Seq, e.Time
	if err := s.apply(e.Fact); err != nil {
		s.seq = before
		return nil, err
	}
	s.dropUnwanted()
	s.settle()
	return s.out, nil
}

// apply folds a fact in, if it can follow: each kind of fact has its time in the life of an execution.
func (s *State) apply(fact Fact) error {
	switch f := fact.(type) {
	case ExecutionCreated:
		return s.create(f)
	case ExecutionForked:
		return s.fork(f)
	case nil:
		return fault.New(fault.Invalid, "the event holds no fact")
	}
	if s.root == nil {
		return fault.Newf(fault.Conflict, "%q is not how a journal begins; the first event is execution_created or execution_forked", fact.factName())
	}
	switch f := fact.(type) {
	case NodeRetried:
		return s.retryNode(f)
	case RequestRefused:
		return nil
	}
	if s.final != "" {
		if f, ok := fact.(NodeSkipped); ok {
			return s.skipNode(f)
		}
		return fault.Say(fault.Conflict, text.Of("the execution has ended with %s; fork it or start another", s.final))
	}
	switch fact.(type) {
	case ExecutionStarted:
		return s.start()
	case CancelRequested:
		return s.cancel()
	}
	if !s.started {
		return fault.Newf(fault.Conflict, "%q before the execution has started", fact.factName())
	}
	return s.applyRunning(fact)
}

// applyRunning folds a fact into an execution that has started and not ended.
func (s *State) applyRunning(fact Fact) error {
	switch f := fact.(type) {
	case NodeCompleted:
		return s.nodeCompleted(f)
	case NodeStarted:
		return s.nodeStarted(f)
	case NodeNotBegun:
		return s.nodeNotBegun(f)
	case NodeFailed:
		return s.nodeFailed(f)
	case NodeSuspended:
		return s.nodeSuspended(f)
	case AttemptTimedOut:
		return s.attemptTimedOut(f)
	case ScopeOpened:
		return s.scopeOpened(f)
	case ScopeAdvanced:
		return s.scopeAdvanced(f)
	case TimerFired:
		return s.timerFired(f)
	case AskAnswered:
		return s.askAnswered(f)
	case SignalReceived:
		return s.signalReceived(f)
	case ChildWaiting:
		s.childWaiting(f)
		return nil
	case ChildFinished:
		return s.childFinished(f)
	case ExecutionPaused:
		return s.pause()
	case ExecutionResumed:
		return s.resume()
	case ExecutionRecovered:
		return s.recover(f)
	case NodeSkipped:
		return s.skipNode(f)
	}
	return fault.Newf(fault.Invalid, "unknown fact %q", fact.factName())
}

// checkFirst checks what the first fact of a journal says, whichever of them it is.
func (s *State) checkFirst(execution string, semantics int) error {
	if s.root != nil {
		return fault.New(fault.Conflict, "the execution has been created already")
	}
	if err := checkSemantics(semantics); err != nil {
		return err
	}
	if execution == "" {
		return fault.New(fault.Invalid, "execution: the id is empty")
	}
	return nil
}

func (s *State) create(f ExecutionCreated) error {
	if err := s.checkFirst(f.Execution, f.Semantics); err != nil {
		return err
	}
	if f.Revision != s.graph.Hash {
		return fault.Newf(fault.Invalid, "revision: the execution is pinned to %q, the graph is %q; load the pinned revision", f.Revision, s.graph.Hash)
	}
	if f.Program == "" {
		if err := checkStart(s.graph, f.Trigger, f.StartFrom); err != nil {
			return err
		}
	}
	program, err := s.newProgram(f.Program, Setup{Graph: s.graph, Config: f.Config})
	if err != nil {
		return err
	}
	s.created = f
	s.root = &Scope{st: s, program: program, acts: map[string]*activation{}}
	s.scopes[""] = s.root
	if err := s.checkAgain(f.Again); err != nil {
		s.root = nil
		delete(s.scopes, "")
		return err
	}
	s.askAgain(f.Again, AgainCause{Action: AgainStart, Activation: ActivationID(f.StartFrom)})
	return nil
}

func checkSemantics(version int) error {
	if version < 1 || version > Semantics {
		return fault.Newf(fault.Unsupported, "semantics: the journal follows version %d of the engine's rules and this program knows 1 to %d; use a newer Tandem", version, Semantics)
	}
	return nil
}

func (s *State) newProgram(name string, setup Setup) (Program, error) {
	if name == "" {
		return newGraphProgram(setup), nil
	}
	switch name {
	case ProgramToolLoop:
		return newToolLoop(setup)
	case ProgramFilling:
		return &filling{}, nil
	}
	factory, ok := s.programs[name]
	if !ok {
		return nil, fault.Newf(fault.Invalid, "program: %q is not registered with this engine", name)
	}
	program, err := factory.New(setup)
	if err != nil {
		return nil, fault.From(err)
	}
	return program, nil
}

func (s *State) start() error {
	if s.started {
		return fault.New(fault.Conflict, "the execution has started already")
	}
	s.started = true
	s.limitTime()
	s.root.program.Start(s.root, Opening{Trigger: s.created.Trigger, StartFrom: s.created.StartFrom, Input: s.created.Input})
	s.after(s.root)
	return nil
}

// limitTime arms the timer of the execution's wall time.
func (s *State) limitTime() {
	limit := s.created.TimeoutMS
	if limit == 0 {
		limit = s.graph.TimeoutMS
	}
	if limit > 0 {
		s.limit = s.setTimer(TimerExecution, "", s.now+limit)
	}
}

// settle ends the scopes in which nothing is open any more, until none is left. It is a loop and not a recursion, since
// the end of an iteration opens the next.
func (s *State) settle() {
	for i := 0; i < len(s.idle); i++ {
		sc := s.idle[i]
		s.idle[i] = nil
		sc.queued = false
		if !sc.idle() || sc.gone {
			continue
		}
		if sc.torn {
			s.drained(sc)
		} else {
			s.closeScope(sc)
		}
	}
	s.idle = s.idle[:0]
}

// after looks at a scope whose program or activations have just moved.
func (s *State) after(sc *Scope) {
	if err := sc.refusal; err != nil {
		sc.refusal = nil
		s.endExecution(&ending{Kind: endCancel, Error: err.Final()})
	}
	if err := sc.failure; err != nil {
		sc.failure = nil
		if !sc.torn {
			s.escalate(sc, "", err)
		}
	}
	if sc.idle() && !sc.queued {
		sc.queued = true
		s.idle = append(s.idle, sc)
	}
}

// idle says whether nothing more happens in a scope by itself.
func (sc *Scope) idle() bool { return sc.open == 0 && (sc.torn || len(sc.timers) == 0) }

func (s *State) emit(c Command) { s.out = append(s.out, c) }

func (s *State) setTimer(purpose TimerPurpose, about ActivationID, until int64) TimerID {
	id := TimerID(string(about) + "#" + string(purpose) + "." + formatOrd(s.nextOrd()))
	s.timers[id] = timer{purpose, about, until}
	s.emit(Sleep{Timer: id, Until: until, Purpose: purpose, Activation: about})
	return id
}

func (s *State) clearTimer(id TimerID) {
	if _, ok := s.timers[id]; ok {
		delete(s.timers, id)
		s.emit(CancelTimer{id})
	}
}

func (s *State) nextOrd() uint64 {
	s.ord++
	return s.ord
}

// Status derives the execution's status.
func (s *State) Status() Status {
	switch {
	case s.root == nil:
		return StatusNew
	case s.final != "":
		return s.final
	case !s.started:
		return StatusPending
	case s.paused:
		return StatusPaused
	case s.active > 0:
		return StatusRunning
	case s.asking > 0 || s.asksBelow > 0:
		return StatusWaitingForHuman
	}
	return StatusWaiting
}

// Seq is the sequence number of the last event.
func (s *State) Seq() uint64 { return s.seq }

// Execution is the execution's id.
func (s *State) Execution() string { return s.created.Execution }

// Activation is what the state knows about one activation.
type Activation struct {
	ID         ActivationID
	Node       int
	Status     NodeStatus
	Generation uint32
	Attempt    uint32
	Retries    uint32
	// Recoveries counts the runs that were repeated because a process died in them, Blamed those of them in which nothing
	// else ran.
	Recoveries uint32
	Blamed     uint32
	// Started says that its attempt is recorded as begun, so that it is not simply repeated.
	Started bool
	AsOf    uint64
	Error   *fault.Error
	// Unknown says that it is not known how its last attempt ended.
	Unknown bool
	// Ask is the question it waits for, if it waits for one.
	Ask AskID
	// Iterations counts the iterations its scope has opened.
	Iterations int64
}

// AwaitsPeople says whether the execution waits for people and for nothing else, also while it is paused.
func (s *State) AwaitsPeople() bool {
	return s.root != nil && s.final == "" && s.started && s.active == 0 && s.asking+s.asksBelow > 0
}

// Ending says whether the execution is ending: it was canceled, has failed, or its time is up.
func (s *State) Ending() bool { return s.root != nil && s.root.ending != nil }

// Activations lists what is open, failed or canceled, in the order it came to be. Activations that have completed have
// left the state.
func (s *State) Activations() []Activation {
	acts := s.sorted(nil)
	list := make([]Activation, len(acts))
	for i, a := range acts {
		list[i] = a.view()
	}
	return list
}

// Activation returns one activation that is open, failed or canceled.
func (s *State) Activation(id ActivationID) (Activation, bool) {
	a := s.find(id)
	if a == nil {
		return Activation{}, false
	}
	return a.view(), true
}

// ScopeState returns the activation that opened a scope, the number of the iteration and what the runtime keeps for the
// scope: what is needed to find an iteration's item.
func (s *State) ScopeState(path string) (owner ActivationID, index int64, state Ref, ok bool) {
	sc := s.scopes[path]
	if sc == nil || sc.owner == nil {
		return "", 0, "", false
	}
	return sc.owner.id, sc.index, sc.owner.frame.state, true
}

// NodeStatus returns the status of a node of the graph in a scope that is in the state.
func (s *State) NodeStatus(id ActivationID) (NodeStatus, bool) {
	path, name := id.Split()
	sc := s.scopes[path]
	if sc == nil {
		return "", false
	}
	if a := sc.acts[name]; a != nil {
		return a.view().Status, true
	}
	if p, ok := sc.program.(*graphProgram); ok {
		return p.statusOf(name)
	}
	return "", false
}

// sorted returns the activations of the state that satisfy keep (all for nil), oldest first.
func (s *State) sorted(keep func(*activation) bool) []*activation {
	var acts []*activation
	for _, sc := range s.scopes { // order does not matter: sorted below
		for _, a := range sc.acts { // order does not matter: sorted below
			if keep == nil || keep(a) {
				acts = append(acts, a)
			}
		}
	}
	sortActs(acts)
	return acts
}

func sortActs(acts []*activation) {
	slices.SortFunc(acts, func(a, b *activation) int { return cmp.Compare(a.ord, b.ord) })
}

// sorted returns the scope's own activations, oldest first.
func (sc *Scope) sorted() []*activation {
	acts := make([]*activation, 0, len(sc.acts))
	for _, a := range sc.acts { // order does not matter: sorted below
		acts = append(acts, a)
	}
	sortActs(acts)
	return acts
}

func (s *State) find(id ActivationID) *activation {
	if strings.IndexByte(string(id), '/') < 0 {
		if s.root == nil {
			return nil
		}
		return s.root.acts[string(id)]
	}
	path, name := id.Split()
	if sc := s.scopes[path]; sc != nil {
		return sc.acts[name]
	}
	return nil
}
