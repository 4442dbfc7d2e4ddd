package server

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/agent"
	"tandem/api"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/payload"
	"tandem/revisions"
	"tandem/route"
	"tandem/store"
	"tandem/trial"
	"tandem/validation"
	"tandem/workflow"
)

func testOperation() huma.Operation {
	return huma.Operation{
		Method: http.MethodPost, Path: "/workflows/test", OperationID: "test-workflow", Summary: "Run a definition, or a part of it, as a test", Tags: []string{"workflows"},
		DefaultStatus: http.StatusAccepted,
		Description: "A test is a real execution, with effects in the name of the caller, of a definition that need not be saved. Nodes in pinned do not run and have the outputs that are given. " +
			"Its trigger_type is TEST, and it counts in no statistics of the workflow. It is refused with approval_required when something with effects lies behind a question that is pinned or left out.",
	}
}

type testInput struct {
	Body api.TestRequest
}

// testOutput is the answer to a test.
type testOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     api.TestResponse
}

func (s *Server) testWorkflow(ctx context.Context, p identity.Principal, in *testInput) (*testOutput, error) {
	want := in.Body
	inputs, err := inputsOf(want.Inputs)
	if err != nil {
		return nil, err
	}
	want.Inputs = inputs
	def, err := s.testedDefinition(ctx, p, &want)
	if err != nil {
		return nil, err
	}
	test, runs, err := trial.Request(def, &want)
	if err != nil {
		return nil, err
	}
	part, err := workflow.NewExcerpt(def, s.o.Kinds, runs)
	if err != nil {
		return nil, wrongPath(err)
	}
	asks := func(ctx context.Context, child workflow.ChildWorkflow) (bool, error) {
		return s.o.Revisions.ChildAsks(ctx, p, child)
	}
	if err := trial.RefusePassed(ctx, part.Passed, asks); err != nil {
		return nil, err
	}
	if problems, err := trial.Problems(def, part.Definition, s.o.Check); err != nil {
		return nil, err
	} else if len(problems) > 0 {
		return nil, validation.Refusal(problems)
	}
	request, err := s.testRequest(ctx, p, part, want)
	if err != nil {
		return nil, err
	}
	hash, _ := revisions.SplitHash(request.RevisionHash)
	if err := s.o.Stores.Workflows.KeepDraft(store.WithoutEntries(ctx), p,
		store.Draft{WorkflowID: want.WorkflowID, Execution: request.ID, Hash: hash, Definition: workflow.Encode(part.Definition),
			Time: s.NowMS()}); err != nil {
		return nil, err
	}
	started, err := s.startTest(ctx, p, request)
	if err != nil {
		if failed := s.o.Stores.Workflows.DropDraft(store.WithoutEntries(context.WithoutCancel(ctx)), p, request.ID); failed != nil {
			s.Log.WarnContext(ctx, "the draft of a test that was not started stays until it is tidied up", "execution", request.ID, "error", failed)
		}
		return nil, err
	}
	told, err := s.startAnswer(ctx, p, started, time.Duration(want.WaitSeconds*float64(time.Second)), nil)
	if err != nil {
		return nil, err
	}
	out := &testOutput{Status: told.Status, Location: told.Location, Body: api.TestResponse{ExecuteResponse: told.Body}}
	if test == nil {
		return out, nil
	}
	return out, trial.Judge(test, &out.Body, func(nodes []string) (map[string]map[string]json.RawMessage, error) {
		r, err := s.stories.ReadExecution(ctx, p, request.ID)
		if err != nil {
			return nil, err
		}
		return r.OutputsOf(ctx, nodes)
	}, func() error {
		_, err := s.o.Host.Act(store.WithoutEntries(context.WithoutCancel(ctx)), p,
			host.Request{Execution: request.ID, Action: host.ActionCancel, By: p.User, Reason: "the test has not ended in time"})
		return err
	})
}

func (s *Server) startTest(ctx context.Context, p identity.Principal, request host.StartRequest) (host.Started, error) {
	leave, err := s.o.Limits.Enter(ctx, p, limits.Start{})
	if err != nil {
		return host.Started{}, err
	}
	audited := route.Audited(ctx, "execution.test", request.ID, nil,
		map[string]any{"workflow_id": request.WorkflowID, "test": request.Test.Name, "node": request.Test.Node, "from": request.Test.From, "pinned": request.Test.Pinned})
	started, err := s.o.Host.Start(audited, p, request)
	leave(err == nil)
	return started, err
}

// testedDefinition reads the definition that is to be tested, and finds out which workflow it belongs to. What is wrong with
// nodes that do not run does not matter.
func (s *Server) testedDefinition(ctx context.Context, p identity.Principal, want *api.TestRequest) (*workflow.Definition, error) {
	text := []byte(want.Definition)
	switch {
	case len(text) > 0 && want.Revision > 0:
		return nil, api.WrongField("revision", "the definition is given; leave one of them out")
	case len(text) == 0 && want.WorkflowID == "":
		return nil, api.WrongField("definition", "give a definition, or the workflow_id of one that is kept")
	case len(text) == 0:
		revision, err := s.testedRevision(ctx, p, want)
		if err != nil {
			return nil, err
		}
		text = revision.Definition
	case text[0] == '"':
		text = []byte(payload.Text(text))
	}
	source, problems := workflow.Parse(text, workflow.Options{Kinds: s.o.Kinds})
	if source == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	def := source.Definition
	if id := def.Metadata.ID; id != "" && want.WorkflowID != "" && id != want.WorkflowID {
		return nil, api.WrongField("workflow_id", "the definition is of workflow %q; make them agree, or leave one out", id)
	}
	want.WorkflowID = cmp.Or(want.WorkflowID, def.Metadata.ID, route.MadeID(def.Metadata.Name, "draft"))
	if _, is := agent.IDOf(want.WorkflowID); is {
		return nil, fault.Newf(fault.NotFound, "there is no workflow %q; GET %s/agents lists agents", want.WorkflowID, route.Prefix)
	}
	def.Metadata.ID = want.WorkflowID
	return def, checkWorkflowID(want.WorkflowID)
}

// testedRevision reads a revision that is kept. An older one must not be a way around what the newest one requires.
func (s *Server) testedRevision(ctx context.Context, p identity.Principal, want *api.TestRequest) (store.Revision, error) {
	revision, err := s.o.Stores.Workflows.Revision(ctx, p, want.WorkflowID, want.Revision)
	if err != nil || want.Revision == 0 {
		return revision, err
	}
	deployed, err := s.isDeployed(ctx, p, want.WorkflowID, want.Revision)
	if err != nil || deployed {
		return revision, err
	}
	return revision, s.o.Revisions.RefuseAround(ctx, p, want.WorkflowID, want.Revision, revision.Hash, "revision")
}

// testRequest says what to start.
func (s *Server) testRequest(ctx context.Context, p identity.Principal, part *workflow.Excerpt,
	want api.TestRequest) (host.StartRequest, error) {
	r, ready, err := s.o.Revisions.Draft(ctx, p, want.WorkflowID, part.Definition)
	if err != nil {
		return r, err
	}
	switch {
	case want.TriggerNode != "" && (want.Node != "" || want.From != ""):
		return r, api.WrongField("trigger_node", "the test begins at another node; leave it out")
	case want.Node == "" && want.From == "" && want.TriggerNode == "" && len(ready.Graph.Triggers) > 0:
		part.Trigger = ready.Graph.Nodes[ready.Graph.Triggers[0]].ID
	case want.TriggerNode != "":
		part.Trigger = want.TriggerNode
	}
	if err := place(&r, ready.Graph, api.ExecuteRequest{TriggerNode: part.Trigger, StartFromNode: part.StartFrom}); err != nil {
		return r, err
	}
	if r.Trigger != "" {
		if err := checkInputs(ready, r.Trigger, want.Inputs); err != nil {
			return r, err
		}
	}
	r.ID, r.Initial, r.TriggerData, r.TriggerType = newExecutionID(), want.Inputs, want.Inputs, store.TriggerTest
	r.Language = cmp.Or(want.Language, r.Language, s.o.Language)
	r.Test = &host.Test{Name: want.Test, Node: want.Node, From: want.From, Pinned: slices.Sorted(maps.Keys(want.Pinned)), By: p.User}
	return r, nil
}
