package tree

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tandem/api"
)

// taskScreen is a task whose steps and answer go to different places, as with a pipe.
func taskScreen(clean bool) (*TaskShow, *bytes.Buffer, *bytes.Buffer) {
	var out, screen bytes.Buffer
	return &TaskShow{Follower: NewFollower(&screen, false), out: &out, screen: &screen, clean: clean}, &out, &screen
}

func (s *TaskShow) take(t *testing.T, u api.ExecutionUpdate) {
	t.Helper()
	raw, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Frame(api.Event{EventType: "node_completed", Data: raw}); err != nil {
		t.Fatal(err)
	}
}

func (s *TaskShow) written(t *testing.T, p api.PartialOutput) {
	t.Helper()
	p.ActivationID = "task[0]/summary"
	s.take(t, api.ExecutionUpdate{PartialOutput: &p})
}

func (s *TaskShow) summary(t *testing.T, result string) {
	t.Helper()
	s.take(t, api.ExecutionUpdate{NodeExecution: &api.NodeExecution{
		NodeID: "summary", ActivationID: "task[0]/summary", Status: "completed", OutputData: map[string]json.RawMessage{"result": json.RawMessage(result)},
	}})
}

// The output has the answer once, however it came: in pieces, late, again, or only at the end. The steps are elsewhere.
func TestTaskShow(t *testing.T) {
	t.Parallel()
	const whole = `{"answer":"It is sunny.\nBring a hat."}`
	want := "It is sunny.\nBring a hat.\n"
	for _, c := range []struct {
		name string
		tell func(t *testing.T, s *TaskShow)
		want string
	}{
		{"Pieces", func(t *testing.T, s *TaskShow) {
			s.written(t, api.PartialOutput{Attempt: 1, Text: "It is "})
			s.written(t, api.PartialOutput{Attempt: 1, Offset: 6, Text: "sunny.\n"})
			s.written(t, api.PartialOutput{Attempt: 1, Data: json.RawMessage(`{"reasoning":"hm"}`), Offset: 13})
			s.written(t, api.PartialOutput{Attempt: 1, Offset: 13, Text: "Bring a hat."})
			s.summary(t, whole)
		}, want},
		{"Blanks", func(t *testing.T, s *TaskShow) {
			s.written(t, api.PartialOutput{Attempt: 1, Text: "\n\n"})
			s.written(t, api.PartialOutput{Attempt: 1, Offset: 2, Text: " It is sunny.\nBring a hat."})
			s.written(t, api.PartialOutput{Attempt: 1, Offset: 28, Text: "\n"})
			s.summary(t, whole)
		}, want},
		{"OnlyAtTheEnd", func(t *testing.T, s *TaskShow) { s.summary(t, whole) }, want},
		{"TooLargeForAFrame", func(t *testing.T, s *TaskShow) { s.summary(t, `{"$blob":"abc","size":70000}`) }, want},
		{"AfterABreak", func(t *testing.T, s *TaskShow) {
			s.written(t, api.PartialOutput{Attempt: 1, Text: "It is "})
			s.written(t, api.PartialOutput{Attempt: 1, Text: "It is sunny.", Snapshot: true})
			s.written(t, api.PartialOutput{Attempt: 1, Offset: 20, Text: "a hat."}) // something is missing
			s.summary(t, whole)
		}, want},
		{"Again", func(t *testing.T, s *TaskShow) {
			s.written(t, api.PartialOutput{Attempt: 1, Text: "It rai"})
			s.written(t, api.PartialOutput{Attempt: 2, Text: "It is sunny."})
			s.summary(t, whole)
		}, "It rai\n" + want},
		{"Otherwise", func(t *testing.T, s *TaskShow) {
			s.written(t, api.PartialOutput{Attempt: 1, Text: "It rains"})
			s.summary(t, whole)
		}, "It rains\n" + want},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, out, screen := taskScreen(false)
			if err := s.Begin("exec_1"); err != nil {
				t.Fatal(err)
			}
			s.take(t, api.ExecutionUpdate{NodeExecution: &api.NodeExecution{NodeID: "step_1", ActivationID: "task[0]/step_1", Status: "completed"}})
			c.tell(t, s)
			e := api.Execution{
				Status: "SUCCESS", Outputs: map[string]json.RawMessage{"task": json.RawMessage(whole)}, Task: &api.Task{FullAnswer: "It is sunny.\nBring a hat."},
			}
			if err := s.End(e, "It is sunny.\nBring a hat."); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out, c.want)
			}
			if text := screen.String(); !strings.Contains(text, "task[0]/step_1") || !strings.Contains(text, "SUCCESS in ") || strings.Contains(text, "sunny") {
				t.Errorf("the steps: %q", text)
			}
		})
	}
}

// What a model writes cannot move the cursor of a terminal, and is left as it is anywhere else.
func TestTaskShow_Clean(t *testing.T) {
	t.Parallel()
	for clean, want := range map[bool]string{true: "a[2Jb\tc\n", false: "a\x1b[2Jb\tc\n"} {
		s, out, _ := taskScreen(clean)
		s.written(t, api.PartialOutput{Attempt: 1, Text: "a\x1b[2Jb\tc"})
		if err := s.End(api.Execution{Status: "SUCCESS"}, "a\x1b[2Jb\tc"); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("clean %t: got %q, want %q", clean, out, want)
		}
	}
}
