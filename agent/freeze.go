package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// Past is a task that has ended well, as it is remembered: what it was asked and which calls led to its answer.
type Past struct {
	// Execution and Workflow are the task's, Name is what it was called.
	Execution, Workflow string
	Name                string
	Question            string
	// Initial is what names in placeholders read first of all: params, metadata over them, the question and so on.
	Initial json.RawMessage
	// Calls are those that ended well, in order. What failed on the way is not among them.
	Calls []PastCall
}

// PastCall is a call that ended well.
type PastCall struct {
	// Step is the id of its step, Activation the name of the call: step_1_try_2 is the second call of step_1.
	Step, Activation string
	// Tool is server/tool, Why what the plan said about it.
	Tool, Why string
	// Arguments are what the tool was given, Result is its output.
	Arguments, Result json.RawMessage
	// Drafts are how the arguments came about, the last first.
	Drafts []Draft
	// Given are the answers of people who were asked for arguments.
	Given []json.RawMessage
}

// Draft is a derivation of arguments.
type Draft struct {
	// Template is what the model wrote, with placeholders, Lineage what those were.
	Template json.RawMessage
	Lineage  []dataflow.Origin
	// Filled says that it merged what a person had answered.
	Filled bool
}

// Frozen is a task as a workflow that needs no model.
type Frozen struct {
	Definition *workflow.Definition
	Untraced   []Untraced
}

// Untraced is a value that stands in the workflow as it was.
type Untraced struct {
	// Step is the node of the workflow, Path where in its arguments.
	Step, Path string
	Value      json.RawMessage
	Reason     string
}

// What the nodes of a frozen task are.
const (
	manualType, manualSubtype = "TRIGGER", "MANUAL"
	// maxWords is how many characters of a question go into a name, maxWhy into a description.
	maxWords = 60
	maxWhy   = 500
)

// Freeze makes a workflow of a task: its calls as a chain of nodes that call the same tools, in order, behind a trigger whose inputs
// are those of the task's that are used.
//
// What a placeholder of the model's read is read by a placeholder again, whatever its spelling was. A value that the model wrote out
// and that is equal to one of the inputs or of an earlier output becomes a placeholder, too, if it is unlikely enough to be equal by
// chance and there is one thing only that it can be: equal values of the same name are one thing, of which the latest is
// read; a thing that is called like the argument comes before others. Every placeholder is tried against the
// recorded data and has to yield the recorded value. All else stays as it was and is listed, empty values excepted.
func Freeze(p Past) (Frozen, error) {
	if len(p.Calls) == 0 {
		return Frozen{}, fault.Say(fault.Conflict, text.Of("task %q has called no tool, so there is nothing that could run without a model", p.Execution))
	}
	f, err := newFreezer(p)
	if err != nil {
		return Frozen{}, err
	}
	def := &workflow.Definition{
		Metadata: workflow.Metadata{Name: f.name(), Description: text.Fit(fmt.Sprintf("Made of task %s: %s", p.Execution,
			oneLine(p.Question)), maxWhy), Version: "1.0"},
		Nodes:    []workflow.Node{{}}, // the trigger, when the inputs are known
		Triggers: []string{StartNode},
	}
	last, taken := StartNode, []string{StartNode}
	for i := range p.Calls {
		taken = append(taken, nodeID(i))
	}
	for i := range p.Calls {
		n, err := f.node(i)
		if err != nil {
			return Frozen{}, err
		}
		n.Name = freeName(n.Name, taken)
		taken = append(taken, n.Name)
		def.Nodes = append(def.Nodes, n)
		def.Connections = append(def.Connections, workflow.Connection{ID: last + "-" + n.ID, FromNode: last, ToNode: n.ID,
			OutputKey: workflow.DefaultKey})
		last = n.ID
		if err := f.ran(i, n.Name); err != nil {
			return Frozen{}, err
		}
	}
	config, err := f.trigger()
	if err != nil {
		return Frozen{}, err
	}
	def.Nodes[0] = workflow.Node{ID: StartNode, Name: StartNode, Description: "Starts it with the inputs that the task had.",
		Type: manualType, Subtype: manualSubtype, Configurations: config}
	return Frozen{Definition: def, Untraced: f.untraced}, nil
}

func nodeID(call int) string { return "step_" + strconv.Itoa(call+1) }

// freeName makes a name of a tool one that placeholders can use and that nothing else has.
func freeName(tool string, taken []string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, tool)
	for n, plain := 2, name; slices.Contains(taken, name); n++ {
		name = plain + "_" + strconv.Itoa(n)
	}
	return name
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// freezer makes the nodes one after the other. Its layers are the data of a run of the workflow in which every tool answers as
// it did in the task.
type freezer struct {
	past     Past
	layers   *dataflow.Layers
	seq      uint64
	index    index
	answers  index
	nodes    map[string]int // the call by the names that placeholders of the task have for it
	own      json.RawMessage
	used     []usedInput
	untraced []Untraced
}

// usedInput is an input that the workflow needs, and where.
type usedInput struct {
	name  string
	where []string
}

// elsewhere stands for what a run says by itself (when it was started, by whom, how long a tool took), so that no value of the task is
// taken for it.
const elsewhere = "\u2063not of the task\u2063"

func newFreezer(p Past) (*freezer, error) {
	f := &freezer{past: p, nodes: map[string]int{}}
	initial, err := parse(p.Initial)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the inputs of task %q cannot be read: %w", p.Execution, err)
	}
	if initial.kind != '{' {
		initial = value{kind: '{', raw: json.RawMessage("{}")}
	}
	if f.layers, err = dataflow.New(dataflow.Start{ExecutionID: p.Execution, WorkflowID: p.Workflow, Initial: initial.raw,
		Trigger: initial.raw}); err != nil {
		return nil, err
	}
	f.index.addInputs(initial)
	var fields []field
	for _, m := range initial.fields {
		fields = append(fields, field{m.key, m.value})
	}
	for _, name := range []string{"trigger_time", "execution_id", "trigger_message", "user_id"} {
		fields = append(fields, field{name, textValue(elsewhere)})
	}
	f.own = objectOf(fields)
	return f, f.sync(StartNode, StartNode, manualType+"."+manualSubtype)
}

// sync lets the data be as it is after a node whose output is what the next one gets. Published are the fields of it that become
// names of the data; none: all.
func (f *freezer) sync(id, name, kind string, published ...string) error {
	f.seq++
	_, err := f.layers.Sync(dataflow.Step{
		Seq: f.seq, Activation: id, NodeID: id, NodeName: name, ToolID: kind,
		Output: map[string]json.RawMessage{workflow.DefaultKey: f.own}, DeclaredOutputs: published,
	})
	return err
}

// ran lets the data be as it is after a call.
func (f *freezer) ran(i int, name string) error {
	c := &f.past.Calls[i]
	result, err := parse(c.Result)
	if err != nil {
		return fault.Newf(fault.Internal, "the result of %q cannot be read: %w", c.Activation, err)
	}
	fields := []field{{"result", result}}
	for _, name := range []string{"success", "error_message", "execution_time", "cached"} {
		fields = append(fields, field{name, textValue(elsewhere)})
	}
	// A node has the fields of what its tool returned as its own, too. A tool that declares its outputs publishes fewer of them than
	// are laid down here; so a name that is free here is free there.
	var published []string
	for _, m := range result.fields {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == m.key }) {
			fields, published = append(fields, field{m.key, m.value}), append(published, m.key)
		}
	}
	f.own = objectOf(fields)
	f.nodes[c.Step], f.nodes[c.Activation] = i, i
	f.index.addStep(i, result)
	return f.sync(nodeID(i), name, "", published...)
}

func (f *freezer) name() string {
	for _, name := range []string{f.past.Name, f.past.Question} {
		if name = oneLine(name); name != "" {
			return text.Fit(name, maxWords)
		}
	}
	return "Task " + f.past.Execution
}

// node makes the node of a call.
func (f *freezer) node(i int) (workflow.Node, error) {
	c := &f.past.Calls[i]
	server, tool, ok := strings.Cut(c.Tool, "/")
	if !ok || server == "" || tool == "" {
		return workflow.Node{}, fault.Newf(fault.Internal, "%q of step %q is not a tool of a server", c.Tool, c.Step)
	}
	args, err := parse(c.Arguments)
	if err != nil {
		return workflow.Node{}, fault.Newf(fault.Internal, "the arguments of %q cannot be read: %w", c.Activation, err)
	}
	if args.kind != '{' {
		args = value{kind: '{', raw: json.RawMessage("{}")}
	}
	a := arguments{freezer: f, call: c, node: nodeID(i)}
	var at []located
	for _, d := range c.Drafts {
		if t, err := parse(d.Template); err == nil { // one that was not kept is done without
			at = append(at, located{draft: a.readDraft(d), value: t})
		}
	}
	for _, raw := range c.Given {
		if v, err := parse(raw); err == nil {
			a.given.addAnswer(v)
			f.answers.addAnswer(v)
		}
	}
	function := a.build(args, spot{}, at)
	return workflow.Node{
		ID: nodeID(i), Name: tool, Description: text.Fit(oneLine(c.Why), maxWhy), Type: ToolType, Subtype: ToolSubtype,
		Configurations: objectOf([]field{
			{"server_id", textValue(escape(server))}, {"tool_name", textValue(escape(tool))}, {"function_args", value{raw: function}},
		}),
	}, nil
}

// trigger is the configuration of the trigger: the inputs as a schema.
func (f *freezer) trigger() (json.RawMessage, error) {
	initial, err := parse(f.past.Initial)
	if err != nil {
		return nil, err
	}
	var properties []field
	required := []value{}
	slices.SortFunc(f.used, func(a, b usedInput) int { return strings.Compare(a.name, b.name) })
	for _, u := range f.used {
		about := []field{}
		if v, ok := initial.field(u.name); ok && v.schemaType() != "" {
			about = append(about, field{"type", textValue(v.schemaType())})
		}
		about = append(about, field{"description", textValue(escape("used by " + strings.Join(u.where, ", ")))})
		properties = append(properties, field{u.name, value{raw: objectOf(about)}})
		required = append(required, textValue(escape(u.name)))
	}
	schema := []field{{"type", textValue("object")}, {"properties", value{raw: objectOf(properties)}}}
	if len(required) > 0 {
		schema = append(schema, field{"required", value{raw: listOf(required)}})
	}
	return objectOf([]field{{"input_schema", value{raw: objectOf(schema)}}}), nil
}

func (f *freezer) uses(name, where string) {
	for i := range f.used {
		if f.used[i].name == name {
			if !slices.Contains(f.used[i].where, where) {
				f.used[i].where = append(f.used[i].where, where)
			}
			return
		}
	}
	f.used = append(f.used, usedInput{name, []string{where}})
}

// holds says that a text with placeholders is a value when the node runs.
func (f *freezer) holds(text string, want sum) bool {
	t, err := dataflow.CompileText(text)
	if err != nil {
		return false
	}
	got, _, err := t.Resolve(f.layers, dataflow.Request{View: dataflow.View{AsOf: f.seq}, Own: f.own})
	if err != nil {
		return false
	}
	v, err := parse(bytes.Clone(got))
	return err == nil && v.sum == want
}
