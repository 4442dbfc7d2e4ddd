// Package intake is the route by which files of other systems come in: they are imported, the secrets that stood in them become credentials, and the
// workflows are kept. It knows neither the systems nor how workflows are kept; package server says both.
package intake

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/importer"
	"tandem/route"
	"tandem/text"
	"tandem/workflow"
)

// Options is what the route needs. All of it must be there.
type Options struct {
	Router *route.Router
	// Import makes workflows of the content of a file.
	Import func(name string, content []byte, language string) (*importer.Imported, error)
	// Keep keeps a workflow under an id that is not taken.
	Keep func(ctx context.Context, p identity.Principal, def *workflow.Definition) (api.Saved, error)
	// Credentials lists the names of the credentials of the workspace, KeepCredential adds one.
	Credentials    func(ctx context.Context, p identity.Principal) ([]string, error)
	KeepCredential func(ctx context.Context, p identity.Principal, r api.CredentialRequest) error
}

type (
	input  struct{ Body api.ImportRequest }
	output struct{ Body api.ImportReport }
)

// Register registers the route.
func Register(o Options) {
	op := huma.Operation{Method: http.MethodPost, Path: "/import", OperationID: "import", Summary: "Make workflows of files of other systems", Tags: []string{"workflows"}}
	op.MaxBodyBytes = 32 << 20
	op.Description = "Exports of n8n, Dify, flows of steps and older workflow files. The answer says of every node what became of it. Secrets that stood in a file become credentials, which only admins can make. A file that cannot be read is told of, and the others are kept."
	route.Handle(o.Router, op, route.Editors(), func(ctx context.Context, p identity.Principal, in *input) (*output, error) {
		out := &output{api.ImportReport{Files: make([]api.ImportedFile, 0, len(in.Body.Files))}}
		for _, file := range in.Body.Files {
			told, err := o.file(ctx, p, file, in.Body.DryRun)
			if err != nil {
				return nil, err
			}
			out.Body.Files = append(out.Body.Files, told)
		}
		return out, nil
	})
}

// file imports one file.
func (o Options) file(ctx context.Context, p identity.Principal, file api.ImportFile, dry bool) (api.ImportedFile, error) {
	told := api.ImportedFile{Name: file.Name}
	imported, err := o.Import(file.Name, []byte(file.Content), route.LanguageOf(ctx))
	if err != nil {
		told.Error = fault.From(err).Message
		return told, nil
	}
	told.System = imported.System
	known, err := o.Credentials(ctx, p)
	if err != nil {
		return told, err
	}
	for i := range imported.Workflows {
		w := &imported.Workflows[i]
		if dry {
			w.Report.Definition = workflow.Encode(w.Definition)
		} else if err := o.keep(ctx, p, w, known); err != nil {
			return told, err
		}
		for j := range w.Report.Credentials {
			c := &w.Report.Credentials[j]
			c.Known = slices.Contains(known, c.Name)
			c.Created = c.Created && !dry
		}
		told.Workflows = append(told.Workflows, w.Report)
	}
	return told, nil
}

// keep keeps the credentials and the workflow.
func (o Options) keep(ctx context.Context, p identity.Principal, w *importer.Workflow, known []string) error {
	if len(w.Secrets) > 0 && !p.Has(identity.Admin) {
		return fault.Say(fault.Forbidden, text.Of("the file has secrets, which become credentials: let an admin import it, or take them out of the file"))
	}
	if !w.Report.Valid {
		return nil // the report says what is wrong
	}
	for _, s := range w.Secrets {
		name := s.Name
		for n := 2; slices.Contains(known, name); n++ {
			name = importer.Numbered(s.Name, n)
		}
		if name != s.Name {
			w.Rename(s.Name, name)
		}
		if err := o.KeepCredential(ctx, p, api.CredentialRequest{Name: name, Type: s.Type, Data: s.Data}); err != nil {
			return err
		}
	}
	saved, err := o.Keep(ctx, p, w.Definition)
	if err != nil {
		return err
	}
	w.Report.WorkflowID, w.Report.Revision = saved.Workflow.ID, saved.Workflow.Revision
	return nil
}
