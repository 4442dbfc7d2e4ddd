package builtin

import (
	"context"
	"encoding/json"

	"tandem/expr"
	"tandem/node"
)

type ifConfig struct {
	Condition node.Scalar `json:"condition_expression" older:"condition" required:"true"`
}

// flowIf sends its input along one of two keys. The condition is judged by truth, so what is missing is false; one that
// cannot be evaluated fails the node rather than choosing a way.
func flowIf() node.Kind {
	return node.Raw(
		info("FLOW.IF", "If", "条件分支", "Sends its input along true or false.", "根据条件将输入送往 true 或 false。"),
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
			return node.Done{key: handOn(in, field("condition_result", holds))}, nil
		})
}
