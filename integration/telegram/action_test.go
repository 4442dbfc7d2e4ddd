package telegram

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
	"tandem/workflow"
)

// botAPI is a fake of the Bot API. It refuses what the real one refuses, in its words.
func botAPI(t testing.TB) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, ok := strings.CutPrefix(r.URL.Path, "/bot"+actiontest.Token+"/")
		if !ok {
			refusing(404, `{"ok":false,"error_code":404,"description":"Not Found"}`)(w)
			return
		}
		params, err := readParams(r)
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
		known := map[string]string{
			"sendMessage": "text", "sendPhoto": "photo", "sendDocument": "document", "sendVideo": "video", "sendPoll": "question", "forwardMessage": "from_chat_id",
			"editMessageText": "text", "deleteMessage": "message_id", "pinChatMessage": "message_id", "banChatMember": "user_id", "getChat": "chat_id",
		}
		switch text, _ := params["text"].(string); {
		case known[method] == "":
			refusing(404, `{"ok":false,"error_code":404,"description":"Not Found"}`)(w)
			return
		case params[known[method]] == nil, params["chat_id"] == nil:
			refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: `+known[method]+` is empty"}`)(w)
			return
		case text == "broken*" && params["parse_mode"] != nil:
			refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 6"}`)(w)
			return
		case params["chat_id"] == "-5" || params["chat_id"] == -5.0:
			refusing(400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1005}}`)(w)
			return
		}
		var result any = true
		if strings.HasPrefix(method, "send") || method == "forwardMessage" || method == "editMessageText" {
			chat, _ := strconv.ParseInt(strings.Trim(stringOf(params["chat_id"]), "@"), 10, 64)
			result = map[string]any{"message_id": 501, "date": 1, "chat": map[string]any{"id": chat}, "got": params}
		}
		if method == "getChat" {
			result = map[string]any{"id": 42, "type": "private"}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result}); err != nil {
			t.Error(err)
		}
	})
}

func stringOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(raw), `"`)
}

// readParams reads the parameters of a call: of its query, its JSON, or its form, where files are told by name, type and content.
func readParams(r *http.Request) (map[string]any, error) {
	params := map[string]any{}
	for name, list := range r.URL.Query() { // order does not matter: they are named
		params[name] = list[0]
	}
	kind, with, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		raw, err := io.ReadAll(r.Body)
		if err != nil || len(raw) == 0 {
			return params, err
		}
		return params, json.Unmarshal(raw, &params)
	}
	form := multipart.NewReader(r.Body, with["boundary"])
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return params, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		params[part.FormName()] = string(raw)
		if part.FileName() != "" {
			params[part.FormName()] = map[string]any{"name": part.FileName(), "content": string(raw)}
		}
	}
}

func telegramVendor() actiontest.Vendor {
	base := "/bot" + actiontest.Token
	send := func(more string) actiontest.Sample {
		return actiontest.Sample{Config: `{"action_type":"send_message","chat_id":"42",` + more + `}`, Call: "POST " + base + "/sendMessage"}
	}
	said := func(status int, words string) actiontest.Reply {
		return actiontest.Reply{Status: status, Body: `{"ok":false,"error_code":` + strconv.Itoa(status) + `,"description":"` + words + `"}`}
	}
	file := `"file":{"base64":"aGVsbG8=","name":"a.txt"}`
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Serve: botAPI, Prefix: "/telegram",
		Once: send(`"message_text":"m"`), Read: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"/getChat","query":{"chat_id":42}}`, Call: "GET " + base + "/getChat"},
		Refusals: []actiontest.Refusal{
			{Name: "Token", Sample: send(`"message_text":"m"`), Reply: said(404, "Not Found"), Code: fault.CredentialInvalid},
			{Name: "Chat", Sample: send(`"message_text":"m"`), Reply: said(400, "Bad Request: chat not found"), Code: fault.NotFound, Part: "chat not found"},
			{Name: "Blocked", Sample: send(`"message_text":"m"`), Reply: said(403, "Forbidden: bot was blocked by the user"), Code: fault.CredentialInvalid, Part: "blocked by the user"},
			{Name: "Entities", Sample: actiontest.Sample{Config: send(`"message_text":"broken*"`).Config}, Code: fault.InvalidInput, Part: "byte offset 6"},
			{Name: "RetryAfter", Sample: send(`"message_text":"m"`), Reply: actiontest.Reply{Status: 429, Body: `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 9","parameters":{"retry_after":9}}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
			{Name: "NotOK", Sample: send(`"message_text":"m"`), Reply: actiontest.Reply{Status: 200, Body: `{"ok":false,"description":"no"}`}, Code: fault.RemoteRejected},
			{Name: "NoOK", Sample: send(`"message_text":"m"`), Reply: actiontest.Reply{Status: 200, Body: `{"result":true}`}, Code: fault.OutcomeUnknown},
			{Name: "TooLong", Sample: actiontest.Sample{Config: send(`"message_text":"` + strings.Repeat("x", 4097) + `"`).Config}, Code: fault.InvalidInput, Part: "4096"},
			{Name: "TooLongAnyway", Sample: actiontest.Sample{Config: send(`"parse_mode":"HTML","message_text":"<b>` + strings.Repeat("&amp;", 4097) + `</b>"`).Config}, Code: fault.InvalidInput, Part: "4096"},
			{Name: "LongCaption", Sample: actiontest.Sample{Config: `{"action_type":"send_photo","chat_id":"42",` + file + `,"caption":"` + strings.Repeat("x", 1025) + `"}`}, Code: fault.InvalidInput, Part: "1024"},
			{Name: "LargeFile", Sample: actiontest.Sample{Config: `{"action_type":"send_document","chat_id":"42",` + file + `}`, Call: "POST " + base + "/sendDocument"}, Reply: said(413, "Request Entity Too Large"), Code: fault.TooLarge},
			{Name: "NoText", Sample: actiontest.Sample{Config: `{"action_type":"send_message","chat_id":"42"}`}, Code: fault.InvalidInput},
			{Name: "NoChat", Sample: actiontest.Sample{Config: `{"action_type":"send_message","message_text":"m"}`}, Code: fault.InvalidInput},
			{Name: "OtherMethod", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"PUT","path":"/getChat"}`}, Code: fault.InvalidInput},
			{Name: "OtherPath", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"../botother/getMe"}`}, Code: fault.InvalidInput},
			{Name: "SendByGet", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"sendMessage","query":{"chat_id":42,"text":"m"}}`, Call: "GET " + base + "/sendMessage"}, Reply: actiontest.Reply{Status: 500}, Code: fault.RemoteError},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	base := "POST /bot" + actiontest.Token + "/"
	const file = `"file":{"base64":"aGVsbG8=","name":"报告.txt"}`
	// What the result has of Telegram's answer holds the parameters as Telegram read them.
	telegramVendor().Operations(t, []actiontest.Operation{
		{
			Name: "Send", Config: `{"action_type":"send_message","chat_id":42,"message_text":"*你好*","keyboard_config":{"inline_keyboard":[[{"text":"a","url":"https://example.com"}]]},"disable_notification":true}`, Call: base + "sendMessage",
			Body:   `{"chat_id":42,"text":"*你好*","parse_mode":"Markdown","reply_markup":{"inline_keyboard":[[{"text":"a","url":"https://example.com"}]]},"disable_notification":true}`,
			Result: `{"message_id":501,"chat_id":"42","resource_id":"501"}`,
		},
		{Name: "Plain", Config: `{"chat_id":"@shop","message_text":"broken*","parse_mode":"none","action_type":"send_message"}`, Call: base + "sendMessage", Body: `{"chat_id":"@shop","text":"broken*"}`},
		{Name: "Filled", Config: `{"action_type":"send_message","chat_id":"42","message_text":""}`, Input: `{"chat_id":"43","data":{"message_text":"from its data"}}`, Call: base + "sendMessage", Body: `{"chat_id":42,"text":"from its data"}`},
		{Name: "LongMarks", Config: `{"action_type":"send_message","chat_id":"42","parse_mode":"HTML","message_text":"` + strings.Repeat("<b>x</b>", 4000) + `"}`, Call: base + "sendMessage"},
		{
			Name: "Photo", Config: `{"action_type":"send_photo","chat_id":"42",` + file + `,"caption":"*c*","keyboard_config":{"a":1},"disable_notification":true}`, Call: base + "sendPhoto",
			Result: `{"message_id":501,"telegram_response":{"got":{"chat_id":"42","caption":"*c*","parse_mode":"Markdown","reply_markup":"{\"a\":1}","disable_notification":"true","photo":{"name":"报告.txt","content":"hello"}}}}`,
		},
		{Name: "Document", Config: `{"action_type":"send_document","chat_id":"42",` + file + `}`, Call: base + "sendDocument", Result: `{"telegram_response":{"got":{"document":{"content":"hello"}}}}`},
		{Name: "Video", Config: `{"action_type":"send_video","chat_id":"@shop",` + file + `}`, Call: base + "sendVideo", Result: `{"telegram_response":{"got":{"chat_id":"@shop","video":{"content":"hello"}}}}`},
		{Name: "Poll", Config: `{"action_type":"send_poll","chat_id":"42","question":"q","options":["a","b"]}`, Call: base + "sendPoll", Body: `{"question":"q","options":[{"text":"a"},{"text":"b"}]}`},
		{Name: "Forward", Config: `{"action_type":"forward_message","chat_id":"42","from_chat_id":"@news","message_id":7}`, Call: base + "forwardMessage", Body: `{"chat_id":42,"from_chat_id":"@news","message_id":7}`},
		{Name: "Edit", Config: `{"action_type":"edit_message","chat_id":"42","message_id":"7","message_text":"new"}`, Call: base + "editMessageText", Body: `{"chat_id":42,"message_id":7,"text":"new","parse_mode":"Markdown"}`},
		{Name: "Delete", Config: `{"action_type":"delete_message","chat_id":"42","message_id":7}`, Call: base + "deleteMessage", Body: `{"chat_id":42,"message_id":7}`, Result: `{"message_id":7,"chat_id":"42","telegram_response":true}`},
		{Name: "Pin", Config: `{"action_type":"pin_message","chat_id":"42","message_id":7}`, Call: base + "pinChatMessage", Body: `{"message_id":7}`},
		{Name: "Ban", Config: `{"action_type":"ban_user","chat_id":"42","user_id":8}`, Call: base + "banChatMember", Body: `{"user_id":8}`, Result: `{"resource_id":"8"}`},
		{Name: "Request", Config: `{"action_type":"request","method":"get","path":"getChat","query":{"chat_id":42}}`, Call: "GET /bot" + actiontest.Token + "/getChat", Query: map[string]string{"chat_id": "42"}, Result: `{"telegram_response":{"type":"private"}}`},
		{Name: "RequestBody", Config: `{"action_type":"request","method":"POST","path":"/sendMessage","body":{"chat_id":42,"text":"t"}}`, Call: base + "sendMessage", Body: `{"chat_id":42,"text":"t"}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	telegramVendor().Failures(t)
}

// TestAction_Migrated: a group that has become a supergroup is followed to its new number.
func TestAction_Migrated(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		`{"action_type":"send_message","chat_id":"-5","message_text":"m"}`,
		`{"action_type":"send_document","chat_id":-5,"file":{"base64":"aGVsbG8=","name":"a.txt"}}`,
	} {
		result, err := telegramVendor().New(t).Run(config, ``)
		if err != nil || result.Get("chat_id").Str != "-1005" {
			t.Errorf("%s: %v", result.Raw, err)
		}
	}
}

// TestAction_Repeated: a repeat finds what the first has done.
func TestAction_Repeated(t *testing.T) {
	t.Parallel()
	b := telegramVendor().New(t)
	for method, c := range map[string][2]string{
		"editMessageText": {`{"action_type":"edit_message","chat_id":"42","message_id":7,"message_text":"t"}`, "Bad Request: message is not modified: specified new message content is the same"},
		"deleteMessage":   {`{"action_type":"delete_message","chat_id":"42","message_id":7}`, "Bad Request: message to delete not found"},
	} {
		b.Answers("POST /bot"+actiontest.Token+"/"+method, actiontest.Reply{Status: 400, Body: `{"ok":false,"error_code":400,"description":"` + c[1] + `"}`})
		if result, err := b.Run(c[0], ``); err != nil || result.Get("message_id").Int() != 7 {
			t.Errorf("%s: %s: %v", method, result.Raw, err)
		}
	}
}

// TestAction_LargeFile: a file that no bot may send is refused before anything is sent.
func TestAction_LargeFile(t *testing.T) {
	t.Parallel()
	b := telegramVendor().New(t)
	call := b.Call(`{"action_type":"send_video","chat_id":"42","file":{"blob":"big"}}`, ``)
	files := &nodetest.Files{}
	files.Put("big", make([]byte, maxUpload+1))
	call.Files = files
	if _, err := b.Kind.Run(t.Context(), call); fault.CodeOf(err) != fault.TooLarge || len(b.Calls("")) != 0 {
		t.Errorf("%v", err)
	}
}

// TestAction_Effects: methods that send are sent once, also when they are called by GET.
func TestAction_Effects(t *testing.T) {
	t.Parallel()
	for call, want := range map[[2]string]workflow.Effect{
		{"GET", "/getChat"}: workflow.Idempotent, {"get", "getMe"}: workflow.Idempotent, {"GET", "sendMessage"}: workflow.Once, {"POST", "/getChat"}: workflow.Once,
	} {
		if got := effectOf(actionConfig{Method: call[0], Path: call[1]}); got != want {
			t.Errorf("%q is %s", call, got)
		}
	}
	if !slices.Contains(act(nil, nil).About.Values["action_type"], "request") {
		t.Error("there is no raw call")
	}
}
