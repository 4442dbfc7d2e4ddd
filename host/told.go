package host

import (
	"encoding/json"
	"slices"
	"strconv"

	"tandem/engine"
	"tandem/fault"
)

// Told is what a row means to people who follow an execution, as far as its facts alone do not say it: which nodes it began,
// which it ended without an outcome of their own, what became of the execution. It is recorded with the row, so that
// readers need no engine and are told the same at any time.
type Told struct {
	What Telling `json:"w"`

	Activation engine.ActivationID `json:"a,omitempty"`
	Generation uint32              `json:"g,omitempty"`
	// Attempt is zero for the first.
	Attempt uint32            `json:"t,omitempty"`
	Node    engine.NodeStatus `json:"n,omitempty"`
	Status  engine.Status     `json:"s,omitempty"`
	Error   *fault.Error      `json:"e,omitempty"`
	// Time is when a retry is due, or when a run really began.
	Time int64 `json:"u,omitempty"`

	Ask     engine.AskID `json:"k,omitempty"`
	Purpose string       `json:"p,omitempty"`
	Ref     engine.Ref   `json:"r,omitempty"`

	Detail json.RawMessage `json:"d,omitempty"`
}

// Telling says what is told.
type Telling string

// What is told.
const (
	// ToldNode: an activation is now running (an attempt of it was handed to the runtime), retrying, waiting for input,
	// skipped, canceled or failed. That it completed is told by the fact.
	ToldNode Telling = "node"
	// ToldExecution: the execution has another status, and maybe an error.
	ToldExecution Telling = "execution"
	// ToldWithdrawn: a question is no longer asked.
	ToldWithdrawn Telling = "withdrawn"
	// ToldRan: when a run that ends with this row really began, if that was later than the row that wanted it.
	ToldRan Telling = "ran"
	// ToldUsage: what a run that ends with this row has used of paid services.
	ToldUsage Telling = "usage"
	// ToldDetail: what a kind has noted about a run that ends with this row.
	ToldDetail Telling = "detail"
	// ToldWarnings: what a run that ends with this row has warned of and was not told of its activation before: a list of
	// [dataflow.Warning].
	ToldWarnings Telling = "warnings"
)

// First says that it is the first attempt of an activation's generation that begins.
func (t Told) First() bool {
	return t.What == ToldNode && t.Node == engine.NodeRunning && t.Attempt <= 1
}

// append writes what is told as JSON. That an activation begins, which nearly every row tells, and that the execution has another
// status are written by hand.
func (t *Told) append(out []byte) ([]byte, error) {
	if t.What == ToldExecution && t.Status != "" && t.Activation == "" && t.Generation == 0 && t.Attempt == 0 && t.Node == "" && t.Error == nil && t.Time == 0 && t.Ask == "" && t.Purpose == "" && t.Ref == "" && t.Detail == nil {
		out = append(out, `{"w":"execution","s":`...)
		return append(engine.AppendText(out, string(t.Status)), '}'), nil
	}
	if t.What != ToldNode || t.Node != engine.NodeRunning || t.Error != nil || t.Time != 0 || t.Ask != "" || t.Detail != nil || t.Ref != "" || t.Status != "" || t.Purpose != "" {
		raw, err := json.Marshal(t)
		return append(out, raw...), err
	}
	out = append(out, `{"w":"node","a":`...)
	out = engine.AppendText(out, string(t.Activation))
	if t.Generation != 0 {
		out = append(out, `,"g":`...)
		out = strconv.AppendUint(out, uint64(t.Generation), 10)
	}
	if t.Attempt != 0 {
		out = append(out, `,"t":`...)
		out = strconv.AppendUint(out, uint64(t.Attempt), 10)
	}
	return append(out, `,"n":"running"}`...), nil
}

// tell appends what a row's commands mean to readers. View and before are as of the row before: what readers know and a
// recovery wants again is not told again.
func tell(told []Told, view *View, facts []engine.Fact, commands []engine.Command, before, after engine.Status) []Told {
	if len(commands) > manyAtOnce {
		told = slices.Grow(told, len(commands)+1)
	}
	for _, c := range commands {
		switch c := c.(type) {
		case engine.RunNode:
			if c.Cause.Kind != engine.CauseRun || c.Cause.Wake != nil && c.Cause.Wake.By != engine.WakeAnswer {
				continue
			}
			t := Told{What: ToldNode, Activation: c.Activation, Generation: c.Generation, Node: engine.NodeRunning}
			switch {
			case c.Attempt.Attempt > 1:
				t.Attempt = c.Attempt.Attempt
			case c.Cause.Wake != nil:
				t.Attempt = 2 // it goes on; its beginning was told
			}
			told = append(told, t)
		case engine.EndNode:
			told = append(told, Told{What: ToldNode, Activation: c.Activation, Generation: c.Generation, Node: c.Status, Error: c.Error})
		case engine.Sleep:
			if c.Purpose == engine.TimerRetry && !view.retries(c.Activation, c.Until) {
				t := Told{What: ToldNode, Activation: c.Activation, Node: engine.NodeRetrying, Time: c.Until}
				if open := view.Open[c.Activation]; open != nil { // unless the failure says otherwise, which most do
					t.Generation, t.Attempt = open.Generation, open.Attempt+1
				}
				for _, f := range facts {
					if failed, ok := f.(engine.NodeFailed); ok && failed.Activation == c.Activation {
						t.Generation, t.Attempt, t.Error = failed.Generation, failed.Attempt.Attempt+1, failed.Error
					}
				}
				told = append(told, t)
			}
		case engine.Ask:
			if asked, open := view.Questions[c.Ask]; open && asked.Activation == c.Activation && slices.ContainsFunc(facts, recovers) {
				continue
			}
			told = append(told, Told{
				What: ToldNode, Activation: c.Activation, Generation: c.Generation, Node: engine.NodeWaitingInput, Ask: c.Ask, Purpose: c.Purpose, Ref: c.Ref,
			})
		case engine.Withdraw:
			told = append(told, Told{What: ToldWithdrawn, Ask: c.Ask})
		}
	}
	if after == before {
		return told
	}
	t := Told{What: ToldExecution, Status: after}
	for _, c := range commands {
		if end, ok := c.(engine.Finish); ok {
			t.Error, t.Activation = end.Error, end.Node
		}
	}
	return append(told, t)
}

// manyAtOnce is from how many on there is room made for all of them before the first is added.
const manyAtOnce = 8

func recovers(f engine.Fact) bool {
	_, ok := f.(engine.ExecutionRecovered)
	return ok
}

// Tell completes the row: what its commands mean to readers is recorded with it.
func (t *Turn) Tell(commands []engine.Command) {
	if slices.ContainsFunc(commands, t.fold.view.knows) {
		commands = slices.DeleteFunc(slices.Clone(commands), t.fold.view.knows)
	}
	t.row.Told = tell(t.row.Told, t.fold.view, t.row.Facts, commands, t.before, t.fold.state.Status())
	t.fold.view.Apply(&t.row)
}
