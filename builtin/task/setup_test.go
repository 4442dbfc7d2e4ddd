package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/agent"
	"tandem/builtin/models"
	"tandem/builtin/task"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// mind is a model that says what a test wants: by the shape that is asked for, one answer after the other; the last is
// repeated. What no shape is asked for is the summary.
type mind struct {
	mu      sync.Mutex
	says    map[string][]string
	asked   []llm.Request
	counts  map[string]int
	failing map[string]error
}

func (m *mind) Complete(_ context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := "summary"
	if r.Schema != nil {
		name = r.Schema.Name
	}
	m.asked = append(m.asked, r)
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[name]++
	if err := m.failing[name]; err != nil {
		return llm.Completion{}, err
	}
	list := m.says[name]
	if len(list) == 0 {
		return llm.Completion{}, fault.Newf(fault.Internal, "nobody has said what %q is", name)
	}
	said := list[min(m.counts[name], len(list))-1]
	out := llm.Message{Role: llm.Assistant, Content: said}
	if name == "summary" {
		out.Reasoning = strings.Repeat("hm, ", 100)
		for _, part := range strings.SplitAfter(out.Reasoning, ", ") {
			sink(llm.Delta{Reasoning: part})
		}
		for _, part := range strings.SplitAfter(said, " ") {
			sink(llm.Delta{Text: part})
		}
	}
	return llm.Completion{Message: out, Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 10, OutputTokens: 5}}, nil
}

// last is the last request of a shape.
func (m *mind) last(t testing.TB, name string) llm.Request {
	t.Helper()
	for _, r := range slices.Backward(m.asked) {
		if r.Schema != nil && r.Schema.Name == name || r.Schema == nil && name == "summary" {
			return r
		}
	}
	t.Fatalf("nobody has asked for %q", name)
	return llm.Request{}
}

func prompt(r llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

// people is what tasks know of their surroundings.
type people struct {
	auto   bool
	rounds []task.Round
	query  task.RoundsQuery
	kept   []agent.Spec
}

func (p *people) Workflow(_ context.Context, _, id string) (string, error) {
	if id != "helper" {
		return "", fault.Newf(fault.NotFound, "there is no agent %q; did you mean %q?", id, "helper")
	}
	return agent.WorkflowID(id), nil
}

func (p *people) Keep(_ context.Context, _ string, s agent.Spec) (string, error) {
	p.kept = append(p.kept, s)
	return agent.UnnamedID("hash"), nil
}

func (p *people) Auto(context.Context, string, string) (bool, error) { return p.auto, nil }

func (p *people) Rounds(_ context.Context, q task.RoundsQuery) ([]task.Round, error) {
	p.query = q
	return p.rounds, nil
}

// taskPlans say how the nodes of an agent's workflow behave.
type taskPlans struct{}

func (taskPlans) Names() []string                     { return nil }
func (taskPlans) Alias(string, string) (string, bool) { return "", false }
func (taskPlans) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) {
		return workflow.Plan{Effect: workflow.Idempotent, Whole: name == agent.TaskKind}, nil
	}}, true
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(toolsVariable); mode != "" {
		serveTools(mode)
	}
	os.Exit(m.Run())
}

// taskRig runs one task of an agent: the real program, the real runtime, a real tool server; the journal is in memory.
type taskRig struct {
	t      testing.TB
	mind   *mind
	people *people
	spec   agent.Spec
	pool   *mcp.Pool
	rows   store.MCPServers
	files  nodetest.Files
	purse  models.Purse
	dir    string
	// stdio lets tool servers be processes; else they are in this one.
	stdio bool
	calls []string
	webs  []*httptest.Server
	heard chan struct{}

	revision *node.Revision
	fold     *host.Fold
	clock    int64
	asks     []engine.Ask
	finish   *engine.Finish
	ran      []string
	emitted  map[string][]any
	details  map[string]map[string]any
	logs     []string
	mu       sync.Mutex
	// stop, when it is set, leaves a run undone.
	stop func(name string) bool
	left []engine.RunNode
	// by is who answers; empty: the answers are of the time when they did not say.
	by string
}

func toolUser() identity.Principal { return identity.Principal{Workspace: "w", User: "ada"} }

// newTaskRig has a tool server in this process, newStdioRig one of its own.
func newTaskRig(t testing.TB) *taskRig { return makeTaskRig(t, false) }

func newStdioRig(t testing.TB) *taskRig { return makeTaskRig(t, true) }

func makeTaskRig(t testing.TB, stdio bool) *taskRig {
	t.Helper()
	r := &taskRig{
		t: t, people: &people{}, clock: nodetest.Start().UnixMilli(), emitted: map[string][]any{}, details: map[string]map[string]any{},
		spec: agent.Spec{Name: "Helper", Description: "It helps with the weather.", LLMProfile: "m", MCPServers: []string{"srv"}},
		mind: &mind{says: map[string][]string{
			"flow_name": {`{"flow_name":"A look at the weather"}`}, "flow_risk": {`{"risk":"low","reason":"it reads"}`}, "tool_risk": {`{"risk":"low","reason":"it reads"}`},
			"summary": {"It is 21 degrees."}, "facts": {`{"facts":["It is 21 degrees in Turin."],"domain":["weather"]}`},
		}, failing: map[string]error{}},
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlitetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	r.rows = db.Stores().MCPServers
	if r.pool, err = mcp.New(mcp.Options{Servers: r.rows, Admin: isAdmin, HTTP: &http.Client{Transport: &http.Transport{}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.pool.Close()
		for _, web := range r.webs { // they wait for every client that is connected
			web.Close()
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	r.dir, r.stdio, r.heard = t.TempDir(), stdio, make(chan struct{})
	r.register("srv", "plain")
	return r
}

// register makes a tool server of this binary.
func (r *taskRig) register(id, mode string) {
	r.t.Helper()
	row := store.MCPServer{ID: id, Workspace: "w", Enabled: true}
	if r.stdio {
		self, err := os.Executable()
		if err != nil {
			r.t.Fatal(err)
		}
		row.Transport, row.Command = store.MCPStdio, self
		row.Env = map[string]store.MCPValue{toolsVariable: {Text: mode}, toolsNotes: {Text: filepath.Join(r.dir, "notes")}}
	} else {
		tools := newTools(mode, func(tool string, args json.RawMessage) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls = append(r.calls, fmt.Sprintf("%s %s", tool, args))
		}, r.heard)
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools }, nil))
		r.webs = append(r.webs, web)
		row.Transport, row.URL = store.MCPHTTP, web.URL
	}
	if err := r.rows.Put(r.t.Context(), toolUser(), row); err != nil {
		r.t.Fatal(err)
	}
}

func (r *taskRig) activate(id string) {
	r.t.Helper()
	if _, err := r.pool.Activate(r.t.Context(), toolUser(), id, mcp.Activation{}); err != nil {
		r.t.Fatalf("activate: %v (%v)", err, errors.Unwrap(err))
	}
}

// allow sets the user's policies.
func (r *taskRig) allow(policies map[string]store.MCPPolicy) {
	r.t.Helper()
	if err := r.pool.SetPolicies(r.t.Context(), toolUser(), "srv", false, policies); err != nil {
		r.t.Fatal(err)
	}
}

// noted are the calls that the server really got.
func (r *taskRig) noted() []string {
	r.t.Helper()
	if !r.stdio {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.calls)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "notes"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (r *taskRig) options() task.Deps {
	return task.Deps{Tools: r.pool, Agents: r.people, Models: &models.Models{
		Profile: func(_ context.Context, _, id string) (llm.Profile, error) {
			if id != "m" {
				return llm.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q", id)
			}
			return llm.Profile{ID: "m", Provider: "mind", Model: "mind-1", Budgets: []llm.Budget{{Per: "day", Tokens: 1}}}, nil
		},
		Providers: map[string]llm.Factory{"mind": func(llm.Settings) (llm.Provider, error) { return r.mind, nil }},
		Executor:  llm.NewExecutor(llm.Options{}), Purse: r.purse,
	}}
}

// begin starts a task and leads it until it waits or has ended.
func (r *taskRig) begin(request string) {
	r.t.Helper()
	def, err := r.spec.Workflow(agent.WorkflowID("helper"))
	if err != nil {
		r.t.Fatal(err)
	}
	graph, problems := workflow.Compile(def, taskPlans{})
	if graph == nil {
		r.t.Fatalf("compile: %v", problems)
	}
	registry := &node.Registry{}
	registry.Register(task.Kinds(r.options())...)
	registry.Register(node.Define(node.About{Name: "TRIGGER.MANUAL", Title: node.Says("Start", "开始"), Description: node.Says("Hands on what it is given.", "原样传递。"), Effect: workflow.Pure},
		func(_ context.Context, _ *node.Call, _ struct{}, in json.RawMessage) (json.RawMessage, error) {
			return in, nil
		}))
	if r.revision, err = node.Prepare(def, graph, registry, nil); err != nil {
		r.t.Fatal(err)
	}
	r.fold = host.NewFold(graph, local.Revision(r.revision), agent.Programs(), host.Loader{})
	initial, err := agent.Initial(json.RawMessage(request))
	if err != nil {
		r.t.Fatal(err)
	}
	begun, err := json.Marshal(host.Start{WorkflowID: def.Metadata.ID, UserID: "ada", Initial: initial, Trigger: json.RawMessage(request)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.do(func(put node.Put) engine.Fact {
		return engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "exec_1", Revision: graph.Hash, Trigger: agent.StartNode, Input: put(begun)}
	})
	r.do(func(node.Put) engine.Fact { return engine.ExecutionStarted{} })
}

// do records a fact, and does what follows.
func (r *taskRig) do(fact func(node.Put) engine.Fact) {
	r.t.Helper()
	r.clock += 5
	turn := r.fold.Begin(r.clock)
	commands, err := turn.Add(fact(turn.PutBeside))
	if err != nil {
		r.t.Fatal(err)
	}
	turn.Tell(commands)
	var timers []engine.TimerID
	for _, c := range commands {
		switch c := c.(type) {
		case engine.RunNode:
			r.run(c)
		case engine.Ask:
			r.asks = append(r.asks, c)
		case engine.Sleep:
			if c.Purpose == engine.TimerWait || c.Purpose == engine.TimerRetry { // their time comes at once here
				timers = append(timers, c.Timer)
			}
		case engine.Finish:
			r.finish = &c
		}
	}
	for _, timer := range timers {
		if r.finish == nil {
			r.do(func(node.Put) engine.Fact { return engine.TimerFired{Timer: timer} })
		}
	}
}

func (r *taskRig) run(c engine.RunNode) {
	r.t.Helper()
	name := host.NodeOf(r.revision.Graph, c.Activation)
	if r.stop != nil && r.stop(name) {
		r.left = append(r.left, c)
		return
	}
	if c.Cause.Kind == engine.CauseRun && (c.Cause.Wake == nil) {
		r.ran = append(r.ran, name)
	}
	r.do(r.outcome(c, name))
}

// outcome carries a run out.
func (r *taskRig) outcome(c engine.RunNode, name string) func(node.Put) engine.Fact {
	r.t.Helper()
	job, _, err := local.Job(r.fold, r.revision, c)
	if err != nil {
		r.t.Fatal(err)
	}
	job.Execution.Workspace, job.Files = "w", &r.files
	job.Clock = func() time.Time { return time.UnixMilli(r.clock) }
	job.Out = taskOut{r, name}
	before := len(r.mind.asked)
	fact := r.revision.Run(r.t.Context(), job).Fact
	if n := len(r.mind.asked) - before; n > 1 {
		r.t.Errorf("%s has paid for %d answers before any of them is on disk", name, n)
	}
	return fact
}

// answer answers the only question that is open.
func (r *taskRig) answer(payload string) {
	r.t.Helper()
	a := r.question()
	r.asks = nil
	r.do(func(put node.Put) engine.Fact {
		f := engine.AskAnswered{Ask: a.Ask, Outcome: engine.AskDone, By: r.by}
		if payload != "" {
			f.Ref = put(json.RawMessage(payload))
		}
		return f
	})
}

func (r *taskRig) question() engine.Ask {
	r.t.Helper()
	if len(r.asks) != 1 {
		r.t.Fatalf("%d questions are open after %v; finish %+v; logs %v", len(r.asks), r.ran, r.finish, r.logs)
	}
	return r.asks[0]
}

// asksFor checks the question that is open, and returns its request.
func (r *taskRig) asksFor(name, purpose string) string {
	r.t.Helper()
	a := r.question()
	if got := host.NodeOf(r.revision.Graph, a.Activation); got != name || a.Purpose != purpose {
		r.t.Fatalf("%s asks for %s, want %s and %s", got, a.Purpose, name, purpose)
	}
	raw, err := r.fold.Value(a.Ref)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// ends checks how the task ended, and returns its result.
func (r *taskRig) ends(status engine.Status) string {
	r.t.Helper()
	if r.finish == nil || r.finish.Status != status {
		r.t.Fatalf("finish is %+v after %v; questions %v; logs %v", r.finish, r.ran, r.asks, r.logs)
	}
	out, err := r.fold.Outputs()
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out[agent.TaskNode])
}

// result is what a step has left.
func (r *taskRig) result(name string) string {
	r.t.Helper()
	v := r.fold.View().Nodes[name]
	if v == nil {
		r.t.Fatalf("there is no %q among %v", name, r.ran)
	}
	if len(v.Outputs) == 0 {
		r.t.Fatalf("%q has left nothing: %+v", name, v)
	}
	raw, err := r.fold.Value(v.Outputs[0].Ref)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// has checks that JSON has fields.
func has(t testing.TB, what, got, want string) {
	t.Helper()
	for _, d := range nodetest.Differences(what, nodetest.Value(t, want), nodetest.Value(t, got)) {
		t.Error(d)
	}
}

// taskOut hears what a run says.
type taskOut struct {
	r    *taskRig
	name string
}

func (o taskOut) Emit(chunk any) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	o.r.emitted[o.name] = append(o.r.emitted[o.name], chunk)
	if o.name == "step_1" && len(o.r.emitted[o.name]) == 1 {
		close(o.r.heard)
	}
}

func (o taskOut) Log(_ node.Level, message string, fields map[string]any) {
	o.r.logs = append(o.r.logs, fmt.Sprintf("%s: %s %v", o.name, message, fields))
}

func (o taskOut) Detail(fields map[string]any) {
	if o.r.details[o.name] == nil {
		o.r.details[o.name] = map[string]any{}
	}
	for k, v := range fields {
		o.r.details[o.name][k] = v
	}
}

func (o taskOut) Used(node.Usage) {}

func (o taskOut) Credential(context.Context, string, ...string) (credential.Opened, error) {
	return credential.Opened{}, fault.New(fault.NotFound, "there are no credentials")
}
