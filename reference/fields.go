package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tandem/api"
)

// Field is one configuration of a kind, as a person reads it.
type Field struct {
	// Name is the path: "filter_conditions[].field".
	Name     string
	Type     string
	Required bool
	Default  string
	// Allowed are the values or the range that it may have.
	Allowed string
	Meaning api.Text
	// OlderNames and OlderValues are accepted and not offered.
	OlderNames, OlderValues []string
	// With are the values of other fields beside which it is looked at.
	With map[string][]string
}

// schema is what is read of a JSON Schema here.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	Default    json.RawMessage    `json:"default"`
	En         string             `json:"description"`
	Zh         string             `json:"x-description-zh"`

	OlderNames  []string            `json:"x-older-names"`
	OlderValues []string            `json:"x-older-values"`
	With        map[string][]string `json:"x-with"`
	Need        [][]string          `json:"x-need"`
}

// UnmarshalJSON reads a schema; one that is only true takes anything.
func (s *schema) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" || string(raw) == "false" {
		return nil
	}
	type plain schema
	return json.Unmarshal(raw, (*plain)(s))
}

// Fields reads the configurations of a kind from their schema: what is required first, then by name.
func Fields(config json.RawMessage) ([]Field, error) {
	var s schema
	if err := json.Unmarshal(config, &s); err != nil {
		return nil, fmt.Errorf("read the schema of the configurations: %w", err)
	}
	return s.fields(""), nil
}

// Needs are groups of configurations of which a kind needs one each.
func Needs(config json.RawMessage) ([][]string, error) {
	var s schema
	if err := json.Unmarshal(config, &s); err != nil {
		return nil, fmt.Errorf("read the schema of the configurations: %w", err)
	}
	return s.Need, nil
}

func (s *schema) fields(prefix string) []Field {
	var list []Field
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		ra, rb := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := s.Properties[name]
		f := Field{Name: prefix + name, Type: p.typeName(), Required: slices.Contains(s.Required, name), Default: string(p.Default),
			Allowed: p.allowed(), Meaning: api.Text{En: p.En, Zh: p.Zh},
			OlderNames: p.OlderNames, OlderValues: p.OlderValues, With: p.With}
		list = append(list, f)
		inner, path := p, f.Name
		for inner.Items != nil {
			inner, path = inner.Items, path+"[]"
		}
		list = append(list, inner.fields(path+".")...)
	}
	return list
}

func (s *schema) typeName() string {
	switch t := s.Type.(type) {
	case string:
		if t == "array" && s.Items != nil {
			return "list of " + s.Items.typeName()
		}
		return t
	case []any:
		var names []string
		list := false
		for _, one := range t {
			if text, ok := one.(string); ok && text != "null" {
				names = append(names, text)
				list = list || text == "array"
			}
		}
		if len(names) == 1 && list && s.Items != nil {
			return "list of " + s.Items.typeName()
		}
		return strings.Join(names, " or ")
	}
	return "any"
}

func (s *schema) allowed() string {
	if s.Items != nil && len(s.Items.Enum) > 0 {
		inner := *s.Items
		inner.OlderValues = s.OlderValues
		return inner.allowed()
	}
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			if text := fmt.Sprint(v); !slices.Contains(s.OlderValues, text) {
				values = append(values, text)
			}
		}
		return strings.Join(values, ", ")
	case s.Minimum != nil && s.Maximum != nil:
		return digits(*s.Minimum) + " to " + digits(*s.Maximum)
	case s.Minimum != nil:
		return "at least " + digits(*s.Minimum)
	case s.Maximum != nil:
		return "at most " + digits(*s.Maximum)
	}
	return ""
}

// digits is a number without an exponent.
func digits(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// SameFields is the first key before another one that has the same fields; empty: there is none.
func SameFields(keys []api.NodeKey, i int) string {
	for _, before := range keys[:i] {
		if len(keys[i].Fields) > 0 && slices.Equal(before.Fields, keys[i].Fields) {
			return before.Name
		}
	}
	return ""
}
