package flow

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"tandem/builtin/early"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type timeoutConfig struct {
	Seconds   float64       `json:"timeout_seconds" range:"0.1..31536000" doc:"How long the body may take, in seconds." zh:"主体最多允许的时间（秒）。"`
	Deadline  node.Template `json:"deadline" doc:"A point in time that takes the place of timeout_seconds." zh:"截止时刻：代替 timeout_seconds。"`
	Condition node.Expr     `json:"condition_expression" older:"condition" doc:"A condition with which there is no deadline." zh:"成立时不设截止时间的条件。"`
}

func (c *timeoutConfig) Defaults() { c.Seconds = 300 }

// flowTimeout runs its body once, with a deadline. The engine decides between the end of the body and the deadline, so
// exactly one of the two keys comes.
func flowTimeout() node.Kind {
	return node.Loop(
		node.About{
			Name: "FLOW.TIMEOUT", Title: node.Says("Timeout", "超时"),
			Traits:      workflow.Traits{Names: workflow.NamesOfInput},
			Description: node.Says("Puts a deadline on its body.", "为其主体设置截止时间。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "body", Meaning: node.Says("The input; what is connected here has the deadline.", "输入；所连接的节点受截止时间约束。"), Fields: []node.Value{node.HandedOn()}},
				{Name: "result", Meaning: node.Says("What the body has produced in time.", "主体按时得到的结果。"), Fields: []node.Value{
					node.Meaning("*", "The payload of the last node of the body.", "主体最后一个节点的输出。"),
				}},
				{Name: "timeout", Instead: true, Meaning: node.Says("What there was of the body, when it took too long.", "主体超时时已有的结果。"), Fields: []node.Value{
					node.Meaning("timed_out", "Always true here.", "此处恒为 true。"),
					node.Meaning("elapsed_seconds", "How long the body has taken.", "主体已用的时间（秒）。"),
					node.Meaning("unfinished", "The nodes of the body that had not ended.", "主体中未结束的节点。"),
					node.Meaning("partial", "What the body had produced.", "主体已得到的结果。"),
				}},
			},
			Body:   &workflow.ScopeKeys{Entry: "body", Exits: []string{workflow.DefaultKey, "timeout"}, Once: true},
			Inputs: []node.Value{node.Meaning("*", "What the body gets.", "主体的输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Gives the body a minute; here it hands on what it gets at once.", "主体限时一分钟；此例的主体立即传递其输入。"),
					Config: `{"timeout_seconds": 60}`,
					Input:  `{"order": 7}`,
					Output: `{"result": {"order": 7}}`,
				},
			},
		},
		node.Body[timeoutConfig]{
			Open: func(_ context.Context, call *node.Call, cfg timeoutConfig) (node.Opening, error) {
				if err := needsBody(call, "body"); err != nil {
					return node.Opening{}, err
				}
				end, err := cfg.end(call)
				return node.Opening{Count: 1, Concurrency: 1, Deadline: end}, err
			},
			Iteration: func(call *node.Call, _ timeoutConfig, _ json.RawMessage, _ int64) (node.Iteration, error) {
				return node.Iteration{Payload: call.Input}, nil
			},
			Close: closeTimeout,
		}, func(p *node.Planning, _ *timeoutConfig) {
			early.Text(p, "deadline", func(at string) error {
				_, err := parseTime(at, "")
				return err
			})
		})
}

// end is the deadline, zero when a condition says that there is none.
func (c *timeoutConfig) end(call *node.Call) (time.Time, error) {
	if c.Condition != "" {
		v, err := call.Eval(string(c.Condition), nil)
		if err != nil || expr.Truth(v) {
			return time.Time{}, err
		}
	}
	if c.Deadline != "" {
		return parseTime(string(c.Deadline), "")
	}
	return call.Now.Add(seconds(c.Seconds)), nil
}

func closeTimeout(_ context.Context, call *node.Call, _ timeoutConfig, t node.Closing) (node.Done, error) {
	results, err := t.Results()
	if err != nil {
		return nil, err
	}
	result := json.RawMessage("null")
	if len(results) > 0 && len(results[0]) > 0 {
		result = results[0]
	}
	if !t.Deadline {
		return node.Done{"result": result}, nil
	}
	unfinished := nodesOf(t.Unfinished)
	if !call.Connected("timeout") {
		return nil, fault.Newf(fault.Timeout, "the body did not end before its deadline; give it more time or connect %q", "timeout").
			With("unfinished", unfinished).Final()
	}
	return node.Done{"timeout": values.Object([]values.Member{
		values.Field("timed_out", true), values.Field("elapsed_seconds", t.Elapsed.Seconds()), values.Field("unfinished", unfinished),
		{Key: "partial", Value: result},
	})}, nil
}

// nodesOf are the nodes that activations are visits of, each once, sorted.
func nodesOf(ids []engine.ActivationID) []string {
	nodes := []string{}
	for _, id := range ids {
		_, name := id.Split()
		if plain, err := url.PathUnescape(name); err == nil { // the signs of paths are escaped in it
			name = plain
		}
		nodes = append(nodes, name)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// needsBody refuses a scope with nothing in it.
func needsBody(call *node.Call, entry string) error {
	if call.Connected(entry) {
		return nil
	}
	return fault.Newf(fault.InvalidConfig, "nothing is connected to %q, so there is nothing to run; connect the first node of the body to it", entry)
}
