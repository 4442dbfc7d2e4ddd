package node

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/payload"
)

// Data is what a run may read of its execution. The layers have one owner, who writes them under the write lock; runs
// read under the read lock.
type Data struct {
	Layers *dataflow.Layers
	Lock   *sync.RWMutex
	View   dataflow.View
	// Apart is what the loops around the node do not hand on, the inner ones first. Handed says that the node is one that they
	// hand their input to.
	Apart  []dataflow.Apart
	Handed bool
	// Entry are the fields of what the only connection of the node brings, if an iteration begins with it or large fields of it are kept apart; nil for
	// other nodes, and where it has no fields.
	Entry []payload.Member
}

// request is a question to the layers from where the run stands.
func (d *Data) request() dataflow.Request {
	return dataflow.Request{View: d.View, Apart: d.Apart, Handed: d.Handed}
}

func (d *Data) lookup(path string) (json.RawMessage, dataflow.Source, bool, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	return d.Layers.Lookup(d.View, path)
}

func (d *Data) resolve(t *dataflow.Template, own json.RawMessage) (json.RawMessage, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.request()
	request.Own = own
	raw, _, err := t.Resolve(d.Layers, request)
	return raw, err
}

// resolved puts values in the place of the placeholders of a value that somebody made who is not the author: a model. It tells
// where they came from.
func (d *Data) resolved(value json.RawMessage) (json.RawMessage, []dataflow.Origin, error) {
	t, err := dataflow.Compile(value)
	if err != nil {
		return nil, nil, err
	}
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.request()
	out, _, err := t.Resolve(d.Layers, request)
	if err != nil {
		return nil, nil, err
	}
	lineage, err := dataflow.InputLineage(d.Layers, dataflow.Input{Params: t}, request)
	return out, lineage.Origins, err
}

func (d *Data) context() (dataflow.Context, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	return d.Layers.Context(d.View)
}

// Job is one RunNode command with what it takes to carry it out.
type Job struct {
	Run  engine.RunNode
	Data Data
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
