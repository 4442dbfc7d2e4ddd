package slack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form/formtest"
)

// elements are all that can be pressed in a message.
func elements(t *testing.T, c call) []element {
	t.Helper()
	var blocks []struct {
		Type     string    `json:"type"`
		Elements []element `json:"elements"`
	}
	raw := c.form.Get("blocks")
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var list []element
	for _, b := range blocks {
		if b.Type == "actions" {
			list = append(list, b.Elements...)
		}
	}
	return list
}

type element struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
	Style    string `json:"style"`
	URL      string `json:"url"`
	Text     any    `json:"text"`
	Confirm  any    `json:"confirm"`
}

func (e element) label() string {
	text, _ := e.Text.(map[string]any)
	label, _ := text["text"].(string)
	return label
}

func send(t *testing.T, c *Channel, m human.Message) human.Receipt {
	t.Helper()
	r, err := c.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChannel_Send(t *testing.T) {
	t.Parallel()
	t.Run("AsksWithButtons", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := f.message(func(m *human.Message) {
			m.Request.Risk, m.Request.UserMention, m.Link = "high", "U1", "https://tandem.example.org/respond/secret"
			m.Request.Content, m.Request.Arguments = json.RawMessage(`{"order":77}`), json.RawMessage(`{"amount":120}`)
			m.Interaction.TimeoutAt, m.Interaction.MinApprovals = 1700000000000, 2
		})
		r := send(t, NewChannel(f.client, nil), m)
		if diff := cmp.Diff(map[string]any{"channel": "C0PS", "ts": "1700000000.000001", "live": true}, decode(t, r.Body)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"C0PS:1700000000.000001"}, r.Threads); diff != "" {
			t.Error(diff)
		}
		posted := f.Sent("chat.postMessage")[0]
		if got := posted.form.Get("channel"); got != "#ops" || posted.form.Get("thread_ts") != "" {
			t.Errorf("posted to %q, thread %q", got, posted.form.Get("thread_ts"))
		}
		list := elements(t, posted)
		if len(list) != 4 {
			t.Fatalf("%d buttons, want approve, reject, one for a note and the link", len(list))
		}
		var back touch
		if err := json.Unmarshal([]byte(list[0].Value), &back); err != nil {
			t.Fatal(err)
		}
		if want := (touch{Interaction: m.Interaction.ID, Value: "approve", Hash: m.Interaction.ArgumentsHash, Language: "en"}); back != want {
			t.Errorf("the button brings back %+v, want %+v", back, want)
		}
		if list[0].label() != "Approve" || list[0].Style != "primary" || list[0].Confirm == nil || list[1].Style != "danger" || list[1].Confirm != nil || list[2].label() != "With a note" || list[2].ActionID != actionForm || list[3].URL != m.Link {
			t.Errorf("buttons %+v", list)
		}
		blocks := posted.form.Get("blocks")
		for _, want := range []string{"Refund 120 €?", "Order 77 came back.", `\u003c@U1\u003e`, "amount", "Refunds", "2 approvals", "!date^1700000000^"} {
			if !strings.Contains(blocks, want) {
				t.Errorf("the message does not say %q: %s", want, blocks)
			}
		}
	})
	t.Run("InChinese", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.Request.Language, m.Request.Title = "zh", "退款吗？" }))
		list := elements(t, f.Sent("chat.postMessage")[0])
		if list[0].label() != "批准" || list[1].label() != "拒绝" {
			t.Errorf("buttons %+v", list)
		}
	})
	// The checks are in the fake: it refuses what is longer than Slack takes.
	t.Run("StaysWithinBounds", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []string{human.Approval, human.Selection} {
			f := newFake(t)
			long := strings.Repeat("<&> 😀 长", 4000)
			m := f.message(func(m *human.Message) {
				m.Request.Type, m.Request.Title, m.Request.Description, m.Request.Risk = kind, long, long, "high"
				m.Request.Content, m.Request.UserMention = json.RawMessage(`{"a":`+quote(long)+`}`), long
				m.Request.Arguments, m.Interaction.WorkflowName, m.Lines = json.RawMessage(quote(long)), long, []string{long, long}
				m.Request.Options = nil
				for n := range 25 {
					m.Request.Options = append(m.Request.Options, human.Option{Value: fmt.Sprintf("option %d", n), Label: long})
				}
				m.Link = "https://tandem.example.org/respond/x"
			})
			send(t, NewChannel(f.client, nil), m)
			if list := elements(t, f.Sent("chat.postMessage")[0]); len(list) != 27 {
				t.Errorf("%d buttons", len(list))
			}
		}
	})
	t.Run("MentionsNobodyByItself", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) {
			m.Request.Description, m.Request.Title, m.Lines = "<!channel> <https://evil.example|click>", "<!here>", []string{"<@U2>"}
			m.Request.Content, m.Interaction.WorkflowName, m.Request.UserMention = json.RawMessage(`"<!everyone>"`), "<!channel>", "<!channel> and <@U2>"
		}))
		posted := f.Sent("chat.postMessage")[0]
		var blocks []any
		if err := json.Unmarshal([]byte(posted.form.Get("blocks")), &blocks); err != nil {
			t.Fatal(err)
		}
		walk(blocks, func(o map[string]any) {
			if text, _ := o["text"].(string); o["type"] == "mrkdwn" && strings.ContainsAny(text, "<>") {
				t.Errorf("%q is read as a mention or link", text)
			}
		})
		if strings.ContainsAny(posted.form.Get("text"), "<>") {
			t.Errorf("text %q", posted.form.Get("text"))
		}
	})
	t.Run("OffersAForm", func(t *testing.T) {
		t.Parallel()
		many := make([]human.Option, 26)
		for n := range many {
			many[n].Value = fmt.Sprint("o", n)
		}
		for name, change := range map[string]func(*human.Message){
			"Input": func(m *human.Message) {
				m.Request.Type, m.Request.Fields = human.Input, []human.Field{{Name: "n", Type: "number"}}
			},
			"Many":    func(m *human.Message) { m.Request.Type, m.Request.Options = human.Selection, many },
			"Several": func(m *human.Message) { m.Request.Type, m.Request.AllowMultiple = human.Selection, true },
			"Review": func(m *human.Message) {
				m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"a"}}
			},
			"LongName": func(m *human.Message) {
				m.Request.Options = []human.Option{{Value: strings.Repeat("x", 2000)}, {Value: "y"}}
			},
			"File": func(m *human.Message) {
				m.Request.Type, m.Request.Fields = human.Input, []human.Field{{Name: "n", Type: "file"}}
			},
			"Budget": func(m *human.Message) {
				m.Interaction.Purpose, m.Request.Type = human.PurposeBudget, human.Input
				m.Request.Schema = json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number"}}}`)
			},
		} {
			f := newFake(t)
			r := send(t, NewChannel(f.client, nil), f.message(change))
			list := elements(t, f.Sent("chat.postMessage")[0])
			if byLink := name == "LongName" || name == "File"; byLink {
				if len(list) != 0 || decode(t, r.Body)["live"] != nil || !strings.Contains(f.Sent("chat.postMessage")[0].form.Get("blocks"), "inbox of Tandem") {
					t.Errorf("%s: buttons %+v, want a word about the inbox", name, list)
				}
			} else if len(list) != 1 || list[0].ActionID != actionForm {
				t.Errorf("%s: buttons %+v, want one that opens a form", name, list)
			}
		}
	})
	t.Run("FindsPeople", func(t *testing.T) {
		t.Parallel()
		for to, want := range map[string]string{
			"@ann@example.org": "DU1", "ann@example.org": "DU1", "@bob": "DU2", "@ANN LEE": "DU1", "U2": "DU2", "@U2": "DU2", "C123": "C123", "#x": "#x", "general": "#general",
		} {
			f := newFake(t)
			send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.To = to }))
			if got := f.Sent("chat.postMessage")[0].form.Get("channel"); got != want {
				t.Errorf("%q is %q, want %q", to, got, want)
			}
		}
		for to, want := range map[string]string{"@twin": "2 people", "@nobody": "nobody", "no@example.org": "users_not_found"} {
			f := newFake(t)
			_, err := NewChannel(f.client, nil).Send(t.Context(), f.message(func(m *human.Message) { m.To = to }))
			if fault.CodeOf(err) != fault.DeliveryFailed || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", to, err, want)
			}
		}
		f := newFake(t)
		_, err := NewChannel(f.client, nil).Send(t.Context(), f.message(func(m *human.Message) { m.Request.Settings = json.RawMessage(`{}`) }))
		if fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("no channel: %v", err)
		}
	})
	t.Run("SearchesABoundedList", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		for n := range 100 {
			f.users = append(f.users, member(fmt.Sprint("UX", n), "T1", fmt.Sprint("x", n), "x", ""))
		}
		_, err := NewChannel(f.client, nil).Send(t.Context(), f.message(func(m *human.Message) { m.To = "@x99" }))
		if n := len(f.Sent("users.list")); fault.CodeOf(err) != fault.DeliveryFailed || n != userPages {
			t.Errorf("%d pages were read: %v", n, err)
		}
	})
	t.Run("GoesOnInTheThread", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		c := NewChannel(f.client, nil)
		first := send(t, c, f.message(nil))
		again := f.message(func(m *human.Message) {
			m.Kind, m.Lines, m.Earlier, m.Link = human.KindReminder, []string{"Still open."}, []json.RawMessage{first.Body}, "https://tandem.example.org/respond/2"
		})
		r := send(t, c, again)
		posted := f.Sent("chat.postMessage")[1]
		if posted.form.Get("channel") != "C0PS" || posted.form.Get("thread_ts") != "1700000000.000001" || len(r.Threads) != 0 {
			t.Errorf("a reminder went to %v and is known as %q", posted.form, r.Threads)
		}
		if list := elements(t, posted); len(list) != 1 || list[0].URL != again.Link || decode(t, r.Body)["live"] != nil {
			t.Errorf("buttons %+v of %s, want only the link", list, r.Body)
		}
		again.Request.Settings = json.RawMessage(`{"channel":"#ops","auto_thread":false}`)
		r = send(t, c, again)
		posted = f.Sent("chat.postMessage")[2]
		if posted.form.Get("thread_ts") != "" || len(elements(t, posted)) != 4 || len(r.Threads) != 1 {
			t.Errorf("without auto_thread a reminder is a question of its own, not %v", posted.form)
		}
	})
	t.Run("TakesButtonsAwayAtTheEnd", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		c := NewChannel(f.client, nil)
		end := f.message(func(m *human.Message) {
			m.Kind, m.Lines, m.Link = human.KindCompleted, []string{"Ann approved."}, ""
			m.Earlier = []json.RawMessage{
				json.RawMessage(`{"channel":"C1","ts":"1.1","live":true}`), json.RawMessage(`{"channel":"C1","ts":"1.2","thread_ts":"1.1"}`), json.RawMessage(`{"channel":"C1","ts":"1.3","live":true}`),
			}
		})
		r := send(t, c, end)
		updates := f.Sent("chat.update")
		if len(updates) != 2 || updates[0].form.Get("ts") != "1.1" || updates[1].form.Get("ts") != "1.3" || len(f.Sent("chat.postMessage")) != 0 {
			t.Fatalf("updates %v", updates)
		}
		for _, u := range updates {
			if list := elements(t, u); len(list) != 0 || !strings.Contains(u.form.Get("blocks"), "Ann approved.") {
				t.Errorf("buttons %+v remain in %s", list, u.form.Get("blocks"))
			}
		}
		if diff := cmp.Diff(map[string]any{"channel": "C1", "ts": "1.1"}, decode(t, r.Body)); diff != "" || r.Threads != nil {
			t.Error(diff, r.Threads)
		}

		// Both are gone: the end is told in a message of its own, in the thread that there was.
		f.Next("chat.update", 200, `{"ok":false,"error":"message_not_found"}`)
		f.Next("chat.update", 200, `{"ok":false,"error":"cant_update_message"}`)
		send(t, c, end)
		if posted := f.Sent("chat.postMessage"); len(posted) != 1 || posted[0].form.Get("thread_ts") != "1.1" || len(elements(t, posted[0])) != 0 {
			t.Errorf("posted %v", posted)
		}
		f.Next("chat.update", 503, "")
		if _, err := c.Send(t.Context(), end); !fault.From(err).Retryable {
			t.Errorf("%v is worth another try", err)
		}
	})
	t.Run("Problems", func(t *testing.T) {
		t.Parallel()
		for name, p := range map[string]struct {
			status    int
			body      string
			header    []string
			code      fault.Code
			retryable bool
		}{
			"Limit":      {429, "", []string{"Retry-After", "30"}, fault.RateLimited, true},
			"BareLimit":  {429, "", nil, fault.RateLimited, true},
			"NamedLimit": {200, `{"ok":false,"error":"ratelimited"}`, nil, fault.RateLimited, true},
			"Down":       {500, "<html>", nil, fault.RemoteError, true},
			"Internal":   {200, `{"ok":false,"error":"internal_error"}`, nil, fault.RemoteError, true},
			"Garbage":    {200, `{"ok":`, nil, fault.NetworkError, true},
			"Auth":       {200, `{"ok":false,"error":"invalid_auth"}`, nil, fault.CredentialInvalid, false},
			"Scope":      {200, `{"ok":false,"error":"missing_scope","needed":"chat:write"}`, nil, fault.CredentialInvalid, false},
			"Channel":    {200, `{"ok":false,"error":"not_in_channel"}`, nil, fault.DeliveryFailed, false},
			"Blocks":     {200, `{"ok":false,"error":"invalid_blocks"}`, nil, fault.RemoteRejected, false},
			"Forbidden":  {403, "", nil, fault.RemoteRejected, false},
		} {
			f := newFake(t)
			f.Next("chat.postMessage", p.status, p.body, p.header...)
			_, err := NewChannel(f.client, nil).Send(t.Context(), f.message(nil))
			e := fault.From(err)
			if e.Code != p.code || e.Retryable != p.retryable {
				t.Errorf("%s: %v (retryable %v), want %s", name, err, e.Retryable, p.code)
			}
			if name == "Limit" && e.Details["retry_after_ms"] != int64(30_000) {
				t.Errorf("details %v, want 30 s", e.Details)
			}
			if raw, _ := json.Marshal(e); strings.Contains(string(raw), "canary") {
				t.Errorf("%s tells the token: %s", name, raw)
			}
			if n := len(f.Sent("chat.postMessage")); n != 1 {
				t.Errorf("%s: %d calls", name, n)
			}
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.url = "http://127.0.0.1:1"
		m := f.message(nil)
		if _, err := NewChannel(f.client, nil).Send(t.Context(), m); !fault.From(err).Retryable || fault.CodeOf(err) != fault.NetworkError {
			t.Errorf("%v, want a network_error", err)
		}
		if _, err := NewChannel(http.DefaultClient, nil).Send(t.Context(), m); fault.CodeOf(err) != fault.NetworkError {
			t.Errorf("%v, want a network_error", err)
		}
	})
}

func decode(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// walk visits every object.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	case map[string]any:
		visit(v)
		for _, e := range v {
			walk(e, visit)
		}
	}
}

func TestChannel_Seams(t *testing.T) {
	t.Parallel()
	var c human.Channel = NewChannel(nil, nil)
	if _, ok := c.(human.Receiver); !ok {
		t.Error("it cannot be called")
	}
	if _, ok := c.(human.Listener); ok != false {
		t.Errorf("it listens: %v", ok)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.Request.Content, m.Request.Arguments = formtest.Value(), formtest.Value() }))
	formtest.Readable(t, f.Sent("chat.postMessage")[0].form.Get("blocks"))
}
