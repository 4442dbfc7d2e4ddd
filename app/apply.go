package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	yaml "go.yaml.in/yaml/v3"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/payload"
	"tandem/validation"
	"tandem/workflow"
)

// Save keeps a definition under its id: as a new workflow, or as a new revision of the one that is there.
func (c *Connection) Save(ctx context.Context, def *workflow.Definition) (api.Saved, error) {
	body := workflow.Encode(def)
	saved, err := c.UpdateWorkflow(ctx, def.Metadata.ID, body, false, 0)
	if fault.CodeOf(err) == fault.NotFound {
		saved, err = c.CreateWorkflow(ctx, body, false)
	}
	return saved, err
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
	saved, err := c.Save(ctx, source.Definition)
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

// Export returns a workflow's definition as a file: what ApplyFile takes, without what a server knows besides.
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
	return toYAML(canonical)
}

// Portable is a document that names credentials by their names instead of their ids, so that it can be used in another installation. Who may not list
// credentials gets the ids, which are all that the document has.
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

// toYAML writes JSON as YAML, with names in the same order and numbers with the same digits.
func toYAML(raw []byte) ([]byte, error) {
	value, err := payload.Normalize(raw, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(yamlNode(value)); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), nil
}

// yamlNode is a JSON value in YAML.
func yamlNode(raw []byte) *yaml.Node {
	scalar := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	n := &yaml.Node{}
	switch raw[0] {
	case '"':
		return scalar("!!str", payload.Text(raw))
	case 't', 'f':
		return scalar("!!bool", string(raw))
	case 'n':
		return scalar("!!null", "null")
	case '{':
		n.Kind = yaml.MappingNode
		payload.EachField(raw, func(key, value []byte) bool {
			n.Content = append(n.Content, scalar("!!str", payload.Unquote(key)), yamlNode(value))
			return true
		})
	case '[':
		n.Kind = yaml.SequenceNode
		payload.EachItem(raw, func(value []byte) bool {
			n.Content = append(n.Content, yamlNode(value))
			return true
		})
	default:
		tag := "!!int"
		if bytes.ContainsAny(raw, ".eE") {
			tag = "!!float"
		}
		return scalar(tag, string(raw))
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}
