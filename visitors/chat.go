package visitors

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
	"tandem/trigger"
)

// What the page of a chat asks for and does, besides showing itself.
const (
	viewMessages = "messages"
	viewEvents   = "events"
	viewQuestion = "question"
	doSend       = "send"
	doAnswer     = "answer"
	doNew        = "new"
)

const (
	// maxTurns is how many messages of a conversation a page shows.
	maxTurns = 50
	// maxEarlier bounds what an execution is told of the conversation before it, in bytes.
	maxEarlier = 128 << 10
	// maxMessageID is longer than any id that the page makes.
	maxMessageID = 64
)

//go:embed chat.html
var chatHTML string // read-only

//go:embed chat.js
var chatScript string // read-only

//go:embed chat.css
var chatStyle string // read-only

// chatTemplate is the page of a chat, with its style and its script.
type chatTemplate struct {
	*template.Template
	style             template.CSS
	styleHash, script string
}

// loadChat reads it when the first page is wanted.
func loadChat(pages *sheet.Pages) func() (*chatTemplate, error) {
	return sync.OnceValues(func() (*chatTemplate, error) {
		common, err := pages.Style()
		if err != nil {
			return nil, err
		}
		t, err := template.New("chat").Parse(chatHTML)
		if err != nil {
			return nil, fmt.Errorf("read the template of chats: %w", err)
		}
		style := string(common) + chatStyle
		return &chatTemplate{t, template.CSS(style), sheet.Hash([]byte(style)), sheet.Hash([]byte(chatScript))}, nil
	})
}

// chatPage is what the page of a chat shows before its script has begun.
type chatPage struct {
	sheet.Page
	Style    template.CSS
	Script   template.JS
	Greeting string
	Max      int
	// Words are what the script says.
	Words string
}

// systemOf is Tandem itself in a workspace.
func systemOf(workspace string) identity.Principal { return identity.System(workspace) }

// serveChat serves a chat.
func (h *Pages) serveChat(w http.ResponseWriter, r *http.Request, v *visit) {
	view, do := r.URL.Query().Get("view"), r.URL.Query().Get("do")
	var err error
	switch {
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && view == "":
		err = h.showChat(w, r, v)
	case r.Method == http.MethodPost && do == doNew:
		v.secret = ""
		h.greet(w, r, v)
		w.WriteHeader(http.StatusNoContent)
	case v.secret == "":
		err = fault.Say(fault.Forbidden, text.Of("Your browser has sent no cookie, so it is not known which conversation this is. Allow cookies and reload the page."))
	case r.Method == http.MethodGet && view == viewMessages:
		err = h.tellMessages(w, r, v)
	case r.Method == http.MethodGet && view == viewEvents:
		err = h.stream(w, r, v)
	case r.Method == http.MethodGet && view == viewQuestion:
		err = h.showQuestion(w, r, v)
	case r.Method == http.MethodPost && do == doSend:
		err = h.takeMessage(w, r, v)
	case r.Method == http.MethodPost && do == doAnswer:
		err = h.takeAnswer(w, r, v)
	default:
		err = fault.New(fault.NotFound, "a chat has nothing of that name")
	}
	if err != nil {
		h.fail(w, r, v, err)
	}
}

// showChat shows the page. The script asks for the rest.
func (h *Pages) showChat(w http.ResponseWriter, r *http.Request, v *visit) error {
	t, err := h.chat()
	if err != nil {
		return err
	}
	h.greet(w, r, v)
	page := &chatPage{Page: sheet.Page{Lang: v.lang, Heading: v.Page.Title, Text: v.Page.Description}, Style: t.style,
		Script: template.JS(chatScript), Greeting: v.Page.Greeting, Max: v.Page.MaxMessage}
	if page.Heading == "" {
		page.Heading = page.Tell(text.Of("Chat"))
	}
	words, err := json.Marshal(map[string]string{
		"you": page.Tell(text.Of("You")), "answer": page.Tell(text.Of("Answer")), "question": page.Tell(text.Of("Question")),
		"working": page.Tell(text.Of("Working on it…")), "waiting": page.Tell(text.Of("Somebody has to look at this first. The answer will be here.")),
		"failed": page.Tell(text.Of("Something went wrong. Please try again later.")), "done": page.Tell(text.Of("Done.")),
		"retry": page.Tell(text.Of("The connection is interrupted. Trying again…")),
		"first": page.Tell(text.Of("Please answer the question above first.")),
	})
	if err != nil {
		return fault.Newf(fault.Internal, "the words of a chat cannot be written: %w", err)
	}
	page.Words = string(words)
	var out bytes.Buffer
	if err := t.Execute(&out, page); err != nil {
		return err
	}
	v.frame().Head(w.Header(), v.lang, t.styleHash, t.script)
	_, err = w.Write(out.Bytes())
	return err
}

// turn is a message of a visitor and what came of it.
type turn struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	At        int64  `json:"at"`
	Execution string `json:"execution,omitempty"`
	// State is running, waiting, done or failed.
	State     string     `json:"state"`
	Answer    string     `json:"answer,omitempty"`
	Questions []question `json:"questions,omitempty"`
}

// question is a question to the visitor. Open ones are answered by their form, or, with Plain, by a message.
type question struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Open   bool   `json:"open,omitempty"`
	Plain  bool   `json:"plain,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// The states of a turn.
const (
	stateRunning = "running"
	stateWaiting = "waiting"
	stateDone    = "done"
	stateFailed  = "failed"
)

// turns are the last messages of the conversation with what came of them, the oldest first.
func (h *Pages) turns(ctx context.Context, v *visit, most int) ([]turn, error) {
	if most <= 0 {
		return nil, nil
	}
	p := systemOf(v.workspace)
	page, err := h.o.Deliveries.Deliveries(ctx, p, store.DeliveryQuery{WorkflowID: v.Trigger.WorkflowID, Node: v.Trigger.Node,
		Conversation: v.conversation(), Page: store.Page{Size: most}})
	if err != nil {
		return nil, err
	}
	list := make([]turn, 0, len(page.Deliveries))
	for _, d := range slices.Backward(page.Deliveries) {
		if d.Decision == store.DeliveryRefused || d.Decision == store.DeliveryIgnored {
			continue
		}
		one, err := h.turn(ctx, p, v, d)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (h *Pages) turn(ctx context.Context, p identity.Principal, v *visit, line store.TriggerDelivery) (turn, error) {
	d, err := h.o.Deliveries.Delivery(ctx, p, line.ID)
	if err != nil {
		return turn{}, err
	}
	payload, err := h.o.Triggers.Payload(ctx, d)
	if err != nil {
		return turn{}, err
	}
	t := turn{ID: d.ID, Text: gjson.GetBytes(payload, "message").String(), At: d.Received, Execution: d.Execution, State: stateRunning}
	if d.Decision == store.DeliveryGivenUp {
		t.State = stateFailed
	}
	if d.Execution == "" {
		return t, nil
	}
	told, err := h.o.Executions.Tell(ctx, v.workspace, d.Execution)
	if fault.CodeOf(err) == fault.NotFound { // it was removed
		t.State = stateDone
		return t, nil
	}
	if err != nil {
		return turn{}, err
	}
	t.Answer = told.Answer
	if len(d.Answer) > 0 {
		t.Answer = cmp.Or(t.Answer, gjson.GetBytes(d.Answer, "body").String())
	}
	if t.Questions, err = h.questionsOf(ctx, p, v, d.Execution); err != nil {
		return turn{}, err
	}
	t.State = stateOf(told)
	return t, nil
}

// tellMessages tells the conversation.
func (h *Pages) tellMessages(w http.ResponseWriter, r *http.Request, v *visit) error {
	list, err := h.turns(r.Context(), v, maxTurns)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]any{"messages": list})
}

func sendJSON(w http.ResponseWriter, status int, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fault.Newf(fault.Internal, "an answer cannot be written: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // nobody took it, which the server counts
	return nil
}

// takeMessage takes a message: it starts an execution. The same message a second time, by its id, starts nothing.
func (h *Pages) takeMessage(w http.ResponseWriter, r *http.Request, v *visit) error {
	ctx := r.Context()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessageBody))
	if err != nil {
		return err
	}
	var sent struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	clean, err := payload.Normalize(body, payload.Door())
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || err != nil ||
		payload.ReadKnown(clean, &sent) != nil || sent.ID == "" || len(sent.ID) > maxMessageID {
		return fault.New(fault.InvalidInput, "the message cannot be read; it is sent as JSON with an id and a text, and nothing else")
	}
	said := strings.TrimSpace(sent.Text)
	switch n := utf8.RuneCountInString(said); {
	case said == "":
		return fault.Say(fault.InvalidInput, text.Of("The message is empty."))
	case n > v.Page.MaxMessage:
		return fault.Say(fault.InvalidInput, text.Of("The message has %d characters; it may have %d.", n, v.Page.MaxMessage))
	}
	key := v.conversation() + ":" + sent.ID
	known, err := h.o.Deliveries.Deliveries(ctx, systemOf(v.workspace),
		store.DeliveryQuery{WorkflowID: v.Trigger.WorkflowID, Node: v.Trigger.Node, Key: key, Page: store.Page{Size: 1}})
	if err != nil {
		return err
	}
	if len(known.Deliveries) > 0 { // the answer to it was lost on its way
		return sendJSON(w, http.StatusAccepted, map[string]string{"id": known.Deliveries[0].ID, "execution": known.Deliveries[0].Execution})
	}
	earlier, err := h.turns(ctx, v, max(v.Page.Earlier, 1))
	if err != nil {
		return err
	}
	if len(earlier) > 0 && slices.ContainsFunc(earlier[len(earlier)-1].Questions, func(q question) bool { return q.Open }) {
		return fault.Say(fault.Conflict, text.Of("Please answer the question above first."))
	}
	if err := h.limits.countVisit(v, h.now()); err != nil {
		v.Refuse(ctx, err)
		return err
	}
	brought, err := h.payloadOf(v, map[string]any{"message": said, "conversation_id": v.conversation(),
		"messages": messagesOf(earlier, v.Page.Earlier)})
	if err != nil {
		return err
	}
	ending, err := h.o.Executions.Deliver(ctx, v.Entrance,
		trigger.Event{Key: key, Conversation: v.conversation(), Payload: brought}, trigger.ReplyAtOnce, 0)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusAccepted, map[string]string{"id": ending.Delivery.ID, "execution": ending.Delivery.Execution})
}

// message is a message of the conversation, as models are told it.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// messagesOf are the last so many messages of a conversation, the oldest first. Of a long conversation those before are left out.
func messagesOf(turns []turn, most int) []message {
	list := []message{}
	for _, t := range turns {
		list = append(list, message{"user", t.Text})
		for _, q := range t.Questions {
			if q.Answer != "" {
				list = append(list, message{"assistant", q.Title}, message{"user", q.Answer})
			}
		}
		if t.Answer != "" {
			list = append(list, message{"assistant", t.Answer})
		}
	}
	list = list[max(0, len(list)-most):]
	size := 0
	for n, m := range slices.Backward(list) {
		if size += len(m.Content); size > maxEarlier {
			return list[n+1:]
		}
	}
	return list
}
