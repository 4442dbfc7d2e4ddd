package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/llmtest"
)

// sent is what the service is sent for a request.
func sent(t *testing.T, r llm.Request) (map[string]any, []string) {
	t.Helper()
	p, bodies := setup(t, llmtest.Says(200, done))
	c, err := p.Complete(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bodies()[0], c.Warnings
}

func num(v float64) *float64 { return &v }

func TestTranslate_Parameters(t *testing.T) {
	t.Parallel()
	k := int64(5)
	for name, c := range map[string]struct {
		model    string
		params   llm.Params
		want     string // of everything but model and messages
		warnings int
	}{
		"Defaults":            {"claude-sonnet-4-5", llm.Params{}, `{"max_tokens":8192}`, 0},
		"TemperatureWins":     {"claude-sonnet-4-5", llm.Params{Temperature: num(0.7), TopP: num(0.9), TopK: &k}, `{"max_tokens":8192,"temperature":0.7,"top_k":5}`, 1},
		"TopPAlone":           {"claude-sonnet-4-5", llm.Params{TopP: num(0.9), MaxTokens: 10}, `{"max_tokens":10,"top_p":0.9}`, 0},
		"TooHot":              {"claude-3-5-haiku-20241022", llm.Params{Temperature: num(1.5)}, `{"max_tokens":8192,"temperature":1}`, 1},
		"NoSampling":          {"claude-opus-4-7", llm.Params{Temperature: num(0.7), TopP: num(0.9), TopK: &k}, `{"max_tokens":8192}`, 3},
		"NoSamplingLater":     {"claude-haiku-5-5", llm.Params{Temperature: num(0)}, `{"max_tokens":8192}`, 1},
		"UnknownModel":        {"my-model", llm.Params{Temperature: num(0.7), ReasoningEffort: "low"}, `{"max_tokens":8192,"temperature":0.7,"output_config":{"effort":"low"}}`, 0},
		"Foreign":             {"claude-sonnet-4-5", llm.Params{FrequencyPenalty: num(1), PresencePenalty: num(0), Safety: json.RawMessage(`{}`), Stop: []string{" ", "END"}}, `{"max_tokens":8192,"stop_sequences":["END"]}`, 3},
		"Budget":              {"claude-sonnet-4-5", llm.Params{ThinkingBudget: 4096, Temperature: num(0.7), TopP: num(0.9), TopK: &k}, `{"max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":4096}}`, 3},
		"BudgetTooSmall":      {"claude-sonnet-4-5", llm.Params{ThinkingBudget: 5}, `{"max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":1024}}`, 1},
		"BudgetTooLarge":      {"claude-opus-4-6", llm.Params{ThinkingBudget: 9000, MaxTokens: 6000}, `{"max_tokens":6000,"thinking":{"type":"enabled","budget_tokens":3000}}`, 1},
		"NoRoomForBudget":     {"claude-sonnet-4-5", llm.Params{ThinkingBudget: 4096, MaxTokens: 1000}, `{"max_tokens":1000}`, 1},
		"BudgetNotTaken":      {"claude-opus-5", llm.Params{ThinkingBudget: 4096}, `{"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized"}}`, 1},
		"Effort":              {"claude-opus-4-5-20251101", llm.Params{ReasoningEffort: "high"}, `{"max_tokens":8192,"output_config":{"effort":"high"}}`, 0},
		"EffortNotTaken":      {"claude-sonnet-4-5", llm.Params{ReasoningEffort: "high"}, `{"max_tokens":8192}`, 1},
		"EffortNotTakenOlder": {"claude-opus-4-20250514", llm.Params{ReasoningEffort: "high"}, `{"max_tokens":8192}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(c.model)
			r.Params = c.params
			body, warnings := sent(t, r)
			delete(body, "model")
			delete(body, "messages")
			checkJSON(t, body, c.want)
			if len(warnings) != c.warnings {
				t.Errorf("there are warnings %q, want %d", warnings, c.warnings)
			}
		})
	}
}

func TestTranslate_ForcedToolsDoNotThink(t *testing.T) {
	t.Parallel()
	r := ask("claude-sonnet-4-5")
	r.Tools, r.ToolChoice, r.OneTool, r.ThinkingBudget = []llm.Tool{{Name: "find"}}, "find", true, 4096
	body, warnings := sent(t, r)
	if body["thinking"] != nil || len(warnings) != 1 {
		t.Errorf("thinking is %v, warnings %q", body["thinking"], warnings)
	}
	checkJSON(t, body["tool_choice"], `{"type":"tool","name":"find","disable_parallel_tool_use":true}`)
}

func TestTranslate_Schema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ model, schema, native string }{
		"Closes": {"claude-sonnet-4-5", `{"type":"object","properties":{"a":{"type":"string","minLength":3,"format":"date"},"b":{"type":"array","items":{"$ref":"#/$defs/x"},"minItems":4}},"required":["a"],"$defs":{"x":{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","format":"date"},"b":{"type":"array","items":{"$ref":"#/$defs/x"}}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}}}`},
		"TurnsOneOf":   {"claude-opus-5", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"null"}]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`},
		"OldModel":     {"claude-3-7-sonnet-20250219", `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		"UnknownModel": {"my-model", `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		"Recursive":    {"claude-opus-5", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}}}`, ""},
		"OpenMap":      {"claude-opus-5", `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, ""},
		"Anything":     {"claude-opus-5", `{"type":"object","properties":{"a":{}}}`, ""},
		"AnyObject":    {"claude-opus-5", `{"type":"object"}`, ""},
		"AnyList":      {"claude-opus-5", `{"type":"object","properties":{"a":{"type":"array"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(c.model)
			r.Messages = append([]llm.Message{{Role: llm.System, Content: "Be kind."}}, r.Messages...)
			r.Schema = &llm.Schema{Name: "s", JSON: json.RawMessage(c.schema)}
			body, warnings := sent(t, r)
			if len(warnings) > 0 {
				t.Errorf("there are warnings %q", warnings)
			}
			system := body["system"].([]any)[0].(map[string]any)["text"].(string)
			if c.native != "" {
				checkJSON(t, body["output_config"], `{"format":{"type":"json_schema","schema":`+c.native+`}}`)
				if system != "Be kind." {
					t.Errorf("the model was told %q", system)
				}
				return
			}
			if body["output_config"] != nil || !strings.HasPrefix(system, "Be kind.\n\n") || !strings.HasSuffix(system, c.schema) {
				t.Errorf("it was asked for %v, told %q", body["output_config"], system)
			}
		})
	}
	r := ask("claude-opus-5")
	r.JSON = true
	if body, _ := sent(t, r); !strings.Contains(body["system"].([]any)[0].(map[string]any)["text"].(string), "JSON object") {
		t.Errorf("the model was told %v", body["system"])
	}
}

func TestTranslate_Conversation(t *testing.T) {
	t.Parallel()
	r := ask("claude-sonnet-4-5")
	r.Messages = []llm.Message{
		{Role: llm.User, Content: "one"}, {Role: llm.User, Content: "  "}, {Role: llm.User, Content: "two"},
		{Role: llm.Assistant}, {Role: llm.Assistant, Content: "so", Opaque: &llm.Opaque{Provider: "another", Data: json.RawMessage(`[{"thought":{}}]`)}},
		{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "call:1/ü", Name: "find", Arguments: `{"a": oops`}, {ID: "call_2", Name: "size"}}},
		{Role: llm.ToolRole, ToolCallID: "call:1/ü", Failed: true}, {Role: llm.ToolRole, ToolCallID: "call_2"}, {Role: llm.User, Content: "and?"},
	}
	body, warnings := sent(t, r)
	id := toolID("call:1/ü")
	checkJSON(t, body["messages"], `[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},`+
		`{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"`+id+`","name":"find","input":{"malformed_arguments":"{\"a\": oops"}},{"type":"tool_use","id":"call_2","name":"size","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","is_error":true,"content":[{"type":"text","text":"The tool failed and said nothing."}]},{"type":"tool_result","tool_use_id":"call_2"},{"type":"text","text":"and?"}]}]`)
	// The service refuses calls of tools that it is not told of.
	checkJSON(t, body["tools"], `[{"name":"find","input_schema":{"type":"object"}},{"name":"size","input_schema":{"type":"object"}}]`)
	checkJSON(t, body["tool_choice"], `{"type":"none"}`)
	if len(warnings) > 0 {
		t.Errorf("there are warnings %q", warnings)
	}
}

func TestInputSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema, want string
		cut          int
	}{
		"None":          {``, `{"type":"object","properties":{}}`, 0},
		"AddsType":      {`{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, 0},
		"FollowsRoot":   {`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"next":{"$ref":"#/$defs/x"}}}}}`, `{"type":"object","properties":{"next":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"object","properties":{"next":{"$ref":"#/$defs/x"}}}}}`, 0},
		"CutsRootAnyOf": {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}},"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`, 1},
		"CutsCircles":   {`{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}`, `{"type":"object","$defs":{"x":{"$ref":"#/$defs/x"}}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, cut, err := inputSchema(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			var plain any
			if err := json.Unmarshal(got, &plain); err != nil {
				t.Fatal(err)
			}
			checkJSON(t, plain, c.want)
			if len(cut) != c.cut {
				t.Errorf("it cut %q, want %d", cut, c.cut)
			}
		})
	}
	for _, schema := range []string{`null`, `[]`, `{"type":"string"}`, `{`} {
		r := ask("claude-sonnet-4-5")
		r.Tools = []llm.Tool{{Name: "bad", Parameters: json.RawMessage(schema)}}
		if _, _, err := translate(r); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("%s: %v, want invalid_config naming the tool", schema, err)
		}
	}
}
