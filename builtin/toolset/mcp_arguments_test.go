package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"tandem/builtin/toolset"
	"tandem/fault"
	"tandem/mcp"
	"tandem/node"
)

// use is a tool with a required argument and an optional one, which answers with its arguments.
func (w *toolWorld) use() {
	w.server.AddTool(&sdk.Tool{
		Name: "use", InputSchema: json.RawMessage(`{"type":"object","properties":{"datasource_id":{"type":"integer"},"rows":{"type":"integer"},"tool_name":{"type":"string"}},"required":["datasource_id"]}`),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		w.calls.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "got " + string(r.Params.Arguments)}}}, nil
	})
}

// sends runs a call of the tool and checks its arguments.
func (w *toolWorld) sends(t *testing.T, ctx context.Context, c *node.Call, args string) {
	t.Helper()
	out, err := w.kind.Run(ctx, c)
	done, ok := out.(node.Done)
	if got := gjson.GetBytes(done["result"], "result.message").Str; err != nil || !ok || got != "got "+args {
		t.Errorf("%s %s: %s, %v; want %s", c.Config, c.Input, done["result"], err, args)
	}
}

// A node that stands alone takes the arguments that function_args does not name from its input, and says what the tool lacks before it is
// called.
func TestMCPTool_Arguments(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.use()
	w.activate(t)
	for _, c := range []struct {
		config, input string
		sent          string
		code          fault.Code
		missing, says string
	}{
		{config: `{"server_id":"s","tool_name":"use"}`, input: `{"datasource_id":42,"other":1}`, sent: `{"datasource_id":42}`},
		{config: `{"server_id":"s"}`, input: `{"tool_name":"use","datasource_id":42,"rows":null}`, sent: `{"datasource_id":42}`},
		{config: `{"server_id":"s","tool_name":"use","function_args":{"datasource_id":7}}`, input: `{"datasource_id":42,"rows":3}`, sent: `{"datasource_id":7,"rows":3}`},
		{config: `{"server_id":"s","tool_name":"use"}`, input: `{"function_args":{"datasource_id":7}}`, sent: `{"datasource_id":7}`},
		{config: `{"server_id":"s","tool_name":"use"}`, input: `{"other":1}`, code: fault.ParameterMissing, missing: "[datasource_id]", says: "datasource_id"},
		{config: `{"server_id":"s","tool_name":"use","function_args":{"datasource":7}}`, input: `{}`, code: fault.ParameterMissing, missing: "[datasource_id]", says: `did you mean "datasource_id"?`},
		{config: `{"server_id":"s","tool_name":"use"}`, input: `{"datasource_id":"x"}`, code: fault.InvalidInput, missing: "<nil>", says: "datasource_id"},
		{config: `{"server_id":"s","tool_name":"use","function_args":{"datasource_id":1,"rows":"many"}}`, input: `{}`, code: fault.InvalidInput, missing: "<nil>", says: "rows"},
	} {
		before, call := w.calls.Load(), w.call(t, c.config, c.input)
		if c.sent != "" {
			w.sends(t, t.Context(), call, c.sent)
			continue
		}
		w.fails(t, w.call(t, c.config, c.input), c.code, c.says)
		_, err := w.kind.Run(t.Context(), call)
		if got := fmt.Sprint(fault.From(err).Details["missing_fields"]); got != c.missing || w.calls.Load() != before {
			t.Errorf("%s %s: missing %s, called %d times", c.config, c.input, got, w.calls.Load()-before)
		}
	}
	// What a model wants is called with exactly what it says.
	byModel := toolset.WithModelCall(t.Context(), toolset.ModelCall{Asks: func(mcp.Decision) bool { return false }})
	w.sends(t, byModel, w.call(t, `{"server_id":"s","tool_name":"use"}`, `{"function_args":{"datasource_id":1},"rows":9}`), `{"datasource_id":1}`)
}

// The arguments that a node lacks are what a filling looks for: those of the tool that function_args does not name.
func TestMCPTool_Wants(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.use()
	call := w.call(t, `{"server_id":"s","tool_name":"use","function_args":{"rows":1}}`, `{}`)
	if schema, err := w.kind.Wants(t.Context(), call); err != nil || schema != nil {
		t.Errorf("a server that nobody has activated wants %s, %v", schema, err)
	}
	w.activate(t)
	schema, err := w.kind.Wants(t.Context(), call)
	const want = `{"properties":{"datasource_id":{"type":"integer"},"tool_name":{"type":"string"}},"required":["datasource_id"],"type":"object"}`
	if err != nil || string(schema) != want {
		t.Errorf("it wants %s, %v", schema, err)
	}
}
