package builtin

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
)

type timeoutConfig struct {
	Seconds   float64     `json:"timeout_seconds" range:"0.1..31536000"`
	Deadline  node.Scalar `json:"deadline"`
	Condition node.Scalar `json:"condition_expression" older:"condition"`
}

func (c *timeoutConfig) Defaults() { c.Seconds = 300 }

// flowTimeout runs its body once, with a deadline. The engine decides between the end of the body and the deadline, so
// exactly one of the two keys comes.
func flowTimeout() node.Kind {
	return node.Loop(
		info("FLOW.TIMEOUT", "Timeout", "超时", "Puts a deadline on its body.", "为其主体设置截止时间。"),
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
	return node.Done{"timeout": object([]member{
		field("timed_out", true), field("elapsed_seconds", t.Elapsed.Seconds()), field("unfinished", unfinished), {"partial", result},
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
