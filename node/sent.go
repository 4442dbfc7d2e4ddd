package node

import (
	"context"
	"encoding/json"
	"strings"

	"tandem/payload"
)

// Sent returns what a run sends, without running anything: what its kind says, else its configurations and its input, all with
// placeholders resolved. It opens no credential. It is for people who are asked whether it was done; the caller removes fields whose
// names say that they are secret.
func (r *Revision) Sent(job Job) (json.RawMessage, error) {
	x := &run{revision: r, job: job, owner: job.Run.Node, node: &r.nodes[job.Run.Node], ctx: context.Background(), all: true}
	if err := x.prepare(); err != nil {
		return nil, err
	}
	if sent := x.node.kind.Sent; sent != nil {
		told, err := sent(&x.call)
		if err != nil {
			return nil, err
		}
		return payload.Encode(told)
	}
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal(objectOr(x.call.Config), &config); err != nil {
		return nil, err
	}
	for name, value := range config { // order does not matter: one entry per name
		var text string
		if json.Unmarshal(value, &text) != nil || x.node.bound[text] == nil {
			continue
		}
		bound, err := x.bind(text)
		if err != nil {
			return nil, err
		}
		if config[name], err = payload.Encode(boundText{strings.Join(bound.Text, "?"), bound.Values}); err != nil {
			return nil, err
		}
	}
	return payload.Encode(struct {
		Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
		Input          json.RawMessage            `json:"input,omitempty"`
	}{config, x.call.Input})
}

// boundText is a text whose values are kept beside it, such as a statement of SQL.
type boundText struct {
	Text   string            `json:"text"`
	Values []json.RawMessage `json:"values,omitempty"`
}
