package builtin

import (
	"context"
	"encoding/json"
	"strconv"

	"tandem/engine"
	"tandem/fault"
	"tandem/node"
)

type subWorkflowConfig struct {
	WorkflowID  string      `json:"workflow_id" required:"true"`
	Revision    node.Scalar `json:"revision"`
	Wait        bool        `json:"wait"`
	OutputNodes []string    `json:"output_nodes"`
}

func (c *subWorkflowConfig) Defaults() { c.Revision, c.Wait = "deployed", true }

// flowSubWorkflow runs another workflow as a child. The child's id follows from the activation, so starting it again
// after a crash finds the one that runs already.
func flowSubWorkflow() node.Kind {
	return node.Raw(
		info("FLOW.SUB_WORKFLOW", "Sub-workflow", "子工作流", "Runs another workflow and waits for it.", "运行另一个工作流并等待其结束。"),
		func(_ context.Context, call *node.Call, cfg subWorkflowConfig, in json.RawMessage) (node.Outcome, error) {
			revision := string(cfg.Revision)
			if n, err := strconv.ParseUint(revision, 10, 63); revision != "deployed" && revision != "latest" && (err != nil || n == 0) {
				return nil, fault.Newf(fault.InvalidConfig, "%q must be %q, %q or the number of a revision, not %q", "revision", "deployed", "latest", revision)
			}
			wake := call.Wake
			if wake == nil {
				return node.Wait{Child: &node.Child{Workflow: cfg.WorkflowID, Revision: revision, Input: in, Detached: !cfg.Wait, Outputs: cfg.OutputNodes}}, nil
			}
			if !cfg.Wait {
				return subWorkflowDone(wake.Child, engine.StatusNew, nil), nil
			}
			if err := childError(cfg.WorkflowID, wake); err != nil {
				return nil, err
			}
			return subWorkflowDone(wake.Child, wake.Status, pick(wake.Payload, cfg.OutputNodes)), nil
		})
}

func subWorkflowDone(child string, status engine.Status, outputs json.RawMessage) node.Done {
	if len(outputs) == 0 {
		outputs = json.RawMessage("{}")
	}
	return node.Done{"result": object([]member{field("execution_id", child), field("status", string(status)), {"outputs", outputs}})}
}

// childError is the failure of a child as the failure of its parent: final, since the child has tried again already.
func childError(workflow string, w *node.Wake) error {
	if w.Status == engine.StatusSuccess {
		return nil
	}
	if w.Error != nil {
		return fault.From(w.Error).With("execution_id", w.Child).Final()
	}
	code := fault.Internal
	switch w.Status {
	case engine.StatusCanceled:
		code = fault.Canceled
	case engine.StatusTimeout:
		code = fault.Timeout
	}
	return fault.Newf(code, "the workflow %q ended as %s", workflow, w.Status).With("execution_id", w.Child).Final()
}

// pick keeps the outputs of the nodes that are wanted, all when none is named; one that has none is null.
func pick(outputs json.RawMessage, wanted []string) json.RawMessage {
	if len(wanted) == 0 {
		return outputs
	}
	var list []member
	for _, id := range wanted {
		value, ok := path{id}.walk(outputs)
		if !ok {
			value = json.RawMessage("null")
		}
		list = overlay(list, member{id, value})
	}
	return object(list)
}
