package llm

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	"tandem/fault"
)

// EventType is what happened to a call.
type EventType string

// The events. A call has one request, any number of chunks, and then one completed or one failed.
const (
	EventRequest   EventType = "LLM_EXECUTION_REQUEST"
	EventChunk     EventType = "LLM_EXECUTION_CHUNK"
	EventCompleted EventType = "LLM_EXECUTION_COMPLETED"
	EventFailed    EventType = "LLM_EXECUTION_FAILED"
)

// Event tells observers of a call. Exactly one of the four parts is set, the one of its type; in JSON its fields stand
// beside the request id. What it points to belongs to the call: observers read it and change nothing.
type Event struct {
	Type      EventType `json:"type"`
	RequestID string    `json:"request_id"`
	*Asked
	*Chunk
	*Answered
	*Failed
}

// Asked is what a call wants, with its profile's settings already in it.
type Asked struct {
	WorkflowID  string      `json:"workflow_id,omitempty"`
	ExecutionID string      `json:"execution_id,omitempty"`
	NodeID      string      `json:"node_id,omitempty"`
	NodeType    string      `json:"node_type,omitempty"`
	RequestData RequestData `json:"request_data"`
	Snapshot    Snapshot    `json:"context_snapshot"`
}

// RequestData is what the model is asked.
type RequestData struct {
	Messages   []Message `json:"messages"`
	Tools      []Tool    `json:"tools,omitempty"`
	ProfileID  string    `json:"profile_id"`
	Parameters Params    `json:"parameters"`
	Stream     bool      `json:"stream"`
}

// Snapshot is what was known around a call when it was made: JSON values, absent where there is nothing.
type Snapshot struct {
	Conversation   json.RawMessage `json:"conversation,omitempty"`
	VariableValues json.RawMessage `json:"variable_values,omitempty"`
	NodeResults    json.RawMessage `json:"node_results,omitempty"`
}

// Chunk is a piece of an answer. An index that is missing between two others was dropped because observers were too
// slow; the completion has the text of all.
type Chunk struct {
	Index     int64          `json:"index"`
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	ToolCall  *ToolCallDelta `json:"tool_call,omitempty"`
}

// Answered is the end of a call that went well.
type Answered struct {
	Result Result `json:"result"`
	// UpdatedContext are the messages to append to the conversation.
	UpdatedContext []Message `json:"updated_context,omitempty"`
}

// Result is what a model has answered.
type Result struct {
	Content   string     `json:"content"`
	Usage     Usage      `json:"usage"`
	Finish    Finish     `json:"finish_reason"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
}

// Failed is the end of a call that went wrong, without what only operators may see.
type Failed struct {
	Error *fault.Error `json:"error"`
}

// How many events may wait for observers. Chunks give way first, so that a flood of them leaves room for the ends of calls.
const (
	maxWaitingChunks = 1024
	maxWaitingEvents = 2 * maxWaitingChunks
)

// teller hands events to the observer, in order, from a goroutine that lives while there are any. Calls never wait for it.
type teller struct {
	observe func(Event)
	log     func(level, message string, fields map[string]any)

	mu      sync.Mutex
	waiting []Event
	running bool
	dropped uint64
}

// queueEvent queues an event. It returns false when there was no room for it.
func (t *teller) queueEvent(e Event) bool {
	limit := maxWaitingEvents
	if e.Type == EventChunk {
		limit = maxWaitingChunks
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= limit {
		t.dropped++
		return false
	}
	t.waiting = append(t.waiting, e)
	if !t.running {
		t.running = true
		go t.run()
	}
	return true
}

// run delivers until nothing waits.
func (t *teller) run() {
	var batch []Event
	for {
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.waiting, t.running = nil, false
			t.mu.Unlock()
			return
		}
		clear(batch)
		batch, t.waiting = t.waiting, batch[:0]
		t.mu.Unlock()
		var broken any
		lost := uint64(0)
		for _, e := range batch {
			if p := t.deliver(e); p != nil {
				broken = p
				lost++
			}
		}
		if lost > 0 {
			t.mu.Lock()
			t.dropped += lost
			t.mu.Unlock()
			t.log("WARN", "an observer of model calls panics", map[string]any{"events": lost, "panic": panicKind(broken)})
		}
	}
}

// deliver returns what the observer panicked with.
func (t *teller) deliver(e Event) (panicked any) {
	defer func() { panicked = recover() }()
	t.observe(e)
	return nil
}

// panicKind describes a panic for a log: a value of somebody else's may hold a prompt, an error of the runtime does not.
func panicKind(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", p)
}
