package node_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

type color struct {
	Name  string  `json:"name" required:"true"`
	Depth float64 `json:"depth" range:"0..1"`
}

func (c *color) Defaults() { c.Depth = 0.5 }

type shared struct {
	Retry bool `json:"retry"`
}

type config struct {
	Mode   string          `json:"mode" older:"kind,type" enum:"fast|slow"`
	Count  int64           `json:"count" range:"1..10"`
	When   node.Scalar     `json:"when"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	Fields node.Object     `json:"fields"`
	Colors []color         `json:"colors"`
	Limit  *float64        `json:"limit"`
	shared
}

func (c *config) Defaults() { c.Mode, c.Count, c.Retry = "fast", 3, true }

func TestConfiguration_Reads(t *testing.T) {
	t.Parallel()
	got, err := node.Configuration[config](json.RawMessage(`{"type": "SLOW", "count": 2.0, "when": true, "any": 12345678901234567890, "raw": [1],
		"fields": {"b": 1, "a": 2}, "colors": [{"name": "red"}, {"name": "blue", "depth": 1}], "limit": 1.5, "timeout": 5, "onError": "fail", "retry": null}`))
	if err != nil {
		t.Fatal(err)
	}
	limit := 1.5
	want := config{Mode: "slow", Count: 2, When: "true", Any: json.Number("12345678901234567890"), Raw: json.RawMessage(`[1]`), Fields: node.Object(`{"b": 1, "a": 2}`),
		Colors: []color{{"red", 0.5}, {"blue", 1}}, Limit: &limit, shared: shared{Retry: true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var keys []string
	if err := got.Fields.Each(func(key string, _ json.RawMessage) error { keys = append(keys, key); return nil }); err != nil || strings.Join(keys, "") != "ba" {
		t.Errorf("fields in the order %v, %v", keys, err)
	}
	for _, empty := range []string{``, `null`, `{}`} {
		if got, err := node.Configuration[config](json.RawMessage(empty)); err != nil || got.Count != 3 || got.Mode != "fast" {
			t.Errorf("%q: got %+v, %v", empty, got, err)
		}
	}
}

func TestConfiguration_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, part string }{
		"NoObject":        {`[]`, "must be an object"},
		"UnknownName":     {`{"cuont": 1}`, `did you mean "count"`},
		"UnlikeAny":       {`{"zzzzzzz": 1}`, "it has mode, count"},
		"WrongType":       {`{"count": "x"}`, `"count" must be a whole number from 1 to 10, not "x"`},
		"NotWhole":        {`{"count": 1.5}`, "whole number"},
		"TooSmall":        {`{"count": 0}`, "from 1 to 10"},
		"TooLarge":        {`{"count": 11}`, "from 1 to 10"},
		"NotInEnum":       {`{"mode": "medium"}`, `one of "fast", "slow"`},
		"BothSpellings":   {`{"mode": "fast", "kind": "slow"}`, "keep one"},
		"NotScalar":       {`{"when": [1]}`, `"when" must be a text`},
		"NotAnObject":     {`{"fields": 1}`, `"fields" must be an object`},
		"NotAList":        {`{"colors": {}}`, `"colors" must be a list`},
		"RequiredInside":  {`{"colors": [{"name": "a"}, {}]}`, `"colors[1].name" is required`},
		"UnknownInside":   {`{"colors": [{"name": "a", "timeout": 1}]}`, `"colors[0].timeout"`},
		"OutOfRangeInner": {`{"colors": [{"name": "a", "depth": 2}]}`, `"colors[0].depth"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := node.Configuration[config](json.RawMessage(c.config))
			if fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), c.part) {
				t.Errorf("got %v, want invalid_config with %q", err, c.part)
			}
		})
	}
}

var anInfo = node.About{Name: "TEST.KIND", Title: text.Beside("Test", "测试"), Description: text.Beside("A test.", "测试")}

type sum struct {
	Total int    `json:"total"`
	Note  string `json:"note,omitempty"`
}

func adder() node.Kind {
	return node.Define(anInfo, func(_ context.Context, _ *node.Call, cfg color, in struct {
		Terms []int `json:"terms"`
	}) (sum, error) {
		s := sum{Note: cfg.Name + "<&"}
		for _, n := range in.Terms {
			s.Total += n
		}
		if s.Total == 13 {
			panic("thirteen")
		}
		return s, nil
	})
}

func TestDefine(t *testing.T) {
	t.Parallel()
	k := adder()
	call := func(config, input string) (node.Outcome, error) {
		return k.Run(context.Background(), &node.Call{Config: json.RawMessage(config), Input: json.RawMessage(input)})
	}
	out, err := call(`{"name": "red"}`, `{"terms": [1, 2], "other": true}`)
	if got, ok := out.(node.Done); err != nil || !ok || string(got["result"]) != `{"total":3,"note":"red<&"}` {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := call(`{}`, `{}`); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `"name"`) {
		t.Errorf("a missing configuration gives %v", err)
	}
	if _, err := call(`{"name": "red"}`, `{"terms": [1, "x"]}`); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), "terms") {
		t.Errorf("a wrong input gives %v", err)
	}
	_, err = call(`{"name": "red"}`, `{"terms": [13]}`)
	if e := fault.From(err); e.Code != fault.Internal || !strings.Contains(e.Detail, "define_test.go") || strings.Contains(e.Message, "thirteen") {
		t.Errorf("a panic gives %v with the detail %q", err, e.Detail)
	}
	for name, c := range map[string]struct {
		schema json.RawMessage
		want   string
	}{
		"config": {k.ConfigSchema.JSON(), `{"type":"object","properties":{"name":{"type":"string","x-takes":["text"]},"depth":{"type":"number","minimum":0,"maximum":1,"default":0.5,"x-takes":["number"]}},"required":["name"],"additionalProperties":false}`},
		"output": {k.OutputSchema.JSON(), `{"type":"object","properties":{"total":{"type":"integer"},"note":{"type":"string"}},"required":["total"]}`},
	} {
		var got, want any
		if json.Unmarshal(c.schema, &got) != nil || json.Unmarshal([]byte(c.want), &want) != nil || cmp.Diff(want, got) != "" {
			t.Errorf("schema of the %s: %s, want %s", name, c.schema, c.want)
		}
	}
}

func TestDefine_RawInputIsNeverMissing(t *testing.T) {
	t.Parallel()
	k := node.Raw(anInfo, func(_ context.Context, _ *node.Call, _ struct{}, in json.RawMessage) (node.Outcome, error) {
		return node.Done{"seen": in}, nil
	})
	out, err := k.Run(context.Background(), &node.Call{})
	if got, ok := out.(node.Done); err != nil || !ok || string(got["seen"]) != `{}` || k.InputSchema != nil {
		t.Errorf("got %s, %v, schema %s", out, err, k.InputSchema.JSON())
	}
}

func TestLoop_ReadsConfigurationEveryTime(t *testing.T) {
	t.Parallel()
	k := node.Loop(anInfo, node.Body[color]{
		Open: func(_ context.Context, _ *node.Call, c color) (node.Opening, error) {
			return node.Opening{Count: int64(len(c.Name))}, nil
		},
		Iteration: func(_ *node.Call, c color, _ json.RawMessage, index int64) (node.Iteration, error) {
			return node.Iteration{Payload: json.RawMessage{c.Name[index]}}, nil // panics behind the end
		},
		Turn: func(_ context.Context, _ *node.Call, c color, t node.Turn) (node.Advance, error) {
			return node.Advance{Open: t.Index < int64(len(c.Name))}, nil
		},
		Close: func(_ context.Context, _ *node.Call, c color, _ node.Closing) (node.Done, error) {
			return node.Done{c.Name: nil}, nil
		},
	})
	ctx, call := context.Background(), &node.Call{Config: json.RawMessage(`{"name": "ab"}`)}
	if o, err := k.Scope.Open(ctx, call); err != nil || o.Count != 2 {
		t.Errorf("opened %+v, %v", o, err)
	}
	if it, err := k.Scope.Iteration(call, nil, 1); err != nil || string(it.Payload) != "b" {
		t.Errorf("iteration %s, %v", it.Payload, err)
	}
	if _, err := k.Scope.Iteration(call, nil, 2); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a panic gives %v", err)
	}
	if a, err := k.Scope.Turn(ctx, call, node.Turn{Index: 2}); err != nil || a.Open {
		t.Errorf("turn %+v, %v", a, err)
	}
	if d, err := k.Scope.Close(ctx, call, node.Closing{}); err != nil || len(d) != 1 {
		t.Errorf("closed %v, %v", d, err)
	}
	call.Config = json.RawMessage(`{}`)
	_, openErr := k.Scope.Open(ctx, call)
	_, iterationErr := k.Scope.Iteration(call, nil, 0)
	_, turnErr := k.Scope.Turn(ctx, call, node.Turn{})
	_, closeErr := k.Scope.Close(ctx, call, node.Closing{})
	for _, err := range []error{openErr, iterationErr, turnErr, closeErr} {
		if fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("without a name: %v", err)
		}
	}
}

// What depends on the parts of the program is said when the kind is made, and counts as if it stood in the tags: for reading, for plans,
// and in what is told of the kind.
func TestDefine_ValuesOfTheProgram(t *testing.T) {
	t.Parallel()
	type ask struct {
		Channel string `json:"channel" doc:"Where." zh:"何处。"`
		URL     string `json:"url" doc:"The address." zh:"地址。"`
	}
	about := node.About{
		Name: "TEST.ASK", Title: text.Beside("Ask", "问"), Description: text.Beside("Asks.", "提问。"),
		Values: map[string][]string{"channel": {"inbox", "pigeon"}}, Beside: map[string][]node.Condition{"url": {{Field: "channel", Values: []string{"pigeon"}}}},
	}
	k := node.Define(about, func(_ context.Context, _ *node.Call, cfg ask, _ struct{}) (map[string]any, error) {
		return map[string]any{"channel": cfg.Channel}, nil
	})
	if out, err := k.Run(t.Context(), &node.Call{Config: json.RawMessage(`{"channel":"Pigeon"}`)}); err != nil || string(out.(node.Done)["result"]) != `{"channel":"pigeon"}` {
		t.Errorf("got %v, %v", out, err)
	}
	if _, err := k.Run(t.Context(), &node.Call{Config: json.RawMessage(`{"channel":"drum"}`)}); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `"pigeon"`) {
		t.Errorf("a value that there is not: %v", err)
	}
	if schema := string(k.ConfigSchema.JSON()); !strings.Contains(schema, `"pigeon"`) {
		t.Errorf("the schema does not list the values: %s", schema)
	}
	var registry node.Registry
	registry.Register(k)
	known, _ := registry.Kind("TEST.ASK")
	_, problems := known.Plan(&workflow.Node{ID: "n", Type: "TEST", Subtype: "ASK", Configurations: json.RawMessage(`{"channel":"inbox","url":"x"}`)})
	if len(problems) != 1 || problems[0].Path != "configurations.url" || problems[0].Severity != workflow.SeverityWarning {
		t.Errorf("an address beside a channel that takes none: %+v", problems)
	}
	defer func() {
		if recover() == nil {
			t.Error("a field that there is not was taken")
		}
	}()
	about.Values = map[string][]string{"canal": {"x"}}
	node.Define(about, func(context.Context, *node.Call, ask, struct{}) (map[string]any, error) { return nil, nil })
}
