package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/shape"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Kind is a kind of node that can be run. Exactly one of Run, Scope and Steps is set. Make one with [Define], [Raw], [Loop] or
// [Lead], which infer the schemas.
type Kind struct {
	About About
	// Run does one run of an attempt: the work from its start, or what follows a wait.
	Run func(ctx context.Context, c *Call) (Outcome, error)
	// Scope is set for kinds that run a body, Steps for kinds whose work a program of the engine leads.
	Scope *Scope
	Steps *Steps
	// Inquire, when it is set, asks the service about a run whose outcome is not known: the process died in it, or the answer was cut off.
	// It is given the call as that run had it, with the same [Call.EffectKey], and changes nothing in the world. A success means that the
	// run had its effect, and is its result. Nil without an error: it had not, and may be repeated. An error: the service does not know;
	// after several tries a person is asked.
	Inquire func(ctx context.Context, c *Call) (Outcome, error)
	// Prepare, when it is set, may change the input before it is checked and the kind is run; it sees the call with its
	// configurations. It is part of the run, so it may be called again with it.
	Prepare func(ctx context.Context, c *Call) (input json.RawMessage, err error)
	// After, when it is set, is called once for a success that is on disk, by the process that recorded it. Nothing depends
	// on it: its failure is a warning in the log of the node, and a crash in between leaves it out.
	After func(ctx context.Context, c *Call, outputs Done) error
	// Tools, when it is set, lists what the kind offers to a model when a node of it is attached to an agent. It sees the
	// call with its configurations.
	Tools func(ctx context.Context, c *Call) ([]Tool, error)
	// Wants, when it is set, returns what the input of one run may have besides what InputSchema says, as a JSON Schema of an object, so
	// that what is missing can be filled: a kind that calls a tool by its name learns only now which arguments the tool has. It sees the
	// call with its configurations and its input. Nil: nothing besides.
	Wants func(ctx context.Context, c *Call) (json.RawMessage, error)
	// Ready, when it is set, is called before Tools: when a person has to decide first, the node that the tools are for waits,
	// and begins again when the wait is over. A nil wait: there is nothing to wait for.
	Ready func(ctx context.Context, c *Call) (*Wait, error)
	// Sent, when it is set, returns what a run sends: the method, the address, the body. It sees the call with its configurations
	// and its input, and opens nothing. Nil: configurations and input describe it.
	Sent func(c *Call) (any, error)
	// Publishes, when it is set, names a field of the result whose own fields are outputs of the node as well: those of what a tool
	// has returned. For a node that is not attached to another they are laid beside that field, unless something else has their
	// name: those that output_params names, else those that the tool has declared ([Call.Declare]), else all. Only they become
	// names of the execution's data.
	Publishes string
	// Fill, when it is set, fills missing inputs of other nodes; see [SlotKind].
	Fill Filler
	// Fresh says that the kind's expressions read the data as it is when they are evaluated, and not as it was when the
	// node became ready: a kind that waits for a change must be able to see it.
	Fresh bool
	// Brief says that a run takes no longer than handing it to a worker would: it waits for nothing, and its work is bounded
	// by its small configuration. A host may run it at once, even before the rows that lead to it are on disk, so it must not
	// emit anything. Its call is reused for another run, so it must not be used after the run has returned.
	Brief bool
	// EffectFirst says that the kind has all its effects before it waits: a run that goes on after a wait only hands on what the
	// wait has brought, and may be repeated.
	EffectFirst bool
	// Own returns, for single configuration fields, the object that their placeholders are looked up in first, made of
	// the node's input. Other fields use the input itself.
	Own map[string]func(input json.RawMessage) json.RawMessage

	// Needs, when it is set, returns for a node's configurations, as they are written, which fields of its input a run reads other than
	// by placeholders and expressions; nil: all. Other large fields that an iteration of a loop brings are then left out of
	// [Call.Input]. A scope still hands them to its own iterations.
	Needs func(config json.RawMessage) *payload.Reads
	// Hands, when it is set, says that a run reads no field itself, and that its one payload has all fields of its input in their order,
	// except those that it replaces; new ones come last. Large fields are then laid into the output without the kind having seen them.
	Hands func(config json.RawMessage) bool

	// skims are the fields of the input that a run reads; nil: possibly all of them.
	skims *payload.Reads
	// config are the kind's own configuration fields, plan what its configuration decides about a node; nil: nothing.
	config *shape.Shape
	plan   func(p *Planning)

	// prompt says whether models read the configuration with a key, as it is written; promptInputs are the fields of the input that they
	// read. Nil: none.
	prompt       func(key string) bool
	promptInputs []string

	// The schemas of configuration, input and output are inferred from Go types; nil means anything.
	ConfigSchema SchemaSource
	InputSchema  SchemaSource
	OutputSchema SchemaSource
}

// Outcome is how a run ended: [Done], [Wait] or, for a step of a program, [Replied]; a [Stand] may also answer with
// [Led]. A failure is an error, best a *fault.Error.
type Outcome interface{ outcome() }

// Failure is an error with what else the engine has to know.
type Failure struct {
	Err error
	// RetryAfter is how long the service asks to wait; it replaces the backoff. Zero: it did not say.
	RetryAfter time.Duration
	// Unknown says that it is not known whether the effect has happened; NotDone that it has not, according to the service.
	Unknown, NotDone bool
}

// Error returns what the error says.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error.
func (f *Failure) Unwrap() error { return f.Err }

// Done is a success: payload by output key. Without any key, a run that has emitted chunks gets all of them together as its
// result: {"text": …, "data": …}.
type Done map[string]json.RawMessage

// Succeed is a success with one payload, under the key "result".
func Succeed(out any) (Outcome, error) {
	result, err := payload.Encode(out)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the node made a result that JSON cannot hold").WithCause(err)
	}
	return Done{"result": result}, nil
}

// Wait ends a run but not its activation: no resources are held until the time, signal, answer or child that it names
// comes, whichever is first; then the kind is run again with [Call.Wake] and [Call.Memo].
type Wait struct {
	// Until is when to wake at the latest; zero: only by what else is named.
	Until time.Time
	// Signal is the name of a signal that wakes it.
	Signal string
	Ask    *Question
	Child  *Child
	// Memo comes back with the next run.
	Memo json.RawMessage
}

// Question is a question to a person.
type Question struct {
	Purpose string
	Request json.RawMessage
	// Key makes several activations of an execution wait for one question while it is open. Empty: a question of its own.
	Key string
}

// Child is another workflow to start.
type Child struct {
	Workflow string
	// Revision is "deployed", "latest" or a number.
	Revision string
	Input    json.RawMessage
	// HandsOn says that the input is the node's own, without large fields that the kind has not seen.
	HandsOn bool
	// Detached children are not waited for.
	Detached bool
	// Outputs are the nodes whose outputs the payload of the wake has, by node id; none means the child's last nodes.
	Outputs []string
}

func (Done) outcome()    {}
func (Wait) outcome()    {}
func (Replied) outcome() {}
func (Led) outcome()     {}

// Call is one run of one attempt, as its kind sees it. It is valid during the run.
type Call struct {
	// Workspace is the tenant that the data, files and credentials belong to.
	Workspace    string
	ExecutionID  string
	ActivationID engine.ActivationID
	NodeID       string
	NodeName     string
	Kind         string
	WorkflowID   string
	UserID       string
	Requesters   []string // the other users who requested what the execution does
	Ancestors    []string // the executions that it was forked from
	Language     string
	Generation   uint32
	Attempt      uint32
	// MaxRetries and TimeoutMS are what the node says about its attempts.
	MaxRetries int
	TimeoutMS  int64

	// Trigger is what the execution was started with, as its trigger got it; nil when there was nothing.
	Trigger json.RawMessage
	// Config are the configurations with their placeholders resolved, an object. Expressions and code are as written.
	Config json.RawMessage
	// Input is what the node received, an object: the payloads of its live connections merged, its input_params over them. For a kind that
	// reads its input into a struct, large fields that the struct does not have may be missing in the iterations of a loop.
	Input json.RawMessage
	// Contributions are the payloads one by one, in definition order: what a merge joins.
	Contributions []Contribution
	// TimedOut says that a join went on without waiting for all of its connections.
	TimedOut bool

	// Now is the start of the activation: the clock of pure kinds.
	Now time.Time
	// Clock is the host's clock, for kinds that set a timer from now on; nil: use Now.
	Clock func() time.Time
	// Kept is a cache that a scope's methods leave here for their next call. The runtime may drop it at any time, so
	// they must work without it.
	Kept any
	// Wake is what ended the last wait, nil in a first run; Memo what the kind left when it began to wait.
	Wake *Wake
	Memo json.RawMessage

	// Eval evaluates an expression of the configurations in the node's scope; extra names come before all others.
	Eval func(source string, extra map[string]any) (any, error)
	// Bind resolves the placeholders of a text into which values must not be inserted, such as SQL: they become values
	// beside it. The configuration has such texts as they are written.
	Bind func(text string) (dataflow.Bound, error)
	// Resolve resolves the placeholders of an object that was made while the execution runs, and says where each value came
	// from.
	Resolve func(value json.RawMessage) (json.RawMessage, []dataflow.Origin, error)
	// Connected says whether anything is connected to an output key.
	Connected func(key string) bool
	// Context returns the data layers as the node sees them: what it was started with, what was set, what other nodes made.
	Context func() (dataflow.Context, error)
	// History lists the last n activations of the execution that have ended before this one became ready, the oldest first.
	History func(n int) ([]Past, error)
	// Uses lists the nodes that are attached to this one, in the order in which it names them.
	Uses func() []Use
	// Attached runs a node that is attached to this one, with an input of its own; Offered lists the tools that it offers.
	Attached func(ctx context.Context, node string, input json.RawMessage) (Outcome, error)
	Offered  func(ctx context.Context, node string) ([]Tool, error)
	// Ready returns what has to be waited for before an attached node can say what it offers; nil: nothing.
	Ready func(ctx context.Context, node string) (*Wait, error)
	// Emit sends a chunk of output while the node runs: a string is text, anything else an object.
	Emit func(chunk any)
	// Print takes what a program prints to Stdout or Stderr, in pieces: people who follow the execution see it at once, and its
	// lines are in the log of the node, however the run ends. [Call.Code] does so by itself.
	Print func(stream, text string)
	// Log writes a line for people who look into the execution.
	Log func(level Level, message string, context map[string]any)
	// Warn records something that a person should know although it is not an error: which part of the node it is about
	// ("configurations.condition_expression"), and what to do about it. It is kept with the record of the activation, where
	// the API shows it, and is a line of the log.
	Warn func(path, message string)
	// look is called by [Call.Look].
	look   func(at, name string, found bool, missing func() string)
	beside func() []string
	// Detail adds fields to the record of the activation, for people: the address that was called, the status it answered
	// with. They are not output.
	Detail func(fields map[string]any)
	// Declare names the fields of its result that a tool has declared as its outputs. None: all that it returns.
	Declare func(names []string)
	// Used adds what the run has used of paid services. It counts for the node, the execution and the workflow.
	Used func(u Usage)
	// Credential opens a stored credential of the workspace, of one of the types. Its secrets are removed from
	// everything that leaves the run, and the run releases it when it has ended.
	Credential credential.Opener
	// Files stores what is too large for a payload.
	Files Files
	// Code runs a function of the node's configurations in the sandbox.
	Code func(ctx context.Context, c Code) (CodeResult, error)
}

// EffectKey identifies the effect of the activation: it is the same in every attempt, and different for every other activation.
func (c *Call) EffectKey() string {
	return fmt.Sprintf("%s\x00%s\x00%d", c.ExecutionID, c.ActivationID, c.Generation)
}

// Time is the time of the host's clock; without one, the start of the activation.
func (c *Call) Time() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return c.Now
}

// Speaks is the language in which the run addresses people and models, one of [text.Languages]: the given one, else that of the execution.
func (c *Call) Speaks(wish string) string { return text.Language(cmp.Or(wish, c.Language)) }

// Files stores large values of a workspace under the hash of their content.
type Files interface {
	// Keep stores a value and returns when it is on disk. Hash is the SHA-256 of the content in lower-case hex.
	Keep(ctx context.Context, r io.Reader) (hash string, size int64, err error)
	// Open opens a value. The caller closes it.
	Open(ctx context.Context, hash string) (content io.ReadCloser, size int64, err error)
}

// Tool is a function that a node offers to a model.
type Tool struct {
	Name string
	// Also are further names that configurations may use for it.
	Also []string
	// Withheld says that it exists but must not be shown to a model: it is forbidden, or not available now.
	Withheld    bool
	Description string
	// Parameters is a JSON Schema of an object.
	Parameters json.RawMessage
	Effect     workflow.Effect
	// EffectBy is an argument that decides the effect, and Effects has the effect of its values; other values have Effect.
	EffectBy string
	Effects  map[string]workflow.Effect
	// Approval is never or always when the node decides whether a person is asked first; else the agent does.
	Approval string
	// TimeoutMS is how long a call may take; 0: as long as the agent allows.
	TimeoutMS int64
	// Policy is what people have decided about the tool, in the form of its kind.
	Policy json.RawMessage
	// Acts is the effect that a call has in the end, where that is more than Effect says: the start of a workflow may be repeated, since
	// it is started once, but what the workflow does may not. It decides whether a person is asked. Empty: the same as Effect.
	Acts workflow.Effect
	// Sources says that "sources" in a result are parts of documents that an answer may be based on.
	Sources bool
}

// Use is an attached node.
type Use struct{ ID, Kind string }

type directedKey struct{}

// Directed marks the run of an attached node whose work is decided by the node that it is attached to, and not by its own configuration.
func Directed(ctx context.Context) context.Context {
	return context.WithValue(ctx, directedKey{}, true)
}

// IsDirected says whether a run was marked by [Directed].
func IsDirected(ctx context.Context) bool { return ctx.Value(directedKey{}) != nil }

// Usage is what was used of paid services.
type Usage struct {
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CachedTokens int64   `json:"cached_tokens,omitempty"`
	Credits      float64 `json:"credits,omitempty"`
}

// Redactor removes secrets from what leaves a run.
type Redactor interface {
	Text(string) string
	JSON(json.RawMessage) json.RawMessage
	Fault(*fault.Error) *fault.Error
}

// Contribution is the payload of one live connection.
type Contribution struct {
	Node    string
	Payload json.RawMessage
}

// Wake is what ended a wait.
type Wake struct {
	By engine.WakeKind
	// Payload is what it brought: a signal's payload, an answer, a child's outputs.
	Payload json.RawMessage
	Outcome engine.AskOutcome
	// Person is who answered, if an answer ended the wait: a user's id, or an address of somebody who is not a user. Older journals do not
	// have it.
	Person string
	// Child, Status and Error are about a child that has ended.
	Child  string
	Status engine.Status
	Error  error
}

// ChildError is the failure of a child as the failure of its parent, nil if the child succeeded. It is final, since the child has tried
// again already.
func (w *Wake) ChildError(workflow string) error {
	if w.Status == engine.StatusSuccess {
		return nil
	}
	if w.Error != nil {
		return fault.From(w.Error).With("execution_id", w.Child).Final()
	}
	code := fault.Internal
	switch w.Status {
	case engine.StatusCanceled:
		code = fault.Canceled
	case engine.StatusTimeout:
		code = fault.Timeout
	}
	return fault.Newf(code, "the workflow %q ended as %s", workflow, w.Status).With("execution_id", w.Child).Final()
}

// Level is the level of a log line.
type Level string

// The levels.
const (
	Debug  Level = "DEBUG"
	Notice Level = "INFO"
	Warn   Level = "WARN"
	Error  Level = "ERROR"
)

// Scope is the work of a kind that runs a body. Its functions get the same Call as Run would; State belongs to the
// kind, and the runtime keeps it from call to call.
type Scope struct {
	// Open decides how often the body runs, or that it does not run at all (Done).
	Open func(ctx context.Context, c *Call) (Opening, error)
	// Share, when it is set, names a value of the input that every iteration can read but does not get as input: the list that
	// the loop goes through, as the path of its field; nil: none. The runtime takes it out of the input and lets bodies read it
	// by its name. What Iteration and Turn need of it stays in [Call.Kept].
	Share func(c *Call) (path []string, err error)
	// Iteration returns what iteration number index gets.
	Iteration func(c *Call, state json.RawMessage, index int64) (Iteration, error)
	// Turn says whether the next iteration begins. Only called for openings with Turns.
	Turn func(ctx context.Context, c *Call, t Turn) (Advance, error)
	// Close produces the exit keys.
	Close func(ctx context.Context, c *Call, t Closing) (Done, error)
}

// Opening is how a body is run.
type Opening struct {
	// Done, when it is not nil, ends the node without running its body.
	Done        Done
	Count       int64 // -1: the turns decide
	Concurrency int64
	// KeepGoing keeps a failed iteration from failing the scope.
	KeepGoing bool
	Turns     bool
	// Discard says that the results of the iterations are not used; only the last one is kept.
	Discard  bool
	Deadline time.Time
	State    json.RawMessage
}

// Iteration is what one iteration gets: the payload of the entry key, and the names its body can read.
type Iteration struct {
	// Fields are the fields of the payload, in order, each checked JSON; fields that do not change from one iteration to the next share
	// their memory. Nil: Payload is given instead.
	Fields  []payload.Member
	Payload json.RawMessage
	Vars    map[string]json.RawMessage
}

// Whole is the payload of the entry key as one value.
func (i *Iteration) Whole() json.RawMessage {
	if i.Fields == nil {
		return i.Payload
	}
	return payload.AppendObject(nil, i.Fields)
}

// Turn asks whether iteration Index begins.
type Turn struct {
	Index int64
	State json.RawMessage
	// Last is the result of the iteration that ended last, nil before the first; Results those collected so far.
	Last    func() json.RawMessage
	Results func() ([]json.RawMessage, error)
}

// Advance answers a turn.
type Advance struct {
	Open bool
	// State replaces the scope's state.
	State json.RawMessage
	// Wait, when it is not nil, puts the turn off.
	Wait *Wait
}

// Closing is a scope that has ended.
type Closing struct {
	engine.Closed
	State json.RawMessage
	// Results returns the result of every iteration in index order, null for one that failed or had none.
	Results func() ([]json.RawMessage, error)
	// Errors lists the iterations that failed.
	Errors []IterationError
	// Elapsed is how long the scope was open.
	Elapsed time.Duration
}

// IterationError is the failure of one iteration.
type IterationError struct {
	Index int64           `json:"index"`
	Error json.RawMessage `json:"error"`
}
