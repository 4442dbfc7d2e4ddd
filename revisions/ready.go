package revisions

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

// Ready is a revision that is ready to run, with what was found out about it. It is not changed, and is safe for concurrent use.
type Ready struct {
	*node.Revision
	// Source is the definition as its author wrote it: without what templates add.
	Source *workflow.Definition
	// Fold is what a fold has to know of the revision.
	Fold host.Revision

	kinds workflow.Kinds
	// fields are the fields of its input that a kind reads by name.
	fields func(kind string) []string
	// plain says that no node names a template.
	plain bool

	// The rest is found out when somebody asks.
	mu     sync.Mutex
	toUser map[string]bool
	use    *inputUse
	// schemas are those of triggers, ready to be used; nil for a trigger that has none.
	schemas map[string]*payload.Schema
}

func newReady(prepared *node.Revision, source *workflow.Definition, kinds workflow.Kinds,
	registry *node.Registry, fold host.Revision) *Ready {
	r := &Ready{Revision: prepared, Source: source, Fold: fold, kinds: kinds, plain: true}
	r.fields = func(kind string) (names []string) {
		if k, ok := registry.Get(kind); ok {
			for _, value := range k.About.Inputs {
				names = append(names, value.Name)
			}
		}
		return names
	}
	for i := range source.Nodes {
		r.plain = r.plain && !bytes.Contains(source.Nodes[i].Configurations, []byte("template_id"))
	}
	return r
}

// ToUser are the nodes whose output is for the user while it is made. The map is shared.
func (r *Ready) ToUser() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.toUser == nil {
		r.toUser = map[string]bool{}
		for i := range r.Source.Nodes {
			if gjson.GetBytes(r.Source.Nodes[i].Configurations, "to_user").Bool() {
				r.toUser[r.Source.Nodes[i].ID] = true
			}
		}
	}
	return r.toUser
}

// NodeConfig returns the configurations and the input parameters of a node as its author wrote them, each an object.
func (r *Ready) NodeConfig(id string) (config, params json.RawMessage) {
	config, params = json.RawMessage("{}"), json.RawMessage("{}")
	for i := range r.Source.Nodes {
		n := &r.Source.Nodes[i]
		if n.ID != id {
			continue
		}
		if gjson.ParseBytes(n.Configurations).IsObject() {
			config = n.Configurations
		}
		if gjson.ParseBytes(n.InputParams).IsObject() {
			params = n.InputParams
		}
		break
	}
	return config, params
}

// InputSchema is what a trigger wants the inputs of a start to be; nil for one that wants nothing, or that can only tell in the execution
// because it has parameters of its own.
func (r *Ready) InputSchema(trigger string) (*payload.Schema, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	schema, known := r.schemas[trigger]
	if known {
		return schema, nil
	}
	config, params := r.NodeConfig(trigger)
	if wanted := gjson.GetBytes(config, "input_schema"); wanted.IsObject() && len(gjson.ParseBytes(params).Map()) == 0 {
		var err error
		if schema, err = payload.CompileSchema(json.RawMessage(wanted.Raw)); err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "%q of the trigger %q is not a usable JSON Schema: %w", "input_schema", trigger, err)
		}
	}
	if r.schemas == nil {
		r.schemas = map[string]*payload.Schema{}
	}
	r.schemas[trigger] = schema
	return schema, nil
}

// UnusedInputs says in words which inputs of a start the workflow neither declares nor reads, as far as that is certain.
func (r *Ready) UnusedInputs(inputs json.RawMessage) []string {
	if string(inputs) == "{}" {
		return nil
	}
	r.mu.Lock()
	if r.use == nil {
		use := usesOf(r.Source, r.Definition, r.kinds, r.fields)
		r.use = &use
	}
	use := *r.use
	r.mu.Unlock()
	return use.warnings(inputs)
}
