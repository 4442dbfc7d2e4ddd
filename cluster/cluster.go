// Package cluster is what a process needs to be part of an installation whose executions run on Temporal: the connection to Temporal, and
// what is recorded by other processes. The wiring of an instance imports it; how executions run is in host/temporal.
package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tandem/fault"
	"tandem/store"
)

// Options say where Temporal is.
type Options struct {
	// Address is where its frontend listens, 127.0.0.1:7233 when empty; Namespace is "default" when empty, and TaskQueue, which is that
	// of this installation alone, "tandem".
	Address, Namespace, TaskQueue string
	// Release names the release that a worker runs: Temporal gives work to workers of the release that was started last. Empty: to
	// whichever is free.
	Release string
	// Security is how the connection is kept secret.
	Security Security
	Log      *slog.Logger
}

// Defaults of [Options].
const (
	DefaultAddress   = "127.0.0.1:7233"
	DefaultNamespace = "default"
	DefaultTaskQueue = "tandem"
)

// Engine is a connection to Temporal. It must be closed.
type Engine struct {
	o      Options
	works  bool
	client client.Client
	// tls is how the connection is encrypted; nil: it is not.
	tls *tls.Config
}

// Connect prepares the connection of a server, or of a process that works. Temporal need not be there yet.
func Connect(o Options, works bool) (*Engine, error) {
	o.Address, o.Namespace = cmp.Or(o.Address, DefaultAddress), cmp.Or(o.Namespace, DefaultNamespace)
	o.TaskQueue = cmp.Or(o.TaskQueue, DefaultTaskQueue)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	encryption, err := o.Security.config(o.Address)
	if err != nil {
		return nil, err
	}
	as, err := o.Security.credentials()
	if err != nil {
		return nil, err
	}
	connection := Connection()
	connection.TLS = encryption
	c, err := client.NewLazyClient(client.Options{
		HostPort: o.Address, Namespace: o.Namespace, Logger: o.Log, Credentials: as, ConnectionOptions: connection,
	})
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "the address of Temporal, %q, cannot be used; write it as HOST:PORT (--temporal-address, TANDEM_TEMPORAL_ADDRESS)", o.Address).WithCause(err)
	}
	return &Engine{o, works, c, encryption}, nil
}

// Connection is how every connection to Temporal is made. What is sent is names and times, a few hundred bytes: to compress them, which the
// SDK does unless it is told otherwise, takes a sixth of the processor time of a worker and saves nothing.
func Connection() client.ConnectionOptions {
	return client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}
}

// Try says why Temporal cannot be used, by a connection that is closed again; nil: it can.
func (o Options) Try(ctx context.Context) error {
	e, err := Connect(o, false)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Ready(ctx)
}

// Close ends the connection.
func (e *Engine) Close() { e.client.Close() }

// Works says that this process runs nodes and does nothing else.
func (e *Engine) Works() bool { return e.works }

// Client is the connection itself.
func (e *Engine) Client() client.Client { return e.client }

// Namespace is where its workflows are.
func (e *Engine) Namespace() string { return e.o.Namespace }

// Release is that of [Options].
func (e *Engine) Release() string { return e.o.Release }

// TaskQueue is that of this installation.
func (e *Engine) TaskQueue() string { return e.o.TaskQueue }

// lookTimeout is how long Temporal may take to answer, and lookPause how long it is left alone after it did not.
const (
	lookTimeout = 5 * time.Second
	lookPause   = time.Second
)

// Ready says why Temporal cannot be used now; nil: it can.
func (e *Engine) Ready(ctx context.Context) error {
	if _, err := e.o.Security.apiKey(); err != nil { // the file has been changed; where it is, not everybody who asks has to know
		return e.notReady("cannot be used: the file of "+fileSetting+" cannot be read, or does not have one line, with the key", err)
	}
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := e.client.WorkflowService().DescribeNamespace(asking, &workflowservice.DescribeNamespaceRequest{Namespace: e.o.Namespace})
	if err == nil {
		return nil
	}
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return fault.Newf(fault.NotFound, "Temporal at %s has no namespace %q; make it (temporal operator namespace create), or correct --temporal-namespace (TANDEM_TEMPORAL_NAMESPACE)", e.o.Address, e.o.Namespace).
			WithCause(fmt.Errorf("%w: %w", store.ErrUnavailable, err))
	}
	why := "cannot be reached; start it, or correct --temporal-address (TANDEM_TEMPORAL_ADDRESS)"
	if _, denied := errors.AsType[*serviceerror.PermissionDenied](err); denied || status.Code(err) == codes.Unauthenticated {
		why = "does not let this process in; give it a certificate (" + certSetting + ") or a key (" + fileSetting + ", TANDEM_TEMPORAL_API_KEY) that may use the namespace"
	} else if found := e.mismatch(ctx); found != "" {
		why = found
	}
	return e.notReady(why, err)
}

func (e *Engine) notReady(why string, err error) error {
	return fault.Newf(fault.NotReady, "Temporal at %s %s; what is started meanwhile is kept, and runs then", e.o.Address, why).
		WithCause(fmt.Errorf("%w: %w", store.ErrUnavailable, err))
}

// Await returns when Temporal can be used, or with the context's error. It tells why it waits.
func (e *Engine) Await(ctx context.Context, waits func(error)) error {
	for {
		err := e.Ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		waits(err)
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
