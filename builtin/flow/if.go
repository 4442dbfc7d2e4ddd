package flow

import (
	"context"
	"encoding/json"

	"tandem/builtin/values"
	"tandem/expr"
	"tandem/node"
	"tandem/workflow"
)

type ifConfig struct {
	Condition node.Expr `json:"condition_expression" older:"condition" required:"true" doc:"The condition. What is missing counts as false." zh:"条件表达式；缺失的值视为假。"`
}

// flowIf sends its input along one of two keys. The condition is judged by truth, so what is missing is false; one that
// cannot be evaluated fails the node rather than choosing a way.
func flowIf() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.IF", Title: node.Says("If", "条件分支"),
			Traits:      workflow.Traits{Chooses: workflow.ChoosesTruth, Names: workflow.NamesOfInput},
			Description: node.Says("Sends its input along true or false.", "根据条件将输入送往 true 或 false。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "true", Meaning: node.Says("The input, if the condition holds.", "条件成立时的输入。"),
				Fields: []node.Value{node.Meaning("condition_result", "Whether the condition holds.", "条件是否成立。"), node.HandedOn()}},
				{Name: "false", Meaning: node.Says("The input, if it does not.", "条件不成立时的输入。"),
					Fields: []node.Value{node.Meaning("condition_result", "Whether the condition holds.", "条件是否成立。"), node.HandedOn()}}},
			Inputs: node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Sends large orders another way than small ones.", "将大额订单与小额订单分开处理。"),
					Config: `{"condition_expression": "input.total > 100"}`,
					Input:  `{"order": 7, "total": 120}`,
					Output: `{"true": {"order": 7, "total": 120, "condition_result": true}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg ifConfig, in json.RawMessage) (node.Outcome, error) {
			v, err := call.Eval(string(cfg.Condition), nil)
			if err != nil {
				return nil, err
			}
			holds := expr.Truth(v)
			key := "false"
			if holds {
				key = "true"
			}
			return node.Done{key: values.HandOn(in, values.Field("condition_result", holds))}, nil
		})
	k.Hands = func(json.RawMessage) bool { return true }
	return k
}
