package cluster

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// RowsOptions say what is done about rows.
type RowsOptions struct {
	News   store.News
	Source host.Source
	// Row is told of each row that any process has written, in the order of each execution. An error lets it be told again.
	Row func(ctx context.Context, ref store.Ref, row host.Row) error
	// Missed is called when rows may have been missed, also at the beginning. An error lets it be called again.
	Missed func(ctx context.Context) error
	Log    *slog.Logger
}

// Rows tells what is recorded by whichever process. It must be closed.
type Rows struct {
	o    RowsOptions
	stop context.CancelFunc
	all  sync.WaitGroup
	seed maphash.Seed
	line [readers]*readLine
}

const (
	// readers is how many executions are read at once.
	readers = 4
	// againPause is how long nothing is tried after something did not work.
	againPause = time.Second
)

// readLine is what one reader has to read. An execution is always read by the same one.
type readLine struct {
	mu    sync.Mutex
	spans map[store.Ref]span
	order []store.Ref
	// missed says that anything may be new. The first reader sees to it.
	missed bool
	wake   chan struct{}
}

// span is what of an execution is new: the rows after one, up to another.
type span struct{ after, last uint64 }

// FollowRows begins to listen.
func FollowRows(o RowsOptions) *Rows {
	r := &Rows{o: o, seed: maphash.MakeSeed()}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	for i := range r.line {
		l := &readLine{spans: map[store.Ref]span{}, wake: make(chan struct{}, 1)}
		r.line[i] = l
		r.all.Go(func() { r.readSpans(ctx, l) })
	}
	r.all.Go(func() {
		for ctx.Err() == nil {
			if err := o.News.Listen(ctx, r.heard); err != nil && ctx.Err() == nil {
				o.Log.Error("what other processes record is not heard; this is tried again", "error", err)
			}
			pause(ctx)
		}
	})
	return r
}

// Close ends it, and waits for that.
func (r *Rows) Close() {
	r.stop()
	r.all.Wait()
}

func pause(ctx context.Context) {
	select {
	case <-time.After(againPause):
	case <-ctx.Done():
	}
}

// heard notes what is new.
func (r *Rows) heard(fresh []store.Fresh) {
	if fresh == nil {
		r.line[0].note(func(l *readLine) { l.missed = true })
	}
	for _, f := range fresh {
		if f.Seq == 0 {
			continue
		}
		r.line[maphash.Comparable(r.seed, f.Ref)%readers].note(func(l *readLine) { l.addSpan(f.Ref, span{f.Seq - 1, f.Seq}) })
	}
}

func (l *readLine) note(change func(*readLine)) {
	l.mu.Lock()
	change(l)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// addSpan joins a new span with what was not read yet. The caller has the lock.
func (l *readLine) addSpan(ref store.Ref, s span) {
	old, waits := l.spans[ref]
	if waits {
		s = span{min(old.after, s.after), max(old.last, s.last)}
	} else {
		l.order = append(l.order, ref)
	}
	l.spans[ref] = s
}

// next takes what has waited longest.
func (l *readLine) next() (ref store.Ref, s span, missed, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed {
		l.missed = false
		return ref, s, true, true
	}
	if len(l.order) == 0 {
		return ref, s, false, false
	}
	ref = l.order[0]
	l.order = l.order[1:]
	s = l.spans[ref]
	delete(l.spans, ref)
	return ref, s, false, true
}

func (r *Rows) readSpans(ctx context.Context, l *readLine) {
	for ctx.Err() == nil {
		ref, s, missed, ok := l.next()
		switch {
		case !ok:
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
		case missed:
			if err := r.o.Missed(ctx); err != nil && ctx.Err() == nil {
				r.o.Log.Warn("what was missed was not looked for; this is tried again", "error", err)
				pause(ctx)
				l.note(func(l *readLine) { l.missed = true })
			}
		default:
			if after, err := r.tellSpan(ctx, ref, s); err != nil && ctx.Err() == nil {
				r.o.Log.Warn("what another process has recorded was not read; this is tried again", "execution", ref.Execution, "error", err)
				pause(ctx)
				l.note(func(l *readLine) { l.addSpan(ref, span{after, s.last}) })
			}
		}
	}
}

// tellSpan hands on the rows of a span, and returns the last one that it handed on.
func (r *Rows) tellSpan(ctx context.Context, ref store.Ref, s span) (after uint64, err error) {
	for row, err := range r.o.Source.Rows(ctx, identity.System(ref.Workspace), ref.Execution, s.after) {
		if err != nil {
			return s.after, err
		}
		if row.Seq > s.last { // there will be news of it
			break
		}
		if err := r.o.Row(ctx, ref, row); err != nil {
			return s.after, err
		}
		s.after = row.Seq
	}
	return s.after, nil
}
