package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// NewSource reads executions where their journals and large values are kept.
func NewSource(journal store.Journal, blobs store.Blobs) host.Source { return source{journal, blobs} }

type source struct {
	journal store.Journal
	blobs   store.Blobs
}

// Rows implements host.Source.
func (s source) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		for stored, err := range s.journal.Rows(ctx, p, execution, after) {
			if err != nil {
				yield(host.Row{}, err)
				return
			}
			if !yield(host.ReadRow(stored.Seq, stored.Time, stored.Body), nil) {
				return
			}
		}
	}
}

// Snapshot implements host.Source.
func (s source) Snapshot(ctx context.Context, p identity.Principal, execution string) ([]byte, bool, error) {
	snap, ok, err := s.journal.LastSnapshot(ctx, p, execution)
	return snap.Body, ok, err
}

// Blob implements host.Source.
func (s source) Blob(ctx context.Context, p identity.Principal, b host.Blob) (value json.RawMessage, err error) {
	content, _, err := s.blobs.Get(ctx, p, b.Hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.Newf(fault.Unreadable, "the large value %q is missing", b.Hash)
	}
	if err != nil {
		return nil, fmt.Errorf("read large value %q: %w", b.Hash, err)
	}
	defer func() {
		if cerr := content.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("read large value %q: %w", b.Hash, cerr)
		}
	}()
	var read bytes.Buffer
	if b.Size > 0 && b.Size <= maxAtOnce { // it is as large as it says, so that no room is made twice
		read.Grow(int(b.Size) + bytes.MinRead)
	}
	if _, err := read.ReadFrom(content); err != nil {
		return nil, fmt.Errorf("read large value %q: %w", b.Hash, err)
	}
	return read.Bytes(), nil
}

// atHand is the source of an execution whose rows have been read, all of them.
type atHand struct {
	host.Source
	execution string
	rows      []store.Row
}

// Snapshot implements host.Source. The rows say as much.
func (atHand) Snapshot(context.Context, identity.Principal, string) ([]byte, bool, error) {
	return nil, false, nil
}

// Rows implements host.Source.
func (s atHand) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	if execution != s.execution { // a fork names values of another
		return s.Source.Rows(ctx, p, execution, after)
	}
	return func(yield func(host.Row, error) bool) {
		for _, r := range s.rows {
			if r.Seq > after && !yield(host.ReadRow(r.Seq, r.Time, r.Body), nil) {
				return
			}
		}
	}
}

// maxAtOnce is how large a value may say it is to have room made for it before it is read.
const maxAtOnce = 64 << 20

// keepLarge stores a large value of a row.
func (o *owner) keepLarge(ctx context.Context) func(json.RawMessage) (host.Blob, error) {
	return func(value json.RawMessage) (kept host.Blob, err error) {
		err = o.untilRoom(ctx, o.starting, func() error {
			blob, err := o.host.opts.Blobs.Put(ctx, o.principal(), bytes.NewReader(value))
			kept = host.Blob{Hash: blob.Hash, Size: blob.Size}
			return err
		})
		return kept, err
	}
}

// keepShared stores a field that many values have in common, once for as long as they have it in memory in common too.
func (o *owner) keepShared(ctx context.Context) func(json.RawMessage) (host.Blob, error) {
	keep := o.keepLarge(ctx)
	return func(value json.RawMessage) (host.Blob, error) {
		if blob, ok := o.shared[&value[0]]; ok && blob.Size == int64(len(value)) {
			return blob, nil
		}
		blob, err := keep(value)
		if err != nil {
			return blob, err
		}
		if o.shared == nil || len(o.shared) >= maxSharedFields {
			o.shared = map[*byte]host.Blob{}
		}
		o.shared[&value[0]] = blob
		return blob, nil
	}
}

// maxSharedFields is of how many fields an owner remembers that they are kept.
const maxSharedFields = 64

// Revision is a revision as a fold sees it.
func Revision(r *node.Revision) host.Revision { return revision{r} }

type revision struct{ *node.Revision }

// Iterations implements host.Revision.
func (r revision) Iterations(run engine.RunNode, values *host.Inputs, data host.Data) (host.Opened, error) {
	of, prepared, err := r.Revision.Iterations(newJob(run, values, data))
	if err != nil {
		return host.Opened{}, err
	}
	opened := host.Opened{Apart: prepared.Apart(), Iterate: func(
		state json.RawMessage, index int64) (host.Entry, map[string]json.RawMessage, error) {
		iteration, err := of(state, index)
		return host.Entry{Fields: iteration.Fields, Value: iteration.Payload}, iteration.Vars, err
	}}
	if prepared.Turns() {
		opened.Prepared = prepared
	}
	return opened, nil
}

// Inspect implements host.Revision.
func (r revision) Inspect(run engine.RunNode, values *host.Inputs, data host.Data) (input, origins json.RawMessage, err error) {
	job := newJob(run, values, data)
	if run.Step != nil {
		job.Owner, _, _ = host.Owner(r.Graph, run.Activation)
		job.State = values.Value(host.StateRef)
	}
	input, list, err := r.Revision.Inspect(job)
	if err != nil {
		return nil, nil, err
	}
	origins, err = json.Marshal(list)
	return input, origins, err
}
