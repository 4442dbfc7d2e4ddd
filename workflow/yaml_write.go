package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"tandem/payload"
)

// ToYAML writes JSON as YAML, with names in the same order and numbers with the same digits.
func ToYAML(raw []byte) ([]byte, error) {
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

// ToJSON reads a document of any content, in JSON or YAML, as JSON: with names in the same order, numbers with the same digits, and within
// the limits of a definition. What is wrong with it is told as of a definition; of names that stand twice the last one counts.
func ToJSON(data []byte, opts Options) (json.RawMessage, []Problem) {
	s, _, problem := readDocument(data, opts.withDefaults())
	if problem != nil {
		return nil, []Problem{*problem}
	}
	return s.root.raw(), nil
}
