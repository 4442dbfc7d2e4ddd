package node

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/node/handed"
)

func (x *run) declare(names []string) { x.declared = names }

// publish lays the fields of what a tool has returned beside it, and notes which of them become names of the data. A [Stand]
// returns what was published when it was recorded.
func (x *run) publish(outputs Done) Done {
	field := x.node.kind.Publishes
	if field == "" || x.job.Stand != nil {
		return outputs
	}
	payload := bytes.TrimSpace(outputs[dataflow.DefaultKey])
	if len(payload) < 2 || payload[0] != '{' {
		return outputs
	}
	own := handed.Fields(payload)
	result, ok := own[field]
	if !ok || !result.IsObject() {
		x.declared = nil
		return outputs
	}
	fields := handed.Fields(json.RawMessage(result.Raw))
	names := x.node.syncs
	if len(names) == 0 {
		names = x.declared
	}
	if len(names) == 0 {
		names = keysOf(json.RawMessage(result.Raw))
	}
	out := bytes.Clone(payload[:len(payload)-1])
	x.declared = nil
	for _, name := range names {
		if own[name].Exists() {
			continue // a field about the call itself has that name
		}
		x.declared = append(x.declared, name)
		value, ok := fields[name]
		if !ok || slices.Index(x.declared, name) < len(x.declared)-1 {
			continue
		}
		out = append(out, ',')
		out = engine.AppendText(out, name)
		out = append(append(out, ':'), value.Raw...)
	}
	return withPayload(outputs, append(out, '}'))
}

// withPayload is outputs with another result.
func withPayload(outputs Done, payload json.RawMessage) Done {
	out := make(Done, len(outputs))
	for key, value := range outputs { // order does not matter: one entry per key
		out[key] = value
	}
	out[dataflow.DefaultKey] = payload
	return out
}

// keysOf are the names of an object's fields, in its order.
func keysOf(object json.RawMessage) []string {
	var keys []string
	gjson.ParseBytes(object).ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, key.Str)
		return true
	})
	return keys
}
