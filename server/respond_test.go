package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/human"
	"tandem/identity"
	"tandem/respond"
	"tandem/route"
	"tandem/store"
)

// link makes a link to a question, as the message to a recipient would carry it, and returns its path.
func (w *world) link(i store.Interaction, recipient string, change ...func(*store.Link)) string {
	w.t.Helper()
	secret := identity.NewSecret()
	l := store.Link{Hash: identity.HashSecret(secret), Workspace: i.Workspace, Interaction: i.ID, Attempt: i.Attempt, Recipient: recipient, Expires: time.Now().Add(time.Hour).UnixMilli(), Created: 1}
	for _, f := range change {
		f(&l)
	}
	if err := w.stores.Interactions.Change(w.t.Context(), identity.System(i.Workspace), store.InteractionChange{Interaction: w.interaction(i), Links: []store.Link{l}}); err != nil {
		w.t.Fatal(err)
	}
	return respond.Path + secret
}

// submit sends a form, as a browser does from the page.
func (w *world) submit(path string, values url.Values) answer {
	w.t.Helper()
	return w.ask("", "POST", path, strings.NewReader(values.Encode()), asBrowser("application/x-www-form-urlencoded"))
}

func asBrowser(contentType string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Origin", "null") // what a page without referrer sends
	}
}

// control finds the name of the control with a label on a page.
func controlOf(t *testing.T, page, label string) string {
	t.Helper()
	found := regexp.MustCompile(`<label for="(q\d+)">` + regexp.QuoteMeta(html.EscapeString(label))).FindStringSubmatch(page)
	if found == nil {
		found = regexp.MustCompile(`(?s)<legend>` + regexp.QuoteMeta(html.EscapeString(label)) + `.*?name="(q\d+)"`).FindStringSubmatch(page)
	}
	if found == nil {
		t.Fatalf("no control %q on\n%s", label, page)
	}
	return found[1]
}

func wantText(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("no %q on\n%s", text, page)
		}
	}
}

func TestRespond_Approval(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{
		Type: human.Approval, Title: "Pay <b>Ann</b>?", Description: "One.\nTwo.", Approvers: []string{"viewer-user"}, Risk: "high",
		Content: json.RawMessage(`{"note":"<script>alert(1)</script>","sum":5,"nested":{"a":[1]}}`), Arguments: json.RawMessage(`{"amount":5}`),
	})
	path := w.link(asked, "user:viewer-user")
	before := w.interaction(asked)
	for _, method := range []string{"GET", "HEAD", "GET"} {
		got := w.call("", method, path, "").want(t, 200)
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Content-Type": "text/html; charset=utf-8",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %q", name, got.header.Get(name))
			}
		}
		if csp := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || !strings.Contains(csp, "form-action 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("policy %q", csp)
		}
		if !strings.Contains(got.header.Get("X-Robots-Tag"), "noindex") || got.header.Get("Set-Cookie") != "" {
			t.Errorf("headers %v", got.header)
		}
	}
	if after := w.interaction(asked); after.Version != before.Version {
		t.Errorf("looking has changed the question: %+v", after)
	}
	shown := w.call("", "GET", path, "")
	page := shown.body
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	if sum := sha256.Sum256([]byte(style)); !strings.Contains(shown.header.Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Error("the policy does not allow the style of the page")
	}
	wantText(t, page, "Pay &lt;b&gt;Ann&lt;/b&gt;?", "One.\nTwo.", "High risk", "&lt;script&gt;", "operator-user", "Hire &lt;somebody&gt;", "UTC", "minutes left",
		`name="arguments_hash" value="`+asked.ArgumentsHash+`"`, `name="answer" value="approve"`, `name="answer" value="reject"`, `<html lang="en">`)
	for _, foreign := range []string{"<script", "<link", "src=", "@import", "url(", "http://", "https://", strings.TrimPrefix(path, respond.Path)} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}

	notes := controlOf(t, page, "Notes")
	// No button, and another question's arguments.
	wantText(t, w.submit(path, url.Values{notes: {"hm"}}).want(t, 422).body, `role="alert"`, ">\nhm</textarea>")
	// What the page has no field for would be lost.
	wantText(t, w.submit(path, url.Values{"answer": {"approve"}, "comment": {"because"}, notes: {"hm"}, "arguments_hash": {asked.ArgumentsHash}}).want(t, 422).body, "no field comment", ">\nhm</textarea>")
	w.submit(path, url.Values{"answer": {"approve"}, "arguments_hash": {strings.Repeat("0", 64)}}).want(t, 409)
	if after := w.interaction(asked); after.Status != store.InteractionPending {
		t.Fatalf("a refused form has ended the question: %+v", after)
	}
	done := w.submit(path, url.Values{"answer": {"approve"}, notes: {"all <fine>"}, "arguments_hash": {asked.ArgumentsHash}}).want(t, 200)
	wantText(t, done.body, "Your answer was recorded", "Approve", "all &lt;fine&gt;")
	after := w.interaction(asked)
	if after.Status != store.InteractionCompleted || !strings.Contains(string(after.Response), `"notes":"all `) || !strings.Contains(string(after.Response), `"user_id":"viewer-user"`) {
		t.Errorf("after the answer: %s %s", after.Status, after.Response)
	}
	wantText(t, w.call("", "GET", path, "").want(t, 410).body, "This link was used", "It was answered on", "Approve")
	w.submit(path, url.Values{"answer": {"reject"}, "arguments_hash": {asked.ArgumentsHash}}).want(t, 410)
	if again := w.interaction(asked); again.Version != after.Version {
		t.Error("a used link has changed something")
	}
}

func TestRespond_Closed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, approval("viewer-user", "editor-user"))
	first, second := w.link(asked, "user:viewer-user"), w.link(asked, "user:editor-user")
	expired := w.link(asked, "user:viewer-user", func(l *store.Link) { l.Expires = 5 })
	stranger := w.link(asked, "user:admin-user")
	for _, path := range []string{respond.Path + "nothing", first[:len(first)-1], first + "x", respond.Path + strings.Repeat("x", 5000)} {
		for _, method := range []string{"GET", "POST"} {
			got := w.ask("", method, path, nil, asBrowser("application/x-www-form-urlencoded")).want(t, 404)
			wantText(t, got.body, "There is no such link")
		}
	}
	for _, path := range []string{expired, stranger} {
		got := w.call("", "GET", path, "").want(t, 410)
		wantText(t, got.body, "This link has expired")
		if strings.Contains(got.body, "Hire Ann?") {
			t.Error("who may not answer sees what is asked")
		}
		w.submit(path, url.Values{"answer": {"approve"}}).want(t, 410)
	}
	w.submit(first, url.Values{"answer": {"reject"}}).want(t, 200)
	wantText(t, w.call("", "GET", second, "").want(t, 410).body, "This question is closed", "Reject")
	wantText(t, w.submit(second, url.Values{"answer": {"approve"}}).want(t, 409).body, "This question is closed", "Reject")
	w.call("", "DELETE", first, "").want(t, 405)
}

// The token opens the page of its question and nothing else, and is written down nowhere.
func TestRespond_TokenIsNoOther(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	w := setup(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	path := w.link(w.asks("operator-user", human.PurposeNode, approval("viewer-user")), "user:viewer-user")
	secret := strings.TrimPrefix(path, respond.Path)
	for i, op := range operations(w.server) {
		if i%route.WrongSecrets == 0 {
			w.pass(route.WrongWindow) // this is not about how many wrong tokens an address may show; see TestThrottle
		}
		if got := w.call(secret, op.Method, strings.NewReplacer("{", "", "}", "").Replace(op.Path), `{}`); got.status != 401 {
			t.Errorf("%s %s with the token of a link: %d", op.Method, op.Path, got.status)
		}
	}
	w.call("", "GET", path, "").want(t, 200)
	w.call("", "GET", path+"/more", "").want(t, 404)
	w.call("", "PUT", path, "").want(t, 405)
	w.submit(path, url.Values{"answer": {"?"}}).want(t, 422)
	w.submit(path, url.Values{"answer": {"approve"}}).want(t, 200)
	metrics := w.call(w.tokens[identity.Viewer], "GET", "/metrics", "").want(t, 200).body
	wantText(t, metrics, `route="/respond/{token}"`)
	if strings.Contains(metrics, secret) || strings.Contains(log.String(), secret) {
		t.Errorf("the token is in the numbers or the log:\n%s", log.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func formFields() []human.Field {
	return []human.Field{
		{Name: "budget", Label: "Budget", Type: "number", Required: true, Validation: json.RawMessage(`{"max":100}`)}, {Name: "mail", Label: "Mail", Type: "email"},
		{Name: "day", Label: "Day", Type: "date"}, {Name: "size", Label: "Size", Type: "select", Options: []human.Option{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
		{Name: "ok", Label: "Agreed", Type: "boolean", Required: true}, {Name: "paper", Label: "Paper", Type: "file", Required: true}, {Name: "why", Label: "Why <i>", Required: true},
	}
}

// sendFiles sends a form with a file.
func (w *world) sendFiles(path string, values map[string]string, file, name string, content io.Reader) answer {
	w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range values {
		if err := form.WriteField(name, value); err != nil {
			w.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile(file, name)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.Copy(part, content); err != nil {
		w.t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.ask("", "POST", path, &body, asBrowser(form.FormDataContentType()))
}

func TestRespond_Form(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Details", Fields: formFields()})
	path := w.link(asked, "user:operator-user")
	page := w.call("", "GET", path, "").want(t, 200).body
	wantText(t, page, `enctype="multipart/form-data"`, "Why &lt;i&gt;", `type="date"`, `inputmode="decimal"`, `<option value="l">Large</option>`)
	names := map[string]string{}
	for _, f := range formFields() {
		names[f.Name] = controlOf(t, page, f.Label)
	}
	// Everything that is wrong is told at once, beside its control and in the summary, and what was typed stays.
	wrong := w.sendFiles(path, map[string]string{names["budget"]: "700", names["mail"]: "nobody", names["day"]: "2027-02-30", names["size"]: "s", names["why"]: "be\"cause"},
		names["paper"], "../../a/paper.txt", strings.NewReader("hello")).want(t, 422).body
	for _, name := range []string{"budget", "mail", "day"} {
		wantText(t, wrong, `<a href="#`+names[name]+`">`, `id="`+names[name]+`-error"`, `aria-describedby="`)
	}
	wantText(t, wrong, "<title>Error: ", `value="700"`, `value="nobody"`, `<option value="s" selected>`, `value="be&#34;cause"`, "Received: paper.txt", `aria-invalid="true"`, `<a href="#`+names["ok"]+`-0">`)
	if strings.Contains(wrong, `id="`+names["why"]+`-error"`) || strings.Contains(wrong, `id="`+names["paper"]+`-error"`) {
		t.Errorf("what is right is blamed:\n%s", wrong)
	}
	if i := w.interaction(asked); i.Status != store.InteractionPending {
		t.Fatalf("a refused form: %+v", i)
	}
	kept := regexp.MustCompile(`name="` + names["paper"] + `-kept" value="([^"]+)"`).FindStringSubmatch(wrong)
	if kept == nil {
		t.Fatal("the file is not kept")
	}
	good := url.Values{names["budget"]: {" 70.5 "}, names["ok"]: {"false"}, names["why"]: {"because"}, names["size"]: {"l"}}
	// Nobody can name a file that they have not sent.
	signed := []byte(kept[1])
	if at := len(signed) - 10; signed[at] == 'A' { // in the midst of the signature, where every bit counts
		signed[at] = 'B'
	} else {
		signed[at] = 'A'
	}
	forged := url.Values{names["paper"] + "-kept": {string(signed)}}
	for k, v := range good {
		forged[k] = v
	}
	wantText(t, w.submit(path, forged).want(t, 422).body, `id="`+names["paper"]+`-error"`)
	good.Set(names["paper"]+"-kept", kept[1])
	done := w.submit(path, good).want(t, 200).body
	wantText(t, done, "Your answer was recorded", "70.5", "Large", "paper.txt", "No")
	var got struct {
		Values map[string]json.RawMessage `json:"field_values"`
	}
	if err := json.Unmarshal(w.interaction(asked).Response, &got); err != nil {
		t.Fatal(err)
	}
	var file respond.AnswerFile
	if err := json.Unmarshal(got.Values["paper"], &file); err != nil {
		t.Fatal(err)
	}
	if string(got.Values["budget"]) != "70.5" || string(got.Values["ok"]) != "false" || string(got.Values["size"]) != `"l"` || got.Values["mail"] != nil || file.Name != "paper.txt" || file.Size != 5 {
		t.Errorf("the answer is %s", w.interaction(asked).Response)
	}
	content, _, err := w.stores.Blobs.Get(t.Context(), identity.System("a"), file.Blob)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if text, err := io.ReadAll(content); err != nil || string(text) != "hello" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestRespond_LargeFiles(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Details", Fields: []human.Field{{Name: "paper", Label: "Paper", Type: "file"}, {Name: "why", Label: "Why"}}})
	path := w.link(asked, "user:operator-user")
	zeros := func(n int64) io.Reader { return io.LimitReader(endless{}, n) }
	// A file over the limit of a file, then a form over that of a form: both are told on the page.
	wantText(t, w.sendFiles(path, map[string]string{"q1": "kept"}, "q0", "x", zeros(respond.MaxFile+1)).want(t, 422).body, "The file has more than 10 MiB.", `value="kept"`)
	wantText(t, w.sendFiles(path, nil, "q0", "x", zeros(respond.MaxBody+1<<20)).want(t, 413).body, "What was sent is too large")
	w.sendFiles(path, nil, "q0", "x", zeros(respond.MaxFile)).want(t, 200)
	if i := w.interaction(asked); i.Status != store.InteractionCompleted {
		t.Errorf("%+v", i)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'z'
	}
	return len(p), nil
}

// What each kind of question makes of what a browser sends.
func TestRespond_Kinds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	schema := json.RawMessage(`{"type":"object","required":["name","n"],"properties":{"name":{"type":"string","title":"Name"},"n":{"type":"integer","maximum":9,"title":"Count"},"sure":{"type":"boolean","title":"Sure"},
		"kinds":{"type":"array","title":"Kinds","items":{"enum":["a","b"]}},"level":{"enum":[1,2],"title":"Level"}}}`)
	nested := json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object"}}}}`)
	rules := func(scoring string, evidence bool) *human.ReviewRules {
		return &human.ReviewRules{Criteria: []string{"Quality", "Safety"}, Scoring: scoring, Min: 1, Max: 5, Threshold: 3, Evidence: evidence}
	}
	for name, c := range map[string]struct {
		purpose string
		request human.Request
		wrong   url.Values // by label
		good    url.Values
		want    string
	}{
		"Selection": {human.PurposeNode, human.Request{Type: human.Selection, Title: "t", Options: []human.Option{{Value: "x", Label: "Ex"}, {Value: "y"}}},
			url.Values{}, url.Values{"Choose": {"y"}, "Notes": {"n"}}, `{"selected_values":["y"],"notes":"n"}`},
		"Several": {human.PurposeNode, human.Request{Type: human.Selection, Title: "t", AllowMultiple: true, Options: []human.Option{{Value: "x"}, {Value: "y"}, {Value: "z"}}},
			url.Values{}, url.Values{"Choose": {"z", "x"}}, `{"selected_values":["x","z"]}`},
		"Schema": {human.PurposeNode, human.Request{Type: human.Input, Title: "t", Schema: schema},
			url.Values{"Count": {"10"}, "Name": {"Ann"}}, url.Values{"Name": {"Ann"}, "Count": {"9"}, "Sure": {"true"}, "Kinds": {"b"}, "Level": {"2"}},
			`{"field_values":{"kinds":["b"],"level":2,"n":9,"name":"Ann","sure":true}}`},
		"JSON": {human.PurposeNode, human.Request{Type: human.Input, Title: "t", Schema: nested},
			url.Values{"list": {`[{"a":`}}, url.Values{"list": {`[{"a": 1}]`}}, `{"field_values":{"list":[{"a":1}]}}`},
		"PassFail": {human.PurposeNode, human.Request{Type: human.Review, Title: "t", Review: rules("pass_fail", true)},
			url.Values{"Quality": {"true"}}, url.Values{"Quality": {"true"}, "Safety": {"false"}, "Evidence for “Quality”": {"seen"}, "Evidence for “Safety”": {"not"}},
			`{"scores":{"Quality":true,"Safety":false},"evidence":{"Quality":"seen","Safety":"not"}}`},
		"Scale": {human.PurposeNode, human.Request{Type: human.Review, Title: "t", Review: rules("numeric_scale", false)},
			url.Values{"Quality": {"6"}, "Safety": {"1"}}, url.Values{"Quality": {"5"}, "Safety": {"1"}}, `{"scores":{"Quality":5,"Safety":1}}`},
		"Letters": {human.PurposeNode, human.Request{Type: human.Review, Title: "t", Review: rules("letter_grade", false)},
			url.Values{}, url.Values{"Quality": {"A"}, "Safety": {"F"}}, `{"scores":{"Quality":"A","Safety":"F"}}`},
		"Confirm": {human.PurposeConfirm, human.Request{Title: "t"}, url.Values{}, url.Values{"": {"true"}}, `{"confirm":true}`},
		"Param": {human.PurposeParam, human.Request{Title: "t", Schema: schema},
			url.Values{"Name": {"Ann"}}, url.Values{"Name": {"Ann"}, "Count": {"3"}, "Note": {"hi"}}, `{"content":{"n":3,"name":"Ann"},"description":"hi"}`},
		"Tool":    {human.PurposeToolApproval, human.Request{Title: "t", Arguments: json.RawMessage(`{"a":1}`)}, url.Values{}, url.Values{"": {"reject"}}, `{"approved":false}`},
		"Accept":  {human.PurposeDrift, human.Request{Title: "t"}, url.Values{}, url.Values{"": {"false"}}, `{"accept":false}`},
		"Outcome": {human.PurposeOutcomeUnknown, human.Request{}, url.Values{"Result": {"{"}, "": {"done"}}, url.Values{"Result": {` {"id": 7} `}, "": {"done"}}, `{"outcome":"done","result":{"id":7}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := w.asks("operator-user", c.purpose, c.request)
			path := w.link(asked, "user:operator-user")
			page := w.call("", "GET", path, "").want(t, 200).body
			send := func(by url.Values) answer {
				values := url.Values{"arguments_hash": {asked.ArgumentsHash}}
				for label, v := range by {
					if label == "" {
						values["answer"] = v
					} else {
						values[controlOf(t, page, label)] = v
					}
				}
				return w.submit(path, values)
			}
			wantText(t, send(c.wrong).want(t, 422).body, `role="alert"`, "<li>")
			wantText(t, send(c.good).want(t, 200).body, "Your answer was recorded")
			responses, err := w.stores.Interactions.Responses(t.Context(), identity.System("a"), asked.ID)
			if err != nil || len(responses) != 1 {
				t.Fatalf("%d responses, %v", len(responses), err)
			}
			var got, want map[string]any
			if err := json.Unmarshal(responses[0].Data, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			// Answers to questions of other purposes than a node's are kept as they came.
			if how := responses[0].Origin.Means.Kind; how != identity.ByLink || asked.Purpose == human.PurposeNode && fmt.Sprint(got["means"]) != "map[kind:link]" {
				t.Errorf("it came by %q, and says %v", how, got["means"])
			}
			delete(got, "means")
			delete(got, "user_id")
			delete(got, "timestamp")
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("recorded %s, want %s", responses[0].Data, c.want)
			}
		})
	}
}

func TestRespond_Languages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	plain := w.asks("operator-user", human.PurposeNode, approval("viewer-user"))
	chinese := approval("viewer-user", "editor-user")
	chinese.Language, chinese.MinApprovals = "zh", 2
	zh := w.link(w.asks("operator-user", human.PurposeNode, chinese), "user:viewer-user")
	en := w.link(plain, "user:viewer-user")
	w.call(w.tokens[identity.Operator], "PATCH", route.Prefix+"/users/me", `{"language":"fr"}`).want(t, 422)
	wantText(t, w.call(w.tokens[identity.Operator], "PATCH", route.Prefix+"/users/me", `{"language":"zh"}`).want(t, 200).body, `"language":"zh"`)
	unknown := w.asks("operator-user", human.PurposeOutcomeUnknown, human.Request{})
	reader := w.link(unknown, "user:operator-user")
	wantText(t, w.call("", "GET", reader, "").body, "已经完成了吗？", "节点在执行中被打断", "未完成，现在执行")
	wantText(t, w.call("", "GET", reader+"?lang=en", "").body, "Was it done?", "The node was interrupted")
	for name, c := range map[string]struct{ path, accept, want string }{
		"Browser":  {zh, "en", "en"},
		"Request":  {zh, "fr", "zh-CN"},
		"Reader":   {reader, "en", "zh-CN"},
		"Chosen":   {zh + "?lang=en", "zh", "en"},
		"Other":    {en + "?lang=zh-CN", "en", "zh-CN"},
		"Unknown":  {zh + "?lang=fr", "", "zh-CN"},
		"NoLink":   {respond.Path + "none", "fr, en;q=0.3, zh-TW;q=0.8", "zh-CN"},
		"Nothing":  {respond.Path + "none", "", "en"},
		"Nonsense": {respond.Path + "none", "zh;q=x, ;;,", "en"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := w.ask("", "GET", c.path, nil, func(r *http.Request) { r.Header.Set("Accept-Language", c.accept) })
			wantText(t, got.body, `<html lang="`+c.want+`">`)
		})
	}
	page := w.call("", "GET", zh, "").body
	wantText(t, page, "批准", "拒绝", "工作流", "需要的批准数", "?lang=zh", `href="?lang=en"`)
	wantText(t, w.submit(zh, url.Values{}).want(t, 422).body, "请点击其中一个按钮作答")
	wantText(t, w.submit(zh, url.Values{"answer": {"approve"}}).want(t, 200).body, "您的答复已记录", "还需要其他人答复")
	wantText(t, w.call("", "GET", zh, "").want(t, 410).body, "您已经答复过了")
}

// Anybody may send a public form, but not as often as they like, and the first valid one counts.
func TestRespond_Public(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Tell us", Access: "public", Fields: []human.Field{{Name: "n", Label: "Count", Type: "number", Required: true}}})
	path := w.link(asked, human.Anyone, func(l *store.Link) { l.Reusable = true })
	page := w.call("", "GET", path, "").want(t, 200).body
	if strings.Contains(page, "operator-user") {
		t.Error("strangers learn who asks")
	}
	send := func(from, value string) answer {
		return w.ask("", "POST", path, strings.NewReader(url.Values{"q0": {value}}.Encode()), func(r *http.Request) {
			asBrowser("application/x-www-form-urlencoded")(r)
			r.Header.Set("X-Forwarded-For", "10.0.0.1, "+from)
		})
	}
	for range respond.PublicBurst {
		send("192.0.2.1", "many").want(t, 422)
	}
	limited := send("192.0.2.1", "many").want(t, 429)
	if limited.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantText(t, limited.body, "Please wait a moment")
	send("192.0.2.2", "many").want(t, 422)
	w.pass(respond.PublicInterval)
	send("192.0.2.1", "7").want(t, 200)
	closed := send("192.0.2.3", "8").want(t, 409)
	if strings.Contains(closed.body, "7") && strings.Contains(closed.body, "Count") {
		t.Errorf("strangers learn what was answered:\n%s", closed.body)
	}
	if i := w.interaction(asked); i.Status != store.InteractionCompleted || !strings.Contains(string(i.Response), `"n":7`) {
		t.Errorf("%s %s", i.Status, i.Response)
	}
}

// What strangers send is stored only once their form is taken: otherwise they could fill the disk.
func TestRespond_PublicFiles(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asked := w.asks("operator-user", human.PurposeNode, human.Request{Type: human.Input, Title: "Tell us", Access: "public",
		Fields: []human.Field{{Name: "n", Label: "Count", Type: "number", Required: true}, {Name: "paper", Label: "Paper", Type: "file"}}})
	path := w.link(asked, human.Anyone, func(l *store.Link) { l.Reusable = true })
	const hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of hello
	refused := w.sendFiles(path, map[string]string{"q0": "many"}, "q1", "a.txt", strings.NewReader("hello")).want(t, 422)
	if _, err := w.stores.Blobs.Stat(t.Context(), identity.System("a"), hash); !errors.Is(err, store.ErrNotFound) || strings.Contains(refused.body, "-kept") {
		t.Errorf("the file of a refused form is kept: %v\n%s", err, refused.body)
	}
	w.sendFiles(path, map[string]string{"q0": "7"}, "q1", "a.txt", strings.NewReader("hello")).want(t, 200)
	if _, err := w.stores.Blobs.Stat(t.Context(), identity.System("a"), hash); err != nil {
		t.Errorf("the file of the answer is not kept: %v", err)
	}
}
