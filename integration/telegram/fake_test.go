package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

const (
	botToken  = "7001:AAE-canary-token_x"
	botSecret = "hook-secret"
	questionA = "0f3c2a10-7b1d-8e4f-9a2b-112233445566"
	questionB = "1f3c2a10-7b1d-8e4f-9a2b-112233445566"
)

// call is one call of a method.
type call struct {
	method string
	params map[string]any
}

// text is a parameter as JSON.
func (c call) text(t *testing.T, name string) string {
	t.Helper()
	raw, err := json.Marshal(c.params[name])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// api is a fake of the Bot API. Updates are told from the offset that is asked for, as the service does.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []call
	updates []map[string]any
	webhook string
	sent    int64
	// refuse answers a method in another way; its entries are used up.
	refuse map[string][]func(http.ResponseWriter)
	// asked gets the offset of every getUpdates; idle ones wait until the caller gives up.
	asked chan int64
}

func newAPI(t *testing.T) *api {
	t.Helper()
	f := &api{sent: 500, refuse: map[string][]func(http.ResponseWriter){}, asked: make(chan int64, 100)}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func refusing(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func (f *api) serve(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+botToken+"/")
	if !ok {
		refusing(404, `{"ok":false,"error_code":404,"description":"Not Found"}`)(w)
		return
	}
	var params map[string]any
	if err := json.NewDecoder(r.Body).Decode(&params); err != nil {
		refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: no JSON"}`)(w)
		return
	}
	f.mu.Lock()
	f.calls = append(f.calls, call{method, params})
	if list := f.refuse[method]; len(list) > 0 {
		f.refuse[method] = list[1:]
		f.mu.Unlock()
		list[0](w)
		return
	}
	var result any = true
	switch method {
	case "sendMessage":
		f.sent++
		chat := params["chat_id"]
		if _, named := chat.(string); named {
			chat = -1009
		}
		result = map[string]any{"message_id": f.sent, "date": 1, "chat": map[string]any{"id": chat, "type": "private"}}
	case "getMe":
		result = map[string]any{"id": 7001, "is_bot": true, "first_name": "B", "username": "Shop_Bot"}
	case "getWebhookInfo":
		result = map[string]any{"url": f.webhook, "has_custom_certificate": false}
	case "setWebhook":
		f.webhook = params["url"].(string)
	case "getUpdates":
		offset, _ := params["offset"].(float64)
		var list []map[string]any
		for _, u := range f.updates {
			if u["update_id"].(int) >= int(offset) {
				list = append(list, u)
			}
		}
		f.updates = list
		f.asked <- int64(offset)
		if len(list) == 0 {
			if params["timeout"].(float64) > 0 {
				f.mu.Unlock()
				<-r.Context().Done()
				return
			}
			list = []map[string]any{}
		}
		result = list
	}
	f.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
}

// of returns the calls of a method.
func (f *api) of(method string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []call
	for _, c := range f.calls {
		if c.method == method {
			list = append(list, c)
		}
	}
	return list
}

// office is what stands behind the channel: a few questions and who replied.
type office struct {
	mu        sync.Mutex
	questions map[string]human.Request
	hashes    map[string]string
	threads   map[string]string
	replies   []human.Reply
	reaction  human.Reaction
	err       error
	forbid    bool // nobody may answer
}

func newOffice() *office {
	return &office{
		questions: map[string]human.Request{}, hashes: map[string]string{}, threads: map[string]string{},
		reaction: human.Reaction{Accepted: true, Text: "Thank you"},
	}
}

func (o *office) interaction(id string) store.Interaction {
	r := o.questions[id]
	return store.Interaction{Workspace: "w", ID: id, Type: r.Type, Purpose: human.PurposeNode, Status: store.InteractionPending, ArgumentsHash: o.hashes[id]}
}

func (o *office) handle(_ context.Context, r human.Reply) (human.Reaction, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := r.Interaction
	for _, thread := range r.Threads {
		if id == "" {
			id = o.threads[thread]
		}
	}
	request, ok := o.questions[id]
	switch {
	case !ok:
		return human.Reaction{Err: fault.New(fault.NotFound, "no such question")}, nil
	case r.Look && o.forbid:
		return human.Reaction{Text: "Not you", Err: fault.New(fault.Forbidden, "not you"), Interaction: store.Interaction{ID: id}}, nil
	case r.Look:
		return human.Reaction{Interaction: o.interaction(id), Request: request}, nil
	case o.err != nil:
		return human.Reaction{}, o.err
	}
	o.replies = append(o.replies, r)
	return o.reaction, nil
}

func (o *office) taken() []human.Reply {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]human.Reply(nil), o.replies...)
}

func (o *office) account(base string) human.Account {
	return human.Account{
		Account: store.Account{Workspace: "w", Channel: Name, Credential: "bot"},
		Open: func(_ context.Context, id string, types ...string) (credential.Opened, error) {
			if id != "bot" || len(types) != 1 || types[0] != "telegram_bot" {
				return credential.Opened{}, fault.Newf(fault.CredentialMissing, "no credential %q", id)
			}
			data, err := json.Marshal(map[string]string{"token": botToken, "webhook_secret": botSecret, "base_url": base})
			return credential.Opened{Type: "telegram_bot", Data: data}, err
		},
	}
}

// ask sends a message about a question that is in the office, and notes its thread.
func (o *office) ask(t *testing.T, f *api, m human.Message) (human.Receipt, error) {
	t.Helper()
	o.mu.Lock()
	m.Account, m.Request, m.Interaction = o.account(f.URL), o.questions[m.Interaction.ID], o.interaction(m.Interaction.ID)
	o.mu.Unlock()
	r, err := New(f.Client()).Send(t.Context(), m)
	o.mu.Lock()
	for _, thread := range r.Threads {
		o.threads[thread] = m.Interaction.ID
	}
	o.mu.Unlock()
	return r, err
}

// sent is the last message that the fake got, as it is told back in updates.
func (f *api) lastSent(t *testing.T) (data []string, urls []string, text string) {
	t.Helper()
	list := f.of("sendMessage")
	if len(list) == 0 {
		t.Fatal("nothing was sent")
	}
	last := list[len(list)-1]
	text, _ = last.params["text"].(string)
	markup, _ := last.params["reply_markup"].(map[string]any)
	lines, _ := markup["inline_keyboard"].([]any)
	for _, line := range lines {
		for _, b := range line.([]any) {
			b := b.(map[string]any)
			if d, ok := b["callback_data"].(string); ok {
				data = append(data, d)
			}
			if u, ok := b["url"].(string); ok {
				urls = append(urls, u)
			}
		}
	}
	return data, urls, text
}

// The persons.
func ann() map[string]any {
	return map[string]any{"id": 42, "is_bot": false, "first_name": "Ann", "username": "Ann_B", "language_code": "en"}
}

func bob() map[string]any {
	return map[string]any{"id": 43, "is_bot": false, "first_name": "Bob"}
}

func clickOn(update int, from map[string]any, chatType string, chatID, message int64, data string) map[string]any {
	return map[string]any{"update_id": update, "callback_query": map[string]any{
		"id": "q1", "from": from, "data": data, "chat_instance": "1",
		"message": map[string]any{"message_id": message, "date": 1, "chat": map[string]any{"id": chatID, "type": chatType}},
	}}
}

func answering(update int, from map[string]any, chatType string, chatID, message int64, text string) map[string]any {
	chat := map[string]any{"id": chatID, "type": chatType}
	return map[string]any{"update_id": update, "message": map[string]any{
		"message_id": 900, "date": 1, "from": from, "chat": chat, "text": text,
		"reply_to_message": map[string]any{"message_id": message, "date": 1, "chat": chat, "from": map[string]any{"id": 7001, "is_bot": true, "first_name": "B"}},
	}}
}

// bring brings an update as the service does.
func bring(t *testing.T, o *office, f *api, secret string, update map[string]any) (*httptest.ResponseRecorder, error) {
	t.Helper()
	w := httptest.NewRecorder()
	return w, New(f.Client()).Receive(w, newRequest(t, update, secret), o.account(f.URL), o.handle)
}

func newRequest(t *testing.T, update map[string]any, secret string) *http.Request {
	t.Helper()
	raw, err := json.Marshal(update)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/channels/telegram/w/bot", strings.NewReader(string(raw)))
	if secret != "" {
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	}
	return r
}

// watch is told the paths of the calls that were answered.
type watch struct {
	http.RoundTripper
	answered func(path string)
}

func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	w.answered(r.URL.Path)
	return response, err
}
