package payload

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
)

// MaxExponent is the largest exponent of a number that is held against a schema: comparing larger ones exactly takes more memory than
// there is.
const MaxExponent = 400

// Schema is a JSON Schema (2020-12 unless it says otherwise), ready to check.
type Schema struct {
	schema  *jsonschema.Schema
	printer *message.Printer
}

// noLoader refuses to fetch: a schema cannot make us read files or call servers.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; put what it needs under $defs", url)
}

// SchemaProblem is one way in which a value breaks a schema.
type SchemaProblem struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// Missing are the paths of the fields that are required and not there.
	Missing []string `json:"-"`
	// Kind is what the validator found; nil if it was not asked.
	Kind jsonschema.ErrorKind `json:"-"`
	// Wild is a number that is out of range; the validator is not asked about it.
	Wild string `json:"-"`
}

// String is where and what, for people.
func (p SchemaProblem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// schemaName stands for a schema while it is compiled, and for no file or server.
const schemaName = "urn:tandem:schema"

// CompileSchema reads a schema. It refers to nothing outside of itself.
func CompileSchema(raw []byte) (*Schema, error) {
	doc, err := Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	if text, wild := wildNumber(doc); wild {
		return nil, fmt.Errorf("the number %s is out of range", text)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaName, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(schemaName)
	if err != nil {
		return nil, &SchemaError{err}
	}
	return &Schema{schema, message.NewPrinter(language.English)}, nil
}

// SchemaError is why a schema cannot be used.
type SchemaError struct{ cause error }

// Error names the place in the schema and what is wrong there, where the validator knows both.
func (e *SchemaError) Error() string {
	if refused, ok := errors.AsType[*jsonschema.SchemaValidationError](e.cause); ok {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](refused.Err); ok {
			first := (&Schema{printer: message.NewPrinter(language.English)}).leaves("", invalid)[0]
			return cmp.Or(first.Path, "the schema") + ": " + first.Message
		}
	}
	return strings.ReplaceAll(e.cause.Error(), schemaName, "schema")
}

// Unwrap is the validator's error.
func (e *SchemaError) Unwrap() error { return e.cause }

// Problems are all the ways in which a decoded value breaks the schema, with paths below at.
func (s *Schema) Problems(at string, v any) []SchemaProblem {
	if text, wild := wildNumber(v); wild {
		return []SchemaProblem{{Path: at, Rule: "number", Message: fmt.Sprintf("the number %s is out of range", text), Wild: text}}
	}
	err := s.schema.Validate(v)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []SchemaProblem{{Path: at, Rule: "schema", Message: err.Error()}}
	}
	return s.leaves(at, invalid)
}

// leaves are the problems of an error in an order of their own.
func (s *Schema) leaves(at string, invalid *jsonschema.ValidationError) []SchemaProblem {
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
		} else {
			where = strings.TrimPrefix(where+"."+step, ".")
		}
	}
	rule := "schema"
	if keywords := e.ErrorKind.KeywordPath(); len(keywords) > 0 {
		rule = keywords[0]
	}
	problem := SchemaProblem{Path: where, Rule: rule, Message: e.ErrorKind.LocalizedString(s.printer), Kind: e.ErrorKind}
	if required, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range required.Missing {
			problem.Missing = append(problem.Missing, strings.TrimPrefix(where+"."+name, "."))
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
			if err != nil || exponent > MaxExponent || exponent < -MaxExponent {
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
