package node

import (
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/payload"
	"tandem/workflow"
)

// checkOutputs warns of names in output_params that the output of the node never has: none of them becomes a name of the execution's data.
// It checks only kinds that describe all fields of all their outputs.
func (p *Planning) checkOutputs(about *About, published bool) {
	names, err := dataflow.ParamNames(p.node.OutputParams)
	if err != nil || len(names) == 0 || published || p.Templated() {
		return
	}
	fields := about.outputs()
	if p.OnError == workflow.OnErrorDefault || len(fields) == 0 {
		return
	}
	for _, name := range names {
		if !slices.Contains(fields, name) && !p.Full() {
			p.Warn(workflow.ProblemConfig, payload.JoinKey("output_params", name), "%s has no field %q in its output, so that no such name is written%s", p.node.Kind(), name, p.Suggest(name, fields))
		}
	}
}

// OutputFields are the names that fields of the output can have, for a kind that describes all fields of all its outputs; nil: there
// may be others.
func (k Kind) OutputFields() []string {
	if k.Publishes != "" {
		return nil
	}
	return k.About.outputs()
}

// outputs are the names of all fields of all outputs; nil: the kind does not describe all of them.
func (a *About) outputs() []string {
	fields := []string{}
	for _, key := range a.Keys {
		if len(key.Fields) == 0 || key.Name == AnyKey {
			return nil
		}
		fields = append(fields, key.Name) // for a node that produces several keys, they are the fields of its output
		for _, f := range key.Fields {
			name := f.Name
			if i := strings.IndexAny(name, ".["); i >= 0 {
				name = name[:i]
			}
			if name == AnyKey || name == "" {
				return nil
			}
			fields = append(fields, name)
		}
	}
	return fields
}
