package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/text"
	"tandem/validation"
	"tandem/workflow"
)

// Run is one execution of a file: in this process, or by the server that has the data directory open.
type Run struct {
	// File is the workflow, "-" for Stdin. It is not needed to resume.
	File  string
	Stdin io.Reader
	// Dir is the data directory: what is in it survives the process.
	Dir string
	// Again has the other flags, with a space before each, that a suggested command needs to reach the same database.
	Again string
	// Options are how the directory is opened, besides Dir.
	Options Options
	// Inputs is the object the execution is started with.
	Inputs json.RawMessage
	// Resume is the id of an execution to go on with, instead of starting one.
	Resume  string
	Version string
	// Grace and Draining are the fields of [Connect] with these names.
	Grace    time.Duration
	Draining func(grace time.Duration)
	// Flags are those of the command that have an effect only in a process of its own. They are refused where a server has the
	// directory open.
	Flags []string
	// Checked is called with the warnings of a file without errors, before it is run. May be nil.
	Checked func(Report)
	// Warned is called with the inputs that the workflow does not use. May be nil.
	Warned func(warning string)
	// Started is called when the execution is on disk; here says that this process drives it, and not a server. Each is called for
	// every frame of its stream, in order; for a resumed one, from where it stands. The run waits for both. They may be nil.
	Started func(execution string, here bool)
	Each    func(api.Event) error
	// past is the row up to which the stream of a resumed execution is shown without acting on it; zero: it is not shown.
	past uint64
	// server is the address of the server that has the execution, for messages that say how to answer; empty: it is in Dir.
	server string
	// Ask puts a question to the person at hand and hands in what they say. When an answer is wrong, handing it in returns an error, and
	// another one may be tried. [ErrAsked] means that there is no answer now, which parks the execution; [ErrFaster], the cause of its
	// context, that there is nothing to answer any more. Nil: nobody is at hand.
	Ask func(ctx context.Context, q api.Interaction, answer func(json.RawMessage) error) error
}

// defaultWorkspace is the one that a new installation has.
const defaultWorkspace = "default"

// Local is the principal of commands on this machine without a server: the one user of the one workspace.
func Local() identity.Principal {
	return identity.Principal{Workspace: defaultWorkspace, User: identity.LocalUser, Roles: []identity.Role{identity.Admin},
		Means: identity.Means{Kind: identity.ByLocal, Address: systemAccount()}}
}

// systemAccount is the account of the operating system that runs this process, which acts as "local".
func systemAccount() string {
	if u, err := osuser.Current(); err == nil && u.Username != "" {
		return "os:" + u.Username
	}
	return "os:" + strconv.Itoa(os.Getuid())
}

// ErrAsked ends a run that waits for a person who is not at hand: nobody else can answer while this process has the data directory.
var ErrAsked = errors.New("it waits for a person")

// ErrFaster ends the asking of a question that somebody else has answered, or whose time is up.
var ErrFaster = errors.New("the question has ended meanwhile")

// RunFile runs a workflow file to its end on the engine in this process, by the same API that a server has. When ctx ends first, what runs
// gets its grace and the execution is parked: it can be resumed, and the error is the context's; or [ErrAsked] when only a person can let
// it go on. A file with errors is reported and nothing is run. Where a server has the directory open, that runs it, and goes on with it
// also when ctx ends.
func RunFile(ctx context.Context, r Run) (Report, api.Execution, error) {
	report := validation.NewReport(r.File, nil)
	var def *workflow.Definition
	var data []byte
	if r.Resume == "" { // nothing is opened, and no directory made, for a file with errors
		var problem *workflow.Problem
		if data, problem = validation.ReadFile(r.File, r.Stdin); problem != nil {
			return validation.NewReport(r.File, []workflow.Problem{*problem}), api.Execution{}, nil
		}
		if def, report = definitionIn(r.File, data); def == nil {
			return report, api.Execution{}, nil
		}
	}
	c, err := NewConnection(ctx, Connect{Dir: r.Dir, Make: r.Resume == "", Drives: true, Grace: r.Grace, Draining: r.Draining,
		Options: r.Options, Version: r.Version})
	if err != nil {
		return report, api.Execution{}, err
	}
	c.Client = c.In(r.Options.Language)
	if c.Local() {
		c.instance.desk.Start() // what the run asks is sent, and runs out
	}
	e, err := api.Execution{}, c.follows(r)
	if err == nil && def != nil {
		if report, err = c.checkFile(ctx, r.File, data); err == nil && report.Valid && len(report.Problems) > 0 && r.Checked != nil {
			r.Checked(report)
		}
	}
	if err == nil && report.Valid {
		if e, err = c.run(ctx, r, def); err == nil {
			err = c.WholeOutputs(context.WithoutCancel(ctx), &e)
		}
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return report, e, err
}

// readDefinition reads a file for running; with errors there is no definition. A workflow without an id gets one from its file's name.
func readDefinition(file string, stdin io.Reader) (*workflow.Definition, Report) {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return nil, validation.NewReport(file, []workflow.Problem{*problem})
	}
	return definitionIn(file, data)
}

// definitionIn is readDefinition for the content of a file.
func definitionIn(file string, data []byte) (*workflow.Definition, Report) {
	source, problems := check(data, Kinds(), nil)
	report := validation.NewReport(file, problems)
	if !report.Valid {
		return nil, report
	}
	def := source.Definition
	nameAfter(def, file)
	return def, report
}

// nameAfter gives a definition without an id one from its file's name.
func nameAfter(def *workflow.Definition, file string) {
	if def.Metadata.ID == "" {
		base := filepath.Base(file)
		def.Metadata.ID = strings.TrimSuffix(base, filepath.Ext(base))
		if file == "-" {
			def.Metadata.ID = "stdin"
		}
	}
}

// follows returns an error when the process that drives executions of this connection cannot follow the flags of a run.
func (c *Connection) follows(r Run) error {
	if c.Local() || len(r.Flags) == 0 {
		return nil
	}
	flags := text.As(r.Flags[0])
	for _, one := range r.Flags[1:] {
		flags = text.Of("%s and %s", flags, one)
	}
	return fault.Newf(fault.Conflict, "a server has data directory %q open and runs this, with the options that it was started with: leave out %s, start the server with it, or name another directory with --data",
		r.Dir, flags)
}

func (c *Connection) run(ctx context.Context, r Run, def *workflow.Definition) (api.Execution, error) {
	id, after, waits, err := c.begin(ctx, r, def)
	if err != nil {
		return api.Execution{}, err
	}
	if r.Started != nil {
		r.Started(id, c.Local())
	}
	if r.past > 0 {
		after = ""
	}
	if c.Local() {
		return c.pursue(ctx, r, id, after, waits)
	}
	return c.pursueThere(ctx, r, id, after, waits)
}

// pursue follows an execution that has begun to its end; waits says that it has to be answered first. When ctx ends, what runs gets its
// grace; with that the execution may have come to its end after all.
func (c *Connection) pursue(ctx context.Context, r Run, id, after string, waits bool) (api.Execution, error) {
	e, err := c.chase(ctx, r, id, after, waits)
	if err == nil || ctx.Err() == nil {
		return e, err
	}
	c.Drain()
	if last, lerr := c.Execution(context.WithoutCancel(ctx), id); lerr == nil && engine.Status(last.Status).Final() {
		return last, nil
	}
	return e, err
}

// chase is pursue without a grace.
func (c *Connection) chase(ctx context.Context, r Run, id, after string, waits bool) (api.Execution, error) {
	gone, forget := c.givenUp(id)
	defer forget()
	if r.Resume != "" {
		if err := c.TakeUp(ctx, id); err != nil {
			return api.Execution{}, err
		}
	}
	below := c.listenBelow(id)
	defer below.stop()
	watched, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() { // it ends when this function does
		select {
		case err := <-gone:
			stop(err)
		case <-c.instance.db.Broken():
			stop(c.instance.db.Err())
		case <-ended:
		}
	}()
	for {
		if waits {
			if err := c.ask(ctx, r, id); err != nil {
				return api.Execution{}, err
			}
		}
		err := c.follow(watched, id, below, func(watching context.Context) error {
			return c.Watch(watching, id, after, client.VocabularyExecution, func(e api.Event) error {
				if e.Seq > 0 {
					after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
				}
				if r.Each != nil {
					if err := r.Each(e); err != nil {
						return err
					}
				}
				below.again()
				return r.asked(e)
			})
		})
		if err == nil {
			return c.Execution(ctx, id)
		}
		if waits = errors.Is(err, ErrAsked); !waits {
			return api.Execution{}, err
		}
	}
}

// begin starts an execution, or finds the one to go on with. After is where its stream is to be watched from, waits says that
// it has to be answered first.
func (c *Connection) begin(ctx context.Context, r Run, def *workflow.Definition) (id, after string, waits bool, err error) {
	if r.Resume == "" {
		saved, err := c.Save(ctx, def)
		if err != nil {
			return "", "", false, err
		}
		started, err := c.Execute(c.starting(ctx), saved.Workflow.ID,
			api.ExecuteRequest{Inputs: r.Inputs, Revision: saved.Workflow.Revision}, "")
		if err == nil && r.Warned != nil {
			for _, warning := range started.Warnings {
				r.Warned(warning)
			}
		}
		return started.ExecutionID, "", false, err
	}
	e, err := c.Execution(ctx, r.Resume)
	if err != nil {
		return "", "", false, err
	}
	after = fmt.Sprint(e.Seq)
	switch status := engine.Status(e.Status); {
	case status.Final():
		after = "" // there is nothing to come, so it is told from the beginning
	case status == engine.StatusPaused:
		if _, err := c.Act(ctx, e.ExecutionID, api.ActionRequest{Action: "resume"}); err != nil {
			return "", "", false, err
		}
	case status == engine.StatusWaitingForHuman:
		answered, err := c.answered(ctx, e.ExecutionID)
		switch {
		case err != nil:
			return "", "", false, err
		case answered: // it was answered, and no process has worked on it since
			return e.ExecutionID, after, false, nil
		case r.Ask == nil:
			return "", "", false, askedOf(e, r.where())
		}
	}
	if waitsBelow(e) && r.Ask == nil {
		return "", "", false, askedOf(e, r.where())
	}
	return e.ExecutionID, after, waitsBelow(e) || engine.Status(e.Status) == engine.StatusWaitingForHuman, nil
}

// starting is the context of a start. In this process it is not canceled: the caller would not learn what has begun.
func (c *Connection) starting(ctx context.Context) context.Context {
	if c.Local() && ctx.Err() == nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// answered says whether an execution that waits for a person has an answer that no process has worked on yet. A server works on it at once.
func (c *Connection) answered(ctx context.Context, execution string) (bool, error) {
	if !c.Local() {
		return false, nil
	}
	pending, err := c.instance.stores.Inbox.Pending(ctx, Local(), execution)
	return len(pending) > 0, err
}

// ParseInputs reads inputs given as name=value: a value that is JSON is taken as such, anything else as text. Those of
// the base object come first.
func ParseInputs(base json.RawMessage, pairs []string) (json.RawMessage, error) {
	inputs := json.RawMessage("{}")
	if len(base) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(base, &object); err != nil {
			return nil, fault.Newf(fault.InvalidInput, "the inputs must be a JSON object: %w", err)
		}
		inputs = payload.AppendObject(nil, payload.Members(base))
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fault.Newf(fault.InvalidInput, "input %q: write it as name=value", pair)
		}
		given := payload.Quote(value)
		if json.Valid([]byte(value)) {
			given = json.RawMessage(value)
		}
		inputs = payload.WithField(inputs, name, given)
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, inputs)
	return compact.Bytes(), err
}
