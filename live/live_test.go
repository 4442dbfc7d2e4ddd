package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/live"
	"tandem/store"
)

// air is a database that passes messages on in memory, and has the rows of one execution.
type air struct {
	host.Source
	mu     sync.Mutex
	ears   map[int]ear
	next   int
	rows   []host.Row
	broken error
	// sent counts messages, by channel. A channel that is stuck takes none until it is closed.
	sent  map[string]int
	stuck map[string]chan struct{}
	// cut ends with an error what listens.
	cut chan struct{}
}

type ear struct {
	news     func([]store.Fresh)
	messages func(channel, message string)
	channels string
}

func (a *air) listen(ctx context.Context, e ear) error {
	a.mu.Lock()
	if a.ears == nil {
		a.ears = map[int]ear{}
	}
	a.next++
	n := a.next
	if a.cut == nil {
		a.cut = make(chan struct{})
	}
	cut := a.cut
	a.ears[n] = e
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.ears, n)
		a.mu.Unlock()
	}()
	select {
	case <-cut:
		return errors.New("cut")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Listen implements [store.News].
func (a *air) Listen(ctx context.Context, told func([]store.Fresh)) error {
	told(nil)
	return a.listen(ctx, ear{news: told})
}

// Hear implements [store.Wire].
func (a *air) Hear(ctx context.Context, heard func(channel, message string), channels ...string) error {
	heard("", "")
	return a.listen(ctx, ear{messages: heard, channels: strings.Join(channels, " ")})
}

// Send implements [store.Wire].
func (a *air) Send(ctx context.Context, channel, message string) error {
	a.mu.Lock()
	if a.sent == nil {
		a.sent = map[string]int{}
	}
	a.sent[channel]++
	stuck := a.stuck[channel]
	a.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, e := range a.all() {
		if e.messages != nil && strings.Contains(e.channels, channel) {
			e.messages(channel, message)
		}
	}
	return nil
}

func (a *air) count(channel string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent[channel]
}

func (a *air) all() (list []ear) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.ears { // order does not matter: each hears all
		list = append(list, e)
	}
	return list
}

// Rows implements [host.Source].
func (a *air) Rows(_ context.Context, _ identity.Principal, _ string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		a.mu.Lock()
		rows, broken := a.rows, a.broken
		a.mu.Unlock()
		if broken != nil {
			yield(host.Row{}, broken)
			return
		}
		for _, r := range rows {
			if r.Seq > after && !yield(r, nil) {
				return
			}
		}
	}
}

// append adds rows, and tells of them unless it is silent.
func (a *air) append(silent bool, facts ...engine.Fact) {
	a.mu.Lock()
	a.rows = append(a.rows, host.Row{Seq: uint64(len(a.rows)) + 1, Facts: facts})
	n := uint64(len(a.rows))
	a.mu.Unlock()
	for _, e := range a.all() {
		if e.news != nil && !silent {
			e.news([]store.Fresh{{Ref: store.Ref(ref), Seq: n}, {Ref: store.Ref{Workspace: "w", Execution: "another"}, Seq: 1}})
		}
	}
}

var ref = host.Ref{Workspace: "w", Execution: "e"} // read-only

// two are a process that runs the execution and one that has readers.
func two(t *testing.T) (*air, *host.Hub, *host.Hub, *live.Follower) {
	t.Helper()
	a, runs, reads := &air{}, host.NewHub(), host.NewHub()
	log := slog.New(slog.DiscardHandler)
	follower := live.NewFollower(reads, a, a, a, log)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { live.NewTeller(runs, a, log).Run(ctx) })
	all.Go(func() { follower.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	synctest.Wait()
	return a, runs, reads, follower
}

// seqs are the rows of notices.
func seqs(list []host.Notice) (out []uint64) {
	for _, n := range list {
		if n.Row != nil {
			out = append(out, n.Row.Seq)
		}
	}
	return out
}

func say(attempt uint32, text string) host.Chunk {
	return host.Chunk{Attempt: engine.Attempt{Activation: "n", Attempt: attempt}, Text: text}
}

// heard is what a subscription has heard, as text.
func heard(s *host.Subscription) string {
	synctest.Wait()
	list, _, behind := s.Next()
	var out strings.Builder
	for _, n := range list {
		switch {
		case n.Output != nil:
			out.WriteString(n.Output.Text)
		case n.Logged != nil:
			out.WriteString("[logged]")
		}
	}
	if behind {
		out.WriteString("[behind]")
	}
	return out.String()
}

// TestFollower_Rows: rows that another process has recorded are told in order. What may have been missed is looked for in the journal.
func TestFollower_Rows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _, reads, follower := two(t)
		a.append(true)
		sub := reads.Subscribe(ref)
		defer sub.Close()
		left := follower.Followed(ref)
		for range 3 {
			a.append(false)
		}
		synctest.Wait()
		list, _, _ := sub.Next()
		if got := seqs(list); len(got) < 3 || got[len(got)-1] != 4 || got[len(got)-3] != 2 {
			t.Errorf("told of %v", got)
		}
		a.append(true) // nobody hears of it
		for _, e := range a.all() {
			if e.news != nil {
				e.news(nil)
			}
		}
		synctest.Wait()
		if list, _, _ = sub.Next(); len(list) != 1 || list[0].Row.Seq <= 6 {
			t.Errorf("told of %v, want that the journal is to be read", seqs(list))
		}
		a.append(false)
		synctest.Wait()
		if list, _, _ = sub.Next(); len(list) == 0 || list[len(list)-1].Row.Seq != 6 {
			t.Errorf("told of %v", seqs(list))
		}
		a.mu.Lock()
		a.broken = errors.New("away")
		a.mu.Unlock()
		a.append(false)
		synctest.Wait()
		if list, _, _ = sub.Next(); len(list) != 1 || list[0].Row.Seq <= 8 {
			t.Errorf("told of %v, want that the journal is to be read", seqs(list))
		}
		a.mu.Lock()
		a.broken = nil
		a.mu.Unlock()
		a.append(false)
		synctest.Wait()
		if list, _, _ = sub.Next(); len(list) == 0 || list[len(list)-1].Row.Seq != 8 {
			t.Errorf("told of %v", seqs(list))
		}
		left()
		a.append(false)
		synctest.Wait()
		if list, _, _ = sub.Next(); len(list) != 0 {
			t.Errorf("told of %v, which nobody follows", seqs(list))
		}
	})
}

// TestFollower_Output: who follows at another process is told what there is so far, and every piece once; late pieces of what has ended are not told. Nobody
// is told what nobody follows.
func TestFollower_Output(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		runs.Emit(ref, say(1, "one "))
		sub := reads.Subscribe(ref)
		defer sub.Close()
		left := follower.Followed(ref)
		if got := heard(sub); got != "one " {
			t.Errorf("so far: %q", got)
		}
		runs.Emit(ref, say(1, "two "))
		runs.Emit(ref, say(1, "three "))
		runs.Log(ref, host.Logged{Attempt: engine.Attempt{Activation: "n", Attempt: 1}, Lines: 2})
		time.Sleep(time.Second)
		if got := heard(sub); got != "two three [logged]" {
			t.Errorf("then: %q", got)
		}
		second := follower.Followed(ref)
		for _, e := range a.all() { // all is asked for again, and known
			if e.messages != nil && strings.Contains(e.channels, "pieces") {
				e.messages("", "")
			}
		}
		time.Sleep(time.Second)
		if got := heard(sub); got != "" {
			t.Errorf("again: %q", got)
		}
		for range 10 {
			time.Sleep(10 * time.Second) // it is said again and again what is followed
		}
		runs.Emit(ref, say(1, "four"))
		if got := heard(sub); got != "four" {
			t.Errorf("after a while: %q", got)
		}
		a.append(false, engine.NodeCompleted{Attempt: engine.Attempt{Activation: "n", Attempt: 1}})
		time.Sleep(time.Second)
		runs.Emit(ref, say(1, "late"))
		time.Sleep(time.Second)
		runs.Emit(ref, say(2, "anew"))
		time.Sleep(time.Second)
		if got := heard(sub); got != "anew" {
			t.Errorf("after the end: %q", got)
		}
		left()
		second()
		time.Sleep(time.Minute)
		runs.Emit(ref, say(2, "to nobody"))
		time.Sleep(time.Second)
		if got := heard(sub); got != "" {
			t.Errorf("nobody follows: %q", got)
		}
	})
}

// TestFollower_HearsAgain: what listens and ends with an error begins again, on both sides.
func TestFollower_HearsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		synctest.Wait()
		a.mu.Lock()
		close(a.cut)
		a.cut = nil
		a.mu.Unlock()
		synctest.Wait()
		runs.Emit(ref, say(1, "one "))
		time.Sleep(time.Minute)
		runs.Emit(ref, say(1, "two "))
		time.Sleep(time.Second)
		a.append(false)
		synctest.Wait()
		list, _, _ := sub.Next()
		var text strings.Builder
		for _, n := range list {
			if n.Output != nil {
				text.WriteString(n.Output.Text)
			}
		}
		if got := seqs(list); text.String() != "one two " || len(got) == 0 || got[len(got)-1] != 1 {
			t.Errorf("told %q and of rows %v", text.String(), got)
		}
	})
}

// sofar is what a reader is shown that comes now: the text there is, and the objects.
func sofar(s *host.Subscription) string {
	synctest.Wait()
	var out strings.Builder
	_, outputs, _ := s.Sync()
	for _, o := range outputs {
		out.WriteString(o.Text + string(o.Data))
	}
	return out.String()
}

// TestFollower_Output_Again: a reader who has left and comes again is told everything once, and nothing of what has ended meanwhile.
func TestFollower_Output_Again(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		object := host.Chunk{Attempt: engine.Attempt{Activation: "o", Attempt: 1}, Data: json.RawMessage(`{}`)}
		runs.Emit(ref, say(1, "one "))
		runs.Emit(ref, object)
		for range 3 {
			sub := reads.Subscribe(ref)
			left := follower.Followed(ref)
			got := sofar(sub)
			time.Sleep(time.Second)
			if got += heard(sub); got != "one {}" && got != "{}one " {
				t.Errorf("told %q", got)
			}
			sub.Close()
			left()
		}
		for _, id := range []engine.ActivationID{"n", "o"} { // the server that is followed at does not hear of it
			ended := engine.Attempt{Activation: id, Attempt: 1}
			runs.Ended(ref, ended)
			a.append(false, engine.NodeCompleted{Attempt: ended})
		}
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		if got := sofar(sub); got != "" {
			t.Errorf("told %q, which has ended", got)
		}
	})
}

// TestFollower_Missed: when rows may have been missed, what has ended meanwhile is not shown any more, and what goes on is shown once.
func TestFollower_Missed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, runs, reads, follower := two(t)
		goesOn := host.Chunk{Attempt: engine.Attempt{Activation: "m", Attempt: 1}, Text: "two"}
		runs.Emit(ref, say(1, "one"))
		runs.Emit(ref, goesOn)
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		synctest.Wait()
		runs.Ended(ref, say(1, "").Attempt) // and nobody hears of the row
		follower.Missed(t.Context())
		time.Sleep(time.Second)
		if got := sofar(sub); got != "two" {
			t.Errorf("told %q", got)
		}
	})
}

// TestFollower_Tail: of a text that is too long to be kept the tail is told, from where it begins.
func TestFollower_Tail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, runs, reads, follower := two(t)
		const more = 3*host.MaxText + 5
		runs.Emit(ref, say(1, strings.Repeat("x", more)))
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		synctest.Wait()
		list, _, _ := sub.Next()
		at := int64(more - host.MaxText)
		for _, n := range list { // one after the other
			if n.Output == nil || n.Output.Offset != at || len(n.Output.Text) > 100_000 {
				t.Fatalf("told of %+v, want what begins at %d", n, at)
			}
			at += int64(len(n.Output.Text))
		}
		if at != more {
			t.Errorf("told up to %d of %d", at, more)
		}
	})
}

// TestTeller_Nobody: nothing is sent of what nobody follows, however much there is.
func TestTeller_Nobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		for range 1000 {
			runs.Emit(ref, say(1, "word "))
		}
		time.Sleep(time.Minute)
		if n := a.count("tandem_pieces"); n != 0 {
			t.Errorf("%d messages were sent to nobody", n)
		}
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		if got := heard(sub); len(got) != 5000 {
			t.Errorf("told of %d bytes", len(got))
		}
		for range 1000 {
			runs.Emit(ref, say(1, "word "))
		}
		time.Sleep(time.Second)
		if n := a.count("tandem_pieces"); n > 4 || len(heard(sub)) != 5000 {
			t.Errorf("it has taken %d messages", n)
		}
	})
}

// TestTeller_Asks: a process that comes later, or has lost its connection, learns what is followed; the others do not send again what there is. What it
// may not have heard that somebody wants it sends by itself.
func TestTeller_Asks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		runs.Emit(ref, say(1, "one "))
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		if got := heard(sub); got != "one " {
			t.Errorf("told %q", got)
		}
		before := a.count("tandem_pieces")
		later := host.NewHub()
		later.Emit(ref, host.Chunk{Attempt: engine.Attempt{Activation: "m", Attempt: 1}, Text: "two "})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { live.NewTeller(later, a, slog.New(slog.DiscardHandler)).Run(ctx) })
		time.Sleep(time.Minute)
		if got := heard(sub); got != "two " {
			t.Errorf("then told %q", got)
		}
		if n := a.count("tandem_pieces") - before; n != 1 {
			t.Errorf("%d messages were sent, want that of the process that asked", n)
		}
		before = a.count("tandem_pieces")
		for _, e := range a.all() { // the connections of both are lost, and made again
			if e.messages != nil && !strings.Contains(e.channels, "pieces") {
				e.messages("", "")
			}
		}
		time.Sleep(time.Second)
		if n := a.count("tandem_pieces") - before; n != 2 {
			t.Errorf("%d messages were sent, want one of each", n)
		}
		if got := heard(sub); got != "" {
			t.Errorf("told %q again", got)
		}
	})
}

// counted counts what is logged.
type counted struct {
	slog.Handler
	n *atomic.Int32
}

// Handle implements [slog.Handler].
func (c counted) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }

// Enabled implements [slog.Handler].
func (counted) Enabled(context.Context, slog.Level) bool { return true }

// TestTeller_LogsRarely: while the database is away that is logged once a minute, however many executions are followed.
func TestTeller_LogsRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, _, follower := two(t)
		hub, n := host.NewHub(), &atomic.Int32{}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { live.NewTeller(hub, a, slog.New(counted{slog.DiscardHandler, n})).Run(ctx) })
		synctest.Wait()
		for i := range 20 {
			one := host.Ref{Workspace: "w", Execution: strconv.Itoa(i)}
			defer follower.Followed(one)()
			hub.Emit(one, say(1, "one"))
		}
		runs.Emit(ref, say(1, "one"))
		a.mu.Lock()
		a.stuck = map[string]chan struct{}{"tandem_pieces": make(chan struct{})} // a message ends with its time
		a.mu.Unlock()
		time.Sleep(5*time.Minute + 30*time.Second)
		if got := n.Load(); got == 0 || got > 6 {
			t.Errorf("it was logged %d times", got)
		}
	})
}

// TestTeller_SlowWire: who hands something out does not wait for a database that takes nothing. When it does again, readers are told all that is kept,
// in order.
func TestTeller_SlowWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, runs, reads, follower := two(t)
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		synctest.Wait()
		open := make(chan struct{})
		a.mu.Lock()
		a.stuck = map[string]chan struct{}{"tandem_pieces": open}
		a.mu.Unlock()
		var all strings.Builder
		began := time.Now()
		for n := range 5000 {
			word := strings.Repeat(string(rune('a'+n%26)), 100)
			all.WriteString(word)
			runs.Emit(ref, say(1, word))
		}
		if waited := time.Since(began); waited != 0 { // of the test's own clock
			t.Errorf("it has waited for %v", waited)
		}
		time.Sleep(time.Minute)
		a.mu.Lock()
		a.stuck = nil
		a.mu.Unlock()
		close(open)
		time.Sleep(time.Minute)
		if got := heard(sub); got != all.String() {
			t.Errorf("told of %d bytes of %d", len(got), all.Len())
		}
	})
}

// TestFollower_Output_Workers: without news a follower tells of output alone, of whichever process makes it; a later attempt that speaks before the row is told
// which ended the one before is told once.
func TestFollower_Output_Workers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, reads := &air{}, host.NewHub()
		log := slog.New(slog.DiscardHandler)
		follower := live.NewFollower(reads, a, nil, a, log)
		workers := []*host.Hub{host.NewHub(), host.NewHub()}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { follower.Run(ctx) })
		for _, w := range workers {
			all.Go(func() { live.NewTeller(w, a, log).Run(ctx) })
		}
		defer all.Wait()
		defer cancel()
		synctest.Wait()
		sub := reads.Subscribe(ref)
		defer sub.Close()
		defer follower.Followed(ref)()
		workers[0].Emit(ref, say(1, "one "))
		if got := heard(sub); got != "one " {
			t.Errorf("told %q", got)
		}
		workers[1].Emit(ref, say(2, "two "))
		time.Sleep(time.Second)
		row := host.Row{Seq: 7, Facts: []engine.Fact{engine.NodeFailed{Attempt: engine.Attempt{Activation: "n", Attempt: 1}}}}
		follower.Recorded(ref, &row) // it is told late
		workers[0].Emit(ref, say(1, "late "))
		time.Sleep(time.Second)
		for _, e := range a.all() { // all is asked for again
			if strings.Contains(e.channels, "pieces") {
				e.messages("", "")
			}
		}
		workers[1].Emit(ref, say(2, "three"))
		time.Sleep(time.Second)
		if got := heard(sub); got != "two three" {
			t.Errorf("then told %q", got)
		}
		if list, _, _ := sub.Next(); len(seqs(list)) > 0 {
			t.Errorf("told of rows %v", seqs(list))
		}
	})
}
