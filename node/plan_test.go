package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

type plannedInner struct {
	Name  string `json:"name" required:"true"`
	Count int    `json:"count" range:"1..9"`
}

type plannedBase struct {
	_    struct{} `dropped:"gone,lost"`
	Base string   `json:"base"`
}

type plannedConfig struct {
	plannedBase
	_ struct{} `need:"text|sql" must:"base"`

	Text   string                  `json:"text" older:"words" enum:"one|two" legacy:"three"`
	SQL    node.SQL                `json:"sql"`
	Source node.Source             `json:"source"`
	When   node.Expr               `json:"when"`
	Title  node.Template           `json:"title"`
	Fixed  bool                    `json:"fixed" fixed:"true"`
	Mixed  json.RawMessage         `json:"mixed" takes:"text|list"`
	Step   float64                 `json:"step" whole:"true"`
	Names  []string                `json:"names"`
	List   []plannedInner          `json:"list"`
	Kept   node.Of[plannedInner]   `json:"kept" open:"true"`
	Some   []node.Of[plannedInner] `json:"some" takes:"list|any"`
}

func plannedKinds(t *testing.T, effect workflow.Effect, plan func(p *node.Planning, cfg *plannedConfig)) *node.Registry {
	t.Helper()
	text := text.Beside("text", "文本")
	about := node.About{Name: "TEST.PLANNED", Title: text, Description: text, Effect: effect, Older: []string{"PLANNED"}, Needs: node.Needs{Credential: []string{"sql"}}}
	run := func(context.Context, *node.Call, plannedConfig, json.RawMessage) (node.Outcome, error) {
		return node.Done{}, nil
	}
	var r node.Registry
	r.Register(node.Raw(about, run, plan))
	return &r
}

func problemsOf(t *testing.T, r *node.Registry, kind, config string) (workflow.Plan, []string) {
	t.Helper()
	k, ok := r.Kind(kind)
	if !ok {
		t.Fatalf("there is no kind %s", kind)
	}
	typ, subtype, _ := strings.Cut(kind, ".")
	plan, problems := k.Plan(&workflow.Node{ID: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config)})
	var told []string
	for _, p := range problems {
		told = append(told, fmt.Sprintf("%s %s %s: %s", p.Severity, p.Code, strings.TrimPrefix(p.Path, "configurations."), p.Message))
	}
	return plan, told
}

// What the tags of a configuration say is checked before anything runs.
func TestPlan_Tags(t *testing.T) {
	t.Parallel()
	r := plannedKinds(t, workflow.Pure, func(*node.Planning, *plannedConfig) {})
	const base = `"base": "b", "text": "one", "credential_id": "c"`
	for name, c := range map[string]struct{ config, want string }{
		"Fine":             {base, ""},
		"Must":             {`"text": "one", "credential_id": "c"`, `error invalid_config base: "base" is required; set it to a text`},
		"Need":             {`"base": "b", "credential_id": "c"`, `error invalid_config configurations: one of "text", "sql" is required`},
		"Dropped":          {base + `, "lost": 1`, `warning dropped_configuration lost: "lost" is no longer used and is ignored; remove it`},
		"Unknown":          {base + `, "titel": "t"`, `error unknown_configuration titel: TEST.PLANNED has no configuration "titel"; did you mean "title"?`},
		"Enum":             {`"base": "b", "words": "four", "credential_id": "c"`, `error invalid_config words: "words" must be one of "one", "two", not "four"`},
		"Legacy":           {`"base": "b", "text": "THREE", "credential_id": "c"`, ""},
		"Twice":            {base + `, "words": "two"`, `error invalid_config words: "words" sets the same as "text"; keep one of them`},
		"Fixed":            {base + `, "fixed": "{{x}}"`, `error invalid_config fixed: "fixed" is read when the workflow is saved, so it cannot be a placeholder; write true or false`},
		"Placeholder":      {base + `, "step": "{{x}}", "list": "{{y}}", "mixed": "${z}"`, ""},
		"Takes":            {base + `, "mixed": {}`, `error invalid_config mixed: "mixed" must be a text or a list, not an object`},
		"Whole":            {base + `, "step": 0.5`, `error invalid_config step: "step" must be a whole number, not 0.5`},
		"Items":            {base + `, "names": ["a", 5, "{{x}}"]`, `error invalid_config names[1]: "names[1]" must be a text, not 5`},
		"Inner":            {base + `, "list": [{"name": "a"}, {"count": 12}]`, `error invalid_config list[1].count: "list[1].count" must be a whole number from 1 to 9, not 12 | error invalid_config list[1].name: "list[1].name" is required; set it to a text`},
		"Open":             {base + `, "kept": {"name": "a", "nome": 1}`, `warning dropped_configuration kept.nome: "nome" is not known here and is ignored; remove it; did you mean "name"?`},
		"Mixed":            {base + `, "some": ["a", {"name": "b"}]`, ""},
		"Secret":           {base + `, "api_key": "k"`, `error inline_secret api_key: "api_key" holds a secret, which a workflow must not; create a credential with this value, set credential_id to its name and remove "api_key"`},
		"Credential":       {`"base": "b", "text": "one"`, `warning credential_missing credential_id: TEST.PLANNED needs a credential of type "sql"; set credential_id before deploying`},
		"TemplateMayBring": {`"template_id": "t"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, told := problemsOf(t, r, "TEST.PLANNED", "{"+c.config+"}")
			if got := strings.Join(told, " | "); got != c.want {
				t.Errorf("told %s\nwant %s", got, c.want)
			}
		})
	}
}

// Expressions, SQL and code are known by their types.
func TestPlan_Types(t *testing.T) {
	t.Parallel()
	r := plannedKinds(t, workflow.Pure, func(*node.Planning, *plannedConfig) {})
	plan, told := problemsOf(t, r, "TEST.PLANNED", `{"base": "b", "sql": "select {{x}}", "source": "def main(x): return {{x}}", "when": "a > 1", "credential_id": "c"}`)
	if len(told) > 0 || !slices.Equal(plan.Bound, []string{"configurations.sql"}) || !slices.Equal(plan.Shielded, []string{"configurations.source"}) ||
		len(plan.Expressions) != 1 || plan.Expressions[0].Source != "a > 1" {
		t.Errorf("plan %+v, problems %q", plan, told)
	}
}

// A plan sees what is known before the node runs, and decides about keys and effect.
func TestPlan_Function(t *testing.T) {
	t.Parallel()
	r := plannedKinds(t, workflow.Pure, func(p *node.Planning, c *plannedConfig) {
		p.Keys, p.Effect = []string{c.Text, string(c.Title)}, workflow.Idempotent
		if p.Has("title") && !p.Dynamic("title") {
			p.Require("when", "beside title")
		}
	})
	plan, told := problemsOf(t, r, "TEST.PLANNED", `{"base": "b", "words": "TWO", "title": "t", "credential_id": "c", "on_unknown": "fail"}`)
	if !slices.Equal(plan.Keys, []string{"two", "t"}) || plan.Effect != workflow.Idempotent || len(told) != 2 ||
		!strings.Contains(told[0], `"when" is required beside title`) || !strings.Contains(told[1], "on_unknown does nothing here") {
		t.Errorf("plan %+v, problems %q", plan, told)
	}
	if plan, told := problemsOf(t, r, "TEST.PLANNED", `{"base": "b", "text": "one", "title": "{{t}}", "credential_id": "c"}`); plan.Keys[1] != "" || len(told) > 0 {
		t.Errorf("a placeholder is taken for a value: %q, %q", plan.Keys, told)
	}
}

// A kind that does not say what repeating it means is never repeated without knowledge.
func TestPlan_EffectIsOnceUnlessSaid(t *testing.T) {
	t.Parallel()
	r := plannedKinds(t, "", func(*node.Planning, *plannedConfig) {})
	if plan, _ := problemsOf(t, r, "TEST.PLANNED", `{}`); plan.Effect != workflow.Once {
		t.Errorf("effect %q", plan.Effect)
	}
}

// Names in any letter case and older names lead to the kinds.
func TestRegistry_Alias(t *testing.T) {
	t.Parallel()
	r := plannedKinds(t, workflow.Pure, func(*node.Planning, *plannedConfig) {})
	if names := r.Names(); !slices.Equal(names, []string{"TEST.PLANNED"}) {
		t.Errorf("names %q", names)
	}
	for _, c := range []struct{ typ, subtype, want string }{{"test", "planned", "TEST.PLANNED"}, {"planned", "", "TEST.PLANNED"}, {"NONE", "", ""}} {
		if got, _ := r.Alias(c.typ, c.subtype); got != c.want {
			t.Errorf("%s.%s means %q, want %q", c.typ, c.subtype, got, c.want)
		}
	}
}

// What older files have and nobody reads is passed over by the code as well.
func TestConfiguration_PassesOverWhatIsDropped(t *testing.T) {
	t.Parallel()
	c, err := node.Configuration[plannedConfig](json.RawMessage(`{"base": "b", "lost": 1, "text": "Three", "kept": {"nome": 1}, "title": 5, "some": ["a"]}`))
	if err != nil || c.Text != "three" || c.Title != "5" || string(c.Kept) != `{"nome": 1}` || string(c.Some[0]) != `"a"` {
		t.Errorf("%+v, %v", c, err)
	}
}
