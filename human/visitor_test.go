package human

import (
	"testing"

	"tandem/store"
)

// Only what a node asks is ever put to a visitor, no matter who is named as an approver.
func TestVisitor_Asks(t *testing.T) {
	t.Parallel()
	for purpose, asks := range map[string]bool{
		PurposeNode: true, PurposeConfirm: false, PurposeParam: false, PurposeToolApproval: false, PurposeOutcomeUnknown: false, PurposeBudget: false, PurposeDrift: false, PurposeActivation: false,
	} {
		if got := AsksVisitor(store.Interaction{Purpose: purpose, Approvers: []string{"role:admin", Visitor}}); got != asks {
			t.Errorf("%s: %v", purpose, got)
		}
	}
	if AsksVisitor(store.Interaction{Purpose: PurposeNode, Approvers: []string{"user:visitor", Anyone, "visitor:conv_1"}}) {
		t.Error("a user, everybody and an address are the visitor")
	}
	for text, seat := range map[string]string{"visitor": Visitor, " Visitor ": Visitor, "user:visitor": "user:visitor"} {
		if got, err := Media(nil).normalApprover(text); err != nil || got != seat {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	if _, err := Media(nil).Address("visitor"); err == nil {
		t.Error("the visitor is taken for an address of somebody")
	}
}
