package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// spring is a source whose triggers listen to one list of events. The cursor is how many of them were delivered.
type spring struct {
	odd
	mu       sync.Mutex
	events   []string
	more     chan struct{}
	position func(trigger.Trigger) ([]byte, error)
	// running counts those that listen, most the most at once; slow is called before each delivery.
	running, most int
	slow          func(trigger.Trigger)
}

func (s *spring) add(list ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, list...)
	if s.more != nil {
		close(s.more)
	}
	s.more = make(chan struct{})
}

func (s *spring) Position(_ context.Context, t trigger.Trigger) ([]byte, error) { return s.position(t) }

func (s *spring) Listen(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}()
	t.Ready()
	for at := len(t.Cursor); ; {
		s.mu.Lock()
		events, more := slices.Clone(s.events), s.more
		s.mu.Unlock()
		for ; at < len(events); at++ {
			if s.slow != nil {
				s.slow(t)
			}
			// Without a key nothing but the cursor keeps an event from being taken twice.
			if err := deliver(context.WithoutCancel(ctx), trigger.Event{Payload: triggertest.Payload("event", events[at])}, []byte(strings.Repeat("i", at+1))); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestListener_Redeploy deploys anew again and again while events arrive: each starts one execution, of the revision that is in force then,
// and no two revisions listen at once.
func TestListener_Redeploy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		source := &spring{position: func(trigger.Trigger) ([]byte, error) { return nil, nil }, slow: func(trigger.Trigger) { time.Sleep(300 * time.Millisecond) }}
		service := shelf.Service([]trigger.Source{source}, oneNode)
		service.Start()
		defer service.Close()
		var want []string
		for revision := range int64(20) {
			for n := range 5 {
				want = append(want, fmt.Sprint(revision, "-", n))
				source.add(want[len(want)-1])
			}
			if err := service.Deploy(t.Context(), p, "flow", revision+1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		var got []string
		last := int64(0)
		for _, start := range shelf.Starts() {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(start.Payload), `{"event":"`), `"}`))
			if start.Revision < last {
				t.Errorf("revision %d started %s after revision %d had been", start.Revision, start.Payload, last)
			}
			last = start.Revision
		}
		if !slices.Equal(got, want) {
			t.Errorf("started\n%q, want\n%q", got, want)
		}
		if source.most != 1 || last != 20 {
			t.Errorf("%d listened at once, and the last revision was %d", source.most, last)
		}
	})
}

// TestListener_Position lets a source say where a trigger begins: at the deployment, although nothing can be heard then.
func TestListener_Position(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		source := &spring{}
		var before []string
		source.position = func(one trigger.Trigger) ([]byte, error) {
			before = append(before, string(one.Cursor))
			if len(one.Cursor) > 0 {
				return nil, nil
			}
			return []byte(strings.Repeat("i", len(source.events))), nil
		}
		source.add("old", "older")
		deployer := shelf.Service([]trigger.Source{source}, oneNode) // it deploys, and is gone before it listens
		if err := deployer.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		source.add("new")
		service := shelf.Service([]trigger.Source{source}, oneNode)
		service.Start()
		defer service.Close()
		time.Sleep(time.Second)
		if err := service.Deploy(t.Context(), p, "flow", 2); err != nil {
			t.Fatal(err)
		}
		source.position = func(trigger.Trigger) ([]byte, error) { return nil, fault.New(fault.NotFound, "no such mailbox") }
		if err := service.Deploy(t.Context(), p, "flow", 3); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), `trigger "n": no such mailbox`) {
			t.Errorf("a position that cannot be found: %v", err)
		}
		source.add("newer")
		time.Sleep(time.Second)
		var got []string
		for _, start := range shelf.Starts() {
			got = append(got, fmt.Sprint(start.Revision, string(start.Payload)))
		}
		if want := []string{`1{"event":"new"}`, `2{"event":"newer"}`}; !slices.Equal(got, want) || !slices.Equal(before, []string{"", "iii"}) {
			t.Errorf("started %q; the cursors before were %q", got, before)
		}
	})
}

// TestListener_Fares tells how a listener fares: why it fails and when it is tried again, until it hears something.
func TestListener_Fares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		var broken error = fault.New(fault.CredentialInvalid, "the password is wrong")
		var mu sync.Mutex
		source := &odd{listen: func(ctx context.Context, one trigger.Trigger, _ trigger.Deliver) error {
			mu.Lock()
			err := broken
			mu.Unlock()
			if err != nil {
				return err
			}
			one.Ready()
			if err := one.Move(ctx, []byte("here")); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		service := shelf.Service([]trigger.Source{source}, oneNode)
		service.Start()
		if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		fares := func() trigger.Listening {
			t.Helper()
			list, err := shelf.InForce(t.Context(), p, "flow")
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			f, ok := service.Listening(list[0])
			if !ok {
				t.Fatal("nobody listens")
			}
			return f
		}
		if f := fares(); f.State != trigger.ListenFailing || f.Error != "the password is wrong" || f.Failures < 3 || !f.Retry.After(time.Now()) {
			t.Errorf("it fares %+v", f)
		}
		mu.Lock()
		broken = nil
		mu.Unlock()
		time.Sleep(time.Minute)
		if f := fares(); f.State != trigger.ListenActive || f.Error != "" || f.Failures != 0 {
			t.Errorf("it fares %+v", f)
		}
		if at := shelf.Cursor("w", "flow", "n"); at != "here" {
			t.Errorf("the cursor is %q", at)
		}
		list, err := shelf.InForce(t.Context(), p, "flow")
		if err != nil {
			t.Fatal(err)
		}
		service.Close()
		if f, ok := service.Listening(list[0]); ok {
			t.Errorf("after the end it fares %+v", f)
		}
	})
}

// TestListener_Refused goes on behind an event that can never be started, and hands nothing over for a trigger that is no longer in force.
func TestListener_Refused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		shelf.RefuseStarts(func(s trigger.Start) error {
			if strings.Contains(string(s.Payload), "bad") {
				return fault.New(fault.TooLarge, "it is too large")
			}
			return nil
		})
		gone := make(chan error, 1)
		source := &odd{listen: func(ctx context.Context, _ trigger.Trigger, deliver trigger.Deliver) error {
			for n, key := range []string{"good", "bad", "better"} {
				if err := deliver(ctx, trigger.Event{Key: key, Payload: triggertest.Payload("k", key)}, []byte(strings.Repeat("i", n+1))); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
			<-ctx.Done()
			gone <- deliver(context.WithoutCancel(ctx), trigger.Event{Key: "late", Payload: triggertest.Payload("k", "late")}, []byte("iiii"))
			return ctx.Err()
		}}
		service := shelf.Service([]trigger.Source{source}, oneNode)
		service.Start()
		defer service.Close()
		if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := service.Undeploy(t.Context(), p, "flow"); err != nil {
			t.Fatal(err)
		}
		if err := <-gone; !errors.As(err, new(*store.SupersededError)) {
			t.Errorf("delivered after the end: %v", err)
		}
		if got := shelf.Kept(); !slices.Equal(got, []string{"good started", "bad refused", "better started"}) {
			t.Errorf("kept %q", got)
		}
	})
}
