package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/node"
	"tandem/node/shape"
	"tandem/text"
	"tandem/workflow"
)

type describedInner struct {
	Title string `json:"title" doc:"inner title" zh:"内部标题"`
}

type describedBase struct {
	Status string `json:"status" doc:"base status" zh:"状态"`
}

type describedOutput struct {
	describedBase
	Results []describedInner `json:"results,omitempty" doc:"all results" zh:"结果"`
	Best    *describedInner  `json:"best" doc:"the best" zh:"最佳"`
	Hidden  string           `json:"hidden"` // nothing says what it means
}

type describedInput struct {
	Query json.RawMessage `json:"query,omitempty" doc:"the query" zh:"查询"`
}

type describedConfig struct {
	_ struct{} `need:"text|flag"`

	Mode string `json:"mode" enum:"a|b" legacy:"c" older:"kind"`
	Flag bool   `json:"flag"`
	Text string `json:"text" with:"mode=a"`
	Both string `json:"both" with:"mode=a|b,flag=true"`
	Way  string `json:"way" enum:"x|y"`
	Once string `json:"once" with:"way=x"`
}

func (c *describedConfig) Defaults() { c.Mode = "a" }

func describedKind(plan ...func(p *node.Planning, cfg *describedConfig)) node.Kind {
	text := text.Beside("text", "文本")
	about := node.About{
		Name: "TEST.DESCRIBED", Title: text, Description: text, Effect: workflow.Pure,
		Keys:   []node.Key{{Name: "result", Meaning: text}, {Name: node.AnyKey, Meaning: text}},
		Inputs: []node.Value{{Name: "*", Meaning: text}},
	}
	return node.Define(about, func(context.Context, *node.Call, describedConfig, describedInput) (describedOutput, error) {
		return describedOutput{}, nil
	}, plan...)
}

// What goes in and what comes out is described by the tags of its types, besides what the kind says.
func TestDescribed(t *testing.T) {
	t.Parallel()
	k := describedKind()
	list := func(values []node.Value) string {
		var names []string
		for _, v := range values {
			names = append(names, fmt.Sprintf("%s (%s, %s)", v.Name, v.Meaning.In("en"), v.Meaning.In("zh")))
		}
		return strings.Join(names, "; ")
	}
	if got, want := list(k.About.Inputs), "query (the query, 查询); * (text, 文本)"; got != want {
		t.Errorf("inputs %s, want %s", got, want)
	}
	want := "status (base status, 状态); results (all results, 结果); results[].title (inner title, 内部标题); best (the best, 最佳); best.title (inner title, 内部标题)"
	if got := list(k.About.Keys[0].Fields); got != want {
		t.Errorf("result %s, want %s", got, want)
	}
	// A key that stands for others is not one itself.
	var r node.Registry
	r.Register(k)
	if plan, _ := problemsOf(t, &r, "TEST.DESCRIBED", `{}`); !slices.Equal(plan.Keys, []string{"result"}) {
		t.Errorf("keys %q", plan.Keys)
	}
	schema := gjson.ParseBytes(k.ConfigSchema.JSON())
	for path, want := range map[string]string{
		shape.SchemaNeed: `[["text","flag"]]`,
		"properties.mode." + shape.SchemaOlderNames:  `["kind"]`,
		"properties.mode." + shape.SchemaOlderValues: `["c"]`,
		"properties.both." + shape.SchemaWith:        `{"flag":["true"],"mode":["a","b"]}`,
	} {
		if got := schema.Get(path).Raw; got != want {
			t.Errorf("%s of the schema is %s, want %s", path, got, want)
		}
	}
}

// A field that is only looked at beside some values of others is warned of beside the other values.
func TestPlan_With(t *testing.T) {
	t.Parallel()
	var r node.Registry
	r.Register(describedKind(func(p *node.Planning, _ *describedConfig) { p.Otherwise("way", "y") }))
	for config, want := range map[string]string{
		`{"text": "t"}`:                                  "",
		`{"mode": "A", "text": "t"}`:                     "",
		`{"kind": "b", "text": "t"}`:                     `text does nothing here: it is for mode "a", not for "b"; remove it`,
		`{"mode": "{{x}}", "text": "t"}`:                 "",
		`{"template_id": "t", "mode": "b", "text": "t"}`: "",
		`{"flag": true, "both": "t"}`:                    "",
		`{"flag": false, "both": "t"}`:                   `both does nothing here: it is for flag "true", not for "false"; remove it`,
		`{"text": "t", "both": "t", "mode": "c"}`:        `text does nothing here: it is for mode "a", not for "c"; remove it | both does nothing here: it is for mode "a" or "b", not for "c"; remove it | both does nothing here: it is for flag "true", not for "false"; remove it`,
		`{"text": "t", "once": "t"}`:                     `once does nothing here: it is for way "x", not for "y"; remove it`,
		`{"text": "t", "once": "t", "way": "x"}`:         "",
	} {
		_, told := problemsOf(t, &r, "TEST.DESCRIBED", config)
		for i, text := range told {
			severity, rest, _ := strings.Cut(text, " invalid_config ")
			if _, told[i], _ = strings.Cut(rest, ": "); severity != "warning" {
				t.Errorf("%s: %s", config, text)
			}
		}
		if got := strings.Join(told, " | "); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

// A tag that names what there is not is a defect, which the first start finds.
func TestPlan_WithIsChecked(t *testing.T) {
	t.Parallel()
	panics := func(make func()) (why any) {
		defer func() { why = recover() }()
		make()
		return nil
	}
	type noField struct {
		Text string `json:"text" with:"mode=a"`
	}
	type noValue struct {
		Mode string `json:"mode" enum:"a|b"`
		Text string `json:"text" with:"mode=d"`
	}
	if why := panics(func() { node.ConfigurationSchema[noField]() }); !strings.Contains(fmt.Sprint(why), `names "mode"`) {
		t.Errorf("a tag about no field: %v", why)
	}
	if why := panics(func() { node.ConfigurationSchema[noValue]() }); !strings.Contains(fmt.Sprint(why), `names the value "d"`) {
		t.Errorf("a tag about no value: %v", why)
	}
}
