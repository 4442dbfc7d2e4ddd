// Package listening keeps the accounts open that replies come in by: it begins to listen when an account is needed, again when that has
// failed, and ends a while after the last need. What a reply means does not concern it.
//
// Package human imports it; nothing else does.
package listening

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tandem/fault"
)

// How accounts are listened to.
const (
	// Grace is how long an account is listened to after its last question: the next one often follows.
	Grace      = time.Minute
	firstPause = time.Second
	longPause  = 5 * time.Minute
	// Apart is the least time between two looks at which accounts are needed.
	Apart = time.Second
)

// Options are what listening needs. All fields must be set.
type Options[A comparable] struct {
	// Accounts are those that have to be listened to now.
	Accounts func(ctx context.Context) ([]A, error)
	// Listen listens to an account until the context ends or something goes wrong.
	Listen func(ctx context.Context, a A) error
	// Described is what the log says of an account: names and values.
	Described func(a A) []any
	// Again is how long to wait when the accounts cannot be read.
	Again time.Duration
	Log   *slog.Logger
}

// Ears listens to accounts, each of which is a value of the type A. One goroutine looks which they are and owns the fields; each account
// has a goroutine of its own.
type Ears[A comparable] struct {
	o    Options[A]
	wake chan struct{}
	open map[A]*ear
}

// ear is an account that is listened to.
type ear struct {
	stop context.CancelFunc
	// idle is since when no question needs it; zero: one does.
	idle time.Time
}

// New makes ears that do not listen yet.
func New[A comparable](o Options[A]) *Ears[A] {
	return &Ears[A]{o: o, wake: make(chan struct{}, 1), open: map[A]*ear{}}
}

// Wake lets the accounts be looked at again, soon. It never blocks.
func (e *Ears[A]) Wake() {
	select {
	case e.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// Run listens until the context ends.
func (e *Ears[A]) Run(ctx context.Context) {
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
		case <-time.After(Apart):
		}
	}
}

// pass listens to what is needed, ends what has not been needed for a while, and says how long to wait until the next look.
func (e *Ears[A]) pass(ctx context.Context, listening *sync.WaitGroup) time.Duration {
	accounts, err := e.o.Accounts(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.o.Log.Error("the accounts that replies come in by cannot be read; trying again", "error", err)
		}
		return e.o.Again
	}
	wanted := make(map[A]bool, len(accounts))
	for _, a := range accounts {
		wanted[a] = true
		if one := e.open[a]; one != nil {
			one.idle = time.Time{}
			continue
		}
		own, stop := context.WithCancel(ctx)
		e.open[a] = &ear{stop: stop}
		listening.Go(func() { e.listen(own, a) })
	}
	wait := Grace
	for a, one := range e.open {
		switch {
		case wanted[a]:
			continue
		case one.idle.IsZero():
			one.idle = time.Now()
		}
		if left := Grace - time.Since(one.idle); left > 0 {
			wait = min(wait, left)
			continue
		}
		one.stop()
		delete(e.open, a)
	}
	return wait
}

// listen listens to an account and begins again when that ends.
func (e *Ears[A]) listen(ctx context.Context, a A) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := e.o.Listen(ctx, a)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > Grace {
			pause = firstPause // it worked for a while
		}
		e.o.Log.Warn("replies cannot be read for now; trying again",
			append(e.o.Described(a), "pause", pause, "error", err, "detail", fault.From(err).Detail)...)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
}
