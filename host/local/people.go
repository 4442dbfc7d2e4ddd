package local

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"tandem/engine"
	"tandem/host"
	"tandem/store"
)

// Question is a question to people that a row asks.
type Question struct {
	store.Ref
	// Root is the execution that somebody started and that this one came of, or this one.
	Root       string
	WorkflowID string
	// User is who started it, Language the one it speaks.
	User, Language string
	// Requesters are the others who want what it does; Forks are how it came of other executions, the last fork last.
	Requesters []string
	Forks      []host.Fork
	// Again is why it is asked again, if it is.
	Again []host.AskedAgain
	Node  string
	// Tool is the tool that the activation calls, if it is a step that calls one.
	Tool       string
	Activation engine.ActivationID
	Attempt    int
	Ask        engine.AskID
	Purpose    string
	// Begun is set when the work was under way in the execution that this one was forked from, and not in this one.
	Begun *BegunIn
	// Why is what is known of an outcome that is asked about.
	Why     engine.Doubt
	Request json.RawMessage
	Time    int64
}

// BegunIn is where an attempt was under way that a fork does not repeat, and how its activation stands there.
type BegunIn struct {
	Execution string
	Status    engine.NodeStatus
}

// begunIn tells how the activations stand in the source of a fork about which people are asked whether they are done.
func begunIn(ctx context.Context, source host.Journal, commands []engine.Command) (map[engine.ActivationID]engine.NodeStatus, error) {
	begun := map[engine.ActivationID]engine.NodeStatus{}
	for _, c := range commands {
		ask, ok := c.(engine.Ask)
		if !ok || ask.Purpose != engine.PurposeOutcomeUnknown {
			continue
		}
		record, found, err := source.Activation(ctx, ask.Activation)
		if err != nil {
			return nil, err
		}
		if found {
			begun[ask.Activation] = record.Status
		}
	}
	return begun, nil
}

// people adds questions that are asked and withdrawn to an append, and that an operator has paused or resumed the execution.
func (o *owner) people(a *store.Append, row *host.Row, commands []engine.Command) error {
	if o.host.opts.Asked == nil {
		return nil
	}
	for _, f := range row.Facts {
		a.Requesters = requester(a.Requesters, host.RequestedBy(f))
		switch f := f.(type) {
		case engine.ExecutionPaused:
			a.Pause, a.Resume = &store.Pause{
				ID: fmt.Sprintf("%s:%d", o.ref.Execution, row.Seq), Execution: o.ref.Execution, Reason: "operator", Status: store.PauseActive,
				Paused: row.Time, Context: by(f.By, f.TokenMadeBy, f.Reason),
			}, nil
		case engine.ExecutionResumed:
			a.Resume = &store.PauseEnd{Status: store.PauseResumed, Reason: store.ResumedByOperator,
				Data: by(f.By, f.TokenMadeBy, f.Reason), Time: row.Time}
		case engine.AskAnswered:
			// Who answered has ended the row, unless the answer came from inside.
			a.Withdraw = o.withdraw(a.Withdraw, f.Ask)
		}
	}
	for _, c := range commands {
		switch c := c.(type) {
		case engine.Ask:
			q, err := o.question(c, row.Time)
			if err != nil {
				return err
			}
			if f, forked := row.Facts[0].(engine.ExecutionForked); forked && c.Purpose == engine.PurposeOutcomeUnknown {
				q.Begun = &BegunIn{f.Source, o.begunIn[c.Activation]}
			}
			a.Ask = append(a.Ask, o.host.opts.Asked(q))
		case engine.Withdraw:
			a.Withdraw = o.withdraw(a.Withdraw, c.Ask)
		}
	}
	o.pausesBelow(a, row)
	// One that is not paused any more although it was not resumed was canceled, or its time is up. Its end may come later.
	if stopped := o.status == engine.StatusPaused || a.Pause != nil; stopped && a.Resume == nil &&
		o.fold.State().Status() != engine.StatusPaused {
		a.Resume = &store.PauseEnd{Status: store.PauseCanceled, Reason: store.ResumedByEnd, Time: row.Time}
	}
	return nil
}

// pausesBelow begins a pause for each child that waits for people now, and ends those of children that do so no longer.
func (o *owner) pausesBelow(a *store.Append, row *host.Row) {
	below := o.fold.State().AsksBelow()
	if len(below) == 0 && len(o.asksBelow) == 0 {
		return
	}
	for _, child := range slices.Sorted(maps.Keys(below)) {
		if _, known := o.asksBelow[child]; known {
			continue
		}
		node, _ := host.Shown(o.revision.Graph, below[child])
		pause := store.Pause{ID: o.ref.Execution + ":" + child, Execution: o.ref.Execution, Node: node, Reason: store.PauseHuman,
			Status: store.PauseActive, Paused: row.Time, Context: childContext(child)}
		a.PauseBelow = append(a.PauseBelow, pause)
	}
	for _, child := range slices.Sorted(maps.Keys(o.asksBelow)) {
		if _, still := below[child]; still {
			continue
		}
		end := store.PauseEnd{ID: o.ref.Execution + ":" + child, Status: store.PauseCanceled, Reason: store.ResumedByEnd, Time: row.Time}
		if !o.fold.State().Ending() && slices.ContainsFunc(row.Facts, func(f engine.Fact) bool { return goesOnAbove(f, child) }) {
			end.Status, end.Reason = store.PauseResumed, store.ResumedByAnswer
		}
		a.ResumeBelow = append(a.ResumeBelow, end)
	}
	o.asksBelow = below
}

// goesOnAbove says that a fact is that a child has what it asked for.
func goesOnAbove(f engine.Fact, child string) bool {
	switch f := f.(type) {
	case engine.ChildWaiting:
		return f.Child == child
	case engine.ChildFinished:
		return f.Child == child && f.Status != engine.StatusCanceled
	}
	return false
}

// childContext tells which child a pause is about.
func childContext(child string) json.RawMessage {
	raw, err := json.Marshal(struct {
		Child string `json:"child_execution_id"`
	}{child})
	if err != nil { // a text is always JSON
		return nil
	}
	return raw
}

func requester(list []string, user string) []string {
	if user == "" || slices.Contains(list, user) {
		return list
	}
	return append(list, user)
}

func (o *owner) withdraw(list []string, ask engine.AskID) []string {
	return append(list, host.InteractionID(o.ref.Workspace, o.ref.Execution, ask))
}

// by is who did something and why, as a pause keeps it.
func by(user, tokenMadeBy, reason string) json.RawMessage {
	if user == "" {
		return nil
	}
	raw, err := json.Marshal(struct {
		By          string `json:"by"`
		TokenMadeBy string `json:"token_made_by,omitempty"`
		Reason      string `json:"reason,omitempty"`
	}{user, tokenMadeBy, reason})
	if err != nil { // a text is always JSON
		return nil
	}
	return raw
}

func (o *owner) question(c engine.Ask, now int64) (Question, error) {
	_, start := o.fold.Execution()
	q := Question{
		Ref: o.ref, Root: start.Root, WorkflowID: start.WorkflowID, User: start.UserID, Language: start.Language,
		Requesters: start.Requesters, Forks: start.Told(), Node: host.NodeOf(o.revision.Graph, c.Activation),
		Tool: o.fold.Tool(c.Activation), Activation: c.Activation, Ask: c.Ask, Purpose: c.Purpose, Why: c.Why, Time: now,
	}
	if q.Root == "" {
		q.Root = o.ref.Execution
	}
	if a, ok := o.fold.State().Activation(c.Activation); ok {
		q.Attempt = int(a.Attempt)
	}
	var err error
	if q.Again, err = o.fold.AskedAgain(c.Activation); err != nil {
		return q, err
	}
	if c.Purpose == engine.PurposeOutcomeUnknown {
		q.Request = o.fold.Sent(c.Activation)
		return q, nil
	}
	if c.Ref == "" {
		return q, nil
	}
	if q.Request, err = o.fold.Value(c.Ref); err != nil {
		return q, fmt.Errorf("what %q asks: %w", c.Ask, err)
	}
	return q, nil
}
