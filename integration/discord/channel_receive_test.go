package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
	"tandem/text"
)

// desk shows its question to everybody who looks, notes the replies and reacts to all of them alike.
type desk struct {
	mu       sync.Mutex
	question human.Reaction
	replies  []human.Reply
	reaction human.Reaction
	err      error
	heard    chan human.Reply
}

func (d *desk) handle(_ context.Context, r human.Reply) (human.Reaction, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Look {
		return d.question, d.err
	}
	d.replies = append(d.replies, r)
	if d.heard != nil {
		d.heard <- r
	}
	return d.reaction, d.err
}

func (d *desk) got() []human.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replies
}

func shown(m human.Message) human.Reaction {
	return human.Reaction{Interaction: m.Interaction, Request: m.Request}
}

func accepted(text string) human.Reaction {
	return human.Reaction{Accepted: true, Text: text, Interaction: store.Interaction{ID: "i1"}}
}

func (f *fake) post(d *desk, body string) (map[string]any, error) {
	f.t.Helper()
	w := httptest.NewRecorder()
	if err := NewChannel(f.client, nil).Receive(w, f.request(body, time.Now()), f.account(), d.handle); err != nil {
		return nil, err
	}
	return decode(f.t, w.Body.Bytes()), nil
}

// whispered is the text of an answer that only one person sees.
func whispered(t *testing.T, answer map[string]any) string {
	t.Helper()
	data, _ := answer["data"].(map[string]any)
	if answer["type"] != 4.0 || data["flags"] != 64.0 {
		t.Fatalf("%v is not a message for one person", answer)
	}
	return data["content"].(string)
}

func TestChannel_Receive(t *testing.T) {
	t.Parallel()
	t.Run("Ping", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		if got, err := f.post(&desk{}, `{"id":"1","type":1}`); err != nil || !cmp.Equal(got, map[string]any{"type": 1.0}) {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("Click", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := f.message(nil)
		d := &desk{question: shown(m), reaction: accepted("It *counts*.")}
		id := touch{do: doChoose, interaction: m.Interaction.ID, hash: m.Interaction.ArgumentsHash, n: 1}.text()
		got, err := f.post(d, press(t, 3, id, map[string]any{"component_type": 2}))
		if err != nil {
			t.Fatal(err)
		}
		if said := whispered(t, got); said != `It \*counts\*.` {
			t.Errorf("said %q", said)
		}
		want := []human.Reply{{
			Account: store.Account{Workspace: "w1", Channel: "discord", Credential: "cred"}, Interaction: m.Interaction.ID, Threads: []string{"55:1001"},
			From: "42", Name: "Ann Lee", Verified: true, Answer: &human.Answer{Given: json.RawMessage(`{"action":"reject"}`)}, ArgumentsHash: m.Interaction.ArgumentsHash, Dedup: "interaction:777",
		}}
		if diff := cmp.Diff(want, d.got()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("ByPurpose", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := f.message(func(m *human.Message) { m.Interaction.Purpose = human.PurposeOutcomeUnknown })
		d := &desk{question: shown(m), reaction: accepted("")}
		got, err := f.post(d, press(t, 3, touch{do: doChoose, interaction: m.Interaction.ID, n: 1}.text(), nil))
		if err != nil || whispered(t, got) != "Recorded." {
			t.Fatal(got, err)
		}
		if a := d.got()[0].Answer; string(a.Given) != `{"outcome":"not_done"}` {
			t.Errorf("%+v", a)
		}
	})
	t.Run("Menu", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := f.message(func(m *human.Message) {
			m.Request.Type, m.Request.AllowMultiple = human.Selection, true
			m.Request.Options = []human.Option{{Value: "a"}, {Value: "b"}, {Value: "c"}}
		})
		d := &desk{question: shown(m), reaction: accepted("")}
		id := touch{do: doSelect, interaction: m.Interaction.ID}.text()
		if _, err := f.post(d, press(t, 3, id, map[string]any{"component_type": 3, "values": []string{"2", "0", "2"}})); err != nil {
			t.Fatal(err)
		}
		if got := d.got()[0].Answer; string(got.Given) != `{"selected_values":["a","c"]}` {
			t.Errorf("the answer is %s", got.Given)
		}
		for _, values := range [][]string{{"3"}, {"-1"}, {"x"}, {}} {
			got, err := f.post(d, press(t, 3, id, map[string]any{"values": values}))
			if err != nil || !strings.Contains(whispered(t, got), "not an option") || len(d.got()) != 1 {
				t.Errorf("%v: %v %v, replies %v", values, got, err, d.got())
			}
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			d    *desk
			want string
		}{
			"Other":       {&desk{question: human.Reaction{Text: "You may not.", Err: fault.New(fault.Forbidden, "no")}}, "You may not."},
			"Unknown":     {&desk{question: human.Reaction{Err: fault.New(fault.NotFound, "no")}}, "This question has ended."},
			"Ended":       {&desk{question: human.Reaction{Ended: true}}, "This question has ended."},
			"NotRecorded": {&desk{err: errors.New("disk full")}, "Your answer could not be recorded. Please try again."},
		} {
			f := newFake(t)
			for _, do := range []string{doChoose, doForm} {
				got, err := f.post(c.d, press(t, 3, touch{do: do, interaction: "i1"}.text(), nil))
				if err != nil || whispered(t, got) != c.want || len(c.d.got()) != 0 {
					t.Errorf("%s: %v %v", name, got, err)
				}
			}
		}
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		for body, code := range map[string]fault.Code{
			`{`: fault.Invalid, press(t, 3, "x", nil): fault.Invalid, `{"type":3,"data":{"custom_id":"c.-YQ.x.1"}}`: fault.Invalid, `{"type":2}`: fault.Invalid, `{"type":4}`: fault.Unsupported,
			`{"type":1,"x":"` + strings.Repeat("x", human.MaxCall) + `"}`: fault.TooLarge,
		} {
			if _, err := f.post(&desk{}, body); fault.CodeOf(err) != code {
				t.Errorf("%.40s: %v, want %s", body, err, code)
			}
		}
	})
}

func TestChannel_Receive_Form(t *testing.T) {
	t.Parallel()
	type typed map[string]string
	for name, c := range map[string]struct {
		change func(*human.Message)
		inputs []string
		typed  typed
		want   string
		told   string // instead of an answer
	}{
		"Input": {
			func(m *human.Message) {
				m.Request.Type = human.Input
				m.Request.Fields = []human.Field{
					{Name: "amount", Type: "number", Required: true, Label: strings.Repeat("Amount ", 20)}, {Name: "why"}, {Name: "day", Type: "date"},
					{Name: "team", Type: "select", Options: []human.Option{{Value: "a", Label: "Team A"}, {Value: "b"}}}, {Name: "urgent", Type: "boolean"},
				}
			},
			[]string{"0 1 true ", "1 2 false ", "2 1 false Year-month-day, such as 2027-03-31", "3 1 false one of: Team A, b", "4 1 false yes or no"},
			typed{"0": " 12.50 ", "1": "", "3": "team a", "4": "No"},
			`{"field_values":{"amount":12.50,"team":"a","urgent":false}}`, "",
		},
		"Odd": {
			func(m *human.Message) {
				m.Request.Type, m.Request.Language = human.Input, "zh"
				m.Request.Fields = []human.Field{{Name: "n", Type: "number"}, {Name: "y", Type: "boolean"}, {Name: "s", Type: "select", Options: []human.Option{{Value: "a"}}}}
			},
			[]string{"0 1 false ", "1 1 false 是 / 否", "2 1 false 可选：a", "3 2 false "},
			typed{"0": "many", "1": "perhaps", "2": "z"},
			"", `回复有误：n：请填写数字。 y：请填写 y 或 n（是或否）。 s："z" 不在可选项之中：a。`,
		},
		"Review": {
			func(m *human.Message) {
				m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone", "facts"}, Scoring: "numeric_scale", Min: 1, Max: 5, Evidence: true}
			},
			[]string{"0 1 true From 1 to 5", "1 2 true ", "2 1 true From 1 to 5", "3 2 true ", "4 2 false "},
			typed{"0": "4", "1": "kind", "2": "2.5", "4": "note"},
			`{"evidence":{"tone":"kind"},"notes":"note","scores":{"facts":2.5,"tone":4}}`, "",
		},
		"Budget": {
			func(m *human.Message) {
				m.Interaction.Purpose, m.Request.Type = human.PurposeBudget, human.Input
				m.Request.Schema = json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number"}}}`)
			},
			[]string{"0 1 true "}, typed{"0": "5000"}, `{"raise_by":5000}`, "",
		},
	} {
		f := newFake(t)
		m := f.message(c.change)
		d := &desk{question: shown(m), reaction: accepted("Thank you.")}
		send(t, NewChannel(f.client, nil), m)
		button := components(t, f.Sent(posts)[0])[0]
		got, err := f.post(d, press(t, 3, button.CustomID, nil))
		if err != nil || got["type"] != 9.0 {
			t.Fatalf("%s: %v %v", name, got, err)
		}
		data := got["data"].(map[string]any)
		raw, err := json.Marshal(data["components"])
		if err != nil {
			t.Fatal(err)
		}
		if problem := checkRows(raw, 4); problem != "" || text.UTF16(data["title"].(string)) > 45 || len(data["custom_id"].(string)) > 100 {
			t.Errorf("%s: %s in %s", name, problem, raw)
		}
		var inputs []string
		for _, row := range data["components"].([]any) {
			in := row.(map[string]any)["components"].([]any)[0].(map[string]any)
			hint, _ := in["placeholder"].(string)
			inputs = append(inputs, fmt.Sprint(in["custom_id"], " ", in["style"], " ", in["required"], " ", hint))
		}
		if diff := cmp.Diff(c.inputs, inputs); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		rows := []any{}
		for id, value := range c.typed {
			rows = append(rows, map[string]any{"type": 1, "components": []any{map[string]any{"type": 4, "custom_id": id, "value": value}}})
		}
		got, err = f.post(d, press(t, 5, data["custom_id"].(string), map[string]any{"components": rows}))
		if c.told != "" {
			if said := whispered(t, got); said != safe(c.told, contentMax) || err != nil || len(d.got()) != 0 {
				t.Errorf("%s: told %q, %v; handed in %v", name, said, err, d.got())
			}
			continue
		}
		if err != nil || whispered(t, got) != "Thank you." {
			t.Fatalf("%s: %v %v", name, got, err)
		}
		reply := d.got()[0]
		if diff := cmp.Diff(c.want, string(reply.Answer.Given)); diff != "" || reply.ArgumentsHash != m.Interaction.ArgumentsHash || reply.From != "42" {
			t.Errorf("%s: %s %+v", name, diff, reply)
		}
	}
}

func TestChannel_Receive_Signature(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	body := press(t, 3, touch{do: doChoose, interaction: "i1"}.text(), nil)
	other := newFake(t)
	for name, forge := range map[string]func(*http.Request){
		"Missing":  func(r *http.Request) { r.Header.Del("X-Signature-Ed25519") },
		"NoTime":   func(r *http.Request) { r.Header.Del("X-Signature-Timestamp") },
		"OtherKey": func(r *http.Request) { other.sign(r.Header, body, time.Now()) },
		"OtherBody": func(r *http.Request) {
			f.sign(r.Header, body+" ", time.Now())
		},
		"Stale":  func(r *http.Request) { f.sign(r.Header, body, time.Now().Add(-6*time.Minute)) },
		"Future": func(r *http.Request) { f.sign(r.Header, body, time.Now().Add(6*time.Minute)) },
		"OtherTime": func(r *http.Request) {
			f.sign(r.Header, body, time.Now().Add(-6*time.Minute))
			r.Header.Set("X-Signature-Timestamp", fmt.Sprint(time.Now().Unix()))
		},
		"Short": func(r *http.Request) { r.Header.Set("X-Signature-Ed25519", "00") },
		// A time with something behind it would let bytes wander between the time and the body.
		"LongTime": func(r *http.Request) {
			stamp := fmt.Sprint(time.Now().Unix()) + "{"
			r.Header.Set("X-Signature-Timestamp", stamp)
			r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(f.private, []byte(stamp+body))))
		},
	} {
		d := &desk{}
		r := f.request(body, time.Now())
		forge(r)
		w := httptest.NewRecorder()
		if err := NewChannel(f.client, nil).Receive(w, r, f.account(), d.handle); fault.CodeOf(err) != fault.Unauthorized || len(d.got()) != 0 || w.Body.Len() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for data, code := range map[string]fault.Code{`{"token":"x"}`: fault.Unauthorized, `{"token":"x","public_key":"00"}`: fault.CredentialInvalid, `{"token":"x","base_url":"x"}`: fault.CredentialInvalid, `{}`: fault.CredentialInvalid} {
		a := f.account()
		a.Open = func(context.Context, string, ...string) (credential.Opened, error) {
			return credential.Opened{Data: json.RawMessage(data)}, nil
		}
		if err := NewChannel(f.client, nil).Receive(httptest.NewRecorder(), f.request(`{"type":1}`, time.Now()), a, (&desk{}).handle); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", data, err, code)
		}
	}
}

// What takes long is answered in time, and the person is told later. The same click again waits for the same work.
func TestChannel_Receive_AnswersInTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := NewChannel(f.client, nil)
	c.patience = 10 * time.Millisecond
	finish := make(chan struct{})
	m := f.message(nil)
	d := &desk{question: shown(m), reaction: accepted("Late, but it counts.")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := c.Receive(w, r, f.account(), func(ctx context.Context, r human.Reply) (human.Reaction, error) {
			if !r.Look {
				<-finish
				if ctx.Err() != nil {
					t.Error("the work was given up because Discord hung up")
				}
			}
			return d.handle(ctx, r)
		})
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	body := press(t, 3, touch{do: doChoose, interaction: m.Interaction.ID}.text(), nil)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		f.sign(r.Header, body, time.Now())
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(response.Body) // before the work is done
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if got := decode(t, raw); got["type"] != 5.0 || got["data"].(map[string]any)["flags"] != 64.0 || len(d.got()) != 0 {
			t.Fatalf("answer %s", raw)
		}
	}
	close(finish)
	for range 2 {
		if told := f.Wait("PATCH /webhooks/888/interaction-token/messages/@original"); told.body["content"] != "Late, but it counts." {
			t.Errorf("told %s", told.raw)
		}
	}
	if n := len(d.got()); n != 1 {
		t.Errorf("it was handed in %d times", n)
	}
}

func reply(id, text string, change func(map[string]any)) map[string]any {
	m := map[string]any{
		"id": id, "type": 19, "content": text, "author": map[string]any{"id": "42", "username": "ann"},
		"message_reference": map[string]any{"message_id": "1001", "channel_id": "55"}, "referenced_message": map[string]any{"id": "1001", "author": map[string]any{"id": "1", "bot": true}},
	}
	if change != nil {
		change(m)
	}
	return m
}

func TestChannel_Listen(t *testing.T) {
	t.Parallel()
	// listen runs Listen until the test ends; its error comes by the channel.
	listen := func(t *testing.T, f *fake, d *desk, receipts ...string) (ended <-chan error, stop func()) {
		t.Helper()
		c := NewChannel(f.client, nil)
		c.pace = pace{round: time.Millisecond, refresh: time.Millisecond}
		a := f.account()
		a.Receipts = func(context.Context) ([]json.RawMessage, error) {
			var list []json.RawMessage
			for _, r := range receipts {
				list = append(list, json.RawMessage(r))
			}
			return list, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		out := make(chan error, 1)
		go func() { out <- c.Listen(ctx, a, d.handle) }()
		t.Cleanup(cancel)
		return out, cancel
	}
	receipt := `{"channel":"55","message":"1001","live":true}`
	t.Run("ReadsReplies", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.say("55", reply("999", "before the question", nil))
		f.say("55", reply("1002", "<@1> yes, do it", nil))
		for n, change := range []func(map[string]any){
			func(m map[string]any) { m["author"] = map[string]any{"id": "1", "bot": true} },
			func(m map[string]any) { m["webhook_id"] = "3" },
			func(m map[string]any) { m["type"] = 0; delete(m, "message_reference") },
			func(m map[string]any) { m["referenced_message"] = map[string]any{"author": map[string]any{"id": "43"}} },
			func(m map[string]any) { m["content"] = "" },
		} {
			f.say("55", reply(fmt.Sprint(1010+n), "not a reply to us", change))
		}
		f.say("55", reply("10003", "and again", nil)) // later, though it sorts before as a text
		d := &desk{reaction: accepted("Thank you."), heard: make(chan human.Reply, 100)}
		ended, stop := listen(t, f, d, receipt, `{"channel":"55","message":"1005"}`)
		<-d.heard
		<-d.heard
		for range 2 {
			f.Wait(posts)
		}
		for range 3 { // looks that find nothing new
			f.Wait("GET /channels/55/messages")
		}
		want := []human.Reply{
			{Account: store.Account{Workspace: "w1", Channel: "discord", Credential: "cred"}, Threads: []string{"55:1001"}, From: "42", Name: "ann", Verified: true, Text: "yes, do it", Dedup: "message:1002"},
			{Account: store.Account{Workspace: "w1", Channel: "discord", Credential: "cred"}, Threads: []string{"55:1001"}, From: "42", Name: "ann", Verified: true, Text: "and again", Dedup: "message:10003"},
		}
		if diff := cmp.Diff(want, d.got()); diff != "" {
			t.Error(diff)
		}
		told := f.Sent(posts)
		if len(told) != 2 || told[0].body["content"] != "Thank you." || told[0].body["message_reference"].(map[string]any)["message_id"] != "1002" {
			t.Errorf("told %v", told)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the end of the context is not an error: %v", err)
		}
	})
	t.Run("ManyPages", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		for n := range 250 {
			f.say("55", reply(fmt.Sprint(2000+n), "text", nil))
		}
		d := &desk{heard: make(chan human.Reply, 1000)}
		listen(t, f, d, receipt)
		for n := range 250 {
			if got := <-d.heard; got.Dedup != fmt.Sprint("message:", 2000+n) {
				t.Fatalf("reply %d is %q", n, got.Dedup)
			}
		}
	})
	t.Run("IsNotToldTwice", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.say("55", reply("1002", "yes", nil))
		f.say("55", reply("1003", "Thank you.", func(m map[string]any) {
			m["author"], m["message_reference"] = map[string]any{"id": "1", "bot": true}, map[string]any{"message_id": "1002"}
		}))
		d := &desk{reaction: accepted("Thank you."), heard: make(chan human.Reply, 10)}
		listen(t, f, d, receipt)
		<-d.heard
		for range 3 {
			f.Wait("GET /channels/55/messages")
		}
		if told := f.Sent(posts); len(told) != 0 {
			t.Errorf("told again %v", told)
		}
	})
	t.Run("ComesAgainWhenNotRecorded", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.say("55", reply("1002", "yes", nil))
		d := &desk{err: errors.New("disk full")}
		ended, _ := listen(t, f, d, receipt)
		if err := <-ended; err == nil || err.Error() != "disk full" {
			t.Errorf("%v, want to be begun again", err)
		}
		d = &desk{heard: make(chan human.Reply, 10)}
		listen(t, f, d, receipt)
		if got := <-d.heard; got.Dedup != "message:1002" {
			t.Errorf("the reply does not come again: %+v", got)
		}
	})
	t.Run("WaitsWhenAskedTo", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.Next("GET /channels/55/messages", 429, `{"message":"slow","retry_after":0.05}`)
		f.say("55", reply("1002", "yes", nil))
		d := &desk{heard: make(chan human.Reply, 10)}
		began := time.Now()
		listen(t, f, d, receipt)
		<-d.heard
		if took := time.Since(began); took < 50*time.Millisecond || len(f.Sent("GET /channels/55/messages")) < 2 {
			t.Errorf("it came again after %s", took)
		}
	})
	t.Run("OneChannelDoesNotStopTheOthers", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.Next("GET /channels/44/messages", 403, `{"code":50001,"message":"Missing Access"}`)
		f.say("55", reply("1002", "yes", nil))
		d := &desk{heard: make(chan human.Reply, 10)}
		ended, _ := listen(t, f, d, `{"channel":"44","message":"1"}`, receipt)
		<-d.heard
		f.say("44", reply("7", "here too", nil)) // it can be read again later
		if got := <-d.heard; got.Dedup != "message:7" {
			t.Errorf("%+v", got)
		}
		select {
		case err := <-ended:
			t.Error(err)
		default:
		}
	})
	t.Run("StopsWithABadToken", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		f.Next("GET /channels/55/messages", 401, `{"code":0,"message":"401: Unauthorized"}`)
		ended, _ := listen(t, f, &desk{}, receipt)
		if err := <-ended; fault.CodeOf(err) != fault.CredentialInvalid {
			t.Errorf("%v, want credential_invalid", err)
		}
	})
	t.Run("KeepsAPace", func(t *testing.T) {
		t.Parallel()
		if p := usualPace(); p.call < time.Second || p.round < p.call {
			t.Errorf("%+v is more than Discord likes", p)
		}
	})
	t.Run("NeedsReceipts", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		if err := NewChannel(f.client, nil).Listen(t.Context(), f.account(), (&desk{}).handle); fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%v", err)
		}
	})
}
