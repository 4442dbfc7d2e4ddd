package host

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/workflow"
)

// Journal is the journal of one execution, to be read with the revision that the execution is pinned to.
type Journal struct {
	Source    Source
	Principal identity.Principal
	Execution string
	Graph     *workflow.Graph
	Revision  Revision
	Programs  engine.Programs
	// Child reads the graphs of workflows that nodes run; it is needed to fork. Nil: they count as asking no questions.
	Child ChildGraph
}

// Loader reads what a fold of the journal no longer has at hand.
func (j Journal) Loader(ctx context.Context) Loader {
	return Loader{
		Row: func(execution string, seq uint64) (Row, error) {
			for row, err := range j.Source.Rows(ctx, j.Principal, execution, seq-1) {
				return row, err
			}
			return Row{}, fault.Newf(fault.Unreadable, "execution %q has no row %d", execution, seq)
		},
		Blob: func(b Blob) (json.RawMessage, error) { return j.Source.Blob(ctx, j.Principal, b) },
	}
}

// View reads the execution as people see it, and what it was started with. It begins with the last snapshot, so it costs
// only what happened since. What cannot be read is left out; a fold reports the errors.
func (j Journal) View(ctx context.Context) (*View, Start, error) {
	return j.ViewRows(ctx, func(int, *Row) {})
}

// ViewRows is View, and calls each with the rows that it reads and the level of their values. A row is valid during the call.
func (j Journal) ViewRows(ctx context.Context, each func(level int, row *Row)) (*View, Start, error) {
	view, start := NewView(j.Graph), Start{}
	body, ok, err := j.Source.Snapshot(ctx, j.Principal, j.Execution)
	if err != nil {
		return nil, start, err
	}
	if ok {
		// A snapshot that cannot be used is ignored: the journal has everything.
		if v, s, err := RestoreView(j.Graph, body); err == nil {
			view, start = v, s
		}
	}
	return j.viewFrom(view, start, j.Rows(ctx, view.Seq), each)
}

// ViewOf is ViewRows for a journal whose rows are at hand, all of them.
func (j Journal) ViewOf(ctx context.Context, rows iter.Seq2[Row, error], each func(level int, row *Row)) (*View, Start, error) {
	return j.viewFrom(NewView(j.Graph), Start{}, j.withInput(ctx, rows), each)
}

// viewFrom brings a view up to date with the rows that follow it.
func (j Journal) viewFrom(view *View, start Start, rows iter.Seq2[Row, error], each func(level int, row *Row)) (*View, Start, error) {
	var row Row // one variable for all rows, which callers do not keep
	for next, err := range rows {
		if err != nil {
			return nil, start, err
		}
		if row = next; row.Seq == 1 {
			if start, err = startOf(&row); err != nil && !IsUnreadable(err) {
				return nil, start, err
			}
		}
		view.Apply(&row)
		each(start.Level(), &row)
	}
	if view.Seq == 0 {
		return nil, start, fault.Newf(fault.NotFound, "execution %q has no journal", j.Execution)
	}
	return view, start, nil
}

// Rows reads the rows after a sequence number, the first one with what it begins with.
func (j Journal) Rows(ctx context.Context, after uint64) iter.Seq2[Row, error] {
	return j.withInput(ctx, j.Source.Rows(ctx, j.Principal, j.Execution, after))
}

// withInput puts what an execution begins with into its first row, if it is kept beside the journal.
func (j Journal) withInput(ctx context.Context, rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range rows {
			if blob, large := row.Large[0]; err == nil && large && row.Seq == 1 {
				row.Values[0], err = j.Source.Blob(ctx, j.Principal, blob)
			}
			if err == nil && row.gives() {
				err = j.loadGiven(ctx, &row)
			}
			if row.Seq == 1 && IsUnreadable(err) {
				row.Facts, row.Values, row.Large, row.Beside, row.Unreadable, err = nil, nil, nil, nil, err, nil
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Value reads a value of the execution by its reference. For one that is kept beside the journal it returns the name only.
func (j Journal) Value(ctx context.Context, start Start, ref engine.Ref) (value json.RawMessage, large *Blob, err error) {
	place, err := ParseRef(ref)
	if err != nil {
		return nil, nil, err
	}
	execution, err := start.owner(j.Execution, place)
	if err != nil {
		return nil, nil, err
	}
	row, err := j.Loader(ctx).Row(execution, place.Seq)
	if err != nil {
		return nil, nil, err
	}
	if place.N >= len(row.Values) {
		return nil, nil, fault.Newf(fault.Unreadable, "row %d of execution %q has no value %d", place.Seq, execution, place.N)
	}
	if blob, ok := row.Large[place.N]; ok {
		return nil, &blob, nil
	}
	return row.Shown(place.N), nil, nil
}

// Fold reads the execution with its data. It begins with the last snapshot.
func (j Journal) Fold(ctx context.Context) (*Fold, error) {
	fold, _, err := j.Restore(ctx)
	if err != nil {
		return nil, err
	}
	_, _, err = j.Replay(ctx, fold)
	return fold, err
}

// Restore makes a fold of the last snapshot, or of nothing when there is none that can be used, to be brought up to date with
// [Journal.Replay]. It returns the snapshot's size.
func (j Journal) Restore(ctx context.Context) (fold *Fold, size int, err error) {
	body, ok, err := j.Source.Snapshot(ctx, j.Principal, j.Execution)
	if err != nil {
		return nil, 0, err
	}
	if ok {
		if fold, err := RestoreFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx), body); err == nil {
			return fold, len(body), nil
		}
	}
	return NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx)), 0, nil
}

// Replay folds the rows that a fold has not seen, and says how many there were.
func (j Journal) Replay(ctx context.Context, fold *Fold) (rows, bytes int, err error) {
	return j.replay(ctx, fold, func(Row, []engine.Command) (bool, error) { return true, nil })
}

func (j Journal) replay(ctx context.Context, fold *Fold, each func(Row, []engine.Command) (more bool, err error)) (rows, bytes int, err error) {
	for row, err := range j.Rows(ctx, fold.state.Seq()) {
		if err != nil {
			return rows, bytes, err
		}
		commands, err := fold.Apply(row)
		if err != nil {
			return rows, bytes, Unreadable(err, "row %d of execution %q: %w", row.Seq, j.Execution)
		}
		rows, bytes = rows+1, bytes+row.Stored+row.Spilled()
		more, err := each(row, commands)
		if err != nil || !more {
			return rows, bytes, err
		}
	}
	return rows, bytes, nil
}

// Activation reads one activation, with its input as its last generation was given it and where that came from.
func (j Journal) Activation(ctx context.Context, id engine.ActivationID) (record ActivationRecord, found bool, err error) {
	fold := NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx))
	note := func(a *ActivationView) {
		if a.ID == id {
			record.ActivationView, found = *a, true
		}
	}
	fold.view.began, fold.view.changed = note, note
	_, _, err = j.replay(ctx, fold, func(_ Row, commands []engine.Command) (bool, error) {
		for _, c := range commands {
			run, ok := c.(engine.RunNode)
			if !ok || run.Activation != id || run.Cause.Kind != engine.CauseRun || run.Cause.Wake != nil {
				continue
			}
			if fold.once(run) {
				record.Sent = fold.sent(run)
			}
			record.Input, record.Origins, record.InputError = fold.inspect(run)
			if run.Node < 0 {
				record.Origins = nil
				continue
			}
			if record.Origins, err = fold.pinnedBy(record.Origins); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if IsUnreadable(err) { // its input is not known, but its end is
		record.ActivationView, found, err = j.passedOver(ctx, id, err)
		record.InputError = err
		return record, found, nil
	}
	if n := len(fold.start.Ancestors); err == nil && !found && n > 0 {
		j.Execution = fold.start.Ancestors[n-1] // it ended before the fork
		return j.Activation(ctx, id)
	}
	return record, found, err
}

// Standpoint reads the journal up to where a generation of an activation begins, and returns its input, nil if it cannot be built, and what
// it reads. The caller may keep the data.
func (j Journal) Standpoint(ctx context.Context, id engine.ActivationID, generation uint32) (input json.RawMessage, data Data, found bool, err error) {
	fold := NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx))
	_, _, err = j.replay(ctx, fold, func(_ Row, commands []engine.Command) (more bool, err error) {
		for _, c := range commands {
			run, ok := c.(engine.RunNode)
			if !ok || run.Activation != id || run.Generation != generation || run.Node < 0 || run.Cause.Kind != engine.CauseRun || run.Cause.Wake != nil {
				continue
			}
			if data, err = fold.Data(run); err != nil {
				return false, err
			}
			if input, err = fold.Input(run); err != nil {
				input = nil // which is why it failed, as its record says
			}
			found = true
			return false, nil
		}
		return true, nil
	})
	if n := len(fold.start.Ancestors); err == nil && !found && n > 0 {
		j.Execution = fold.start.Ancestors[n-1] // it began before the fork
		return j.Standpoint(ctx, id, generation)
	}
	return input, data, found, err
}

// End reads the journal to its end, and returns what can be read at the top level then. The caller may keep the data.
func (j Journal) End(ctx context.Context) (Data, error) {
	fold, err := j.Fold(ctx)
	if err != nil {
		return Data{}, err
	}
	return Data{Execution: fold.id, Start: fold.start, Layers: fold.layers, Lock: fold.lock, View: dataflow.View{AsOf: fold.state.Seq()}}, nil
}

// passedOver reads one activation without a fold, and returns it with the reason why there is no fold.
func (j Journal) passedOver(ctx context.Context, id engine.ActivationID, why error) (a ActivationView, found bool, err error) {
	view := NewView(j.Graph)
	note := func(v *ActivationView) {
		if v.ID == id {
			a, found = *v, true
		}
	}
	view.began, view.changed = note, note
	for row, err := range j.Rows(ctx, 0) {
		if err != nil {
			return a, found, err
		}
		view.Apply(&row)
	}
	return a, found, why
}

// ActivationRecord is an activation with its input.
type ActivationRecord struct {
	ActivationView
	Input json.RawMessage
	// Origins says where the values of the input came from.
	Origins json.RawMessage
	// Sent is what a once attempt sends, as people may see it; nil for others.
	Sent json.RawMessage
	// InputError is why the input could not be built, which is then why the activation failed.
	InputError error
}

// inspect returns the input that a run gets, and where it came from, as a list.
func (f *Fold) inspect(run engine.RunNode) (input, origins json.RawMessage, err error) {
	values, err := f.Inputs(run)
	if err != nil {
		return nil, nil, err
	}
	data, err := f.Data(run)
	if err != nil {
		return nil, nil, err
	}
	return f.revision.Inspect(run, values, data)
}

// Input returns the input that a run gets, as long as the run is open.
func (f *Fold) Input(run engine.RunNode) (json.RawMessage, error) {
	input, _, err := f.inspect(run)
	return input, err
}

// Activations lists activations in the order they began, after the first so many and at most limit of them; node narrows
// it to a node and the steps inside it, when it is not empty. More says that there are others.
func (j Journal) Activations(ctx context.Context, node string, after, limit int) (list []ActivationView, more bool, err error) {
	view := NewView(j.Graph)
	place := map[engine.ActivationID]int{}
	count, open := 0, 0
	view.began = func(a *ActivationView) {
		if shown, _ := Shown(j.Graph, a.ID); node != "" && a.Node != node && shown != node {
			return
		}
		if count++; count > after && len(list) < limit {
			place[a.ID] = len(list)
			list = append(list, *a)
			open++
		} else {
			delete(place, a.ID) // a later generation, which is another entry
			more = more || count > after
		}
	}
	view.changed = func(a *ActivationView) {
		i, ok := place[a.ID]
		if !ok {
			return
		}
		if list[i].Ended == 0 && a.Ended != 0 {
			open--
		}
		list[i] = *a
	}
	for row, err := range j.Rows(ctx, 0) {
		if err != nil {
			return nil, false, err
		}
		view.Apply(&row)
		if more && open == 0 {
			break
		}
	}
	return list, more, nil
}

// pinnedBy adds who has pinned the values of an input that come from pinned nodes.
func (f *Fold) pinnedBy(lineage json.RawMessage) (json.RawMessage, error) {
	t := f.start.Test
	if t == nil || len(t.Pinned) == 0 || len(lineage) == 0 {
		return lineage, nil
	}
	var origins []dataflow.Origin
	if err := json.Unmarshal(lineage, &origins); err != nil {
		return nil, fault.Newf(fault.Internal, "the origins of an input cannot be read: %w", err)
	}
	for i := range origins {
		for j := range origins[i].Sources {
			if s := &origins[i].Sources[j]; slices.Contains(t.Pinned, s.Node) {
				s.PinnedBy = t.By
			}
		}
	}
	return json.Marshal(origins)
}
