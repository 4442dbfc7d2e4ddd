// Package teams is everything of Microsoft Teams: the channel by which a bot puts questions to people and takes their answers,
// or a bare webhook tells them where to answer.
//
// It speaks the REST interface of the bot service itself over the guarded client, and verifies what the service brings by its
// signed tokens. What a reply means is decided by package human, not here. The program that puts kinds and channels together
// imports it; nothing else does.
package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/fault"
	"tandem/human"
	"tandem/text"
)

// Channel asks in Teams. It keeps tokens and keys until they end, and nothing else.
type Channel struct {
	http   *http.Client
	now    func() time.Time
	tokens tokens
	keys   keyrings
}

// New makes the channel over a guarded client.
func New(client *http.Client) *Channel { return &Channel{http: client, now: time.Now} }

// Name implements [human.Channel].
func (c *Channel) Name() string { return Name }

// settings are those of a question.
type settings struct {
	Channel string `json:"channel_id"`
	User    string `json:"user"`
	Webhook string `json:"webhook_url"`
}

// receipt is what is kept of a sent message. One by a webhook has nothing that could be kept.
type receipt struct {
	Service      string `json:"service,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Activity     string `json:"activity,omitempty"`
	// Asks says that the message holds the question, with what it is answered by.
	Asks bool `json:"asks,omitempty"`
}

// post is a message with a card.
type post struct {
	Type        string       `json:"type"`
	Summary     string       `json:"summary,omitempty"`
	Text        string       `json:"text,omitempty"`
	TextFormat  string       `json:"textFormat,omitempty"`
	ReplyTo     string       `json:"replyToId,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
}

type attachment struct {
	ContentType string `json:"contentType"`
	Content     object `json:"content"`
}

func posting(m human.Message, c object) post {
	return post{Type: "message", Summary: text.Fit(m.Request.Title, maxTitle), Attachments: []attachment{{cardType, c}}}
}

// Send sends a message. The end of a question changes the messages that asked it.
func (c *Channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	var s settings
	if len(m.Request.Settings) > 0 {
		if err := json.Unmarshal(m.Request.Settings, &s); err != nil {
			return human.Receipt{}, fault.Newf(fault.InvalidConfig, "the settings of the Teams question cannot be read: %w", err)
		}
	}
	var earlier []receipt
	for _, raw := range m.Earlier {
		var r receipt
		if err := json.Unmarshal(raw, &r); err != nil {
			return human.Receipt{}, fault.Newf(fault.Internal, "a receipt of Teams cannot be read: %w", err)
		}
		if r.Activity != "" {
			earlier = append(earlier, r)
		}
	}
	b := &bot{c: c}
	if id := cmp.Or(m.Credential, m.Request.Credential); id != "" || s.Webhook == "" {
		opened, release, err := c.open(ctx, m.Account, id)
		if err != nil {
			return human.Receipt{}, err
		}
		defer release()
		b = opened
	}
	ends := m.Ends()
	asks := m.Kind == human.KindRequest || m.Kind == human.KindEscalation || !ends && len(m.Earlier) == 0
	var made object
	var err error
	if asks {
		made, err = question(m, b.isBot())
	} else {
		made, err = notice(m, ends && b.isBot())
	}
	if err != nil {
		return human.Receipt{}, fault.Newf(fault.Internal, "write the card: %w", err)
	}
	out := posting(m, made)
	if !b.isBot() {
		return b.hook(ctx, cmp.Or(s.Webhook, b.webhook), out)
	}
	if ends {
		return b.end(ctx, m, s, earlier, out)
	}
	return b.send(ctx, m, s, earlier, out, asks)
}

// send sends a message into the conversation of the earlier ones, or begins one.
func (b *bot) send(ctx context.Context, m human.Message, s settings, earlier []receipt, out post, asks bool) (human.Receipt, error) {
	if len(earlier) > 0 {
		r := receipt{Service: earlier[0].Service, Conversation: earlier[0].Conversation, Asks: asks}
		return b.speak(ctx, r, out)
	}
	to, channel := strings.TrimPrefix(m.To, Name+":"), false
	if to == "" {
		to = s.User
		if s.Channel != "" {
			to, channel = s.Channel, true
		}
	}
	switch {
	case to == "" && b.webhook != "":
		return b.hook(ctx, b.webhook, out)
	case to == "":
		return human.Receipt{}, fault.New(fault.InvalidConfig, "nobody says where to ask; set channel_id or user")
	}
	var made struct {
		ID       string `json:"id"`
		Activity string `json:"activityId"`
	}
	begin := object{"bot": object{"id": "28:" + b.appID}}
	if b.tenant != anyTenant {
		begin["tenantId"] = b.tenant
	}
	if channel || strings.HasPrefix(to, "19:") {
		begin["isGroup"], begin["activity"], begin["channelData"] = true, out, object{"channel": object{"id": to}}
		if err := b.call(ctx, "posting in the channel", http.MethodPost, b.service+"/v3/conversations", begin, &made); err != nil {
			return human.Receipt{}, err
		}
		if made.ID == "" || made.Activity == "" {
			return human.Receipt{}, fault.New(fault.RemoteError, "posting in the channel was answered without the id of the message")
		}
		return receipted(receipt{Service: b.service, Conversation: made.ID, Activity: made.Activity, Asks: asks})
	}
	begin["members"] = []any{object{"id": to}}
	if b.tenant != anyTenant {
		begin["channelData"] = object{"tenant": object{"id": b.tenant}}
	}
	if err := b.call(ctx, "opening the conversation", http.MethodPost, b.service+"/v3/conversations", begin, &made); err != nil {
		return human.Receipt{}, err
	}
	if made.ID == "" {
		return human.Receipt{}, fault.New(fault.RemoteError, "opening the conversation was answered without its id")
	}
	return b.speak(ctx, receipt{Service: b.service, Conversation: made.ID, Asks: asks}, out)
}

// speak sends a message into a conversation.
func (b *bot) speak(ctx context.Context, r receipt, out post) (human.Receipt, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := b.call(ctx, "sending the message", http.MethodPost, activities(r.Service, r.Conversation, ""), out, &made); err != nil {
		return human.Receipt{}, err
	}
	r.Activity = made.ID
	return receipted(r)
}

func activities(service, conversation, activity string) string {
	address := strings.TrimRight(service, "/") + "/v3/conversations/" + url.PathEscape(conversation) + "/activities"
	if activity != "" {
		address += "/" + url.PathEscape(activity)
	}
	return address
}

func receipted(r receipt) (human.Receipt, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return human.Receipt{}, fault.Newf(fault.Internal, "write the receipt: %w", err)
	}
	return human.Receipt{Body: raw, Threads: threads(r.Conversation, r.Activity)}, nil
}

// threads are what replies to a message are recognised by: the message, and in a channel also the conversation, which is one
// about this message. A chat with a person holds many questions, so it does not tell which one is meant.
func threads(conversation, activity string) []string {
	var list []string
	if conversation == "" {
		return nil
	}
	if activity != "" {
		list = append(list, conversation+"|"+activity)
	}
	if strings.Contains(conversation, ";messageid=") {
		list = append(list, conversation)
	}
	return list
}

// end replaces the messages that asked by how it ended. Where that is not possible any more, or nothing was asked, it is said in
// a message of its own.
func (b *bot) end(ctx context.Context, m human.Message, s settings, earlier []receipt, out post) (human.Receipt, error) {
	said := false
	for _, r := range earlier {
		if !r.Asks {
			continue
		}
		err := b.call(ctx, "changing the message", http.MethodPut, activities(r.Service, r.Conversation, r.Activity), out, nil)
		if err == nil {
			said = true
			continue
		}
		refused, ok := errors.AsType[*refusal](err)
		if !ok || refused.fault.Retryable || refused.fault.Code == fault.CredentialInvalid {
			return human.Receipt{}, err
		} // else it was deleted, or the bot removed from there
	}
	if said {
		return human.Receipt{}, nil
	}
	r, err := b.send(ctx, m, s, earlier, out, false)
	r.Threads = nil // nothing is asked there
	return r, err
}

// hook sends a message by a bare webhook. Nothing comes back by it, and nothing that was sent can be changed.
func (b *bot) hook(ctx context.Context, address string, out post) (human.Receipt, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return human.Receipt{}, fault.New(fault.InvalidConfig, "there is no webhook_url that could be used, and no app_id; set one of them")
	}
	b.webhook = address // so that it is kept out of errors
	raw, err := json.Marshal(out)
	if err != nil {
		return human.Receipt{}, fault.Newf(fault.Internal, "write the card: %w", err)
	}
	var said []byte
	if err := b.do(ctx, exchange{what: "the webhook of Teams", method: http.MethodPost, url: address, contentType: "application/json", body: raw}, &said); err != nil {
		if r, ok := errors.AsType[*refusal](err); ok && r.fault.Code == fault.CredentialInvalid {
			r.fault.Message = "the webhook of Teams does not take messages any more; make a new one"
		}
		return human.Receipt{}, err
	}
	// Older webhooks answer 200 and say in words that it went wrong.
	if text := string(said); strings.Contains(text, "HTTP error 429") {
		return human.Receipt{}, fault.New(fault.RateLimited, "the webhook of Teams takes no more messages for now")
	} else if strings.Contains(text, "Webhook message delivery failed") {
		return human.Receipt{}, fault.Newf(fault.RemoteRejected, "the webhook of Teams answered %q", b.scrub(text))
	}
	return human.Receipt{}, nil
}
