package human

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/human/form"
	"tandem/identity"
	"tandem/text"
)

// What is wrong with an answer is told in the language of who gave it; what an author wrote stays as it is.
func TestInLanguage(t *testing.T) {
	t.Parallel()
	r := Request{Type: Input, Fields: []Field{
		{Name: "size", Type: "select", Options: []Option{{Value: "s"}, {Value: "l"}}}, {Name: "centre", Validation: json.RawMessage(`{"pattern":"^[A-Z]+$","message":"Please name a cost centre."}`)},
	}}
	err := fault.From(r.Check(PurposeNode, json.RawMessage(`{"field_values":{"size":"m","centre":"x"}}`)))
	if got := InLanguage("zh", err); got != `size："m" 不在可选项之中：s, l。 centre：Please name a cost centre.` {
		t.Errorf("got %q", got)
	}
	if got := InLanguage("en", err); got != err.Message || err.Detail != "" {
		t.Errorf("got %q, and operators are told %q", got, err.Detail)
	}
	for want, e := range map[string]*fault.Error{
		"您看到的内容与所询问的不一致，请重新查看后再答复。": fault.Say(fault.Conflict, notAsShown).With("arguments_hash", "x"),
		"您已经答复过了，还在等待其他人的答复。":       voted([]vote{{person: "ann"}}, somebody{key: "ann"}, ""),
		"to: it is not a user": fault.From(wrongAnswer("to", text.As("it is not a user"))),
	} {
		if got := InLanguage("en", e); got != e.Message {
			t.Errorf("got %q", got)
		}
		if got := InLanguage("zh", e); got != want && got != "to：it is not a user" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An error that was stored says to every reader what it said before; one of an older version says it in English.
func TestInLanguage_Stored(t *testing.T) {
	t.Parallel()
	r := Request{Type: Selection, Options: []Option{{Value: "a"}, {Value: "b"}}}
	for _, e := range []*fault.Error{
		fault.Say(fault.Conflict, notAsShown).With("arguments_hash", "x"),
		fault.Say(fault.HILTimeout, text.Of("nobody has answered within %s", time.Hour)),
		fault.Say(fault.Conflict, text.Of("question %q is no longer open; it has ended with %s", "q", text.Of("%s, answered by %q", "x", "ann"))),
		fault.From(r.Check(PurposeNode, json.RawMessage(`{"action":"c"}`))),
	} {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var again fault.Error
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		for _, language := range text.Languages() {
			if got, want := InLanguage(language, &again), InLanguage(language, e); got != want || language == "zh" && got == e.Message {
				t.Errorf("in %s: %q, and before it was stored %q", language, got, want)
			}
		}
	}
	var old fault.Error
	if err := json.Unmarshal([]byte(`{"error_code":"conflict","error_message":"as it was","is_retryable":false}`), &old); err != nil || InLanguage("zh", &old) != "as it was" {
		t.Errorf("an old error says %q (%v)", InLanguage("zh", &old), err)
	}
	if broken := (&fault.Error{}); json.Unmarshal([]byte(`{"error_code":"conflict","error_message":"as it was","is_retryable":false,"error_words":[1]}`), broken) != nil || InLanguage("zh", broken) != "as it was" {
		t.Errorf("an error whose words cannot be read says %q", InLanguage("zh", broken))
	}
}

// Messages are in the language of who reads them, and what Tandem asks by itself with them; what an author wrote stays.
func TestSender_SpeaksTheReadersLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		c.staff.set(identity.User{Workspace: "w", ID: "ann", Email: "ann@example.com", Settings: []byte(`{"language":"zh"}`)})
		c.staff.set(identity.User{Workspace: "w", ID: "bob", Email: "bob@example.com", Settings: []byte(`{"language":"en"}`)})
		ask(t, c.shelf, "a", 0, Request{Title: "Pay?", TimeoutSeconds: 600, Channel: Email, Language: "zh", Approvers: []string{"ann", "bob", "cid", "guest@example.org"}, Credential: "smtp-1"})
		c.Start()
		defer c.Close()
		pass(0)
		want := map[string]string{"ann@example.com": "zh", "bob@example.com": "en", "cid@example.com": "zh", "guest@example.org": "zh"}
		for _, m := range c.mail.messages(KindRequest) {
			first := map[string]string{"zh": "有一个问题等待您答复。", "en": "A question is waiting for your answer."}[want[m.To]]
			if m.Request.Language != want[m.To] || len(m.Lines) == 0 || m.Lines[0] != first || m.Request.Title != "Pay?" {
				t.Errorf("to %s in %q: %q, %q", m.To, m.Request.Language, m.Request.Title, m.Lines)
			}
			delete(want, m.To)
		}
		if len(want) > 0 {
			t.Errorf("nothing was sent to %v", want)
		}
	})
}

func TestRequest_In(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"", "bank/pay"} {
		i, err := Media(nil).Open(Question{Purpose: PurposeOutcomeUnknown, Tool: tool, Ask: "ask:1", Node: "n", Request: json.RawMessage(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRequest(i)
		if err != nil {
			t.Fatal(err)
		}
		zh := r.In("zh", i.Purpose)
		title := "已经完成了吗？"
		if tool != "" {
			title = tool + " 已经完成了吗？"
		}
		if zh.Title != title || !strings.Contains(zh.Description, "节点在执行中被打断") || zh.Options[0].Label != "已完成" || r.Options[0].Label != "done" {
			t.Errorf("in Chinese: %q, %q, %v; before %v", zh.Title, zh.Description, zh.Options, r.Options)
		}
		old := r
		if old.Texts = nil; len(r.Texts) != 5 || old.In("zh", i.Purpose).Title != title { // as it was asked before questions kept their texts
			t.Errorf("the question keeps %v", r.Texts)
		}
		if back := zh.In("en", i.Purpose); back.Title != r.Title || back.Description != r.Description || back.Options[2].Label != "stop" {
			t.Errorf("back in English: %+v", back)
		}
	}
	// What was asked before questions kept their texts is told by its words.
	for _, tool := range []string{"", "bank/pay"} {
		old := Request{Language: "zh", Title: "已经完成了吗？", Options: []Option{{Value: "done", Label: "已完成"}, {Value: "not_done", Label: "an author's"}, {Value: "stop", Label: "停止"}}}
		want := "Was it done?"
		if tool != "" {
			old.Title, want = tool+" 已经完成了吗？", "Was "+tool+" done?"
		}
		if got := old.In("en", PurposeOutcomeUnknown); got.Title != want || got.Options[0].Label != "done" || got.Options[1].Label != "an author's" || got.Options[2].Label != "stop" || old.Options[0].Label != "已完成" {
			t.Errorf("an old question became %+v", got)
		}
	}
	// A kind may ask in words of Tandem, too. They are known by what they are, whatever they look like.
	asked := map[string]any{"description": "as the model says"}
	form.Say(asked, "zh", form.TitleText, text.Of("May %s be called?", "bank/pay"))
	asked["title"] = "as a newer version says it"
	raw, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Media(nil).Open(Question{Purpose: PurposeNode, Ask: "ask:1", Node: "n", Language: "zh", User: "ann", Request: raw})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRequest(i)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.In("en", i.Purpose); got.Title != "May bank/pay be called?" || got.Description != "as the model says" {
		t.Errorf("what a kind asks became %+v", got)
	}
	own := Request{Language: "en", Title: "Go on with it?"}
	if got := own.In("zh", PurposeConfirm); got.Title != own.Title || got.Language != "zh" {
		t.Errorf("words of its own became %+v", got)
	}
}
