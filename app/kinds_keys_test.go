package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/server"
)

// toldKeys is what the web UI finds the output keys of nodes with, and what these are.
type toldKeys struct {
	Kinds []toldKind  `json:"kinds"`
	Cases []keyedNode `json:"cases"`
}

type toldKind struct {
	Name       string            `json:"name"`
	OlderNames []string          `json:"older_names,omitempty"`
	OutputKeys []string          `json:"output_keys"`
	KeyAliases map[string]string `json:"key_aliases"`
	Body       *api.NodeBody     `json:"body,omitempty"`
	Keys       []toldKey         `json:"keys"`
	Config     struct {
		Properties map[string]map[string]any `json:"properties"`
	} `json:"config_schema"`
}

type toldKey struct {
	Name string              `json:"name"`
	With map[string][]string `json:"with,omitempty"`
	From []api.NodeKeySource `json:"from,omitempty"`
}

type keyedNode struct {
	Kind           string          `json:"kind"`
	Configurations json.RawMessage `json:"configurations"`
	Keys           []string        `json:"keys"`
	// Entry is the key that leads into the body, of nodes that run one; Main is what a connection without a key means.
	Entry string `json:"entry,omitempty"`
	Main  string `json:"main,omitempty"`
}

// What GET /node-kinds says of output keys is enough to know those of a node: the unit tests of the web UI find with it the keys that
// the engine has for the same configurations. "go test ./app -run TestKinds_KeysForAnEditor -update" writes what they read.
func TestKinds_KeysForAnEditor(t *testing.T) {
	t.Parallel()
	const file = "../web/src/testing/kind_keys.json"
	nodes := []struct{ kind, config string }{
		{"FLOW.SWITCH", `{"switch_value": "a", "cases": [{"case": "x", "output_key": "one"}, {"case": 2, "output_port": "two"}, {"case": true}]}`},
		{"FLOW.SWITCH", `{"switch_value": "a", "cases": [{"case": "x"}, {"case": "y", "output_key": "x"}], "default_output_port": "rest"}`},
		{"FLOW.SWITCH", `{"branches": [{"branch_id": "a", "condition": "true"}, {"branch_id": "b", "is_default": true}]}`},
		{"FLOW.SWITCH", `{"branches": [{"branch_id": "a", "condition": "true"}], "default_output_key": "other"}`},
		{"FLOW.SWITCH", `{"propose": "Which?", "llm_profile": "p", "choices": [{"branch": "left"}, {"branch": "right"}]}`},
		{"FLOW.SPLIT", `{}`},
		{"FLOW.SPLIT", `{"split_mode": "items", "by_key": ["a"]}`},
		{"FLOW.SPLIT", `{"split_mode": "predicate", "predicate_paths": {"big": "item.big", "small": "item.small"}}`},
		{"FLOW.SPLIT", `{"split_mode": "by_key", "by_key": ["a", "b"]}`},
		{"FLOW.FOR_EACH", `{"items_path": "orders"}`},
		{"FLOW.TIMEOUT", `{}`},
		{"FLOW.DELAY", `{}`},
		{"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{}`},
		{"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"interaction_type": "approval", "approval_options": ["red", {"value": "blue", "label": "Blue"}]}`},
		{"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"interaction_type": "selection", "selection_options": ["red", {"value": "blue"}]}`},
		{"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"interaction_type": "review", "review_criteria": ["fast"]}`},
	}
	var told toldKeys
	for _, n := range nodes {
		if len(told.Cases) == 0 || told.Cases[len(told.Cases)-1].Kind != n.kind {
			told.Kinds = append(told.Kinds, tellKeys(t, n.kind))
		}
		p, _ := planOf(t, n.kind, n.config)
		one := keyedNode{Kind: n.kind, Configurations: json.RawMessage(n.config), Keys: p.Keys}
		if known, _ := Kinds().Kind(n.kind); known.Scope != nil && !p.Unscoped {
			one.Entry = known.Scope.Entry
		}
		one.Main, _ = p.MainKey()
		told.Cases = append(told.Cases, one)
	}
	raw, err := json.MarshalIndent(told, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	if *updateNodes {
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if diff := cmp.Diff(string(have), string(raw)); err != nil || diff != "" {
		t.Errorf("%s is not what the kinds say (%v); run: go test ./app -run TestKinds_KeysForAnEditor -update\n%s", file, err, diff)
	}
}

// tellKeys is what the API says of the output keys of a kind, and of the configuration fields that decide about them.
func tellKeys(t *testing.T, name string) toldKind {
	t.Helper()
	parts := Kinds()
	k, ok := parts.Get(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	all := server.TellKind(parts, k)
	told := toldKind{Name: name, OlderNames: all.OlderNames, OutputKeys: all.OutputKeys, KeyAliases: all.KeyAliases, Body: all.Body}
	told.Config.Properties = map[string]map[string]any{}
	keep := func(field string) map[string]any {
		kept := map[string]any{}
		property := gjson.GetBytes(all.ConfigSchema, "properties."+field)
		for _, what := range []string{"type", "default", "x-with", "x-older-names"} {
			if said := property.Get(what); said.Exists() {
				kept[what] = json.RawMessage(said.Raw)
			}
		}
		if !property.Exists() {
			t.Errorf("%s has no field %q", name, field)
		}
		told.Config.Properties[field] = kept
		return kept
	}
	for _, key := range all.Keys {
		told.Keys = append(told.Keys, toldKey{Name: key.Name, With: key.With, From: key.From})
		for field := range key.With { // order does not matter: each is kept by itself
			keep(field)
		}
		for _, from := range key.From {
			if with, ok := keep(from.Field)["x-with"].(json.RawMessage); ok {
				gjson.ParseBytes(with).ForEach(func(other, _ gjson.Result) bool { keep(other.Str); return true })
			}
			if list, _, ok := strings.Cut(from.Unless, "."); ok {
				keep(list)
			}
		}
	}
	return told
}

// What an editor must know besides of kinds: their older names, what they do with an unknown outcome, and what plain names mean in them.
func TestKinds_ForAnEditor(t *testing.T) {
	t.Parallel()
	parts := Kinds()
	told := map[string]api.NodeKind{}
	for _, name := range []string{"TRIGGER.MANUAL", "FLOW.IF", "FLOW.WHILE", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL"} {
		k, _ := parts.Get(name)
		told[name] = server.TellKind(parts, k)
	}
	manual, person := told["TRIGGER.MANUAL"], told["HUMAN_IN_THE_LOOP.IN_APP_APPROVAL"]
	if diff := cmp.Diff([]string{"START"}, manual.OlderNames); diff != "" {
		t.Errorf("older names (-want +got):\n%s", diff)
	}
	if manual.OnUnknown != "ask" || person.OnUnknown != "retry" {
		t.Errorf("an unknown outcome: %q and %q", manual.OnUnknown, person.OnUnknown)
	}
	if manual.PlainNames != "" || told["FLOW.IF"].PlainNames != "input" || told["FLOW.WHILE"].PlainNames != "carried" {
		t.Errorf("plain names: %q, %q and %q", manual.PlainNames, told["FLOW.IF"].PlainNames, told["FLOW.WHILE"].PlainNames)
	}
}

// TestKinds_TellEachInputOnce: what a kind reads stands once in what people are told of it.
func TestKinds_TellEachInputOnce(t *testing.T) {
	t.Parallel()
	parts := Kinds()
	for _, name := range parts.Names() {
		k, _ := parts.Get(name)
		seen := map[string]bool{}
		for _, input := range server.TellKind(parts, k).Inputs {
			if seen[input.Name] {
				t.Errorf("%s tells its input %q twice", name, input.Name)
			}
			seen[input.Name] = true
		}
	}
}
