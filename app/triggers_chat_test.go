package app

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// chatFlow is a workflow that a trigger of a vendor starts.
func chatFlow(id, vendor, config string) string {
	return `{"metadata":{"id":"` + id + `","name":"` + id + `","description":"d"},"nodes":[{"id":"chat","name":"chat","description":"d","type":"TRIGGER","subtype":"` + vendor + `","configurations":` + config + `}],"connections":[]}`
}

// deliveriesTo lists what has come to a workflow, the oldest first.
func (x *site) deliveriesTo(t testing.TB, workflow string) []api.Delivery {
	t.Helper()
	list := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?page_size=100&workflow_id="+workflow, nil), http.StatusOK).Deliveries
	slices.Reverse(list)
	return list
}

// broughtBy is what the trigger of a delivery's execution put out, once that has ended.
func (x *site) broughtBy(t testing.TB, d api.Delivery) gjson.Result {
	t.Helper()
	if d.Decision != "started" {
		t.Fatalf("delivery %+v", d)
	}
	x.reaches(t, d.ExecutionID, engine.StatusSuccess)
	return gjson.ParseBytes(x.read(t, d.ExecutionID).NodeExecutions["chat"].OutputData["result"])
}

// signedTo posts a body to an address as Slack does.
func (s *slackSite) signedTo(t *testing.T, address, secret, body string, headers ...string) answer {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	return s.post(t, address, body, append(headers, "Content-Type", "application/json", "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))...)
}

// slackSaid is the event of a message in #ops.
func slackSaid(t *testing.T, id, ts, text string) string {
	t.Helper()
	return string(wireJSON(t, map[string]any{
		"token": "verification-token", "type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": id, "event_time": time.Now().Unix(),
		"authorizations": []any{map[string]any{"team_id": "T1", "user_id": "UBOT", "is_bot": true}},
		"event":          map[string]any{"type": "message", "channel": "C0PS", "user": "U1", "text": text, "ts": ts},
	}))
}

// The triggers of one app share its address, each trigger's own address leads there as well, and a reply to a question starts nothing.
func TestTriggerSlack(t *testing.T) {
	t.Parallel()
	s := openSlack(t)
	s.deploys(t, "one", chatFlow("one", "SLACK", `{"workspace_id":"T1","credential_id":"slack_bot"}`)) // by name
	s.deploys(t, "two", chatFlow("two", "SLACK", `{"workspace_id":"T1","credential_id":"`+s.credential+`","keywords":["refund"]}`))
	address := s.callback("slack", s.credential)
	listed := want[api.Triggers](t, s.call(t, "viewer", "GET", "/triggers?kind=TRIGGER.SLACK", nil), http.StatusOK).Triggers
	same(t, fmt.Sprint(len(listed), listed[0].Address, listed[1].Address), fmt.Sprint(2, address, address))
	hook := strings.TrimSuffix(s.url, "/api/v1") + "/hooks/one/slack/chat"

	challenge := `{"token":"x","challenge":"c-123","type":"url_verification"}`
	for _, to := range []string{address, hook} {
		refused(t, s.signedTo(t, to, "another secret", challenge), http.StatusUnauthorized, "unauthorized")
		refused(t, s.post(t, to, challenge, "Content-Type", "application/json"), http.StatusUnauthorized, "unauthorized")
		if got := want[map[string]string](t, s.signedTo(t, to, slackSigning, challenge), http.StatusOK); got["challenge"] != "c-123" {
			t.Errorf("the challenge was answered with %v", got)
		}
		refused(t, s.signedTo(t, to, "another secret", slackSaid(t, "Ev0", "1.0", "a refund")), http.StatusUnauthorized, "unauthorized")
	}
	refused(t, s.signedTo(t, strings.Replace(hook, "/chat", "/other", 1), slackSigning, challenge), http.StatusNotFound, "not_found")

	for n, to := range []string{address, hook, address} {
		body := slackSaid(t, "Ev"+fmt.Sprint(n), fmt.Sprint("2.", n), []string{"hello", "a refund, please", "bye"}[n])
		for retry := range 2 {
			if got := s.signedTo(t, to, slackSigning, body, "X-Slack-Retry-Num", fmt.Sprint(retry)); got.status != http.StatusOK {
				t.Fatalf("answered %d %s", got.status, got.body)
			}
		}
	}
	one, two := s.deliveriesTo(t, "one"), s.deliveriesTo(t, "two")
	if len(one) != 3 || len(two) != 1 {
		t.Fatalf("deliveries %+v and %+v", one, two)
	}
	out := s.broughtBy(t, two[0])
	for path, want := range map[string]string{
		"event_type": "message", "channel_id": "C0PS", "channel_name": "ops", "user_id": "U1", "user_name": "n", "message_text": "a refund, please", "trigger_message": "message of n in #ops",
		"slack_payload.event_id": "Ev1", "execution_id": two[0].ExecutionID, "slack_payload.token": "",
	} {
		if got := out.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	same(t, s.read(t, two[0].ExecutionID).TriggerInfo.TriggerType, "SLACK")

	execution, q, _ := s.ask(t, "#ops", `approvers: ["slack:U1"]`)
	reply := strings.Replace(slackSaid(t, "Ev9", "2.9", "I approve this."), `"ts":"2.9"`, `"ts":"2.9","thread_ts":"1700000000.000001","parent_user_id":"UBOT"`, 1)
	want[any](t, s.signedTo(t, address, slackSigning, reply), http.StatusOK)
	s.goesOn(t, execution, q.ID, "approve confirmed result")
	one = s.deliveriesTo(t, "one")
	if last := one[len(one)-1]; len(one) != 4 || last.Decision != "ignored" || last.ExecutionID != "" || !strings.Contains(last.Reason, "answers a question") {
		t.Errorf("deliveries %+v", one)
	}
	// The app goes on to be called when a workflow goes, whose own address ends then.
	want[api.WorkflowMetadata](t, s.call(t, "editor", "POST", "/workflows/one/undeploy", nil), http.StatusOK)
	refused(t, s.signedTo(t, hook, slackSigning, challenge), http.StatusNotFound, "not_found")
	same(t, s.signedTo(t, address, slackSigning, slackSaid(t, "Ev10", "3.0", "another refund")).status, http.StatusOK)
	same(t, fmt.Sprint(len(s.deliveriesTo(t, "one")), len(s.deliveriesTo(t, "two"))), "4 2")
}

// begun is told of each execution that begins in an instance.
func begun(o *Options) <-chan string {
	list := make(chan string, 1000)
	var known sync.Map
	o.Recorded = func(ref store.Ref, _ *workflow.Graph, _ host.Row) {
		if _, before := known.LoadOrStore(ref.Execution, true); !before {
			list <- ref.Execution
		}
	}
	return list
}

// next waits for one of some values.
func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(channelPatience):
		t.Fatalf("no %s in time", what)
		panic("unreachable")
	}
}

// Questions and triggers share the updates of a bot. What the service tells again after a restart starts nothing again.
func TestTriggerTelegram(t *testing.T) {
	t.Parallel()
	s := &telegramSite{texts: map[int64]string{}, more: make(chan struct{}), sent: 500}
	s.wire = newWire(t, s.answers)
	dir := sqlitetest.Dir(t)
	said := func(update int64, text string) map[string]any {
		u := telegramWrote(update, 42, 42, "private", text)
		m := u["message"].(map[string]any)
		m["date"] = time.Now().Unix()
		delete(m, "reply_to_message")
		return u
	}
	run := func(updates []map[string]any, then func(c *client.Client), count int) {
		t.Helper()
		var started <-chan string
		i := reopened(t, dir, func(o *Options) { started = begun(o) })
		defer closed(t, i)
		c, closeAPI, err := i.API()
		works(t, err)
		defer func() { works(t, closeAPI()) }()
		then(c)
		for _, u := range updates {
			s.tell(u)
		}
		for range count {
			id := next(t, started, "execution")
			_, err := i.Wait(t.Context(), identity.System("default"), id)
			works(t, err)
		}
		found, err := c.Deliveries(t.Context(), client.DeliveryQuery{WorkflowID: "shop", PageSize: 100})
		works(t, err)
		var keys []string
		for _, d := range found.Deliveries {
			keys = append(keys, d.Key+" "+d.Decision)
		}
		slices.Sort(keys)
		want := []string{"7001:21 started"}
		if len(updates) == 3 {
			want = append(want, "7001:22 started")
		}
		same(t, strings.Join(keys, ", "), strings.Join(want, ", "))
	}
	run([]map[string]any{said(20, "hello"), said(21, "/order 7")}, func(c *client.Client) {
		_, err := c.CreateCredential(t.Context(), api.CredentialRequest{Name: "bot", Type: "telegram_bot", Data: wireJSON(t, map[string]any{"token": telegramToken, "base_url": s.URL})})
		works(t, err)
		_, err = c.CreateWorkflow(t.Context(), []byte(chatFlow("shop", "TELEGRAM", `{"credential_id":"bot","commands":["/order"]}`)), false)
		works(t, err)
		_, err = c.Deploy(t.Context(), "shop")
		works(t, err)
	}, 1)
	run([]map[string]any{said(20, "hello"), said(21, "/order 7"), said(22, "/order 8")}, func(*client.Client) {}, 1)
}

// A slash command starts a workflow through the address of the app, and so does a message in a channel that is looked at.
func TestTriggerDiscord(t *testing.T) {
	t.Parallel()
	var started <-chan string
	s := discordOn(t, channelSite{openSiteAs(t, func(o *Options, url string) {
		o.PublicURL = url
		started = begun(o)
	})})
	s.deploys(t, "commands", chatFlow("commands", "DISCORD", `{"events":["command"],"commands":["deploy"],"credential_id":"discord_bot"}`))
	s.deploys(t, "messages", chatFlow("messages", "DISCORD", `{"channels":["55"],"keywords":["deploy"],"credential_id":"discord_bot"}`))
	made := s.gets(t, "POST /api/v9/applications/8/commands", nil)
	same(t, made.Get("name").Str, "deploy")
	id := strconv.FormatInt((time.Now().UnixMilli()-1_420_070_400_000)<<22, 10)
	data := map[string]any{"id": "6", "name": "deploy", "type": 1, "options": []any{map[string]any{"name": "text", "type": 3, "value": "shop"}}}
	_, stranger, err := ed25519.GenerateKey(nil)
	works(t, err)
	refused(t, s.bring(t, stranger, id, "42", 2, data), http.StatusUnauthorized, "unauthorized")
	for range 2 {
		got := gjson.ParseBytes(want[json.RawMessage](t, s.bring(t, s.key, id, "42", 2, data), http.StatusOK))
		same(t, got.Get("data.content").Str, "The workflow was started.")
	}
	list := s.deliveriesTo(t, "commands")
	if len(list) != 1 {
		t.Fatalf("deliveries %+v", list)
	}
	out := s.broughtBy(t, list[0])
	same(t, fmt.Sprint(out.Get("command"), " ", out.Get("options.text"), " ", out.Get("user_name"), " ", out.Get("discord_payload.token").Exists(), " ", out.Get("trigger_message")), "deploy shop p42 false command of p42")
	next(t, started, "execution of the command")

	s.guard.Lock()
	s.last = int(((time.Now().UnixMilli() + 1000 - 1_420_070_400_000) << 22))
	s.written = append(s.written, map[string]any{"id": strconv.Itoa(s.last), "channel_id": "55", "type": 0, "content": "please deploy", "author": map[string]any{"id": "43", "username": "bob"}})
	s.guard.Unlock()
	s.broughtBy(t, api.Delivery{Decision: "started", ExecutionID: next(t, started, "execution of the message")})
	same(t, len(s.deliveriesTo(t, "messages")), 1)
}
