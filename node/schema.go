package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"tandem/fault"
)

// Schema is a JSON Schema (2020-12 unless it says otherwise), ready to check.
type Schema struct {
	schema  *jsonschema.Schema
	printer *message.Printer
}

// noLoader refuses to fetch: a schema of a workflow cannot make us read files or call servers.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; put what it needs under $defs", url)
}

// SchemaProblem is one way in which a value breaks a schema.
type SchemaProblem struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// missing are the fields that are required and not there.
	missing []string
	// kind is the validator's, wild a number that it is not asked about.
	kind jsonschema.ErrorKind
	wild string
}

func (p SchemaProblem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// CompileSchema reads a schema. It refers to nothing outside of itself.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if text, wild := wildNumber(doc); wild {
		return nil, fmt.Errorf("the number %s is out of range", text)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const name = "urn:tandem:schema"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), name, "schema"))
	}
	return &Schema{schema, message.NewPrinter(language.English)}, nil
}

// Problems are all the ways in which a decoded value breaks the schema, with paths below at.
func (s *Schema) Problems(at string, v any) []SchemaProblem {
	if text, wild := wildNumber(v); wild {
		return []SchemaProblem{{Path: at, Rule: "number", Message: fmt.Sprintf("the number %s is out of range", text), wild: text}}
	}
	err := s.schema.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []SchemaProblem{{Path: at, Rule: "schema", Message: err.Error()}}
	}
	var list []SchemaProblem
	s.collect(at, invalid, &list)
	// The validator walks over objects in any order; the same data must always give the same problems.
	slices.SortFunc(list, func(a, b SchemaProblem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return list
}

// collect gathers the leaves of an error: what is wrong itself, not what contains something wrong.
func (s *Schema) collect(at string, e *jsonschema.ValidationError, list *[]SchemaProblem) {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			s.collect(at, cause, list)
		}
		return
	}
	where := at
	for _, step := range e.InstanceLocation {
		if _, err := strconv.Atoi(step); err == nil {
			where += "[" + step + "]"
		} else if where == "" {
			where = step
		} else {
			where += "." + step
		}
	}
	rule := "schema"
	if keywords := e.ErrorKind.KeywordPath(); len(keywords) > 0 {
		rule = keywords[0]
	}
	problem := SchemaProblem{Path: where, Rule: rule, Message: e.ErrorKind.LocalizedString(s.printer), kind: e.ErrorKind}
	if required, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range required.Missing {
			problem.missing = append(problem.missing, strings.TrimPrefix(where+"."+name, "."))
		}
	}
	*list = append(*list, problem)
}

// wildNumber finds a number with an exponent so large that comparing it exactly would take more memory than there is.
func wildNumber(v any) (string, bool) {
	switch x := v.(type) {
	case json.Number:
		if i := strings.IndexAny(string(x), "eE"); i >= 0 {
			exponent, err := strconv.Atoi(string(x[i+1:]))
			if err != nil || exponent > 400 || exponent < -400 {
				return string(x), true
			}
		}
	case []any:
		for _, item := range x {
			if text, wild := wildNumber(item); wild {
				return text, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if text, wild := wildNumber(x[key]); wild {
				return text, true
			}
		}
	}
	return "", false
}

// Override are schemas that a node template lays over those of its kind. Empty: none.
type Override struct {
	Input  json.RawMessage
	Output json.RawMessage
}

// override is an Override, ready to check.
type override struct {
	input, output *Schema
	// declares are the outputs that the schema of the output names.
	declares []string
}

func (o Override) compile(template string) (*override, error) {
	ready := &override{}
	for _, part := range []struct {
		name   string
		schema json.RawMessage
		to     **Schema
	}{{"override_input", o.Input, &ready.input}, {"override_output", o.Output, &ready.output}} {
		if len(part.schema) == 0 || string(part.schema) == "null" {
			continue
		}
		schema, err := CompileSchema(part.schema)
		if err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "template %q: %s is no usable JSON Schema: %w", template, part.name, err)
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

// check refuses a value that breaks a schema. An input that lacks something is told apart, with all that it lacks.
func (s *Schema) check(code fault.Code, what string, raw json.RawMessage) error {
	if s == nil {
		return nil
	}
	value, err := decode(raw)
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
		missing = append(missing, one.missing...)
	}
	if code == fault.InvalidInput && len(missing) > 0 {
		slices.Sort(missing)
		return Missing(missing, "%s: %s", what, p.Message).With("path", p.Path)
	}
	return fault.Newf(code, "%s: %s: %s", what, cmp.Or(p.Path, "value"), p.Message).With("path", p.Path)
}
