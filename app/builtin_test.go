package app

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tandem/agent"
	"tandem/builtin"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
)

// property is what a schema says about one configuration field.
type property struct {
	Enum       []string            `json:"enum"`
	Minimum    *float64            `json:"minimum"`
	Maximum    *float64            `json:"maximum"`
	Default    json.RawMessage     `json:"default"`
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

// UnmarshalJSON reads a schema; one that takes anything is written as true.
func (p *property) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain property
	return json.Unmarshal(data, (*plain)(p))
}

// shapeOfKind is what the catalogue says about a kind's own configuration.
func shapeOfKind(t *testing.T, name string) *shape {
	t.Helper()
	typ, subtype, _ := strings.Cut(name, ".")
	for family, kinds := range map[string][]kind{"TRIGGER": triggerKinds(), "AI_AGENT": agentKinds(), "ACTION": actionKinds(), "FLOW": flowKinds(), "CALL": callKinds(), "TOOL": toolKinds(), "MEMORY": memoryKinds(), "HUMAN_IN_THE_LOOP": humanKinds()} {
		for _, k := range kinds {
			if family != typ || k.subtype != subtype {
				continue
			}
			return parseShape(map[string]string{"TRIGGER": triggerCommon, "TOOL": toolCommon, "MEMORY": memoryCommon, "HUMAN_IN_THE_LOOP": humanCommon}[typ], k.config)
		}
	}
	t.Fatalf("the catalogue has no %s", name)
	return nil
}

// TestBuiltin_AgreesWithTheCatalogue compares the two descriptions of a configuration: what validation lets pass, and
// what the kind reads when it runs.
func TestBuiltin_AgreesWithTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, k := range builtin.Kinds(builtin.Options{Memories: memory.New(memory.Options{}), Models: &builtin.Models{}, Tools: &mcp.Pool{}, Agents: agents{}}) {
		t.Run(k.About.Name, func(t *testing.T) {
			t.Parallel()
			var schema property
			if err := json.Unmarshal(k.ConfigSchema.JSON(), &schema); err != nil {
				t.Fatal(err)
			}
			if k.About.Name == agent.TaskKind {
				t.Skip("agents are made of it, and no workflow that a person writes")
			}
			own := shapeOfKind(t, k.About.Name)
			compareShapes(t, "", own, schema)
			for old := range own.older {
				if _, err := readsName(t, k, old); err != nil {
					t.Errorf("%q is accepted by the catalogue and refused by the kind: %v", old, err)
				}
			}
		})
	}
}

func compareShapes(t *testing.T, at string, s *shape, schema property) {
	t.Helper()
	for name := range schema.Properties {
		if _, ok := s.field(name); !ok {
			t.Errorf("%s%s is read by the kind and not in the catalogue", at, name)
		}
	}
	for _, f := range s.fields {
		if f.name == "on_unknown" {
			continue // the runtime's, with a default of its own here
		}
		p, ok := schema.Properties[f.name]
		if !ok {
			t.Errorf("%s%s is in the catalogue and not read by the kind", at, f.name)
			continue
		}
		allowed := p.Enum
		if p.Items != nil && len(p.Items.Enum) > 0 { // what the items of a list may be
			allowed = p.Items.Enum
		}
		if want := append(slices.Clone(f.enum), f.older...); !slices.Equal(allowed, want) {
			t.Errorf("%s%s is one of %v in the kind and of %v in the catalogue", at, f.name, allowed, want)
		}
		if !sameBound(p.Minimum, f.lo) || !sameBound(p.Maximum, f.hi) {
			t.Errorf("%s%s has other bounds in the kind than in the catalogue", at, f.name)
		}
		if f.hasDef && !sameDefault(p.Default, f.def) {
			t.Errorf("%s%s is %s by default in the kind and %q in the catalogue", at, f.name, p.Default, f.def)
		}
		inner := p
		if p.Items != nil {
			inner = *p.Items
		}
		if f.inner != nil && inner.Properties != nil {
			compareShapes(t, at+f.name+".", f.inner, inner)
		}
	}
}

func sameBound(a, b *float64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// sameDefault compares a default with the catalogue's text; a kind's zero value is not in its schema.
func sameDefault(raw json.RawMessage, def string) bool {
	if raw == nil {
		return def == "0" || def == "false" || def == "[]" || def == ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text == def
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return "["+strings.Join(list, ",")+"]" == def
	}
	a, err := strconv.ParseFloat(string(raw), 64)
	b, both := strconv.ParseFloat(def, 64)
	if err == nil && both == nil {
		return a == b
	}
	return string(raw) == def
}

// readsName asks whether a kind knows a name: null is absent, so only an unknown name is refused for it.
func readsName(t *testing.T, k node.Kind, name string) (bool, error) {
	call := &node.Call{
		Config: json.RawMessage(`{` + strconv.Quote(name) + `: null}`), Input: json.RawMessage(`{"data": []}`),
		Connected: func(string) bool { return true },
		Eval:      func(string, map[string]any) (any, error) { return true, nil },
	}
	var err error
	switch {
	case k.Run != nil:
		_, err = k.Run(t.Context(), call)
	case k.Steps != nil:
		_, err = k.Steps.Open(t.Context(), call)
	default:
		_, err = k.Scope.Open(t.Context(), call)
	}
	if err != nil && strings.Contains(err.Error(), strconv.Quote(name)) {
		return false, err
	}
	return true, nil
}
