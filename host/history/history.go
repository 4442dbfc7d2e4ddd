// Package history tells in order what happened to an execution, from its journal: activations with what they were given, asked and retried,
// and what people did.
//
// Who tells executions to people imports it.
package history

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// Item is one thing that happened to an execution: an activation, or what somebody did.
type Item struct {
	// Execution is where it happened: for what a fork shares with its source, the source.
	Execution string
	// Status is that of the execution when the item last changed.
	Status engine.Status
	Time   int64
	// Act is what somebody did; nil for an activation.
	Act *host.Act

	Activation host.ActivationView
	// Input is what the activation was given, Sent what it sends if its effect is once.
	Input, Sent json.RawMessage
	// Asks are the questions that it has asked, in order; those about what its input lacks among them.
	Asks    []Asking
	Retries []Retry
	// Children are the executions that it has started.
	Children []string
}

// Asking is a question that was asked.
type Asking struct {
	Ask     engine.AskID
	Purpose string
	Ref     engine.Ref
	Time    int64
}

// Retry is a failed attempt that another one followed.
type Retry struct {
	Attempt      uint32
	Error        *fault.Error
	Time, NextAt int64
}

// ActionFork is how a fork began. Nobody asks for it with a [host.Request].
const ActionFork host.Action = "fork"

// Read returns in order what happened, beginning with the execution that a fork was made from: at most limit items after the first
// "after" ones. More says that there are others. Fillings of inputs are left out; what they ask belongs to their node.
func Read(ctx context.Context, j host.Journal, after, limit int) (items []*Item, more bool, err error) {
	h := &historian{after: after, limit: limit}
	err = h.readJournal(ctx, j, math.MaxUint64)
	return h.items, h.more, err
}

// historian gathers the items of a part of a history.
type historian struct {
	after, limit int

	items []*Item
	count int
	more  bool
	// place are the items of the activations of the journal that is read, touched those that the present row changes.
	place   map[engine.ActivationID]*Item
	touched []*Item
}

// addItem takes an item in, if it belongs to the part.
func (h *historian) addItem(item *Item) bool {
	if h.count++; h.count <= h.after {
		return false
	}
	if len(h.items) == h.limit {
		h.more = true
		return false
	}
	h.items = append(h.items, item)
	h.touched = append(h.touched, item)
	return true
}

// readJournal goes through a journal up to a row.
func (h *historian) readJournal(ctx context.Context, j host.Journal, until uint64) error {
	f, err := j.Follow(ctx, 0, true)
	if err != nil {
		return err
	}
	place := map[engine.ActivationID]*Item{}
	f.Watch(func(a *host.ActivationView) {
		delete(place, a.ID) // a later generation is another item
		if item := (&Item{Execution: j.Execution, Activation: *a}); !host.Filling(j.Graph, a.ID) && h.addItem(item) {
			place[a.ID] = item
		}
	}, func(a *host.ActivationView) {
		if item := place[a.ID]; item != nil {
			item.Activation = *a
			h.touched = append(h.touched, item)
		}
	})
	for row, err := range j.Rows(ctx, 0) {
		if err != nil {
			return err
		}
		if row.Seq > until || h.more && !h.open() {
			return nil
		}
		h.touched = nil
		if err := h.before(ctx, j, &row); err != nil {
			return err
		}
		h.place = place
		commands, err := f.Apply(&row)
		if err != nil {
			return err
		}
		if err := h.takeRow(j, f, &row, commands); err != nil {
			return err
		}
	}
	return nil
}

// open says that an activation of the part has not ended.
func (h *historian) open() bool {
	return slices.ContainsFunc(h.items, func(i *Item) bool { return i.Act == nil && i.Activation.Ended == 0 })
}

// before tells what a row says that people did, which is why the rest of it happened. A fork begins with what it shares.
func (h *historian) before(ctx context.Context, j host.Journal, row *host.Row) error {
	for _, fact := range row.Facts {
		if fork, ok := fact.(engine.ExecutionForked); ok {
			if err := h.shared(ctx, j, row, fork); err != nil {
				return err
			}
			act := host.Act{Action: ActionFork, By: fork.By, Reason: fork.Reason, Activation: fork.Activation, Time: row.Time}
			h.addItem(&Item{Execution: j.Execution, Time: row.Time, Act: &act})
			continue
		}
		if act, ok := host.ActOf(fact); ok && act.Action != host.ActionAnswer { // answers stand with their questions
			act.Time = row.Time
			h.addItem(&Item{Execution: j.Execution, Time: row.Time, Act: &act})
		}
	}
	return nil
}

// shared tells what a fork shares with its source.
func (h *historian) shared(ctx context.Context, j host.Journal, row *host.Row, fork engine.ExecutionForked) error {
	var past struct {
		View struct {
			Seq uint64 `json:"seq"`
		} `json:"view"`
	}
	if len(row.Values) == 0 || json.Unmarshal(row.Values[0], &past) != nil {
		return nil // a fold says so; a history tells what it can
	}
	j.Execution = fork.Source
	err := h.readJournal(ctx, j, past.View.Seq)
	h.touched = nil
	if fault.CodeOf(err) == fault.NotFound { // it is no longer kept
		return nil
	}
	return err
}

// takeRow notes what a row has made of the activations of the part.
func (h *historian) takeRow(j host.Journal, f *host.Follower, row *host.Row, commands []engine.Command) error {
	for _, c := range commands {
		switch c := c.(type) {
		case engine.RunNode:
			item := h.place[c.Activation]
			if item == nil || c.Cause.Kind != engine.CauseRun || c.Cause.Wake != nil {
				continue
			}
			input, err := f.Input(c)
			if err == nil {
				item.Input = input
			} else if code := fault.From(err).Code.Class(); code == fault.ClassUnavailable {
				return err // it could not be read now; otherwise that is why the activation fails
			}
			if sent, once := f.Sent(c); once {
				item.Sent = sent
			}
		case engine.StartChild:
			if item := h.place[c.Activation]; item != nil && !slices.Contains(item.Children, c.Child) {
				item.Children = append(item.Children, c.Child)
			}
		}
	}
	for i := range row.Told {
		t := &row.Told[i]
		if t.What != host.ToldNode {
			continue
		}
		id := t.Activation
		if host.Filling(j.Graph, id) {
			scope, _ := id.Split()
			id, _ = host.OwnerOf(scope)
		}
		item := h.place[id]
		if item == nil {
			continue
		}
		switch t.Node {
		case engine.NodeRetrying:
			item.Retries = append(item.Retries, Retry{max(t.Attempt, 2) - 1, t.Error, row.Time, t.Time})
		case engine.NodeWaitingInput:
			if !slices.ContainsFunc(item.Asks, func(a Asking) bool { return a.Ask == t.Ask }) {
				item.Asks = append(item.Asks, Asking{t.Ask, t.Purpose, t.Ref, row.Time})
			}
			h.touched = append(h.touched, item)
		}
	}
	for _, item := range h.touched {
		if item.Status = f.View().Status; item.Time == 0 {
			item.Time = row.Time
		}
	}
	return nil
}
