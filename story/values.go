package story

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/payload"
)

// MaxWhole is how large a value may be, and all outputs of an execution together, to be told whole to a caller that wants no references.
const MaxWhole = 10 << 20

// farApart is how many rows may lie between two that are wanted before they are read one by one.
const farApart = 100

// values reads values by their references; large ones as what they are called.
func (r *Reading) values(ctx context.Context, refs []engine.Ref) (map[engine.Ref]json.RawMessage, error) {
	values := make(map[engine.Ref]json.RawMessage, len(refs))
	unknown := make([]engine.Ref, 0, len(refs))
	for _, ref := range refs {
		if r.known != nil {
			if value, ok := r.known.Value(ref); ok {
				values[ref] = value
				continue
			}
		}
		unknown = append(unknown, ref)
	}
	if finished, ok := r.known.(*host.Finished); ok && len(unknown) > 0 {
		defer func() { finished.Add(values) }() // as far as they were read
	}
	return values, r.each(ctx, unknown, func(place host.Place, row *host.Row) (err error) {
		value := row.Shown(place.N)
		if blob, large := row.Large[place.N]; large {
			value, err = blobJSON(blob)
		}
		values[place.Ref()] = value
		return err
	})
}

// each visits the places that references name, in order. Rows that are near to each other are read in one go; those that cannot be read are
// left out.
func (r *Reading) each(ctx context.Context, refs []engine.Ref, visit func(host.Place, *host.Row) error) error {
	if len(refs) == 0 {
		return nil
	}
	if r.View == nil && r.Summary.ForkedFrom != "" { // a fork's values may be in the rows of others
		var err error
		if r.View, r.Start, err = r.Journal.View(ctx); err != nil {
			return err
		}
	}
	wanted := make([]host.Place, 0, len(refs))
	for _, ref := range refs {
		place, err := host.ParseRef(ref)
		if err != nil {
			return err
		}
		wanted = append(wanted, place)
	}
	slices.SortFunc(wanted, func(a, b host.Place) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.N, b.N))
	})
	wanted = slices.Compact(wanted)
	for len(wanted) > 0 {
		n := 1
		for n < len(wanted) && wanted[n].Level == wanted[0].Level && wanted[n].Seq-wanted[n-1].Seq <= farApart {
			n++
		}
		if err := r.eachOf(ctx, wanted[:n], visit); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// eachOf visits places in one journal.
func (r *Reading) eachOf(ctx context.Context, wanted []host.Place, visit func(host.Place, *host.Row) error) error {
	execution := r.Journal.Execution
	if level := wanted[0].Level; level < r.Start.Level() {
		execution = r.Start.Ancestors[level]
	}
	for row, err := range r.lib.Source.Rows(ctx, r.p, execution, wanted[0].Seq-1) {
		if err != nil {
			return err
		}
		for len(wanted) > 0 && wanted[0].Seq == row.Seq {
			place := wanted[0]
			wanted = wanted[1:]
			if row.Unreadable != nil {
				continue // shown without it
			}
			if place.N >= len(row.Values) {
				return fault.Newf(fault.Internal, "row %d of execution %q has no value %d", row.Seq, execution, place.N)
			}
			if err := visit(place, &row); err != nil {
				return err
			}
		}
		if len(wanted) == 0 {
			return nil
		}
	}
	return fault.Newf(fault.Internal, "execution %q has no row %d", execution, wanted[0].Seq)
}

// Outputs are those of an execution that has ended, by node id, as far as the nodes have succeeded. Large ones are told as what they are
// called.
func (r *Reading) Outputs(ctx context.Context) (map[string]json.RawMessage, error) {
	names := r.outputNodes()
	values, err := r.values(ctx, r.refsOf(names))
	if err != nil {
		return nil, err
	}
	return r.outputsOf(names, values)
}

func (r *Reading) refsOf(nodes []string) (refs []engine.Ref) {
	for _, id := range nodes {
		refs = append(refs, outputRefs([]host.ActivationView{r.View.Nodes[id].ActivationView})...)
	}
	return refs
}

// WholeOutputs are the outputs with large values as they are, for callers who cannot ask for what a reference names. The error of what is
// larger than [MaxWhole] is [fault.TooLarge].
func (r *Reading) WholeOutputs(ctx context.Context) (map[string]json.RawMessage, error) {
	names := r.outputNodes()
	values, err := r.wholeValues(ctx, names)
	if err != nil {
		return nil, err
	}
	return r.outputsOf(names, values)
}

// OutputsOf are the outputs by key of those of some nodes that have ended well, of a node in a loop those of its last run, with large
// values as they are. The error of what is larger than [MaxWhole] is [fault.TooLarge].
func (r *Reading) OutputsOf(ctx context.Context, nodes []string) (map[string]map[string]json.RawMessage, error) {
	var done []string
	for _, id := range nodes {
		if n := r.View.Nodes[id]; n != nil && n.Status == engine.NodeDone {
			done = append(done, id)
		}
	}
	values, err := r.wholeValues(ctx, done)
	if err != nil {
		return nil, err
	}
	outputs := make(map[string]map[string]json.RawMessage, len(done))
	for _, id := range done {
		outputs[id] = outputsByKey(r.View.Nodes[id].Outputs, values)
	}
	return outputs, nil
}

// wholeValues are the values of the outputs of nodes, large ones as they are.
func (r *Reading) wholeValues(ctx context.Context, nodes []string) (map[engine.Ref]json.RawMessage, error) {
	values, err := r.values(ctx, r.refsOf(nodes))
	if err != nil {
		return nil, err
	}
	large, err := r.large(ctx, values)
	if err != nil {
		return nil, err
	}
	if err := r.joinParts(ctx, values); err != nil {
		return nil, err
	}
	size := int64(0)
	for ref, value := range values { // order does not matter: a sum
		if blob, is := large[ref]; is {
			size += blob.Size
		} else {
			size += int64(len(value))
		}
	}
	if size > MaxWhole {
		return nil, fault.Newf(fault.TooLarge, "the result has %d bytes, and at most %d are told; let the workflow end with less, or store it as a file", size, MaxWhole)
	}
	for ref, blob := range large { // order does not matter: one entry per reference
		if values[ref], err = r.Journal.Source.Blob(ctx, r.p, blob); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// joinParts puts the large fields that are kept beside values into their places. Together they may be as large as what is told whole, and a
// bit more.
func (r *Reading) joinParts(ctx context.Context, values map[engine.Ref]json.RawMessage) error {
	var refs []engine.Ref
	for ref, value := range values { // order does not matter: they are sorted where they are read
		if bytes.Contains(value, []byte(`"$blob"`)) {
			refs = append(refs, ref)
		}
	}
	size := int64(0)
	return r.each(ctx, refs, func(place host.Place, row *host.Row) error {
		parts, err := row.Parts(place.N, func(b host.Blob) (json.RawMessage, error) {
			if size += b.Size; size > MaxWhole {
				return nil, fault.Newf(fault.TooLarge, "the result has more than %d bytes, which is the most that is told; let the workflow end with less, or store it as a file", MaxWhole)
			}
			return r.Journal.Source.Blob(ctx, r.p, b)
		})
		if err == nil && len(parts) > 0 {
			values[place.Ref()] = payload.Join(row.Values[place.N], parts)
		}
		return err
	})
}

// wholeResult is the result of a node as it is, which may be told by its name; nothing if it is larger than [MaxWhole].
func (r *Reading) wholeResult(ctx context.Context, id string, told json.RawMessage) (json.RawMessage, error) {
	if n := r.View.Nodes[id]; n != nil && namesBlob(told) {
		for _, o := range n.Outputs {
			if o.Key != "result" {
				continue
			}
			large, err := r.large(ctx, map[engine.Ref]json.RawMessage{o.Ref: told})
			blob, is := large[o.Ref]
			switch {
			case err != nil:
				return nil, err
			case is && blob.Size > MaxWhole:
				return nil, nil
			case is:
				return r.Journal.Source.Blob(ctx, r.p, blob)
			}
		}
	}
	return told, nil
}

// large says which of some values are kept beside the journal. A value of somebody else may look like the name of one and is not: the rows
// decide.
func (r *Reading) large(ctx context.Context, values map[engine.Ref]json.RawMessage) (map[engine.Ref]host.Blob, error) {
	var refs []engine.Ref
	for ref := range values { // order does not matter: they are sorted where they are read
		if namesBlob(values[ref]) {
			refs = append(refs, ref)
		}
	}
	large := map[engine.Ref]host.Blob{}
	return large, r.each(ctx, refs, func(place host.Place, row *host.Row) error {
		if blob, is := row.Large[place.N]; is {
			large[place.Ref()] = blob
		}
		return nil
	})
}

// namesBlob says that a value looks like the name of a large one.
func namesBlob(value json.RawMessage) bool {
	return len(value) < 200 && gjson.GetBytes(value, "$blob").Type == gjson.String
}

// blobJSON is how a large value is shown.
func blobJSON(b host.Blob) (json.RawMessage, error) {
	return json.Marshal(struct {
		Hash string `json:"$blob"`
		Size int64  `json:"size"`
	}{b.Hash, b.Size})
}
