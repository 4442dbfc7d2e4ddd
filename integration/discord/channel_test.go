package discord

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form/formtest"
)

const posts = "POST /channels/55/messages"

type component struct {
	Type     int    `json:"type"`
	Label    string `json:"label"`
	Style    int    `json:"style"`
	CustomID string `json:"custom_id"`
	URL      string `json:"url"`
	Max      int    `json:"max_values"`
	Options  []struct{ Label, Value string }
}

func components(t *testing.T, c call) []component {
	t.Helper()
	var m struct {
		Components []struct{ Components []component }
	}
	if err := json.Unmarshal(c.raw, &m); err != nil {
		t.Fatal(err)
	}
	var list []component
	for _, row := range m.Components {
		list = append(list, row.Components...)
	}
	return list
}

func send(t *testing.T, c *Channel, m human.Message) human.Receipt {
	t.Helper()
	r, err := c.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decode(t *testing.T, raw []byte) map[string]any {
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

func TestTouch(t *testing.T) {
	t.Parallel()
	for _, want := range []touch{
		{do: "c", interaction: "6f2c8f0e-1111-8222-8333-444455556666", hash: strings.Repeat("ab", 32), n: 24},
		{do: "f", interaction: "6F2C8F0E-1111-8222-8333-444455556666", n: 1}, {do: "s", interaction: "short", hash: "x.y"}, {do: "m", interaction: "abcd", hash: "-"},
		{do: "m", interaction: "6f2c8f0e11118222-8333-444455556666"},
	} {
		got, ok := readTouch(want.text())
		if !ok || got != want || len(want.text()) > customIDMax {
			t.Errorf("%+v is written as %q and read as %+v", want, want.text(), got)
		}
	}
	if long := (touch{do: "c", interaction: strings.Repeat("i", 90)}); long.text() != "" {
		t.Errorf("%q is too long", long.text())
	}
	for _, text := range []string{"", "c", "c.u.x.1", "c..x.1", "c.uAAAA.x.1", "c.-YQ.x.n", "c.-YQ.!!.1", "c.-.x.1", "c.qYQ.x.1"} {
		if got, ok := readTouch(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestChannel_Send(t *testing.T) {
	t.Parallel()
	t.Run("AsksWithButtons", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := f.message(func(m *human.Message) {
			m.Request.Risk, m.Request.UserMention, m.Link = "high", "<@123456>", "https://tandem.example.org/respond/secret"
			m.Request.Content, m.Request.Arguments = json.RawMessage(`{"order":77}`), json.RawMessage(`{"amount":120}`)
			m.Interaction.TimeoutAt, m.Interaction.MinApprovals = 1700000000000, 2
		})
		c := NewChannel(f.client, nil)
		r := send(t, c, m)
		if diff := cmp.Diff(map[string]any{"channel": "55", "message": "1001", "live": true}, decode(t, r.Body)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"55:1001"}, r.Threads); diff != "" {
			t.Error(diff)
		}
		posted := f.Sent(posts)[0]
		list := components(t, posted)
		if len(list) != 4 || list[0].Label != "Approve" || list[0].Style != 3 || list[1].Style != 4 || list[2].Label != "With a note" || list[3].URL != m.Link {
			t.Fatalf("components %+v", list)
		}
		if got, ok := readTouch(list[1].CustomID); !ok || got != (touch{do: doChoose, interaction: m.Interaction.ID, hash: m.Interaction.ArgumentsHash, n: 1}) {
			t.Errorf("the button brings back %+v", got)
		}
		for _, want := range []string{"Refund 120 €?", "Order 77 came back.", `\u003c@123456\u003e`, `"users":["123456"]`, "amount", "Refunds", "2 approvals", `t:1700000000:f`} {
			if !strings.Contains(string(posted.raw), want) {
				t.Errorf("the message does not say %q: %s", want, posted.raw)
			}
		}
		// The same message sent again is the same message.
		if again := send(t, c, m); string(again.Body) != string(r.Body) {
			t.Errorf("a repetition made %s besides %s", again.Body, r.Body)
		}
	})
	t.Run("InChinese", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.Request.Language = "zh" }))
		if list := components(t, f.Sent(posts)[0]); list[0].Label != "批准" || list[1].Label != "拒绝" {
			t.Errorf("components %+v", list)
		}
	})
	// The checks are in the fake: it refuses what is longer than Discord takes.
	t.Run("StaysWithinBounds", func(t *testing.T) {
		t.Parallel()
		for n, want := range map[int]int{1: 3, 23: 25, 24: 25, 25: 3, 26: 1} { // buttons or a menu, a form for a note where there is room, and the link; or only the link
			f := newFake(t)
			long := strings.Repeat("<*`_ 😀 长", 4000)
			send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) {
				m.Request.Type, m.Request.Title, m.Request.Description, m.Request.Risk = human.Selection, long, long, "high"
				m.Request.Content, m.Request.UserMention = json.RawMessage(`{"a":`+quote(long)+`}`), long
				m.Request.Arguments, m.Interaction.WorkflowName, m.Lines = json.RawMessage(quote(long)), long, []string{long, long}
				m.Interaction.TimeoutAt, m.Interaction.MinApprovals = 1700000000000, 2
				m.Request.Options = nil
				for o := range n {
					m.Request.Options = append(m.Request.Options, human.Option{Value: fmt.Sprint("option ", o, long), Label: long})
				}
				m.Link = "https://tandem.example.org/respond/x"
			}))
			if list := components(t, f.Sent(posts)[0]); len(list) != want {
				t.Errorf("%d options: %d components, want %d", n, len(list), want)
			}
		}
	})
	t.Run("MentionsNobodyByItself", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) {
			m.Request.Description, m.Request.UserMention = "@everyone <@1> [click](https://evil.example) ```", "@everyone and <@2>"
			m.Request.Content = json.RawMessage(quote("``` out of the block"))
		}))
		m := decode(t, f.Sent(posts)[0].raw)
		if diff := cmp.Diff(map[string]any{"parse": []any{}, "replied_user": false}, m["allowed_mentions"]); diff != "" {
			t.Error(diff)
		}
		embed := m["embeds"].([]any)[0].(map[string]any)
		if got := embed["description"].(string); strings.Contains(got, "[click](") || strings.Contains(got, "```") {
			t.Errorf("description %q", got)
		}
		for _, field := range embed["fields"].([]any) {
			if value := field.(map[string]any)["value"].(string); strings.HasPrefix(value, "```") && strings.Count(value, "```") != 2 {
				t.Errorf("the block can be left: %q", value)
			}
		}
	})
	t.Run("OffersAForm", func(t *testing.T) {
		t.Parallel()
		fields := func(n int) []human.Field { return make([]human.Field, n) }
		for name, c := range map[string]struct {
			change func(*human.Message)
			kind   int // of the component; 0: none
		}{
			"Input":   {func(m *human.Message) { m.Request.Type, m.Request.Fields = human.Input, fields(5) }, 2},
			"TooMany": {func(m *human.Message) { m.Request.Type, m.Request.Fields = human.Input, fields(6) }, 0},
			"File": {func(m *human.Message) {
				m.Request.Type, m.Request.Fields = human.Input, []human.Field{{Name: "f", Type: "file"}}
			}, 0},
			"Several": {func(m *human.Message) { m.Request.Type, m.Request.AllowMultiple = human.Selection, true }, 3},
			"Review": {func(m *human.Message) {
				m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"a", "b"}, Evidence: true}
			}, 2},
			"BigTable": {func(m *human.Message) {
				m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"a", "b", "c"}, Evidence: true}
			}, 0},
			"LongID": {func(m *human.Message) { m.Interaction.ID = strings.Repeat("x", 90) }, 0},
		} {
			f := newFake(t)
			r := send(t, NewChannel(f.client, nil), f.message(c.change))
			posted := f.Sent(posts)[0]
			list := components(t, posted)
			if c.kind == 0 {
				if len(list) != 0 || decode(t, r.Body)["live"] != nil || !strings.Contains(string(posted.raw), "inbox of Tandem") {
					t.Errorf("%s: %+v, want a word about the inbox", name, list)
				}
			} else if list[0].Type != c.kind || len(list) != map[int]int{2: 1, 3: 2}[c.kind] || decode(t, r.Body)["live"] != true { // beside a menu is a form for a note
				t.Errorf("%s: %+v, want one of type %d", name, list, c.kind)
			}
		}
	})
	t.Run("ToAPerson", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		r := send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.To = "42" }))
		if r.Threads[0] != "942:1001" || len(f.Sent("POST /channels/942/messages")) != 1 {
			t.Errorf("threads %q", r.Threads)
		}
		for _, to := range []string{"../x", "ann"} {
			if _, err := NewChannel(f.client, nil).Send(t.Context(), f.message(func(m *human.Message) { m.To = to })); fault.CodeOf(err) != fault.DeliveryFailed {
				t.Errorf("%q: %v", to, err)
			}
		}
		for _, settings := range []string{`{}`, `{"channel_id":"55/../66"}`, `{"channel_id":"#ops"}`} {
			if _, err := NewChannel(f.client, nil).Send(t.Context(), f.message(func(m *human.Message) { m.Request.Settings = json.RawMessage(settings) })); fault.CodeOf(err) != fault.InvalidConfig {
				t.Errorf("%s: %v", settings, err)
			}
		}
		send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.Request.Settings = json.RawMessage(`{"channel_id":55}`) }))
	})
	t.Run("RepliesLater", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		c := NewChannel(f.client, nil)
		first := send(t, c, f.message(nil))
		r := send(t, c, f.message(func(m *human.Message) {
			m.ID, m.Kind, m.Lines, m.Earlier, m.Link = "d2", human.KindReminder, []string{"Still open."}, []json.RawMessage{first.Body}, "https://tandem.example.org/respond/2"
		}))
		posted := decode(t, f.Sent(posts)[1].raw)
		want := map[string]any{"message_id": "1001", "channel_id": "55", "fail_if_not_exists": false}
		if diff := cmp.Diff(want, posted["message_reference"]); diff != "" || posted["content"] != "Still open." {
			t.Error(diff, posted["content"])
		}
		if list := components(t, f.Sent(posts)[1]); len(list) != 1 || list[0].URL == "" || decode(t, r.Body)["live"] != nil || r.Threads[0] != "55:1002" {
			t.Errorf("components %+v of %s %q", list, r.Body, r.Threads)
		}
	})
	t.Run("TakesComponentsAwayAtTheEnd", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		c := NewChannel(f.client, nil)
		end := f.message(func(m *human.Message) {
			m.ID, m.Kind, m.Lines = "d3", human.KindTimeout, []string{"Nobody answered."}
			m.Earlier = []json.RawMessage{json.RawMessage(`{"channel":"55","message":"1","live":true}`), json.RawMessage(`{"channel":"55","message":"2"}`)}
		})
		r := send(t, c, end)
		edits := f.Sent("PATCH /channels/55/messages/1")
		if len(edits) != 1 || len(f.Sent(posts)) != 0 || len(f.Sent("PATCH /channels/55/messages/2")) != 0 {
			t.Fatalf("edits %v", edits)
		}
		edit := decode(t, edits[0].raw)
		if diff := cmp.Diff([]any{}, edit["components"]); diff != "" || !strings.Contains(string(edits[0].raw), "Nobody answered.") {
			t.Errorf("%s: %s", diff, edits[0].raw)
		}
		if diff := cmp.Diff(map[string]any{"channel": "55", "message": "1"}, decode(t, r.Body)); diff != "" {
			t.Error(diff)
		}
		f.Next("PATCH /channels/55/messages/1", 404, `{"code":10008,"message":"Unknown Message"}`)
		send(t, c, end)
		if posted := f.Sent(posts); len(posted) != 1 || len(components(t, posted[0])) != 0 {
			t.Errorf("posted %v", posted)
		}
		f.Next("PATCH /channels/55/messages/1", 503, ``)
		if _, err := c.Send(t.Context(), end); !fault.From(err).Retryable {
			t.Errorf("%v is worth another try", err)
		}
	})
	t.Run("Problems", func(t *testing.T) {
		t.Parallel()
		for name, p := range map[string]struct {
			status    int
			body      string
			code      fault.Code
			retryable bool
		}{
			"Limit":   {429, `{"message":"slow","retry_after":2.5,"global":false}`, fault.RateLimited, true},
			"Down":    {500, "<html>", fault.RemoteError, true},
			"Gateway": {502, "", fault.NetworkError, true},
			"Garbage": {200, `{"id":`, fault.NetworkError, true},
			"NoID":    {200, `{}`, fault.NetworkError, true},
			"Auth":    {401, `{"code":0,"message":"401: Unauthorized"}`, fault.CredentialInvalid, false},
			"Access":  {403, `{"code":50001,"message":"Missing Access"}`, fault.DeliveryFailed, false},
			"Channel": {404, `{"code":10003,"message":"Unknown Channel"}`, fault.DeliveryFailed, false},
			"Body":    {400, `{"code":50035,"message":"Invalid Form Body"}`, fault.RemoteRejected, false},
		} {
			f := newFake(t)
			f.Next(posts, p.status, p.body)
			_, err := NewChannel(f.client, nil).Send(t.Context(), f.message(nil))
			e := fault.From(err)
			if e.Code != p.code || e.Retryable != p.retryable {
				t.Errorf("%s: %v (retryable %v), want %s", name, err, e.Retryable, p.code)
			}
			if name == "Limit" && e.Details["retry_after_ms"] != int64(2500) {
				t.Errorf("details %v, want 2.5 s", e.Details)
			}
			if raw, _ := json.Marshal(e); strings.Contains(string(raw), "canary") {
				t.Errorf("%s tells the token: %s", name, raw)
			}
			if n := len(f.Sent(posts)); n != 1 {
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
	})
}

func TestChannel_Seams(t *testing.T) {
	t.Parallel()
	var c human.Channel = NewChannel(nil, nil)
	if _, ok := c.(human.Receiver); !ok {
		t.Error("it cannot be called")
	}
	if _, ok := c.(human.Listener); ok != true {
		t.Errorf("it listens: %v", ok)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	send(t, NewChannel(f.client, nil), f.message(func(m *human.Message) { m.Request.Content, m.Request.Arguments = formtest.Value(), formtest.Value() }))
	formtest.Readable(t, string(f.Sent(posts)[0].raw))
}
