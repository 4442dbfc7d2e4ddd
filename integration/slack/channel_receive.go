package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
)

const (
	// patience leaves something of the 3 seconds after which Slack gives up.
	patience = 2 * time.Second
	// workTime bounds what goes on after Slack was answered.
	workTime = 30 * time.Second
	// lookupTime bounds the look at who somebody is.
	lookupTime = 1500 * time.Millisecond
)

// Receive takes what Slack posts: clicks and forms, and the messages that people write in threads.
func (c *Channel) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	body, err := human.ReadCall(w, r, human.MaxCall)
	if err != nil {
		return err
	}
	s, release, err := open(r.Context(), c.client, a.Open, a.Credential)
	if err != nil {
		return err
	}
	defer release()
	if err := s.verify(r.Header, body); err != nil {
		return err
	}
	// The work goes on when Slack has hung up, and ends with this call.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	v := visit{channel: c, session: s, account: a, handle: handle, w: w}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && media == "application/json":
		return v.event(ctx, body)
	case err == nil && media == "application/x-www-form-urlencoded":
		posted, err := url.ParseQuery(string(body))
		if err != nil {
			return fault.New(fault.Invalid, "the form cannot be read").WithCause(err)
		}
		return v.interaction(ctx, posted.Get("payload"))
	}
	return fault.New(fault.Unsupported, "Slack posts JSON or a form")
}

// verify checks the signature. A credential without a signing secret lets nobody in.
func (s *session) verify(header http.Header, body []byte) error {
	if s.signing == "" {
		return fault.New(fault.Unauthorized, "the credential has no signing_secret, so nothing can be believed; save it with the one that the app's page shows")
	}
	v, err := slack.NewSecretsVerifier(header, s.signing)
	if err == nil {
		_, err = v.Write(body)
	}
	if err == nil {
		err = v.Ensure()
	}
	if err != nil {
		return fault.New(fault.Unauthorized, "the request is not signed by Slack, or too old").WithCause(err)
	}
	return nil
}

// visit is one request of Slack.
type visit struct {
	channel *Channel
	session *session
	account human.Account
	handle  human.Handle
	w       http.ResponseWriter
}

// outcome is what became of a reply.
type outcome struct {
	human.Reaction
	err error
	// form is that of the question, if something was filled in.
	form *form.Form
	// mine says that this visit did the work, and did not only wait for another that brought the same.
	mine bool
}

// text tells the person.
func (o outcome) text(w words) string {
	if o.err != nil {
		return w.TryAgain
	}
	return w.Became(o.Reaction)
}

// reader makes values of what was filled in; nil: the reply is prose, or only looks.
type reader = func(f *form.Form) (form.Values, form.Problems)

// hand finds out who a reply is from and hands it in.
func (v *visit) hand(ctx context.Context, who person, reply human.Reply, read reader) outcome {
	known := v.session.identify(ctx, &reply, who)
	var o outcome
	if read != nil {
		o.Reaction, o.form, o.err = v.handle.Fill(ctx, reply, read)
	} else {
		o.Reaction, o.err = v.handle(ctx, reply)
	}
	if !known && o.Err != nil && o.Err.Code == fault.Forbidden {
		// Perhaps they are listed by their address, which could not be looked up.
		o.Text = wordsIn(cmp.Or(o.Request.Language, who.language)).unknownMail
	}
	return o
}

// work does what a visit has brought, while the visit waits. Two visits that bring the same share it.
func (v *visit) work(dedup string, do func() outcome) <-chan outcome {
	out := make(chan outcome, 1)
	mine := false
	results := v.channel.replies.DoChan(v.account.Workspace+"/"+v.account.Credential+"/"+dedup, func() (any, error) {
		mine = true
		o := do()
		return o, o.err
	})
	go func() {
		r := <-results
		o, _ := r.Val.(outcome)
		o.err, o.mine = r.Err, mine
		out <- o
	}()
	return out
}

// workOn hands a reply in, while the visit waits.
func (v *visit) workOn(ctx context.Context, who person, reply human.Reply, read reader) <-chan outcome {
	return v.work(reply.Dedup, func() outcome { return v.hand(ctx, who, reply, read) })
}

// soon waits for an outcome as long as Slack does.
func (v *visit) soon(results <-chan outcome) (o outcome, ok bool) {
	timer := time.NewTimer(v.channel.patience)
	defer timer.Stop()
	select {
	case o = <-results:
		return o, true
	case <-timer.C:
		return o, false
	}
}

// early answers though the visit goes on: the next request must not wait for that on the same connection.
func (v *visit) early(status int) error {
	v.w.Header().Set("Connection", "close")
	return v.reply(status, nil)
}

// reply writes the answer and sends it off.
func (v *visit) reply(status int, body any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fault.New(fault.Internal, "the answer to Slack cannot be written").WithCause(err)
		}
		v.w.Header().Set("Content-Type", "application/json")
	}
	v.w.Header().Set("Content-Length", strconv.Itoa(len(raw))) // without it the answer would end with the visit
	v.w.WriteHeader(status)
	_, err := v.w.Write(raw)
	if err == nil {
		err = http.NewResponseController(v.w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		v.warn("Slack cannot be answered", err) // it has hung up; what it brought is worked on all the same
	}
	return nil
}

func (v *visit) warn(text string, err error) {
	v.channel.log.Warn(text, "workspace", v.account.Workspace, "credential", v.account.Credential, "error", err)
}

// person is who Slack says somebody is. Team is the workspace that the app is installed in.
type person struct {
	id, team, enterprise, language string
}

// identify fills in who a reply is from. The mail address of somebody who belongs to another workspace is what that one says, so
// it is not believed. It is false if the address could not be looked up and may be one all the same.
func (s *session) identify(ctx context.Context, reply *human.Reply, who person) bool {
	reply.From, reply.Verified = who.id, true
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	user, err := s.api.GetUserInfoContext(ctx, who.id)
	if err != nil {
		switch said(err) {
		case "missing_scope", "user_not_found", "user_not_visible", "no_permission":
			return true // there is none to be had
		}
		return false
	}
	reply.Name = cmp.Or(user.Profile.DisplayName, user.RealName, user.Name)
	home := who.team != "" && user.TeamID == who.team || who.enterprise != "" && user.Enterprise.EnterpriseID == who.enterprise
	if home && !user.IsStranger && !user.IsBot && !user.Deleted {
		reply.Mail = strings.ToLower(user.Profile.Email)
	}
	return true
}

// event reads what happened in Slack. A reply in the thread of a question is an answer to it; everything else is for triggers.
func (v *visit) event(ctx context.Context, body []byte) error {
	var e eventCallback
	if err := json.Unmarshal(body, &e); err != nil {
		return fault.New(fault.Invalid, "the event cannot be read").WithCause(err)
	}
	if e.Type == "url_verification" {
		return v.reply(http.StatusOK, map[string]string{"challenge": e.Challenge})
	}
	if e.Type != "event_callback" || e.EventID == "" {
		return v.reply(http.StatusOK, nil)
	}
	who, bot := e.sender()
	m := &e.Event
	results := v.work("event:"+e.EventID, func() (o outcome) {
		if e.isReply(bot) {
			o = v.hand(ctx, who, human.Reply{
				Account: v.account.Account, Threads: []string{threadOf(m.Channel.ID, m.ThreadTS)},
				Text: unescape(m.Text), Dedup: "event:" + e.EventID,
			}, nil)
		}
		if o.err == nil {
			h := happening{channel: v.channel, session: v.session, account: v.account.Account, e: &e, bot: bot, body: body,
				answers: o.Interaction.ID != ""}
			_, o.err = v.channel.relay.Deliver(ctx, v.account.Account, h.judge)
		}
		return o
	})
	o, ok := v.soon(results)
	switch {
	case !ok:
		// It is asked to come again, and then finds this done or joins it.
		if err := v.early(http.StatusServiceUnavailable); err != nil {
			return err
		}
		o = <-results
		if o.err != nil {
			v.warn("an event from Slack was not recorded; it comes again", o.err)
			return nil
		}
	case o.err != nil:
		return o.err
	case o.Interaction.ID == "": // nobody gets an answer
		return v.reply(http.StatusOK, nil)
	default:
		if err := v.early(http.StatusOK); err != nil {
			return err
		}
	}
	// What was not understood is asked back in a message of its own; a thread about something else is none of our business.
	if o.mine && o.Interaction.ID != "" && (o.Accepted || o.Err != nil) {
		v.whisper(ctx, m.Channel.ID, m.ThreadTS, m.User.ID, o.text(wordsIn(o.Request.Language)))
	}
	return nil
}

// whisper tells one person something in a channel.
func (v *visit) whisper(ctx context.Context, channel, thread, user, text string) {
	options := []slack.MsgOption{slack.MsgOptionText(escape(text, sectionMax), false)}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	if _, err := v.session.api.PostEphemeralContext(ctx, channel, user, options...); err != nil {
		v.warn("a person cannot be told what became of their reply", problem("tell them", err))
	}
}

// pressed is what Slack says about a click or a form.
type pressed struct {
	Type        string `json:"type"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	Team        *struct {
		ID string `json:"id"`
	} `json:"team"`
	Enterprise *struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message struct {
		TS string `json:"ts"`
	} `json:"message"`
	Actions []struct {
		ActionID string `json:"action_id"`
		Value    string `json:"value"`
		ActionTS string `json:"action_ts"`
	} `json:"actions"`
	View struct {
		ID         string `json:"id"`
		Hash       string `json:"hash"`
		CallbackID string `json:"callback_id"`
		Metadata   string `json:"private_metadata"`
		State      struct {
			Values state `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

func (p pressed) person(t touch) person {
	who := person{id: p.User.ID, language: t.Language}
	if p.Team != nil {
		who.team = p.Team.ID
	}
	if p.Enterprise != nil {
		who.enterprise = p.Enterprise.ID
	}
	return who
}

func (v *visit) interaction(ctx context.Context, payload string) error {
	var p pressed
	if err := json.Unmarshal([]byte(payload), &p); err != nil || p.User.ID == "" {
		return fault.New(fault.Invalid, "the payload cannot be read").WithCause(err)
	}
	switch {
	case p.Type == "block_actions" && len(p.Actions) > 0:
		action := p.Actions[0]
		choose, opens := strings.HasPrefix(action.ActionID, actionChoose), action.ActionID == actionForm
		var t touch
		if !choose && !opens { // the link opens by itself
			return v.reply(http.StatusOK, nil)
		}
		if json.Unmarshal([]byte(action.Value), &t) != nil || t.Interaction == "" {
			return fault.New(fault.Invalid, "the button brings nothing back that can be read")
		}
		if opens {
			return v.openForm(ctx, p, t)
		}
		return v.choose(ctx, p, t)
	case p.Type == "view_submission" && p.View.CallbackID == viewAnswer:
		var t touch
		if json.Unmarshal([]byte(p.View.Metadata), &t) != nil || t.Interaction == "" {
			return fault.New(fault.Invalid, "the form brings nothing back that can be read")
		}
		return v.submit(ctx, p, t)
	}
	return v.reply(http.StatusOK, nil)
}

// choose takes a click. What became of it is sent apart from the answer, which shows nothing.
func (v *visit) choose(ctx context.Context, p pressed, t touch) error {
	results := v.workOn(ctx, p.person(t), human.Reply{
		Account: v.account.Account, Interaction: t.Interaction, Threads: []string{threadOf(p.Channel.ID, p.Message.TS)},
		ArgumentsHash: t.Hash, Dedup: "action:" + p.TriggerID + ":" + p.Actions[0].ActionTS,
	}, human.Choose(t.Value))
	o, ok := v.soon(results)
	if err := v.early(http.StatusOK); err != nil {
		return err
	}
	if !ok {
		o = <-results
	}
	if o.err != nil {
		v.warn("a click in Slack was not recorded", o.err)
	}
	if o.mine {
		v.respond(ctx, p.ResponseURL, o.text(wordsIn(cmp.Or(o.Request.Language, t.Language))))
	}
	return nil
}

// respond tells the person who clicked, and nobody else.
func (v *visit) respond(ctx context.Context, address, text string) {
	if address == "" {
		return
	}
	err := slack.PostWebhookCustomHTTPContext(ctx, address, v.session.http, &slack.WebhookMessage{
		Text: escape(text, sectionMax), ResponseType: slack.ResponseTypeEphemeral, ReplaceOriginal: false,
	})
	if err != nil {
		v.warn("a person cannot be told what became of their click", problem("tell them", err))
	}
}

// openForm shows the form of a question to somebody who may answer it.
func (v *visit) openForm(ctx context.Context, p pressed, t touch) error {
	quick, cancel := context.WithTimeout(ctx, v.channel.patience)
	defer cancel()
	w := wordsIn(t.Language)
	text := ""
	reply := human.Reply{Account: v.account.Account, Interaction: t.Interaction, ArgumentsHash: t.Hash, Look: true}
	o := v.hand(quick, p.person(t), reply, nil)
	switch {
	case o.err != nil:
		v.warn("the question of a form cannot be read", o.err)
		text = w.TryAgain
	case o.Err != nil:
		text = o.text(w)
	case o.Ended:
		text = w.Ended
	default:
		t.Channel, t.TS = p.Channel.ID, p.Message.TS
		view, ok := modal(o.Interaction, o.Request, t)
		if !ok {
			text = form.Instead(false).In(t.Language)
			break
		}
		if _, err := v.session.api.OpenViewContext(quick, p.TriggerID, view); err != nil {
			v.warn("a form cannot be shown in Slack", problem("open the form", err))
			text = w.TryAgain
		}
	}
	if err := v.early(http.StatusOK); err != nil {
		return err
	}
	if text != "" {
		v.respond(ctx, p.ResponseURL, text)
	}
	return nil
}

// submit takes a form. Its problems are shown at its fields, and what was typed stays.
func (v *visit) submit(ctx context.Context, p pressed, t touch) error {
	values := p.View.State.Values
	reply := human.Reply{
		Account: v.account.Account, Interaction: t.Interaction, ArgumentsHash: t.Hash,
		Dedup: "view:" + p.View.ID + ":" + p.View.Hash + ":" + p.TriggerID,
	}
	if t.Channel != "" && t.TS != "" {
		reply.Threads = []string{threadOf(t.Channel, t.TS)}
	}
	results := v.workOn(ctx, p.person(t), reply, values.readForm)
	o, ok := v.soon(results)
	if !ok {
		if err := v.early(http.StatusOK); err != nil { // closes the form
			return err
		}
		o = <-results
		if o.err != nil {
			v.warn("a form from Slack was not recorded", o.err)
		}
		if o.mine && t.Channel != "" {
			v.whisper(ctx, t.Channel, "", p.User.ID, o.text(wordsIn(t.Language)))
		}
		return nil
	}
	w := wordsIn(cmp.Or(o.Request.Language, t.Language))
	if o.err != nil {
		v.warn("a form from Slack was not recorded", o.err)
		return v.reply(http.StatusOK, slack.NewErrorsViewSubmissionResponse(map[string]string{firstBlock(values): w.TryAgain}))
	}
	if o.Err != nil && !o.Ended {
		if at, ok := complaints(o.Err, o.form, cmp.Or(o.Request.Language, t.Language), values); ok {
			return v.reply(http.StatusOK, slack.NewErrorsViewSubmissionResponse(at))
		}
	}
	view := told(w, o.text(w))
	return v.reply(http.StatusOK, slack.NewUpdateViewSubmissionResponse(&view))
}

// firstBlock is where a complaint about the whole form is shown.
func firstBlock(s state) string {
	first := ""
	for block := range s {
		if first == "" || block < first {
			first = block
		}
	}
	return first
}

// unescape reads a text as Slack writes it: links and mentions as what people see, and the characters that mean something to it.
func unescape(text string) string {
	var b bytes.Buffer
	for {
		before, rest, found := strings.Cut(text, "<")
		b.WriteString(before)
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, ">")
		if !closed {
			b.WriteString("<" + rest)
			break
		}
		target, label, labelled := strings.Cut(inside, "|")
		switch {
		case labelled:
			b.WriteString(label)
		case strings.HasPrefix(target, "!"):
			b.WriteString("@" + target[1:])
		default:
			b.WriteString(strings.TrimPrefix(target, "mailto:"))
		}
		text = after
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(b.String())
}
