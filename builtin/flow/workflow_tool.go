package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

// Offered is a workflow as a function: what it is called and for, what it takes, and what it does to the world.
type Offered struct {
	Name, Description string
	// Parameters is a JSON Schema of an object; nil: anything.
	Parameters json.RawMessage
	Acts       workflow.Effect
}

// Offers tells what a revision of a workflow offers to a user of a workspace.
type Offers func(ctx context.Context, workspace, user, workflowID, revision string) (Offered, error)

type workflowToolConfig struct {
	WorkflowID  string      `json:"workflow_id" names:"workflow" required:"true" doc:"The workflow that a call runs." zh:"调用时运行的工作流。"`
	Revision    node.Scalar `json:"revision" doc:"Which revision: deployed, latest, or a number." zh:"运行哪个版本：deployed、latest 或版本号。"`
	OutputNodes []string    `json:"output_nodes" doc:"The nodes whose outputs come back; without them the last ones." zh:"返回哪些节点的输出；省略时为末尾节点。"`
	toolset.Single
}

func (c *workflowToolConfig) Defaults() { c.Revision, c.Approval = "deployed", "inherit" }

// calledWorkflow is what a call has brought.
type calledWorkflow struct {
	ExecutionID string          `json:"execution_id"`
	Status      engine.Status   `json:"status"`
	Outputs     json.RawMessage `json:"outputs,omitempty"`
	// Text is the beginning of outputs that are too large.
	Text      string `json:"text,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// workflowTool gives a model a workflow. A call starts it as a child, whose id follows from the call, so that the call is made once,
// whatever becomes of the process.
func workflowTool(offers Offers) node.Kind {
	k := node.Raw(
		node.About{
			Name: "TOOL.WORKFLOW_TOOL", Title: node.Says("Workflow tool", "工作流工具"),
			Description: node.Says("Lets a model run a workflow with typed arguments, and waits for it.", "让模型以类型化参数运行工作流并等待其结束。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Needs:       node.Needs{Also: []node.Text{node.Says("The other workflow, deployed unless revision says otherwise.", "另一个工作流；除非 revision 另有说明，须已部署。")}},
			Examples: []node.Example{{
				Shows:  node.Says("Runs the latest revision of the workflow \"greeting\" like a function.", "像函数一样运行工作流 greeting 的最新版本。"),
				Config: `{"workflow_id": "greeting", "revision": "latest"}`,
				Input:  `{"function_args": {"name": "Ann"}}`,
				Output: `{"result": {"result": {"execution_id": "…", "status": "SUCCESS", "outputs": {"hello": {"formatted": "Hello Ann"}}}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "execution_id": "…", "status": "SUCCESS", "outputs": {"hello": {"formatted": "Hello Ann"}}}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg workflowToolConfig, in toolset.Input) (node.Outcome, error) {
			if wake := call.Wake; wake != nil && wake.By == engine.WakeChild {
				return cfg.called(call, in)
			}
			tool, err := cfg.tool(ctx, offers, call)
			if err != nil {
				return nil, err
			}
			_, args, err := toolset.Choose(ctx, call, cfg.Fields(in), in, []toolset.Tool{tool})
			if err != nil {
				return nil, err
			}
			if err := toolset.Fits(tool.Parameters(), args); err != nil {
				return nil, err
			}
			return node.Wait{Child: &node.Child{Workflow: cfg.WorkflowID, Revision: string(cfg.Revision), Input: args,
				Outputs: cfg.OutputNodes}}, nil
		}, planWorkflowTool)
	k.Tools = func(ctx context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[workflowToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		offered, err := cfg.offered(ctx, offers, call)
		if err != nil {
			return nil, err
		}
		list := toolset.Offered(cfg.Fields(toolset.Input{}), []toolset.Tool{cfg.of(offered)})
		for i := range list {
			list[i].Acts = offered.Acts
		}
		return list, nil
	}
	return toolset.Kind(k)
}

func (c *workflowToolConfig) offered(ctx context.Context, offers Offers, call *node.Call) (Offered, error) {
	if offers == nil {
		return Offered{}, fault.New(fault.Unsupported, "there are no workflows here that a model can run")
	}
	return offers(ctx, call.Workspace, call.UserID, c.WorkflowID, string(c.Revision))
}

func (c *workflowToolConfig) tool(ctx context.Context, offers Offers, call *node.Call) (toolset.Tool, error) {
	o, err := c.offered(ctx, offers, call)
	return c.of(o), err
}

// of is the workflow as a tool. What the node says of it counts; else it is called and described as its author did.
func (c *workflowToolConfig) of(o Offered) toolset.Tool {
	parameters := o.Parameters
	if values.IsNull(parameters) {
		parameters = toolset.OpenParameters()
	}
	about := strings.TrimSpace(o.Name + ": " + o.Description)
	return toolset.Tool{
		Name: c.name(), Description: cmp.Or(c.Description, about), Effect: toolset.Repeats,
		Parameters: func() json.RawMessage { return parameters },
	}
}

// name is what the tool is called: as the node says, or like the workflow.
func (c *workflowToolConfig) name() string { return cmp.Or(c.ToolName, c.WorkflowID) }

// Fields implements what [toolset.Single] does for a tool that may be called like its workflow.
func (c *workflowToolConfig) Fields(in toolset.Input) toolset.Fields {
	single := c.Single
	single.ToolName = c.name()
	return single.Fields(in)
}

// called ends a call whose workflow has ended.
func (c *workflowToolConfig) called(call *node.Call, in toolset.Input) (node.Outcome, error) {
	if err := call.Wake.ChildError(c.WorkflowID); err != nil {
		return nil, err
	}
	outputs := pick(call.Wake.Payload, c.OutputNodes)
	if len(outputs) == 0 {
		outputs = json.RawMessage("{}")
	}
	out := calledWorkflow{ExecutionID: call.Wake.Child, Status: call.Wake.Status, Outputs: outputs}
	const frame = 512 // what stands around the outputs
	if len(outputs) > toolset.MaxResult-frame {
		out.Outputs = nil
		out.Text, out.Truncated = toolset.FitJSON(string(outputs), toolset.MaxResult-frame)
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"child_execution_id": call.Wake.Child})
	}
	answer, err := toolset.Answer(c.name(), out, c.Fields(in), in)
	if err != nil {
		return nil, err
	}
	answer.ExecutionTime = time.Since(begunAt(call)).Milliseconds()
	raw, err := payload.Encode(answer)
	return node.Done{"result": raw}, err
}

// begunAt is when a call began, as far as its clock tells.
func begunAt(call *node.Call) time.Time {
	if call.Now.IsZero() {
		return time.Now()
	}
	return call.Now
}

func planWorkflowTool(p *node.Planning, c *workflowToolConfig) {
	planChild(p, c.WorkflowID, c.Revision, true)
}
