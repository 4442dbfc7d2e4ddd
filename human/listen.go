package human

import (
	"context"
	"slices"

	"tandem/fault"
	"tandem/human/listening"
	"tandem/identity"
	"tandem/store"
)

// newEars listens to the accounts that receive replies to pending questions, and to those of triggers.
func newEars(b *backroom) *listening.Ears[store.Account] {
	return listening.New(listening.Options[store.Account]{Accounts: b.listened, Listen: b.hear, Again: longestNap, Log: b.o.Log,
		Described: func(a store.Account) []any {
			return []any{"workspace", a.Workspace, "channel", a.Channel, "credential", a.Credential}
		}})
}

// listens says whether there is a channel that has to be listened to.
func (b *backroom) listens() bool {
	for _, c := range b.channels { // order does not matter: any of them will do
		if _, ok := c.(Listener); ok {
			return true
		}
	}
	return false
}

// listened are the accounts that have to be listened to now.
func (b *backroom) listened(ctx context.Context) ([]store.Account, error) {
	accounts, err := b.o.Interactions.Accounts(ctx, identity.System(""))
	if err == nil && b.o.Listened != nil {
		var shared []store.Account
		shared, err = b.o.Listened(ctx)
		accounts = append(accounts, shared...)
	}
	return slices.DeleteFunc(accounts, func(a store.Account) bool {
		_, ok := b.channels[a.Channel].(Listener)
		return !ok
	}), err
}

// hear lets the channel of an account listen for replies.
func (b *backroom) hear(ctx context.Context, a store.Account) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = broken(a.Channel, p)
		}
	}()
	listener, ok := b.channels[a.Channel].(Listener)
	if !ok {
		return fault.Newf(fault.Internal, "channel %q cannot be listened to", a.Channel)
	}
	if err := listener.Listen(ctx, b.account(a), b.handle); err != nil {
		return err
	}
	return fault.Newf(fault.Internal, "channel %q has stopped listening without a reason", a.Channel)
}
