package host

import (
	"encoding/json"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// Sent returns what the last run of an activation sends, or has sent, as people may see it. A person who is asked whether it was done
// has to know what it is, so there is always an answer: if it is not known, the answer says why.
func (f *Fold) Sent(id engine.ActivationID) json.RawMessage {
	run, ok := f.runs[id]
	if !ok {
		return nil
	}
	return f.sent(run.command())
}

func (f *Fold) sent(run engine.RunNode) json.RawMessage {
	var sent json.RawMessage
	values, err := f.Inputs(run)
	if err == nil {
		var data Data
		if data, err = f.Data(run); err == nil {
			sent, err = f.revision.Sent(run, values, data)
		}
	}
	if err != nil {
		reason, _ := json.Marshal(fault.From(err).Message) // a text is always JSON
		return append(append([]byte(`{"error":`), reason...), '}')
	}
	return sent
}

// once says whether the effect of a run must not simply be repeated.
func (f *Fold) once(run engine.RunNode) bool {
	if run.Node < 0 {
		return run.Step != nil && run.Step.Effect == workflow.Once
	}
	return f.graph.Nodes[run.Node].Plan.Effect == workflow.Once
}

// ShownInput is the input of an activation as people see it: for a tool call the call, and not the whole completion that has it.
func ShownInput(id engine.ActivationID, input json.RawMessage) json.RawMessage {
	_, name := id.Split()
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[0] != engine.StepCall && parts[0] != engine.StepApprove {
		return input
	}
	var completion struct {
		Message struct {
			ToolCalls []struct {
				ID        string `json:"id"`
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"tool_calls"`
		} `json:"message"`
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || json.Unmarshal(input, &completion) != nil || n < 1 || n > len(completion.Message.ToolCalls) {
		return input
	}
	call := completion.Message.ToolCalls[n-1]
	told := map[string]any{"tool_call_id": call.ID, "tool_name": call.Name, "arguments": call.Arguments}
	if json.Valid([]byte(call.Arguments)) {
		told["arguments"] = json.RawMessage(call.Arguments)
	}
	raw, err := json.Marshal(told)
	if err != nil {
		return input
	}
	return raw
}
