package builtin

import (
	"context"
	"encoding/json"

	"tandem/node"
)

type forEachConfig struct {
	ItemsPath     string `json:"items_path" older:"array_path"`
	Variable      string `json:"iteration_variable"`
	Concurrency   int64  `json:"max_concurrency" range:"1..100"`
	BatchSize     int64  `json:"batch_size" range:"1.."`
	MaxIterations int64  `json:"max_iterations" range:"1..10000000"`
	loopCommon
}

func (c *forEachConfig) Defaults() {
	c.Variable, c.Concurrency, c.BatchSize, c.MaxIterations = "item", 1, 1, 10000
	c.loopCommon = loopDefaults()
}

// flowForEach runs its body for every element of a list, several at once if asked. Results stand in the order of the
// list whatever ends first.
func flowForEach() node.Kind {
	return node.Loop(
		info("FLOW.FOR_EACH", "For each", "遍历", "Runs its body for every element of a list.", "对列表中的每个元素执行其主体。"),
		node.Body[forEachConfig]{
			Open: func(_ context.Context, call *node.Call, cfg forEachConfig) (node.Opening, error) {
				if err := needsBody(call, "iteration"); err != nil {
					return node.Opening{}, err
				}
				items, err := keptItems(call, cfg.ItemsPath)
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
				return node.Opening{Count: count, Concurrency: cfg.Concurrency, KeepGoing: !cfg.BreakOnError, Turns: cfg.BreakCondition != "", Discard: cfg.discards()}, nil
			},
			Share: func(call *node.Call, cfg forEachConfig) ([]string, error) { return sharedItems(call, cfg.ItemsPath) },
			Iteration: func(call *node.Call, cfg forEachConfig, _ json.RawMessage, index int64) (node.Iteration, error) {
				items, err := keptItems(call, cfg.ItemsPath)
				if err != nil {
					return node.Iteration{}, err
				}
				return iteration(call.Input, batch(items, cfg.BatchSize, index), index, cfg.Variable), nil
			},
			Turn: func(_ context.Context, call *node.Call, cfg forEachConfig, t node.Turn) (node.Advance, error) {
				return cfg.turn(call, t, cfg.Variable, func(index int64) (any, error) {
					items, err := keptItems(call, cfg.ItemsPath)
					if err != nil {
						return nil, err
					}
					return decode(batch(items, cfg.BatchSize, index)), nil
				})
			},
			Close: func(_ context.Context, _ *node.Call, cfg forEachConfig, t node.Closing) (node.Done, error) {
				return completed(t, cfg.CollectResults, nil)
			},
		})
}
