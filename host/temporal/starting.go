package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tandem/host/local"
	"tandem/store"
)

// wake signals the workflow of an execution, which is started unless it goes on. One that has just begun, and of which is known what
// follows, needs no signal.
func (h *Host) wake(ctx context.Context, ref store.Ref, first *local.Next) error {
	search := h.searches(ctx)
	err := h.tryWake(ctx, ref, first, search)
	// The attributes may be known to the server only in a while.
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); refused && search {
		err = h.tryWake(ctx, ref, first, false)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn("an execution could not be woken and is woken again", "execution", ref.Execution, "error", err)
	}
	return err
}

func (h *Host) tryWake(ctx context.Context, ref store.Ref, first *local.Next, search bool) error {
	o := client.StartWorkflowOptions{
		ID: h.workflowID(ref), TaskQueue: h.opts.TaskQueue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	g := going{Execution: execution{ref.Workspace, ref.Execution}, Search: search}
	var told []sdk.SearchAttributeUpdate
	if search {
		told = append(told, inWorkspace.ValueSet(ref.Workspace), inExecution.ValueSet(ref.Execution))
	}
	if search && first != nil {
		g.Status = string(first.Status)
		told = append(told, inStatus.ValueSet(g.Status), inWorkflow.ValueSet(first.Workflow))
	}
	if search {
		o.TypedSearchAttributes = sdk.NewSearchAttributes(told...)
	}
	if first != nil && len(first.Stop) == 0 && !first.Ended && len(first.Run) > 0 {
		a := h.answerOf(*first)
		g.Run, g.Due, g.Seq, g.AtOnce = a.Run, a.Due, a.Seq, a.AtOnce
		_, err := h.opts.Client.ExecuteWorkflow(ctx, o, loopName, g)
		if _, goesOn := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); !goesOn {
			return err
		}
		g.Run, g.Due = nil, 0
	}
	o.WorkflowIDConflictPolicy, o.WorkflowExecutionErrorWhenAlreadyStarted = enums.WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED, false
	_, err := h.opts.Client.SignalWithStartWorkflow(ctx, o.ID, wakeSignal, nil, o, loopName, g)
	return err
}

// searching is what is known of the server's search attributes.
type searching struct {
	mu           sync.Mutex
	asked, known bool
}

// askTimeout is how long the server may take to say which search attributes it has.
const askTimeout = 5 * time.Second

// searches says whether the server knows the search attributes. It is asked until it has answered: it need not be there when a process
// starts.
func (h *Host) searches(ctx context.Context) bool {
	h.search.mu.Lock()
	defer h.search.mu.Unlock()
	if h.search.asked {
		return h.search.known
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	h.search.known, h.search.asked = h.searchable(ctx)
	return h.search.known
}

// searchable says whether the server knows the search attributes, and whether it has answered at all. They are made if it does not know
// them, and that is permitted.
func (h *Host) searchable(ctx context.Context) (known, answered bool) {
	namespace := h.namespace()
	operator := h.opts.Client.OperatorService()
	has, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if isAway(err) {
		return false, false
	}
	missing := map[string]enums.IndexedValueType{}
	for _, key := range []sdk.SearchAttributeKeyKeyword{inWorkspace, inWorkflow, inExecution, inStatus} {
		if err != nil || has.CustomAttributes[key.GetName()] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			missing[key.GetName()] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if err == nil && len(missing) == 0 {
		return true, true
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	if _, there := errors.AsType[*serviceerror.AlreadyExists](err); err == nil || there {
		return true, true
	}
	if isAway(err) {
		return false, false
	}
	h.log.Warn("executions cannot be searched for in Temporal: its search attributes are missing and may not be made here; make them with "+
		"\"temporal operator search-attribute create\", of type Keyword, and start again", "namespace", namespace,
		"names", []string{inWorkspace.GetName(), inWorkflow.GetName(), inExecution.GetName(), inStatus.GetName()}, "error", err)
	return false, true
}

// isAway says that the server has not answered.
func isAway(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return unavailable || late || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (h *Host) namespace() string {
	if h.opts.Namespace == "" {
		return client.DefaultNamespace
	}
	return h.opts.Namespace
}

// deployment has executions go on with this release, whichever has begun them: what they mean is in the engine, by the version in their
// first event, and their loop is the same in all.
func (h *Host) deployment() worker.DeploymentOptions {
	if h.opts.Release == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: h.opts.TaskQueue, BuildID: h.opts.Release},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// takeOver has this release get the work, as the one that was started last. It waits until Temporal knows that a worker of it is there,
// which takes minutes when the server has much to do: until then the release before goes on, and not one that nobody can run.
func (h *Host) takeOver(ctx context.Context) error {
	if h.opts.Release == "" {
		return nil
	}
	var before error // why it was refused last, before time ran out
	for told := false; ; {
		err := h.tryTakeOver(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !mayPass(err) {
			return fmt.Errorf("make release %q the current one in Temporal, which needs a server with worker deployments: %w",
				h.opts.Release, errors.Join(err, before))
		}
		if !told && !errors.Is(err, errNoWorker) {
			told = true
			h.log.Warn("this release does not get work yet: Temporal does not make it the current one, and is asked again",
				"release", h.opts.Release, "error", err)
		}
		before = err
		select {
		case <-time.After(wakePause):
		case <-ctx.Done():
		case err := <-h.failed:
			return fmt.Errorf("start the worker: %w", err)
		}
	}
}

// errNoWorker says that Temporal has not heard of a worker of a release.
var errNoWorker = errors.New("no worker of it is known there yet")

// tryTakeOver makes this release the current one if Temporal knows its workers.
func (h *Host) tryTakeOver(ctx context.Context) error {
	deployed := h.opts.Client.WorkerDeploymentClient().GetHandle(h.opts.TaskQueue)
	is, err := deployed.DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: h.opts.Release})
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return errNoWorker
	}
	if err != nil {
		return err
	}
	for _, each := range []client.TaskQueueType{client.TaskQueueTypeWorkflow, client.TaskQueueTypeActivity} {
		if !slices.Contains(is.Info.TaskQueuesInfos, client.WorkerDeploymentTaskQueueInfo{Name: h.opts.TaskQueue, Type: each}) {
			return errNoWorker
		}
	}
	_, err = deployed.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
		BuildID: h.opts.Release, IgnoreMissingTaskQueues: true, AllowNoPollers: true,
	})
	return err
}

// mayPass says that the server has not answered, or cannot do what it was asked for now. Of several things that it was asked for at once,
// one tells why none was done.
func mayPass(err error) bool {
	if several, ok := errors.AsType[*serviceerror.MultiOperationExecution](err); ok {
		return slices.ContainsFunc(several.OperationErrors(), mayPass)
	}
	_, busy := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, unready := errors.AsType[*serviceerror.WorkflowNotReady](err)
	_, broken := errors.AsType[*serviceerror.Internal](err)
	return isAway(err) || busy || unready || broken || errors.Is(err, errNoWorker)
}
