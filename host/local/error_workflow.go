package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node"
	"tandem/store"
)

// When an execution fails whose workflow names an error workflow, that is started with what failed as its input. That it is to be started
// is recorded with the failure, as a timer that is due at once; its id follows from the execution, so that it is started once however often
// that is tried. What was started because of a failure, and whatever comes of it, starts no error workflow: it would go on for ever.

// errorTimer is the timer that stands for an error workflow that is yet to be started. Timers of the engine have a "#".
const errorTimer engine.TimerID = "error_workflow"

// errorTrigger is the trigger type of what was started because of a failure.
const errorTrigger = "ERROR"

// errorWorkflow is the workflow to start if the execution fails; empty for none.
func (o *owner) errorWorkflow() string {
	_, start := o.fold.Execution()
	return o.errorWorkflowOf(start)
}

func (o *owner) errorWorkflowOf(start host.Start) string {
	if start.ErrorOf != "" {
		return ""
	}
	return o.revision.Definition.Metadata.Settings.ErrorWorkflow
}

// fails says that one of the commands ends the execution with a failure.
func fails(commands []engine.Command) bool {
	for _, c := range commands {
		if end, ok := c.(engine.Finish); ok {
			return end.Status == engine.StatusError || end.Status == engine.StatusTimeout
		}
	}
	return false
}

// failed is what an error workflow is told. Triggers add names of their own (execution_id, user_id), so these are a level below.
type failed struct {
	Execution failedExecution `json:"failed_execution"`
	Error     *failedError    `json:"error"`
}

type failedExecution struct {
	ExecutionID  string        `json:"execution_id"`
	WorkflowID   string        `json:"workflow_id"`
	WorkflowName string        `json:"workflow_name"`
	Status       engine.Status `json:"status"`
	UserID       string        `json:"user_id,omitempty"`
	StartedAt    string        `json:"started_at"`
	FailedAt     string        `json:"failed_at"`
}

type failedError struct {
	Code      fault.Code     `json:"error_code"`
	Message   string         `json:"error_message"`
	Details   map[string]any `json:"error_details,omitempty"`
	Retryable bool           `json:"is_retryable"`
	NodeID    string         `json:"error_node_id,omitempty"`
}

// failure is what failed, as the journal tells it.
func (o *owner) failure(view *host.View, start host.Start) (json.RawMessage, error) {
	stamp := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }
	f := failed{Execution: failedExecution{
		ExecutionID: o.ref.Execution, WorkflowID: start.WorkflowID, WorkflowName: o.revision.Definition.Metadata.Name, Status: view.Status,
		UserID: start.UserID, StartedAt: stamp(view.Started), FailedAt: stamp(view.Ended),
	}}
	if e := view.Error; e != nil {
		f.Error = &failedError{Code: e.Code, Message: e.Message, Details: e.Details, Retryable: e.Retryable}
		if view.ErrorNode != "" {
			f.Error.NodeID = host.NodeOf(o.revision.Graph, view.ErrorNode)
		}
	}
	return json.Marshal(f)
}

// startErrorWorkflow starts the error workflow of an execution that has failed. Starting it again finds it there.
func (o *owner) startErrorWorkflow() {
	_, start := o.fold.Execution()
	if o.tryErrorWorkflow(o.fold.View(), start) {
		o.stale = append(o.stale, string(errorTimer))
	}
}

// closedStarts starts the error workflow of an execution that was ended because its record cannot be read, and says whether that is
// settled: it was started, there is none, or it is recorded why it could not be. Else the timer stays on disk.
func (o *owner) closedStarts() bool {
	if o.rests() {
		return false
	}
	var view *host.View
	var start host.Start
	err := o.host.patiently(o.host.ctx, func() error {
		summary, err := o.host.opts.Executions.Get(o.host.ctx, o.principal(), o.ref.Execution)
		if err != nil {
			return err
		}
		if view, start, err = o.host.journal(o.principal(), o.ref.Execution, o.revision).View(o.host.ctx); err == nil {
			start = completeStart(start, summary)
		}
		return err
	})
	if err != nil {
		o.host.opts.Log.Error("error workflow not started; the next start tries again", "execution", o.ref.Execution, "error", err)
		return false
	}
	return o.tryErrorWorkflow(view, start)
}

// completeStart adds to what an execution began with what its listing says of it: the first row may be what cannot be read.
func completeStart(start host.Start, summary store.Execution) host.Start {
	start.WorkflowID, start.UserID, start.TokenMadeBy =
		cmp.Or(start.WorkflowID, summary.WorkflowID), cmp.Or(start.UserID, summary.User), cmp.Or(start.TokenMadeBy, summary.TokenMadeBy)
	if start.ErrorOf == "" && summary.TriggerType == errorTrigger {
		start.ErrorOf = summary.ID
	}
	return start
}

// tryErrorWorkflow starts the error workflow, and says whether that is settled.
func (o *owner) tryErrorWorkflow(view *host.View, start host.Start) bool {
	name := o.errorWorkflowOf(start)
	if name == "" {
		return true
	}
	id := engine.ChildID(o.ref.Execution, "#error_workflow", 0) // no node can be called so
	err := o.startForFailure(name, id, view, start)
	switch {
	case o.host.ctx.Err() != nil:
		return false // the timer is on disk
	case passes(err):
		o.host.timers.setUnstored(o.ref, errorTimer, time.Now().Add(fullDiskPause).UnixMilli())
		return false
	case err != nil:
		o.host.opts.Log.Error("error workflow not started", "execution", o.ref.Execution, "workflow", name, "error", err)
		o.remark(node.Error, "the error workflow \""+name+"\" could not be started: "+fault.From(err).Message)
	default:
		o.remark(node.Notice, "the error workflow \""+name+"\" was started as execution "+id)
	}
	return true
}

func (o *owner) startForFailure(name, id string, view *host.View, start host.Start) error {
	err := o.host.patiently(o.host.ctx, func() error {
		_, err := o.host.opts.Executions.Get(o.host.ctx, o.principal(), id)
		return err
	})
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return err // it was started before the crash, or nobody knows
	}
	request, err := o.host.opts.Child(o.host.ctx, o.principal(), name, "latest")
	if err != nil {
		return err
	}
	if request.TriggerData, err = o.failure(view, start); err != nil {
		return err
	}
	request.ID, request.TriggerType, request.Initial, request.Language, request.ErrorOf =
		id, errorTrigger, request.TriggerData, start.Language, o.ref.Execution
	if initial := o.host.opts.Initial; initial != nil {
		if request.Initial, err = initial(request.WorkflowID, request.TriggerData); err != nil {
			return err
		}
	}
	p := o.principal()
	p.User, p.Means.TokenMadeBy = start.UserID, start.TokenMadeBy
	if _, err = o.host.Start(o.host.ctx, p, request); errors.Is(err, store.ErrConflict) {
		return nil // it was started before the crash
	}
	return err
}

// remark writes a line into the log of the execution.
func (o *owner) remark(level node.Level, message string) {
	line := store.LogLine{Time: time.Now().UnixMilli(), Level: levelOf(level), Message: message}
	if err := o.host.opts.Logs.Write(o.host.ctx, o.principal(), o.ref.Execution, []store.LogLine{line}); err != nil {
		o.host.opts.Log.Warn("a line of an execution was not stored", "execution", o.ref.Execution, "error", err)
	}
}
