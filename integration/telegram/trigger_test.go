package telegram

import (
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node/nodetest"
	"tandem/store"
	"tandem/trigger"
	"tandem/trigger/triggertest"
)

// station is a bot whose updates start workflows.
type station struct {
	*api
	office  *office
	channel *Channel
	shelf   *triggertest.Shelf
	service *trigger.Service
	flows   map[string]string
	// callback is the address of the bot's account.
	callback string
}

func newStation(t *testing.T, flows map[string]string) *station {
	t.Helper()
	s := &station{api: newAPI(t), office: newOffice(), shelf: triggertest.NewShelf(), flows: flows}
	s.restart()
	t.Cleanup(func() { s.service.Close() })
	return s
}

// restart makes everything anew on what was kept.
func (s *station) restart() {
	s.channel = New(s.Client())
	nodes := func(workflow string, _ int64) []trigger.Node {
		return []trigger.Node{{ID: "start", Kind: triggerKind, Config: json.RawMessage(s.flows[workflow])}}
	}
	s.service = s.shelf.Service([]trigger.Source{source{s.channel}}, nodes, func(o *trigger.Options) {
		o.Credentials = func(string) credential.Opener { return s.office.account(s.URL).Open }
		o.CredentialID = func(_ context.Context, _, name string) (string, error) { return name, nil }
		o.Callback = func(store.Account) string { return s.callback }
	})
}

func (s *station) deploy(t *testing.T) *station {
	t.Helper()
	for workflow := range s.flows {
		if err := s.service.Deploy(t.Context(), identity.System("w"), workflow, 1); err != nil {
			t.Fatalf("%s: %v", workflow, err)
		}
	}
	return s
}

// brings brings an update by the webhook.
func (s *station) brings(t *testing.T, update map[string]any) error {
	t.Helper()
	return s.channel.Receive(httptest.NewRecorder(), newRequest(t, update, botSecret), s.office.account(s.URL), s.office.handle)
}

// writes is an update of a message that was written now; fields are merged into the message.
func writes(update int, from map[string]any, text string, more map[string]any) map[string]any {
	m := map[string]any{
		"message_id": 900, "date": time.Now().Unix(), "from": from, "text": text,
		"chat": map[string]any{"id": 42, "type": "private", "first_name": "Ann", "username": "Ann_B"},
	}
	maps.Copy(m, more)
	return map[string]any{"update_id": update, "message": m}
}

func TestTrigger_Filters(t *testing.T) {
	t.Parallel()
	group := map[string]any{"chat": map[string]any{"id": -1007, "type": "supergroup", "title": "Shop", "username": "the_shop"}}
	robot := map[string]any{"id": 8, "is_bot": true, "first_name": "R"}
	post := map[string]any{"update_id": 5, "channel_post": map[string]any{"message_id": 1, "date": time.Now().Unix(), "text": "news", "chat": map[string]any{"id": -1009, "type": "channel", "title": "News"}, "sender_chat": map[string]any{"id": -1009, "type": "channel", "title": "News"}}}
	for name, c := range map[string]struct {
		config string
		update map[string]any
		starts bool
	}{
		"Message":          {``, writes(5, ann(), "hello", nil), true},
		"Group":            {``, writes(5, ann(), "hello", group), true},
		"Chat":             {`"chats":[42]`, writes(5, ann(), "hello", nil), true},
		"OtherChat":        {`"chats":[43,"@other"]`, writes(5, ann(), "hello", nil), false},
		"ChatByName":       {`"chats":["@The_Shop"]`, writes(5, ann(), "hello", group), true},
		"ChatByText":       {`"chats":["-1007"]`, writes(5, ann(), "hello", group), true},
		"Keyword":          {`"keywords":["REFUND"]`, writes(5, ann(), "a refund", nil), true},
		"Caption":          {`"keywords":["refund"]`, writes(5, ann(), "", map[string]any{"caption": "refund", "photo": []any{}}), true},
		"NoKeyword":        {`"keywords":["refund"]`, writes(5, ann(), "hello", nil), false},
		"Command":          {`"commands":["/order"]`, writes(5, ann(), "/Order 7", nil), true},
		"CommandOfThisBot": {`"commands":["order"]`, writes(5, ann(), "/order@shop_bot 7", group), true},
		"CommandOfAnother": {`"commands":["order"]`, writes(5, ann(), "/order@other_bot 7", group), false},
		"OtherCommand":     {`"commands":["/order"]`, writes(5, ann(), "/orders", nil), false},
		"NoCommand":        {`"commands":["/order"]`, writes(5, ann(), "order 7", nil), false},
		"Bot":              {``, writes(5, robot, "beep", group), false},
		"BotLetIn":         {`"filter_bot_messages":false`, writes(5, robot, "beep", group), true},
		"Post":             {`"events":["channel_post"]`, post, true},
		"PostNotListed":    {``, post, false},
		"Press":            {`"events":["callback_query"]`, clickOn(5, ann(), "private", 42, 7, "menu"), true},
		"PressNotListed":   {``, clickOn(5, ann(), "private", 42, 7, "menu"), false},
		"LongAgo":          {``, writes(5, ann(), "hello", map[string]any{"date": time.Now().Add(-time.Hour).Unix()}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := `{"credential_id":"bot"`
			if c.config != "" {
				config += "," + c.config
			}
			s := newStation(t, map[string]string{"flow": config + "}"}).deploy(t)
			if err := s.brings(t, c.update); err != nil {
				t.Fatal(err)
			}
			if got := len(s.shelf.Starts()) == 1; got != c.starts {
				t.Errorf("started %v, want %v", got, c.starts)
			}
		})
	}
}

func TestTrigger_Payload(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"credential_id":"bot","events":["message","callback_query","channel_post"]}`}).deploy(t)
	for _, u := range []map[string]any{
		writes(5, ann(), "/order@shop_bot  7 apples ", map[string]any{"reply_to_message": map[string]any{"message_id": 3, "date": 1, "chat": map[string]any{"id": 42, "type": "private"}}}),
		clickOn(6, bob(), "private", 43, 7, "menu:3"),
		{"update_id": 7, "channel_post": map[string]any{"message_id": 1, "date": time.Now().Unix(), "text": "news", "chat": map[string]any{"id": -1009, "type": "channel", "title": "News"}, "sender_chat": map[string]any{"id": -1009, "type": "channel", "title": "News"}}},
	} {
		if err := s.brings(t, u); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, one := range s.shelf.Starts() {
		p := gjson.ParseBytes(one.Payload)
		line := ""
		for _, name := range []string{"event_type", "chat_id", "chat_type", "chat_name", "user_id", "user_name", "message_id", "message_text", "command", "command_text", "reply_to_message_id", "callback_data", "telegram_payload.update_id"} {
			line += p.Get(name).String() + "|"
		}
		got = append(got, line)
	}
	want := []string{
		"message|42|private|@Ann_B|42|@Ann_B|900|/order@shop_bot  7 apples|order|7 apples|3||5|",
		"callback_query|43|private||43|Bob|7||||0|menu:3|6|",
		"channel_post|-1009|channel|News|-1009|News|1|news|||0||7|",
	}
	if !slices.Equal(got, want) {
		t.Errorf("payloads:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(s.of("getMe")); n != 1 {
		t.Errorf("the bot was asked for its name %d times", n)
	}
}

// One stream of updates serves the question and the triggers: a reply answers and starts nothing, everything else starts each workflow
// once, over restarts.
func TestTrigger_SharesTheBot(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"one": `{"credential_id":"bot","events":["message","callback_query"]}`, "two": `{"credential_id":"bot"}`}).deploy(t)
	s.office.questions[questionA] = human.Request{Type: human.Approval, Title: "Ship it?", Settings: json.RawMessage(`{"chat_id":42}`), Options: []human.Option{{Value: "approve"}, {Value: "reject"}}}
	if _, err := s.office.ask(t, s.api, human.Message{ID: "d", Kind: human.KindRequest, Interaction: s.office.interaction(questionA)}); err != nil {
		t.Fatal(err)
	}
	data, _, _ := s.lastSent(t)
	reply := answering(11, ann(), "private", 42, 501, "approve")
	reply["message"].(map[string]any)["date"] = time.Now().Unix()
	s.mu.Lock()
	s.updates = []map[string]any{writes(10, ann(), "hello", nil), reply, clickOn(12, ann(), "private", 42, 501, data[0]), writes(13, bob(), "hi", nil)}
	s.mu.Unlock()
	poll := func(until int64) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.channel.Listen(ctx, s.office.account(s.URL), s.office.handle) }()
		for offset := range s.asked {
			if offset == until {
				break
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	poll(14)
	// The process has died before the service knew that the updates were dealt with.
	s.mu.Lock()
	s.updates = []map[string]any{writes(13, bob(), "hi", nil), writes(14, ann(), "again", nil)}
	s.mu.Unlock()
	s.service.Close()
	s.restart()
	poll(15)
	kept := s.shelf.Kept()
	slices.Sort(kept)
	want := []string{
		"7001:10 started", "7001:10 started", "7001:11 ignored", "7001:11 ignored", "7001:12 ignored", "7001:13 started", "7001:13 started", "7001:14 started", "7001:14 started",
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q", kept)
	}
	if n := len(s.office.taken()); n != 2 {
		t.Errorf("%d replies to the question", n)
	}
	if allowed := s.of("getUpdates")[0].text(t, "allowed_updates"); allowed != `["message","channel_post","callback_query"]` {
		t.Errorf("asked for %s", allowed)
	}
}

// An update that could not be recorded is not passed.
func TestTrigger_NotRecorded(t *testing.T) {
	t.Parallel()
	s := newStation(t, map[string]string{"flow": `{"credential_id":"bot","commands":["order"]}`}).deploy(t)
	s.channel.names.Clear()
	s.mu.Lock()
	s.refuse["getMe"] = append(s.refuse["getMe"], refusing(500, `{"ok":false,"error_code":500,"description":"oops"}`))
	s.updates = []map[string]any{writes(10, ann(), "/order@shop_bot", nil)}
	s.mu.Unlock()
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.channel.Listen(soon, s.office.account(s.URL), s.office.handle); err == nil || !fault.From(err).Retryable {
		t.Fatalf("listened: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.channel.Listen(ctx, s.office.account(s.URL), s.office.handle) }()
	for offset := range s.asked {
		if offset == 11 {
			break
		}
	}
	stop()
	if err := <-ended; err != nil || len(s.shelf.Starts()) != 1 {
		t.Errorf("%v, %d starts", err, len(s.shelf.Starts()))
	}
}

func TestTrigger_Register(t *testing.T) {
	t.Parallel()
	deploy := func(s *station) error { return s.service.Deploy(context.Background(), identity.System("w"), "flow", 1) }
	flows := map[string]string{"flow": `{"credential_id":"bot"}`}
	t.Run("WrongToken", func(t *testing.T) {
		t.Parallel()
		s := newStation(t, flows)
		s.refuse["getMe"] = append(s.refuse["getMe"], refusing(401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`))
		if err := deploy(s); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "check the token") {
			t.Errorf("deployed: %v", err)
		}
	})
	t.Run("SetsWebhook", func(t *testing.T) {
		t.Parallel()
		s := newStation(t, flows)
		s.callback = "https://tandem.test/channels/telegram/w/bot"
		if err := deploy(s); err != nil {
			t.Fatal(err)
		}
		set := s.of("setWebhook")
		if len(set) != 1 || set[0].params["url"] != s.callback || set[0].params["secret_token"] != botSecret || set[0].text(t, "allowed_updates") != `["message","channel_post","callback_query"]` {
			t.Errorf("set %v", set)
		}
	})
	for name, callback := range map[string]string{"WebhookOfAnother": "https://tandem.test/channels/telegram/w/bot", "WebhookInTheWay": "http://localhost/channels/telegram/w/bot"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, flows)
			s.callback, s.webhook = callback, "https://elsewhere.test/hook"
			if err := deploy(s); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "webhook") || len(s.of("setWebhook")) != 0 {
				t.Errorf("deployed: %v, %v", err, s.of("setWebhook"))
			}
		})
	}
}

func TestTrigger_Conforms(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(triggerTelegram()))
}
