package app

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
)

const telegramToken, telegramSecret = "7001:AAE-canary-token", "canary-hook-secret"

// telegramSite is an instance with a bot. Ann is 42 and Bob 43; a chat with a person has their number. The instance is not reached by
// https, so it polls; what is brought by a webhook is taken all the same.
type telegramSite struct {
	channelSite
	*wire
	credential string

	guard   sync.Mutex
	sent    int64
	texts   map[int64]string // what was sent, by the number of its message
	updates []map[string]any
	more    chan struct{} // closed with every update
}

const telegramPath = "POST /bot" + telegramToken + "/"

func openTelegram(t *testing.T) *telegramSite {
	t.Helper()
	return telegramOn(t, openChannels(t))
}

// telegramOn adds the bot to an instance.
func telegramOn(t *testing.T, x channelSite) *telegramSite {
	t.Helper()
	s := &telegramSite{channelSite: x, texts: map[int64]string{}, more: make(chan struct{}), sent: 500}
	s.wire = newWire(t, s.answers)
	s.credential = s.keep(t, "telegram_bot", map[string]any{"token": telegramToken, "webhook_secret": telegramSecret, "base_url": s.URL})
	return s
}

func (s *telegramSite) answers(w http.ResponseWriter, c wireCall) {
	method, ok := strings.CutPrefix(c.name, telegramPath)
	if !ok {
		s.says(w, http.StatusNotFound, map[string]any{"ok": false, "error_code": 404, "description": "Not Found"})
		return
	}
	var result any = true
	switch method {
	case "sendMessage":
		s.guard.Lock()
		s.sent++
		s.texts[s.sent] = c.body.Get("text").Str
		result = map[string]any{"message_id": s.sent, "date": 1, "chat": map[string]any{"id": c.body.Get("chat_id").Int(), "type": "private"}}
		s.guard.Unlock()
	case "getUpdates":
		result = s.poll(c)
	case "getMe":
		result = map[string]any{"id": 7001, "is_bot": true, "first_name": "Shop", "username": "shop_bot"}
	case "getWebhookInfo":
		result = map[string]any{"url": ""}
	case "editMessageText", "answerCallbackQuery":
	default:
		s.t.Errorf("Telegram has no method %q", method)
	}
	s.says(w, http.StatusOK, map[string]any{"ok": true, "result": result})
}

// poll forgets the updates before an offset, and waits for others.
func (s *telegramSite) poll(c wireCall) []map[string]any {
	for {
		s.guard.Lock()
		s.updates = slices.DeleteFunc(s.updates, func(u map[string]any) bool { return u["update_id"].(int64) < c.body.Get("offset").Int() })
		list, more := slices.Clone(s.updates), s.more
		s.guard.Unlock()
		if len(list) > 0 {
			return list
		}
		select {
		case <-more:
		case <-c.gone:
			return []map[string]any{}
		}
	}
}

// tell lets the bot be told of an update when it polls.
func (s *telegramSite) tell(update map[string]any) {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.updates = append(s.updates, update)
	close(s.more)
	s.more = make(chan struct{})
}

// ask starts a workflow that asks in a chat.
func (s *telegramSite) ask(t *testing.T, chat, more string) (execution string, q api.Interaction, asked gjson.Result) {
	t.Helper()
	config := `{title: "Ship <it>?", description: "All tests pass.", chat_id: ` + chat + `, credential_id: ` + s.credential + more + `}`
	execution, q = s.askedIn(t, askOf("telegram", "TELEGRAM_INTERACTION", config), `{"build":9}`)
	asked = s.gets(t, telegramPath+"sendMessage", hasText(`Ship \u0026lt;it\u0026gt;?`, "All tests pass.", "build"))
	s.channelSite.sent(t, q.ID, "request", 1)
	return execution, q, asked
}

// telegramButton is what a button brings back, telegramLink where one leads.
func telegramButton(t *testing.T, message gjson.Result, label string) string {
	t.Helper()
	for _, b := range message.Get("reply_markup.inline_keyboard|@flatten").Array() {
		if b.Get("text").Str == label && b.Get("callback_data").Str != "" {
			return b.Get("callback_data").Str
		}
	}
	t.Fatalf("there is no button %q in %s", label, message.Raw)
	return ""
}

func telegramLink(message gjson.Result) string {
	return message.Get(`reply_markup.inline_keyboard|@flatten|#(url).url`).Str
}

func telegramPerson(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": "P", "language_code": "en"}
}

// pressed is the update of a button, wrote that of a text, both about the first message of a chat.
func telegramPressed(update, from, chat int64, kind, data string) map[string]any {
	return map[string]any{"update_id": update, "callback_query": map[string]any{
		"id": "q", "from": telegramPerson(from), "data": data, "message": map[string]any{"message_id": 501, "chat": map[string]any{"id": chat, "type": kind}},
	}}
}

func telegramWrote(update, from, chat int64, kind, text string) map[string]any {
	in := map[string]any{"id": chat, "type": kind}
	return map[string]any{"update_id": update, "message": map[string]any{
		"message_id": 900 + update, "from": telegramPerson(from), "chat": in, "text": text,
		"reply_to_message": map[string]any{"message_id": 501, "chat": in, "from": map[string]any{"id": 7001, "is_bot": true}},
	}}
}

// bring brings an update as a webhook does, and returns what is to be told.
func (s *telegramSite) bring(t *testing.T, secret string, update map[string]any) answer {
	t.Helper()
	return s.post(t, s.callback("telegram", s.credential), string(wireJSON(t, update)), "Content-Type", "application/json", "X-Telegram-Bot-Api-Secret-Token", secret)
}

func TestChannelTelegram_Click(t *testing.T) {
	t.Parallel()
	s := openTelegram(t)
	execution, q, asked := s.ask(t, "-100", `, target_users: [42]`)
	if link := telegramLink(asked); link != "" {
		t.Errorf("everybody in the group reads a link that answers for somebody: %q", link)
	}
	yes := telegramButton(t, asked, "Approve")
	refused(t, s.bring(t, "another secret", telegramPressed(1, 42, -100, "group", yes)), http.StatusUnauthorized, "unauthorized")
	if got := want[map[string]any](t, s.bring(t, telegramSecret, telegramPressed(2, 43, -100, "group", yes)), http.StatusOK); got["method"] != "answerCallbackQuery" || got["show_alert"] != true || got["text"] != "You may not answer this question." {
		t.Errorf("Bob is told %v", got)
	}
	forged := yes[:len(yes)-4] + "AAAA"
	if got := want[map[string]any](t, s.bring(t, telegramSecret, telegramPressed(3, 42, -100, "group", forged)), http.StatusOK); got["show_alert"] != true {
		t.Errorf("a button that was made up: %v", got)
	}
	s.waits(t, execution, q.ID)
	for range 2 { // the second is the vendor's retry
		if got := want[map[string]any](t, s.bring(t, telegramSecret, telegramPressed(4, 42, -100, "group", yes)), http.StatusOK); got["text"] != "Thank you, your answer was taken." {
			t.Errorf("Ann is told %v", got)
		}
	}
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("responder").Str != "telegram:42" {
		t.Errorf("payload %s", payload.Raw)
	}
	notice := s.gets(t, telegramPath+"editMessageText", hasText("Answered by"))
	if notice.Get("message_id").Int() != 501 || notice.Get("reply_markup").Exists() {
		t.Errorf("the buttons stay: %s", notice.Raw)
	}
	if got := want[map[string]any](t, s.bring(t, telegramSecret, telegramPressed(5, 42, -100, "group", telegramButton(t, asked, "Reject"))), http.StatusOK); got["text"] != "The question has ended; nothing is needed any more." {
		t.Errorf("Ann is told %v", got)
	}
	s.once(t, q.ID)
}

func TestChannelTelegram_Reply(t *testing.T) {
	t.Parallel()
	s := openTelegram(t)
	execution, q, _ := s.ask(t, "42", `, target_users: [42]`)
	s.tell(telegramWrote(11, 43, 42, "private", "Approved"))
	s.gets(t, telegramPath+"sendMessage", hasText("You may not answer this question."))
	s.replied(t, q.ID, 1, "Approved")
	s.tell(telegramWrote(12, 42, 42, "private", "can you explain?"))
	s.replied(t, q.ID, 2, "can you explain?")
	back := s.gets(t, telegramPath+"sendMessage", hasText("We could not tell what your reply means", "can you explain?"))
	if back.Get("reply_parameters.message_id").Int() != 501 || telegramLink(back) == "" {
		t.Errorf("asked back %s", back.Raw)
	}
	s.waits(t, execution, q.ID)
	if n := s.count(telegramPath + "sendMessage"); n != 3 { // the question, what Bob is told, and this
		t.Errorf("%d messages", n)
	}
	s.tell(telegramWrote(13, 42, 42, "private", "同意"))
	if payload := s.goesOn(t, execution, q.ID, "approve confirmed result"); payload.Get("user_response").Str != "同意" || payload.Get("responder").Str != "telegram:42" {
		t.Errorf("payload %s", payload.Raw)
	}
	s.gets(t, telegramPath+"sendMessage", hasText("Thank you, your answer was taken."))
	// The service brings it again by the other way: each update counts once.
	want[any](t, s.bring(t, telegramSecret, telegramWrote(13, 42, 42, "private", "同意")), http.StatusOK)
	s.gets(t, telegramPath+"editMessageText", hasText("Answered by"))
	if d := s.once(t, q.ID); len(d.Responses) != 3 {
		t.Errorf("replies %+v", d.Responses)
	}
}

func TestChannelTelegram_LinkAndRisk(t *testing.T) {
	t.Parallel()
	s := openTelegram(t)
	execution, q, asked := s.ask(t, "42", `, target_users: [42], risk: high`)
	if got := s.bring(t, telegramSecret, telegramWrote(1, 42, 42, "private", "I approve this.")); got.status != http.StatusOK || len(got.body) != 0 {
		t.Errorf("told %s besides what is asked back", got.body)
	}
	s.replied(t, q.ID, 1, "I approve this.")
	s.gets(t, telegramPath+"sendMessage", hasText("not taken from a written reply"))
	s.byLink(t, execution, q.ID, telegramLink(asked), "Ship &lt;it&gt;?")
	s.gets(t, telegramPath+"editMessageText", hasText("Answered by"))
}

func TestChannelTelegram_Down(t *testing.T) {
	t.Parallel()
	s := openTelegram(t)
	s.instead(telegramPath+"sendMessage", http.StatusBadGateway, `{"ok":false,"error_code":502,"description":"Bad Gateway"}`)
	s.instead(telegramPath+"sendMessage", http.StatusTooManyRequests, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":300}}`)
	execution, q := s.askedIn(t, askOf("telegram", "TELEGRAM_INTERACTION", `{title: Q, chat_id: 42, credential_id: `+s.credential+`, approvers: [operator], timeout_seconds: 60}`), `{}`)
	s.fails(t, execution, q.ID, 2)
}
