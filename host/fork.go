package host

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/text"
)

// A fork begins with what its source knew as of the row that made an activation ready. It refers to the source's values
// and holds copies of none.
type forkJSON struct {
	Start    Start       `json:"start"`
	View     *View       `json:"view"`
	Layers   []byte      `json:"layers"`
	Runs     []runJSON   `json:"runs,omitempty"`
	Frames   []frameJSON `json:"frames,omitempty"`
	Overlays []string    `json:"overlays,omitempty"`
}

// Fork reads the source up to the row that made the activation ready for the last time and begins the fork's first row.
// Turn and commands are those of the new execution's fold.
func (j Journal) Fork(ctx context.Context, r ForkRequest, now int64) (fold *Fold, turn *Turn, commands []engine.Command, err error) {
	seq, id, err := j.forkPoint(ctx, r)
	if err != nil {
		return nil, nil, nil, err
	}
	if question, ok := engine.ApprovalOf(id); ok { // people agreed to that one call only
		scope, name := id.Split()
		if _, isNode := nodeAt(j.Graph, scope, name); !isNode {
			switch at, _, err := j.forkPoint(ctx, ForkRequest{Activation: question}); {
			case err == nil:
				seq, id = at, question
			case fault.CodeOf(err) != fault.NotFound:
				return nil, nil, nil, err
			}
		}
	}
	source := NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx))
	if _, _, err := j.replay(ctx, source, func(row Row, _ []engine.Command) (bool, error) { return row.Seq < seq, nil }); err != nil {
		return nil, nil, nil, err
	}
	if a, ok := source.state.Activation(id); ok && a.Node < 0 && len(r.Input) > 0 {
		return nil, nil, nil, fault.Say(fault.Conflict, text.Of("input: %q is a step whose input comes from the steps before it and cannot be replaced; fork without an input, or skip it with an output", id))
	}
	var edits []forkEdit
	if len(r.Input) > 0 {
		if edits, err = source.editsOf(r, id); err != nil {
			return nil, nil, nil, err
		}
	}
	fold = NewFold(j.Graph, j.Revision, j.Programs, j.Loader(ctx))
	fold.id, fold.start.Ancestors = r.ID, append(slices.Clip(source.start.Ancestors), j.Execution)
	var values []json.RawMessage // after the past, which records them
	put := func(value json.RawMessage) engine.Ref {
		values = append(values, value)
		return Place{fold.start.Level(), 1, len(values)}.Ref()
	}
	fork := Fork{
		Level: fold.start.Level(), ID: r.ID, Source: j.Execution, Activation: id, Node: NodeOf(j.Graph, id), By: r.By,
		TokenMadeBy: r.TokenMadeBy, Reason: r.Reason, Time: now,
	}
	for _, e := range edits {
		fork.Edits = append(fork.Edits, e.record(put))
	}
	fact := engine.ExecutionForked{Semantics: engine.Semantics, Execution: r.ID, Source: j.Execution, Activation: id, By: r.By,
		TokenMadeBy: r.TokenMadeBy, Reason: r.Reason, NamesSource: true}
	if len(r.Input) > 0 {
		fact.Input, fact.Edits = put(r.Input), true
	}
	past := json.RawMessage(nil)
	if fact.State, past, err = source.past(fork, plain(edits)); err != nil {
		return nil, nil, nil, err
	}
	turn = fold.Begin(now)
	turn.Put(past)
	if fact.Again, err = AskAgain(source.state, j.Graph, id, len(edits) > 0, j.Child); err != nil {
		return nil, nil, nil, err
	}
	for _, value := range values {
		turn.Put(value)
	}
	if commands, err = turn.Add(fact); err == nil && len(edits) > 0 {
		err = checkLoops(source, fold)
	}
	return fold, turn, commands, err
}

// forkPoint finds the row that made the activation ready for the last time.
func (j Journal) forkPoint(ctx context.Context, r ForkRequest) (seq uint64, id engine.ActivationID, err error) {
	var ids []engine.ActivationID
	for row, err := range j.Rows(ctx, 0) {
		if err != nil {
			return 0, "", err
		}
		for _, t := range row.Told {
			if !t.First() || r.Activation != "" && t.Activation != r.Activation ||
				r.Activation == "" && NodeOf(j.Graph, t.Activation) != r.Node {
				continue
			}
			if seq, id = row.Seq, t.Activation; len(ids) == 0 || ids[len(ids)-1] != id {
				ids = append(ids, id)
			}
		}
	}
	switch {
	case seq == 0:
		return 0, "", fault.Say(fault.NotFound, text.Of("node %q has not begun in execution %q; a fork begins with an activation that has", firstOf(r.Node, string(r.Activation)), j.Execution))
	case len(ids) > 1 && r.Activation == "":
		return 0, "", fault.Say(fault.Conflict, text.Of("node %q has run %d times in execution %q; name one of its activations, %q for instance", r.Node, len(ids), j.Execution, ids[len(ids)-1]))
	}
	return seq, id, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// past is what a fork takes over: the engine's state and everything beside it, with the edits made.
func (f *Fold) past(fork Fork, edits []dataflow.Edit) (state, rest json.RawMessage, err error) {
	body, err := f.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	var snap foldJSON
	if err := json.Unmarshal(body, &snap); err != nil {
		return nil, nil, err
	}
	layers, err := dataflow.RestoreLayers(snap.Layers)
	if err != nil {
		return nil, nil, err
	}
	layers.Rebase()
	layers.Retitle(fork.ID)
	if err := layers.Edit(edits, func(name string) bool { return nodeNamed(f.graph, name) }); err != nil {
		return nil, nil, err
	}
	if snap.Layers, err = layers.Snapshot(); err != nil {
		return nil, nil, err
	}
	if err := snap.Start.fork(fork, edits); err != nil {
		return nil, nil, err
	}
	for i := range snap.Frames {
		if err := snap.Frames[i].edit(edits); err != nil {
			return nil, nil, err
		}
	}
	rest, err = json.Marshal(forkJSON{snap.Start, snap.View, snap.Layers, snap.Runs, snap.Frames, snap.Overlays})
	return snap.Engine, rest, err
}

// fork makes the start of a fork from that of its source: its requesters are the user who makes it and those of the source.
func (s *Start) fork(fork Fork, edits []dataflow.Edit) (err error) {
	s.Ancestors, s.Forks = append(s.Ancestors, fork.Source), append(s.Forks, fork)
	s.ExternalRequest = "" // the fork was not requested from outside
	s.rest, s.beside = nil, nil
	starter := s.UserID
	s.UserID, s.TokenMadeBy = fork.By, fork.TokenMadeBy
	s.Requesters = slices.DeleteFunc(slices.Clone(s.Requesters), func(user string) bool { return user == fork.By })
	s.request(starter)
	edits = slices.DeleteFunc(slices.Clone(edits), func(e dataflow.Edit) bool { return e.Within != "" })
	for _, data := range []*json.RawMessage{&s.Initial, &s.Trigger} {
		if len(*data) == 0 {
			continue
		}
		if *data, _, err = dataflow.EditPayload("", *data, edits); err != nil {
			return err
		}
	}
	return nil
}

// edit edits the results so far of the open iterations, where the edits apply.
func (s *frameJSON) edit(edits []dataflow.Edit) (err error) {
	for scope, ends := range s.Ends { // order does not matter: each gets its own
		holding := slices.DeleteFunc(slices.Clone(edits), func(e dataflow.Edit) bool { return !e.Holds(scope) })
		for node, output := range ends { // order does not matter: as above
			if ends[node], _, err = dataflow.EditPayload(node, output, holding); err != nil {
				return err
			}
		}
	}
	return nil
}

// forked takes over what the first row of a fork holds.
func (f *Fold) forked(fact engine.ExecutionForked) error {
	place := Place{f.start.Level(), 1, 0}
	raw, err := f.Value(place.Ref()) // it may be too large for the row
	if err != nil {
		return err
	}
	var past forkJSON
	if err := json.Unmarshal(raw, &past); err != nil {
		return fault.Newf(fault.Unreadable, "the past of execution %q cannot be read: %w", fact.Execution, err)
	}
	f.id, f.start = fact.Execution, past.Start
	if f.layers, err = dataflow.RestoreLayers(past.Layers); err != nil {
		return err
	}
	f.adopt(past.Runs, past.Frames, past.Overlays)
	return nil
}

// startOf reads what an execution was started with from its first row.
func startOf(row *Row) (Start, error) {
	if len(row.Values) == 0 || len(row.Facts) == 0 {
		return Start{}, fault.New(fault.Unreadable, "the first row of an execution holds no start")
	}
	if _, forked := row.Facts[0].(engine.ExecutionForked); forked {
		var past struct {
			Start Start `json:"start"`
		}
		if err := json.Unmarshal(row.Values[0], &past); err != nil {
			return Start{}, fault.Newf(fault.Unreadable, "the past of an execution cannot be read: %w", err)
		}
		return past.Start, nil
	}
	start, err := readStart(executionOf(*row), row.Values[0])
	if err == nil && start.Given {
		return row.givenStart(start)
	}
	return start, err
}

// executionOf is the id of the execution that a first row begins.
func executionOf(row Row) string {
	if len(row.Facts) == 0 {
		return ""
	}
	switch f := row.Facts[0].(type) {
	case engine.ExecutionCreated:
		return f.Execution
	case engine.ExecutionForked:
		return f.Execution
	}
	return ""
}

// level is that of the values of a row.
func (f *Fold) level(row *Row) int {
	if row.Seq == 1 && f.start.Ancestors == nil {
		if start, err := startOf(row); err == nil { // otherwise the first fact says what is wrong
			f.start.Ancestors = start.Ancestors
		}
	}
	return f.start.Level()
}

// forkedView begins a view with that of the source.
func (v *View) forkedView(row *Row) {
	var past forkJSON
	if len(row.Values) == 0 || json.Unmarshal(row.Values[0], &past) != nil || past.View == nil {
		return // a fold reports it; a view shows what it can
	}
	graph, began, changed := v.graph, v.began, v.changed
	*v = *past.View
	v.restore(graph)
	v.began, v.changed = began, changed
	v.Status, v.Error, v.ErrorNode = engine.StatusNew, nil, ""
	v.Seq, v.Created, v.Updated, v.Started = row.Seq, row.Time, row.Time, row.Time
	v.Ended, v.WaitedMS, v.Waiting, v.Credits, v.Retries = 0, 0, 0, 0, 0
	v.Questions, v.Below = map[engine.AskID]Asked{}, nil // they are asked again
}
