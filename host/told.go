package host

import (
	"encoding/json"
	"slices"

	"tandem/engine"
	"tandem/fault"
)

// Told is what a row means to people who follow an execution, as far as its facts alone do not say it: which nodes it began,
// which it ended without an outcome of their own, which status the execution has. It is recorded with the row, so that
// readers need no engine and see the same at any time.
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

// Telling is the sort of an entry.
type Telling string

// The sorts of entries.
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
	// ToldWarnings: warnings of a run that ends with this row which are new for its activation: a list of [dataflow.Warning].
	ToldWarnings Telling = "warnings"
)

// First says whether the first attempt of an activation's generation begins.
func (t Told) First() bool {
	return t.What == ToldNode && t.Node == engine.NodeRunning && t.Attempt <= 1
}

// append writes what is told as [json.Marshal] does. It is written by hand, since nearly every row tells something; what is seldom told is
// left to the library.
func (t *Told) append(out []byte) ([]byte, error) {
	if t.Error != nil || t.Detail != nil {
		raw, err := json.Marshal(t)
		return append(out, raw...), err
	}
	out = engine.AppendText(append(out, `{"w":`...), string(t.What))
	out = engine.AppendField(out, `,"a":`, string(t.Activation))
	out = engine.AppendNumber(out, `,"g":`, int64(t.Generation))
	out = engine.AppendNumber(out, `,"t":`, int64(t.Attempt))
	out = engine.AppendField(out, `,"n":`, string(t.Node))
	out = engine.AppendField(out, `,"s":`, string(t.Status))
	out = engine.AppendNumber(out, `,"u":`, t.Time)
	out = engine.AppendField(out, `,"k":`, string(t.Ask))
	out = engine.AppendField(out, `,"p":`, t.Purpose)
	out = engine.AppendField(out, `,"r":`, string(t.Ref))
	return append(out, '}'), nil
}

// tell appends what a row's commands mean to readers. View and before are as of the row before: what a recovery repeats
// and readers know is left out.
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
				What: ToldNode, Activation: c.Activation, Generation: c.Generation, Node: engine.NodeWaitingInput, Ask: c.Ask,
				Purpose: c.Purpose, Ref: c.Ref,
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

// manyAtOnce is the number of entries from which on room is made for all of them first.
const manyAtOnce = 8

func recovers(f engine.Fact) bool {
	_, ok := f.(engine.ExecutionRecovered)
	return ok
}

// Tell completes the row and shows it.
func (t *Turn) Tell(commands []engine.Command) {
	t.Complete(commands)
	t.Show()
}

// Complete completes the row: what its commands mean to readers is recorded with it. They see it when Show is called.
func (t *Turn) Complete(commands []engine.Command) {
	if slices.ContainsFunc(commands, t.fold.view.knows) {
		commands = slices.DeleteFunc(slices.Clone(commands), t.fold.view.knows)
	}
	t.row.Told = tell(t.row.Told, t.fold.view, t.row.Facts, commands, t.before, t.fold.state.Status())
}

// Show adds the row, which is complete, to what readers see. If it tells of many nodes, that goes on while the row is encoded and
// written: [Fold.View] and [Fold.Begin] wait for it.
func (t *Turn) Show() {
	if len(t.row.Told) < wideRow {
		t.fold.view.Apply(&t.row)
		return
	}
	t.fold.showing.Go(func() { t.fold.view.Apply(&t.row) })
}

// wideRow is how much is told with a row that is worth a second goroutine.
const wideRow = 128

// View is the execution as people look at it; it is not to be applied to.
func (f *Fold) View() *View {
	f.showing.Wait()
	return f.view
}
