package human

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human/listening"
	"tandem/human/watching"
	"tandem/store"
)

// backroom is the part of a [Desk] that works in the background: the clock, sending, listening, and events for those who
// watch. The desk embeds it. It ends questions only when their time is up; otherwise it only sends messages about them.
type backroom struct {
	o        Options
	channels map[string]Channel
	media    Media
	handle   Handle
	clock    *clock
	sender   *sender
	ears     *listening.Ears[store.Account]
	watchers *watching.Watchers[Event]

	start sync.Once
	stop  context.CancelFunc
	ctx   context.Context
	tasks sync.WaitGroup
	// working ends when nothing new is to be begun, loops are what begins it.
	working context.Context
	rest    context.CancelFunc
	loops   sync.WaitGroup
}

// newBackroom makes a backroom. Handle takes the replies that listeners receive.
func newBackroom(o Options, handle Handle) *backroom {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wake == nil {
		o.Wake = func(store.Ref) {}
	}
	b := &backroom{o: o, channels: map[string]Channel{}, media: MediaOf(o.Channels...), handle: handle, watchers: watching.New[Event]()}
	for _, c := range o.Channels {
		if _, twice := b.channels[c.Name()]; twice {
			panic("human: two channels are called " + c.Name())
		}
		b.channels[c.Name()] = c
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.working, b.rest = context.WithCancel(b.ctx)
	b.clock, b.sender, b.ears = newClock(b), newSender(b), newEars(b)
	return b
}

// Start begins the clock, sending and listening.
func (b *backroom) Start() {
	b.start.Do(func() {
		b.loops.Go(func() { b.clock.run(b.working) })
		b.loops.Go(func() { b.sender.run(b.working) })
		if b.listens() {
			b.loops.Go(func() { b.ears.Run(b.working) })
		}
		b.tasks.Go(func() { b.watchers.Run(b.ctx, b.tellRecorded) })
	})
}

// Drain ends the clock, sending and listening, and waits until the messages that are on their way were sent, or until the context
// ends. What becomes due stays in the store for the next start. Questions can be answered and watched until the end.
func (b *backroom) Drain(ctx context.Context) {
	b.rest()
	ended := make(chan struct{})
	go func() { // it ends with Close at the latest
		b.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close ends them and waits for them. Those who watch see the end of their events.
func (b *backroom) Close() {
	b.stop()
	b.loops.Wait()
	b.tasks.Wait()
	b.watchers.Close()
}

// Look wakes the desk after something was recorded, so that what is due now is done. It never blocks.
func (b *backroom) Look() {
	nudge(b.clock.wake)
	nudge(b.sender.wake)
	b.ears.Wake()
}

func nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it is awake already, or about to wake
	}
}

// account is what a channel acts with.
func (b *backroom) account(a store.Account) Account {
	receipts := func(ctx context.Context) ([]json.RawMessage, error) { return b.receipts(ctx, a) }
	return Account{Account: a, Callback: b.callback(a), Receipts: receipts,
		Open: func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
			switch {
			case id == "":
				return credential.Opened{}, fault.Newf(fault.CredentialMissing, "channel %q needs a credential; name one in credential_id", a.Channel)
			case b.o.Credentials == nil:
				return credential.Opened{}, fault.New(fault.CredentialMissing, "this instance opens no credentials")
			}
			return b.o.Credentials(a.Workspace)(ctx, id, types...)
		}}
}

// callback is where an account is called back; empty: it cannot be.
func (b *backroom) callback(a store.Account) string {
	if _, called := b.channels[a.Channel].(Receiver); !called || b.o.PublicURL == "" || a.Credential == "" {
		return ""
	}
	return strings.TrimSuffix(b.o.PublicURL, "/") + "/channels/" + a.Channel + "/" + a.Workspace + "/" + a.Credential
}

// answerItem is the inbox item by which an execution learns how its question ended. A question has only one, no matter who ends it.
func answerItem(i store.Interaction, by string, how store.Origin, outcome engine.AskOutcome, choice string, value json.RawMessage,
	now int64) (*store.InboxItem, error) {
	var origin json.RawMessage
	if how != (store.Origin{}) {
		raw, err := json.Marshal(how)
		if err != nil {
			return nil, err
		}
		origin = raw
	}
	body, err := json.Marshal(host.Request{By: by, Origin: origin, Ask: engine.AskID(i.Ask),
		Activation: engine.ActivationID(i.Activation), Outcome: outcome, Choice: choice, Value: value})
	if err != nil {
		return nil, err
	}
	return &store.InboxItem{Execution: i.Execution, Kind: string(host.ActionAnswer), Dedup: "interaction:" + i.ID, Time: now, Body: body}, nil
}
