package task

import (
	"encoding/json"
	"strings"

	"tandem/agent"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
)

// sameArguments says that two sets of arguments are one.
func sameArguments(tool string, a, b json.RawMessage) (bool, error) {
	left, err := toolset.ArgumentsHash(tool, a)
	if err != nil {
		return false, err
	}
	right, err := toolset.ArgumentsHash(tool, b)
	return left == right, err
}

// confirm asks a person about the task, or about a call with exactly its arguments. Only a plain yes agrees: no answer, an empty
// one and one about other arguments do not.
func (p *taskStep) confirm(call *node.Call) (node.Outcome, error) {
	flow, hash := p.Kind == agent.KindConfirmFlow, ""
	if !flow {
		same, err := sameArguments(p.about.Tool, p.Input, p.arguments())
		if err != nil {
			return nil, err
		}
		if !same {
			return nil, fault.Newf(fault.Forbidden, "%q would ask about other arguments than those that were judged; go on with the arguments as they are", p.Name).Final()
		}
		if hash, err = toolset.ArgumentsHash(p.about.Tool, p.arguments()); err != nil {
			return nil, err
		}
	}
	if call.Wake == nil {
		request, err := payload.Encode(p.confirmRequest(flow, hash))
		if err != nil {
			return nil, fault.Newf(fault.Internal, "the question whether to go on: %w", err)
		}
		return node.Wait{Ask: &node.Question{Purpose: form.PurposeConfirm, Request: request}}, nil
	}
	agreed := false
	var answer []values.Member
	if call.Wake.By == engine.WakeAnswer && call.Wake.Outcome == engine.AskDone && values.IsObject(call.Wake.Payload) {
		answer = values.Members(call.Wake.Payload)
		agreed = p.confirms(call.Wake.Payload, hash)
	}
	answer = values.Overlay(answer, values.Field("confirm", agreed))
	if !flow {
		answer = values.Overlay(answer, values.Field("tool", p.about.Tool), values.Field("arguments_hash", hash),
			values.Field("execution_id", call.ExecutionID))
	}
	return stepDone(values.Object(answer), agent.ConfirmReply{Confirmed: agreed}, llm.Usage{})
}

// confirms reads an answer.
func (p *taskStep) confirms(raw json.RawMessage, hash string) bool {
	var a struct {
		Confirm   json.RawMessage `json:"confirm"`
		Arguments json.RawMessage `json:"arguments"`
		Hash      *string         `json:"arguments_hash"`
	}
	if json.Unmarshal(raw, &a) != nil || string(a.Confirm) != "true" {
		return false
	}
	if a.Hash != nil && *a.Hash != hash {
		return false
	}
	if hash == "" || values.IsNull(a.Arguments) {
		return true
	}
	same, err := sameArguments(p.about.Tool, a.Arguments, p.arguments())
	return err == nil && same
}

// confirmRequest is what a person is shown.
func (p *taskStep) confirmRequest(flow bool, hash string) map[string]any {
	judged := agent.RiskReply{Risk: p.about.Risk}
	source := p.about.Judged
	if flow {
		source = p.about.FlowRisk
	}
	var said agent.RiskReply
	if raw := p.value(source); raw != nil && json.Unmarshal(raw, &said) == nil { // what cannot be read gives no reason
		judged.Reason = said.Reason
	}
	if p.about.Unassessed {
		judged.Reason = p.say(text.Of("The risk could not be judged, so it counts as high."))
	}
	request := map[string]any{"interaction_type": form.Approval, "risk": judged.Risk, "reason": judged.Reason, "language": p.Language}
	if flow {
		form.Say(request, p.Language, form.TitleText, text.Of("May this task begin?"))
		request["description"] = values.JoinTexts(p.flowName(), values.JoinTexts(p.Question, judged.Reason))
	} else {
		form.Say(request, p.Language, form.TitleText, text.Of("May %s be called?", p.about.Tool))
		request["description"] = values.JoinTexts(p.purpose(), judged.Reason)
		request["step_id"], request["tool"], request["arguments"], request["arguments_hash"] = p.about.Step,
			p.about.Tool, p.arguments(), hash
	}
	if judged.Risk == agent.High {
		request["warning"] = p.say(text.Of("This is of high risk: agree only if you can live with what it may do."))
	}
	return request
}

// flowName is the name that was found for the task.
func (p *taskStep) flowName() string {
	var name struct {
		FlowName string `json:"flow_name"`
	}
	if raw := p.value(p.about.FlowName); raw != nil && json.Unmarshal(raw, &name) != nil {
		return "" // a person may have given anything
	}
	return name.FlowName
}

// purpose is why the present step is taken, in the words of who chose it.
func (p *taskStep) purpose() string {
	var chosen planned
	if raw := p.value(p.about.Choice); raw != nil && json.Unmarshal(raw, &chosen) != nil {
		return ""
	}
	return chosen.Description
}

// givenParams is what a person gives for parameters.
type givenParams struct {
	Content     json.RawMessage `json:"content"`
	Description string          `json:"description"`
}

// readGivenParams reads an answer: {"content": …, "description": …}, or the content by itself.
func readGivenParams(raw json.RawMessage) (givenParams, agent.GivenReply) {
	out := givenParams{Content: json.RawMessage("{}")}
	if !values.IsObject(raw) {
		if text, ok := values.Scalar(raw); ok && !values.IsNull(raw) {
			out.Description = text
		}
		return out, agent.GivenReply{Given: strings.TrimSpace(out.Description) != ""}
	}
	form := true
	for _, m := range values.Members(raw) {
		switch {
		case m.Key == "content" && (values.IsObject(m.Value) || values.IsNull(m.Value)),
			m.Key == "description" && (values.Leading(m.Value) == '"' || values.IsNull(m.Value)):
		default:
			form = false
		}
	}
	if form {
		var said givenParams
		if json.Unmarshal(raw, &said) == nil { // both fields have the right form
			out.Description = said.Description
			if values.IsObject(said.Content) {
				out.Content = said.Content
			}
		}
	} else {
		out.Content = raw
	}
	something := strings.TrimSpace(out.Description) != ""
	for _, m := range values.Members(out.Content) {
		something = something || !values.IsNull(m.Value)
	}
	return out, agent.GivenReply{Given: something}
}

// askParams puts the request for parameters to a person.
func (p *taskStep) askParams(call *node.Call) (node.Outcome, error) {
	if call.Wake != nil {
		answer, told := givenParams{Content: json.RawMessage("{}")}, agent.GivenReply{}
		if call.Wake.By == engine.WakeAnswer && call.Wake.Outcome == engine.AskDone {
			answer, told = readGivenParams(call.Wake.Payload)
		}
		return stepDone(answer, told, llm.Usage{})
	}
	wanted := p.plainMissing()
	if raw := p.value(p.about.Missing); raw != nil {
		var made paramRequest
		if json.Unmarshal(raw, &made) == nil && values.IsObject(made.Params) { // else the plain one does
			wanted = made
		}
	}
	asked := map[string]any{
		"interaction_type": form.Input, "description": wanted.Message, "language": p.Language,
		"step_id": p.about.Step, "tool": p.about.Tool, "message": wanted.Message, "params": wanted.Params,
		"schema": wanted.Schema, "arguments": p.arguments(),
	}
	form.Say(asked, p.Language, form.TitleText, text.Of("%s needs parameters", p.about.Tool))
	request, err := payload.Encode(asked)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question for parameters: %w", err)
	}
	return node.Wait{Ask: &node.Question{Purpose: form.PurposeParam, Request: request}}, nil
}
