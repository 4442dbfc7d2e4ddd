package workflow

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func testLimits() limits { return limits{depth: DefaultMaxDepth, values: 1 << 20} }

func TestReadYAML(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, yaml, want string }{
		{"Mapping", "a: 1\nb: two\nc: ~\nd:\ne: true\n", `{"a":1,"b":"two","c":null,"d":null,"e":true}`},
		{"Nested", "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", `{"a":{"b":{"c":1},"d":2},"e":3}`},
		{"SequenceAtKeyColumn", "a:\n- 1\n- 2\nb: 3\n", `{"a":[1,2],"b":3}`},
		{"SequenceIndented", "a:\n  - 1\n  -\n  - - x\n    - y\nb: 3\n", `{"a":[1,null,["x","y"]],"b":3}`},
		{"MappingsInSequence", "- a: 1\n  b:\n    c: 2\n- d: 3\n-\n  e: 4\n", `[{"a":1,"b":{"c":2}},{"d":3},{"e":4}]`},
		{"Flow", "a: {b: 1, c, \"d\":[1, 2,], e: }\nf: [x: y, {}, []]\n", `{"a":{"b":1,"c":null,"d":[1,2],"e":null},"f":[{"x":"y"},{},[]]}`},
		{"FlowOverLines", "a: {\n  b: 1,\n  c: [\n1,\n2 ] }\nd: 1\n", `{"a":{"b":1,"c":[1,2]},"d":1}`},
		{"Quoted", `a: "x\ny\u00e9"` + "\nb: 'it''s'\n\"c d\": ''\n", `{"a":"x\nyé","b":"it's","c d":""}`},
		{"Blocks", "a: |\n  x\n   y\n\nb: >-\n  p\n  q\nc: |+\n  z\n\nd: 1\n", `{"a":"x\n y\n","b":"p q","c":"z\n\n","d":1}`},
		{"PlainOverLines", "a: one\n  two\nb: 1\n", `{"a":"one two","b":1}`},
		{"NumbersDigitForDigit", "a: 1.10\nb: 123456789012345678901234567890\nc: -0.50\nd: 1e3\ne: 6.02E+23\n", `{"a":1.10,"b":123456789012345678901234567890,"c":-0.50,"d":1e3,"e":6.02E+23}`},
		{"NumbersOfOtherForm", "a: .5\nb: 5.\nc: +1\nd: 0x1F\ne: 0o17\nf: -.5\n", `{"a":0.5,"b":5.0,"c":1,"d":31,"e":15,"f":-0.5}`},
		{"NoNumbers", "a: 1.2.3\nb: 1_a\nc: 1e\nd: '5'\ne: 2024-01-01\nf: +-1\ng: .\nh: 12:30\n", `{"a":"1.2.3","b":"1_a","c":"1e","d":"5","e":"2024-01-01","f":"+-1","g":".","h":"12:30"}`},
		{"Dates", "a: 2024-01-01\nb: 2024-01-01T10:00:00Z\nc: !!timestamp 2024-1-1\n2024-01-01: d\n", `{"a":"2024-01-01","b":"2024-01-01T10:00:00Z","c":"2024-1-1","2024-01-01":"d"}`},
		{"CoreSchema", "a: yes\nb: off\nc: True\nd: NULL\ntrue: t\n1: one\n", `{"a":"yes","b":"off","c":true,"d":null,"true":"t","1":"one"}`},
		{"Tags", "a: !!str 12\nb: !!int 3\nc: !!map {}\nd: !!str\ne: !!float 1\nf: !!seq []\ng: !<tag:yaml.org,2002:bool> true\n", `{"a":"12","b":3,"c":{},"d":"","e":1,"f":[],"g":true}`},
		{"Aliases", "a: &x {p: 1}\nb: *x\nc: [*x, &y 2, *y]\nd: &z\n  - 1\ne: *z\n", `{"a":{"p":1},"b":{"p":1},"c":[{"p":1},2,2],"d":[1],"e":[1]}`},
		{"MergeKeys", "base: &b {p: 1, q: 2}\nmore: &m {q: 3, r: 4}\na:\n  x: 0\n  <<: *b\n  q: 9\nc: {<<: [*b, *m], s: 5}\n", `{"base":{"p":1,"q":2},"more":{"q":3,"r":4},"a":{"x":0,"p":1,"q":9},"c":{"p":1,"q":2,"r":4,"s":5}}`},
		{"AnchoredKeyAndMapping", "&k key: *k\nm: &n\n  &a a: 1\no: *n\n", `{"key":"key","m":{"a":1},"o":{"a":1}}`},
		{"Comments", "# head\na: 1 # one\n# between\nb: # nothing here\n  - 2 # two\n# tail\n", `{"a":1,"b":[2]}`},
		{"Document", "# head\n%YAML 1.2\n---\na: 1\n...\n# tail\n", `{"a":1}`},
		{"QuestionMarkKey", "? a\n: b\n", `{"a":"b"}`},
		{"MergeTextIsNoMerge", "a: {\"<<\": 1, b: <<}\n", `{"a":{"<<":1,"b":"<<"}}`},
		{"MergeOfMerged", "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n", `{"a":{"x":1},"b":{"x":1,"y":2},"c":{"x":1,"y":2}}`},
		{"AnchorAgain", "a: &x 1\nb: *x\nc: &x 2\nd: *x\n", `{"a":1,"b":1,"c":2,"d":2}`},
		{"WindowsLines", "a:\r\n  b: 1\r\n  c: |\r\n    x\r\n", `{"a":{"b":1,"c":"x\n"}}`},
		{"Placeholders", "a: '{{x.outputs.y}}'\nb: \"{{x}}\"\nc: ${a.b}\n", `{"a":"{{x.outputs.y}}","b":"{{x}}","c":"${a.b}"}`},
		{"Scalar", "just text", `"just text"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root, repeated, fault := readYAML(tt.yaml, testLimits(), 1<<20)
			if fault != nil || len(repeated) > 0 {
				t.Fatalf("%v %v", fault, repeated)
			}
			if got := string(root.raw()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestReadYAMLFlaws(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, yaml string
		line, col  int32
		says       string
	}{
		{"TwoKeysOnALine", "a: b: c\n", 1, 1, "line of its own"},
		{"ListOnKeyLine", "a: - 1\n", 1, 1, "line of its key"},
		{"KeyInsideText", "a:\n  one two\n  no: key\n", 3, 3, "indentation"},
		{"BarePlaceholder", "a: {{x.y}}\n", 1, 5, "quotes"},
		{"NoEscape", "a: 1\nb: \"\\d\"\n", 2, 1, "escape"},
		{"HalfCharacters", "a: \"\\ud83d\\ude00\"\n", 1, 1, "escape"},
		{"Reserved", "a: @x\n", 1, 1, "quotes"},
		{"Dedent", "a:\n    b: 1\n  c: 2\nd: 3\n", 3, 3, "indentation"},
		{"DedentInList", "nodes:\n  - id: a\n    x: 1\n   y: 2\n  - id: b\n", 4, 4, "indentation"},
		{"DedentFarFromTheStart", "a:\n  b: 1\n  c: 2\n  d: 3\n e: 4\nf: 5\n", 5, 2, "indentation"},
		{"AfterQuotes", "a: 1\nb: 'x' y\n\n# more\nc: 2\nd: 3\n", 2, 1, "quotes"},
		{"Tab", "a:\n\tb: 1\n", 2, 1, "tab"},
		{"TabInText", "a: x\n\ty\n", 2, 1, "tab"},
		{"NoColon", "a: 1\nb\nc: 2\n", 2, 1, "colon"},
		{"UnclosedFlow", "z: 1\na: [1, 2\n", 2, 1, "closing"},
		{"UnclosedFlowOverLines", "z: 1\na: [1,\n  2\nb: 3\nc: 4\n", 2, 1, "up to 5"},
		{"UnclosedObject", "a: {b: 1\n", 1, 1, "closing"},
		{"UnclosedQuote", "z: 1\na: \"x\n", 2, 1, "never closed"},
		{"UnknownAlias", "z: 1\na: *x\n\nb: 2\n", 2, 1, "&x"},
		{"AliasOfItself", "a: &x [*x]\n", 1, 8, "*x"},
		{"AliasOfTheDocument", "&x\na: {b: [*x]}\n", 2, 9, "*x"},
		{"MergeOfItself", "a: &x {<<: *x}\n", 1, 12, "*x"},
		{"TwoDocuments", "a: 1\n---\nb: 2\n", 2, 1, "second document"},
		{"AfterTheEnd", "a: 1\n...\nb\n", 3, 1, "belong"},
		{"OnlyComments", "# nothing\n", 1, 1, "empty"},
		{"ListAsKey", "[a, b]: c\n", 1, 1, "list"},
		{"AliasedObjectAsKey", "a: &x {}\n*x : b\n", 2, 1, "*x"},
		{"NoKey", "a: 1\n: b\n", 2, 1, "belong"},
		{"NoKeyAfterQuestionMark", "a: 1\n?\n: b\n", 2, 2, "missing"},
		{"Tag", "a: !secret x\n", 1, 4, "!secret"},
		{"TagOfObject", "a: !thing {}\n", 1, 4, "!thing"},
		{"TagOfKey", "!secret a: b\n", 1, 1, "!secret"},
		{"BinaryTag", "a: !!binary aGk=\n", 1, 4, "!!binary"},
		{"TagHandle", "z: 1\na: !e!x y\nb: 1\n", 2, 1, "tag"},
		{"Directive", "%FOO\n---\na: 1\n", 1, 1, "%"},
		{"Infinity", "a: .inf\n", 1, 4, "not a number"},
		{"LeadingZero", "a: 007\n", 1, 4, "octal"},
		{"Underscores", "a: 1_000\n", 1, 4, "quotes"},
		{"Binary", "a: 0b11\n", 1, 4, "quotes"},
		{"NegativeHexadecimal", "a: -0x1F\n", 1, 4, "quotes"},
		{"HugeNumber", "a: 1e999999\n", 1, 4, "reckoned"},
		{"EscapedNUL", "a: \"x\\0\"\n", 1, 4, "NUL"},
		{"ControlCharacter", "z: 1\na: x\x01\nb: 2\n", 2, 1, "control"},
		{"MergeOfText", "a: {<<: x}\n", 1, 5, "<<"},
		{"Commas", "a: [,,]\n", 1, 1, "missing"},
		{"WrongTag", "a: !!int x\n", 1, 4, "!!int"},
		{"WrongTagOfList", "a: !!map []\n", 1, 4, "!!map"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, fault := readYAML(tt.yaml, testLimits(), 1<<20)
			if fault == nil {
				t.Fatal("no flaw")
			}
			if !wellFormed(fault.message) {
				t.Errorf("the parts of %q do not join", fault.message)
			}
			if fault.line != tt.line || fault.col != tt.col || !strings.Contains(fault.message, tt.says) {
				t.Errorf("%d:%d %s, want %d:%d %q", fault.line, fault.col, fault.message, tt.line, tt.col, tt.says)
			}
		})
	}
}

// plainJSON draws JSON values without the numbers that the two readers understand differently.
func plainJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 5
		if depth == 0 {
			most = 3
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return rapid.StringOfN(rapid.RuneFrom([]rune("ab -:#,[]{}\"'\n&*!|>%@`é中~0.")), 0, 12, -1).Draw(t, "text")
		case 1:
			return rapid.IntRange(-1000, 1000).Draw(t, "number")
		case 2:
			return rapid.Bool().Draw(t, "bool")
		case 3:
			return nil
		case 4:
			return rapid.SliceOfN(plainJSON(depth-1), 0, 4).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}( [a-z:#-]{1,3})?`), plainJSON(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

// TestReadYAMLRoundTrip writes random values with the library's encoder, in block and in flow style, and reads them back.
func TestReadYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := plainJSON(4).Draw(t, "value")
		var node yaml.Node
		if err := node.Encode(want); err != nil {
			t.Skip("the library cannot write it: ", err)
		}
		if rapid.Bool().Draw(t, "flow") {
			node.Style |= yaml.FlowStyle
		}
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(rapid.IntRange(2, 5).Draw(t, "indent"))
		if err := encoder.Encode(&node); err != nil {
			t.Skip("the library cannot write it: ", err)
		}
		text := out.Bytes()
		var theirs any
		if err := yaml.Unmarshal(text, &theirs); err != nil || !equalJSON(t, theirs, want) {
			t.Skip("the library does not read back what it wrote")
		}
		root, _, fault := readYAML(string(text), testLimits(), 1<<20)
		if fault != nil {
			t.Fatalf("%d:%d %s\n%s", fault.line, fault.col, fault.message, text)
		}
		var got any
		if err := json.Unmarshal(root.raw(), &got); err != nil {
			t.Fatal(err)
		}
		if !equalJSON(t, got, want) {
			t.Fatalf("got %s for\n%s", root.raw(), text)
		}
	})
}

// equalJSON says whether a value that was read is the one that was written. What is not JSON is not.
func equalJSON(t *rapid.T, read, written any) bool {
	x, err := json.Marshal(read)
	if err != nil {
		return false
	}
	y, err := json.Marshal(written)
	if err != nil {
		t.Fatalf("the value to write is not JSON: %v", err)
	}
	return bytes.Equal(x, y)
}
