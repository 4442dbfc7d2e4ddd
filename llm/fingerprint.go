package llm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tandem/fault"
	"tandem/payload"
)

// fingerprintVersion stands in front of every fingerprint. It changes when the rules do, so that an old fixture is seen
// to be old instead of not being found for no visible reason.
const fingerprintVersion = "f1_"

// Fingerprint is a hash of what a model is asked, so that the answer of a recorded run is found again.
//
// What is asked is part of it: the messages with their pictures, the calls and results in them, the tools, how they may
// be chosen, and the shape of the answer. How it is asked is not: the model and its settings, streaming and the user are
// those of the person who runs it, and a recorded run is replayed with a profile of its own. Neither are thoughts and a
// provider's own data, which are not part of the conversation as people see it. Ids of tool calls are chance; only
// which result belongs to which call counts. The order of tools and the layout of JSON do not count.
func Fingerprint(r Request) string {
	asked := canonicalRequest{
		Messages: make([]canonicalMessage, len(r.Messages)), Tools: make([]canonicalTool, len(r.Tools)),
		ToolChoice: cmp.Or(r.ToolChoice, "auto"), JSON: r.JSON,
	}
	if len(r.Tools) == 0 {
		asked.ToolChoice = ""
	}
	// ids numbers the calls in their order.
	ids := map[string]int{}
	number := func(id string) int {
		if _, known := ids[id]; !known {
			ids[id] = len(ids) + 1
		}
		return ids[id]
	}
	for i, m := range r.Messages {
		c := canonicalMessage{Role: m.Role, Content: m.Content, ToolName: m.ToolName, Failed: m.Failed}
		for _, image := range m.Images {
			sum := sha256.Sum256(image.Data)
			c.Images = append(c.Images, image.MediaType+" "+hex.EncodeToString(sum[:]))
		}
		for _, call := range m.ToolCalls {
			c.Calls = append(c.Calls, canonicalCall{number(call.ID), call.Name, canonicalJSON([]byte(call.Arguments))})
		}
		if m.ToolCallID != "" {
			c.Answers = number(m.ToolCallID)
		}
		asked.Messages[i] = c
	}
	for i, t := range r.Tools {
		asked.Tools[i] = canonicalTool{t.Name, t.Description, canonicalJSON(t.Parameters)}
	}
	slices.SortStableFunc(asked.Tools, func(a, b canonicalTool) int { return cmp.Compare(a.Name, b.Name) })
	if r.Schema != nil {
		asked.Schema = &canonicalSchema{r.Schema.Name, canonicalJSON(r.Schema.JSON)}
	}
	h := sha256.New()
	// Nothing in it can be refused: strings, numbers, and JSON as text.
	if err := json.NewEncoder(h).Encode(asked); err != nil {
		panic(fmt.Sprintf("llm: encode a request: %v", err))
	}
	return fingerprintVersion + hex.EncodeToString(h.Sum(nil))
}

// The canonical forms are hashed as JSON: their names and order are part of the fingerprint.
type canonicalRequest struct {
	Messages   []canonicalMessage `json:"messages"`
	Tools      []canonicalTool    `json:"tools"`
	ToolChoice string             `json:"tool_choice"`
	Schema     *canonicalSchema   `json:"schema"`
	JSON       bool               `json:"json"`
}

type canonicalMessage struct {
	Role     Role            `json:"role"`
	Content  string          `json:"content"`
	Images   []string        `json:"images"`
	Calls    []canonicalCall `json:"calls"`
	Answers  int             `json:"answers"`
	ToolName string          `json:"tool_name"`
	Failed   bool            `json:"failed"`
}

type canonicalCall struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type canonicalTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  string `json:"parameters"`
}

type canonicalSchema struct {
	Name string `json:"name"`
	JSON string `json:"json"`
}

// canonicalJSON sorts keys and drops layout. Numbers stay as they are written, and a text that is not JSON stays a text.
func canonicalJSON(raw []byte) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return ""
	}
	v, err := payload.Decode(raw)
	if err != nil {
		return string(raw)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// Recording is how the end of a completion is kept in [Script.Recorded]: the fields of the completion, or an error.
type Recording struct {
	*Completion
	Error *fault.Error `json:"error,omitempty"`
	// RetryAfterMS is what the service said about coming back, in milliseconds.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Record makes a recording of what a completion returned.
func Record(c Completion, err error) (json.RawMessage, error) {
	recording := Recording{Completion: &c}
	if err != nil {
		recording = Recording{Error: fault.From(err).Public()}
		if later, ok := errors.AsType[*Unavailable](err); ok {
			recording.RetryAfterMS = later.RetryAfter.Milliseconds()
		}
	}
	raw, err := json.Marshal(recording)
	if err != nil {
		return nil, fmt.Errorf("record a completion: %w", err)
	}
	return raw, nil
}
