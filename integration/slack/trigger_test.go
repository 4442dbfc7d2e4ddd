package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node/nodetest"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// notes is a log.
type notes struct {
	mu sync.Mutex
	bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.Buffer.Write(p)
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.String()
}

// station is an app whose events start workflows.
type station struct {
	*fake
	channel *Channel
	shelf   *triggertest.Shelf
	service *trigger.Service
	log     *notes
	desk    desk
	// flows are the configurations of triggers, by workflow.
	flows map[string]string
}

func newStation(t *testing.T, flows map[string]string) *station {
	t.Helper()
	s := &station{fake: newFake(t), shelf: triggertest.NewShelf(), log: &notes{}, flows: flows}
	s.channel = NewChannel(s.client, slog.New(slog.NewTextHandler(s.log, nil)))
	s.desk.reaction = human.Reaction{Err: fault.New(fault.NotFound, "the reply belongs to no question")}
	nodes := func(workflow string, _ int64) []trigger.Node {
		return []trigger.Node{{ID: "start", Kind: triggerKind, Config: json.RawMessage(s.flows[workflow])}}
	}
	s.service = s.shelf.Service([]trigger.Source{source{s.channel}}, nodes, func(o *trigger.Options) {
		o.Credentials = func(string) credential.Opener {
			return func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
				return s.account().Open(ctx, strings.ReplaceAll(id, "by name", "cred"), types...)
			}
		}
		o.CredentialID = func(_ context.Context, _, name string) (string, error) {
			if name == "by name" {
				name = "cred"
			}
			return name, nil
		}
	})
	t.Cleanup(s.service.Close)
	return s
}

// deploy deploys all workflows.
func (s *station) deploy(t *testing.T) *station {
	t.Helper()
	for workflow := range s.flows {
		if err := s.service.Deploy(t.Context(), identity.System("w1"), workflow, 1); err != nil {
			t.Fatalf("%s: %v", workflow, err)
		}
	}
	return s
}

// happens brings an event as Slack does; fields are merged into the callback.
func (s *station) happens(t *testing.T, id string, event, more map[string]any, headers ...string) error {
	t.Helper()
	callback := map[string]any{
		"token": "verification-canary", "type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": id, "event_time": time.Now().Unix(),
		"authorizations": []any{map[string]any{"team_id": "T1", "user_id": "UBOT", "is_bot": true}}, "event": event,
	}
	for name, value := range more {
		callback[name] = value
	}
	raw, err := json.Marshal(callback)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.post(s.channel, s.account(), s.desk.handle, "application/json", string(raw), func(h http.Header) {
		for n := 0; n+1 < len(headers); n += 2 {
			h.Set(headers[n], headers[n+1])
		}
	})
	if err == nil && w.Code != http.StatusOK {
		return fmt.Errorf("answered %d", w.Code)
	}
	return err
}

// says is a message in #ops.
func says(user, ts, text string) map[string]any {
	return map[string]any{"type": "message", "channel": "C0PS", "user": user, "text": text, "ts": ts, "channel_type": "channel"}
}

func with(event map[string]any, pairs ...any) map[string]any {
	for n := 0; n+1 < len(pairs); n += 2 {
		event[pairs[n].(string)] = pairs[n+1]
	}
	return event
}

// started are the workflows that were started so far, in order.
func (s *station) started() (list []string) {
	for _, one := range s.shelf.Starts() {
		list = append(list, one.WorkflowID)
	}
	slices.Sort(list)
	return list
}

func TestTrigger_Filters(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		config string
		event  map[string]any
		starts bool
	}{
		"Message":           {"", says("U1", "1.1", "hello"), true},
		"Mention":           {"", with(says("U1", "1.1", "<@UBOT> hello"), "type", "app_mention"), true},
		"MentionAsMessage":  {`"events":["message"]`, with(says("U1", "1.1", "<@UBOT> hello"), "type", "app_mention"), true},
		"NotListed":         {`"events":["app_mention"]`, says("U1", "1.1", "hello"), false},
		"MessageThatIsOne":  {`"events":["app_mention"]`, says("U1", "1.1", "<@UBOT> hello"), true},
		"ReactionNotListed": {"", map[string]any{"type": "reaction_added", "user": "U1", "reaction": "ok", "item": map[string]any{"type": "message", "channel": "C0PS", "ts": "1.1"}}, false},
		"Reaction":          {`"events":["reaction_added"],"channels":["C0PS"]`, map[string]any{"type": "reaction_added", "user": "U1", "reaction": "ok", "item": map[string]any{"type": "message", "channel": "C0PS", "ts": "1.1"}}, true},
		"ReactionElsewhere": {`"events":["reaction_added"],"channels":["C0PS"]`, map[string]any{"type": "reaction_added", "user": "U1", "reaction": "ok", "item": map[string]any{"type": "message", "channel": "C2", "ts": "1.1"}}, false},
		"OwnReaction":       {`"events":["reaction_added"]`, map[string]any{"type": "reaction_added", "user": "UBOT", "reaction": "ok", "item": map[string]any{"type": "message", "channel": "C0PS", "ts": "1.1"}}, false},
		"ChannelObject":     {`"events":["channel_created"]`, map[string]any{"type": "channel_created", "channel": map[string]any{"id": "C9", "name": "fresh", "creator": "U1"}}, true},
		"UserObject":        {`"events":["team_join"],"channels":["C0PS"]`, map[string]any{"type": "team_join", "user": map[string]any{"id": "U8", "real_name": "Newcomer"}}, true},
		"FileShared":        {`"events":["file_shared"],"channels":["C0PS"]`, map[string]any{"type": "file_shared", "channel_id": "C0PS", "user_id": "U1", "file_id": "F1"}, true},
		"ChannelByID":       {`"channels":["C0PS"]`, says("U1", "1.1", "hello"), true},
		"ChannelByName":     {`"channels":["#ops"]`, says("U1", "1.1", "hello"), true},
		"ChannelByBareName": {`"channels":["Ops"]`, says("U1", "1.1", "hello"), true},
		"OtherChannel":      {`"channels":["C2"]`, says("U1", "1.1", "hello"), false},
		"OtherName":         {`"channels":["#sales"]`, says("U1", "1.1", "hello"), false},
		"Keyword":           {`"keywords":["Refund","return"]`, says("U1", "1.1", "a REFUND, please"), true},
		"NoKeyword":         {`"keywords":["refund"]`, says("U1", "1.1", "hello"), false},
		"ChineseKeyword":    {`"keywords":["退款"]`, says("U1", "1.1", "请退款"), true},
		"Bot":               {"", with(says("U7", "1.1", "beep"), "bot_id", "B7"), false},
		"BotLetIn":          {`"filter_bot_messages":false`, with(says("U7", "1.1", "beep"), "bot_id", "B7"), true},
		"OwnBot":            {`"filter_bot_messages":false`, with(says("UBOT", "1.1", "beep"), "bot_id", "B1"), false},
		"OwnApp":            {`"filter_bot_messages":false`, with(says("", "1.1", "beep"), "bot_id", "B1", "app_id", "A1", "subtype", "bot_message"), false},
		"Changed":           {"", with(says("U1", "1.1", "hello"), "subtype", "message_changed"), false},
		"Joined":            {"", with(says("U1", "1.1", "joined"), "subtype", "channel_join"), false},
		"Thread":            {"", with(says("U1", "1.2", "hello"), "thread_ts", "1.1"), true},
		"ThreadLeftOut":     {`"include_thread_replies":false`, with(says("U1", "1.2", "hello"), "thread_ts", "1.1"), false},
		"FirstOfThread":     {`"include_thread_replies":false`, with(says("U1", "1.1", "hello"), "thread_ts", "1.1"), true},
		"OtherWorkspace":    {`"workspace_id":"T9"`, says("U1", "1.1", "hello"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := `{"workspace_id":"T1","credential_id":"cred"`
			if c.config != "" {
				config = `{"credential_id":"cred",` + c.config
				if !strings.Contains(c.config, "workspace_id") {
					config += `,"workspace_id":"T1"`
				}
			}
			s := newStation(t, map[string]string{"flow": config + "}"})
			if strings.Contains(c.config, `"T9"`) {
				s.Next("auth.test", 200, `{"ok":true,"team_id":"T9","team":"Nine"}`)
			}
			s.deploy(t)
			if err := s.happens(t, "Ev1", c.event, nil); err != nil {
				t.Fatal(err)
			}
			if got := len(s.shelf.Starts()) == 1; got != c.starts {
				t.Errorf("started %v, want %v", got, c.starts)
			}
		})
	}
}

func TestTrigger_Payload(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred"}`}).deploy(t)
	for n := range 2 {
		if err := s.happens(t, fmt.Sprint("Ev", n), with(says("U1", fmt.Sprint("1.", n), "see <https://example.org|the page> &amp; <@U2>"), "thread_ts", "1.0"), nil); err != nil {
			t.Fatal(err)
		}
	}
	starts := s.shelf.Starts()
	if len(starts) != 2 {
		t.Fatalf("%d starts", len(starts))
	}
	p := gjson.ParseBytes(starts[1].Payload)
	for path, want := range map[string]string{
		"event_type": "message", "channel_id": "C0PS", "channel_name": "ops", "user_id": "U1", "user_name": "Ann Lee", "message_text": "see the page & @U2", "thread_ts": "1.0",
		"slack_payload.event.channel_type": "channel", "slack_payload.event_id": "Ev1",
	} {
		if got := p.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if p.Get("slack_payload.token").Exists() || strings.Contains(p.Raw, "verification-canary") {
		t.Errorf("the verification token is kept: %s", p.Raw)
	}
	if n := len(s.Sent("users.info")) + len(s.Sent("conversations.info")); n > 4 { // the channel itself looks each sender of a reply up
		t.Errorf("names are looked up again and again: %d calls", n)
	}
	if n := len(s.Sent("conversations.info")); n != 1 {
		t.Errorf("the channel was looked up %d times", n)
	}
}

// Slack sends an event again when it was not answered in time, and tells of a mention twice.
func TestTrigger_Once(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred","events":["message","app_mention","reaction_added"]}`}).deploy(t)
	reaction := map[string]any{"type": "reaction_added", "user": "U1", "reaction": "ok", "item": map[string]any{"type": "message", "channel": "C0PS", "ts": "1.1"}}
	for retry := range 3 {
		for id, event := range map[string]map[string]any{
			"Ev1": says("U1", "1.1", "<@UBOT> hello"), "Ev2": with(says("U1", "1.1", "<@UBOT> hello"), "type", "app_mention"), "Ev3": says("U1", "1.2", "more"), "Ev4": reaction,
		} {
			if err := s.happens(t, id, event, nil, "X-Slack-Retry-Num", fmt.Sprint(retry), "X-Slack-Retry-Reason", "http_timeout"); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]string{}
	for _, one := range s.shelf.Starts() {
		got[one.Arrival.Delivery.Key] = gjson.GetBytes(one.Payload, "event_type").String()
	}
	if len(s.shelf.Starts()) != 3 || got["message:C0PS:1.1"] != "app_mention" || got["message:C0PS:1.2"] != "message" || got["event:Ev4"] != "reaction_added" {
		t.Errorf("started %v", got)
	}
}

// What a workflow cannot start for now is kept and acknowledged, what it can never start is refused, and neither keeps the others from
// starting.
func TestTrigger_CannotStart(t *testing.T) {
	t.Parallel()
	flow := `{"workspace_id":"T1","credential_id":"cred"}`
	s := newStation(t, map[string]string{"later": flow, "never": flow, "well": flow}).deploy(t)
	s.shelf.RefuseStarts(func(o trigger.Start) error {
		return map[string]error{"later": errors.New("the disk is full"), "never": fault.New(fault.NotFound, "the workflow is gone")}[o.WorkflowID]
	})
	for range 2 {
		if err := s.happens(t, "Ev1", says("U1", "1.1", "hello"), nil); err != nil {
			t.Fatal(err)
		}
	}
	kept := s.shelf.Kept()
	slices.Sort(kept)
	if want := []string{"message:C0PS:1.1 accepted", "message:C0PS:1.1 refused", "message:C0PS:1.1 started"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q", kept)
	}
}

// A credential may be named or given by its id, and the triggers of another one hear nothing.
func TestTrigger_Sharing(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"one": `{"workspace_id":"T1","credential_id":"cred"}`, "two": `{"workspace_id":"T1","credential_id":"by name"}`}).deploy(t)
	if err := s.happens(t, "Ev1", says("U1", "1.1", "hello"), nil); err != nil {
		t.Fatal(err)
	}
	if got := s.started(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("started %q", got)
	}
	other := s.account()
	other.Credential = "elsewhere"
	relayed, err := s.channel.relay.Deliver(t.Context(), other.Account, func(context.Context, trigger.Trigger) (trigger.Event, bool, error) {
		return trigger.Event{Payload: []byte(`{}`)}, true, nil
	})
	if relayed != 0 || err != nil {
		t.Errorf("%d triggers of another credential were told (%v)", relayed, err)
	}
	accounts, err := s.service.Accounts(t.Context())
	if want := (store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}); err != nil || len(accounts) != 2 || accounts[0] != want || accounts[1] != want {
		t.Errorf("accounts %v (%v)", accounts, err)
	}
}

// An answer to a question starts nothing; the history says why.
func TestTrigger_AnswerToQuestion(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred"}`}).deploy(t)
	s.desk.reaction = accepted("Thank you")
	if err := s.happens(t, "Ev1", with(says("U1", "1.2", "yes"), "thread_ts", "1.1", "parent_user_id", "UBOT"), nil); err != nil {
		t.Fatal(err)
	}
	if len(s.shelf.Starts()) != 0 || !slices.Equal(s.shelf.Kept(), []string{"message:C0PS:1.2 ignored"}) || len(s.desk.got()) != 1 {
		t.Errorf("started %d, kept %q, %d replies", len(s.shelf.Starts()), s.shelf.Kept(), len(s.desk.got()))
	}
}

// Names that Slack does not tell, or not in time, stay empty; the event starts all the same, and is answered within what Slack waits.
func TestTrigger_NamesUnknown(t *testing.T) {
	t.Parallel()
	if lookupTime >= patience || patience >= 3*time.Second {
		t.Errorf("names are looked up for %s, and Slack waits for %s of its three seconds", lookupTime, patience)
	}
	refuse := func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"ok":false,"error":"missing_scope","needed":"users:read"}`)
	}
	for name, c := range map[string]struct {
		lookup time.Duration
		answer func(http.ResponseWriter)
		log    string
	}{"Slow": {10 * time.Millisecond, nil, "in time"}, "Refused": {lookupTime, refuse, "users:read"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred"}`}).deploy(t)
			s.channel.lookup, s.channel.patience = c.lookup, workTime/2
			release := make(chan struct{})
			t.Cleanup(func() { close(release) })
			answer := c.answer
			if answer == nil {
				answer = func(http.ResponseWriter) { <-release }
			}
			for _, method := range []string{"users.info", "conversations.info"} {
				s.Answer(method, answer)
			}
			if err := s.happens(t, "Ev1", says("U1", "1.1", "hello"), nil); err != nil {
				t.Fatal(err)
			}
			starts := s.shelf.Starts()
			if len(starts) != 1 || gjson.GetBytes(starts[0].Payload, "user_name").String() != "" || gjson.GetBytes(starts[0].Payload, "channel_name").String() != "" {
				t.Fatalf("started %+v", starts)
			}
			for _, want := range []string{"the name of a person in Slack is not known", "the name of a channel in Slack is not known", c.log} {
				if !strings.Contains(s.log.text(), want) {
					t.Errorf("the log does not say %q: %s", want, s.log.text())
				}
			}
		})
	}
}

// Where a channel is named and its name cannot be looked up for now, the event comes again; where it never can be, the event is left out.
func TestTrigger_ChannelNameUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		again  bool
	}{"ForNow": {500, `oops`, true}, "Never": {200, `{"ok":false,"error":"missing_scope","needed":"channels:read"}`, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred","channels":["#ops"]}`}).deploy(t)
			s.Next("conversations.info", c.status, c.answer)
			err := s.happens(t, "Ev1", says("U1", "1.1", "hello"), nil)
			if (err != nil) != c.again || len(s.shelf.Starts()) != 0 {
				t.Errorf("%v, %d starts", err, len(s.shelf.Starts()))
			}
			if err != nil && !fault.From(err).Retryable {
				t.Errorf("%v is not worth another try", err)
			}
		})
	}
}

func TestTrigger_Register(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, method, answer string
		code                   fault.Code
		says                   string
	}{
		"OtherWorkspace": {`"workspace_id":"T2"`, "", "", fault.InvalidConfig, "workspace_id: the token is one of the workspace T1 (Acme), not of T2"},
		"WrongToken":     {`"workspace_id":"T1"`, "auth.test", `{"ok":false,"error":"token_revoked"}`, fault.CredentialInvalid, "install the app again"},
		"NoScope":        {`"workspace_id":"T1","channels":["#ops"]`, "conversations.list", `{"ok":false,"error":"missing_scope","needed":"channels:read"}`, fault.CredentialInvalid, "channels:read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, map[string]string{"flow": `{"credential_id":"cred",` + c.config + `}`})
			if c.method != "" {
				s.Next(c.method, 200, c.answer)
			}
			err := s.service.Deploy(t.Context(), identity.System("w1"), "flow", 1)
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("deployed: %v", err)
			}
		})
	}
	t.Run("NoSigningSecret", func(t *testing.T) {
		t.Parallel()
		s := newStation(t, nil)
		err := source{s.channel}.Register(t.Context(), trigger.Trigger{
			Trigger: store.Trigger{Kind: triggerKind, Config: json.RawMessage(`{"workspace_id":"T1","credential_id":"cred"}`)},
			Open: func(context.Context, string, ...string) (credential.Opened, error) {
				return credential.Opened{Type: credentialType, Data: []byte(`{"token":"x"}`)}, nil
			},
		})
		if fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "signing_secret") {
			t.Errorf("registered: %v", err)
		}
	})
}

// What happened before the trigger was there does not start it when Slack tells of it late.
func TestTrigger_BeforeDeployment(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"workspace_id":"T1","credential_id":"cred"}`}).deploy(t)
	if err := s.happens(t, "Ev1", says("U1", "1.1", "hello"), map[string]any{"event_time": time.Now().Add(-time.Hour).Unix()}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.shelf.Starts()); n != 0 {
		t.Errorf("%d starts", n)
	}
}

func TestTrigger_Conforms(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(triggerSlack()))
}
