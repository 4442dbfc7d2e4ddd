package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"tandem/fault"
	"tandem/human"
	"tandem/hypertext"
	"tandem/payload"
	"tandem/text"
)

// activity is what the bot service brings, as far as it is used.
type activity struct {
	Type         string       `json:"type"`
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	Channel      string       `json:"channelId"`
	Service      string       `json:"serviceUrl"`
	From         person       `json:"from"`
	Conversation conversation `json:"conversation"`
	ReplyTo      string       `json:"replyToId"`
	Text         string       `json:"text"`
	Locale       string       `json:"locale"`
	// Value is what a card sends; read it where it is expected, since other activities have other values.
	Value       json.RawMessage `json:"value"`
	ChannelData struct {
		Tenant struct {
			ID string `json:"id"`
		} `json:"tenant"`
	} `json:"channelData"`
}

type person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// AAD is the person in the directory of the tenant; bots have none.
	AAD string `json:"aadObjectId"`
}

type conversation struct {
	ID     string `json:"id"`
	Tenant string `json:"tenantId"`
	Type   string `json:"conversationType"` // personal, groupChat, channel
}

// Receive takes an activity that the bot service brings.
func (c *Channel) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	ctx := r.Context()
	b, release, err := c.open(ctx, a, a.Credential)
	if err != nil {
		return unknownTo(err)
	}
	defer release()
	if !b.isBot() {
		return fault.New(fault.Unauthorized, "this credential is a bare webhook and takes no calls; give it app_id, app_secret and tenant_id")
	}
	raw, err := human.ReadCall(w, r, human.MaxCall)
	if err != nil {
		return err
	}
	var in activity
	if err := json.Unmarshal(raw, &in); err != nil {
		return fault.New(fault.Invalid, "the body is not an activity of the bot service").WithCause(err)
	}
	// What the token is for is in the body, so that is read first, and believed after.
	if err := b.verify(ctx, r.Header.Get("Authorization"), in); err != nil {
		return err
	}
	switch {
	case in.Type == "invoke" && in.Name == "adaptiveCard/action":
		var value struct {
			Action struct {
				Data map[string]json.RawMessage `json:"data"`
			} `json:"action"`
		}
		if err := json.Unmarshal(in.Value, &value); err != nil {
			return fault.New(fault.Invalid, "the action of the card cannot be read").WithCause(err)
		}
		said, err := b.click(ctx, a, in, value.Action.Data, handle)
		if err != nil {
			return err
		}
		answer, err := payload.Encode(object{"statusCode": http.StatusOK,
			"type": "application/vnd.microsoft.activity.message", "value": said})
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_, err = w.Write(answer)
		return err
	case in.Type == "invoke":
		w.WriteHeader(http.StatusNotImplemented) // what the service wants to hear of those that a bot does not know
		return nil
	case in.Type == "message":
		var values map[string]json.RawMessage
		var said string
		if json.Unmarshal(in.Value, &values) == nil && values[markKey] != nil {
			said, err = b.click(ctx, a, in, values, handle)
		} else {
			said, err = b.prose(ctx, a, in, handle)
		}
		if err != nil {
			return err
		}
		if err := b.answerActivity(ctx, in, said); err != nil {
			return err // it comes again, and counts once
		}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// unknownTo keeps from somebody unknown which credentials there are.
func unknownTo(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.CredentialMissing, fault.CredentialInvalid, fault.Forbidden:
		return fault.New(fault.Unauthorized, "there is no such bot here").WithCause(err)
	}
	return err
}

// click deals with what a card sent, and returns what to tell the person.
func (b *bot) click(ctx context.Context, a human.Account, in activity, values map[string]json.RawMessage,
	handle human.Handle) (string, error) {
	var m mark
	if json.Unmarshal(values[markKey], &m) != nil || m.Interaction == "" {
		return text.Of("This card asks nothing.").In(in.Locale), nil
	}
	reply, err := b.reply(ctx, a, in)
	if err != nil {
		return "", err
	}
	reply.Interaction, reply.ArgumentsHash = m.Interaction, m.Hash
	reaction, _, err := handle.Fill(ctx, reply, submitted(values, m.Option))
	if err == nil && reaction.Err != nil && reaction.Err.Code == fault.NotFound {
		return text.Of("This question is not there any more.").In(in.Locale), nil
	}
	return reaction.Text, err
}

// prose deals with a text.
func (b *bot) prose(ctx context.Context, a human.Account, in activity, handle human.Handle) (string, error) {
	said, place := words(in.Text), threads(in.Conversation.ID, in.ReplyTo)
	if said == "" || in.From.AAD == "" {
		return "", nil
	}
	lost := ""
	if in.Conversation.Type == "personal" {
		lost = text.Of("It is not clear which question this answers; use the buttons of its card.").In(in.Locale)
	}
	if len(place) == 0 {
		return lost, nil
	}
	reply, err := b.reply(ctx, a, in)
	if err != nil {
		return "", err
	}
	reply.Text = said
	reaction, err := handle(ctx, reply)
	if err == nil && reaction.Err != nil && reaction.Err.Code == fault.NotFound {
		return lost, nil
	}
	if reaction.AskedBack {
		return "", err
	}
	return reaction.Text, err
}

// reply is who replies and where, with the mail address that the directory knows of them.
func (b *bot) reply(ctx context.Context, a human.Account, in activity) (human.Reply, error) {
	r := human.Reply{
		Account: a.Account, Threads: threads(in.Conversation.ID, in.ReplyTo), From: cmp.Or(in.From.AAD, in.From.ID),
		Name: in.From.Name, Verified: true,
	}
	if in.From.AAD != "" && in.From.ID != "" {
		r.Aliases = []string{in.From.ID}
	}
	if in.ID != "" {
		r.Dedup = in.Conversation.ID + "|" + in.ID
	}
	var member struct {
		AAD   string `json:"aadObjectId"`
		Mail  string `json:"email"`
		Login string `json:"userPrincipalName"`
		// Tenant is where they are at home.
		Tenant string `json:"tenantId"`
	}
	address := strings.TrimRight(in.Service, "/") + "/v3/conversations/" + url.PathEscape(in.Conversation.ID) + "/members/" + url.PathEscape(in.From.ID)
	err := b.call(ctx, "asking who somebody is", http.MethodGet, address, nil, &member)
	if refused, ok := errors.AsType[*refusal](err); err != nil && (!ok || refused.fault.Retryable) {
		return r, err // without it the reply could be refused that is to count
	}
	// What another tenant writes into its directory is what its admins like, so nobody is believed to have an address by that. A bot of
	// several tenants has none of its own.
	home := b.tenant != anyTenant && (member.Tenant == "" || strings.EqualFold(member.Tenant, b.tenant))
	if err == nil && home && in.From.AAD != "" && strings.EqualFold(member.AAD, in.From.AAD) {
		if r.Mail = member.Mail; r.Mail == "" && !strings.Contains(member.Login, "#") { // guests have no address there
			r.Mail = member.Login
		}
	}
	return r, nil
}

// answerActivity answers an activity. That the answer does not reach this person is not a reason to take their reply again.
func (b *bot) answerActivity(ctx context.Context, in activity, text string) error {
	if text == "" {
		return nil
	}
	out := post{Type: "message", Text: text, TextFormat: "plain", ReplyTo: in.ID}
	err := b.call(ctx, "answering the message", http.MethodPost, activities(in.Service, in.Conversation.ID, in.ID), out, nil)
	if r, ok := errors.AsType[*refusal](err); ok && !r.fault.Retryable {
		return nil
	}
	return err
}

// spaces is what stands between words.
var spaces = regexp.MustCompile(`[ \t\x{a0}]+`)

// words are the words of a text, without what it quotes and the name of the bot that it is for.
func words(text string) string {
	text = hypertext.Words(text, " ", "blockquote", "quote", "at")
	return strings.TrimSpace(spaces.ReplaceAllString(text, " "))
}
