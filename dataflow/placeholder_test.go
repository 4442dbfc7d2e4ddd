package dataflow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/dataflow"
	"tandem/fault"
)

func TestTextReferences(t *testing.T) {
	t.Parallel()
	type ref = dataflow.Reference
	d, tr, dl := dataflow.StyleDouble, dataflow.StyleTriple, dataflow.StyleDollar
	tests := []struct {
		name, text string
		want       []ref
	}{
		{"Nothing", "plain { text } $ }} $5 {a} }", nil},
		{"TripleOutputs", "{{{a.outputs.b}}}", []ref{{Raw: "{{{a.outputs.b}}}", Style: tr, Head: "a", Node: true, Rest: []string{"b"}}}},
		{"DoubleOutputs", "{{a.outputs.b}}", []ref{{Raw: "{{a.outputs.b}}", Style: d, Head: "a", Node: true, Rest: []string{"b"}}}},
		{"DoubleOutput", "{{a.output.b}}", []ref{{Raw: "{{a.output.b}}", Style: d, Head: "a", Node: true, Rest: []string{"b"}}}},
		{"Dotted", "{{a.b}}", []ref{{Raw: "{{a.b}}", Style: d, Head: "a", Rest: []string{"b"}}}},
		{"DollarOutput", "${a.output.b}", []ref{{Raw: "${a.output.b}", Style: dl, Head: "a", Node: true, Rest: []string{"b"}}}},
		{"DollarBare", "${a}", []ref{{Raw: "${a}", Style: dl, Head: "a"}}},
		{"TripleBare", "{{{a}}}", []ref{{Raw: "{{{a}}}", Style: tr, Head: "a"}}},
		{"Bare", "{{name}}", []ref{{Raw: "{{name}}", Style: d, Head: "name"}}},
		{"WholeOutput", "{{a.outputs}}", []ref{{Raw: "{{a.outputs}}", Style: d, Head: "a", Node: true}}},
		{"Blanks", "{{ \t\n a.b \n}}", []ref{{Raw: "{{ \t\n a.b \n}}", Style: d, Head: "a", Rest: []string{"b"}}}},
		{"Indexes", "{{a.outputs.items[0].id}}", []ref{{Raw: "{{a.outputs.items[0].id}}", Style: d, Head: "a", Node: true, Rest: []string{"items", "0", "id"}}}},
		{"OddKeys", `{{a["x}}y"]['it\'s']}}`, []ref{{Raw: `{{a["x}}y"]['it\'s']}}`, Style: d, Head: "a", Rest: []string{"x}}y", "it's"}}}},
		{"OddHead", `${["my node"].outputs.x}`, []ref{{Raw: `${["my node"].outputs.x}`, Style: dl, Head: "my node", Node: true, Rest: []string{"x"}}}},
		{"OtherLanguages", "{{城市.outputs.名称}}", []ref{{Raw: "{{城市.outputs.名称}}", Style: d, Head: "城市", Node: true, Rest: []string{"名称"}}}},
		{"ToolNames", "{{srv/tool-1.outputs.x}}", []ref{{Raw: "{{srv/tool-1.outputs.x}}", Style: d, Head: "srv/tool-1", Node: true, Rest: []string{"x"}}}},
		{"Offsets", "é {{a}} ${b}", []ref{{Raw: "{{a}}", Style: d, Head: "a", Offset: 3}, {Raw: "${b}", Style: dl, Head: "b", Offset: 9}}},
		{"Escaped", `\{{a}} \${b} \{{{c}}}`, nil},
		{"EscapedBackslash", `\\{{a}}`, []ref{{Raw: "{{a}}", Style: d, Head: "a", Offset: 2}}},
		{"BracesAround", "{{{a}} and {{b}}}", []ref{{Raw: "{{a}}", Style: d, Head: "a", Offset: 1}, {Raw: "{{b}}", Style: d, Head: "b", Offset: 11}}},
		{"FourBraces", "{{{{a}}}}", []ref{{Raw: "{{{a}}}", Style: tr, Head: "a", Offset: 1}}},
		{"DollarBraces", "${{a}}", []ref{{Raw: "{{a}}", Style: d, Head: "a", Offset: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := dataflow.TextReferences(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("references of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestTextReferences_Problems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, raw, problem string
		unterminated       bool
	}{
		{"say {{name", "{{", "never closed", true},
		{"say ${name", "${", "never closed", true},
		{"{{{x", "{{{", "never closed", true},
		{"{{}}", "{{}}", "is empty", false},
		{"${ }", "${ }", "is empty", false},
		{"{{a b}}", "{{a b}}", "not one path", false},
		{"{{{a b}}}", "{{{a b}}}", "not one path", false},
		{"{{a..b}}", "{{a..b}}", "dot", false},
		{"{{a[x]}}", "{{a[x]}}", "neither an index", false},
		{"{{#if x}}", "{{#if x}}", "not one path", false},
		{"${x + 1}", "${x + 1}", "not one path", false},
		{"{{" + strings.Repeat("x", 2000) + "}}", "{{" + strings.Repeat("x", 2000) + "}}", "longer than", false},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 20)], func(t *testing.T) {
			t.Parallel()
			got, err := dataflow.TextReferences(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].Raw != tt.raw || !strings.Contains(got[0].Problem, tt.problem) || got[0].Unterminated != tt.unterminated {
				t.Fatalf("got %+v", got)
			}
		})
	}
	t.Run("AnOpenOneDoesNotSwallowTheNext", func(t *testing.T) {
		t.Parallel()
		got, err := dataflow.TextReferences("{{ open, then {{a.b}}")
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Raw != "{{a.b}}" || got[0].Problem != "" || !got[1].Unterminated {
			t.Fatalf("got %+v", got)
		}
	})
}

func TestReferences(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"{{key}}":1,"a":["x",{"odd key":"see {{n.outputs.v}}"}],"code":"{{not_searched}}","rules":[{"when":"{{no}}","say":"{{yes}}"}]}`)
	got, err := dataflow.References(raw, "code", "rules[*].when")
	if err != nil {
		t.Fatal(err)
	}
	want := []dataflow.Reference{
		{Raw: "{{n.outputs.v}}", Style: dataflow.StyleDouble, Path: `a[1]["odd key"]`, Offset: 4, Head: "n", Node: true, Rest: []string{"v"}},
		{Raw: "{{yes}}", Style: dataflow.StyleDouble, Path: "rules[0].say", Head: "yes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestCompile_Refuses(t *testing.T) {
	t.Parallel()
	many := `["` + strings.Repeat("{{a}}", dataflow.MaxPlaceholders+1) + `"]`
	tests := []struct {
		name, raw string
		code      fault.Code
		says      string
	}{
		{"BrokenJSON", `{"a":`, fault.InvalidConfig, "not valid JSON"},
		{"InvalidUTF8", "{\"a\":\"\xff\"}", fault.InvalidConfig, "UTF-8"},
		{"NUL", "{\"a\":\"\x00\"}", fault.InvalidConfig, "NUL"},
		{"EscapedNUL", `{"a":"x\u0000"}`, fault.InvalidConfig, "NUL character at byte 1"},
		{"HugeNumber", `{"a":` + strings.Repeat("1", 5000) + `}`, fault.InvalidConfig, "1000 characters"},
		{"DeepNesting", strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001), fault.InvalidConfig, "1000 levels"},
		{"TooManyPlaceholders", many, fault.TooLarge, "1000 placeholders"},
		{"TooLarge", `"` + strings.Repeat("x", dataflow.MaxOutput) + `"`, fault.TooLarge, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := dataflow.Compile(json.RawMessage(tt.raw))
			if fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v; want %s with %q", err, tt.code, tt.says)
			}
		})
	}
	t.Run("TextWithNUL", func(t *testing.T) {
		t.Parallel()
		if _, err := dataflow.CompileText("a\x00"); fault.CodeOf(err) != fault.InvalidConfig {
			t.Fatalf("got %v", err)
		}
		if _, err := dataflow.CompileText("a\xff"); fault.CodeOf(err) != fault.InvalidConfig {
			t.Fatalf("got %v", err)
		}
	})
}
