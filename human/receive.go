package human

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

const (
	// maxReplies is how many replies to a question are recorded; more are only logged. An answer that counts is always recorded.
	maxReplies = 200
	// maxAskBacks is how often one person is asked back: two programs that answer each other come to an end.
	maxAskBacks = 3
	// maxRaw is how much of a reply is kept.
	maxRaw = 64 << 10
)

// Receive takes a reply that came by a channel. It is a [Handle]: an error means that the reply could not be recorded. A reply
// that does not count is not an error.
func (d *Desk) Receive(ctx context.Context, r Reply) (Reaction, error) {
	id, threaded, err := d.match(ctx, r)
	if err != nil {
		return Reaction{}, err
	}
	var s *sitting
	if id != "" {
		s, err = d.sit(ctx, identity.System(r.Workspace), id)
	}
	if id == "" || fault.CodeOf(err) == fault.NotFound {
		why := fault.New(fault.NotFound, "the reply belongs to no question")
		_ = d.refuse(store.Interaction{Workspace: r.Workspace, ID: r.Interaction}, r.Channel+":"+r.From, why)
		return Reaction{Err: why}, nil
	}
	if err != nil {
		return Reaction{}, err
	}
	if r.Look {
		return s.look(r), nil
	}
	r.Text, r.Subject = withoutLinks(r.Text), withoutLinks(r.Subject)
	t := &taking{d: d, reply: r, threaded: threaded}
	// A model is asked before the question is locked: it may take long.
	if who, err := s.sender(r); r.Answer == nil && s.known(r) == nil && err == nil && s.admit(who, r.ArgumentsHash) == nil {
		t.judge(ctx, s)
	}
	_, err = d.decide(ctx, r.Workspace, id, func(s *sitting) error {
		t.sitting = s
		return t.takeReply(ctx)
	})
	if err != nil {
		return Reaction{}, err
	}
	t.reaction.Request = t.sitting.request
	if t.reaction.Interaction = t.sitting.Interaction; t.sitting.change.Interaction.ID != "" {
		t.reaction.Interaction = t.sitting.change.Interaction
		t.reaction.Interaction.Version++
	}
	t.reaction.Ended = t.reaction.Interaction.Status != store.InteractionPending
	t.reaction.AskedBack, t.reaction.Text = t.asked, t.say()
	return t.reaction, nil
}

// match finds the question that a reply is about. Threaded says whether that is certain.
func (d *Desk) match(ctx context.Context, r Reply) (id string, threaded bool, err error) {
	if r.Interaction != "" { // the channel knows it: by its own button, by the message that was replied to, or by a signed call that names it
		return r.Interaction, true, nil
	}
	threads := slices.Clone(r.Threads)
	if r.Token != "" {
		threads = append(threads, tokenThread(r.Token))
	}
	for _, thread := range threads {
		id, err := d.o.Interactions.Thread(ctx, identity.System(r.Workspace), r.Channel, thread)
		switch {
		case err == nil && id != "":
			return id, true, nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return "", false, err
		}
	}
	return "", false, nil
}

// sender is who sent a reply, as far as that is certain.
func (s *sitting) sender(r Reply) (somebody, error) {
	own := r.Channel == s.Channel && (r.Credential == s.Credential || r.Credential == s.request.Credential)
	if !own && s.progress.wayFor(r.Account) == nil {
		// Otherwise the holder of another account could answer in anybody's name.
		return somebody{}, fault.Say(fault.Forbidden, text.Of("the reply did not come by the account that asked"))
	}
	seats := []string{addressSeat(r.Channel, r.From)}
	if r.Mail != "" {
		seats = append(seats, addressSeat(Email, r.Mail))
	}
	if r.User != "" {
		seats = append(seats, seatUser+r.User)
	}
	who, err := s.people.sender(seats...)
	if err != nil {
		return who, err
	}
	switch {
	case r.Automatic:
		return who, fault.Say(fault.Forbidden, text.Of("no person wrote it"))
	case !r.Verified:
		return who, fault.Say(fault.Forbidden, text.Of("nobody knows that it is from who it says"))
	}
	for _, alias := range r.Aliases {
		// An alias finds approvers, but does not identify a user.
		if seat := addressSeat(r.Channel, alias); len(s.people.byAddress[seat]) == 0 {
			who = s.seated(who, seat)
		}
	}
	return who, nil
}

// seated gives somebody the seat of an alias. A person who is asked by that alone votes as that seat, and not by their number:
// names move from one account to another, and each seat has one vote.
func (s *sitting) seated(who somebody, seat string) somebody {
	asked := has(s.Approvers, who.seats) || s.progress.holds(who.seats) != "" || slices.Contains(s.Approvers, Anyone)
	if !asked && !s.Excludes(who.user) && slices.Contains(s.Approvers, seat) {
		return somebody{key: seat, address: seat, account: who.key, seats: []string{seat}}
	}
	who.seats = append(who.seats, seat)
	return who
}

// known finds a reply that was recorded before.
func (s *sitting) known(r Reply) *store.Response {
	if r.Dedup == "" {
		return nil
	}
	n := slices.IndexFunc(s.responses, func(one store.Response) bool { return one.Channel == r.Channel && one.Dedup == r.Dedup })
	if n < 0 {
		return nil
	}
	return &s.responses[n]
}

// look returns a question for somebody who may be about to answer it.
func (s *sitting) look(r Reply) Reaction {
	reaction := Reaction{Ended: s.Status != store.InteractionPending, Interaction: s.Interaction, Request: s.request}
	who, err := s.sender(r)
	reaction.Request = s.request.In(s.people.language(who), s.Purpose)
	if err == nil {
		err = s.admit(who, r.ArgumentsHash)
	}
	if err != nil {
		reaction.Err = fault.From(err)
		reaction.Text = sayWhy(reaction.Request.Language, reaction)
		if reaction.Err.Code == fault.Forbidden { // a person who may not answer does not see the question
			reaction.Interaction, reaction.Request = store.Interaction{ID: s.ID, Workspace: s.Workspace,
				Status: s.Status}, Request{Language: reaction.Request.Language}
		}
	}
	return reaction
}

// taking is a reply that is being taken. It may be taken several times, until it is written.
type taking struct {
	*sitting
	d         *Desk
	reply     Reply
	threaded  bool
	judgement *replies.Judgement
	// version is the one of the record that it was last tried with.
	version int64
	// asked says that the person is asked back.
	asked    bool
	reaction Reaction
}

// forReplies returns the parts of the request that the meaning of replies depends on.
func (r *Request) forReplies() replies.Request {
	return replies.Request{
		Type: r.Type, Channel: r.Channel, Title: r.Title, Description: r.Description, Content: r.Content, Arguments: r.Arguments,
		Options: r.Options, Fields: r.Fields,
		Risk: r.Risk, TimeoutSeconds: r.TimeoutSeconds, Language: r.Language, UserMention: r.UserMention,
		AnalysisModel: r.AnalysisModel, AnalysisPrompt: r.AnalysisPrompt,
	}
}

// forReplies returns the parts of the reply that its meaning depends on.
func (r *Reply) forReplies() replies.Reply {
	return replies.Reply{Channel: r.Channel, From: r.From, Name: r.Name, Subject: r.Subject, Text: r.Text, Automatic: r.Automatic,
		Dedup: r.Dedup}
}

// judge lets a model or the rules say what prose means.
func (t *taking) judge(ctx context.Context, s *sitting) {
	text := replies.Text{
		Request: s.request.forReplies(), Reply: t.reply.forReplies(), Asked: time.UnixMilli(s.Created),
		Received: time.UnixMilli(s.now), Listed: true, Threaded: t.threaded,
	}
	if t.d.o.Judge != nil && s.request.AnalysisModel != "" {
		j, err := t.d.o.Judge(ctx, s.Workspace, text)
		if err == nil {
			t.judgement = &j
			return
		}
		t.d.o.Log.Warn("a model could not judge a reply; rules do", "workspace", s.Workspace, "interaction", s.ID, "profile", s.request.AnalysisModel, "error", err)
	}
	j := replies.Classify(text)
	t.judgement = &j
}

func (t *taking) takeReply(ctx context.Context) error {
	t.reaction, t.asked = Reaction{}, false
	if t.reply.Dedup != "" && t.version == t.Version {
		// No other change was faster, and still it could not be written: the message is recorded as a reply to another question.
		t.reaction.Err = fault.Say(fault.Conflict, text.Of("the message was taken as a reply to another question before"))
		return nil
	}
	t.version = t.Version
	if one := t.known(t.reply); one != nil {
		t.recall(one)
		return nil
	}
	who, err := t.sender(t.reply)
	if err == nil {
		err = t.admit(who, t.reply.ArgumentsHash)
	}
	if err == nil && t.reply.Answer == nil {
		if t.judgement == nil { // it could not be answered a moment ago, and now it can
			t.judge(ctx, t.sitting)
		}
		return t.prose(ctx, who)
	}
	if err == nil {
		err = t.click(ctx, who)
	}
	if err != nil {
		t.refuse(who, err)
	}
	return nil
}

// refuse notes a reply that does not count, and why.
func (t *taking) refuse(who somebody, err error) {
	_ = t.d.refuse(t.Interaction, cmp.Or(who.key, t.reply.Channel+":"+t.reply.From), err)
	t.reaction.Err = fault.From(err)
	t.change = store.InteractionChange{}
	// For a form that is wrong or too late the person gets an error at once; a written reply is stored.
	if t.open() != nil || t.reply.Answer != nil && t.reaction.Err.Code != fault.Forbidden || len(t.responses) >= maxReplies {
		return
	}
	one := t.response(who)
	one.Reasoning = t.reaction.Err.Error()
	one.Origin.Refused = t.reaction.Err
	if t.reply.Automatic {
		one.Relevance = replies.Filtered
	}
	if who.key == "" {
		who.address = addressSeat(t.reply.Channel, t.reply.From)
	}
	t.record(who, t.reply.Channel, one)
}

// response is what is recorded of the reply in any case.
func (t *taking) response(who somebody) store.Response {
	raw := t.reply.Text
	if t.reply.Answer != nil {
		raw = ""
	}
	how := t.origin(who, t.channelMeans(who, t.reply))
	if !t.reply.Verified || t.reply.Automatic || t.mayAnswer(who) != nil {
		how.Ground = "" // it does not count on any
	}
	return store.Response{Dedup: t.reply.Dedup, Raw: head(raw, maxRaw), Origin: how}
}

// head is the beginning of a text, at most so many bytes, in characters that can be stored.
func head(said string, most int) string { return text.Head(strings.ToValidUTF8(said, "\uFFFD"), most) }

// recall repeats the result of a reply.
func (t *taking) recall(one *store.Response) {
	t.reaction.Accepted = one.Accepted && one.OverruledBy == ""
	if refused := refusal(one); refused != nil {
		t.reaction.Err = refused
		// If that is still the reason, it can be given in full.
		who, err := t.sender(t.reply)
		if err == nil {
			err = t.admit(who, t.reply.ArgumentsHash)
		}
		if now := fault.From(err); now != nil && now.Code == t.reaction.Err.Code {
			t.reaction.Err = now
		}
	}
	t.asked = !one.Accepted && !payload.IsNull(one.Factors) && one.Relevance != replies.Filtered
}

// refusal is why a reply was refused; nil if it was not.
func refusal(one *store.Response) *fault.Error {
	if one.Accepted || !payload.IsNull(one.Factors) {
		return nil
	}
	if one.Origin.Refused != nil {
		return one.Origin.Refused
	}
	code, message, ok := strings.Cut(one.Reasoning, ": ") // as older versions kept it
	if !ok {
		return nil
	}
	return fault.New(fault.Code(code), message)
}

// click takes what was chosen or filled in.
func (t *taking) click(ctx context.Context, who somebody) error {
	raw := bytes.TrimSpace(t.reply.Answer.Given)
	if len(raw) == 0 {
		var err error
		if raw, err = json.Marshal(t.reply.Answer); err != nil {
			return fault.Newf(fault.InvalidInput, "the answer cannot be read: %w", err)
		}
	}
	if err := t.answer(who, Submission{Data: raw, ArgumentsHash: t.reply.ArgumentsHash, Channel: t.reply.Channel},
		t.response(who)); err != nil {
		return err
	}
	t.reaction.Accepted = true
	return t.d.raise(ctx, t.sitting, who)
}

// prose takes what was written, as it was judged.
func (t *taking) prose(ctx context.Context, who somebody) error {
	j := t.judgement
	one := t.response(who)
	one.Relevance, one.Score, one.Reasoning = j.Relevance, j.Score, j.Reasoning
	if j.Factors == nil {
		j.Factors = map[string]float64{} // they are set only if it was judged
	}
	factors, err := json.Marshal(j.Factors)
	if err != nil {
		return fault.Newf(fault.Internal, "the judgement of a reply cannot be kept: %w", err)
	}
	one.Factors = factors
	switch {
	case j.Relevance == replies.Filtered:
		return t.unrelated(who, one)
	case t.request.Risk == "high":
		return t.askBack(ctx, who, one, reasonHighRisk)
	case j.Relevance != replies.Relevant || j.Classification == "" && j.Option == "" && j.Value == "":
		return t.askBack(ctx, who, one, reasonUnclear)
	}
	data, ok := t.meant(*j)
	if !ok {
		return t.askBack(ctx, who, one, reasonInvalid)
	}
	err = t.answer(who, Submission{Data: data, ArgumentsHash: t.reply.ArgumentsHash, Channel: t.reply.Channel}, one)
	switch {
	case fault.CodeOf(err) == fault.InvalidInput:
		t.change = store.InteractionChange{}
		return t.askBack(ctx, who, one, reasonInvalid)
	case err != nil:
		return err
	}
	t.reaction.Accepted = true
	return nil
}

// meant is the answer that prose stands for, if prose can: a choice, or the only field of a form. All else has to be filled in.
func (t *taking) meant(j replies.Judgement) (json.RawMessage, bool) {
	if given, ok := saidOf(t.Purpose, j); ok {
		return given, true
	}
	notes := head(ownWords(t.reply.Text), 2000)
	var a Answer
	switch {
	case t.Purpose == PurposeToolApproval || t.Purpose == PurposeNode && t.Type == Approval:
		o := t.request.option(j.Option)
		if o.Value == "" {
			n := slices.IndexFunc(t.request.Options,
				func(o Option) bool { return o.Outcome == j.Classification || o.Value == j.Classification })
			if n < 0 {
				return nil, false
			}
			o = t.request.Options[n]
		}
		// The meaning of the words must be that of the option.
		if says := j.Classification; (says == Confirmed || says == Rejected) && o.Outcome != says {
			return nil, false
		}
		a = Answer{Action: o.Value, Notes: notes}
		if t.Purpose == PurposeToolApproval {
			a.Notes = ""
		}
	case t.Purpose == PurposeNode && t.Type == Selection:
		o := t.request.option(cmp.Or(j.Option, j.Classification))
		if o.Value == "" {
			return nil, false
		}
		a = Answer{Chosen: []string{o.Value}, Notes: notes}
	case t.Purpose == PurposeNode && t.Type == Input && len(t.request.Fields) == 1 && j.Value != "":
		value, err := json.Marshal(j.Value)
		if err != nil {
			return nil, false
		}
		a = Answer{Fields: map[string]json.RawMessage{t.request.Fields[0].Name: value}}
	default:
		return nil, false
	}
	raw, err := json.Marshal(a)
	return raw, err == nil
}

// unrelated takes a reply that has nothing to do with the question: it is recorded, and ends the question if that is wanted.
func (t *taking) unrelated(who somebody, one store.Response) error {
	route := t.request.UnrelatedAction == "route" && t.Purpose == PurposeNode
	if !route && len(t.responses) >= maxReplies {
		return nil
	}
	if route {
		one.Classification = Unrelated
	}
	t.record(who, t.reply.Channel, one)
	if !route {
		return nil
	}
	responder := strings.TrimPrefix(who.key, seatUser)
	response, err := json.Marshal(Answer{Notes: head(ownWords(t.reply.Text), maxRaw), UserID: responder, Timestamp: timestamp(t.now),
		Came: came(one.Origin)})
	if err != nil {
		return fault.Newf(fault.Internal, "a reply cannot be kept: %w", err)
	}
	value, err := json.Marshal(Result{
		Status: string(store.InteractionCompleted), ResponseType: t.Type, ResponseData: response, InteractionID: t.ID,
		Responder: responder, Approvals: t.told(t.votes()),
		Classification: Unrelated, UserResponse: head(ownWords(t.reply.Text), maxRaw), ArgumentsHash: t.ArgumentsHash,
	})
	if err != nil {
		return fault.Newf(fault.Internal, "a reply cannot be told: %w", err)
	}
	return t.end(store.InteractionCompleted, response, responder, one.Origin, engine.AskDone, "", value)
}

// askBack records a reply that does not decide, and asks the person what they mean.
func (t *taking) askBack(ctx context.Context, who somebody, one store.Response, reason string) error {
	if len(t.responses) >= maxReplies {
		return nil
	}
	t.asked = true
	one = t.record(who, t.reply.Channel, one)
	before, err := t.d.o.Interactions.Deliveries(ctx, identity.System(t.Workspace), t.ID)
	if err != nil {
		return err
	}
	before = slices.DeleteFunc(before, func(sent store.Delivery) bool { return sent.Channel != t.reply.Channel })
	to, seen, asked := t.reply.From, false, 0
	if t.reply.Channel == Email {
		to = strings.TrimPrefix(addressSeat(Email, t.reply.From), seatMail)
	}
	for _, sent := range before {
		seen = seen || sent.Recipient == to
	}
	if !seen && slices.ContainsFunc(before, func(sent store.Delivery) bool { return sent.Recipient == "" }) {
		to = "" // where the question was put, in its thread
	}
	for _, sent := range before {
		if sent.Kind == KindAskBack && sent.Recipient == to {
			asked++
		}
	}
	if asked >= maxAskBacks {
		return nil
	}
	about := note{Reason: reason, Said: head(ownWords(t.reply.Text), 500), For: who.key}
	if t.reply.Channel != t.Channel {
		about.Way = t.askedBy(before)
	}
	if to == "" && !t.d.media.place(t.Channel, t.request).Private {
		about.For = "" // others read it, and a link would let them answer in that person's name
	}
	t.change.Deliveries = append(t.change.Deliveries, newDelivery(t.Interaction, KindAskBack, to, one.ID, about, t.now))
	return nil
}

// askedBy is the way of the message that a reply answers, as it went.
func (t *taking) askedBy(sent []store.Delivery) *way {
	for _, d := range slices.Backward(sent) {
		if w := wayOf(d); w != nil && w.takes(t.reply.Account) {
			return w
		}
	}
	return t.progress.wayFor(t.reply.Account)
}

// say is the message that tells the person the result of their reply.
func (t *taking) say() string {
	language := t.request.Language
	if who, err := t.sender(t.reply); err == nil {
		language = cmp.Or(t.people.language(who), language)
	}
	switch {
	case t.reaction.Err != nil:
		return sayWhy(language, t.reaction)
	case t.reaction.Accepted && t.reaction.Ended:
		return text.Of("Thank you, your answer was taken.").In(language)
	case t.reaction.Accepted:
		return text.Of("Thank you, your answer was taken; others still have to answer.").In(language)
	case t.asked && t.request.Risk == "high":
		return text.Of("The risk is high: please answer by the form.").In(language)
	case t.asked:
		return text.Of("It is not clear what you mean; please say it plainly, or use the form.").In(language)
	case t.reaction.Ended:
		return text.Of("The question has ended.").In(language)
	}
	return text.Of("Your reply was recorded; it does not answer the question.").In(language)
}

// sayWhy is the message that tells a person why their reply does not count.
func sayWhy(language string, r Reaction) string {
	switch {
	case r.Err.Code == fault.Forbidden:
		return text.Of("You may not answer this question.").In(language)
	case r.Err.Code == fault.Conflict && r.Err.Details["arguments_hash"] != nil:
		return text.Of("What is asked is not what you were shown; look at it again.").In(language)
	case r.Err.Code == fault.Conflict && r.Err.Details["status"] == string(store.InteractionPending):
		return text.Of("You have answered already.").In(language)
	case r.Err.Code == fault.Conflict:
		return text.Of("The question has ended; nothing is needed any more.").In(language)
	}
	return text.Of("The answer cannot be taken: ").In(language) + InLanguage(language, r.Err)
}
