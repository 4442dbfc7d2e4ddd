package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tandem/fault"
	"tandem/workflow"
)

// Semantics is the version of the engine's rules that new executions record in their first event. A change of what
// an old journal means needs a new version, and the old rules stay for the journals that name them.
const Semantics = 1

// Ref names a value that is kept elsewhere. The engine hands references on and never looks inside.
type Ref string

// Event is one fact in an execution's journal. Facts that were appended together share a sequence number.
type Event struct {
	Seq uint64
	// Time is when the fact was recorded, in Unix milliseconds; the only clock the engine has.
	Time int64
	Fact Fact
}

// Fact is what happened. The set is closed: see the types of this file.
type Fact interface{ factName() string }

// Attempt addresses one try of one activation. An outcome whose generation or attempt is not the current one is stale
// and refused, so a late answer of an abandoned try changes nothing.
type Attempt struct {
	Activation ActivationID `json:"activation"`
	Generation uint32       `json:"generation,omitempty"`
	Attempt    uint32       `json:"attempt"`
}

// Output is one produced output key.
type Output struct {
	Key string `json:"key"`
	Ref Ref    `json:"ref,omitempty"`
}

// Verdict says whether one connection is live. A connection without a verdict is live exactly if its key was produced,
// and carries that key's reference; only connections with a conversion function need one.
type Verdict struct {
	// Edge is the connection's index in the revision.
	Edge int  `json:"edge"`
	Live bool `json:"live,omitempty"`
	Ref  Ref  `json:"ref,omitempty"`
	// Error fails the connection's target: the conversion has failed.
	Error *fault.Error `json:"error,omitempty"`
}

// Facts about an execution.
type (
	// ExecutionCreated is the first event of a journal. It fixes the revision and the rules.
	ExecutionCreated struct {
		Semantics int    `json:"semantics"`
		Execution string `json:"execution"`
		// Revision is the hash of the graph the execution is pinned to.
		Revision string `json:"revision,omitempty"`
		// Program runs the top level; empty means the graph program.
		Program string          `json:"program,omitempty"`
		Config  json.RawMessage `json:"config,omitempty"`
		// Trigger is the node that fired; StartFrom a node to begin at whatever its inputs. At most one is set.
		Trigger   string `json:"trigger,omitempty"`
		StartFrom string `json:"start_from,omitempty"`
		// TimeoutMS overrides the revision's limit on wall time.
		TimeoutMS int64 `json:"timeout_ms,omitempty"`
		// Depth counts the executions above this one.
		Depth int `json:"depth,omitempty"`
		Input Ref `json:"input,omitempty"`
		// Again are the questions that have to be asked first: those that StartFrom would pass over.
		Again []ActivationID `json:"again,omitempty"`
	}

	// ExecutionStarted says that the execution was admitted and begins.
	ExecutionStarted struct{}

	// ExecutionForked is the first event of a fork: it holds the source's state as of the chosen activation.
	ExecutionForked struct {
		Semantics  int          `json:"semantics"`
		Execution  string       `json:"execution"`
		Source     string       `json:"source"`
		Activation ActivationID `json:"activation"`
		// Input is what was given as the activation's input. With Edits it is a set of edits by name, which the host has made in
		// the data; forks that were made before there were edits have it in the place of what the connections bring.
		Input Ref  `json:"input,omitempty"`
		Edits bool `json:"edits,omitempty"`
		// By is who made the fork, and Reason why.
		By string `json:"by,omitempty"`
		// TokenMadeBy is who made the token that By used, if it was somebody else.
		TokenMadeBy string          `json:"token_made_by,omitempty"`
		Reason      string          `json:"reason,omitempty"`
		State       json.RawMessage `json:"state"`
		// Again are the questions whose answers count no longer: they are asked again before anything after them runs.
		Again []ActivationID `json:"again,omitempty"`
		// NamesSource says that the error of an attempt which was under way in the source, and is not repeated, names the source. In
		// forks of older versions the error is that of an interrupted attempt.
		NamesSource bool `json:"names_source,omitempty"`
	}

	ExecutionPaused struct {
		By string `json:"by,omitempty"`
		// TokenMadeBy is who made the token that By used, if it was somebody else.
		TokenMadeBy string `json:"token_made_by,omitempty"`
		Reason      string `json:"reason,omitempty"`
	}
	ExecutionResumed struct {
		By          string `json:"by,omitempty"`
		TokenMadeBy string `json:"token_made_by,omitempty"`
		Reason      string `json:"reason,omitempty"`
	}

	// CancelRequested ends the execution as CANCELED once nothing of it runs any more.
	CancelRequested struct {
		By          string `json:"by,omitempty"`
		TokenMadeBy string `json:"token_made_by,omitempty"`
		Reason      string `json:"reason,omitempty"`
	}

	// ExecutionRecovered says that the process that owned the execution has ended and another took over.
	ExecutionRecovered struct {
		// Known says that the host knows how the process before ended. In journals of older hosts it is not set: there
		// every run that was lost counts against its activation.
		Known bool `json:"known,omitempty"`
		// Begun are the activations whose runs had begun when the process died; none of an orderly stop. Alone says that
		// nothing else ran in the process then, so that the death is blamed on the one that did.
		Begun []ActivationID `json:"begun,omitempty"`
		Alone bool           `json:"alone,omitempty"`
		// Tried says that they ran in a trial, without the runs that had survived theirs: the next trial follows at once.
		Tried bool `json:"tried,omitempty"`
		// RunsGoOn says that the process is the same: only what the execution waits for is issued again.
		RunsGoOn bool `json:"runs_go_on,omitempty"`
		// Lost, unless it is empty, are the only runs that were lost: several processes run the execution, and everything else
		// goes on.
		Lost []Attempt `json:"lost,omitempty"`
	}
)

// Facts about an activation.
type (
	// NodeStarted is recorded before a once attempt can have an effect.
	NodeStarted struct {
		Attempt
		// Inquires says that the service can be asked about the attempt if its outcome is unknown.
		Inquires bool `json:"inquires,omitempty"`
	}

	// NodeNotBegun takes a NodeStarted back: the process stops in order, and the attempt's turn had not come. The next process
	// runs it.
	NodeNotBegun struct{ Attempt }

	// NodeCompleted is a success: the keys it produced and the verdicts of its outgoing connections.
	NodeCompleted struct {
		Attempt
		Outputs []Output  `json:"outputs,omitempty"`
		Settled []Verdict `json:"settled,omitempty"`
		// Reply is the part of the result that a program needs to go on (which tools a model wants to call). The graph
		// program needs none.
		Reply json.RawMessage `json:"reply,omitempty"`
		// Declared are the fields of the output that a tool has declared: they become names of the execution's data. None: all.
		Declared []string `json:"declared,omitempty"`
	}

	// NodeFailed is a failure of one attempt.
	NodeFailed struct {
		Attempt
		Error *fault.Error `json:"error"`
		// RetryAfterMS is what the service asked for; it wins over the backoff.
		RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
		// Unknown says that the effect may or may not have happened.
		Unknown bool `json:"unknown,omitempty"`
		// NotDone answers CauseInquire: the effect has not happened.
		NotDone bool `json:"not_done,omitempty"`
		// Handled carries Outputs and Settled for a node that handles its errors (on_error), when this failure is
		// its last. Without it the engine asks the runtime for them.
		Handled bool      `json:"handled,omitempty"`
		Outputs []Output  `json:"outputs,omitempty"`
		Settled []Verdict `json:"settled,omitempty"`
	}

	// NodeSuspended says that the attempt waits: until a time, for a signal, an answer or a child, whichever it names;
	// the first to come wakes it. Nothing is held meanwhile.
	NodeSuspended struct {
		Attempt
		// Until is a time in Unix milliseconds; zero waits without limit.
		Until int64 `json:"until,omitempty"`
		// Signal is the name of the signal that wakes the attempt.
		Signal string    `json:"signal,omitempty"`
		Ask    *Question `json:"ask,omitempty"`
		Child  *Child    `json:"child,omitempty"`
		// Memo is what the runtime wants back when the attempt goes on.
		Memo Ref `json:"memo,omitempty"`
	}

	// AttemptTimedOut says that an attempt's time is up. A once attempt that has started is told to stop and reports
	// how it ended; any other is over.
	AttemptTimedOut struct{ Attempt }

	// ScopeOpened says that a node runs a body: how often, how many at once, until when, by which program.
	ScopeOpened struct {
		Attempt
		// Program runs each iteration; empty means the graph program on the node's body.
		Program string          `json:"program,omitempty"`
		Config  json.RawMessage `json:"config,omitempty"`
		// Count is the number of iterations; -1 when the turns decide.
		Count int64 `json:"count"`
		// Concurrency is how many iterations run at once; zero means one.
		Concurrency int64 `json:"concurrency,omitempty"`
		// KeepGoing keeps a failed iteration from failing the scope.
		KeepGoing bool `json:"keep_going,omitempty"`
		// Turns asks the runtime before each iteration whether it takes place (a condition, a break, a conversion on an
		// entry connection).
		Turns bool `json:"turns,omitempty"`
		// Discard says that the results of the iterations are not used, so that a host need not keep them.
		Discard bool `json:"discard,omitempty"`
		// Until is the deadline in Unix milliseconds; zero means none.
		Until int64 `json:"until,omitempty"`
		// Entry are the verdicts of the entry connections, for every iteration that has no turn.
		Entry []Verdict `json:"entry,omitempty"`
		// State is what the runtime keeps for the scope (the list it goes through, what the last iteration left). It comes
		// back with every turn and with the close.
		State Ref `json:"state,omitempty"`
	}

	// ScopeAdvanced is the runtime's answer to a turn: open the next iteration, or stop.
	ScopeAdvanced struct {
		Attempt
		Open  bool      `json:"open,omitempty"`
		Entry []Verdict `json:"entry,omitempty"`
		// State replaces the scope's state unless it is empty.
		State Ref `json:"state,omitempty"`
	}

	// NodeRetried is an operator's retry of an activation that failed, was canceled or is unknown.
	NodeRetried struct {
		Activation  ActivationID `json:"activation"`
		By          string       `json:"by,omitempty"`
		TokenMadeBy string       `json:"token_made_by,omitempty"`
		Reason      string       `json:"reason,omitempty"`
		// Again are the questions whose answers count no longer, as in ExecutionForked.
		Again []ActivationID `json:"again,omitempty"`
	}

	// NodeSkipped is an operator's decision to go on without an activation; with an output it counts as completed.
	NodeSkipped struct {
		Activation  ActivationID `json:"activation"`
		HasOutput   bool         `json:"has_output,omitempty"`
		Output      Ref          `json:"output,omitempty"`
		By          string       `json:"by,omitempty"`
		TokenMadeBy string       `json:"token_made_by,omitempty"`
		Reason      string       `json:"reason,omitempty"`
		// Again are the questions whose answers count no longer, as in ExecutionForked.
		Again []ActivationID `json:"again,omitempty"`
	}
)

// Facts from outside.
type (
	// TimerFired says that a timer's time has come.
	TimerFired struct {
		Timer TimerID `json:"timer"`
	}

	// AskAnswered is the end of a question: its row was decided, this is the winner.
	AskAnswered struct {
		Ask     AskID      `json:"ask"`
		Outcome AskOutcome `json:"outcome"`
		// Choice decides a question of the engine's own (an unknown outcome: done, not_done, stop).
		Choice string `json:"choice,omitempty"`
		Ref    Ref    `json:"ref,omitempty"`
		// Again are the questions whose answers count no longer, as in ExecutionForked: a person gave an output.
		Again []ActivationID `json:"again,omitempty"`
		// By is who decided it, Origin how their answer came, as it was recorded. The engine hands By on and decides nothing by it.
		By     string          `json:"by,omitempty"`
		Origin json.RawMessage `json:"origin,omitempty"`
	}

	// SignalReceived is a signal to a node, or to one activation of it. A signal that no activation waits for yet is kept.
	SignalReceived struct {
		Node       string       `json:"node"`
		Activation ActivationID `json:"activation,omitempty"`
		Name       string       `json:"name"`
		Ref        Ref          `json:"ref,omitempty"`
		// By is who sent it.
		By          string `json:"by,omitempty"`
		TokenMadeBy string `json:"token_made_by,omitempty"`
	}

	// RequestRefused says that something from outside (an action, an answer, a signal) could not be done, and why. It
	// changes nothing. It is recorded, so that the request is not tried twice. It may follow the end.
	RequestRefused struct {
		Request string       `json:"request"`
		By      string       `json:"by,omitempty"`
		Error   *fault.Error `json:"error"`
	}

	// ChildWaiting says that a child execution waits for people, or does so no longer. A parent that waits for the child waits for them,
	// too. It changes nothing for a child that the parent does not wait for.
	ChildWaiting struct {
		Child string `json:"child"`
		// Activation is the one that started the child.
		Activation ActivationID `json:"activation,omitempty"`
		Human      bool         `json:"human,omitempty"`
		// Asked are the questions, for readers of the journal. The engine hands them on.
		Asked json.RawMessage `json:"asked,omitempty"`
	}

	// ChildFinished says how a child execution ended.
	ChildFinished struct {
		Child  string       `json:"child"`
		Status Status       `json:"status"`
		Ref    Ref          `json:"ref,omitempty"`
		Error  *fault.Error `json:"error,omitempty"`
	}
)

// Question is a question to a person that an attempt asks.
type Question struct {
	Purpose string `json:"purpose"`
	Ref     Ref    `json:"ref,omitempty"`
	// Key makes several activations wait for one question while it is open (one per exhausted budget). Empty: a question
	// of its own.
	Key string `json:"key,omitempty"`
}

// Child is another workflow or agent that an attempt starts and, unless Detached, waits for.
type Child struct {
	Workflow string `json:"workflow"`
	// Revision is fixed when the child starts.
	Revision string `json:"revision,omitempty"`
	Input    Ref    `json:"input,omitempty"`
	Detached bool   `json:"detached,omitempty"`
	// Outputs are the nodes whose outputs are wanted when it ends; none means its last nodes.
	Outputs []string `json:"outputs,omitempty"`
}

// AskOutcome is how a question ended.
type AskOutcome string

// The ends of a question.
const (
	AskDone     AskOutcome = "answered"
	AskTimeout  AskOutcome = "timeout"
	AskCanceled AskOutcome = "cancelled"
)

// The choices on an unknown outcome.
const (
	ChoiceDone    = workflow.ChoiceDone
	ChoiceNotDone = workflow.ChoiceNotDone
	ChoiceStop    = workflow.ChoiceStop
)

// PurposeOutcomeUnknown is the purpose of the question the engine itself asks.
const PurposeOutcomeUnknown = "outcome_unknown"

func (ExecutionCreated) factName() string   { return "execution_created" }
func (ExecutionStarted) factName() string   { return "execution_started" }
func (ExecutionForked) factName() string    { return "execution_forked" }
func (ExecutionPaused) factName() string    { return "execution_paused" }
func (ExecutionResumed) factName() string   { return "execution_resumed" }
func (CancelRequested) factName() string    { return "cancel_requested" }
func (ExecutionRecovered) factName() string { return "execution_recovered" }
func (NodeStarted) factName() string        { return "node_started" }
func (NodeNotBegun) factName() string       { return "node_not_begun" }
func (NodeCompleted) factName() string      { return "node_completed" }
func (NodeFailed) factName() string         { return "node_failed" }
func (NodeSuspended) factName() string      { return "node_suspended" }
func (AttemptTimedOut) factName() string    { return "attempt_timed_out" }
func (ScopeOpened) factName() string        { return "scope_opened" }
func (ScopeAdvanced) factName() string      { return "scope_advanced" }
func (NodeRetried) factName() string        { return "node_retried" }
func (NodeSkipped) factName() string        { return "node_skipped" }
func (TimerFired) factName() string         { return "timer_fired" }
func (AskAnswered) factName() string        { return "ask_answered" }
func (SignalReceived) factName() string     { return "signal_received" }
func (RequestRefused) factName() string     { return "request_refused" }
func (ChildWaiting) factName() string       { return "child_waiting" }
func (ChildFinished) factName() string      { return "child_finished" }

// eventJSON is the stored form of an event.
type eventJSON struct {
	Seq  uint64          `json:"seq"`
	Time int64           `json:"time"`
	Type string          `json:"type"`
	Fact json.RawMessage `json:"fact"`
}

// MarshalJSON writes the stored form.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Fact == nil {
		return nil, errors.New("encode event: it holds no fact")
	}
	fact, err := json.Marshal(e.Fact)
	if err != nil {
		return nil, fmt.Errorf("encode event %q: %w", e.Fact.factName(), err)
	}
	return json.Marshal(eventJSON{e.Seq, e.Time, e.Fact.factName(), fact})
}

// UnmarshalJSON reads the stored form.
func (e *Event) UnmarshalJSON(data []byte) error {
	var stored eventJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	fact, err := decodeFact(stored.Type, string(stored.Fact))
	if err != nil {
		return err
	}
	*e = Event{stored.Seq, stored.Time, fact}
	return nil
}

// AppendFact appends a fact in its stored form, without what stands beside it in an event: {"type":…,"fact":…}.
func AppendFact(out []byte, f Fact) ([]byte, error) {
	if f == nil {
		return out, errors.New("encode fact: there is none")
	}
	out = append(out, `{"type":"`...)
	out = append(out, f.factName()...)
	out = append(out, `","fact":`...)
	if done, ok := f.(NodeCompleted); ok && done.Reply == nil && done.Declared == nil {
		return append(done.append(out), '}'), nil // nearly every row has one
	}
	fact, err := json.Marshal(f)
	if err != nil {
		return out, fmt.Errorf("encode fact %q: %w", f.factName(), err)
	}
	return append(append(out, fact...), '}'), nil
}

// append is the encoding of json.Marshal, without looking at types.
func (f *NodeCompleted) append(out []byte) []byte {
	out = append(out, `{"activation":`...)
	out = AppendText(out, string(f.Activation))
	out = AppendNumber(out, `,"generation":`, int64(f.Generation))
	out = append(out, `,"attempt":`...)
	out = strconv.AppendUint(out, uint64(f.Attempt.Attempt), 10)
	for i, o := range f.Outputs {
		out = append(out, Following(i, `,"outputs":[`)...)
		out = append(out, `{"key":`...)
		out = AppendText(out, o.Key)
		out = append(AppendField(out, `,"ref":`, string(o.Ref)), '}')
	}
	if len(f.Outputs) > 0 {
		out = append(out, ']')
	}
	for i, v := range f.Settled {
		out = append(out, Following(i, `,"settled":[`)...)
		if v.Error != nil {
			raw, err := json.Marshal(v)
			if err != nil { // an error in words is always JSON
				raw = []byte("null")
			}
			out = append(out, raw...)
			continue
		}
		out = append(out, `{"edge":`...)
		out = strconv.AppendInt(out, int64(v.Edge), 10)
		if v.Live {
			out = append(out, `,"live":true`...)
		}
		out = append(AppendField(out, `,"ref":`, string(v.Ref)), '}')
	}
	if len(f.Settled) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

// Following is what comes before an item of a list: the list's beginning, or a comma.
func Following(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

// AppendField appends a field with a text, unless that is empty. The name is as it stands in JSON, with what comes before it and the colon.
func AppendField(out []byte, name, text string) []byte {
	if text == "" {
		return out
	}
	return AppendText(append(out, name...), text)
}

// AppendNumber is [AppendField] for a number, unless that is zero.
func AppendNumber(out []byte, name string, n int64) []byte {
	if n == 0 {
		return out
	}
	return strconv.AppendInt(append(out, name...), n, 10)
}

// AppendText appends a text as JSON.
func AppendText(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			raw, err := json.Marshal(s)
			if err != nil { // a text is always JSON
				raw = []byte(`""`)
			}
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// DecodeFact reads what [AppendFact] has written.
func DecodeFact(data []byte) (Fact, error) { return DecodeFactText(string(data)) }

// DecodeFactText is DecodeFact for a text.
func DecodeFactText(text string) (Fact, error) {
	if name, fact, ok := splitFact(text); ok {
		if f, err := decodeFact(name, fact); err == nil {
			return f, nil
		} // otherwise the slower reader says what is wrong with it
	}
	var stored struct {
		Type string          `json:"type"`
		Fact json.RawMessage `json:"fact"`
	}
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode fact: %w", err)
	}
	return decodeFact(stored.Type, string(stored.Fact))
}
