package toolset

import (
	"encoding/json"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// Single are the configurations of a node that offers one tool.
type Single struct {
	ToolName     string          `json:"tool_name" doc:"The name of the tool." zh:"工具名称。"`
	Description  string          `json:"description" doc:"What the model is told about the tool." zh:"告知模型的工具说明。"`
	ToolPrefix   string          `json:"tool_prefix" doc:"What stands before the names of the tools." zh:"工具名称的前缀。"`
	Approval     string          `json:"approval" enum:"inherit|never|always" doc:"Whether a person is asked before a tool is used; inherit leaves it to the agent." zh:"使用工具前是否询问人员；inherit 由智能体决定。"`
	FunctionArgs node.Object     `json:"function_args" doc:"The arguments of the tool, for a node that stands alone." zh:"独立节点调用工具的参数。"`
	Context      json.RawMessage `json:"context" doc:"Anything that comes back with the result." zh:"随结果一并返回的任意内容。"`
	CallID       string          `json:"call_id" doc:"A name of the call that comes back with the result." zh:"随结果一并返回的调用编号。"`
}

// Fields are the configurations as those of a set. A node that stands alone runs its one tool, unless its input names another.
func (s Single) Fields(in Input) Fields {
	f := Fields{ToolPrefix: s.ToolPrefix, Approval: s.Approval, FunctionArgs: s.FunctionArgs, Context: s.Context, CallID: s.CallID}
	if in.ToolName == "" {
		f.ToolName = s.ToolName
	}
	return f
}

// OpenParameters is the schema of a tool that takes anything.
func OpenParameters() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }

// Fits checks arguments against the schema that the author of a node has given them; null: they may be anything.
func Fits(schema, args json.RawMessage) error {
	if values.IsNull(schema) {
		return nil
	}
	check, err := payload.CompileSchema(schema)
	if err != nil {
		return fault.Newf(fault.InvalidConfig, `"parameters" is not a usable JSON Schema: %w`, err).With("path", "configurations.parameters")
	}
	if problems := check.Problems("", values.Decode(args)); len(problems) > 0 {
		return fault.Newf(fault.ToolError, "the arguments do not fit the parameters: %s", problems[0]).With("path", "function_args")
	}
	return nil
}
