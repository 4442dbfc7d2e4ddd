package telegram

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form/formtest"
	"tandem/store"
	"tandem/text"
)

func approval(settings string) human.Request {
	return human.Request{Type: human.Approval, Title: "Pay?", Description: "An invoice of <ACME> & Co", Language: "en", Settings: json.RawMessage(settings)}
}

func about(id string) store.Interaction { return store.Interaction{ID: id} }

func TestChannel_Send_Approval(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	o.questions[questionA] = approval(`{"chat_id":42}`)
	r, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA), Link: "https://t.example/respond/x", Lines: []string{"Until <noon>"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"7001:42:501"}, r.Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	sent := f.of("sendMessage")[0]
	if got := sent.text(t, "chat_id"); got != "42" {
		t.Errorf("chat_id %s, want the number", got)
	}
	data, urls, text := f.lastSent(t)
	if want := "<b>Pay?</b>\n\nAn invoice of &lt;ACME&gt; &amp; Co\n\nUntil &lt;noon&gt;"; text != want || sent.params["parse_mode"] != "HTML" {
		t.Errorf("text %q in mode %v, want %q", text, sent.params["parse_mode"], want)
	}
	if len(data) != 2 || len(urls) != 1 || urls[0] != "https://t.example/respond/x" {
		t.Errorf("buttons %q, links %q; want approve, reject and the link", data, urls)
	}
	for _, d := range data {
		if len(d) > 64 || !strings.HasPrefix(d, "t:") {
			t.Errorf("button %q has %d bytes", d, len(d))
		}
	}
	if strings.Contains(sent.text(t, "reply_markup"), "copy_text") || strings.Contains(text, botToken) {
		t.Errorf("the message holds what it should not: %s", sent.text(t, "reply_markup"))
	}
}

func TestChannel_Send_To(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	o.questions[questionA] = approval(`{"chat_id":"@team"}`)
	for to, want := range map[string]string{"": `"@team"`, "43": "43", "telegram:44": "44"} {
		if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, To: to, Interaction: about(questionA)}); err != nil {
			t.Fatal(err)
		}
		list := f.of("sendMessage")
		if got := list[len(list)-1].text(t, "chat_id"); got != want {
			t.Errorf("to %q: chat_id %s, want %s", to, got, want)
		}
	}
	o.questions[questionA] = approval(`{}`)
	if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); fault.CodeOf(err) != fault.InvalidConfig {
		t.Errorf("without chat_id: %v", err)
	}
}

func TestChannel_Send_Forms(t *testing.T) {
	t.Parallel()
	many := make([]human.Option, 120)
	for i := range many {
		many[i].Value = fmt.Sprint("o", i)
	}
	for name, r := range map[string]human.Request{
		"input":    {Type: human.Input, Fields: []human.Field{{Name: "a"}}},
		"review":   {Type: human.Review, Review: &human.ReviewRules{Criteria: []string{"c"}}},
		"multiple": {Type: human.Selection, AllowMultiple: true, Options: []human.Option{{Value: "a"}}},
		"many":     {Type: human.Selection, Options: many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, o := newAPI(t), newOffice()
			r.Settings, r.Title = json.RawMessage(`{"chat_id":1}`), "T"
			o.questions[questionA] = r
			if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA), Link: "https://t.example/r"}); err != nil {
				t.Fatal(err)
			}
			if data, urls, _ := f.lastSent(t); len(data) != 0 || len(urls) != 1 {
				t.Errorf("buttons %q, links %q; want only the link", data, urls)
			}
			if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); err != nil {
				t.Fatal(err)
			}
			if data, urls, text := f.lastSent(t); len(data)+len(urls) != 0 || !strings.Contains(text, "in the inbox") {
				t.Errorf("without a link: buttons %q, links %q, text %q", data, urls, text)
			}
		})
	}
}

func TestChannel_Send_Layout(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	o.questions[questionA] = approval(`{"chat_id":1,"inline_keyboard":[[{"text":"Go","value":"approve"},{"text":"Docs","url":"https://d.example/"}],"reject"]}`)
	if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`"t:[^"]*"`).ReplaceAllString(f.of("sendMessage")[0].text(t, "reply_markup"), "STAMP")
	want := `{"inline_keyboard":[[{"callback_data":STAMP,"text":"Go"},{"text":"Docs","url":"https://d.example/"}],[{"callback_data":STAMP,"text":"Reject"}]]}`
	if got != want {
		t.Errorf("keyboard\n%s, want\n%s", got, want)
	}
	for _, bad := range []string{`["maybe"]`, `{"a":1}`, `[3]`, `[{"text":"x","url":"javascript:1"}]`} {
		o.questions[questionA] = approval(`{"chat_id":1,"inline_keyboard":` + bad + `}`)
		if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("inline_keyboard %s: %v, want invalid_config", bad, err)
		}
	}
}

func TestChannel_Send_LongTexts(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	tag := regexp.MustCompile(`<[^>]*>`)
	for _, unit := range []string{"x", "<", "字", "😀"} {
		long := strings.Repeat(unit, 6000)
		o.questions[questionA] = human.Request{
			Title: long, Description: long, Content: json.RawMessage(`{"a":"` + long + `"}`), Settings: json.RawMessage(`{"chat_id":1}`),
		}
		if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA), Lines: []string{"the end is near"}}); err != nil {
			t.Fatal(err)
		}
		_, _, shown := f.lastSent(t)
		read := html.UnescapeString(tag.ReplaceAllString(shown, ""))
		if n := text.UTF16(read); n > 4096 || n < 3000 {
			t.Errorf("text of %q has %d units", unit, n)
		}
		if !strings.HasSuffix(read, "the end is near") || !strings.HasPrefix(shown, "<b>") || strings.Count(shown, "<b>") != strings.Count(shown, "</b>") {
			t.Errorf("text of %q lost its end or its marks: …%q", unit, shown[len(shown)-40:])
		}
	}
}

func TestChannel_Send_RemindsInReply(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	o.questions[questionA] = approval(`{"chat_id":42}`)
	r, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)})
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.ask(t, f, human.Message{Kind: human.KindReminder, Interaction: about(questionA), Lines: []string{"Still open"}, Earlier: []json.RawMessage{r.Body}})
	if err != nil {
		t.Fatal(err)
	}
	last := f.of("sendMessage")[1]
	if got := last.text(t, "reply_parameters"); got != `{"allow_sending_without_reply":true,"message_id":501}` {
		t.Errorf("reminder replies to %s", got)
	}
	if _, _, text := f.lastSent(t); text != "<b>Pay?</b>\n\nStill open" || second.Threads[0] != "7001:42:502" {
		t.Errorf("reminder %q, threads %q", text, second.Threads)
	}
}

func TestChannel_Send_End(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*api, *office, []json.RawMessage) {
		f, o := newAPI(t), newOffice()
		o.questions[questionA] = approval(`{"chat_id":42}`)
		r, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)})
		if err != nil {
			t.Fatal(err)
		}
		reminder, err := o.ask(t, f, human.Message{Kind: human.KindReminder, Interaction: about(questionA), Earlier: []json.RawMessage{r.Body}})
		if err != nil {
			t.Fatal(err)
		}
		return f, o, []json.RawMessage{r.Body, reminder.Body}
	}
	end := human.Message{Kind: human.KindCompleted, Interaction: about(questionA), Lines: []string{"Approved by Ann"}}
	t.Run("Edits", func(t *testing.T) {
		t.Parallel()
		f, o, earlier := setup(t)
		end := end
		end.Earlier = earlier
		r, err := o.ask(t, f, end)
		if err != nil || len(r.Threads) != 0 {
			t.Fatalf("receipt %+v, error %v", r, err)
		}
		edits := f.of("editMessageText")
		if len(edits) != 1 || edits[0].params["message_id"] != 501.0 || edits[0].params["reply_markup"] != nil {
			t.Fatalf("edits %v; want the question alone, without its buttons", edits)
		}
		if text := edits[0].params["text"].(string); !strings.HasSuffix(text, "Approved by Ann") || !strings.HasPrefix(text, "<b>Pay?</b>") {
			t.Errorf("edited to %q", text)
		}
		if n := len(f.of("sendMessage")); n != 2 {
			t.Errorf("%d messages were sent, want none besides the edit", n-2)
		}
	})
	t.Run("IsHarmlessTwice", func(t *testing.T) {
		t.Parallel()
		f, o, earlier := setup(t)
		end := end
		end.Earlier = earlier
		f.refuse["editMessageText"] = []func(http.ResponseWriter){refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: message is not modified: specified new message content is the same"}`)}
		if _, err := o.ask(t, f, end); err != nil || len(f.of("sendMessage")) != 2 {
			t.Errorf("error %v, %d messages", err, len(f.of("sendMessage")))
		}
	})
	t.Run("SaysItAnewWhenDeleted", func(t *testing.T) {
		t.Parallel()
		f, o, earlier := setup(t)
		end := end
		end.Earlier = earlier
		f.refuse["editMessageText"] = []func(http.ResponseWriter){refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: message to edit not found"}`)}
		r, err := o.ask(t, f, end)
		if err != nil || len(r.Threads) != 0 {
			t.Fatalf("receipt %+v, error %v", r, err)
		}
		if _, _, text := f.lastSent(t); !strings.HasSuffix(text, "Approved by Ann") {
			t.Errorf("said %q", text)
		}
	})
	t.Run("ComesAgainWhenBusy", func(t *testing.T) {
		t.Parallel()
		f, o, earlier := setup(t)
		end := end
		end.Earlier = earlier
		f.refuse["editMessageText"] = []func(http.ResponseWriter){refusing(502, `<html>bad gateway</html>`)}
		_, err := o.ask(t, f, end)
		if e := fault.From(err); e == nil || e.Code != fault.RemoteError || !e.Retryable {
			t.Errorf("error %v", err)
		}
	})
}

func TestChannel_Send_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    func(http.ResponseWriter)
		code      fault.Code
		retryable bool
		after     any
	}{
		"TooMany":  {refusing(429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 17","parameters":{"retry_after":17}}`), fault.RateLimited, true, int64(17000)},
		"Blocked":  {refusing(403, `{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}`), fault.RemoteRejected, false, nil},
		"NoChat":   {refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`), fault.RemoteRejected, false, nil},
		"Token":    {refusing(401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`), fault.CredentialInvalid, false, nil},
		"Broken":   {refusing(500, `{"ok":false,"error_code":500,"description":"Internal `+botToken+`"}`), fault.RemoteError, true, nil},
		"Portal":   {refusing(200, `<html>please log in</html>`), fault.RemoteError, true, nil},
		"Nonsense": {refusing(200, `{"ok":true,"result":"x"}`), fault.RemoteError, true, nil},
		"Cut":      {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, fault.NetworkError, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, o := newAPI(t), newOffice()
			o.questions[questionA] = approval(`{"chat_id":42}`)
			f.refuse["sendMessage"] = []func(http.ResponseWriter){c.answer}
			_, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)})
			e := fault.From(err)
			if e == nil || e.Code != c.code || e.Retryable != c.retryable || e.Details["retry_after_ms"] != c.after {
				t.Fatalf("error %v, details %v; want %s", err, e.Details, c.code)
			}
			raw, err2 := json.Marshal(e)
			if err2 != nil || strings.Contains(string(raw)+err.Error(), "canary") {
				t.Errorf("the error tells the token: %s %v", raw, err2)
			}
		})
	}
}

func TestChannel_Send_FollowsMigration(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	o.questions[questionA] = approval(`{"chat_id":-5}`)
	f.refuse["sendMessage"] = []func(http.ResponseWriter){refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded","parameters":{"migrate_to_chat_id":-1005}}`)}
	r, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)})
	if err != nil || len(r.Threads) != 1 || r.Threads[0] != "7001:-1005:501" {
		t.Errorf("receipt %+v, error %v; want the new group", r, err)
	}
}

func TestContent_Readable(t *testing.T) {
	t.Parallel()
	f, o := newAPI(t), newOffice()
	r := approval(`{"chat_id":1}`)
	r.Content, r.Arguments = formtest.Value(), formtest.Value()
	o.questions[questionA] = r
	if _, err := o.ask(t, f, human.Message{Kind: human.KindRequest, Interaction: about(questionA)}); err != nil {
		t.Fatal(err)
	}
	_, _, text := f.lastSent(t)
	formtest.Readable(t, text)
}
