package llm_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
)

// conversation is a request with everything in it, made anew each time. Ids of calls end with suffix.
func conversation(suffix string) llm.Request {
	return llm.Request{
		Model: "m",
		Messages: []llm.Message{
			{Role: llm.System, Content: "be brief"},
			{Role: llm.User, Content: "weather?", Images: []llm.Image{{MediaType: "image/png", Data: []byte{1, 2}}}},
			{Role: llm.Assistant, Reasoning: "hm", ToolCalls: []llm.ToolCall{
				{ID: "c1" + suffix, Name: "look", Arguments: `{"city":"Bern","days":2}`}, {ID: "c2" + suffix, Name: "look", Arguments: `not json`},
			}, Opaque: &llm.Opaque{Provider: "p", Data: json.RawMessage(`1`)}},
			{Role: llm.ToolRole, Content: "sun", ToolCallID: "c1" + suffix, ToolName: "look"},
			{Role: llm.ToolRole, Content: "bad", ToolCallID: "c2" + suffix, ToolName: "look", Failed: true},
		},
		Tools: []llm.Tool{
			{Name: "look", Description: "looks", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
			{Name: "ask"},
		},
		Schema: &llm.Schema{Name: "s", JSON: json.RawMessage(`{"type":"object"}`)},
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := llm.Fingerprint(conversation(""))
	// Fixtures hold fingerprints: a change of this one makes all recorded runs unusable and needs a new version.
	if want := "f1_b6c4a5b9ef4dd8afebe973dcc5e7eb800aabc7a080b5ca29d5730e40736a6200"; base != want {
		t.Errorf("the fingerprint is %s, want %s", base, want)
	}
	half := 0.5
	for name, change := range map[string]func(*llm.Request){
		"Model":      func(r *llm.Request) { r.Model = "other" },
		"Params":     func(r *llm.Request) { r.Params = llm.Params{Temperature: &half, MaxTokens: 5, Stop: []string{"x"}} },
		"Stream":     func(r *llm.Request) { r.Stream = true },
		"User":       func(r *llm.Request) { r.User = "u" },
		"OneTool":    func(r *llm.Request) { r.OneTool = true },
		"IDs":        func(r *llm.Request) { *r = conversation("_other") },
		"Thoughts":   func(r *llm.Request) { r.Messages[2].Reasoning, r.Messages[2].Opaque = "", nil },
		"ToolOrder":  func(r *llm.Request) { r.Tools[0], r.Tools[1] = r.Tools[1], r.Tools[0] },
		"ToolChoice": func(r *llm.Request) { r.ToolChoice = "auto" },
		"Layout": func(r *llm.Request) {
			r.Messages[2].ToolCalls[0].Arguments = "{ \"days\": 2,\n\"city\": \"Bern\" }"
			r.Tools[0].Parameters = json.RawMessage(`{"properties": {"city": {"type": "string"}}, "type": "object"}`)
			r.Schema.JSON = json.RawMessage(` {"type" : "object"}`)
		},
	} {
		r := conversation("")
		change(&r)
		if llm.Fingerprint(r) != base {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	seen := map[string]string{base: "nothing"}
	for name, change := range map[string]func(*llm.Request){
		"Content":   func(r *llm.Request) { r.Messages[1].Content = "weather ?" },
		"Role":      func(r *llm.Request) { r.Messages[0].Role = llm.User },
		"Image":     func(r *llm.Request) { r.Messages[1].Images[0].Data = []byte{1, 3} },
		"ImageType": func(r *llm.Request) { r.Messages[1].Images[0].MediaType = "image/jpeg" },
		"Arguments": func(r *llm.Request) { r.Messages[2].ToolCalls[0].Arguments = `{"city":"Bern","days":3}` },
		"NoJSON":    func(r *llm.Request) { r.Messages[2].ToolCalls[1].Arguments = `not  json` },
		"CallName":  func(r *llm.Request) { r.Messages[2].ToolCalls[0].Name = "ask" },
		"Pairing": func(r *llm.Request) {
			m := r.Messages
			m[3].ToolCallID, m[4].ToolCallID = m[4].ToolCallID, m[3].ToolCallID
		},
		"Failed":      func(r *llm.Request) { r.Messages[3].Failed = true },
		"ToolName":    func(r *llm.Request) { r.Messages[3].ToolName = "other" },
		"Order":       func(r *llm.Request) { m := r.Messages; m[0], m[1] = m[1], m[0] },
		"Less":        func(r *llm.Request) { r.Messages = r.Messages[:4] },
		"Tools":       func(r *llm.Request) { r.Tools = r.Tools[:1] },
		"Description": func(r *llm.Request) { r.Tools[0].Description = "x" },
		"Parameters":  func(r *llm.Request) { r.Tools[1].Parameters = json.RawMessage(`{}`) },
		"Choice":      func(r *llm.Request) { r.ToolChoice = "required" },
		"NoSchema":    func(r *llm.Request) { r.Schema = nil },
		"SchemaName":  func(r *llm.Request) { r.Schema.Name = "t" },
		"Schema":      func(r *llm.Request) { r.Schema.JSON = json.RawMessage(`{"type":"array"}`) },
		"JSON":        func(r *llm.Request) { r.JSON = true },
	} {
		r := conversation("")
		change(&r)
		hash := llm.Fingerprint(r)
		if other, twice := seen[hash]; twice {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[hash] = name
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	c := answer("hi")
	c.Message.ToolCalls = []llm.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}
	raw, err := llm.Record(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept llm.Completion // a recording of an answer is the answer
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err = llm.Record(llm.Completion{}, &llm.Unavailable{Err: fault.New(fault.RateLimited, "slow").WithDetail("canary"), RetryAfter: 2 * time.Second})
	if err != nil || strings.Contains(string(raw), "canary") {
		t.Fatalf("got %s, %v", raw, err)
	}
	var failed llm.Recording
	if err := json.Unmarshal(raw, &failed); err != nil {
		t.Fatal(err)
	}
	if failed.Completion != nil || failed.Error.Code != fault.RateLimited || failed.RetryAfterMS != 2000 {
		t.Errorf("got %s", raw)
	}
}
