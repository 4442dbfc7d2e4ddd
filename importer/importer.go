// Package importer makes workflows of files that other systems have written. A [System] reads one of them; what it makes it writes into a
// [Draft], which keeps account of every node of the file: whether it does what it did, does it nearly, or has no counterpart. Nothing is
// passed over in silence, and what comes out validates: [Import] replaces what does not by a node that fails and says why.
//
// The package is bytes in, definitions out; it keeps nothing and calls nobody. The readers are below it (importer/n8n, importer/dify,
// importer/seed), package app lists them.
package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// System reads the files of one other system.
type System interface {
	// Name is what the report calls it.
	Name() string
	// Reads says whether a document is one of its.
	Reads(document Value) bool
	// Import makes drafts of it, one for each workflow in it.
	Import(document Value, kinds workflow.Kinds) []*Draft
}

// Options say how files are imported.
type Options struct {
	// Systems are asked in this order whether a file is theirs.
	Systems []System
	// Kinds are those that workflows can have.
	Kinds workflow.Kinds
	// Check validates a definition, as it is checked when it is saved.
	Check func(definition []byte) []workflow.Problem
	// Language is that of the report.
	Language string
}

// Imported is what was made of one file.
type Imported struct {
	System    string
	Workflows []Workflow
}

// Workflow is one workflow, with what is to be known of it.
type Workflow struct {
	Definition *workflow.Definition
	// Secrets are credentials to be made, since their values stood in the file.
	Secrets []Secret
	Report  api.ImportedWorkflow
}

// Secret is a credential to be made.
type Secret struct {
	Name, Type string
	Data       json.RawMessage
}

// Import makes workflows of the content of a file. An error says that it is not a file of a known system.
func Import(name string, content []byte, o Options) (*Imported, error) {
	raw, problems := workflow.ToJSON(content, workflow.Options{})
	if raw == nil {
		p := problems[0]
		return nil, fault.Say(fault.InvalidInput, text.Of("%s cannot be read: line %d, column %d: %s",
			path.Base(name), p.Line, p.Column, p.Says()))
	}
	decoded, err := payload.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path.Base(name), err)
	}
	document := ValueOf(decoded)
	for _, system := range o.Systems {
		if !system.Reads(document) {
			continue
		}
		out := &Imported{System: system.Name()}
		for _, draft := range system.Import(document, o.Kinds) {
			out.Workflows = append(out.Workflows, draft.finish(name, o))
		}
		if len(out.Workflows) == 0 {
			return nil, fault.Say(fault.InvalidInput, text.Of("%s has no workflow", path.Base(name)))
		}
		return out, nil
	}
	return nil, fault.Say(fault.InvalidInput, text.Of("%s is not a file of a system that is known here: n8n, Dify, flows of steps, or older workflow files", path.Base(name)))
}

// finish names what has no name, moves secrets, and mends what does not validate.
func (d *Draft) finish(name string, o Options) Workflow {
	if d.def.Metadata.Name == "" {
		base := path.Base(strings.ReplaceAll(name, "\\", "/"))
		d.def.Metadata.Name = strings.TrimSuffix(base, path.Ext(base))
	}
	d.def.Metadata.ID = ""
	d.settle()
	d.moveSecrets()
	problems := d.mend(o.Check)
	report := d.report(o.Language)
	report.Valid = !workflow.HasErrors(problems)
	for _, p := range problems {
		report.Problems = append(report.Problems, api.Problem{
			Code: p.Code, Severity: string(p.Severity), Message: p.In(o.Language), Path: p.Path, Line: p.Line, Column: p.Column,
		})
	}
	return Workflow{Definition: &d.def, Secrets: d.secrets, Report: report}
}

// moveSecrets takes secrets that stand in the definition out of it. What a kind takes a credential for is moved to a credential; of
// anything else the place is marked, and the report names it.
func (d *Draft) moveSecrets() {
	for range 5 { // moving one may show another
		document, err := payload.Marshal(&d.def)
		if err != nil {
			return // a definition that was built can be written; if not, checking it says so
		}
		found := credential.FindInline(document)
		if len(found) == 0 {
			return
		}
		for _, one := range found {
			if one.Certain {
				d.moveSecret(one.Path)
			}
		}
	}
}

// Numbered is the n-th name that is made of one.
func Numbered(name string, n int) string { return name + "_" + strconv.Itoa(n) }

// Rename gives a credential of the workflow another name, because the one it has is taken.
func (w *Workflow) Rename(from, to string) {
	written, named := payload.Quote(from), payload.Quote(to)
	for i := range w.Definition.Nodes {
		n := &w.Definition.Nodes[i]
		n.Configurations = bytes.ReplaceAll(n.Configurations, append([]byte(`"credential_id":`), written...), append([]byte(`"credential_id":`), named...))
	}
	for i := range w.Report.Credentials {
		if c := &w.Report.Credentials[i]; c.Name == from {
			c.Name = to
		}
	}
	for i := range w.Report.Nodes {
		for j, secret := range w.Report.Nodes[i].Secrets {
			if secret == from {
				w.Report.Nodes[i].Secrets[j] = to
			}
		}
	}
}

// InExpression is the path of a placeholder as an expression reads it: what is not there is null, whatever the workflow says of
// placeholders.
func InExpression(path string) string {
	if node, rest, ok := strings.Cut(path, ".outputs"); ok && !strings.ContainsAny(node, ".[") {
		return "steps." + node + rest
	}
	return path
}
