package hosttest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"iter"
	"math"
	"slices"
	"sync"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Disk is a database in memory that outlives the processes that use it. It keeps what hosts need: journals, inboxes,
// timers, summaries, idempotency keys, logs and large values. The rest of its stores is nil.
//
// One lock is over everything, and it is never held while a caller's code runs.
type Disk struct {
	mu         sync.Mutex
	executions map[store.Ref]*record
	order      []*record // by age
	keys       map[userKey]store.IdempotencyKey
	blobs      map[store.Ref][]byte
	inbox      int64 // numbers items
	lines      int64 // numbers log lines
}

// record is all there is of one execution.
type record struct {
	ref      store.Ref
	summary  store.Execution
	rows     []store.Row
	snapshot *store.Snapshot
	timers   map[string]int64
	inbox    []store.InboxItem
	dedup    map[string]int64
	logs     []store.LogLine
	kept     map[string]int64
	dropped  map[string]int64
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{executions: map[store.Ref]*record{}, keys: map[userKey]store.IdempotencyKey{}, blobs: map[store.Ref][]byte{}}
}

// Stores is the disk as hosts see it.
func (d *Disk) Stores() store.Stores {
	return store.Stores{
		Journal: diskJournal{d}, Inbox: diskInbox{d}, Timers: diskTimers{d}, Executions: diskExecutions{d},
		Logs: diskLogs{d}, Keys: diskKeys{d}, Blobs: diskBlobs{d},
	}
}

func unknownExecution(id string) error {
	return fault.Newf(fault.NotFound, "execution %q is not on the disk", id)
}

type diskJournal struct{ *Disk }

// Append implements [store.Journal].
func (d diskJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := store.CheckRows(rows); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range rows { // only the first can be refused
		r, err := d.admit(workspace, a)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, store.Row{Seq: a.After + 1, Time: a.Time, Body: bytes.Clone(a.Body)})
		d.company(r, a)
	}
	return nil
}

// admit finds the execution that a row is for, or makes it. Nothing has changed when it refuses.
func (d *Disk) admit(workspace string, a *store.Append) (*record, error) {
	ref := store.Ref{Workspace: workspace, Execution: a.Execution}
	r := d.executions[ref]
	if a.Key != nil {
		if used, ok := d.keys[userKey{workspace, a.Create.User, a.Key.Key}]; ok {
			return nil, &store.KeyUsedError{IdempotencyKey: used, Same: used.RequestHash == a.Key.RequestHash}
		}
	}
	if r == nil && a.Create == nil {
		return nil, unknownExecution(a.Execution)
	}
	if r != nil {
		if a.Create != nil || uint64(len(r.rows)) != a.After {
			return nil, fault.Newf(fault.Conflict, "execution %q is at row %d, not at %d", a.Execution, len(r.rows), a.After)
		}
		return r, nil
	}
	r = &record{ref: ref, summary: *a.Create, timers: map[string]int64{}, dedup: map[string]int64{}, kept: map[string]int64{},
		dropped: map[string]int64{}}
	r.summary.Workspace, r.summary.Created, r.summary.Updated = workspace, a.Time, a.Time
	d.executions[ref] = r
	d.order = append(d.order, r)
	if a.Key != nil {
		d.keys[userKey{workspace, a.Create.User, a.Key.Key}] = store.IdempotencyKey{
			Key: a.Key.Key, RequestHash: a.Key.RequestHash, Execution: a.Execution, Created: a.Time,
		}
	}
	return r, nil
}

// company stores what comes with a row.
func (d *Disk) company(r *record, a *store.Append) {
	if c := a.Change; c != nil {
		s := &r.summary
		s.Status, s.Started, s.Ended, s.DurationMS, s.Credits, s.Error, s.Updated =
			c.Status, c.Started, c.Ended, c.DurationMS, c.Credits, c.Error, a.Time
	}
	for _, id := range a.ClearTimers {
		delete(r.timers, id)
	}
	for _, t := range a.SetTimers {
		r.timers[t.ID] = t.Until
	}
	r.inbox = slices.DeleteFunc(r.inbox, func(i store.InboxItem) bool { return slices.Contains(a.TakeInbox, i.ID) })
	for _, item := range a.Deliver {
		if to := d.executions[store.Ref{Workspace: r.ref.Workspace, Execution: item.Execution}]; to != nil {
			d.deliver(to, item)
		}
	}
	if a.Snapshot != nil {
		r.snapshot = &store.Snapshot{Seq: a.Snapshot.Seq, Body: bytes.Clone(a.Snapshot.Body)}
	}
	d.write(r, a.Logs)
}

// Rows implements [store.Journal].
func (d diskJournal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		workspace, err := store.Scope(p)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		for {
			d.mu.Lock()
			r := d.executions[store.Ref{Workspace: workspace, Execution: execution}]
			if r == nil || after >= uint64(len(r.rows)) {
				d.mu.Unlock()
				return
			}
			row := r.rows[after]
			d.mu.Unlock()
			row.Body = bytes.Clone(row.Body)
			if !yield(row, nil) {
				return
			}
			after++
		}
	}
}

// LastSnapshot implements [store.Journal].
func (d diskJournal) LastSnapshot(_ context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Snapshot{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: execution}]
	if r == nil || r.snapshot == nil {
		return store.Snapshot{}, false, nil
	}
	return store.Snapshot{Seq: r.snapshot.Seq, Body: bytes.Clone(r.snapshot.Body)}, true, nil
}

type diskInbox struct{ *Disk }

// Deliver implements [store.Inbox].
func (d diskInbox) Deliver(ctx context.Context, p identity.Principal, item store.InboxItem) (int64, bool, error) {
	workspace, err := store.Scope(p)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: item.Execution}]
	if r == nil {
		return 0, false, unknownExecution(item.Execution)
	}
	id, duplicate := d.deliver(r, item)
	return id, duplicate, nil
}

func (d *Disk) deliver(r *record, item store.InboxItem) (int64, bool) {
	if id, known := r.dedup[item.Dedup]; known && item.Dedup != "" {
		return id, true
	}
	d.inbox++
	item.ID, item.Body = d.inbox, bytes.Clone(item.Body)
	r.dedup[item.Dedup] = item.ID
	r.inbox = append(r.inbox, item)
	return item.ID, false
}

// Pending implements [store.Inbox].
func (d diskInbox) Pending(_ context.Context, p identity.Principal, execution string) ([]store.InboxItem, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: execution}]
	if r == nil {
		return nil, nil
	}
	return slices.Clone(r.inbox), nil
}

// PendingExecutions implements [store.Inbox].
func (d diskInbox) PendingExecutions(_ context.Context, p identity.Principal) (refs []store.Ref, err error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.order {
		if len(r.inbox) > 0 && (all || r.ref.Workspace == workspace) {
			refs = append(refs, r.ref)
		}
	}
	return refs, nil
}

type diskTimers struct{ *Disk }

// Clear implements [store.Timers].
func (t diskTimers) Clear(_ context.Context, p identity.Principal, execution string, ids ...string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.executions[store.Ref{Workspace: workspace, Execution: execution}]
	if r == nil {
		return store.ErrNotFound
	}
	for _, id := range ids {
		delete(r.timers, id)
	}
	return nil
}

// Upcoming implements [store.Timers].
func (d diskTimers) Upcoming(_ context.Context, p identity.Principal, after store.Timer, limit int) (list []store.Timer, err error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil || limit <= 0 {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.order {
		if !all && r.ref.Workspace != workspace {
			continue
		}
		for id, until := range r.timers { // order does not matter: sorted below
			t := store.Timer{Workspace: r.ref.Workspace, Execution: r.ref.Execution, ID: id, Until: until}
			if after == (store.Timer{}) || t.Compare(after) > 0 {
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, store.Timer.Compare)
	return list[:min(len(list), limit)], nil
}

// Of implements [store.Timers].
func (d diskTimers) Of(ctx context.Context, p identity.Principal, execution string) ([]store.Timer, error) {
	list, err := d.Upcoming(ctx, p, store.Timer{}, math.MaxInt)
	return slices.DeleteFunc(list, func(t store.Timer) bool { return t.Execution != execution }), err
}

type diskExecutions struct{ *Disk }

// Get implements [store.Executions].
func (d diskExecutions) Get(_ context.Context, p identity.Principal, id string) (store.Execution, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: id}]
	if r == nil {
		return store.Execution{}, unknownExecution(id)
	}
	return r.summary, nil
}

// fewRows is up to how many rows are read with an execution. Others are read row by row, so that both ways are gone.
const fewRows = 8

// GetWithRows implements [store.Executions].
func (d diskExecutions) GetWithRows(
	ctx context.Context, p identity.Principal, id string,
) (e store.Execution, rows []store.Row, whole bool, err error) {
	if e, err = d.Get(ctx, p, id); err != nil {
		return e, nil, false, err
	}
	for row, err := range diskJournal(d).Rows(ctx, p, id, 0) {
		if err != nil || len(rows) == fewRows {
			return e, nil, false, err
		}
		rows = append(rows, row)
	}
	return e, rows, true, nil
}

// List implements [store.Executions].
func (d diskExecutions) List(_ context.Context, p identity.Principal, q store.ExecutionQuery) (page store.ExecutionPage, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return page, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	limit, offset := q.Page.Limits()
	for _, r := range slices.Backward(d.order) {
		s := &r.summary
		if s.Workspace != workspace || q.WorkflowID != "" && s.WorkflowID != q.WorkflowID || q.Parent != "" && s.Parent != q.Parent ||
			q.ForkedFrom != "" && s.ForkedFrom != q.ForkedFrom || q.User != "" && s.User != q.User ||
			q.Conversation != "" && s.Conversation != q.Conversation ||
			q.BelowRevision != 0 && s.Revision >= q.BelowRevision || len(q.Statuses) > 0 && !slices.Contains(q.Statuses, s.Status) {
			continue
		}
		if page.Total++; page.Total > offset && len(page.Executions) < limit {
			page.Executions = append(page.Executions, *s)
		}
	}
	return page, nil
}

// Unfinished implements [store.Executions].
func (d diskExecutions) Unfinished(_ context.Context, p identity.Principal, after store.Unfinished) iter.Seq2[store.Unfinished, error] {
	return func(yield func(store.Unfinished, error) bool) {
		workspace, all, err := store.ScopeAll(p)
		if err != nil {
			yield(store.Unfinished{}, err)
			return
		}
		var list []store.Unfinished
		d.mu.Lock()
		for i, r := range d.order {
			if s := &r.summary; (s.Status == engine.StatusRunning || s.Status == engine.StatusPending) && (all || s.Workspace == workspace) {
				list = append(list, store.Unfinished{Ref: r.ref, WorkflowID: s.WorkflowID, Status: s.Status, Priority: s.Priority, Created: s.Created, Place: int64(i + 1)})
			}
		}
		d.mu.Unlock()
		order := func(a, b store.Unfinished) int { // RUNNING is behind PENDING in the alphabet
			return cmp.Or(-cmp.Compare(a.Status, b.Status), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Place, b.Place))
		}
		slices.SortFunc(list, order)
		if after.Place == 0 { // the first of its status
			after.Priority = math.MinInt
		}
		for _, u := range list {
			if after.Status != "" && order(u, after) <= 0 {
				continue
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

// Refs lists every execution, oldest first.
func (d *Disk) Refs() (refs []store.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.order {
		refs = append(refs, r.ref)
	}
	return refs
}

// userKey is an idempotency key of a user.
type userKey struct{ workspace, user, key string }

type diskKeys struct{ *Disk }

// Find implements [store.IdempotencyKeys].
func (d diskKeys) Find(_ context.Context, p identity.Principal, key string) (store.IdempotencyKey, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.IdempotencyKey{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k, ok := d.keys[userKey{workspace, p.User, key}]; ok {
		return k, nil
	}
	return store.IdempotencyKey{}, fault.Newf(fault.NotFound, "idempotency key %q is not on the disk", key)
}

// Expire implements [store.IdempotencyKeys].
func (d diskKeys) Expire(_ context.Context, p identity.Principal, before int64) (gone int, err error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, k := range d.keys { // order does not matter: each is looked at
		if k.Created < before && (all || ref.workspace == workspace) {
			delete(d.keys, ref)
			gone++
		}
	}
	return gone, nil
}

type diskLogs struct{ *Disk }

// Write implements [store.Logs].
func (d diskLogs) Write(ctx context.Context, p identity.Principal, execution string, lines []store.LogLine) error {
	workspace, err := store.Scope(p)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: execution}]
	if r == nil {
		return unknownExecution(execution)
	}
	d.write(r, lines)
	return nil
}

func (d *Disk) write(r *record, lines []store.LogLine) {
	for _, line := range lines {
		if r.kept[line.Activation] >= store.MaxLogLines {
			r.dropped[line.Activation]++
			continue
		}
		r.kept[line.Activation]++
		d.lines++
		line.ID = d.lines
		r.logs = append(r.logs, line)
	}
}

// Lines implements [store.Logs].
func (d diskLogs) Lines(_ context.Context, p identity.Principal, q store.LogQuery) (page store.LogPage, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return page, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.executions[store.Ref{Workspace: workspace, Execution: q.Execution}]
	if r == nil {
		return page, nil
	}
	for _, l := range r.logs {
		if l.ID <= q.After || q.Activation != "" && l.Activation != q.Activation || q.NodeID != "" && l.NodeID != q.NodeID ||
			q.MinLevel != nil && l.Level < *q.MinLevel {
			continue
		}
		if len(page.Lines) == q.Size() {
			page.More = true
			break
		}
		page.Lines = append(page.Lines, l)
	}
	for activation, n := range r.dropped { // order does not matter: it is a sum
		if q.Activation == "" || q.Activation == activation {
			page.Dropped += n
		}
	}
	return page, nil
}

type diskBlobs struct{ *Disk }

// Put implements [store.Blobs].
func (d diskBlobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	workspace, err := store.Scope(p)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return store.Blob{}, err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return store.Blob{}, err
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs[store.Ref{Workspace: workspace, Execution: hash}] = content
	return store.Blob{Hash: hash, Size: int64(len(content))}, nil
}

// Get implements [store.Blobs].
func (d diskBlobs) Get(_ context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, store.Blob{}, err
	}
	if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != hash {
		return nil, store.Blob{}, fault.Newf(fault.Invalid, "%q is not the hash of a value", hash)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.blobs[store.Ref{Workspace: workspace, Execution: hash}]
	if !ok {
		return nil, store.Blob{}, fault.Newf(fault.NotFound, "the value %q is not on the disk", hash)
	}
	return io.NopCloser(bytes.NewReader(content)), store.Blob{Hash: hash, Size: int64(len(content))}, nil
}

// Stat implements [store.Blobs].
func (d diskBlobs) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	_, blob, err := d.Get(ctx, p, hash)
	return blob, err
}
