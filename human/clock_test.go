package human

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// spy is a channel that remembers what it was to send.
type spy struct {
	name string
	// answer, if it is set, says what becomes of a message.
	answer func(ctx context.Context, m Message) (Receipt, error)

	mu   sync.Mutex
	sent []sentMessage
}

type sentMessage struct {
	Message
	at time.Time
}

func (s *spy) Name() string { return s.name }

func (s *spy) Send(ctx context.Context, m Message) (Receipt, error) {
	s.mu.Lock()
	s.sent = append(s.sent, sentMessage{m, time.Now()})
	s.mu.Unlock()
	if s.answer != nil {
		return s.answer(ctx, m)
	}
	return Receipt{Body: json.RawMessage(`{"message":"` + m.ID + `"}`), Threads: []string{"thread " + m.ID}}, nil
}

// messages are those of a kind; all of them if it is empty.
func (s *spy) messages(kind string) []sentMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.sent), func(m sentMessage) bool { return kind != "" && m.Kind != kind })
}

// counter is a desk on a shelf with a channel, and who was woken.
type counter struct {
	*Desk
	shelf *shelf
	staff *staff
	mail  *spy
	log   *strings.Builder
	mu    sync.Mutex
	woken []store.Ref
}

// newCounter makes one that is not started; the test closes it.
func newCounter(s *shelf, change func(*Options)) *counter {
	c := &counter{shelf: s, staff: &staff{}, mail: &spy{name: Email}, log: &strings.Builder{}}
	for _, id := range []string{"ann", "bob", "cid"} {
		c.staff.set(identity.User{Workspace: "w", ID: id, Email: id + "@example.com", Roles: []identity.Role{identity.Approver}})
	}
	o := Options{
		Interactions: s, Users: c.staff, Channels: []Channel{c.mail}, PublicURL: "https://tandem.example/", Log: slog.New(slog.NewTextHandler(&guarded{mu: &c.mu, to: c.log}, nil)),
		Wake: func(r store.Ref) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.woken = append(c.woken, r)
		},
	}
	if change != nil {
		change(&o)
	}
	c.Desk = withChats(New(o))
	return c
}

type guarded struct {
	mu *sync.Mutex
	to *strings.Builder
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}

func (c *counter) wakes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.woken)
}

func (c *counter) logged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// ask puts a question on the shelf as an append would, at a time before now.
func ask(t testing.TB, s *shelf, name string, ago time.Duration, r Request) store.Interaction {
	t.Helper()
	if r.Title == "" {
		r.Title = "May it?"
	}
	if r.Type == "" {
		r.Type = Approval
		r.Options = []Option{{Value: "approve"}, {Value: "reject"}}
	}
	if len(r.Approvers) == 0 {
		r.Approvers = []string{"user:ann"}
	}
	i, err := Media(nil).Open(Question{
		Ref: store.Ref{Workspace: "w", Execution: "execution-" + name}, WorkflowID: "flow", User: "ann", Language: "en", Node: "ask", Ask: engine.AskID(name + "#ask.1"),
		Activation: engine.ActivationID(name), Purpose: PurposeNode, Request: asJSON(t, r), Time: time.Now().Add(-ago).UnixMilli(),
	})
	if err != nil {
		t.Fatal(err)
	}
	i.WorkflowName = "Flow of " + name
	s.put(i)
	return i
}

// pass lets time go by, of the bubble's clock, until everything that it brings is done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// result reads what an execution was told.
func result(t testing.TB, s *shelf, execution string) (host.Request, Result) {
	t.Helper()
	items := s.items(execution)
	if len(items) != 1 || items[0].Kind != string(host.ActionAnswer) {
		t.Fatalf("the inbox of %q has %+v, want one answer", execution, items)
	}
	var told host.Request
	var r Result
	if err := json.Unmarshal(items[0].Body, &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Value) > 0 {
		if err := json.Unmarshal(told.Value, &r); err != nil {
			t.Fatal(err)
		}
	}
	return told, r
}

func TestClock_TimesOut(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		action         string
		response       string
		data           string
		classification string
		options        []string
	}{
		{action: TimeoutFail, data: `{}`, classification: TimedOut},
		{action: TimeoutContinue, data: `{}`, classification: TimedOut},
		{action: TimeoutDefault, response: `{"action":"reject"}`, data: `{"action":"reject"}`, classification: Rejected, options: []string{"reject"}},
	} {
		t.Run(one.action, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCounter(newShelf(), nil)
				i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, TimeoutAction: one.action, TimeoutResponse: json.RawMessage(one.response)})
				c.Start()
				defer c.Close()
				events, _, stop := c.Watch("w")
				defer stop()
				pass(600*time.Second - time.Millisecond)
				if got := c.shelf.read(t, "w", i.ID); got.Status != store.InteractionPending || c.wakes() != 0 {
					t.Fatalf("a millisecond early it is %q", got.Status)
				}
				pass(time.Millisecond)
				got := c.shelf.read(t, "w", i.ID)
				if got.Status != store.InteractionTimeout || got.NextAt != 0 || string(got.Response) != one.response {
					t.Fatalf("in time it is %q, due at %d, with %s", got.Status, got.NextAt, got.Response)
				}
				told, r := result(t, c.shelf, i.Execution)
				if told.Outcome != engine.AskTimeout || told.Ask != engine.AskID(i.Ask) {
					t.Errorf("the execution is told %+v", told)
				}
				if r.Status != "timeout" || r.InteractionID != i.ID || r.Classification != one.classification || r.ResponseType != Approval || !slices.Equal(r.Options, one.options) ||
					string(r.ResponseData) != one.data {
					t.Errorf("the result is %+v", r)
				}
				if p := c.shelf.pauses[i.ID]; p.Status != store.PauseResumed || p.ResumeReason != "timeout" {
					t.Errorf("the pause is %+v", p)
				}
				if c.wakes() != 1 {
					t.Errorf("the execution was woken %d times", c.wakes())
				}
				if e := <-events; e.Interaction.Status != store.InteractionTimeout {
					t.Errorf("those who watch see %+v", e)
				}
				pass(time.Hour)
				if n := len(c.shelf.items(i.Execution)); n != 1 || c.wakes() != 1 {
					t.Errorf("later there are %d items and %d wakes", n, c.wakes())
				}
			})
		})
	}
}

func TestClock_AfterDowntime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		late := ask(t, c.shelf, "late", 2*time.Hour, Request{TimeoutSeconds: 3600})
		// Nobody was told anything of this one for 50 of its 120 minutes, four reminders among it.
		waiting := ask(t, c.shelf, "waiting", 50*time.Minute, Request{TimeoutSeconds: 7200, ReminderSeconds: 720, Channel: Email})
		waiting.Progress = asJSON(t, progress{Requested: true})
		c.shelf.put(waiting)
		c.Start()
		pass(0)
		if got := c.shelf.read(t, "w", late.ID); got.Status != store.InteractionTimeout {
			t.Errorf("what was due is %q after the start", got.Status)
		}
		if n := len(c.mail.messages(KindReminder)); n != 1 {
			t.Errorf("%d reminders were sent after the start, want 1", n)
		}
		pass(10*time.Minute - time.Second)
		if n := len(c.mail.messages(KindReminder)); n != 1 {
			t.Errorf("%d reminders before the fifth is due", n)
		}
		pass(time.Second)
		if n := len(c.mail.messages(KindReminder)); n != 2 {
			t.Errorf("%d reminders at the hour, want 2", n)
		}
		c.Close()
		again := newCounter(c.shelf, nil)
		again.Start()
		defer again.Close()
		pass(0)
		if n := len(c.shelf.items(late.Execution)); n != 1 || len(again.mail.messages("")) != 0 {
			t.Errorf("a restart says it again: %d items, %d messages", n, len(again.mail.messages("")))
		}
	})
}

func TestClock_Warns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		long := ask(t, c.shelf, "long", 0, Request{TimeoutSeconds: 3600, Channel: Email})
		ask(t, c.shelf, "short", 0, Request{TimeoutSeconds: 900, Channel: Email})
		quiet := ask(t, c.shelf, "quiet", 0, Request{TimeoutSeconds: 3600})
		c.Start()
		pass(45*time.Minute - time.Millisecond)
		if n := len(c.mail.messages(KindWarning)); n != 0 {
			t.Fatalf("%d warnings before it is time", n)
		}
		events, _, stop := c.Watch("w")
		defer stop()
		pass(time.Millisecond)
		warnings := c.mail.messages(KindWarning)
		if len(warnings) != 1 || warnings[0].Interaction.ID != long.ID {
			t.Fatalf("there are %d warnings, want one of the long question", len(warnings))
		}
		data := warnings[0].Data
		if data["interaction_id"] != long.ID || data["workflow_name"] != "Flow of long" || data["minutes_remaining"] != int64(15) ||
			data["timeout_at"] != time.UnixMilli(long.TimeoutAt).UTC().Format(time.RFC3339) {
			t.Errorf("a warning tells %v", data)
		}
		if !strings.Contains(strings.Join(warnings[0].Lines, "\n"), "Time left: 15 min") {
			t.Errorf("a warning says %q", warnings[0].Lines)
		}
		seen := map[string]bool{}
		for range 2 {
			e := <-events
			seen[e.Interaction.ID] = e.Interaction.WarningSent
		}
		if !seen[long.ID] || !seen[quiet.ID] {
			t.Errorf("those who watch see %v", seen)
		}
		c.Close()
		again := newCounter(c.shelf, nil)
		again.Start()
		defer again.Close()
		pass(14 * time.Minute)
		if n := len(again.mail.messages(KindWarning)); n != 0 {
			t.Errorf("a restart warns %d times more", n)
		}
		if !c.shelf.read(t, "w", long.ID).WarningSent || !c.shelf.read(t, "w", quiet.ID).WarningSent {
			t.Error("the records do not say that people were warned")
		}
	})
}

func TestClock_Escalates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email, Escalation: &Escalation{AfterSeconds: 120, To: []string{"bob", "boss@example.com", "ann"}}})
		c.Start()
		defer c.Close()
		pass(119 * time.Second)
		if got := c.shelf.read(t, "w", i.ID); !slices.Equal(got.Approvers, []string{"user:ann"}) || len(c.mail.messages("")) != 1 {
			t.Fatalf("before it is time %v may answer and %d messages were sent", got.Approvers, len(c.mail.messages("")))
		}
		pass(time.Second)
		if got := c.shelf.read(t, "w", i.ID); !slices.Equal(got.Approvers, []string{"user:ann", "user:bob", "mail:boss@example.com"}) {
			t.Errorf("%v may answer", got.Approvers)
		}
		var to []string
		for _, m := range c.mail.messages(KindEscalation) {
			to = append(to, m.To)
			if m.Link == "" || m.ReplyToken == "" {
				t.Errorf("the message to %q cannot be answered", m.To)
			}
		}
		slices.Sort(to)
		if !slices.Equal(to, []string{"bob@example.com", "boss@example.com"}) {
			t.Errorf("%v were asked as well", to)
		}
		pass(5 * time.Minute)
		if n := len(c.mail.messages(KindEscalation)); n != 2 {
			t.Errorf("in all %d were asked as well", n)
		}
	})
}

func TestClock_Reminds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		start := time.Now()
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email, ReminderSeconds: 150, Approvers: []string{"ann", "bob"}, MinApprovals: 2})
		c.Start()
		defer c.Close()
		pass(0)
		c.shelf.mu.Lock()
		c.shelf.responses = append(c.shelf.responses, store.Response{ID: "r", Interaction: i.ID, User: "bob", Accepted: true, Data: json.RawMessage(`{"action":"approve"}`)})
		c.shelf.mu.Unlock()
		pass(599 * time.Second)
		var at []time.Duration
		for _, m := range c.mail.messages(KindReminder) {
			at = append(at, m.at.Sub(start))
			if m.To != "ann@example.com" {
				t.Errorf("%q is reminded, who has answered", m.To)
			}
			if len(m.Earlier) == 0 {
				t.Error("a reminder knows nothing of the message before")
			}
		}
		if want := []time.Duration{150 * time.Second, 300 * time.Second, 450 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("reminders at %v, want %v", at, want)
		}
	})
}

// Somebody answers in the moment in which the time is up. There is one end, and the clock finds out which.
// Who was asked by an address and has answered, or handed the vote on, as a user is not reminded.
func TestClock_RemindsNobodyTwiceNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 3600, Channel: Email, ReminderSeconds: 150, Approvers: []string{"bob@example.com", "cid@example.com", "guest@example.org"}, MinApprovals: 3})
		c.Start()
		defer c.Close()
		pass(0)
		c.shelf.mu.Lock()
		c.shelf.responses = append(c.shelf.responses, store.Response{ID: "r", Interaction: i.ID, User: "bob", Accepted: true, Data: json.RawMessage(`{"action":"approve"}`)})
		now := c.shelf.interactions["w/"+i.ID]
		if err := writeProgress(&now, progress{Requested: true, Delegations: []delegation{{From: "user:cid", To: "user:ann"}}}); err != nil {
			t.Error(err)
		}
		c.shelf.interactions["w/"+i.ID] = now
		c.shelf.mu.Unlock()
		pass(160 * time.Second)
		var to []string
		for _, m := range c.mail.messages(KindReminder) {
			to = append(to, m.To)
		}
		slices.Sort(to)
		if want := []string{"ann@example.com", "guest@example.org"}; !slices.Equal(to, want) {
			t.Errorf("reminded are %q, want %q", to, want)
		}
	})
}

func TestClock_LosesToAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 60})
		tries := 0
		c.shelf.fail = func(method string) error { // with the lock held
			if method != "Change" {
				return nil
			}
			if tries++; tries == 1 {
				now := c.shelf.interactions["w/"+i.ID]
				now.Status, now.NextAt = store.InteractionCompleted, 0
				now.Version++
				c.shelf.interactions["w/"+i.ID] = now
			}
			return nil
		}
		c.Start()
		defer c.Close()
		pass(5 * time.Minute)
		c.shelf.mu.Lock()
		tried := tries
		c.shelf.mu.Unlock()
		if got := c.shelf.read(t, "w", i.ID); got.Status != store.InteractionCompleted || len(c.shelf.items(i.Execution)) != 0 || tried != 1 {
			t.Errorf("it is %q, with %d items, after %d tries", got.Status, len(c.shelf.items(i.Execution)), tried)
		}
	})
}

func TestClock_BearsFailures(t *testing.T) {
	t.Parallel()
	t.Run("OfTheStore", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 60})
			until := time.Now().Add(70 * time.Second)
			var calls atomic.Int64
			c.shelf.fail = func(string) error {
				if calls.Add(1); time.Now().Before(until) {
					return errors.New("the disk is away")
				}
				return nil
			}
			c.Start()
			defer c.Close()
			pass(69 * time.Second)
			if n := calls.Load(); n > 300 {
				t.Errorf("the store was asked %d times in 69 seconds", n)
			}
			pass(2 * time.Second)
			if got := c.shelf.read(t, "w", i.ID); got.Status != store.InteractionTimeout {
				t.Errorf("a second after the store is back it is %q", got.Status)
			}
		})
	})
	t.Run("OfOneRecord", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			bad := ask(t, c.shelf, "bad", 0, Request{TimeoutSeconds: 90, ReminderSeconds: 30})
			bad.Request = json.RawMessage(`"broken"`)
			c.shelf.put(bad)
			good := ask(t, c.shelf, "good", 0, Request{TimeoutSeconds: 60})
			c.Start()
			defer c.Close()
			pass(60 * time.Second)
			if got := c.shelf.read(t, "w", good.ID); got.Status != store.InteractionTimeout {
				t.Errorf("the other one is %q", got.Status)
			}
			pass(30 * time.Second)
			if got := c.shelf.read(t, "w", bad.ID); got.Status != store.InteractionTimeout || len(c.shelf.items(bad.Execution)) != 1 {
				t.Errorf("the broken one is %q when its time is up", got.Status)
			}
			if !strings.Contains(c.logged(), bad.ID) {
				t.Error("the log does not name it")
			}
		})
	})
}

func TestClock_ManyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		var all []store.Interaction
		for n := range 700 { // more than are looked at together
			all = append(all, ask(t, c.shelf, fmt.Sprint("q", n), 0, Request{TimeoutSeconds: 60}))
		}
		ask(t, c.shelf, "later", 0, Request{TimeoutSeconds: 61})
		c.Start()
		defer c.Close()
		pass(60 * time.Second)
		for _, i := range all {
			if got := c.shelf.read(t, "w", i.ID); got.Status != store.InteractionTimeout || len(c.shelf.items(i.Execution)) != 1 {
				t.Fatalf("%s is %q", i.Execution, got.Status)
			}
		}
		if c.wakes() != len(all) {
			t.Errorf("%d were woken", c.wakes())
		}
	})
}
