package storytest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/revisions"
	"tandem/store"
	"tandem/workflow"
)

// Stage is one execution whose every row is written by the test: the owner, the journal and the nodes in one. What is told
// of it goes through a real hub and a real server.
type Stage struct {
	T testing.TB
	// workflow is its id.
	workflow string
	Graph    *workflow.Graph
	source   *workflow.Definition
	Fold     *host.Fold
	Hub      *host.Hub
	clock    int64
	Pending  []engine.RunNode
	Asks     []engine.AskID
	Timers   []engine.TimerID

	mu      sync.Mutex
	Written []host.Row // as they are on disk
	status  engine.Status
	taken   []byte
	blobs   map[string]json.RawMessage
	// changed, when it is set, hears of every row.
	Changed func(seq uint64)
}

// stageKinds has steps, which do what the test says, and loops.
type stageKinds struct{}

func (stageKinds) Names() []string                     { return []string{"TEST.LOOP", "TEST.STEP", agent.TaskKind} }
func (stageKinds) Alias(string, string) (string, bool) { return "", false }
func (stageKinds) Kind(name string) (workflow.Kind, bool) {
	k := workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		var c struct {
			MaxRetries int              `json:"max_retries"`
			OnError    workflow.OnError `json:"on_error"`
		}
		if len(n.Configurations) > 0 {
			if err := json.Unmarshal(n.Configurations, &c); err != nil {
				return workflow.Plan{}, []workflow.Problem{{Severity: workflow.SeverityError, Code: "invalid_config", Message: err.Error()}}
			}
		}
		return workflow.Plan{Effect: workflow.Pure, MaxRetries: c.MaxRetries, OnError: c.OnError, Credits: 0.5,
			Whole: name == agent.TaskKind, Traits: workflow.Traits{GivesTasks: workflow.TypeOf(name) == workflow.TypeAgent}}, nil
	}}
	if name == "TEST.LOOP" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

// Revision gives every run what its connections bring, under "in".
type Revision struct{}

func (Revision) Syncs(int) []string    { return nil }
func (Revision) Declares(int) []string { return nil }
func (Revision) Sent(engine.RunNode, *host.Inputs, host.Data) (json.RawMessage, error) {
	return nil, nil
}

func (Revision) Iterations(engine.RunNode, *host.Inputs, host.Data) (host.Opened, error) {
	return host.Opened{Iterate: func(_ json.RawMessage, index int64) (host.Entry, map[string]json.RawMessage, error) {
		raw, err := json.Marshal(index)
		return host.Entry{Value: json.RawMessage(`{"item":` + string(raw) + `}`)}, map[string]json.RawMessage{"item": raw}, err
	}}, nil
}
func (Revision) Inspect(run engine.RunNode, values *host.Inputs, _ host.Data) (input, origins json.RawMessage, err error) {
	if run.Step != nil {
		return values.Value(run.Input), nil, nil
	}
	var in []json.RawMessage
	for _, i := range run.Inputs {
		ref := i.Ref
		if ref == "" {
			ref = host.EntryRef
		}
		in = append(in, values.Value(ref))
	}
	input, err = json.Marshal(map[string]any{"in": in})
	return input, json.RawMessage("[]"), err
}

const stageDefinition = `{"nodes":[
 {"id":"start","name":"Begin","type":"TEST","subtype":"STEP","configurations":{}},
 {"id":"side","name":"Side","type":"TEST","subtype":"STEP","configurations":{"max_retries":2,"to_user":true}},
 {"id":"safe","name":"Safe","type":"TEST","subtype":"STEP","configurations":{"on_error":"continue"}},
 {"id":"each","name":"Each","type":"TEST","subtype":"LOOP","configurations":{}},
 {"id":"work","name":"Work","type":"TEST","subtype":"STEP","configurations":{"max_retries":1}},
 {"id":"end","name":"End","type":"TEST","subtype":"STEP","configurations":{}}],
"connections":[
 {"id":"c1","from_node":"start","to_node":"side","output_key":"result"},
 {"id":"c2","from_node":"start","to_node":"safe","output_key":"result"},
 {"id":"c3","from_node":"start","to_node":"each","output_key":"result"},
 {"id":"c4","from_node":"each","to_node":"work","output_key":"iteration"},
 {"id":"c5","from_node":"work","to_node":"each","output_key":"result"},
 {"id":"c6","from_node":"each","to_node":"end","output_key":"completed"},
 {"id":"c7","from_node":"side","to_node":"end","output_key":"result"},
 {"id":"c8","from_node":"safe","to_node":"end","output_key":"result"}]}`

const Execution = "exec_1"

func User() identity.Principal {
	return identity.Principal{Workspace: "w", User: "u", Roles: []identity.Role{identity.Viewer}}
}

// New returns an execution that was created and not started.
func New(t testing.TB) *Stage {
	t.Helper()
	return NewOf(t, stageDefinition, `{"workflow_id":"wf"}`)
}

// NewOf is newStage for any workflow and start.
func NewOf(t testing.TB, definition, start string) *Stage {
	t.Helper()
	var def workflow.Definition
	if err := json.Unmarshal([]byte(definition), &def); err != nil {
		t.Fatal(err)
	}
	graph, problems := workflow.Compile(&def, stageKinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	st := &Stage{T: t, workflow: cmp.Or(def.Metadata.ID, "wf"), Graph: graph, source: &def, Hub: host.NewHub(), clock: 1000,
		status: engine.StatusNew, blobs: map[string]json.RawMessage{}}
	j := st.Journal()
	st.Fold = host.NewFold(graph, Revision{}, agent.Programs(), j.Loader(t.Context()))
	st.Row(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ExecutionCreated{Semantics: engine.Semantics, Execution: Execution, Revision: graph.Hash,
			Input: put(json.RawMessage(start))}
	})
	return st
}

// Revisions finds the revisions of stages by their workflows; what it does not know is the first one's.
type Revisions []*Stage

func (list Revisions) Pinned(_ context.Context, _ identity.Principal, workflowID, _ string) (*revisions.Ready, error) {
	st := list[max(0, slices.IndexFunc(list, func(st *Stage) bool { return st.workflow == workflowID }))]
	return &revisions.Ready{Revision: &node.Revision{Definition: st.source, Graph: st.Graph}, Source: st.source, Fold: Revision{}}, nil
}

func (st *Stage) Journal() host.Journal {
	return host.Journal{Source: st, Principal: User(), Execution: Execution, Graph: st.Graph,
		Revision: Revision{}, Programs: agent.Programs()}
}

type Fact func(put func(json.RawMessage) engine.Ref) engine.Fact

// Row writes one row of facts; those that the engine refuses are left out. It says whether there was one.
func (st *Stage) Row(facts ...Fact) bool {
	st.T.Helper()
	st.clock += 7
	turn := st.Fold.Begin(st.clock)
	var commands []engine.Command
	for _, fact := range facts {
		more, err := turn.Add(fact(turn.Put))
		if err != nil {
			if f := fault.From(err); f.Code == fault.Internal {
				st.T.Fatal(err)
			}
			continue
		}
		commands = append(commands, more...)
	}
	if len(turn.Row().Facts) == 0 {
		return false
	}
	turn.Tell(commands)
	row := *turn.Row()
	if err := row.SpillBeside(st.keep); err != nil {
		st.T.Fatal(err)
	}
	if err := row.Spill(st.keep); err != nil {
		st.T.Fatal(err)
	}
	body, err := row.Encode()
	if err != nil {
		st.T.Fatal(err)
	}
	stored, err := host.DecodeRow(row.Seq, row.Time, body)
	if err != nil {
		st.T.Fatal(err)
	}
	st.mu.Lock()
	st.Written = append(st.Written, stored)
	st.status = st.Fold.State().Status()
	st.mu.Unlock()
	st.Hub.Publish(host.Ref{Workspace: "w", Execution: Execution}, row)
	if st.Changed != nil {
		st.Changed(row.Seq)
	}
	st.note(commands)
	return true
}

// note keeps what is to be done.
func (st *Stage) note(commands []engine.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case engine.RunNode:
			st.Done(c.Activation)
			st.Pending = append(st.Pending, c)
		case engine.Ask:
			st.Asks = append(st.Asks, c.Ask)
		case engine.Sleep:
			st.Timers = append(st.Timers, c.Timer)
		}
	}
}

func (st *Stage) Done(id engine.ActivationID) {
	st.Pending = slices.DeleteFunc(st.Pending, func(r engine.RunNode) bool { return r.Activation == id })
}

func (st *Stage) keep(value json.RawMessage) (host.Blob, error) {
	sum := sha256.Sum256(value)
	b := host.Blob{Hash: hex.EncodeToString(sum[:]), Size: int64(len(value))}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.blobs[b.Hash] = value
	return b, nil
}

// Plain is a fact without values.
func Plain(f engine.Fact) Fact {
	return func(func(json.RawMessage) engine.Ref) engine.Fact { return f }
}

// Run is the run of an activation that is to be done.
func (st *Stage) Run(id engine.ActivationID) engine.RunNode {
	st.T.Helper()
	for _, r := range st.Pending {
		if r.Activation == id {
			return r
		}
	}
	st.T.Fatalf("%q does not run; %d others do", id, len(st.Pending))
	return engine.RunNode{}
}

// Completes is the success of an activation.
func (st *Stage) Completes(id engine.ActivationID, key, payload string) Fact {
	st.T.Helper()
	run := st.Run(id)
	st.Done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeCompleted{Attempt: run.Attempt, Outputs: []engine.Output{{Key: key, Ref: put(json.RawMessage(payload))}}}
	}
}

// Fails is its failure.
func (st *Stage) Fails(id engine.ActivationID, err *fault.Error) Fact {
	st.T.Helper()
	run := st.Run(id)
	st.Done(id)
	return Plain(engine.NodeFailed{Attempt: run.Attempt, Error: err})
}

// AsksFor is a question that it asks.
func (st *Stage) AsksFor(id engine.ActivationID, purpose, request string) Fact {
	st.T.Helper()
	run := st.Run(id)
	st.Done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeSuspended{Attempt: run.Attempt, Ask: &engine.Question{Purpose: purpose, Ref: put(json.RawMessage(request))}}
	}
}

func (st *Stage) Opens(id engine.ActivationID, count int64) Fact {
	st.T.Helper()
	run := st.Run(id)
	st.Done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ScopeOpened{Attempt: run.Attempt, Count: count, Concurrency: 2, State: put(json.RawMessage(`[]`))}
	}
}

// Rows implements host.Source.
func (st *Stage) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		for n := after; ; n++ {
			if err := ctx.Err(); err != nil {
				yield(host.Row{}, err)
				return
			}
			st.mu.Lock()
			there := p.Workspace == "w" && execution == Execution && n < uint64(len(st.Written))
			var row host.Row
			if there {
				row = st.Written[n]
			}
			st.mu.Unlock()
			if !there || !yield(row, nil) {
				return
			}
		}
	}
}

// Snapshot implements host.Source.
func (st *Stage) Snapshot(context.Context, identity.Principal, string) ([]byte, bool, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.taken, st.taken != nil, nil
}

// Blob implements host.Source.
func (st *Stage) Blob(_ context.Context, _ identity.Principal, b host.Blob) (json.RawMessage, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	value, ok := st.blobs[b.Hash]
	if !ok {
		return nil, errors.New("no such value")
	}
	return value, nil
}

// TakeSnapshot keeps the state as of now.
func (st *Stage) TakeSnapshot() {
	st.T.Helper()
	body, err := st.Fold.Snapshot()
	if err != nil {
		st.T.Fatal(err)
	}
	st.mu.Lock()
	st.taken = body
	st.mu.Unlock()
}

type Executions struct {
	store.Executions
	St *Stage
}

func (e Executions) Get(_ context.Context, p identity.Principal, id string) (store.Execution, error) {
	e.St.mu.Lock()
	defer e.St.mu.Unlock()
	if id != Execution || p.Workspace != "w" {
		return store.Execution{}, store.ErrNotFound
	}
	return store.Execution{Workspace: "w", ID: id, WorkflowID: e.St.workflow, WorkflowName: "Flow", RevisionHash: e.St.Graph.Hash,
		Status: e.St.status}, nil
}

func (e Executions) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	found, err := e.Get(ctx, p, id)
	return found, nil, false, err
}

// Interactions has none: what a stage asks is asked of nobody.
type Interactions struct{ store.Interactions }

func (Interactions) List(context.Context, identity.Principal, store.InteractionQuery) (store.InteractionPage, error) {
	return store.InteractionPage{}, nil
}

// PlayScene plays an execution in which nearly everything happens once.
func PlayScene(st *Stage) {
	st.Row(Plain(engine.ExecutionStarted{}))                                                                            // 2
	st.Row(st.Completes("start", "result", `"plain text"`))                                                             // 3
	st.Row(st.Fails("side", fault.New(fault.NetworkError, "no answer").With("host", "a").With("n", 3)))                 // 4
	st.Row(st.Opens("each", 2))                                                                                         // 5
	st.Row(st.Completes("each[1]/work", "result", `{"v":1}`), Plain(engine.ExecutionPaused{}))                          // 6
	st.Row(Plain(engine.ExecutionResumed{}))                                                                            // 7
	st.Row(st.AsksFor("each[0]/work", "param", `{"title":"City?","schema":{"type":"object"},"message":"Which city?"}`)) // 8
	st.Row(st.AsksFor("safe", "confirm", `{"description":"Pay?","risk":"high","arguments":{"sum":5}}`))                 // 9
	st.Row(Plain(engine.TimerFired{Timer: st.Timers[0]}))                                                               // 10
	st.Row(st.Completes("side", "result", `{"big":"`+strings.Repeat("x", host.MaxInline)+`"}`))                         // 11
	st.Row(Plain(engine.AskAnswered{Ask: st.Asks[0], Outcome: engine.AskDone}))                                         // 12
	st.Row(st.Completes("each[0]/work", "result", `{"v":0}`))                                                           // 13
	st.Row(st.Completes("each", "completed", `{"results":[]}`))                                                         // 14
	st.Row(Plain(engine.AskAnswered{Ask: st.Asks[1], Outcome: engine.AskDone}))                                         // 15
	st.Row(st.Fails("safe", fault.New(fault.Invalid, "")))
	st.Row(st.Completes("safe", "error", `{}`))
	st.Row(st.Fails("end", fault.New(fault.CodeError, "line 3").With("line", 3).With("missing_fields", []string{"a"}).WithDetail("canary")))
	st.Row(Plain(engine.NodeRetried{Activation: "end"}))
	st.Row(st.Completes("end", "result", `{}`)) // 16
}
