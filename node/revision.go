package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node/handed"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Revision is a workflow revision that is ready to run: its graph, the kind of every node, and all templates, conditions
// and conversions compiled once. It is immutable, except for what it keeps to use again, and shared by all executions of the revision.
type Revision struct {
	Definition *workflow.Definition
	Graph      *workflow.Graph

	onUnresolved dataflow.Unresolved
	nodes        []readyNode
	conversions  []*conversion // by edge; nil where there is none
	// used are runs of brief nodes that are over, to be reused.
	used sync.Pool // of *run
}

// readyNode is what running a node needs besides its data.
type readyNode struct {
	kind   Kind
	config *dataflow.Template
	params *dataflow.Template
	// apart are the fields that see other names than the rest of the configuration, each an object of that one field.
	apart []apart
	// syncs are the names its output_params list.
	syncs []string
	// expressions are its conditions by their source.
	expressions map[string]*expr.Program
	// bound are the texts whose placeholders are values beside them, by the text as written.
	bound map[string]*dataflow.Template
	// connected are the keys something is connected to.
	connected map[string]bool
	// brief says that the kind is brief, and nothing that may take longer is connected to it.
	brief bool
	// fills is how its input is filled; nil: it is not.
	fills *fills
	// pinned are the outputs that it has without running; nil: it runs.
	pinned Done
	// override is what the node's template says about its input and output; never nil.
	override *override
	// skims are the fields of its input that it reads by itself; nil: all.
	skims *payload.Reads
	// hands says that all fields of its input are in its output, unless they are replaced.
	hands bool
}

// apart is a configuration field whose placeholders find names of their own first.
type apart struct {
	template *dataflow.Template
	own      func(input json.RawMessage) json.RawMessage
}

// conversion is a connection's conversion function.
type conversion struct {
	program  *expr.Program
	language workflow.Language
	source   string // of code
	function handed.Function
}

// Prepare makes a revision ready to run with the kinds of a registry. Overrides are the overrides of the templates that
// its nodes name, by template.
func Prepare(def *workflow.Definition, graph *workflow.Graph, kinds *Registry, overrides map[string]Override) (*Revision, error) {
	unresolved, err := dataflow.ParseUnresolved(def.Metadata.Settings.OnUnresolved)
	if err != nil {
		return nil, err
	}
	r := &Revision{
		Definition: def, Graph: graph, onUnresolved: unresolved,
		nodes: make([]readyNode, len(graph.Nodes)), conversions: make([]*conversion, len(graph.Edges)),
	}
	for i := range graph.Nodes {
		if err := r.prepareNode(i, kinds, overrides); err != nil {
			f := fault.From(err)
			return nil, fault.Newf(f.Code, "node %q: %s", graph.Nodes[i].ID, text.OfError(f)).WithCause(err)
		}
	}
	for i := range graph.Edges {
		if !graph.Edges[i].Converts {
			continue
		}
		source := def.Connections[i].ConversionFunction
		c := &conversion{language: workflow.LanguageOf(source), source: source}
		if c.language == workflow.LanguageExpression {
			if c.program, err = expr.Compile(source); err != nil {
				return nil, fmt.Errorf("connection %q: %w", graph.Edges[i].ID, err)
			}
			c.function = handed.Expression(c.program)
		} else {
			c.function = handed.Script(string(c.language), source)
		}
		r.conversions[i] = c
		r.nodes[graph.Edges[i].From].brief = false
		r.nodes[graph.Edges[i].To].brief = false
	}
	return r, nil
}

func (r *Revision) prepareNode(i int, kinds *Registry, overrides map[string]Override) error {
	node, def, ready := &r.Graph.Nodes[i], &r.Definition.Nodes[i], &r.nodes[i]
	kind, ok := kinds.Get(node.Kind)
	if !ok {
		return fault.Newf(fault.Unsupported, "the kind %s cannot be run by this installation", node.Kind)
	}
	ready.kind, ready.brief = kind, kind.Brief
	if len(def.Pinned) > 0 {
		if err := json.Unmarshal(def.Pinned, &ready.pinned); err != nil {
			return fault.Newf(fault.Internal, "its pinned outputs cannot be read: %w", err)
		}
		bare := *def // it does not run, so that its configuration does not matter
		bare.Configurations, bare.InputParams = nil, nil
		def, kind.Own = &bare, nil
	}
	ready.expressions = make(map[string]*expr.Program, len(node.Plan.Expressions))
	shielded := make([]string, 0, len(node.Plan.Shielded)+len(node.Plan.Expressions))
	const prefix = "configurations."
	for _, path := range node.Plan.Shielded {
		shielded = append(shielded, path[len(prefix):])
	}
	for _, e := range node.Plan.Expressions {
		program, err := expr.Compile(e.Source)
		if err != nil {
			return err
		}
		ready.expressions[e.Source] = program
		shielded = append(shielded, e.Path[len(prefix):])
	}
	var err error
	if ready.bound, err = bindable(objectOr(def.Configurations), node.Plan.Bound); err != nil {
		return err
	}
	for _, path := range node.Plan.Bound {
		shielded = append(shielded, path[len(prefix):])
	}
	if ready.apart, err = setApart(objectOr(def.Configurations), &kind); err != nil {
		return err
	}
	for field := range kind.Own { // order does not matter: they only separate the searches
		shielded = append(shielded, field)
	}
	marks := dataflow.Marks{Shielded: shielded}
	if kind.prompt != nil {
		gjson.ParseBytes(objectOr(def.Configurations)).ForEach(func(key, _ gjson.Result) bool {
			if kind.prompt(key.Str) {
				marks.Prompts = append(marks.Prompts, key.Str)
			}
			return true
		})
	}
	if ready.config, err = dataflow.CompileMarked(objectOr(def.Configurations), marks); err != nil {
		return err
	}
	if ready.params, err = dataflow.CompileMarked(objectOr(def.InputParams), dataflow.Marks{Prompts: kind.promptInputs}); err != nil {
		return err
	}
	if ready.syncs, err = dataflow.ParamNames(def.OutputParams); err != nil {
		return err
	}
	if ready.override, err = overrideOf(def, overrides); err != nil {
		return err
	}
	if ready.fills, err = fillsOf(def, &kind, overrides, kinds); err != nil {
		return err
	}
	if ready.fills != nil {
		ready.brief = false
	}
	ready.skims = ready.skimsNode(objectOr(def.Configurations))
	ready.hands = ready.skims != nil && ready.kind.Hands != nil && ready.kind.Hands(objectOr(def.Configurations))
	ready.connected = make(map[string]bool, len(node.Out))
	for _, e := range node.Out {
		ready.connected[r.Graph.Edges[e].Key] = true
	}
	return nil
}

// bindable compiles the texts at the paths, which are those of a plan.
func bindable(config json.RawMessage, paths []string) (map[string]*dataflow.Template, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	texts := map[string]*dataflow.Template{}
	for _, path := range paths {
		path = strings.NewReplacer("[", ".", "]", "").Replace(strings.TrimPrefix(path, "configurations."))
		value := gjson.GetBytes(config, path)
		if value.Type != gjson.String {
			continue // nothing is written there
		}
		var err error
		if texts[value.Str], err = dataflow.CompileText(value.Str); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// setApart compiles the fields that see names of their own.
func setApart(config json.RawMessage, kind *Kind) ([]apart, error) {
	var list []apart
	for _, field := range slices.Sorted(maps.Keys(kind.Own)) {
		value := gjson.GetBytes(config, field)
		if !value.Exists() || !strings.ContainsRune(value.Raw, '{') {
			continue
		}
		object, err := json.Marshal(map[string]json.RawMessage{field: json.RawMessage(value.Raw)})
		if err != nil {
			return nil, err
		}
		var marks dataflow.Marks
		if kind.prompt != nil && kind.prompt(field) {
			marks.Prompts = []string{field}
		}
		template, err := dataflow.CompileMarked(object, marks)
		if err != nil {
			return nil, err
		}
		list = append(list, apart{template, kind.Own[field]})
	}
	return list, nil
}

// Brief says whether a run of the node, with everything around it, is over at once.
func (r *Revision) Brief(node int) bool { return r.nodes[node].brief }

// Repeatable says whether a run of the node may be repeated although the kind's effect may not: it goes on after a wait, or
// only looks for missing inputs.
func (r *Revision) Repeatable(run engine.RunNode) bool {
	if run.Node < 0 {
		return false
	}
	n := &r.nodes[run.Node]
	return run.Cause.Wake != nil && n.kind.EffectFirst || n.looks(run)
}

// Inquires says whether the service can be asked about a run if its outcome is unknown. Owner is the node whose program
// made the step, for a step.
func (r *Revision) Inquires(run engine.RunNode, owner int) bool {
	if run.Step == nil {
		return run.Node >= 0 && r.nodes[run.Node].kind.Inquire != nil
	}
	steps := r.nodes[owner].kind.Steps
	return steps != nil && steps.Inquire != nil
}

// Syncs returns the names that a node's output_params list.
func (r *Revision) Syncs(node int) []string { return r.nodes[node].syncs }

// Declares returns the names of a node's outputs as its template's override_output declares them, nil when it declares none.
func (r *Revision) Declares(node int) []string { return r.nodes[node].override.declares }

func objectOr(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}

func overrideOf(def *workflow.Node, overrides map[string]Override) (*override, error) {
	if len(overrides) == 0 {
		return &override{}, nil
	}
	var config struct {
		Template string `json:"template_id"`
	}
	if err := json.Unmarshal(objectOr(def.Configurations), &config); err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "configurations.template_id must be a text")
	}
	return overrides[config.Template].compile(config.Template)
}
