package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
)

// stepEvent is a frame of a step of the turn of "agent".
func stepEvent(seq uint64, at time.Duration, name string, status engine.NodeStatus, details, result string) api.Event {
	return nodeEvent(seq, at, "agent[0]/"+name, status, func(n *api.NodeExecution) {
		n.NodeID, n.InnerStep, n.NodeName = "agent", name, "agent."+name
		if details != "" {
			n.ExecutionDetails = json.RawMessage(details)
		}
		if result != "" {
			n.OutputData = map[string]json.RawMessage{"result": json.RawMessage(result)}
		}
	})
}

func textEvent(at time.Duration, attempt int, offset int64, text string, snapshot bool) api.Event {
	return event(0, at, "node_output_update", api.ExecutionUpdate{PartialOutput: &api.PartialOutput{
		ActivationID: "agent[0]/complete_2", Attempt: attempt, Offset: offset, Text: text, Snapshot: snapshot,
	}})
}

// aTurn is a turn that recalls, calls two tools, one of them after a person agreed, and is about to answer.
func aTurn() []api.Event {
	const wants = `{"message":{"content":"Let me see.","tool_calls":[{"name":"file_read","arguments":"{\"path\":\"a.csv\",\"limit\":5}"},{"name":"pay","arguments":"oops"}]}}`
	return []api.Event{
		event(1, 0, "execution_started", api.ExecutionUpdate{ExecutionStatus: "RUNNING"}),
		nodeEvent(1, 0, "agent", engine.NodeRunning),
		stepEvent(2, 0, "load_1", engine.NodeRunning, "", ""),
		stepEvent(3, 0, "load_1", engine.NodeDone, `{"attached_node":"notes"}`, `{}`),
		stepEvent(3, 0, "complete_1", engine.NodeRunning, "", ""),
		stepEvent(4, 0, "complete_1", engine.NodeDone, `{"ai_model":"demo"}`, wants),
		stepEvent(4, 0, "call_1_1", engine.NodeRunning, "", ""),
		stepEvent(4, 0, "approve_1_2", engine.NodeWaitingInput, "", ""),
		stepEvent(5, 0, "call_1_1", engine.NodeDone, `{"tool_name":"file_read"}`, `{}`),
		stepEvent(6, 0, "approve_1_2", engine.NodeDone, "", `{}`),
		stepEvent(6, 0, "call_1_2", engine.NodeRunning, "", ""),
		stepEvent(7, 0, "call_1_2", engine.NodeDone, "", `{}`),
		stepEvent(7, 0, "complete_2", engine.NodeRunning, "", ""),
	}
}

func TestTree_ShowsTheStepsOfATurn(t *testing.T) {
	t.Parallel()
	tree := newTree()
	draw := func(events ...api.Event) string {
		t.Helper()
		for _, e := range events {
			if err := tree.apply(e); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(tree.draw(view{width: 30, now: zero}), "\n")
	}
	draw(aTurn()...)
	got := draw(textEvent(0, 1, 0, "one\ntwo\nthe model writes a line that is too long\nend", false))
	if diff := cmp.Diff(`⠋ agent
  ✓ recall notes  0s
  ✓ model demo  0s  Let me s…
  ✓ tool file_read(limit: 5,…
  ✓ may pay be called?  0s
  ✓ tool pay  0s
  ⠋ model
    two
    the model writes a line
    that is too long
    end
RUNNING in 0s`, got); diff != "" {
		t.Errorf("while it writes (-want +got):\n%s", diff)
	}
	got = draw(
		stepEvent(8, 0, "complete_2", engine.NodeDone, `{"ai_model":"demo"}`, `{"message":{"content":"All\nis done."}}`),
		nodeEvent(9, 0, "agent", engine.NodeDone), event(9, 0, "execution_completed", api.ExecutionUpdate{ExecutionStatus: "SUCCESS"}),
		event(10, 0, "nothing", api.ExecutionUpdate{}),
	)
	if !strings.Contains(got, "  ✓ recall notes") || !strings.Contains(got, "  ✓ model demo  0s  All is d…\nSUCCESS") || strings.Contains(got, "[0]") {
		t.Errorf("at the end:\n%s", got)
	}
}

// A node in a loop that has steps is one iteration of the loop, and its steps are not iterations.
func TestTree_TurnInALoop(t *testing.T) {
	t.Parallel()
	tree := newTree()
	for _, e := range []api.Event{
		nodeEvent(1, 0, "each", engine.NodeRunning), nodeEvent(2, 0, "each[3]/agent", engine.NodeRunning),
		nodeEvent(3, 0, "each[3]/agent[0]/complete_1", engine.NodeRunning, func(n *api.NodeExecution) { n.NodeID, n.InnerStep = "agent", "complete_1" }),
	} {
		if err := tree.apply(e); err != nil {
			t.Fatal(err)
		}
	}
	want := "⠋ each  3 done\n  [3]\n    ⠋ agent\n      ⠋ model\nPENDING"
	if diff := cmp.Diff(want, strings.Join(tree.draw(view{now: zero}), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinePrinter_TellsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	done := func(text string) api.Event {
		raw, err := json.Marshal(map[string]any{"message": map[string]any{"content": text}})
		if err != nil {
			t.Fatal(err)
		}
		return stepEvent(8, 0, "complete_2", engine.NodeDone, "", string(raw))
	}
	const end = "  completed      agent[0]/complete_2 (model)\n"
	says := func(lines ...string) string {
		out := ""
		for _, l := range lines {
			out += "  says           agent[0]/complete_2: " + l + "\n"
		}
		return out + end
	}
	for _, c := range []struct {
		name   string
		events []api.Event
		want   string
	}{
		{"ByLines", []api.Event{textEvent(0, 1, 0, "one\ntw", false), textEvent(0, 1, 6, "o\n\nthree", false), done("one\ntwo\n\nthree")}, says("one", "two", "", "three")},
		{"ReaderCameLate", []api.Event{textEvent(0, 1, 0, "one\ntwo\n", true), textEvent(0, 1, 8, "three", false), done("one\ntwo\nthree")}, says("one", "two", "three")},
		{"NothingWasStreamed", []api.Event{done("one\ntwo\n")}, says("one", "two")},
		{"PiecesWereLeftOut", []api.Event{textEvent(0, 1, 0, "one\n", false), textEvent(0, 1, 8, "three\n", false), done("one\ntwo\nthree\n")}, says("one", "two", "three")},
		{"SnapshotAgain", []api.Event{textEvent(0, 1, 0, "one\n", false), textEvent(0, 1, 0, "one\ntwo\n", true), done("one\ntwo\n")}, says("one", "two")},
		{"TriedAgain", []api.Event{textEvent(0, 1, 0, "wrong\n", false), textEvent(0, 2, 0, "right\n", false), done("right\nend")}, says("wrong", "right", "end")},
		{"NoText", []api.Event{done("")}, end},
		{"Controls", []api.Event{done("a\x1b[2Jb\rc")}, says("a[2Jb c")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			p := &linePrinter{out: &out}
			for _, e := range c.events {
				if err := p.Frame(e); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"content":"a\nb\u001b[2J","response":"a\nb\u001b[2J","token_usage":{"total_tokens":7},"metadata":{"model":"m","cost":0.25}}`: "a\nb[2J\nm, 7 tokens, cost 0.25",
		`{"content":{"n":1},"response":"{\"n\":1}","token_usage":{"total_tokens":7},"metadata":{"model":"m"}}`:                         "{\n  \"n\": 1\n}\nm, 7 tokens",
		`{"response":"x"}`: "{\n  \"response\": \"x\"\n}",
		`[1]`:              "[\n  1\n]",
	} {
		if got, err := readable(json.RawMessage(raw), view{}); err != nil || got != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
}

// Terminals show characters, not the escapes that programs write for them.
func TestShortArguments_Readable(t *testing.T) {
	t.Parallel()
	if text := shortArguments(`{"x":{"\u540d":"\u5f20\u003cb\u003e"}}`); !strings.Contains(text, `{"名":"张<b>"}`) {
		t.Error(text)
	}
}
