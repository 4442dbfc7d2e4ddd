package start

import (
	"context"
	"encoding/json"
	"time"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/trigger"
	"tandem/workflow"
)

type manualConfig struct {
	TriggerName string      `json:"trigger_name" blank:"true" doc:"The name of the trigger, which its output has as trigger_message." zh:"触发器名称，输出为 trigger_message。"`
	Description string      `json:"description" doc:"A description for people." zh:"供人阅读的说明。"`
	InputSchema node.Object `json:"input_schema" doc:"The JSON Schema that inputs must fit." zh:"输入的模式：输入须满足的 JSON Schema。"`
}

// manualSource lets a deployed workflow be started by people, the API and the command line: there is nothing to be registered,
// but its form must be usable.
type manualSource struct{}

// Kind implements [trigger.Source].
func (manualSource) Kind() string { return "TRIGGER.MANUAL" }

// Register implements [trigger.Source].
func (manualSource) Register(_ context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[manualConfig](t.Config)
	if err != nil || cfg.InputSchema == nil {
		return err
	}
	if _, err := payload.CompileSchema(json.RawMessage(cfg.InputSchema)); err != nil {
		return fault.Newf(fault.InvalidConfig, "%q is not a usable JSON Schema: %w", "input_schema", err)
	}
	return nil
}

func (c *manualConfig) Defaults() { c.TriggerName = "Manual Trigger" }

// triggerManual is where an execution begins that a person or a program started. Its input is what it was started with;
// who started it and when is ours to say, so those fields win over inputs of the same name.
func triggerManual() node.Kind {
	k := node.Define(
		node.About{
			Name: "TRIGGER.MANUAL", Title: node.Says("Manual trigger", "手动触发"),
			Traits:      workflow.Traits{ByHand: true},
			Description: node.Says("Starts when a person, the API or the command line starts it.", "由人员、接口或命令行启动。"),
			Effect:      workflow.Pure, Older: []string{"START"},
			Keys: []node.Key{{Name: "result",
				Meaning: node.Says("What the execution was started with, with trigger_time, execution_id, trigger_message and user_id.",
					"启动时的输入，附 trigger_time、execution_id、trigger_message 和 user_id。"),
				Fields: append([]node.Value{node.Meaning("trigger_time", "When it was started.", "启动时间。"),
					node.Meaning("execution_id", "The execution.", "执行编号。"), node.Meaning("trigger_message", "The name of the trigger.", "触发器的名称。"), node.Meaning("user_id", "Who has started it.", "启动者。")}, node.HandedOn())}},
			Inputs: []node.Value{node.Meaning("*", "What the execution is started with.", "启动执行的输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Starts with an order, which must have a number.", "以订单启动；订单必须有编号。"),
					Config: `{"input_schema": {"type": "object", "required": ["order"]}}`,
					Input:  `{"order": 7}`,
					Output: `{"result": {"order": 7, "trigger_time": "…", "execution_id": "…", "trigger_message": "Manual Trigger", "user_id": "operator"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg manualConfig, in json.RawMessage) (json.RawMessage, error) {
			if cfg.InputSchema != nil {
				check, err := payload.CompileSchema(json.RawMessage(cfg.InputSchema))
				if err != nil {
					return nil, fault.Newf(fault.InvalidConfig, "%q is not a usable JSON Schema: %w", "input_schema", err)
				}
				if problems := check.Problems("", values.Decode(in)); len(problems) > 0 {
					return nil, fault.Newf(fault.InvalidInput, "the inputs do not fit the trigger's input_schema: %s", problems[0]).With("errors", problems)
				}
			}
			return values.HandOn(in,
				values.Field("trigger_time", call.Now.UTC().Format(time.RFC3339Nano)),
				values.Field("execution_id", call.ExecutionID),
				values.Field("trigger_message", cfg.TriggerName),
				values.Field("user_id", call.UserID),
			), nil
		})
	k.Hands = func(config json.RawMessage) bool { // a schema looks at all of it
		cfg, err := node.Configuration[manualConfig](config)
		return err == nil && cfg.InputSchema == nil
	}
	return k
}
