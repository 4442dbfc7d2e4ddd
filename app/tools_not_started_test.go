package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// A tool server that does not start fails its node at once, with how its process ended and what it printed, in every place where people
// look.
func TestTools_ServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.useBox(t, newToolbox(t, nil, toolDefinition{Name: "put", Schema: json.RawMessage(`{"type":"object"}`)}))
	x.save(t, toolFlow("use", `{server_id: box, tool_name: put}`))
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/box", map[string]any{
		"transport": "stdio", "command": "sh", "args": []string{"-c", "echo 'Cannot find module server.js' >&2; exit 7"},
	}), http.StatusOK)
	id := x.execute(t, "use", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	const said = "ended before it had answered, with exit status 7; it printed last: Cannot find module server.js"
	node := x.read(t, id).NodeExecutions["use"]
	if node.RetryCount != 0 || node.Error == nil || !strings.Contains(node.Error.ErrorMessage, said) || !strings.Contains(string(node.Error.ErrorDetails), `"exit":"exit status 7"`) {
		t.Errorf("the node was retried %d times: %+v", node.RetryCount, node.Error)
	}
	if lines := x.told(t, id); len(lines) != 1 || !strings.HasPrefix(lines[0], "ERROR use: the node failed: ") || !strings.Contains(lines[0], said) {
		t.Errorf("the log has %q", lines)
	}
	if a := x.call(t, "operator", "GET", "/mcp/servers/box/tools", nil); a.status < 400 || !strings.Contains(string(a.body), said) {
		t.Errorf("its tools: %d %s", a.status, a.body)
	}
}
