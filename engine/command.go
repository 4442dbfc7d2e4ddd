package engine

import (
	"encoding/json"

	"tandem/fault"
)

// Command is what the engine wants done next. Commands are carried out after the event that caused them is on disk.
// The set is closed: see the types of this file.
type Command interface{ commandName() string }

// RunNode asks the node runtime for one run of an attempt. Its outcome comes back as NodeCompleted, NodeFailed,
// NodeSuspended, ScopeOpened or, for a turn, ScopeAdvanced.
type RunNode struct {
	Attempt
	// Scope is the path of the scope the activation belongs to, "" for the top level.
	Scope string
	// Node is the node's index in the graph, -1 for a step that a program made.
	Node int
	// Step is what a program wants run; nil for a node of the graph.
	Step *Step
	// Cause says why it runs: from the start, after a wait, for a turn, to close, or only to settle its connections.
	Cause Cause
	// Inputs are the live incoming connections in definition order.
	Inputs []Input
	// Input replaces the merged inputs when it is set: a fork's edited input, a program's step.
	Input Ref
	// AsOf is the sequence number of the data the activation reads, however often it is tried.
	AsOf uint64
	// LastTry says that no retry follows, so a failure that the node handles should carry its verdicts.
	LastTry bool
	// TimedOut says that the join fired because its time was up.
	TimedOut bool
}

// Input is one live incoming connection of an activation.
type Input struct {
	Edge int `json:"edge"`
	Ref  Ref `json:"ref,omitempty"`
	// Convert says that the connection's conversion did not end well and, since the node was retried, is to be tried
	// again.
	Convert bool `json:"convert,omitempty"`
}

// CauseKind says what part of a node's work a run is.
type CauseKind string

// The causes of a run.
const (
	CauseRun    CauseKind = "run"    // the node's work itself
	CauseTurn   CauseKind = "turn"   // may iteration Index of the scope begin?
	CauseClose  CauseKind = "close"  // the scope has closed: produce its exit keys
	CauseError  CauseKind = "error"  // the node has failed and handles errors: settle its connections with Error
	CauseOutput CauseKind = "output" // a person gave the output, Ref: settle the connections with it
	// CauseInquire asks the service what became of the run before, whose outcome is not known. Its answers are NodeCompleted: the effect
	// has happened; NodeFailed with NotDone: it has not; any other failure: the service does not know.
	CauseInquire CauseKind = "inquire"
)

// Cause is why a node is run.
type Cause struct {
	Kind  CauseKind    `json:"kind"`
	Index int64        `json:"index,omitempty"`
	Ref   Ref          `json:"ref,omitempty"`
	Error *fault.Error `json:"error,omitempty"`
	// Closed says how the scope ended, for CauseClose.
	Closed *Closed `json:"closed,omitempty"`
	// State is what the runtime keeps for the scope, for CauseTurn and CauseClose.
	State Ref `json:"state,omitempty"`
	// Wake is what ended the last wait; nil when the attempt has not waited.
	Wake *Wake `json:"wake,omitempty"`
	// Memo is what the attempt left when it began to wait.
	Memo Ref `json:"memo,omitempty"`
	// Filled is what was found for missing parts of the input, once it was searched for them. It stays with the activation.
	Filled *Filling `json:"filled,omitempty"`
	// Inquiries is how often the service was asked before, for CauseInquire; Error is how the run ended that it is asked about, if that is
	// known.
	Inquiries uint32 `json:"inquiries,omitempty"`
}

// Closed says how a scope ended.
type Closed struct {
	Iterations int64 `json:"iterations"`
	Succeeded  int64 `json:"succeeded"`
	Failed     int64 `json:"failed"`
	// Broken says that a turn ended the scope; Deadline that its time was up, with what was Unfinished.
	Broken     bool           `json:"broken,omitempty"`
	Deadline   bool           `json:"deadline,omitempty"`
	Unfinished []ActivationID `json:"unfinished,omitempty"`
	// Result is what the program of the last iteration handed to Finish.
	Result json.RawMessage `json:"result,omitempty"`
	Values []Ref           `json:"values,omitempty"`
}

// WakeKind is what ended a wait.
type WakeKind string

// The ends of a wait.
const (
	WakeTimer  WakeKind = "timer"
	WakeSignal WakeKind = "signal"
	WakeAnswer WakeKind = "answer"
	WakeChild  WakeKind = "child"
)

// Wake is what ended a wait and what it brought.
type Wake struct {
	By      WakeKind   `json:"by"`
	Ref     Ref        `json:"ref,omitempty"`
	Outcome AskOutcome `json:"outcome,omitempty"`
	// Person is who answered, if an answer ended the wait.
	Person string       `json:"person,omitempty"`
	Child  string       `json:"child,omitempty"`
	Status Status       `json:"status,omitempty"`
	Error  *fault.Error `json:"error,omitempty"`
}

// CancelNode tells a running attempt to stop. Its outcome no longer counts, unless it is a once attempt that has started.
type CancelNode struct{ Attempt }

// EndNode records the end of an activation that has no outcome of its own: it was skipped, canceled, or has failed for good.
type EndNode struct {
	Activation ActivationID
	Generation uint32
	Status     NodeStatus
	Error      *fault.Error
}

// Ask puts a question to a person. The same id asked again is the same question.
type Ask struct {
	Ask        AskID
	Activation ActivationID
	Generation uint32
	Purpose    string
	Ref        Ref
	// Why is what is known about an unknown outcome, if the question is about one.
	Why Doubt
}

// Doubt is what led to a question about an unknown outcome.
type Doubt struct {
	// Run is how the attempt itself ended; nil if it was cut off.
	Run *fault.Error `json:"run,omitempty"`
	// Inquiry is why the service could not say whether it had its effect; nil if it was not asked.
	Inquiry *fault.Error `json:"inquiry,omitempty"`
}

// Withdraw takes a question back: its answer is no longer needed.
type Withdraw struct{ Ask AskID }

// Sleep sets a durable timer.
type Sleep struct {
	Timer TimerID
	// Until is in Unix milliseconds; a time that has passed fires at once.
	Until   int64
	Purpose TimerPurpose
	// Activation is the activation that the timer belongs to, if any.
	Activation ActivationID
}

// CancelTimer removes a timer.
type CancelTimer struct{ Timer TimerID }

// StartChild starts another execution under an id that follows from parent, activation and generation, so starting it
// again is harmless.
type StartChild struct {
	Child      string
	Activation ActivationID
	Spec       Child
	Depth      int
}

// ChildAction is what a parent tells its child.
type ChildAction string

// What a parent tells its child.
const (
	ChildPause  ChildAction = "pause"
	ChildResume ChildAction = "resume"
	ChildCancel ChildAction = "cancel"
)

// TellChild hands an action on to a child execution.
type TellChild struct {
	Child  string
	Action ChildAction
}

// CloseScope says that an iteration is over and has left the state: its data is folded into the scope around it.
type CloseScope struct {
	Scope  string
	Failed bool
}

// Finish says that the execution has ended.
type Finish struct {
	Status Status
	Error  *fault.Error
	// Node is the activation whose failure ended the execution.
	Node ActivationID
	// Result is what the top program handed to Finish.
	Result json.RawMessage
}

func (RunNode) commandName() string     { return "run_node" }
func (CancelNode) commandName() string  { return "cancel_node" }
func (EndNode) commandName() string     { return "end_node" }
func (Ask) commandName() string         { return "ask" }
func (Withdraw) commandName() string    { return "withdraw" }
func (Sleep) commandName() string       { return "sleep" }
func (CancelTimer) commandName() string { return "cancel_timer" }
func (StartChild) commandName() string  { return "start_child" }
func (TellChild) commandName() string   { return "tell_child" }
func (CloseScope) commandName() string  { return "close_scope" }
func (Finish) commandName() string      { return "finish" }
