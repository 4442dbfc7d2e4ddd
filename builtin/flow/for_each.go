package flow

import (
	"context"
	"encoding/json"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/node"
	"tandem/workflow"
)

type forEachConfig struct {
	ItemsPath     string `json:"items_path" older:"array_path" doc:"Where the list is in the input; without it the list is looked for." zh:"列表在输入中的路径；省略时自动查找。"`
	Variable      string `json:"iteration_variable" blank:"true" doc:"The name under which the body finds the current element." zh:"循环体中当前元素的名称。"`
	Concurrency   int64  `json:"max_concurrency" range:"1..100" doc:"How many iterations run at once." zh:"同时运行的迭代数。"`
	BatchSize     int64  `json:"batch_size" range:"1.." doc:"How many elements one iteration gets." zh:"每次迭代取几个元素。"`
	MaxIterations int64  `json:"max_iterations" range:"1..10000000" doc:"The most iterations that are run; a longer list fails the node." zh:"最多迭代次数；列表更长时节点失败。"`
	loopCommon
}

func (c *forEachConfig) Defaults() {
	c.Variable, c.Concurrency, c.BatchSize, c.MaxIterations = "item", 1, 1, 10000
	c.loopCommon = loopDefaults()
}

// flowForEach runs its body for every element of a list, several at once if asked. Results stand in the order of the
// list whatever ends first.
func flowForEach() node.Kind {
	k := node.Loop(
		node.About{
			Name: "FLOW.FOR_EACH", Title: node.Says("For each", "遍历"),
			Description: node.Says("Runs its body for every element of a list.", "对列表中的每个元素执行其主体。"),
			Effect:      workflow.Pure, Keys: loopKeys(), Aliases: loopAliases(), Body: loopBody(),
			Inputs: lists.Inputs(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Runs the body for each order; here the body hands on what it gets.", "对每个订单执行主体；此例的主体原样传递其输入。"),
					Config: `{"items_path": "orders"}`,
					Input:  `{"orders": [{"id": 1}, {"id": 2}]}`,
					Output: `{"completed": {"results": [{"item": {"id": 1}, "index": 0}, {"item": {"id": 2}, "index": 1}], "iteration_results": [{"item": {"id": 1}, "index": 0}, {"item": {"id": 2}, "index": 1}], "successful_iterations": 2, "failed_iterations": 0, "errors": [], "limit_reached": false, "broken": false}}`,
				},
			},
		},
		node.Body[forEachConfig]{
			Open: func(_ context.Context, call *node.Call, cfg forEachConfig) (node.Opening, error) {
				if err := needsBody(call, "iteration"); err != nil {
					return node.Opening{}, err
				}
				items, err := keptItems(call, "items_path", cfg.ItemsPath)
				if err != nil {
					return node.Opening{}, err
				}
				count := batches(items, cfg.BatchSize)
				if count > cfg.MaxIterations {
					return node.Opening{}, tooMany(count, cfg.MaxIterations)
				}
				if count == 0 {
					done, err := completed(node.Closing{}, false, nil)
					return node.Opening{Done: done}, err
				}
				return node.Opening{Count: count, Concurrency: cfg.Concurrency, KeepGoing: !cfg.BreakOnError,
					Turns: cfg.BreakCondition != "", Discard: cfg.discards()}, nil
			},
			Share: func(call *node.Call, cfg forEachConfig) ([]string, error) {
				return sharedItems(call, "items_path", cfg.ItemsPath)
			},
			Iteration: func(call *node.Call, cfg forEachConfig, _ json.RawMessage, index int64) (node.Iteration, error) {
				items, err := keptItems(call, "items_path", cfg.ItemsPath)
				if err != nil {
					return node.Iteration{}, err
				}
				return iteration(keptBy(call).membersOf(call.Input), batch(items, cfg.BatchSize, index), index, cfg.Variable), nil
			},
			Turn: func(_ context.Context, call *node.Call, cfg forEachConfig, t node.Turn) (node.Advance, error) {
				return cfg.turn(call, t, cfg.Variable, func(index int64) (any, error) {
					items, err := keptItems(call, "items_path", cfg.ItemsPath)
					if err != nil {
						return nil, err
					}
					return values.Decode(batch(items, cfg.BatchSize, index)), nil
				})
			},
			Close: func(_ context.Context, _ *node.Call, cfg forEachConfig, t node.Closing) (node.Done, error) {
				return completed(t, cfg.CollectResults, nil)
			},
		}, func(p *node.Planning, _ *forEachConfig) { early.Paths(p, "items_path") })
	k.Needs = lists.Needs(func(c forEachConfig) ([]string, bool) { return []string{c.ItemsPath}, true })
	return k
}
