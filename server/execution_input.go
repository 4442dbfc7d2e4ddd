package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

type inputInput struct {
	ExecutionPath
	Body api.InputRequest
}

func (s *Server) sendInput(ctx context.Context, p identity.Principal, in *inputInput) (*actionOutput, error) {
	b := &in.Body
	if b.ExecutionID != "" && b.ExecutionID != in.ID {
		return nil, api.WrongField("execution_id", "it is %q, and the address names %q; make them agree, or leave it out", b.ExecutionID, in.ID)
	}
	r, err := s.stories.ReadExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if r.View.Status.Final() {
		return nil, fault.Newf(fault.Conflict, "execution %q has ended with %s; nothing waits for input", in.ID, r.View.Status)
	}
	question, err := r.QuestionFor(ctx, b)
	if err != nil {
		return nil, err
	}
	if question != "" {
		return s.answer(ctx, p, in.ID, question, b.InputData)
	}
	if allow := append(route.Operators(), identity.Approver); !p.Has(allow...) { // a person who is asked may answer, whatever their role
		return nil, fault.Newf(fault.Forbidden, "a signal needs the role %s", route.RoleList(allow, "or"))
	}
	request := host.Request{Execution: in.ID, By: p.User, Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID)}
	if !p.Has(route.Operators()...) {
		return nil, fault.Newf(fault.Forbidden, "node %q asks nothing, and signals are not for your roles to send", b.NodeID)
	}
	if err := r.Signal(&request, given(b.InputData)); err != nil {
		return nil, err
	}
	audited := route.Audited(ctx, "execution.signal", in.ID, nil, map[string]string{"node_id": request.Node, "signal": request.Signal})
	status, err := s.o.Host.Act(audited, p, request)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: "the signal was taken", ExecutionStatus: string(status)}}, nil
}

// answer answers a question of the execution, or of one that it has started. It returns when the execution has recorded
// the answer.
func (s *Server) answer(ctx context.Context, p identity.Principal, execution, interaction string,
	data json.RawMessage) (*actionOutput, error) {
	i, err := s.o.Stores.Interactions.Get(ctx, p, interaction)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if may, _ := s.o.Desk.May(ctx, p, i); err == nil && may { // files are stored only for those who may answer; the desk refuses others
		if data, err = s.pages.KeepFiles(ctx, p, i, data); err != nil {
			return nil, renamed(err, "response_data", "input_data")
		}
	}
	i, err = s.o.Desk.Respond(ctx, p, interaction, human.Submission{Data: data})
	if err != nil {
		return nil, renamed(err, "response_data", "input_data")
	}
	message := "the answer was taken"
	if i.Status == store.InteractionPending {
		message = "the answer was taken; more are needed"
	}
	status, err := s.o.Host.Act(ctx, p, host.Request{Execution: i.Execution, Action: host.ActionLook})
	if err == nil && i.Execution != execution {
		var e store.Execution
		e, err = s.o.Stores.Executions.Get(ctx, p, execution)
		status = e.Status
	}
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: message, ExecutionStatus: string(status)}}, nil
}

// renamed is an error about fields that have another name here.
func renamed(err error, from, to string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	fields, ok := f.Details["fields"].([]api.FaultField)
	if !ok {
		return err
	}
	c, list := *f, slices.Clone(fields)
	texts := make([]string, len(list))
	for n := range list {
		if rest, found := strings.CutPrefix(list[n].Path, from); found {
			list[n].Path = to + rest
		}
		texts[n] = list[n].Path + ": " + list[n].Message
	}
	c.Message, c.Details = strings.Join(texts, "; "), maps.Clone(f.Details)
	c.Details["fields"] = list
	return &c
}
