package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// notifying is an instance with all that a notification goes to.
type notifying struct {
	*mailSite
	slack *slackSite
	hook  *httptest.Server
	// secret is the credential of webhooks.
	secret string

	guard sync.Mutex
	calls []string // the bodies that the hook got
	fails int      // how many calls the hook refuses
}

func newNotifying(t *testing.T) *notifying {
	t.Helper()
	n := &notifying{mailSite: openMail(t)}
	n.slack = slackOn(t, n.channelSite)
	n.hook = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		n.guard.Lock()
		defer n.guard.Unlock()
		if n.calls = append(n.calls, string(body)); n.fails > 0 {
			n.fails--
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(n.hook.Close)
	n.secret = n.keep(t, "webhook_secret", map[string]any{"secret": hookSecret})
	return n
}

// flow saves a workflow that tells something.
func (n *notifying) flow(t *testing.T, id, channels, more string) {
	t.Helper()
	n.save(t, fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: tell, description: d, type: EXTERNAL_ACTION, subtype: NOTIFICATION, configurations: {channels: [%s], message: "%s has come in"%s}}
connections:
  - {from_node: start, to_node: tell}
`, id, id, channels, id, more))
}

func (n *notifying) mailed() string {
	return `{type: email, to: ann@example.org, credential_id: ` + n.smtp + `}`
}

func (n *notifying) hooked() string {
	return `{type: webhook, to: "` + n.hook.URL + `/in", credential_id: ` + n.secret + `}`
}

// toldBy is what the node has put out.
func toldBy(t *testing.T, e api.Execution) gjson.Result {
	t.Helper()
	raw, err := json.Marshal(e.NodeExecutions["tell"].OutputData)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.GetBytes(raw, "result")
}

// A notification goes to every channel once, each delivery being a step of its own, and its notice stays in the inbox until somebody has seen it.
func TestNotification(t *testing.T) {
	t.Parallel()
	n := newNotifying(t)
	n.flow(t, "all", `{type: in_app, to: operator}, `+n.mailed()+`, {type: slack, to: C0PS, credential_id: `+n.slack.credential+`}, `+n.hooked(), `, title: "Order {{order}}", require: all`)
	id := n.execute(t, "all", api.ExecuteRequest{Inputs: json.RawMessage(`{"order":7,"data":{"n":1},"link":"https://example.com/7"}`), WaitSeconds: 60})
	e := n.read(t, id)
	out := toldBy(t, e)
	if e.Status != string(engine.StatusSuccess) || out.Get("delivered").Int() != 4 || out.Get("failed").Int() != 0 {
		t.Fatalf("the execution is %s: %+v; %s", e.Status, e.Error, out.Raw)
	}
	for i, channel := range []string{"in_app", "email", "slack", "webhook"} {
		if d := out.Get(fmt.Sprintf("deliveries.%d", i)); d.Get("channel").Str != channel || !d.Get("ok").Bool() || d.Get("id").Str == "" {
			t.Errorf("delivery %d is %s", i, d.Raw)
		}
	}
	if m := n.mailSite.gets(t, "ann@example.org", "all has come in", "https://example.com/7"); m.subject != "Order 7" {
		t.Errorf("the subject is %q", m.subject)
	}
	n.slack.gets(t, "POST /api/chat.postMessage", hasText("Order 7", "all has come in"))
	if got := gjson.Parse(n.calls[0]); len(n.calls) != 1 || got.Get("title").Str != "Order 7" || got.Get("message").Str != "all has come in" || got.Get("data.n").Int() != 1 {
		t.Errorf("the hook got %q", n.calls)
	}
	list := n.pending(t, id)
	if len(list) != 1 || list[0].ID != out.Get("deliveries.0.id").Str || !strings.Contains(string(list[0].RequestData), "all has come in") {
		t.Fatalf("in the inbox: %+v", list)
	}
	if a := n.respond(t, "operator", list[0].ID, `{"action":"ok"}`); a.status != http.StatusOK {
		t.Errorf("it is seen: %d %s", a.status, a.body)
	}
	if list := n.pending(t, id); len(list) != 0 || n.read(t, id).Status != string(engine.StatusSuccess) {
		t.Errorf("it was seen: %+v", list)
	}
}

// Fewer deliveries than are required fail the node; those that succeeded are not made again. A delivery whose outcome is not known is asked about by itself.
func TestNotification_Failures(t *testing.T) {
	t.Parallel()
	n := newNotifying(t)
	n.fails = 3
	channels := n.mailed() + ", " + n.hooked()
	for require, want := range map[string]engine.Status{"all": engine.StatusError, "any": engine.StatusSuccess, "none": engine.StatusSuccess} {
		n.flow(t, require, channels, ", require: "+require)
		e := n.read(t, n.execute(t, require, api.ExecuteRequest{WaitSeconds: 60}))
		if e.Status != string(want) {
			t.Errorf("require %s: the execution is %s: %+v", require, e.Status, e.Error)
		}
		if want == engine.StatusError && e.Error.ErrorCode != "delivery_failed" {
			t.Errorf("it fails with %+v", e.Error)
		}
		n.mailSite.gets(t, "ann@example.org", require+" has come in")
	}
	if err := n.box.Create("Sent", nil); err != nil {
		t.Fatal(err)
	}
	n.mailSite.mu.Lock()
	n.loses = true
	n.mailSite.mu.Unlock()
	n.flow(t, "lost", channels, ", require: all")
	id := n.execute(t, "lost", api.ExecuteRequest{})
	q := n.opens(t, id, 1)[0]
	n.mailSite.mu.Lock()
	if mail := n.mails[len(n.mails)-1].id; !strings.Contains(said(t, q), mail) {
		t.Errorf("it does not ask about the mail %s: %s", mail, q.RequestData)
	}
	n.mailSite.mu.Unlock()
	if a := n.respond(t, "operator", q.ID, `{"outcome":"done","result":{"id":"found"}}`); a.status != http.StatusOK || q.Purpose != engine.PurposeOutcomeUnknown {
		t.Fatalf("%+v: %d %s", q, a.status, a.body)
	}
	n.reaches(t, id, engine.StatusSuccess)
	if out := toldBy(t, n.read(t, id)); out.Get("delivered").Int() != 2 || out.Get("deliveries.0.id").Str != "found" {
		t.Errorf("it puts out %s", out.Raw)
	}
	n.mailSite.mu.Lock()
	defer n.mailSite.mu.Unlock()
	if len(n.mails) != 4 || len(n.calls) != 4 {
		t.Errorf("%d mails and %d calls of the hook, want 4 of each", len(n.mails), len(n.calls))
	}
}

// A mail whose answer was lost is looked for with the mailbox that the channel names: nobody is asked, and nothing is sent again. A mailbox that has all that was sent
// and lacks the mail says that it did not go out, and it is sent again.
func TestNotification_LostMail(t *testing.T) {
	t.Parallel()
	n := newNotifying(t)
	for _, name := range []string{"Sent", "Other"} {
		if err := n.box.Create(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for id, c := range map[string]struct {
		mailbox string
		mails   int
	}{"found": {"", 1}, "named": {", sent_mailbox: Sent", 1}, "gone": {", sent_mailbox: Other", 2}} {
		n.mailSite.mu.Lock()
		n.loses, n.mails = true, nil
		n.mailSite.mu.Unlock()
		n.flow(t, id, `{type: email, to: ann@example.org, credential_id: `+n.smtp+`, imap_credential_id: `+n.imap+c.mailbox+`}`, ", require: all")
		e := n.read(t, n.execute(t, id, api.ExecuteRequest{WaitSeconds: 60}))
		n.mailSite.mu.Lock()
		if out := toldBy(t, e); e.Status != string(engine.StatusSuccess) || len(n.mails) != c.mails || out.Get("deliveries.0.id").Str != n.mails[0].id {
			t.Errorf("%s: the execution is %s: %+v; %d mails; %s", id, e.Status, e.Error, len(n.mails), out.Raw)
		}
		n.mailSite.mu.Unlock()
	}
}
