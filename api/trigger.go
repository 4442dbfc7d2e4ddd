package api

import "encoding/json"

// Trigger is a trigger of a workflow that is deployed, or is being deployed.
type Trigger struct {
	WorkflowID string `json:"workflow_id"`
	NodeID     string `json:"node_id"`
	Kind       string `json:"kind" doc:"such as TRIGGER.WEBHOOK"`
	Revision   int64  `json:"revision" doc:"the revision whose executions it starts"`
	InForce    bool   `json:"in_force" doc:"whether it starts executions; if not, it belongs to a deployment that is being made or has failed"`
	State      string `json:"state" enum:"pending,active,failed"`
	Reason     string `json:"reason,omitempty" doc:"why it failed"`
	// Address and Methods are where it takes requests.
	Address   string          `json:"address,omitempty" doc:"where it takes requests; without a host when the server was not told its public address"`
	Methods   []string        `json:"methods,omitempty"`
	NextRuns  []int64         `json:"next_runs,omitempty" doc:"the next times at which it starts something, in Unix milliseconds"`
	Timezone  string          `json:"timezone,omitempty"`
	Listening *Listening      `json:"listening,omitempty" doc:"how a trigger in force fares that looks for events itself, such as a mailbox"`
	Config    json.RawMessage `json:"configurations"`
	UpdatedAt int64           `json:"updated_at"`
}

// Listening is the state of a trigger that looks for events itself.
type Listening struct {
	State    string `json:"state" enum:"starting,listening,failing" doc:"failing: it is tried again by itself, and nothing that arrives meanwhile is lost"`
	Since    int64  `json:"since" doc:"when it came into this state, in Unix milliseconds"`
	Failures int    `json:"failures,omitempty" doc:"how often it has failed in a row"`
	Error    string `json:"error,omitempty" doc:"why it failed the last time"`
	RetryAt  int64  `json:"retry_at,omitempty" doc:"when it is tried again, in Unix milliseconds"`
}

// Triggers is a part of a listing.
type Triggers struct {
	Triggers   []Trigger `json:"triggers"`
	TotalCount int       `json:"total_count"`
	Page       int       `json:"page"`
	PageSize   int       `json:"page_size"`
}

// Delivery is one event that has come to a trigger.
type Delivery struct {
	ID          string `json:"id"`
	WorkflowID  string `json:"workflow_id"`
	NodeID      string `json:"node_id"`
	Kind        string `json:"kind"`
	Revision    int64  `json:"revision"`
	Key         string `json:"key,omitempty" doc:"the sender's id of it, or the scheduled time"`
	ReceivedAt  int64  `json:"received_at"`
	Decision    string `json:"decision" enum:"accepted,started,ignored,refused,failed" doc:"accepted: it is kept, and its execution is yet to be started"`
	Reason      string `json:"reason,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`
	Attempts    int    `json:"attempts,omitempty" doc:"how often it was tried to start it in vain"`
	ReplayOf    string `json:"replay_of,omitempty" doc:"the delivery that it repeats"`
	Size        int64  `json:"size" doc:"of the payload, in bytes"`
	// Payload and Answer are set when one delivery is requested.
	Payload json.RawMessage `json:"payload,omitempty" doc:"what it has brought, without secrets; of a webhook the request. Only when one is asked for"`
	Answer  json.RawMessage `json:"answer,omitempty" doc:"what a node has answered the sender. Only when one is asked for"`
}

// Deliveries is a part of a listing, the newest first.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
	TotalCount int        `json:"total_count"`
	Page       int        `json:"page"`
	PageSize   int        `json:"page_size"`
}

// Received is the answer to a request to a trigger that is answered before its execution has ended.
type Received struct {
	DeliveryID  string `json:"delivery_id"`
	ExecutionID string `json:"execution_id,omitempty"`
	Status      string `json:"status,omitempty" doc:"of the execution"`
	Ignored     string `json:"ignored,omitempty" doc:"why nothing was started"`
}
