package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
)

// taskEvent is a frame of a step of a task.
func taskEvent(seq uint64, name, title string, status engine.NodeStatus, result string) api.Event {
	return nodeEvent(seq, 0, "task[0]/"+name, status, func(n *api.NodeExecution) {
		n.NodeID, n.NodeName, n.NodeType, n.NodeSubtype = name, title, "CALL", "TASK"
		if strings.HasPrefix(name, "step_") {
			n.NodeType, n.NodeSubtype = "TOOL", "MCP_TOOL"
		}
		if result != "" {
			n.OutputData = map[string]json.RawMessage{"result": json.RawMessage(result)}
		}
		if status == engine.NodeFailure {
			n.Error = &api.NodeError{ErrorCode: "tool_error", ErrorMessage: "no city"}
		}
	})
}

// aTask is a task whose first call fails and whose second waits for a person.
func aTask() []api.Event {
	done := engine.NodeDone
	return []api.Event{
		event(1, 0, "execution_started", api.ExecutionUpdate{ExecutionStatus: "RUNNING"}),
		nodeEvent(1, 0, "task", engine.NodeRunning),
		taskEvent(2, "flow_name", "Name of the task", done, `{"flow_name":"Weather for Paris"}`),
		taskEvent(3, "flow_risk", "Risk of the task", done, `{"risk":"low","reason":"reads"}`),
		taskEvent(4, "plan_1", "Plan the next step", done, `{"tool_id":"weather/now"}`),
		taskEvent(5, "params_1", "Derive arguments", done, `{"city":"Paris"}`),
		taskEvent(6, "risk_1", "Risk of the call", done, `{"risk":"high","reason":"storm"}`),
		taskEvent(6, "step_1", "weather/now", engine.NodeRunning, ""),
		taskEvent(7, "step_1", "weather/now", engine.NodeFailure, ""),
		taskEvent(8, "params_1_2", "Derive arguments", done, `{"city":"Rome"}`),
		taskEvent(9, "risk_1_2", "Risk of the call", done, `{"risk":"low","reason":"sun"}`),
		taskEvent(10, "step_1_try_2", "weather/now", done, `{"rain":false}`),
		taskEvent(11, "confirm_2", "May it be called?", engine.NodeWaitingInput, ""),
	}
}

func TestTree_ShowsTheStepsOfATask(t *testing.T) {
	t.Parallel()
	tree := newTree()
	draw := func(events ...api.Event) string {
		t.Helper()
		for _, e := range events {
			if err := tree.apply(e); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(tree.draw(view{width: 90, now: zero}), "\n")
	}
	if diff := cmp.Diff(`⠋ Weather for Paris
  ✗ step_1 weather/now(city: "Paris") [risk high]  0s  no city [tool_error]
  ✓ step_1 weather/now(city: "Rome") try 2  0s
  ⏸ May it be called?  waits for a person
RUNNING in 0s`, draw(aTask()...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	writes := event(0, 0, "node_output_update", api.ExecutionUpdate{PartialOutput: &api.PartialOutput{ActivationID: "task[0]/summary", Attempt: 1, Text: "It\nwill rain"}})
	got := draw(taskEvent(12, "confirm_2", "May it be called?", engine.NodeDone, `{"confirm":true}`), taskEvent(13, "summary", "Write the answer", engine.NodeRunning, ""), writes)
	if diff := cmp.Diff(`⠋ Weather for Paris
  ✗ step_1 weather/now(city: "Paris") [risk high]  0s  no city [tool_error]
  ✓ step_1 weather/now(city: "Rome") try 2  0s
  ⠋ Write the answer
    It
    will rain
RUNNING in 0s`, got); diff != "" {
		t.Errorf("while it answers (-want +got):\n%s", diff)
	}
	if got := draw(taskEvent(14, "summary", "Write the answer", engine.NodeDone, `{"answer":"It will rain."}`)); !strings.Contains(got, "✓ Write the answer  0s  It will rain.") {
		t.Errorf("the answer is not in sight:\n%s", got)
	}
}

func TestLines_TellATask(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &linePrinter{out: &out}
	for _, e := range aTask() {
		if err := p.Frame(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Result(api.Execution{Status: "SUCCESS", Task: &api.Task{FullAnswer: "It will\x1b[2J rain.\n"}, Outputs: map[string]json.RawMessage{"task": json.RawMessage(`{"steps":[]}`)}}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		`failed         task[0]/step_1 (step_1 weather/now(city: "Paris") [risk high]): no city [tool_error]`,
		`completed      task[0]/step_1_try_2 (step_1 weather/now(city: "Rome") try 2)`,
		`waiting_input  task[0]/confirm_2 (May it be called?)`, "It will[2J rain.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "plan_1") || strings.Contains(text, "steps") {
		t.Errorf("it tells more than anybody wants to know:\n%s", text)
	}
}

// What an execution asks that this one has started is in sight until it is answered or all is over; a low screen keeps it.
func TestTree_AskedBelow(t *testing.T) {
	t.Parallel()
	tr := newTree()
	tell := func(kind, data string) {
		t.Helper()
		if err := tr.apply(api.Event{EventType: kind, Timestamp: 1, Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
	}
	tell("execution_started", `{"execution_status":"RUNNING"}`)
	for _, node := range []string{"a", "b", "c"} {
		tell("node_completed", `{"node_execution":{"node_id":"`+node+`","activation_id":"`+node+`","status":"completed"}}`)
	}
	tell("node_started", `{"node_execution":{"node_id":"look","activation_id":"look","status":"running"}}`)
	const asks = "⏸ May it be called? (tandem inbox answer 12345678)"
	tr.below = strings.TrimPrefix(asks, "⏸ ")
	for _, height := range []int{0, 5} {
		lines := tr.draw(view{height: height, width: 80})
		if !slices.Contains(lines, asks) {
			t.Errorf("height %d: %q does not say what is asked", height, lines)
		}
		if height > 0 && len(lines) > height-1 {
			t.Errorf("height %d: %d lines do not fit", height, len(lines))
		}
	}
	tell("execution_completed", `{"execution_status":"SUCCESS"}`)
	if lines := tr.draw(view{width: 80}); slices.Contains(lines, asks) {
		t.Errorf("%q still asks", lines)
	}
}
