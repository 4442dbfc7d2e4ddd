package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an API in memory whose executions do what a test says.
type fake struct {
	mu        sync.Mutex
	changed   chan struct{}
	workflows map[string]*api.Workflow
	agents    []api.Agent
	runs      map[string]*fakeRun
	questions map[string]*api.InteractionDetail
	// started is called with what was started, in the goroutine of the caller.
	started func(r *fakeRun)
	// answered is called with an answer; its error refuses it.
	answered func(r *fakeRun, id string, answer json.RawMessage) error
	values   map[string]string
	refusal  error
	starts   []string
	// looks has a token for each time that workflows were listed.
	looks chan struct{}
}

// fakeRun is one execution. Its methods say what happens to it.
type fakeRun struct {
	f      *fake
	e      api.Execution
	events []api.Event
	inputs json.RawMessage
	task   api.TaskRequest
}

func newFake() *fake {
	return &fake{changed: make(chan struct{}), workflows: map[string]*api.Workflow{}, runs: map[string]*fakeRun{}, questions: map[string]*api.InteractionDetail{}, values: map[string]string{}, looks: make(chan struct{}, 10000)}
}

// deploy adds a workflow with a trigger.
func (f *fake) deploy(id, schema string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &api.Workflow{Metadata: api.WorkflowMetadata{ID: id, Name: "The " + id, DeploymentStatus: "deployed", Revision: 1, DeployedRevision: 1}}
	if old := f.workflows[id]; old != nil {
		w.Metadata.Revision = old.Metadata.Revision + 1
		w.Metadata.DeployedRevision = w.Metadata.Revision
	}
	w.Nodes = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"id":"start","type":"TRIGGER","subtype":"MANUAL","configurations":{"input_schema":%s}}`, schema))}
	f.workflows[id] = w
}

func (f *fake) undeploy(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workflows[id].Metadata.DeploymentStatus, f.workflows[id].Metadata.DeployedRevision = "undeployed", 0
}

func (f *fake) Workflows(_ context.Context, q client.WorkflowQuery) (api.Workflows, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks <- struct{}{}
	var out api.Workflows
	if f.refusal != nil {
		return out, f.refusal
	}
	for _, w := range f.workflows {
		if w.Metadata.DeployedRevision != 0 || !q.Deployed {
			out.Workflows = append(out.Workflows, w.Metadata)
		}
	}
	slices.SortFunc(out.Workflows, func(a, b api.WorkflowMetadata) int { return strings.Compare(a.ID, b.ID) })
	from := min((q.Page-1)*q.PageSize, len(out.Workflows))
	out.Workflows = out.Workflows[from:min(from+q.PageSize, len(out.Workflows))]
	return out, nil
}

func (f *fake) Workflow(_ context.Context, id string, _ int64) (api.Workflow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.workflows[id]; w != nil {
		return *w, nil
	}
	return api.Workflow{}, fault.Newf(fault.NotFound, "no workflow %q", id)
}

func (f *fake) Agents(_ context.Context, q client.AgentQuery) (api.Agents, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := min((q.Page-1)*q.PageSize, len(f.agents))
	return api.Agents{Agents: f.agents[from:min(from+q.PageSize, len(f.agents))]}, nil
}

func (f *fake) start(r *fakeRun, what string) string {
	f.mu.Lock()
	f.starts = append(f.starts, what)
	r.f, r.e.ExecutionID, r.e.Status = f, fmt.Sprintf("exec_%d", len(f.runs)+1), "RUNNING"
	f.runs[r.e.ExecutionID] = r
	f.mu.Unlock()
	r.tell("execution_started", api.ExecutionUpdate{})
	if f.started != nil {
		f.started(r)
	}
	return r.e.ExecutionID
}

func (f *fake) Execute(_ context.Context, id string, q api.ExecuteRequest, _ string) (api.ExecuteResponse, error) {
	if f.refusal != nil {
		return api.ExecuteResponse{}, f.refusal
	}
	r := &fakeRun{inputs: q.Inputs, e: api.Execution{WorkflowID: id, WorkflowName: id}}
	return api.ExecuteResponse{ExecutionID: f.start(r, id)}, nil
}

func (f *fake) StartTask(_ context.Context, agent string, q api.TaskRequest, _ string) (api.TaskStarted, error) {
	r := &fakeRun{task: q, e: api.Execution{WorkflowID: "agent:" + agent}}
	return api.TaskStarted{ExecutionID: f.start(r, "agent:"+agent)}, nil
}

func (f *fake) Execution(_ context.Context, id string) (api.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[id]
	if r == nil {
		return api.Execution{}, fault.Newf(fault.NotFound, "there is no execution %q", id)
	}
	e := r.e
	e.Seq = uint64(len(r.events))
	e.Questions = slices.Clone(e.Questions)
	return e, nil
}

func (f *fake) Watch(ctx context.Context, id, after, _ string, each func(api.Event) error) error {
	var seq uint64
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d", &seq); err != nil {
			return err
		}
	}
	for {
		f.mu.Lock()
		r := f.runs[id]
		todo, changed, over := r.events[min(int(seq), len(r.events)):], f.changed, final(r.e.Status)
		f.mu.Unlock()
		for _, e := range todo {
			seq = e.Seq
			if err := each(e); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *fake) Act(_ context.Context, id string, r api.ActionRequest) (api.ActionResponse, error) {
	run := f.runs[id]
	if r.Action == "resume" {
		run.change(func() { run.e.Status = "RUNNING" })
		run.finish(`"resumed"`)
	}
	return api.ActionResponse{Success: true}, nil
}

func (f *fake) Value(_ context.Context, _, hash string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader([]byte(f.values[hash]))), nil
}

func (f *fake) Interaction(_ context.Context, id string) (api.InteractionDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.questions[id]; d != nil {
		return *d, nil
	}
	return api.InteractionDetail{}, fault.Newf(fault.NotFound, "no question %q", id)
}

func (f *fake) Respond(_ context.Context, id string, q api.RespondRequest) (api.Interaction, error) {
	f.mu.Lock()
	d := f.questions[id]
	r := f.runs[d.ExecutionID]
	f.mu.Unlock()
	switch {
	case d.Status != "pending":
		return d.Interaction, fault.New(fault.Conflict, "it was answered before")
	case q.ArgumentsHash != d.ArgumentsHash:
		return d.Interaction, fault.New(fault.Conflict, "something else was looked at")
	}
	if f.answered != nil {
		if err := f.answered(r, id, q.ResponseData); err != nil {
			return d.Interaction, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.Interaction, nil
}

// change changes an execution and wakes who watches.
func (r *fakeRun) change(how func()) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	how()
	close(r.f.changed)
	r.f.changed = make(chan struct{})
}

func (r *fakeRun) tell(event string, u api.ExecutionUpdate) {
	r.change(func() { r.add(event, u) })
}

func (r *fakeRun) add(event string, u api.ExecutionUpdate) {
	r.events = append(r.events, api.Event{EventType: event, ExecutionID: r.e.ExecutionID, Seq: uint64(len(r.events) + 1), Data: raw(u)})
}

// finish ends the execution with the output of a node "end".
func (r *fakeRun) finish(output string) {
	r.change(func() {
		r.e.Status, r.e.Outputs = "SUCCESS", map[string]json.RawMessage{"end": json.RawMessage(output)}
		r.add("execution_completed", api.ExecutionUpdate{})
	})
}

func (r *fakeRun) fail(code, message string) {
	r.change(func() {
		r.e.Status, r.e.Error = "ERROR", &api.ExecutionError{ErrorCode: code, ErrorMessage: message, StackTrace: "secret places"}
		r.add("execution_failed", api.ExecutionUpdate{})
	})
}

// ask asks something and stands still.
func (r *fakeRun) ask(q api.UserInputRequest, more ...func(*api.InteractionDetail)) {
	d := &api.InteractionDetail{Interaction: api.Interaction{ID: q.InteractionID, ExecutionID: r.e.ExecutionID, Status: "pending", Purpose: q.Purpose, RequestData: raw(q)}, MayRespond: true}
	for _, f := range more {
		f(d)
	}
	r.change(func() {
		r.f.questions[q.InteractionID] = d
		r.e.Status, r.e.Questions = "WAITING_FOR_HUMAN", append(r.e.Questions, q)
		r.add("user_input_required", api.ExecutionUpdate{UserInputRequest: &q})
		r.add("execution_paused", api.ExecutionUpdate{})
	})
}

// settle ends a question, by whomever.
func (r *fakeRun) settle(id string) {
	r.change(func() {
		r.f.questions[id].Status = "completed"
		r.e.Questions = slices.DeleteFunc(r.e.Questions, func(q api.UserInputRequest) bool { return q.InteractionID == id })
		r.e.Status = "RUNNING"
	})
}

// peer is a client of the protocol that is connected to a gateway.
type peer struct {
	*mcp.ClientSession
	gateway *Server
	changed chan struct{}
	told    chan *mcp.ProgressNotificationClientRequest
}

// connect connects a client that speaks a version of the protocol; with elicit it puts questions to its user.
func connect(t *testing.T, f API, o Options, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *peer {
	t.Helper()
	o.Version = "test"
	p := &peer{gateway: New(f, o), changed: make(chan struct{}, 100), told: make(chan *mcp.ProgressNotificationClientRequest, 1000)}
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- p.gateway.Serve(context.Background(), there) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler:          elicit,
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { p.changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { p.told <- r },
	})
	session, err := c.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	p.ClientSession = session
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		p.gateway.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

// versions are the ways a question reaches the client: while the call waits, and as its result.
func versions() []string { return []string{"2025-06-18", newest} }

// call calls a tool and reads the structured content.
func (p *peer) call(t *testing.T, name, arguments string) (*mcp.CallToolResult, outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	params := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
	params.SetProgressToken("t")
	r, err := p.CallTool(ctx, params)
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	var o outcome
	if err := json.Unmarshal(raw(r.StructuredContent), &o); err != nil {
		t.Fatal(err)
	}
	return r, o
}

func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}
