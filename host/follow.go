package host

import (
	"context"
	"encoding/json"

	"tandem/engine"
	"tandem/fault"
)

// Follower reads an execution row by row and knows its state between two rows, which is needed to describe a row to people. Unlike an
// owner it makes no decisions. It must not be used by several goroutines at once.
type Follower struct {
	journal Journal
	start   Start
	view    *View
	// fold is set for followers that need inputs; it has the view then.
	fold *Fold
}

// Follow returns a follower that stands behind the row seq, or behind the last row when there are not as many. It begins
// with the last snapshot, if that is not too late. With inputs the follower can return the inputs of runs, which costs
// more. The context applies to everything that is read for the follower, later too.
func (j Journal) Follow(ctx context.Context, seq uint64, inputs bool) (*Follower, error) {
	f := &Follower{journal: j, view: NewView(j.Graph)}
	if inputs {
		f.fold = NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx))
		f.view = f.fold.view
	}
	if seq > 0 {
		if err := f.restore(ctx, seq); err != nil {
			return nil, err
		}
	}
	for row, err := range j.Rows(ctx, f.view.Seq) {
		if err != nil {
			return nil, err
		}
		if row.Seq > seq {
			break
		}
		if _, err := f.Apply(&row); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// restore begins with the last snapshot. A snapshot that is too late or cannot be used is ignored: the journal has everything.
func (f *Follower) restore(ctx context.Context, seq uint64) error {
	j := f.journal
	body, ok, err := j.Source.Snapshot(ctx, j.Principal, j.Execution)
	if err != nil || !ok {
		return err
	}
	view, start, err := RestoreView(j.Graph, body)
	if err != nil || view.Seq > seq {
		return nil
	}
	if f.fold != nil {
		fold, err := RestoreFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx), body)
		if err != nil {
			return nil
		}
		f.fold, view = fold, fold.view
	}
	f.view, f.start = view, start
	return nil
}

// View is the present state. It changes with the next Apply.
func (f *Follower) View() *View { return f.view }

// Start is what the execution was started with.
func (f *Follower) Start() Start { return f.start }

// Seq is the row that the follower stands behind.
func (f *Follower) Seq() uint64 { return f.view.Seq }

// Apply adds the next row of the journal. If the follower reads inputs, it returns the commands that follow from the row.
func (f *Follower) Apply(row *Row) ([]engine.Command, error) {
	if row.Seq == 1 {
		start, err := startOf(row)
		if err != nil && !IsUnreadable(err) {
			return nil, err
		}
		f.start = start
	}
	if f.fold == nil {
		return nil, f.view.follow(row)
	}
	commands, err := f.fold.Apply(*row)
	if IsUnreadable(err) && row.Seq == f.view.Seq+1 {
		f.fold = nil // from here on inputs are not known, but what happened is
		return nil, f.view.follow(row)
	}
	if err != nil {
		return nil, Unreadable(err, "row %d of execution %q: %w", row.Seq, f.journal.Execution)
	}
	return commands, nil
}

// Run returns the last run of an activation that has not ended, or that ended so that it can be tried again. It takes a follower
// with inputs.
func (f *Follower) Run(id engine.ActivationID) (engine.RunNode, bool) {
	if f.fold == nil {
		return engine.RunNode{}, false
	}
	run, ok := f.fold.runs[id]
	return run.command(), ok
}

// Watch sets the functions that are called when an activation begins, and each time it changes.
func (f *Follower) Watch(began, changed func(*ActivationView)) {
	f.view.began, f.view.changed = began, changed
}

// Sent returns what a run that the last row requested sends, if its effect is once.
func (f *Follower) Sent(run engine.RunNode) (sent json.RawMessage, once bool) {
	if !f.fold.once(run) {
		return nil, false
	}
	return f.fold.sent(run), true
}

// Input returns the input of a run that the last row requested.
func (f *Follower) Input(run engine.RunNode) (json.RawMessage, error) {
	if f.fold == nil {
		return nil, fault.New(fault.Internal, "the follower was made without inputs")
	}
	return f.fold.Input(run)
}

// Value returns a value that a row refers to, mostly one of its own. For one that is kept beside the journal it returns the name only.
func (f *Follower) Value(ctx context.Context, row *Row, ref engine.Ref) (value json.RawMessage, large *Blob, err error) {
	place, err := ParseRef(ref)
	if err != nil {
		return nil, nil, err
	}
	if place.Seq != row.Seq || place.Level != f.start.Level() || place.N >= len(row.Values) {
		return f.journal.Value(ctx, f.start, ref)
	}
	if blob, ok := row.Large[place.N]; ok {
		return nil, &blob, nil
	}
	return row.Shown(place.N), nil, nil
}
