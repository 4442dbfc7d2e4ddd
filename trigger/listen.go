package trigger

import (
	"context"
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

// listeners lets the sources listen that have to. One goroutine looks which triggers there are and owns the fields; each trigger has a goroutine of its own.
type listeners struct {
	s    *Service
	wake chan struct{}
	open map[listening]func()
}

// listening is a trigger that is listened for. Another revision is another one: its configuration may differ.
type listening struct {
	workspace, workflow, node string
	revision, since           int64
}

func newListeners(s *Service) *listeners {
	return &listeners{s: s, wake: make(chan struct{}, 1), open: map[listening]func(){}}
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
			for _, stop := range l.open {
				stop()
			}
			return
		case <-timer.C:
		case <-l.wake:
		}
	}
}

// pass listens for what is in force, and ends what is no longer.
func (l *listeners) pass(ctx context.Context, kinds []string, all *sync.WaitGroup) error {
	wanted := map[listening]bool{}
	for _, kind := range kinds {
		list, err := l.s.o.Triggers.OfKind(ctx, identity.System(""), kind)
		if err != nil {
			return err
		}
		for _, t := range list {
			key := listening{t.Workspace, t.WorkflowID, t.Node, t.Revision, t.Created}
			wanted[key] = true
			if l.open[key] != nil {
				continue
			}
			own, stop := context.WithCancel(ctx)
			done := make(chan struct{})
			l.open[key] = func() {
				stop()
				<-done
			}
			all.Go(func() {
				defer close(done)
				l.listen(own, t)
			})
		}
	}
	for key, stop := range l.open {
		if !wanted[key] {
			stop()
			delete(l.open, key)
		}
	}
	return nil
}

// listen lets a source listen, and begins again when that ends, from where the source has come to.
func (l *listeners) listen(ctx context.Context, t store.Trigger) {
	pause := listenFirstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := l.hear(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > listenWorked {
			pause = listenFirstPause
		}
		l.s.o.Log.Warn("a trigger cannot be listened for; trying again", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "pause", pause, "error", err, "detail", fault.From(err).Detail)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, listenLongPause)
	}
}

func (l *listeners) hear(ctx context.Context, t store.Trigger) (err error) {
	defer recovered(t.Kind, &err)
	current, err := l.s.o.Triggers.InForce(ctx, identity.System(t.Workspace), t.WorkflowID)
	if err != nil {
		return err
	}
	for _, one := range current {
		if one.Node == t.Node && one.Kind == t.Kind {
			t.Cursor = one.Cursor
		}
	}
	listener := l.s.sources[t.Kind].(Listener)
	if err := listener.Listen(ctx, l.s.trigger(t), func(ctx context.Context, e Event, cursor []byte) error {
		_, err := l.s.deliver(ctx, t, e, cursor, "", nil)
		return err
	}); err != nil {
		return err
	}
	return fault.Newf(fault.Internal, "the source of %s has stopped listening without a reason", t.Kind)
}
