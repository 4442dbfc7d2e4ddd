// Package slot compares data with the schema of what is wanted: what is missing, what can be found in what an execution knows already,
// and what of an answer can be taken.
//
// It only compares; who is asked for what is missing is decided by package node and by kinds.
package slot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/payload"
)

// Output is what a filling leaves.
type Output struct {
	// SlotData is the data with what was found.
	SlotData json.RawMessage `json:"slot_data"`
	// FilledFields are the fields that were found, sorted.
	FilledFields []string `json:"filled_fields"`
	// RemainingSchema is the part of the schema that nothing was found for; nil, written as null: the data is complete.
	RemainingSchema json.RawMessage `json:"remaining_schema"`
}

// Schema is a JSON Schema of an object, to be compared with data that may lack some of it. It is not changed after it was
// made and may be shared.
type Schema struct {
	root   slotObject
	defs   map[string]json.RawMessage // what its parts may refer to
	fields map[string]*payload.Schema // the properties, ready to check
}

// slotObject is what is read of the schema of an object.
type slotObject struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// definitions are the keywords under which a schema keeps what it refers to. read-only
var definitions = []string{"$defs", "definitions"}

// Read reads a schema with others laid over it: their properties replace those of the same name, what they require is
// required, any other word of theirs wins. An empty one is nothing.
func Read(schemas ...json.RawMessage) (*Schema, json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, raw := range schemas {
		if len(raw) == 0 || string(raw) == "null" || string(raw) == "true" {
			continue
		}
		var over map[string]json.RawMessage
		if err := json.Unmarshal(raw, &over); err != nil {
			return nil, nil, fault.New(fault.InvalidConfig, "the schema of what is to be filled must be an object")
		}
		if err := layOver(merged, over); err != nil {
			return nil, nil, err
		}
	}
	whole, err := payload.Encode(merged)
	if err != nil {
		return nil, nil, err
	}
	s := &Schema{defs: map[string]json.RawMessage{}, fields: map[string]*payload.Schema{}}
	if err := json.Unmarshal(whole, &s.root); err != nil {
		return nil, nil, fault.New(fault.InvalidConfig, `the schema of what is to be filled cannot be read; "properties" is an object and "required" a list of names`)
	}
	for _, name := range definitions {
		if defs, ok := merged[name]; ok {
			s.defs[name] = defs
		}
	}
	if s.root.Properties == nil {
		s.root.Properties = map[string]json.RawMessage{}
	}
	for _, name := range s.root.Required {
		if _, ok := s.root.Properties[name]; !ok {
			s.root.Properties[name] = json.RawMessage("{}")
		}
	}
	for name, property := range s.root.Properties { // order does not matter: one entry per name
		if s.fields[name], err = s.compile(property); err != nil {
			return nil, nil, fault.Newf(fault.InvalidConfig, "the schema of %q is not a usable JSON Schema: %w", name, err)
		}
	}
	return s, whole, nil
}

func layOver(base, over map[string]json.RawMessage) error {
	for word, value := range over { // order does not matter: each word by itself
		old, had := base[word]
		switch {
		case had && (word == "properties" || slices.Contains(definitions, word)):
			fields, more := map[string]json.RawMessage{}, map[string]json.RawMessage{}
			if json.Unmarshal(old, &fields) != nil || json.Unmarshal(value, &more) != nil {
				return fault.Newf(fault.InvalidConfig, "the schema of what is to be filled: %q must be an object", word)
			}
			maps.Copy(fields, more)
			raw, err := payload.Encode(fields)
			if err != nil {
				return err
			}
			base[word] = raw
		case had && word == "required":
			var names, more []string
			if json.Unmarshal(old, &names) != nil || json.Unmarshal(value, &more) != nil {
				return fault.New(fault.InvalidConfig, `the schema of what is to be filled: "required" must be a list of names`)
			}
			for _, name := range more {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			raw, err := payload.Encode(names)
			if err != nil {
				return err
			}
			base[word] = raw
		default:
			base[word] = value
		}
	}
	return nil
}

// compile makes a part of the schema ready, with what it may refer to.
func (s *Schema) compile(part json.RawMessage) (*payload.Schema, error) {
	if len(s.defs) > 0 && bytes.Contains(part, []byte(`"$ref"`)) {
		var words map[string]json.RawMessage
		if json.Unmarshal(part, &words) == nil { // true and false refer to nothing
			for name, defs := range s.defs { // order does not matter: one entry per name
				if _, own := words[name]; !own {
					words[name] = defs
				}
			}
			var err error
			if part, err = payload.Encode(words); err != nil {
				return nil, err
			}
		}
	}
	return payload.CompileSchema(part)
}

// fitsSchema says that a value is one of a part's.
func fitsSchema(s *payload.Schema, value json.RawMessage) bool {
	decoded, err := decodeValue(value)
	return err == nil && len(s.Problems("", decoded)) == 0
}

// absent says that data lacks a field: it is not there, or null where null is not a value.
func (s *Schema) absent(name string, data map[string]json.RawMessage) bool {
	value, ok := data[name]
	if !ok {
		return true
	}
	field := s.fields[name]
	return payload.IsNull(value) && (field == nil || !fitsSchema(field, value))
}

// decodeValue decodes a value to be checked against a schema.
func decodeValue(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := payload.Decode(raw)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "a value cannot be read: %w", err)
	}
	return v, nil
}

// IsEmpty says that there is nothing to fill.
func (s *Schema) IsEmpty() bool { return len(s.root.Properties) == 0 }

// Remaining is the part of the schema that data lacks and must have: a schema of what is missing, nil when nothing is. Of an
// object that is there and not complete it has what that lacks.
func (s *Schema) Remaining(data json.RawMessage) (json.RawMessage, error) {
	fields, err := ReadObject(data)
	if err != nil {
		return nil, err
	}
	rest, err := s.lacking(s.root, fields, s.absent)
	if err != nil || rest == nil {
		return nil, err
	}
	maps.Copy(rest, asRaw(s.defs))
	return payload.Encode(rest)
}

// maxSlotDepth bounds how deep objects are looked into.
const maxSlotDepth = 20

func (s *Schema) lacking(o slotObject, data map[string]json.RawMessage,
	absent func(string, map[string]json.RawMessage) bool) (map[string]any, error) {
	return s.lackingAt(o, data, absent, 0)
}

func (s *Schema) lackingAt(o slotObject, data map[string]json.RawMessage, absent func(string, map[string]json.RawMessage) bool,
	depth int) (map[string]any, error) {
	properties, required := map[string]json.RawMessage{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
		part := o.Properties[name]
		if absent(name, data) {
			if slices.Contains(o.Required, name) {
				properties[name], required = part, append(required, name)
			}
			continue
		}
		inner, ok := objectPart(part)
		value, err := ReadObject(data[name])
		if !ok || err != nil || depth >= maxSlotDepth {
			continue
		}
		rest, err := s.lackingAt(inner, value, plainlyAbsent, depth+1)
		if err != nil {
			return nil, err
		}
		if rest == nil {
			continue
		}
		raw, err := payload.Encode(rest)
		if err != nil {
			return nil, err
		}
		properties[name], required = raw, append(required, name)
	}
	if len(required) == 0 {
		return nil, nil
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}, nil
}

// plainlyAbsent is how a field within a field is missing.
func plainlyAbsent(name string, data map[string]json.RawMessage) bool {
	value, ok := data[name]
	return !ok || payload.IsNull(value)
}

// objectPart reads a property that is an object with fields of its own.
func objectPart(part json.RawMessage) (o slotObject, ok bool) {
	if json.Unmarshal(part, &o) != nil || len(o.Properties) == 0 {
		return o, false
	}
	return o, true
}

func asRaw(m map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(m))
	for name, raw := range m { // order does not matter: one entry per name
		out[name] = raw
	}
	return out
}

// ReadObject reads the fields of an object; what is missing or null has none.
func ReadObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if payload.IsNull(raw) {
		return fields, nil
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fault.New(fault.InvalidInput, "the data that is to be filled must be an object")
	}
	return fields, nil
}

// Found looks the fields that data lacks up by name in the layers, those that it need not have included: what is set over what
// the execution was started with, then what nodes have made. A value that a field does not take is passed over.
func (s *Schema) Found(data json.RawMessage, c dataflow.Context) (json.RawMessage, error) {
	fields, err := ReadObject(data)
	if err != nil {
		return nil, err
	}
	found := map[string]json.RawMessage{}
	var results []dataflow.StepResult
	for _, name := range slices.Sorted(maps.Keys(s.root.Properties)) {
		if !s.absent(name, fields) {
			continue
		}
		if results == nil {
			results = newestFirst(c)
		}
		for _, value := range named(name, c, results) {
			if !payload.IsNull(value) && fitsSchema(s.fields[name], value) {
				found[name] = value
				break
			}
		}
	}
	return payload.Encode(found)
}

func newestFirst(c dataflow.Context) []dataflow.StepResult {
	list := slices.SortedFunc(maps.Values(c.StepResults), func(a, b dataflow.StepResult) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
	return slices.DeleteFunc(list, func(r dataflow.StepResult) bool { return !r.IsSuccess })
}

// named lists the values of a name, the nearest first.
func named(name string, c dataflow.Context, results []dataflow.StepResult) []json.RawMessage {
	list := []json.RawMessage{c.Variables[name], c.RuntimeMetadata[name], c.InitialMetadata[name]}
	for _, r := range results {
		if r.StepID == name || r.StepName == name {
			list = append(list, r.Output)
		}
	}
	for _, r := range results {
		var fields map[string]json.RawMessage
		if len(r.Output) > 0 && r.Output[0] == '{' && json.Unmarshal(r.Output, &fields) == nil { // other outputs have no fields
			list = append(list, fields[name])
		}
	}
	return list
}

// Taken is what became of an answer.
type Taken struct {
	// Data is the data with what was taken, Fields the names of that, sorted.
	Data   json.RawMessage
	Fields []string
	// Problems say which values were not taken, and why; Unsaid are the fields that the answer does not mention.
	Problems []string
	Unsaid   []string
}

// Take takes from an answer what data lacks and what fits. Values that data has never change. Null means that the answer does
// not know.
func (s *Schema) Take(data, answer json.RawMessage) (Taken, error) {
	fields, err := ReadObject(data)
	if err != nil {
		return Taken{}, err
	}
	offered, err := ReadObject(answer)
	if err != nil {
		return Taken{}, err
	}
	rest, err := s.lacking(s.root, fields, s.absent)
	if err != nil {
		return Taken{}, err
	}
	wanted := map[string]json.RawMessage{}
	if rest != nil {
		wanted = rest["properties"].(map[string]json.RawMessage)
	}
	taken := Taken{Fields: []string{}}
	for _, name := range slices.Sorted(maps.Keys(s.root.Properties)) {
		part, missing := wanted[name]
		value, said := offered[name]
		switch {
		case !missing && !s.absent(name, fields): // it is there
			continue
		case !said:
			if missing {
				taken.Unsaid = append(taken.Unsaid, name)
			}
			continue
		case payload.IsNull(value):
			continue
		}
		check := s.fields[name]
		if missing {
			if check, err = s.compile(part); err != nil {
				return Taken{}, fault.Newf(fault.InvalidConfig, "the schema of %q is not a usable JSON Schema: %w", name, err)
			}
		}
		decoded, err := decodeValue(value)
		if err != nil {
			return Taken{}, err
		}
		if problems := check.Problems(name, decoded); len(problems) > 0 {
			for _, p := range problems {
				taken.Problems = append(taken.Problems, p.String())
			}
			continue
		}
		if fields[name], err = Within(fields[name], value, 0); err != nil {
			return Taken{}, err
		}
		taken.Fields = append(taken.Fields, name)
	}
	taken.Data, err = payload.Encode(fields)
	return taken, err
}

// Within lays a value under what is there: an object gets the fields that it lacks.
func Within(have, value json.RawMessage, depth int) (json.RawMessage, error) {
	if payload.IsNull(have) {
		return value, nil
	}
	fields, err := ReadObject(have)
	more, err2 := ReadObject(value)
	if err != nil || err2 != nil || depth >= maxSlotDepth {
		return have, nil // what is there stays
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if fields[name], err = Within(fields[name], more[name], depth+1); err != nil {
			return nil, err
		}
	}
	return payload.Encode(fields)
}

// Params are the fields of a remaining schema as a form begins: null where nothing is known.
func Params(remaining json.RawMessage) (json.RawMessage, []string, error) {
	var o slotObject
	if err := json.Unmarshal(remaining, &o); err != nil {
		return nil, nil, fault.Newf(fault.Internal, "what remains to be filled cannot be read: %w", err)
	}
	params := map[string]any{}
	for name := range o.Properties { // order does not matter: one entry per name
		params[name] = nil
	}
	raw, err := payload.Encode(params)
	return raw, slices.Sorted(maps.Keys(params)), err
}

// missingError says which fields nobody has told.
func missingError(remaining json.RawMessage) error {
	_, names, err := Params(remaining)
	if err != nil {
		return err
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return Missing(names, "the input lacks %s; connect what brings it, set it in input_params, or answer when it is asked for", strings.Join(quoted, ", "))
}

// Missing is the error of an input that lacks fields.
func Missing(fields []string, format string, args ...any) *fault.Error {
	return fault.Newf(fault.ParameterMissing, format, args...).With("missing_fields", fields)
}

// MissingError says that data is not complete, and what it lacks.
func (s *Schema) MissingError(data json.RawMessage) error {
	remaining, err := s.Remaining(data)
	if err != nil || remaining == nil {
		return err
	}
	return missingError(remaining)
}
