package builtin

import (
	"context"
	"encoding/json"
	"time"

	"tandem/fault"
	"tandem/node"
)

type manualConfig struct {
	TriggerName string      `json:"trigger_name"`
	Description string      `json:"description"`
	InputSchema node.Object `json:"input_schema"`
}

func (c *manualConfig) Defaults() { c.TriggerName = "Manual Trigger" }

// triggerManual is where an execution begins that a person or a program started. Its input is what it was started with;
// who started it and when is ours to say, so those fields win over inputs of the same name.
func triggerManual() node.Kind {
	return node.Define(
		info("TRIGGER.MANUAL", "Manual trigger", "手动触发", "Starts when a person, the API or the command line starts it.", "由人员、接口或命令行启动。"),
		func(_ context.Context, call *node.Call, cfg manualConfig, in json.RawMessage) (json.RawMessage, error) {
			if cfg.InputSchema != nil {
				check, err := node.CompileSchema(json.RawMessage(cfg.InputSchema))
				if err != nil {
					return nil, fault.Newf(fault.InvalidConfig, "%q is no usable JSON Schema: %w", "input_schema", err)
				}
				if problems := check.Problems("", decode(in)); len(problems) > 0 {
					return nil, fault.Newf(fault.InvalidInput, "the inputs do not fit the trigger's input_schema: %s", problems[0]).With("errors", problems)
				}
			}
			return handOn(in,
				field("trigger_time", call.Now.UTC().Format(time.RFC3339Nano)),
				field("execution_id", call.ExecutionID),
				field("trigger_message", cfg.TriggerName),
				field("user_id", call.UserID),
			), nil
		})
}
