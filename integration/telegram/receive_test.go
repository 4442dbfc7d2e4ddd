package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
)

// asked sets a question up that was sent to a chat as message 501 and returns its buttons.
func asked(t *testing.T, settings string) (*api, *office, []string) {
	t.Helper()
	f, o := newAPI(t), newOffice()
	o.questions[questionA], o.hashes[questionA] = approval(settings), "hash-1"
	if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); err != nil {
		t.Fatal(err)
	}
	data, _, _ := f.lastSent(t)
	if len(data) != 2 {
		t.Fatalf("buttons %q", data)
	}
	return f, o, data
}

// said reads the answer to a webhook.
func said(t *testing.T, body string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("answer %q: %v", body, err)
	}
	return m
}

func TestChannel_Receive_Click(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	w, err := bring(t, o, f, botSecret, clickOn(7, ann(), "private", 42, 501, data[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := []human.Reply{{
		Account: o.account("").Account, Interaction: questionA, Threads: []string{"7001:42:501"}, From: "42", Name: "@Ann_B", Aliases: []string{"@Ann_B", "@ann_b"},
		Verified: true, Answer: &human.Answer{Given: json.RawMessage(`{"action":"reject"}`)}, ArgumentsHash: "hash-1", Dedup: "7001:7",
	}}
	if diff := cmp.Diff(want, o.taken()); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"method": "answerCallbackQuery", "callback_query_id": "q1", "text": "Thank you"}, said(t, w.Body.String())); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestChannel_Receive_ClickBeforeTheThreadIsNoted(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	clear(o.threads)
	if _, err := bring(t, o, f, botSecret, clickOn(7, ann(), "private", 42, 501, data[0])); err != nil || len(o.taken()) != 1 {
		t.Errorf("error %v, replies %v", err, o.taken())
	}
}

func TestChannel_Receive_Secret(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	update := clickOn(7, ann(), "private", 42, 501, data[0])
	for _, secret := range []string{"", "wrong", botSecret + "x", botSecret[:4]} {
		if _, err := bring(t, o, f, secret, update); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("secret %q: %v, want unauthorized", secret, err)
		}
	}
	a := o.account(f.URL)
	open := a.Open
	a.Open = func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
		c, err := open(ctx, id, types...)
		c.Data = json.RawMessage(`{"token":"7001:x"}`)
		return c, err
	}
	if err := New(f.Client()).Receive(nil, newRequest(t, update, ""), a, o.handle); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("without a secret in the credential: %v", err)
	}
	a.Credential = "other"
	if err := New(f.Client()).Receive(nil, newRequest(t, update, botSecret), a, o.handle); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("unknown credential: %v", err)
	}
	if len(o.taken()) != 0 {
		t.Errorf("replies %v were taken", o.taken())
	}
}

func TestChannel_Receive_ForgedButtons(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	other := human.Request{Type: human.Approval, Title: "Other", Settings: json.RawMessage(`{"chat_id":42}`)}
	o.questions[questionB] = other
	b := &bot{token: "7001:guessed"}
	swapped := []byte(data[0])
	swapped[len("t:")+22] ^= 1 // inside the number of the option and the seal
	for name, forged := range map[string]string{
		"other token":    b.stamp(o.interaction(questionA), choices(o.interaction(questionA), o.questions[questionA]), 0),
		"changed":        string(swapped),
		"other question": strings.Replace(data[0], data[0][2:12], (&bot{token: botToken}).stamp(o.interaction(questionB), choices(o.interaction(questionB), other), 0)[2:12], 1),
	} {
		w, err := bring(t, o, f, botSecret, clickOn(7, ann(), "private", 42, 501, forged))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m := said(t, w.Body.String()); m["show_alert"] != true || m["text"] == "" {
			t.Errorf("%s: answer %v, want an alert", name, m)
		}
	}
	// What is approved has changed since the button was made.
	o.hashes[questionA] = "hash-2"
	if w, err := bring(t, o, f, botSecret, clickOn(8, ann(), "private", 42, 501, data[0])); err != nil || said(t, w.Body.String())["show_alert"] != true {
		t.Errorf("changed arguments: error %v, answer %s", err, w.Body)
	}
	// Somebody else's button still wants an answer, an empty one.
	if w, err := bring(t, o, f, botSecret, clickOn(9, ann(), "private", 42, 501, "menu")); err != nil || len(said(t, w.Body.String())) != 2 {
		t.Errorf("foreign button: error %v, answer %s", err, w.Body)
	}
	if len(o.taken()) != 0 {
		t.Errorf("replies %v were taken", o.taken())
	}
}

func TestChannel_Receive_WhoMayNot(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	o.forbid = true
	if w, err := bring(t, o, f, botSecret, clickOn(7, ann(), "private", 42, 501, data[0])); err != nil || len(o.taken()) != 0 || said(t, w.Body.String())["text"] != "Not you" {
		t.Errorf("click: error %v, replies %+v, answer %s", err, o.taken(), w.Body)
	}
	if w, err := bring(t, o, f, botSecret, answering(8, ann(), "group", 42, 501, "approve")); err != nil || len(o.taken()) != 0 || w.Body.Len() != 0 {
		t.Errorf("text in a group: error %v, replies %+v, answer %s", err, o.taken(), w.Body)
	}
	if w, err := bring(t, o, f, botSecret, answering(9, ann(), "private", 42, 501, "approve")); err != nil || len(o.taken()) != 1 || w.Body.Len() == 0 {
		t.Errorf("text in private is to be handed on: error %v, replies %+v, answer %s", err, o.taken(), w.Body)
	}
}

func TestChannel_Receive_UpdatesToCome(t *testing.T) {
	t.Parallel()
	f, o, _ := asked(t, `{"chat_id":42}`)
	u := answering(9, ann(), "private", 42, 501, "approve")
	u["message"].(map[string]any)["sender_chat"] = "of a kind to come"
	if w, err := bring(t, o, f, botSecret, u); err != nil || w.Code != 200 || len(o.taken()) != 0 {
		t.Errorf("error %v, answer %d, replies %+v", err, w.Code, o.taken())
	}
}

func TestChannel_Receive_Groups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets string
		from    map[string]any
		counts  bool
	}{
		"ByNumber":      {`[42]`, ann(), true},
		"ByText":        {`["42"]`, ann(), true},
		"ByName":        {`["@ann_b"]`, ann(), true},
		"ByAddress":     {`["telegram:42"]`, ann(), true},
		"NotListed":     {`[42,"@ann_b"]`, bob(), false},
		"NobodyIsNamed": {`[]`, bob(), true}, // then the approvers decide
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, o, data := asked(t, `{"chat_id":-9,"target_users":`+c.targets+`}`)
			w, err := bring(t, o, f, botSecret, clickOn(7, c.from, "supergroup", -9, 501, data[0]))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(o.taken()) == 1; got != c.counts || (said(t, w.Body.String())["show_alert"] == true) == c.counts {
				t.Errorf("click: taken %v, answer %s", got, w.Body)
			}
			w, err = bring(t, o, f, botSecret, answering(8, c.from, "group", -9, 501, "approve it"))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(o.taken()) == 2; got != c.counts || (w.Body.Len() > 0) != c.counts {
				t.Errorf("text: taken %v, answer %q", got, w.Body)
			}
		})
	}
}

func TestChannel_Receive_Text(t *testing.T) {
	t.Parallel()
	f, o, _ := asked(t, `{"chat_id":42}`)
	w, err := bring(t, o, f, botSecret, answering(9, ann(), "private", 42, 501, " looks good "))
	if err != nil {
		t.Fatal(err)
	}
	want := []human.Reply{{
		Account: o.account("").Account, Interaction: questionA, Threads: []string{"7001:42:501"}, From: "42", Name: "@Ann_B", Aliases: []string{"@Ann_B", "@ann_b"},
		Verified: true, Text: "looks good", Dedup: "7001:9",
	}}
	if diff := cmp.Diff(want, o.taken()); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	m := said(t, w.Body.String())
	if m["method"] != "sendMessage" || m["chat_id"] != 42.0 || m["text"] != "Thank you" || m["parse_mode"] != nil {
		t.Errorf("answer %v", m)
	}
}

func TestChannel_Receive_TextsThatAreNotOurs(t *testing.T) {
	t.Parallel()
	f, o, _ := asked(t, `{"chat_id":42}`)
	change := func(f func(m map[string]any)) map[string]any {
		u := answering(9, ann(), "private", 42, 501, "approve")
		f(u["message"].(map[string]any))
		return u
	}
	for name, u := range map[string]map[string]any{
		"no reply":       change(func(m map[string]any) { delete(m, "reply_to_message") }),
		"other message":  answering(9, ann(), "private", 42, 77, "approve"),
		"other chat":     answering(9, ann(), "private", 43, 501, "approve"),
		"a bot":          answering(9, map[string]any{"id": 42, "is_bot": true}, "private", 42, 501, "approve"),
		"as a group":     change(func(m map[string]any) { m["sender_chat"] = map[string]any{"id": -9, "type": "supergroup"} }),
		"without a text": change(func(m map[string]any) { delete(m, "text") }),
		"something else": {"update_id": 9, "poll": map[string]any{"id": "1"}},
	} {
		if w, err := bring(t, o, f, botSecret, u); err != nil || w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("%s: error %v, answer %d %q", name, err, w.Code, w.Body)
		}
	}
	if len(o.taken()) != 0 {
		t.Errorf("replies %v were taken", o.taken())
	}
}

func TestChannel_Receive_TextToAMessageThatWasNotNoted(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	clear(o.threads)
	u := answering(9, ann(), "private", 42, 501, "fine")
	to := u["message"].(map[string]any)["reply_to_message"].(map[string]any)
	to["reply_markup"] = map[string]any{"inline_keyboard": [][]map[string]any{{{"text": "Approve", "callback_data": data[0]}}}}
	if _, err := bring(t, o, f, botSecret, u); err != nil || len(o.taken()) != 1 || o.taken()[0].Interaction != questionA {
		t.Fatalf("error %v, replies %+v", err, o.taken())
	}
	to["from"] = map[string]any{"id": 7002, "is_bot": true} // the same buttons on a message of another bot
	if _, err := bring(t, o, f, botSecret, u); err != nil || len(o.taken()) != 1 {
		t.Errorf("error %v, replies %+v", err, o.taken())
	}
}

func TestChannel_Receive_Patterns(t *testing.T) {
	t.Parallel()
	for settings, taken := range map[string]map[string]bool{
		`{"chat_id":42,"allow_text_responses":false}`:                      {"yes": false},
		`{"chat_id":42,"allowed_response_patterns":["^(?i)yes$","^N\\d"]}`: {"YES": true, "N7": true, "yes please": false},
		`{"chat_id":42,"allowed_response_patterns":["("]}`:                 {"(": false},
	} {
		for text, want := range taken {
			f, o, _ := asked(t, settings)
			w, err := bring(t, o, f, botSecret, answering(9, ann(), "private", 42, 501, text))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(o.taken()) == 1; got != want || said(t, w.Body.String())["text"] == "" {
				t.Errorf("%s: %q taken %v, answer %s", settings, text, got, w.Body)
			}
		}
	}
}

func TestChannel_Receive_ErrorsComeAgain(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	o.err = errors.New("disk full")
	for _, u := range []map[string]any{clickOn(7, ann(), "private", 42, 501, data[0]), answering(8, ann(), "private", 42, 501, "yes")} {
		if w, err := bring(t, o, f, botSecret, u); !errors.Is(err, o.err) || w.Body.Len() != 0 {
			t.Errorf("error %v, answer %q", err, w.Body)
		}
	}
}

// listen listens until stop is called, which returns how it ended.
func listen(t *testing.T, o *office, f *api, a human.Account) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- New(f.Client()).Listen(ctx, a, o.handle) }()
	return func() error { cancel(); return <-end }
}

func TestChannel_Listen(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	f.updates = []map[string]any{
		clickOn(70, ann(), "private", 42, 501, data[0]),
		{"update_id": 71, "message": map[string]any{"message_id": "of a kind to come", "text": "x"}},
		answering(72, ann(), "private", 42, 501, "fine"),
	}
	stop := listen(t, o, f, o.account(f.URL))
	if a, b := <-f.asked, <-f.asked; a != 0 || b != 73 {
		t.Errorf("asked from %d, then from %d; want 0, then 73", a, b)
	}
	if err := stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	var dedups []string
	for _, r := range o.taken() {
		dedups = append(dedups, r.Dedup)
	}
	if diff := cmp.Diff([]string{"7001:70", "7001:72"}, dedups); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if toast, text := f.of("answerCallbackQuery"), f.of("sendMessage"); len(toast) != 1 || len(text) != 2 || toast[0].params["text"] != "Thank you" {
		t.Errorf("toasts %v, messages %v", toast, text)
	}
	poll := f.of("getUpdates")[0]
	if poll.text(t, "allowed_updates") != `["message","channel_post","callback_query"]` || poll.params["timeout"] != 50.0 {
		t.Errorf("polled with %v", poll.params)
	}
}

func TestChannel_Listen_PassesOnlyWhatIsDone(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	f.updates = []map[string]any{clickOn(70, ann(), "private", 42, 501, data[0]), clickOn(71, bob(), "private", 43, 502, data[0])}
	broken := errors.New("disk full")
	a := o.account(f.URL)
	handle := func(ctx context.Context, r human.Reply) (human.Reaction, error) {
		if r.From == "43" && !r.Look {
			return human.Reaction{}, broken
		}
		return o.handle(ctx, r)
	}
	if err := New(f.Client()).Listen(t.Context(), a, handle); !errors.Is(err, broken) {
		t.Fatalf("ended with %v", err)
	}
	if x, y := <-f.asked, <-f.asked; x != 0 || y != 71 {
		t.Errorf("asked from %d, then from %d; want the first to be passed and the second not", x, y)
	}
	stop := listen(t, o, f, a) // begun again, it comes again
	if x, y := <-f.asked, <-f.asked; x != 0 || y != 72 {
		t.Errorf("asked from %d, then from %d", x, y)
	}
	if err := stop(); err != nil || len(o.taken()) != 2 || o.taken()[1].From != "43" {
		t.Errorf("ended with %v, replies %+v", err, o.taken())
	}
}

func TestChannel_Listen_WhoCannotBeTold(t *testing.T) {
	t.Parallel()
	f, o, data := asked(t, `{"chat_id":42}`)
	f.updates = []map[string]any{clickOn(70, ann(), "private", 42, 501, data[0])}
	f.refuse["answerCallbackQuery"] = append(f.refuse["answerCallbackQuery"],
		refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: query is too old and response timeout expired or query ID is invalid"}`))
	stop := listen(t, o, f, o.account(f.URL))
	if a, b := <-f.asked, <-f.asked; a != 0 || b != 71 {
		t.Errorf("asked from %d, then from %d", a, b)
	}
	if err := stop(); err != nil || len(o.taken()) != 1 {
		t.Errorf("ended with %v, replies %+v", err, o.taken())
	}
}

func TestChannel_Listen_Errors(t *testing.T) {
	t.Parallel()
	f, o, _ := asked(t, `{"chat_id":42}`)
	f.refuse["getUpdates"] = append(f.refuse["getUpdates"],
		refusing(409, `{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}`))
	err := New(f.Client()).Listen(t.Context(), o.account(f.URL), o.handle)
	if e := fault.From(err); e == nil || e.Code != fault.Conflict || !e.Retryable {
		t.Errorf("two listeners: %v", err)
	}
}

func TestChannel_Listen_Webhook(t *testing.T) {
	t.Parallel()
	f, o, _ := asked(t, `{"chat_id":42}`)
	client := f.Client()
	a := o.account(f.URL)
	a.Callback = "https://t.example/channels/telegram/w/bot"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	set := make(chan struct{})
	client.Transport = watch{client.Transport, func(path string) {
		if strings.HasSuffix(path, "/setWebhook") {
			close(set)
		}
	}}
	end := make(chan error, 1)
	go func() { end <- New(client).Listen(ctx, a, o.handle) }()
	<-set
	cancel()
	if err := <-end; err != nil {
		t.Fatalf("ended with %v", err)
	}
	calls := f.of("setWebhook")
	if len(calls) != 1 || calls[0].params["url"] != a.Callback || calls[0].params["secret_token"] != botSecret || len(f.of("getUpdates")) != 0 {
		t.Errorf("webhooks set %v, polls %v", calls, f.of("getUpdates"))
	}
}

func TestChannel_Listen_WebhookOfOthers(t *testing.T) {
	t.Parallel()
	b := func(f *api) *bot {
		return &bot{http: f.Client(), base: f.URL, token: botToken, secret: botSecret}
	}
	const own = "https://new.example/channels/telegram/w/bot"
	for is, want := range map[string]fault.Code{
		"":  "",
		own: "",
		"https://old.example/x/channels/telegram/w/bot":   "", // the instance has moved
		"https://old.example/channels/telegram/w/another": fault.Conflict,
		"https://shop.example/hook":                       fault.Conflict,
	} {
		f := newAPI(t)
		f.webhook = is
		if err := b(f).hook(t.Context(), own, false); fault.CodeOf(err) != want {
			t.Errorf("with %q: %v, want %q", is, err, want)
		}
		if set := len(f.of("setWebhook")); (set == 1) != (want == "" && is != own) {
			t.Errorf("with %q: set %d times", is, set)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		wait(ctx, webhookCheck)
		wait(ctx, 2*time.Hour)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("waited for %v, want ten minutes and then until the end of the hour", got)
		}
	})
}

func TestStamp(t *testing.T) {
	t.Parallel()
	b := &bot{token: botToken}
	r := human.Request{Type: human.Selection, Options: []human.Option{{Value: "a"}, {Value: strings.Repeat("long", 100)}}}
	for _, id := range []string{questionA, "not-a-uuid", strings.ToUpper(questionA)} {
		i := store.Interaction{Workspace: "w", ID: id, Type: human.Selection, Purpose: human.PurposeNode}
		for n := range r.Options {
			data := b.stamp(i, choices(i, r), n)
			s, ok := readStamp(data)
			answer, fits := b.opens(s, i, r)
			if !ok || !fits || len(data) > 64 || string(answer.Given) != `{"selected_values":["`+r.Options[n].Value+`"]}` || s.interaction != map[string]string{questionA: questionA}[id] {
				t.Errorf("id %q, option %d: %q reads as %+v %v, answer %+v", id, n, data, s, ok, answer)
			}
		}
	}
	for _, data := range []string{"", "t:", "t:!!", "t:AAAA", "x"} {
		if _, ok := readStamp(data); ok {
			t.Errorf("%q was read", data)
		}
	}
}

func FuzzReadStamp(f *testing.F) {
	f.Add("t:AAAA")
	f.Add((&bot{token: botToken}).stamp(store.Interaction{ID: questionA}, []form.Choice{{Value: "a"}}, 0))
	f.Fuzz(func(t *testing.T, data string) {
		s, ok := readStamp(data)
		if !ok {
			return
		}
		if _, fits := (&bot{token: "7001:other"}).opens(s, store.Interaction{ID: s.interaction, Type: human.Approval, Purpose: human.PurposeNode}, human.Request{}); fits {
			t.Errorf("%q fits a question that nobody made it for", data)
		}
	})
}
