package dataflow

import (
	"encoding/json"
	"fmt"
)

// The traces below are what a resolution, a sync or a rewind did. This package logs nothing; a host may write them,
// values redacted.

// ResolveTrace tells what became of the parameters of a step.
type ResolveTrace struct {
	StepID   string          `json:"step_id"`
	Original json.RawMessage `json:"original_params"`
	Resolved json.RawMessage `json:"resolved_params,omitempty"`
	Warnings []Warning       `json:"warnings,omitempty"`
}

// Warning is something a user should know that was not an error.
type Warning struct {
	Path        string `json:"path"`
	Placeholder string `json:"placeholder,omitempty"`
	Message     string `json:"message"`
}

func (t *ResolveTrace) warn(p *placeholder, e explanation, outcome string) {
	t.Warnings = append(t.Warnings, Warning{Path: p.at, Placeholder: p.raw, Message: e.message.String() + "; " + outcome})
}

// SyncTrace tells what a success wrote into runtime_metadata.
type SyncTrace struct {
	StepID string `json:"step_id"`
	Scope  string `json:"scope,omitempty"`
	// Synced are the fields written, each under two names; Count is how many there are.
	Synced []string `json:"synced_fields"`
	Count  int      `json:"sync_count"`
	// Missing were listed to be synced and are not in the output.
	Missing     []string    `json:"missing,omitempty"`
	Overwritten []Overwrite `json:"overwritten,omitempty"`
}

// Overwrite is a name that held another result's value before, in the same scope.
type Overwrite struct {
	Name string `json:"name"`
	// Node, Scope and Seq are those of the result that had written it.
	Node  string `json:"node_id"`
	Scope string `json:"scope,omitempty"`
	Seq   uint64 `json:"seq"`
}

// RewindTrace tells what a rewind kept, which is everything.
type RewindTrace struct {
	PlanID         string `json:"plan_id"`
	PreviousPlanID string `json:"previous_plan_id,omitempty"`
	// StepResults and RuntimeMetadata count the entries that stayed; Cleared is 0.
	StepResults     int `json:"step_results_count"`
	RuntimeMetadata int `json:"runtime_metadata_count"`
	Cleared         int `json:"cleared"`
}

// String says in words that nothing was cleared.
func (t RewindTrace) String() string {
	return fmt.Sprintf("rewind for plan %q: %d step results and %d names of runtime metadata stay, nothing is cleared",
		t.PlanID, t.StepResults, t.RuntimeMetadata)
}
