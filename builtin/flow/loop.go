package flow

import (
	"context"
	"encoding/json"
	"math"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type loopConfig struct {
	Type          string    `json:"loop_type" enum:"for_range|for_each|while" doc:"What the loop goes by: a range of numbers, a list, or a condition." zh:"循环方式：数字范围、列表或条件。"`
	Start         float64   `json:"start_value" whole:"true" with:"loop_type=for_range" doc:"The first number of a range." zh:"范围的第一个数。"`
	End           float64   `json:"end_value" whole:"true" with:"loop_type=for_range" doc:"The last number of a range." zh:"范围的最后一个数。"`
	Step          float64   `json:"step" whole:"true" with:"loop_type=for_range" doc:"How much each number differs from the one before." zh:"相邻两数之差。"`
	ArrayPath     string    `json:"array_path" older:"items_path" with:"loop_type=for_each" doc:"Where the list is in the input, for for_each." zh:"列表的路径：for_each 时列表在输入中的路径。"`
	Condition     node.Expr `json:"loop_condition" with:"loop_type=while" doc:"The condition that is tested before each iteration, for while." zh:"循环条件：while 时每次迭代前判断的条件。"`
	Variable      string    `json:"iteration_variable" blank:"true" doc:"The name under which the body finds the current value." zh:"循环体中当前值的名称。"`
	MaxIterations int64     `json:"max_iterations" range:"1..10000000" doc:"The most iterations that are run." zh:"最多迭代次数。"`
	OnLimit       string    `json:"on_limit" enum:"fail|complete" doc:"What happens at max_iterations: the node fails, or the loop ends as usual." zh:"达到上限时：达到 max_iterations 时失败或正常结束。"`
	loopCommon
}

func (c *loopConfig) Defaults() {
	c.Type, c.End, c.Step, c.Variable, c.MaxIterations = "for_range", 10, 1, "index", 100
	c.loopCommon = loopDefaults()
}

// turning is a loop whose condition is asked before each iteration.
func (c *loopConfig) turning() whileLoop {
	onLimit := c.OnLimit
	if onLimit == "" {
		onLimit = "complete"
	}
	return whileLoop{condition: string(c.Condition), variable: c.Variable, limit: c.MaxIterations, onLimit: onLimit, common: c.loopCommon}
}

// flowLoop repeats its body over a range, over a list, or while a condition holds.
func flowLoop() node.Kind {
	k := node.Loop(
		node.About{
			Name: "FLOW.LOOP", Title: node.Says("Loop", "循环"),
			Traits:      workflow.Traits{Names: workflow.NamesOfCarried},
			Description: node.Says("Repeats its body over a range, a list, or while a condition holds.", "按范围、列表或条件重复执行其主体。"),
			Effect:      workflow.Pure, Keys: loopKeys(), Aliases: loopAliases(), Body: loopBody(),
			Older:  []string{"LOOP"},
			Inputs: []node.Value{node.Meaning("*", "With for_each the list, at array_path; with while whatever the condition looks at.", "for_each 时为 array_path 处的列表；while 时为条件所涉及的内容。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Runs the body with the numbers 1 to 3.", "以 1 到 3 各执行一次主体。"),
					Config: `{"loop_type": "for_range", "start_value": 1, "end_value": 3}`,
					Output: `{"completed": {"results": [{"item": 1, "index": 0}, {"item": 2, "index": 1}, {"item": 3, "index": 2}], "iteration_results": [{"item": 1, "index": 0}, {"item": 2, "index": 1}, {"item": 3, "index": 2}], "final_result": {"counter": 3}, "successful_iterations": 3, "failed_iterations": 0, "errors": [], "limit_reached": false, "broken": false}}`,
				},
			},
		},
		node.Body[loopConfig]{
			Open: func(_ context.Context, call *node.Call, cfg loopConfig) (node.Opening, error) {
				if err := needsBody(call, "iteration"); err != nil {
					return node.Opening{}, err
				}
				if cfg.Type == "while" {
					if cfg.Condition == "" {
						return node.Opening{}, fault.Newf(fault.InvalidConfig, "%q is required when loop_type is %q", "loop_condition", "while")
					}
					return cfg.turning().open(), nil
				}
				return cfg.open(call)
			},
			Share: func(call *node.Call, cfg loopConfig) ([]string, error) {
				if cfg.Type != "for_each" {
					keptBy(call).beginning(call)
					return nil, nil
				}
				return sharedItems(call, "array_path", cfg.ArrayPath)
			},
			Iteration: func(call *node.Call, cfg loopConfig, state json.RawMessage, index int64) (node.Iteration, error) {
				switch cfg.Type {
				case "while":
					return cfg.turning().iteration(call, state, index)
				case "for_range":
					return iteration(keptBy(call).membersOf(call.Input), values.Encode(cfg.counter(index)), index, cfg.Variable), nil
				}
				items, err := keptItems(call, "array_path", cfg.ArrayPath)
				if err != nil {
					return node.Iteration{}, err
				}
				return iteration(keptBy(call).membersOf(call.Input), batch(items, 1, index), index, cfg.Variable), nil
			},
			Turn: func(_ context.Context, call *node.Call, cfg loopConfig, t node.Turn) (node.Advance, error) {
				if cfg.Type == "while" {
					return cfg.turning().turn(call, t)
				}
				item := func(index int64) (any, error) {
					if cfg.Type == "for_range" {
						return cfg.counter(index), nil
					}
					items, err := keptItems(call, "array_path", cfg.ArrayPath)
					if err != nil {
						return nil, err
					}
					return values.Decode(batch(items, 1, index)), nil
				}
				return cfg.turn(call, t, cfg.Variable, item)
			},
			Close: func(_ context.Context, call *node.Call, cfg loopConfig, t node.Closing) (node.Done, error) {
				return completed(t, cfg.CollectResults, cfg.final(call, t))
			},
		}, planLoop)
	k.Needs = lists.Needs(func(c loopConfig) ([]string, bool) { return []string{c.ArrayPath}, c.Type == "for_each" })
	return k
}

func planLoop(p *node.Planning, c *loopConfig) {
	early.Paths(p, "array_path")
	switch c.Type {
	case "for_range":
		if step := p.Value("step"); step.Type == gjson.Number && step.Num == 0 {
			p.Invalid(p.At("step"), "must not be 0, or the loop would never end")
		}
	case "while":
		p.Require("loop_condition", "when %s is %q", "loop_type", "while")
	}
}

// open counts the iterations of a range or a list.
func (c *loopConfig) open(call *node.Call) (node.Opening, error) {
	var count int64
	if c.Type == "for_range" {
		if c.Step == 0 {
			return node.Opening{}, fault.Newf(fault.InvalidConfig, "%q must not be 0, or the loop would never end", "step")
		}
		count = c.steps()
	} else {
		items, err := keptItems(call, "array_path", c.ArrayPath)
		if err != nil {
			return node.Opening{}, err
		}
		count = int64(len(items))
	}
	state := loopState{}
	if count > c.MaxIterations {
		if c.OnLimit != "complete" {
			return node.Opening{}, tooMany(count, c.MaxIterations)
		}
		count, state.LimitReached = c.MaxIterations, true
	}
	if count == 0 {
		done, err := completed(node.Closing{State: values.Encode(state)}, false, c.final(call, node.Closing{}))
		return node.Opening{Done: done}, err
	}
	return node.Opening{Count: count, Concurrency: 1, KeepGoing: !c.BreakOnError, Turns: c.BreakCondition != "",
		Discard: c.discards(), State: values.Encode(state)}, nil
}

func tooMany(count, limit int64) error {
	return fault.Newf(fault.LoopLimit, "the loop would run %d times, and %q is %d; raise it or give it less", count, "max_iterations", limit)
}

// steps counts the values from start to end, the end included. A tiny part of a step is forgiven, so that 0 to 1 by 0.1
// has eleven.
func (c *loopConfig) steps() int64 {
	n := math.Floor((c.End-c.Start)/c.Step + 1e-9)
	switch {
	case math.IsNaN(n) || n < 0:
		return 0
	case n >= math.MaxInt64/2:
		return math.MaxInt64 / 2
	}
	return int64(n) + 1
}

// counter is the value of an iteration of a range, without the noise of adding fractions.
func (c *loopConfig) counter(index int64) json.Number {
	v := c.Start + float64(index)*c.Step
	if rounded := math.Round(v*1e9) / 1e9; math.Abs(v) < 1e6 {
		v = rounded
	}
	return json.Number(values.Encode(v))
}

// final is the loop's last word, by type.
func (c *loopConfig) final(call *node.Call, t node.Closing) *values.Member {
	var f values.Member
	switch c.Type {
	case "while":
		f = values.Member{Key: "final_result", Value: c.turning().data(call, t.State)}
	case "for_each":
		f = values.Field("final_result", map[string]int64{"processed_count": t.Iterations})
	default:
		last := json.RawMessage("null")
		if t.Iterations > 0 {
			last = values.Encode(c.counter(t.Iterations - 1))
		}
		data := keptBy(call).beginning(call).data
		fields := []values.Member{{Key: "data", Value: data}}
		if values.IsObject(data) {
			fields = values.Members(data)
		}
		f = values.Member{Key: "final_result", Value: values.Object(values.Overlay(fields, values.Member{Key: "counter", Value: last}))}
	}
	return &f
}
