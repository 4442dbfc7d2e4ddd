package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
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
	nodetest.Conform(t, nodetest.Of(act(nil, nil)))
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t)
			result, err := a.run(c.config, c.input)
			if err != nil {
				t.Fatal(err)
			}
			sent := a.sent(c.method)
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
				if up := a.sent("/upload/1"); len(up) != 1 || up[0].json["content"] != "hello" {
					t.Errorf("uploaded %+v", up)
				}
			}
		})
	}
}

func TestAction_History(t *testing.T) {
	t.Parallel()
	a := newActs(t)
	for range 4 {
		if _, err := a.run(`{"channel":"C2","message":"m"}`, ``); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.run(`{"action_type":"get_channel_history","channel":"C2","oldest":"1.1","latest":"9.9"}`, ``)
	if read := a.sent("conversations.history"); len(read) == 0 || read[0].form.Get("oldest") != "1.1" || read[0].form.Get("latest") != "9.9" {
		t.Errorf("it asks for %+v", read)
	}
	if err != nil || len(all.Get("items").Array()) != 4 || all.Get("truncated").Bool() {
		t.Errorf("over four pages: %s: %v", all.Raw, err)
	}
	some, err := a.run(`{"action_type":"get_channel_history","channel":"C2","limit":3}`, ``)
	if err != nil || len(some.Get("items").Array()) != 3 || !some.Get("truncated").Bool() {
		t.Fatalf("three of them: %s: %v", some.Raw, err)
	}
	rest, err := a.run(`{"action_type":"get_channel_history","channel":"C2","cursor":"`+some.Get("next_cursor").Str+`"}`, ``)
	if err != nil || len(rest.Get("items").Array()) != 1 {
		t.Errorf("the rest: %s: %v", rest.Raw, err)
	}
}

func TestAction_Refusals(t *testing.T) {
	t.Parallel()
	send, read := `{"channel":"C1","message":"m"}`, `{"action_type":"get_channel_info","channel":"C1"}`
	for name, c := range map[string]struct {
		config, method, answer string
		status                 int
		header                 []string
		code                   fault.Code
		retryable              bool
		after                  time.Duration
	}{
		"NoChannel":       {config: `{"message":"m"}`, code: fault.InvalidInput},
		"NoMessage":       {config: `{"channel":"C1"}`, code: fault.InvalidInput},
		"TooLong":         {config: `{"channel":"C1","message":"` + strings.Repeat("x", 40_001) + `"}`, code: fault.InvalidInput},
		"BadBlocks":       {config: `{"channel":"C1","blocks":"{}"}`, code: fault.InvalidInput},
		"Auth":            {config: send, method: "chat.postMessage", status: 200, answer: `{"ok":false,"error":"invalid_auth"}`, code: fault.CredentialInvalid},
		"Scope":           {config: send, method: "chat.postMessage", status: 200, answer: `{"ok":false,"error":"missing_scope","needed":"chat:write"}`, code: fault.CredentialInvalid},
		"UnknownChannel":  {config: send, method: "chat.postMessage", status: 200, answer: `{"ok":false,"error":"channel_not_found"}`, code: fault.NotFound},
		"RateLimit":       {config: send, method: "chat.postMessage", status: 429, answer: `{}`, header: []string{"Retry-After", "7"}, code: fault.RateLimited, retryable: true, after: 7 * time.Second},
		"ServerError":     {config: send, method: "chat.postMessage", status: 500, answer: `oops`, code: fault.RemoteError},
		"ServerErrorRead": {config: read, method: "conversations.info", status: 500, answer: `oops`, code: fault.RemoteError, retryable: true},
		"Gateway":         {config: send, method: "chat.postMessage", status: 502, answer: `oops`, code: fault.OutcomeUnknown},
		"NotSlack":        {config: send, method: "chat.postMessage", status: 200, answer: `<html>`, code: fault.OutcomeUnknown},
		"UnknownName":     {config: `{"action_type":"get_channel_info","channel":"#nowhere"}`, code: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t)
			if c.method != "" {
				a.next(c.method, c.status, c.answer, c.header...)
			}
			_, err := a.run(c.config, ``)
			f := fault.From(err)
			if err == nil || f.Code != c.code || f.Retryable != c.retryable {
				t.Fatalf("%v, retryable %v", err, f.Retryable)
			}
			later, _ := err.(*node.Failure)
			if c.after > 0 && (later == nil || later.RetryAfter != c.after) {
				t.Errorf("it is to be asked again after %+v", later)
			}
			if strings.Contains(err.Error(), testToken) {
				t.Error("the token is told")
			}
		})
	}
	t.Run("Repeated", func(t *testing.T) {
		t.Parallel()
		a := newActs(t)
		for method, c := range map[string][2]string{
			"chat.delete":           {`{"action_type":"delete_message","channel":"C2","message_ts":"1.2"}`, "message_not_found"},
			"conversations.invite":  {`{"action_type":"invite_users","channel":"C2","users":["U1"]}`, "already_in_channel"},
			"conversations.archive": {`{"action_type":"archive_channel","channel":"C2"}`, "already_archived"},
			"reactions.add":         {`{"action_type":"add_reaction","channel":"C2","message_ts":"1.2","emoji":"eyes"}`, "already_reacted"},
		} {
			a.next(method, 200, `{"ok":false,"error":"`+c[1]+`"}`)
			if _, err := a.run(c[0], ``); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

// TestAction_Inquire: a message whose answer was lost is found by its marker, and one that never arrived is not.
func TestAction_Inquire(t *testing.T) {
	t.Parallel()
	a := newActs(t)
	lost := func(w http.ResponseWriter) { // Slack has taken the message, and the connection breaks before its answer
		c := a.calls[len(a.calls)-1]
		a.answer(c)
		panic(http.ErrAbortHandler)
	}
	a.mu.Lock()
	a.answers["chat.postMessage"] = append(a.answers["chat.postMessage"], lost)
	a.mu.Unlock()
	config := `{"channel":"#ops","message":"once"}`
	call := a.call(config, ``)
	_, err := a.kind.Run(context.Background(), call)
	if failed, ok := err.(*node.Failure); !ok || !failed.Unknown {
		t.Fatalf("the answer was cut off: %v", err)
	}
	again := a.call(config, ``)
	again.Attempt = 2
	out, err := a.kind.Inquire(context.Background(), again)
	if err != nil || out == nil {
		t.Fatalf("the message is there: %v, %v", out, err)
	}
	if result := gjson.ParseBytes(out.(node.Done)["result"]); result.Get("message_ts").Str != "1700000000.000001" || result.Get("channel_id").Str != "C0PS" {
		t.Errorf("found %s", result.Raw)
	}
	other := a.call(config, ``)
	other.ActivationID = "another"
	if out, err := a.kind.Inquire(context.Background(), other); err != nil || out != nil {
		t.Errorf("what another node sent is taken for its own: %v, %v", out, err)
	}
	a.next("conversations.history", 200, `{"ok":false,"error":"missing_scope","needed":"channels:history"}`)
	if _, err := a.kind.Inquire(context.Background(), again); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("without the scope: %v", err)
	}
	if _, err := a.kind.Inquire(context.Background(), a.call(`{"action_type":"create_channel","name":"x"}`, ``)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what cannot be asked about: %v", err)
	}
}
