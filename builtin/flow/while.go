package flow

import (
	"context"
	"encoding/json"

	"tandem/builtin/values"
	"tandem/node"
	"tandem/workflow"
)

type whileConfig struct {
	Condition     node.Expr `json:"condition_expression" older:"loop_condition" required:"true" doc:"The condition that keeps the loop going." zh:"使循环继续的条件。"`
	Check         string    `json:"check" enum:"before|after" doc:"Whether the condition is tested before or after each iteration." zh:"判断的时间：在每次迭代之前或之后判断条件。"`
	DelaySeconds  float64   `json:"delay_seconds" range:"0.." doc:"The pause between two iterations, in seconds." zh:"两次迭代之间的间隔（秒）。"`
	MaxIterations int64     `json:"max_iterations" range:"1..10000000" doc:"The most iterations that are run." zh:"最多迭代次数。"`
	OnLimit       string    `json:"on_limit" enum:"fail|complete" doc:"What happens at max_iterations: the node fails, or the loop ends as usual." zh:"达到上限时：达到 max_iterations 时失败或正常结束。"`
	Variable      string    `json:"iteration_variable" blank:"true" doc:"The name under which the body finds the number of the iteration." zh:"循环体中迭代序号的名称。"`
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
		node.About{
			Name: "FLOW.WHILE", Title: node.Says("While", "条件循环"),
			Traits:      workflow.Traits{Names: workflow.NamesOfCarried},
			Description: node.Says("Repeats its body while a condition holds.", "当条件成立时重复执行其主体。"),
			Effect:      workflow.Pure, Keys: loopKeys(), Aliases: loopAliases(), Body: loopBody(),
			Inputs: []node.Value{node.Meaning("*", "Whatever the first iteration gets.", "首次迭代得到的内容。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Repeats the body three times.", "重复执行主体三次。"),
					Config: `{"condition_expression": "index < 3"}`,
					Input:  `{"order": 7}`,
					Output: `{"completed": {"results": [{"order": 7, "item": 1, "index": 0}, {"order": 7, "item": 2, "index": 1}, {"order": 7, "item": 3, "index": 2}], "iteration_results": [{"order": 7, "item": 1, "index": 0}, {"order": 7, "item": 2, "index": 1}, {"order": 7, "item": 3, "index": 2}], "final_result": {"order": 7, "item": 3, "index": 2}, "successful_iterations": 3, "failed_iterations": 0, "errors": [], "limit_reached": false, "broken": false}}`,
				},
			},
		},
		node.Body[whileConfig]{
			Open: func(_ context.Context, call *node.Call, cfg whileConfig) (node.Opening, error) {
				if err := needsBody(call, "iteration"); err != nil {
					return node.Opening{}, err
				}
				return cfg.loop().open(), nil
			},
			Share: func(call *node.Call, _ whileConfig) ([]string, error) { // nothing but what is kept
				keptBy(call).beginning(call)
				return nil, nil
			},
			Iteration: func(call *node.Call, cfg whileConfig, state json.RawMessage, index int64) (node.Iteration, error) {
				return cfg.loop().iteration(call, state, index)
			},
			Turn: func(_ context.Context, call *node.Call, cfg whileConfig, t node.Turn) (node.Advance, error) {
				return cfg.loop().turn(call, t)
			},
			Close: func(_ context.Context, call *node.Call, cfg whileConfig, t node.Closing) (node.Done, error) {
				final := values.Member{Key: "final_result", Value: cfg.loop().data(call, t.State)}
				return completed(t, cfg.CollectResults, &final)
			},
		})
}
