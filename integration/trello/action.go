package trello

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	BoardID string          `json:"board_id" with:"action_type=list_lists|list_cards" doc:"The id of the board." zh:"看板：看板的编号。"`
	ListID  string          `json:"list_id" with:"action_type=create_card|update_card|move_card|list_cards" doc:"The id of the list." zh:"列表：列表的编号。"`
	CardID  string          `json:"card_id" with:"action_type=add_comment|update_card|archive_card|delete_card|move_card|add_label|get_card" doc:"The id of the card, or the short one of its address." zh:"卡片：卡片的编号，或其地址中的短编号。"`
	Name    string          `json:"name" with:"action_type=create_card|update_card" doc:"What the card is called." zh:"名称：卡片的名称。"`
	Desc    string          `json:"desc" with:"action_type=create_card|update_card" doc:"The text of the card." zh:"描述：卡片的内容。"`
	Due     string          `json:"due" with:"action_type=create_card|update_card" doc:"When it is due, as a time such as 2026-11-20T12:00:00Z." zh:"截止时间：例如 2026-11-20T12:00:00Z。"`
	Labels  []string        `json:"labels" with:"action_type=create_card|update_card" doc:"The ids of its labels." zh:"标签：标签的编号。"`
	Members []string        `json:"members" with:"action_type=create_card|update_card" doc:"The ids of the people who care for it." zh:"成员：负责人的编号。"`
	LabelID string          `json:"label_id" with:"action_type=add_label" doc:"The id of the label." zh:"标签：所添加标签的编号。"`
	Text    string          `json:"text" with:"action_type=add_comment" doc:"The text of the comment." zh:"评论：评论的内容。"`
	Method  string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path    string          `json:"path" with:"action_type=request" doc:"The path below the address of the API." zh:"路径：API 地址下的路径。"`
	Query   node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
	Body    json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() { c.ActionType, c.Limit = "create_card", action.DefaultLimit }

type actionResult struct {
	action.Result
	Response json.RawMessage `json:"trello_response" doc:"The answer of Trello; null for lists." zh:"Trello 响应：Trello 的原始响应；列表为 null。"`
}

// act acts on boards.
func act(client *outbound.Client) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			api, err := trello().Open(ctx, client, call)
			return &acting{ctx: ctx, call: call, cfg: cfg, api: api}, err
		},
		End: func(out *actionResult, cfg actionConfig) { out.Done(cfg.ActionType) },
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.TRELLO", Title: node.Says("Trello", "Trello"),
		Description: node.Says("Works on Trello: makes, changes, moves and reads cards, with comments and labels.", "操作 Trello：创建、更改、移动与读取卡片，以及评论和标签。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Trello has answered.", "Trello 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Puts a card on a list for an order that could not be shipped.", "为无法发货的订单创建卡片。"),
			Config:  `{"credential_id": "trello_acme", "action_type": "create_card", "list_id": "5abbe4b7ddc1b351ef961414", "name": "Order {{order}} is stuck"}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"id": "5abbe4b7ddc1b351ef961499", "url": "https://trello.com/c/nqPiDKmw/9"}`},
			Output:  `{"result": {"success": true, "action": "create_card", "resource_id": "5abbe4b7ddc1b351ef961499", "resource_url": "https://trello.com/c/nqPiDKmw/9", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "trello_response": {"id": "5abbe4b7ddc1b351ef961499", "url": "https://trello.com/c/nqPiDKmw/9"}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "create_card", Effect: workflow.Once, Needs: []string{"list_id", "name"}, Do: steps.Does((*acting).createCard),
			Inquire: steps.Asks((*acting).findCard)},
		{Name: "add_comment", Effect: workflow.Once, Needs: []string{"card_id", "text"}, Do: steps.Does((*acting).comment),
			Inquire: steps.Asks((*acting).findComment)},
		{Name: "update_card", Effect: workflow.Idempotent, Needs: []string{"card_id", "name|desc|due|labels|members|list_id"},
			Do: steps.Does((*acting).update)},
		{Name: "archive_card", Effect: workflow.Idempotent, Needs: []string{"card_id"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.change(rest.Fields{"closed": true}) })},
		{Name: "delete_card", Effect: workflow.Idempotent, Needs: []string{"card_id"}, Do: steps.Does((*acting).delete)},
		{Name: "move_card", Effect: workflow.Idempotent, Needs: []string{"card_id", "list_id"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.change(rest.Fields{"idList": a.cfg.ListID}) })},
		{Name: "add_label", Effect: workflow.Idempotent, Needs: []string{"card_id", "label_id"}, Do: steps.Does((*acting).addLabel)},
		{Name: "list_boards", Effect: workflow.Idempotent, Lists: true, Do: steps.Does(func(a *acting) (actionResult, error) { return a.whole("/members/me/boards") })},
		{Name: "list_lists", Effect: workflow.Idempotent, Lists: true, Needs: []string{"board_id"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.whole(rest.Path("boards", a.cfg.BoardID, "lists")) })},
		{Name: "list_cards", Effect: workflow.Idempotent, Lists: true, Needs: []string{"list_id|board_id"}, Do: steps.Does((*acting).listCards)},
		{Name: "get_card", Effect: workflow.Idempotent, Needs: []string{"card_id"}, Do: steps.Does((*acting).get)},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	})
}

// acting is one run of an operation.
type acting struct {
	ctx  context.Context
	call *node.Call
	cfg  actionConfig
	api  *rest.API
}

// marker stands in a text where people do not see it: a link that nothing refers to.
func (a *acting) marker() string { return "[//]: # (tandem " + action.Marker(a.call, "trello") + ")" }

// marked is a text with the marker.
func (a *acting) marked(text string) string { return strings.TrimLeft(text+"\n\n"+a.marker(), "\n") }

// made is the result of an answer that is one resource.
func made(answer rest.Answer) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get("id").Str, answer.Get("url").Str, answer.Limits()
	return out
}

func (a *acting) do(c rest.Call) (actionResult, error) {
	c.Fields = []string{"id"}
	answer, err := a.api.Do(a.ctx, c)
	if err != nil {
		return actionResult{}, err
	}
	return made(answer), nil
}

func (a *acting) card() string { return rest.Path("cards", a.cfg.CardID) }

// fields are what the configuration says of a card.
func (a *acting) fields() rest.Fields {
	return rest.Fields{}.Text("name", a.cfg.Name).Text("desc", a.cfg.Desc).Text("due", a.cfg.Due).Text("idList",
		a.cfg.ListID).Texts("idLabels", a.cfg.Labels).Texts("idMembers", a.cfg.Members)
}

func (a *acting) createCard() (actionResult, error) {
	body := a.fields()
	body["desc"] = a.marked(a.cfg.Desc)
	return a.do(rest.Call{Method: "POST", Path: "/cards", Body: body})
}

func (a *acting) comment() (actionResult, error) {
	return a.do(rest.Call{Method: "POST", Path: a.card() + "/actions/comments", Body: rest.Fields{"text": a.marked(a.cfg.Text)}})
}

func (a *acting) change(fields rest.Fields) (actionResult, error) {
	return a.do(rest.Call{Method: "PUT", Path: a.card(), Body: fields})
}

func (a *acting) update() (actionResult, error) { return a.change(a.fields()) }

// delete removes a card. One that is not there when it is tried again was removed before.
func (a *acting) delete() (actionResult, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "DELETE", Path: a.card(), Wants: rest.Value})
	if a.call.Attempt > 1 && rest.Status(err) == 404 {
		err = nil
	}
	out := made(answer)
	out.ResourceID = a.cfg.CardID
	return out, err
}

// addLabel adds a label; one that is there already is refused by Trello, and so it should be.
func (a *acting) addLabel() (actionResult, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "POST", Path: a.card() + "/idLabels", Body: rest.Fields{"value": a.cfg.LabelID},
		Repeatable: true, Wants: rest.Structure})
	if rest.Status(err) == 400 && strings.Contains(err.Error(), "already on the card") {
		err = nil
	}
	out := made(answer)
	out.ResourceID = a.cfg.CardID
	return out, err
}

func (a *acting) get() (actionResult, error) { return a.do(rest.Call{Method: "GET", Path: a.card()}) }

// whole reads a list that Trello hands out in one piece.
func (a *acting) whole(where string) (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(string) ([]json.RawMessage, string, error) {
		answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: where, Wants: rest.List})
		out.RateLimit = answer.Limits()
		return rest.Items(answer.Get("@this")), "", err
	})
	out.Response = json.RawMessage("null")
	return out, err
}

// pageSize is how many cards are asked for at once; Trello takes up to a thousand, and answers slowly then.
const pageSize = 250

// cards is where the cards of the list, or else of the board, are.
func (a *acting) cards() string {
	if a.cfg.ListID != "" {
		return rest.Path("lists", a.cfg.ListID, "cards")
	}
	return rest.Path("boards", a.cfg.BoardID, "cards")
}

// page is a page of cards, the newest first: ids grow with time, and the next page has those before the least of this one.
func (a *acting) page(before string) (cards []gjson.Result, next string, answer rest.Answer, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if before != "" {
		query.Set("before", before)
	}
	if answer, err = a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.cards(), Query: query, Wants: rest.List}); err != nil {
		return nil, "", answer, err
	}
	cards = answer.Get("@this").Array()
	slices.SortStableFunc(cards, func(x, y gjson.Result) int { return strings.Compare(y.Get("id").Str, x.Get("id").Str) })
	if len(cards) >= pageSize {
		next = cards[len(cards)-1].Get("id").Str
	}
	return cards, next, answer, nil
}

func (a *acting) listCards() (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor,
		func(cursor string) (items []json.RawMessage, next string, err error) {
			cards, next, answer, err := a.page(cursor)
			for _, card := range cards {
				items = append(items, json.RawMessage(card.Raw))
			}
			out.RateLimit = answer.Limits()
			return items, next, err
		})
	out.Response = json.RawMessage("null")
	return out, err
}

func (a *acting) request() (actionResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	return made(answer), err
}

// findCard looks for a card of the list that has the marker.
func (a *acting) findCard() (actionResult, bool, error) {
	for before := ""; ; {
		cards, next, answer, err := a.page(before)
		if err != nil {
			return actionResult{}, false, err
		}
		for _, card := range cards {
			if strings.Contains(card.Get("desc").Str, a.marker()) {
				return made(rest.Answer{Header: answer.Header, Body: json.RawMessage(card.Raw)}), true, nil
			}
		}
		if next == "" {
			return actionResult{}, false, nil
		}
		before = next
	}
}

// findComment looks for a comment of the card that has the marker, among those that were made since the node began.
func (a *acting) findComment() (actionResult, bool, error) {
	query := url.Values{"filter": {"commentCard"}, "limit": {"1000"}, "since": {a.call.Now.Add(-rest.ClockSkew).UTC().Format(time.RFC3339)}}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.card() + "/actions", Query: query, Wants: rest.List})
	if err != nil {
		return actionResult{}, false, err
	}
	for _, c := range answer.Get("@this").Array() {
		if strings.Contains(c.Get("data.text").Str, a.marker()) {
			return made(rest.Answer{Header: answer.Header, Body: json.RawMessage(c.Raw)}), true, nil
		}
	}
	return actionResult{}, false, nil
}
