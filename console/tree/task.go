package tree

import (
	"encoding/json"
	"strings"

	"tandem/agent"
	"tandem/api"
	"tandem/console/table"
	"tandem/engine"
	"tandem/payload"
)

// taskTurn is what is known of a task while its steps are shown: what the call that comes next is called with, and how dangerous it
// was found.
type taskTurn struct {
	arguments, risk string
	// calls are the labels of the calls that have begun, by name.
	calls map[string]string
}

// taskStep splits the activation id of a step of a task into its scope and its name; ok is false for everything else.
func taskStep(n *api.NodeExecution) (scope, name string, ok bool) {
	at := strings.LastIndexByte(n.ActivationID, '/')
	if at < 0 || n.NodeID != n.ActivationID[at+1:] {
		return "", "", false
	}
	kind := n.NodeType + "." + n.NodeSubtype
	return n.ActivationID[:at], n.NodeID, kind == agent.TaskKind || isCall(n)
}

// isCall says that a step of a task is a call of a tool.
func isCall(n *api.NodeExecution) bool { return n.NodeType == "TOOL" && n.NodeSubtype == "MCP_TOOL" }

// quiet says that an activation is a decision of a task, which is in sight as long as it is under way or when it fails.
func quiet(n *api.NodeExecution) bool {
	_, name, ok := taskStep(n)
	return ok && !isCall(n) && name != agent.KindSummary
}

// task reads a frame of a step of a task and returns what the step is called, what the task has answered, and what the task is
// called, once that is known.
func (t *turns) task(n *api.NodeExecution) (label, said, title string) {
	scope, name, ok := taskStep(n)
	if !ok {
		return "", "", ""
	}
	if t.tasks == nil {
		t.tasks = map[string]*taskTurn{}
	}
	at := t.tasks[scope]
	if at == nil {
		at = &taskTurn{calls: map[string]string{}}
		t.tasks[scope] = at
	}
	if isCall(n) {
		return at.call(n, name), "", ""
	}
	var left struct {
		FlowName string `json:"flow_name"`
		Risk     string `json:"risk"`
		Answer   string `json:"answer"`
	}
	raw := n.OutputData["result"]
	if n.Status != string(engine.NodeDone) || len(raw) == 0 || json.Unmarshal(raw, &left) != nil {
		return table.OneLine(n.NodeName), "", "" // under way, or somebody has put something else in its place
	}
	switch agent.PartOf(name).Kind {
	case agent.KindFlowName:
		title = table.OneLine(left.FlowName)
	case agent.KindSummary:
		said = left.Answer
	case agent.KindParams, agent.KindFill:
		at.arguments, at.risk = payload.JSON(raw), ""
	case agent.KindToolRisk:
		at.risk = left.Risk
	}
	return table.OneLine(n.NodeName), said, title
}

// call is what a call is called: its step, its tool and with what, and its risk if that is worth a word.
func (at *taskTurn) call(n *api.NodeExecution, name string) string {
	label := at.calls[name]
	if label == "" {
		step, try, again := strings.Cut(name, "_try_")
		label = step + " " + table.OneLine(n.NodeName) + shortArguments(at.arguments)
		if again {
			label += " try " + try
		}
		if at.risk != "" && at.risk != string(agent.Low) {
			label += " [risk " + table.OneLine(at.risk) + "]"
		}
		if n.NodeName != n.NodeID { // otherwise nobody knows the tool yet
			at.calls[name] = label
		}
	}
	return label
}

// answerOf is the answer of a task, line by line and safe to show; none of any other execution.
func answerOf(e api.Execution) []string {
	if e.Task == nil || e.Task.FullAnswer == "" {
		return nil
	}
	var lines []string
	for l := range strings.SplitSeq(strings.TrimRight(e.Task.FullAnswer, "\n"), "\n") {
		lines = append(lines, table.OneLine(l))
	}
	return lines
}
