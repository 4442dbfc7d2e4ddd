package trigger_test

import (
	"context"
	"encoding/json"
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

// parrot is a source whose events come by the account of a channel.
type parrot struct {
	relay      *trigger.Relay
	registered []string
}

func (*parrot) Kind() string            { return "TRIGGER.PARROT" }
func (*parrot) Channel() string         { return "cage" }
func (p *parrot) Join(r *trigger.Relay) { p.relay = r }
func (p *parrot) Register(_ context.Context, t trigger.Trigger) error {
	p.registered = append(p.registered, t.Callback)
	return nil
}

// says judges an event that fits every trigger.
func says(key string, at time.Time) trigger.Judge {
	return func(context.Context, trigger.Trigger) (trigger.Event, bool, error) {
		return trigger.Event{Key: key, Payload: []byte(`{}`), Time: at}, true, nil
	}
}

type aviary struct {
	*parrot
	shelf   *triggertest.Shelf
	service *trigger.Service
	// credential is what the next deployment of a workflow names.
	credential map[string]string
	changed    int
}

func newAviary(t *testing.T) *aviary {
	t.Helper()
	a := &aviary{parrot: &parrot{}, shelf: triggertest.NewShelf(), credential: map[string]string{}}
	nodes := func(workflow string, _ int64) []trigger.Node {
		return []trigger.Node{{ID: "n", Kind: "TRIGGER.PARROT", Config: json.RawMessage(`{"credential_id":"` + a.credential[workflow] + `"}`)}}
	}
	a.service = a.shelf.Service([]trigger.Source{a.parrot}, nodes, func(o *trigger.Options) {
		o.CredentialID = func(_ context.Context, _, name string) (string, error) {
			switch {
			case name == "gone":
				return "", store.ErrNotFound
			case name == "broken":
				return "", errors.New("the disk is broken")
			}
			return strings.TrimPrefix(name, "name of "), nil
		}
		o.Callback = func(a store.Account) string { return "https://tandem.test/" + a.Channel + "/" + a.Credential }
		o.Changed = func() { a.changed++ }
	})
	t.Cleanup(a.service.Close)
	return a
}

func (a *aviary) deploy(t *testing.T, workflow, credential string, revision int64) {
	t.Helper()
	a.credential[workflow] = credential
	if err := a.service.Deploy(t.Context(), identity.System("w"), workflow, revision); err != nil {
		t.Fatal(err)
	}
}

var cage = store.Account{Workspace: "w", Channel: "cage", Credential: "c1"} // read-only

// TestRelay hands events to the triggers of one credential, however it is named, and to nobody else.
func TestRelay(t *testing.T) {
	t.Parallel()
	a := newAviary(t)
	a.deploy(t, "one", "c1", 1)
	a.deploy(t, "two", "name of c1", 1)
	a.deploy(t, "other", "c2", 1)
	a.deploy(t, "lost", "gone", 1)
	if a.changed != 4 || a.registered[1] != "https://tandem.test/cage/c1" || a.registered[3] != "" {
		t.Errorf("told of %d changes, registered %q", a.changed, a.registered)
	}
	for range 2 {
		if taken, err := a.relay.Deliver(t.Context(), cage, says("k", time.Now())); taken != 2 || err != nil {
			t.Errorf("taken by %d (%v)", taken, err)
		}
	}
	var started []string
	for _, one := range a.shelf.Starts() {
		started = append(started, one.WorkflowID)
	}
	if slices.Sort(started); !slices.Equal(started, []string{"one", "two"}) {
		t.Errorf("started %q", started)
	}
	elsewhere := cage
	elsewhere.Workspace = "v"
	if taken, err := a.relay.Deliver(t.Context(), elsewhere, says("k", time.Now())); taken != 0 || err != nil {
		t.Errorf("another workspace: taken by %d (%v)", taken, err)
	}
	accounts, err := a.service.Accounts(t.Context())
	if err != nil || len(accounts) != 3 || !slices.Contains(accounts, cage) {
		t.Errorf("accounts %v (%v)", accounts, err)
	}
	if route, ok, err := a.service.RouteOf(t.Context(), store.Trigger{Workspace: "w", WorkflowID: "one", Node: "n", Kind: "TRIGGER.PARROT", Config: []byte(`{"credential_id":"c1"}`)}); !ok || err != nil || route.Path != "https://tandem.test/cage/c1" {
		t.Errorf("route %+v (%v)", route, err)
	}
	door, err := a.service.Find(t.Context(), "w", "one", "/cage/n", "POST")
	if err != nil {
		t.Fatal(err)
	}
	if got, shared, err := door.Account(t.Context()); !shared || err != nil || got != cage {
		t.Errorf("its own address leads to %v (%v)", got, err)
	}
	var none *trigger.Relay
	if taken, err := none.Deliver(t.Context(), cage, says("k", time.Now())); taken != 0 || err != nil {
		t.Errorf("without triggers: %d (%v)", taken, err)
	}
}

// TestRelay_Failures: one trigger that fails does not keep the others from starting, and says that the event has to come again.
func TestRelay_Failures(t *testing.T) {
	t.Parallel()
	a := newAviary(t)
	a.deploy(t, "one", "c1", 1)
	a.deploy(t, "two", "c1", 1)
	judge := func(failing func() error) trigger.Judge {
		return func(_ context.Context, one trigger.Trigger) (trigger.Event, bool, error) {
			if one.WorkflowID == "one" {
				if err := failing(); err != nil {
					return trigger.Event{}, false, err
				}
			}
			return trigger.Event{Key: "k", Payload: []byte(`{}`)}, true, nil
		}
	}
	for _, failing := range []func() error{func() error { return fault.New(fault.NetworkError, "the service is away") }, func() error { panic("a defect") }} {
		if taken, err := a.relay.Deliver(t.Context(), cage, judge(failing)); taken != 1 || err == nil {
			t.Errorf("taken by %d (%v)", taken, err)
		}
	}
	if taken, err := a.relay.Deliver(t.Context(), cage, judge(func() error { return nil })); taken != 2 || err != nil || len(a.shelf.Starts()) != 2 {
		t.Errorf("taken by %d (%v), %d starts", taken, err, len(a.shelf.Starts()))
	}
	a.credential["one"] = "broken"
	if err := a.service.Deploy(t.Context(), identity.System("w"), "one", 2); err == nil {
		t.Error("a credential that cannot be looked up was deployed")
	}
}

// TestRelay_Since leaves out what happened before a trigger was there; a later revision goes on where the former was, unless it has another
// credential.
func TestRelay_Since(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSince)
}

func testSince(t *testing.T) {
	a := newAviary(t)
	began := time.Now()
	a.deploy(t, "flow", "c1", 1)
	taken := func(key string, at time.Time) int {
		t.Helper()
		n, err := a.relay.Deliver(t.Context(), cage, says(key, at))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := fmt.Sprint(taken("long ago", began.Add(-time.Hour)), taken("clocks differ", began.Add(-30*time.Second)), taken("unknown", time.Time{}), taken("now", began)); got != "0 1 1 1" {
		t.Errorf("taken %s", got)
	}
	first := a.shelf.Cursor("w", "flow", "n")
	time.Sleep(time.Hour)
	a.deploy(t, "flow", "c1", 2)
	if second := a.shelf.Cursor("w", "flow", "n"); second != first {
		t.Errorf("the cursor is %s after %s", second, first)
	}
	list, err := a.relay.Watched(t.Context(), cage)
	if err != nil || len(list) != 1 {
		t.Fatalf("watched %v (%v)", list, err)
	}
	for place, position := range map[string]string{"p1": "7", "p2": "9"} {
		if err := a.relay.Reach(t.Context(), &list[0], place, position); err != nil {
			t.Fatal(err)
		}
	}
	list, _ = a.relay.Watched(t.Context(), cage)
	one, err1 := list[0].ReadUpTo("p1")
	two, err2 := list[0].ReadUpTo("p2")
	if none, _ := list[0].ReadUpTo("p3"); one != "7" || two != "9" || none != "" || err1 != nil || err2 != nil {
		t.Errorf("read up to %q, %q, %q", one, two, none)
	}
	a.deploy(t, "flow", "c2", 3)
	if moved := a.shelf.Cursor("w", "flow", "n"); strings.Contains(moved, `"at"`) {
		t.Errorf("another credential goes on at %s", moved)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		keywords []string
		want     bool
	}{{"any", nil, true}, {"A Refund", []string{"x", " refund "}, true}, {"hello", []string{"refund"}, false}, {"hello", []string{""}, false}, {"请退款", []string{"退款"}, true}} {
		if got := trigger.Mentions(c.text, c.keywords); got != c.want {
			t.Errorf("%q in %q: %v", c.keywords, c.text, got)
		}
	}
}
