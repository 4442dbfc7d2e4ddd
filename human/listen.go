package human

import (
	"context"
	"maps"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// How accounts are listened to.
const (
	// listenGrace is how long an account is listened to after its last question: the next one often follows.
	listenGrace      = time.Minute
	listenFirstPause = time.Second
	listenLongPause  = 5 * time.Minute
	// listenApart is the least time between two looks at which accounts are needed.
	listenApart = time.Second
)

// ears listens to the accounts that replies to pending questions come in by, and to those that triggers share. One goroutine looks which they are and owns the fields; each
// account has a goroutine of its own.
type ears struct {
	*backroom
	wake chan struct{}
	open map[store.Account]*ear
}

// ear is an account that is listened to.
type ear struct {
	stop context.CancelFunc
	// idle is since when no question needs it; zero: one does.
	idle time.Time
}

func newEars(b *backroom) *ears {
	return &ears{backroom: b, wake: make(chan struct{}, 1), open: map[store.Account]*ear{}}
}

func (e *ears) run(ctx context.Context) {
	if !e.needed() {
		return
	}
	var listening sync.WaitGroup
	defer listening.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(e.pass(ctx, &listening))
		select {
		case <-ctx.Done():
			for _, one := range e.open {
				one.stop()
			}
			return
		case <-timer.C:
			continue
		case <-e.wake:
		}
		// Many questions at once are one look.
		select {
		case <-ctx.Done():
		case <-time.After(listenApart):
		}
	}
}

// needed says whether there is a channel that has to be listened to.
func (e *ears) needed() bool {
	for c := range maps.Values(e.channels) {
		if _, ok := c.(Listener); ok {
			return true
		}
	}
	return false
}

// pass listens to what is needed, ends what has not been needed for a while, and says how long to wait until the next look.
func (e *ears) pass(ctx context.Context, listening *sync.WaitGroup) time.Duration {
	accounts, err := e.o.Interactions.Accounts(ctx, identity.System(""))
	if err == nil && e.o.Listened != nil {
		var shared []store.Account
		shared, err = e.o.Listened(ctx)
		accounts = append(accounts, shared...)
	}
	if err != nil {
		if ctx.Err() == nil {
			e.o.Log.Error("the accounts that replies come in by cannot be read; trying again", "error", err)
		}
		return longestNap
	}
	wanted := make(map[store.Account]bool, len(accounts))
	for _, a := range accounts {
		listener, ok := e.channels[a.Channel].(Listener)
		if !ok {
			continue
		}
		wanted[a] = true
		if one := e.open[a]; one != nil {
			one.idle = time.Time{}
			continue
		}
		own, stop := context.WithCancel(ctx)
		e.open[a] = &ear{stop: stop}
		listening.Go(func() { e.listen(own, listener, a) })
	}
	wait := listenGrace
	for a, one := range e.open {
		switch {
		case wanted[a]:
			continue
		case one.idle.IsZero():
			one.idle = time.Now()
		}
		if left := listenGrace - time.Since(one.idle); left > 0 {
			wait = min(wait, left)
			continue
		}
		one.stop()
		delete(e.open, a)
	}
	return wait
}

// listen listens to an account and begins again when that ends.
func (e *ears) listen(ctx context.Context, listener Listener, a store.Account) {
	pause := listenFirstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := e.hear(ctx, listener, a)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > listenGrace {
			pause = listenFirstPause // it worked for a while
		}
		e.o.Log.Warn("replies cannot be read for now; trying again", "workspace", a.Workspace, "channel", a.Channel, "credential", a.Credential, "pause", pause, "error", err, "detail", fault.From(err).Detail)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, listenLongPause)
	}
}

// hear lets the channel listen.
func (e *ears) hear(ctx context.Context, listener Listener, a store.Account) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = broken(a.Channel, p)
		}
	}()
	if err := listener.Listen(ctx, e.account(a), e.handle); err != nil {
		return err
	}
	return fault.Newf(fault.Internal, "channel %q has stopped listening without a reason", a.Channel)
}
