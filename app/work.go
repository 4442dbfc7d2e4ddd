package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"tandem/builtin/code"
	"tandem/cluster"
	"tandem/credential"
	"tandem/fault"
	"tandem/host"
	"tandem/metrics"
	"tandem/outbound"
	"tandem/plug"
	"tandem/store"
	"tandem/tracing"
	"tandem/workflow"
)

// WorkOptions say how a worker runs. The zero value of everything but Dir, Database and Version is a good choice.
type WorkOptions struct {
	// Addr is where it serves /healthz, /readyz and /metrics; 127.0.0.1:8081 when empty.
	Addr string
	// Dir is the data directory, which has the files of workspaces and the key that seals credentials, and Database the address of
	// the database of the servers.
	Dir       string
	Database  string
	MasterKey string
	// Temporal is where the engine is.
	Temporal  cluster.Options
	HTTPAllow outbound.AllowList
	Scripts   *code.Scripts
	// PublicURL is where services reach the servers, for their call backs; empty: they cannot.
	PublicURL string
	Language  string
	// Activations is how many nodes run at once here, 100 when zero.
	Activations int
	Traces      string
	// Grace is how long what runs may take to end when the worker is told to stop; zero: 30 s, less: no time.
	Grace      time.Duration
	Version    string
	Extensions []plug.Maker
	Log        *slog.Logger
	// Started is called with the address at which it listens. May be nil.
	Started func(url string)
}

// Work runs nodes of the executions that servers on the same database have started, until ctx ends, which is not an error, or until it
// cannot go on, which is one. When ctx ends nothing new begins, what runs gets a grace, and what is left is run by another worker.
func Work(ctx context.Context, o WorkOptions) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := hasKey(o.Dir, o.MasterKey); err != nil {
		return err
	}
	o.Temporal.Log = o.Log
	engine, err := cluster.Connect(o.Temporal, true)
	if err != nil {
		return err
	}
	defer engine.Close()
	listener, err := Listen(ctx, cmp.Or(o.Addr, "127.0.0.1:8081"))
	if err != nil {
		return err
	}
	w := &workplace{version: cmp.Or(o.Version, "dev"), log: o.Log, ready: engine.Ready}
	web := &http.Server{
		Handler: w, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	go func() { stopped <- web.Serve(listener) }() // it ends with Close, below
	defer func() {
		err = errors.Join(err, web.Close())
		if end := <-stopped; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}()
	if o.Started != nil {
		o.Started("http://" + reachable(listener.Addr()))
	}
	if err := engine.Await(ctx, w.waits); err != nil {
		return nil //nolint:nilerr // it was told to stop
	}
	return o.work(ctx, engine, w, listener)
}

// hasKey refuses a worker that would make a key of its own: it would open nothing that the servers have sealed, and seal what
// they cannot open.
func hasKey(dir, key string) error {
	if key != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, credential.KeyFile)); err != nil {
		return fault.Newf(fault.NotFound, "a worker needs the master key of the servers: give it as TANDEM_MASTER_KEY, or put a copy of their %s into %q (--data)", credential.KeyFile, dir).WithCause(err)
	}
	return nil
}

// work runs the instance of a worker.
func (o WorkOptions) work(ctx context.Context, engine *cluster.Engine, w *workplace, listener net.Listener) (err error) {
	tracer, err := tracing.New(ctx, o.Traces, o.Version, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tracer.Close(context.WithoutCancel(ctx))) }()
	numbers := metrics.New()
	i, err := openWorker(ctx, w, Options{
		Dir: o.Dir, Database: o.Database, Cluster: engine, HTTPAllow: o.HTTPAllow, Scripts: o.Scripts, PublicURL: o.PublicURL,
		Language: o.Language, MasterKey: o.MasterKey, Activations: o.Activations, Version: o.Version, Extensions: o.Extensions, Log: o.Log,
		Recorded: func(ref store.Ref, graph *workflow.Graph, row host.Row) {
			numbers.Recorded(row, graph)
			tracer.Recorded(ref, graph, row)
		},
	})
	if err != nil || i == nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	ring, err := i.Keyring()
	if err != nil {
		return err
	}
	api, err := i.server(ServeOptions{PublicURL: o.PublicURL, Version: o.Version, Log: o.Log}, listener, numbers, ring)
	if err != nil {
		return err
	}
	defer api.Close()
	w.set(api.Handler())
	o.Log.Info("working", "task_queue", o.Temporal.TaskQueue)
	if err := i.awaitEnd(ctx); err != nil {
		return err
	}
	grace := max(0, cmp.Or(o.Grace, DefaultGrace))
	o.Log.Info("draining: nothing new begins; another signal ends the process at once", "grace", grace)
	if !i.drain(context.WithoutCancel(ctx), grace) {
		o.Log.Warn("the grace is over; what is left is run by another worker")
	}
	return nil
}

// awaitEnd returns when ctx ends, or with the reason why the worker cannot go on.
func (i *Instance) awaitEnd(ctx context.Context) error {
	var failed <-chan error
	if h, ok := i.host.(interface{ Failed() <-chan error }); ok {
		failed = h.Failed()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-i.db.Broken():
		return fmt.Errorf("the store has stopped, and a new process has to go on from what is on disk: %w", i.db.Err())
	case err := <-failed:
		return fmt.Errorf("this worker was refused by Temporal for good, and a new process has to ask again: %w", err)
	}
}

// openPause is the time between two tries to open the database.
const openPause = time.Second

// openWorker opens an instance once a server has made the database ready for workers; nil without an error when it was told to stop.
func openWorker(ctx context.Context, w *workplace, options Options) (*Instance, error) {
	for {
		i, err := Open(ctx, options)
		if err == nil || !slices.Contains([]fault.Code{fault.NotReady, fault.NetworkError}, fault.CodeOf(err)) &&
			!errors.Is(err, store.ErrSuperseded) {
			return i, err
		}
		w.waits(err)
		select {
		case <-time.After(openPause):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// workplace answers requests to a worker: how it is, and nothing else.
type workplace struct {
	version string
	log     *slog.Logger
	handler atomic.Pointer[http.Handler]
	// ready says why Temporal cannot be used: it may have gone since it was looked for.
	ready func(context.Context) error
	// why it has not begun; nil: it is not known yet.
	why atomic.Pointer[string]
}

// waits notes why the worker has not begun.
func (w *workplace) waits(err error) {
	why := fault.From(err).Message
	if before := w.why.Swap(&why); before == nil || *before != why {
		w.log.Warn("nothing runs here yet", "error", err)
	}
}

func (w *workplace) set(h http.Handler) { w.handler.Store(&h) }

// ServeHTTP implements [http.Handler].
func (w *workplace) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	known := slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, r.URL.Path)
	h := w.handler.Load()
	switch {
	case known && h != nil:
		(*h).ServeHTTP(out, r)
	case known && r.URL.Path == "/healthz":
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, "{\"status\":\"alive\",\"version\":%q}\n", w.version) // the client has gone
	case known:
		why := "it is starting"
		if told := w.why.Load(); told != nil {
			why = *told
		} else if err := w.ready(r.Context()); err != nil {
			why = fault.From(err).Message
		}
		http.Error(out, "the worker has not begun: "+why, http.StatusServiceUnavailable)
	default:
		http.Error(out, "a worker has no API; ask a server", http.StatusNotFound)
	}
}
