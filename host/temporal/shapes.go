package temporal

import (
	"time"

	sdk "go.temporal.io/sdk/temporal"
)

// Names by which Temporal knows the parts. They are stored.
const (
	loopName   = "tandem.execution"
	stepName   = "tandem.step"
	attendName = "tandem.attend"
	wakeSignal = "wake"
)

// The search attributes of an execution's workflow. They are all that Temporal knows of it beside its id.
var (
	inWorkspace = sdk.NewSearchAttributeKeyKeyword("TandemWorkspace") // read-only
	inWorkflow  = sdk.NewSearchAttributeKeyKeyword("TandemWorkflow")  // read-only
	inExecution = sdk.NewSearchAttributeKeyKeyword("TandemExecution") // read-only
	inStatus    = sdk.NewSearchAttributeKeyKeyword("TandemStatus")    // read-only
)

// What follows is stored in the histories of workflows: fields may be added, none may change what it means.

// execution names an execution.
type execution struct {
	Workspace string `json:"workspace"`
	ID        string `json:"id"`
}

// going is what a loop begins with, and hands on to its next run.
type going struct {
	Execution execution `json:"execution"`
	// Run are attempts that are to be run, Lost those that Temporal has given up.
	Run  []work   `json:"run,omitempty"`
	Lost []string `json:"lost,omitempty"`
	// Due is when the execution is to be attended to, in Unix milliseconds; 0: when it is woken. Look: now.
	Due  int64 `json:"due,omitempty"`
	Look bool  `json:"look,omitempty"`
	// Search says that the server knows the search attributes, Status what it was told last.
	Search bool   `json:"search,omitempty"`
	Status string `json:"status,omitempty"`
	// Seq is the row as of which this is so, AtOnce how many attempts may run at once; 0: as many as a loop lets run.
	Seq    uint64 `json:"seq,omitempty"`
	AtOnce int    `json:"at_once,omitempty"`
}

// work is an attempt that is to be run. One that may run once only is given up when it is lost.
type work struct {
	ID      string `json:"id"`
	Once    bool   `json:"once,omitempty"`
	LimitMS int64  `json:"limit_ms"`
}

// answer is what an activity says is to be done. Seq is the row as of which it says so.
type answer struct {
	Seq    uint64   `json:"seq"`
	Run    []work   `json:"run,omitempty"`
	Stop   []string `json:"stop,omitempty"`
	Due    int64    `json:"due,omitempty"`
	Ended  bool     `json:"ended,omitempty"`
	AtOnce int      `json:"at_once,omitempty"`
	// Status is how the execution stands, Workflow what it is an execution of.
	Status   string `json:"status,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	// All says that whatever is not in Run is not needed any more.
	All bool `json:"all,omitempty"`
}

// retries repeats an activity so many times, or until it ends well.
func retries(most int32) *sdk.RetryPolicy {
	return &sdk.RetryPolicy{
		InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second, MaximumAttempts: most,
	}
}
