package temporal

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
)

// answering is a client to which the server answers one thing when it is told how a run stands.
type answering struct {
	client.Client
	with error
}

// RecordActivityHeartbeat implements client.Client.
func (a answering) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return a.with }

// TestBeat_Answers stops a run that is canceled and one that the server does not know any more, whose outcome does not count. A server
// that is away stops none.
func TestBeat_Answers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want error }{
		"Known":    {nil, nil},
		"Away":     {serviceerror.NewUnavailable("away"), nil},
		"Canceled": {sdk.NewCanceledError(), context.Canceled},
		"Unknown":  {serviceerror.NewNotFound("workflow execution already completed"), local.ErrGivenUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			r := &beating{host: &Host{opts: Options{Client: answering{with: c.answer}}, log: slog.New(slog.DiscardHandler)}, stop: stop}
			r.reportRun(ctx, local.WasBegun)
			if got := context.Cause(ctx); !errors.Is(got, c.want) {
				t.Errorf("it ends with %v, want %v", got, c.want)
			}
		})
	}
}

// TestBeat_PackedWorker cancels what takes all places of the only worker, so that none is left in which the execution could be attended to.
func TestBeat_PackedWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.split, s.others = true, 1
	hosttest.Packed(1, 1+spareActivities).Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
}

// away are executions in a database that does not answer.
type away struct {
	store.Executions
	asked chan struct{}
}

// GetWithRows implements store.Executions.
func (a away) GetWithRows(ctx context.Context, _ identity.Principal, _ string) (store.Execution, []store.Row, bool, error) {
	a.asked <- struct{}{}
	<-ctx.Done()
	return store.Execution{}, nil, false, ctx.Err()
}

// TestBeat_WaitsForNoDatabase: in a worker without a free place a run looks for itself whether it is still wanted. While the database does
// not answer it beats on, so that Temporal does not give it up.
func TestBeat_WaitsForNoDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		beats := make(chan struct{}, 100)
		stores, asked := hosttest.NewDisk().Stores(), make(chan struct{}, 1)
		on, err := local.New(t.Context(), local.Options{
			Journal: stores.Journal, Inbox: stores.Inbox, Timers: stores.Timers, Executions: away{stores.Executions, asked}, Blobs: stores.Blobs,
			Logs: stores.Logs, Carrier: &waking{}, AdmittedElsewhere: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := &Host{Host: on, opts: Options{Client: counted{beats: beats}}, log: slog.New(slog.DiscardHandler)}
		h.steps.Store(int64(h.places()))
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		r := &beating{host: h, ref: store.Ref{Workspace: "one", Execution: "x"}, stop: stop, ended: make(chan struct{})}
		r.beats.Go(func() { r.beat(ctx) })
		<-asked
		for range cap(beats) / 2 {
			<-beats
		}
		close(r.ended)
		on.Close()
		r.beats.Wait()
		if ctx.Err() != nil || len(asked) != 0 {
			t.Errorf("it was stopped, or asked again before there was an answer: %v", context.Cause(ctx))
		}
	})
}

// counted is a client that tells of each heartbeat.
type counted struct {
	client.Client
	beats chan<- struct{}
}

// RecordActivityHeartbeat implements client.Client.
func (c counted) RecordActivityHeartbeat(context.Context, []byte, ...any) error {
	c.beats <- struct{}{}
	return nil
}

// TestWorker_IsRefused has Temporal refuse a worker for good, as it does a while after the namespace is gone: the host says so.
func TestWorker_IsRefused(t *testing.T) {
	t.Parallel()
	gone := serviceerror.NewNamespaceNotFound("default")
	h := &Host{failed: make(chan error, 1)}
	h.workerOptions(worker.DeploymentOptions{}).OnFatalError(gone)
	if err := <-h.Failed(); !errors.Is(err, gone) {
		t.Errorf("it was refused with %v", err)
	}
}
