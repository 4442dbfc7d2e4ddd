package gateway

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/text"
)

// target is the execution that a call is about.
type target struct {
	ExecutionID string `json:"execution_id"`
}

func (t *target) execution() string { return t.ExecutionID }

// statusArguments are those of execution_status, resumeArguments those of execution_resume.
type statusArguments struct {
	target
	WaitSeconds float64 `json:"wait_seconds"`
}

type resumeArguments struct {
	target
	InteractionID string          `json:"interaction_id"`
	Answer        json.RawMessage `json:"answer"`
}

const statusSchema = `{"type":"object","required":["execution_id"],"additionalProperties":false,"properties":{` +
	`"execution_id":{"type":"string","minLength":1,"description":"The execution, as a call has named it."},` +
	`"wait_seconds":{"type":"number","minimum":0,"maximum":60,"description":"How long to wait for its end, or for a question."}}}`

const resumeSchema = `{"type":"object","required":["execution_id"],"additionalProperties":false,"properties":{` +
	`"execution_id":{"type":"string","minLength":1,"description":"The execution, as a call has named it."},` +
	`"interaction_id":{"type":"string","description":"The question; it may be left out when there is one."},` +
	`"answer":{"description":"What the user answers, as the question's answer_schema says. Left out: an execution that an operator has paused goes on."}}}`

// addOwnTools adds the two tools that are not workflows.
func (s *Server) addOwnTools() {
	yes, no := true, false
	s.mcp.AddTool(&mcp.Tool{
		Name: toolStatus, Title: "How an execution stands", InputSchema: json.RawMessage(statusSchema),
		Description: "Says how a run of a workflow or a task of an agent stands: its outputs once it has ended, its error, or the questions that it waits for.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, s.status)
	s.mcp.AddTool(&mcp.Tool{
		Name: toolResume, Title: "Answer a question of an execution", InputSchema: json.RawMessage(resumeSchema),
		Description: "Answers a question that an execution waits for, in the name of the user, and says what became of it. The user decides: ask them, and never answer a confirmation or an approval by yourself.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes},
	}, s.resume)
}

// about reads the arguments of a call about an execution and begins the call; done ends it.
func (s *Server) about(ctx context.Context, req *mcp.CallToolRequest, arguments interface{ execution() string }) (_ context.Context,
	r *run, done func(), err error) {
	if err := readArguments(req.Params.Arguments, arguments); err != nil {
		return nil, nil, nil, err
	}
	if arguments.execution() == "" {
		return nil, nil, nil, fault.New(fault.InvalidInput, "execution_id is missing")
	}
	ctx, done, err = s.beginCall(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, s.newRun(req, arguments.execution()), done, nil
}

// status tells how an execution stands. That it has failed is not a failure of the call.
func (s *Server) status(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var a statusArguments
	ctx, r, done, err := s.about(ctx, req, &a)
	if err != nil {
		return failure(err, ""), nil
	}
	defer done()
	e, err := s.api.Execution(ctx, a.ExecutionID)
	if wait := min(time.Duration(a.WaitSeconds*float64(time.Second)), s.o.Wait); err == nil && wait > 0 &&
		!final(e.Status) && !r.stuck(&e) {
		e, _, err = r.wait(ctx, time.Now().Add(wait))
	}
	if err != nil {
		r.execution = "" // nothing is known about it
		return r.broken(ctx, err)
	}
	if !final(e.Status) {
		return r.handle(ctx, &e)
	}
	o, text, err := r.ended(ctx, &e)
	if err != nil {
		return r.broken(ctx, err)
	}
	return o.result(text, false), nil
}

// resume answers a question, or lets what was paused go on, and follows the execution.
func (s *Server) resume(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState != "" { // a later round of a call that has asked another question
		return s.call(ctx, req, nil)
	}
	var a resumeArguments
	ctx, r, done, err := s.about(ctx, req, &a)
	if err != nil {
		return failure(err, ""), nil
	}
	defer done()
	if err := r.goOn(ctx, &a); err != nil {
		r.execution = "" // nothing has changed
		return r.broken(ctx, err)
	}
	return r.result(ctx, s.o.Wait)
}

// goOn does what lets an execution go on.
func (r *run) goOn(ctx context.Context, a *resumeArguments) error {
	e, err := r.s.api.Execution(ctx, a.ExecutionID)
	if err != nil {
		return err
	}
	if len(a.Answer) == 0 || string(a.Answer) == "null" && len(e.Questions) == 0 {
		switch {
		case len(e.Questions) > 0:
			return fault.Newf(fault.InvalidInput, "the execution waits for an answer; give it as answer. It is asked: %s", namesOf(e.Questions))
		case engine.Status(e.Status) == engine.StatusPaused:
			if _, err := r.s.api.Act(ctx, a.ExecutionID, api.ActionRequest{Action: "resume", Reason: "asked for by a client of the Model Context Protocol"}); err != nil {
				return err
			}
		}
		return r.s.o.TakeUp(ctx, a.ExecutionID)
	}
	id := a.InteractionID
	if id == "" {
		switch len(e.Questions) {
		case 0:
			return fault.Newf(fault.Conflict, "execution %q asks nothing; its status is %s", a.ExecutionID, e.Status)
		case 1:
			id = e.Questions[0].InteractionID
		default:
			return fault.Newf(fault.Conflict, "the execution asks several things; name one in interaction_id: %s", namesOf(e.Questions))
		}
	}
	q, err := r.s.api.Interaction(ctx, id)
	if err != nil {
		return err
	}
	asked := func(q api.UserInputRequest) bool { return q.InteractionID == id }
	if q.ExecutionID != a.ExecutionID && !slices.ContainsFunc(e.Questions, asked) {
		return fault.Newf(fault.InvalidInput, "question %q is not one of execution %q", id, a.ExecutionID)
	}
	return r.respond(ctx, id, q.ArgumentsHash, a.Answer)
}

func namesOf(questions []api.UserInputRequest) string {
	names := make([]string, len(questions))
	for i, q := range questions {
		names[i] = q.InteractionID + " (" + text.ClipBytes(q.Title, 80) + ")"
	}
	return strings.Join(names, ", ")
}

// respond answers a question. What waits in a data directory of this process goes on with that.
func (r *run) respond(ctx context.Context, id, hash string, answer json.RawMessage) error {
	after, err := r.s.api.Respond(ctx, id, api.RespondRequest{ResponseData: answer, ArgumentsHash: hash})
	if err != nil {
		return err
	}
	if after.Status == "pending" {
		r.left[id] = true // it wants the answers of others, too
	} else {
		r.answered[id] = true
	}
	return r.s.o.TakeUp(ctx, r.execution)
}

// fetch reads a large value of at most that many bytes.
func (r *run) fetch(ctx context.Context, hash string, most int) (json.RawMessage, error) {
	body, err := r.s.api.Value(ctx, r.execution, hash)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	value, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	switch {
	case err != nil:
		return nil, fault.Newf(fault.NetworkError, "read a value of execution %q: %w", r.execution, err)
	case len(value) > most || !json.Valid(value): // not what its reference says, or a file
		return raw(map[string]any{"$blob": hash}), nil
	}
	return value, nil
}
