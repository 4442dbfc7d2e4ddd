package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// odd is a source of every sort, whose parts a test sets.
type odd struct {
	register func(trigger.Trigger) error
	receive  func(*trigger.Request) (trigger.Verdict, error)
	listen   func(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error
	undone   []string
}

func (o *odd) Kind() string { return "TRIGGER.ODD" }
func (o *odd) Register(_ context.Context, t trigger.Trigger) error {
	if o.register == nil {
		return nil
	}
	return o.register(t)
}
func (o *odd) Unregister(_ context.Context, t trigger.Trigger) error {
	o.undone = append(o.undone, t.Node)
	return errors.New("it is only logged")
}
func (o *odd) Route(t trigger.Trigger) (trigger.Route, error) {
	return trigger.Route{Path: "/" + t.Node, Methods: []string{"POST"}}, nil
}
func (o *odd) Receive(_ context.Context, _ trigger.Trigger, r *trigger.Request) (trigger.Verdict, error) {
	return o.receive(r)
}
func (o *odd) Listen(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error {
	if o.listen == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return o.listen(ctx, t, deliver)
}

func oneNode(string, int64) []trigger.Node { return []trigger.Node{{ID: "n", Kind: "TRIGGER.ODD"}} }

// TestService_Listener lets a source listen: what it delivers is kept with its cursor, and it begins again where it was after a failure and
// a restart.
func TestService_Listener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		var began []string
		source := &odd{listen: func(ctx context.Context, one trigger.Trigger, deliver trigger.Deliver) error {
			began = append(began, string(one.Cursor))
			next := len(one.Cursor)
			for _, key := range []string{fmt.Sprint(next), fmt.Sprint(next)} { // the service is told of each message twice
				if err := deliver(ctx, trigger.Event{Key: key, Payload: []byte(`{}`)}, []byte(strings.Repeat("i", next+1))); err != nil {
					return err
				}
			}
			if next >= 2 {
				if err := deliver(ctx, trigger.Event{Key: "quiet", Payload: []byte(`{}`), Ignored: "no match"}, []byte("iii")); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}
			if next == 1 {
				panic("a defect of the source")
			}
			return errors.New("the connection broke")
		}}
		service := shelf.Service([]trigger.Source{source}, oneNode)
		service.Start()
		if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		service.Close()
		if got := shelf.Kept(); !slices.Equal(got, []string{"0 started", "1 started", "2 started", "quiet ignored"}) {
			t.Errorf("kept %q", got)
		}
		again := shelf.Service([]trigger.Source{source}, oneNode)
		again.Start()
		time.Sleep(time.Second)
		if err := again.Undeploy(t.Context(), p, "flow"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		again.Close()
		if !slices.Equal(began, []string{"", "i", "ii", "iii"}) {
			t.Errorf("it began at %q", began)
		}
		if !slices.Equal(source.undone, []string{"n"}) {
			t.Errorf("undone %q", source.undone)
		}
	})
}

// TestService_StartsLater keeps what cannot be started for now, and starts it once it can be; what can never be started is given up.
func TestService_StartsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, p := triggertest.NewShelf(), identity.System("w")
		full := fault.New(fault.Internal, "the disk is full")
		shelf.RefuseStarts(func(trigger.Start) error { return full })
		source := &odd{receive: func(r *trigger.Request) (trigger.Verdict, error) {
			return trigger.Verdict{Event: trigger.Event{Key: r.Header.Get("K"), Payload: []byte(`{"n":"` + strings.Repeat("x", 40<<10) + `"}`)}}, nil
		}}
		service := shelf.Service([]trigger.Source{source}, oneNode)
		if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
			t.Fatal(err)
		}
		send := func(key string) (trigger.Outcome, error) {
			door, err := service.Find(t.Context(), "w", "flow", "/n", "POST")
			if err != nil {
				t.Fatal(err)
			}
			return door.Receive(t.Context(), &trigger.Request{Header: map[string][]string{"K": {key}}}, nil)
		}
		first, err := send("a")
		if err != nil || first.Delivery.Decision != store.DeliveryAccepted {
			t.Fatalf("%+v, %v", first, err)
		}
		if again, err := send("a"); err != nil || !again.Repeated || again.Delivery.ID != first.Delivery.ID {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		service.Start()
		defer service.Close()
		time.Sleep(10 * time.Second)
		if len(shelf.Starts()) != 0 {
			t.Error("it was started")
		}
		shelf.RefuseStarts(nil)
		time.Sleep(time.Minute)
		if got := shelf.Starts(); len(got) != 1 || len(got[0].Payload) < 40<<10 {
			t.Errorf("starts %d", len(got))
		}

		// It may also turn out that it never can be.
		shelf.RefuseStarts(func(trigger.Start) error { return full })
		if _, err := send("b"); err != nil {
			t.Fatal(err)
		}
		shelf.RefuseStarts(func(trigger.Start) error { return fault.New(fault.NotFound, "the workflow is gone") })
		time.Sleep(time.Minute)
		if _, err := send("c"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("refused: %v", err)
		}
		if got := shelf.Kept(); !slices.Equal(got, []string{"a started", "b failed", "c refused"}) {
			t.Errorf("kept %q", got)
		}
	})
}

// TestService_Deploy: what a source refuses, or breaks down at, is a failure of the deployment that names the node; what was in force stays
// so.
func TestService_Deploy(t *testing.T) {
	t.Parallel()
	shelf, p := triggertest.NewShelf(), identity.System("w")
	source := &odd{}
	service := shelf.Service([]trigger.Source{source}, func(_ string, revision int64) []trigger.Node {
		if revision == 3 {
			return []trigger.Node{{ID: "n", Kind: "TRIGGER.NOBODYS"}}
		}
		return oneNode("", 0)
	})
	if err := service.Deploy(t.Context(), p, "flow", 1); err != nil {
		t.Fatal(err)
	}
	for revision, c := range map[int64]struct {
		register func(trigger.Trigger) error
		code     fault.Code
	}{
		2: {func(trigger.Trigger) error { return fault.New(fault.CredentialMissing, "no such credential") }, fault.CredentialMissing},
		3: {nil, fault.Unsupported},
		4: {func(trigger.Trigger) error { panic("a defect") }, fault.Internal},
	} {
		source.register = c.register
		if err := service.Deploy(t.Context(), p, "flow", revision); fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), `trigger "n"`) {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
	list, err := shelf.InForce(t.Context(), p, "flow")
	if err != nil || len(list) != 1 || list[0].Revision != 1 {
		t.Errorf("in force %+v, %v", list, err)
	}
	if _, err := service.Find(t.Context(), "w", "flow", "/n", "GET"); !errors.As(err, new(*trigger.MethodError)) {
		t.Errorf("another method: %v", err)
	}
	for _, path := range []string{"/", "/m", "/n/n", "/%zz"} {
		if _, err := service.Find(t.Context(), "w", "flow", path, "POST"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"default", "orders"}, {"acme", "orders"}, {"acme", "订单.v2"}} {
		if w, f, ok := trigger.ParseSlug(trigger.Slug(c[0], c[1])); !ok || w != c[0] || f != c[1] {
			t.Errorf("%q became %q, %q, %v", c, w, f, ok)
		}
	}
	for _, slug := range []string{"", ":", "acme:", "ACME:x", "default:x", "../x:y"} {
		if w, f, ok := trigger.ParseSlug(slug); ok {
			t.Errorf("%q is %q, %q", slug, w, f)
		}
	}
}

// timer is a source that starts something every so often.
type timer struct{}

func (timer) Kind() string                                    { return "TRIGGER.TIMER" }
func (timer) Register(context.Context, trigger.Trigger) error { return nil }
func (timer) Schedule(t trigger.Trigger) (trigger.Schedule, error) {
	every, err := time.ParseDuration(strings.Trim(string(t.Config), `"`))
	return trigger.Schedule{
		Next:  func(after time.Time) (time.Time, bool) { return after.Truncate(every).Add(every), true },
		Event: func(time.Time) (trigger.Event, error) { return trigger.Event{Payload: []byte(`{}`)}, nil },
	}, err
}

// TestService_ClockReadsWhatIsDue: schedules that are not due cost nothing, however many there are.
func TestService_ClockReadsWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := triggertest.NewShelf()
		service := shelf.Service([]trigger.Source{timer{}}, func(string, int64) []trigger.Node {
			nodes := []trigger.Node{{ID: "often", Kind: "TRIGGER.TIMER", Config: []byte(`"1m"`)}}
			for i := range 500 {
				nodes = append(nodes, trigger.Node{ID: fmt.Sprint("rare", i), Kind: "TRIGGER.TIMER", Config: []byte(`"1000h"`)})
			}
			return nodes
		})
		service.Start()
		defer service.Close()
		if err := service.Deploy(t.Context(), identity.System("w"), "flow", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if starts := len(shelf.Starts()); starts != 60 || shelf.Read != 60 {
			t.Errorf("%d starts, and %d rows were read for them", starts, shelf.Read)
		}
	})
}

// TestService_LostMove lets a process die between the start of a scheduled time and the move to the next: the time is fired again and
// starts nothing.
func TestService_LostMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := triggertest.NewShelf()
		moves := 0
		shelf.LoseMove = func() bool {
			moves++
			return moves%3 != 0
		}
		service := shelf.Service([]trigger.Source{timer{}}, func(string, int64) []trigger.Node {
			return []trigger.Node{{ID: "n", Kind: "TRIGGER.TIMER", Config: []byte(`"1m"`)}}
		})
		service.Start()
		defer service.Close()
		if err := service.Deploy(t.Context(), identity.System("w"), "flow", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + 10*time.Second)
		synctest.Wait()
		if starts := len(shelf.Starts()); starts != 60 || moves < 170 {
			t.Errorf("%d starts, %d moves", starts, moves)
		}
	})
}
