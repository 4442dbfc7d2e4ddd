package trello

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
)

// fake is the API of Trello with one board, b1, and one list, l1. It refuses what the real one refuses.
type fake struct {
	t        testing.TB
	mu       sync.Mutex
	cards    []map[string]any // newest first
	comments []map[string]any
	labels   map[string]bool
}

const (
	cardCount = 600
	theKey    = "canary-key"
)

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t, labels: map[string]bool{}, comments: []map[string]any{}}
	for n := range cardCount {
		f.cards = append(f.cards, map[string]any{"id": fmt.Sprintf("card%04d", cardCount-n), "desc": ""})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"POST /1/cards": f.create, "GET /1/cards/{id}": f.get, "PUT /1/cards/{id}": f.change, "DELETE /1/cards/{id}": f.remove, "POST /1/cards/{id}/idLabels": f.label,
		"POST /1/cards/{id}/actions/comments": f.comment, "GET /1/cards/{id}/actions": func(w http.ResponseWriter, _ *http.Request) { actiontest.Write(t, w, 200, f.comments) },
		"GET /1/lists/l1/cards": f.list, "GET /1/boards/b1/cards": f.list,
		"GET /1/members/me/boards": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Rate-Limit-Api-Token-Max", "100")
			w.Header().Set("X-Rate-Limit-Api-Token-Remaining", "99")
			actiontest.Write(t, w, 200, []any{map[string]any{"id": "b1"}, map[string]any{"id": "b2"}})
		},
		"GET /1/boards/b1/lists": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, []any{map[string]any{"id": "l1"}})
		},
		"PUT /1/thing": func(w http.ResponseWriter, r *http.Request) { actiontest.Write(t, w, 200, actiontest.Read(t, r)) },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if strings.Contains(r.URL.RawQuery, "token") || r.Header.Get("Authorization") != `OAuth oauth_consumer_key="`+theKey+`", oauth_token="`+actiontest.Token+`"` {
				f.plain(w, 401, "invalid key")
				return
			}
			serve(w, r)
		})
	}
	return m
}

// plain refuses as Trello does: with a text.
func (f *fake) plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if _, err := io.WriteString(w, text); err != nil {
		f.t.Error(err)
	}
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	if v["idList"] != "l1" {
		f.plain(w, 400, "invalid value for idList")
		return
	}
	v["id"], v["url"] = "card9999", "https://trello.com/c/x/9999"
	f.cards = append([]map[string]any{v}, f.cards...)
	actiontest.Write(f.t, w, 200, v)
}

func (f *fake) find(w http.ResponseWriter, r *http.Request) int {
	i := slices.IndexFunc(f.cards, func(v map[string]any) bool { return v["id"] == r.PathValue("id") })
	if i < 0 {
		f.plain(w, 404, "The requested resource was not found.")
	}
	return i
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	if i := f.find(w, r); i >= 0 {
		actiontest.Write(f.t, w, 200, f.cards[i])
	}
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	if f.find(w, r) < 0 {
		return
	}
	v := actiontest.Read(f.t, r)
	v["id"], v["url"] = r.PathValue("id"), "https://trello.com/c/x/5"
	actiontest.Write(f.t, w, 200, v)
}

func (f *fake) remove(w http.ResponseWriter, r *http.Request) {
	if i := f.find(w, r); i >= 0 {
		f.cards = slices.Delete(f.cards, i, i+1)
		actiontest.Write(f.t, w, 200, map[string]any{"limits": map[string]any{}})
	}
}

func (f *fake) label(w http.ResponseWriter, r *http.Request) {
	id, _ := actiontest.Read(f.t, r)["value"].(string)
	if f.labels[id] {
		f.plain(w, 400, "that label is already on the card")
		return
	}
	f.labels[id] = true
	actiontest.Write(f.t, w, 200, []any{id})
}

func (f *fake) comment(w http.ResponseWriter, r *http.Request) {
	v := map[string]any{"id": "action1", "data": actiontest.Read(f.t, r)}
	f.comments = append(f.comments, v)
	actiontest.Write(f.t, w, 200, v)
}

// list is a page of cards before an id. Trello has an order of its own on a list; here it is the other way round.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	from := 0
	if before := r.URL.Query().Get("before"); before != "" {
		from = slices.IndexFunc(f.cards, func(v map[string]any) bool { return v["id"] == before }) + 1
	}
	page, _ := actiontest.Part(f.cards, from, actiontest.Number(r, "limit", 1000))
	slices.Reverse(page)
	actiontest.Write(f.t, w, 200, page)
}

func vendor() actiontest.Vendor {
	card := actiontest.Sample{Config: `{"action_type":"create_card","list_id":"l1","name":"n","desc":"d"}`, Call: "POST /1/cards"}
	comment := actiontest.Sample{Config: `{"action_type":"add_comment","card_id":"card0005","text":"c"}`, Call: "POST /1/cards/card0005/actions/comments"}
	get := actiontest.Sample{Config: `{"action_type":"get_card","card_id":"card0005"}`, Call: "GET /1/cards/card0005"}
	list := actiontest.Sample{Config: `{"action_type":"list_cards","list_id":"l1"}`, Call: "GET /1/lists/l1/cards"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind: act, Serve: newFake, Prefix: "/trello", Credential: map[string]string{"key": theKey}, Once: card, Read: get, Settled: []actiontest.Sample{card, comment}, Pages: list, Total: cardCount,
		Refusals: []actiontest.Refusal{
			{Name: "LimitWithoutTime", Sample: card, Reply: actiontest.Reply{Status: 429, Body: `{"error":"API_TOKEN_LIMIT_EXCEEDED","message":"Rate limit exceeded"}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 10},
			{Name: "Validation", Sample: only(`{"action_type":"create_card","list_id":"none","name":"n"}`), Code: fault.RemoteRejected, Part: "invalid value for idList"},
			{Name: "NoName", Sample: only(`{"action_type":"create_card","list_id":"l1"}`), Code: fault.InvalidInput, Part: "name"},
			{Name: "NoList", Sample: only(`{"action_type":"list_cards"}`), Code: fault.InvalidInput, Part: "list_id or board_id"},
			{Name: "OtherCard", Sample: only(`{"action_type":"get_card","card_id":"none"}`), Code: fault.NotFound},
			{Name: "DeleteOther", Sample: only(`{"action_type":"delete_card","card_id":"none"}`), Code: fault.NotFound},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "Create", Config: `{"action_type":"create_card","list_id":"l1","name":"n","desc":"d","due":"2026-11-20T12:00:00Z","labels":["a"],"members":["m"]}`, Call: "POST /1/cards",
			Body: `{"idList":"l1","name":"n","due":"2026-11-20T12:00:00Z","idLabels":["a"],"idMembers":["m"]}`, Text: `d\n\n[//]: # (tandem `,
			Result: `{"success":true,"action":"create_card","resource_id":"card9999","resource_url":"https://trello.com/c/x/9999"}`,
		},
		{Name: "InputFills", Config: `{"action_type":"create_card","list_id":"l1"}`, Input: `{"data":{"name":"n","list_id":"other"}}`, Call: "POST /1/cards", Body: `{"idList":"l1","name":"n"}`},
		{Name: "Comment", Config: `{"action_type":"add_comment","card_id":"card0005","text":"c"}`, Call: "POST /1/cards/card0005/actions/comments", Text: `"c\n\n[//]: # (tandem `, Result: `{"resource_id":"action1"}`},
		{Name: "Update", Config: `{"action_type":"update_card","card_id":"card0005","name":"x","desc":"y"}`, Call: "PUT /1/cards/card0005", Body: `{"name":"x","desc":"y"}`, Result: `{"resource_id":"card0005"}`},
		{Name: "Archive", Config: `{"action_type":"archive_card","card_id":"card0005"}`, Call: "PUT /1/cards/card0005", Body: `{"closed":true}`},
		{Name: "Delete", Config: `{"action_type":"delete_card","card_id":"card0005"}`, Call: "DELETE /1/cards/card0005", Result: `{"resource_id":"card0005"}`},
		{Name: "Move", Config: `{"action_type":"move_card","card_id":"card0005","list_id":"l2"}`, Call: "PUT /1/cards/card0005", Body: `{"idList":"l2"}`},
		{Name: "Label", Config: `{"action_type":"add_label","card_id":"card0005","label_id":"a"}`, Call: "POST /1/cards/card0005/idLabels", Body: `{"value":"a"}`, Result: `{"resource_id":"card0005","trello_response":["a"]}`},
		{Name: "Boards", Config: `{"action_type":"list_boards","limit":1}`, Call: "GET /1/members/me/boards", Result: `{"items":[{"id":"b1"}],"truncated":true,"next_cursor":"1@","rate_limit_info":{"limit":100,"remaining":99}}`},
		{Name: "BoardsFromThere", Config: `{"action_type":"list_boards","cursor":"1@"}`, Call: "GET /1/members/me/boards", Result: `{"items":[{"id":"b2"}],"truncated":false}`},
		{Name: "Lists", Config: `{"action_type":"list_lists","board_id":"b1"}`, Call: "GET /1/boards/b1/lists", Result: `{"items":[{"id":"l1"}]}`},
		{Name: "CardsOfBoard", Config: `{"action_type":"list_cards","board_id":"b1","limit":1}`, Call: "GET /1/boards/b1/cards", Result: `{"items":[{"id":"card0600"}]}`},
		{Name: "Get", Config: `{"action_type":"get_card","card_id":"card0005"}`, Call: "GET /1/cards/card0005", Result: `{"trello_response":{"id":"card0005"}}`},
		{Name: "Request", Config: `{"action_type":"request","method":"PUT","path":"/1/thing","query":{"a":1},"body":{"id":"x"}}`, Call: "PUT /1/thing", Query: map[string]string{"a": "1"}, Body: `{"id":"x"}`, Result: `{"resource_id":"x"}`},
		{Name: "RequestBelow", Config: `{"action_type":"request","method":"GET","path":"cards/card0005"}`, Call: "GET /1/cards/card0005"},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_Again: what is so already is a success.
func TestAction_Again(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	for _, config := range []string{`{"action_type":"add_label","card_id":"card0005","label_id":"a"}`, `{"action_type":"delete_card","card_id":"card0005"}`} {
		call := b.Call(config, ``)
		for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
			out, err := b.Kind.Run(context.Background(), call)
			if err != nil {
				t.Errorf("%s: %v", config, err)
				continue
			}
			if _, ok := out.(node.Done); !ok {
				t.Errorf("%s: %v", config, out)
			}
		}
	}
}
