package flow

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type subWorkflowConfig struct {
	WorkflowID  string      `json:"workflow_id" names:"workflow" required:"true" doc:"The workflow to run." zh:"要运行的工作流。"`
	Revision    node.Scalar `json:"revision" doc:"Which revision: deployed, latest, or a number." zh:"运行哪个版本：deployed、latest 或版本号。"`
	Wait        bool        `json:"wait" doc:"Whether the node waits for the end of the other workflow." zh:"是否等待子工作流结束。"`
	OutputNodes []string    `json:"output_nodes" doc:"The nodes whose outputs come back; without them the last ones." zh:"返回哪些节点的输出；省略时为末尾节点。"`
}

func (c *subWorkflowConfig) Defaults() { c.Revision, c.Wait = "deployed", true }

// flowSubWorkflow runs another workflow as a child. The child's id follows from the activation, so starting it again
// after a crash finds the one that runs already.
func flowSubWorkflow() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.SUB_WORKFLOW", Title: node.Says("Sub-workflow", "子工作流"),
			Description: node.Says("Runs another workflow and waits for it.", "运行另一个工作流并等待其结束。"),
			Effect:      workflow.Idempotent,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("execution_id, status and outputs of the other workflow.", "子工作流的 execution_id、status 和 outputs。"), Fields: []node.Value{
				node.Meaning("execution_id", "The execution of the other workflow.", "子工作流的执行编号。"),
				node.Meaning("status", "How it has ended; NEW if nobody waits for it.", "结束状态；不等待时为 NEW。"),
				node.Meaning("outputs", "The outputs of output_nodes, or of the last nodes, by node.", "output_nodes 或末尾节点的输出，按节点编号。"),
			}}},
			Needs:  node.Needs{Also: []node.Text{node.Says("The other workflow, deployed unless revision says otherwise.", "另一个工作流；除非 revision 另有说明，须已部署。")}},
			Inputs: []node.Value{node.Meaning("*", "What the other workflow is started with.", "启动子工作流的输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Runs the latest revision of the workflow \"greeting\" and waits for it.", "运行工作流 greeting 的最新版本并等待其结束。"),
					Config: `{"workflow_id": "greeting", "revision": "latest"}`,
					Input:  `{"name": "Ann"}`,
					Output: `{"result": {"execution_id": "…", "status": "SUCCESS", "outputs": {"hello": {"formatted": "Hello Ann"}}}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg subWorkflowConfig, in json.RawMessage) (node.Outcome, error) {
			revision := string(cfg.Revision)
			if n, err := strconv.ParseUint(revision, 10, 63); revision != "deployed" && revision != "latest" && (err != nil || n == 0) {
				return nil, fault.Newf(fault.InvalidConfig, "%q must be %q, %q or the number of a revision, not %q", "revision", "deployed", "latest", revision)
			}
			wake := call.Wake
			if wake == nil {
				return node.Wait{Child: &node.Child{Workflow: cfg.WorkflowID, Revision: revision, Input: in, HandsOn: true,
					Detached: !cfg.Wait, Outputs: cfg.OutputNodes}}, nil
			}
			if !cfg.Wait {
				return subWorkflowDone(wake.Child, engine.StatusNew, nil), nil
			}
			if err := wake.ChildError(cfg.WorkflowID); err != nil {
				return nil, err
			}
			return subWorkflowDone(wake.Child, wake.Status, pick(wake.Payload, cfg.OutputNodes)), nil
		}, planSubWorkflow)
	k.Needs = func(json.RawMessage) *payload.Reads { return payload.ReadsNamed() }
	return k
}

func planSubWorkflow(p *node.Planning, c *subWorkflowConfig) {
	planChild(p, c.WorkflowID, c.Revision, c.Wait || p.Dynamic("wait"))
}

// planChild says which workflow a node runs and waits for, and refuses a revision that there cannot be.
func planChild(p *node.Planning, id string, revision node.Scalar, waits bool) {
	switch computed := p.Dynamic("workflow_id") || p.Dynamic("revision"); {
	case computed && waits:
		p.Child = &workflow.ChildWorkflow{Workflow: p.Value("workflow_id").String(), Revision: p.Value("revision").String(), Computed: true}
	case waits:
		p.Child = &workflow.ChildWorkflow{Workflow: id, Revision: string(revision)}
	}
	v := p.Value("revision")
	if p.Dynamic("revision") {
		return
	}
	if v.Type == gjson.Number && v.Num < 1 || v.Type == gjson.String && v.Str != "deployed" && v.Str != "latest" {
		p.Invalid(p.At("revision"), `must be "deployed", "latest" or the number of a revision, not %s`, node.Excerpt(v))
	}
}

func subWorkflowDone(child string, status engine.Status, outputs json.RawMessage) node.Done {
	if len(outputs) == 0 {
		outputs = json.RawMessage("{}")
	}
	return node.Done{"result": values.Object([]values.Member{values.Field("execution_id", child), values.Field("status", string(status)), {Key: "outputs", Value: outputs}})}
}

// pick keeps the outputs of the nodes that are wanted, all when none is named; one that has none is null.
func pick(outputs json.RawMessage, wanted []string) json.RawMessage {
	if len(wanted) == 0 {
		return outputs
	}
	var list []values.Member
	for _, id := range wanted {
		value, ok := values.Path{id}.Walk(outputs)
		if !ok {
			value = json.RawMessage("null")
		}
		list = values.Overlay(list, values.Member{Key: id, Value: value})
	}
	return values.Object(list)
}
