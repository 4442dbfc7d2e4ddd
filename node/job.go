package node

import (
	"context"
	"encoding/json"
	"time"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/node/rundata"
	"tandem/payload"
)

// Job is one RunNode command with everything needed to carry it out.
type Job struct {
	Run  engine.RunNode
	Data rundata.Data
	// Joined is for a run with several connections: the fields of those values that have large fields kept apart, by reference.
	Joined map[engine.Ref][]payload.Member
	// Value returns a value by its reference.
	Value func(engine.Ref) (json.RawMessage, error)
	// Edits are laid over the input: what somebody gave the activation when they forked the execution. EditsOf are the edits of
	// the values that the connections bring, by reference.
	Edits   []dataflow.Edit
	EditsOf map[engine.Ref][]dataflow.Edit
	// Now is the start of the activation.
	Now time.Time
	// Execution is what calls may know about the execution, Start what it was started with: the input of its trigger.
	Execution Execution
	Start     json.RawMessage
	// Trigger is what its trigger was given, which may be more than what the data begins with.
	Trigger json.RawMessage
	// Scope is set for turns and closes.
	Scope ScopeData
	// Owner is the node whose program made the step, and State what it keeps for its steps.
	Owner int
	State json.RawMessage
	// Out gets what the run says while it runs, and opens credentials for it; nil: output is dropped, and there are no credentials.
	Out Out
	// Redact takes the secrets of open credentials out of what leaves the run.
	Redact Redactor
	Files  Files
	// Code runs untrusted code; nil: there is no sandbox.
	Code Interpreter
	// Stand, when it is not nil, does the work instead of the kind, which is not called: a replay answers from a recording.
	Stand Stand
	// Clock is the clock of the run; nil: that of this machine.
	Clock func() time.Time
	// InputRules is the version of the rules by which the execution builds inputs: what the first row of its journal says. Since
	// version 1 iterations do not get the list that their loop goes through, and only nodes that join branches get "inputs"; since
	// version 2 a list inside another one (items[0].rows) is left out as well.
	InputRules int
	// Prepared is, for a turn, its scope as [Revision.Iterations] has prepared it; nil: it is prepared anew.
	Prepared *Prepared
}

// InputRules is the version of the rules by which new executions build inputs.
const InputRules = 2

// Stand does the work of a run: it gets the call as the kind would, and the step if the run is one. A kind that a
// program leads begins with [Led] and closes with [Done].
type Stand func(ctx context.Context, c *Call, s *Step) (Outcome, error)

// Out receives what a run says while it runs.
type Out interface {
	// Emit takes a chunk of output: a string, or an object as json.RawMessage.
	Emit(chunk any)
	Log(level Level, message string, fields map[string]any)
	Detail(fields map[string]any)
	// Used notes what was used of paid services.
	Used(u Usage)
	// Credential is a [credential.Opener]. What it opens is released when the run has ended and nothing of it can leave any more.
	Credential(ctx context.Context, id string, types ...string) (credential.Opened, error)
}

// Execution is what a node may know about the execution it runs in.
type Execution struct {
	Workspace  string
	ID         string
	WorkflowID string
	UserID     string
	// Ancestors are the executions that it was forked from.
	Ancestors []string
	// Requesters are the other users who requested what it does.
	Requesters []string
	Language   string
}

// ScopeData is what a host has kept of a scope's iterations.
type ScopeData struct {
	Last    func() json.RawMessage
	Results func() ([]json.RawMessage, error)
	Errors  []IterationError
	Opened  time.Time
}
