package engine

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/workflow"
)

// ProgramToolLoop is the program that runs a turn with a model: memories are loaded, then completions and the tool calls
// they ask for alternate until there is an answer, then the exchange is stored. Each of these is a step of its own, so
// that a crash repeats none that is recorded and a person can be asked between any two.
const ProgramToolLoop = "tool_loop"

// The kinds of steps of the tool loop.
const (
	StepLoad     = "load"
	StepComplete = "complete"
	StepApprove  = "approve"
	StepCall     = "call"
	StepStore    = "store"
)

// LoopConfig says how a turn is run. It is part of the event that opens the scope.
type LoopConfig struct {
	// Loads and Stores are how many steps come before the first completion and after the last.
	Loads  int `json:"loads,omitempty"`
	Stores int `json:"stores,omitempty"`
	// Profiles is how many models there are; a completion that fails on one is tried on the next.
	Profiles int `json:"profiles"`
	// Rounds bounds the rounds of tool calls, Tries the answers of the wrong shape.
	Rounds int `json:"rounds"`
	Tries  int `json:"tries"`
	// OneByOne keeps the calls of a round from running at the same time.
	OneByOne bool `json:"one_by_one,omitempty"`
	// MaxRetries and TimeoutMS are those of a completion, ToolTimeoutMS that of a call.
	MaxRetries    int   `json:"max_retries,omitempty"`
	TimeoutMS     int64 `json:"timeout_ms,omitempty"`
	ToolTimeoutMS int64 `json:"tool_timeout_ms,omitempty"`
}

// LoopReply is what a completion tells the program: the calls it wants, or that its answer does not have the shape that was asked
// for.
type LoopReply struct {
	Calls []LoopCall `json:"calls,omitempty"`
	Unfit bool       `json:"unfit,omitempty"`
	// Final says that another try would have the wrong shape, too.
	Final bool `json:"final,omitempty"`
}

// LoopCall is the part of a tool call that the program needs.
type LoopCall struct {
	Effect     workflow.Effect    `json:"effect,omitempty"`
	MaxRetries int                `json:"max_retries,omitempty"`
	OnUnknown  workflow.OnUnknown `json:"on_unknown,omitempty"`
	// Approve says that a person decides first.
	Approve bool `json:"approve,omitempty"`
	// TimeoutMS is how long it may take; 0: as long as every call.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ApproveReply is what the step that asks for approval tells the program.
type ApproveReply struct {
	Approved bool `json:"approved"`
}

// LoopStep tells the runtime about a step: the number of the completion it is or belongs to, and what it is about within
// that. Log is what has happened so far, and the step's values are those that the log names.
type LoopStep struct {
	Completion int `json:"completion,omitempty"`
	// Index is the number of the load, of the call or of the store, from 0.
	Index int `json:"index,omitempty"`
	// Profile is the number of the model in its list, from 0.
	Profile int         `json:"profile,omitempty"`
	Log     []LoopEntry `json:"log,omitempty"`
}

// LoopEntry is a step that has ended, in the order in which they count: the calls of a round in the order of the model.
type LoopEntry struct {
	Kind       string `json:"kind"`
	Completion int    `json:"completion,omitempty"`
	Index      int    `json:"index,omitempty"`
	// Value is the number of the step's result among the values, -1 for one that has none.
	Value int `json:"value"`
	// Denied says that a person has not approved the call. Code and Message say why a step failed.
	Denied  bool       `json:"denied,omitempty"`
	Code    fault.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
}

// LoopEnd is the result of the scope.
type LoopEnd struct {
	// Limit says that the model wanted more tool calls than it may have; Unfit that no answer had the right shape.
	Limit bool        `json:"limit,omitempty"`
	Unfit bool        `json:"unfit,omitempty"`
	Log   []LoopEntry `json:"log,omitempty"`
}

// toolLoop is the program. Its state is what it is restored from.
type toolLoop struct {
	config LoopConfig
	loopState
}

type loopState struct {
	Log    []LoopEntry `json:"log,omitempty"`
	Values []Ref       `json:"values,omitempty"`
	// Completions counts them, Profile is the one in use, Round the number of rounds that calls were made in, Tries the
	// answers of the wrong shape.
	Completions int `json:"completions,omitempty"`
	Profile     int `json:"profile,omitempty"`
	Round       int `json:"round,omitempty"`
	Tries       int `json:"tries,omitempty"`
	// Open is how many steps of the present group have not ended, Group what they have left, in their order.
	Open  int          `json:"open,omitempty"`
	Group []groupEntry `json:"group,omitempty"`
	Calls []LoopCall   `json:"calls,omitempty"`
	Next  int          `json:"next,omitempty"`
	End   LoopEnd      `json:"end,omitzero"`
}

type groupEntry struct {
	LoopEntry
	Ref Ref `json:"ref,omitempty"`
}

func newToolLoop(setup Setup) (*toolLoop, error) {
	p := &toolLoop{}
	if err := json.Unmarshal(setup.Config, &p.config); err != nil {
		return nil, fault.Newf(fault.Invalid, "the configuration of the tool loop cannot be read: %w", err)
	}
	if p.config.Profiles < 1 {
		return nil, fault.New(fault.Invalid, "profiles: the tool loop needs a model")
	}
	return p, nil
}

func restoreToolLoop(setup Setup, data json.RawMessage) (*toolLoop, error) {
	p, err := newToolLoop(setup)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p.loopState); err != nil {
		return nil, fault.Newf(fault.Invalid, "the state of the tool loop cannot be read: %w", err)
	}
	return p, nil
}

// Snapshot implements Program.
func (p *toolLoop) Snapshot() (json.RawMessage, error) { return json.Marshal(p.loopState) }

// Fired implements Program; the tool loop sets no timers.
func (p *toolLoop) Fired(*Scope, string) {}

// Start implements Program.
func (p *toolLoop) Start(sc *Scope, _ Opening) {
	if !p.group(sc, StepLoad, p.config.Loads) {
		p.complete(sc)
	}
}

// group runs n steps side by side, unless n is 0.
func (p *toolLoop) group(sc *Scope, kind string, n int) bool {
	if n == 0 {
		return false
	}
	p.Open, p.Group = n, make([]groupEntry, n)
	for i := range n {
		p.run(sc, Step{Name: kind + "_" + strconv.Itoa(i+1), Kind: kind, Effect: workflow.Idempotent, MaxRetries: p.config.MaxRetries},
			LoopStep{Index: i})
	}
	return true
}

// run runs a step that may read everything so far.
func (p *toolLoop) run(sc *Scope, step Step, about LoopStep) {
	about.Completion, about.Log = p.Completions, p.Log
	config, err := json.Marshal(about)
	if err != nil {
		sc.Fail(fault.Newf(fault.Internal, "tool loop: %w", err))
		return
	}
	step.Config, step.Values = config, p.Values
	if step.Kind == StepCall || step.Kind == StepApprove {
		step.Input = p.Values[len(p.Values)-1] // the completion that wants it: what a person is shown
	}
	sc.Run(step)
}

// complete runs the next completion.
func (p *toolLoop) complete(sc *Scope) {
	p.Completions++
	p.run(sc, Step{
		Name: StepComplete + "_" + strconv.Itoa(p.Completions), Kind: StepComplete, Effect: workflow.Idempotent,
		MaxRetries: p.config.MaxRetries, TimeoutMS: p.config.TimeoutMS,
	}, LoopStep{Profile: p.Profile})
}

// Handles implements Program. A completion that fails is a matter for the next model, if there is one; without one the
// failure goes outwards and the step stays, so that it alone can be tried again. Anything else is dealt with here: a
// memory that fails is a warning, a tool that fails a message to the model.
func (p *toolLoop) Handles(name string, err *fault.Error) bool {
	if stepKind(name) != StepComplete {
		return true
	}
	return p.Profile+1 < p.config.Profiles && (err == nil || err.Code != fault.ModelRefused && err.Code != fault.Canceled)
}

func stepKind(name string) string {
	for i := range name {
		if name[i] == '_' {
			return name[:i]
		}
	}
	return name
}

// Ended implements Program.
func (p *toolLoop) Ended(sc *Scope, name string, end End) {
	switch kind := stepKind(name); kind {
	case StepComplete:
		p.completed(sc, end)
	case StepApprove:
		p.approved(sc, lastNumber(name), end)
	default:
		p.ended(sc, kind, lastNumber(name), end)
	}
}

// lastNumber is the number at the end of a step's name, from 0.
func lastNumber(name string) int {
	n, scale := 0, 1
	for i := len(name) - 1; i >= 0 && name[i] != '_'; i-- {
		n += int(name[i]-'0') * scale
		scale *= 10
	}
	return n - 1
}

func (p *toolLoop) completed(sc *Scope, end End) {
	entry := LoopEntry{Kind: StepComplete, Completion: p.Completions}
	if end.Status != NodeDone {
		if p.Profile+1 >= p.config.Profiles { // an operator has skipped it
			sc.Fail(fault.New(fault.Canceled, "the completion was left out, and there is no other model to ask; give an output instead"))
			return
		}
		p.keep(failedEntry(entry, end), "")
		p.Profile++
		p.complete(sc)
		return
	}
	var reply LoopReply
	if len(end.Reply) > 0 {
		if err := json.Unmarshal(end.Reply, &reply); err != nil {
			sc.Fail(fault.Newf(fault.Internal, "the reply of a completion cannot be read: %w", err))
			return
		}
	}
	p.keep(entry, resultRef(end.Outputs))
	switch {
	case reply.Unfit:
		if p.Tries++; p.Tries < p.config.Tries && !reply.Final {
			p.complete(sc)
			return
		}
		p.End.Unfit = true
		p.finish(sc)
	case len(reply.Calls) == 0:
		p.store(sc)
	case p.Round >= p.config.Rounds:
		p.End.Limit = true
		p.store(sc)
	default:
		p.Round++
		p.Calls, p.Next = reply.Calls, 0
		p.Open, p.Group = len(reply.Calls), make([]groupEntry, len(reply.Calls))
		p.call(sc)
	}
}

// call runs the calls of a round, all of them or the next.
func (p *toolLoop) call(sc *Scope) {
	for p.Next < len(p.Calls) {
		i := p.Next
		p.Next++
		if p.Calls[i].Approve {
			p.run(sc, Step{Name: callName(StepApprove, p.Completions, i), Kind: StepApprove, Effect: workflow.Idempotent},
				LoopStep{Index: i})
		} else {
			p.callTool(sc, i)
		}
		if p.config.OneByOne {
			return
		}
	}
}

func (p *toolLoop) callTool(sc *Scope, i int) {
	c := p.Calls[i]
	p.run(sc, Step{
		Name: callName(StepCall, p.Completions, i), Kind: StepCall, Effect: c.Effect, MaxRetries: c.MaxRetries,
		TimeoutMS: cmp.Or(c.TimeoutMS, p.config.ToolTimeoutMS), OnUnknown: c.OnUnknown,
	}, LoopStep{Index: i})
}

func callName(kind string, completion, i int) string {
	return kind + "_" + strconv.Itoa(completion) + "_" + strconv.Itoa(i+1)
}

// ConfirmedBy implements Confirming.
func (p *toolLoop) ConfirmedBy(name string) (string, bool) {
	i := lastNumber(name)
	if stepKind(name) != StepCall || i < 0 || i >= len(p.Calls) || !p.Calls[i].Approve {
		return "", false
	}
	return callName(StepApprove, p.Completions, i), true
}

// ApprovalOf returns the step that asks people about a step of a tool loop, if that is a call. The names do not say
// whether they were asked.
func ApprovalOf(call ActivationID) (approval ActivationID, ok bool) {
	path, name := call.Split()
	rest, ok := strings.CutPrefix(name, StepCall+"_")
	return joinID(path, StepApprove+"_"+rest), ok && path != ""
}

// approved goes on with a call that a person has decided about.
func (p *toolLoop) approved(sc *Scope, i int, end End) {
	var reply ApproveReply
	if end.Status == NodeDone && json.Unmarshal(end.Reply, &reply) == nil && reply.Approved {
		p.callTool(sc, i)
		return
	}
	if end.Status == NodeDone {
		p.leaveGroup(sc, StepCall, i, LoopEntry{Kind: StepCall, Denied: true}, resultRef(end.Outputs))
		return
	}
	p.ended(sc, StepCall, i, end)
}

// ended handles the end of one of a group of steps.
func (p *toolLoop) ended(sc *Scope, kind string, i int, end End) {
	entry := LoopEntry{Kind: kind}
	if end.Status != NodeDone {
		p.leaveGroup(sc, kind, i, failedEntry(entry, end), "")
		return
	}
	p.leaveGroup(sc, kind, i, entry, resultRef(end.Outputs))
}

func (p *toolLoop) leaveGroup(sc *Scope, kind string, i int, entry LoopEntry, ref Ref) {
	entry.Index, entry.Completion = i, p.Completions
	p.Group[i] = groupEntry{entry, ref}
	if p.Open--; p.Open > 0 {
		if kind == StepCall {
			p.call(sc)
		}
		return
	}
	group := p.Group
	p.Group, p.Calls = nil, nil
	for _, g := range group {
		p.keep(g.LoopEntry, g.Ref)
	}
	if kind == StepStore {
		p.finish(sc)
		return
	}
	p.complete(sc)
}

func failedEntry(e LoopEntry, end End) LoopEntry {
	e.Code, e.Message = fault.Canceled, "it was stopped"
	if end.Status == NodeSkip {
		e.Message = "it was left out"
	}
	if end.Error != nil {
		e.Code, e.Message = end.Error.Code, end.Error.Message
	}
	return e
}

// keep appends to the log.
func (p *toolLoop) keep(e LoopEntry, ref Ref) {
	e.Value = -1
	if ref != "" {
		e.Value = len(p.Values)
		p.Values = append(p.Values, ref)
	}
	p.Log = append(p.Log, e)
}

func resultRef(outputs []Output) Ref {
	for _, o := range outputs {
		if o.Key == workflow.DefaultKey {
			return o.Ref
		}
	}
	return ""
}

// store runs the steps that store the exchange.
func (p *toolLoop) store(sc *Scope) {
	if !p.group(sc, StepStore, p.config.Stores) {
		p.finish(sc)
	}
}

func (p *toolLoop) finish(sc *Scope) {
	p.End.Log = p.Log
	result, err := json.Marshal(p.End)
	if err != nil {
		sc.Fail(fault.Newf(fault.Internal, "tool loop: %w", err))
		return
	}
	sc.Finish(result, p.Values...)
}
