package human

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/shortage"
	"tandem/store"
)

// How messages are sent.
const (
	sendAtOnce     = 8                // messages on their way
	sendPerLane    = 4                // of them of one workspace and channel, so that a service that hangs does not hold up the others
	sendBatch      = 1000             // messages looked at together
	sendTimeout    = 30 * time.Second // for one try
	sendTries      = 8
	sendFirstPause = time.Second
	sendLongPause  = 5 * time.Minute
	// sendLease is how long a message that is being sent is not due again: if its process dies, it is tried again after that.
	sendLease = time.Minute
	// linkLife is how long a link lives when its question has no end.
	linkLife = 7 * 24 * time.Hour
)

// note is what a message is about besides its question: the body of a [store.Delivery].
type note struct {
	// By is who did it: decided, delegated, asked for the reminder.
	By string `json:"by,omitempty"`
	// As is what was decided, in a word of the question: an option's label.
	As string `json:"as,omitempty"`
	// Reason is why: one of the reasons to ask back, or what somebody wrote.
	Reason string `json:"reason,omitempty"`
	// Said is the reply that is asked back about.
	Said string `json:"said,omitempty"`
	// Of is whose vote an admin has handed on.
	Of string `json:"of,omitempty"`
	// Override says that By has decided in the place of those who were asked.
	Override bool `json:"override,omitempty"`
	// For is the approver that the recipient was asked as, when it is not their address: a user, a delegate.
	For string `json:"for,omitempty"`
	// Way is the account that the message goes through, when it is not that of the question: one that the recipient has chosen.
	Way *way `json:"way,omitempty"`
}

// The reasons to ask back.
const (
	reasonUnclear  = "unclear"   // the meaning of the reply is not clear
	reasonHighRisk = "high_risk" // a reply in prose does not decide this
	reasonInvalid  = "invalid"   // it names something that is not among the choices or fields
)

// newDelivery makes a message about a question. The round distinguishes messages of one kind to one recipient. The id follows from all of
// it, so that the same message made twice is one.
func newDelivery(i store.Interaction, kind, to, round string, about note, now int64) store.Delivery {
	channel := i.Channel
	if about.Way != nil {
		channel = about.Way.Channel
		round = strings.Join([]string{round, channel, about.Way.Credential}, "\x00")
	}
	// A note of texts can always be written.
	body, _ := json.Marshal(about)
	return store.Delivery{
		Workspace: i.Workspace, ID: shapedID("delivery", i.Workspace, i.ID, kind, to, round), Interaction: i.ID, Kind: kind, Channel: channel,
		Recipient: to, Body: body, Status: store.DeliveryPending, NextAt: now, Created: now, Updated: now,
	}
}

// shapedID is an id in the form of a UUID that follows from its parts.
func shapedID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash takes everything
	}
	sum := h.Sum(nil)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// closing are the notices to everybody who was sent something about a question that has ended.
func closing(i store.Interaction, sent []store.Delivery, now int64) []store.Delivery {
	kind := map[store.InteractionStatus]string{
		store.InteractionCompleted: KindCompleted, store.InteractionTimeout: KindTimeout, store.InteractionCancelled: KindCancelled,
		store.InteractionError: KindCancelled,
	}[i.Status]
	var notices []store.Delivery
	for _, d := range sent {
		// A message that was tried may have arrived, even if that was not recorded.
		if d.Status != store.DeliverySent && d.Attempts == 0 || !wantsAnswer(d.Kind) {
			continue
		}
		about := decision(i)
		about.Way = wayOf(d)
		notice := newDelivery(i, kind, d.Recipient, "", about, now)
		notice.Channel = d.Channel
		if !slices.ContainsFunc(notices, func(n store.Delivery) bool { return n.ID == notice.ID }) {
			notices = append(notices, notice)
		}
	}
	return notices
}

// decision says who ended a question and how, as far as its answer shows.
func decision(i store.Interaction) note {
	var a Answer
	_ = json.Unmarshal(i.Response, &a) // answers of other forms do not name a person
	// What cannot be read is left out here; the inbox shows the record.
	if p, err := readProgress(i); err == nil && p.Override != nil && i.Status == store.InteractionCompleted {
		return note{By: p.Override.By, As: cmp.Or(a.Action, strings.Join(a.Chosen, ", ")), Reason: p.Override.Reason, Override: true}
	}
	switch i.Status {
	case store.InteractionCompleted:
		about := note{By: a.UserID, As: a.Action}
		if about.As == "" {
			about.As = strings.Join(a.Chosen, ", ")
		}
		return about
	case store.InteractionCancelled:
		return note{By: a.UserID, Reason: a.Notes}
	}
	return note{}
}

// wantsAnswer says whether messages of a kind ask for an answer, as opposed to those that report its end.
func wantsAnswer(kind string) bool {
	return kind != KindCompleted && kind != KindTimeout && kind != KindCancelled && kind != KindProof
}

// tokenThread is the thread that a reply token stands for. Only its hash is kept.
func tokenThread(token string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(token))))
	return "token:" + hex.EncodeToString(sum[:])
}

// newReplyToken makes a token that survives being typed, wrapped and changed in case: 130 random bits in small letters.
func newReplyToken() string {
	var raw [17]byte
	_, _ = rand.Read(raw[:]) // it cannot fail: crypto/rand ends the process instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:]))[:26]
}

// deliveries makes one message of a kind to each recipient.
func deliveries(i store.Interaction, to []recipient, kind, round string, about note, now int64) []store.Delivery {
	list := make([]store.Delivery, 0, len(to))
	for _, r := range to {
		about.For, about.Way = r.as, r.way
		one := newDelivery(i, kind, r.to, round, about, now)
		if kind == KindRequest { // a person who has chosen to wait does not get a question that was answered meanwhile
			one.NextAt = max(now, i.Created+1000*r.after)
		}
		list = append(list, one)
	}
	return list
}

// sender sends the messages of the outbox. One goroutine looks for what is due and owns the fields; each message on its way
// has a goroutine that reports its end by done.
type sender struct {
	*backroom
	wake chan struct{}
	done chan store.Delivery
	busy map[string]store.Delivery // by id
	load map[store.Account]int
}

func newSender(b *backroom) *sender {
	return &sender{backroom: b, wake: make(chan struct{}, 1), done: make(chan store.Delivery), busy: map[string]store.Delivery{},
		load: map[store.Account]int{}}
}

// lane is the queue of a message: messages of one lane may hold each other up.
func lane(d store.Delivery) store.Account {
	return store.Account{Workspace: d.Workspace, Channel: d.Channel}
}

func (s *sender) run(ctx context.Context) {
	passes(ctx, s.wake, s.done, s.pass, s.finished)
	for len(s.busy) > 0 {
		s.finished(<-s.done)
	}
}

func (s *sender) finished(d store.Delivery) {
	delete(s.busy, d.ID)
	if s.load[lane(d)]--; s.load[lane(d)] <= 0 {
		delete(s.load, lane(d))
	}
}

// pass begins to send what is due, says how long to wait for the next, and whether there was anything.
func (s *sender) pass(ctx context.Context) (wait time.Duration, found bool) {
	if len(s.busy) >= sendAtOnce {
		return longestNap, true // the end of one of them comes next
	}
	now := time.Now().UnixMilli()
	due, next, err := s.o.Interactions.DueDeliveries(ctx, identity.System(""), now, sendBatch)
	if err != nil {
		if ctx.Err() == nil {
			s.o.Log.Error("messages to people cannot be read; trying again", "error", err)
		}
		return time.Second, false
	}
	began := 0
	for _, d := range due {
		if len(s.busy) >= sendAtOnce {
			return longestNap, true
		}
		if s.load[lane(d)] >= sendPerLane || s.before(d) {
			continue
		}
		s.busy[d.ID] = d
		s.load[lane(d)]++
		began++
		s.tasks.Go(func() {
			s.send(s.ctx, d) // what is on its way may arrive when nothing new is begun
			s.done <- d
		})
	}
	if len(due) == sendBatch && began == 0 {
		s.makeRoom(ctx, due, now)
		return time.Second, true
	}
	return nap(now, next), len(due) > 0
}

// before says whether a message, or one about the same question to the same recipient, is on its way: they arrive in order.
func (s *sender) before(d store.Delivery) bool {
	for _, b := range s.busy {
		if b.Workspace == d.Workspace && b.Interaction == d.Interaction && b.Channel == d.Channel && b.Recipient == d.Recipient {
			return true
		}
	}
	return false
}

// makeRoom puts off messages that wait for a crowded channel, when there are so many that those of others are not seen.
func (s *sender) makeRoom(ctx context.Context, due []store.Delivery, now int64) {
	for _, d := range due {
		if _, ok := s.busy[d.ID]; ok {
			continue
		}
		d.NextAt = now + sendTimeout.Milliseconds()
		if err := s.o.Interactions.Delivered(ctx, identity.System(d.Workspace), d, nil, nil); err != nil {
			s.o.Log.Error("a message cannot be put off", "interaction", d.Interaction, "delivery", d.ID, "error", err)
			return
		}
	}
}

// send tries a message once and records the result.
func (s *sender) send(ctx context.Context, d store.Delivery) {
	p := identity.System(d.Workspace)
	d.Updated = time.Now().UnixMilli()
	m, links, threads, err := s.prepare(ctx, d)
	if err == nil {
		d.Attempts++
		d.NextAt = d.Updated + sendLease.Milliseconds()
		// The links and threads of a message are stored before it can arrive.
		err = s.o.Interactions.Delivered(ctx, p, d, links, threads)
	}
	if err == nil && wantsAnswer(d.Kind) {
		err = s.stillOpen(ctx, d)
	}
	var receipt Receipt
	// Any other error comes from the store: it says nothing about the message.
	_, own := errors.AsType[*fault.Error](err)
	stored := err == nil || own
	switch {
	case errors.Is(err, errEnded), errors.Is(err, store.ErrNotFound):
		d.Status, d.NextAt, d.Error = store.DeliveryFailed, 0, errEnded.Message
		s.note(ctx, d, nil)
		return
	case err == nil:
		receipt, err = s.call(ctx, m)
	}
	now := time.Now().UnixMilli()
	d.Updated = now
	e := fault.From(err)
	if stored && err != nil && !e.Retryable && shortage.Is(err) {
		e = shortage.Or(err, fault.New(fault.Internal, "the message could not be sent"))
	}
	switch {
	case err == nil:
		d.Status, d.NextAt, d.Receipt, d.Error = store.DeliverySent, 0, receipt.Body, ""
	case ctx.Err() != nil:
		// The process ends. Whether it was sent is not known; it is sent again with the next start.
		d.NextAt = now
	case !stored:
		d.NextAt = now + longestNap.Milliseconds()
		s.o.Log.Error("a message cannot be prepared; trying again", "workspace", d.Workspace, "interaction", d.Interaction, "delivery", d.ID, "error", err)
	default:
		d.Error = fmt.Sprintf("%s: %s", fault.DeliveryFailed, e.Message)
		d.NextAt = now + pauseAfter(d.Attempts, e).Milliseconds()
		late := wantsAnswer(d.Kind) && m.Interaction.TimeoutAt > 0 && d.NextAt >= m.Interaction.TimeoutAt
		if !e.Retryable || d.Attempts >= sendTries || late {
			d.Status, d.NextAt = store.DeliveryFailed, 0
			s.o.Log.Warn("a message was not delivered; the question is in the inbox all the same", "workspace", d.Workspace, "interaction", d.Interaction,
				"delivery", d.ID, "kind", d.Kind, "channel", d.Channel, "code", fault.DeliveryFailed, "attempts", d.Attempts, "error", e, "detail", e.Detail)
		}
	}
	s.note(ctx, d, receipt.Threads)
}

// stillOpen looks again at the question when the message is recorded as tried. Whatever ends the question reads the tried
// messages after its end is written, so either this sees the end, or the recipient gets a notice of it.
func (s *sender) stillOpen(ctx context.Context, d store.Delivery) error {
	i, err := s.o.Interactions.Get(ctx, identity.System(d.Workspace), d.Interaction)
	if err == nil && i.Status != store.InteractionPending {
		return errEnded
	}
	return err
}

// errEnded says that a message is not worth sending any more.
var errEnded = fault.New(fault.Conflict, "the question had ended before the message was sent")

// call lets the channel send, for a limited time.
func (s *sender) call(ctx context.Context, m Message) (receipt Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = broken(m.Channel, p)
		}
	}()
	receipt, err = s.channels[m.Channel].Send(ctx, m)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return receipt, fault.Newf(fault.Timeout, "channel %q did not take the message in %s", m.Channel, sendTimeout).WithCause(err)
	}
	return receipt, err
}

// broken is the error of a channel that panicked: its question goes on waiting.
func broken(channel string, panicked any) *fault.Error {
	return fault.Newf(fault.Internal, "channel %q broke down; the operator's log has the detail", channel).WithDetail(fmt.Sprintf("%v\n%s", panicked, debug.Stack()))
}

// note stores the result of a message. It tries several times, even at the end of the process: a message whose result is not stored is sent
// twice.
func (s *sender) note(ctx context.Context, d store.Delivery, threads []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := s.o.Interactions.Delivered(ctx, identity.System(d.Workspace), d, nil, threads)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return
		}
		select {
		case <-ctx.Done():
			s.o.Log.Error("what became of a message cannot be noted; it may be sent again", "interaction", d.Interaction, "delivery", d.ID, "error", err)
			return
		case <-time.After(pause):
		}
	}
}

// pauseAfter is how long to wait before the next try: twice as long each time, or as long as the service says.
func pauseAfter(attempts int, e *fault.Error) time.Duration {
	pause := sendFirstPause << min(max(attempts-1, 0), 16)
	if ms, ok := e.Details["retry_after_ms"].(int64); ok {
		pause = max(pause, time.Duration(ms)*time.Millisecond)
	}
	return min(pause, sendLongPause)
}

// prepare makes the message of a delivery, with what must be stored before it is sent.
func (s *sender) prepare(ctx context.Context, d store.Delivery) (m Message, links []store.Link, threads []string, err error) {
	p := identity.System(d.Workspace)
	i, err := s.o.Interactions.Get(ctx, p, d.Interaction)
	if err != nil {
		return m, nil, nil, err
	}
	if wantsAnswer(d.Kind) && i.Status != store.InteractionPending {
		return m, nil, nil, errEnded
	}
	if s.channels[d.Channel] == nil {
		return m, nil, nil, fault.Newf(fault.InvalidConfig, "this instance has no channel %q", d.Channel)
	}
	r, err := ReadRequest(i)
	if err != nil {
		return m, nil, nil, err
	}
	var about note
	if len(d.Body) > 0 {
		if err := json.Unmarshal(d.Body, &about); err != nil {
			return m, nil, nil, fault.Newf(fault.Internal, "body of delivery %q: %w", d.ID, err)
		}
	}
	r = r.through(about.Way)
	account := s.account(store.Account{Workspace: d.Workspace, Channel: d.Channel, Credential: r.Credential})
	m = Message{Account: account, ID: d.ID, Kind: d.Kind, To: d.Recipient, For: about.For, Interaction: i, Request: r,
		Callback: s.callback(account.Account)}
	earlier, err := s.o.Interactions.Deliveries(ctx, p, i.ID)
	if err != nil {
		return m, nil, nil, err
	}
	for _, e := range earlier {
		if e.ID != d.ID && e.Channel == d.Channel && e.Recipient == d.Recipient && e.Status == store.DeliverySent &&
			len(e.Receipt) > 0 && sameWay(e, d) {
			m.Earlier = append(m.Earlier, e.Receipt)
		}
	}
	now := time.Now()
	m.Data = facts(i, now)
	if len(r.Again) > 0 {
		m.Data["again"] = r.Again
	}
	if r.Fork != nil {
		m.Data["fork"] = r.Fork
	}
	if err := s.translate(ctx, &m, about); err != nil {
		return m, nil, nil, err
	}
	if wantsAnswer(d.Kind) {
		if m.Link, links, err = s.linkIn(ctx, d, i, r, about.For, now); err != nil {
			return m, nil, nil, err
		}
		m.ReplyToken = newReplyToken()
		threads = []string{tokenThread(m.ReplyToken)}
	}
	m.Lines = wordsIn(m.Request.Language).lines(m, about, now)
	return m, links, threads, nil
}

// translate puts a message into the language of its reader, if it is one person who has set one.
func (s *sender) translate(ctx context.Context, m *Message, about note) error {
	if s.o.Users == nil {
		return nil
	}
	users, err := s.o.Users.List(ctx, identity.System(m.Interaction.Workspace))
	if err != nil {
		return err
	}
	all := s.media.newPeople(users)
	language := all.reads(about.For)
	for _, address := range []string{addressSeat(m.Channel, m.To), s.media.seatOf(m.Channel, m.Request)} {
		language = cmp.Or(language, all.reads(address))
	}
	m.Request = m.Request.In(language, m.Interaction.Purpose)
	return nil
}

// linkIn makes the link of a message, if it has one. A link for a certain person goes only to an address of theirs: not to an address
// that a workflow names, not to a program, not where several people read.
func (s *sender) linkIn(ctx context.Context, d store.Delivery, i store.Interaction, r Request, as string,
	now time.Time) (url string, links []store.Link, err error) {
	if s.o.PublicURL == "" {
		return "", nil, nil
	}
	address := addressSeat(d.Channel, d.Recipient)
	if address == "" {
		address = s.media.seatOf(d.Channel, r)
	}
	means := identity.Means{Kind: identity.ByLink, Address: address}
	if personal(as) && r.Access != "link" && r.Access != "public" {
		var users []identity.User
		if s.o.Users != nil {
			if users, err = s.o.Users.List(ctx, identity.System(i.Workspace)); err != nil {
				return "", nil, err
			}
		}
		all := s.media.newPeople(users)
		if !all.theirs(address, as) {
			return "", nil, nil
		}
		means = all.linkMeans(address, as)
	}
	secret, link, ok := linkFor(i, r, as, means, now)
	if !ok {
		return "", nil, nil
	}
	return linkURL(s.o.PublicURL, secret), []store.Link{link}, nil
}

// linkFor makes the link of a message for the person who is asked by it. There is none where no particular person is asked,
// unless everybody may answer.
func linkFor(i store.Interaction, r Request, as string, means identity.Means, now time.Time) (secret string, link store.Link, ok bool) {
	reusable := r.Access == "public"
	if reusable || r.Access == "link" {
		as = Anyone
	}
	if as == "" {
		return "", store.Link{}, false
	}
	secret = identity.NewSecret()
	expires := i.TimeoutAt
	if expires == 0 {
		expires = now.Add(linkLife).UnixMilli()
	}
	return secret, store.Link{
		Hash: identity.HashSecret(secret), Workspace: i.Workspace, Interaction: i.ID, Attempt: i.Attempt, Recipient: as,
		Reusable: reusable, Means: means,
		Expires: expires, Created: now.UnixMilli(),
	}, true
}

// linkURL is the address of the response page of a link.
func linkURL(public, secret string) string {
	return strings.TrimSuffix(public, "/") + "/respond/" + secret
}

// facts are what every message tells programs.
func facts(i store.Interaction, now time.Time) map[string]any {
	data := map[string]any{"interaction_id": i.ID, "workflow_name": i.WorkflowName, "status": string(i.Status)}
	if i.TimeoutAt > 0 {
		data["timeout_at"] = time.UnixMilli(i.TimeoutAt).UTC().Format(time.RFC3339)
	}
	if i.TimeoutAt > 0 && i.Status == store.InteractionPending {
		data["minutes_remaining"] = minutesLeft(i, now)
	}
	return data
}

// minutesLeft rounds up to whole minutes.
func minutesLeft(i store.Interaction, now time.Time) int64 {
	return max(0, (i.TimeoutAt-now.UnixMilli()+59_999)/60_000)
}
