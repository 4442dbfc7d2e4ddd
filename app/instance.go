package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tandem/budget"
	"tandem/builtin/code"
	"tandem/builtin/flow"
	"tandem/builtin/models"
	"tandem/cluster"
	"tandem/credential"
	"tandem/database"
	"tandem/engine"
	"tandem/fault"
	"tandem/files"
	"tandem/host"
	"tandem/host/local"
	"tandem/human"
	"tandem/identity"
	"tandem/limits"
	"tandem/live"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/revisions"
	"tandem/sandbox"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/trigger"
	"tandem/vault"
	"tandem/workflow"
)

// Instance is Tandem on one data directory: its store, its kinds and its host.
type Instance struct {
	dir      string
	stores   store.Stores
	db       Store
	kinds    workflow.Kinds
	registry node.Registry
	host     Host
	source   host.Source
	hub      *host.Hub
	// runs drops the output of runs that have ended, in a process whose runs other processes may end.
	runs *live.Runs
	// followed is called for each reader that follows an execution, and left when it stops. May be nil.
	followed func(host.Ref) (left func())
	sandbox  *sandbox.Pool
	notice   func(text string)
	vault    *vault.Vault
	purse    *budget.Purse
	// speech is how kinds reach language models.
	speech *models.Models
	// parts are what the extensions bring.
	parts *plug.Set
	// desk is where people are asked.
	desk *human.Desk
	// triggers is what starts deployed workflows, and limits what workspaces may use and how long they keep things.
	triggers *trigger.Service
	limits   *limits.Service
	// databases are the connections that nodes have to databases.
	databases *database.Pools
	// tools are the tool servers.
	tools *vault.ToolServers
	log   *slog.Logger
	// register is where the host notes its runs; nil: nowhere.
	register *os.File
	// cluster is the part of this process in a cluster, and rows reads what other processes record; nil: there are none.
	cluster *cluster.Engine
	rows    *cluster.Rows
	// unhear ends the exchange of output with other processes; nil: there is none.
	unhear   func()
	draining atomic.Bool
	// language is the language of the installation.
	language string

	// revisions are the revisions that are ready to run.
	revisions *revisions.Cache

	mu       sync.Mutex
	watchers map[store.Ref]map[int]Watcher
	watched  int // numbers watchers
	waiting  map[store.Ref]map[int]chan error
}

// Options say how an instance is opened. The zero value of everything but Dir is a good choice.
type Options struct {
	// Dir is the data directory. It is made if it does not exist.
	Dir string
	// Database is the address of a database of PostgreSQL, postgres://USER:PASSWORD@HOST:PORT/NAME, which no other process may have open;
	// empty: the SQLite database in Dir. Existing refuses one that is not there, or has no data, instead of making it.
	Database string
	Existing bool
	// Store is the database, which the instance closes, also when it cannot be opened; nil: the one that Database names. Files, keys and
	// notes about runs are in Dir in any case.
	Store Store
	// Host makes what drives executions; nil: a host in this process.
	Host MakeHost
	// Cluster is the part that this process has in an installation whose executions run on Temporal; nil: they run in this process. Its
	// maker closes it after the instance.
	Cluster *cluster.Engine
	// HTTPAllow are addresses and host names that nodes may reach although they are not public.
	HTTPAllow outbound.AllowList
	// Scripts is what nodes may run on this machine, see [ParseScripts]; nil: nothing.
	Scripts *code.Scripts
	// CodeCache is where compiled interpreters are kept from one start to the next; empty: once for the machine in the user's
	// cache directory, or in Dir where that cannot be. Other accounts must not be able to write to it.
	CodeCache string
	// Notice is called with messages for a person who waits at a terminal, such as that an interpreter is being compiled. May be nil.
	Notice func(text string)
	// PublicURL is where services reach this instance to call back; empty: they cannot.
	PublicURL string
	// Language is the language of the installation, zh or en, for pages and messages that do not ask for another one. Empty: en.
	Language string
	// Activations is how many nodes run at once, 100 when zero; MaxRunning how many executions, 0: any number.
	Activations int
	MaxRunning  int
	// MaxTasks is how many tasks of agents run at once, 30 when zero; more wait for their turn.
	MaxTasks int
	// NoRunAhead lets every row be on disk before the next node runs, also where the difference cannot be observed.
	NoRunAhead bool
	// Idle lets the instance work only on executions that it has started or taken up. Rest lets it work on nothing: requests are
	// recorded, and go on with the next instance.
	Idle bool
	Rest bool
	// MasterKey is the key that seals credentials; empty: the one in the data directory.
	MasterKey string
	// Version is the version of this program, which tool servers are sent.
	Version string
	Log     *slog.Logger
	// Extensions are what the program brings besides what is built in: kinds, channels, providers of models, types of credentials, object
	// stores. Two parts with the same name, or a name that a built-in part has, are refused.
	Extensions []plug.Maker
	// Observed is called for every completion of a model: when it begins, for each piece, and when it ends. It does not affect
	// the completion, which does not wait for it. May be nil.
	Observed func(llm.Event)
	// AuditDays is how many days the audit log is kept in workspaces that do not set it; zero: for ever.
	AuditDays int
	// Removed is called with how many records of a sort were removed, because they were kept long enough or on request. May be nil.
	Removed func(what string, n int64)
	// Recorded is called for every row that is on disk. The instance waits for it, so it should be quick. May be nil.
	Recorded func(store.Ref, *workflow.Graph, host.Row)

	// lock is the right to open the database, if this process has waited for it; nil: it has not.
	lock *postgres.Lock
}

// Keyring returns the keys that seal the credentials. The key file is made when there is none and nothing was sealed.
func (i *Instance) Keyring() (*credential.Keyring, error) { return i.vault.Keyring() }

// Watcher is called with each row that is on disk and the commands that follow from it. On Temporal, where another process may have
// recorded the row, the commands are only those that ask a question, take one back, or end the execution.
type Watcher func(host.Row, []engine.Command)

// defaultActivations is how many nodes run at once by default.
const defaultActivations = 100

// Open opens a data directory and takes up what was under way in it.
func Open(ctx context.Context, o Options) (*Instance, error) {
	db, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	i := &Instance{
		dir: o.Dir, stores: db.Stores(), db: db, hub: host.NewHub(), cluster: o.Cluster,
		watchers: map[store.Ref]map[int]Watcher{}, waiting: map[store.Ref]map[int]chan error{}, language: o.Language,
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}
	i.runs = live.NewRuns(i.hub)
	i.sandbox = sandbox.New(sandbox.Options{Dir: interpreterCache(o, i.log)})
	i.notice = o.Notice
	i.purse = budget.New(budget.Options{Stores: i.stores, Read: readProfile, Log: i.log,
		Act: func(ctx context.Context, p identity.Principal, r host.Request) error {
			_, err := i.host.Act(ctx, p, r)
			return err
		}})
	i.source = local.NewSource(i.stores.Journal, i.stores.Blobs)
	client := outbound.New(outbound.Options{Allow: o.HTTPAllow})
	i.vault = vault.New(vault.Options{Dir: o.Dir, Key: o.MasterKey, Credentials: i.stores.Credentials, HTTP: client.HTTPClient(),
		Dial: client.DialContext, Log: i.log})
	i.sealMessages()
	i.databases = database.New(database.Options{Dial: client.DialContext, Files: filepath.Join(o.Dir, "files")})
	forTools := vault.ToolOptions{Stores: i.stores, Allow: o.HTTPAllow, PublicURL: o.PublicURL, Version: o.Version}
	if i.tools, err = i.vault.OpenTools(forTools); err != nil {
		return nil, closing(err, db)
	}
	i.kinds = &i.registry
	i.revisions = revisions.New(revisions.Options{Workflows: i.stores.Workflows, Templates: i.stores.Templates, Blobs: i.stores.Blobs,
		Kinds: i.kinds, Registry: &i.registry, ForFolds: local.Revision})
	if err := i.assemble(client, o); err != nil {
		i.tools.Close()
		return nil, closing(err, db)
	}
	i.limits = limits.New(limits.Options{
		Stores: i.stores, Deleted: files.New(filepath.Join(o.Dir, "files")).Remove, AuditDays: o.AuditDays, Removed: o.Removed, Log: i.log,
		Gone: func(workspace string, ids []string) {
			for _, id := range ids {
				i.hub.Changing(host.Ref{Workspace: workspace, Execution: id})()
			}
		}, Changed: func(string) {
			if h, ok := i.host.(interface{ Readmit() }); ok {
				h.Readmit()
			}
		}})
	if err := i.limits.Load(ctx); err != nil {
		i.tools.Close()
		return nil, closing(err, db)
	}
	i.desk = i.people(o)
	i.triggers = i.newTriggers(o)
	var register local.Register
	if !o.Rest && o.Cluster == nil {
		if i.register, err = os.OpenFile(filepath.Join(o.Dir, registerFile), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			i.tools.Close()
			return nil, closing(fmt.Errorf("open the register of runs: %w", err), db)
		}
		register = i.register
	}
	newHost := o.Host
	switch {
	case newHost != nil:
	case o.Cluster != nil:
		newHost = newClusterHost(o.Cluster, db)
	default:
		newHost = newLocalHost
	}
	i.host, err = newHost(ctx, local.Options{
		Programs: programs(),
		Journal:  i.stores.Journal, Inbox: i.stores.Inbox, Timers: i.stores.Timers, Executions: i.stores.Executions,
		Blobs: i.stores.Blobs, Logs: i.stores.Logs, Revision: i.revision, Child: i.Request,
		Asked: i.asked, Unasked: func(ctx context.Context) ([]store.Ref, error) {
			return i.stores.Interactions.Unasked(ctx, identity.System(""))
		},
		Credentials: i.vault.Opener, Redact: i.vault.Redactor(), Code: interpreter{i.sandbox},
		Workers: cmp.Or(o.Activations, defaultActivations), MaxRunning: o.MaxRunning, Caps: i.limits.Caps,
		MaxTasks: cmp.Or(o.MaxTasks, defaultTasks), Task: isTask, Initial: initialOf, RunAhead: !o.NoRunAhead, Idle: o.Idle, Rest: o.Rest,
		Register: register, Log: o.Log,
		Reopening: func(ref store.Ref) func() { return i.hub.Changing(host.Ref(ref)) },
		Recorded: func(ref store.Ref, graph *workflow.Graph, row host.Row, commands []engine.Command) {
			if o.Recorded != nil {
				o.Recorded(ref, graph, row)
			}
			i.limits.Recorded(ref.Workspace, row)
			switch {
			case o.Cluster == nil:
				i.known(ref, row, commands)
			case o.Cluster.Works(): // output that has ended is dropped; readers get the row at the servers
				i.runs.Recorded(host.Ref(ref), &row)
				i.hub.Publish(host.Ref(ref), row)
			default: // this process learns of it as of what others record
			}
		},
		Emitted: i.emitted, Logged: i.logged, Late: i.purse.Late, GivenUp: i.givenUp,
	})
	if err != nil {
		i.tools.Close()
		return nil, fmt.Errorf("start the host: %w", errors.Join(closing(err, db), i.closeRegister()))
	}
	if err := i.follow(ctx, o); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	if !o.Idle && !o.Rest && (o.Cluster == nil || !o.Cluster.Works()) { // sending messages and timeouts is not work that was asked for here
		i.desk.Start()
		i.triggers.Start()
	}
	return i, nil
}

// assemble gathers the extensions and registers their kinds.
func (i *Instance) assemble(client *outbound.Client, o Options) (err error) {
	store := files.New(filepath.Join(o.Dir, "files"))
	deps := plug.Deps{HTTP: client, Log: i.log, Files: store, Users: func(ctx context.Context, workspace string) ([]identity.User, error) {
		return i.stores.Users.List(ctx, identity.System(workspace))
	}}
	var speak *models.Models // known when the providers are, which is before anything runs
	deps.Ask = func(ctx context.Context, call *node.Call, profile string, r llm.Request) (llm.Completion, error) {
		done, err := speak.Ask(ctx, call, profile, r)
		return done.Completion, err
	}
	own := families(func(set *plug.Set) kindDeps {
		speak = i.models(client, set, o)
		return kindDeps{
			Databases: i.databases, Files: store, Models: speak, Scripts: o.scripts(), Callbacks: i.callbacks(o.PublicURL),
			Agents: agents{i}, Tools: i.tools.Pool,
			Respond: func(
				ctx context.Context, workspace, execution string, activation engine.ActivationID, a trigger.Answer,
			) (string, error) {
				return i.triggers.Respond(ctx, workspace, execution, activation, a)
			},
			Offers: func(ctx context.Context, workspace, user, id, revision string) (flow.Offered, error) {
				o, err := i.revisions.Offer(ctx, identity.Principal{Workspace: workspace, User: user}, id, revision)
				return flow.Offered(o), err
			},
			Tell:     i.putNotice,
			Memories: memory.New(memory.Options{Records: i.stores.Memories, Executions: i.stores.Executions, Local: llm.HashEmbed}),
		}
	})
	if i.parts, err = gather(deps, own, o.Extensions); err != nil {
		return err
	}
	i.kinds = &i.registry
	i.vault.Know(i.parts.Credentials)
	i.registry.Register(i.parts.Kinds...)
	return nil
}

// store opens the database, unless it is given.
func (o *Options) store(ctx context.Context) (Store, error) {
	if o.Dir == "" {
		return nil, fault.New(fault.Invalid, "Options.Dir is empty; name the data directory")
	}
	if o.Store != nil {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, closing(fmt.Errorf("make the data directory: %w", err), o.Store)
		}
		return o.Store, nil
	}
	return openStore(ctx, o)
}

func closing(err error, db Store) error {
	if cerr := db.Close(); cerr != nil {
		return fmt.Errorf("%w (and closing: %w)", err, cerr)
	}
	return err
}

// registerFile is where in the data directory the runs are noted that have begun. It matters only when a process dies, and may be
// left out of a copy.
const registerFile = "runs.register"

func (i *Instance) closeRegister() error {
	if i.register == nil {
		return nil
	}
	return i.register.Close()
}

// Drain lets nothing new begin: no node, no timer, no message to people. It returns when what runs has ended and is on disk, or when
// the context ends, and says which. Requests are still answered; what they start or answer goes on with the next instance.
func (i *Instance) Drain(ctx context.Context) bool {
	i.draining.Store(true)
	var people sync.WaitGroup
	people.Go(func() { i.desk.Drain(ctx) })
	people.Go(func() { i.triggers.Drain(ctx) })
	ended := i.host.Drain(ctx)
	people.Wait()
	return ended
}

// Close parks what runs and closes the data directory.
func (i *Instance) Close() error {
	if i.rows != nil {
		i.rows.Close()
	}
	if i.unhear != nil {
		i.unhear()
	}
	i.triggers.Close() // it and the desk talk to the host
	i.desk.Close()
	i.host.Close()
	i.purse.Close()
	i.tools.Close()
	i.sandbox.Close()
	i.databases.Close()
	return errors.Join(i.closeRegister(), i.db.Close())
}

// Save keeps a definition that has no errors. Content that is already the newest revision makes no new one.
func (i *Instance) Save(ctx context.Context, p identity.Principal, def *workflow.Definition) (store.Workflow, error) {
	return i.keep(ctx, p, def, store.Source{})
}

// keep is Save with the text that the definition was read from.
func (i *Instance) keep(ctx context.Context, p identity.Principal, def *workflow.Definition, source store.Source) (store.Workflow, error) {
	if def.Metadata.ID == "" {
		return store.Workflow{}, fault.New(fault.Invalid, "metadata.id: the workflow has no id")
	}
	hash := workflow.Hash(def)
	audited := store.AuditedBy(ctx, p, "workflow.save", def.Metadata.ID, map[string]string{"name": def.Metadata.Name, "revision_hash": hash})
	w, _, err := i.stores.Workflows.Save(audited, p, store.SaveWorkflow{
		ID: def.Metadata.ID, Name: def.Metadata.Name, Description: def.Metadata.Description, IconURL: def.Metadata.IconURL,
		Tags: def.Metadata.Tags, Version: def.Metadata.Version, Parent: def.Metadata.ParentWorkflow,
		Hash: hash, Definition: workflow.Encode(def), Source: source, Time: time.Now().UnixMilli(),
	})
	return w, err
}

// revision returns the revision that an execution is pinned to, ready to run.
func (i *Instance) revision(ctx context.Context, p identity.Principal, id, hash string) (*node.Revision, error) {
	ready, err := i.revisions.Pinned(ctx, p, id, hash)
	if err != nil {
		return nil, err
	}
	return ready.Revision, nil
}

// Start starts an execution of a workflow's newest revision at its first trigger and returns the execution's id.
func (i *Instance) Start(ctx context.Context, p identity.Principal, id string, inputs json.RawMessage) (string, error) {
	request, err := i.request(ctx, p, id, inputs)
	if err != nil {
		return "", err
	}
	started, err := i.host.Start(store.AuditedBy(ctx, p, "execution.start", request.ID, map[string]string{"workflow_id": id}), p, request)
	return started.Execution, err
}

func (i *Instance) request(ctx context.Context, p identity.Principal, id string, inputs json.RawMessage) (host.StartRequest, error) {
	request, err := i.Request(ctx, p, id, "latest")
	request.ID, request.Initial, request.TriggerData = NewExecutionID(), inputs, inputs
	return request, err
}

// NewExecutionID returns an id that no execution has.
func NewExecutionID() string { return host.NewExecutionID(time.Now()) }

// Request says how a workflow is started: which revision ("latest", "deployed" or a number), at which trigger.
func (i *Instance) Request(ctx context.Context, p identity.Principal, id, revision string) (host.StartRequest, error) {
	request, _, err := i.revisions.Request(ctx, p, id, revision)
	return request, err
}

// Watch calls back for every row of an execution that is recorded from now on, in order, until stop is called. The host
// waits for the callback, so it should be quick.
func (i *Instance) Watch(p identity.Principal, execution string, each Watcher) (stop func()) {
	ref := store.Ref{Workspace: p.Workspace, Execution: execution}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watched++
	n := i.watched
	if i.watchers[ref] == nil {
		i.watchers[ref] = map[int]Watcher{}
	}
	i.watchers[ref][n] = each
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if delete(i.watchers[ref], n); len(i.watchers[ref]) == 0 {
			delete(i.watchers, ref)
		}
	}
}

// emitted hands on what a run hands out while it goes on; nil: it has ended.
func (i *Instance) emitted(ref store.Ref, attempt engine.Attempt, chunk any) {
	c := host.Chunk{Attempt: attempt}
	switch chunk := chunk.(type) {
	case string:
		c.Text = chunk
	case json.RawMessage:
		c.Data = chunk
	case nil:
		i.runs.Ended(host.Ref(ref), attempt)
		return
	}
	i.hub.Emit(host.Ref(ref), c)
}

// logged tells the readers that follow a run that it has written lines.
func (i *Instance) logged(ref store.Ref, attempt engine.Attempt, lines int) {
	i.hub.Log(host.Ref(ref), host.Logged{Attempt: attempt, Lines: lines})
}

func (i *Instance) recorded(ref store.Ref, row host.Row, commands []engine.Command) {
	i.mu.Lock()
	watchers := slices.Collect(maps.Values(i.watchers[ref]))
	i.mu.Unlock()
	for _, each := range watchers {
		each(row, commands)
	}
}

// Outputs returns the outputs of an execution's last nodes, by node id.
func (i *Instance) Outputs(ctx context.Context, p identity.Principal, execution string) (map[string]json.RawMessage, error) {
	summary, err := i.stores.Executions.Get(ctx, p, execution)
	if err != nil {
		return nil, err
	}
	ready, err := i.revision(ctx, p, summary.WorkflowID, summary.RevisionHash)
	if err != nil {
		return nil, err
	}
	journal := host.Journal{Source: i.source, Principal: p, Execution: execution, Graph: ready.Graph, Revision: local.Revision(ready),
		Programs: programs()}
	fold, err := journal.Fold(ctx)
	if err != nil {
		return nil, err
	}
	return fold.Outputs()
}

// givenUp tells those who wait for an execution that this process cannot go on with it.
func (i *Instance) givenUp(ref store.Ref, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.waiting[ref] {
		select {
		case c <- err:
		default: // it already has an error
		}
	}
}

// await registers somebody who waits for an execution.
func (i *Instance) await(ref store.Ref) (gone <-chan error, stop func()) {
	c := make(chan error, 1)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watched++
	n := i.watched
	if i.waiting[ref] == nil {
		i.waiting[ref] = map[int]chan error{}
	}
	i.waiting[ref][n] = c
	return c, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if delete(i.waiting[ref], n); len(i.waiting[ref]) == 0 {
			delete(i.waiting, ref)
		}
	}
}

// Wait returns the status of an execution when it has ended. It fails when this process cannot go on with it.
func (i *Instance) Wait(ctx context.Context, p identity.Principal, execution string) (store.Execution, error) {
	gone, forget := i.await(store.Ref{Workspace: p.Workspace, Execution: execution})
	defer forget()
	end := make(chan struct{}, 1)
	stop := i.Watch(p, execution, func(_ host.Row, commands []engine.Command) {
		for _, c := range commands {
			if _, ok := c.(engine.Finish); ok {
				select {
				case end <- struct{}{}:
				default:
				}
			}
		}
	})
	defer stop()
	summary, err := i.stores.Executions.Get(ctx, p, execution)
	if err != nil || summary.Status.Final() {
		return summary, err
	}
	select {
	case <-end:
		return i.stores.Executions.Get(ctx, p, execution)
	case err := <-gone:
		return summary, err
	case <-ctx.Done():
		return summary, context.Cause(ctx)
	}
}
