package telegram

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/human"
	"tandem/text"
)

const (
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
	// pollSeconds is how long the service waits for something to tell.
	pollSeconds = 50
	// webhookCheck is how often it is looked whether a webhook is still set.
	webhookCheck = 10 * time.Minute
	maxToast     = 200
)

// updateKinds are the updates that the channel and the triggers want; the service wants them named in every call. It is read-only.
var updateKinds = []string{eventMessage, eventPost, eventCallback}

// response is a call that tells a person what became of their reply.
type response struct {
	method string
	params any
}

// Receive takes an update that the service brings. What people are to read goes back in the same answer.
func (c *Channel) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	b, release, err := c.open(r.Context(), a.Open, a.Credential)
	if err != nil {
		return unknownTo(err)
	}
	defer release()
	if b.secret == "" {
		return fault.New(fault.Unauthorized, "this bot takes no webhooks; put a webhook_secret into its credential")
	}
	given, want := sha256.Sum256([]byte(r.Header.Get(secretHeader))), sha256.Sum256([]byte(b.secret))
	if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return fault.Newf(fault.Unauthorized, "the header %s is not the secret of this bot", secretHeader)
	}
	raw, err := human.ReadCall(w, r, human.MaxCall)
	if err != nil {
		return err
	}
	if !json.Valid(raw) {
		return fault.New(fault.Invalid, "the body is not an update of Telegram")
	}
	var answer *response
	var u update
	if json.Unmarshal(raw, &u) == nil { // else it is of a kind to come, and would only be brought again and again
		if answer, err = c.deal(r.Context(), b, a, u, raw, handle); err != nil {
			return err // it comes again
		}
	}
	if answer == nil {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	body, err := withMethod(*answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}

// unknownTo keeps from somebody unknown which credentials there are.
func unknownTo(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.CredentialMissing, fault.CredentialInvalid, fault.Forbidden:
		return fault.New(fault.Unauthorized, "there is no such bot here").WithCause(err)
	}
	return err
}

// withMethod writes a call the way it is made in the answer to a webhook.
func withMethod(r response) ([]byte, error) {
	raw, err := json.Marshal(r.params)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "write the answer to a webhook: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fault.Newf(fault.Internal, "write the answer to a webhook: %w", err)
	}
	if fields["method"], err = json.Marshal(r.method); err != nil {
		return nil, fault.Newf(fault.Internal, "write the answer to a webhook: %w", err)
	}
	return json.Marshal(fields)
}

// Listen looks for updates, or, where the account can be called back and has a webhook_secret, sees to it that they are
// brought.
func (c *Channel) Listen(ctx context.Context, a human.Account, handle human.Handle) error {
	var offset int64
	var told string // the secret that the service was asked to bring along
	for {
		b, release, err := c.open(ctx, a.Open, a.Credential) // each time, so that a new token is used soon
		if err != nil {
			return ended(ctx, err)
		}
		if b.called(a.Callback) {
			err = b.hook(ctx, a.Callback, told != b.secret)
			told = b.secret
			release()
			if err == nil {
				wait(ctx, webhookCheck)
			}
		} else {
			offset, err = c.poll(ctx, b, a, offset, handle)
			release()
		}
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
	}
}

// called says whether updates are brought to an address, instead of being looked for.
func (b *bot) called(address string) bool {
	return b.secret != "" && strings.HasPrefix(address, "https://")
}

// ended leaves out the error of a wait that was broken off.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// hook sees to it that updates are brought to an address. One that somebody else has set is left alone.
func (b *bot) hook(ctx context.Context, address string, anew bool) error {
	var is webhookInfo
	if err := b.call(ctx, "getWebhookInfo", struct{}{}, &is); err != nil {
		return err
	}
	if is.URL == address && !anew {
		return nil
	}
	if is.URL != "" && is.URL != address {
		if place(is.URL) == "" || place(is.URL) != place(address) {
			return fault.New(fault.Conflict, "the bot has a webhook of another program; delete it there, or use a bot of its own")
		}
	}
	return b.call(ctx, "setWebhook", setWebhook{URL: address, Secret: b.secret, Allowed: updateKinds}, nil)
}

// place is the part of an address that stays when an instance moves: what names the account.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if at := strings.LastIndex(u.Path, "/channels/"); at >= 0 {
		return u.Path[at:]
	}
	return ""
}

// poll waits for updates and deals with them. It returns the offset that passes those that are done with: asking from there is
// what tells the service so.
func (c *Channel) poll(ctx context.Context, b *bot, a human.Account, offset int64, handle human.Handle) (int64, error) {
	var raws []json.RawMessage
	if err := b.call(ctx, "getUpdates", getUpdates{Offset: offset, Timeout: pollSeconds, Allowed: updateKinds}, &raws); err != nil {
		return offset, err
	}
	for _, raw := range raws {
		var u update
		if err := json.Unmarshal(raw, &u); err != nil {
			if u.ID == 0 {
				return offset, fault.New(fault.RemoteError, "Telegram told an update that cannot be read").WithCause(err)
			}
			offset = u.ID + 1 // of a kind to come, so nothing of ours
			continue
		}
		answer, err := c.deal(ctx, b, a, u, raw, handle)
		if err == nil {
			offset = u.ID + 1
			err = b.sendResponse(ctx, answer)
		}
		if err != nil {
			// Listening ends here, so what is done with is passed at once.
			return offset, errors.Join(err, b.call(ctx, "getUpdates", getUpdates{Offset: offset, Limit: 1, Allowed: updateKinds}, nil))
		}
	}
	return offset, nil
}

// sendResponse makes a call that tells a person something. That the message does not reach this person is not a reason to take their
// reply again.
func (b *bot) sendResponse(ctx context.Context, r *response) error {
	if r == nil {
		return nil
	}
	err := b.call(ctx, r.method, r.params, nil)
	if refused, ok := errors.AsType[*refusal](err); ok &&
		(refused.status == http.StatusBadRequest || refused.status == http.StatusForbidden) {
		return nil
	}
	return err
}

// deal takes what an update answers, and hands it to the triggers that share the bot. An error means that it has to come again.
func (c *Channel) deal(ctx context.Context, b *bot, a human.Account, u update, raw []byte, handle human.Handle) (*response, error) {
	answer, ours, err := b.takeUpdate(ctx, a, u, handle)
	if err != nil {
		return nil, err
	}
	n := news{channel: c, bot: b, update: &u, raw: raw, answers: ours}
	if _, err := c.relay.Deliver(ctx, a.Account, n.judge); err != nil {
		return nil, err
	}
	return answer, nil
}

// takeUpdate takes an update as a reply. Ours says that it is one to a question, or to what was one. An error means that it has
// to come again.
func (b *bot) takeUpdate(ctx context.Context, a human.Account, u update, handle human.Handle) (answer *response, ours bool, err error) {
	reply := human.Reply{Account: a.Account, Verified: true, Dedup: b.id() + ":" + strconv.FormatInt(u.ID, 10)}
	switch {
	case u.Callback != nil:
		return b.click(ctx, a, *u.Callback, reply, handle)
	case u.Message != nil:
		return b.text(ctx, a, *u.Message, reply, handle)
	}
	return nil, false, nil
}

// click deals with a button. The service wants an answer to each, whosever button it is.
func (b *bot) click(ctx context.Context, a human.Account, q callback, reply human.Reply,
	handle human.Handle) (answer *response, ours bool, err error) {
	toast := func(said string, alert bool) (*response, bool, error) {
		return &response{"answerCallbackQuery", answerCallback{ID: q.ID, Text: text.FitUTF16(said, maxToast), Alert: alert}}, ours, nil
	}
	s, ours := readStamp(q.Data)
	if !ours || q.From.IsBot {
		return toast("", false)
	}
	reply.Interaction = s.interaction
	if q.Message != nil {
		reply.Threads = []string{b.thread(q.Message.Chat.ID, q.Message.ID)}
	}
	sender(&reply, q.From)
	asked, err := look(ctx, reply, handle)
	switch {
	case err != nil:
		return nil, ours, err
	case asked.Err != nil && asked.Err.Code == fault.NotFound:
		return toast(text.Of("This question is not there any more.").In(q.From.Language), true)
	case asked.Err != nil && asked.Err.Code == fault.Forbidden:
		return toast(asked.Text, true)
	}
	i, request := asked.Interaction, asked.Request
	chosen, ok := b.opens(s, i, request)
	if !ok {
		return toast(text.Of("This button does not fit the question; use the latest message.").In(request.Language), true)
	}
	set, err := readSettings(request)
	if err != nil {
		return nil, ours, err
	}
	if q.Message == nil || q.Message.Chat.Type != "private" && !set.counts(q.From) {
		return toast(text.Of("This question is not for you.").In(request.Language), true)
	}
	reply.Interaction, reply.Answer, reply.ArgumentsHash = i.ID, chosen, i.ArgumentsHash
	reaction, err := handle(ctx, reply)
	if err != nil {
		return nil, ours, err
	}
	return toast(reaction.Text, !reaction.Accepted)
}

// text takes a reply in prose. Only replies to messages of this bot count; what bots and groups say is ignored.
func (b *bot) text(ctx context.Context, a human.Account, m message, reply human.Reply,
	handle human.Handle) (answer *response, ours bool, err error) {
	reply.Text = strings.TrimSpace(cmp.Or(m.Text, m.Caption))
	if m.ReplyTo == nil || m.From == nil || m.From.IsBot || m.SenderChat != nil || reply.Text == "" {
		return nil, false, nil
	}
	say := func(said string) (*response, bool, error) {
		if said == "" {
			return nil, true, nil
		}
		return &response{"sendMessage", sendMessage{
			Chat: chatID(strconv.FormatInt(m.Chat.ID, 10)), Text: text.FitUTF16(said, maxText),
			ReplyTo: &replyTo{Message: m.ID, Anyway: true},
		}}, true, nil
	}
	reply.Threads = []string{b.thread(m.Chat.ID, m.ReplyTo.ID)}
	sender(&reply, *m.From)
	asked, err := look(ctx, reply, handle)
	if err == nil && asked.Err != nil && asked.Err.Code == fault.NotFound {
		// Sent twice, of which only the second was noted: then its buttons tell.
		if reply.Interaction = b.stampedOn(m.ReplyTo); reply.Interaction != "" {
			asked, err = look(ctx, reply, handle)
		}
	}
	private := m.Chat.Type == "private"
	switch {
	case err != nil:
		return nil, true, err
	case asked.Err != nil && asked.Err.Code == fault.NotFound:
		return nil, false, nil
	case asked.Err != nil && asked.Err.Code == fault.Forbidden:
		if !private {
			return nil, true, nil // people talk in groups
		}
		reaction, err := handle(ctx, reply) // so that it is recorded
		if err != nil {
			return nil, true, err
		}
		return say(reaction.Text)
	}
	request := asked.Request
	set, err := readSettings(request)
	if err != nil {
		return nil, true, err
	}
	if !private && !set.counts(*m.From) {
		return nil, true, nil
	}
	if !set.takes(reply.Text) {
		if asked.Ended {
			return nil, true, nil
		}
		return say(text.Of("Such a reply is not taken; use the buttons of the message.").In(request.Language))
	}
	reply.Interaction = asked.Interaction.ID
	reaction, err := handle(ctx, reply)
	if err != nil || reaction.AskedBack {
		return nil, true, err
	}
	return say(reaction.Text)
}

// look asks what the question of a reply is: buttons bring only the number of an option, and texts have to be ones that are
// wanted.
func look(ctx context.Context, r human.Reply, handle human.Handle) (human.Reaction, error) {
	r.Look = true
	return handle(ctx, r)
}

// stampedOn is the question whose buttons hang on a message of this bot.
func (b *bot) stampedOn(m *message) string {
	if m.Keyboard == nil || m.From == nil || strconv.FormatInt(m.From.ID, 10) != b.id() {
		return ""
	}
	for _, key := range slices.Concat(m.Keyboard.Rows...) {
		if s, ok := readStamp(key.Data); ok {
			return s.interaction
		}
	}
	return ""
}

// sender fills in who sent a reply: the number, which stays, and the name, which the service vouches for now.
func sender(r *human.Reply, p person) {
	r.From = strconv.FormatInt(p.ID, 10)
	r.Name = p.FirstName
	if p.Username != "" {
		r.Name = "@" + p.Username
		r.Aliases = []string{r.Name}
		if small := strings.ToLower(r.Name); small != r.Name { // names are the same however they are written
			r.Aliases = append(r.Aliases, small)
		}
	}
}

// counts says that what somebody says in a group counts: either they are listed, or there is no list and the approvers decide.
func (s settings) counts(p person) bool {
	return len(s.Targets) == 0 || slices.ContainsFunc(s.Targets, func(t chatID) bool {
		name := strings.TrimPrefix(string(t), Name+":")
		if name == strconv.FormatInt(p.ID, 10) {
			return true
		}
		return p.Username != "" && strings.EqualFold(strings.TrimPrefix(name, "@"), p.Username)
	})
}

// takes says that prose like this is taken. A pattern that cannot be read fits nothing.
func (s settings) takes(text string) bool {
	if s.Texts != nil && !*s.Texts {
		return false
	}
	return len(s.Patterns) == 0 || slices.ContainsFunc(s.Patterns, func(p string) bool {
		re, err := regexp.Compile(p)
		return err == nil && re.MatchString(text)
	})
}
