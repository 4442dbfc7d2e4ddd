package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tandem/builtin/code"
	"tandem/cluster"
	"tandem/credential"
	"tandem/fault"
	"tandem/host"
	"tandem/live"
	"tandem/login"
	"tandem/metrics"
	"tandem/outbound"
	"tandem/plug"
	"tandem/route"
	"tandem/server"
	"tandem/store"
	"tandem/text"
	"tandem/tracing"
	"tandem/validation"
	"tandem/vault"
	"tandem/web"
	"tandem/workflow"
)

// ServeOptions say how a server runs. The zero value of everything but Dir and Version is a good choice.
type ServeOptions struct {
	// Addr is where it listens, 127.0.0.1:8080 when empty.
	Addr string
	// Dir is the data directory, and Database the address of the database if that is not in it, see [Options].
	Dir      string
	Database string
	// Temporal is where the engine is that executions run on, which needs Database and workers (see [Work]); nil: they run in this process.
	Temporal *cluster.Options
	// PeerURL is where other servers of the same database reach this one, to forward requests; empty: where it listens.
	PeerURL string
	// Token is the token of the first user; empty: the first start makes one.
	Token string
	// MasterKey seals credentials; empty: the key in the data directory.
	MasterKey string
	HTTPAllow outbound.AllowList
	// Scripts is what nodes may run on this machine; nil: nothing.
	Scripts *code.Scripts
	// PublicURL is where services reach the server, for their call backs; empty: where it listens.
	PublicURL string
	// Language is the language of the installation, zh or en; empty: en.
	Language string
	// Proxies are the addresses and networks of the proxies in front of the server, separated by commas: they say in X-Forwarded-For
	// where a request comes from. Empty: there are none, and the header is ignored.
	Proxies string
	// Login is a provider of identities at which people log in; its zero value: there is none.
	Login login.Provider
	// AuditDays is how many days the audit log is kept; zero: for ever.
	AuditDays int
	// Workflows is a directory whose definitions are kept at the start, with the profiles in its directory "profiles" that
	// are not there yet; empty: none.
	Workflows string
	// MaxTasks is how many tasks of agents run at once, 30 when zero; TaskStarts how many a user may start within 15 seconds, 5
	// when zero, any number when less.
	MaxTasks   int
	TaskStarts int
	// Traces is where spans are sent, as OTLP over HTTP; empty: nowhere.
	Traces string
	// Grace is how long what runs may take to end when the server is told to stop; zero: 30 s, less: no time.
	Grace time.Duration
	// MCPWait is how long a call of a tool by the Model Context Protocol waits for its execution; zero: 25 s.
	MCPWait time.Duration
	Version string
	// Extensions are what the program brings besides what is built in, see [Options].
	Extensions []plug.Maker
	Log        *slog.Logger
	// Started is called once when the server takes requests and, if it stands by first, once before. May be nil.
	Started func(Serving)

	// crowded says that other instances are in this process, as in tests: what only starting has needed is not given back, since they need it.
	crowded bool
}

// Serving is a server that takes requests.
type Serving struct {
	// URL is where, without a slash at the end.
	URL string
	// Database is where its database is, without a password; empty: in the data directory.
	Database string
	// StandsBy says that another process owns the database, and requests are forwarded to it. Started is called again when this process
	// owns it.
	StandsBy bool
	// Secret is the token that this start has made, to be shown this once; empty when there was no need.
	Secret string
	// Code is the code of a login link for the first user, made with the secret.
	Code string
	// Workflows are the ids of the definitions that were kept, Profiles those of the profiles that are new.
	Workflows []string
	Profiles  []string
}

// Bounds of a connection. Streams lift those of reading and writing.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 90 * time.Second
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// shutdownTimeout is how long requests may take to end once the server is to stop.
	shutdownTimeout = 15 * time.Second
	// DefaultGrace is how long what runs may take to end before that.
	DefaultGrace = 30 * time.Second
)

// heapRoom is the size of memory that a server allocates and never touches, so that it takes no real memory. Garbage is collected when
// the heap has doubled: without this, one that holds a few megabytes would spend a good part of its time collecting.
const heapRoom = 32 << 20

// Serve runs an instance with its API until ctx ends, which is not an error, or until it cannot go on, which is one: a supervisor then
// starts it again. When ctx ends nothing new begins, what runs gets a grace, and what is left goes on with the next start as after a crash.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := Listen(ctx, cmp.Or(o.Addr, "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	defer func() {
		if cerr := listener.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}()
	public, err := checkPublicURL(cmp.Or(o.PublicURL, "http://"+reachable(listener.Addr())))
	if err != nil {
		return err
	}
	o.PublicURL = public.String()
	if err := checkPeerURL(o.PeerURL); err != nil {
		return err
	}
	if o.Language != "" {
		if all := text.Languages(); text.CheckLanguage(o.Language) != nil {
			return fault.Newf(fault.Invalid, "language %q is not known; use %s or %s", o.Language, strings.Join(all[:len(all)-1], ", "), all[len(all)-1])
		}
	}
	if _, err := route.ParseProxies(o.Proxies); err != nil {
		return err // before anything is opened
	}
	tracer, err := tracing.New(ctx, o.Traces, o.Version, o.Log)
	if err != nil {
		return err
	}
	engine, err := o.engine()
	if err != nil {
		return err
	}
	if engine != nil {
		defer engine.Close()
	}
	room := make([]byte, heapRoom)
	defer runtime.KeepAlive(room)
	numbers := metrics.New()
	i, next, turn, err := openOrStandBy(ctx, o, Options{
		Dir: o.Dir, Database: o.Database, Cluster: engine, HTTPAllow: o.HTTPAllow, Scripts: o.Scripts, PublicURL: o.PublicURL,
		Language: o.Language, MasterKey: o.MasterKey, MaxTasks: o.MaxTasks, AuditDays: o.AuditDays, Removed: numbers.Removed,
		Version: o.Version, Extensions: o.Extensions, Log: o.Log,
		Recorded: func(ref store.Ref, graph *workflow.Graph, row host.Row) {
			numbers.Recorded(row, graph)
			tracer.Recorded(ref, graph, row)
		},
	}, listener)
	if err != nil || i == nil {
		return errors.Join(err, tracer.Close(context.WithoutCancel(ctx)))
	}
	err = errors.Join(i.serve(ctx, o, next, numbers, tracer), turn.Close())
	if cerr := next.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	return errors.Join(err, i.Close(), tracer.Close(context.WithoutCancel(ctx)))
}

// engine is the connection to Temporal; nil: executions run in this process.
func (o *ServeOptions) engine() (*cluster.Engine, error) {
	if o.Temporal == nil {
		return nil, nil
	}
	at := *o.Temporal
	at.Log = o.Log
	return cluster.Connect(at, false)
}

func (i *Instance) serve(ctx context.Context, o ServeOptions, listener net.Listener, numbers *metrics.Metrics,
	tracer *tracing.Tracer) error {
	ring, err := i.Keyring()
	if err != nil {
		return err
	}
	api, err := i.server(o, listener, numbers, ring)
	if err != nil {
		return err
	}
	kept, err := i.keepAll(ctx, o.Workflows)
	if err != nil {
		return err
	}
	profiles, err := i.keepProfiles(ctx, o)
	if err != nil {
		return err
	}
	secret, err := i.Bootstrap(ctx, o.Token)
	if err != nil {
		return err
	}
	code := ""
	if secret != "" {
		if code, err = i.LoginCode(ctx); err != nil {
			return err
		}
	}
	web := &http.Server{
		Handler: tracer.Wrap(api.Handler()), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- web.Serve(listener) }() // it ends with Shutdown or Close, below
	defer serveBeside(ctx, o.Dir, web.Handler, o.Log)()
	if err := i.announce(ctx, cmp.Or(o.PeerURL, "http://"+reachable(listener.Addr()))); err != nil {
		return errors.Join(err, web.Close())
	}
	o.Log.Info("listening", "address", listener.Addr().String())
	if o.Started != nil {
		o.Started(Serving{URL: "http://" + reachable(listener.Addr()), Database: whereIs(o.Database), Secret: secret, Code: code,
			Workflows: kept, Profiles: profiles})
	}
	tidying, stopTidying := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { i.limits.Keep(tidying, route.SessionIdle) })
	background.Go(func() { i.preparePython(tidying, o.Log) })
	if db, ok := i.db.(*besideDirectory); ok && i.cluster == nil { // else workers report it
		background.Go(func() { live.NewTeller(i.hub, db.Wire(), o.Log).Run(tidying) })
	}
	defer background.Wait()
	defer stopTidying()
	if !o.crowded {
		restAfterStart(o.Log)
	}
	var reason error
	select {
	case <-ctx.Done():
		grace := max(0, cmp.Or(o.Grace, DefaultGrace))
		o.Log.Info("draining: nothing new begins; another signal ends the process at once", "grace", grace, "executions", i.host.Running())
		if !i.drain(context.WithoutCancel(ctx), grace) {
			o.Log.Warn("the grace is over; what is left goes on with the next start as after a crash", "executions", i.host.Running())
		}
		o.Log.Info("stopping: requests end, streams are closed")
	case <-i.db.Broken():
		reason = fmt.Errorf("the store has stopped, and a new process has to go on from what is on disk: %w", i.db.Err())
		o.Log.Error("stopping", "error", reason)
	case err := <-stopped:
		return fmt.Errorf("take requests: %w", err)
	}
	return errors.Join(reason, shutdown(context.WithoutCancel(ctx), web, api, stopped, o.Log))
}

// drain gives what runs its grace, and says whether it has ended.
func (i *Instance) drain(ctx context.Context, grace time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	broken := make(chan struct{})
	defer close(broken)
	go func() { // it ends with the drain
		select {
		case <-i.db.Broken(): // nothing more can be written
			cancel()
		case <-broken:
		}
	}()
	return i.Drain(ctx)
}

// shutdown lets requests end, for a while.
func shutdown(ctx context.Context, web *http.Server, api *server.Server, stopped <-chan error, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	streams := make(chan struct{})
	go func() { // it ends with the streams, which are told to
		api.Close()
		close(streams)
	}()
	err := web.Shutdown(ctx)
	if err != nil {
		log.Warn("requests were broken off", "error", err)
		err = web.Close()
	}
	select {
	case <-streams:
	case <-ctx.Done():
		log.Warn("streams were broken off")
	}
	if end := <-stopped; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// server makes the API of the instance.
func (i *Instance) server(o ServeOptions, listener net.Listener, numbers *metrics.Metrics,
	ring *credential.Keyring) (*server.Server, error) {
	proxies, err := route.ParseProxies(o.Proxies)
	if err != nil {
		return nil, err
	}
	return server.New(server.Options{
		Stores: i.stores, Web: web.Files(), Workspace: defaultWorkspace, Host: i.host, Source: i.source, Hub: i.hub,
		Followed: i.followed, Kinds: i.kinds, Registry: &i.registry, Keyring: ring,
		Accounts:        &vault.Accounts{Vault: i.vault, Users: i.stores.Users, Public: i.tools.PublicURL()},
		CredentialTypes: i.parts.Credentials, Raise: i.RaiseBudget, Desk: i.desk, Triggers: i.triggers, Models: i,
		Tools: i.tools, Language: i.language, PublicURL: strings.TrimRight(o.PublicURL, "/"), Login: o.Login,
		Check: func(data []byte) (*workflow.Definition, []workflow.Problem) {
			source, problems := i.check(data)
			if source == nil {
				return nil, problems
			}
			return source.Definition, problems
		},
		Revisions: i.revisions, Credentials: i.vault.Opener, Import: i.Import,
		Ready: i.ready, Lacking: i.lacking, Draining: i.draining.Load, Version: cmp.Or(o.Version, "dev"),
		Hosts: hostsOf(listener.Addr(), o.PublicURL), Proxies: proxies, Metrics: numbers, Limits: i.limits,
		TaskStarts: o.TaskStarts, Log: o.Log, Gateway: o.gatewayOf(listener),
	})
}

// Listen listens on an address. Its error says in plain words why the address cannot be used.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.Newf(fault.Conflict, "the address %s is in use; stop what listens there, or choose another with --addr", addr).WithCause(err)
	case errors.Is(err, syscall.EACCES):
		return nil, fault.Newf(fault.Forbidden, "this user may not listen on %s; choose a port above 1023 with --addr", addr).WithCause(err)
	}
	return nil, fault.Newf(fault.Invalid, "cannot listen on %q; write it as host:port, such as 127.0.0.1:8080: %w", addr, err)
}

// hostsOf are the host names that a server on a loopback address accepts, its public one included; for any other address, all.
func hostsOf(addr net.Addr, public string) []string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", tcp.IP.String()}
	if u, err := url.Parse(public); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

// reachable is an address as a program on this machine can use it.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

// keepAll keeps every definition of a directory. A definition with errors ends it with an error.
func (i *Instance) keepAll(ctx context.Context, dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			err = reason.Err
		}
		return nil, fault.Newf(fault.Invalid, "the directory of workflows, %q, cannot be read: %w", dir, err)
	}
	var kept []string
	for _, e := range entries {
		if e.IsDir() || !isDocument(e.Name()) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		data, problem := validation.ReadFile(name, nil)
		if problem != nil {
			return nil, fault.Newf(fault.Invalid, "%s: %s", name, problem.Says())
		}
		def, report := definitionIn(name, data)
		if def == nil {
			for _, p := range report.Problems {
				if p.Severity != workflow.SeverityWarning {
					return nil, fault.Newf(fault.Invalid, "%s: %s (tandem validate %s tells all)", name, p.Says(), name)
				}
			}
			return nil, fault.Newf(fault.Invalid, "%s cannot be kept; see: tandem validate %s", name, name)
		}
		w, err := i.keep(ctx, Local(), def, store.SourceOf(data))
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", name, err)
		}
		kept = append(kept, w.ID)
	}
	return kept, nil
}

func newTokenID() string { return "tok_" + strings.ToLower(rand.Text()) }
