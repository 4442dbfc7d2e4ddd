package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// On the level DEBUG the log of an execution, and the operator's, tell what became of placeholders and of outputs. Without it they do not.
func TestDebugLog_DataFlow(t *testing.T) {
	t.Parallel()
	for _, debug := range []bool{true, false} {
		level, said := slog.LevelInfo, &lockedBuffer{}
		if debug {
			level = slog.LevelDebug
		}
		x := openSiteAs(t, func(o *Options, _ string) {
			o.Log = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: level}))
		})
		box := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
			return toolReply{Structured: json.RawMessage(`{"id":"of ` + c.Tool + `","message":"m"}`)}
		}, toolDefinition{Name: "one", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true}, toolDefinition{Name: "two", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true})
		x.useBox(t, box)
		x.save(t, toolChain("flow", `one {"city": "{{city}}"}`, `two {"from": "{{step_1.outputs.id}}"} | input_params: {where: "in {{city}}"}, output_params: {id: "", price: ""}`))
		id := x.execute(t, "flow", api.ExecuteRequest{Inputs: json.RawMessage(`{"city":"Ulm"}`)})
		x.reaches(t, id, engine.StatusSuccess)
		logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?level=DEBUG", nil), http.StatusOK)
		var lines []string
		for _, l := range logs.Lines {
			if l.NodeID != "start" {
				lines = append(lines, l.Level+" "+l.NodeID+": "+l.Message+" "+string(l.Context))
			}
		}
		if !debug {
			if len(lines) > 0 || strings.Contains(said.String(), "resolved") {
				t.Errorf("without the level the log has %q", lines)
			}
			continue
		}
		wanted := []string{
			`DEBUG step_1: parameters resolved {"of":"configurations","original_params":{"server_id":"box","tool_name":"one","function_args":{"city":"{{city}}"}},"resolved_params":{"server_id":"box","tool_name":"one","function_args":{"city":"Ulm"}},"step_id":"step_1"}`,
			`DEBUG step_1: outputs synced to runtime_metadata {"step_id":"step_1","sync_count":2,"synced_fields":["id","message"]}`,
			`DEBUG step_2: parameters resolved {"of":"input_params","original_params":{"where":"in {{city}}"},"resolved_params":{"where":"in Ulm"},"step_id":"step_2"}`,
			`DEBUG step_2: parameters resolved {"of":"configurations","original_params":{"server_id":"box","tool_name":"two","function_args":{"from":"{{step_1.outputs.id}}"}},"resolved_params":{"server_id":"box","tool_name":"two","function_args":{"from":"of one"}},"step_id":"step_2"}`,
			`DEBUG step_2: outputs synced to runtime_metadata {"missing":["price"],"overwritten":[{"name":"id","node_id":"step_1","seq":`,
		}
		if len(lines) != len(wanted) {
			t.Fatalf("the log has\n%s", strings.Join(lines, "\n"))
		}
		for i, line := range wanted {
			if !strings.HasPrefix(lines[i], line) {
				t.Errorf("line %d is\n%s\nwant\n%s", i+1, lines[i], line)
			}
		}
		for _, part := range []string{`level=DEBUG msg="parameters resolved" execution=` + id, `of one`, `msg="outputs synced to runtime_metadata"`, `overwritten`} {
			if !strings.Contains(said.String(), part) {
				t.Errorf("the operator's log does not have %s", part)
			}
		}
	}
}
