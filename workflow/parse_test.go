package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sampleJSON = `{
  "metadata": {
    "id": "wf-1", "name": "orders", "description": "é and <tags>", "tags": ["a"], "version": "2.10",
    "created_time": 1, "createdBy": "u", "deployment_status": "draft", "statistics": {"total_runs": 3}, "revision": 4,
    "settings": {"timeout_seconds": 1.5, "on_unresolved": "KEEP", "max_concurrent_activations": 7}
  },
  "nodes": [
    {"id": "start", "type": "trigger", "subtype": "Manual", "position": {"x": 1.5, "y": -2}},
    {"id": "pick", "name": "Pick", "description": "d", "type": "FLOW", "subtype": "IF",
     "configurations": {"z": 1.10, "a": {"y": [1, 2.50e3, 123456789012345678901234567890], "x": "\u00e9\n"}}}
  ],
  "connections": [
    {"id": "c", "fromNode": "start", "to_node": "pick", "conversionFunction": "x => x"},
    {"from_node": "pick", "to_node": "start", "output_key": "true"}
  ],
  "triggers": ["start"]
}`

const sampleYAML = `# the same workflow
metadata:
  id: wf-1
  name: orders
  description: é and <tags>
  tags: [a]
  version: 2.10
  created_time: 1
  createdBy: u
  deployment_status: draft
  statistics: {total_runs: 3}
  revision: 4
  settings:
    timeout_seconds: 1.5
    on_unresolved: KEEP
    max_concurrent_activations: 7
nodes:
  - id: start
    type: trigger
    subtype: Manual
    position: {x: 1.5, y: -2}
  - id: pick
    name: Pick
    description: d
    type: FLOW
    subtype: IF
    configurations:
      z: 1.10
      a:
        y: [1, 2.50e3, 123456789012345678901234567890]
        x: "\u00e9\n"
connections:
  - id: c
    fromNode: start
    to_node: pick
    conversionFunction: x => x
  - from_node: pick
    to_node: start
    output_key: true
triggers: [start]
`

const sampleCanonical = `{"metadata":{"id":"wf-1","name":"orders","description":"é and <tags>","tags":["a"],"version":"2.10",` +
	`"settings":{"timeout_seconds":1.5,"max_concurrent_activations":7,"on_unresolved":"keep"}},` +
	`"nodes":[{"id":"start","name":"start","description":"","type":"TRIGGER","subtype":"MANUAL","configurations":{},` +
	`"input_params":{},"output_params":{},"position":{"x":1.5,"y":-2}},` +
	`{"id":"pick","name":"Pick","description":"d","type":"FLOW","subtype":"IF",` +
	`"configurations":{"z":1.10,"a":{"y":[1,2.50e3,123456789012345678901234567890],"x":"é\n"}},"input_params":{},"output_params":{}}],` +
	`"connections":[{"id":"c","from_node":"start","to_node":"pick","output_key":"result","conversion_function":"x => x"},` +
	`{"id":"pick-true-start","from_node":"pick","to_node":"start","output_key":"true"}],"triggers":["start"]}`

func TestParse(t *testing.T) {
	t.Parallel()
	for format, text := range map[Format]string{JSON: sampleJSON, YAML: sampleYAML} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			s, problems := Parse([]byte("\ufeff"+text), Options{})
			if s == nil || len(problems) > 0 {
				t.Fatal(problems)
			}
			if s.Format != format {
				t.Errorf("format %s", s.Format)
			}
			encoded := Encode(s.Definition)
			if diff := cmp.Diff(sampleCanonical, string(encoded)); diff != "" {
				t.Error(diff)
			}
			again, problems := Parse(encoded, Options{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(s.Definition, again.Definition); diff != "" {
				t.Errorf("canonical text reads differently: %s", diff)
			}
		})
	}
	t.Run("HashIsOfTheContent", func(t *testing.T) {
		t.Parallel()
		j, _ := Parse([]byte(sampleJSON), Options{})
		y, _ := Parse([]byte(sampleYAML), Options{})
		if Hash(j.Definition) != Hash(y.Definition) {
			t.Error("JSON and YAML of the same content have different hashes")
		}
		y.Definition.Metadata.ID = "another"
		if Hash(j.Definition) != Hash(y.Definition) {
			t.Error("the server's id is part of the hash")
		}
		y.Definition.Nodes[1].Configurations = []byte(`{ "z" : 1.1 , "a" : 0 }`)
		if Hash(j.Definition) == Hash(y.Definition) {
			t.Error("another configuration has the same hash")
		}
		if !strings.Contains(string(Encode(y.Definition)), `{"z":1.1,"a":0}`) {
			t.Error("raw objects are not written compactly")
		}
	})
	t.Run("Notes", func(t *testing.T) {
		t.Parallel()
		const yaml = "notes:\n- text: |\n    Ask *first*.\n  position: {x: 1, y: 2.5}\n  width: 240\n- {id: note-1, text: b, height: 9}\n" +
			"source: what a server told\nsource_format: yaml\n"
		s, problems := Parse([]byte(yaml), Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		encoded := string(Encode(s.Definition))
		want := `"triggers":[],"notes":[{"id":"note-2","text":"Ask *first*.\n","position":{"x":1,"y":2.5},"width":240},{"id":"note-1","text":"b","height":9}]}`
		if !strings.HasSuffix(encoded, want) {
			t.Errorf("notes are written as %s", encoded)
		}
		again, problems := Parse([]byte(encoded), Options{})
		if diff := cmp.Diff(s.Definition.Notes, again.Definition.Notes); diff != "" || len(problems) > 0 {
			t.Error(diff, problems)
		}
		before := Hash(s.Definition)
		if s.Definition.Notes[0].Text = "other"; Hash(s.Definition) == before {
			t.Error("a note is not part of the revision")
		}
	})
	t.Run("Tests", func(t *testing.T) {
		t.Parallel()
		const yaml = "tests:\n- name: big\n  node: a\n  inputs: {n: 1.50}\n  pinned: {z: {result: {b: 1, a: 2}}, c: {\"true\": 1}}\n" +
			"  expect: {status: error, error_code: timeout, outputs: {a: {result: []}}}\n- name: whole\n"
		s, problems := Parse([]byte(yaml), Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		encoded := string(Encode(s.Definition))
		want := `"triggers":[],"tests":[{"name":"big","node":"a","inputs":{"n":1.50},"pinned":{"z":{"result":{"b":1,"a":2}},"c":{"true":1}},` +
			`"expect":{"status":"ERROR","outputs":{"a":{"result":[]}},"error_code":"timeout"}},{"name":"whole"}]}`
		if !strings.HasSuffix(encoded, want) {
			t.Errorf("tests are written as %s", encoded)
		}
		again, problems := Parse([]byte(encoded), Options{})
		if diff := cmp.Diff(s.Definition.Tests, again.Definition.Tests); diff != "" || len(problems) > 0 {
			t.Error(diff, problems)
		}
		before := Hash(s.Definition)
		if s.Definition.Tests[1].Name = "other"; Hash(s.Definition) == before {
			t.Error("a test is not part of the revision")
		}
	})
	t.Run("NodeThatMayNotRun", func(t *testing.T) {
		t.Parallel()
		s, problems := Parse([]byte(`{"nodes":[{"id":"a","type":"A","subtype":"B","pinned":{}}]}`), Options{Pinned: true})
		if len(problems) > 0 || string(s.Definition.Nodes[0].Pinned) != "{}" || !strings.Contains(string(Encode(s.Definition)), `"pinned":{}`) {
			t.Errorf("%v, %s", problems, Encode(s.Definition))
		}
	})
	t.Run("MostNodesFit", func(t *testing.T) {
		t.Parallel()
		s, problems := Parse(Encode(largeDefinition(DefaultMaxNodes)), Options{})
		if s == nil || len(problems) > 0 || len(s.Definition.Nodes) != DefaultMaxNodes {
			t.Fatal(problems)
		}
	})
	t.Run("OlderSpellings", func(t *testing.T) {
		t.Parallel()
		s, problems := Parse([]byte(`{"nodes":[
			{"id":"s","type":"start"},{"id":"pick.one","type":"Choice"},{"id":"e","type":"END"},{"id":"m","type":"LLM","input_ports":[]}],
			"connections":[{"from_node":"s","to_node":"pick.one","from_port":"main","to_port":"main"},
			{"from_node":"pick.one.left","to_node":"e"},{"from_node":"pick.one.left","to_node":"e"}]}`), Options{Kinds: newKinds()})
		if s == nil {
			t.Fatal(problems)
		}
		var kinds []string
		for i := range s.Definition.Nodes {
			kinds = append(kinds, s.Definition.Nodes[i].Kind())
		}
		if diff := cmp.Diff([]string{"TRIGGER.MANUAL", "FLOW.SWITCH", "CALL.EMPTY", "AI_AGENT.LLM"}, kinds); diff != "" {
			t.Error(diff)
		}
		if got := string(s.Definition.Nodes[2].Configurations); got != `{"pass_through":true}` {
			t.Errorf("the last step has %s; it hands its input on", got)
		}
		if diff := cmp.Diff([]Connection{
			{ID: "s-main-pick.one", FromNode: "s", ToNode: "pick.one", OutputKey: "main"},
			{ID: "pick.one-left-e", FromNode: "pick.one", ToNode: "e", OutputKey: "left"},
			{ID: "pick.one-left-e-2", FromNode: "pick.one", ToNode: "e", OutputKey: "left"},
		}, s.Definition.Connections); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{
			"old_field nodes[3].input_ports", "old_field connections[0].from_port", "old_field connections[0].to_port",
		}, codesAndPaths(problems)); diff != "" {
			t.Error(diff)
		}
		if HasErrors(problems) {
			t.Error("older spellings are errors")
		}
	})
}

// manyKeys are the members of an object without its braces.
func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%q: %d", fmt.Sprintf("k%d", i), i)
	}
	return strings.Join(keys, ",")
}

func TestParseFieldProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, want string // want is "line:column code path"
	}{
		{"UnknownTopField", "{\"nodez\": []}", "1:2 unknown_field nodez"},
		{"UnknownMetadataField", "metadata:\n  nam: x\n", "2:3 unknown_field metadata.nam"},
		{"UnknownSetting", "metadata:\n  settings:\n    timeout: 5\n", "3:5 unknown_field metadata.settings.timeout"},
		{"UnknownNodeField", "{\"nodes\":[{\"id\":\"a\",\n \"config\":{}}]}", "2:2 unknown_field nodes[0].config"},
		{"UnknownConnectionField", "connections:\n- from: a\n", "2:3 unknown_field connections[0].from"},
		{"UnknownPositionField", `{"nodes":[{"position":{"z":1}}]}`, "1:24 unknown_field nodes[0].position.z"},
		{"TwoSpellings", `{"connections":[{"to_node":"a","toNode":"b"}]}`, "1:32 duplicate_key connections[0].toNode"},
		{"RepeatedKeyJSON", "{\"nodes\":[{\"id\":\"a\",\n\"id\":\"b\"}]}", "2:1 duplicate_key nodes[0].id"},
		{"RepeatedKeyYAML", "nodes:\n- id: a\n  configurations:\n    k: 1\n    k: 2\n", "5:5 duplicate_key nodes[0].configurations.k"},
		{"RepeatedKeyAmongMany", "{" + "\"nodes\":[{\"configurations\":{" + manyKeys(40) + ",\n\"k7\":1}}]}", "2:1 duplicate_key nodes[0].configurations.k7"},
		{"RepeatedKeyAmongManyYAML", "nodes:\n- configurations: {" + manyKeys(40) + ",\n    k39: 1}\n", "3:5 duplicate_key nodes[0].configurations.k39"},
		{"RepeatedKeyDeep", `{"nodes":[{"configurations":{"a b":[{"x":1,"x":2}]}}]}`, "1:44 duplicate_key nodes[0].configurations[\"a b\"][0].x"},
		{"NodesNoList", `{"nodes":{}}`, "1:10 wrong_type nodes"},
		{"NodeNoObject", `{"nodes":["a"]}`, "1:11 wrong_type nodes[0]"},
		{"ConnectionNoObject", `{"connections":[null]}`, "1:17 wrong_type connections[0]"},
		{"NullConfigurations", "nodes:\n- configurations:\n", "2:3 wrong_type nodes[0].configurations"},
		{"TextConfigurations", `{"nodes":[{"input_params":"x"}]}`, "1:27 wrong_type nodes[0].input_params"},
		{"NumberAsID", "nodes:\n- id: 12\n", "2:7 wrong_type nodes[0].id"},
		{"ListAsName", `{"metadata":{"name":[]}}`, "1:21 wrong_type metadata.name"},
		{"TagsNoList", `{"metadata":{"tags":"a"}}`, "1:21 wrong_type metadata.tags"},
		{"TagNoText", `{"metadata":{"tags":["a",null]}}`, "1:26 wrong_type metadata.tags[1]"},
		{"TriggersNoList", `{"triggers":{"a":1}}`, "1:13 wrong_type triggers"},
		{"TimeoutNoNumber", `{"metadata":{"settings":{"timeout_seconds":"5"}}}`, "1:44 wrong_type metadata.settings.timeout_seconds"},
		{"ManyDigits", `{"metadata":{"settings":{"max_concurrent_activations":` + strings.Repeat("9", 200) + `}}}`, "1:55 wrong_type metadata.settings.max_concurrent_activations"},
		{"NoActivations", `{"metadata":{"settings":{"max_concurrent_activations":0}}}`, "1:55 invalid_settings metadata.settings.max_concurrent_activations"},
		{"FractionForInteger", `{"metadata":{"settings":{"max_concurrent_activations":1.5}}}`, "1:55 wrong_type metadata.settings.max_concurrent_activations"},
		{"UnquotedNull", "metadata: {settings: {on_unresolved: null}}", "1:38 ambiguous_spelling metadata.settings.on_unresolved"},
		{"PositionNoObject", `{"nodes":[{"position":[1,2]}]}`, "1:23 wrong_type nodes[0].position"},
		{"TestsNoList", `{"tests":"x"}`, "1:10 wrong_type tests"},
		{"TestNoObject", `{"tests":["x"]}`, "1:11 wrong_type tests[0]"},
		{"UnknownTestField", "tests:\n- name: a\n  pins: {}\n", "3:3 unknown_field tests[0].pins"},
		{"UnknownExpectation", "tests:\n- expect: {state: ERROR}\n", "2:12 unknown_field tests[0].expect.state"},
		{"PinWithoutKey", "tests:\n- pinned: {a: 1}\n", "2:15 wrong_type tests[0].pinned.a"},
		{"OutputWithoutKey", "tests:\n- expect: {outputs: {a: [1]}}\n", "2:25 wrong_type tests[0].expect.outputs.a"},
		{"NotesNoList", `{"notes":"x"}`, "1:10 wrong_type notes"},
		{"NoteNoObject", `{"notes":["x"]}`, "1:11 wrong_type notes[0]"},
		{"UnknownNoteField", "notes:\n- colour: red\n", "2:3 unknown_field notes[0].colour"},
		{"NoteTwice", `{"notes":[{"id":"a"},{"id":"a"}]}`, "1:28 duplicate_id notes[1].id"},
		{"NegativeWidth", `{"notes":[{"width":-1}]}`, "1:20 wrong_type notes[0].width"},
		{"BranchTwice", `{"nodes":[{"id":"p","type":"CHOICE"}],"connections":[{"from_node":"p.a","to_node":"p","output_key":"b"}]}`,
			"1:100 ambiguous_spelling connections[0].output_key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, problems := Parse([]byte(tt.text), Options{Kinds: newKinds()})
			if s == nil || len(problems) != 1 {
				t.Fatalf("problems %v", problems)
			}
			p := problems[0]
			if !wellFormed(p.Message) {
				t.Errorf("the parts of %q do not join", p.Message)
			}
			if got := fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Code, p.Path); got != tt.want {
				t.Errorf("got %s, want %s (%s)", got, tt.want, p.Message)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		c, d := string(rune('a'+i)), string(rune('b'+i))
		bomb += fmt.Sprintf("%s: &%s [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", d, d, c, c, c, c, c, c, c, c, c)
	}
	merges := "a0: &a0 {k: v}\n"
	for i := range 300 {
		merges += fmt.Sprintf("a%d: &a%d [*a%d]\n", i+1, i+1, i)
	}
	manyNodes := `{"nodes":[` + strings.TrimSuffix(strings.Repeat("{},", 101), ",") + "]}"
	tests := []struct {
		name, text string
		opts       Options
		want, says string
	}{
		{"Empty", "", Options{}, "1:1 syntax", "empty"},
		{"Blank", " \n\t\n", Options{}, "1:1 syntax", "empty"},
		{"OnlyMark", "\ufeff", Options{}, "1:1 syntax", "empty"},
		{"UTF16", "\xff\xfe{\x00", Options{}, "1:1 syntax", "UTF-16"},
		{"NUL", "{\"nodes\":\n \x00[]}", Options{}, "2:2 syntax", "NUL"},
		{"EscapedNUL", `{"nodes":[{"id":"\u0000"}]}`, Options{}, "1:18 syntax", "NUL"},
		{"NotUTF8", "nodes:\n- id: é\xff\n", Options{}, "2:8 syntax", "UTF-8"},
		{"Truncated", `{"nodes":[{"id":"a"`, Options{}, "1:20 syntax", "ends in the middle"},
		{"TruncatedString", `{"nodes":[{"id":"a`, Options{}, "1:19 syntax", "ends in the middle"},
		{"TruncatedEscape", `{"a":"\`, Options{}, "1:7 syntax", "ends in the middle"},
		{"TruncatedKey", `{`, Options{}, "1:2 syntax", "ends in the middle"},
		{"TrailingGarbage", "{\"nodes\":[]}\n}", Options{}, "2:1 syntax", "after the end"},
		{"TwoValues", `{} {}`, Options{}, "1:4 syntax", "after the end"},
		{"TrailingComma", `{"nodes":[1,]}`, Options{}, "1:13 syntax", "one too many"},
		{"SingleQuotes", `{"nodes":'x'}`, Options{}, "1:10 syntax", "expected"},
		{"Unquoted", `{"nodes":[{id:1}]}`, Options{}, "1:12 syntax", "double quotes"},
		{"HugeExponent", `{"nodes":[{"configurations":{"a":1e999999}}]}`, Options{}, "1:34 syntax", "reckoned"},
		{"HugeInteger", `{"metadata":{"settings":{"timeout_seconds":` + strings.Repeat("9", 400) + `}}}`, Options{}, "1:44 syntax", "reckoned"},
		{"LeadingZero", `{"a":01}`, Options{}, "1:6 syntax", "not a number"},
		{"NaN", `{"a":-NaN}`, Options{}, "1:6 syntax", "not a number"},
		{"Word", `{"a":truely}`, Options{}, "1:6 syntax", "expected"},
		{"HalfCharacter", `{"a":"\ud800x"}`, Options{}, "1:7 syntax", "half"},
		{"BadEscape", `{"a":"\x"}`, Options{}, "1:7 syntax", "escape"},
		{"LineBreakInString", "{\"a\":\"x\ny\"}", Options{}, "1:8 syntax", "closing quote"},
		{"ColumnsAreCharacters", `{"中文":"é", x}`, Options{}, "1:12 syntax", "double quotes"},
		{"DeepLists", strings.Repeat("[", 100_000), Options{}, "1:130 too_large", "128 deep"},
		{"DeepObjects", strings.Repeat(`{"a":`, 100_000), Options{}, "1:646 too_large", "128 deep"},
		{"DeepFlow", "a: " + strings.Repeat("[", 100_000), Options{}, "1:1 too_large", "128 deep"},
		{"DeepDashes", strings.Repeat("- ", 100_000), Options{}, "1:1 too_large", "128 deep"},
		{"DeepBraces", "a: " + strings.Repeat("{a: ", 50_000), Options{}, "1:1 too_large", "128 deep"},
		{"DeepFlowThatCloses", "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), Options{}, "1:132 too_large", "128 deep"},
		{"DeepDashesThatAreRead", strings.Repeat("- ", 5000), Options{}, "1:259 too_large", "128 deep"},
		{"DeepBracesThatClose", "a: " + strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000), Options{}, "1:516 too_large", "128 deep"},
		{"DeepAliases", merges, Options{}, "129:7 too_large", "128 deep"},
		{"Bomb", bomb, Options{}, "", "aliases"},
		{"TooManyBytes", strings.Repeat(" ", DefaultMaxBytes+1), Options{}, "0:0 too_large", "33554432"},
		{"TooManyBytesYAML", "a:" + strings.Repeat(" ", DefaultMaxYAMLBytes), Options{}, "0:0 too_large", "JSON"},
		{"FewerBytesThanYAML", "a: 12345678", Options{MaxBytes: 10}, "0:0 too_large", "10 are allowed; split"},
		{"TooManyValues", "[" + strings.Repeat("0,", 4000) + "0]", Options{MaxValues: 2500}, "1:5000 too_large", "values"},
		{"TooManyValuesYAML", "a: [" + strings.Repeat("0,", 4000) + "0]", Options{MaxValues: 2500}, "1:5001 too_large", "values"},
		{"TooManyMarks", "a: [" + strings.Repeat("0,", 700_000) + "0]", Options{}, "0:0 too_large", "JSON"},
		{"TagDirectives", strings.Repeat("%TAG !a! b\n", 1000) + "---\na: 1\n", Options{}, "0:0 too_large", "%TAG"},
		{"MergesAgainAndAgain", "a: &a {" + manyKeys(100) + "}\nb:\n" + strings.Repeat("  <<: *a\n", 1000), Options{MaxValues: 20_000}, "", "values"},
		{"TooManyConnections", `{"connections":[{},{},{}]}`, Options{MaxConnections: 2}, "1:16 too_large", "3 connections"},
		{"TooManyNodes", manyNodes, Options{MaxNodes: 100}, "1:10 too_large", "101 nodes"},
		{"List", "[1]", Options{}, "1:1 wrong_type", "object"},
		{"Text", "hello there", Options{}, "1:1 wrong_type", "object"},
		{"Binary", "\x7fELF\x02\x01\x01\x00", Options{}, "1:8 syntax", "NUL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, problems := Parse([]byte(tt.text), tt.opts)
			if s != nil || len(problems) != 1 {
				t.Fatalf("source %v, problems %v", s != nil, problems)
			}
			p := problems[0]
			if !wellFormed(p.Message) {
				t.Errorf("the parts of %q do not join", p.Message)
			}
			if got := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Code); tt.want != "" && got != tt.want {
				t.Errorf("got %s, want %s (%s)", got, tt.want, p.Message)
			}
			if !strings.Contains(p.Message, tt.says) {
				t.Errorf("message %q does not say %q", p.Message, tt.says)
			}
		})
	}
}

// TestParseBoundsWork counts allocations instead of time: what hostile files cost must grow no faster than the file.
func TestParseBoundsWork(t *testing.T) {
	wide := func(n int) string {
		var b strings.Builder
		b.WriteString("metadata:\n")
		for i := range n {
			fmt.Fprintf(&b, "  k%d:\n", i)
		}
		return b.String()
	}
	for name, text := range map[string]func(n int) string{
		"WideMapping": wide,
		"Commas":      func(n int) string { return "a: [" + strings.Repeat("a,", n) + "]" },
		"Anchors":     func(n int) string { return "a: " + strings.Repeat("&a ", n) },
		"Quotes":      func(n int) string { return "a: " + strings.Repeat("'", n) },
		"Items":       func(n int) string { return "nodes:\n" + strings.Repeat("- \n", n) },
		"Merges":      func(n int) string { return "a: &a {x: 1}\nb:\n" + strings.Repeat("  <<: *a\n", n) },
		"Comments":    func(n int) string { return "nodes:\n" + strings.Repeat("- 1 # x\n# y\n\n", n) },
		"Unknown":     func(n int) string { return "{" + manyKeys(n) + "}" },
		"Repeated":    func(n int) string { return "{" + strings.Repeat(`"a":1,`, n) + `"b":2}` },
	} {
		cost := func(n int) float64 {
			data := []byte(text(n))
			return testing.AllocsPerRun(1, func() { Parse(data, Options{}) })
		}
		if small, large := cost(2000), cost(20_000); large > 20*small+2000 {
			t.Errorf("%s: %.0f allocations for 2,000 and %.0f for 20,000", name, small, large)
		}
	}
}

func TestSourceLocate(t *testing.T) {
	t.Parallel()
	for format, text := range map[Format]string{JSON: sampleJSON, YAML: sampleYAML} {
		s, problems := Parse([]byte(text), Options{})
		if s == nil {
			t.Fatal(problems)
		}
		want := map[Format]map[string]string{
			JSON: {"nodes[1].configurations.a.y[1]": "10:51", "connections[0].conversion_function": "13:79", "nodes[0].name": "8:5", "nodes[7].x": "7:12", "": "1:1"},
			YAML: {"nodes[1].configurations.a.y[1]": "30:16", "connections[0].conversion_function": "36:25", "nodes[0].name": "18:5", "nodes[7].x": "18:3", "": "2:1"},
		}[format]
		for path, place := range want {
			p := []Problem{{Path: path}}
			s.Locate(p)
			if got := fmt.Sprintf("%d:%d", p[0].Line, p[0].Column); got != place {
				t.Errorf("%s: %q is at %s, want %s", format, path, got, place)
			}
		}
	}
}

func TestSourceValidate(t *testing.T) {
	t.Parallel()
	s, problems := Parse([]byte("nodes:\n- id: a\n  type: CALL\n  subtype: EMTY\n  bogus: 1\n- 12\nconnections:\n- {from_node: a, to_node: b}\n"), Options{})
	if s == nil {
		t.Fatal(problems)
	}
	var got []string
	for _, p := range s.Validate(testRules()) {
		got = append(got, fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Code, p.Path))
	}
	if diff := cmp.Diff([]string{
		"2:3 no_description nodes[0].description", "4:12 unknown_kind nodes[0].subtype", "5:3 unknown_field nodes[0].bogus",
		"6:3 wrong_type nodes[1]", "8:27 unknown_node connections[0].to_node",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		sampleJSON, sampleYAML, sampleCanonical, "a: &a [*a]", "{", "- - -", "a: |\n x\n", "? a\n: b", "<<: *x", "a: [b: c, {d}]", "%YAML 1.2\n---\n",
		"a: !!str &x y\nb: *x\n", "\"a\nb\": c", "{a: 'x\n  y', b}", "&a a: *a\n", "a:\n- b\n -c\n", "nodes:\n- id: [\n",
	} {
		f.Add([]byte(seed))
	}
	rules := testRules()
	f.Fuzz(func(t *testing.T, data []byte) {
		s, problems := Parse(data, Options{Kinds: rules.Kinds, MaxBytes: 1 << 16, MaxNodes: 1000})
		if s == nil {
			if len(problems) == 0 {
				t.Fatal("refused without a reason")
			}
			return
		}
		s.Validate(rules)
		Compile(s.Definition, rules.Kinds)
		if HasErrors(problems) {
			return
		}
		encoded := Encode(s.Definition)
		again, problems := Parse(encoded, Options{Kinds: rules.Kinds, MaxBytes: 1 << 24})
		if again == nil || HasErrors(problems) {
			t.Fatalf("canonical text is refused: %v\n%s", problems, encoded)
		}
		if got := Encode(again.Definition); string(got) != string(encoded) {
			t.Fatalf("canonical text is not stable:\n%s\n%s", encoded, got)
		}
	})
}
