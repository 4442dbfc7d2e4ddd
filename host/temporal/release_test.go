package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/deployment/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"tandem/host/hosttest"
	"tandem/host/local"
)

// TestRelease_WorkGoesToTheNewestOne starts a second release beside the first, of which a process lives on: what is begun then runs with
// the second, and what the first has begun goes on with it. The server announces a release by workflows of its own. Once in a while, on a
// busy machine, version 1.32 never says that it has come to the end of that. Nobody can tell then who gets the work: the test is left out,
// and says so, unless all tests are asked for.
func TestRelease_WorkGoesToTheNewestOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.build = "1"
	hosttest.Load(2, func(_, _ func()) {
		s.stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.build = "2"
		ctx, cancel := context.WithTimeout(t.Context(), announcing())
		defer cancel()
		err := s.begin(ctx, s.setup, 0)
		if err == nil {
			err = awaitRelease(ctx, s.queue, "2")
		}
		if err != nil && ctx.Err() != nil && crashEvery() > 1 {
			t.Skipf("the server does not announce a release to its end: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
	for _, id := range []string{"x0", "y0"} {
		d, err := server.DescribeWorkflowExecution(t.Context(), s.queue+"/one/"+id, "")
		if err != nil {
			t.Fatal(err)
		}
		info := d.WorkflowExecutionInfo.VersioningInfo
		build := info.GetDeploymentVersion().GetBuildId()
		if info.GetBehavior() != enums.VERSIONING_BEHAVIOR_AUTO_UPGRADE || build != "2" {
			t.Errorf("%q has ended with %v", id, info)
		}
	}
}

// TestRelease_TakesOverWhenItCanRun: a release is made the current one when Temporal knows the worker of it, for both sorts of work. What
// goes to one that nobody can run yet would stand still.
func TestRelease_TakesOverWhenItCanRun(t *testing.T) {
	t.Parallel()
	queue := newQueue()
	var known []enums.TaskQueueType
	looks := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if _, current := request.(*workflowservice.SetWorkerDeploymentCurrentVersionRequest); current {
			is, err := server.WorkflowService().DescribeWorkerDeploymentVersion(ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
				Namespace: client.DefaultNamespace, DeploymentVersion: &deployment.WorkerDeploymentVersion{DeploymentName: queue, BuildId: "1"},
			})
			if err != nil && mayPass(err) {
				return err // it comes again
			}
			if err != nil {
				t.Errorf("it takes over, and Temporal says of it: %v", err)
			}
			for _, each := range is.GetVersionTaskQueues() {
				known = append(known, each.Type)
			}
		}
		return call(ctx, method, request, reply, conn, o...)
	}
	c, err := dial(address, &line{died: make(chan struct{})}, grpc.WithUnaryInterceptor(looks))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stores := hosttest.NewDisk().Stores()
	h, err := New(t.Context(), Options{
		Client: c, TaskQueue: queue, Part: Worker, Release: "1",
		Local: local.Options{
			Journal: stores.Journal, Inbox: stores.Inbox, Timers: stores.Timers, Executions: stores.Executions, Blobs: stores.Blobs, Logs: stores.Logs,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, each := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		if !slices.Contains(known, each) {
			t.Errorf("it takes over when there are workers for %v", known)
		}
	}
}

// TestRelease_TellsWhyItWasNotTakenOver: who gives up waiting is told what Temporal has answered last, not only that time is up.
func TestRelease_TellsWhyItWasNotTakenOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refusals := 0
	refuses := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if _, asked := request.(*workflowservice.DescribeWorkerDeploymentVersionRequest); !asked {
			return call(ctx, method, request, reply, conn, o...)
		}
		if refusals++; refusals == 3 {
			cancel()
			return ctx.Err()
		}
		return serviceerror.NewWorkflowNotReady("still busy with the release before")
	}
	c, err := dial(address, &line{died: make(chan struct{})}, grpc.WithUnaryInterceptor(refuses))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := &Host{opts: Options{Client: c, TaskQueue: newQueue(), Release: "1"}, log: slog.New(slog.DiscardHandler), failed: make(chan error)}
	if err := h.takeOver(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "still busy with the release before") {
		t.Errorf("after %d refusals: %v", refusals, err)
	}
}

// TestRelease_AsksAgain: a server that has much to do refuses for now what it would do later, alone or as one of several things.
func TestRelease_AsksAgain(t *testing.T) {
	t.Parallel()
	several := func(why error) error {
		return serviceerror.NewMultiOperationExecution("could not be executed", []error{serviceerror.NewMultiOperationAborted("not tried"), why})
	}
	unready, wrong := serviceerror.NewWorkflowNotReady("the workflow task has failed"), serviceerror.NewInvalidArgument("no such build")
	for _, c := range []struct {
		err  error
		want bool
	}{{unready, true}, {several(unready), true}, {wrong, false}, {several(wrong), false}} {
		came := serviceerror.FromStatus(serviceerror.ToStatus(c.err)) // as it comes over the wire
		if got := mayPass(fmt.Errorf("update: %w", came)); got != c.want {
			t.Errorf("%T %v may pass: %v", came, came, got)
		}
	}
}

// announcing is how long a server may take to announce a release.
func announcing() time.Duration {
	if crashEvery() > 1 {
		return 3 * time.Minute
	}
	return patient
}

// awaitRelease returns when all of the server knows which release is the current one. A server that has much to do may not answer at once,
// and is asked again.
func awaitRelease(ctx context.Context, deployment, build string) error {
	clock := time.NewTicker(200 * time.Millisecond)
	defer clock.Stop()
	for {
		info, err := deployed(ctx, deployment)
		if err != nil && !mayPass(err) {
			return err
		}
		if info.GetRoutingConfigUpdateState() == enums.ROUTING_CONFIG_UPDATE_STATE_COMPLETED && info.GetRoutingConfig().GetCurrentDeploymentVersion().GetBuildId() == build {
			return nil
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
			return fmt.Errorf("release %q is not the current one everywhere: %v %w", build, info, errors.Join(err, ctx.Err()))
		}
	}
}

// deployed is what the server says of a deployment, if it says so soon.
func deployed(ctx context.Context, name string) (*deployment.WorkerDeploymentInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	is, err := server.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: client.DefaultNamespace, DeploymentName: name,
	})
	return is.GetWorkerDeploymentInfo(), err
}

// TestSearch_FindsExecutions looks for an execution by what Temporal knows of it.
func TestSearch_FindsExecutions(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if h := (&Host{opts: Options{Client: server}, log: slog.New(slog.DiscardHandler)}); !h.searches(ctx) {
		t.Fatal("there are no search attributes")
	}
	find := func(query string) int {
		clock := time.NewTicker(200 * time.Millisecond)
		defer clock.Stop()
		for { // a server knows new attributes, and lists what has ended, after a moment
			found, err := server.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
			if err == nil && len(found.Executions) > 0 {
				if len(found.Executions[0].GetMemo().GetFields()) > 0 {
					t.Errorf("it has the memo %v", found.Executions[0].Memo)
				}
				return len(found.Executions)
			}
			select {
			case <-clock.C:
			case <-ctx.Done():
				t.Fatalf("nothing is found by %s: %v", query, err)
			}
		}
	}
	for known := false; !known; { // the first may come before the server has taken note
		s := newSite(t)
		hosttest.Chain(1, 2, func() {}).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
		serve(t, s.queue, over{}.attend, over{}.step) // the end of the workflow may come behind that of the processes
		find(fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Completed'", s.queue))
		d, err := server.DescribeWorkflowExecution(ctx, s.queue+"/one/x0", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, known = d.WorkflowExecutionInfo.SearchAttributes.GetIndexedFields()["TandemStatus"]; known {
			find(fmt.Sprintf("TaskQueue = '%s' AND TandemWorkspace = 'one' AND TandemWorkflow = 'f' AND TandemExecution = 'x0' AND TandemStatus = 'SUCCESS'", s.queue))
		}
	}
}

// TestSearch_IsNotPermitted has a server that lets nobody make search attributes: executions run, and it is said what is missing.
func TestSearch_IsNotPermitted(t *testing.T) {
	t.Parallel()
	said := make(chan string, 10)
	refuses := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		switch request.(type) {
		case *operatorservice.AddSearchAttributesRequest, *operatorservice.ListSearchAttributesRequest:
			return serviceerror.NewPermissionDenied("not for you", "")
		}
		return call(ctx, method, request, reply, conn, o...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := dial(address, &line{died: make(chan struct{})}, grpc.WithUnaryInterceptor(refuses))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := &Host{opts: Options{Client: c, TaskQueue: newQueue()}, log: slog.New(notices{said})}
	if h.searches(ctx) {
		t.Error("the attributes are known")
	}
	if line := <-said; line != "executions cannot be searched for in Temporal: its search attributes are missing and may not be made here; make them with "+
		`"temporal operator search-attribute create", of type Keyword, and start again` {
		t.Errorf("it was said: %s", line)
	}
}

// notices is a log that hands out what is said.
type notices struct{ said chan<- string }

// Enabled implements slog.Handler.
func (notices) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (n notices) Handle(_ context.Context, r slog.Record) error {
	n.said <- r.Message
	return nil
}

// WithAttrs implements slog.Handler.
func (n notices) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n notices) WithGroup(string) slog.Handler { return n }
