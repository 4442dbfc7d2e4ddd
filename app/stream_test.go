package app

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
)

// heard is one event of a stream; output while it is made has no id.
type heard struct{ ID, Name, Data string }

// follow reads an execution's events until the answer ends or enough says so.
func (x *site) follow(t *testing.T, user, path, last string, enough func(heard) bool) (list []heard, status int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, x.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+x.tokens[user])
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	var e heard
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			e.Data = value
		case "":
			if e.Name != "" {
				list = append(list, e)
				if enough != nil && enough(e) {
					return list, response.StatusCode
				}
			}
			e = heard{}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list, response.StatusCode
}

const parcels = `
metadata: {id: parcels, name: Parcels, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 2}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.01}}
  - {id: note, description: d, type: CALL, subtype: EMPTY, input_params: {n: "{{item}}"}, configurations: {pass_through: true}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: nap, output_key: iteration}
  - {from_node: nap, to_node: note}
  - {from_node: note, to_node: each}
  - {from_node: each, to_node: out, output_key: completed}
`

// What is told while an execution runs is what is told of it ever after, from wherever a reader goes on.
func TestStream_Executions(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, parcels)
	id := x.execute(t, "parcels", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[1,2,3,4,5,6,7,8]}`)})
	for _, words := range []string{"execution", "flow"} {
		path := "/executions/" + id + "/events?vocabulary=" + words
		live, _ := x.follow(t, "viewer", path, "", nil) // the first of the two runs along
		again, _ := x.follow(t, "viewer", path, "", nil)
		if diff := cmp.Diff(live, again); diff != "" || len(live) < 30 {
			t.Fatalf("%s: %d events, live and again differ:\n%s", words, len(live), diff)
		}
		for i := 0; i < len(live); i += 7 {
			rest, status := x.follow(t, "viewer", path, live[i].ID, nil)
			if i+1 < len(live) && !slices.Equal(rest, live[i+1:]) {
				t.Errorf("%s after %s: %d events of %d, status %d", words, live[i].ID, len(rest), len(live)-i-1, status)
			}
		}
		if _, status := x.follow(t, "viewer", path, live[len(live)-1].ID, nil); status != http.StatusNoContent {
			t.Errorf("%s after the end: %d", words, status)
		}
	}
	inputs := 0
	flow, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", nil)
	for _, e := range flow {
		if e.Name != "step.input" {
			continue
		}
		var event api.Event
		if err := json.Unmarshal([]byte(e.Data), &event); err != nil {
			t.Fatal(err)
		}
		read := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+event.Step.StepID, nil), http.StatusOK)
		var sent, stored any
		if err := json.Unmarshal(event.Data, &sent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(read.InputData, &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, sent); diff != "" {
			t.Errorf("input of %s (-read +streamed):\n%s", event.Step.StepID, diff)
		}
		inputs++
	}
	if inputs < 18 {
		t.Errorf("%d inputs were told", inputs)
	}
}

func TestStream_WaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	id := x.execute(t, "waits", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusWaiting)
	x.hub.Emit(host.Ref{Workspace: "default", Execution: id}, host.Chunk{Attempt: engine.Attempt{Activation: "w", Attempt: 1}, Text: "so far"})
	list, _ := x.follow(t, "operator", "/executions/"+id+"/events", "", func(e heard) bool {
		if e.Name == "node_output_update" {
			x.act(t, id, api.ActionRequest{Action: "pause"})
		}
		return e.Name == "execution_paused"
	})
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"execution_started", "node_started", "node_completed", "node_started", "node_output_update", "execution_paused"}, names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	x.act(t, id, api.ActionRequest{Action: "cancel"})
	rest, _ := x.follow(t, "operator", "/executions/"+id+"/events", list[len(list)-1].ID, nil)
	if len(rest) == 0 || rest[len(rest)-1].Name != "execution_canceled" {
		t.Errorf("the rest: %v", rest)
	}
}

func TestStream_OnlyForTheWorkspace(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, chain("secret"))
	id := x.execute(t, "secret", api.ExecuteRequest{WaitSeconds: 30})
	for _, path := range []string{"/executions/" + id + "/events", "/executions/" + id + "/stream"} {
		conn, response, err := websocket.Dial(t.Context(), x.url+path, &websocket.DialOptions{Subprotocols: []string{"tandem", "bearer." + x.tokens["stranger"]}})
		if err == nil {
			t.Fatal("a stranger reads along", conn.CloseNow())
		}
		// /events is not a WebSocket: the protocol is a token there too, and finds nothing.
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: a stranger gets %s", path, response.Status)
		}
		if _, status := x.follow(t, "nobody", path, "", nil); status != http.StatusUnauthorized {
			t.Errorf("%s: nobody gets %d", path, status)
		}
		if _, status := x.follow(t, "stranger", "/executions/"+id+"/events", "", nil); status != http.StatusNotFound {
			t.Errorf("%s: a stranger gets %d", path, status)
		}
	}
	conn, _, err := websocket.Dial(t.Context(), x.url+"/executions/"+id+"/stream", &websocket.DialOptions{Subprotocols: []string{"tandem", "bearer." + x.tokens["viewer"]}})
	if err != nil {
		t.Fatal(err)
	}
	var last []byte
	for {
		_, body, err := conn.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Error(err)
			}
			break
		}
		last = body
	}
	var e api.Event
	if err := json.Unmarshal(last, &e); err != nil || e.EventType != "execution_completed" {
		t.Errorf("last message %s, %v", last, err)
	}
}
