package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/importer"
	"tandem/workflow"
)

// The credentials of the world.
const (
	modelKey  = "fake-model"
	searchKey = "fake-search"
)

// equip keeps what every run may need: credentials of the fakes.
func (w *world) equip(ctx context.Context) error {
	for name, one := range map[string]struct{ typ, data string }{
		modelKey:  {"openai", `{"api_key":"none-is-needed"}`},
		searchKey: {"search", `{"provider":"searxng","base_url":"` + w.service.URL + `"}`},
	} {
		if _, err := w.client.CreateCredential(ctx, api.CredentialRequest{Name: name, Type: one.typ,
			Data: json.RawMessage(one.data)}); err != nil {
			return fmt.Errorf("keep the credential %s: %w", name, err)
		}
	}
	return nil
}

// provide makes what a workflow names: profiles of models, tool servers and other workflows.
func (w *world) provide(ctx context.Context, imported *importer.Workflow, def *workflow.Definition) error {
	for _, name := range imported.Report.Profiles {
		profile := fmt.Sprintf(`{"provider":"openai","model":"m","embedding_model":"e","base_url":"%s/v1","credential_id":%q}`, w.service.URL, modelKey)
		if _, err := w.client.PutProfile(ctx, name, json.RawMessage(profile)); err != nil {
			return fmt.Errorf("the profile %s: %w", name, err)
		}
	}
	tools := map[string][]string{}
	for _, n := range def.Nodes {
		config := gjson.ParseBytes(n.Configurations)
		switch n.Kind() {
		case "TOOL.MCP_TOOL":
			server := config.Get("server_id").Str
			tools[server] = append(tools[server], cmp.Or(config.Get("tool_name").Str, "look_up"))
		case "FLOW.SUB_WORKFLOW":
			id := config.Get("workflow_id").Str
			if strings.Contains(id, "{{") {
				continue // it starts itself
			}
			other := `{"metadata":{"id":"` + id + `","name":"other","description":"Another workflow."},"nodes":[{"id":"start","description":"Begins.","type":"TRIGGER","subtype":"MANUAL"}]}`
			if _, err := w.client.KeepWorkflow(ctx, id, []byte(other), false); err != nil {
				return fmt.Errorf("the workflow %s: %w", id, err)
			}
			if _, err := w.client.Deploy(ctx, id); err != nil {
				return fmt.Errorf("the workflow %s: %w", id, err)
			}
		}
	}
	for server, names := range tools { // order does not matter: each is kept under its own id
		slices.Sort(names)
		address := w.service.URL + "/mcp?tools=" + strings.Join(slices.Compact(names), ",")
		if _, err := w.client.PutMCPServer(ctx, api.MCPServer{ID: server, Transport: "http", URL: address}); err != nil {
			return fmt.Errorf("the tool server %s: %w", server, err)
		}
		if _, err := w.client.ActivateMCPServer(ctx, server, api.MCPActivate{}); err != nil {
			return fmt.Errorf("the tool server %s: %w", server, err)
		}
	}
	return nil
}

// toolServer is a tool server whose tools are named in its address, and answer "one".
func toolServer() http.Handler {
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
		for name := range strings.SplitSeq(r.URL.Query().Get("tools"), ",") {
			tool := &sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}
			s.AddTool(tool, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "one"}}}, nil
			})
		}
		return s
	}, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// completion is the answer of a model: "one", or a value of the shape that was asked for.
func completion(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	asked := gjson.ParseBytes(body)
	said := "one"
	if schema := asked.Get("response_format.json_schema.schema"); schema.Exists() {
		said = fits(schema, 0)
	} else if asked.Get("response_format.type").Str == "json_object" {
		said = "{}"
	}
	content, err := json.Marshal(said)
	if err != nil {
		content = []byte(`""`) // texts can be written
	}
	const usage = `"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`
	answer, kind := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":`+string(content)+`},"finish_reason":"stop"}],`+usage+`}`, "application/json"
	if asked.Get("stream").Bool() {
		const head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
		answer = head + `{"index":0,"delta":{"role":"assistant","content":` + string(content) + `}}]}` + "\n\n" + head + `{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + head + `],` + usage + "}\n\ndata: [DONE]\n\n"
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	if _, err := io.WriteString(w, answer); err != nil {
		return // the client has gone
	}
}

// fits is a value that has the shape of a schema, as JSON.
func fits(schema gjson.Result, depth int) string {
	if first := schema.Get("enum.0"); first.Exists() {
		return first.Raw
	}
	typ := schema.Get("type")
	if typ.IsArray() {
		typ = typ.Get("0")
	}
	switch {
	case typ.Str == "object" || schema.Get("properties").Exists():
		fields := []string{}
		schema.Get("properties").ForEach(func(name, one gjson.Result) bool {
			if depth < 8 {
				fields = append(fields, name.Raw+":"+fits(one, depth+1))
			}
			return true
		})
		return "{" + strings.Join(fields, ",") + "}"
	case typ.Str == "array":
		if items := schema.Get("items"); items.IsObject() && depth < 8 {
			return "[" + fits(items, depth+1) + "]"
		}
		return "[]"
	case typ.Str == "number" || typ.Str == "integer":
		return "1"
	case typ.Str == "boolean":
		return "true"
	case typ.Str == "null":
		return "null"
	}
	return `"one"`
}
