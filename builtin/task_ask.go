package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
)

// argumentsHash names a tool with exactly these arguments.
func argumentsHash(tool string, arguments json.RawMessage) (string, error) {
	canonical, err := payload.Canonical(arguments)
	if err != nil {
		return "", fault.Newf(fault.Internal, "the arguments of %q cannot be read: %w", tool, err)
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), canonical...))
	return hex.EncodeToString(sum[:]), nil
}

// sameArguments says that two sets of arguments are one.
func sameArguments(tool string, a, b json.RawMessage) (bool, error) {
	left, err := argumentsHash(tool, a)
	if err != nil {
		return false, err
	}
	right, err := argumentsHash(tool, b)
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
		if hash, err = argumentsHash(p.about.Tool, p.arguments()); err != nil {
			return nil, err
		}
	}
	if call.Wake == nil {
		request, err := payload.Encode(p.confirmRequest(flow, hash))
		if err != nil {
			return nil, fault.Newf(fault.Internal, "the question whether to go on: %w", err)
		}
		return node.Wait{Ask: &node.Question{Purpose: human.PurposeConfirm, Request: request}}, nil
	}
	agreed := false
	var answer []member
	if call.Wake.By == engine.WakeAnswer && call.Wake.Outcome == engine.AskDone && isObject(call.Wake.Payload) {
		answer = members(call.Wake.Payload)
		agreed = p.confirms(call.Wake.Payload, hash)
	}
	answer = overlay(answer, field("confirm", agreed))
	if !flow {
		answer = overlay(answer, field("tool", p.about.Tool), field("arguments_hash", hash), field("execution_id", call.ExecutionID))
	}
	return stepDone(object(answer), agent.ConfirmReply{Confirmed: agreed}, llm.Usage{})
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
	if hash == "" || isNull(a.Arguments) {
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
		judged.Reason = p.say("风险无法评估，按高风险处理。", "The risk could not be judged, so it counts as high.")
	}
	request := map[string]any{"interaction_type": human.Approval, "risk": judged.Risk, "reason": judged.Reason, "language": p.Language}
	if flow {
		request["title"] = p.say("是否开始执行这个任务？", "May this task begin?")
		request["description"] = joinTexts(p.flowName(), joinTexts(p.Question, judged.Reason))
	} else {
		request["title"] = fmt.Sprintf(p.say("是否允许调用 %s？", "May %s be called?"), p.about.Tool)
		request["description"] = joinTexts(p.purpose(), judged.Reason)
		request["step_id"], request["tool"], request["arguments"], request["arguments_hash"] = p.about.Step, p.about.Tool, p.arguments(), hash
	}
	if judged.Risk == agent.High {
		request["warning"] = p.say("这是高风险操作，请确认后果可以接受。", "This is of high risk: agree only if you can live with what it may do.")
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
	if !isObject(raw) {
		if text, ok := scalarText(raw); ok && !isNull(raw) {
			out.Description = text
		}
		return out, agent.GivenReply{Given: strings.TrimSpace(out.Description) != ""}
	}
	form := true
	for _, m := range members(raw) {
		switch {
		case m.key == "content" && (isObject(m.value) || isNull(m.value)), m.key == "description" && (leading(m.value) == '"' || isNull(m.value)):
		default:
			form = false
		}
	}
	if form {
		var said givenParams
		if json.Unmarshal(raw, &said) == nil { // both fields have the right form
			out.Description = said.Description
			if isObject(said.Content) {
				out.Content = said.Content
			}
		}
	} else {
		out.Content = raw
	}
	something := strings.TrimSpace(out.Description) != ""
	for _, m := range members(out.Content) {
		something = something || !isNull(m.value)
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
		if json.Unmarshal(raw, &made) == nil && isObject(made.Params) { // else the plain one does
			wanted = made
		}
	}
	request, err := payload.Encode(map[string]any{
		"interaction_type": human.Input, "title": fmt.Sprintf(p.say("%s 需要补充参数", "%s needs parameters"), p.about.Tool), "description": wanted.Message, "language": p.Language,
		"step_id": p.about.Step, "tool": p.about.Tool, "message": wanted.Message, "params": wanted.Params, "schema": wanted.Schema, "arguments": p.arguments(),
	})
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question for parameters: %w", err)
	}
	return node.Wait{Ask: &node.Question{Purpose: human.PurposeParam, Request: request}}, nil
}
