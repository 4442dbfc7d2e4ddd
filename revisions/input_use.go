package revisions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/expr"
	"tandem/fault"
	"tandem/payload"
	"tandem/workflow"
)

// inputUse is which inputs a workflow can read, as far as its definition tells for certain.
type inputUse struct {
	// all says that it cannot be told: something reads, or may read, everything.
	all bool
	// names are the inputs that are declared or read. Names in placeholders and expressions that mean something else are among
	// them: what is not here is not read.
	names map[string]bool
	// declared are those of the triggers' schemas.
	declared []string
	// closed is set where the triggers declare what they take: what is not among its names is neither declared nor named anywhere. A caller
	// that takes all of the input does not count as its reader then.
	closed *inputUse
}

// toolInputs are the inputs that every set of tools reads by itself.
func toolInputs() []string { return []string{"tool_name", "function_args", "context", "call_id"} }

// usesOf finds out which inputs a definition reads. Where the triggers declare what they take, it is that, and what anything names. Whole
// is the definition with what templates add to it; fields are the fields of its input that a kind reads by name.
func usesOf(def, whole *workflow.Definition, kinds workflow.Kinds, fields func(kind string) []string) inputUse {
	use := certainUse(def, kinds)
	if closed, ok := declaredUse(def, kinds); ok {
		closed.mention(def, fields)
		closed.mention(whole, fields)
		use.closed = &closed
	}
	return use
}

// certainUse is what is read for certain. Only chains of tools, with conditions between them, are: they read what their placeholders and
// expressions name. All other kinds may read all of their input, and what comes last hands it on.
func certainUse(def *workflow.Definition, kinds workflow.Kinds) inputUse {
	use := inputUse{names: map[string]bool{}}
	for _, name := range toolInputs() {
		use.names[name] = true
	}
	if def.Metadata.Settings.ErrorWorkflow != "" { // which is told what the execution was started with
		return inputUse{all: true}
	}
	tools := map[string]bool{}   // by id and name: what they hand on is theirs
	handsOn := map[string]bool{} // what they hand on is what they were given
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, known := kinds.Kind(n.Kind())
		if !known {
			return inputUse{all: true}
		}
		plan, _ := kind.Plan(n)
		switch {
		case n.Type == workflow.TypeTrigger:
			gjson.GetBytes(n.Configurations, "input_schema.properties").ForEach(func(name, _ gjson.Result) bool {
				use.names[name.Str], use.declared = true, append(use.declared, name.Str)
				return true
			})
			handsOn[n.ID], handsOn[n.Name] = true, true
		case plan.Drops && len(n.AttachedNodes) == 0:
			tools[n.ID], tools[n.Name] = true, true
		case plan.Traits.Chooses == workflow.ChoosesTruth && leadsOn(def, n.ID, "true") && leadsOn(def, n.ID, "false"):
			handsOn[n.ID], handsOn[n.Name] = true, true
		default:
			return inputUse{all: true}
		}
	}
	if len(tools) == 0 { // what came in is what comes out
		return inputUse{all: true}
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		for _, raw := range []json.RawMessage{n.Configurations, n.InputParams} {
			if len(raw) == 0 {
				continue
			}
			refs, err := dataflow.References(raw)
			if err != nil {
				return inputUse{all: true}
			}
			for _, r := range refs {
				use.reads(r.Raw)
				use.all = use.all || readsWhole(append([]string{r.Head}, r.Rest...), tools, handsOn)
			}
		}
		kind, known := kinds.Kind(n.Kind())
		if !known {
			return inputUse{all: true}
		}
		plan, _ := kind.Plan(n)
		if plan.Disabled || plan.OnError == workflow.OnErrorContinue { // it hands its input on
			return inputUse{all: true}
		}
		for _, e := range plan.Expressions {
			use.evaluates(e.Source, tools, handsOn)
		}
	}
	for i := range def.Connections {
		source := def.Connections[i].ConversionFunction
		if source == "" {
			continue
		}
		if workflow.LanguageOf(source) != workflow.LanguageExpression {
			return inputUse{all: true}
		}
		use.evaluates(source, tools, handsOn)
	}
	return use
}

// declaredUse is what the triggers that people start declare, if all of them do and none takes more than that.
func declaredUse(def *workflow.Definition, kinds workflow.Kinds) (use inputUse, ok bool) {
	use = inputUse{names: map[string]bool{}}
	for _, name := range toolInputs() {
		use.names[name] = true
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if n.Type != workflow.TypeTrigger {
			continue
		}
		schema := gjson.GetBytes(n.Configurations, "input_schema")
		properties := schema.Get("properties")
		if !properties.IsObject() && !byHand(n, kinds) {
			continue // it starts by itself
		}
		if more := schema.Get("additionalProperties"); !properties.IsObject() || more.Exists() &&
			more.Type != gjson.False || combined(schema) {
			return inputUse{}, false
		}
		ok = true
		properties.ForEach(func(name, _ gjson.Result) bool {
			use.names[name.Str], use.declared = true, append(use.declared, name.Str)
			return true
		})
	}
	return use, ok
}

// byHand says that people start a trigger.
func byHand(n *workflow.Node, kinds workflow.Kinds) bool {
	kind, known := kinds.Kind(n.Kind())
	if !known {
		return false
	}
	plan, _ := kind.Plan(n)
	return plan.Traits.ByHand
}

// combined says that a schema has fields besides its properties.
func combined(schema gjson.Result) bool {
	return slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"}, func(k string) bool { return schema.Get(strings.ReplaceAll(k, "$", "\\$")).Exists() })
}

// mention notes every name that a definition mentions in what can read an input, whatever it means there, and those that its kinds read by
// themselves.
func (u *inputUse) mention(def *workflow.Definition, fields func(kind string) []string) {
	if def == nil {
		return
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		u.reads(string(n.InputParams))
		if n.Type == workflow.TypeTrigger {
			continue
		}
		u.reads(string(n.Configurations))
		for _, name := range fields(n.Kind()) {
			u.reads(name)
		}
	}
	for i := range def.Connections {
		u.reads(def.Connections[i].ConversionFunction)
	}
}

func leadsOn(def *workflow.Definition, from, key string) bool {
	return slices.ContainsFunc(def.Connections, func(c workflow.Connection) bool { return c.FromNode == from && c.OutputKey == key })
}

// evaluates notes what an expression reads.
func (u *inputUse) evaluates(source string, tools, handsOn map[string]bool) {
	u.reads(source)
	program, err := expr.Compile(source)
	if err != nil {
		u.all = true
		return
	}
	for _, path := range program.Paths() {
		u.all = u.all || readsWhole(path, tools, handsOn)
	}
	if len(program.Placeholders()) > 0 { // a whole value in an expression
		u.all = true
	}
}

// reads notes the names in a text. One that begins with a node, as in start_amount, is also noted without what comes before.
func (u *inputUse) reads(text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		for name, more := word, true; more; _, name, more = strings.Cut(name, "_") {
			u.names[name] = true
		}
	}
}

// readsWhole says that a path can end at something that holds all inputs, and not at one of them.
func readsWhole(path []string, tools, handsOn map[string]bool) bool {
	if len(path) > 1 && path[0] == "steps" {
		path = path[1:]
	}
	if len(path) == 0 || tools[path[0]] {
		return false
	}
	last := path[len(path)-1]
	return handsOn[last] || slices.Contains([]string{
		"input", "inputs", "data", "output", "outputs", "result", "payload", "value", "initial", "runtime", "steps", "trigger", "execution",
		"workflow", "env", "metadata", "context",
	}, strings.ToLower(last))
}

// warnings name the inputs that the workflow does not read.
func (u inputUse) warnings(inputs json.RawMessage) (list []string) {
	if u.all && u.closed == nil {
		return nil
	}
	payload.EachField(inputs, func(key, _ []byte) bool {
		name, declared, says := payload.Unquote(key), u.declared, ""
		switch {
		case !u.all && !u.names[name]:
			says = "the input %q is not used: nothing in the workflow declares or reads it, so that it changes nothing%s"
		case u.closed != nil && !u.closed.names[name]:
			declared, says = u.closed.declared, "the input %q is not declared by the input_schema of the workflow, and nothing in the workflow reads it by name%s"
		}
		if says == "" {
			return true
		}
		hint := ""
		if near := fault.Nearest(name, declared); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		} else if len(declared) > 0 {
			hint = "; it takes " + strings.Join(declared, ", ")
		}
		list = append(list, fmt.Sprintf(says, name, hint))
		return len(list) < maxInputWarnings
	})
	return list
}

// maxInputWarnings is how many inputs an answer complains of.
const maxInputWarnings = 20
