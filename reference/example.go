package reference

import (
	"strconv"
	"strings"

	"tandem/api"
	"tandem/payload"
	"tandem/workflow"
)

// Example is an example of a kind as a person reads it, in YAML.
type Example struct {
	// Node is the node as it stands in a workflow, Inputs what its connections bring, Output the payloads by output key.
	Node   string
	Inputs []string
	Output string
}

// ReadExample writes an example of a kind as YAML.
func ReadExample(k api.NodeKind, example api.NodeExample) (Example, error) {
	var text Example
	head, err := payload.Encode(struct {
		ID          string `json:"id"`
		Description string `json:"description"`
		Type        string `json:"type"`
		Subtype     string `json:"subtype"`
	}{strings.ToLower(k.Subtype), k.Description.En, k.Type, k.Subtype})
	if err != nil {
		return text, err
	}
	if head, err = workflow.ToYAML(head); err != nil {
		return text, err
	}
	text.Node = string(head)
	configurations, err := workflow.ToYAML(example.Configurations)
	if err != nil {
		return text, err
	}
	if strings.TrimSpace(string(configurations)) != "{}" {
		text.Node += "configurations:\n" + Indented("  ", string(configurations))
	}
	for _, input := range example.Inputs {
		raw, err := workflow.ToYAML(input)
		if err != nil {
			return text, err
		}
		text.Inputs = append(text.Inputs, string(raw))
	}
	raw, err := workflow.ToYAML(example.Output)
	text.Output = string(raw)
	return text, err
}

// Indented is a text with something in front of each of its lines.
func Indented(with, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(with + line)
	}
	return b.String()
}

// Quoted are values in quotation marks.
func Quoted(values []string) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strconv.Quote(v)
	}
	return list
}
