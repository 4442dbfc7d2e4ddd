package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// Tool is a tool as its server describes it.
type Tool struct {
	// ID is server/tool.
	ID          string `json:"id"`
	Server      string `json:"server_id"`
	Name        string `json:"tool_name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	// InputSchema and OutputSchema are what the server sent, byte for byte.
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  Annotations     `json:"annotations"`
	// Definition is all that tells a model or a person what the tool is, as canonical JSON; Hash is its SHA-256.
	Definition json.RawMessage `json:"-"`
	Hash       string          `json:"-"`
}

// Annotations are what a server says of its tool's effects. They are its word, and not proof.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// Outputs are the names of what the tool has declared to return: the properties of its output schema. None: it has not said.
func (t Tool) Outputs() []string {
	var names []string
	gjson.GetBytes(t.OutputSchema, "properties").ForEach(func(name, _ gjson.Result) bool {
		names = append(names, name.Str)
		return true
	})
	return names
}

// Effect says what repeating a call of a tool means. A tool that only reads may be repeated, yet it is not pure: what it reads
// changes. A tool of which nothing is said is called once.
func Effect(t Tool) workflow.Effect {
	if t.Annotations.ReadOnly || t.Annotations.Idempotent {
		return workflow.Idempotent
	}
	return workflow.Once
}

// ToolID joins the names of a server and a tool.
func ToolID(server, tool string) string { return server + "/" + tool }

// SplitToolID is the way back. Only names of tools may hold a slash.
func SplitToolID(id string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(id, "/")
	return server, tool, ok && server != "" && tool != ""
}

// maxModelName is how long the name of a function may be for any of the model providers.
const maxModelName = 64

// ModelName is the name of a tool for models: server__tool, of letters, digits, dashes and underscores. One that had to be cut
// or changed ends with a hash, so that different tools keep different names.
func ModelName(server, tool string) string {
	plain := server + "__" + tool
	name := regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(plain, "_")
	if name == plain && len(name) <= maxModelName {
		return name
	}
	sum := sha256.Sum256([]byte(plain))
	return name[:min(len(name), maxModelName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// ReadTool reads a tool: an element of a tools/list result, or the definition that a pin keeps.
func ReadTool(server string, raw json.RawMessage) (Tool, error) {
	var w struct {
		Name         string          `json:"name"`
		Title        string          `json:"title"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Annotations  Annotations     `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Tool{}, err
	}
	if w.Name == "" {
		return Tool{}, errors.New("a tool without a name")
	}
	t := Tool{ID: ToolID(server, w.Name), Server: server, Name: w.Name,
		Title: cmp.Or(w.Title, w.Annotations.Title), Description: w.Description,
		InputSchema: w.InputSchema, OutputSchema: w.OutputSchema, Annotations: w.Annotations}
	if len(t.InputSchema) == 0 || string(t.InputSchema) == "null" {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if string(t.OutputSchema) == "null" {
		t.OutputSchema = nil
	}
	// What the server keeps for itself and pictures may change without anybody's leave; everything else may mislead a model.
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return Tool{}, err
	}
	delete(all, "_meta")
	delete(all, "icons")
	rest, err := json.Marshal(all)
	if err != nil {
		return Tool{}, err
	}
	if t.Definition, err = payload.Canonical(rest); err != nil {
		return Tool{}, err
	}
	sum := sha256.Sum256(t.Definition)
	t.Hash = hex.EncodeToString(sum[:])
	return t, nil
}

// Pin returns tools as an activation keeps them.
func Pin(tools []Tool) map[string]store.MCPPin {
	pins := make(map[string]store.MCPPin, len(tools))
	for _, t := range tools {
		pins[t.Name] = store.MCPPin{Definition: t.Definition, Hash: t.Hash}
	}
	return pins
}

// ChangeKind says how a tool differs.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is a difference between what was accepted and what is.
type Change struct {
	Tool string     `json:"tool"`
	Kind ChangeKind `json:"kind"`
	// Before and After are canonical definitions, empty where there is none.
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
	Summary string          `json:"summary"`
}

// Drift compares what was accepted with what is, in order of the tools' names.
func Drift(pinned map[string]store.MCPPin, current []Tool) []Change {
	var changes []Change
	left := maps.Clone(pinned)
	for _, t := range current {
		pin, known := left[t.Name]
		delete(left, t.Name)
		switch {
		case !known:
			changes = append(changes, Change{Tool: t.Name, Kind: Added, After: t.Definition, Summary: fmt.Sprintf("%q is new", t.Name)})
		case pin.Hash != t.Hash:
			changes = append(changes, Change{Tool: t.Name, Kind: Changed, Before: pin.Definition, After: t.Definition,
				Summary: fmt.Sprintf("%q has changed: %s", t.Name, strings.Join(differences(pin.Definition, t.Definition), ", "))})
		}
	}
	for name, pin := range left {
		changes = append(changes, Change{Tool: name, Kind: Removed, Before: pin.Definition, Summary: fmt.Sprintf("%q is gone", name)})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return changes
}

// maxDifferences is how many places a summary names.
const maxDifferences = 8

// differences names the places in which two definitions differ, such as inputSchema.properties.path.
func differences(before, after json.RawMessage) []string {
	var a, b any
	if payload.Read(before, &a) != nil || payload.Read(after, &b) != nil {
		return []string{"its definition"}
	}
	var places []string
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		if len(places) > maxDifferences {
			return
		}
		ma, aok := a.(map[string]any)
		mb, bok := b.(map[string]any)
		if !aok || !bok {
			// Inside lists a place says little.
			ja, aerr := json.Marshal(a)
			jb, berr := json.Marshal(b)
			if aerr != nil || berr != nil || !bytes.Equal(ja, jb) {
				places = append(places, cmp.Or(path, "its definition"))
			}
			return
		}
		names := maps.Clone(ma)
		maps.Copy(names, mb)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			walk(strings.TrimPrefix(path+"."+name, "."), ma[name], mb[name])
		}
	}
	walk("", a, b)
	if len(places) == 0 {
		return []string{"the way numbers are written"} // to a decoder they are the same
	}
	if len(places) > maxDifferences {
		places = append(places[:maxDifferences], "…")
	}
	return places
}

// maxDifference is how much of one side of a difference is shown, in characters.
const maxDifference = 2_000

// Difference shows how two definitions differ, for people: each part that is different, as it was and as it is. Either may be empty.
func Difference(before, after json.RawMessage) []string {
	parts := func(definition json.RawMessage) map[string]json.RawMessage {
		all := map[string]json.RawMessage{}
		if len(definition) > 0 && json.Unmarshal(definition, &all) != nil {
			all["definition"] = definition
		}
		return all
	}
	was, is := parts(before), parts(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	lines := []string{}
	show := func(sign string, raw json.RawMessage) {
		text := payload.Text(raw)
		if runes := []rune(text); len(runes) > maxDifference {
			text = string(runes[:maxDifference]) + "…"
		}
		lines = append(lines, "  "+sign+" "+text)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if bytes.Equal(was[name], is[name]) {
			continue
		}
		lines = append(lines, name)
		if raw, ok := was[name]; ok {
			show("-", raw)
		}
		if raw, ok := is[name]; ok {
			show("+", raw)
		}
	}
	return lines
}
