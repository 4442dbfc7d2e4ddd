package builtin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schemaCheck is a JSON Schema (2020-12 unless it says otherwise), ready to check.
type schemaCheck struct {
	schema  *jsonschema.Schema
	printer *message.Printer
}

// noLoader refuses to fetch: a schema of a workflow cannot make us read files or call servers.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; put what it needs under $defs", url)
}

func newSchemaCheck(raw json.RawMessage) (*schemaCheck, error) {
	doc := decode(raw)
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
	return &schemaCheck{schema, message.NewPrinter(language.English)}, nil
}

// problems are all the ways in which a value breaks the schema, with paths below at.
func (s *schemaCheck) problems(at string, v any) []validationProblem {
	if text, wild := wildNumber(v); wild {
		return []validationProblem{{at, "number", fmt.Sprintf("the number %s is out of range", text)}}
	}
	err := s.schema.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []validationProblem{{at, "schema", err.Error()}}
	}
	var list []validationProblem
	s.collect(at, invalid, &list)
	// The validator walks over objects in any order; the same data must always give the same problems.
	slices.SortFunc(list, func(a, b validationProblem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return list
}

// collect gathers the leaves of an error: what is wrong itself, not what contains something wrong.
func (s *schemaCheck) collect(at string, e *jsonschema.ValidationError, list *[]validationProblem) {
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
	*list = append(*list, validationProblem{where, rule, e.ErrorKind.LocalizedString(s.printer)})
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
		for _, key := range sortedKeys(x) {
			if text, wild := wildNumber(x[key]); wild {
				return text, true
			}
		}
	}
	return "", false
}
