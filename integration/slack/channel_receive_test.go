package slack

import (
	"context"
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

	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

// desk notes the replies it gets and reacts to all of them alike.
type desk struct {
	mu       sync.Mutex
	replies  []human.Reply
	reaction human.Reaction
	err      error
	// question is what somebody sees who looks.
	question human.Reaction
	looks    []human.Reply
}

func (d *desk) handle(_ context.Context, r human.Reply) (human.Reaction, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Look {
		d.looks = append(d.looks, r)
		return d.question, d.err
	}
	d.replies = append(d.replies, r)
	return d.reaction, d.err
}

func (d *desk) got() []human.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replies
}

func shown(m human.Message) human.Reaction {
	return human.Reaction{Interaction: m.Interaction, Request: m.Request, Ended: m.Interaction.Status != store.InteractionPending}
}

func accepted(text string) human.Reaction {
	return human.Reaction{Accepted: true, Text: text, Interaction: store.Interaction{ID: "i1"}, Request: human.Request{Language: "en"}}
}

const value = `{"i":"i1","v":"approve","h":"hash","t":"approval","l":"en"}`

func TestChannel_Receive_Click(t *testing.T) {
	t.Parallel()
	t.Run("Counts", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: accepted("Your approval <counts>.")}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "choose0", value)))
		if err != nil || w.Code != 200 || w.Body.Len() != 0 {
			t.Fatalf("%v, %d %s", err, w.Code, w.Body)
		}
		want := []human.Reply{{
			Account: store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}, Interaction: "i1", Threads: []string{"C0PS:1700000000.000001"},
			From: "U1", Mail: "ann@example.org", Name: "Ann Lee", Verified: true, Answer: &human.Answer{Action: "approve"}, ArgumentsHash: "hash",
			Dedup: "action:trig.1:1700000001.1",
		}}
		if diff := cmp.Diff(want, d.got()); diff != "" {
			t.Error(diff)
		}
		told := f.sent("/hook/1")
		if len(told) != 1 || told[0].json["text"] != "Your approval &lt;counts&gt;." || told[0].json["response_type"] != "ephemeral" || told[0].json["replace_original"] != false {
			t.Errorf("told %v", told)
		}
	})
	t.Run("ByPurpose", func(t *testing.T) {
		t.Parallel()
		for purpose, want := range map[string]string{"confirm": `{"confirm":true}`, "drift": `{"accept":false}`, "outcome_unknown": `{"outcome":"confirm"}`} {
			f, d := newFake(t), &desk{reaction: accepted("")}
			if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "choose0", `{"i":"i1","v":"confirm","p":"`+purpose+`"}`))); err != nil {
				t.Fatal(err)
			}
			if got := d.got()[0].Answer; string(got.Given) != want || got.Action != "" {
				t.Errorf("%s: %+v, want %s", purpose, got, want)
			}
			if told := f.sent("/hook/1"); told[0].json["text"] != "Recorded." {
				t.Errorf("told %v", told)
			}
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: human.Reaction{Err: fault.New(fault.Forbidden, "you are not asked")}}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "choose0", value))); err != nil {
			t.Fatal(err)
		}
		if told := f.sent("/hook/1"); len(told) != 1 || told[0].json["text"] != "you are not asked" {
			t.Errorf("told %v", told)
		}
	})
	t.Run("NotRecorded", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{err: errors.New("disk full")}
		zh := strings.Replace(value, `"en"`, `"zh"`, 1)
		if w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "choose0", zh))); err != nil || w.Code != 200 {
			t.Fatal(err)
		}
		if told := f.sent("/hook/1"); len(told) != 1 || told[0].json["text"] != wordsIn("zh").tryAgain {
			t.Errorf("told %v", told)
		}
	})
	// Whoever runs another workspace gives its people the addresses they like.
	t.Run("ForeignAddressIsNotBelieved", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: accepted("")}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U9", "choose0", value))); err != nil {
			t.Fatal(err)
		}
		if got := d.got()[0]; got.Mail != "" || got.From != "U9" || got.Name != "Eve" {
			t.Errorf("%+v is believed to be %q", got, got.Mail)
		}
	})
	t.Run("AddressCannotBeLookedUp", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			status int
			body   string
			told   string
		}{
			"Down":  {500, "", wordsIn("en").unknownMail},
			"Scope": {200, `{"ok":false,"error":"missing_scope"}`, "you are not asked"},
		} {
			f, d := newFake(t), &desk{reaction: human.Reaction{Err: fault.New(fault.Forbidden, "you are not asked")}}
			f.next("users.info", c.status, c.body)
			if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "choose0", value))); err != nil {
				t.Fatal(err)
			}
			if got := d.got(); len(got) != 1 || got[0].Mail != "" || got[0].From != "U1" {
				t.Errorf("%s: %+v", name, got)
			}
			if told := f.sent("/hook/1"); told[0].json["text"] != c.told {
				t.Errorf("%s: told %v", name, told)
			}
		}
	})
	t.Run("LinkIsOnlyAcknowledged", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "link", "")))
		if err != nil || w.Code != 200 || len(d.got()) != 0 {
			t.Errorf("%v %d %v", err, w.Code, d.got())
		}
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{"payload=%7B", "x=1", payload(t, map[string]any{"type": "block_actions"})} {
			f, d := newFake(t), &desk{}
			if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, body); fault.CodeOf(err) != fault.Invalid || len(d.got()) != 0 {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}

func TestChannel_Receive_Signature(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	body := payload(t, f.click("U1", "choose0", value))
	for name, forge := range map[string]func(http.Header){
		"Missing":     func(h http.Header) { h.Del("X-Slack-Signature") },
		"NoTime":      func(h http.Header) { h.Del("X-Slack-Request-Timestamp") },
		"OtherSecret": func(h http.Header) { sign(h, "other", body, time.Now()) },
		"EmptySecret": func(h http.Header) { sign(h, "", body, time.Now()) },
		"OtherBody":   func(h http.Header) { sign(h, testSigning, body+"&x=1", time.Now()) },
		"Stale":       func(h http.Header) { sign(h, testSigning, body, time.Now().Add(-6*time.Minute)) },
		"Future":      func(h http.Header) { sign(h, testSigning, body, time.Now().Add(6*time.Minute)) },
		"OtherTime": func(h http.Header) {
			sign(h, testSigning, body, time.Now().Add(-6*time.Minute))
			h.Set("X-Slack-Request-Timestamp", fmt.Sprint(time.Now().Unix()))
		},
		"Short": func(h http.Header) { h.Set("X-Slack-Signature", "v0=") },
		"V1": func(h http.Header) {
			h.Set("X-Slack-Signature", strings.Replace(h.Get("X-Slack-Signature"), "v0", "v1", 1))
		},
	} {
		d := &desk{}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, body, forge); fault.CodeOf(err) != fault.Unauthorized || len(d.got()) != 0 {
			t.Errorf("%s: %v, replies %v", name, err, d.got())
		}
	}
	// A credential without a secret lets nobody in, whatever they signed with.
	a := f.account()
	a.Open = func(context.Context, string, ...string) (human.Credential, func(), error) {
		return human.Credential{Data: json.RawMessage(`{"token":"x"}`)}, func() {}, nil
	}
	d := &desk{}
	if _, err := f.post(NewChannel(f.client, nil), a, d.handle, formType, body, func(h http.Header) { sign(h, "", body, time.Now()) }); fault.CodeOf(err) != fault.Unauthorized || len(d.got()) != 0 {
		t.Errorf("without a secret: %v", err)
	}
	// What is not signed is not even told the challenge.
	if w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", `{"type":"url_verification","challenge":"c"}`, func(h http.Header) { h.Del("X-Slack-Signature") }); fault.CodeOf(err) != fault.Unauthorized || w.Body.Len() != 0 {
		t.Errorf("challenge: %v %s", err, w.Body)
	}
	if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, strings.Repeat("x", bodyMax+1)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a large body: %v", err)
	}
	if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "text/plain", body); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("another type: %v", err)
	}
	w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json; charset=utf-8", `{"type":"url_verification","challenge":"c"}`)
	if err != nil || strings.TrimSpace(w.Body.String()) != `{"challenge":"c"}` {
		t.Errorf("challenge: %v %s", err, w.Body)
	}
}

// event is what Slack posts about a message.
func event(id string, change func(map[string]any)) string {
	m := map[string]any{
		"type": "message", "channel": "C0PS", "user": "U1", "text": "yes, go &lt;ahead&gt; <@U2> <https://x.example|here>",
		"ts": "1700000009.1", "thread_ts": "1700000000.000001", "parent_user_id": "UBOT",
	}
	if change != nil {
		change(m)
	}
	raw, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": "T1", "event_id": id, "event": m,
		"authorizations": []any{map[string]any{"team_id": "T1", "user_id": "UBOT", "is_bot": true}},
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestChannel_Receive_Event(t *testing.T) {
	t.Parallel()
	t.Run("ThreadReply", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: accepted("Approved.")}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", nil))
		if err != nil || w.Code != 200 {
			t.Fatalf("%v %d", err, w.Code)
		}
		want := []human.Reply{{
			Account: store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}, Threads: []string{"C0PS:1700000000.000001"},
			From: "U1", Mail: "ann@example.org", Name: "Ann Lee", Verified: true, Text: "yes, go <ahead> @U2 here", Dedup: "event:Ev1",
		}}
		if diff := cmp.Diff(want, d.got()); diff != "" {
			t.Error(diff)
		}
		told := f.sent("chat.postEphemeral")
		if len(told) != 1 || told[0].form.Get("user") != "U1" || told[0].form.Get("thread_ts") != "1700000000.000001" || told[0].form.Get("text") != "Approved." {
			t.Errorf("told %v", told)
		}
	})
	t.Run("AskedBackOtherwise", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: human.Reaction{Text: "unclear", Interaction: store.Interaction{ID: "i1"}}}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", nil)); err != nil || len(f.sent("chat.postEphemeral")) != 0 {
			t.Errorf("%v, told %v", err, f.sent("chat.postEphemeral"))
		}
	})
	t.Run("Ignored", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string]func(map[string]any){
			"Bot":         func(m map[string]any) { m["bot_id"] = "B1" },
			"Edit":        func(m map[string]any) { m["subtype"] = "message_changed" },
			"Deleted":     func(m map[string]any) { m["subtype"] = "message_deleted" },
			"BotMessage":  func(m map[string]any) { m["subtype"] = "bot_message"; delete(m, "user") },
			"Ourselves":   func(m map[string]any) { m["user"] = "UBOT" },
			"Top":         func(m map[string]any) { delete(m, "thread_ts") },
			"Root":        func(m map[string]any) { m["thread_ts"] = m["ts"] },
			"OtherThread": func(m map[string]any) { m["parent_user_id"] = "U7" },
			"Reaction":    func(m map[string]any) { m["type"] = "reaction_added" },
		} {
			f, d := newFake(t), &desk{}
			w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", change))
			if err != nil || w.Code != 200 || len(d.got()) != 0 {
				t.Errorf("%s: %v %d, replies %v", name, err, w.Code, d.got())
			}
		}
		f, d := newFake(t), &desk{reaction: accepted("")}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", func(m map[string]any) { m["subtype"] = "thread_broadcast" })); err != nil || len(d.got()) != 1 {
			t.Errorf("a reply that was also sent to the channel is one: %v %v", err, d.got())
		}
	})
	t.Run("OtherThreadsAreNoProblem", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: human.Reaction{Err: fault.New(fault.NotFound, "no question")}}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", nil))
		if err != nil || w.Code != 200 || len(f.sent("chat.postEphemeral")) != 0 {
			t.Errorf("%v %d", err, w.Code)
		}
	})
	t.Run("ComesAgainWhenNotRecorded", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{err: errors.New("disk full")}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", nil))
		if err == nil || w.Body.Len() != 0 {
			t.Errorf("no error, so Slack would not come again")
		}
	})
	// Slack repeats what was not answered in three seconds. The repetition waits for the same work, and has the same id for later.
	t.Run("RetriesJoin", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		c := NewChannel(f.client, nil)
		c.patience = 20 * time.Millisecond
		d := &desk{reaction: accepted("Approved.")}
		began, finish := make(chan struct{}, 2), make(chan struct{})
		slow := func(ctx context.Context, r human.Reply) (human.Reaction, error) {
			began <- struct{}{}
			<-finish
			return d.handle(ctx, r)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := c.Receive(w, r, f.account(), slow); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		defer server.Close()
		body := event("Ev1", nil)
		try := func(retry string) int {
			r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return 0
			}
			sign(r.Header, testSigning, body, time.Now())
			r.Header.Set("Content-Type", "application/json")
			if retry != "" {
				r.Header.Set("X-Slack-Retry-Num", retry)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return 0
			}
			defer response.Body.Close()
			if _, err := io.ReadAll(response.Body); err != nil { // all of it, though the work goes on
				t.Error(err)
			}
			return response.StatusCode
		}
		if got := try(""); got != http.StatusServiceUnavailable {
			t.Errorf("status %d while it is worked on", got)
		}
		<-began
		if got := try("1"); got != http.StatusServiceUnavailable {
			t.Errorf("status %d while it is worked on", got)
		}
		close(finish)
		f.wait("chat.postEphemeral")
		if n := len(d.got()); n != 1 {
			t.Errorf("it was handed in %d times", n)
		}
		c.patience = 5 * time.Second
		if got := try("2"); got != 200 {
			t.Errorf("status %d when it was done", got)
		}
		f.wait("chat.postEphemeral")
		if got := d.got(); len(got) != 2 || got[0].Dedup != got[1].Dedup || got[0].Dedup != "event:Ev1" {
			t.Errorf("a later repetition has another id: %+v", got)
		}
	})
}

func TestChannel_Receive_AnswersInTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := NewChannel(f.client, nil)
	c.patience = 10 * time.Millisecond
	finish := make(chan struct{})
	d := &desk{reaction: accepted("Late, but it counts.")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := c.Receive(w, r, f.account(), func(ctx context.Context, r human.Reply) (human.Reaction, error) {
			<-finish
			if ctx.Err() != nil {
				t.Error("the work was given up because Slack hung up")
			}
			return d.handle(ctx, r)
		})
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	view := map[string]any{
		"type": "view_submission", "trigger_id": "t", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1"},
		"view": map[string]any{"id": "V1", "callback_id": "answer", "private_metadata": `{"i":"i1","c":"C0PS","m":"1.1"}`, "state": map[string]any{"values": map[string]any{}}},
	}
	for n, body := range []string{payload(t, f.click("U1", "choose0", value)), payload(t, view)} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		sign(r.Header, testSigning, body, time.Now())
		r.Header.Set("Content-Type", formType)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(response.Body) // before the work is done
		if err != nil || response.StatusCode != 200 || len(raw) != 0 {
			t.Fatalf("%v %d %s", err, response.StatusCode, raw)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if len(d.got()) != n {
			t.Fatal("it was done before Slack was answered")
		}
		finish <- struct{}{}
		told := f.wait([]string{"/hook/1", "chat.postEphemeral"}[n])
		if text := told.form.Get("text"); told.json["text"] != "Late, but it counts." && text != "Late, but it counts." {
			t.Errorf("told %v", told)
		}
	}
}

func TestChannel_Receive_Form(t *testing.T) {
	t.Parallel()
	question := func(f *fake) human.Message {
		return f.message(func(m *human.Message) {
			m.Request.Type = human.Input
			m.Request.Fields = []human.Field{
				{Name: "amount", Label: "Amount", Type: "number", Required: true}, {Name: "why"}, {Name: "mail", Type: "email"}, {Name: "day", Type: "date"},
				{Name: "team", Type: "select", Options: []human.Option{{Value: "a", Label: "Team A"}, {Value: "b"}}}, {Name: "urgent", Type: "boolean"},
			}
		})
	}
	metadata := func(m human.Message) string {
		return touch{Interaction: m.Interaction.ID, Hash: m.Interaction.ArgumentsHash, Type: m.Request.Type, Language: "en"}.text()
	}
	t.Run("Opens", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := question(f)
		d := &desk{question: shown(m)}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "form", metadata(m))))
		if err != nil || w.Code != 200 || len(d.got()) != 0 {
			t.Fatalf("%v %d %v", err, w.Code, d.got())
		}
		look := human.Reply{
			Account: store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}, Interaction: m.Interaction.ID, ArgumentsHash: m.Interaction.ArgumentsHash,
			From: "U1", Mail: "ann@example.org", Name: "Ann Lee", Verified: true, Look: true,
		}
		if diff := cmp.Diff([]human.Reply{look}, d.looks); diff != "" {
			t.Error(diff)
		}
		opened := f.sent("views.open")
		if len(opened) != 1 || opened[0].json["trigger_id"] != "trig.1" {
			t.Fatalf("opened %v", opened)
		}
		view := opened[0].json["view"].(map[string]any)
		var back touch
		if err := json.Unmarshal([]byte(view["private_metadata"].(string)), &back); err != nil {
			t.Fatal(err)
		}
		if want := (touch{Interaction: m.Interaction.ID, Hash: m.Interaction.ArgumentsHash, Type: human.Input, Language: "en", Channel: "C0PS", TS: "1700000000.000001"}); back != want {
			t.Errorf("the form brings back %+v, want %+v", back, want)
		}
		var shown []string
		walk(view["blocks"], func(o map[string]any) {
			if e, ok := o["element"].(map[string]any); ok {
				shown = append(shown, fmt.Sprint(o["block_id"], " ", e["type"], " ", e["action_id"], " ", o["optional"]))
			}
		})
		want := []string{
			"field:amount number_input number <nil>", "field:why plain_text_input text true", "field:mail email_text_input text true", "field:day datepicker date true",
			"field:team static_select one true", "field:urgent radio_buttons boolean true", "notes plain_text_input text true",
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("DoesNotOpen", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]string{"Unknown": "has ended", "Ended": "has ended", "Expired": "try again", "Broken": "try again", "Other": "may not"} {
			f := newFake(t)
			m := question(f)
			d := &desk{question: shown(m)}
			switch name {
			case "Unknown":
				d.question = human.Reaction{Err: fault.New(fault.NotFound, "no question")}
			case "Ended":
				d.question.Ended = true
			case "Expired":
				f.next("views.open", 200, `{"ok":false,"error":"expired_trigger_id"}`)
			case "Broken":
				d.err = errors.New("disk")
			case "Other":
				d.question = human.Reaction{Err: fault.New(fault.Forbidden, "no"), Text: "You may not answer."}
			}
			w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, f.click("U1", "form", metadata(m))))
			told := f.sent("/hook/1")
			if opened := f.sent("views.open"); len(opened) > 0 && name != "Expired" {
				t.Errorf("%s: opened %v", name, opened)
			}
			if err != nil || w.Code != 200 || len(told) != 1 || !strings.Contains(told[0].json["text"].(string), want) {
				t.Errorf("%s: %v %d, told %v", name, err, w.Code, told)
			}
		}
	})
	submission := func(m human.Message, values map[string]any) map[string]any {
		return map[string]any{
			"type": "view_submission", "trigger_id": "trig.2", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1"},
			"view": map[string]any{"id": "V1", "hash": "h1", "callback_id": "answer", "private_metadata": metadata(m), "state": map[string]any{"values": values}},
		}
	}
	filled := map[string]any{
		"field:amount": map[string]any{"number": map[string]any{"type": "number_input", "value": "12.50"}},
		"field:why":    map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "broken"}},
		"field:mail":   map[string]any{"text": map[string]any{"type": "email_text_input", "value": nil}},
		"field:day":    map[string]any{"date": map[string]any{"type": "datepicker", "selected_date": "2026-03-04"}},
		"field:team":   map[string]any{"one": map[string]any{"type": "static_select", "selected_option": map[string]any{"value": "b"}}},
		"field:urgent": map[string]any{"boolean": map[string]any{"type": "radio_buttons", "selected_option": map[string]any{"value": "false"}}},
		"notes":        map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "soon"}},
	}
	t.Run("Submits", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: accepted("Thank you.")}
		m := question(f)
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, submission(m, filled)))
		if err != nil {
			t.Fatal(err)
		}
		want := &human.Answer{Notes: "soon", Fields: map[string]json.RawMessage{
			"amount": json.RawMessage("12.50"), "why": json.RawMessage(`"broken"`), "day": json.RawMessage(`"2026-03-04"`), "team": json.RawMessage(`"b"`), "urgent": json.RawMessage("false"),
		}}
		got := d.got()[0]
		if diff := cmp.Diff(want, got.Answer); diff != "" {
			t.Error(diff)
		}
		if got.From != "U1" || got.Mail != "ann@example.org" || got.ArgumentsHash != m.Interaction.ArgumentsHash || got.Interaction != m.Interaction.ID || got.Dedup != "view:V1:h1:trig.2" || !got.Verified {
			t.Errorf("reply %+v", got)
		}
		var answer struct {
			Action string          `json:"response_action"`
			View   json.RawMessage `json:"view"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Action != "update" || checkView(answer.View) != "" || !strings.Contains(string(answer.View), "Thank you.") {
			t.Errorf("%v, answer %s (%s)", err, w.Body, checkView(answer.View))
		}
	})
	t.Run("ShowsProblemsAtFields", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := question(f)
		// As it comes from the rules: any list of paths and messages.
		type field struct {
			Path    string `json:"path"`
			Message string `json:"message"`
		}
		d := &desk{reaction: human.Reaction{Err: fault.New(fault.InvalidInput, "two fields are wrong").With("fields", []field{
			{"response_data.field_values.amount", "must be positive"}, {"response_data.field_values.why", "is too short"}, {"response_data.field_values.amount", "must be whole"},
		})}}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, submission(m, filled)))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"response_action": "errors", "errors": map[string]any{"field:amount": "must be positive; must be whole", "field:why": "is too short"}}
		if diff := cmp.Diff(want, decode(t, w.Body.Bytes())); diff != "" {
			t.Error(diff)
		}
		// What is about no field is told instead of the form.
		d.reaction = human.Reaction{Ended: true, Text: "Bob was faster.", Err: fault.New(fault.Conflict, "ended")}
		w, err = f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, submission(m, filled)))
		if err != nil || !strings.Contains(w.Body.String(), "Bob was faster.") || !strings.Contains(w.Body.String(), `"update"`) {
			t.Errorf("%v %s", err, w.Body)
		}
		// What was typed stays when it could not be recorded.
		d.err = errors.New("disk full")
		w, err = f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, payload(t, submission(m, filled)))
		if err != nil || !strings.Contains(w.Body.String(), `"errors":{"field:amount":"`+wordsIn("en").tryAgain) {
			t.Errorf("%v %s", err, w.Body)
		}
	})
	t.Run("OtherTypes", func(t *testing.T) {
		t.Parallel()
		one := func(how string, v any) map[string]any { return map[string]any{how: v} }
		pick := func(v string) map[string]any { return map[string]any{"selected_option": map[string]any{"value": v}} }
		for name, c := range map[string]struct {
			change func(*human.Message)
			blocks string
			values map[string]any
			want   *human.Answer
		}{
			"Several": {
				func(m *human.Message) { m.Request.Type, m.Request.AllowMultiple = human.Selection, true }, "checkboxes",
				map[string]any{"chosen": one("many", map[string]any{"selected_options": []any{map[string]any{"value": "a"}, map[string]any{"value": "b"}}})},
				&human.Answer{Chosen: []string{"a", "b"}},
			},
			"Many": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Options = human.Selection, nil
					for n := range 90 {
						m.Request.Options = append(m.Request.Options, human.Option{Value: fmt.Sprint(n)})
					}
				}, "static_select",
				map[string]any{"chosen": one("one", pick("77")), "notes": one("text", map[string]any{"value": "n"})},
				&human.Answer{Chosen: []string{"77"}, Notes: "n"},
			},
			"Review": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone", "facts"}, Scoring: "numeric_scale", Min: 1, Max: 5, Evidence: true}
				}, "number_input",
				map[string]any{
					"score:tone": one("number", map[string]any{"value": "4"}), "score:facts": one("number", map[string]any{"value": "2.5"}),
					"evidence:tone": one("text", map[string]any{"value": "kind"}),
				},
				&human.Answer{Scores: map[string]json.RawMessage{"tone": json.RawMessage("4"), "facts": json.RawMessage("2.5")}, Evidence: map[string]string{"tone": "kind"}},
			},
			"PassFail": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone"}}
				}, "radio_buttons",
				map[string]any{"score:tone": one("boolean", pick("true"))}, &human.Answer{Scores: map[string]json.RawMessage{"tone": json.RawMessage("true")}},
			},
			"Letters": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone"}, Scoring: "letter_grade"}
				}, "static_select",
				map[string]any{"score:tone": one("one", pick("B"))}, &human.Answer{Scores: map[string]json.RawMessage{"tone": json.RawMessage(`"B"`)}},
			},
			"Budget": {
				func(m *human.Message) {
					m.Interaction.Purpose, m.Request.Type = human.PurposeBudget, human.Input
					m.Request.Schema = json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number","description":"tokens"}}}`)
				}, "number_input",
				map[string]any{"field:raise_by": one("number", map[string]any{"value": "5000"})}, &human.Answer{Given: json.RawMessage(`{"raise_by":5000}`)},
			},
		} {
			f := newFake(t)
			m := f.message(c.change)
			d := &desk{reaction: accepted(""), question: shown(m)}
			ch := NewChannel(f.client, nil)
			send(t, ch, m)
			button := elements(t, f.sent("chat.postMessage")[0])[0]
			if _, err := f.post(ch, f.account(), d.handle, formType, payload(t, f.click("U1", button.ActionID, button.Value))); err != nil {
				t.Fatal(err)
			}
			opened := f.sent("views.open")
			if len(opened) != 1 {
				t.Fatalf("%s: opened %v", name, opened)
			}
			view := opened[0].json["view"].(map[string]any)
			if raw, _ := json.Marshal(view); !strings.Contains(string(raw), `"`+c.blocks+`"`) {
				t.Errorf("%s: no %s in %s", name, c.blocks, raw)
			}
			sent := submission(m, c.values)
			sent["view"].(map[string]any)["private_metadata"] = view["private_metadata"]
			if _, err := f.post(ch, f.account(), d.handle, formType, payload(t, sent)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.got()[0].Answer); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}
