package human

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/identity"
	"tandem/store"
)

// receiptPage is how many questions are read together.
const receiptPage = 500

// receipts returns the receipts of messages about questions that wait for replies by an account. A question that begins or ends
// meanwhile may be missing or included: callers ask again and again.
func (b *backroom) receipts(ctx context.Context, a store.Account) ([]json.RawMessage, error) {
	p := identity.System(a.Workspace)
	query := store.InteractionQuery{Statuses: []store.InteractionStatus{store.InteractionPending},
		Page: store.Page{Number: 1, Size: receiptPage}}
	var list []json.RawMessage
	for ; ; query.Page.Number++ {
		page, err := b.o.Interactions.List(ctx, p, query)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Interactions {
			if !slices.Contains(Accounts(i), a) {
				continue
			}
			sent, err := b.o.Interactions.Deliveries(ctx, p, i.ID)
			if err != nil {
				return nil, err
			}
			for _, d := range sent {
				own := i.Channel == a.Channel && i.Credential == a.Credential
				if w := wayOf(d); w != nil {
					own = w.account(a.Workspace) == a
				}
				if own && d.Channel == a.Channel && d.Status == store.DeliverySent && len(d.Receipt) > 0 {
					list = append(list, d.Receipt)
				}
			}
		}
		if query.Page.Number*receiptPage >= page.Total {
			return list, nil
		}
	}
}
