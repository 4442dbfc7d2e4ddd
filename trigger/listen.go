package trigger

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// How listeners are begun again.
const (
	listenFirstPause = time.Second
	listenLongPause  = 5 * time.Minute
	// listenWorked is how long one has to have listened for its failure to be the first.
	listenWorked = time.Minute
)

// ListenState says how a listener fares.
type ListenState string

// The states of a listener: it has not heard anything yet, it hears what arrives, or it has failed and is tried again.
const (
	ListenStarting ListenState = "starting"
	ListenActive   ListenState = "listening"
	ListenFailing  ListenState = "failing"
)

// Listening is how a trigger that is listened for fares in this process.
type Listening struct {
	State ListenState
	// Since is when it came into this state.
	Since time.Time
	// Failures is how often it has failed in a row, Error is why the last time, and Retry is when it is tried again.
	Failures int
	Error    string
	Retry    time.Time

	// attempt is when the attempt that is under way began; zero during a pause.
	attempt time.Time
}

// listeners lets the sources listen that have to. One goroutine decides which triggers are listened for and owns the fields open and
// ending; each trigger has a goroutine of its own.
type listeners struct {
	s    *Service
	wake chan struct{}
	// open stops the listeners that run; ended is closed when the last one of a place has ended.
	open  map[listening]context.CancelFunc
	ended map[place]chan struct{}

	mu    sync.Mutex
	fares map[listening]Listening
}

// place is a trigger node of a workflow, whichever revision is in force.
type place struct{ workspace, workflow, node string }

// listening is a trigger that is listened for. Another revision is another one, because its configuration may differ.
type listening struct {
	place
	revision, since int64
}

func listeningFor(t store.Trigger) listening {
	return listening{place{t.Workspace, t.WorkflowID, t.Node}, t.Revision, t.Created}
}

func newListeners(s *Service) *listeners {
	return &listeners{s: s, wake: make(chan struct{}, 1), open: map[listening]context.CancelFunc{}, ended: map[place]chan struct{}{},
		fares: map[listening]Listening{}}
}

func (l *listeners) run(ctx context.Context) {
	var kinds []string
	for kind, source := range l.s.sources { // order does not matter: each is asked for
		if _, ok := source.(Listener); ok {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := time.Minute
		if err := l.pass(ctx, kinds, &all); err != nil {
			if ctx.Err() == nil {
				l.s.o.Log.Error("the triggers that are listened for cannot be read; trying again", "error", err)
			}
			wait = time.Second
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			for _, stop := range l.open { // order does not matter: all of them end
				stop()
			}
			return
		case <-timer.C:
		case <-l.wake:
		}
	}
}

// pass ends the listeners of triggers that are no longer in force, and begins those of triggers that are. The successor of a listener
// begins when that has ended, so that one mailbox is never read by two revisions at once.
func (l *listeners) pass(ctx context.Context, kinds []string, all *sync.WaitGroup) error {
	wanted := map[listening]store.Trigger{}
	for _, kind := range kinds {
		list, err := l.s.o.Triggers.OfKind(ctx, identity.System(""), kind)
		if err != nil {
			return err
		}
		for _, t := range list {
			wanted[listeningFor(t)] = t
		}
	}
	for key, stop := range l.open { // order does not matter: each stands for itself
		if _, still := wanted[key]; !still {
			stop()
			delete(l.open, key)
		}
	}
	for at, ended := range l.ended { // order does not matter either
		select {
		case <-ended:
			delete(l.ended, at)
		default:
		}
	}
	for key, t := range wanted { // nor here
		if l.open[key] != nil {
			continue
		}
		own, stop := context.WithCancel(ctx)
		before, ended := l.ended[key.place], make(chan struct{})
		l.open[key], l.ended[key.place] = stop, ended
		l.fare(key, func(f *Listening) { *f = Listening{State: ListenStarting, Since: now()} })
		all.Go(func() {
			defer close(ended)
			defer stop()
			if before != nil {
				<-before // it was asked to end
			}
			l.listen(own, key, t)
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.fares, key)
		})
	}
	return nil
}

// fare changes what is shown of a listener.
func (l *listeners) fare(key listening, change func(*Listening)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fares[key]
	change(&f)
	l.fares[key] = f
}

// hears notes that a listener hears what arrives.
func (l *listeners) hears(key listening) {
	l.fare(key, func(f *Listening) {
		if f.State != ListenActive {
			*f = Listening{State: ListenActive, Since: now(), attempt: f.attempt}
		}
	})
}

// Listening tells how a trigger fares that has to be listened for; false: it is not listened for, or not by this process.
func (s *Service) Listening(t store.Trigger) (Listening, bool) {
	s.ears.mu.Lock()
	defer s.ears.mu.Unlock()
	f, ok := s.ears.fares[listeningFor(t)]
	// Not every source says when it hears something; one that has not failed for a while does.
	if ok && f.State != ListenActive && !f.attempt.IsZero() && now().Sub(f.attempt) > listenWorked {
		f = Listening{State: ListenActive, Since: f.attempt}
	}
	return f, ok
}

// listen lets a source listen, and begins again when that ends, from where the source has come to.
func (l *listeners) listen(ctx context.Context, key listening, t store.Trigger) {
	pause := listenFirstPause
	for ctx.Err() == nil {
		began := now()
		l.fare(key, func(f *Listening) { f.attempt, f.Retry = began, time.Time{} })
		err := l.hear(ctx, key, t)
		if ctx.Err() != nil {
			return
		}
		if now().Sub(began) > listenWorked {
			pause = listenFirstPause
		}
		// Many that lose one server at once do not come back at once.
		wait := pause + rand.N(pause/5)
		l.s.o.Log.Warn("a trigger cannot be listened for; trying again", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node,
			"pause", wait, "error", err, "detail", fault.From(err).Detail)
		l.fare(key, func(f *Listening) {
			if f.State != ListenFailing {
				f.State, f.Since = ListenFailing, now()
			}
			f.Failures, f.Error, f.Retry, f.attempt = f.Failures+1, fault.From(err).Message, now().Add(wait), time.Time{}
		})
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		pause = min(2*pause, listenLongPause)
	}
}

// hear lets a source listen once, from the cursor that is stored.
func (l *listeners) hear(ctx context.Context, key listening, t store.Trigger) (err error) {
	defer recovered(t.Kind, &err)
	p := identity.System(t.Workspace)
	current, err := l.s.o.Triggers.InForce(ctx, p, t.WorkflowID)
	if err != nil {
		return err
	}
	for _, one := range current {
		if one.Node == t.Node && one.Kind == t.Kind {
			t.Cursor = one.Cursor
		}
	}
	whole := l.s.trigger(t)
	whole.Ready = func() { l.hears(key) }
	whole.Move = func(ctx context.Context, cursor []byte) error {
		moved := t
		moved.Cursor, moved.Updated = cursor, now().UnixMilli()
		return l.s.o.Triggers.Move(ctx, p, moved)
	}
	listener := l.s.sources[t.Kind].(Listener)
	if err := listener.Listen(ctx, whole, func(ctx context.Context, e Event, cursor []byte) error {
		out, err := l.s.deliver(ctx, t, e, cursor, "", nil)
		if err != nil && out.Delivery.Decision != store.DeliveryRefused {
			return err
		}
		l.hears(key)
		return nil
	}); err != nil {
		return err
	}
	return fault.Newf(fault.Internal, "the source of %s has stopped listening without a reason", t.Kind)
}
