package reference

import (
	"encoding/json"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"tandem/api"
)

// A node to copy is YAML whatever the kind says of itself.
func TestReadExample_IsYAML(t *testing.T) {
	t.Parallel()
	const about = `Takes: a list, "quoted" # and more`
	text, err := ReadExample(api.NodeKind{Type: "FLOW", Subtype: "ODD", Description: api.Text{En: about}}, api.NodeExample{Configurations: json.RawMessage(`{"a":{"b":"c: d"}}`), Output: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	var node struct {
		ID, Description, Type, Subtype string
		Configurations                 map[string]map[string]string
	}
	if err := yaml.Unmarshal([]byte(text.Node), &node); err != nil {
		t.Fatalf("%v:\n%s", err, text.Node)
	}
	if node.ID != "odd" || node.Description != about || node.Type != "FLOW" || node.Subtype != "ODD" || node.Configurations["a"]["b"] != "c: d" {
		t.Errorf("read back as %+v:\n%s", node, text.Node)
	}
}
