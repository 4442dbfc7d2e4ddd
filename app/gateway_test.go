package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/gateway"
	"tandem/identity"
	"tandem/server"
)

const buyingFlow = `
metadata: {id: asking, name: Asking, version: "1.0", description: Asks before it goes on.}
triggers: [start]
nodes:
  - {id: start, name: start, description: "", type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {type: object, required: [item], properties: {item: {type: string}}}}}
  - id: ask
    name: ask
    description: ""
    type: HUMAN_IN_THE_LOOP
    subtype: IN_APP_APPROVAL
    configurations: {title: "Buy a {{start.outputs.item}}?", approvers: [operator]}
connections:
  - {id: c1, from_node: start, to_node: ask}
`

// mcpSite is a site whose /mcp is served, and a way to it.
type mcpSite struct {
	*site
	web *http.Client
}

func openMCP(t *testing.T, wait time.Duration, hosts ...string) *mcpSite {
	t.Helper()
	g := &mcpSite{web: &http.Client{Transport: &http.Transport{}}}
	var served server.Gateway
	g.site = openSite(t, func(o *server.Options) {
		o.Hosts = hosts
		o.Gateway = func(h http.Handler) (server.Gateway, error) {
			served = newGateway(h, "test", wait, nil)
			return served, nil
		}
	})
	t.Cleanup(func() {
		served.Close()
		g.web.CloseIdleConnections()
	})
	g.call(t, "editor", "POST", "/workflows", buyingFlow)
	g.call(t, "editor", "POST", "/workflows/asking/deploy", nil)
	return g
}

// withToken sends everything with a user's token.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set(api.CallerHeader, "203.0.113.9") // nobody is believed who says that they are somewhere else
	return w.next.RoundTrip(r)
}

type elicitor func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

func (g *mcpSite) connect(t testing.TB, user, version string, elicit elicitor) (*mcp.ClientSession, error) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: elicit}).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: strings.TrimSuffix(g.url, "/api/v1") + "/mcp", HTTPClient: &http.Client{Transport: withToken{g.tokens[user], g.web.Transport}}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() {
			if err := session.Close(); err != nil {
				t.Logf("the session of %s ended before: %v", user, err)
			}
		})
	}
	return session, err
}

func (g *mcpSite) as(t testing.TB, user, version string, elicit elicitor) *mcp.ClientSession {
	t.Helper()
	session, err := g.connect(t, user, version, elicit)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// toolResult is the structured content of a result.
type toolResult struct {
	isError     bool
	text        string
	ExecutionID string                     `json:"execution_id"`
	Status      string                     `json:"status"`
	Answer      string                     `json:"answer"`
	Outputs     map[string]json.RawMessage `json:"outputs"`
	Questions   []struct {
		ID         string          `json:"interaction_id"`
		MayRespond bool            `json:"may_respond"`
		Warning    string          `json:"warning"`
		Arguments  json.RawMessage `json:"arguments"`
	} `json:"questions"`
	Error struct {
		Code string `json:"error_code"`
	} `json:"error"`
}

func callTool(t testing.TB, c *mcp.ClientSession, name string, arguments any) toolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out := toolResult{isError: r.IsError}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out.text += text.Text
		}
	}
	return out
}

func mcpVersions() []string { return []string{"2025-06-18", "2026-07-28"} }

// Each caller is who their token says, in every version of the protocol: what they may not do by the API they may not do here.
func TestGateway_Callers(t *testing.T) {
	t.Parallel()
	g := openMCP(t, 0)
	args := map[string]any{"item": "lamp"}
	for _, version := range mcpVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			viewer := g.as(t, "viewer", version, nil)
			if r := callTool(t, viewer, "asking", args); !r.isError || r.Error.Code != "forbidden" {
				t.Errorf("a viewer starts it: %+v", r)
			}
			// The operator is asked, not who started it.
			editor := g.as(t, "editor", version, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				t.Error("the editor was asked")
				return &mcp.ElicitResult{Action: "cancel"}, nil
			})
			r := callTool(t, editor, "asking", args)
			if r.isError || r.Status != "WAITING_FOR_HUMAN" || len(r.Questions) != 1 || r.Questions[0].MayRespond {
				t.Fatalf("the editor starts it: %+v", r)
			}
			if e := g.audited(t, "execution.start", r.ExecutionID); e.User != "editor" || e.Address != "127.0.0.1" || !strings.Contains(e.Agent, "Go-http-client") {
				t.Errorf("its start was entered as %+v", e)
			}
			answer := map[string]any{"execution_id": r.ExecutionID, "answer": map[string]any{"action": "approve"}}
			for _, user := range []string{"editor", "viewer", "admin"} {
				if r := callTool(t, g.as(t, user, version, nil), "execution_resume", answer); !r.isError || r.Error.Code != "forbidden" {
					t.Errorf("%s answers: %+v", user, r)
				}
			}
			stranger := g.as(t, "stranger", version, nil)
			list, err := stranger.ListTools(t.Context(), nil)
			if err != nil || slices.ContainsFunc(list.Tools, func(x *mcp.Tool) bool { return x.Name == "asking" }) {
				t.Errorf("the tools of another workspace: %v %v", list, err)
			}
			for _, tool := range []string{"execution_status", "execution_resume"} {
				if r := callTool(t, stranger, tool, answer); !r.isError || r.Error.Code != "not_found" {
					t.Errorf("a stranger, %s: %+v", tool, r)
				}
			}
			if got := callTool(t, g.as(t, "operator", version, nil), "execution_resume", answer); got.isError || got.Status != "SUCCESS" {
				t.Errorf("the operator answers: %+v", got)
			}
			if e := g.audited(t, "interaction.respond", r.Questions[0].ID); e.User != "operator" || e.Address != "127.0.0.1" {
				t.Errorf("the answer was entered as %+v", e)
			}
		})
	}
}

// A user who is asked answers in their client, and what they say is what the API records.
func TestGateway_Elicitation(t *testing.T) {
	t.Parallel()
	g := openMCP(t, 0)
	for _, version := range mcpVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := g.as(t, "operator", version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if !strings.Contains(r.Params.Message, "Buy a lamp?") {
					t.Errorf("it asks %q", r.Params.Message)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"action": "approve", "notes": "fine"}}, nil
			})
			r := callTool(t, c, "asking", map[string]any{"item": "lamp"})
			if r.isError || r.Status != "SUCCESS" || !strings.Contains(string(r.Outputs["ask"]), `"fine"`) || !strings.Contains(string(r.Outputs["ask"]), `"operator"`) {
				t.Errorf("%+v", r)
			}
			if r := callTool(t, c, "asking", map[string]any{}); !r.isError || r.Error.Code != "invalid_input" || !strings.Contains(r.text, "item") {
				t.Errorf("without an item: %+v", r)
			}
		})
	}
}

// A token that is taken away is of no use from then on, also in a session that is open.
func TestGateway_RevokedToken(t *testing.T) {
	t.Parallel()
	g := openMCP(t, 0)
	c := g.as(t, "operator", "2025-06-18", nil)
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := g.stores.Tokens.Delete(t.Context(), identity.System("default"), "tok_operator"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ListTools(t.Context(), nil); err == nil {
		t.Error("the session lists tools without a token that counts")
	}
	if _, err := g.connect(t, "operator", "", nil); err == nil {
		t.Error("a new session")
	}
}

// The address has the same doors as the rest of the API.
func TestGateway_Doors(t *testing.T) {
	t.Parallel()
	g := openMCP(t, 0, "127.0.0.1", "localhost")
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	send := func(method, body string, change func(*http.Request)) int {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(g.url, "/api/v1")+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		q.Header.Set("Authorization", "Bearer "+g.tokens["operator"])
		change(q)
		r, err := g.web.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	for _, c := range []struct {
		name, method, body string
		change             func(*http.Request)
		want               int
	}{
		{"Good", "POST", hello, func(*http.Request) {}, 200},
		{"NoToken", "POST", hello, func(q *http.Request) { q.Header.Del("Authorization") }, 401},
		{"WrongToken", "POST", hello, func(q *http.Request) { q.Header.Set("Authorization", "Bearer tdm_wrong") }, 401},
		{"StreamWithoutToken", "GET", "", func(q *http.Request) { q.Header.Del("Authorization") }, 401},
		{"OtherSite", "POST", hello, func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") }, 403},
		{"OtherName", "POST", hello, func(q *http.Request) { q.Host = "evil.example" }, 403},
		{"NoSession", "GET", "", func(*http.Request) {}, 400},
		{"UnknownSession", "DELETE", "", func(q *http.Request) { q.Header.Set("Mcp-Session-Id", "x") }, 404},
		{"Method", "PUT", "{}", func(*http.Request) {}, 405},
		{"Garbage", "POST", "{", func(*http.Request) {}, 400},
		{"Large", "POST", `"` + strings.Repeat("x", 11<<20) + `"`, func(*http.Request) {}, 413},
	} {
		if got := send(c.method, c.body, c.change); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// What takes longer than a call waits goes on, and a call that was given up does not end it.
func TestGateway_GoesOn(t *testing.T) {
	t.Parallel()
	g := openMCP(t, 50*time.Millisecond)
	g.call(t, "editor", "POST", "/workflows", waitingFlow)
	g.call(t, "editor", "POST", "/workflows/kid/deploy", nil)
	c := g.as(t, "operator", "", nil)
	r := callTool(t, c, "kid", map[string]any{})
	if r.isError || r.ExecutionID == "" || r.Status == "SUCCESS" || len(r.Questions) > 0 {
		t.Fatalf("%+v", r)
	}
	if got := callTool(t, c, "execution_status", map[string]any{"execution_id": r.ExecutionID}); got.isError || got.Status != r.Status {
		t.Errorf("%+v", got)
	}
}

// An agent is a tool. What it asks before a risky call reaches the user of the client, with its arguments and a warning; the client's no
// ends the task.
func TestGateway_Agent(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t, nil, cityTools()...)
			x := openTasks(t, newMind(t, []string{"box/read"}, judged("low", "high")), b)
			x.auto()
			confirm := true
			var message string
			c := inMemory(t, gateway.New(x.as(taskUser), gateway.Options{Version: "test"}), version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				message = r.Params.Message
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": confirm}}, nil
			})
			r := callTool(t, c, "agent_helper", map[string]any{"question": "do it", "metadata": map[string]any{"city": "Rome"}})
			if r.isError || r.Status != "SUCCESS" || r.Answer != "All is well." || r.text != r.Answer || len(b.made()) != 1 {
				t.Errorf("%+v; calls %q", r, b.made())
			}
			for _, part := range []string{"box/read", "high", "Warning", "Hangzhou"} {
				if !strings.Contains(message, part) {
					t.Errorf("the question %q does not say %q", message, part)
				}
			}
			confirm = false
			if r = callTool(t, c, "agent_helper", map[string]any{"question": "do it"}); !r.isError || r.Status != "CANCELED" || len(b.made()) != 1 {
				t.Errorf("refused: %+v; calls %q", r, b.made())
			}
			if _, err := x.as(taskUser).Execution(t.Context(), r.ExecutionID); err != nil {
				t.Error(err)
			}
		})
	}
}

// inMemory connects a client to a gateway without a network.
func inMemory(t *testing.T, g *gateway.Server, version string, elicit elicitor) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- g.Serve(context.WithoutCancel(t.Context()), there) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: elicit}).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		g.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return session
}

// What a call of a tool costs beside the same execution started by the API and waited for.
func BenchmarkGateway(b *testing.B) {
	g := &mcpSite{web: &http.Client{Transport: &http.Transport{}}}
	var served server.Gateway
	g.site = openSite(b, func(o *server.Options) {
		o.Gateway = func(h http.Handler) (server.Gateway, error) {
			served = newGateway(h, "test", 0, nil)
			return served, nil
		}
	})
	b.Cleanup(func() {
		served.Close()
		g.web.CloseIdleConnections()
	})
	g.call(b, "editor", "POST", "/workflows", `
metadata: {id: short, name: Short, version: "1.0"}
triggers: [start]
nodes:
  - {id: start, name: start, description: "", type: TRIGGER, subtype: MANUAL}
  - {id: end, name: end, description: "", type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {id: c1, from_node: start, to_node: end}
`)
	g.call(b, "editor", "POST", "/workflows/short/deploy", nil)
	b.Run("API", func(b *testing.B) {
		for b.Loop() {
			if a := g.call(b, "operator", "POST", "/workflows/short/execute", map[string]any{"inputs": map[string]any{"n": 1}, "wait_seconds": 10}); a.status != http.StatusOK {
				b.Fatalf("%d %s", a.status, a.body)
			}
		}
	})
	for _, version := range mcpVersions() {
		b.Run(version, func(b *testing.B) {
			c := g.as(b, "operator", version, nil)
			for b.Loop() {
				if r := callTool(b, c, "short", map[string]any{"n": 1}); r.isError || r.Status != "SUCCESS" {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}
