package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"time"

	"tandem/api"
	"tandem/builtin/models"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/fixture"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/revisions"
	"tandem/sandbox"
	"tandem/workflow"
)

// Record makes a fixture of an execution. The report lists what already differs when the fixture is replayed, which no
// recording can avoid: it should be empty.
func (i *Instance) Record(ctx context.Context, p identity.Principal, execution string) (*fixture.Fixture, fixture.Report, error) {
	summary, err := i.stores.Executions.Get(ctx, p, execution)
	if err != nil {
		return nil, fixture.Report{}, err
	}
	ready, err := i.revision(ctx, p, summary.WorkflowID, summary.RevisionHash)
	if err != nil {
		return nil, fixture.Report{}, err
	}
	base, set := revisions.SplitHash(summary.RevisionHash)
	stored, err := i.stores.Workflows.RevisionByHash(ctx, p, summary.WorkflowID, base)
	if err != nil {
		return nil, fixture.Report{}, err
	}
	r := fixture.Recording{
		Journal: host.Journal{Source: i.source, Principal: p, Execution: execution, Graph: ready.Graph,
			Revision: local.Revision(ready), Programs: programs()},
		Ready:    ready,
		Code:     interpreter{i.sandbox},
		Workflow: stored.Definition, Revision: summary.Revision, Hash: base,
	}
	templates, err := i.revisions.PinnedTemplates(ctx, p, set)
	if err != nil {
		return nil, fixture.Report{}, err
	}
	if len(templates) > 0 {
		if r.Templates, err = json.Marshal(templates); err != nil {
			return nil, fixture.Report{}, fault.Newf(fault.Internal, "the templates of workflow %q: %w", summary.WorkflowID, err)
		}
	}
	return fixture.Record(ctx, r)
}

// Record makes a fixture of an execution in the data directory of this process.
func (c *Connection) Record(ctx context.Context, execution string) (*fixture.Fixture, fixture.Report, error) {
	if c.instance == nil {
		return nil, fixture.Report{}, fault.New(fault.Unsupported, "a fixture is made where the data is: stop the server and name its data directory with --data, or run the command on a copy of it")
	}
	return c.instance.Record(ctx, Local(), execution)
}

// Exported is an execution as it is written to a file.
type Exported struct {
	api.GetExecution
	// Activations are in the order they began.
	Activations []api.NodeExecution `json:"activations"`
	Events      []api.Event         `json:"events"`
	// WithoutInputs is how many activations, the last ones, have no input here.
	WithoutInputs int `json:"without_inputs,omitempty"`
}

// ExportExecution reads all of an execution, as far as it has come. Finding the input of an activation takes time that grows
// with the journal, so it is done for a limited number.
func (c *Connection) ExportExecution(ctx context.Context, execution string, inputs int) (Exported, error) {
	e := Exported{Activations: []api.NodeExecution{}, Events: []api.Event{}}
	var err error
	if e.GetExecution, err = c.ExecutionWithWorkflow(ctx, execution); err != nil {
		return e, err
	}
	for q := (client.ActivationQuery{}); ; {
		part, err := c.Activations(ctx, execution, q)
		if err != nil {
			return e, err
		}
		e.Activations = append(e.Activations, part.Activations...)
		if q.After = part.Next; q.After == "" {
			break
		}
	}
	for n := range e.Activations {
		if n >= inputs {
			e.WithoutInputs = len(e.Activations) - n
			break
		}
		one, err := c.Activation(ctx, execution, e.Activations[n].ActivationID)
		if err != nil {
			return e, err
		}
		e.Activations[n].InputData, e.Activations[n].Lineage = one.InputData, one.Lineage
	}
	e.Events, err = c.told(ctx, execution, e.Execution)
	return e, err
}

// quiet is how long the stream of an execution that has not ended may be silent before it counts as complete.
const quiet = time.Second

// told lists the events of an execution until now.
func (c *Connection) told(ctx context.Context, execution string, e api.Execution) ([]api.Event, error) {
	list := []api.Event{}
	watched, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !engine.Status(e.Status).Final() { // its stream has no end
		defer time.AfterFunc(quiet, func() { stop(errTold) }).Stop()
	}
	err := c.Watch(watched, execution, "", client.VocabularyExecution, func(event api.Event) error {
		if event.Seq > e.Seq {
			return errTold
		}
		list = append(list, event)
		return nil
	})
	if errors.Is(err, errTold) {
		err = nil
	}
	return list, err
}

var errTold = errors.New("everything is told") // read-only

// Player plays fixtures, with the kinds of this program and without a data directory. Its kinds reach no service: calls to
// the outside are answered from the recording.
type Player struct {
	kinds    *node.Registry
	registry node.Registry
	sandbox  *sandbox.Pool
}

// NewPlayer returns a player; cache is where compiled interpreters are kept, the user's cache directory when empty. It must be closed.
func NewPlayer(cache string) *Player {
	if cache == "" {
		if dir, err := sandbox.MachineCache(); err == nil { // without one every interpreter is compiled anew
			cache = dir
		}
	}
	p := &Player{kinds: Kinds(), sandbox: sandbox.New(sandbox.Options{Dir: cache})}
	p.registry.Register(builtIn(nowhere(), kindDeps{Models: &models.Models{}, Memories: memory.New(memory.Options{}),
		Tools: &mcp.Pool{}}).Kinds...)
	return p
}

// Close ends what runs code.
func (p *Player) Close() { p.sandbox.Close() }

// Play plays a fixture with the workflow that it was recorded with or, when def is not nil, with another one.
func (p *Player) Play(ctx context.Context, f *fixture.Fixture, def *workflow.Definition) (fixture.Report, error) {
	ready, err := p.prepare(f, def)
	if err != nil {
		return fixture.Report{}, err
	}
	return f.Replay(ctx, fixture.Stage{Ready: ready, Code: interpreter{p.sandbox}})
}

func (p *Player) prepare(f *fixture.Fixture, def *workflow.Definition) (*node.Revision, error) {
	if def == nil {
		source, problems := workflow.Parse(f.Workflow, workflow.Options{Kinds: p.kinds})
		if source == nil {
			return nil, fault.Newf(fault.Invalid, "the fixture cannot be used: its workflow cannot be read: %s", problems[0].Says())
		}
		def = source.Definition
	}
	var templates revisions.TemplateSet
	if len(f.Templates) > 0 {
		if err := json.Unmarshal(f.Templates, &templates); err != nil {
			return nil, fault.Newf(fault.Invalid, "the fixture cannot be used: its templates cannot be read: %w", err)
		}
	}
	def, err := templates.Apply(def)
	if err != nil {
		return nil, err
	}
	graph, problems := workflow.Compile(def, p.kinds)
	if graph == nil {
		return nil, fault.Newf(fault.Invalid, "the workflow cannot be used: %s", problems[0].Says())
	}
	return node.Prepare(def, graph, &p.registry, templates.Overrides())
}

// Check plays a fixture file in a test, with the workflow that it was recorded with or, when file is not empty, with that
// one, and fails the test with every difference.
func (p *Player) Check(t fixture.TB, recorded, file string) {
	t.Helper()
	f, err := fixture.Load(recorded)
	if err != nil {
		t.Fatalf("%s: %v", recorded, err)
	}
	var def *workflow.Definition
	if file != "" {
		report := Report{}
		if def, report = ReadWorkflow(file); def == nil {
			t.Fatalf("%s: %s", file, report.Problems[0].Message)
		}
	}
	ready, err := p.prepare(f, def)
	if err != nil {
		t.Fatalf("%s: %v", recorded, err)
	}
	fixture.Check(t, f, fixture.Stage{Ready: ready, Code: interpreter{p.sandbox}})
}

// nowhere makes a client that reaches no address. A replay should not use it; a kind that does so fails.
func nowhere() outbound.Options { return outbound.Options{Resolver: noResolver{}, DialAddress: noDial} }

type noResolver struct{}

// LookupNetIP implements outbound.Resolver.
func (noResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, fault.Newf(fault.BlockedAddress, "a replay reaches nobody, and %q was asked for", host)
}

func noDial(_ context.Context, address netip.AddrPort) (net.Conn, error) {
	return nil, fault.Newf(fault.BlockedAddress, "a replay reaches nobody, and %q was asked for", address)
}

// ReadWorkflow reads a workflow file for [Player.Play]. With errors in the report there is no definition.
func ReadWorkflow(file string) (*workflow.Definition, Report) { return readDefinition(file, nil) }
