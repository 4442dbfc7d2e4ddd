package builtin

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/fault"
	"tandem/node"
)

// mcpAgentConfig names an agent, or describes one.
type mcpAgentConfig struct {
	AgentID     string      `json:"agent_id"`
	LLMProfile  string      `json:"llm_profile" older:"profile_id"`
	MCPServers  []string    `json:"mcp_servers"`
	AutoExecute bool        `json:"auto_execute"`
	Policy      node.Object `json:"policy"`
	Limits      node.Object `json:"limits"`
	Language    string      `json:"language" enum:"zh|en"`

	Question       node.Words  `json:"question" prompt:"true"`
	Params         node.Object `json:"params"`
	ConversationID node.Scalar `json:"conversation_id"`
}

type mcpAgentInput struct {
	Question       json.RawMessage `json:"question,omitempty" prompt:"true"`
	Params         json.RawMessage `json:"params,omitempty"`
	ConversationID json.RawMessage `json:"conversation_id,omitempty"`
}

// mcpAgentOutput is the result of the node.
type mcpAgentOutput struct {
	Answer     string          `json:"answer"`
	TaskID     string          `json:"task_id"`
	Status     string          `json:"status"`
	Steps      json.RawMessage `json:"steps"`
	TokenUsage json.RawMessage `json:"token_usage"`
}

// mcpAgent gives a question to an agent and waits for its task, which is an execution of its own: its id follows from the activation, so
// that starting it again after a crash finds the one that runs.
func mcpAgent(agents Agents) node.Kind {
	k := node.Raw(
		info("AI_AGENT.MCP_AGENT", "Planning agent", "规划智能体", "Gives a question to an agent that plans with the tools of MCP servers, and waits for its task.", "将问题交给使用 MCP 工具的规划智能体，并等待任务完成。"),
		func(ctx context.Context, call *node.Call, cfg mcpAgentConfig, in mcpAgentInput) (node.Outcome, error) {
			if call.Wake != nil {
				return mcpAgentDone(cfg, call.Wake)
			}
			request, err := cfg.request(in)
			if err != nil {
				return nil, err
			}
			id, err := cfg.workflow(ctx, agents, call)
			if err != nil {
				return nil, err
			}
			return node.Wait{Child: &node.Child{Workflow: id, Revision: "latest", Input: request, Outputs: []string{agent.TaskNode}}}, nil
		})
	k.OutputSchema = node.SchemaText(`{"type":"object","required":["answer","task_id","status","steps","token_usage"],"properties":{"answer":{"type":"string"},"task_id":{"type":"string"},"status":{"type":"string"},"steps":{"type":"array","items":{"type":"object"}},"token_usage":{"type":"object"}}}`)
	return k
}

// workflow is the id of the workflow that the agent is.
func (c *mcpAgentConfig) workflow(ctx context.Context, agents Agents, call *node.Call) (string, error) {
	if c.AgentID != "" {
		return agents.Workflow(ctx, call.Workspace, c.AgentID)
	}
	if c.LLMProfile == "" {
		return "", fault.New(fault.InvalidConfig, `"agent_id" is missing; name an agent, or describe one with "llm_profile" and "mcp_servers"`).With("path", "configurations.agent_id")
	}
	spec, err := taskConfig{
		LLMProfile: c.LLMProfile, MCPServers: c.MCPServers, AutoExecute: c.AutoExecute, Policy: c.Policy, Limits: c.Limits, Language: c.Language,
	}.spec()
	if err != nil {
		return "", err
	}
	return agents.Keep(ctx, call.Workspace, spec)
}

// request is what the task is asked. What is configured wins; the input fills what is left open.
func (c *mcpAgentConfig) request(in mcpAgentInput) (json.RawMessage, error) {
	question := strings.TrimSpace(string(c.Question))
	if question == "" {
		question = strings.TrimSpace(promptText(in.Question))
	}
	switch n := utf8.RuneCountInString(question); {
	case n == 0:
		return nil, node.Missing([]string{"question"}, `question: is missing; set "question", or connect what brings it`).With("path", "question")
	case n > agent.MaxQuestion:
		return nil, fault.Newf(fault.InvalidInput, "question: has %d characters; at most %d are taken", n, agent.MaxQuestion).With("path", "question")
	}
	fields := []member{field("question", question)}
	params := json.RawMessage(c.Params)
	if len(members(params)) == 0 {
		params = in.Params
	}
	if !isNull(params) {
		if !isObject(params) {
			return nil, fault.New(fault.InvalidInput, "params: must be an object").With("path", "params")
		}
		fields = append(fields, member{"params", params})
	}
	conversation := string(c.ConversationID)
	if conversation == "" {
		conversation = promptText(in.ConversationID)
	}
	if conversation != "" {
		fields = append(fields, field("conversation_id", conversation))
	}
	if c.Language != "" {
		fields = append(fields, field("language", c.Language))
	}
	return object(fields), nil
}

// mcpAgentDone hands on what the task has brought.
func mcpAgentDone(c mcpAgentConfig, wake *node.Wake) (node.Outcome, error) {
	name := c.AgentID
	if name == "" {
		name = "agent"
	}
	if err := childError(name, wake); err != nil {
		return nil, err
	}
	done := gjson.GetBytes(wake.Payload, agent.TaskNode)
	out := mcpAgentOutput{Answer: done.Get("answer").String(), TaskID: wake.Child, Status: string(wake.Status), Steps: json.RawMessage("[]"), TokenUsage: json.RawMessage("{}")}
	if steps := done.Get("steps"); steps.IsArray() {
		out.Steps = json.RawMessage(steps.Raw)
	}
	if usage := done.Get("token_usage"); usage.IsObject() {
		out.TokenUsage = json.RawMessage(usage.Raw)
	}
	return result(out)
}
