package temporal

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"tandem/host/hosttest"
	"tandem/host/local"
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
