package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tandem/host"
	"tandem/payload"
	"tandem/store"
)

const (
	// renewal is how often followers say again what they follow, and forgotten how long after the last time nobody follows it any more.
	renewal   = 10 * time.Second
	forgotten = 3 * renewal
	// gathering is how long pieces are gathered after some were sent, so that a model that speaks fast does not cost a message for each
	// word.
	gathering = 50 * time.Millisecond
	// failedPause is how long nothing is sent of an execution after something could not be.
	failedPause = 5 * time.Second
	// maxTold is how many executions are told of at once. Who follows more hears of their rows only.
	maxTold = 10_000
)

// Teller tells followers in other processes what executions of this one hand out.
type Teller struct {
	hub  *host.Hub
	wire *sender
	log  *slog.Logger

	mu   sync.Mutex
	told map[host.Ref]*telling
	all  sync.WaitGroup
	// turn is had by the one execution whose pieces are sent: however many are followed, and however slow the database is, they take one
	// connection. What the others hand out meanwhile is gathered, and the end of it kept.
	turn chan struct{}
}

// telling is an execution that somebody follows elsewhere.
type telling struct {
	until time.Time
	// again is sent to when somebody wants what there is so far.
	again chan struct{}
	stop  context.CancelFunc
}

// NewTeller tells what a hub is told.
func NewTeller(hub *host.Hub, wire store.Wire, log *slog.Logger) *Teller {
	return &Teller{hub: hub, wire: &sender{Wire: wire, log: log}, log: log, told: map[host.Ref]*telling{}, turn: make(chan struct{}, 1)}
}

// Run tells until the context ends, and returns when nothing is told any more.
func (t *Teller) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	t.all.Go(func() { t.forget(ctx) })
	for ctx.Err() == nil {
		err := t.wire.Hear(ctx, func(channel, message string) {
			if channel == "" { // who was asking meanwhile was not heard
				t.repeat()
				t.ask(ctx)
				return
			}
			t.noteWanted(ctx, message)
		}, followChannel)
		if ctx.Err() == nil {
			t.log.Error("it is not heard what readers at other servers follow; this is tried again", "error", err)
		}
		rest(ctx)
	}
	cancel()
	t.all.Wait()
}

// ask wants to know who follows what.
func (t *Teller) ask(ctx context.Context) {
	t.wire.send(ctx, followChannel, wanted{Asking: true})
}

// repeat sends what there is so far of each execution that is followed.
func (t *Teller) repeat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.told { // order does not matter: each is looked at by itself
		poke(one.again)
	}
}

// noteWanted notes which execution a process follows.
func (t *Teller) noteWanted(ctx context.Context, message string) {
	var w wanted
	if err := payload.Read([]byte(message), &w); err != nil {
		t.log.Warn("what another server follows cannot be read", "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range w.Refs {
		one := t.told[ref]
		switch {
		case one != nil:
			one.until = time.Now().Add(forgotten)
			if w.New {
				poke(one.again)
			}
		case len(t.told) < maxTold && ctx.Err() == nil:
			t.begin(ctx, ref)
		}
	}
}

// begin begins to tell of an execution. The teller is locked.
func (t *Teller) begin(ctx context.Context, ref host.Ref) {
	ctx, stop := context.WithCancel(ctx)
	one := &telling{until: time.Now().Add(forgotten), again: make(chan struct{}, 1), stop: stop}
	t.told[ref] = one
	t.all.Go(func() { t.tellExecution(ctx, ref, one.again) }) // it ends with the context, which forget ends
}

// forget ends what nobody follows any more.
func (t *Teller) forget(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			t.mu.Lock()
			for ref, one := range t.told { // order does not matter: each is looked at by itself
				if now.After(one.until) {
					one.stop()
					delete(t.told, ref)
				}
			}
			t.mu.Unlock()
		}
	}
}

// send sends what an execution has handed out, when it is its turn, and says whether all of it was sent.
func (t *Teller) send(ctx context.Context, out *pieces) bool {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return false
	}
	for _, part := range out.split() {
		if !t.wire.send(ctx, pieceChannel, part) {
			return false
		}
	}
	return true
}

// tellExecution sends what happens to one execution.
func (t *Teller) tellExecution(ctx context.Context, ref host.Ref, again <-chan struct{}) {
	sub := t.hub.Subscribe(ref)
	defer sub.Close()
	whole := true
	for ctx.Err() == nil {
		out := pieces{Ref: ref}
		var more <-chan struct{}
		if whole {
			_, outputs, behind := sub.Sync()
			if whole = behind; behind { // now it stands at what comes next
				continue
			}
			for i := range outputs {
				out.addOutput(&outputs[i])
			}
		} else {
			var list []host.Notice
			if list, more, whole = sub.Next(); whole {
				continue
			}
			for _, n := range list {
				switch {
				case n.Output != nil:
					out.addOutput(n.Output)
				case n.Logged != nil:
					out.Logged = append(out.Logged, loggedPiece{n.Logged.Attempt, n.Logged.Lines})
				}
			}
		}
		if !out.empty() {
			pause := gathering
			if whole = !t.send(ctx, &out); whole { // what was not sent comes with all there is
				pause = failedPause
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		if more == nil {
			continue
		}
		select {
		case <-more:
		case <-again:
			whole = true
		case <-ctx.Done():
		}
	}
}
