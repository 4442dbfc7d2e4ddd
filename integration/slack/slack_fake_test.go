package slack

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/human"
	"tandem/human/channeltest"
	"tandem/outbound"
	"tandem/text"
)

const (
	testToken   = "xoxb-canary-token"
	testSigning = "canary-signing-secret"
)

// fake is Slack: its Web API, the addresses it is answered at, and what it posts. It refuses what the real one refuses.
type fake struct {
	t      testing.TB
	url    string
	client *http.Client
	// guarded is what the client goes through.
	guarded *outbound.Client

	// Calls are what came, by the names of methods.
	*channeltest.Calls[call]

	mu    sync.Mutex
	users []map[string]any
	ts    int
	// kept are the messages that were posted.
	kept []map[string]any
	// token is the one that it takes.
	token string
}

// call is what was sent to a method.
type call struct {
	method string
	form   url.Values
	json   map[string]any
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{t: t, token: testToken, Calls: channeltest.New[call](t), guarded: channeltest.Client(t)}
	f.users = []map[string]any{
		member("U1", "T1", "ann", "Ann Lee", "ann@example.org"), member("U2", "T1", "bob", "Bob", "bob@example.org"),
		member("U3", "T1", "bob2", "Twin", "t1@example.org"), member("U4", "T1", "bob3", "Twin", "t2@example.org"),
		member("U9", "T9", "eve", "Eve", "ann@example.org"), // of another workspace, with somebody's address
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url, f.client = server.URL, f.guarded.HTTPClient()
	return f
}

func member(id, team, name, real, mail string) map[string]any {
	return map[string]any{"id": id, "team_id": team, "name": name, "real_name": real, "profile": map[string]any{"email": mail, "display_name": real}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	c := call{method: method}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(body, &c.json); err != nil {
			f.t.Errorf("%s: %v", method, err)
		}
	} else if strings.HasPrefix(method, "/upload/") {
		c.json = map[string]any{"content": string(body)}
	} else if c.form, err = url.ParseQuery(string(body)); err != nil {
		f.t.Errorf("%s: %v", method, err)
	} else if token == "" {
		token = c.form.Get("token")
	}
	answer, answered := f.Take(method, c)
	defer answered()
	switch {
	case answer != nil:
		answer(w)
	case strings.HasPrefix(method, "/hook/"), strings.HasPrefix(method, "/upload/"):
		fmt.Fprint(w, "ok")
	case token != f.token:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
	default:
		out := f.answer(c)
		if out["error"] == nil {
			out["ok"] = true
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			f.t.Error(err)
		}
	}
}

func (f *fake) answer(c call) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong := func(code string) map[string]any { return map[string]any{"ok": false, "error": code} }
	switch c.method {
	case "chat.postMessage", "chat.update", "chat.postEphemeral":
		channel := c.form.Get("channel")
		if c.form.Get("text") == "" || channel == "" {
			return wrong("no_text")
		}
		if raw := c.form.Get("blocks"); raw != "" {
			if problem := checkMessage([]byte(raw)); problem != "" {
				f.t.Errorf("%s: %s\n%s", c.method, problem, raw)
				return wrong("invalid_blocks")
			}
		}
		if c.method == "chat.postEphemeral" {
			return map[string]any{"message_ts": "1.9"}
		}
		f.ts++
		ts := fmt.Sprintf("1700000000.%06d", f.ts)
		if c.method == "chat.postMessage" {
			message := map[string]any{"ts": ts, "text": c.form.Get("text")}
			if raw := c.form.Get("metadata"); raw != "" {
				message["metadata"] = json.RawMessage(raw)
			}
			f.kept = append(f.kept, message)
		}
		if c.method == "chat.update" {
			ts = c.form.Get("ts")
		}
		return map[string]any{"channel": map[string]string{"#ops": "C0PS"}[channel] + strings.TrimPrefix(channel, "#ops"), "ts": ts}
	case "conversations.open":
		return map[string]any{"channel": map[string]any{"id": "D" + c.form.Get("users")}}
	case "users.lookupByEmail":
		for _, u := range f.users {
			if u["profile"].(map[string]any)["email"] == c.form.Get("email") {
				return map[string]any{"user": u}
			}
		}
		return wrong("users_not_found")
	case "users.info":
		for _, u := range f.users {
			if u["id"] == c.form.Get("user") {
				return map[string]any{"user": u}
			}
		}
		return wrong("user_not_found")
	case "auth.test":
		return map[string]any{"team_id": "T1", "team": "Acme", "user_id": "UBOT", "bot_id": "B1"}
	case "conversations.list":
		if c.form.Get("exclude_archived") == "" { // that of the trigger
			return map[string]any{"channels": []any{}}
		}
		return f.page(c, "channels", []map[string]any{{"id": "C1", "name": "one"}, {"id": "C2", "name": "two"}, {"id": "C0PS", "name": "ops"}})
	case "conversations.history", "conversations.replies":
		return f.page(c, "messages", f.kept)
	case "conversations.create":
		return map[string]any{"channel": map[string]any{"id": "CNEW", "name": c.form.Get("name"), "is_private": c.form.Get("is_private") == "true"}}
	case "conversations.invite", "conversations.setTopic", "conversations.archive", "reactions.add", "pins.list":
		return map[string]any{}
	case "chat.delete":
		return map[string]any{"channel": c.form.Get("channel"), "ts": c.form.Get("ts")}
	case "files.getUploadURLExternal":
		return map[string]any{"upload_url": f.url + "/upload/1", "file_id": "F1"}
	case "files.completeUploadExternal":
		return map[string]any{"files": []map[string]any{{"id": "F1"}}}
	case "conversations.info":
		return map[string]any{"channel": map[string]any{"id": c.form.Get("channel"), "name": map[string]string{"C0PS": "ops", "C2": "two"}[c.form.Get("channel")]}}
	case "users.list": // two on a page, whatever was asked for
		at, _ := strconv.Atoi(c.form.Get("cursor"))
		end := min(at+2, len(f.users))
		next := ""
		if end < len(f.users) {
			next = strconv.Itoa(end)
		}
		return map[string]any{"members": f.users[at:end], "response_metadata": map[string]any{"next_cursor": next}}
	case "views.open":
		raw, err := json.Marshal(c.json["view"])
		if err != nil {
			f.t.Error(err)
		}
		if problem := checkView(raw); problem != "" || c.json["trigger_id"] == "" {
			f.t.Errorf("views.open: %s\n%s", problem, raw)
			return wrong("invalid_arguments")
		}
		return map[string]any{"view": map[string]any{"id": "V1"}}
	}
	f.t.Errorf("Slack has no method %q", c.method)
	return wrong("unknown_method")
}

// page is a part of a list, one entry at a time.
func (f *fake) page(c call, name string, list []map[string]any) map[string]any {
	at, _ := strconv.Atoi(c.form.Get("cursor"))
	end := min(at+1, len(list))
	next := ""
	if end < len(list) {
		next = strconv.Itoa(end)
	}
	return map[string]any{name: list[min(at, end):end], "response_metadata": map[string]any{"next_cursor": next}}
}

// account is the account of the tests.
func (f *fake) account() human.Account {
	return channeltest.Account(Name, "slack_bot", map[string]string{"token": testToken, "signing_secret": testSigning, "base_url": f.url + "/api"})
}

// message is a question to #ops.
func (f *fake) message(change func(*human.Message)) human.Message {
	return channeltest.Question(f.account(), `{"channel":"#ops"}`, change)
}

// post signs a body as Slack does and hands it to the channel; what the channel returns as an error comes back besides the answer.
func (f *fake) post(c *Channel, a human.Account, handle human.Handle, contentType, body string, change ...func(http.Header)) (*httptest.ResponseRecorder, error) {
	r := httptest.NewRequest("POST", "/channels/slack/w1/cred", strings.NewReader(body))
	sign(r.Header, testSigning, body, time.Now())
	r.Header.Set("Content-Type", contentType)
	for _, edit := range change {
		edit(r.Header)
	}
	w := httptest.NewRecorder()
	return w, c.Receive(w, r, a, handle)
}

func sign(h http.Header, secret, body string, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

const formType = "application/x-www-form-urlencoded"

// payload is the body of a click or form.
func sentPayload(t *testing.T, v map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"payload": {string(raw)}}.Encode()
}

// click is what Slack posts when somebody presses a button.
func (f *fake) click(user, action, value string) map[string]any {
	return map[string]any{
		"type": "block_actions", "trigger_id": "trig.1", "response_url": f.url + "/hook/1", "team": map[string]any{"id": "T1"}, "enterprise": nil,
		"user": map[string]any{"id": user, "team_id": "T1"}, "channel": map[string]any{"id": "C0PS"}, "message": map[string]any{"ts": "1700000000.000001"},
		"actions": []any{map[string]any{"type": "button", "action_id": action, "value": value, "action_ts": "1700000001.1"}},
	}
}

// checkMessage checks the blocks of a message as far as Slack's documents say what it takes.
func checkMessage(raw []byte) string {
	return checkBlocks(raw, 50, "header", "section", "context", "rich_text", "actions")
}

func checkView(raw []byte) string {
	var v struct {
		Type     string          `json:"type"`
		Title    json.RawMessage `json:"title"`
		Submit   json.RawMessage `json:"submit"`
		Close    json.RawMessage `json:"close"`
		Callback string          `json:"callback_id"`
		Metadata string          `json:"private_metadata"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	if v.Type != "modal" || text.UTF16(v.Metadata) > 3000 || text.UTF16(v.Callback) > 255 {
		return "the view is not a modal within its bounds"
	}
	for _, text := range []json.RawMessage{v.Title, v.Submit, v.Close} {
		if text != nil {
			if p := checkText(text, 24, "plain_text"); p != "" {
				return p
			}
		}
	}
	if v.Title == nil || strings.Contains(string(v.Blocks), `"input"`) && v.Submit == nil {
		return "a modal has a title, and one with inputs a submit"
	}
	return checkBlocks(v.Blocks, 100, "section", "input")
}

func checkText(raw json.RawMessage, limit int, kinds ...string) string {
	var t struct {
		Type, Text string
		Emoji      *bool
		Verbatim   bool
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return err.Error()
	}
	if !slices.Contains(kinds, t.Type) || t.Text == "" || text.UTF16(t.Text) > limit {
		return fmt.Sprintf("a text of type %q and %d characters where %q and %d are allowed", t.Type, text.UTF16(t.Text), kinds, limit)
	}
	return ""
}

func checkBlocks(raw []byte, most int, kinds ...string) string {
	var blocks []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return err.Error()
	}
	if len(blocks) == 0 || len(blocks) > most {
		return fmt.Sprintf("%d blocks", len(blocks))
	}
	ids := map[string]bool{}
	for _, b := range blocks {
		var kind, id string
		if json.Unmarshal(b["type"], &kind) != nil || !slices.Contains(kinds, kind) {
			return "a block of type " + kind
		}
		if b["block_id"] != nil {
			if json.Unmarshal(b["block_id"], &id) != nil || text.UTF16(id) > 255 || ids[id] && id != "" {
				return "a block_id that is too long or there twice: " + id
			}
			ids[id] = true
		}
		problem := ""
		switch kind {
		case "header":
			problem = checkText(b["text"], 150, "plain_text")
		case "section":
			problem = checkText(b["text"], 3000, "mrkdwn", "plain_text")
		case "context":
			var list []json.RawMessage
			if json.Unmarshal(b["elements"], &list) != nil || len(list) == 0 || len(list) > 10 {
				return "context elements"
			}
			for _, e := range list {
				problem += checkText(e, 2000, "mrkdwn", "plain_text")
			}
		case "rich_text":
			if !strings.Contains(string(b["elements"]), `"rich_text_preformatted"`) {
				problem = "rich text of another form"
			}
		case "actions":
			problem = checkElements(b["elements"], 25)
		case "input":
			if problem = checkText(b["label"], 2000, "plain_text"); problem == "" {
				problem = checkElement(b["element"])
			}
		}
		if problem != "" {
			return kind + ": " + problem
		}
	}
	return ""
}

func checkElements(raw json.RawMessage, most int) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > most {
		return "elements"
	}
	ids := map[string]bool{}
	for _, e := range list {
		var id struct {
			ActionID string `json:"action_id"`
		}
		if json.Unmarshal(e, &id) != nil || id.ActionID == "" || ids[id.ActionID] {
			return "an action_id that is missing or there twice"
		}
		ids[id.ActionID] = true
		if p := checkElement(e); p != "" {
			return p
		}
	}
	return ""
}

func checkElement(raw json.RawMessage) string {
	var e struct {
		Type        string          `json:"type"`
		ActionID    string          `json:"action_id"`
		Text        json.RawMessage `json:"text"`
		Value       string          `json:"value"`
		URL         string          `json:"url"`
		Style       string          `json:"style"`
		Placeholder json.RawMessage `json:"placeholder"`
		Options     []struct {
			Text  json.RawMessage `json:"text"`
			Value string          `json:"value"`
		} `json:"options"`
		Confirm *struct {
			Title, Text, Confirm, Deny json.RawMessage
		} `json:"confirm"`
		MaxLength int   `json:"max_length"`
		Decimal   *bool `json:"is_decimal_allowed"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err.Error()
	}
	if text.UTF16(e.ActionID) > 255 || e.ActionID == "" {
		return "action_id"
	}
	if e.Placeholder != nil {
		if p := checkText(e.Placeholder, 150, "plain_text"); p != "" {
			return p
		}
	}
	most := map[string]int{"static_select": 100, "multi_static_select": 100, "checkboxes": 10, "radio_buttons": 10}
	switch e.Type {
	case "button":
		if p := checkText(e.Text, 75, "plain_text"); p != "" || text.UTF16(e.Value) > 2000 || text.UTF16(e.URL) > 3000 || !slices.Contains([]string{"", "primary", "danger"}, e.Style) {
			return "button " + p
		}
		if c := e.Confirm; c != nil {
			return checkText(c.Title, 100, "plain_text") + checkText(c.Text, 300, "plain_text") + checkText(c.Confirm, 30, "plain_text") + checkText(c.Deny, 30, "plain_text")
		}
	case "static_select", "multi_static_select", "checkboxes", "radio_buttons":
		if len(e.Options) == 0 || len(e.Options) > most[e.Type] {
			return fmt.Sprintf("%d options in %s", len(e.Options), e.Type)
		}
		for _, o := range e.Options {
			if p := checkText(o.Text, 75, "plain_text"); p != "" || o.Value == "" || text.UTF16(o.Value) > 150 {
				return "option " + p
			}
		}
	case "plain_text_input":
		if e.MaxLength < 1 || e.MaxLength > 3000 {
			return "max_length"
		}
	case "number_input":
		if e.Decimal == nil {
			return "is_decimal_allowed is missing"
		}
	case "email_text_input", "datepicker":
	default:
		return "an element of type " + e.Type
	}
	return ""
}
