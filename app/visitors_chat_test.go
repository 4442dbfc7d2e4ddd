package app

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
)

// says writes a message in a chat.
func (v *visitor) says(t testing.TB, path, id, text string) answer {
	t.Helper()
	return v.ask(t, http.MethodPost, path+"?do=send", "application/json", strings.NewReader(fmt.Sprintf(`{"id":%q,"text":%q}`, id, text)))
}

// turns are the messages of the visitor's conversation.
func (v *visitor) turns(t testing.TB, path string) []gjson.Result {
	t.Helper()
	a := v.get(t, path+"?view=messages")
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return gjson.GetBytes(a.body, "messages").Array()
}

// chatAsks asks the visitor and an approver, one after the other.
const chatAsks = `  - {id: ask, name: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: FORM_SUBMISSION, configurations: {title: "What <b>colour</b>?", approvers: [visitor], input_fields: [{name: colour, label: Colour, required: true}]}}
  - {id: boss, name: boss, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: secret matter, approvers: ["role:approver"]}}
  - {id: say, name: say, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, to_user: true, template: "It is {{ask.outputs.response_data.field_values.colour}}, for {{page.outputs.message}}"}}
`

const chatLinks = `  - {from_node: page, to_node: ask}
  - {from_node: ask, to_node: boss, output_key: confirmed}
  - {from_node: boss, to_node: say, output_key: confirmed}
`

func TestVisitors_Chat(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const at = "/chat/talk"
	x.deploys(t, "talk", visitFlow("talk", "CHAT", `{max_message_length: 20, earlier_messages: 3}`, chatAsks, chatLinks))
	v := x.visitor(t)
	refused(t, v.says(t, at, "m1", "hello"), http.StatusForbidden, "forbidden") // it has no cookie yet
	v.get(t, at)
	refused(t, v.says(t, at, "m1", " "), http.StatusUnprocessableEntity, "invalid_input")
	refused(t, v.says(t, at, "m1", strings.Repeat("é", 21)), http.StatusUnprocessableEntity, "invalid_input")
	refused(t, v.says(t, at, "", "hello"), http.StatusUnprocessableEntity, "invalid_input")
	refused(t, v.ask(t, http.MethodPost, at+"?do=send", "text/plain", strings.NewReader(`{"id":"x","text":"y"}`)), http.StatusUnprocessableEntity, "invalid_input")
	// A field that a message does not have is refused, and nothing starts.
	for _, odd := range []string{`{"id":"m1","text":"hello","user_id":"ann"}`, `{"id":"m1","text":"hello","text":"bye"}`, `{"id":"m1","text":"hello"} {}`} {
		refused(t, v.ask(t, http.MethodPost, at+"?do=send", "application/json", strings.NewReader(odd)), http.StatusUnprocessableEntity, "invalid_input")
	}
	same(t, x.executionsOf(t, "talk"), 0)
	first := v.says(t, at, "m1", "hello")
	says(t, first, http.StatusAccepted)
	execution := gjson.GetBytes(first.body, "execution").Str
	x.reaches(t, execution, engine.StatusWaitingForHuman)
	same(t, string(v.says(t, at, "m1", "hello").body), string(first.body)) // the answer was lost on its way
	same(t, x.executionsOf(t, "talk"), 1)
	refused(t, v.says(t, at, "m2", "and?"), http.StatusConflict, "conflict")

	// The question is shown as the one form, and nobody else's.
	question := v.turns(t, at)[0].Get("questions.0")
	same(t, fmt.Sprint(question.Get("open"), question.Get("plain"), question.Get("title")), "true true What <b>colour</b>?")
	id := question.Get("id").Str
	says(t, v.get(t, at+"?view=question&id="+id), http.StatusOK, "What &lt;b&gt;colour&lt;/b&gt;?", "Colour", `name="`+id+`-q0"`)
	if shown := v.get(t, at+"?view=question&id="+id); strings.Contains(string(shown.body), "127.0.0.1") || strings.Contains(string(shown.body), "conv_") {
		t.Errorf("the visitor is shown what the workflow was given: %s", shown.body)
	}
	other := x.visitor(t)
	other.get(t, at)
	for _, one := range []string{id, "made-up"} {
		refused(t, other.get(t, at+"?view=question&id="+one), http.StatusNotFound, "not_found")
		refused(t, other.post(t, at+"?do=answer&id="+one, url.Values{"text": {"red"}}), http.StatusNotFound, "not_found")
	}
	refused(t, other.get(t, at+"?view=events&execution="+execution), http.StatusNotFound, "not_found")
	same(t, len(other.turns(t, at)), 0)
	if a := v.post(t, at+"?do=answer&id="+id, url.Values{id + "-q0": {""}}); a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "Please check the following") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if f := refused(t, v.post(t, at+"?do=answer&id="+id, url.Values{"text": {"red"}, "approver": {"boss"}}), http.StatusUnprocessableEntity, "invalid_input"); !strings.Contains(f.Detail, "approver") {
		t.Errorf("what the question does not have is refused with %q", f.Detail)
	}
	says(t, v.post(t, at+"?do=answer&id="+id, url.Values{"text": {"red & blue"}}), http.StatusOK)
	refused(t, v.post(t, at+"?do=answer&id="+id, url.Values{"text": {"green"}}), http.StatusConflict, "conflict")

	// What is for an approver is none of the visitor's business.
	boss := x.opens(t, execution, 1)[0]
	same(t, boss.NodeID, "boss")
	told := v.turns(t, at)[0]
	same(t, fmt.Sprint(told.Get("state"), len(told.Get("questions").Array()), told.Get("questions.0.answer")), "waiting 1 red & blue")
	if strings.Contains(told.Raw, "secret matter") {
		t.Errorf("the visitor sees %s", told.Raw)
	}
	refused(t, v.get(t, at+"?view=question&id="+boss.ID), http.StatusNotFound, "not_found")
	refused(t, v.post(t, at+"?do=answer&id="+boss.ID, url.Values{"answer": {"approve"}}), http.StatusNotFound, "not_found")
	want[api.Interaction](t, x.respond(t, "approver", boss.ID, `{"action":"approve"}`), http.StatusOK)
	x.reaches(t, execution, engine.StatusSuccess)
	same(t, v.turns(t, at)[0].Get("answer").Str, "It is red & blue, for hello")

	// The next message is told what was said before it, and who answered is recorded.
	second := gjson.GetBytes(v.says(t, at, "m2", "again").body, "execution").Str
	x.reaches(t, second, engine.StatusWaitingForHuman)
	got := x.payloads(t, "talk")
	same(t, got[1].Get("messages").Raw, `[{"role":"assistant","content":"What \u003cb\u003ecolour\u003c/b\u003e?"},{"role":"user","content":"red \u0026 blue"},{"role":"assistant","content":"It is red \u0026 blue, for hello"}]`)
	same(t, got[0].Get("messages").Raw, `[]`)
	conversation := got[0].Get("conversation_id").Str
	same(t, fmt.Sprint(conversation == got[1].Get("conversation_id").Str, strings.HasPrefix(conversation, "conv_")), "true true")
	responses, err := x.stores.Interactions.Responses(t.Context(), identity.System("default"), id)
	if err != nil || len(responses) != 1 || responses[0].Address != "visitor:"+conversation || responses[0].Origin.Means.Kind != identity.ByVisit {
		t.Errorf("%+v %v", responses, err)
	}

	// Another conversation begins, and knows nothing of this one.
	same(t, v.ask(t, http.MethodPost, at+"?do=new", "", nil).status, http.StatusNoContent)
	same(t, len(v.turns(t, at)), 0)
	refused(t, v.get(t, at+"?view=other"), http.StatusNotFound, "not_found")
}

// Nobody becomes the visitor by calling themselves so: not by an id, not by an address in their settings, not as an approver or an admin.
func TestVisitors_NobodyElseIsTheVisitor(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.addUser(t, "default", "visitor", identity.Approver)
	if err := x.stores.Users.Update(t.Context(), identity.System("default"), identity.User{Workspace: "default", ID: "approver", Name: "approver", Roles: []identity.Role{identity.Approver}, Settings: []byte(`{"addresses":["visitor"]}`)}); err != nil {
		t.Fatal(err)
	}
	x.deploys(t, "talk", visitFlow("talk", "CHAT", `{}`, chatAsks, chatLinks))
	v := x.visitor(t)
	v.get(t, "/chat/talk")
	execution := gjson.GetBytes(v.says(t, "/chat/talk", "m", "hello").body, "execution").Str
	q := x.opens(t, execution, 1)[0]
	for _, user := range []string{"visitor", "approver", "admin", "operator", "editor", "viewer"} {
		if a := x.respond(t, user, q.ID, `{"field_values":{"colour":"red"}}`); a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", user, a.status, a.body)
		}
		if list := want[api.Interactions](t, x.call(t, user, "GET", "/interactions?mine=true&status=pending", nil), http.StatusOK); len(list.Interactions) != 0 {
			t.Errorf("it is in the inbox of %s", user)
		}
	}
	// A question that no chat has led to has no visitor. That of a fork is nobody's either.
	x.save(t, strings.ReplaceAll(askFlow("plain", asks("one", `, approvers: [visitor]`)), "\t", ""))
	q = x.opens(t, x.execute(t, "plain", api.ExecuteRequest{}), 1)[0]
	refused(t, v.get(t, "/chat/talk?view=question&id="+q.ID), http.StatusNotFound, "not_found")
	if list := v.turns(t, "/chat/talk"); len(list) != 1 || len(list[0].Get("questions").Array()) != 1 {
		t.Errorf("%s", list)
	}
}

// listens reads a stream of events until one has enough.
func (v *visitor) listens(t testing.TB, path, after string, enough func(event, data string) bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	w, err := v.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("stream: %d %v", w.StatusCode, w.Header)
	}
	event := ""
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			event = value
		case "data":
			if enough(event, value) {
				return
			}
		}
	}
	t.Fatal("the stream has ended before")
}

// The answer streams while the model speaks, and nothing of the execution is told besides: no inputs, no names of nodes.
func TestVisitors_ChatStreams(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model, release := gated(t)
	x.putProfile(t, "gated", `{"provider":"openai","model":"m","base_url":"`+model+`"}`)
	x.deploys(t, "stream", streamFlow)
	v := x.visitor(t)
	v.get(t, "/chat/stream")
	execution := gjson.GetBytes(v.says(t, "/chat/stream", "m", "canary question").body, "execution").Str
	path, heard := "/chat/stream?view=events&execution="+execution, ""
	v.listens(t, path, "", func(event, data string) bool {
		if event == "text" {
			heard += gjson.Get(data, "text").Str
		}
		if strings.Contains(data, "canary") || strings.Contains(data, "talk") {
			t.Errorf("%s tells %s", event, data)
		}
		return strings.Contains(heard, "one two")
	})
	if strings.Contains(heard, "three") {
		t.Errorf("heard %q before it was said", heard)
	}
	same(t, v.turns(t, "/chat/stream")[0].Get("state").Str, "running")
	release()
	v.listens(t, path, "", func(event, data string) bool {
		return event == "change" && x.statusOf(t, execution) == engine.StatusSuccess
	})
	told := v.turns(t, "/chat/stream")[0]
	same(t, told.Get("state").Str+" "+told.Get("answer").Str, "done one two three <i>four</i>")
	v.listens(t, path, "", func(event, data string) bool { return event == "change" }) // a visitor who comes later learns that it has ended
}

func (x *site) statusOf(t testing.TB, execution string) engine.Status {
	t.Helper()
	e, err := x.stores.Executions.Get(t.Context(), identity.System("default"), execution)
	if err != nil {
		t.Fatal(err)
	}
	return e.Status
}
