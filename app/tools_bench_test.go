package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/mcp"
	"tandem/store"
)

// A call of a tool of a process on this machine, in turns: by the SDK alone; through the product's pool, which looks up the server, the
// user's activation and the pin in SQLite; and as a node of a workflow, recorded before and after, with all that an execution is. What
// counts are the ratios to the first.
func BenchmarkToolCall(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), toolsAt+"="+toolsEcho)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			b.Error(err)
		}
	}()
	i, err := Open(b.Context(), Options{Dir: b.TempDir(), CodeCache: codeCache()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			b.Error(err)
		}
	}()
	who := Local()
	if _, err := i.Bootstrap(b.Context(), ""); err != nil {
		b.Fatal(err)
	}
	if err := i.stores.MCPServers.Put(b.Context(), who, store.MCPServer{
		ID: "box", Transport: store.MCPStdio, Command: self, Enabled: true, Env: map[string]store.MCPValue{toolsAt: {Text: toolsEcho}},
	}); err != nil {
		b.Fatal(err)
	}
	if _, err := i.tools.Activate(b.Context(), who, "box", mcp.Activation{}); err != nil {
		b.Fatal(err)
	}
	source, problems := i.check([]byte(`
metadata: {id: call, name: call, description: one call}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: call, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: echo, function_args: {text: hi}}}
connections:
  - {from_node: start, to_node: call}
`))
	if source == nil {
		b.Fatal(problems)
	}
	if _, err := i.Save(b.Context(), who, source.Definition); err != nil {
		b.Fatal(err)
	}
	ways := []struct {
		name string
		do   func() error
	}{
		{"sdk", func() error {
			_, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}})
			return err
		}},
		{"pool", func() error {
			_, err := i.tools.Call(b.Context(), who, mcp.Call{Server: "box", Tool: "echo", Arguments: json.RawMessage(`{"text":"hi"}`)})
			return err
		}},
		{"node", func() error {
			id, err := i.Start(b.Context(), who, "call", nil)
			if err != nil {
				return err
			}
			_, err = i.Wait(b.Context(), who, id)
			return err
		}},
	}
	took := make([]time.Duration, len(ways))
	for b.Loop() {
		for w := range ways {
			begun := time.Now()
			if err := ways[w].do(); err != nil {
				b.Fatal(ways[w].name, err)
			}
			took[w] += time.Since(begun)
		}
	}
	for w, way := range ways {
		b.ReportMetric(float64(took[w].Microseconds())/float64(b.N), way.name+"-µs/op")
		b.ReportMetric(float64(took[w])/float64(took[0]), way.name+"-ratio")
	}
}
