package human

import (
	"context"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Visitor stands among approvers for the visitor of the chat whose message has started the execution. No user, address or
// role counts as the visitor.
const Visitor = "visitor"

// visitorSeat is what the recorded author of an answer begins with; the conversation follows.
const visitorSeat = "visitor:"

// NamesVisitor says whether one of those who are asked, as an author has written them, is the visitor.
func NamesVisitor(approvers []string) bool {
	return slices.ContainsFunc(approvers, func(a string) bool { return strings.EqualFold(strings.TrimSpace(a), Visitor) })
}

// AsksVisitor says whether a question is put to the visitor of a chat. Only questions of nodes are: people of the workspace
// decide whether a tool may be called, a budget raised or something repeated, whatever the approvers are.
func AsksVisitor(i store.Interaction) bool {
	return i.Purpose == PurposeNode && slices.Contains(i.Approvers, Visitor)
}

// RespondVisitor takes the answer of the visitor of a conversation. The caller has checked that the question belongs to that conversation.
func (d *Desk) RespondVisitor(ctx context.Context, workspace, id, conversation string, in Submission) (store.Interaction, error) {
	return d.decide(ctx, workspace, id, func(s *sitting) error {
		if !AsksVisitor(s.Interaction) {
			return d.refuse(s.Interaction, Visitor, fault.Say(fault.Forbidden, text.Of("this question is not for you to answer")))
		}
		seat := visitorSeat + conversation
		who := somebody{key: seat, address: seat, seats: []string{Visitor}}
		if err := s.answer(who, in, store.Response{Origin: store.Origin{Means: identity.Means{Kind: identity.ByVisit,
			Address: seat}}}); err != nil {
			return d.refuse(s.Interaction, Visitor, err)
		}
		return nil
	})
}
