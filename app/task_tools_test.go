package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/store"
)

// toolsAt is what a process that this test binary is a tool server in finds in its environment: where the test tells it what its
// tools are and what they do.
const toolsAt = "TANDEM_TEST_TOOLS_AT"

// toolDefinition is a tool as the test wants it.
type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	// Output is the schema of what it returns, if it declares one.
	Output      json.RawMessage `json:"output,omitempty"`
	ReadOnly    bool            `json:"read_only,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
	Destructive bool            `json:"destructive,omitempty"`
	// Unclassed leaves all of this unsaid.
	Unclassed bool `json:"unclassed,omitempty"`
}

// toolCall is a call as the server's process heard it.
type toolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	PID       int             `json:"pid"`
}

// toolReply is what the process is to do.
type toolReply struct {
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Failed     bool            `json:"failed,omitempty"`
	// Die lets the process end without an answer.
	Die bool `json:"die,omitempty"`
}

// toolsEcho stands for that place where nobody is asked: the server has one tool, which says what it is told.
const toolsEcho = "echo"

// serveTools is the tool server: a process that speaks MCP on its standard input and output.
func serveTools(at string) error {
	if at == toolsEcho {
		server := sdk.NewServer(&sdk.Implementation{Name: "test-tools", Version: "1"}, nil)
		server.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
			})
		return server.Run(context.Background(), &sdk.StdioTransport{})
	}
	var tools []toolDefinition
	if err := toolsPost(at+"/tools", nil, &tools); err != nil {
		return err
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "test-tools", Version: "1"}, nil)
	for _, d := range tools {
		destructive := d.Destructive
		if len(d.Schema) == 0 {
			d.Schema = json.RawMessage(`{"type":"object"}`)
		}
		annotations := &sdk.ToolAnnotations{ReadOnlyHint: d.ReadOnly, IdempotentHint: d.Idempotent, DestructiveHint: &destructive}
		if d.Unclassed {
			annotations = nil
		}
		tool := &sdk.Tool{Name: d.Name, Description: d.Description, InputSchema: d.Schema, Annotations: annotations}
		if len(d.Output) > 0 {
			tool.OutputSchema = d.Output
		}
		server.AddTool(tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var reply toolReply
			if err := toolsPost(at+"/call", toolCall{r.Params.Name, r.Params.Arguments, os.Getpid()}, &reply); err != nil {
				return nil, err
			}
			if reply.Die {
				os.Exit(3)
			}
			out := &sdk.CallToolResult{IsError: reply.Failed}
			if reply.Text != "" {
				out.Content = []sdk.Content{&sdk.TextContent{Text: reply.Text}}
			}
			if len(reply.Structured) > 0 {
				out.StructuredContent = reply.Structured
			}
			return out, nil
		})
	}
	return server.Run(context.Background(), &sdk.StdioTransport{})
}

func toolsPost(url string, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.Post(url, "application/json", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(out)
}

// toolbox tells a tool server what it is, and keeps what it was asked.
type toolbox struct {
	*httptest.Server
	mu    sync.Mutex
	tools []toolDefinition
	calls []toolCall
	// do answers a call; gone is closed when the process has left. Nil: everything is well.
	do func(c toolCall, gone <-chan struct{}) toolReply
}

func newToolbox(t testing.TB, do func(toolCall, <-chan struct{}) toolReply, tools ...toolDefinition) *toolbox {
	b := &toolbox{tools: tools, do: do}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Log("tell a tool server:", err) // its process is gone
		}
	}
	mux.HandleFunc("POST /tools", func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		answer(w, b.tools)
	})
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, r *http.Request) {
		var c toolCall
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.mu.Lock()
		b.calls = append(b.calls, c)
		do := b.do
		b.mu.Unlock()
		reply := toolReply{Text: `{"done":true}`}
		if do != nil {
			reply = do(c, r.Context().Done())
		}
		answer(w, reply)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

// change replaces the tools; processes that run know nothing of it.
func (b *toolbox) change(tools ...toolDefinition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = tools
}

// made lists the calls so far: the tool and its arguments.
func (b *toolbox) made() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, c := range b.calls {
		list = append(list, c.Tool+" "+string(c.Arguments))
	}
	return list
}

// pids are the processes that were asked.
func (b *toolbox) pids() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []int
	for _, c := range b.calls {
		if !slices.Contains(list, c.PID) {
			list = append(list, c.PID)
		}
	}
	return list
}

// server is the tool server as it is registered: this binary, over standard input and output.
func (b *toolbox) server(t testing.TB, id string) store.MCPServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return store.MCPServer{
		ID: id, Name: id, Transport: store.MCPStdio, Command: self, Enabled: true,
		Env: map[string]store.MCPValue{toolsAt: {Text: b.URL}},
	}
}
