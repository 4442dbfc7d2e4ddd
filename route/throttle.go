package route

import (
	"context"
	"slices"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
)

// How many wrong secrets an address may show within which time, and how many addresses and good secrets are remembered.
const (
	WrongSecrets   = 20
	WrongWindow    = time.Minute
	wrongAddresses = 5_000
	// lookedUpAtOnce is how many secrets of an address that were never right are looked up at the same time; the others wait for their
	// turn, so that many guesses at once are no more than one after the other, and a whole office that comes at once is let in.
	lookedUpAtOnce = 4
	goodSecrets    = 5_000
)

// Throttle slows down who guesses secrets of one sort: tokens of users, passwords of pages, links of questions, addresses of call backs.
//
// It counts failures alone, by address. An address that has shown too many different wrong secrets has no other looked up for a
// while, except those that were right before: behind one address there may be a whole office, and the guesses of one script must
// not end the sessions of the others. One that shows the same wrong secret over and over is refused that one alone, since it
// guesses nothing.
type Throttle struct {
	now func() time.Time

	mu        sync.Mutex
	addresses *Recent[string, *attempts]
	good      *Recent[identity.SecretHash, struct{}]
}

// attempts are those of one address.
type attempts struct {
	// wrong are the failures that count, the oldest first.
	wrong []attempt
	// turns has room for those that are being looked up.
	turns chan struct{}
}

type attempt struct {
	secret identity.SecretHash
	at     time.Time
}

func newThrottle(now func() time.Time) *Throttle {
	return &Throttle{now: now, addresses: newRecent[string, *attempts](wrongAddresses),
		good: newRecent[identity.SecretHash, struct{}](goodSecrets)}
}

// Enter asks whether a secret, which each kind of door hashes in a way of its own, and which came
// from an address, may be looked up. The caller says with leave what has come of it: whether
// the secret was right, or that nothing is known because looking failed.
func (t *Throttle) Enter(ctx context.Context, address string, secret identity.SecretHash) (leave func(right, known bool), err error) {
	a, good := t.find(address, secret)
	if good {
		return func(right, known bool) {
			if known && !right { // it was taken away
				t.mu.Lock()
				defer t.mu.Unlock()
				t.good.drop(secret)
				t.attempts(address).fail(secret, t.now())
			}
		}, nil
	}
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait := a.wait(secret, t.now()); wait > 0 {
		<-a.turns
		return nil, tooManyWrong(wait)
	}
	return func(right, known bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		<-a.turns
		switch {
		case right:
			t.good.put(secret, struct{}{})
		case known:
			a.fail(secret, t.now())
		}
	}, nil
}

// find returns the attempts of an address, unless the secret is known to be good.
func (t *Throttle) find(address string, secret identity.SecretHash) (a *attempts, good bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, good = t.good.get(secret); good {
		return nil, true
	}
	return t.attempts(address), false
}

// Failed counts a refusal where what is right cannot be told before it was looked at, such as a signature. The error is for
// the caller to send instead of its own: too many such came from the address. What is right is never refused.
func (t *Throttle) Failed(address string, what identity.SecretHash) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, now := t.attempts(address), t.now()
	if wait := a.wait(what, now); wait > 0 {
		return tooManyWrong(wait)
	}
	a.fail(what, now)
	return nil
}

func tooManyWrong(wait time.Duration) error {
	return fault.Newf(fault.RateLimited, "too many wrong tokens, links or signatures came from this address; try again in %d seconds", Seconds(wait)).With("retry_after", Seconds(wait))
}

// attempts returns those of an address.
func (t *Throttle) attempts(address string) *attempts {
	a, ok := t.addresses.get(address)
	if !ok {
		a = &attempts{turns: make(chan struct{}, lookedUpAtOnce)}
		t.addresses.put(address, a)
	}
	return a
}

// wait is how long a secret has to wait until it may be looked up; zero: it may be now.
func (a *attempts) wait(secret identity.SecretHash, now time.Time) time.Duration {
	a.wrong = slices.DeleteFunc(a.wrong, func(w attempt) bool { return !w.at.After(now.Add(-WrongWindow)) })
	different, again := 0, false
	for i, w := range a.wrong {
		again = again || w.secret == secret
		if !slices.ContainsFunc(a.wrong[:i], func(before attempt) bool { return before.secret == w.secret }) {
			different++
		}
	}
	if again && len(a.wrong) >= WrongSecrets || !again && different >= WrongSecrets {
		return a.wrong[0].at.Add(WrongWindow).Sub(now)
	}
	return 0
}

// fail counts a wrong secret. Of more than are ever asked for, the oldest are forgotten.
func (a *attempts) fail(secret identity.SecretHash, now time.Time) {
	a.wrong = append(a.wrong, attempt{secret, now})
	if over := len(a.wrong) - 2*WrongSecrets; over > 0 {
		a.wrong = slices.Delete(a.wrong, 0, over)
	}
}

// Seconds is a time in whole seconds that is not too short.
func Seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }
