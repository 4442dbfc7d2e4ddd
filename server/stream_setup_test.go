package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

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

// stage is one execution whose every row is written by the test: the owner, the journal and the nodes in one. What is told
// of it goes through a real hub and a real server.
type stage struct {
	t testing.TB
	// workflow is its id.
	workflow string
	graph    *workflow.Graph
	source   *workflow.Definition
	fold     *host.Fold
	hub      *host.Hub
	server   *Server
	clock    int64
	pending  []engine.RunNode
	asks     []engine.AskID
	timers   []engine.TimerID

	mu       sync.Mutex
	rows     []host.Row // as they are on disk
	status   engine.Status
	snapshot []byte
	blobs    map[string]json.RawMessage
	// changed, when it is set, hears of every row.
	changed func(seq uint64)
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
		return workflow.Plan{Effect: workflow.Pure, MaxRetries: c.MaxRetries, OnError: c.OnError, Credits: 0.5, Whole: name == agent.TaskKind}, nil
	}}
	if name == "TEST.LOOP" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

// stageRevision gives every run what its connections bring, under "in".
type stageRevision struct{}

func (stageRevision) Syncs(int) []string    { return nil }
func (stageRevision) Declares(int) []string { return nil }
func (stageRevision) Sent(engine.RunNode, map[engine.Ref]json.RawMessage, host.Data) (json.RawMessage, error) {
	return nil, nil
}

func (stageRevision) Iterations(engine.RunNode, map[engine.Ref]json.RawMessage, host.Data) (host.Opened, error) {
	return host.Opened{Iterate: func(_ json.RawMessage, index int64) (json.RawMessage, map[string]json.RawMessage, error) {
		raw, err := json.Marshal(index)
		return json.RawMessage(`{"item":` + string(raw) + `}`), map[string]json.RawMessage{"item": raw}, err
	}}, nil
}
func (stageRevision) Inspect(run engine.RunNode, values map[engine.Ref]json.RawMessage, _ host.Data) (input, origins json.RawMessage, err error) {
	var in []json.RawMessage
	for _, i := range run.Inputs {
		ref := i.Ref
		if ref == "" {
			ref = host.EntryRef
		}
		in = append(in, values[ref])
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

const stageExecution = "exec_1"

func stageUser() identity.Principal {
	return identity.Principal{Workspace: "w", User: "u", Roles: []identity.Role{identity.Viewer}}
}

// newStage returns an execution that was created and not started.
func newStage(t testing.TB) *stage {
	t.Helper()
	return newStageOf(t, stageDefinition, `{"workflow_id":"wf"}`)
}

// newStageOf is newStage for any workflow and start.
func newStageOf(t testing.TB, definition, start string) *stage {
	t.Helper()
	var def workflow.Definition
	if err := json.Unmarshal([]byte(definition), &def); err != nil {
		t.Fatal(err)
	}
	graph, problems := workflow.Compile(&def, stageKinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	st := &stage{t: t, workflow: cmp.Or(def.Metadata.ID, "wf"), graph: graph, source: &def, hub: host.NewHub(), clock: 1000, status: engine.StatusNew, blobs: map[string]json.RawMessage{}}
	j := st.journal()
	st.fold = host.NewFold(graph, stageRevision{}, agent.Programs(), j.Loader(t.Context()))
	st.server = st.serve()
	st.row(func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ExecutionCreated{Semantics: engine.Semantics, Execution: stageExecution, Revision: graph.Hash, Input: put(json.RawMessage(start))}
	})
	return st
}

// serve makes a server of the execution.
func (st *stage) serve() *Server {
	s := &Server{
		o: Options{
			Stores: store.Stores{Executions: stageExecutions{st: st}, Interactions: stageInteractions{}}, Source: st, Hub: st.hub, Metrics: NewMetrics(), Now: time.Now,
		},
		log: stageLog(st.t), mux: newRoutes(), open: newOpenStreams(),
	}
	s.stories = &library{
		Executions: s.o.Stores.Executions, Interactions: s.o.Stores.Interactions, Source: st, Hub: st.hub, Revisions: stageRevisions{st}, Now: time.Now,
	}
	s.api = newAPI(s.mux, "test")
	s.streams()
	s.root = s.edge()
	return s
}

// stageRevisions finds the revisions of stages by their workflows; what it does not know is the first one's.
type stageRevisions []*stage

func (list stageRevisions) Pinned(_ context.Context, _ identity.Principal, workflowID, _ string) (*revisions.Ready, error) {
	st := list[max(0, slices.IndexFunc(list, func(st *stage) bool { return st.workflow == workflowID }))]
	return &revisions.Ready{Revision: &node.Revision{Definition: st.source, Graph: st.graph}, Source: st.source, Fold: stageRevision{}}, nil
}

func (st *stage) journal() host.Journal {
	return host.Journal{Source: st, Principal: stageUser(), Execution: stageExecution, Graph: st.graph, Revision: stageRevision{}, Programs: agent.Programs()}
}

// web serves the stage's streams; every request is the user's.
func (st *stage) web(change ...func(*httptest.Server)) *httptest.Server {
	web := httptest.NewUnstartedServer(st.server.Handler())
	web.Config.BaseContext = nil
	inside := web.Config.Handler
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.ServeHTTP(w, r.WithContext(As(r.Context(), stageUser())))
	})
	for _, f := range change {
		f(web)
	}
	web.Start()
	st.t.Cleanup(func() {
		st.server.Close()
		web.Close()
	})
	return web
}

type stageFact func(put func(json.RawMessage) engine.Ref) engine.Fact

// row writes one row of facts; those that the engine refuses are left out. It says whether there was one.
func (st *stage) row(facts ...stageFact) bool {
	st.t.Helper()
	st.clock += 7
	turn := st.fold.Begin(st.clock)
	var commands []engine.Command
	for _, fact := range facts {
		more, err := turn.Add(fact(turn.Put))
		if err != nil {
			if f := fault.From(err); f.Code == fault.Internal {
				st.t.Fatal(err)
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
	if err := row.Spill(st.keep); err != nil {
		st.t.Fatal(err)
	}
	body, err := row.Encode()
	if err != nil {
		st.t.Fatal(err)
	}
	stored, err := host.DecodeRow(row.Seq, row.Time, body)
	if err != nil {
		st.t.Fatal(err)
	}
	st.mu.Lock()
	st.rows = append(st.rows, stored)
	st.status = st.fold.State().Status()
	st.mu.Unlock()
	st.hub.Publish(host.Ref{Workspace: "w", Execution: stageExecution}, row)
	if st.changed != nil {
		st.changed(row.Seq)
	}
	st.note(commands)
	return true
}

// note keeps what is to be done.
func (st *stage) note(commands []engine.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case engine.RunNode:
			st.done(c.Activation)
			st.pending = append(st.pending, c)
		case engine.Ask:
			st.asks = append(st.asks, c.Ask)
		case engine.Sleep:
			st.timers = append(st.timers, c.Timer)
		}
	}
}

func (st *stage) done(id engine.ActivationID) {
	st.pending = slices.DeleteFunc(st.pending, func(r engine.RunNode) bool { return r.Activation == id })
}

func (st *stage) keep(value json.RawMessage) (host.Blob, error) {
	sum := sha256.Sum256(value)
	b := host.Blob{Hash: hex.EncodeToString(sum[:]), Size: int64(len(value))}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.blobs[b.Hash] = value
	return b, nil
}

// plain is a fact without values.
func plain(f engine.Fact) stageFact {
	return func(func(json.RawMessage) engine.Ref) engine.Fact { return f }
}

// run is the run of an activation that is to be done.
func (st *stage) run(id engine.ActivationID) engine.RunNode {
	st.t.Helper()
	for _, r := range st.pending {
		if r.Activation == id {
			return r
		}
	}
	st.t.Fatalf("%q does not run; %d others do", id, len(st.pending))
	return engine.RunNode{}
}

// completes is the success of an activation.
func (st *stage) completes(id engine.ActivationID, key, payload string) stageFact {
	st.t.Helper()
	run := st.run(id)
	st.done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeCompleted{Attempt: run.Attempt, Outputs: []engine.Output{{Key: key, Ref: put(json.RawMessage(payload))}}}
	}
}

// fails is its failure.
func (st *stage) fails(id engine.ActivationID, err *fault.Error) stageFact {
	st.t.Helper()
	run := st.run(id)
	st.done(id)
	return plain(engine.NodeFailed{Attempt: run.Attempt, Error: err})
}

// asksFor is a question that it asks.
func (st *stage) asksFor(id engine.ActivationID, purpose, request string) stageFact {
	st.t.Helper()
	run := st.run(id)
	st.done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.NodeSuspended{Attempt: run.Attempt, Ask: &engine.Question{Purpose: purpose, Ref: put(json.RawMessage(request))}}
	}
}

func (st *stage) opens(id engine.ActivationID, count int64) stageFact {
	st.t.Helper()
	run := st.run(id)
	st.done(id)
	return func(put func(json.RawMessage) engine.Ref) engine.Fact {
		return engine.ScopeOpened{Attempt: run.Attempt, Count: count, Concurrency: 2, State: put(json.RawMessage(`[]`))}
	}
}

// Rows implements host.Source.
func (st *stage) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		for n := after; ; n++ {
			if err := ctx.Err(); err != nil {
				yield(host.Row{}, err)
				return
			}
			st.mu.Lock()
			there := p.Workspace == "w" && execution == stageExecution && n < uint64(len(st.rows))
			var row host.Row
			if there {
				row = st.rows[n]
			}
			st.mu.Unlock()
			if !there || !yield(row, nil) {
				return
			}
		}
	}
}

// Snapshot implements host.Source.
func (st *stage) Snapshot(context.Context, identity.Principal, string) ([]byte, bool, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.snapshot, st.snapshot != nil, nil
}

// Blob implements host.Source.
func (st *stage) Blob(_ context.Context, _ identity.Principal, b host.Blob) (json.RawMessage, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	value, ok := st.blobs[b.Hash]
	if !ok {
		return nil, errors.New("no such value")
	}
	return value, nil
}

// takeSnapshot keeps the state as of now.
func (st *stage) takeSnapshot() {
	st.t.Helper()
	body, err := st.fold.Snapshot()
	if err != nil {
		st.t.Fatal(err)
	}
	st.mu.Lock()
	st.snapshot = body
	st.mu.Unlock()
}

type stageExecutions struct {
	store.Executions
	st *stage
}

func (e stageExecutions) Get(_ context.Context, p identity.Principal, id string) (store.Execution, error) {
	e.st.mu.Lock()
	defer e.st.mu.Unlock()
	if id != stageExecution || p.Workspace != "w" {
		return store.Execution{}, store.ErrNotFound
	}
	return store.Execution{Workspace: "w", ID: id, WorkflowID: e.st.workflow, WorkflowName: "Flow", RevisionHash: e.st.graph.Hash, Status: e.st.status}, nil
}

func (e stageExecutions) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	found, err := e.Get(ctx, p, id)
	return found, nil, false, err
}

// stageInteractions has none: what a stage asks is asked of nobody.
type stageInteractions struct{ store.Interactions }

func (stageInteractions) List(context.Context, identity.Principal, store.InteractionQuery) (store.InteractionPage, error) {
	return store.InteractionPage{}, nil
}
