package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/route"
)

type actionInput struct {
	ExecutionPath
	Body api.ActionRequest
}

type actionOutput struct{ Body api.ActionResponse }

func (s *Server) actOnExecution(ctx context.Context, p identity.Principal, in *actionInput) (*actionOutput, error) {
	if _, err := s.o.Stores.Executions.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	b := &in.Body
	if err := checkAction(b); err != nil {
		return nil, err
	}
	if b.NodeID != "" {
		r, err := s.stories.OpenExecution(ctx, p, in.ID)
		if err != nil {
			return nil, err
		}
		if err := r.Aim(ctx, b); err != nil {
			return nil, err
		}
	}
	if b.Action == "fork" {
		return s.fork(ctx, p, in.ID, b)
	}
	r := host.Request{
		Execution: in.ID, Action: host.Action(b.Action), By: p.User, Reason: b.Reason,
		Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID), Value: given(b.Output),
	}
	audited := route.Audited(ctx, "execution."+b.Action, in.ID, nil, auditedAction(b, ""))
	status, err := s.o.Host.Act(audited, p, r)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: actionMessage(b), ExecutionStatus: string(status)}}, nil
}

// auditedAction is the entry of an action in the audit log: where and why, without the values that came with it.
func auditedAction(b *api.ActionRequest, fork string) any {
	out := map[string]any{}
	// The order does not matter: it becomes a map.
	for name, value := range map[string]string{"node_id": b.NodeID, "activation_id": b.ActivationID, "reason": b.Reason, "execution_id": fork} {
		if value != "" {
			out[name] = clipped(value)
		}
	}
	if given(b.Output) != nil || given(b.Input) != nil {
		out["value"] = "given"
	}
	return out
}

// clipped is the beginning of a text, for the audit log.
func clipped(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// given returns a value that a request may leave out; null counts as left out.
func given(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); string(raw) == "null" {
		return nil
	}
	return raw
}

// checkAction refuses an action that lacks a field, or has one that would be ignored.
func checkAction(b *api.ActionRequest) error {
	about := b.Action == "retry_node" || b.Action == "skip_node" || b.Action == "fork"
	switch {
	case about && b.NodeID == "" && b.ActivationID == "":
		return api.WrongField("node_id", "%s needs the node, or one activation of it in activation_id", b.Action)
	case !about && b.NodeID != "":
		return api.WrongField("node_id", "%s is about the whole execution; leave it out", b.Action)
	case !about && b.ActivationID != "":
		return api.WrongField("activation_id", "%s is about the whole execution; leave it out", b.Action)
	case b.Action != "fork" && given(b.Input) != nil:
		return api.WrongField("input", "only a fork takes an input; leave it out")
	case b.Action != "skip_node" && given(b.Output) != nil:
		return api.WrongField("output", "only skip_node takes an output; leave it out")
	}
	if input := given(b.Input); input != nil && input[0] != '{' {
		return api.WrongField("input", "the input of a node is an object")
	}
	return nil
}

func actionMessage(b *api.ActionRequest) string {
	switch b.Action {
	case "pause":
		return "the execution is paused; what runs ends and nothing new begins"
	case "resume":
		return "the execution goes on"
	case "cancel":
		return "the execution is canceled"
	case "retry_node":
		return "the node is tried again, after the questions on the way to it have been asked again"
	}
	return "the execution goes on without the node"
}

func (s *Server) fork(ctx context.Context, p identity.Principal, source string, b *api.ActionRequest) (*actionOutput, error) {
	r, err := s.stories.OpenExecution(ctx, p, source)
	if err != nil {
		return nil, err
	}
	if err := r.AskAnew(ctx, b); err != nil {
		return nil, err
	}
	e := r.Summary
	if err := s.o.Revisions.RefuseAround(ctx, p, e.WorkflowID, e.Revision, e.RevisionHash, "fork"); err != nil {
		return nil, err
	}
	leave, err := s.o.Limits.Enter(ctx, p, limits.Start{})
	if err != nil {
		return nil, err
	}
	made := newExecutionID()
	id, err := s.o.Host.Fork(route.Audited(ctx, "execution.fork", source, nil, auditedAction(b, made)), p, host.ForkRequest{
		Source: source, ID: made, Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID), Input: given(b.Input), Reason: b.Reason,
	})
	if leave(err == nil); err != nil {
		return nil, err
	}
	if e, err = s.o.Stores.Executions.Get(ctx, p, id); err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: "a new execution goes on from there", ExecutionStatus: string(e.Status), ExecutionID: id}}, nil
}
