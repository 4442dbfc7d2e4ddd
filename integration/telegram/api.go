package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
	"tandem/text"
)

const (
	defaultBase = "https://api.telegram.org"
	// maxAnswer is how much is read of an answer; a hundred updates are far less.
	maxAnswer = 8 << 20
)

// bot is an opened credential. Its token is part of every address, so no address is ever told to anybody.
type bot struct {
	http   *http.Client
	base   string
	token  string
	secret string // what webhooks bring along; empty: none is taken
}

func (c *Channel) open(ctx context.Context, open credential.Opener, id string) (*bot, func(), error) {
	return credential.OpenAs(ctx, open, id, credentialType, func(opened credential.Opened) (*bot, error) { return c.readBot(id, opened) })
}

// readBot reads an opened credential.
func (c *Channel) readBot(id string, opened credential.Opened) (*bot, error) {
	var fields struct {
		Token   string `json:"token"`
		Secret  string `json:"webhook_secret"`
		BaseURL string `json:"base_url"`
	}
	wrong := func(text string) (*bot, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", id, text)
	}
	if json.Unmarshal(opened.Data, &fields) != nil {
		return wrong("cannot be read; save it again")
	}
	if fields.Token == "" || strings.ContainsAny(fields.Token, "/?#% \t\r\n") {
		return wrong("has no token of a bot; put in the one that BotFather gave")
	}
	b := &bot{http: c.http, base: defaultBase, token: fields.Token, secret: fields.Secret}
	if fields.BaseURL != "" {
		u, err := url.Parse(fields.BaseURL)
		if err != nil || u.Host == "" || u.RawQuery != "" {
			return wrong("has a base_url that cannot be used; write it like https://host:port")
		}
		b.base = strings.TrimRight(fields.BaseURL, "/")
	}
	return b, nil
}

// id is the public number of the bot.
func (b *bot) id() string {
	number, _, _ := strings.Cut(b.token, ":")
	return number
}

// refusal is why the service did not do something: its own words, and what it said besides.
type refusal struct {
	fault       *fault.Error
	status      int
	description string
	// migrated is the new number of a group that has become a supergroup.
	migrated int64
}

// Error returns the code and message.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap returns the fault.
func (r *refusal) Unwrap() error { return r.fault }

// call calls a method. The answer goes to result unless that is nil.
func (b *bot) call(ctx context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return fault.Newf(fault.Internal, "write the parameters of %s: %w", method, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/bot"+b.token+"/"+method, bytes.NewReader(raw))
	if err != nil {
		return fault.New(fault.CredentialInvalid, "the token or base_url of the bot makes no address").WithDetail(b.scrub(err.Error()))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := b.http.Do(request)
	if err != nil {
		return b.unreached(ctx, method, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return b.unreached(ctx, method, err)
	}
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
		ErrorCode   int             `json:"error_code"`
		Parameters  struct {
			RetryAfter int64 `json:"retry_after"`
			MigrateTo  int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !answer.OK {
		if answer.ErrorCode == 0 {
			answer.ErrorCode = response.StatusCode
		}
		after := time.Duration(answer.Parameters.RetryAfter) * time.Second
		if after == 0 {
			after = outbound.RetryAfter(response.Header, time.Now())
		}
		return b.refused(method, answer.ErrorCode, answer.Description, min(after, outbound.MaxRetryAfter), answer.Parameters.MigrateTo)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fault.Newf(fault.RemoteError, "Telegram answered %s with something that cannot be read", method).WithCause(err)
	}
	return nil
}

func (b *bot) refused(method string, status int, description string, after time.Duration, migrated int64) error {
	code, remedy := fault.RemoteRejected, ""
	switch {
	case status == http.StatusUnauthorized, status == http.StatusNotFound: // an unknown token is part of an unknown address
		code, remedy = fault.CredentialInvalid, "; check the token of the bot"
	case status == http.StatusForbidden:
		remedy = "; the bot has to be in the chat, and people have to have written to it first"
	case status == http.StatusTooManyRequests:
		code = fault.RateLimited
	case status == http.StatusConflict:
		code, remedy = fault.Conflict, "; another program reads the updates of this bot, or a webhook of another address is set"
	case status >= 500 || status < 400: // below 400: what answered was not Telegram
		code = fault.RemoteError
	}
	f := fault.Newf(code, "Telegram refused %s with %d %q%s", method, status, b.scrub(description), remedy).With("status_code", status)
	if status == http.StatusConflict {
		f.Retryable = true
	}
	if after > 0 {
		f = f.With("retry_after_ms", after.Milliseconds())
	}
	return &refusal{fault: f, status: status, description: description, migrated: migrated}
}

// unreached says why there is no answer. The client's words name the address, so only the guard's own are kept.
func (b *bot) unreached(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return fault.Newf(fault.Canceled, "%s was not waited for", method).WithCause(ctx.Err())
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fault.Newf(fault.NetworkError, "Telegram did not answer %s", method).WithDetail(b.scrub(err.Error()))
}

// scrub keeps the token out of a text, and the text short.
func (b *bot) scrub(said string) string {
	return text.FitUTF16(strings.ReplaceAll(said, b.token, "***"), 500)
}

// The wire, as far as it is used. What else a message has is not read, so that nothing new in it can make it unreadable.

type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message"`
	Post     *message  `json:"channel_post"`
	Callback *callback `json:"callback_query"`
}

type message struct {
	ID       int64     `json:"message_id"`
	Date     int64     `json:"date"`
	From     *person   `json:"from"`
	Chat     chat      `json:"chat"`
	Text     string    `json:"text"`
	Caption  string    `json:"caption"`
	ReplyTo  *message  `json:"reply_to_message"`
	Keyboard *keyboard `json:"reply_markup"`
	// SenderChat is set when somebody writes as a group or channel instead of as themselves.
	SenderChat *chat `json:"sender_chat"`
}

type callback struct {
	ID      string   `json:"id"`
	From    person   `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type person struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username"`
	Language  string `json:"language_code"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // private, group, supergroup, channel
	// Title is that of a group or channel, Username the public name of it or of a person.
	Title     string `json:"title"`
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
}

type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	URL  string `json:"url,omitempty"`
	Data string `json:"callback_data,omitempty"`
}

// chatID is a number, or @name of a public group or channel.
type chatID string

// UnmarshalJSON reads a number or a text.
func (c *chatID) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = chatID(strings.TrimSpace(text))
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(raw, &number); err != nil {
		return err
	}
	*c = chatID(number)
	return nil
}

// MarshalJSON writes a number as one.
func (c chatID) MarshalJSON() ([]byte, error) {
	if number, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return strconv.AppendInt(nil, number, 10), nil
	}
	return json.Marshal(string(c))
}

type sendMessage struct {
	Chat     chatID    `json:"chat_id"`
	Text     string    `json:"text"`
	Mode     string    `json:"parse_mode,omitempty"`
	Preview  *preview  `json:"link_preview_options,omitempty"`
	ReplyTo  *replyTo  `json:"reply_parameters,omitempty"`
	Keyboard *keyboard `json:"reply_markup,omitempty"`
}

type preview struct {
	Disabled bool `json:"is_disabled"`
}

type replyTo struct {
	Message int64 `json:"message_id"`
	// Anyway sends also when the message was deleted.
	Anyway bool `json:"allow_sending_without_reply"`
}

type editMessage struct {
	Chat     chatID    `json:"chat_id"`
	Message  int64     `json:"message_id"`
	Text     string    `json:"text"`
	Mode     string    `json:"parse_mode,omitempty"`
	Preview  *preview  `json:"link_preview_options,omitempty"`
	Keyboard *keyboard `json:"reply_markup,omitempty"`
}

type answerCallback struct {
	ID    string `json:"callback_query_id"`
	Text  string `json:"text,omitempty"`
	Alert bool   `json:"show_alert,omitempty"`
}

type getUpdates struct {
	Offset  int64    `json:"offset,omitempty"`
	Limit   int      `json:"limit,omitempty"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

type setWebhook struct {
	URL     string   `json:"url"`
	Secret  string   `json:"secret_token"`
	Allowed []string `json:"allowed_updates"`
}

type webhookInfo struct {
	URL string `json:"url"`
}
