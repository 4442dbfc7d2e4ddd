package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"tandem/agent"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// callMemo is what a call waits with: which question it has asked, and what the person was shown.
type callMemo struct {
	Purpose string       `json:"purpose"`
	Server  string       `json:"server"`
	Changes []mcp.Change `json:"changes,omitempty"`
}

// call calls the tool with exactly the arguments that were judged and, where that was needed, confirmed.
func (t *tasks) call(ctx context.Context, call *node.Call, p *taskStep) (node.Outcome, error) {
	server, name, ok := mcp.SplitToolID(p.about.Tool)
	if !ok {
		return nil, agent.Failure(fault.Newf(fault.NotFound, "there is no tool %q", p.about.Tool), agent.Other, false)
	}
	args := p.arguments()
	same, err := sameArguments(p.about.Tool, p.Input, args)
	if err != nil {
		return nil, err
	}
	if !same { // a fork may have put it there
		return nil, agent.Failure(fault.Newf(fault.Forbidden, "%q was given other arguments than those that were judged and confirmed", p.Name), agent.Permission, false)
	}
	call.Detail(map[string]any{"tool_name": p.about.Tool, "tool_parameters": args})
	if err := p.confirmedHere(call); err != nil {
		return nil, err
	}
	given, err := t.answered(ctx, call, p)
	if err != nil {
		return nil, err
	}
	// A call that has reached the server is not repeated by the pool: the program does that, once, and it is on record.
	out, err := t.tools.Call(ctx, toolset.Caller(call), mcp.Call{
		Server: server, Tool: name, Arguments: args, Progress: progressOf(call), NoRepeat: true,
		Check: func(now mcp.Tool, v mcp.Verdict) error {
			toolset.DeclareOutputs(call, now)
			return p.asJudged(now, v, given)
		},
	})
	if held, ok := errors.AsType[*toolset.HeldCall](err); ok {
		return p.askHeld(server, held.Verdict)
	}
	if drift, ok := errors.AsType[*mcp.Drifted](err); ok {
		return p.askDrift(drift)
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Kind == mcp.NotActivated {
		return p.askActivation(server)
	}
	if err != nil {
		return nil, callFailure(ctx, err)
	}
	result, err := toolset.ServerResult(ctx, call, out)
	if err != nil {
		// The tool has run, so the failure is not one to try again for.
		return nil, agent.Failure(fault.From(err), agent.Other, false)
	}
	call.Detail(map[string]any{"tool_result": json.RawMessage(shortResult(result))})
	return node.Replied{Result: result}, nil
}

// shortResult is what the record of a call shows of its result; the output has all of it.
func shortResult(result json.RawMessage) json.RawMessage {
	if len(result) <= models.MaxSnapshotValue {
		return result
	}
	return values.Encode(values.Excerpt(payload.JSON(result)))
}

// confirmedHere refuses a confirmation that was given in another execution, whose past a fork shares: it was for one call, which was
// that one's.
func (p *taskStep) confirmedHere(call *node.Call) error {
	var given struct {
		Execution string `json:"execution_id"`
	}
	raw := p.value(p.about.Confirmation)
	if !p.about.Confirmed || raw == nil || json.Unmarshal(raw, &given) != nil || given.Execution == "" ||
		given.Execution == call.ExecutionID {
		return nil // older records do not say where they come from
	}
	return agent.Failure(fault.Newf(fault.Forbidden, "%q was confirmed in execution %q and not in this one; fork where it was asked", p.Name, given.Execution), agent.Permission, false)
}

// asJudged refuses a tool that does more than it did when the call was judged, also if its user has accepted that since for the server as a
// whole, arguments that do not fit it any more, and a call about which somebody wants to be asked by now. Given is what a person has
// decided about this very call.
func (p *taskStep) asJudged(now mcp.Tool, v mcp.Verdict, given callAnswer) error {
	was, ok := p.tool(p.about.Tool)
	if !ok {
		return nil
	}
	change := mcp.Change{Tool: now.Name, Kind: mcp.Changed, After: now.Definition,
		Summary: p.say(text.Of("%q is not what it was when the call was judged", now.Name))}
	if err := p.sameEffect([]mcp.Change{change}); err != nil {
		return err
	}
	if !bytes.Equal(was.InputSchema, now.InputSchema) {
		if _, missing, problem := toolset.CheckArguments(now.InputSchema, p.arguments()); len(missing) > 0 || problem != "" {
			problem = values.JoinTexts(problem, strings.Join(missing, ", "))
			return agent.Failure(fault.Newf(fault.InvalidInput, "the arguments of %q were made for the tool as it was, and do not fit it as it is now: %s", p.about.Tool, problem), agent.Parameters, false)
		}
	}
	if given.agreed || slices.ContainsFunc(given.changes,
		func(c mcp.Change) bool { return c.Tool == now.Name && bytes.Equal(c.After, now.Definition) }) {
		return p.nothingNew(v, given)
	}
	if mcp.ClassOf(now) == mcp.Destructive && !was.Destructive {
		return &mcp.Drifted{Server: now.Server, Tool: now.Name, Changes: []mcp.Change{change}}
	}
	return p.nothingNew(v, given)
}

// nothingNew refuses a call that meets more by now than it did when it was judged, unless a person has agreed to it since.
func (p *taskStep) nothingNew(v mcp.Verdict, given callAnswer) error {
	if given.agreed || p.about.Confirmed || !v.Decision.Stricter(p.judgedAs(given)) {
		return nil
	}
	return &toolset.HeldCall{Verdict: v}
}

// judgedAs is what the call met when it was judged. A person who has accepted the tool as it is now, for this call, has agreed to
// what it says of itself.
func (p *taskStep) judgedAs(given callAnswer) mcp.Decision {
	if len(given.changes) > 0 {
		return mcp.Destroys
	}
	var then judgedResult
	if raw := p.value(p.about.Judged); raw != nil && json.Unmarshal(raw, &then) == nil && then.Policy != nil {
		return then.Policy.Decision
	}
	if was, ok := p.tool(p.about.Tool); ok && was.Destructive { // the judgement is older than policies
		return mcp.Destroys
	}
	return mcp.Judged
}

// callAnswer is what a person has decided about a call that could not be made as things were: the changes of tools that were accepted with
// it, or that it may be made.
type callAnswer struct {
	changes []mcp.Change
	agreed  bool
}

// answered does what a person has decided.
func (t *tasks) answered(ctx context.Context, call *node.Call, p *taskStep) (none callAnswer, err error) {
	if call.Wake == nil || len(call.Memo) == 0 {
		return none, nil
	}
	var memo callMemo
	if err := models.ReadMemo(call, &memo); err != nil {
		return none, err
	}
	answer := call.Wake
	done := answer.By == engine.WakeAnswer && answer.Outcome == engine.AskDone
	refused := agent.Failure(fault.Newf(fault.Forbidden, "nobody has accepted that %q is used as it is", p.about.Tool).With("kind",
		memo.Purpose), agent.Permission, false)
	if memo.Purpose == form.PurposeToolApproval {
		if !done || !toolset.Approves(answer.Payload) {
			return none, refused
		}
		return callAnswer{agreed: true}, nil
	}
	if !done || !toolset.Accepts(answer.Payload) {
		return none, refused
	}
	by, err := t.tools.AnsweredBy(ctx, toolset.Caller(call), answer.Person, call.ExecutionID)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Forbidden {
		return none, agent.Failure(f, agent.Permission, false)
	}
	if err != nil {
		return none, err
	}
	if memo.Purpose == form.PurposeActivation {
		_, err = t.tools.Activate(ctx, toolset.Caller(call), memo.Server, mcp.Activation{By: by.By, Execution: by.Execution})
	} else {
		if err := p.sameEffect(memo.Changes); err != nil {
			return none, err
		}
		_, err = t.tools.Accept(ctx, toolset.Caller(call), memo.Server, by, memo.Changes)
	}
	if err != nil {
		return none, callFailure(ctx, err)
	}
	return callAnswer{changes: memo.Changes}, nil
}

// askHeld asks about a call that somebody wants to be asked about by now.
func (p *taskStep) askHeld(server string, v mcp.Verdict) (node.Outcome, error) {
	why := text.Of("The call was judged, and has to be confirmed by now.")
	switch {
	case v.From == mcp.FromNobody:
		why = text.Of("Nobody has said what this tool does to the world, so it counts as one that destroys.")
	case v.By != "":
		why = text.Of("%s wants calls of this tool confirmed.", v.By)
	}
	return p.askAbout(callMemo{form.PurposeToolApproval, server, nil}, text.Of("May %s be called?", p.about.Tool),
		text.Paragraphs(why, text.As(v.Detail)))
}

// sameEffect refuses a tool that may no longer be repeated: the call was begun as one that may.
func (p *taskStep) sameEffect(changes []mcp.Change) error {
	tool, ok := p.tool(p.about.Tool)
	if !ok || tool.Effect == workflow.Once {
		return nil
	}
	for _, c := range changes {
		if c.Kind != mcp.Removed && effectOf(c.After) == workflow.Once {
			return agent.Failure(fault.Newf(fault.Forbidden, "the tool %q may be called once only since it has changed; start the task anew to use it", p.about.Tool), agent.Permission, false)
		}
	}
	return nil
}

// askDrift asks whether the tool may be used as it is now.
func (p *taskStep) askDrift(d *mcp.Drifted) (node.Outcome, error) {
	return p.askAbout(callMemo{form.PurposeDrift, d.Server, d.Changes},
		text.Of("The tool %s has changed. Accept it?", p.about.Tool),
		text.Of("The tool is not what was accepted before. It is called only when somebody accepts the difference."))
}

// askActivation asks whether the server may be used at all.
func (p *taskStep) askActivation(server string) (node.Outcome, error) {
	return p.askAbout(callMemo{form.PurposeActivation, server, nil},
		text.Of("Activate the tool server %s?", server),
		text.Of("The task needs a tool of this server, which is not activated."))
}

func (p *taskStep) askAbout(memo callMemo, title, description text.Text) (node.Outcome, error) {
	kept, err := payload.Encode(memo)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question about %q: %w", p.about.Tool, err)
	}
	shown := map[string]any{
		"interaction_type": form.Approval, "language": p.Language, "server_id": memo.Server, "tool": p.about.Tool, "step_id": p.about.Step,
	}
	form.Say(shown, p.Language, form.TitleText, title)
	form.Say(shown, p.Language, form.DescriptionText, description)
	if memo.Purpose == form.PurposeToolApproval {
		shown["arguments"], shown["options"], shown["risk"] = p.arguments(), []string{"approve", "reject"}, p.about.Risk
	}
	if memo.Purpose == form.PurposeDrift { // where every way to ask shows what a question is about
		shown["content"] = map[string]any{"server_id": memo.Server, "changes": memo.Changes}
	}
	request, err := payload.Encode(shown)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question about %q: %w", p.about.Tool, err)
	}
	return node.Wait{Ask: &node.Question{Purpose: memo.Purpose, Request: request}, Memo: kept}, nil
}

// progressPause is how far apart the tidings of a call are that anybody hears of.
const progressPause = 200 * time.Millisecond

// progressOf lets the progress of a call be seen. The pool tells of it in order, from one goroutine at a time.
func progressOf(call *node.Call) func(mcp.Progress) {
	var last time.Time
	return func(p mcp.Progress) {
		now := call.Time()
		if !last.IsZero() && now.Sub(last) < progressPause && (p.Total == 0 || p.Done < p.Total) {
			return
		}
		last = now
		call.Emit(p)
	}
}

// callFailure is a failed call, with what it means for the task.
func callFailure(ctx context.Context, err error) error {
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok {
		return err // the store could not be read, say: nothing of the tool
	}
	failure := toolset.Fault(err)
	switch {
	case e.Unknown():
		return &node.Failure{Err: failure, Unknown: true}
	case ctx.Err() != nil:
		return failure // it was stopped: that is for the engine
	}
	class, mayRepeat := agent.Other, false
	switch e.Kind {
	case mcp.Closed, mcp.NotStarted:
		class, mayRepeat = agent.Connection, !(e.Sent && e.Once)
	case mcp.Timeout:
		class = agent.TimedOut
	case mcp.Unauthorized, mcp.UnknownServer, mcp.NotActivated, mcp.NotAllowed:
		class = agent.Permission
	case mcp.BadArguments:
		class = agent.Parameters
	case mcp.ToolFailed:
		if class = agent.Unclear; toolset.SaysForbidden(failure.Message) {
			class = agent.Permission
		}
	case mcp.Protocol:
		if failure.Code == fault.InvalidInput { // the server refuses the parameters of the request
			class = agent.Parameters
		}
	}
	return agent.Failure(failure, class, mayRepeat)
}
