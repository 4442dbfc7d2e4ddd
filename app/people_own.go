package app

import (
	"context"
	"slices"

	"tandem/human"
	"tandem/identity"
	"tandem/store"
)

// ownQuestions are the questions of the executions that an idle instance works on. Its process does not send other questions, nor
// wait for their answers or timeouts. All other methods are about all questions.
type ownQuestions struct {
	store.Interactions
	own func() []store.Ref
}

// Due implements [store.Interactions].
func (q ownQuestions) Due(ctx context.Context, p identity.Principal, now int64, limit int) ([]store.Interaction, int64, error) {
	own := q.own()
	return ownOf(limit, func(n int) ([]store.Interaction, int64, error) { return q.Interactions.Due(ctx, p, now, n) },
		func(i store.Interaction) (bool, error) {
			return slices.Contains(own, store.Ref{Workspace: i.Workspace, Execution: i.Execution}), nil
		})
}

// DueDeliveries implements [store.Interactions].
func (q ownQuestions) DueDeliveries(ctx context.Context, p identity.Principal, now int64, limit int) ([]store.Delivery, int64, error) {
	own := q.own()
	return ownOf(limit, func(n int) ([]store.Delivery, int64, error) { return q.Interactions.DueDeliveries(ctx, p, now, n) },
		func(d store.Delivery) (bool, error) {
			i, err := q.Get(ctx, identity.System(d.Workspace), d.Interaction)
			return err == nil && slices.Contains(own, store.Ref{Workspace: i.Workspace, Execution: i.Execution}), err
		})
}

// ownOf reads more and more of what is due until some of it belongs to this instance, or all was read.
func ownOf[T any](limit int, due func(n int) ([]T, int64, error), isOwn func(T) (bool, error)) (own []T, next int64, err error) {
	for n := limit; ; n *= 4 {
		all, next, err := due(n)
		if err != nil {
			return nil, 0, err
		}
		for _, one := range all {
			ok, err := isOwn(one)
			if err != nil {
				return nil, 0, err
			}
			if ok && len(own) < limit {
				own = append(own, one)
			}
		}
		if len(own) > 0 || len(all) < n {
			return own, next, nil
		}
	}
}

// Accounts implements [store.Interactions].
func (q ownQuestions) Accounts(ctx context.Context, _ identity.Principal) (accounts []store.Account, err error) {
	for _, ref := range q.own() {
		page, err := q.List(ctx, identity.System(ref.Workspace), store.InteractionQuery{
			Statuses: []store.InteractionStatus{store.InteractionPending}, Execution: ref.Execution,
			Page: store.Page{Size: store.MaxPageSize},
		})
		if err != nil {
			return nil, err
		}
		for _, i := range page.Interactions {
			for _, a := range human.Accounts(i) {
				if !slices.Contains(accounts, a) {
					accounts = append(accounts, a)
				}
			}
		}
	}
	return accounts, nil
}
