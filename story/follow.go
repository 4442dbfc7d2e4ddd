package story

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tandem/host"
	"tandem/identity"
)

// ErrFinished says that an execution has ended and its stream with it.
var ErrFinished = errors.New("the execution has ended")

// Reader follows one execution from a position: the journal first, then what happens, without a gap and without telling
// anything twice. It ends when the execution has ended and everything was told. It has one user.
type Reader struct {
	lib     *Library
	ref     host.Ref
	subject *subject
	words   Vocabulary
	from    Position
	// shared is the context under which is read what several readers share.
	shared context.Context

	sub *host.Subscription
	// left is called when the reader is closed; nil: nobody was told that it follows.
	left func()
	feed *feed
	// own tells rows that the feed does not; nil while the feed does.
	own *teller
	// seq is the last row that was told, or that lies before the position.
	seq uint64
	// final says that the execution has ended, as of the row head, or as of the beginning when there was none yet.
	final bool
	head  uint64
	// live is set once the journal was read up to what the hub has; lost when output was left out since.
	live, lost bool
}

// Follow finds the execution and begins to follow it. What several readers share is read under the context shared, which ends
// after all of them. The reader must be closed.
func (l *Library) Follow(ctx, shared context.Context, p identity.Principal, execution string, words Vocabulary,
	from Position) (_ *Reader, err error) {
	// First of all the subscription: what is read later than that cannot have missed anything.
	ref := host.Ref{Workspace: p.Workspace, Execution: execution}
	sub := l.Hub.Subscribe(ref)
	defer func() {
		if err != nil {
			sub.Close()
		}
	}()
	found, err := l.OpenExecution(ctx, p, execution)
	if err != nil {
		return nil, err
	}
	about := &subject{journal: found.Journal, name: found.Summary.WorkflowName, address: l.addressesFor(p, execution, found.Graph)}
	if words == VocabularyFlow {
		about.toUser = found.Ready.ToUser()
	}
	r := &Reader{lib: l, ref: ref, shared: shared, subject: about, words: words, from: from, sub: sub, seq: from.before(),
		final: found.Summary.Status.Final()}
	if !r.final { // what has ended hands nothing out
		r.join()
	}
	r.feed, _ = sub.Shared(feedKey{words, about.address != nil}, func() any { return &feed{} }).(*feed)
	return r, nil
}

// join says that somebody follows the execution, unless it was said. It returns that the journal is to be read after that.
func (r *Reader) join() bool {
	if r.left != nil || r.lib.Followed == nil {
		return false
	}
	r.left = r.lib.Followed(r.ref)
	return true
}

// Close ends the reader.
func (r *Reader) Close() {
	r.sub.Close()
	if r.left != nil {
		r.left()
		r.left = nil
	}
}

// Execution is the id of what is followed.
func (r *Reader) Execution() string { return r.subject.journal.Execution }

// Place is the row that was told last, or that lies before the position, and whether the execution has ended as far as is known.
func (r *Reader) Place() (row uint64, ended bool) { return r.seq, r.final }

// readBatch is how many rows are told at a time.
const readBatch = 100

// Next returns the frames that follow, at least one. It waits for them until wake, when it returns none. It fails with
// errFinished when there will be none.
func (r *Reader) Next(ctx context.Context, wake <-chan time.Time) ([]Frame, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if !r.live {
			frames, err := r.catchUp(ctx)
			if err != nil || len(frames) > 0 {
				return frames, err
			}
			continue
		}
		list, more, behind := r.sub.Next()
		if behind {
			r.live, r.lost = false, true
			continue
		}
		frames, err := r.follow(list)
		if err != nil || len(frames) > 0 {
			return frames, err
		}
		if more == nil {
			continue
		}
		if r.final {
			return nil, ErrFinished
		}
		if r.join() { // it had ended, and goes on
			r.live = false
			continue
		}
		select {
		case <-more:
		case <-wake:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// catchUp reads the journal, a batch at a time, until the hub has the rest.
func (r *Reader) catchUp(ctx context.Context) (frames []Frame, err error) {
	n := 0
	for row, err := range r.subject.journal.Rows(ctx, r.seq) {
		if err != nil {
			return nil, err
		}
		if frames, err = r.appendRow(frames, &row); err != nil {
			return nil, err
		}
		if n++; n == readBatch && len(frames) > 0 {
			return frames, nil
		}
	}
	rows, outputs, behind := r.sub.Sync()
	if behind {
		return frames, nil // it was a long time ago that the journal was read; there is more in it now
	}
	for _, row := range rows {
		if row.Seq > r.seq+1 {
			return frames, nil // the journal has what comes before
		}
		if frames, err = r.appendRow(frames, row); err != nil {
			return nil, err
		}
	}
	r.live = true
	mark := outputSnapshot
	if r.lost {
		mark, r.lost = outputMissed, false
		if frames, err = r.logged(frames, host.Logged{}); err != nil {
			return nil, err
		}
	}
	for i := range outputs {
		if frames, err = r.output(frames, &outputs[i], mark); err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// follow tells what the hub has.
func (r *Reader) follow(list []host.Notice) (frames []Frame, err error) {
	for _, n := range list {
		if n.Output != nil {
			frames, err = r.output(frames, n.Output, outputPiece)
		} else if n.Logged != nil {
			frames, err = r.logged(frames, *n.Logged)
		} else if n.Row.Seq <= r.seq+1 {
			frames, err = r.appendRow(frames, n.Row)
		} else {
			r.live, r.lost = false, true // a row was not published; the journal has it
			return frames, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// appendRow appends the frames of a row that the reader has not seen.
func (r *Reader) appendRow(frames []Frame, row *host.Row) ([]Frame, error) {
	if row.Seq > r.head {
		r.head = row.Seq
		for i := range row.Told {
			if t := &row.Told[i]; t.What == host.ToldExecution {
				r.final = t.Status.Final()
			}
		}
	}
	if row.Seq <= r.seq {
		return frames, nil
	}
	told, err := r.translate(row)
	if err != nil {
		return nil, err
	}
	r.seq = row.Seq
	for _, f := range told {
		if r.from.passes(f.Seq, f.part) {
			frames = append(frames, f)
		}
	}
	return frames, nil
}

// translate puts a row into words, if possible with the help of others who have read it.
func (r *Reader) translate(row *host.Row) ([]Frame, error) {
	ctx := r.shared
	if told, ok, err := r.feed.framesOf(ctx, row); ok || err != nil {
		r.own = nil
		return told, err
	}
	if r.own == nil || r.own.Seq()+1 != row.Seq {
		own, err := r.subject.teller(ctx, r.words, row.Seq-1)
		if err != nil {
			return nil, err
		}
		r.own = own
	}
	told, err := r.own.tellRow(ctx, row)
	if err != nil {
		return nil, err
	}
	if r.feed.adoptTeller(r.own, told) {
		r.own = nil
	}
	return told, nil
}

// output appends a frame of output while it is made.
func (r *Reader) output(frames []Frame, o *host.Output, mark outputMark) ([]Frame, error) {
	f, ok, err := r.subject.output(r.words, o, mark, r.lib.now())
	if err != nil || !ok {
		return frames, err
	}
	return append(frames, f), nil
}

// logged appends a frame that says that lines were stored.
func (r *Reader) logged(frames []Frame, l host.Logged) ([]Frame, error) {
	f, ok, err := r.subject.logged(r.words, l, r.lib.now())
	if err != nil || !ok {
		return frames, err
	}
	return append(frames, f), nil
}

// feedKey tells the feeds of an execution apart: by the vocabulary, and by whether the addresses that end waits are told.
type feedKey struct {
	words     Vocabulary
	addresses bool
}

// feed is what the readers of one execution in one vocabulary, who may see the same, share: one teller, and the frames of the
// rows that it told last, so that a row is told once, however many read it. A reader that is not near it has a teller of its own.
type feed struct {
	mu sync.Mutex
	// teller stands behind the last of rows; the first of them has the number first.
	teller *teller
	first  uint64
	rows   [][]Frame
	bytes  int
}

// What a feed keeps, and how far it may be behind a row to be brought up to it.
const (
	feedRows  = 1024
	feedBytes = 2 << 20
	feedGap   = 256
)

// framesOf returns the frames of a row; not ok when the feed is elsewhere.
func (f *feed) framesOf(ctx context.Context, row *host.Row) (frames []Frame, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.teller == nil:
		return nil, false, nil
	case row.Seq <= f.teller.Seq():
		if row.Seq < f.first {
			return nil, false, nil
		}
		return f.rows[row.Seq-f.first], true, nil
	case row.Seq > f.teller.Seq()+feedGap:
		return nil, false, nil
	}
	if row.Seq > f.teller.Seq()+1 {
		for missing, err := range f.teller.subject.journal.Rows(ctx, f.teller.Seq()) {
			if err != nil {
				return nil, false, err
			}
			if missing.Seq == row.Seq {
				break
			}
			if _, err := f.addRow(ctx, &missing); err != nil {
				return nil, false, err
			}
		}
	}
	frames, err = f.addRow(ctx, row)
	return frames, err == nil, err
}

// addRow makes the frames of the next row. A teller that has failed at a row cannot be used any more.
func (f *feed) addRow(ctx context.Context, row *host.Row) ([]Frame, error) {
	frames, err := f.teller.tellRow(ctx, row)
	if err != nil {
		f.teller, f.rows, f.bytes = nil, nil, 0
		return nil, err
	}
	f.keep(frames)
	return frames, nil
}

func (f *feed) keep(frames []Frame) {
	f.rows = append(f.rows, frames)
	f.bytes += sizeOf(frames)
	if len(f.rows) <= feedRows && f.bytes <= feedBytes {
		return
	}
	cut := (len(f.rows) + 1) / 2 // half of it at a time, so that keeping stays cheap
	f.first += uint64(cut)
	f.rows = slices.Clone(f.rows[cut:])
	f.bytes = 0
	for _, kept := range f.rows {
		f.bytes += sizeOf(kept)
	}
}

func sizeOf(frames []Frame) int {
	n := 64
	for i := range frames {
		n += 64 + len(frames[i].Body)
	}
	return n
}

// adoptTeller makes a reader's teller, which has just told a row, that of the feed, if the feed has none or is far behind.
func (f *feed) adoptTeller(t *teller, frames []Frame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.teller != nil && t.Seq() <= f.teller.Seq()+feedGap {
		return false
	}
	f.teller, f.first, f.rows, f.bytes = t, t.Seq(), [][]Frame{frames}, sizeOf(frames)
	return true
}
