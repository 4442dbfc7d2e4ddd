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

	"tandem/credential"
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
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "choose0", value)))
		if err != nil || w.Code != 200 || w.Body.Len() != 0 {
			t.Fatalf("%v, %d %s", err, w.Code, w.Body)
		}
		want := []human.Reply{{
			Account: store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}, Interaction: "i1", Threads: []string{"C0PS:1700000000.000001"},
			From: "U1", Mail: "ann@example.org", Name: "Ann Lee", Verified: true, Answer: &human.Answer{Given: json.RawMessage(`{"action":"approve"}`)}, ArgumentsHash: "hash",
			Dedup: "action:trig.1:1700000001.1",
		}}
		if diff := cmp.Diff(want, d.got()); diff != "" {
			t.Error(diff)
		}
		told := f.Sent("/hook/1")
		if len(told) != 1 || told[0].json["text"] != "Your approval &lt;counts&gt;." || told[0].json["response_type"] != "ephemeral" || told[0].json["replace_original"] != false {
			t.Errorf("told %v", told)
		}
	})
	t.Run("ByPurpose", func(t *testing.T) {
		t.Parallel()
		for purpose, c := range map[string][2]string{"confirm": {"confirm", `{"confirm":true}`}, "drift": {"decline", `{"accept":false}`}, "outcome_unknown": {"not_done", `{"outcome":"not_done"}`}, "tool_approval": {"approve", `{"approved":true}`}} {
			want := c[1]
			f, d := newFake(t), &desk{reaction: accepted(""), question: human.Reaction{Interaction: store.Interaction{ID: "i1", Purpose: purpose}}}
			if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "choose0", `{"i":"i1","v":"`+c[0]+`","p":"`+purpose+`"}`))); err != nil {
				t.Fatal(err)
			}
			if got := d.got()[0].Answer; string(got.Given) != want || got.Action != "" {
				t.Errorf("%s: %+v, want %s", purpose, got, want)
			}
			if told := f.Sent("/hook/1"); told[0].json["text"] != "Recorded." {
				t.Errorf("told %v", told)
			}
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: human.Reaction{Err: fault.New(fault.Forbidden, "you are not asked")}}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "choose0", value))); err != nil {
			t.Fatal(err)
		}
		if told := f.Sent("/hook/1"); len(told) != 1 || told[0].json["text"] != "you are not asked" {
			t.Errorf("told %v", told)
		}
	})
	t.Run("NotRecorded", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{err: errors.New("disk full")}
		zh := strings.Replace(value, `"en"`, `"zh"`, 1)
		if w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "choose0", zh))); err != nil || w.Code != 200 {
			t.Fatal(err)
		}
		if told := f.Sent("/hook/1"); len(told) != 1 || told[0].json["text"] != wordsIn("zh").TryAgain {
			t.Errorf("told %v", told)
		}
	})
	// The owner of another workspace can give its people any addresses.
	t.Run("ForeignAddressIsNotBelieved", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: accepted("")}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U9", "choose0", value))); err != nil {
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
			f.Next("users.info", c.status, c.body)
			if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "choose0", value))); err != nil {
				t.Fatal(err)
			}
			if got := d.got(); len(got) != 1 || got[0].Mail != "" || got[0].From != "U1" {
				t.Errorf("%s: %+v", name, got)
			}
			if told := f.Sent("/hook/1"); told[0].json["text"] != c.told {
				t.Errorf("%s: told %v", name, told)
			}
		}
	})
	t.Run("LinkIsOnlyAcknowledged", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "link", "")))
		if err != nil || w.Code != 200 || len(d.got()) != 0 {
			t.Errorf("%v %d %v", err, w.Code, d.got())
		}
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{"payload=%7B", "x=1", sentPayload(t, map[string]any{"type": "block_actions"})} {
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
	body := sentPayload(t, f.click("U1", "choose0", value))
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
	a.Open = func(context.Context, string, ...string) (credential.Opened, error) {
		return credential.Opened{Data: json.RawMessage(`{"token":"x"}`)}, nil
	}
	d := &desk{}
	if _, err := f.post(NewChannel(f.client, nil), a, d.handle, formType, body, func(h http.Header) { sign(h, "", body, time.Now()) }); fault.CodeOf(err) != fault.Unauthorized || len(d.got()) != 0 {
		t.Errorf("without a secret: %v", err)
	}
	// What is not signed is not even told the challenge.
	if w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", `{"type":"url_verification","challenge":"c"}`, func(h http.Header) { h.Del("X-Slack-Signature") }); fault.CodeOf(err) != fault.Unauthorized || w.Body.Len() != 0 {
		t.Errorf("challenge: %v %s", err, w.Body)
	}
	if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, strings.Repeat("x", human.MaxCall+1)); fault.CodeOf(err) != fault.TooLarge {
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
		told := f.Sent("chat.postEphemeral")
		if len(told) != 1 || told[0].form.Get("user") != "U1" || told[0].form.Get("thread_ts") != "1700000000.000001" || told[0].form.Get("text") != "Approved." {
			t.Errorf("told %v", told)
		}
	})
	t.Run("AskedBackOtherwise", func(t *testing.T) {
		t.Parallel()
		f, d := newFake(t), &desk{reaction: human.Reaction{Text: "unclear", Interaction: store.Interaction{ID: "i1"}}}
		if _, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, "application/json", event("Ev1", nil)); err != nil || len(f.Sent("chat.postEphemeral")) != 0 {
			t.Errorf("%v, told %v", err, f.Sent("chat.postEphemeral"))
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
		if err != nil || w.Code != 200 || len(f.Sent("chat.postEphemeral")) != 0 {
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
			response, err := server.Client().Do(r)
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
		f.Wait("chat.postEphemeral")
		if n := len(d.got()); n != 1 {
			t.Errorf("it was handed in %d times", n)
		}
		c.patience = 5 * time.Second
		if got := try("2"); got != 200 {
			t.Errorf("status %d when it was done", got)
		}
		f.Wait("chat.postEphemeral")
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
			if !r.Look {
				<-finish
			}
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
	for n, body := range []string{sentPayload(t, f.click("U1", "choose0", value)), sentPayload(t, view)} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		sign(r.Header, testSigning, body, time.Now())
		r.Header.Set("Content-Type", formType)
		response, err := server.Client().Do(r)
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
		told := f.Wait([]string{"/hook/1", "chat.postEphemeral"}[n])
		if text := told.form.Get("text"); told.json["text"] != "Late, but it counts." && text != "Late, but it counts." {
			t.Errorf("told %v", told)
		}
	}
}
