package llm_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
)

func TestFindJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"Whole", " {\"a\": 1}\n", `{"a": 1}`},
		{"WholeArray", `[{"a":1},{"b":2}]`, `[{"a":1},{"b":2}]`},
		{"ByteOrderMark", "\uFEFF{}", `{}`},
		{"Fence", "Here it is:\n```json\n{\"a\": 1}\n```\nBye.", `{"a": 1}`},
		{"FenceWithoutLanguage", "```\n{\"a\": 1}\n```", `{"a": 1}`},
		{"FenceOnOneLine", "```{\"a\":1}```", `{"a":1}`},
		{"FenceThatOpensWithTheObject", "```json {\"a\":\n1}\n```", `{"a":1}`},
		{"FenceNotClosed", "```json\n{\"a\": 1}", `{"a": 1}`},
		{"FenceInAQuote", "> ```json\n> {\"a\": 1}\n> ```", `{"a": 1}`},
		{"FenceBeforeProse", "Not {\"example\": 1}, but\n```json\n{\"a\": 1}\n```", `{"a": 1}`},
		{"SecondFence", "```sh\nls {a,b}\n```\n```json\n{\"a\": 1}\n```", `{"a": 1}`},
		{"FencedArrayBeforeProse", "like {\"x\":0}\n```\n[1, 2]\n```", `[1, 2]`},
		{"FencesWithinAString", "so: {\"code\": \"```json\\n{\\\"x\\\": 1}\\n```\"}", "{\"code\": \"```json\\n{\\\"x\\\": 1}\\n```\"}"},
		{"Prose", `The answer is {"a": {"b": [1, {"c": 2}]}} as you see.`, `{"a": {"b": [1, {"c": 2}]}}`},
		{"BracesInStrings", `x {"a": "}{\"}", "b": "{"} y`, `{"a": "}{\"}", "b": "{"}`},
		{"BracesThatAreNone", `use {braces} and {"half" then {"a": 1}`, `{"a": 1}`},
		{"ObjectInBrokenBraces", `{ see {"a": 1} }`, `{"a": 1}`},
		{"FirstObject", `{"a": 1} or {"b": 2}`, `{"a": 1}`},
		{"ObjectBeforeArray", `As [1] says: {"a": 1}`, `{"a": 1}`},
		{"ArrayOfObjectsIsOneValue", `Result: [{"a": 1}, {"b": 2}].`, `[{"a": 1}, {"b": 2}]`},
		{"BareBraceAtTheEnd", `[1, 2] and then {`, `[1, 2]`},
		{"LoneQuote", `he said " and {"a": "1"}`, `{"a": "1"}`},
		{"Chinese", `答案是：{"城市": "北京", "说明": "“好”"}。`, `{"城市": "北京", "说明": "“好”"}`},
		{"Escapes", `{"a": "\u00e9\n\\", "b": -1.5e+3, "c": [true, false, null], "d": {}, "e": []}`, `{"a": "\u00e9\n\\", "b": -1.5e+3, "c": [true, false, null], "d": {}, "e": []}`},
		{"Thoughts", "<think>maybe {x}</think>\n{\"a\": 1}", `{"a": 1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := llm.FindJSON(c.text)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if err := json.Unmarshal(got, &a); err != nil {
				t.Fatalf("%q is not JSON: %v", got, err)
			}
			if err := json.Unmarshal([]byte(c.want), &b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b, a); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range []struct{ name, text, says string }{
		{"Nothing", "I cannot do that.", "no JSON object"},
		{"Empty", "", "no JSON object"},
		{"OnlyAString", `"text"`, "no JSON object"},
		{"TrailingComma", `{"a": 1,}`, "no JSON object"},
		{"SingleQuotes", `{'a': 1}`, "no JSON object"},
		{"BareBrace", `see {`, "no JSON object"},
		{"Cut", `{"items": [{"id": 1}, {"id": 2`, "breaks off"},
		{"CutInAString", `{"items": [{"id": 1}], "text": "abc`, "breaks off"},
		{"CutInAWord", `{"ok": tr`, "breaks off"},
		{"CutAfterACitation", `As [1] says: {"a": 1`, "breaks off"},
		{"CutInAFence", "Not {\"example\": 1}, but\n```json\n{\"a\": [", "breaks off"},
		{"TooDeep", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "braces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := llm.FindJSON(c.text)
			if fault.CodeOf(err) != fault.OutputInvalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v; want an error that says %q", got, err, c.says)
			}
		})
	}
	t.Run("TooLarge", func(t *testing.T) {
		t.Parallel()
		if _, err := llm.FindJSON(strings.Repeat(" ", 5<<20)); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("got %v", err)
		}
	})
	t.Run("TakesTimeInProportion", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ text, says string }{
			{strings.Repeat("{", 1<<17), "no JSON object"},
			{strings.Repeat(`{"`, 1<<17), "breaks off"},
			{strings.Repeat("```\n{\n", 1<<15), "no JSON object"},
			// Read from each of their braces anew, these would take hundreds of times their length.
			{strings.Repeat(strings.Repeat(`{"a":`, 400)+"x", 100), "too many braces"},
			{strings.Repeat("[", 400) + strings.Repeat("1,", 1<<16) + "x", "too many braces"},
		} {
			if got, err := llm.FindJSON(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%.20q: found %.40q, %v; want %q", c.text, got, err, c.says)
			}
		}
	})
}

func FuzzFindJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "x {\"a\": [1, \"}\"]} y", "```json\n{}\n```", `[1,2`, `{"a":"\u00`, "\x00", `{"a":-0.5e1}`, "[\"\xff\"]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := llm.FindJSON(text)
		if err == nil && (!json.Valid(got) || got[0] != '{' && got[0] != '[') {
			t.Errorf("found %q in %q", got, text)
		}
		trimmed := strings.TrimSpace(text)
		if err != nil && len(trimmed) > 0 && trimmed[0] == '{' && json.Valid([]byte(trimmed)) && strings.Count(text, "{")+strings.Count(text, "[") < 400 {
			t.Errorf("did not find %q: %v", text, err)
		}
	})
}

func TestSchema_Check(t *testing.T) {
	t.Parallel()
	schema := &llm.Schema{Name: "order", JSON: json.RawMessage(`{
		"type": "object", "required": ["id", "lines"], "additionalProperties": false,
		"properties": {
			"id": {"type": "integer"}, "kind": {"enum": ["a", "b"]},
			"lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}}
		},
		"$defs": {"line": {"type": "object", "required": ["price"], "properties": {"price": {"type": "number", "minimum": 0}}}}
	}`)}
	shape, err := schema.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, value string
		says        []string
	}{
		{"Fits", `{"id": 1, "lines": [{"price": 2.5}]}`, nil},
		{"LargeNumber", `{"id": 12345678901234567890, "lines": [{"price": 2.5}]}`, nil},
		{"Missing", `{"lines": [{"price": 1}]}`, []string{"answer: missing property 'id'"}},
		{"Deep", `{"id": 1, "lines": [{"price": 1}, {"price": "x"}]}`, []string{"answer.lines[1].price: got string, want number"}},
		{"Several", `{"id": "1", "kind": "c", "lines": [], "more": 1}`, []string{"answer: additional properties 'more'", "answer.id: ", "answer.kind: ", "answer.lines: "}},
		{"NoObject", `[1]`, []string{"answer: got array, want object"}},
		{"WildNumber", `{"id": 1e999999999, "lines": [{"price": 1}]}`, []string{"out of range"}},
		{"NoJSON", `{`, []string{"not JSON"}},
		{"TwoValues", `{} {}`, []string{"more than one"}},
		{"Garbage", `{"id": 1, "lines": [{"price": 2.5}]}}`, []string{"more than one"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range 3 { // the same each time
				err := shape.Check(json.RawMessage(c.value))
				if c.says == nil {
					if err != nil {
						t.Errorf("got %v", err)
					}
					continue
				}
				if fault.CodeOf(err) != fault.OutputInvalid {
					t.Fatalf("got %v", err)
				}
				at := 0
				for _, s := range c.says {
					i := strings.Index(err.Error()[at:], s)
					if i < 0 {
						t.Fatalf("%q does not say %q in its place", err, s)
					}
					at += i
				}
			}
		})
	}
	t.Run("ListsAFew", func(t *testing.T) {
		t.Parallel()
		err := schema.Check(json.RawMessage(`{"id": 1, "lines": [` + strings.Repeat(`{},`, 19) + `{}]}`))
		problems, ok := fault.From(err).Details["problems"].([]llm.Problem)
		if !ok || len(problems) != 8 || !strings.Contains(err.Error(), "and 12 more") {
			t.Errorf("got %v with %d problems", err, len(problems))
		}
	})
	t.Run("RefusesUnusableOnes", func(t *testing.T) {
		t.Parallel()
		for _, raw := range []string{
			``, `{`, `{"type": "nothing"}`, `{"$ref": "file:///etc/passwd"}`, `{"$ref": "https://example.com/s.json"}`,
			`{"$ref": "#/$defs/none"}`, `{"pattern": "("}`, `{"maximum": 1e999999999}`,
		} {
			s := &llm.Schema{Name: "x", JSON: json.RawMessage(raw)}
			if _, err := s.Compile(); fault.CodeOf(err) != fault.InvalidConfig || strings.Contains(err.Error(), "root:") {
				t.Errorf("%s: got %v", raw, err)
			}
			if err := s.Check(json.RawMessage(`{}`)); fault.CodeOf(err) != fault.InvalidConfig {
				t.Errorf("%s: check got %v", raw, err)
			}
		}
	})
	t.Run("EndsWithSchemasThatTurnInCircles", func(t *testing.T) {
		t.Parallel()
		s := &llm.Schema{Name: "x", JSON: json.RawMessage(`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`)}
		if err := s.Check(json.RawMessage(`{}`)); err == nil {
			t.Error("a circle without an end was accepted")
		}
	})
	t.Run("Read", func(t *testing.T) {
		t.Parallel()
		if raw, err := schema.Read("```\n{\"id\": 1, \"lines\": [{\"price\": 2}]}\n```"); err != nil || string(raw) != "{\"id\": 1, \"lines\": [{\"price\": 2}]}" {
			t.Errorf("got %s, %v", raw, err)
		}
		if raw, err := schema.Read(`{"id": 1}`); fault.CodeOf(err) != fault.OutputInvalid || raw != nil {
			t.Errorf("got %s, %v", raw, err)
		}
		var none *llm.Schema
		if raw, err := none.Read(`so {"id": 1}`); err != nil || string(raw) != `{"id": 1}` {
			t.Errorf("got %s, %v", raw, err)
		}
	})
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for lang, says := range map[string]string{"zh": "请改正", "zh-CN": "请改正", "en": "Correct it", "": "Correct it", "fr": "Correct it"} {
		m := llm.Repair("answer.id: got string, want integer", lang)
		if m.Role != llm.User || !strings.Contains(m.Content, says) || !strings.Contains(m.Content, "answer.id: got string, want integer") {
			t.Errorf("%q: %+v", lang, m)
		}
	}
	if m := llm.Repair(strings.Repeat("错", 5000), "zh"); len(m.Content) > 5000 || !utf8.ValidString(m.Content) {
		t.Errorf("a long problem became %d bytes, valid %v", len(m.Content), utf8.ValidString(m.Content))
	}
}
