package llmtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/llm"
	"tandem/payload"
)

// plain is a question without anything special.
func (h Harness) plain(stream bool) llm.Request {
	return llm.Request{Model: h.Model, Messages: []llm.Message{{Role: llm.User, Content: "Say something."}}, Stream: stream}
}

// text is an answer in these pieces.
func text(parts ...string) Scenario {
	s := Scenario{Finish: llm.FinishStop, Usage: &llm.Usage{InputTokens: 120, OutputTokens: 30}, Model: "model-as-served", ID: "call-0815"}
	for _, p := range parts {
		s.Deltas = append(s.Deltas, llm.Delta{Text: p})
	}
	return s
}

// calling is an answer that calls tools, each in pieces: the name, then its arguments.
func calling(calls ...[]string) Scenario {
	s := text()
	s.Finish = llm.FinishToolCalls
	for i, c := range calls {
		s.Deltas = append(s.Deltas, llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, ID: "call_" + string(rune('a'+i)), Name: c[0]}})
		for _, p := range c[1:] {
			s.Deltas = append(s.Deltas, llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, Arguments: p}})
		}
	}
	return s
}

// sum is the message that a list of pieces makes.
func sum(deltas []llm.Delta) llm.Message {
	var content, reasoning strings.Builder
	var calls []llm.ToolCall
	for _, d := range deltas {
		content.WriteString(d.Text)
		reasoning.WriteString(d.Reasoning)
		if c := d.ToolCall; c != nil {
			for len(calls) <= c.Index {
				calls = append(calls, llm.ToolCall{})
			}
			calls[c.Index].ID += c.ID
			calls[c.Index].Name += c.Name
			calls[c.Index].Arguments += c.Arguments
		}
	}
	return llm.Message{Role: llm.Assistant, Content: content.String(), Reasoning: reasoning.String(), ToolCalls: calls}
}

// checkSum compares what a sink was given with what was returned.
func checkSum(t testing.TB, told []llm.Delta, m llm.Message) {
	t.Helper()
	seen := -1
	for i, d := range told {
		set := 0
		for _, is := range []bool{d.Text != "", d.Reasoning != "", d.ToolCall != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("piece %d has %d fields set, want exactly one: %+v", i, set, d)
		}
		if c := d.ToolCall; c != nil {
			switch {
			case c.Index == seen+1:
				seen++
				if c.ID == "" || c.Name == "" {
					t.Errorf("the first piece of tool call %d has no id or no name: %+v", c.Index, *c)
				}
			case c.Index > seen || c.Index < 0:
				t.Fatalf("piece %d is of tool call %d, but only %d have begun", i, c.Index, seen+1)
			case c.ID != "" || c.Name != "":
				t.Errorf("a later piece of tool call %d has an id or a name again: %+v", c.Index, *c)
			}
		}
	}
	m.Opaque = nil
	if diff := cmp.Diff(m, sum(told)); diff != "" {
		t.Errorf("the pieces do not add up to the answer (-answer +pieces):\n%s", diff)
	}
}

// checkMessage holds an answer to a scenario.
func (h Harness) checkMessage(t testing.TB, s Scenario, got llm.Message) {
	t.Helper()
	want := sum(s.Deltas)
	got.Opaque = nil
	h.levelCalls(t, want.ToolCalls, got.ToolCalls)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer differs from what the model said (-said +answer):\n%s", diff)
	}
}

// levelCalls makes tool calls comparable: ids that the service does not give are only held to be there and distinct, and
// arguments that are the same JSON are the same.
func (h Harness) levelCalls(t testing.TB, want, got []llm.ToolCall) {
	t.Helper()
	ids := map[string]bool{}
	for i := range min(len(want), len(got)) {
		if h.lacks(CallIDs) {
			if got[i].ID == "" || ids[got[i].ID] {
				t.Errorf("tool call %d has the id %q, want one of its own", i, got[i].ID)
			}
			ids[got[i].ID] = true
			got[i].ID = want[i].ID
		}
		if sameJSON(want[i].Arguments, got[i].Arguments) {
			got[i].Arguments = want[i].Arguments
		}
	}
}

func (h Harness) lacks(f Feature) bool {
	_, lacks := h.Without[f]
	return lacks
}

func sameJSON(a, b string) bool {
	x, wrong := payload.Canonical([]byte(a))
	y, err := payload.Canonical([]byte(b))
	return wrong == nil && err == nil && bytes.Equal(x, y)
}
