package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

// Run is one execution of a file, without a server.
type Run struct {
	// File is the workflow, "-" for Stdin. It is not needed to resume.
	File  string
	Stdin io.Reader
	// Dir is the data directory: what is in it survives the process.
	Dir string
	// Inputs is the object the execution is started with.
	Inputs json.RawMessage
	// Resume is the id of an execution to go on with, instead of starting one.
	Resume string
	// Started is called when the execution is on disk, Progress for everything that happens to its nodes from then on, in
	// order. Both are waited for.
	Started  func(execution string)
	Progress func(Progress)
}

// Progress is something that happened to a node.
type Progress struct {
	Time       time.Time           `json:"time"`
	Activation engine.ActivationID `json:"activation"`
	Status     engine.NodeStatus   `json:"status"`
	Error      *fault.Error        `json:"error,omitempty"`
}

// defaultWorkspace is the one that a new installation has.
const defaultWorkspace = "default"

// Local is who acts on this machine without a server: the one user of the one workspace.
func Local() identity.Principal {
	return identity.Principal{Workspace: defaultWorkspace, User: "local", Roles: []identity.Role{identity.Admin}}
}

// RunFile runs a workflow file to its end on the engine in this process. When ctx ends first the execution is parked: it
// can be resumed, and the error is the context's. A file with errors is reported and nothing is run.
func RunFile(ctx context.Context, r Run) (Report, store.Execution, map[string]json.RawMessage, error) {
	report := newReport(r.File, nil)
	var def *workflow.Definition
	if r.Resume == "" {
		if def, report = readDefinition(r.File, r.Stdin); def == nil {
			return report, store.Execution{}, nil, nil
		}
	}
	i, err := Open(ctx, Options{Dir: r.Dir})
	if err != nil {
		return report, store.Execution{}, nil, err
	}
	e, outputs, err := i.run(ctx, r, def)
	if cerr := i.Close(); err == nil {
		err = cerr
	}
	return report, e, outputs, err
}

// readDefinition reads a file for running; with errors there is no definition. A workflow without an id gets one from its
// file's name.
func readDefinition(file string, stdin io.Reader) (*workflow.Definition, Report) {
	data, problem := readFile(file, stdin)
	if problem != nil {
		return nil, newReport(file, []workflow.Problem{*problem})
	}
	source, problems := check(data, Kinds())
	report := newReport(file, problems)
	if !report.Valid {
		return nil, report
	}
	def := source.Definition
	if def.Metadata.ID == "" {
		base := filepath.Base(file)
		def.Metadata.ID = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return def, report
}

func (i *Instance) run(ctx context.Context, r Run, def *workflow.Definition) (store.Execution, map[string]json.RawMessage, error) {
	p, id := Local(), r.Resume
	if id == "" {
		w, err := i.Save(ctx, p, def)
		if err != nil {
			return store.Execution{}, nil, err
		}
		request, err := i.request(ctx, p, w.ID, r.Inputs)
		if err != nil {
			return store.Execution{}, nil, err
		}
		id = request.ID
		progress := tellProgress(r.Progress)
		stop := i.Watch(p, id, func(row host.Row, commands []engine.Command) {
			if row.Seq == 1 && r.Started != nil {
				r.Started(id)
			}
			progress(row, commands)
		})
		defer stop()
		if _, err := i.host.Start(ctx, p, request); err != nil {
			return store.Execution{}, nil, err
		}
	} else {
		if r.Started != nil {
			r.Started(id)
		}
		stop := i.Watch(p, id, tellProgress(r.Progress))
		defer stop()
	}
	e, err := i.Wait(ctx, p, id)
	if err != nil {
		return e, nil, err
	}
	outputs, err := i.Outputs(ctx, p, id)
	return e, outputs, err
}

// tellProgress tells the facts of a row as what happened to nodes.
func tellProgress(each func(Progress)) Watcher {
	return func(row host.Row, commands []engine.Command) {
		if each == nil {
			return
		}
		at := time.UnixMilli(row.Time).UTC()
		ended := map[engine.ActivationID]bool{}
		for _, c := range commands {
			if end, ok := c.(engine.EndNode); ok && end.Status == engine.NodeFailure {
				ended[end.Activation] = true
			}
		}
		for _, f := range row.Facts {
			switch f := f.(type) {
			case engine.NodeCompleted:
				if !ended[f.Activation] {
					each(Progress{Time: at, Activation: f.Activation, Status: engine.NodeDone})
				}
			case engine.NodeFailed:
				if !ended[f.Activation] {
					each(Progress{Time: at, Activation: f.Activation, Status: engine.NodeRetrying, Error: f.Error})
				}
			}
		}
		for _, c := range commands {
			switch c := c.(type) {
			case engine.EndNode:
				each(Progress{Time: at, Activation: c.Activation, Status: c.Status, Error: c.Error})
			case engine.Ask:
				each(Progress{Time: at, Activation: c.Activation, Status: engine.NodeWaitingInput})
			}
		}
	}
}

// ParseInputs reads inputs given as name=value: a value that is JSON is taken as such, anything else as text. Those of
// the base object come first.
func ParseInputs(base json.RawMessage, pairs []string) (json.RawMessage, error) {
	inputs := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &inputs); err != nil {
			return nil, fault.Newf(fault.InvalidInput, "the inputs must be a JSON object: %w", err)
		}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fault.Newf(fault.InvalidInput, "input %q: write it as name=value", pair)
		}
		if json.Valid([]byte(value)) {
			inputs[name] = json.RawMessage(value)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		inputs[name] = text
	}
	return json.Marshal(inputs)
}
