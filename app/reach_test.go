package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// reachSite is an instance with a post office, a mailbox and an app in Slack, where the operator has chosen to be reached by both. The
// operator is U1 in Slack.
type reachSite struct {
	*mailSite
	slack *slackSite
}

const reachMail = "operator@example.org"

var (
	sentCode      = regexp.MustCompile(`Your code: ([0-9]{8})`)
	numberControl = regexp.MustCompile(`<input id="[^"]*" name="([^"]*)" value="[^"]*" type="text" inputmode="decimal"`)
)

func openReach(t *testing.T) *reachSite {
	t.Helper()
	x := &reachSite{mailSite: openMail(t)}
	x.slack = slackOn(t, x.channelSite)
	for name, body := range map[string]api.ContactChannelRequest{"office": {CredentialID: "smtp", InCredentialID: "imap"}, "team": {CredentialID: "slack_bot"}} {
		want[api.ContactChannel](t, x.call(t, "admin", "PUT", "/contact-channels/"+name, body), http.StatusOK)
	}
	prove := func(channel, address string, message func() string) {
		t.Helper()
		want[api.AddressProof](t, x.call(t, "operator", "POST", "/users/me/addresses", api.AddressRequest{Channel: channel, Address: address}), http.StatusAccepted)
		found := sentCode.FindStringSubmatch(message())
		if found == nil {
			t.Fatalf("no code came to %s", address)
		}
		want[api.Reach](t, x.call(t, "operator", "POST", "/users/me/addresses/confirm", api.AddressConfirmation{Address: address, Code: found[1]}), http.StatusOK)
	}
	prove("office", reachMail, func() string { return x.mailSite.gets(t, reachMail).subject })
	prove("team", "U1", func() string {
		return x.slack.wire.gets(t, "POST /api/chat.postMessage", hasText("Your code")).Raw
	})
	return x
}

// page is what somebody sees who opens a link.
func (x *reachSite) page(t *testing.T, link string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", link, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// told waits for both messages about a question.
func (x *reachSite) told(t *testing.T, id string) (letterIn, gjson.Result) {
	t.Helper()
	d := x.until(t, id, "two messages", func(d api.InteractionDetail) bool {
		n := 0
		for _, m := range d.Deliveries {
			if m.Kind == "request" && m.Status == "sent" {
				n++
			}
		}
		return n == 2
	})
	if d.ChannelType != "in_app" {
		t.Errorf("the question is put in %q", d.ChannelType)
	}
	mail := x.mailSite.gets(t, reachMail)
	if mail.header.Get("X-Tandem-Interaction") != id {
		t.Fatalf("the mail is about %q, want %q: %s", mail.header.Get("X-Tandem-Interaction"), id, mail.text)
	}
	return mail, x.slack.wire.gets(t, "POST /api/chat.postMessage", func(r gjson.Result) bool { return strings.Contains(r.Raw, id) && r.Get("channel").Str == "DU1" })
}

// Every class of question reaches who may answer it by mail and in Slack, as a real workflow asks it, and what is answered there counts
// once: by a button, by prose, by the form behind a link.
func TestReach_EveryClassOfQuestion(t *testing.T) {
	t.Parallel()
	click := func(label string) func(*testing.T, *reachSite, letterIn, gjson.Result) {
		return func(t *testing.T, x *reachSite, _ letterIn, message gjson.Result) {
			t.Helper()
			action, value := slackButton(t, message, label)
			if got := x.slack.form(t, slackSigning, x.slack.click("U1", action, value, "1.5")); got.status != http.StatusOK {
				t.Fatalf("the click: %d %s", got.status, got.body)
			}
		}
	}
	reply := func(text string) func(*testing.T, *reachSite, letterIn, gjson.Result) {
		return func(t *testing.T, x *reachSite, mail letterIn, _ gjson.Result) {
			t.Helper()
			x.reply(t, mail, reachMail, genuine(reachMail), text)
		}
	}
	fill := func(number string) func(*testing.T, *reachSite, letterIn, gjson.Result) {
		return func(t *testing.T, x *reachSite, mail letterIn, _ gjson.Result) {
			t.Helper()
			page := x.page(t, mail.link(t))
			control := numberControl.FindStringSubmatch(page)
			if control == nil {
				t.Fatalf("there is no number to fill in:\n%s", page)
			}
			if got, err := press(t.Context(), mail.link(t), url.Values{control[1]: {number}}); err != nil || got.status != http.StatusOK {
				t.Fatalf("the form: %d %s (%v)", got.status, got.body, err)
			}
		}
	}
	for name, c := range map[string]struct {
		purpose string
		// start lets an execution ask, and returns it.
		start   func(t *testing.T, x *reachSite) string
		answer  func(*testing.T, *reachSite, letterIn, gjson.Result)
		channel string
		means   string
	}{
		"Node": {human.PurposeNode, func(t *testing.T, x *reachSite) string {
			return x.execute(t, x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Pay Müller?", approvers: [operator]}`)).Workflow.ID, api.ExecuteRequest{})
		}, reply("Yes, approved."), "email", "channel"},
		"OutcomeUnknown": {human.PurposeOutcomeUnknown, func(t *testing.T, x *reachSite) string {
			var calls atomic.Int64
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) == 1 {
					panic(http.ErrAbortHandler) // it has taken the call, and nobody hears of it
				}
				fmt.Fprint(w, `{}`)
			}))
			t.Cleanup(remote.Close)
			return x.execute(t, x.save(t, `
metadata: {id: pays, name: pays, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "`+remote.URL+`/pay", on_unknown: ask, max_retries: 0}}
connections:
  - {from_node: start, to_node: pay}
`).Workflow.ID, api.ExecuteRequest{})
		}, click("It was not: do it now"), "slack", "channel"},
		"ToolApproval": {human.PurposeToolApproval, func(t *testing.T, x *reachSite) string {
			tools := newCounted(t)
			model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
				if r.Messages[len(r.Messages)-1].Role == "tool" {
					return chatReply{text: []string{"done"}}
				}
				return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{}}`)}}
			})
			x.saveProfile(t, model.profile("m"))
			return x.execute(t, x.save(t, agentFlow(`{user_prompt: go, profileId: m, tool_approval: always}`, `web`, httpTool("web", ``))).Workflow.ID, api.ExecuteRequest{})
		}, click("Approve"), "slack", "channel"},
		"Activation": {human.PurposeActivation, func(t *testing.T, x *reachSite) string { return x.useTool(t) }, click("Accept"), "slack", "channel"},
		"Drift": {human.PurposeDrift, func(t *testing.T, x *reachSite) string {
			box := x.useBox(t)
			want[api.MCPServer](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", `{}`), http.StatusOK)
			box.change(toolDefinition{Name: "put", Description: "puts, and tells everybody", Schema: json.RawMessage(`{"type":"object"}`)})
			want[struct{}](t, x.call(t, "operator", "POST", "/mcp/servers/box/restart", nil), http.StatusNoContent)
			return x.execute(t, "alone", api.ExecuteRequest{})
		}, click("Accept"), "slack", "channel"},
		"Budget": {human.PurposeBudget, func(t *testing.T, x *reachSite) string {
			model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{tokens: 40, text: []string{"ok"}} })
			p := model.profile("m")
			p.Budgets = []llm.Budget{{Per: "execution", Tokens: 10}}
			x.saveProfile(t, p)
			return x.execute(t, x.save(t, agentFlow(`{user_prompt: hello, profileId: m, max_tokens: 50}`, ``, ``)).Workflow.ID, api.ExecuteRequest{})
		}, fill("5000"), "in_app", "link"},
		"Param": {human.PurposeParam, func(t *testing.T, x *reachSite) string {
			orderTemplate(t, x.Instance, "CALL.EMPTY")
			if err := x.SaveProfile(t.Context(), user, llm.Profile{ID: "filler", Provider: "scripted", Model: "m", Script: llm.Script{Rules: []llm.Rule{{Schema: "slots", JSON: json.RawMessage(`{"to":"Ada","amount":"many"}`)}}}}); err != nil {
				t.Fatal(err)
			}
			x.save(t, orderFlow(", filling_profile: filler", ""))
			return x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"some for Ada"}`)})
		}, fill("4"), "in_app", "link"},
		"Confirm": {human.PurposeConfirm, func(t *testing.T, x *reachSite) string {
			tasks := tasksOn(t, x.site, newMind(t, []string{"box/read"}, judged("low", "medium")), newToolbox(t, nil, cityTools()...))
			tasks.auto()
			return tasks.ask(api.TaskRequest{}).ExecutionID
		}, reply("Yes, please do it."), "email", "channel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openReach(t)
			execution := c.start(t, x)
			q := x.opens(t, execution, 1)[0]
			if q.Purpose != c.purpose {
				t.Fatalf("asked for %q, want %q", q.Purpose, c.purpose)
			}
			mail, message := x.told(t, q.ID)
			c.answer(t, x, mail, message)
			x.reaches(t, execution, engine.StatusSuccess)
			d := x.once(t, q.ID)
			for _, r := range d.Responses {
				if r.Accepted && (r.UserID != "operator" || r.ChannelType != c.channel || string(r.Means.Kind) != c.means) {
					t.Errorf("recorded is %+v", r)
				}
			}
			x.until(t, q.ID, "two notices of the end", func(d api.InteractionDetail) bool {
				n := 0
				for _, m := range d.Deliveries {
					if m.Kind == "completed" && m.Status == "sent" {
						n++
					}
				}
				return n == 2
			})
		})
	}
}

// useBox adds a tool server, and a workflow that calls its tool.
func (x *reachSite) useBox(t *testing.T) *toolbox {
	t.Helper()
	box := newToolbox(t, nil, toolDefinition{Name: "put", Description: "puts", Schema: json.RawMessage(`{"type":"object"}`)})
	if err := x.stores.MCPServers.Put(t.Context(), user, box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	x.save(t, toolFlow("alone", `{server_id: box, tool_name: put}`))
	return box
}

// useTool starts a workflow whose tool server nobody has accepted yet.
func (x *reachSite) useTool(t *testing.T) string {
	t.Helper()
	x.useBox(t)
	return x.execute(t, "alone", api.ExecuteRequest{})
}

// Servers die around a question that a user has chosen to be told of by a program: right after it was asked, and while the message is on
// its way. The next one sends it: one message of one key for each question, and one answer counts.
func TestReach_OnceThroughCrashes(t *testing.T) {
	t.Parallel()
	type call struct{ key, event, interaction, callback string }
	var mu sync.Mutex
	var calls []call
	news := make(chan struct{}, 1000)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller is dead
		}
		m := gjson.ParseBytes(body)
		mu.Lock()
		calls = append(calls, call{r.Header.Get("Idempotency-Key"), m.Get("event").Str, m.Get("interaction.id").Str, m.Get("callback_url").Str})
		mu.Unlock()
		news <- struct{}{}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer service.Close()
	c := peopleCrash(t, askFlow("two", asks("a", ``), asks("b", ``)))
	const secret = "7b1f0c9e-4d-hook-of-reach"
	kill := c.serve()
	me, err := c.client.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.CreateCredential(t.Context(), api.CredentialRequest{Name: "hook", Type: "webhook_secret", Data: json.RawMessage(`{"secret":"` + secret + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.PutContactChannel(t.Context(), "pager", api.ContactChannelRequest{CredentialID: "hook", WebhookURL: service.URL}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.UpdateReach(t.Context(), "me", api.ReachRequest{Contacts: []api.Contact{{Channel: "pager"}}}); err != nil {
		t.Fatal(err)
	}
	var started []string
	const rounds = 4
	for n := range rounds {
		e, err := c.client.Execute(t.Context(), "two", api.ExecuteRequest{}, fmt.Sprint("start", n))
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, e.ExecutionID)
		if n%2 == 1 {
			<-news // it is told of one of them, or of one before
		}
		kill()
		c.offline(func(s store.Stores) { // what was on its way would be tried again when the time of the first try is over
			due, _, err := s.Interactions.DueDeliveries(t.Context(), identity.System(""), time.Now().Add(time.Hour).UnixMilli(), 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range due {
				d.NextAt = time.Now().UnixMilli()
				if err := s.Interactions.Delivered(t.Context(), identity.System("default"), d, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
		})
		kill = c.serve()
	}
	// told waits until each of some questions was told of by an event, and returns the calls by question.
	told := func(event string, n int) map[string]call {
		t.Helper()
		limit := time.After(patient)
		for {
			mu.Lock()
			by := map[string]call{}
			for _, one := range calls {
				if one.event != event {
					continue
				}
				if before, ok := by[one.interaction]; ok && before.key != one.key {
					t.Fatalf("question %s is told of by two messages: %+v and %+v", one.interaction, before, one)
				}
				by[one.interaction] = one
			}
			mu.Unlock()
			if len(by) == n {
				return by
			}
			select {
			case <-news:
			case <-limit:
				t.Fatalf("%d questions were told of by %s, want %d", len(by), event, n)
			}
		}
	}
	asked := told("request", 2*rounds)
	for _, execution := range started {
		for _, q := range c.questions(execution, 2) {
			one, ok := asked[q.ID]
			if !ok {
				t.Fatalf("nobody was told of %s", q.ID)
			}
			body := `{"interaction_id":"` + q.ID + `","responder":"user:` + me.ID + `","response_data":{"action":"approve"}}`
			_, path, _ := strings.Cut(one.callback, "/channels/") // the port may be another
			if got := callback(t, "http://"+c.addr+"/channels/"+path, secret, time.Now(), body); got.status != http.StatusOK {
				t.Fatalf("the answer: %d %s", got.status, got.body)
			}
			if got := callback(t, "http://"+c.addr+"/channels/"+path, secret, time.Now(), strings.Replace(body, "approve", "reject", 1)); got.status != http.StatusConflict {
				t.Errorf("the second answer: %d %s", got.status, got.body)
			}
		}
		c.becomes(execution, engine.StatusSuccess)
	}
	told("completed", 2*rounds)
	kill()
	for _, execution := range started {
		c.once(execution, 2, "a", "b")
	}
	c.offline(func(s store.Stores) {
		for id := range asked {
			sent, err := s.Interactions.Deliveries(t.Context(), identity.System("default"), id)
			if err != nil || len(sent) != 2 {
				t.Errorf("messages about %s: %+v, %v", id, sent, err)
			}
		}
	})
}

// An execution that a trigger starts is nobody's; who has deployed it wants what it does, and does not answer questions that exclude those.
// When the time of a question is up, the audit log says so.
func TestReach_TriggeredAndTimedOut(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	config := `{"title":"Pay?","approvers":["editor","approver"],"exclude_requester":true}`
	x.deploys(t, "paid", hookFlow("paid", `{"webhook_path":"/pay"}`, `,{"id":"ask","name":"ask","description":"d","type":"HUMAN_IN_THE_LOOP","subtype":"IN_APP_APPROVAL","configurations":`+config+`}`, `{"from_node":"hook","to_node":"ask"}`))
	id := want[api.Received](t, x.hooked(t, "POST", "paid/pay", `{"sum":5}`), http.StatusAccepted).ExecutionID
	q := x.opens(t, id, 1)[0]
	refused(t, x.respond(t, "editor", q.ID, approved), http.StatusForbidden, "forbidden")
	want[api.Interaction](t, x.respond(t, "approver", q.ID, approved), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)

	late := want[api.Received](t, x.hooked(t, "POST", "paid/pay", `{"sum":6}`), http.StatusAccepted).ExecutionID
	q = x.opens(t, late, 1)[0]
	x.runOut(t, q.ID)
	x.reaches(t, late, engine.StatusError)
	if e := x.audited(t, "interaction.timeout", q.ID); e.User != "system" || !strings.Contains(string(e.Detail), late) || e.Time == 0 {
		t.Errorf("the log says %+v %s", e, e.Detail)
	}
}
