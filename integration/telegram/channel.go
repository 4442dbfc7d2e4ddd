// Package telegram is everything of Telegram: the channel by which a bot puts questions to people and takes their answers, the trigger that
// its updates start, and the kind that acts as a bot. A bot has one stream of updates, so the channel reads it for both.
//
// It speaks the Bot API itself over the guarded client. The known libraries pass an update before it was dealt with and refuse
// a whole batch for one thing that is new to them; both would lose answers. What a reply means is decided by package human, not
// here. The program that puts kinds and channels together imports it; nothing else does.
package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tandem/fault"
	"tandem/human"
	"tandem/payload"
	"tandem/text"
	"tandem/trigger"
)

// Channel asks in Telegram. It keeps nothing between calls but the names of its bots.
type Channel struct {
	http *http.Client
	// relay hands updates to the triggers that share a bot.
	relay *trigger.Relay
	// names are the user names of bots, by the number of the bot.
	names sync.Map
}

// New makes the channel over a guarded client, whose calls may take a minute.
func New(client *http.Client) *Channel { return &Channel{http: client} }

// Name implements [human.Channel].
func (c *Channel) Name() string { return Name }

// settings are those of a question.
type settings struct {
	Chat    chatID          `json:"chat_id"`
	Targets []chatID        `json:"target_users"`
	Layout  json.RawMessage `json:"inline_keyboard"`
	// Texts says whether replies in prose are taken. Nil: they are.
	Texts    *bool    `json:"allow_text_responses"`
	Patterns []string `json:"allowed_response_patterns"`
}

func readSettings(r human.Request) (settings, error) {
	var s settings
	if len(r.Settings) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(r.Settings, &s); err != nil {
		return s, fault.Newf(fault.InvalidConfig, "the settings of the Telegram question cannot be read: %w", err)
	}
	return s, nil
}

// receipt is what is kept of a sent message.
type receipt struct {
	Chat    int64 `json:"chat"`
	Message int64 `json:"message"`
	// Asks says that the message holds the question, with what it is answered by.
	Asks bool `json:"asks,omitempty"`
}

// thread is what replies to a message are recognised by. Every bot counts its messages to a person anew, so it tells the bot.
func (b *bot) thread(chat, message int64) string {
	return b.id() + ":" + strconv.FormatInt(chat, 10) + ":" + strconv.FormatInt(message, 10)
}

// Send sends a message. The end of a question changes the messages that asked it; what comes in between answers them.
func (c *Channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	s, err := readSettings(m.Request)
	if err != nil {
		return human.Receipt{}, err
	}
	to := s.Chat
	if m.To != "" {
		to = chatID(strings.TrimPrefix(m.To, Name+":"))
	}
	if to == "" {
		return human.Receipt{}, fault.New(fault.InvalidConfig, "nobody says where to ask; set chat_id")
	}
	var earlier []receipt
	for _, raw := range m.Earlier {
		var r receipt
		if err := json.Unmarshal(raw, &r); err != nil {
			return human.Receipt{}, fault.Newf(fault.Internal, "a receipt of Telegram cannot be read: %w", err)
		}
		if r.Message != 0 {
			earlier = append(earlier, r)
		}
	}
	b, release, err := c.open(ctx, m.Open, account(m))
	if err != nil {
		return human.Receipt{}, err
	}
	defer release()
	if m.Ends() {
		return b.end(ctx, m, to, earlier)
	}
	out := sendMessage{Chat: to, Mode: "HTML", Preview: &preview{Disabled: true}}
	asks := m.Kind == human.KindRequest || m.Kind == human.KindEscalation || len(earlier) == 0
	if asks {
		if out.Keyboard, err = b.keyboard(m, s); err != nil {
			return human.Receipt{}, err
		}
		out.Text = question(m, out.Keyboard == nil)
	} else {
		out.Text, out.Keyboard = note(m), rows(linkRow(m))
	}
	if len(earlier) > 0 {
		out.ReplyTo = &replyTo{Message: earlier[0].Message, Anyway: true}
	}
	return b.send(ctx, out, asks)
}

// account is the credential that a message is sent with.
func account(m human.Message) string {
	if m.Credential != "" {
		return m.Credential
	}
	return m.Request.Credential
}

func (b *bot) send(ctx context.Context, out sendMessage, asks bool) (human.Receipt, error) {
	var sent message
	err := b.call(ctx, "sendMessage", out, &sent)
	if r, ok := errors.AsType[*refusal](err); ok && r.migrated != 0 {
		out.Chat, out.ReplyTo = chatID(strconv.FormatInt(r.migrated, 10)), nil // messages have new numbers there
		err = b.call(ctx, "sendMessage", out, &sent)
	}
	if err != nil {
		return human.Receipt{}, err
	}
	r := receipt{Chat: sent.Chat.ID, Message: sent.ID, Asks: asks}
	raw, err := json.Marshal(r)
	if err != nil {
		return human.Receipt{}, fault.Newf(fault.Internal, "write the receipt: %w", err)
	}
	return human.Receipt{Body: raw, Threads: []string{b.thread(r.Chat, r.Message)}}, nil
}

// end takes the buttons of the messages that asked away and says there how it ended. Where that is not possible any more, or
// nothing was asked, it is said in a message of its own.
func (b *bot) end(ctx context.Context, m human.Message, to chatID, earlier []receipt) (human.Receipt, error) {
	asked := slices.DeleteFunc(slices.Clone(earlier), func(r receipt) bool { return !r.Asks })
	said := false
	for _, r := range asked {
		err := b.call(ctx, "editMessageText", editMessage{
			Chat: chatID(strconv.FormatInt(r.Chat, 10)), Message: r.Message, Text: question(m, false), Mode: "HTML",
			Preview: &preview{Disabled: true},
		}, nil)
		if err == nil {
			said = true
			continue
		}
		refused, ok := errors.AsType[*refusal](err)
		switch {
		case ok && refused.status == http.StatusBadRequest && strings.Contains(refused.description, "message is not modified"):
			said = true // this notice was sent before
		case ok && refused.status == http.StatusBadRequest: // deleted, or too old to be changed
		default:
			return human.Receipt{}, err
		}
	}
	if said {
		return human.Receipt{}, nil
	}
	out := sendMessage{Chat: to, Mode: "HTML", Text: note(m), Preview: &preview{Disabled: true}}
	if len(asked) > 0 {
		out.ReplyTo = &replyTo{Message: asked[0].Message, Anyway: true}
	}
	receipt, err := b.send(ctx, out, false)
	receipt.Threads = nil // nothing is asked there
	return receipt, err
}

// Limits of the service: characters of a message, characters that a button shows well. How many buttons there can be is in [form.Telegram].
const (
	maxText  = 4096
	maxLabel = 64
	// maxTitle and maxLines keep room for the question itself.
	maxTitle = 256
	maxLines = 1000
)

// question is the whole question and what is to be said besides.
func question(m human.Message, inbox bool) string {
	lines := m.Lines
	if inbox {
		lines = append(slices.Clone(lines), text.Of("Please answer it in the inbox.").In(m.Request.Language))
	}
	var p page
	p.addPart("", "", m.Request.UserMention, maxTitle)
	p.addPart("<b>", "</b>", m.Request.Title, maxTitle)
	tail := text.FitUTF16(strings.Join(lines, "\n"), maxLines)
	p.reserve(tail)
	p.addPart("", "", m.Request.Description, maxText)
	if text, code := payload.Shown(m.Request.Content); code {
		p.addPart("<pre>", "</pre>", text, maxText)
	} else {
		p.addPart("", "", text, maxText)
	}
	p.reserved = 0
	p.addPart("", "", tail, maxLines)
	return p.text.String()
}

// note is what is to be said about a question that people have before them.
func note(m human.Message) string {
	var p page
	p.addPart("", "", m.Request.UserMention, maxTitle)
	p.addPart("<b>", "</b>", m.Request.Title, maxTitle)
	p.addPart("", "", strings.Join(m.Lines, "\n"), maxText)
	return p.text.String()
}

// page gathers paragraphs as long as there is room. The service counts what is read, not the marks.
type page struct {
	text           strings.Builder
	used, reserved int
}

func (p *page) reserve(said string) {
	if said != "" {
		p.reserved = text.UTF16(said) + 2
	}
}

func (p *page) addPart(before, after, said string, most int) {
	said = strings.TrimSpace(said)
	gap := 0
	if p.used > 0 {
		gap = 2
	}
	most = min(most, maxText-p.used-p.reserved-gap)
	if said == "" || most < 1 {
		return
	}
	said = text.FitUTF16(said, most)
	if gap > 0 {
		p.text.WriteString("\n\n")
	}
	p.text.WriteString(before + html.EscapeString(said) + after)
	p.used += gap + text.UTF16(said)
}
