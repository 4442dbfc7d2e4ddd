package toolset

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/workflow"
)

type bellConfig struct {
	Fields
	Tower string `json:"tower" doc:"The tower." zh:"钟楼：所在的钟楼。"`
}

func (c *bellConfig) Defaults() { c.Approval, c.Tower = "inherit", "north" }

type ringArgs struct {
	Times int `json:"times" required:"true" range:"1..12" doc:"How often."`
}

// bells is a set of a tool that may be repeated and one that must not.
func bells() node.Kind {
	return Define(node.About{
		Name: "TOOL.BELLS", Title: node.Says("Bells", "钟"), Description: node.Says("Rings.", "敲钟。"),
		Examples: []node.Example{{Shows: node.Says("Rings.", "敲钟。"), Config: `{"tool_name":"look"}`, Input: `{"function_args":{"times":1}}`, Output: `{"result":{}}`}},
	}, func(_ *node.Call, cfg bellConfig) []Tool {
		ring := New("ring", workflow.Once, "Rings the bells of "+cfg.Tower+".", func(_ context.Context, args ringArgs) (any, error) {
			if args.Times == 12 {
				return nil, ForModel(fault.New(fault.InvalidInput, "it is not noon").With("path", "times"))
			}
			return map[string]any{"rung": args.Times}, nil
		})
		return []Tool{
			New("look", Reads, "Looks at the bells.", func(context.Context, struct{}) (any, error) { return map[string]any{"tower": cfg.Tower}, nil }),
			WithFind(ring, func(_ context.Context, args ringArgs) (any, bool, error) {
				return map[string]any{"rung": args.Times}, args.Times == 3, nil
			}),
		}
	})
}

// TestDefine_Alone: a node that stands alone runs the tool that it names, tells which call it was, and asks first if it is to.
func TestDefine_Alone(t *testing.T) {
	t.Parallel()
	k := bells()
	nodetest.Conform(t, nodetest.Of(k))
	run := func(config, input string) (gjson.Result, error) {
		out, err := k.Run(t.Context(), nodetest.NewCall(t, config, input))
		if err != nil {
			return gjson.Result{}, err
		}
		if wait, ok := out.(node.Wait); ok {
			return gjson.ParseBytes(wait.Ask.Request), nil
		}
		return gjson.ParseBytes(out.(node.Done)["result"]), nil
	}
	const config = `"tool_name":"ring","function_args":{"times":3},"context":{"a":1},"call_id":"c7"`
	if got, err := run("{"+config+"}", ``); err != nil || got.Get("result.rung").Int() != 3 || got.Get("context.a").Int() != 1 || got.Get("call_id").Str != "c7" || !got.Get("success").Bool() {
		t.Errorf("%s: %v", got.Raw, err)
	}
	if got, err := run(`{"tower":"south"}`, `{"tool_name":"look"}`); err != nil || got.Get("result.tower").Str != "south" {
		t.Errorf("%s: %v", got.Raw, err)
	}
	if got, err := run(`{"tool_prefix":"my_","available_tools":["ring"],"tool_name":"my_ring"}`, `{"function_args":{"times":2}}`); err != nil || got.Get("result.rung").Int() != 2 {
		t.Errorf("%s: %v", got.Raw, err)
	}
	if got, err := run("{"+config+`,"approval":"always"}`, ``); err != nil || got.Get("tool").Str != "ring" || got.Get("arguments.times").Int() != 3 {
		t.Errorf("it does not ask: %s, %v", got.Raw, err)
	}
	for input, part := range map[string]string{
		`{"tool_name":"rong"}`: `did you mean "ring"`, `{"tool_name":"ring","function_args":{"times":13}}`: "times", `{"tool_name":"ring","function_args":{"times":12}}`: "it is not noon",
	} {
		if _, err := run(`{}`, input); fault.CodeOf(err) != fault.ToolError || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// TestDefine_Classes: a node may be repeated if its tools may be.
func TestDefine_Classes(t *testing.T) {
	t.Parallel()
	r := &node.Registry{}
	r.Register(bells())
	known, _ := r.Kind("TOOL.BELLS")
	for config, want := range map[string]workflow.Effect{
		`{}`: workflow.Once, `{"available_tools":["look"]}`: workflow.Idempotent, `{"available_tools":["look","ring"]}`: workflow.Once, `{"tool_name":"look"}`: workflow.Idempotent,
		`{"tool_prefix":"a_","tool_name":"a_look"}`: workflow.Idempotent, `{"tool_name":"ring"}`: workflow.Once, `{"tool_name":"{{t}}"}`: workflow.Once, `{"available_tools":["{{t}}"]}`: workflow.Once,
	} {
		p, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: "TOOL", Subtype: "BELLS", Configurations: json.RawMessage(config)})
		if p.Effect != want {
			t.Errorf("%s is %s, want %s", config, p.Effect, want)
		}
	}
}

// TestDefine_Inquire: of a tool that can be found the service is asked what became of a call.
func TestDefine_Inquire(t *testing.T) {
	t.Parallel()
	k := bells()
	ask := func(input string) (node.Outcome, error) {
		return k.Inquire(t.Context(), nodetest.NewCall(t, `{"call_id":"c7"}`, input))
	}
	out, err := ask(`{"tool_name":"ring","function_args":{"times":3}}`)
	if err != nil || out == nil {
		t.Fatalf("it is there: %v, %v", out, err)
	}
	if got := gjson.ParseBytes(out.(node.Done)["result"]); got.Get("result.rung").Int() != 3 || got.Get("call_id").Str != "c7" || !got.Get("success").Bool() {
		t.Errorf("found %s", got.Raw)
	}
	if out, err := ask(`{"tool_name":"ring","function_args":{"times":2}}`); out != nil || err != nil {
		t.Errorf("it is not there: %v, %v", out, err)
	}
	if _, err := ask(`{"tool_name":"look"}`); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what cannot be asked about: %v", err)
	}
}
