package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// agents registers agents and their tasks. An agent is stored as a workflow, so that its revisions are kept and a task
// stays with the revision that it was started with.
func (s *Server) agents() {
	op := route.Tagged("agents")
	created := op(http.MethodPost, "/agents", "create-agent", "Keep a new agent")
	created.DefaultStatus = http.StatusCreated
	created.Description = "Without an id one is made from the name."
	put := op(http.MethodPut, "/agents/{id}", "put-agent", "Make or replace an agent")
	put.Description = "Tasks that run stay with the revision that they were started with. With If-Match it is refused when the newest revision is another one."
	started := op(http.MethodPost, "/agents/{id}/tasks", "start-task", "Give an agent something to do")
	started.DefaultStatus = http.StatusAccepted
	started.Description = "A task is an execution: it is read, followed, answered, paused and canceled under /executions. Answers 202 when it is on disk, or 200 when it has ended within wait_seconds. " +
		"Starting again with the same Idempotency-Key starts nothing and answers with the first task. A user may start five tasks in fifteen seconds; more answer 429 with Retry-After. Thirty run at once; more wait for their turn."
	started.Responses = map[string]*huma.Response{}
	s.DeclareProblem(&started, http.StatusTooManyRequests)

	route.Handle(s.Router, op(http.MethodGet, "/agents", "list-agents", "List agents, the last saved first"), route.Readers(), s.listAgents)
	route.Handle(s.Router, created, route.Editors(), s.createAgent)
	route.Handle(s.Router, op(http.MethodGet, "/agents/{id}", "get-agent", "Read an agent"), route.Readers(), s.getAgent)
	route.Handle(s.Router, put, route.Editors(), s.putAgent)
	route.Handle(s.Router, op(http.MethodDelete, "/agents/{id}", "delete-agent", "Delete an agent that has no unfinished tasks"), route.Editors(), s.deleteAgent)
	route.Handle(s.Router, started, route.Operators(), s.startTask)
	route.Handle(s.Router, op(http.MethodGet, "/agents/{id}/tasks", "list-tasks", "List the tasks of an agent, the newest first"), route.Readers(), s.listTasks)
}

// AgentPath names an agent.
type AgentPath struct {
	ID string `path:"id" maxLength:"63"`
}

type (
	listAgentsInput struct {
		route.Paging
		Text string `query:"q" maxLength:"200" doc:"looked for in id, name and description"`
	}
	agentsOutput struct{ Body api.Agents }
	agentCreate  struct{ Body api.Agent }
	agentPut     struct {
		AgentPath
		IfMatch string `header:"If-Match" doc:"the revision that the change was made from"`
		Body    api.Agent
	}
	agentOutput struct {
		ETag string `header:"ETag" doc:"the revision"`
		Body api.Agent
	}
)

func (s *Server) listAgents(ctx context.Context, p identity.Principal, in *listAgentsInput) (*agentsOutput, error) {
	page, err := s.o.Stores.Workflows.List(ctx, p, store.WorkflowQuery{
		Text: in.Text, Prefix: agent.WorkflowID(""), NotPrefix: agent.UnnamedID(""), Page: in.StorePage(),
	})
	if err != nil {
		return nil, err
	}
	out := &agentsOutput{api.Agents{Agents: make([]api.Agent, 0, len(page.Workflows)), TotalCount: page.Total, Page: in.Page,
		PageSize: in.PageSize}}
	for i := range page.Workflows {
		spec, err := s.specOf(ctx, p, &page.Workflows[i])
		if err != nil {
			return nil, err
		}
		out.Body.Agents = append(out.Body.Agents, tellAgent(&page.Workflows[i], spec))
	}
	return out, nil
}

func (s *Server) getAgent(ctx context.Context, p identity.Principal, in *AgentPath) (*agentOutput, error) {
	w, err := s.agentOf(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	spec, err := s.specOf(ctx, p, &w)
	if err != nil {
		return nil, err
	}
	return &agentOutput{ETag: etag(w.Revision), Body: tellAgent(&w, spec)}, nil
}

// agentOf finds the workflow that an agent is stored as.
func (s *Server) agentOf(ctx context.Context, p identity.Principal, id string) (store.Workflow, error) {
	w, err := s.o.Stores.Workflows.Get(ctx, p, agent.WorkflowID(id))
	if _, unnamed := strings.CutPrefix(agent.WorkflowID(id), agent.UnnamedID("")); errors.Is(err, store.ErrNotFound) || unnamed {
		return w, fault.Newf(fault.NotFound, "there is no agent %q in this workspace", id)
	}
	return w, err
}

// specOf reads what describes an agent.
func (s *Server) specOf(ctx context.Context, p identity.Principal, w *store.Workflow) (agent.Spec, error) {
	r, err := s.o.Stores.Workflows.Revision(ctx, p, w.ID, w.Revision)
	if err != nil {
		return agent.Spec{}, err
	}
	var def workflow.Definition
	// Only the nodes are needed, and package workflow has written the stored definition.
	nodes := gjson.GetBytes(r.Definition, "nodes")
	if err := json.Unmarshal([]byte(nodes.Raw), &def.Nodes); err != nil {
		return agent.Spec{}, fault.Newf(fault.Internal, "the agent %q cannot be read: %w", w.ID, err)
	}
	def.Metadata.ID = w.ID
	return agent.ReadSpec(&def)
}

func tellAgent(w *store.Workflow, spec agent.Spec) api.Agent {
	id, _ := agent.IDOf(w.ID)
	out := api.Agent{
		ID: id, Name: spec.Name, Description: spec.Description, LLMProfile: spec.LLMProfile, MCPServers: spec.MCPServers,
		AutoExecute: spec.AutoExecute,
		Language:    spec.Language, Limits: api.AgentLimits(spec.Limits), Revision: w.Revision, CreatedBy: w.CreatedBy,
		UpdatedBy: w.UpdatedBy, TokenMadeBy: w.TokenMadeBy, CreatedTime: w.Created, UpdatedTime: w.Updated,
	}
	for _, level := range spec.Policy.AutoApprove {
		out.Policy.AutoApprove = append(out.Policy.AutoApprove, string(level))
	}
	return out
}

func (s *Server) createAgent(ctx context.Context, p identity.Principal, in *agentCreate) (*agentOutput, error) {
	if in.Body.ID != "" {
		return s.saveAgent(ctx, p, in.Body.ID, in.Body, -1)
	}
	const longest = 48 // a number or a random text comes after it
	id := route.MadeID(in.Body.Name, "agent")
	id = strings.Trim(id[:min(len(id), longest)], "-")
	for n := 1; n <= route.MaxMadeIDs; n++ {
		free := id
		if n > 1 {
			free += "-" + strconv.Itoa(n)
		}
		out, err := s.saveAgent(ctx, p, free, in.Body, -1)
		if err == nil || !errors.Is(err, store.ErrConflict) {
			return out, err
		}
	}
	return s.saveAgent(ctx, p, id+"-"+route.RandomText(), in.Body, -1)
}

func (s *Server) putAgent(ctx context.Context, p identity.Principal, in *agentPut) (*agentOutput, error) {
	if in.Body.ID != "" && in.Body.ID != in.ID {
		return nil, api.WrongField("id", "%q is not the agent of the address, %q; make them agree, or leave the id out", in.Body.ID, in.ID)
	}
	expect, err := expectedRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	return s.saveAgent(ctx, p, in.ID, in.Body, expect)
}

// saveAgent stores an agent whose description is complete and valid; expect is as in [store.SaveWorkflow].
func (s *Server) saveAgent(ctx context.Context, p identity.Principal, id string, in api.Agent, expect int64) (*agentOutput, error) {
	spec, err := s.readAgent(ctx, p, id, in)
	if err != nil {
		return nil, err
	}
	def, err := spec.Workflow(agent.WorkflowID(id))
	if err != nil {
		return nil, err
	}
	audited := route.Audited(ctx, "agent.put", id, nil, map[string]any{"name": spec.Name, "llm_profile": spec.LLMProfile,
		"mcp_servers": spec.MCPServers, "auto_execute": spec.AutoExecute, "policy": spec.Policy})
	w, _, err := s.o.Stores.Workflows.Save(audited, p, store.SaveWorkflow{
		ID: def.Metadata.ID, Name: def.Metadata.Name, Description: def.Metadata.Description, Version: def.Metadata.Version,
		Hash: workflow.Hash(def), Definition: workflow.Encode(def), Time: s.NowMS(), Expect: expect,
	})
	switch {
	case errors.Is(err, store.ErrConflict) && expect < 0:
		return nil, fault.Newf(fault.Conflict, "there is already an agent %q; change it with PUT, or choose another id", id)
	case errors.Is(err, store.ErrConflict):
		return nil, fault.Newf(fault.Conflict, "agent %q is not at revision %d; read it again", id, expect)
	case err != nil:
		return nil, err
	}
	return &agentOutput{ETag: etag(w.Revision), Body: tellAgent(&w, spec)}, nil
}

// wrongPath turns an error that names a path into one about that field of the request.
func wrongPath(err error) error {
	f := fault.From(err)
	path, _ := f.Details["path"].(string)
	if _, values := f.MadeOf(); len(values) == 2 {
		if problem, ok := values[1].(text.Text); ok { // behind the path
			return api.WrongField(path, "%s", problem)
		}
	}
	return api.WrongField(path, "%s", strings.TrimPrefix(f.Message, path+": "))
}

// readAgent checks what describes an agent: each field, and that what it names is there.
func (s *Server) readAgent(ctx context.Context, p identity.Principal, id string, in api.Agent) (agent.Spec, error) {
	spec := agent.Spec{
		Name: cmp.Or(strings.TrimSpace(in.Name), id), Description: in.Description, LLMProfile: in.LLMProfile,
		MCPServers: in.MCPServers, AutoExecute: in.AutoExecute,
		Language: in.Language, Limits: agent.Limits(in.Limits),
	}
	for _, level := range in.Policy.AutoApprove {
		spec.Policy.AutoApprove = append(spec.Policy.AutoApprove, agent.Risk(level))
	}
	if err := errors.Join(agent.CheckID(id), spec.Check()); err != nil {
		return spec, wrongPath(err)
	}
	profiles, err := s.o.Models.Profiles(ctx, p)
	if err != nil {
		return spec, err
	}
	names := make([]string, len(profiles))
	for i, one := range profiles {
		names[i] = one.ID
	}
	if !slices.Contains(names, spec.LLMProfile) {
		return spec, api.WrongField("llm_profile", "there is no profile %q in this workspace%s", spec.LLMProfile, route.Nearest(spec.LLMProfile, names))
	}
	servers, err := s.o.Stores.MCPServers.List(ctx, p)
	if err != nil {
		return spec, err
	}
	names = names[:0]
	for _, one := range servers {
		names = append(names, one.ID)
	}
	for i, server := range spec.MCPServers {
		if !slices.Contains(names, server) {
			return spec, api.WrongField(fmt.Sprintf("mcp_servers[%d]", i), "the tool server %q is not registered in this workspace%s; an administrator registers it with PUT /api/v1/mcp/servers/{id}", server, route.Nearest(server, names))
		}
	}
	return spec, nil
}

func (s *Server) deleteAgent(ctx context.Context, p identity.Principal, in *AgentPath) (*route.Nothing, error) {
	w, err := s.agentOf(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, route.ConflictOf(s.o.Stores.Workflows.Delete(route.Audited(ctx, "agent.delete", in.ID, nil, nil), p, w.ID, s.NowMS()), "agent %q has unfinished tasks; cancel them or wait", in.ID)
}

type (
	startTaskInput struct {
		AgentPath
		Key  string `header:"Idempotency-Key" maxLength:"255"`
		Body taskBody
	}
	taskOutput struct {
		Status   int
		Location string `header:"Location"`
		Body     api.TaskStarted
	}
)

// taskBody is a request as clients write it; some use older names of fields.
type taskBody struct {
	api.TaskRequest
	OldConversationID string `json:"conversationId,omitempty" maxLength:"200" hidden:"true"`
	OldSessionID      string `json:"sessionId,omitempty" maxLength:"200" hidden:"true"`
	OldAutoExecute    *bool  `json:"autoExecute,omitempty" hidden:"true"`
}

// request returns the request under the present names, which win over older ones.
func (b *taskBody) request() api.TaskRequest {
	r := b.TaskRequest
	r.ConversationID, r.SessionID = cmp.Or(r.ConversationID, b.OldConversationID), cmp.Or(r.SessionID, b.OldSessionID)
	r.AutoExecute = cmp.Or(r.AutoExecute, b.OldAutoExecute)
	return r
}

func (s *Server) startTask(ctx context.Context, p identity.Principal, in *startTaskInput) (*taskOutput, error) {
	want := in.Body.request()
	hash, err := taskHash(in.ID, want)
	if err != nil {
		return nil, err
	}
	started, err := s.startedBefore(ctx, p, in.Key, hash)
	if err != nil {
		return nil, err
	}
	if started.Execution == "" {
		request, err := s.taskRequest(ctx, p, in.ID, want)
		if err != nil {
			return nil, err
		}
		request.Key, request.KeyHash, request.ExternalRequest = in.Key, hash, in.Key
		leave, err := s.o.Limits.Enter(ctx, p, limits.Start{Tasks: s.o.TaskStarts})
		if err != nil {
			return nil, err
		}
		started, err = s.o.Host.Start(route.Audited(ctx, "execution.start", request.ID, nil, map[string]any{"agent_id": in.ID}), p, request)
		leave(err == nil && !started.Repeated)
		if err != nil {
			return nil, err
		}
	}
	if started.Repeated {
		store.NothingToAudit(ctx)
	}
	return s.taskAnswer(ctx, p, in.ID, started, time.Duration(want.WaitSeconds*float64(time.Second)))
}

// taskHash tells a start that is repeated from another one under the same key. How long the caller wants to wait does not
// make it another one.
func taskHash(id string, want api.TaskRequest) (string, error) {
	want.WaitSeconds = 0
	return hashOf(struct {
		Agent   string
		Request api.TaskRequest
	}{id, want})
}

// taskRequest says what to start, or why it cannot be.
func (s *Server) taskRequest(ctx context.Context, p identity.Principal, id string, want api.TaskRequest) (host.StartRequest, error) {
	w, err := s.agentOf(ctx, p, id)
	if err != nil {
		return host.StartRequest{}, err
	}
	if err := agent.CheckRequest(&want); err != nil {
		return host.StartRequest{}, wrongPath(err)
	}
	r, ready, err := s.o.Revisions.Request(ctx, p, w.ID, "latest")
	if err != nil {
		return r, err
	}
	spec, err := agent.ReadSpec(ready.Source)
	if err != nil {
		return r, err
	}
	if want.ConversationID == "" {
		want.ConversationID = route.NewID("conv")
	}
	priority := want.Priority
	want.WaitSeconds, want.Priority = 0, 0 // they belong to the start, not to the task
	if r.TriggerData, err = json.Marshal(want); err != nil {
		return r, fault.Newf(fault.InvalidInput, "the request cannot be kept: %w", err)
	}
	if r.Initial, err = agent.Initial(r.TriggerData); err != nil {
		return r, err
	}
	r.ID, r.TriggerType, r.Language = newExecutionID(), limits.TriggerAgent, cmp.Or(want.Language, spec.Language, s.o.Language)
	if priority > 0 {
		r.Priority = priority
	}
	return r, nil
}

// taskAnswer answers a start when the task has ended, waits for a person, or has run as long as the caller wants to wait.
func (s *Server) taskAnswer(ctx context.Context, p identity.Principal, id string, started host.Started,
	patience time.Duration) (*taskOutput, error) {
	rests := func(status engine.Status) bool { return status.Final() || status == engine.StatusWaitingForHuman }
	status := started.Status
	if patience > 0 && !rests(status) {
		var err error
		if status, err = s.await(ctx, p, started.Execution, patience, rests); err != nil {
			return nil, err
		}
	}
	e, err := s.o.Stores.Executions.Get(ctx, p, started.Execution)
	if err != nil {
		return nil, err
	}
	out := &taskOutput{
		Status: http.StatusAccepted, Location: route.Prefix + "/executions/" + started.Execution,
		Body: api.TaskStarted{
			TaskID: e.ID, ExecutionID: e.ID, AgentID: id, ConversationID: e.Conversation, Status: string(status),
			Repeated: started.Repeated,
		},
	}
	if patience == 0 || !status.Final() {
		return out, nil
	}
	r, err := s.stories.ReadExecution(ctx, p, started.Execution)
	if err != nil {
		return nil, err
	}
	if out.Body.Answer, err = r.TaskAnswer(ctx); err != nil {
		return nil, err
	}
	out.Status, out.Body.Status, out.Body.Error = http.StatusOK, string(r.View.Status), r.Failure()
	return out, nil
}

type listTasksInput struct {
	AgentPath
	route.Paging
	Status       []string `query:"status,explode" doc:"several, or one list with commas"`
	Conversation string   `query:"conversation_id" maxLength:"200"`
	Mine         bool     `query:"mine" doc:"only those that the caller has started"`
}

func (s *Server) listTasks(ctx context.Context, p identity.Principal, in *listTasksInput) (*executionsOutput, error) {
	statuses, err := readStatuses(route.Listed(in.Status))
	if err != nil {
		return nil, err
	}
	w, err := s.agentOf(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	q := store.ExecutionQuery{WorkflowID: w.ID, Statuses: statuses, Conversation: in.Conversation, Page: in.StorePage()}
	if in.Mine {
		q.User = p.User
	}
	out, err := s.pageOfExecutions(ctx, p, q, in.Paging)
	if err != nil {
		return nil, err
	}
	for i := range out.Body.Executions {
		one := &out.Body.Executions[i]
		if one.TaskName, err = s.stories.TaskName(ctx, p, one.ExecutionID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noAgent refuses the ids of agents in operations that are for workflows.
func noAgent[I any, P interface {
	*I
	named() string
}, O any](fn func(context.Context, identity.Principal, *I) (*O, error)) func(context.Context, identity.Principal, *I) (*O, error) {
	return func(ctx context.Context, p identity.Principal, in *I) (*O, error) {
		if _, is := agent.IDOf(P(in).named()); is {
			return nil, fault.Newf(fault.NotFound, "there is no workflow %q; GET %s/agents lists agents", P(in).named(), route.Prefix)
		}
		return fn(ctx, p, in)
	}
}
