package node

import (
	"context"
	"encoding/json"
	"time"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/node/rundata"
)

// Job is one RunNode command with what it takes to carry it out.
type Job struct {
	Run  engine.RunNode
	Data rundata.Data
	// Value returns a value by its reference.
	Value func(engine.Ref) (json.RawMessage, error)
	// Edits are laid over the input: what somebody gave the activation when they forked the execution. EditsOf are those of the
	// values that the connections bring, by reference.
	Edits   []dataflow.Edit
	EditsOf map[engine.Ref][]dataflow.Edit
	// Now is the start of the activation.
	Now time.Time
	// Execution is what calls are told about it, Start what it was started with: the input of its trigger.
	Execution Execution
	Start     json.RawMessage
	// Trigger is what its trigger was given, which may be more than what the data begins with.
	Trigger json.RawMessage
	// Scope is set for turns and closes.
	Scope ScopeData
	// Owner is the node whose program made the step, and State what it keeps for its steps.
	Owner int
	State json.RawMessage
	// Out is told what the run says while it runs, and opens credentials for it; nil: nobody listens, and there are none.
	Out Out
	// Redact takes the secrets of open credentials out of what leaves the run.
	Redact Redactor
	Files  Files
	// Code runs untrusted code; nil: there is no sandbox.
	Code Interpreter
	// Stand, when it is not nil, does the work instead of the kind, which is not touched: a replay answers from a recording.
	Stand Stand
	// Clock is the time that the run goes by; nil: that of this machine.
	Clock func() time.Time
	// InputRules is the version of the rules by which the execution builds inputs: what the first row of its journal says. Version
	// 1 hands no iteration the list that its loop goes through, and "inputs" to what joins branches only; version 2 hands on no
	// list that stands inside another one either (items[0].rows).
	InputRules int
	// Prepared is, for a turn, its scope as [Revision.Iterations] has prepared it; nil: it is prepared anew.
	Prepared *Prepared
}

// InputRules is the version of the rules by which new executions build inputs.
const InputRules = 2

// Stand does the work of a run: it is given the call as the kind would be, and the step if the run is one. A kind that a
// program leads begins with [Led] and closes with [Done].
type Stand func(ctx context.Context, c *Call, s *Step) (Outcome, error)

// Out is where what a run says goes.
type Out interface {
	// Emit is handed a chunk of output: a string, or an object as json.RawMessage.
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
	// Ancestors are the executions that it came of by forks.
	Ancestors []string
	// Requesters are the others who want what it does.
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
