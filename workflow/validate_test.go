package workflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	def := func(lines ...string) *Definition { return graphOf(lines...) }
	with := func(d *Definition, change func(d *Definition)) *Definition {
		change(d)
		return d
	}
	input := func(d *Definition, node int, text string) *Definition {
		d.Nodes[node].InputParams = json.RawMessage(text)
		return d
	}
	tests := []struct {
		name string
		def  *Definition
		want []string
		says string
	}{
		{"Sound", def("start: TRIGGER.MANUAL", "start --> a", "a --> b"), []string{}, ""},
		{"NoNode", &Definition{}, []string{"no_nodes nodes"}, "add at least one"},
		{"EmptyID", with(def("a --> b", "c: CALL.EMPTY"), func(d *Definition) { d.Nodes[2].ID = ""; d.Nodes[2].Name = "" }), []string{"empty_id nodes[2].id"}, "unique"},
		{"DuplicateNodeID", with(def("a --> b", "c: CALL.EMPTY"), func(d *Definition) { d.Nodes[2].ID = "a" }), []string{"duplicate_id nodes[2].id"}, "nodes[0]"},
		{"DuplicateConnectionID", with(def("a --> b", "b --> c"), func(d *Definition) { d.Connections[1].ID = "a-result-b" }), []string{"duplicate_id connections[1].id"}, ""},
		{"EmptyConnectionID", with(def("a --> b"), func(d *Definition) { d.Connections[0].ID = "" }), []string{"empty_id connections[0].id"}, ""},
		{"DuplicateName", with(def("a --> b"), func(d *Definition) { d.Nodes[0].Name = "x"; d.Nodes[1].Name = "x" }), []string{"duplicate_name nodes[1].name"}, `"a"`},
		{"NameIsAnotherID", with(def("a --> b"), func(d *Definition) { d.Nodes[0].Name = "b"; d.Nodes[1].Name = "c" }), []string{"duplicate_name nodes[0].name"}, "id of another node"},
		{"SpacedName", with(def("a --> b"), func(d *Definition) { d.Nodes[0].Name = "my node" }), []string{"invalid_name nodes[0].name"}, `"my_node"`},
		{"NoDescription", with(def("a --> b"), func(d *Definition) { d.Nodes[1].Description = "" }), []string{"no_description nodes[1].description"}, ""},
		{"UnknownType", def("a: ACTOIN.HTTP_REQUEST"), []string{"unknown_kind nodes[0].type"}, `"ACTION"`},
		{"UnknownSubtype", def("a: ACTION.HTTP_REQEST"), []string{"unknown_kind nodes[0].subtype"}, `"HTTP_REQUEST"`},
		{"FarSubtype", def("a: ACTION.ZZZZZZ"), []string{"unknown_kind nodes[0].subtype"}, "use one of: HTTP_REQUEST, RUN_CODE"},
		{"NoType", def("a: ."), []string{"unknown_kind nodes[0].type"}, "no type"},
		{"NoSubtype", def("a: ACTION."), []string{"unknown_kind nodes[0].subtype"}, "no subtype"},
		{"MissingTarget", with(def("first --> second"), func(d *Definition) { d.Connections[0].ToNode = "secnod" }), []string{"unknown_node connections[0].to_node"}, `"second"`},
		{"MissingSourceByName", with(def("a --> b"), func(d *Definition) { d.Nodes[0].Name = "Fetch"; d.Connections[0].FromNode = "Fetch" }), []string{"unknown_node connections[0].from_node"}, `the id of the node with this name, "a"`},
		{"NoTarget", with(def("a --> b"), func(d *Definition) { d.Connections[0].ToNode = "" }), []string{"unknown_node connections[0].to_node"}, "give the id"},
		{"UnknownKey", def("a: FLOW.IF", "a -ture-> b"), []string{"unknown_output_key connections[0].output_key"}, `"true"`},
		{"ErrorKeyNeedsContinue", def("a -error-> b"), []string{"unknown_output_key connections[0].output_key"}, "on_error: continue"},
		{"ErrorKey", def(`a: CALL.EMPTY {"on_error":"continue"}`, "a -error-> b"), []string{}, ""},
		{"AnyKey", def("a: FLOW.SWITCH", "a -whatever-> b"), []string{}, ""},
		{"AliasOfKey", def("a -success-> b", "a -main-> c"), []string{}, ""},
		{"AttachedToAction", with(def("a: ACTION.RUN_CODE", "t: TOOL.MCP_TOOL"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"t"} }), []string{"attached_to_non_agent nodes[0].attached_nodes"}, ""},
		{"AttachedMissing", with(def("a: AI_AGENT.LLM", "tool: TOOL.MCP_TOOL"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"tol"} }), []string{"unknown_node nodes[0].attached_nodes[0]"}, `"tool"`},
		{"AttachedKind", with(def("a: AI_AGENT.LLM", "b: CALL.EMPTY"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"b"} }), []string{"attached_kind nodes[0].attached_nodes[0]"}, ""},
		{"AttachedTwice", with(def("a: AI_AGENT.LLM", "b: TOOL.MCP_TOOL"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"b", "b"} }), []string{"duplicate_id nodes[0].attached_nodes[1]"}, ""},
		{"AttachedConnected", with(def("a: AI_AGENT.LLM", "b: TOOL.MCP_TOOL", "a --> b"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"b"} }), []string{"attached_connected connections[0].to_node"}, ""},
		{"AttachedSource", with(def("a: AI_AGENT.LLM", "b: TOOL.MCP_TOOL", "b --> a"), func(d *Definition) { d.Nodes[0].AttachedNodes = []string{"b"} }), []string{"attached_connected connections[0].from_node"}, ""},
		{"MissingTrigger", with(def("start: TRIGGER.MANUAL"), func(d *Definition) { d.Triggers = []string{"strat"} }), []string{"unknown_node triggers[0]"}, `"start"`},
		{"NoTrigger", with(def("a: CALL.EMPTY"), func(d *Definition) { d.Triggers = []string{"a"} }), []string{"not_a_trigger triggers[0]"}, ""},
		{"TestsAreSound", with(def("a --> b"), func(d *Definition) {
			d.Tests = []Test{{Name: "x", Node: "b", Pinned: json.RawMessage(`{"a":{"result":1}}`), Expect: Expectation{Outputs: json.RawMessage(`{"b":{"result":1}}`)}}, {Name: "y", Expect: Expectation{Status: "ERROR", ErrorCode: "timeout"}}}
		}), []string{}, ""},
		{"TestOfNoNode", with(def("first --> second"), func(d *Definition) {
			d.Tests = []Test{{Name: "x", From: "secnd", Pinned: json.RawMessage(`{"frist":{"result":1}}`), Expect: Expectation{Outputs: json.RawMessage(`{"third":{}}`)}}}
		}), []string{"unknown_node tests[0].from", "unknown_node tests[0].pinned.frist", "unknown_node tests[0].expect.outputs.third"}, `"second"`},
		{"TestWithoutName", with(def("a --> b"), func(d *Definition) { d.Tests = []Test{{}, {Name: "x"}, {Name: "x"}} }), []string{"invalid_name tests[0].name", "duplicate_name tests[2].name"}, "in a few words"},
		{"TestOfBoth", with(def("a --> b"), func(d *Definition) { d.Tests = []Test{{Name: "x", Node: "a", From: "b"}} }), []string{"invalid_test tests[0].from"}, "leave one out"},
		{"TestPinsWhatRuns", with(def("a --> b"), func(d *Definition) {
			d.Tests = []Test{{Name: "x", Node: "b", Pinned: json.RawMessage(`{"a":{},"b":{"result":1}}`)}}
		}), []string{"invalid_test tests[0].pinned.a", "invalid_test tests[0].pinned.b"}, "at least one output"},
		{"TestEndsOddly", with(def("a --> b"), func(d *Definition) {
			d.Tests = []Test{{Name: "x", Expect: Expectation{Status: "SUCESS"}}, {Name: "y", Expect: Expectation{Status: "SUCCESS", ErrorCode: "timeout"}}}
		}), []string{"invalid_test tests[0].expect.status", "invalid_test tests[1].expect.error_code"}, `"SUCCESS"`},
		{"KindConfiguration", def(`a: CALL.EMPTY {"bad":true}`), []string{"invalid_config nodes[0].configurations.bad"}, ""},
		{"RawNoObject", with(def("a --> b"), func(d *Definition) { d.Nodes[0].OutputParams = json.RawMessage(`[1`) }), []string{"wrong_type nodes[0].output_params"}, ""},
		{"Expression", def(`a: FLOW.IF {"condition_expression":"((("}`), []string{"invalid_expression nodes[0].configurations.condition_expression"}, "bad source"},
		{"ExpressionConversion", with(def("a --> b"), func(d *Definition) { d.Connections[0].ConversionFunction = "(((" }), []string{"invalid_conversion connections[0].conversion_function"}, "expression"},
		{"PythonConversion", with(def("a --> b"), func(d *Definition) { d.Connections[0].ConversionFunction = "def f(x): SyntaxError" }), []string{"invalid_conversion connections[0].conversion_function"}, "python"},
		{"GoodConversion", with(def("a --> b"), func(d *Definition) { d.Connections[0].ConversionFunction = "x => x + '((('" }), []string{}, ""},
		{"Unreachable", def("start: TRIGGER.MANUAL", "start --> a", "b --> c"), []string{"unreachable nodes[2]", "unreachable nodes[3]"}, "connect it"},
		{"UnnamedTrigger", with(def("s: TRIGGER.MANUAL", "u: TRIGGER.CRON", "s --> a", "u --> a"), func(d *Definition) { d.Triggers = []string{"s"} }), []string{"unreachable nodes[1]"}, "triggers"},
		{"LooseTool", def("s: TRIGGER.MANUAL", "t: TOOL.MCP_TOOL"), []string{"unreachable nodes[1]"}, "attached_nodes"},
		{"NegativeTimeout", with(def("a --> b"), func(d *Definition) { d.Metadata.Settings.TimeoutSeconds = -1 }), []string{"invalid_settings metadata.settings.timeout_seconds"}, ""},
		{"TooManyActivations", with(def("a --> b"), func(d *Definition) { d.Metadata.Settings.MaxConcurrentActivations = 1e6 }), []string{"invalid_settings metadata.settings.max_concurrent_activations"}, ""},
		{"OnUnresolved", with(def("a --> b"), func(d *Definition) { d.Metadata.Settings.OnUnresolved = "kep" }), []string{"invalid_settings metadata.settings.on_unresolved"}, `"keep"`},
		{"SameName", with(def("s --> a", "s --> b"), func(d *Definition) {
			d.Nodes[1].OutputParams = json.RawMessage(`{"total":"number"}`)
			d.Nodes[2].OutputParams = json.RawMessage(`{"total":"number"}`)
		}), []string{"ambiguous_name nodes[2].output_params.total"}, `"a" and "b"`},
		{"SameNameInOrder", with(def("s --> a", "a --> b"), func(d *Definition) {
			d.Nodes[1].OutputParams = json.RawMessage(`{"total":"number"}`)
			d.Nodes[2].OutputParams = json.RawMessage(`{"total":"number"}`)
		}), []string{}, ""},
		{"SameNameAroundLoop", with(def("l: FLOW.LOOP", "l -iteration-> x", "x --> l", "l -completed-> y"), func(d *Definition) {
			d.Nodes[1].OutputParams = json.RawMessage(`{"total":"number"}`)
			d.Nodes[2].OutputParams = json.RawMessage(`{"total":"number"}`)
		}), []string{}, ""},
		{"SameNameInLoop", with(def("l: FLOW.LOOP", "l -iteration-> x", "l -iteration-> y"), func(d *Definition) {
			d.Nodes[1].OutputParams = json.RawMessage(`{"total":"number"}`)
			d.Nodes[2].OutputParams = json.RawMessage(`{"total":"number"}`)
		}), []string{"ambiguous_name nodes[2].output_params.total"}, ""},
		{"UnknownReference", input(def("fetch --> b"), 1, `{"x":["{{fecth.outputs.y}}"]}`), []string{"unknown_reference nodes[1].input_params.x[0]"}, `"fetch"`},
		{"UncertainReference", input(def("fetch --> b"), 1, `{"x":"{{fecth.y}} {{z}}"}`), []string{}, ""},
		{"ReferenceByName", input(with(def("a --> b"), func(d *Definition) { d.Nodes[0].Name = "Fetch" }), 1, `{"x":"{{Fetch.outputs.y}}"}`), []string{}, ""},
		{"ReferenceToLater", input(def("a --> b"), 0, `{"x":"{{b.outputs.y}}"}`), []string{"reference_not_before nodes[0].input_params.x"}, `"b"`},
		{"ReferenceToLaterField", input(def("a --> b"), 0, `{"x":"{{b.y}}"}`), []string{"reference_not_before nodes[0].input_params.x"}, ""},
		{"ReferenceToItself", input(def("a --> b"), 0, `{"x":"{{a.outputs.y}}"}`), []string{"reference_not_before nodes[0].input_params.x"}, ""},
		{"ReferenceToSibling", input(def("s --> a", "s --> b"), 2, `{"x":"{{a.outputs.y}}"}`), []string{"reference_not_before nodes[2].input_params.x"}, ""},
		{"ReferenceThroughJoin", input(def("s --> a", "s --> b", "a --> j", "b --> j", "j --> z"), 4, `{"x":"{{a.outputs.y}} {{s.outputs.y}}"}`), []string{}, ""},
		{"ReferenceIntoLoop", input(def("l: FLOW.LOOP", "l -iteration-> x", "x --> l", "l -completed-> y"), 2, `{"x":"{{x.outputs.y}}"}`), []string{}, ""},
		{"ReferenceOutOfLoop", input(def("l: FLOW.LOOP", "l -iteration-> x", "x --> l", "l -completed-> y"), 1, `{"x":"{{y.outputs.y}} {{l.outputs.z}}"}`), []string{"reference_not_before nodes[1].input_params.x"}, ""},
		{"ReferenceToEarlierIteration", input(def("l: FLOW.LOOP", "l -iteration-> x", "x --> y", "y --> l"), 1, `{"x":"{{y.outputs.y}} {{x.outputs.z}}"}`), []string{}, ""},
		{"EverythingAtOnce", with(def("a: FLOW.IFF", "b: FLOW.IF", "b -yes-> c", "c --> nowhere", "x --> x"), func(d *Definition) {
			d.Connections[1].ToNode = "nowher3"
			d.Nodes[1].Name = "two words"
			d.Metadata.Settings.OnUnresolved = "x"
			d.Triggers = []string{"b"}
		}), []string{
			"invalid_settings metadata.settings.on_unresolved", "unknown_kind nodes[0].subtype", "invalid_name nodes[1].name",
			"unknown_output_key connections[0].output_key", "unknown_node connections[1].to_node", "cycle connections[2]", "not_a_trigger triggers[0]",
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			problems := Validate(tt.def, testRules())
			if diff := cmp.Diff(tt.want, codesAndPaths(problems)); diff != "" {
				t.Fatalf("%s\n%v", diff, problems)
			}
			if len(problems) > 0 && !strings.Contains(problems[0].Message, tt.says) {
				t.Errorf("message %q does not say %q", problems[0].Message, tt.says)
			}
			for _, p := range problems {
				if !wellFormed(p.Message) {
					t.Errorf("the parts of %q do not join", p.Message)
				}
				warning := p.Code == ProblemNoDescription || p.Code == ProblemUnreachable || p.Code == ProblemAmbiguousName ||
					p.Code == ProblemUnknownReference || p.Code == ProblemNotBefore
				if (p.Severity == SeverityWarning) != warning {
					t.Errorf("%s is %s", p.Code, p.Severity)
				}
			}
		})
	}
}

// wellFormed tells whether the parts of a message were put together without a seam.
func wellFormed(message string) bool {
	for _, seam := range []string{"?;", "; ;", ";;", "  ", "%!"} {
		if strings.Contains(message, seam) {
			return false
		}
	}
	return message != "" && message == strings.Trim(message, " ;,:")
}

func TestValidateRemedies(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, code, want string }{
		{"NearField", `{"metadata":{"settings":{"timeout_second":1}}}`, ProblemUnknownField,
			`settings has no field "timeout_second"; did you mean "timeout_seconds"?`},
		{"FarField", `{"nodes":[{"position":{"height":1}}]}`, ProblemUnknownField,
			`a position has no field "height"; remove it or use one of: x, y`},
		{"NearKey", `{"nodes":[{"id":"a","type":"FLOW","subtype":"IF"}],"connections":[{"from_node":"a","to_node":"a","output_key":"ture"}]}`, ProblemUnknownKey,
			`"a" (FLOW.IF) does not produce the key "ture"; did you mean "true"? It produces true, false`},
		{"FarKey", `{"nodes":[{"id":"a","type":"FLOW","subtype":"IF"}],"connections":[{"from_node":"a","to_node":"a","output_key":"maybe"}]}`, ProblemUnknownKey,
			`"a" (FLOW.IF) does not produce the key "maybe"; it produces true, false`},
		{"NearNode", `{"nodes":[{"id":"fetch"}],"connections":[{"from_node":"fetch","to_node":"fecth"}]}`, ProblemUnknownNode,
			`no node has the id "fecth"; did you mean "fetch"?`},
		{"FarNode", `{"nodes":[{"id":"fetch"}],"triggers":["zz"]}`, ProblemUnknownNode,
			`no node has the id "zz"; add the node, or give the id of one that is there`},
		{"NodeByName", `{"nodes":[{"id":"n1","name":"Fetch"}],"triggers":["Fetch"]}`, ProblemUnknownNode,
			`no node has the id "Fetch"; use the id of the node with this name, "n1"`},
		{"NearType", `{"nodes":[{"id":"a","type":"FLOWW","subtype":"IF"}]}`, ProblemUnknownKind,
			`no type is called "FLOWW"; did you mean "FLOW"?`},
		{"FarSetting", `{"metadata":{"settings":{"on_unresolved":"explode"}},"nodes":[]}`, ProblemSettings,
			`on_unresolved cannot be "explode"; use one of: error, keep, null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, problems := Parse([]byte(tt.text), Options{Kinds: newKinds()})
			if s == nil {
				t.Fatal(problems)
			}
			for _, p := range s.Validate(testRules()) {
				if p.Code == tt.code {
					if p.Message != tt.want {
						t.Errorf("got  %s\nwant %s", p.Message, tt.want)
					}
					return
				}
			}
			t.Errorf("no problem %s", tt.code)
		})
	}
}

// TestValidateManyProblems sees that what is wrong very often is counted, and that warnings do not crowd out errors.
func TestValidateManyProblems(t *testing.T) {
	t.Parallel()
	t.Run("AreCounted", func(t *testing.T) {
		t.Parallel()
		var text strings.Builder
		text.WriteString(`{"nodes":[]`)
		for i := range 5000 {
			fmt.Fprintf(&text, `,"f%d":1`, i)
		}
		text.WriteString("}")
		_, problems := Parse([]byte(text.String()), Options{})
		if len(problems) != problemsPerCode+1 {
			t.Fatalf("%d problems", len(problems))
		}
		if last := problems[problemsPerCode].Message; !strings.Contains(last, "and 3999 more") {
			t.Errorf("the last one is %q", last)
		}
	})
	t.Run("ErrorAfterWarnings", func(t *testing.T) {
		t.Parallel()
		var list problemList
		for range 2 * problemsPerCode {
			list.report(warningAt("odd", "nodes[0]", "odd"))
		}
		list.report(errorAt("odd", "nodes[1]", "wrong"))
		if !HasErrors(list.ordered()) {
			t.Error("the error is lost")
		}
	})
}

func TestValidateWithoutChecks(t *testing.T) {
	t.Parallel()
	def := graphOf(`a: FLOW.IF {"condition_expression":"((("}`, "a -true-> b")
	def.Connections[0].ConversionFunction = "((("
	def.Nodes[1].InputParams = json.RawMessage(`{"x":"{{c.outputs.y}}"}`)
	if problems := Validate(def, Rules{Kinds: newKinds()}); len(problems) > 0 {
		t.Errorf("checks without a function report %v", problems)
	}
}

func TestValidateBoundsReport(t *testing.T) {
	t.Parallel()
	def := &Definition{}
	for i := range 5000 {
		def.Nodes = append(def.Nodes, Node{ID: fmt.Sprint("n", i), Type: "NOPE", Subtype: "X", Description: "d"})
	}
	problems := Validate(def, testRules())
	if len(problems) != problemsPerCode+1 {
		t.Fatalf("%d problems", len(problems))
	}
	if last := problems[len(problems)-1]; !strings.Contains(last.Message, "3999 more") {
		t.Errorf("the last says %q", last.Message)
	}
}

func TestValidateShielded(t *testing.T) {
	t.Parallel()
	kinds := newKinds()
	kinds.kinds["ACTION.RUN_CODE"] = Kind{Name: "ACTION.RUN_CODE", Plan: func(*Node) (Plan, []Problem) {
		return Plan{Shielded: []string{"configurations.code", "nested"}}, nil
	}}
	def := graphOf(`a: ACTION.RUN_CODE {"code":"{{x.outputs.y}}","nested":{"a":["{{x.outputs.y}}"]},"codes":"{{x.outputs.y}}"}`)
	rules := testRules()
	rules.Kinds = kinds
	if diff := cmp.Diff([]string{"unknown_reference nodes[0].configurations.codes"}, codesAndPaths(Validate(def, rules))); diff != "" {
		t.Error(diff)
	}
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]Language{
		"def convert(x):\n    return x":                    LanguagePython,
		"import json\n\nasync def convert(x):\n  return x": LanguagePython,
		"lambda x: x['a']":                                 LanguagePython,
		"(lambda x: x)":                                    LanguagePython,
		"x => x.a":                                         LanguageJavaScript,
		"(a, b) => ({a})":                                  LanguageJavaScript,
		"async x => x":                                     LanguageJavaScript,
		"function f(x) { return x }":                       LanguageJavaScript,
		"// don't worry\nfunction f(x) { return x }":       LanguageJavaScript,
		"/* don't\nworry */ (x) => 1":                      LanguageJavaScript,
		"const k = 2\nfunction f(x) { return k }":          LanguageJavaScript,
		"(x) /* it's */ => 1":                              LanguageJavaScript,
		"# it's one\nlambda x: 1":                          LanguagePython,
		"any(list, x => x.ok) // it's => none":             LanguageExpression,
		"(function(x) { return x })":                       LanguageJavaScript,
		"((x) => x)":                                       LanguageJavaScript,
		"any(list, x => x.a > 1)":                          LanguageExpression,
		"value.a + '=>'":                                   LanguageExpression,
		"default.x":                                        LanguageExpression,
		"defx":                                             LanguageExpression,
		"functional.x":                                     LanguageExpression,
		strings.Repeat("(", 10_000):                        LanguageExpression,
		"":                                                 LanguageExpression,
	} {
		if got := LanguageOf(source); got != want {
			t.Errorf("%s is %s, want %s", shortened(source), got, want)
		}
	}
}
