package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// TaskKind is the kind of node that leads a task.
const TaskKind = "CALL.TASK"

// ToolType and ToolSubtype are the kind of node that calls a tool: what calls of tasks are shown as, and become in workflows that
// are made of tasks.
const ToolType, ToolSubtype = "TOOL", "MCP_TOOL"

// StepKind is the kind of node that a step of a task counts as, by the name of the step.
func StepKind(step string) string {
	if PartOf(step).Kind == KindCall {
		return ToolType + "." + ToolSubtype
	}
	return TaskKind
}

// The nodes of an agent's workflow.
const (
	StartNode = "start"
	TaskNode  = "task"
)

// workflowPrefix begins the ids of the workflows that agents are kept as. No workflow that people make can have such an id.
const workflowPrefix = "agent:"

// unnamedPrefix begins those of agents that a node describes by itself.
const unnamedPrefix = workflowPrefix + "~"

// WorkflowID is the id of the workflow that an agent is kept as: an agent is a workflow with one node, so that its past is kept
// in revisions and a task stays with the one it was started with.
func WorkflowID(id string) string { return workflowPrefix + id }

// UnnamedID is the id of the workflow of an agent without a name; hash is that of what describes it.
func UnnamedID(hash string) string { return unnamedPrefix + hash }

// IDOf is the way back. An agent without a name has an empty id.
func IDOf(workflowID string) (id string, ok bool) {
	if strings.HasPrefix(workflowID, unnamedPrefix) {
		return "", true
	}
	return strings.CutPrefix(workflowID, workflowPrefix)
}

// Spec describes an agent. It is the configuration of the task node of its workflow.
type Spec struct {
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	LLMProfile  string   `json:"llm_profile"`
	MCPServers  []string `json:"mcp_servers,omitempty"`
	// AutoExecute allows low-risk calls without a confirmation, if the user does, too.
	AutoExecute bool   `json:"auto_execute,omitempty"`
	Policy      Policy `json:"policy,omitzero"`
	Language    string `json:"language,omitempty"`
	Limits      Limits `json:"limits,omitzero"`
}

// Policy says which risks need no confirmation where calls run by themselves.
type Policy struct {
	AutoApprove []Risk `json:"auto_approve,omitempty"`
}

// idPattern is what an agent may be called. read-only
var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// CheckID refuses what cannot be an agent's id.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return wrong(fault.Invalid, "id", text.Of("%q cannot be the id of an agent; use up to 63 small letters, digits, dashes and underscores", id))
	}
	return nil
}

// wrong is an error about one field, which it names.
func wrong(code fault.Code, path string, problem text.Text) error {
	return fault.Newf(code, "%s: %s", path, problem).With("path", path)
}

// Check refuses what cannot be an agent. The error names the field.
func (s Spec) Check() error {
	wrong := func(path string, problem text.Text) error { return wrong(fault.Invalid, path, problem) }
	if s.LLMProfile == "" {
		return wrong("llm_profile", text.Of("is missing; name a profile of a model"))
	}
	for i, id := range s.MCPServers {
		if id == "" || strings.Contains(id, "/") {
			return wrong("mcp_servers", text.Of("%q cannot be the id of a tool server", id))
		}
		if slices.Contains(s.MCPServers[:i], id) {
			return wrong("mcp_servers", text.Of("%q is named twice", id))
		}
	}
	if s.Language != "" {
		if err := text.CheckLanguage(s.Language); err != nil {
			return wrong("language", text.As(err.Error()))
		}
	}
	for _, r := range s.Policy.AutoApprove {
		if r != Low && r != Medium && r != High {
			return wrong("policy.auto_approve", text.Of("%q is not a level of risk; use %s, %s or %s", r, Low, Medium, High))
		}
	}
	for _, l := range []struct {
		name  string
		value int
	}{
		{"steps", s.Limits.Steps}, {"plan_tries", s.Limits.PlanTries}, {"inner_calls", s.Limits.InnerCalls},
		{"failures", s.Limits.Failures},
		{"json_tries", s.Limits.JSONTries}, {"history_rounds", s.Limits.HistoryRounds},
	} {
		if l.value < 0 || l.value > maxLimit {
			return wrong("limits."+l.name, text.Of("%d is not a limit; use 1 to %d, or 0 for the default", l.value, maxLimit))
		}
	}
	return nil
}

// Workflow is the agent as a workflow.
func (s Spec) Workflow(id string) (*workflow.Definition, error) {
	config, err := json.Marshal(s)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the agent %q cannot be written: %w", id, err)
	}
	return &workflow.Definition{
		Metadata: workflow.Metadata{ID: id, Name: s.Name, Description: s.Description, Version: "1.0"},
		Nodes: []workflow.Node{
			{ID: StartNode, Name: StartNode, Type: "TRIGGER", Subtype: "MANUAL"},
			{ID: TaskNode, Name: TaskNode, Type: "CALL", Subtype: "TASK", Configurations: config},
		},
		Connections: []workflow.Connection{{ID: "task", FromNode: StartNode, ToNode: TaskNode, OutputKey: workflow.DefaultKey}},
	}, nil
}

// ReadSpec reads an agent from its workflow.
func ReadSpec(def *workflow.Definition) (Spec, error) {
	for _, n := range def.Nodes {
		if n.ID != TaskNode {
			continue
		}
		var s Spec
		if err := json.Unmarshal(n.Configurations, &s); err != nil {
			return Spec{}, fault.Newf(fault.Internal, "the agent %q cannot be read: %w", def.Metadata.ID, err)
		}
		return s, nil
	}
	return Spec{}, fault.Newf(fault.Internal, "the workflow %q is not an agent", def.Metadata.ID)
}
