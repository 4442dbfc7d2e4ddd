// Package app puts a Tandem together: which kinds of nodes there are, an instance on a data directory, the server around it, and what the commands
// do.
//
// The command line and programs that embed Tandem import app; no package below it may.
package app

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tandem/agent"
	"tandem/api"
	"tandem/builtin/models"
	"tandem/fault"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/server"
)

// Kinds is every kind that a workflow can name, as definitions are checked against them.
func Kinds() *node.Registry { return theKinds() }

// theKinds are those of this program with nothing to run them with: they answer what there is to know about kinds. read-only
var theKinds = sync.OnceValue(func() *node.Registry {
	var registry node.Registry
	register(&registry, builtIn(outbound.Options{}, kindDeps{Models: &models.Models{}, Memories: memory.New(memory.Options{}), Tools: &mcp.Pool{}, Agents: agents{}}))
	return &registry
})

// builtIn are the parts of this program without an instance: kinds have what they are given here, and nothing else.
func builtIn(reach outbound.Options, k kindDeps) *plug.Set {
	deps := plug.Deps{HTTP: outbound.New(reach), Log: slog.New(slog.DiscardHandler)}
	set, err := gather(deps, families(func(*plug.Set) kindDeps { return k }), nil)
	if err != nil {
		panic(err) // two of our own parts have one name: no program can be made of them
	}
	return set
}

// register fills a registry with the kinds that run, and the names of those that do not yet unless an extension brings them.
func register(registry *node.Registry, set *plug.Set) {
	registry.Register(set.Kinds...)
	for _, about := range reservedKinds() {
		if _, runs := registry.Get(about.Name); !runs {
			registry.Reserve(about)
		}
	}
}

// reservedKinds are the names that the format has for kinds which this version cannot run. Files that have them can be read and drawn; checking
// them says so.
func reservedKinds() []node.About {
	older := map[string][]string{
		"EXTERNAL_ACTION.API_CALL": {"API"}, "TOOL.GOOGLE_CALENDAR_TOOL": {"TOOL.GOOGLE_CALENDAR"}, "TOOL.OUTLOOK_CALENDAR_TOOL": {"TOOL.OUTLOOK_CALENDAR"},
		"TOOL.CALENDAR_GENERIC_TOOL": {"TOOL.CALENDAR_GENERIC"},
	}
	var list []node.About
	for typ, subtypes := range map[string]string{ // order does not matter: a registry has none
		"TRIGGER": "EMAIL GITHUB SLACK",
		"EXTERNAL_ACTION": "API_CALL WEBHOOK NOTIFICATION SLACK DISCORD_ACTION TELEGRAM_ACTION EMAIL GITHUB GITLAB_ACTION JIRA_ACTION GOOGLE_CALENDAR TRELLO NOTION " +
			"AWS_ACTION GCP_ACTION AZURE_ACTION",
		"TOOL": "GOOGLE_CALENDAR_TOOL OUTLOOK_CALENDAR_TOOL CALENDAR_GENERIC_TOOL EMAIL_TOOL GMAIL_TOOL",
	} {
		for _, subtype := range strings.Fields(subtypes) {
			name := typ + "." + subtype
			list = append(list, node.About{Name: name, Older: older[name]})
		}
	}
	return list
}

// NodeKinds lists the kinds that this program can run, as a server of it does.
func NodeKinds() []api.NodeKind {
	kinds := theKinds()
	var list []api.NodeKind
	for _, k := range kinds.List() {
		if k.About.Name != agent.TaskKind { // agents are made of it, people are not to
			list = append(list, server.TellKind(kinds, k))
		}
	}
	return list
}

// NodeKind returns one of them.
func NodeKind(name string) (api.NodeKind, error) {
	var names []string
	for _, k := range NodeKinds() {
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	hint := `; "tandem nodes" lists those that can`
	if near := fault.Nearest(strings.ToUpper(name), names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return api.NodeKind{}, fault.Newf(fault.NotFound, "no kind %q can be run here%s", name, hint)
}

// KindField is one configuration of a kind, as a person reads it.
type KindField struct {
	// Name is the path: "filter_conditions[].field".
	Name     string
	Type     string
	Required bool
	Default  string
	// Allowed are the values or the range that it may have.
	Allowed string
	Meaning api.Text
	// OlderNames and OlderValues are accepted and not offered.
	OlderNames, OlderValues []string
	// With are the values of other fields beside which it is looked at.
	With map[string][]string
}

// schema is what is read of a JSON Schema here.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	Default    json.RawMessage    `json:"default"`
	En         string             `json:"description"`
	Zh         string             `json:"x-description-zh"`

	OlderNames  []string            `json:"x-older-names"`
	OlderValues []string            `json:"x-older-values"`
	With        map[string][]string `json:"x-with"`
	Need        [][]string          `json:"x-need"`
}

// UnmarshalJSON reads a schema; one that is only true takes anything.
func (s *schema) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" || string(raw) == "false" {
		return nil
	}
	type plain schema
	return json.Unmarshal(raw, (*plain)(s))
}

// KindFields reads the configurations of a kind from their schema: what is required first, then by name.
func KindFields(config json.RawMessage) ([]KindField, error) {
	var s schema
	if err := json.Unmarshal(config, &s); err != nil {
		return nil, fmt.Errorf("read the schema of the configurations: %w", err)
	}
	return s.fields(""), nil
}

// KindNeeds are groups of configurations of which a kind needs one each.
func KindNeeds(config json.RawMessage) ([][]string, error) {
	var s schema
	if err := json.Unmarshal(config, &s); err != nil {
		return nil, fmt.Errorf("read the schema of the configurations: %w", err)
	}
	return s.Need, nil
}

func (s *schema) fields(prefix string) []KindField {
	var list []KindField
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		ra, rb := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := s.Properties[name]
		f := KindField{Name: prefix + name, Type: p.typeName(), Required: slices.Contains(s.Required, name), Default: string(p.Default), Allowed: p.allowed(), Meaning: api.Text{En: p.En, Zh: p.Zh},
			OlderNames: p.OlderNames, OlderValues: p.OlderValues, With: p.With}
		list = append(list, f)
		inner, path := p, f.Name
		for inner.Items != nil {
			inner, path = inner.Items, path+"[]"
		}
		list = append(list, inner.fields(path+".")...)
	}
	return list
}

func (s *schema) typeName() string {
	switch t := s.Type.(type) {
	case string:
		if t == "array" && s.Items != nil {
			return "list of " + s.Items.typeName()
		}
		return t
	case []any:
		var names []string
		list := false
		for _, one := range t {
			if text, ok := one.(string); ok && text != "null" {
				names = append(names, text)
				list = list || text == "array"
			}
		}
		if len(names) == 1 && list && s.Items != nil {
			return "list of " + s.Items.typeName()
		}
		return strings.Join(names, " or ")
	}
	return "any"
}

func (s *schema) allowed() string {
	if s.Items != nil && len(s.Items.Enum) > 0 {
		inner := *s.Items
		inner.OlderValues = s.OlderValues
		return inner.allowed()
	}
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			if text := fmt.Sprint(v); !slices.Contains(s.OlderValues, text) {
				values = append(values, text)
			}
		}
		return strings.Join(values, ", ")
	case s.Minimum != nil && s.Maximum != nil:
		return digits(*s.Minimum) + " to " + digits(*s.Maximum)
	case s.Minimum != nil:
		return "at least " + digits(*s.Minimum)
	case s.Maximum != nil:
		return "at most " + digits(*s.Maximum)
	}
	return ""
}

// digits is a number without an exponent.
func digits(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// SameFields is the first key before another one that has the same fields; empty: there is none.
func SameFields(keys []api.NodeKey, i int) string {
	for _, before := range keys[:i] {
		if len(keys[i].Fields) > 0 && slices.Equal(before.Fields, keys[i].Fields) {
			return before.Name
		}
	}
	return ""
}

// KindExample is an example of a kind as a person reads it, in YAML.
type KindExample struct {
	// Node is the node as it stands in a workflow, Inputs what its connections bring, Output the payloads by output key.
	Node   string
	Inputs []string
	Output string
}

// ReadKindExample writes an example of a kind as YAML.
func ReadKindExample(k api.NodeKind, example api.NodeExample) (KindExample, error) {
	text := KindExample{Node: fmt.Sprintf("id: %s\ndescription: %s\ntype: %s\nsubtype: %s\n", strings.ToLower(k.Subtype), k.Description.En, k.Type, k.Subtype)}
	configurations, err := toYAML(example.Configurations)
	if err != nil {
		return text, err
	}
	if strings.TrimSpace(string(configurations)) != "{}" {
		text.Node += "configurations:\n" + Indented("  ", string(configurations))
	}
	for _, input := range example.Inputs {
		raw, err := toYAML(input)
		if err != nil {
			return text, err
		}
		text.Inputs = append(text.Inputs, string(raw))
	}
	raw, err := toYAML(example.Output)
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
