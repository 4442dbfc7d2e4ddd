package app

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/fault"
)

// A command line is split as its writer would expect, and named after what it runs.
func TestQuickServer(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	stdio := func(id, command string, args ...string) api.MCPServer {
		return api.MCPServer{ID: id, Name: quickServerName, Transport: "stdio", Command: command, Args: append([]string{}, args...), Dir: here}
	}
	for _, c := range []struct {
		text  string
		taken []string
		want  api.MCPServer
	}{
		{"npx -y @modelcontextprotocol/server-filesystem@1.2 /srv/docs", nil,
			stdio("cli-server-filesystem", "npx", "-y", "@modelcontextprotocol/server-filesystem@1.2", "/srv/docs")},
		{"  /opt/bin/tools  'a b' \"c \\\"d\\\" \\\\\" e\\ f ''\t", nil, stdio("cli-tools", "/opt/bin/tools", "a b", `c "d" \`, "e f", "")},
		{"uv run ./mine.py", []string{"cli-mine"}, stdio("cli-mine-2", "uv", "run", "./mine.py")},
		{"node", nil, stdio("cli-node", "node")},
		{"node /opt/files/dist/index.js .", nil, stdio("cli-files", "node", "/opt/files/dist/index.js", ".")},
		{"python3 ./server.py", nil, stdio("cli-tools", "python3", "./server.py")},
		{"工具 x", nil, stdio("cli-tools", "工具", "x")},
		{"https://tools.example.com:8443/mcp", nil, api.MCPServer{ID: "cli-tools.example.com", Name: quickServerName, Transport: "http", URL: "https://tools.example.com:8443/mcp"}},
		{"./" + strings.Repeat("x", 100), nil, stdio("cli-"+strings.Repeat("x", maxStem), "./"+strings.Repeat("x", 100))},
	} {
		got, err := quickServer(c.text, c.taken)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", c.text, diff)
		}
	}
	for _, text := range []string{"", "  ", "'' x", "run 'it", `run "it`} {
		if s, err := quickServer(text, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}
