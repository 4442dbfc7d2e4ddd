package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/trigger"
	"tandem/trigger/triggertest"
	"tandem/workflow"
)

// station is a bot whose messages and commands start workflows.
type station struct {
	*fake
	channel  *Channel
	shelf    *triggertest.Shelf
	service  *trigger.Service
	desk     *desk
	flows    map[string]string
	receipts []string
}

func newStation(t *testing.T, flows map[string]string) *station {
	t.Helper()
	s := &station{fake: newFake(t), shelf: triggertest.NewShelf(), flows: flows}
	s.desk = &desk{reaction: human.Reaction{Err: fault.New(fault.NotFound, "the reply belongs to no question")}, heard: make(chan human.Reply, 100)}
	s.restart()
	t.Cleanup(func() { s.service.Close() })
	return s
}

// restart makes everything anew on what was kept.
func (s *station) restart() {
	s.channel = NewChannel(s.client, nil)
	s.channel.pace = pace{round: time.Millisecond, refresh: time.Millisecond}
	nodes := func(workflow string, _ int64) []trigger.Node {
		return []trigger.Node{{ID: "start", Kind: triggerKind, Config: json.RawMessage(s.flows[workflow])}}
	}
	s.service = s.shelf.Service([]trigger.Source{source{s.channel}}, nodes, func(o *trigger.Options) {
		o.Credentials = func(string) credential.Opener { return s.account().Open }
		o.CredentialID = func(_ context.Context, _, name string) (string, error) { return name, nil }
	})
}

func (s *station) deploy(t *testing.T) *station {
	t.Helper()
	for workflow := range s.flows {
		if err := s.service.Deploy(t.Context(), identity.System("w1"), workflow, 1); err != nil {
			t.Fatalf("%s: %v", workflow, err)
		}
	}
	return s
}

// listen reads the channels until everything that was said is past, and then ends.
func (s *station) listen(t *testing.T, channels ...string) {
	t.Helper()
	a := s.account()
	a.Receipts = func(context.Context) (list []json.RawMessage, _ error) {
		for _, r := range s.receipts {
			list = append(list, json.RawMessage(r))
		}
		return list, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.channel.Listen(ctx, a, s.desk.handle) }()
	for range 3 { // looks: the third begins when all of the first is done with
		for _, channel := range channels {
			s.Wait("GET /channels/" + channel + "/messages")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// at is the id of something that is written at some time from now, the nth of them.
func at(offset time.Duration, n int) string {
	ms := time.Now().Add(offset).UnixMilli()
	return fmt.Sprint((ms-epoch)<<22 + int64(n))
}

// said is a message; fields are merged into it.
func said(id, text string, more map[string]any) map[string]any {
	m := map[string]any{"id": id, "channel_id": "55", "type": 0, "content": text, "author": map[string]any{"id": "42", "username": "ann", "global_name": "Ann Lee"}, "timestamp": "2026-01-01T00:00:00Z"}
	maps.Copy(m, more)
	return m
}

func TestTrigger_Messages(t *testing.T) {
	t.Parallel()
	robot := map[string]any{"author": map[string]any{"id": "7", "username": "robot", "bot": true}}
	for name, c := range map[string]struct {
		config string
		more   map[string]any
		starts bool
	}{
		"Message":      {``, nil, true},
		"Reply":        {``, map[string]any{"type": 19, "message_reference": map[string]any{"message_id": "9", "channel_id": "55"}}, true},
		"Keyword":      {`,"keywords":["DEPLOY"]`, nil, true},
		"NoKeyword":    {`,"keywords":["refund"]`, nil, false},
		"Joined":       {``, map[string]any{"type": 7}, false},
		"Bot":          {``, robot, false},
		"Webhook":      {``, map[string]any{"webhook_id": "3"}, false},
		"BotLetIn":     {`,"filter_bot_messages":false`, robot, true},
		"WebhookLetIn": {`,"filter_bot_messages":false`, map[string]any{"webhook_id": "3"}, true},
		"Itself":       {`,"filter_bot_messages":false`, map[string]any{"author": map[string]any{"id": "1", "username": "bot", "bot": true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, map[string]string{"flow": `{"credential_id":"cred","channels":["55"]` + c.config + `}`}).deploy(t)
			s.say("55", said(at(time.Second, 1), "please deploy", c.more))
			s.listen(t, "55")
			if got := len(s.shelf.Starts()) == 1; got != c.starts {
				t.Errorf("started %v, want %v", got, c.starts)
			}
		})
	}
}

// Messages of the channels that triggers are for start each workflow once, whatever is restarted, beginning with the deployment. A reply to
// a question answers it and starts nothing.
func TestTrigger_Once(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"one": `{"credential_id":"cred","channels":["55",66]}`, "two": `{"credential_id":"cred","channels":["55"]}`})
	s.say("55", said(at(-time.Hour, 1), "long ago", nil))
	s.deploy(t)
	first, second, third, fourth := at(time.Second, 1), at(2*time.Second, 2), at(3*time.Second, 3), at(4*time.Second, 4)
	s.say("55", said(first, "first", nil))
	s.say("66", said(second, "second", map[string]any{"channel_id": "66"}))
	s.listen(t, "55", "66")
	// What was noted is lost, as if the process had died before: the messages are read again.
	s.service.Close()
	s.restart()
	s.receipts = []string{`{"channel":"55","message":"1001","live":true}`} // a question is asked, so the channel is read from long before
	s.desk.reaction = accepted("Thank you.")
	s.say("55", said(third, "yes", map[string]any{"type": 19, "message_reference": map[string]any{"message_id": "1001", "channel_id": "55"}, "referenced_message": map[string]any{"id": "1001", "author": map[string]any{"id": "1", "bot": true}}}))
	s.say("55", said(fourth, "fourth", nil))
	s.listen(t, "55", "66")
	kept := s.shelf.Kept()
	slices.Sort(kept)
	want := []string{"message:" + first + " started", "message:" + first + " started", "message:" + second + " started", "message:" + third + " ignored", "message:" + third + " ignored", "message:" + fourth + " started", "message:" + fourth + " started"}
	slices.Sort(want)
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if n := len(s.desk.got()); n != 1 {
		t.Errorf("%d replies", n)
	}
	if cursor := s.shelf.Cursor("w1", "one", "start"); gjson.Get(cursor, "at.55").String() != fourth || gjson.Get(cursor, "at.66").String() != second {
		t.Errorf("read up to %s, want %s and %s", cursor, fourth, second)
	}
	p := gjson.ParseBytes(s.shelf.Starts()[0].Payload)
	for path, want := range map[string]string{
		"event_type": "message", "server_id": "1", "channel_id": "55", "channel_name": "ops", "user_id": "42", "user_name": "Ann Lee", "message_id": first, "message_text": "first", "command": "",
		"reply_to_message_id": "", "options": "{}", "discord_payload.timestamp": "2026-01-01T00:00:00Z",
	} {
		if got := p.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// A channel that a later revision adds is read from that deployment on, and the others from where they were.
func TestTrigger_ChannelAdded(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"credential_id":"cred","channels":["55"]}`}).deploy(t)
	s.listen(t, "55")
	s.say("55", said(at(-10*time.Second, 1), "before the deployment", nil)) // within what clocks may be apart, and the trigger has come past it
	s.say("66", said(at(-10*time.Second, 2), "before the channel was added", map[string]any{"channel_id": "66"}))
	s.flows["flow"] = `{"credential_id":"cred","channels":["55","66"]}`
	if err := s.service.Deploy(t.Context(), identity.System("w1"), "flow", 2); err != nil {
		t.Fatal(err)
	}
	s.say("66", said(at(time.Second, 3), "after", map[string]any{"channel_id": "66"}))
	s.receipts = []string{`{"channel":"55","message":"1001","live":true}`} // a question lets the channel be read from long before
	before := gjson.Get(s.shelf.Cursor("w1", "flow", "start"), "at.55").String()
	s.listen(t, "55", "66")
	if after := gjson.Get(s.shelf.Cursor("w1", "flow", "start"), "at.55").String(); before == "" || after != before {
		t.Errorf("the trigger has come to %s after %s", after, before)
	}
	if starts := s.shelf.Starts(); len(starts) != 1 || gjson.GetBytes(starts[0].Payload, "message_text").String() != "after" {
		t.Errorf("started %d", len(starts))
	}
}

// A bot that may not read texts starts workflows all the same, and the log says what to do.
func TestTrigger_NoText(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"credential_id":"cred","channels":["55"]}`}).deploy(t)
	var log bytes.Buffer
	s.channel.log = slog.New(slog.NewTextHandler(&log, nil))
	for n := range 2 {
		s.say("55", said(at(time.Second, n), "", nil))
	}
	s.listen(t, "55")
	if n := strings.Count(log.String(), "allow the bot the message content intent"); n != 1 || len(s.shelf.Starts()) != 2 {
		t.Errorf("warned %d times, %d starts: %s", n, len(s.shelf.Starts()), &log)
	}
}

// used is what Discord posts when somebody uses a slash command.
func used(t *testing.T, id, name, locale string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"id": id, "application_id": "888", "type": 2, "token": "interaction-canary", "channel_id": "55", "guild_id": "1", "locale": locale, "channel": map[string]any{"id": "55", "name": "ops"}, "version": 1,
		"member": map[string]any{"user": map[string]any{"id": "42", "username": "ann", "global_name": "Ann Lee"}},
		"data":   map[string]any{"id": "6", "name": name, "type": 1, "options": []any{map[string]any{"name": "text", "type": 3, "value": "shop"}, map[string]any{"name": "count", "type": 4, "value": 3}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTrigger_Commands(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{
		"deploy": `{"credential_id":"cred","events":["command"],"commands":["/deploy","status"]}`, "any": `{"credential_id":"cred","events":["command"],"channels":["55"]}`,
		"elsewhere": `{"credential_id":"cred","events":["command"],"channels":["66"]}`, "messages": `{"credential_id":"cred","channels":["55"]}`,
	}).deploy(t)
	// What the app has is left alone, what it lacks is made.
	if made := s.Sent("POST /applications/888/commands"); len(made) != 1 || made[0].body["name"] != "deploy" {
		t.Errorf("made %v", made)
	}
	id := at(0, 1)
	for range 2 {
		w := httptest.NewRecorder()
		if err := s.channel.Receive(w, s.request(used(t, id, "deploy", "en-US"), time.Now()), s.account(), s.desk.handle); err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(w.Body.String(), "data.content").String(); got != "The workflow was started." || gjson.Get(w.Body.String(), "data.flags").Int() != 64 || gjson.Get(w.Body.String(), "type").Int() != 4 {
			t.Errorf("answered %s", w.Body)
		}
	}
	var started []string
	for _, one := range s.shelf.Starts() {
		started = append(started, one.WorkflowID)
	}
	if slices.Sort(started); !slices.Equal(started, []string{"any", "deploy"}) {
		t.Fatalf("started %q", started)
	}
	p := gjson.ParseBytes(s.shelf.Starts()[0].Payload)
	for path, want := range map[string]string{
		"event_type": "command", "server_id": "1", "channel_id": "55", "channel_name": "ops", "user_id": "42", "user_name": "Ann Lee", "message_text": "shop", "command": "deploy", "options.text": "shop", "options.count": "3",
		"discord_payload.id": id,
	} {
		if got := p.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if strings.Contains(p.Raw, "interaction-canary") {
		t.Errorf("the token of the interaction is kept: %s", p.Raw)
	}
	// Who uses a command that starts nothing is told so, in their language.
	if err := s.service.Undeploy(t.Context(), identity.System("w1"), "any"); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := s.channel.Receive(w, s.request(used(t, at(0, 2), "other", "en-US"), time.Now()), s.account(), s.desk.handle); err != nil || gjson.Get(w.Body.String(), "data.content").String() != "No workflow is started by this command here." {
		t.Errorf("answered %s (%v)", w.Body, err)
	}
	// An unsigned command starts nothing.
	r := s.request(used(t, at(0, 3), "deploy", "en-US"), time.Now())
	r.Header.Set("X-Signature-Timestamp", "1")
	if err := s.channel.Receive(httptest.NewRecorder(), r, s.account(), s.desk.handle); fault.CodeOf(err) != fault.Unauthorized || len(s.shelf.Starts()) != 2 {
		t.Errorf("%v, %d starts", err, len(s.shelf.Starts()))
	}
}

func TestTrigger_Register(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"credential_id":"cred","channels":["404"]}`})
	err := s.service.Deploy(t.Context(), identity.System("w1"), "flow", 1)
	if fault.CodeOf(err) != fault.DeliveryFailed || !strings.Contains(err.Error(), "see the channel 404") {
		t.Errorf("deployed: %v", err)
	}
	s.flows["flow"] = `{"credential_id":"cred","events":["command"]}`
	s.public = nil
	if err := s.service.Deploy(t.Context(), identity.System("w1"), "flow", 1); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "public_key") {
		t.Errorf("deployed: %v", err)
	}
	for config, at := range map[string]string{
		`{"credential_id":"c"}`: "configurations.channels", `{"credential_id":"c","channels":["#ops"]}`: "configurations.channels", `{"credential_id":"c","events":[]}`: "configurations.events",
		`{"credential_id":"c","events":["command"],"commands":["Deploy It"]}`: "configurations.commands",
	} {
		var registry node.Registry
		registry.Register(triggerDiscord())
		kind, _ := registry.Kind(triggerKind)
		_, problems := kind.Plan(&workflow.Node{ID: "n", Type: "TRIGGER", Subtype: "DISCORD", Configurations: json.RawMessage(config)})
		if len(problems) != 1 || problems[0].Path != at {
			t.Errorf("%s: %v", config, problems)
		}
	}
	nodetest.Conform(t, nodetest.Of(triggerDiscord()))
}
