package api

import "encoding/json"

// Event is one frame of an execution's stream, in either vocabulary. Frames about rows of the journal have an id,
// "seq.part", from which a reader goes on after a break. Frames of text that is being written have none.
type Event struct {
	EventType   string `json:"event_type"`
	ExecutionID string `json:"execution_id"`
	Seq         uint64 `json:"seq,omitempty"`
	Part        int    `json:"part,omitempty"`
	Timestamp   int64  `json:"timestamp"`
	// Data is an [ExecutionUpdate], or the payload of the flow vocabulary.
	Data json.RawMessage `json:"data"`
	// Step and Executor are set in the flow vocabulary only.
	Step     *FlowStep     `json:"step,omitempty"`
	Executor *FlowExecutor `json:"executor,omitempty"`
}

// ExecutionUpdate is the data of a frame of the execution vocabulary.
type ExecutionUpdate struct {
	// NodeID is a node of the workflow. With InnerStep the frame is about that step inside the node, and not about the node itself.
	NodeID          string         `json:"node_id,omitempty"`
	InnerStep       string         `json:"inner_step,omitempty"`
	NodeExecution   *NodeExecution `json:"node_execution,omitempty"`
	PartialOutput   *PartialOutput `json:"partial_output,omitempty"`
	WrittenLines    *WrittenLines  `json:"written_lines,omitempty"`
	ExecutionStatus string         `json:"execution_status,omitempty"`
	// Kind is what a question is for: confirm, param, approval and so on.
	Kind             string            `json:"kind,omitempty"`
	Reason           string            `json:"reason,omitempty" enum:"human,operator"`
	Error            *ExecutionError   `json:"error,omitempty"`
	UserInputRequest *UserInputRequest `json:"user_input_request,omitempty"`
	// Iterations is how many iterations the loop around the node has. It is set for the nodes that a loop begins with.
	Iterations int64 `json:"iterations,omitempty"`
}

// PartialOutput is output that is being written. It is not stored: the completed output has all of it.
type PartialOutput struct {
	ActivationID string `json:"activation_id"`
	Attempt      int    `json:"attempt"`
	// Offset is where Text begins in the text of the attempt, in bytes. A new attempt begins at 0.
	Offset int64  `json:"offset"`
	Text   string `json:"text,omitempty"`
	// Data is the newest object, which replaces the one before.
	Data json.RawMessage `json:"data,omitempty"`
	// Snapshot says that Text is all there is so far (of more than 1 MiB its tail): what a late reader begins with.
	Snapshot bool `json:"snapshot,omitempty"`
	// Missed says that pieces were left out because the reader was slow; a snapshot follows.
	Missed bool `json:"missed,omitempty"`
}

// WrittenLines says that a running node has written lines, which GET /executions/{id}/logs has now. Lines that a node writes at its end
// come with its end.
type WrittenLines struct {
	ActivationID string `json:"activation_id,omitempty"`
	Count        int    `json:"count,omitempty"`
	// Missed says that the reader was slow, and that lines may have been written since its last frame.
	Missed bool `json:"missed,omitempty"`
}

// FlowStep is the step that a frame of the flow vocabulary is about.
type FlowStep struct {
	StepID     string `json:"step_id"`
	StepName   string `json:"step_name"`
	StepType   string `json:"step_type"`
	StepStatus string `json:"step_status"`
	// NodeID is the node of the workflow, InnerStep the step inside it that this is, if it is one.
	NodeID    string `json:"node_id,omitempty"`
	InnerStep string `json:"inner_step,omitempty"`
}

// FlowExecutor is the execution in the flow vocabulary.
type FlowExecutor struct {
	ExecutorID     string `json:"executor_id"`
	ExecutorName   string `json:"executor_name"`
	ExecutorStatus string `json:"executor_status"`
}

// Subscription is the first frame of a WebSocket.
type Subscription struct {
	SubscriptionID string `json:"subscription_id"`
	ExecutionID    string `json:"execution_id"`
	Status         string `json:"status" enum:"subscribed,finished"`
	Message        string `json:"message,omitempty"`
	Seq            uint64 `json:"seq"`
}
