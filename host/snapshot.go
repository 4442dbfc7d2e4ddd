package host

import (
	"cmp"
	"encoding/json"
	"slices"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// The snapshot of a fold is what it would be after all rows up to a sequence number, so that an execution that was put
// aside comes back from it and the rows that follow.
type (
	foldJSON struct {
		ID       string          `json:"id"`
		Start    Start           `json:"start"`
		View     *View           `json:"view"`
		Engine   json.RawMessage `json:"engine"`
		Layers   []byte          `json:"layers"`
		Runs     []runJSON       `json:"runs,omitempty"`
		Frames   []frameJSON     `json:"frames,omitempty"`
		Overlays []string        `json:"overlays,omitempty"`
	}

	runJSON struct {
		Command engine.RunNode `json:"command"`
		Since   int64          `json:"since"`
	}

	frameJSON struct {
		Activation engine.ActivationID                   `json:"activation"`
		Opened     int64                                 `json:"opened"`
		Last       json.RawMessage                       `json:"last,omitempty"`
		Results    []byte                                `json:"results,omitempty"`
		Count      int64                                 `json:"count"`
		Held       map[int64]json.RawMessage             `json:"held,omitempty"`
		Size       int                                   `json:"size"`
		Discard    bool                                  `json:"discard,omitempty"`
		Program    bool                                  `json:"program,omitempty"`
		Ends       map[string]map[string]json.RawMessage `json:"ends,omitempty"`
		Errors     []Failure                             `json:"errors,omitempty"`
		Level      int                                   `json:"level,omitempty"`
	}
)

// Snapshot returns the fold in its one encoding.
func (f *Fold) Snapshot() ([]byte, error) {
	if f.layers == nil {
		return nil, fault.New(fault.Internal, "the fold of an empty journal has no snapshot")
	}
	snap := foldJSON{ID: f.id, Start: f.start, View: f.View()}
	var err error
	if snap.Engine, err = f.state.Snapshot(); err != nil {
		return nil, err
	}
	acts := f.state.Activations()
	readers := make([]uint64, len(acts))
	for i, a := range acts {
		readers[i] = a.AsOf
		if run, ok := f.runs[a.ID]; ok {
			snap.Runs = append(snap.Runs, runJSON{run.command(), run.since})
		}
		if fr := f.frames[a.ID]; fr != nil {
			ends := make(map[string]map[string]json.RawMessage, len(fr.ends))
			for path, outputs := range fr.ends { // order does not matter: one entry per scope
				ends[path] = wholeEnds(outputs)
			}
			snap.Frames = append(snap.Frames, frameJSON{a.ID, fr.opened, fr.last.whole(), fr.results, fr.count, fr.held, fr.size,
				fr.discard, fr.program, ends, fr.errors, fr.level})
		}
	}
	slices.SortFunc(snap.Runs, func(a, b runJSON) int { return cmp.Compare(a.Command.Activation, b.Command.Activation) })
	slices.SortFunc(snap.Frames, func(a, b frameJSON) int { return cmp.Compare(a.Activation, b.Activation) })
	for path := range f.overlays {
		snap.Overlays = append(snap.Overlays, path)
	}
	slices.Sort(snap.Overlays)
	f.lock.Lock()
	f.layers.Forget(readers...)
	snap.Layers, err = f.layers.Snapshot()
	f.lock.Unlock()
	if err != nil {
		return nil, err
	}
	return json.Marshal(snap)
}

// RestoreView reads the view from a snapshot.
func RestoreView(graph *workflow.Graph, data []byte) (*View, Start, error) {
	var snap struct {
		View  *View `json:"view"`
		Start Start `json:"start"`
	}
	if err := json.Unmarshal(data, &snap); err != nil || snap.View == nil {
		return nil, Start{}, fault.Newf(fault.Internal, "snapshot: it has no view that can be read: %w", err)
	}
	snap.View.restore(graph)
	return snap.View, snap.Start, nil
}

// RestoreFold makes a fold of a snapshot. The rest is as for [NewFold].
func RestoreFold(graph *workflow.Graph, revision Revision, programs engine.Programs, load Loader, data []byte) (*Fold, error) {
	var snap foldJSON
	if err := json.Unmarshal(data, &snap); err != nil {
		return nil, fault.Newf(fault.Internal, "snapshot: %w", err)
	}
	f := NewFold(graph, revision, programs, load)
	f.id, f.start = snap.ID, snap.Start
	if snap.View == nil {
		return nil, fault.New(fault.Internal, "snapshot: it has no view")
	}
	f.view = snap.View
	f.view.restore(graph)
	var err error
	if f.state, err = engine.Restore(graph, programs, snap.Engine); err != nil {
		return nil, err
	}
	if f.layers, err = dataflow.RestoreLayers(snap.Layers); err != nil {
		return nil, err
	}
	f.adopt(snap.Runs, snap.Frames, snap.Overlays)
	return f, nil
}

// adopt takes over what was kept of open runs and scopes.
func (f *Fold) adopt(runs []runJSON, frames []frameJSON, overlays []string) {
	for _, r := range runs {
		f.runs[r.Command.Activation] = openRun{r.Command, r.Since}
	}
	for _, s := range frames {
		fr := newFrame(s.Opened, s.Discard, s.Program)
		fr.last, fr.results, fr.count, fr.size, fr.errors, fr.level = ended{output: s.Last}, s.Results, s.Count, s.Size, s.Errors, s.Level
		for index, result := range s.Held { // order does not matter: one entry per iteration
			fr.held[index] = result
		}
		for path, outputs := range s.Ends { // order does not matter: one entry per scope
			fr.ends[path] = make(map[string]ended, len(outputs))
			for node, output := range outputs { // order does not matter: one entry per node
				fr.ends[path][node] = ended{output: output}
			}
		}
		f.frames[s.Activation] = fr
	}
	for _, path := range overlays {
		f.overlays[path] = true
	}
}
