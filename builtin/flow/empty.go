package flow

import (
	"context"
	"encoding/json"

	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type emptyConfig struct {
	PassThrough bool `json:"pass_through" doc:"Whether the input is handed on as it is." zh:"是否原样传递输入。"`
}

// callEmpty does nothing: a place for connections to meet or to end.
func callEmpty() node.Kind {
	k := node.Define(
		node.About{
			Name: "CALL.EMPTY", Title: node.Says("Empty", "空操作"),
			Description: node.Says("Does nothing; hands its input on if asked to.", "不执行任何操作；可按需原样传递输入。"),
			Effect:      workflow.Pure, Older: []string{"END", "EMPTY"},
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The input if pass_through is set, else an empty object.", "设置 pass_through 时为输入，否则为空对象。"), Fields: []node.Value{node.HandedOn()}}},
			Inputs: node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Hands its input on.", "原样传递输入。"),
					Config: `{"pass_through": true}`,
					Input:  `{"order": 7}`,
					Output: `{"result": {"order": 7}}`,
				},
			},
		},
		func(_ context.Context, _ *node.Call, cfg emptyConfig, in json.RawMessage) (json.RawMessage, error) {
			if cfg.PassThrough {
				return in, nil
			}
			return json.RawMessage(`{}`), nil
		},
		func(p *node.Planning, cfg *emptyConfig) {
			p.Drops = !cfg.PassThrough && !p.Dynamic("pass_through") && !p.Templated()
		})
	k.Hands = func(config json.RawMessage) bool {
		cfg, err := node.Configuration[emptyConfig](config)
		return err == nil && cfg.PassThrough
	}
	k.Needs = func(config json.RawMessage) *payload.Reads {
		if cfg, err := node.Configuration[emptyConfig](config); err != nil || cfg.PassThrough {
			return nil
		}
		return payload.ReadsNamed()
	}
	return k
}
