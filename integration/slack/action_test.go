package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
)

// acts are a fake Slack and the kind that acts in it.
type acts struct {
	*fake
	kind node.Kind
}

func newActs(t *testing.T) *acts {
	t.Helper()
	f := newFake(t)
	return &acts{f, act(f.guarded, nil)}
}

func (a *acts) call(config, input string) *node.Call {
	call := nodetest.NewCall(a.t, config, input)
	call.Credential = func(context.Context, string, ...string) (credential.Opened, error) {
		data, err := json.Marshal(map[string]string{"token": testToken, "base_url": a.url + "/api"})
		return credential.Opened{ID: "slack_bot", Data: data}, err
	}
	return call
}

// run runs a node and returns its result.
func (a *acts) run(config, input string) (gjson.Result, error) {
	out, err := a.kind.Run(context.Background(), a.call(config, input))
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(out.(node.Done)["result"]), nil
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	kind := act(nil, nil)
	nodetest.Conform(t, nodetest.Of(kind))
	left := slices.Clone(kind.About.Values["action_type"])
	for name, c := range map[string]struct {
		config, input string
		method        string
		sent          map[string]string
		result        map[string]string
	}{
		"Send": {
			`{"action_type":"send_message","channel":"#ops","message":"a < b","unfurl_links":false}`, ``, "chat.postMessage",
			map[string]string{"channel": "#ops", "text": "a &lt; b", "mrkdwn": "false", "unfurl_links": "false", "unfurl_media": "true"},
			map[string]string{"channel_id": "C0PS", "message_ts": "1700000000.000001", "content": "a < b", "success": "true", "action": "send_message"},
		},
		"SendMarks": {
			`{"action_type":"post_message","channel":"C1","message":"*a*","message_format":"mrkdwn","user_mentions":["U1","@U2"],"thread_ts":"1.2"}`, ``, "chat.postMessage",
			map[string]string{"text": "<@U1> <@U2> *a*", "thread_ts": "1.2", "mrkdwn": ""}, map[string]string{"channel_id": "C1"},
		},
		"SendToAPerson": {`{"channel":"ann@example.org","message":"hi"}`, ``, "chat.postMessage", map[string]string{"channel": "DU1"}, nil},
		"InputFills": {
			`{"action_type":"send_message","channel":"C1","message":""}`, `{"message":"from the input","channel":"C2","channel_override":""}`, "chat.postMessage",
			map[string]string{"channel": "C1", "text": "from the input"}, nil,
		},
		"OlderInputFills": {`{"action_type":"send_message","channel":"C1"}`, `{"data":{"message":"from its data"}}`, "chat.postMessage", map[string]string{"text": "from its data"}, nil},
		"Blocks": {
			`{"channel":"C1","message":"short","message_format":"blocks","blocks":[{"type":"section","text":{"type":"plain_text","text":"b"}}]}`, ``, "chat.postMessage",
			map[string]string{"blocks": `[{"type":"section","text":{"type":"plain_text","text":"b"}}]`, "text": "short"}, nil,
		},
		"Attachments": {
			`{"channel":"C1","message":"m","attachments":[{"text":"a"}],"data":{"message":"not this one","unfurl_media":false}}`, ``, "chat.postMessage",
			map[string]string{"attachments": `[{"text":"a"}]`, "text": "m", "unfurl_media": "false"}, nil,
		},
		"Override":      {`{"channel":"C1","channel_override":"C2","message":"m"}`, ``, "chat.postMessage", map[string]string{"channel": "C2"}, nil},
		"Update":        {`{"action_type":"update_message","channel":"#two","message_ts":"1.2","message":"b"}`, ``, "chat.update", map[string]string{"channel": "C2", "ts": "1.2", "text": "b"}, map[string]string{"message_ts": "1.2", "channel_id": "C2"}},
		"Delete":        {`{"action_type":"delete_message","channel":"C2","message_ts":"1.2"}`, ``, "chat.delete", map[string]string{"channel": "C2", "ts": "1.2"}, nil},
		"CreateChannel": {`{"action_type":"create_channel","name":"new","is_private":true}`, ``, "conversations.create", map[string]string{"name": "new", "is_private": "true"}, map[string]string{"channel_id": "CNEW", "resource_id": "CNEW"}},
		"Invite":        {`{"action_type":"invite_users","channel":"C2","users":["U1","U2"]}`, ``, "conversations.invite", map[string]string{"users": "U1,U2"}, nil},
		"Topic":         {`{"action_type":"set_channel_topic","channel":"C2","topic":"t"}`, ``, "conversations.setTopic", map[string]string{"topic": "t"}, nil},
		"Archive":       {`{"action_type":"archive_channel","channel":"C2"}`, ``, "conversations.archive", map[string]string{"channel": "C2"}, nil},
		"React":         {`{"action_type":"add_reaction","channel":"C2","message_ts":"1.2","emoji":":eyes:"}`, ``, "reactions.add", map[string]string{"name": "eyes", "timestamp": "1.2"}, nil},
		"User":          {`{"action_type":"get_user_info","user":"U1"}`, ``, "users.info", map[string]string{"user": "U1"}, map[string]string{"resource_id": "U1", "content": "Ann Lee"}},
		"UserByMail":    {`{"action_type":"get_user_info","email":"bob@example.org"}`, ``, "users.lookupByEmail", nil, map[string]string{"resource_id": "U2"}},
		"Channel":       {`{"action_type":"get_channel_info","channel":"C2"}`, ``, "conversations.info", nil, map[string]string{"content": "two"}},
		"Request":       {`{"action_type":"request","method":"pins.list","body":{"channel":"C2","n":1}}`, ``, "pins.list", map[string]string{"channel": "C2", "n": "1"}, nil},
		"File": {
			`{"action_type":"send_file","channel":"C2","message":"see","thread_ts":"1.2","title":"A","file":{"base64":"aGVsbG8=","name":"a.txt"}}`, ``, "files.completeUploadExternal",
			map[string]string{"channel_id": "C2", "initial_comment": "see", "files": `[{"id":"F1","title":"A"}]`, "thread_ts": "1.2"}, map[string]string{"resource_id": "F1"},
		},
		"History": {
			`{"action_type":"get_channel_history","channel":"#two","oldest":"1.1","latest":"9.9"}`, ``, "conversations.history",
			map[string]string{"channel": "C2", "oldest": "1.1", "latest": "9.9", "limit": "100"}, map[string]string{"channel_id": "C2", "resource_id": "C2"},
		},
	} {
		done := cmp.Or(gjson.Get(c.config, "action_type").Str, "send_message")
		left = slices.DeleteFunc(left, func(one string) bool { return one == done })
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t)
			result, err := a.run(c.config, c.input)
			if err != nil {
				t.Fatal(err)
			}
			sent := a.Sent(c.method)
			if len(sent) != 1 {
				t.Fatalf("%s was called %d times", c.method, len(sent))
			}
			for field, want := range c.sent {
				if got := sent[0].form.Get(field); got != want {
					t.Errorf("sent %s: %q, want %q", field, got, want)
				}
			}
			for field, want := range c.result {
				if got := result.Get(field).String(); got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
			if name == "File" {
				if up := a.Sent("/upload/1"); len(up) != 1 || up[0].json["content"] != "hello" {
					t.Errorf("uploaded %+v", up)
				}
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("no case runs %q", left)
	}
}

// messageCount is how many messages the channels of the vendor have.
const messageCount = 8

func vendor() actiontest.Vendor {
	sample := func(config, method string) actiontest.Sample {
		return actiontest.Sample{Config: config, Call: "POST /" + method}
	}
	said := func(more string) actiontest.Reply {
		return actiontest.Reply{Status: 200, Body: `{"ok":false,` + more + `}`}
	}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	send := sample(`{"action_type":"send_message","channel":"C1","message":"m"}`, "chat.postMessage")
	inThread := sample(`{"action_type":"post_message","channel":"C0","channel_override":"#two","thread_ts":"1.2","message":"m"}`, "chat.postMessage")
	history := sample(`{"action_type":"get_channel_history","channel":"C2"}`, "conversations.history")
	create := sample(`{"action_type":"create_channel","name":"new"}`, "conversations.create")
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Prefix: "/slack/api",
		Serve: func(t testing.TB) http.Handler {
			f := newFake(t)
			f.token = actiontest.Token
			for n := range messageCount {
				f.kept = append(f.kept, map[string]any{"ts": fmt.Sprintf("1.%d", n), "text": "m"})
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path = "/api" + r.URL.Path
				f.ServeHTTP(w, r)
			})
		},
		Once: send, Read: sample(`{"action_type":"get_channel_info","channel":"C1"}`, "conversations.info"),
		Settled: []actiontest.Sample{send, inThread}, Pages: history, Total: messageCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoChannel", Sample: only(`{"message":"m"}`), Code: fault.InvalidInput},
			{Name: "NoMessage", Sample: only(`{"channel":"C1"}`), Code: fault.InvalidInput},
			{Name: "TooLong", Sample: only(`{"channel":"C1","message":"` + strings.Repeat("x", 40_001) + `"}`), Code: fault.InvalidInput, Part: "40000"},
			{Name: "BadBlocks", Sample: only(`{"channel":"C1","blocks":"{}"}`), Code: fault.InvalidInput},
			{Name: "UnknownName", Sample: only(`{"action_type":"get_channel_info","channel":"#nowhere"}`), Code: fault.NotFound},
			{Name: "SaidAuth", Sample: send, Reply: said(`"error":"invalid_auth"`), Code: fault.CredentialInvalid},
			{Name: "Scope", Sample: send, Reply: said(`"error":"missing_scope","needed":"chat:write"`), Code: fault.CredentialInvalid, Part: "chat:write"},
			{Name: "UnknownChannel", Sample: send, Reply: said(`"error":"channel_not_found"`), Code: fault.NotFound},
			{Name: "Arguments", Sample: send, Reply: said(`"error":"invalid_arguments"`), Code: fault.InvalidInput},
			{Name: "NameTaken", Sample: create, Reply: said(`"error":"name_taken"`), Code: fault.Conflict},
			{Name: "SaidLimit", Sample: send, Reply: said(`"error":"ratelimited"`), Code: fault.RateLimited, Retryable: true},
			{Name: "SaidServerError", Sample: send, Reply: said(`"error":"internal_error"`), Code: fault.RemoteError},
			{Name: "NoTS", Sample: send, Reply: actiontest.Reply{Status: 200, Body: `{"ok":true}`}, Code: fault.OutcomeUnknown},
			{Name: "NoNewChannel", Sample: create, Reply: actiontest.Reply{Status: 200, Body: `{"ok":true}`}, Code: fault.OutcomeUnknown},
		},
	}
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_Repeated: a repeat finds what the first has done.
func TestAction_Repeated(t *testing.T) {
	t.Parallel()
	a := newActs(t)
	for method, c := range map[string][2]string{
		"chat.delete":           {`{"action_type":"delete_message","channel":"C2","message_ts":"1.2"}`, "message_not_found"},
		"conversations.invite":  {`{"action_type":"invite_users","channel":"C2","users":["U1"]}`, "already_in_channel"},
		"conversations.archive": {`{"action_type":"archive_channel","channel":"C2"}`, "already_archived"},
		"reactions.add":         {`{"action_type":"add_reaction","channel":"C2","message_ts":"1.2","emoji":"eyes"}`, "already_reacted"},
	} {
		a.Next(method, 200, `{"ok":false,"error":"`+c[1]+`"}`)
		if _, err := a.run(c[0], ``); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestAction_Inquire: who may not read the channel cannot look for the message in it.
func TestAction_Inquire(t *testing.T) {
	t.Parallel()
	a := newActs(t)
	a.Next("conversations.history", 200, `{"ok":false,"error":"missing_scope","needed":"channels:history"}`)
	if _, err := a.kind.Inquire(context.Background(), a.call(`{"channel":"#ops","message":"once"}`, ``)); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("without the scope: %v", err)
	}
	if _, err := a.kind.Inquire(context.Background(), a.call(`{"action_type":"create_channel","name":"x"}`, ``)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what cannot be asked about: %v", err)
	}
}
