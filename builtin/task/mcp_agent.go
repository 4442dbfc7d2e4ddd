package task

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/node/shape"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/workflow"
)

// mcpAgentConfig names an agent, or describes one.
type mcpAgentConfig struct {
	_ struct{} `need:"agent_id|llm_profile"`

	AgentID     string      `json:"agent_id" names:"agent" doc:"The stored agent that does the task." zh:"执行任务的已保存智能体。"`
	LLMProfile  string      `json:"llm_profile" names:"profile" older:"profile_id" doc:"The model profile of an agent that the node describes itself." zh:"节点自述智能体的模型配置档。"`
	MCPServers  []string    `json:"mcp_servers" names:"tool_server" doc:"The tool servers that it may use." zh:"可使用的工具服务器。"`
	AutoExecute bool        `json:"auto_execute" doc:"Whether plans are carried out without asking first." zh:"是否不经询问直接执行计划。"`
	Policy      node.Object `json:"policy" doc:"What it may do without asking." zh:"无需询问即可执行的范围。"`
	Limits      node.Object `json:"limits" doc:"How much a task may use." zh:"一次任务的用量上限。"`
	Language    string      `json:"language" enum:"zh|en" doc:"The language in which it speaks." zh:"使用的语言。"`

	Question       node.Words    `json:"question" prompt:"true" doc:"The task; without it the question of the input." zh:"任务内容；省略时取输入的 question。"`
	Params         node.Object   `json:"params" doc:"Values that the task is given." zh:"提供给任务的参数。"`
	ConversationID node.Template `json:"conversation_id" doc:"The conversation that the task belongs to." zh:"任务所属的对话。"`
}

type mcpAgentInput struct {
	Question       json.RawMessage `json:"question,omitempty" prompt:"true" doc:"The task, if the configuration does not say." zh:"未配置时的任务。"`
	Params         json.RawMessage `json:"params,omitempty" doc:"Values that the task is given." zh:"提供给任务的值。"`
	ConversationID json.RawMessage `json:"conversation_id,omitempty" doc:"The conversation that the task belongs to." zh:"任务所属的会话。"`
}

// mcpAgentOutput is the result of the node.
type mcpAgentOutput struct {
	Answer     string          `json:"answer" doc:"What the agent has answered." zh:"智能体的答复。"`
	TaskID     string          `json:"task_id" doc:"The execution that was the task." zh:"任务对应的执行编号。"`
	Status     string          `json:"status" doc:"How it has ended." zh:"结束状态。"`
	Steps      json.RawMessage `json:"steps" doc:"The tools that were used, step by step." zh:"各步骤所用的工具。"`
	TokenUsage json.RawMessage `json:"token_usage" doc:"The tokens that were used." zh:"所用的令牌数。"`
}

// mcpAgent gives a question to an agent and waits for its task, which is an execution of its own: its id follows from the activation, so
// that starting it again after a crash finds the one that runs.
func mcpAgent(agents Agents) node.Kind {
	k := node.Raw(
		node.About{
			Name: "AI_AGENT.MCP_AGENT", Title: node.Says("Planning agent", "规划智能体"),
			Traits:      workflow.Traits{GivesTasks: true},
			Description: node.Says("Gives a question to an agent that plans with the tools of MCP servers, and waits for its task.", "将问题交给使用 MCP 工具的规划智能体，并等待任务完成。"),
			Effect:      workflow.Idempotent, Older: []string{"AGENT"},
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The answer, the task with its status and steps, and the tokens used.", "答复、任务的状态与步骤，以及所用的令牌。"), Fields: node.ValuesOf[mcpAgentOutput]()}},
			Needs:  node.Needs{Also: []node.Text{node.Says("A stored agent, or a model profile; tool servers, if it is to use tools.", "已保存的智能体或模型配置档；使用工具时还需工具服务器。")}},
			Inputs: []node.Value{node.Meaning("*", "Whatever the placeholders of the question name.", "问题中占位符所引用的值。")},
			Examples: []node.Example{
				{
					Shows:   node.Says("Lets an agent answer, which plans and uses tools if it needs to.", "由智能体规划并在需要时使用工具作答。"),
					Config:  `{"llm_profile": "writer", "question": "Where is Bern?", "language": "en"}`,
					Replies: []string{`Bern is in Switzerland.`},
					Output:  `{"result": {"answer": "Bern is in Switzerland.", "task_id": "…", "status": "SUCCESS", "steps": [], "token_usage": {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5}}}`,
				},
			},
		},
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
		}, planMCPAgent)
	k.OutputSchema = shape.SchemaText(`{"type":"object","required":["answer","task_id","status","steps","token_usage"],"properties":{"answer":{"type":"string"},"task_id":{"type":"string"},"status":{"type":"string"},"steps":{"type":"array","items":{"type":"object"}},"token_usage":{"type":"object"}}}`)
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
		LLMProfile: c.LLMProfile, MCPServers: c.MCPServers, AutoExecute: c.AutoExecute, Policy: c.Policy,
		Limits: c.Limits, Language: c.Language,
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
		question = strings.TrimSpace(values.Text(in.Question))
	}
	if question == "" {
		return nil, slot.Missing([]string{"question"}, `question: is missing; set "question", or connect what brings it`).With("path", "question")
	}
	r := api.TaskRequest{Question: question, Params: json.RawMessage(c.Params),
		ConversationID: string(c.ConversationID), Language: c.Language}
	if len(values.Members(r.Params)) == 0 {
		r.Params = in.Params
	}
	if r.ConversationID == "" {
		r.ConversationID = values.Text(in.ConversationID)
	}
	if err := agent.CheckRequest(&r); err != nil {
		return nil, err
	}
	return payload.Encode(r)
}

// mcpAgentDone hands on what the task has brought.
func mcpAgentDone(c mcpAgentConfig, wake *node.Wake) (node.Outcome, error) {
	name := c.AgentID
	if name == "" {
		name = "agent"
	}
	if err := wake.ChildError(name); err != nil {
		return nil, err
	}
	done := gjson.GetBytes(wake.Payload, agent.TaskNode)
	out := mcpAgentOutput{Answer: done.Get("answer").String(), TaskID: wake.Child, Status: string(wake.Status),
		Steps: json.RawMessage("[]"), TokenUsage: json.RawMessage("{}")}
	if steps := done.Get("steps"); steps.IsArray() {
		out.Steps = json.RawMessage(steps.Raw)
	}
	if usage := done.Get("token_usage"); usage.IsObject() {
		out.TokenUsage = json.RawMessage(usage.Raw)
	}
	return node.Succeed(out)
}

// planMCPAgent: a node names a stored agent, or describes one.
func planMCPAgent(p *node.Planning, _ *mcpAgentConfig) {
	if !p.Has("agent_id") {
		return
	}
	for _, name := range []string{"llm_profile", "mcp_servers", "auto_execute", "policy", "limits"} {
		if p.Has(name) {
			p.Warn(workflow.ProblemConfig, p.At(name), "%q does nothing beside agent_id: it is for an agent that the node describes by itself; remove one of them", name)
		}
	}
}
