package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"tandem/api"
	"tandem/fault"
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
	canonical := workflow.Encode(source.Definition)
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

// toYAML writes JSON as YAML, with names in the same order and numbers with the same digits.
func toYAML(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	n, err := yamlNode(dec)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), nil
}

// yamlNode reads the next JSON value.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			part, err := yamlNode(dec) // names come as values do
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, part)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := dec.Token() // the end
		return n, err
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
