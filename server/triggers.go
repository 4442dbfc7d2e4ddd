package server

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/identity"
	"tandem/limits"
	"tandem/route"
	"tandem/store"
)

// triggers registers the triggers of deployed workflows, and the deliveries that have come to them.
func (s *Server) triggers() {
	op := route.Tagged("triggers")
	replay := op(http.MethodPost, "/deliveries/{id}/replay", "replay-delivery", "Start an execution once more for a stored delivery")
	replay.Description = "It is started at the trigger as it is deployed now, and is a delivery of its own. Asking again with the same Idempotency-Key starts nothing and answers with the first one."
	replay.DefaultStatus = http.StatusAccepted
	route.Handle(s.Router, op(http.MethodGet, "/triggers", "list-triggers", "List the triggers of deployed workflows, with their addresses and next times"), route.Readers(), s.listTriggers)
	route.Handle(s.Router, op(http.MethodGet, "/workflows/{id}/triggers", "list-workflow-triggers", "List the triggers of a workflow"), route.Readers(), noAgent(s.listWorkflowTriggers))
	route.Handle(s.Router, op(http.MethodGet, "/deliveries", "list-deliveries", "List what has come to triggers, the newest first"), route.Readers(), s.listDeliveries)
	route.Handle(s.Router, op(http.MethodGet, "/deliveries/{id}", "get-delivery", "Read a delivery with what it has brought"), route.Operators(), s.getDelivery)
	route.Handle(s.Router, replay, route.Operators(), s.replayDelivery)
}

type listTriggersInput struct {
	route.Paging
	WorkflowID string `query:"workflow_id" maxLength:"128"`
	Kind       string `query:"kind" maxLength:"128" doc:"such as TRIGGER.CRON"`
	State      string `query:"state" enum:"pending,active,failed"`
	NextRuns   int    `query:"next_runs" minimum:"0" maximum:"100" default:"3" doc:"how many of the next times are told"`
}

type listWorkflowTriggersInput struct {
	WorkflowPath
	route.Paging
	NextRuns int `query:"next_runs" minimum:"0" maximum:"100" default:"3" doc:"how many of the next times are told"`
}

type triggersOutput struct{ Body api.Triggers }

func (s *Server) listTriggers(ctx context.Context, p identity.Principal, in *listTriggersInput) (*triggersOutput, error) {
	page, err := s.o.Stores.Triggers.List(ctx, p, store.TriggerQuery{WorkflowID: in.WorkflowID, Kind: in.Kind,
		State: store.TriggerState(in.State), Page: in.StorePage()})
	if err != nil {
		return nil, err
	}
	out := &triggersOutput{api.Triggers{Triggers: make([]api.Trigger, len(page.Triggers)), TotalCount: page.Total, Page: in.Page,
		PageSize: in.PageSize}}
	for i := range page.Triggers {
		if out.Body.Triggers[i], err = s.tellTrigger(ctx, &page.Triggers[i], in.NextRuns); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Server) listWorkflowTriggers(ctx context.Context, p identity.Principal, in *listWorkflowTriggersInput) (*triggersOutput, error) {
	if _, err := s.o.Stores.Workflows.Heading(ctx, p, in.ID); err != nil {
		return nil, err
	}
	return s.listTriggers(ctx, p, &listTriggersInput{Paging: in.Paging, WorkflowID: in.ID, NextRuns: in.NextRuns})
}

// tellTrigger describes a trigger. For one that failed, what its source cannot say is left out.
func (s *Server) tellTrigger(ctx context.Context, t *store.Trigger, count int) (api.Trigger, error) {
	out := api.Trigger{
		WorkflowID: t.WorkflowID, NodeID: t.Node, Kind: t.Kind, Revision: t.Revision, InForce: t.InForce, State: string(t.State),
		Reason: t.Reason, Config: t.Config, UpdatedAt: t.Updated,
		Timezone: gjson.GetBytes(t.Config, "timezone").String(),
	}
	if len(out.Config) == 0 {
		out.Config = []byte("{}")
	}
	where, receives, err := s.o.Triggers.RouteOf(ctx, *t)
	if err != nil && t.InForce {
		return out, err
	}
	if receives {
		out.Address, out.Methods = where.Path, where.Methods
	}
	if !t.InForce {
		return out, nil
	}
	if f, listens := s.o.Triggers.Listening(*t); listens {
		out.Listening = &api.Listening{State: string(f.State), Since: f.Since.UnixMilli(), Failures: f.Failures, Error: f.Error}
		if !f.Retry.IsZero() {
			out.Listening.RetryAt = f.Retry.UnixMilli()
		}
	}
	runs, err := s.o.Triggers.NextRuns(*t, count)
	for _, at := range runs {
		out.NextRuns = append(out.NextRuns, at.UnixMilli())
	}
	return out, err
}

type listDeliveriesInput struct {
	route.Paging
	WorkflowID  string   `query:"workflow_id" maxLength:"128"`
	NodeID      string   `query:"node_id" maxLength:"128"`
	Kind        string   `query:"kind" maxLength:"128"`
	Decision    []string `query:"decision,explode" doc:"accepted, started, ignored, refused or failed; several, or one list with commas"`
	ExecutionID string   `query:"execution_id" maxLength:"128"`
	Key         string   `query:"key" maxLength:"255" doc:"the sender's id"`
	Since       int64    `query:"since" minimum:"0" doc:"received at this time or later, in Unix milliseconds"`
	Until       int64    `query:"until" minimum:"0" doc:"received before this time"`
}

type deliveriesOutput struct{ Body api.Deliveries }

func (s *Server) listDeliveries(ctx context.Context, p identity.Principal, in *listDeliveriesInput) (*deliveriesOutput, error) {
	q := store.DeliveryQuery{WorkflowID: in.WorkflowID, Node: in.NodeID, Kind: in.Kind, Execution: in.ExecutionID, Key: in.Key,
		Since: in.Since, Until: in.Until, Page: in.StorePage()}
	for _, text := range route.Listed(in.Decision) {
		switch d := store.Decision(text); d {
		case store.DeliveryAccepted, store.DeliveryStarted, store.DeliveryIgnored, store.DeliveryRefused, store.DeliveryGivenUp:
			q.Decisions = append(q.Decisions, d)
		default:
			return nil, api.WrongField("query.decision", "%q is not accepted, started, ignored, refused or failed", text)
		}
	}
	page, err := s.o.Stores.Triggers.Deliveries(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{api.Deliveries{Deliveries: make([]api.Delivery, len(page.Deliveries)), TotalCount: page.Total,
		Page: in.Page, PageSize: in.PageSize}}
	for i := range page.Deliveries {
		out.Body.Deliveries[i] = tellDelivery(&page.Deliveries[i])
	}
	return out, nil
}

func tellDelivery(d *store.TriggerDelivery) api.Delivery {
	return api.Delivery{
		ID: d.ID, WorkflowID: d.WorkflowID, NodeID: d.Node, Kind: d.Kind, Revision: d.Revision, Key: d.Key, ReceivedAt: d.Received,
		Decision: string(d.Decision), Reason: d.Reason,
		ExecutionID: d.Execution, Attempts: d.Attempts, ReplayOf: d.ReplayOf, Size: d.PayloadSize,
	}
}

type deliveryPath struct {
	ID string `path:"id" maxLength:"128"`
}

type deliveryOutput struct{ Body api.Delivery }

func (s *Server) getDelivery(ctx context.Context, p identity.Principal, in *deliveryPath) (*deliveryOutput, error) {
	d, err := s.o.Stores.Triggers.Delivery(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out := &deliveryOutput{tellDelivery(&d)}
	if out.Body.Payload, err = s.o.Triggers.Payload(ctx, d); err != nil {
		return nil, err
	}
	out.Body.Answer = d.Answer
	return out, nil
}

type replayInput struct {
	ID  string `path:"id" maxLength:"128"`
	Key string `header:"Idempotency-Key" maxLength:"150"`
}

func (s *Server) replayDelivery(ctx context.Context, p identity.Principal, in *replayInput) (*deliveryOutput, error) {
	leave, err := s.o.Limits.Enter(ctx, p, limits.Start{})
	if err != nil {
		return nil, err
	}
	out, err := s.o.Triggers.Replay(route.Audited(ctx, "delivery.replay", in.ID, nil, nil), p, in.ID, in.Key)
	if leave(err == nil && !out.Repeated); err != nil {
		return nil, err
	}
	return &deliveryOutput{tellDelivery(&out.Delivery)}, nil
}
