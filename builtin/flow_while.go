package builtin

import (
	"context"
	"encoding/json"

	"tandem/node"
)

type whileConfig struct {
	Condition     node.Scalar `json:"condition_expression" older:"loop_condition" required:"true"`
	Check         string      `json:"check" enum:"before|after"`
	DelaySeconds  float64     `json:"delay_seconds" range:"0.."`
	MaxIterations int64       `json:"max_iterations" range:"1..10000000"`
	OnLimit       string      `json:"on_limit" enum:"fail|complete"`
	Variable      string      `json:"iteration_variable"`
	loopCommon
}

func (c *whileConfig) Defaults() {
	c.Check, c.MaxIterations, c.OnLimit, c.Variable = "before", 100, "complete", "index"
	c.loopCommon = loopDefaults()
}

func (c *whileConfig) loop() whileLoop {
	return whileLoop{
		condition: string(c.Condition), variable: c.Variable, limit: c.MaxIterations, onLimit: c.OnLimit,
		after: c.Check == "after", delay: seconds(c.DelaySeconds), common: c.loopCommon,
	}
}

// flowWhile repeats its body while a condition holds. A pause between iterations is a durable timer, set after the
// condition was tested.
func flowWhile() node.Kind {
	return node.Loop(
		info("FLOW.WHILE", "While", "条件循环", "Repeats its body while a condition holds.", "当条件成立时重复执行其主体。"),
		node.Body[whileConfig]{
			Open: func(_ context.Context, call *node.Call, cfg whileConfig) (node.Opening, error) {
				if err := needsBody(call, "iteration"); err != nil {
					return node.Opening{}, err
				}
				return cfg.loop().open(call), nil
			},
			Iteration: func(call *node.Call, cfg whileConfig, state json.RawMessage, index int64) (node.Iteration, error) {
				return cfg.loop().iteration(call, state, index)
			},
			Turn: func(_ context.Context, call *node.Call, cfg whileConfig, t node.Turn) (node.Advance, error) {
				return cfg.loop().turn(call, t)
			},
			Close: func(_ context.Context, call *node.Call, cfg whileConfig, t node.Closing) (node.Done, error) {
				final := member{"final_result", cfg.loop().state(call, t.State).Data}
				return completed(t, cfg.CollectResults, &final)
			},
		})
}
