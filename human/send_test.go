package human

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// outbox lists the messages of a question.
func outbox(t testing.TB, s *shelf, id string) []store.Delivery {
	t.Helper()
	list, err := s.Deliveries(t.Context(), identity.System("w"), id)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// finish ends a question as somebody would who answers.
func finish(t testing.TB, s *shelf, id string, status store.InteractionStatus) {
	t.Helper()
	i := s.read(t, "w", id)
	i.Status, i.NextAt = status, time.Now().UnixMilli()
	if status == store.InteractionCompleted {
		i.Response = asJSON(t, Answer{Action: "approve", UserID: "ann"})
	}
	if err := s.Change(t.Context(), identity.System("w"), store.InteractionChange{Interaction: i}); err != nil {
		t.Fatal(err)
	}
}

func TestSender_KnowsWhatItSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email, Approvers: []string{"ann", "guest@example.org", "role:approver"}, Credential: "smtp-1"})
		c.mail.answer = func(ctx context.Context, m Message) (Receipt, error) {
			// In the moment in which somebody can have the message, what is in it is known.
			secret, ok := strings.CutPrefix(m.Link, "https://tandem.example/respond/")
			if !ok {
				t.Errorf("the link to %q is %q", m.To, m.Link)
			}
			link, err := c.shelf.Link(ctx, identity.System(""), identity.HashSecret(secret))
			if err != nil || link.Interaction != i.ID || link.Workspace != "w" || link.Expires != i.TimeoutAt || link.Reusable || link.Used != 0 {
				t.Errorf("the link to %q stands for %+v, %v", m.To, link, err)
			}
			if want := map[string]string{"ann@example.com": "user:ann", "guest@example.org": "mail:guest@example.org", "bob@example.com": "user:bob", "cid@example.com": "user:cid"}[m.To]; link.Recipient != want {
				t.Errorf("the link to %q is for %q", m.To, link.Recipient)
			}
			if id, err := c.shelf.Thread(ctx, identity.System("w"), Email, tokenThread(" "+strings.ToUpper(m.ReplyToken)+"\n")); err != nil || id != i.ID {
				t.Errorf("the token to %q leads to %q, %v", m.To, id, err)
			}
			return Receipt{Body: asJSON(t, m.To), Threads: []string{"<" + m.ID + "@mail>"}}, nil
		}
		c.Start()
		defer c.Close()
		pass(0)
		if n := len(c.mail.messages(KindRequest)); n != 4 {
			t.Fatalf("%d messages were sent, want 4", n)
		}
		for _, d := range outbox(t, c.shelf, i.ID) {
			if d.Status != store.DeliverySent || d.Attempts != 1 || d.NextAt != 0 || string(d.Receipt) != fmt.Sprintf("%q", d.Recipient) {
				t.Errorf("the outbox has %+v", d)
			}
			if id, err := c.shelf.Thread(t.Context(), identity.System("w"), Email, "<"+d.ID+"@mail>"); err != nil || id != i.ID {
				t.Errorf("replies to %q lead to %q, %v", d.Recipient, id, err)
			}
		}
		m := c.mail.messages(KindRequest)[0]
		if m.Account.Account != (store.Account{Workspace: "w", Channel: Email, Credential: "smtp-1"}) || m.Callback != "" {
			t.Errorf("it is sent with %+v, called back at %q", m.Account.Account, m.Callback)
		}
	})
}

func TestSender_Notices(t *testing.T) {
	t.Parallel()
	for status, kind := range map[store.InteractionStatus]string{
		store.InteractionCompleted: KindCompleted, store.InteractionTimeout: KindTimeout, store.InteractionCancelled: KindCancelled,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCounter(newShelf(), nil)
				i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email, ReminderSeconds: 100, Approvers: []string{"ann", "bob"}})
				c.Start()
				defer c.Close()
				pass(200 * time.Second)
				switch status {
				case store.InteractionTimeout:
					pass(400 * time.Second)
				case store.InteractionCancelled:
					c.shelf.withdraw("w", i.ID, time.Now().UnixMilli())
					c.Look()
				default:
					finish(t, c.shelf, i.ID, status)
					c.Look()
				}
				pass(time.Second)
				var to []string
				for _, m := range c.mail.messages(kind) {
					to = append(to, m.To)
					if m.Link != "" || m.ReplyToken != "" {
						t.Errorf("a notice to %q wants an answer", m.To)
					}
					if len(m.Earlier) < 3 || m.Data["status"] != string(status) || len(m.Lines) == 0 {
						t.Errorf("a notice knows %d messages before it, tells %v and says %q", len(m.Earlier), m.Data, m.Lines)
					}
					if status == store.InteractionCompleted && !strings.Contains(strings.Join(m.Lines, "\n"), "ann") {
						t.Errorf("a notice does not say who decided: %q", m.Lines)
					}
				}
				slices.Sort(to)
				if !slices.Equal(to, []string{"ann@example.com", "bob@example.com"}) {
					t.Errorf("%v were told, want each once", to)
				}
				sent := len(c.mail.messages(""))
				pass(time.Hour)
				if now := len(c.mail.messages("")); now != sent {
					t.Errorf("%d messages more after the end", now-sent)
				}
				if got := c.shelf.read(t, "w", i.ID); got.NextAt != 0 {
					t.Errorf("it is due again at %d", got.NextAt)
				}
			})
		})
	}
}

func TestSender_TriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		start := time.Now()
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email})
		secret := ""
		c.mail.answer = func(_ context.Context, m Message) (Receipt, error) {
			secret = m.Link[strings.LastIndexByte(m.Link, '/')+1:]
			return Receipt{}, fault.New(fault.NetworkError, "the server is away")
		}
		c.Start()
		defer c.Close()
		pass(time.Hour)
		var at []time.Duration
		ids := map[string]bool{}
		for _, m := range c.mail.messages("") {
			at = append(at, m.at.Sub(start))
			ids[m.ID] = true
		}
		s := time.Second
		if want := []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s, 127 * s}; !slices.Equal(at, want) || len(ids) != 1 {
			t.Errorf("it was tried at %v, want %v, under %d ids", at, want, len(ids))
		}
		d := outbox(t, c.shelf, i.ID)[0]
		if d.Status != store.DeliveryFailed || d.Attempts != 8 || !strings.HasPrefix(d.Error, "delivery_failed: ") || !strings.Contains(d.Error, "the server is away") {
			t.Errorf("the outbox has %+v", d)
		}
		if log := c.logged(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "delivery_failed") || !strings.Contains(log, i.ID) || strings.Contains(log, secret) {
			t.Errorf("the log says %s", log)
		}
		if got := c.shelf.read(t, "w", i.ID); got.Status != store.InteractionPending {
			t.Errorf("the question is %q", got.Status)
		}
	})
}

func TestSender_GivesUp(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		err   error
		tries int
	}{
		"AtOnceIfThatCannotHelp":    {fault.New(fault.CredentialInvalid, "no"), 1},
		"AtOnceIfNobodyKnows":       {errors.New("odd"), 1},
		"BeforeTheEnd":              {fault.New(fault.NetworkError, "away"), 6},                                           // 0 1 3 7 15 31, and 63 is too late
		"AsLongAsTheServiceWants":   {fault.New(fault.RateLimited, "slow down").With("retry_after_ms", int64(25_000)), 3}, // 0 25 50
		"WhenTheServiceWantsAnHour": {fault.New(fault.RateLimited, "slow down").With("retry_after_ms", int64(3_600_000)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCounter(newShelf(), nil)
				i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 60, Channel: Email})
				c.mail.answer = func(_ context.Context, m Message) (Receipt, error) {
					if wantsAnswer(m.Kind) {
						return Receipt{}, one.err
					}
					return Receipt{}, nil
				}
				c.Start()
				defer c.Close()
				pass(59 * time.Second)
				if d := outbox(t, c.shelf, i.ID)[0]; d.Status != store.DeliveryFailed || d.Attempts != one.tries || len(c.mail.messages("")) != one.tries {
					t.Errorf("it is %q after %d tries, want failed after %d", d.Status, d.Attempts, one.tries)
				}
			})
		})
	}
}

func TestSender_OutlivesAChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		bad := ask(t, c.shelf, "bad", 0, Request{TimeoutSeconds: 600, Channel: Email, Approvers: []string{"ann"}})
		good := ask(t, c.shelf, "good", 0, Request{TimeoutSeconds: 600, Channel: Email, Approvers: []string{"bob"}})
		c.mail.answer = func(_ context.Context, m Message) (Receipt, error) {
			if m.To == "ann@example.com" {
				panic("a bug of the channel")
			}
			return Receipt{}, nil
		}
		c.Start()
		defer c.Close()
		pass(time.Second)
		if d := outbox(t, c.shelf, bad.ID)[0]; d.Status != store.DeliveryFailed || strings.Contains(d.Error, "a bug") || !strings.Contains(c.logged(), "a bug of the channel") {
			t.Errorf("the one that broke is %+v", d)
		}
		if d := outbox(t, c.shelf, good.ID)[0]; d.Status != store.DeliverySent {
			t.Errorf("the other one is %+v", d)
		}
	})
}

func TestSender_NeverSendsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email})
		c.mail.answer = func(context.Context, Message) (Receipt, error) {
			return Receipt{}, fault.New(fault.NetworkError, "away")
		}
		c.Start()
		defer c.Close()
		pass(2 * time.Second) // tried at 0 and 1, and again at 3
		finish(t, c.shelf, i.ID, store.InteractionCompleted)
		c.mail.answer = nil
		c.Look()
		pass(time.Minute)
		if n := len(c.mail.messages(KindRequest)); n != 2 {
			t.Errorf("the question was sent %d times, want 2 from before its end", n)
		}
		// Each try may have arrived.
		if n := len(c.mail.messages(KindCompleted)); n != 1 {
			t.Errorf("%d notices were sent", n)
		}
	})
}

// The end and the sending of a question meet in every order: everybody who got the question hears of its end, after it.
func TestSender_MeetsTheEnd(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Get", "Delivered", "Send"} {
		for nth := range 3 {
			t.Run(fmt.Sprint(method, nth), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newCounter(newShelf(), nil)
					i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email})
					end := func() { // with the lock held
						now := c.shelf.interactions["w/"+i.ID]
						if now.Status == store.InteractionPending {
							now.Status, now.NextAt = store.InteractionCompleted, time.Now().UnixMilli()
							now.Version++
							c.shelf.interactions["w/"+i.ID] = now
							c.Look()
						}
					}
					calls := 0
					c.shelf.fail = func(called string) error {
						if called == method {
							if calls == nth {
								end()
							}
							calls++
						}
						return nil
					}
					c.mail.answer = func(ctx context.Context, m Message) (Receipt, error) {
						if method == "Send" && m.Kind == KindRequest {
							c.shelf.mu.Lock()
							end()
							c.shelf.mu.Unlock()
							<-time.After(10 * time.Second)
						}
						return Receipt{Body: asJSON(t, m.ID)}, nil
					}
					c.Start()
					defer c.Close()
					pass(time.Minute)
					c.shelf.mu.Lock()
					c.shelf.fail = nil // reading is no longer part of it
					c.shelf.mu.Unlock()
					all := c.mail.messages("")
					got := len(c.mail.messages(KindRequest))
					switch {
					case c.shelf.read(t, "w", i.ID).Status == store.InteractionPending:
						if got != 1 {
							t.Errorf("%d questions were sent", got)
						}
					case got == 1 && (len(all) != 2 || all[1].Kind != KindCompleted || len(all[1].Earlier) != 1):
						t.Errorf("who got the question got %d messages", len(all))
					case got > 1:
						t.Errorf("%d questions were sent", got)
					}
				})
			})
		}
	}
}

// The question ends, and its end is told, when its message is ready and not yet noted as tried: nobody would hear of the end, so it is not
// sent.
func TestSender_LooksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600, Channel: Email})
		var first sync.Once
		c.shelf.before = func(method string) {
			if method == "Delivered" {
				first.Do(func() {
					finish(t, c.shelf, i.ID, store.InteractionCompleted)
					c.Look()
					<-time.After(time.Second)
				})
			}
		}
		c.Start()
		defer c.Close()
		pass(time.Minute)
		if n := len(c.mail.messages("")); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
		if d := outbox(t, c.shelf, i.ID); len(d) != 1 || d[0].Status != store.DeliveryFailed {
			t.Errorf("the outbox has %+v", d)
		}
	})
}

func TestSender_SurvivesTheProcess(t *testing.T) {
	t.Parallel()
	t.Run("ThatEndsWhileSending", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email})
			c.mail.answer = func(ctx context.Context, _ Message) (Receipt, error) {
				<-ctx.Done()
				return Receipt{}, ctx.Err()
			}
			c.Start()
			pass(time.Second)
			c.Close()
			again := newCounter(c.shelf, nil)
			again.Start()
			defer again.Close()
			pass(0)
			first, second := c.mail.messages(""), again.mail.messages("")
			if len(first) != 1 || len(second) != 1 || first[0].ID != second[0].ID || first[0].Link == second[0].Link {
				t.Fatalf("%d messages before and %d after", len(first), len(second))
			}
			for _, m := range []sentMessage{first[0], second[0]} {
				link, err := c.shelf.Link(t.Context(), identity.System(""), identity.HashSecret(m.Link[strings.LastIndexByte(m.Link, '/')+1:]))
				if err != nil || link.Interaction != i.ID {
					t.Errorf("a copy leads to %+v, %v", link, err)
				}
			}
			if d := outbox(t, c.shelf, i.ID); len(d) != 1 || d[0].Status != store.DeliverySent {
				t.Errorf("the outbox has %+v", d)
			}
		})
	})
	t.Run("ThatCannotReadForAWhile", func(t *testing.T) {
		t.Parallel()
		for _, method := range []string{"Get", "Deliveries", "Delivered"} {
			t.Run(method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newCounter(newShelf(), nil)
					i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email})
					failed := false
					c.shelf.fail = func(called string) error { // with the lock held
						if failed || called != method {
							return nil
						}
						failed = true
						return errors.New("the disk is away")
					}
					c.Start()
					defer c.Close()
					pass(time.Minute)
					if n, d := len(c.mail.messages("")), outbox(t, c.shelf, i.ID)[0]; n != 1 || d.Status != store.DeliverySent {
						t.Errorf("%d copies were sent, and it is %q: %s", n, d.Status, d.Error)
					}
				})
			})
		}
	})
	t.Run("ThatCannotNoteIt", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email})
			var down atomic.Bool
			c.shelf.fail = func(string) error {
				if down.Load() {
					return errors.New("the disk is away")
				}
				return nil
			}
			c.mail.answer = func(context.Context, Message) (Receipt, error) {
				down.Store(len(c.mail.messages("")) == 1)
				return Receipt{}, nil
			}
			c.Start()
			defer c.Close()
			pass(20 * time.Second)
			down.Store(false)
			pass(2 * time.Minute)
			if n, d := len(c.mail.messages("")), outbox(t, c.shelf, i.ID)[0]; n != 2 || d.Status != store.DeliverySent {
				t.Errorf("%d copies were sent, and it is %q", n, d.Status)
			}
		})
	})
}

func TestSender_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chat := &spy{name: Slack}
		c := newCounter(newShelf(), func(o *Options) { o.Channels = append(o.Channels, chat) })
		var now, most atomic.Int64
		slow := func(ctx context.Context, _ Message) (Receipt, error) {
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer now.Add(-1)
			<-ctx.Done()
			return Receipt{}, ctx.Err()
		}
		c.mail.answer = slow
		for n := range 1100 { // more than are looked at together
			ask(t, c.shelf, fmt.Sprint("mail", n), time.Minute, Request{TimeoutSeconds: 86400, Channel: Email})
		}
		c.Start()
		defer c.Close()
		pass(time.Second)
		for n := range 20 {
			ask(t, c.shelf, fmt.Sprint("chat", n), 0, Request{TimeoutSeconds: 86400, Channel: Slack, Settings: asJSON(t, map[string]string{"channel": "#team"})})
		}
		c.Look()
		pass(5 * time.Second)
		if n := len(chat.messages("")); n != 20 {
			t.Errorf("%d messages of another channel got past the one that hangs", n)
		}
		if most.Load() != sendPerLane {
			t.Errorf("%d messages of one account at once, want %d", most.Load(), sendPerLane)
		}
		pass(sendTimeout)
		if n := len(c.mail.messages("")); n < 2*sendPerLane {
			t.Errorf("%d messages were tried: those that hang are not given up", n)
		}
	})
}

func TestRecipients(t *testing.T) {
	t.Parallel()
	c := newCounter(newShelf(), nil)
	c.staff.set(identity.User{Workspace: "w", ID: "dan", Email: "dan@example.com", Disabled: true, Roles: []identity.Role{identity.Approver}})
	c.staff.set(identity.User{Workspace: "w", ID: "eve", Settings: []byte(`{"addresses":["slack:U5"]}`)})
	for name, one := range map[string]struct {
		channel  string
		request  Request
		exclude  bool
		want     []recipient
		settings string
		now      []string // who is asked, when it is not who was at first
	}{
		"InApp":            {channel: InApp, request: Request{Approvers: []string{"user:ann"}}},
		"MailOfUsers":      {channel: Email, request: Request{Approvers: []string{"user:ann", "user:gone", "user:dan", "mail:x@y.z", "slack:U1"}}, want: []recipient{{to: "ann@example.com", as: "user:ann"}, {to: "x@y.z", as: "mail:x@y.z"}}},
		"MailOfRoles":      {channel: Email, request: Request{Approvers: []string{"role:approver"}}, want: []recipient{{to: "ann@example.com", as: "user:ann"}, {to: "bob@example.com", as: "user:bob"}, {to: "cid@example.com", as: "user:cid"}}},
		"NotTheRequester":  {channel: Email, exclude: true, request: Request{Approvers: []string{"role:approver"}}, want: []recipient{{to: "bob@example.com", as: "user:bob"}, {to: "cid@example.com", as: "user:cid"}}},
		"MailOfSettings":   {channel: Email, request: Request{Approvers: []string{"user:bob", "mail:x@y.z"}}, settings: `{"recipient_emails":["Bob@example.com","team@y.z","bob@example.com"]}`, want: []recipient{{to: "bob@example.com", as: "user:bob"}, {to: "team@y.z", as: ""}}},
		"MailOfADelegate":  {channel: Email, now: []string{"mail:x@y.z", "user:cid"}, request: Request{Approvers: []string{"user:bob", "mail:x@y.z"}}, settings: `{"recipient_emails":["bob@example.com","team@y.z"]}`, want: []recipient{{to: "team@y.z", as: ""}, {to: "cid@example.com", as: "user:cid"}}},
		"MailToOthersOnly": {channel: Email, now: []string{"user:cid"}, request: Request{Approvers: []string{"user:bob"}}, settings: `{"recipient_emails":["bob@example.com","team@y.z"]}`, want: []recipient{{to: "cid@example.com", as: "user:cid"}}},
		"Addresses":        {channel: Slack, request: Request{Approvers: []string{"slack:U1", "user:eve", "user:ann"}}, want: []recipient{{to: "U1", as: "slack:U1"}, {to: "U5", as: "user:eve"}}},
		"Place":            {channel: Slack, request: Request{Approvers: []string{"user:ann", "user:bob"}}, settings: `{"channel":"#team"}`, want: []recipient{{}}},
		"SharedPlaceOfOne": {channel: Slack, request: Request{Approvers: []string{"user:ann"}}, settings: `{"channel":"#team"}`, want: []recipient{{}}},
		"PlaceOfOne":       {channel: Slack, request: Request{Approvers: []string{"user:ann"}}, settings: `{"channel":"@ann"}`, want: []recipient{{to: "", as: "user:ann"}}},
		"PlaceOfAnother":   {channel: Slack, request: Request{Approvers: []string{"user:ann"}}, settings: `{"channel":"U5"}`, want: []recipient{{}}},
		"PlaceOfItsOwn":    {channel: Slack, request: Request{Approvers: []string{"user:eve"}}, settings: `{"channel":"U5"}`, want: []recipient{{to: "", as: "user:eve"}}},
		"ChatOfAnother":    {channel: Telegram, request: Request{Approvers: []string{"telegram:7"}}, settings: `{"chat_id":100}`, want: []recipient{{}}},
		"GroupOfOne":       {channel: Telegram, request: Request{Approvers: []string{"user:ann"}}, settings: `{"chat_id":-100}`, want: []recipient{{}}},
		"ChatOfOne":        {channel: Telegram, request: Request{Approvers: []string{"user:ann"}}, settings: `{"chat_id":"100"}`, want: []recipient{{to: "", as: "user:ann"}}},
		"ChatOfARole":      {channel: Telegram, request: Request{Approvers: []string{"role:admin"}}, settings: `{"chat_id":"100"}`, want: []recipient{{}}},
		"NobodyToReach":    {channel: Slack, request: Request{Approvers: []string{"user:ann"}}, want: []recipient{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one.request.Settings = []byte(one.settings)
			if one.now == nil {
				one.now = one.request.Approvers
			}
			i := store.Interaction{Workspace: "w", ID: "i", Channel: one.channel, Approvers: one.now, User: "ann", ExcludeRequester: one.exclude}
			got, err := c.recipients(t.Context(), i, one.request, i.Approvers)
			if err != nil || !slices.Equal(got, one.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, one.want)
			}
		})
	}
}

func TestLinkFor(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	for _, one := range []struct {
		access, as, recipient string
		reusable              bool
	}{
		{"users", "user:ann", "user:ann", false}, {"", "mail:a@b.c", "mail:a@b.c", false}, {"users", "", "", false}, {"", "", "", false},
		{"link", "", Anyone, false}, {"link", "user:ann", Anyone, false}, {"public", "", Anyone, true},
	} {
		secret, link, ok := linkFor(store.Interaction{Workspace: "w", ID: "i", Attempt: 3}, Request{Access: one.access}, one.as, identity.Means{Kind: identity.ByLink}, now)
		if ok != (one.recipient != "") || link.Recipient != one.recipient || link.Reusable != one.reusable {
			t.Errorf("access %q for %q: %+v, %v", one.access, one.as, link, ok)
		}
		if ok && (link.Hash != identity.HashSecret(secret) || link.Attempt != 3 || link.Expires != now.Add(linkLife).UnixMilli()) {
			t.Errorf("access %q: %+v", one.access, link)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	i := store.Interaction{ID: "i", Status: store.InteractionPending, TimeoutAt: 1_800_000}
	for _, language := range []string{"zh", "zh-CN", "en", "", "fr"} {
		seen := map[string]string{}
		for _, kind := range []string{KindRequest, KindReminder, KindWarning, KindEscalation, KindAskBack, KindTimeout, KindCompleted, KindCancelled} {
			about := note{By: "Ann", As: "go", Reason: "so", Said: "hm"}
			text := strings.Join(wordsIn(language).lines(Message{Kind: kind, Interaction: i, Request: Request{Options: []Option{{Value: "go", Label: "Go on"}}}}, about, time.UnixMilli(0)), "\n")
			if text == "" || strings.Contains(text, "%!") || strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) != strings.HasPrefix(language, "zh") {
				t.Errorf("%q of %q says %q", kind, language, text)
			}
			if other, twice := seen[text]; twice {
				t.Errorf("%q and %q say the same in %q", kind, other, language)
			}
			seen[text] = kind
			if kind == KindCompleted && (!strings.Contains(text, "Ann") || !strings.Contains(text, "Go on")) {
				t.Errorf("the end says %q", text)
			}
		}
	}
}
