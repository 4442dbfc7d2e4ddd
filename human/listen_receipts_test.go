package human

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/store"
)

func TestAccount_Receipts(t *testing.T) {
	t.Parallel()
	s := newShelf()
	add := func(id, workspace, channel, credential string, status store.InteractionStatus, deliveries ...store.Delivery) {
		s.put(store.Interaction{Workspace: workspace, ID: id, Channel: channel, Credential: credential, Status: status, Version: 1})
		for n := range deliveries {
			deliveries[n].Workspace, deliveries[n].Interaction, deliveries[n].ID = workspace, id, id+deliveries[n].Kind
		}
		s.deliveries = append(s.deliveries, deliveries...)
	}
	sent := func(kind, channel, receipt string) store.Delivery {
		return store.Delivery{Kind: kind, Channel: channel, Status: store.DeliverySent, Receipt: json.RawMessage(receipt)}
	}
	failed := sent("failed", Discord, `"failed"`)
	failed.Status = store.DeliveryFailed
	add("1", "w", Discord, "bot", store.InteractionPending, sent("a", Discord, `1`), sent("b", Discord, `2`), failed, sent("c", Email, `"mail"`), sent("d", Discord, ""))
	add("2", "w", Discord, "bot", store.InteractionPending, sent("a", Discord, `3`))
	add("3", "w", Discord, "bot", store.InteractionCompleted, sent("a", Discord, `"ended"`))
	add("4", "w", Discord, "other", store.InteractionPending, sent("a", Discord, `"other account"`))
	add("5", "w", Slack, "bot", store.InteractionPending, sent("a", Slack, `"other channel"`))
	add("6", "v", Discord, "bot", store.InteractionPending, sent("a", Discord, `"other workspace"`))
	c := newCounter(s, func(*Options) {})
	got, err := c.account(store.Account{Workspace: "w", Channel: Discord, Credential: "bot"}).Receipts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]json.RawMessage{json.RawMessage("1"), json.RawMessage("2"), json.RawMessage("3")}, got); diff != "" {
		t.Error(diff)
	}
	s.fail = func(method string) error {
		if method == "Deliveries" {
			return errors.New("no disk")
		}
		return nil
	}
	if got, err := c.receipts(t.Context(), store.Account{Workspace: "w", Channel: Discord, Credential: "bot"}); err == nil {
		t.Errorf("%s although they cannot be read", got)
	}
}
