package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/payload"
	"tandem/revisions"
	"tandem/route"
	"tandem/store"
	"tandem/story"
	"tandem/workflow"
)

func executeOperation(before ...func(huma.Context, func(huma.Context))) huma.Operation {
	return huma.Operation{
		Middlewares: before,
		Method:      http.MethodPost, Path: "/workflows/{id}/execute", OperationID: "execute-workflow", Summary: "Start an execution", Tags: []string{"workflows"},
		DefaultStatus: http.StatusAccepted,
		Description:   "Answers 202 when the execution is on disk, or 200 when it has ended within wait_seconds. Starting again with the same Idempotency-Key starts nothing and answers with the first execution.",
	}
}

type executeInput struct {
	WorkflowPath
	Key  string `header:"Idempotency-Key" maxLength:"255"`
	Body *api.ExecuteRequest
}

type executeOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     api.ExecuteResponse
}

func (s *Server) executeWorkflow(ctx context.Context, p identity.Principal, in *executeInput) (*executeOutput, error) {
	want := api.ExecuteRequest{}
	if in.Body != nil {
		want = *in.Body
	}
	inputs, err := inputsOf(want.Inputs)
	if err != nil {
		return nil, err
	}
	want.Inputs = inputs
	hash := "" // the start may be repeated
	if in.Key != "" {
		if hash, err = requestHash(in.ID, want); err != nil {
			return nil, err
		}
	}
	patience := time.Duration(want.WaitSeconds * float64(time.Second))
	started, err := s.startedBefore(ctx, p, in.Key, hash)
	if err != nil {
		return nil, err
	}
	if started.Execution != "" {
		return s.repeatedAnswer(ctx, p, started, want.Inputs, patience)
	}
	request, r, err := s.startRequest(ctx, p, in.ID, want)
	if err != nil {
		return nil, err
	}
	warnings := r.Ready.UnusedInputs(want.Inputs)
	request.Key, request.KeyHash, request.ExternalRequest = in.Key, hash, in.Key
	var w *waiting
	if patience > 0 {
		w = &waiting{r: r}
		request.Follow = func() {
			w.sub, w.seen = s.o.Hub.Subscribe(host.Ref{Workspace: p.Workspace, Execution: request.ID}), host.NewSeen(r.Graph)
		}
		defer w.close()
	}
	leave, err := s.o.Limits.Enter(ctx, p, limits.Start{})
	if err != nil {
		return nil, err
	}
	started, err = s.o.Host.Start(route.Audited(ctx, "execution.start", request.ID, nil, startedOf{request.Revision, in.ID}), p, request)
	if leave(err == nil && started.Execution == request.ID); err != nil {
		return nil, err
	}
	switch {
	case started.Execution != request.ID: // it is the execution that the key has started before
		return s.repeatedAnswer(ctx, p, started, want.Inputs, patience)
	case started.Ended != nil && w != nil:
		w.seen = started.Ended
	case w != nil && w.sub == nil:
		w = nil // it was not followed
	}
	out, err := s.startAnswer(ctx, p, started, patience, w)
	if err != nil {
		return nil, err
	}
	out.Body.Warnings = warnings
	return out, nil
}

// startedOf is the entry of a start in the audit log.
type startedOf struct {
	Revision   int64  `json:"revision"`
	WorkflowID string `json:"workflow_id"`
}

// repeatedAnswer answers a start that was made before, as it was answered then: by the revision that was started.
func (s *Server) repeatedAnswer(ctx context.Context, p identity.Principal, started host.Started, inputs json.RawMessage,
	patience time.Duration) (*executeOutput, error) {
	store.NothingToAudit(ctx)
	e, err := s.o.Stores.Executions.Get(ctx, p, started.Execution)
	if err != nil {
		return nil, err
	}
	ready, err := s.o.Revisions.Pinned(ctx, p, e.WorkflowID, e.RevisionHash)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // its warnings were not stored
		return nil, err
	}
	out, err := s.startAnswer(ctx, p, started, patience, nil)
	if err != nil {
		return nil, err
	}
	if ready != nil {
		out.Body.Warnings = ready.UnusedInputs(inputs)
	}
	return out, nil
}

// waiting is a request that has followed an execution from its first row on, or has got all of its rows.
type waiting struct {
	// r reads the execution if it has to be read.
	r *story.Reading
	// sub is nil for a request that has got all rows.
	sub  *host.Subscription
	seen *host.Seen
}

func (w *waiting) close() {
	if w.sub != nil {
		w.sub.Close()
	}
}

// inputsOf checks that inputs are an object; none are an empty one.
func inputsOf(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, api.WrongField("inputs", "an object was expected; write the inputs by name")
	}
	inputs, err := payload.Normalize(raw, payload.Limits{}) // as they are, if there is no white space between them
	if err != nil {
		return nil, api.WrongField("inputs", "they cannot be read: %w", err)
	}
	return inputs, nil
}

// requestHash distinguishes a start that is repeated from a different one with the same key. How long the caller wants
// to wait makes no difference.
func requestHash(id string, want api.ExecuteRequest) (string, error) {
	want.WaitSeconds = 0
	return hashOf(struct {
		Workflow string
		Request  api.ExecuteRequest
	}{id, want})
}

// hashOf is the hash of a request. It is kept with the request's key, so what goes into it stays as it is.
func hashOf(request any) (string, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return "", fault.Newf(fault.Internal, "the request cannot be hashed: %w", err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// startedBefore looks for the execution that a key has started. It is called before the request is checked, since the
// workflow may have changed in the meantime. The host decides between two requests that come at the same moment.
func (s *Server) startedBefore(ctx context.Context, p identity.Principal, key, hash string) (host.Started, error) {
	if key == "" {
		return host.Started{}, nil
	}
	known, err := s.o.Stores.Keys.Find(ctx, p, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return host.Started{}, nil
	case err != nil:
		return host.Started{}, err
	case known.RequestHash != hash:
		return host.Started{}, &store.KeyUsedError{IdempotencyKey: known}
	}
	e, err := s.o.Stores.Executions.Get(ctx, p, known.Execution)
	if err != nil {
		return host.Started{}, err
	}
	return host.Started{Execution: e.ID, Status: e.Status, Repeated: true}, nil
}

// startRequest says what to start and how it is read then, or why it cannot be started.
func (s *Server) startRequest(ctx context.Context, p identity.Principal, id string,
	want api.ExecuteRequest) (host.StartRequest, *story.Reading, error) {
	revision := "latest"
	if want.Revision > 0 {
		revision = strconv.FormatInt(want.Revision, 10)
	}
	r, ready, err := s.o.Revisions.Request(ctx, p, id, revision)
	if err != nil {
		return r, nil, err
	}
	deployed, err := s.isDeployed(ctx, p, id, want.Revision)
	if err != nil {
		return r, nil, err
	}
	if want.Revision > 0 && !deployed {
		if err := s.o.Revisions.RefuseAround(ctx, p, id, want.Revision, r.RevisionHash, "revision"); err != nil {
			return r, nil, err
		}
	}
	if err := place(&r, ready.Graph, want); err != nil {
		return r, nil, err
	}
	if r.Trigger != "" {
		if err := checkInputs(ready, r.Trigger, want.Inputs); err != nil {
			return r, nil, err
		}
	}
	r.ID, r.Initial, r.TriggerData, r.Language = newExecutionID(), want.Inputs, want.Inputs, cmp.Or(want.Language, r.Language, s.o.Language)
	if want.Priority > 0 {
		r.Priority = want.Priority
	}
	r.TimeoutMS = int64(want.TimeoutSeconds * 1000)

	return r, s.stories.Begun(p, r.ID, ready, host.Start{WorkflowID: r.WorkflowID, Language: r.Language, Outputs: r.Outputs}), nil
}

// isDeployed says whether a revision is the deployed one. That one may be started even if a newer revision, which is not
// deployed yet, asks for more.
func (s *Server) isDeployed(ctx context.Context, p identity.Principal, id string, revision int64) (bool, error) {
	if revision == 0 {
		return false, nil
	}
	w, err := s.o.Stores.Workflows.Heading(ctx, p, id)
	return w.DeployedRevision == revision, err
}

// place says where the execution begins, if the request names a place.
func place(r *host.StartRequest, graph *workflow.Graph, want api.ExecuteRequest) error {
	switch {
	case want.TriggerNode != "" && want.StartFromNode != "":
		return api.WrongField("start_from_node", "an execution begins at trigger_node or at start_from_node; leave one out")
	case want.TriggerNode != "":
		i, ok := graph.Node(want.TriggerNode)
		if !ok || !slices.Contains(graph.Triggers, i) {
			names := make([]string, len(graph.Triggers))
			for n, t := range graph.Triggers {
				names[n] = graph.Nodes[t].ID
			}
			return api.WrongField("trigger_node", "%q is not an enabled trigger of the workflow; it has %s", want.TriggerNode, orNone(names))
		}
		r.Trigger = want.TriggerNode
		_, r.TriggerType, _ = strings.Cut(graph.Nodes[i].Kind, ".")
	case want.StartFromNode != "":
		i, ok := graph.Node(want.StartFromNode)
		switch {
		case !ok:
			return api.WrongField("start_from_node", "the workflow has no node %q", want.StartFromNode)
		case graph.Nodes[i].Plan.Disabled && workflow.TypeOf(graph.Nodes[i].Kind) == workflow.TypeTrigger:
			return api.WrongField("start_from_node", "the trigger %q is switched off; switch it on, or start at another one", want.StartFromNode)
		case graph.Nodes[i].Attached:
			return api.WrongField("start_from_node", "%q is attached to another node and takes no part in the flow", want.StartFromNode)
		case graph.Nodes[i].Body != 0:
			return api.WrongField("start_from_node", "%q stands inside %q; start at that node", want.StartFromNode, graph.Nodes[graph.Bodies[graph.Nodes[i].Body].Owner].ID)
		}
		r.Trigger, r.StartFrom, r.TriggerType = "", want.StartFromNode, "API"
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// checkInputs checks the inputs against the trigger's schema, before there is an execution that would fail with them. A
// trigger with parameters of its own can check them only in the execution.
func checkInputs(ready *revisions.Ready, trigger string, inputs json.RawMessage) error {
	i, ok := ready.Graph.Node(trigger)
	if !ok || !ready.Graph.Nodes[i].Plan.Traits.ByHand {
		return nil
	}
	schema, err := ready.InputSchema(trigger)
	if err != nil || schema == nil {
		return err
	}
	value, err := payload.Decode(inputs)
	if err != nil {
		return api.WrongField("inputs", "they cannot be read: %w", err)
	}
	problems := schema.Problems("inputs", value)
	if len(problems) == 0 {
		return nil
	}
	fields := make([]api.FaultField, len(problems))
	for i, problem := range problems {
		fields[i] = api.FaultField{Path: problem.Path, Message: problem.Message}
	}
	return fault.Newf(fault.InvalidInput, "the inputs do not fit the trigger's input_schema: %s", problems[0]).With("fields", fields)
}

// startAnswer answers a start when the execution has ended, or has run as long as the caller wants to wait. If it was not
// followed from the beginning, it is read from the journal.
func (s *Server) startAnswer(ctx context.Context, p identity.Principal, started host.Started, patience time.Duration,
	w *waiting) (*executeOutput, error) {
	status := started.Status
	switch {
	case patience > 0 && w != nil && w.sub == nil:
		status = w.seen.View.Status
	case patience > 0 && (w != nil || !status.Final()):
		var err error
		if w != nil {
			status, err = s.awaitRow(ctx, p, started.Execution, w.sub, w.seen, patience, engine.Status.Final)
		} else {
			status, err = s.await(ctx, p, started.Execution, patience, engine.Status.Final)
		}
		if err != nil {
			return nil, err
		}
	}
	out := &executeOutput{
		Status: http.StatusAccepted, Location: route.Prefix + "/executions/" + started.Execution,
		Body: api.ExecuteResponse{ExecutionID: started.Execution, Status: string(status), Repeated: started.Repeated},
	}
	if patience == 0 || !status.Final() {
		return out, nil
	}
	r, err := s.readEnded(ctx, p, started.Execution, w)
	if err != nil {
		return nil, err
	}
	if out.Body.Outputs, err = r.Outputs(ctx); err != nil {
		return nil, err
	}
	out.Status, out.Body.Status, out.Body.Error = http.StatusOK, string(r.View.Status), r.Failure()
	return out, nil
}

// readEnded reads an execution from the rows that were seen, if these are all.
func (s *Server) readEnded(ctx context.Context, p identity.Principal, execution string, w *waiting) (*story.Reading, error) {
	if w == nil || !w.seen.Whole() || !w.seen.View.Status.Final() {
		return s.stories.ReadExecution(ctx, p, execution)
	}
	w.r.See(w.seen)
	return w.r, nil
}

// await returns the status of an execution when it has come to rest, or when the time to wait is over.
func (s *Server) await(ctx context.Context, p identity.Principal, execution string, patience time.Duration,
	rests func(engine.Status) bool) (engine.Status, error) {
	route.BodyDone(ctx)
	sub := s.o.Hub.Subscribe(host.Ref{Workspace: p.Workspace, Execution: execution})
	defer sub.Close()
	return s.awaitRow(ctx, p, execution, sub, nil, patience, rests)
}

// awaitRow is await for a subscriber. Seen, if it is given, gets the rows, and the subscription is older than the execution.
func (s *Server) awaitRow(ctx context.Context, p identity.Principal, execution string, sub *host.Subscription, seen *host.Seen,
	patience time.Duration, rests func(engine.Status) bool) (engine.Status, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for read := seen == nil; ; {
		if read { // rows from before the subscription, and rows that the hub no longer has
			e, err := s.o.Stores.Executions.Get(ctx, p, execution)
			if err != nil || rests(e.Status) {
				return e.Status, err
			}
		}
		list, more, behind := sub.Next()
		for _, n := range list {
			if seen != nil && n.Row != nil {
				seen.Add(n.Row)
			}
			if status, told := statusTold(n.Row); told && rests(status) {
				return status, nil
			}
		}
		if read = behind; behind {
			if seen != nil {
				seen.Break()
			}
			sub.Sync() // what it leaves out is in the store, which is read next
			continue
		}
		if more == nil {
			continue
		}
		select {
		case <-more:
			continue
		case <-late.C:
		case <-s.open.stopping:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		e, err := s.o.Stores.Executions.Get(ctx, p, execution)
		return e.Status, err
	}
}

// statusTold is the status that an execution has after a row, if the row tells one.
func statusTold(row *host.Row) (status engine.Status, told bool) {
	if row == nil {
		return "", false
	}
	for i := range row.Told {
		if t := &row.Told[i]; t.What == host.ToldExecution {
			status, told = t.Status, true
		}
	}
	return status, told
}
