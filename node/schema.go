package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node/rundata"
	"tandem/node/slot"
	"tandem/payload"
)

// Override are schemas of a node template that replace those of the kind. Empty: none.
type Override struct {
	Input  json.RawMessage
	Output json.RawMessage
}

// override is an Override, ready to check.
type override struct {
	input, output *payload.Schema
	// declares are the outputs that the schema of the output names.
	declares []string
}

func (o Override) compile(template string) (*override, error) {
	ready := &override{}
	for _, part := range []struct {
		name   string
		schema json.RawMessage
		to     **payload.Schema
	}{{"override_input", o.Input, &ready.input}, {"override_output", o.Output, &ready.output}} {
		if len(part.schema) == 0 || string(part.schema) == "null" {
			continue
		}
		schema, err := payload.CompileSchema(part.schema)
		if err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "template %q: %s is not a usable JSON Schema: %w", template, part.name, err)
		}
		*part.to = schema
	}
	if ready.output != nil {
		var declared struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(o.Output, &declared); err == nil { // a schema may also be true or false
			ready.declares = slices.Sorted(maps.Keys(declared.Properties))
		}
	}
	return ready, nil
}

// checkSchema refuses a value that breaks a schema, if there is one. For an input that lacks something, the error names all that it lacks.
func checkSchema(s *payload.Schema, code fault.Code, what string, raw json.RawMessage) error {
	if s == nil {
		return nil
	}
	value, err := rundata.Decode(raw)
	if err != nil {
		return err
	}
	problems := s.Problems("", value)
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	var missing []string
	for _, one := range problems {
		missing = append(missing, one.Missing...)
	}
	if code == fault.InvalidInput && len(missing) > 0 {
		slices.Sort(missing)
		return slot.Missing(missing, "%s: %s", what, p.Message).With("path", p.Path)
	}
	return fault.Newf(code, "%s: %s: %s", what, cmp.Or(p.Path, "value"), p.Message).With("path", p.Path)
}

// warnUndeclared warns of outputs that the template declares and the run has not produced: nothing is written under their names.
func (x *run) warnUndeclared(output json.RawMessage) {
	have := gjson.ParseBytes(output)
	for _, name := range x.node.override.declares {
		if !have.Get(gjson.Escape(name)).Exists() {
			x.call.Warn(payload.JoinKey("override_output.properties", name), fmt.Sprintf("the template declares the output %q, and there is none, so that no such name is written", name))
		}
	}
}
