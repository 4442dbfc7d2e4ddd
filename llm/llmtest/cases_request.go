package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/llm"
)

// sent asks and returns what the service understood.
func sent(t *testing.T, h Harness, r llm.Request) Call {
	t.Helper()
	s := serve(t, h, tweak{}, say(text("done")))
	if c, _ := s.must(r); len(c.Warnings) > 0 {
		t.Errorf("something was left out: %q", c.Warnings)
	}
	call := s.only()
	if call.Model != r.Model || call.Stream != r.Stream {
		t.Errorf("the service was asked for model %q, stream %v; want %q, %v", call.Model, call.Stream, r.Model, r.Stream)
	}
	return call
}

func testConversation(t *testing.T, h Harness) {
	picture := []byte("\x89PNG\r\n\x1a\n and some more bytes \x00\xff")
	r := h.plain(true)
	r.Tools = []llm.Tool{{Name: "find"}, {Name: "size"}}
	r.Messages = []llm.Message{
		{Role: llm.System, Content: "You are terse."},
		{Role: llm.User, Content: "What is in the pictures? 猫 <&>\u2028",
			Images: []llm.Image{{MediaType: "image/png", Data: picture}, {MediaType: "image/jpeg", Data: []byte("jpeg")}}},
		{Role: llm.Assistant, Content: "Let me look.", Reasoning: "a thought that is not sent back", ToolCalls: []llm.ToolCall{
			{ID: "call_1", Name: "find", Arguments: `{"what":"猫","n":12345678901234567}`}, {ID: "call_2", Name: "size", Arguments: `{}`},
		}},
		{Role: llm.ToolRole, ToolCallID: "call_1", ToolName: "find", Content: "a cat"},
		{Role: llm.ToolRole, ToolCallID: "call_2", ToolName: "size", Content: "no such file", Failed: true},
		{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "call_3", Name: "size", Arguments: `{"of":[1,null,true]}`}}},
		{Role: llm.ToolRole, ToolCallID: "call_3", ToolName: "size", Content: `{"bytes":7}`},
		{Role: llm.Assistant, Content: "A cat, 7 bytes."},
		{Role: llm.User, Content: "Thanks. And now?"},
	}
	got := sent(t, h, r).Messages
	want := make([]llm.Message, len(r.Messages))
	copy(want, r.Messages)
	want[2].Reasoning = ""
	for i := range min(len(want), len(got)) {
		// What was sent has the ids of the conversation where the protocol has ids at all.
		for j := range min(len(want[i].ToolCalls), len(got[i].ToolCalls)) {
			if h.lacks(CallIDs) {
				got[i].ToolCalls[j].ID = want[i].ToolCalls[j].ID
			}
			if sameJSON(want[i].ToolCalls[j].Arguments, got[i].ToolCalls[j].Arguments) {
				got[i].ToolCalls[j].Arguments = want[i].ToolCalls[j].Arguments
			}
		}
		if h.lacks(CallIDs) {
			got[i].ToolCallID = want[i].ToolCallID
		}
		if h.lacks(FailedResults) {
			got[i].Failed = want[i].Failed
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the service was told another conversation (-conversation +told):\n%s", diff)
	}
}

// testSystemMessages: protocols with one place for them lose none, whatever their number.
func testSystemMessages(t *testing.T, h Harness) {
	r := h.plain(false)
	r.Messages = []llm.Message{{Role: llm.System, Content: "First rule."}, {Role: llm.System, Content: "Second rule."},
		{Role: llm.User, Content: "Go."}}
	got := sent(t, h, r).Messages
	var rules []string
	for _, m := range got {
		if m.Role == llm.System {
			rules = append(rules, m.Content)
		}
	}
	if all := strings.Join(rules, "\n\n"); all != "First rule.\n\nSecond rule." {
		t.Errorf("the service was told the rules %q", all)
	}
	if last := got[len(got)-1]; last.Role != llm.User || last.Content != "Go." {
		t.Errorf("the last message is %+v", last)
	}
}

// recursive is a schema with all that simple translations lose.
const recursive = `{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"},"id":{"anyOf":[{"type":"string","pattern":"^[a-z]+$"},{"type":"integer","maximum":9007199254740993},{"type":"null"}]},` +
	`"mode":{"enum":["fast","slow"],"description":"how <fast> & 快"}},"required":["tree"],"additionalProperties":false,` +
	`"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name","children"],"additionalProperties":false}}}`

func testTools(t *testing.T, h Harness) {
	r := h.plain(true)
	r.Tools = []llm.Tool{
		{Name: "grow-tree_1", Description: "Grows a tree. 树", Parameters: json.RawMessage(recursive)},
		{Name: "now"},
	}
	got := sent(t, h, r).Tools
	if len(got) != 2 || got[0].Name != "grow-tree_1" || got[0].Description != "Grows a tree. 树" || got[1].Name != "now" {
		t.Fatalf("the service was given the tools %+v", got)
	}
	if !h.lacks(WholeToolSchemas) && !sameJSON(string(got[0].Parameters), recursive) {
		t.Errorf("the schema of a tool arrived as\n%s\nwant\n%s", got[0].Parameters, recursive)
	}
}

func testToolChoice(t *testing.T, h Harness) {
	for _, choice := range []string{"", "auto", "none", "required", "size"} {
		t.Run("Choice"+choice, func(t *testing.T) {
			t.Parallel()
			r := h.plain(true)
			r.Tools = []llm.Tool{{Name: "find"}, {Name: "size"}}
			r.ToolChoice = choice
			got := sent(t, h, r)
			if got.ToolChoice != choice && (got.ToolChoice != "auto" || choice != "") && (got.ToolChoice != "" || choice != "auto") {
				t.Errorf("the service was told %q, want %q", got.ToolChoice, choice)
			}
			if got.OneTool {
				t.Error("the service was told to call one tool at most, and nobody wants that")
			}
		})
	}
	t.Run("OneTool", func(t *testing.T) {
		t.Parallel()
		if why, lacks := h.Without[OneTool]; lacks {
			t.Skip(why)
		}
		r := h.plain(true)
		r.Tools, r.OneTool = []llm.Tool{{Name: "find"}}, true
		if !sent(t, h, r).OneTool {
			t.Error("the service was not told to call one tool at most")
		}
	})
	t.Run("WithoutTools", func(t *testing.T) {
		t.Parallel()
		r := h.plain(true)
		r.ToolChoice, r.OneTool = "auto", true
		if got := sent(t, h, r); len(got.Tools) > 0 || got.OneTool {
			t.Errorf("the service was told of tools: %+v", got.Request)
		}
	})
}

func testHugeToolList(t *testing.T, h Harness) {
	r := h.plain(true)
	for i := range 500 {
		r.Tools = append(r.Tools, llm.Tool{
			Name: fmt.Sprintf("tool_%03d", i), Description: strings.Repeat("What it does. ", 100),
			Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"p%d":{"type":"string","description":%q}}}`, i, strings.Repeat("d", 2000))),
		})
	}
	got := sent(t, h, r).Tools
	if len(got) != len(r.Tools) {
		t.Fatalf("the service was given %d tools of %d", len(got), len(r.Tools))
	}
	for i := range got {
		if got[i].Name != r.Tools[i].Name || got[i].Description != r.Tools[i].Description ||
			!strings.Contains(string(got[i].Parameters), fmt.Sprintf(`"p%d"`, i)) {
			t.Fatalf("tool %d arrived as %.300v", i, got[i])
		}
	}
}

func testSchema(t *testing.T, h Harness) {
	for _, stream := range []bool{true, false} {
		r := h.plain(stream)
		r.Schema = &llm.Schema{Name: "tree", JSON: json.RawMessage(recursive)}
		got := sent(t, h, r).Schema
		if got == nil || !sameJSON(string(got.JSON), recursive) {
			t.Errorf("the service was asked for the shape %+v", got)
		}
	}
}

func testAnyJSON(t *testing.T, h Harness) {
	r := h.plain(true)
	r.Messages[0].Content = "Answer in JSON."
	r.JSON = true
	if got := sent(t, h, r); !got.JSON || got.Schema != nil {
		t.Errorf("the service was asked for JSON %v with schema %v, want any object", got.JSON, got.Schema)
	}
	r.JSON = false
	if sent(t, h, r).JSON {
		t.Error("the service was asked for JSON, and nobody wants that")
	}
}

func testParameters(t *testing.T, h Harness) {
	zero := 0.0
	r := h.plain(true)
	r.Params = llm.Params{Temperature: &zero, MaxTokens: 321, Stop: []string{"END", "。"}}
	if diff := cmp.Diff(r.Params, sent(t, h, r).Params); diff != "" {
		t.Errorf("the service was told other parameters (-asked +told):\n%s", diff)
	}
	half := 0.5
	r.Params = llm.Params{TopP: &half}
	got := sent(t, h, r)
	got.MaxTokens = 0 // some services want one in any case
	if diff := cmp.Diff(r.Params, got.Params); diff != "" {
		t.Errorf("the service was told other parameters (-asked +told):\n%s", diff)
	}
}

func testKey(t *testing.T, h Harness) {
	if got := sent(t, h, h.plain(true)); got.Key != secret {
		t.Errorf("the service was given the key %q", got.Key)
	}
}

func testNoKey(t *testing.T, h Harness) {
	s := serve(t, h, tweak{keyless: true}, say(text("done")))
	s.must(h.plain(true))
	if got := s.only(); got.Key != "" || got.Header.Get("Authorization") != "" {
		t.Errorf("the service was given a key: %q, Authorization %q", got.Key, got.Header.Get("Authorization"))
	}
}
