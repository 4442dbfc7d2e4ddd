// Package intake is the route by which files of other systems come in: they are imported, the secrets that stood in them become
// credentials, and the workflows are kept. It knows neither the systems nor how workflows are kept; package server says both.
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
	op := huma.Operation{Method: http.MethodPost, Path: "/import", OperationID: "import",
		Summary: "Make workflows of files of other systems", Tags: []string{"workflows"}}
	op.MaxBodyBytes = 32 << 20
	op.Description = "Exports of n8n, Dify, flows of steps and older workflow files. The answer says of every file what was kept or why it was not, and of every node " +
		"what became of it. Secrets that stood in a file become credentials, which only admins can make. What cannot be kept is told of, and the rest is kept."
	route.Handle(o.Router, op, route.Editors(), func(ctx context.Context, p identity.Principal, in *input) (*output, error) {
		out := &output{api.ImportReport{Files: make([]api.ImportedFile, 0, len(in.Body.Files))}}
		for _, file := range in.Body.Files {
			out.Body.Files = append(out.Body.Files, o.file(ctx, p, file, in.Body.DryRun))
		}
		return out, nil
	})
}

// file imports one file. Whatever happens is told of it: files before it are kept, and those after it are to be tried.
func (o Options) file(ctx context.Context, p identity.Principal, file api.ImportFile, dry bool) api.ImportedFile {
	told := api.ImportedFile{Name: file.Name}
	imported, known, err := o.readFile(ctx, p, file)
	if err != nil {
		told.Error = o.why(ctx, p, err)
		return told
	}
	told.System = imported.System
	for i := range imported.Workflows {
		w := &imported.Workflows[i]
		moved := make(map[string]bool, len(w.Secrets))
		for _, s := range w.Secrets {
			moved[s.Name] = true
		}
		for j := range w.Report.Credentials {
			c := &w.Report.Credentials[j]
			c.Created, c.Known = false, slices.Contains(known, c.Name) && !moved[c.Name]
		}
		if dry {
			w.Report.Definition = workflow.Encode(w.Definition)
			err = mayKeep(p, w)
		} else {
			known, err = o.keep(ctx, p, w, known)
		}
		if err != nil {
			w.Report.Error = o.why(ctx, p, err)
		}
		told.Workflows = append(told.Workflows, w.Report)
	}
	return told
}

// readFile makes workflows of a file, and says which names of credentials are taken.
func (o Options) readFile(ctx context.Context, p identity.Principal, file api.ImportFile) (*importer.Imported, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	imported, err := o.Import(file.Name, []byte(file.Content), route.LanguageOf(ctx))
	if err != nil {
		return nil, nil, err
	}
	known, err := o.Credentials(ctx, p)
	return imported, known, err
}

// why tells an error in the language of the caller. What is ours to mend is in the log too.
func (o Options) why(ctx context.Context, p identity.Principal, err error) string {
	return o.Router.Problem(ctx, p, err).Detail
}

// mayKeep says why this caller could not keep a workflow.
func mayKeep(p identity.Principal, w *importer.Workflow) error {
	if len(w.Secrets) > 0 && !p.Has(identity.Admin) {
		return fault.Say(fault.Forbidden, text.Of("the file has secrets, which become credentials: let an admin import it, or take them out of the file"))
	}
	return nil
}

// keep keeps the credentials and the workflow. It returns the names of credentials that are taken now.
func (o Options) keep(ctx context.Context, p identity.Principal, w *importer.Workflow, known []string) ([]string, error) {
	if err := mayKeep(p, w); err != nil {
		return known, err
	}
	if !w.Report.Valid {
		return known, nil // the report says what is wrong
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
			return known, err
		}
		known = append(known, name)
		for i := range w.Report.Credentials {
			if c := &w.Report.Credentials[i]; c.Name == name {
				c.Created = true
			}
		}
	}
	saved, err := o.Keep(ctx, p, w.Definition)
	if err != nil {
		return known, err
	}
	w.Report.WorkflowID, w.Report.Revision = saved.Workflow.ID, saved.Workflow.Revision
	return known, nil
}
