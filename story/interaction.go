package story

import (
	"context"
	"errors"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
)

// InteractionDetail tells a question with everything that was replied and sent, to a reader of a language.
func (l *Library) InteractionDetail(ctx context.Context, p identity.Principal, id, language string) (*api.InteractionDetail, error) {
	i, err := l.Interactions.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	responses, err := l.Interactions.Responses(ctx, p, id)
	if err != nil {
		return nil, err
	}
	deliveries, err := l.Interactions.Deliveries(ctx, p, id)
	if err != nil {
		return nil, err
	}
	out := api.InteractionDetail{Interaction: TellInteraction(i), Responses: make([]api.InteractionResponse, len(responses)),
		Deliveries: make([]api.InteractionDelivery, len(deliveries))}
	var why *fault.Error
	if out.MayRespond, why = l.Desk.May(ctx, p, i); why != nil {
		out.WhyNot = human.InLanguage(language, why)
	}
	switch e, err := l.Executions.Get(ctx, p, i.Execution); {
	case err == nil && e.User == i.User:
		out.TokenMadeBy = e.TokenMadeBy
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	if out.Override, out.Delegations, err = human.Instead(i); err != nil {
		return nil, err
	}
	for n, r := range responses {
		out.Responses[n] = api.InteractionResponse{
			ID: r.ID, InteractionID: r.Interaction, UserID: r.User, Address: r.Address, ChannelType: r.Channel, Raw: r.Raw,
			ResponseData: r.Data, ReceivedAt: r.ReceivedAt,
			Relevance: r.Relevance, Score: r.Score, Factors: r.Factors, Classification: r.Classification,
			Reasoning: r.Reasoning, Accepted: r.Accepted,
			OverruledBy: r.OverruledBy, OverruleReason: r.Overruling.Reason, OverruleMeans: r.Overruling.Means,
			Means: r.Origin.Means, Ground: r.Origin.Ground, Reason: r.Origin.Reason, ReadBy: r.Origin.ReadBy, ReadMeans: r.Origin.ReadMeans,
		}
	}
	for n, d := range deliveries {
		out.Deliveries[n] = api.InteractionDelivery{
			ID: d.ID, Kind: d.Kind, ChannelType: d.Channel, Recipient: d.Recipient, Status: string(d.Status), Attempts: d.Attempts,
			Error: d.Error, CreatedAt: d.Created, UpdatedAt: d.Updated,
		}
		if d.Status == store.DeliveryPending {
			out.Deliveries[n].NextAt = d.NextAt
		}
	}
	return &out, nil
}

// TellInteractions tells questions, in their order.
func TellInteractions(list []store.Interaction) []api.Interaction {
	told := make([]api.Interaction, len(list))
	for n, i := range list {
		told[n] = TellInteraction(i)
	}
	return told
}

// TellInteraction tells a question.
func TellInteraction(i store.Interaction) api.Interaction {
	return api.Interaction{
		ID: i.ID, WorkflowID: i.WorkflowID, WorkflowName: i.WorkflowName, ExecutionID: i.Execution, NodeID: i.Node,
		ActivationID: i.Activation, UserID: i.User,
		InteractionType: i.Type, ChannelType: i.Channel, Purpose: i.Purpose, Status: string(i.Status), Priority: i.Priority,
		RequestData: i.Request, ResponseData: i.Response,
		Approvers: append([]string{}, i.Approvers...), MinApprovals: i.MinApprovals, ArgumentsHash: i.ArgumentsHash,
		Attempt: i.Attempt, TimeoutAt: i.TimeoutAt,
		WarningSent: i.WarningSent, CreatedAt: i.Created, UpdatedAt: i.Updated,
	}
}
