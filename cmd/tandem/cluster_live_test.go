package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
)

// speakFlow lets a model speak, and then does something that takes as long as the service wants; toolFlow uses a tool of a server.
const (
	speakFlow = `
metadata: {id: speak, name: speak, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: say, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: speaker, stream: true, user_prompt: hello}}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/slow/live", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: say}
  - {id: c2, from_node: say, to_node: post}
`
	speakerProfile = `
id: speaker
name: speaker
provider: openai
model: speaker
base_url: SERVICE/v1
`
	toolFlow = `
metadata: {id: tool, name: tool, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: use, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: look}}
connections:
  - {id: c1, from_node: begin, to_node: use}
`
)

// speak answers as a model does: with one word after the other, as the test says.
func (i *installation) speak(t *testing.T, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta map[string]any, finish any) {
		raw, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "speaker",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		w.(http.Flusher).Flush()
	}
	say(map[string]any{"role": "assistant"}, nil)
	i.asked <- struct{}{}
	for {
		select {
		case word := <-i.words:
			if word == "" {
				say(map[string]any{}, "stop")
				fmt.Fprint(w, "data: [DONE]\n\n")
				return
			}
			say(map[string]any{"content": word}, nil)
		case <-t.Context().Done():
			return
		}
	}
}

// listener reads a stream and puts together what a model has said.
type listener struct {
	name   string
	events <-chan told
	text   string
}

// hears reads until all of a text was told, while the node that says it goes on. No part of it comes twice or too early.
func (l *listener) hears(t *testing.T, text string) {
	t.Helper()
	if l.text == text {
		return
	}
	wait(t, l.events, func(e told) bool {
		var update api.ExecutionUpdate
		if err := json.Unmarshal(e.event.Data, &update); err != nil {
			t.Fatal(err)
		}
		if e.name == "execution_completed" || e.name == "node_completed" && update.NodeID == "say" {
			t.Fatalf("%s: %s came before %q was told; told was %q", l.name, e.name, text, l.text)
		}
		if e.name != "node_output_update" {
			return false
		}
		if p := update.PartialOutput; p.Snapshot {
			l.text = p.Text
		} else if p.Offset != int64(len(l.text)) {
			t.Fatalf("%s: a piece is told from %d on, after %d bytes", l.name, p.Offset, len(l.text))
		} else {
			l.text += p.Text
		}
		return l.text == text
	})
}

// testLive: readers at either server, by either kind of stream, hear what a model says on a worker while it speaks, also who comes in the midst of it. Who
// comes when it has ended hears it from the journal alone.
func (i *installation) testLive(t *testing.T) {
	i.t = t
	e, err := i.clients[1].Execute(t.Context(), "speak", api.ExecuteRequest{}, "live")
	if err != nil {
		t.Fatal(err)
	}
	<-i.asked
	var streams []*listener
	for _, name := range servers {
		url := "http://" + i.addresses[name]
		streams = append(streams, &listener{name: "events of " + name, events: readEvents(t, t.Context(), url, e.ExecutionID)},
			&listener{name: "WebSocket of " + name, events: readMessages(t, url, e.ExecutionID)})
	}
	said := ""
	for n, words := range []string{"Once upon a time ", "there was a queue, ", strings.Repeat("很长的队伍，", 5000), "and that was all."} {
		i.words <- words // the next is said when all have heard this
		said += words
		for _, s := range streams {
			s.hears(t, said)
		}
		if n == 0 {
			for _, name := range servers { // they are told what was said before they came
				streams = append(streams, &listener{name: "later events of " + name, events: readEvents(t, t.Context(), "http://"+i.addresses[name], e.ExecutionID)})
			}
		}
	}
	i.words <- ""
	<-i.slow // the next node runs
	for _, name := range servers {
		s := &listener{name: "last events of " + name, events: readEvents(t, t.Context(), "http://"+i.addresses[name], e.ExecutionID)}
		wait(t, s.events, named("node_completed"))
		streams = append(streams, s)
	}
	i.release <- struct{}{}
	for _, s := range streams {
		for _, e := range wait(t, s.events, named("execution_completed")) {
			if e.name == "node_output_update" {
				t.Errorf("%s: output is told after its end: %s", s.name, e.event.Data)
			}
		}
	}
	i.succeed(e.ExecutionID)
}

// toolServer is a tool server that notes which keys it is shown.
type toolServer struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string
}

func newToolServer(t *testing.T) *toolServer {
	inner := sdk.NewServer(&sdk.Implementation{Name: "box", Version: "1"}, nil)
	s := &toolServer{}
	sdk.AddTool(inner, &sdk.Tool{Name: "look", Description: "looks"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		s.mu.Lock()
		s.keys = append(s.keys, r.Extra.Header.Get("X-Key"))
		s.mu.Unlock()
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "seen"}}}, nil, nil
	})
	s.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return inner }, &sdk.StreamableHTTPOptions{JSONResponse: true}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// testChangedCredential: a credential that was changed at a server is used by the next call on a worker that has a connection with the old one, and none is
// made with one that was deleted.
func (i *installation) testChangedCredential(t *testing.T) {
	i.t = t
	i.kill(workers[1]) // so that it is one worker that has the connection
	defer i.start(workers[1])
	ctx, c, box := t.Context(), i.clients[1], newToolServer(t)
	data := func(key string) json.RawMessage { return json.RawMessage(`{"api_key":"` + key + `"}`) }
	kept, err := c.CreateCredential(ctx, api.CredentialRequest{Name: "box", Type: "openai", Data: data("key-before-4711")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutMCPServer(ctx, api.MCPServer{ID: "box", Transport: "http", URL: box.URL,
		Headers: map[string]json.RawMessage{"X-Key": json.RawMessage(`{"credential_id":"` + kept.ID + `","field":"api_key"}`)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ActivateMCPServer(ctx, "box", api.MCPActivate{}); err != nil {
		t.Fatal(err)
	}
	run := func(n string) api.Execution {
		e, err := c.Execute(ctx, "tool", api.ExecuteRequest{}, "credential-"+n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.follow(ctx, e.ExecutionID, 0); err != nil {
			t.Fatal(err)
		}
		done, err := c.Execution(ctx, e.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	for _, n := range []string{"1", "2"} {
		if e := run(n); e.Status != "SUCCESS" {
			t.Fatalf("%s is %s: %v", e.ExecutionID, e.Status, e.Error)
		}
	}
	if _, err := c.UpdateCredential(ctx, kept.ID, api.CredentialRequest{Name: "box", Type: "openai", Data: data("key-after-4712")}, true); err != nil {
		t.Fatal(err)
	}
	if e := run("3"); e.Status != "SUCCESS" {
		t.Errorf("%s is %s: %v", e.ExecutionID, e.Status, e.Error)
	}
	if err := c.DeleteCredential(ctx, kept.ID, true); err != nil {
		t.Fatal(err)
	}
	if e := run("4"); e.Status != "ERROR" || !strings.Contains(fmt.Sprint(e.Error), "credential") {
		t.Errorf("without the credential %s is %s: %v", e.ExecutionID, e.Status, e.Error)
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if !slices.Equal(box.keys, []string{"key-before-4711", "key-before-4711", "key-after-4712"}) {
		t.Errorf("the server was shown %v", box.keys)
	}
}
