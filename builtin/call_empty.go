package builtin

import (
	"context"
	"encoding/json"

	"tandem/node"
)

type emptyConfig struct {
	PassThrough bool `json:"pass_through"`
}

// callEmpty does nothing: a place for connections to meet or to end.
func callEmpty() node.Kind {
	return node.Define(
		info("CALL.EMPTY", "Empty", "空操作", "Does nothing; hands its input on if asked to.", "不执行任何操作；可按需原样传递输入。"),
		func(_ context.Context, _ *node.Call, cfg emptyConfig, in json.RawMessage) (json.RawMessage, error) {
			if cfg.PassThrough {
				return in, nil
			}
			return json.RawMessage(`{}`), nil
		})
}
