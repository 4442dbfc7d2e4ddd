package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/respond"
	"tandem/route"
	"tandem/store"
)

// asks records a question of an execution of its own that a user of workspace "a" has started, and returns it.
func (w *world) asks(user, purpose string, request human.Request) store.Interaction {
	w.t.Helper()
	return w.asksIn("a", user, purpose, request)
}

func (w *world) asksIn(workspace, user, purpose string, request human.Request) store.Interaction {
	w.t.Helper()
	raw, err := json.Marshal(request)
	if err != nil {
		w.t.Fatal(err)
	}
	id, now := route.NewID("exec"), w.now().UnixMilli()
	i, err := human.Media(nil).Open(human.Question{
		Ref: store.Ref{Workspace: workspace, Execution: id}, Root: id, WorkflowID: "hire", User: user, Node: "ask", Ask: "ask:1", Activation: "ask", Purpose: purpose, Request: raw, Time: now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a := &store.Append{Execution: id, Time: now, Body: []byte("row"), Ask: []store.Interaction{i}, Create: &store.Execution{
		ID: id, WorkflowID: "hire", WorkflowName: "Hire <somebody>", Status: engine.StatusWaitingForHuman, Priority: 3, TriggerType: "MANUAL", User: user,
	}}
	if err := w.stores.Journal.Append(w.t.Context(), identity.System(workspace), a); err != nil {
		w.t.Fatal(err)
	}
	w.desk.Recorded(workspace, i.ID)
	return w.interaction(i)
}

// interaction reads a question again.
func (w *world) interaction(i store.Interaction) store.Interaction {
	w.t.Helper()
	i, err := w.stores.Interactions.Get(w.t.Context(), identity.System(i.Workspace), i.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func approval(approvers ...string) human.Request {
	return human.Request{Type: human.Approval, Title: "Hire Ann?", Description: "She has\nexperience.", Approvers: approvers}
}

func idsOf(list []api.Interaction) []string {
	ids := []string{}
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	return ids
}

func TestInteractions_Lists(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.asks("viewer-user", human.PurposeNode, approval("approver-user"))
	second := w.asks("viewer-user", human.PurposeNode, approval("role:viewer"))
	urgent := approval("approver-user")
	urgent.Priority = 5
	third := w.asks("admin-user", human.PurposeConfirm, urgent)
	excluded := approval("role:viewer", "admin-user")
	excluded.ExcludeRequester = true
	fourth := w.asks("viewer-user", human.PurposeNode, excluded)
	w.asksIn("b", "boss", human.PurposeNode, approval())
	for name, c := range map[string]struct {
		role  identity.Role
		query string
		want  []string
	}{
		"All":        {identity.Viewer, "", []string{third.ID, first.ID, second.ID, fourth.ID}},
		"Mine":       {identity.Approver, "?mine=true", []string{third.ID, first.ID}},
		"MineByRole": {identity.Viewer, "?mine=true&status=pending", []string{second.ID}},
		"Execution":  {identity.Admin, "?family=true&execution_id=" + first.Execution, []string{first.ID}},
		"Purpose":    {identity.Admin, "?purpose=confirm", []string{third.ID}},
		"Status":     {identity.Admin, "?status=completed,canceled", []string{}},
		"Page":       {identity.Admin, "?page=2&page_size=3", []string{fourth.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := read[api.Interactions](t, w.call(w.tokens[c.role], "GET", route.Prefix+"/interactions"+c.query, "").want(t, 200))
			if ids := idsOf(got.Interactions); !slices.Equal(ids, c.want) {
				t.Errorf("got %v, want %v", ids, c.want)
			}
		})
	}
	w.admin("GET", route.Prefix+"/interactions?status=open", "").problem(t, 422, fault.InvalidInput)
}

func TestInteractions_Respond(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Approval, Title: "Pay?", Approvers: []string{"viewer-user"}, Arguments: json.RawMessage(`{"amount":5}`)})
	path := route.Prefix + "/interactions/" + asked.ID

	seen := read[api.InteractionDetail](t, w.call(w.tokens[identity.Viewer], "GET", path, "").want(t, 200))
	if !seen.MayRespond || seen.WhyNot != "" || seen.Status != "pending" || seen.WorkflowName != "Hire <somebody>" || seen.ArgumentsHash == "" || len(seen.Approvers) != 1 || seen.Responses == nil || seen.Deliveries == nil {
		t.Errorf("the one who is asked sees %+v", seen)
	}
	other := read[api.InteractionDetail](t, w.admin("GET", path, "").want(t, 200))
	if other.MayRespond || other.WhyNot == "" {
		t.Errorf("an admin who is not asked sees may_respond %v, why %q", other.MayRespond, other.WhyNot)
	}
	w.call(w.other, "GET", path, "").problem(t, 404, fault.NotFound)
	w.call(w.other, "POST", path+"/respond", `{"response_data":{"action":"approve"}}`).problem(t, 404, fault.NotFound)
	w.admin("POST", path+"/respond", `{"response_data":{"action":"approve"}}`).problem(t, 403, fault.Forbidden)

	answer := func(body string) answer { return w.call(w.tokens[identity.Viewer], "POST", path+"/respond", body) }
	wrong := answer(`{"response_data":{"action":"maybe"}}`).problem(t, 422, fault.InvalidInput)
	if len(wrong.Errors) != 1 || wrong.Errors[0].Path != "response_data.action" {
		t.Errorf("errors %+v", wrong.Errors)
	}
	lost := answer(`{"response_data":{"action":"approve","comment":"because"}}`).problem(t, 422, fault.InvalidInput)
	if len(lost.Errors) != 1 || lost.Errors[0].Path != "response_data.comment" || !strings.Contains(lost.Errors[0].Message, `did you mean "notes"?`) {
		t.Errorf("a key that nobody reads: %+v", lost.Errors)
	}
	answer(`{"response_data":{"action":"approve"},"arguments_hash":"`+strings.Repeat("0", 64)+`"}`).problem(t, 409, fault.Conflict)
	done := read[api.Interaction](t, answer(`{"response_data":{"action":"approve","notes":"fine"},"arguments_hash":"`+seen.ArgumentsHash+`"}`).want(t, 200))
	if done.Status != "completed" || !strings.Contains(string(done.ResponseData), `"approve"`) {
		t.Errorf("after the answer: %+v", done)
	}
	late := answer(`{"response_data":{"action":"reject"}}`).problem(t, 409, fault.Conflict)
	if late.Details["status"] != "completed" {
		t.Errorf("who is late is told %+v", late.Details)
	}
	seen = read[api.InteractionDetail](t, w.admin("GET", path, "").want(t, 200))
	if len(seen.Responses) != 1 || seen.Responses[0].UserID != "viewer-user" || !seen.Responses[0].Accepted {
		t.Errorf("responses %+v", seen.Responses)
	}
	pauses := read[api.Pauses](t, w.call(w.tokens[identity.Viewer], "GET", route.Prefix+"/executions/"+asked.Execution+"/pauses", "").want(t, 200)).Pauses
	if len(pauses) != 1 || pauses[0].Status != "resumed" || pauses[0].ResumeReason != "human_response" || pauses[0].PauseReason != "human" {
		t.Errorf("pauses %+v", pauses)
	}
	w.call(w.other, "GET", route.Prefix+"/executions/"+asked.Execution+"/pauses", "").problem(t, 404, fault.NotFound)
}

// The form of a question is told as every medium draws it, in the language of the reader, and so is what is wrong with an answer.
func TestInteractions_Form(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Contract", Language: "en", Fields: []human.Field{
		{Name: "n", Label: "How many", Type: "number", Required: true, Validation: json.RawMessage(`{"min":1,"max":3}`)}, {Name: "sure", Type: "boolean"},
	}})
	path := route.Prefix + "/interactions/" + asked.ID
	en := read[api.InteractionDetail](t, w.call(w.tokens[identity.Operator], "GET", path, "").want(t, 200)).Form
	zh := read[api.InteractionDetail](t, w.call(w.tokens[identity.Operator], "GET", path+"?language=zh", "").want(t, 200)).Form
	if en == nil || zh == nil || len(en.Entries) != 3 || en.Title != "Contract" || en.Language != "en" || zh.Language != "zh" {
		t.Fatalf("the forms: %+v, %+v", en, zh)
	}
	n, sure := en.Entries[0], en.Entries[1]
	if n.Group != "field_values" || n.Name != "n" || n.Kind != "number" || n.Label != "How many" || !n.Required || *n.Min != 1 || *n.Max != 3 || n.Limits != "From 1 to 3." {
		t.Errorf("the first entry: %+v", n)
	}
	if sure.Kind != "yes_no" || len(sure.Choices) != 2 || string(sure.Choices[0].Raw) != "true" || sure.Choices[0].Label != "Yes" || zh.Entries[1].Choices[0].Label == "Yes" || zh.Entries[0].Limits == n.Limits {
		t.Errorf("choices and limits: %+v, %+v", sure, zh.Entries)
	}
	wrong := w.call(w.tokens[identity.Operator], "POST", path+"/respond", `{"response_data":{"field_values":{"n":7}}}`).problem(t, 422, fault.InvalidInput)
	if len(wrong.Errors) != 1 || wrong.Errors[0].Path != "response_data.field_values.n" || wrong.Errors[0].MessageZH == "" {
		t.Errorf("what is wrong: %+v", wrong.Errors)
	}
	w.call(w.tokens[identity.Operator], "GET", path+"?language=fr", "").problem(t, 422, fault.InvalidInput)

	operational := w.asks("operator-user", human.PurposeConfirm, human.Request{Language: "en"})
	for language, other := range map[string]string{"en": "zh", "zh": "en"} {
		title := func(language string) string {
			list := read[api.Interactions](t, w.call(w.tokens[identity.Operator], "GET", route.Prefix+"/interactions?purpose=confirm&language="+language, "").want(t, 200)).Interactions
			if len(list) != 1 || list[0].ID != operational.ID {
				t.Fatalf("the list: %+v", list)
			}
			return list[0].Title
		}
		if title(language) == "" || title(language) == title(other) {
			t.Errorf("the title in %s is %q", language, title(language))
		}
	}
}

// Files in an answer become stored values before the answer is recorded.
func TestInteractions_RespondKeepsFiles(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Contract", Fields: []human.Field{{Name: "contract", Type: "file", Required: true}}})
	path := route.Prefix + "/interactions/" + asked.ID + "/respond"
	answer := func(value string) answer {
		return w.call(w.tokens[identity.Operator], "POST", path, `{"response_data":{"field_values":{"contract":`+value+`}}}`)
	}
	answer(`{"name":"x","base64":"*"}`).problem(t, 422, fault.InvalidInput)
	answer(`{"blob":"`+strings.Repeat("0", 64)+`"}`).problem(t, 422, fault.InvalidInput)
	content := []byte("signed")
	// Who is not asked has nothing kept.
	w.admin("POST", path, `{"response_data":{"field_values":{"contract":{"name":"x","base64":"*"}}}}`).problem(t, 403, fault.Forbidden)
	got := read[api.Interaction](t, answer(`{"name":"../c.pdf","content_type":"application/pdf","base64":"`+base64.StdEncoding.EncodeToString(content)+`"}`).want(t, 200))
	var data struct {
		Values map[string]respond.AnswerFile `json:"field_values"`
	}
	if err := json.Unmarshal(got.ResponseData, &data); err != nil {
		t.Fatal(err)
	}
	file := data.Values["contract"]
	if file.Name != "c.pdf" || file.ContentType != "application/pdf" || file.Size != int64(len(content)) || strings.Contains(string(got.ResponseData), "base64") {
		t.Errorf("the answer has %s", got.ResponseData)
	}
	r, _, err := w.stores.Blobs.Get(t.Context(), identity.System("a"), file.Blob)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if kept, err := io.ReadAll(r); err != nil || string(kept) != string(content) {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestInteractions_Operations(t *testing.T) {
	t.Parallel()
	w := setup(t)
	request := approval("approver-user")
	request.AllowDelegation = true
	delegated := w.asks("viewer-user", human.PurposeNode, request)
	got := read[api.Interaction](t, w.call(w.tokens[identity.Approver], "POST", route.Prefix+"/interactions/"+delegated.ID+"/delegate", `{"to":"editor-user","note":"away"}`).want(t, 200))
	if !slices.Contains(got.Approvers, "user:editor-user") {
		t.Errorf("approvers after delegation: %v", got.Approvers)
	}
	withdrawn := route.Prefix + "/interactions/" + w.asks("viewer-user", human.PurposeNode, approval("editor-user")).ID
	w.call(w.tokens[identity.Approver], "POST", withdrawn+"/cancel", "").problem(t, 403, fault.Forbidden)
	if got := read[api.Interaction](t, w.call(w.tokens[identity.Viewer], "POST", withdrawn+"/cancel", `{"reason":"not needed"}`).want(t, 200)); got.Status != "cancelled" {
		t.Errorf("who started it has withdrawn it: %+v", got)
	}
	w.admin("POST", withdrawn+"/cancel", "").problem(t, 409, fault.Conflict)
	w.admin("POST", withdrawn+"/remind", "").problem(t, 409, fault.Conflict)
	w.admin("POST", route.Prefix+"/interactions/"+delegated.ID+"/responses/none/overrule", `{"reason":"wrong"}`).want(t, 403)

	linked := route.Prefix + "/interactions/" + w.asks("viewer-user", human.PurposeNode, approval("approver-user")).ID + "/link"
	w.call(w.tokens[identity.Viewer], "POST", linked, `{"recipient":"approver-user"}`).problem(t, 403, fault.Forbidden)
	w.admin("POST", linked, `{"recipient":"approver-user"}`).problem(t, 409, fault.Conflict) // there is no channel to send it by
	link := read[api.Link](t, w.call(w.tokens[identity.Approver], "POST", linked, `{"recipient":"approver-user"}`).want(t, 200))
	if !strings.HasPrefix(link.URL, "https://tandem.test/respond/") || link.ExpiresAt <= w.now().UnixMilli() {
		t.Errorf("link %+v", link)
	}
}

// inboxStream reads the frames of the stream of questions.
type inboxStream struct {
	t     testing.TB
	lines *bufio.Scanner
}

func (w *world) follow(ctx context.Context, token string) *inboxStream {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+route.Prefix+"/interactions/stream", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := w.http.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		w.t.Fatalf("status %d, content type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 8<<20)
	return &inboxStream{w.t, lines}
}

// next returns the next frame, comments left out.
func (s *inboxStream) next() (name, data string) {
	s.t.Helper()
	for s.lines.Scan() {
		switch field, value, _ := strings.Cut(s.lines.Text(), ": "); field {
		case "event":
			name = value
		case "data":
			return name, value
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return "", ""
}

func (s *inboxStream) event() api.InteractionEvent {
	s.t.Helper()
	name, data := s.next()
	var e api.InteractionEvent
	if err := json.Unmarshal([]byte(data), &e); err != nil || name != frameInteraction {
		s.t.Fatalf("frame %q, %v: %s", name, err, data)
	}
	return e
}

func TestInteractionStream(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	old := w.asks("viewer-user", human.PurposeNode, approval("approver-user"))
	w.asks("viewer-user", human.PurposeNode, approval("editor-user"))
	stream := w.follow(ctx, w.tokens[identity.Approver])
	name, data := stream.next()
	var snapshot api.InteractionSnapshot
	if err := json.Unmarshal([]byte(data), &snapshot); err != nil || name != frameSnapshot {
		t.Fatalf("first frame %q, %v: %s", name, err, data)
	}
	if ids := idsOf(snapshot.Interactions); !slices.Equal(ids, []string{old.ID}) || snapshot.TotalCount != 1 {
		t.Errorf("snapshot %v", ids)
	}
	w.asks("viewer-user", human.PurposeNode, approval("editor-user"))
	w.asksIn("b", "boss", human.PurposeNode, approval("approver-user"))
	fresh := w.asks("viewer-user", human.PurposeNode, approval("role:approver"))
	if e := stream.event(); e.Interaction.ID != fresh.ID || !e.MayRespond || e.Interaction.Status != "pending" {
		t.Errorf("event %+v", e)
	}
	w.call(w.tokens[identity.Approver], "POST", route.Prefix+"/interactions/"+old.ID+"/respond", `{"response_data":{"action":"approve"}}`).want(t, 200)
	if e := stream.event(); e.Interaction.ID != old.ID || e.MayRespond || e.Interaction.Status != "completed" {
		t.Errorf("event %+v", e)
	}
	w.server.Close() // streams end with the server
	if stream.lines.Scan(); stream.lines.Err() != nil {
		t.Errorf("the stream broke: %v", stream.lines.Err())
	}
}

// A reader that was too slow begins again with everything, and one that is not a user any more hears no more.
func TestInteractionStream_Behind(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.asks("viewer-user", human.PurposeNode, approval("approver-user"))
	p := identity.Principal{Workspace: "a", User: "approver-user", Roles: []identity.Role{identity.Approver}}
	f := &inboxFeed{s: w.server, p: p, mine: map[string]bool{}}
	events, out := make(chan human.Event, 1), &taken{header: http.Header{}, wrote: make(chan string, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	missed := true
	events <- human.Event{Interaction: store.Interaction{ID: "other", Workspace: "a", Status: store.InteractionPending, Approvers: []string{"user:nobody"}}}
	go func() {
		done <- f.follow(ctx, &sseWriter{w: out, control: http.NewResponseController(out), patience: time.Second}, events, func() bool {
			was := missed
			missed = false
			return was
		})
	}()
	if got := <-out.wrote; !strings.HasPrefix(got, "event: snapshot\n") || !strings.Contains(got, old.ID) {
		t.Errorf("wrote %q", got)
	}
	events <- human.Event{} // as the desk says that it could not tell all
	if got := <-out.wrote; !strings.HasPrefix(got, "event: snapshot\n") {
		t.Errorf("wrote %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if gone, err := f.look(t.Context()); gone || err != nil {
		t.Errorf("gone %v, %v", gone, err)
	}
	if err := w.stores.Users.Delete(t.Context(), identity.System("a"), "approver-user"); err != nil {
		t.Fatal(err)
	}
	if gone, err := f.look(t.Context()); !gone || err != nil {
		t.Errorf("a user who was deleted: gone %v, %v", gone, err)
	}
}

// taken hands on what is written.
type taken struct {
	header http.Header
	wrote  chan string
}

func (w *taken) Header() http.Header { return w.header }
func (w *taken) WriteHeader(int)     {}
func (w *taken) Flush()              {}
func (w *taken) Write(b []byte) (int, error) {
	w.wrote <- string(b)
	return len(b), nil
}
