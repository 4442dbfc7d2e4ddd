package task_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/task"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

const mcpAgentKind = "AI_AGENT.MCP_AGENT"

func TestMCPAgent_StartsATask(t *testing.T) {
	t.Parallel()
	r := newTaskRig(t)
	for name, c := range map[string]struct{ config, input, workflow, want string }{
		"ByName": {`{"agent_id":"helper","question":"how warm?","params":{"city":"Turin"},"conversation_id":"talk","language":"zh"}`, `{"question":"ignored","params":{"city":"Rome"}}`,
			"agent:helper", `{"question":"how warm?","params":{"city":"Turin"},"conversation_id":"talk","language":"zh"}`},
		"FromTheInput": {`{"agent_id":"helper"}`, `{"question":"how warm?","params":{"city":"Rome"},"conversation_id":7}`, "agent:helper", `{"question":"how warm?","params":{"city":"Rome"},"conversation_id":"7"}`},
		"Inline":       {`{"profile_id":"m","mcp_servers":["srv"],"auto_execute":true,"policy":{"auto_approve":["medium"]},"limits":{"steps":3},"question":"q"}`, `{}`, "agent:~hash", `{"question":"q"}`},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: they share what was kept
			call := nodetest.NewCall(t, c.config, c.input)
			out, err := nodetest.Of(task.Kinds(r.options())...).Kind(t, mcpAgentKind).Run(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			child := out.(node.Wait).Child
			if child.Workflow != c.workflow || child.Revision != "latest" || child.Detached {
				t.Errorf("starts %+v", child)
			}
			if a, b := nodetest.Text(nodetest.Value(t, string(child.Input))), nodetest.Text(nodetest.Value(t, c.want)); a != b {
				t.Errorf("asks %s, want %s", a, b)
			}
		})
	}
	if len(r.people.kept) != 1 {
		t.Fatalf("kept %+v", r.people.kept)
	}
	if s := r.people.kept[0]; s.LLMProfile != "m" || !s.AutoExecute || s.Limits.Steps != 3 || len(s.Policy.AutoApprove) != 1 || s.MCPServers[0] != "srv" {
		t.Errorf("kept %+v", s)
	}
}

func TestMCPAgent_HandsOnWhatItsTaskBrings(t *testing.T) {
	t.Parallel()
	r := newTaskRig(t)
	r.mind.says["plan"] = planOf()
	r.begin(ask)
	outputs, err := r.fold.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(outputs)
	if err != nil {
		t.Fatal(err)
	}
	wake := func(w *node.Wake) (node.Outcome, error) {
		call := nodetest.NewCall(t, `{"agent_id":"helper","question":"q"}`, `{}`)
		call.Wake = w
		return nodetest.Of(task.Kinds(r.options())...).Kind(t, mcpAgentKind).Run(t.Context(), call)
	}
	out, err := wake(&node.Wake{By: engine.WakeChild, Child: "exec_2", Status: engine.StatusSuccess, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	nodetest.CheckDone(t, out.(node.Done), map[string]string{"result": `{"answer":"It is 21 degrees.","task_id":"exec_2","status":"SUCCESS","steps":[],"token_usage":{"input_tokens":50,"total_tokens":75}}`})
	if _, err := wake(&node.Wake{By: engine.WakeChild, Child: "exec_2", Status: engine.StatusCanceled}); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("a canceled task: %v", err)
	}
	if _, err := wake(&node.Wake{By: engine.WakeChild, Child: "exec_2", Status: engine.StatusError, Error: fault.New(fault.ToolError, "no luck")}); fault.CodeOf(err) != fault.ToolError || fault.From(err).Retryable {
		t.Errorf("a failed task: %v", err)
	}
}

func TestMCPAgent_RefusesWhatItCannotAsk(t *testing.T) {
	t.Parallel()
	r := newTaskRig(t)
	for name, c := range map[string]struct {
		config, input, part string
		code                fault.Code
	}{
		"NoQuestion":   {`{"agent_id":"helper"}`, `{}`, "question", fault.ParameterMissing},
		"TooLong":      {`{"agent_id":"helper","question":"` + strings.Repeat("长", 2001) + `"}`, `{}`, "2001", fault.InvalidInput},
		"Params":       {`{"agent_id":"helper","question":"q"}`, `{"params":[1]}`, "params", fault.InvalidInput},
		"NoAgent":      {`{"question":"q"}`, `{}`, "agent_id", fault.InvalidConfig},
		"UnknownAgent": {`{"agent_id":"helpr","question":"q"}`, `{}`, "helper", fault.NotFound},
		"Risk":         {`{"llm_profile":"m","question":"q","policy":{"auto_approve":["none"]}}`, `{}`, "none", fault.InvalidConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := nodetest.Of(task.Kinds(r.options())...).Kind(t, mcpAgentKind).Run(t.Context(), nodetest.NewCall(t, c.config, c.input))
			nodetest.WantError(t, err, c.code, c.part)
		})
	}
}
