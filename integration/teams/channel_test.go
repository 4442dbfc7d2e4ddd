package teams

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form/formtest"
)

func approval(settings string) human.Request {
	return human.Request{
		Type: human.Approval, Title: "Pay?", Description: "See [this](http://evil.example)", Content: json.RawMessage(`{"sum":3}`), Language: "en", Settings: json.RawMessage(settings),
	}
}

// cardOf is the card of a message.
func cardOf(t *testing.T, activity any) map[string]any {
	t.Helper()
	list, _ := activity.(map[string]any)["attachments"].([]any)
	if len(list) != 1 {
		t.Fatalf("activity %v has %d attachments", activity, len(list))
	}
	a := list[0].(map[string]any)
	if a["contentType"] != "application/vnd.microsoft.card.adaptive" {
		t.Errorf("content type %v", a["contentType"])
	}
	return a["content"].(map[string]any)
}

// actions are the titles of the actions of a card by their type, and the first's data.
func actions(card map[string]any) map[string][]string {
	titles := map[string][]string{}
	list, _ := card["actions"].([]any)
	for _, a := range list {
		a := a.(map[string]any)
		titles[a["type"].(string)] = append(titles[a["type"].(string)], a["title"].(string))
	}
	return titles
}

func written(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestChannel_Send_ToUser(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{"user":"aad-ann"}`))
	c := New(s.Client())
	r, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindRequest, Link: "https://t.example/r", Lines: []string{"Until noon"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a:conv-1|200"}, r.Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	begun := s.of(http.MethodPost, "/v3/conversations")
	if len(begun) != 1 || written(t, begun[0].body["members"]) != `[{"id":"aad-ann"}]` || begun[0].body["tenantId"] != tenantID {
		t.Errorf("conversation begun with %v", begun)
	}
	sent := s.of(http.MethodPost, "/v3/conversations/a:conv-1/activities")
	if len(sent) != 1 {
		t.Fatalf("%d messages", len(sent))
	}
	card := cardOf(t, sent[0].body)
	if diff := cmp.Diff(map[string][]string{"Action.Submit": {"Approve", "Reject"}, "Action.OpenUrl": {"Open the response page"}}, actions(card)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	first := card["actions"].([]any)[0].(map[string]any)
	if got, want := written(t, first["data"]), `{"tandem":{"arguments_hash":"hash-1","interaction":"`+questionA+`","option":"approve"}}`; got != want {
		t.Errorf("the button brings %s, want %s", got, want)
	}
	body := written(t, card["body"])
	if strings.Contains(body, `"TextBlock"`) || !strings.Contains(body, "[this](http://evil.example)") || !strings.Contains(body, "Until noon") || !strings.Contains(body, `\"sum\": 3`) {
		t.Errorf("body %s", body)
	}
	// A token is kept.
	if _, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindRequest}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.of(http.MethodPost, "/oauth2/v2.0/token")); n != 1 {
		t.Errorf("signed in %d times", n)
	}
}

func TestChannel_Send_ToChannel(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{"channel_id":"19:chan@thread.tacv2"}`))
	c := New(s.Client())
	r, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindRequest})
	if err != nil {
		t.Fatal(err)
	}
	const conversation = "19:chan@thread.tacv2;messageid=100"
	if diff := cmp.Diff([]string{conversation + "|100", conversation}, r.Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	begun := s.of(http.MethodPost, "/v3/conversations")[0].body
	if written(t, begun["channelData"]) != `{"channel":{"id":"19:chan@thread.tacv2"}}` || begun["isGroup"] != true || len(actions(cardOf(t, begun["activity"]))["Action.Submit"]) != 2 {
		t.Errorf("begun with %v", begun)
	}
	if _, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindReminder, Lines: []string{"Still open"}, Earlier: []json.RawMessage{r.Body}}); err != nil {
		t.Fatal(err)
	}
	reminders := s.of(http.MethodPost, "/v3/conversations/"+conversation+"/activities")
	if len(reminders) != 1 || !strings.Contains(written(t, reminders[0].body), "Still open") || len(actions(cardOf(t, reminders[0].body))) != 0 {
		t.Errorf("reminders %v", reminders)
	}
	// Somebody else is asked in a chat of their own.
	if _, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindEscalation, To: "teams:aad-boss"}); err != nil {
		t.Fatal(err)
	}
	if begun := s.of(http.MethodPost, "/v3/conversations")[1].body; written(t, begun["members"]) != `[{"id":"aad-boss"}]` {
		t.Errorf("escalated to %v", begun)
	}
}

func TestChannel_Send_End(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]http.HandlerFunc{"Changes": nil, "Deleted": refusing(404, `{"error":{"code":"ActivityNotFoundInConversation"}}`), "Busy": refusing(503, "")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{"user":"aad-ann"}`))
			c := New(s.Client())
			r, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindRequest})
			if err != nil {
				t.Fatal(err)
			}
			if refused != nil {
				s.refuse["PUT /activities/200"] = []http.HandlerFunc{refused}
			}
			end, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindCompleted, Lines: []string{"Approved by Ann"}, Earlier: []json.RawMessage{r.Body}})
			if name == "Busy" {
				if e := fault.From(err); e == nil || !e.Retryable || e.Code != fault.RemoteError {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(end.Threads) != 0 {
				t.Fatalf("receipt %+v, error %v", end, err)
			}
			puts, posts := s.of(http.MethodPut, "/v3/conversations/a:conv-1/activities/200"), s.of(http.MethodPost, "/activities")
			said := puts[0]
			if name == "Deleted" {
				said = posts[len(posts)-1]
			}
			if len(puts) != 1 || (len(posts) == 2) != (name == "Deleted") {
				t.Errorf("%d changes, %d messages", len(puts), len(posts))
			}
			if card := cardOf(t, said.body); len(actions(card)) != 0 || strings.Contains(written(t, card), "Input.") || !strings.Contains(written(t, card), "Approved by Ann") {
				t.Errorf("the end is told by %s", written(t, card))
			}
		})
	}
}

func TestChannel_Send_Webhook(t *testing.T) {
	t.Parallel()
	const path = "/hook/canary-path"
	for _, name := range []string{"OfCredential", "OfSettings"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			o := newOffice(approval(`{}`))
			a := o.account(map[string]string{"webhook_url": s.URL + path})
			if name == "OfSettings" {
				o.question.Settings, a.Credential = json.RawMessage(`{"webhook_url":"`+s.URL+path+`"}`), ""
			}
			channel := New(s.Client())
			r, err := o.send(t, channel, a, human.Message{Kind: human.KindRequest, Link: "https://t.example/r"})
			if err != nil || len(r.Threads) != 0 {
				t.Fatalf("receipt %+v, error %v", r, err)
			}
			sent := s.of(http.MethodPost, path)
			card := cardOf(t, sent[len(sent)-1].body)
			if diff := cmp.Diff(map[string][]string{"Action.OpenUrl": {"Open the response page"}}, actions(card)); diff != "" || strings.Contains(written(t, card), "Input.") {
				t.Errorf("only a link is to be there, got %s", written(t, card))
			}
			if _, err := o.send(t, channel, a, human.Message{Kind: human.KindTimeout, Lines: []string{"Too late"}}); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		code      fault.Code
		retryable bool
	}{
		"Words":   {refusing(200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId x"), fault.RateLimited, true},
		"Refusal": {refusing(200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 400"), fault.RemoteRejected, false},
		"Gone":    {refusing(404, "there is no /hook/canary"), fault.RemoteRejected, false},
		"Cut":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.NetworkError, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{}`))
			s.refuse["POST /hook/canary"] = []http.HandlerFunc{c.answer}
			_, err := o.send(t, New(s.Client()), o.account(map[string]string{"webhook_url": s.URL + "/hook/canary"}), human.Message{Kind: human.KindRequest})
			e := fault.From(err)
			if e == nil || e.Code != c.code || e.Retryable != c.retryable {
				t.Fatalf("error %v", err)
			}
			if strings.Contains(written(t, e), "canary") {
				t.Errorf("the error tells the address: %s", written(t, e))
			}
		})
	}
}

func TestChannel_Send_LargeCards(t *testing.T) {
	t.Parallel()
	r := approval(`{"user":"u"}`)
	r.Content = json.RawMessage(`"` + strings.Repeat("字", 20000) + `"`)
	s, o := newService(t), newOffice(r)
	for _, link := range []string{"https://t.example/r", ""} {
		if _, err := o.send(t, New(s.Client()), o.bot(s), human.Message{Kind: human.KindRequest, Link: link}); err != nil {
			t.Fatal(err)
		}
		sent := s.of(http.MethodPost, "/activities")
		card := cardOf(t, sent[len(sent)-1].body)
		if n := len(written(t, card)); n > 28<<10 {
			t.Errorf("the card has %d bytes", n)
		}
		if got := actions(card); got["Action.Submit"] != nil || (got["Action.OpenUrl"] != nil) != (link != "") || strings.Contains(written(t, card), "inbox") != (link == "") {
			t.Errorf("with link %q: %s", link, written(t, card))
		}
	}
}

func TestChannel_Send_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at        string
		answer    http.HandlerFunc
		code      fault.Code
		retryable bool
		after     any
	}{
		"TooMany":      {"POST /activities", refusing(429, `{}`, "Retry-After", "9"), fault.RateLimited, true, int64(9000)},
		"NotInstalled": {"POST /v3/conversations", refusing(403, `{"error":{"code":"BotNotInConversationRoster"}}`), fault.RemoteRejected, false, nil},
		"Changed":      {"POST /activities", refusing(412, `{}`), fault.RemoteError, true, nil},
		"Secret":       {"POST /token", refusing(401, `{"error":"invalid_client","error_description":"`+appSecret+`"}`), fault.CredentialInvalid, false, nil},
		"LoginBusy":    {"POST /token", refusing(503, ``), fault.RemoteError, true, nil},
		"Cut":          {"POST /activities", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.NetworkError, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{"user":"u"}`))
			s.refuse[c.at] = []http.HandlerFunc{c.answer}
			_, err := o.send(t, New(s.Client()), o.bot(s), human.Message{Kind: human.KindRequest})
			e := fault.From(err)
			if e == nil || e.Code != c.code || e.Retryable != c.retryable || e.Details["retry_after_ms"] != c.after {
				t.Fatalf("error %v", err)
			}
			if strings.Contains(written(t, e)+err.Error(), "canary") {
				t.Errorf("the error tells the secret: %s", written(t, e))
			}
		})
	}
}

func TestChannel_Send_SignsInAnew(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{"user":"u"}`))
	c := New(s.Client())
	now := time.Now()
	c.now = func() time.Time { return now }
	send := func() {
		t.Helper()
		if _, err := o.send(t, c, o.bot(s), human.Message{Kind: human.KindRequest}); err != nil {
			t.Fatal(err)
		}
	}
	send()
	s.mu.Lock()
	s.token = "access-2" // the first was taken back
	s.mu.Unlock()
	send()
	now = now.Add(56 * time.Minute) // nearly at its end
	send()
	if n := len(s.of(http.MethodPost, "/oauth2/v2.0/token")); n != 3 {
		t.Errorf("signed in %d times, want 3", n)
	}
}

func TestChannel_Send_NeedsAPlace(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	if _, err := o.send(t, New(s.Client()), o.bot(s), human.Message{Kind: human.KindRequest}); fault.CodeOf(err) != fault.InvalidConfig {
		t.Errorf("without a place: %v", err)
	}
	if _, err := o.send(t, New(s.Client()), o.account(map[string]string{"app_id": "x"}), human.Message{Kind: human.KindRequest}); fault.CodeOf(err) != fault.InvalidConfig {
		t.Errorf("half a credential: %v", err)
	}
}

func TestQuestion_Inputs(t *testing.T) {
	t.Parallel()
	many := make([]human.Option, 9)
	for i := range many {
		many[i].Value = fmt.Sprint("o,", i)
	}
	form := []human.Field{
		{Name: "sum", Type: "number", Required: true}, {Name: "why", Label: "Why?"}, {Name: "on", Type: "date"}, {Name: "mail", Type: "email"},
		{Name: "sure", Type: "boolean"}, {Name: "size", Type: "select", Options: []human.Option{{Value: "s"}, {Value: "l", Label: "Large"}}},
	}
	for name, c := range map[string]struct {
		request human.Request
		inputs  []string // nil: only a link
		buttons int
	}{
		"Form":     {human.Request{Type: human.Input, Fields: form}, []string{"Input.Number", "Input.Text", "Input.Date", "Input.Text", "Input.ChoiceSet", "Input.ChoiceSet", "Input.Text"}, 1},
		"Several":  {human.Request{Type: human.Selection, AllowMultiple: true, Options: many}, []string{"Input.ChoiceSet", "Input.Text"}, 1},
		"Many":     {human.Request{Type: human.Selection, Options: many}, []string{"Input.ChoiceSet", "Input.Text"}, 1},
		"Few":      {human.Request{Type: human.Selection, Options: many[:3]}, []string{"Input.Text"}, 3},
		"Approval": {human.Request{Type: human.Approval}, []string{"Input.Text"}, 2},
		"File":     {human.Request{Type: human.Input, Fields: []human.Field{{Name: "f", Type: "file"}}}, nil, 0},
		"Review":   {human.Request{Type: human.Review, Review: &human.ReviewRules{Criteria: []string{"c"}}}, []string{"Input.ChoiceSet", "Input.Text"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.request.Title = "T"
			o := newOffice(c.request)
			made, err := question(human.Message{Interaction: o.record, Request: c.request, Link: "https://t.example/r"}, true)
			if err != nil {
				t.Fatal(err)
			}
			var card map[string]any
			if err := json.Unmarshal([]byte(written(t, made)), &card); err != nil {
				t.Fatal(err)
			}
			var inputs []string
			for _, b := range card["body"].([]any) {
				if kind := b.(map[string]any)["type"].(string); strings.HasPrefix(kind, "Input.") {
					inputs = append(inputs, kind)
				}
			}
			if diff := cmp.Diff(c.inputs, inputs); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
			if got := actions(card); len(got["Action.Submit"]) != c.buttons || len(got["Action.OpenUrl"]) != 1 {
				t.Errorf("actions %v", got)
			}
		})
	}
}

func TestContent_Readable(t *testing.T) {
	t.Parallel()
	r := human.Request{Type: human.Approval, Title: "T", Content: formtest.Value(), Arguments: formtest.Value()}
	made, err := question(human.Message{Interaction: newOffice(r).record, Request: r, Link: "https://t.example/r"}, true)
	if err != nil {
		t.Fatal(err)
	}
	formtest.Readable(t, written(t, made))
}
