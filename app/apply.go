package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/payload"
	"tandem/validation"
	"tandem/workflow"
)

// Save keeps a definition under its id: as a new workflow, or as a new revision of the one that is there.
func (c *Connection) Save(ctx context.Context, def *workflow.Definition) (api.Saved, error) {
	return c.KeepWorkflow(ctx, def.Metadata.ID, workflow.Encode(def), false)
}

// ApplyFile keeps the definition in a file. Whether it is right is for the API to say, whose kinds may be others than
// this program's. A file with errors is reported and nothing is kept.
func (c *Connection) ApplyFile(ctx context.Context, file string, stdin io.Reader) (Report, api.Saved, error) {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return validation.NewReport(file, []workflow.Problem{*problem}), api.Saved{}, nil
	}
	report, err := c.checkFile(ctx, file, data)
	if err != nil || !report.Valid {
		return report, api.Saved{}, err
	}
	source, problems := workflow.Parse(data, workflow.Options{Kinds: Kinds()})
	if source == nil {
		return report, api.Saved{}, fault.Newf(fault.Unsupported, "%s is right for the server and cannot be read by this program, which may be older: %v", file, problems)
	}
	nameAfter(source.Definition, file)
	// The text itself: the server keeps its comments.
	saved, err := c.KeepWorkflow(ctx, source.Definition.Metadata.ID, data, source.Format == workflow.YAML)
	return report, saved, err
}

// checkFile is everything that the API finds wrong with the content of a file, what the workspace lacks included.
func (c *Connection) checkFile(ctx context.Context, file string, data []byte) (Report, error) {
	verdict, err := c.ValidateWorkflow(ctx, data, !json.Valid(data))
	if err != nil {
		return validation.NewReport(file, nil), err
	}
	report := validation.NewReport(file, nil)
	for _, p := range verdict.Problems {
		report.Problems = append(report.Problems, workflow.Problem{
			Code: p.Code, Severity: workflow.Severity(p.Severity), Message: p.Message, Path: p.Path, Line: p.Line, Column: p.Column,
		})
	}
	report.Valid = verdict.Valid
	return report, nil
}

// Export returns a workflow's definition as a file that ApplyFile takes, without the fields that only a server sets.
func (c *Connection) Export(ctx context.Context, id string, revision int64, asJSON bool) ([]byte, error) {
	w, err := c.Workflow(ctx, id, revision)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("write workflow %q: %w", id, err)
	}
	source, problems := workflow.Parse(raw, workflow.Options{Kinds: Kinds()})
	if source == nil {
		return nil, fault.Newf(fault.Unsupported, "workflow %q cannot be read by this program, which may be older than the server: %v", id, problems)
	}
	canonical, err := c.Portable(ctx, json.RawMessage(workflow.Encode(source.Definition)))
	if err != nil {
		return nil, err
	}
	if asJSON {
		var out bytes.Buffer
		if err := json.Indent(&out, canonical, "", "  "); err != nil {
			return nil, fmt.Errorf("write workflow %q: %w", id, err)
		}
		out.WriteByte('\n')
		return out.Bytes(), nil
	}
	return workflow.ToYAML(canonical)
}

// Source returns the text of a workflow as its author wrote it.
func (c *Connection) Source(ctx context.Context, id string, revision int64) ([]byte, error) {
	w, err := c.WorkflowSource(ctx, id, revision)
	if err == nil && w.Source == "" {
		err = fault.Newf(fault.NotFound, "no text was kept of revision %d of workflow %q: a program wrote it, or an older version kept it; export it with --format yaml", w.Metadata.Revision, id)
	}
	return []byte(w.Source), err
}

// Portable is a document that names credentials by their names instead of their ids, so that it can be used in another installation. A
// caller who may not list credentials gets the document with the ids.
func (c *Connection) Portable(ctx context.Context, document any) (json.RawMessage, error) {
	raw, err := payload.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	if len(credential.References(raw)) == 0 {
		return raw, nil
	}
	list, err := c.Credentials(ctx)
	if fault.CodeOf(err) == fault.Forbidden {
		return raw, nil
	}
	names := make(map[string]string, len(list.Credentials))
	for _, one := range list.Credentials {
		names[one.ID] = one.Name
	}
	return credential.Named(raw, names), err
}
