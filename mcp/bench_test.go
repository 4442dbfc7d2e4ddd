package mcp

import (
	"os"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// One call of a tool of a process: by the SDK alone, and through the pool, which reads rows, compares the pin and keeps the exact answer.
func BenchmarkCall(b *testing.B) {
	b.Run("SDK", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "TANDEM_TEST_SERVER=plain")
		session, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}}); err != nil {
				b.Fatal(err)
			}
		}
		if err := session.Close(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("Pool", func(b *testing.B) {
		w := setup(b)
		w.own(b, "s", "plain")
		w.activate(b, "s")
		for b.Loop() {
			w.must(b, "s", "echo", `{"text":"hi"}`)
		}
	})
}
