package live

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
)

const (
	// readers is how many journals are read at once.
	readers = 4
	// nearby is how many rows before the newest are read when it is not known which were read last. A reader that is further behind
	// reads by itself.
	nearby = 64
	// maxEnded is of how many activations of an execution it is known that they have ended.
	maxEnded = 4096
	// hearPause is after what time it is tried again to hear something.
	hearPause = 5 * time.Second
	// maxRefs is how many executions one message names.
	maxRefs = 200
)

// Follower tells the readers of a hub what happens to executions that other processes run.
type Follower struct {
	hub    *host.Hub
	source host.Source
	news   store.News
	wire   *sender
	log    *slog.Logger

	mu    sync.Mutex
	known map[host.Ref]*followed
	// fresh are executions with rows that were not read, in the order in which they were heard of; wake has room for each reader of
	// journals.
	fresh []host.Ref
	wake  chan struct{}
	// began has executions that are newly followed.
	began []host.Ref
	tell  chan struct{}
}

// followed is an execution with readers. The follower's lock guards it.
type followed struct {
	readers int
	// last is the row that was published last, zero: not known, and head the newest that was heard of.
	last, head uint64
	// reading says that somebody reads its journal.
	reading bool
	// ended are attempts that rows have ended: what comes late of them is not told.
	ended map[engine.ActivationID]engine.Attempt
	// ends is how much of the text of an attempt was handed on; zero for one that has handed out objects alone.
	ends map[engine.Attempt]int64
}

// NewFollower follows what a database tells of, for the readers of a hub that nobody else tells anything. Source has the rows. Without news
// it tells of output alone: somebody else tells the hub of rows, and [Follower.Recorded] before that.
func NewFollower(hub *host.Hub, source host.Source, news store.News, wire store.Wire, log *slog.Logger) *Follower {
	return &Follower{
		hub: hub, source: source, news: news, wire: &sender{Wire: wire, log: log}, log: log, known: map[host.Ref]*followed{},
		wake: make(chan struct{}, readers), tell: make(chan struct{}, 1),
	}
}

// Followed begins to follow an execution, until left is called. The reader has subscribed, and reads the journal after this.
func (f *Follower) Followed(ref host.Ref) (left func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.known[ref]
	if one == nil {
		one = &followed{ended: map[engine.ActivationID]engine.Attempt{}, ends: map[engine.Attempt]int64{}}
		f.known[ref] = one
		f.began = append(f.began, ref)
		poke(f.tell)
	}
	one.readers++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.readers--; one.readers == 0 {
			f.drop(ref, one)
			delete(f.known, ref)
		}
	}
}

// drop forgets what an execution has handed out: who follows it next is sent all of it again. The lock is the caller's.
func (f *Follower) drop(ref host.Ref, one *followed) {
	for a := range one.ends { // order does not matter: all go
		f.hub.Ended(ref, a)
	}
	clear(one.ends)
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}

// Run follows until the context ends, and returns when nothing is told any more.
func (f *Follower) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	if f.news != nil {
		for range readers {
			all.Go(func() { f.readJournals(ctx) })
		}
	}
	all.Go(func() { f.renew(ctx) })
	hear := func() {
		for ctx.Err() == nil {
			if err := f.wire.Hear(ctx, f.hear(ctx), pieceChannel, followChannel); ctx.Err() == nil {
				f.log.Error("output that another process makes is not heard while it is made; this is tried again", "error", err)
			}
			rest(ctx)
		}
	}
	if f.news == nil {
		hear()
		return
	}
	all.Go(hear)
	for ctx.Err() == nil {
		if err := f.news.Listen(ctx, f.told); ctx.Err() == nil {
			f.log.Error("it is not heard what another server records; this is tried again", "error", err)
		}
		rest(ctx)
	}
}

// rest waits until it is tried again to hear something.
func rest(ctx context.Context) {
	select {
	case <-time.After(hearPause):
	case <-ctx.Done():
	}
}

// Missed says that rows may have been recorded that it was not told of: what was handed out is dropped, since it may have ended, and
// asked for again.
func (f *Follower) Missed(ctx context.Context) {
	f.mu.Lock()
	for ref, one := range f.known { // order does not matter: each is looked at by itself
		f.drop(ref, one)
	}
	f.mu.Unlock()
	f.want(ctx, nil, true)
}

// told takes in which executions have new rows.
func (f *Follower) told(list []store.Fresh) {
	if list == nil {
		f.missed()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range list {
		ref := host.Ref(n.Ref)
		one := f.known[ref]
		if one == nil || n.Seq <= one.head {
			continue
		}
		waits := one.head > one.last
		if one.head = n.Seq; !waits && !one.reading {
			f.fresh = append(f.fresh, ref)
			poke(f.wake)
		}
	}
}

// missed lets every reader look at the journal: a row that cannot follow on what it has read says that there are others before.
func (f *Follower) missed() {
	f.mu.Lock()
	refs := make([]host.Ref, 0, len(f.known))
	for ref, one := range f.known { // order does not matter: each is told the same
		refs = append(refs, ref)
		if !one.reading {
			one.last = one.head
		}
	}
	f.mu.Unlock()
	for _, ref := range refs {
		f.hub.Publish(ref, host.Row{Seq: math.MaxUint64})
	}
}

// next is an execution whose journal is to be read, and after which row.
func (f *Follower) next() (ref host.Ref, after uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.fresh) > 0 {
		ref, f.fresh = f.fresh[0], f.fresh[1:]
		one := f.known[ref]
		if one == nil || one.reading || one.head <= one.last {
			continue
		}
		if one.reading = true; one.last == 0 || one.last+nearby < one.head {
			one.last = max(one.head, nearby) - nearby
		}
		if len(f.fresh) > 0 {
			poke(f.wake)
		}
		return ref, one.last, true
	}
	return ref, 0, false
}

// readJournals reads journals until the context ends.
func (f *Follower) readJournals(ctx context.Context) {
	for {
		ref, after, ok := f.next()
		if !ok {
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		last, err := f.publish(ctx, ref, after)
		f.mu.Lock()
		if one := f.known[ref]; one != nil {
			one.reading, one.last = false, max(one.last, last)
			switch {
			case err != nil || last == after: // its readers look for themselves
				one.last = one.head
			case last < one.head:
				f.fresh = append(f.fresh, ref)
			}
		}
		f.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			f.log.Warn("rows that another server has recorded cannot be read", "execution", ref.Execution, "error", err)
			f.hub.Publish(ref, host.Row{Seq: math.MaxUint64})
		}
	}
}

// publish tells the readers of an execution of its rows, and returns which was the last.
func (f *Follower) publish(ctx context.Context, ref host.Ref, after uint64) (last uint64, err error) {
	last = after
	for row, err := range f.source.Rows(ctx, identity.System(ref.Workspace), ref.Execution, after) {
		if err != nil {
			return last, err
		}
		f.Recorded(ref, &row)
		f.hub.Publish(ref, row)
		last = row.Seq
	}
	return last, nil
}

// Recorded remembers which attempts a row has ended.
func (f *Follower) Recorded(ref host.Ref, row *host.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.known[ref]
	if one == nil {
		return
	}
	for _, fact := range row.Facts {
		switch e := fact.(type) {
		case engine.NodeCompleted:
			one.end(e.Attempt)
		case engine.NodeFailed:
			one.end(e.Attempt)
		}
	}
}

func (one *followed) end(a engine.Attempt) {
	if len(one.ended) == maxEnded {
		clear(one.ended)
	}
	one.ended[a.Activation] = a
	for attempt := range one.ends { // order does not matter: those of the activation go, but for a later one that speaks already
		if attempt.Activation == a.Activation && one.past(attempt) {
			delete(one.ends, attempt)
		}
	}
}

// past says that an attempt is not one that goes on.
func (one *followed) past(a engine.Attempt) bool {
	e, ok := one.ended[a.Activation]
	return ok && (a.Generation < e.Generation || a.Generation == e.Generation && a.Attempt <= e.Attempt)
}

// hear takes in what the other process tells.
func (f *Follower) hear(ctx context.Context) func(channel, message string) {
	return func(channel, message string) {
		switch channel {
		case "": // pieces may have been missed
			f.want(ctx, nil, true)
		case followChannel:
			var w wanted
			if err := payload.Read([]byte(message), &w); err != nil || !w.Asking {
				return // it is what another follower wants
			}
			f.want(ctx, nil, false) // who asks sends all by itself; the others need not
		case pieceChannel:
			var p pieces
			if err := payload.Read([]byte(message), &p); err != nil {
				f.log.Warn("output of another server cannot be read", "error", err)
				return
			}
			f.emit(&p)
		}
	}
}

// emit tells the readers of an execution what it hands out, unless they know it.
func (f *Follower) emit(p *pieces) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.known[p.Ref]
	if one == nil {
		return
	}
	for _, o := range p.Outputs {
		if one.past(o.Attempt) {
			continue
		}
		if o.Data != nil {
			one.ends[o.Attempt] += 0 // it is known that there is something of it
			f.hub.Emit(p.Ref, host.Chunk{Attempt: o.Attempt, Data: o.Data})
		}
		skip := max(0, one.ends[o.Attempt]-o.Offset)
		if skip >= int64(len(o.Text)) {
			continue
		}
		one.ends[o.Attempt] = o.Offset + int64(len(o.Text))
		f.hub.Emit(p.Ref, host.Chunk{Attempt: o.Attempt, Text: o.Text[skip:], At: o.Offset + skip})
	}
	for _, l := range p.Logged {
		f.hub.Log(p.Ref, host.Logged{Attempt: l.Attempt, Lines: l.Lines})
	}
}

// renew says again and again what is followed.
func (f *Follower) renew(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-f.tell:
			f.mu.Lock()
			began := f.began
			f.began = nil
			f.mu.Unlock()
			if len(began) > 0 { // otherwise they were named before, with others
				f.want(ctx, began, true)
			}
		case <-tick.C:
			f.want(ctx, nil, false)
		case <-ctx.Done():
			return
		}
	}
}

// want says what is followed: some executions, or all.
func (f *Follower) want(ctx context.Context, refs []host.Ref, anew bool) {
	if refs == nil {
		f.mu.Lock()
		for ref := range f.known { // order does not matter: all are named
			refs = append(refs, ref)
		}
		f.mu.Unlock()
	}
	for some := range slices.Chunk(refs, maxRefs) {
		f.wire.send(ctx, followChannel, wanted{Refs: some, New: anew})
	}
}
