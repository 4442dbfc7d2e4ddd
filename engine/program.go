package engine

import (
	"encoding/json"
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/workflow"
)

// Program decides what happens inside one scope. It is pure and sees names, keys and references only; it acts through the
// [Scope] it is handed, during the call and never later. The engine does the rest: a step that a program runs is an
// activation like any other, with retries, waits, questions and recovery.
//
// A scope ends when nothing in it is open and no timer is set. So a program that wants to go on runs its next step when Ended is called
// for the last one.
type Program interface {
	// Start is called once, when the scope opens.
	Start(sc *Scope, o Opening)
	// Ended is called when the activation called name has ended: completed, skipped, canceled, or failed in a way that
	// is handled (by the node's on_error, or because Handles said so).
	Ended(sc *Scope, name string, end End)
	// Handles says whether this program deals with the failure of an activation. Otherwise the failure goes outwards.
	Handles(name string, err *fault.Error) bool
	// Fired is called when a timer set with Scope.Sleep has fired.
	Fired(sc *Scope, timer string)
	// Snapshot returns the program's state in its one canonical encoding.
	Snapshot() (json.RawMessage, error)
}

// Confirming is implemented by programs that ask people before some of their steps.
type Confirming interface {
	// ConfirmedBy returns the question by which a person has agreed to the step called name, if there was one. They agreed to
	// one run of it: another run for an operator needs another answer.
	ConfirmedBy(name string) (question string, ok bool)
}

// Opening is what a scope begins with.
type Opening struct {
	// Trigger or StartFrom is where a graph's top level begins.
	Trigger, StartFrom string
	// Entry are the verdicts of a body's entry connections that are not simply live.
	Entry []Verdict
	// Input is what the execution was started with.
	Input Ref
	// State is what the runtime keeps for a scope that a node has opened.
	State Ref
}

// End is how an activation ended.
type End struct {
	// Node is the activation's node in the graph, -1 for a program's step.
	Node    int
	Status  NodeStatus
	Outputs []Output
	Settled []Verdict
	Reply   json.RawMessage
	Error   *fault.Error
	// Opened says that the activation ran a body at least once.
	Opened bool
}

// Setup is what a program is made from.
type Setup struct {
	Graph *workflow.Graph
	// Body is the body of the graph that the scope runs.
	Body int
	// Config is what the event that opened the scope says about the program.
	Config json.RawMessage
}

// Factory makes programs of one name, new or from a snapshot.
type Factory struct {
	New     func(Setup) (Program, error)
	Restore func(Setup, json.RawMessage) (Program, error)
}

// Programs are the programs an engine knows besides the graph program, by the names that events use.
type Programs map[string]Factory

// Step is an activation that a program wants run.
type Step struct {
	// Name is the step's name, unique among the activations open in its scope; it must not contain "/", "[", "]" or "#".
	Name string `json:"name"`
	// Kind is what to run: a kind of node, or whatever the runtime of this program understands.
	Kind       string             `json:"kind,omitempty"`
	Effect     workflow.Effect    `json:"effect,omitempty"`
	MaxRetries int                `json:"max_retries,omitempty"`
	TimeoutMS  int64              `json:"timeout_ms,omitempty"`
	OnUnknown  workflow.OnUnknown `json:"on_unknown,omitempty"`
	// Input is what the step gets.
	Input Ref `json:"input,omitempty"`
	// Config is what the program tells the runtime about the step, Values what the step may read besides.
	Config json.RawMessage `json:"config,omitempty"`
	Values []Ref           `json:"values,omitempty"`
	// Tool, when it is set, says that the output of the step is data of the execution, like the output of a node, and which
	// tool made it. Otherwise the output is for the program only.
	Tool string `json:"tool,omitempty"`
}

// tryMark stands between the name of a step and the number of its try, where a program makes a step of each try.
const tryMark = "_try_"

// TryName is the name of the nth try of a step: that of the step for the first.
func TryName(step string, n int) string {
	if n <= 1 {
		return step
	}
	return step + tryMark + strconv.Itoa(n)
}

// TriedStep returns the step that a name is a try of. The output of a try is data of the step.
func TriedStep(name string) string {
	step, _, _ := strings.Cut(name, tryMark)
	return step
}

// Scope is one open scope: the top level or one iteration. Programs act through its methods; its fields are the
// engine's.
type Scope struct {
	st      *State
	path    string
	owner   *activation // nil for the top level
	index   int64
	program Program
	acts    map[string]*activation
	open    int // activations of acts that are open
	timers  map[string]TimerID
	result  json.RawMessage
	values  []Ref

	torn    bool    // it, or a scope around it, is ending: nothing new begins
	ending  *ending // set where this scope itself is what ends
	failure *fault.Error
	refusal *fault.Error
	queued  bool // it waits in State.idle
	gone    bool // it has left the state
}

// Path is the scope's path, "" for the top level.
func (sc *Scope) Path() string { return sc.path }

// Index is the number of the iteration.
func (sc *Scope) Index() int64 { return sc.index }

// Now is the time of the event being applied, in Unix milliseconds.
func (sc *Scope) Now() int64 { return sc.st.now }

// Run runs a step. Inputs are for nodes of a graph and may be nil.
func (sc *Scope) Run(step Step) {
	if step.Name == "" || strings.ContainsAny(step.Name, "/[]#") {
		sc.Fail(fault.Newf(fault.Internal, "a program named a step %q; names must not be empty or contain / [ ] #", step.Name))
		return
	}
	if sc.acts[step.Name] != nil {
		sc.Fail(fault.Newf(fault.Internal, "a program ran the step %q twice at once; give each step a name of its own", step.Name))
		return
	}
	sc.st.beginActivation(sc, &activation{node: -1, name: step.Name, step: &step, input: step.Input})
}

// Skip records that the activation called name does not take place.
func (sc *Scope) Skip(name string) {
	sc.st.emit(EndNode{Activation: joinID(sc.path, name), Generation: sc.generation(), Status: NodeSkip})
}

// generation is that of the scope's owner: activations inside begin with it.
func (sc *Scope) generation() uint32 {
	if sc.owner == nil {
		return 0
	}
	return sc.owner.gen
}

// Cancel cancels an open activation of the scope; Ended is called when it is over. A once attempt that has started runs
// on.
func (sc *Scope) Cancel(name string) {
	if a := sc.acts[name]; a != nil {
		sc.st.cancelOne(a)
	}
}

// Sleep sets a timer that comes back through Fired. Setting it again moves it.
func (sc *Scope) Sleep(timer string, until int64) {
	sc.Awake(timer)
	id := sc.st.setTimer(TimerJoin, joinID(sc.path, timer), until)
	if sc.torn {
		sc.st.suspendTimer(id) // it counts if the scope is revived
	}
	if sc.timers == nil {
		sc.timers = map[string]TimerID{}
	}
	sc.timers[timer] = id
}

// Awake removes a timer that has not fired.
func (sc *Scope) Awake(timer string) {
	if id, ok := sc.timers[timer]; ok {
		delete(sc.timers, timer)
		sc.st.clearTimer(id)
	}
}

// Fail fails the scope: the error goes outwards as that of an activation would.
func (sc *Scope) Fail(err *fault.Error) {
	if sc.failure == nil {
		sc.failure = err
	}
}

// Abandon ends the whole execution as CANCELED, as a cancel request would: a person whom the program asked has declined.
// The steps named have not begun and never will; they are recorded as canceled. In a scope that is ending already it does
// nothing.
func (sc *Scope) Abandon(reason *fault.Error, steps ...string) {
	if sc.torn || sc.refusal != nil {
		return
	}
	sc.refusal = reason
	for _, name := range steps {
		sc.st.emit(EndNode{Activation: joinID(sc.path, name), Generation: sc.generation(), Status: NodeCanceled})
	}
}

// Finish sets the scope's result: a small value for the program that closes the scope, and further values that it may read. The
// scope ends when nothing in it is open.
func (sc *Scope) Finish(result json.RawMessage, values ...Ref) { sc.result, sc.values = result, values }
