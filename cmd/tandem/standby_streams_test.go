package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tandem/api"
	"tandem/client"
)

// speaking is a workflow that says something while it runs, and goes on for long.
const speaking = `
metadata: {id: speaking, name: speaking, description: d}
nodes:
  - id: work
    description: d
    type: ACTION
    subtype: RUN_CODE
    configurations: {time_limit_ms: 120000, code: "import time\ndef main(d):\n  print('begun')\n  time.sleep(100)"}
`

// told is one event of a stream, by whichever way it came.
type told struct {
	id, name string
	event    api.Event
}

// readEvents follows an execution by server-sent events, by one connection, and hands over what is told until it ends.
func readEvents(t *testing.T, ctx context.Context, url, id string) <-chan told {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/executions/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer a-configured-token")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", response, err)
	}
	out := make(chan told, 100)
	go func() { // it ends with the answer
		defer close(out)
		defer response.Body.Close()
		var e told
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.event); err != nil {
					t.Error(err)
				}
				out <- e
				e = told{}
			}
		}
	}()
	return out
}

// readMessages is readEvents by a WebSocket. It must be closed by the server because the execution has ended.
func readMessages(t *testing.T, url, id string) <-chan told {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http:", "ws:", 1)+"/api/v1/executions/"+id+"/stream",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer a-configured-token"}}, Subprotocols: []string{"tandem"}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	out := make(chan told, 100)
	go func() { // it ends with the connection
		defer close(out)
		for {
			_, body, err := conn.Read(context.WithoutCancel(t.Context()))
			if err != nil {
				if status := websocket.CloseStatus(err); status != websocket.StatusNormalClosure {
					t.Errorf("the WebSocket ended with %v: %v", status, err)
				}
				return
			}
			var e told
			if err := json.Unmarshal(body, &e.event); err != nil {
				t.Error(err)
			}
			if e.name = e.event.EventType; e.name != "" { // the first is about the subscription
				out <- e
			}
		}
	}()
	return out
}

// wait reads until an event, and returns what came, with that.
func wait(t *testing.T, events <-chan told, is func(told) bool) (list []told) {
	t.Helper()
	for e := range events {
		list = append(list, e)
		if is(e) {
			return list
		}
	}
	t.Fatalf("the stream ended after %+v", list)
	return nil
}

func named(name string) func(told) bool { return func(e told) bool { return e.name == name } }

// A reader of the second server hears of output while the first makes it. When the first is killed, the same connection goes on: nothing is missing, and
// nothing comes twice.
func TestServe_StreamsOutliveTheOwner(t *testing.T) {
	t.Parallel()
	servers := startPair(t, map[string]string{"kid": waiting, "speaking": speaking})
	c, err := client.New(client.Options{URL: servers.url, Token: "a-configured-token"})
	if err != nil {
		t.Fatal(err)
	}
	start := func(workflow string) string {
		e, err := c.Execute(t.Context(), workflow, api.ExecuteRequest{}, "")
		if err != nil {
			t.Fatal(err)
		}
		return e.ExecutionID
	}
	loud := start("speaking")
	hearing, leave := context.WithCancel(t.Context())
	defer leave()
	wait(t, readEvents(t, hearing, servers.url, loud), func(e told) bool {
		return e.name == "node_output_update" && strings.Contains(string(e.event.Data), "begun")
	})
	if _, err := c.Act(t.Context(), loud, api.ActionRequest{Action: "cancel"}); err != nil {
		t.Fatal(err)
	}

	id := start("kid")
	streams := map[string]<-chan told{"SSE": readEvents(t, t.Context(), servers.url, id), "WebSocket": readMessages(t, servers.url, id)}
	before := map[string][]told{}
	for name, s := range streams {
		before[name] = wait(t, s, named("node_started"))
	}
	servers.kill(t)
	servers.said("Every operation: ")
	if _, err := c.Input(t.Context(), id, api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{"by":"ann"}`)}); err != nil {
		t.Fatal(err)
	}
	again := wait(t, readEvents(t, t.Context(), servers.url, id), named("execution_completed"))
	for name, s := range streams {
		list := append(before[name], wait(t, s, named("execution_completed"))...)
		if more, open := <-s; open {
			t.Errorf("%s: after the end: %+v", name, more)
		}
		if len(list) != len(again) {
			t.Errorf("%s: %d events, of %d", name, len(list), len(again))
			continue
		}
		for i, e := range list {
			if e.name != again[i].name || e.event.Seq != again[i].event.Seq {
				t.Errorf("%s: event %d is %s of row %d, and afterwards %s of row %d", name, i, e.name, e.event.Seq, again[i].name, again[i].event.Seq)
			}
		}
	}
}
