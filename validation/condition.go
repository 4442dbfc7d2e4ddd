package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/expr"
	"tandem/node"
	"tandem/node/rundata"
	"tandem/text"
	"tandem/workflow"
)

// missingFields warns of expressions that read a field which is not there, where the shape of what they read is known: it is that of a
// manual trigger with an input_schema. A schema that closes its objects says so of every other field, an open one only of a name that is
// nearly a declared one.
func missingFields(def *workflow.Definition, kinds workflow.Kinds) (problems []workflow.Problem) {
	trigger, only := onlyTrigger(def)
	warn := func(at, source string, of func(path []string) reading) {
		if rundata.AsksForAbsence(source) {
			return
		}
		program, err := expr.Compile(source)
		if err != nil {
			return // said already
		}
		for _, path := range program.Paths() {
			r := of(path)
			if field, hint, missing := notIn(r, path); missing {
				then := text.Of("counts as null")
				if len(path[:r.from]) == 0 && !strings.Contains(field, ".") {
					then = text.Of("is an error")
				}
				problems = append(problems, workflow.Problem{Severity: workflow.SeverityWarning,
					Code: ProblemMissingField, Path: at}.Saying(
					text.Of("the expression reads %q, which the trigger's input_schema does not have and which then %s%s", field, then, hint)))
			}
		}
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, known := kinds.Kind(n.Kind())
		if !known {
			continue
		}
		plan, _ := kind.Plan(n)
		if len(plan.Expressions) == 0 {
			continue
		}
		schema, direct := inputShape(def, kinds, n.ID, kind.Scope != nil)
		direct = direct && emptyObject(n.InputParams)
		for _, e := range plan.Expressions {
			warn(fmt.Sprintf("nodes[%d].%s", i, e.Path), e.Source, func(path []string) reading {
				if r := ofLayer(trigger, only, kinds, path); r.known || !direct {
					return r
				}
				return ofInput(plan.Traits.Names, schema, path)
			})
		}
	}
	for i := range def.Connections {
		c := &def.Connections[i]
		at := slices.IndexFunc(def.Nodes, func(n workflow.Node) bool { return n.ID == c.FromNode })
		if at < 0 || c.ConversionFunction == "" || workflow.LanguageOf(c.ConversionFunction) != workflow.LanguageExpression {
			continue
		}
		if schema, ok := triggerShape(&def.Nodes[at], kinds); ok {
			warn(fmt.Sprintf("connections[%d].conversion_function", i), c.ConversionFunction, func(path []string) reading {
				return ofPayload(schema, path, "value", "data", "output")
			})
		}
	}
	return problems
}

// reading is what an expression reads by a path: an object of a schema, whose first field is the step from of the path. Near says that only
// a name which is nearly a declared one is told, since others can come from elsewhere.
type reading struct {
	known, near bool
	schema      gjson.Result
	from        int
}

// ofLayer is what a path reads of the layers of the execution, of a workflow with one trigger.
func ofLayer(trigger *workflow.Node, only bool, kinds workflow.Kinds, path []string) reading {
	if !only || len(path) < 2 {
		return reading{}
	}
	schema, ok := triggerShape(trigger, kinds)
	switch {
	case !ok:
	case path[0] == "trigger" || path[0] == "initial":
		return reading{known: true, schema: schema, from: 1}
	case path[0] == "runtime": // other nodes write there, too
		return reading{known: true, near: true, schema: schema, from: 1}
	case path[0] == "steps" && len(path) > 2 && (path[1] == trigger.ID || path[1] == trigger.Name):
		return reading{known: true, schema: schema, from: 2}
	}
	return reading{}
}

// ofInput is what a path reads of the input of a node directly behind the trigger.
func ofInput(names workflow.ConditionNames, schema gjson.Result, path []string) reading {
	switch names {
	case workflow.NamesOfInput:
		return ofPayload(schema, path, "input", "data")
	case workflow.NamesOfCarried: // what an iteration makes is the data of the next one
		return reading{known: len(path) > 1 && (path[0] == "input" || path[0] == "data" && !declares(schema, "data")),
			near: path[0] == "data", schema: schema, from: 1}
	}
	return reading{known: len(path) > 1 && path[0] == "input", schema: schema, from: 1}
}

// ofPayload is what a path reads of a payload whose fields are names of their own; whole are the names of all of it.
func ofPayload(schema gjson.Result, path []string, whole ...string) reading {
	switch {
	case slices.Contains(whole, path[0]) && (path[0] == "input" || !declares(schema, path[0])):
		return reading{known: len(path) > 1, schema: schema, from: 1}
	case slices.Contains(rundata.RootNames(), path[0]):
		return reading{}
	}
	return reading{known: true, schema: schema}
}

func declares(schema gjson.Result, name string) bool {
	_, ok := schema.Get("properties").Map()[name]
	return ok
}

// onlyTrigger is the trigger of a workflow that has one.
func onlyTrigger(def *workflow.Definition) (trigger *workflow.Node, only bool) {
	for i := range def.Nodes {
		if def.Nodes[i].Type == workflow.TypeTrigger {
			if trigger != nil {
				return nil, false
			}
			trigger = &def.Nodes[i]
		}
	}
	return trigger, trigger != nil
}

// triggerShape is the schema of what a trigger hands on that people start, if it says so.
func triggerShape(n *workflow.Node, kinds workflow.Kinds) (gjson.Result, bool) {
	kind, known := kinds.Kind(n.Kind())
	if !known || !emptyObject(n.InputParams) {
		return gjson.Result{}, false
	}
	if plan, _ := kind.Plan(n); !plan.Traits.ByHand {
		return gjson.Result{}, false
	}
	schema := gjson.GetBytes(n.Configurations, "input_schema")
	return schema, schema.Get("properties").IsObject()
}

func emptyObject(raw []byte) bool { return len(gjson.ParseBytes(raw).Map()) == 0 }

// maxLooked is how many connections a workflow may have for the way back to a loop to be looked for.
const maxLooked = 2000

// inputShape is the schema of what comes to a node that only a manual trigger leads to, as the trigger was given it. The way back to a loop
// does not count.
func inputShape(def *workflow.Definition, kinds workflow.Kinds, to string, loops bool) (gjson.Result, bool) {
	from, count := "", 0
	for i := range def.Connections {
		c := &def.Connections[i]
		if c.ToNode != to || loops && len(def.Connections) <= maxLooked && leadsTo(def, to, c.FromNode) {
			continue
		}
		from, count = c.FromNode, count+1
		if c.ConversionFunction != "" {
			return gjson.Result{}, false
		}
	}
	at := slices.IndexFunc(def.Nodes, func(n workflow.Node) bool { return n.ID == from })
	if count != 1 || at < 0 {
		return gjson.Result{}, false
	}
	return triggerShape(&def.Nodes[at], kinds)
}

// leadsTo says that a node leads to another one: a connection from that one is the way back to a loop.
func leadsTo(def *workflow.Definition, from, to string) bool {
	seen, stack := map[string]bool{from: true}, []string{from}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range def.Connections {
			c := &def.Connections[i]
			if c.FromNode != at || seen[c.ToNode] {
				continue
			}
			if c.ToNode == to {
				return true
			}
			seen[c.ToNode] = true
			stack = append(stack, c.ToNode)
		}
	}
	return false
}

// triggerFields are what a manual trigger adds to its inputs.
func triggerFields() []string {
	return []string{"trigger_time", "execution_id", "trigger_message", "user_id"}
}

// notIn finds the first step of a path that a schema does not have.
func notIn(r reading, path []string) (field, hint string, missing bool) {
	if !r.known {
		return "", "", false
	}
	schema := r.schema
	for i := r.from; i < len(path); i++ {
		properties := schema.Get("properties")
		if !properties.IsObject() || slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties",
			"dependentSchemas"}, func(k string) bool { _, is := schema.Map()[k]; return is }) {
			return "", "", false
		}
		declared := properties.Map()
		if next, ok := declared[path[i]]; ok {
			schema = next
			continue
		}
		if i == r.from && slices.Contains(triggerFields(), path[i]) {
			return "", "", false
		}
		names := make([]string, 0, len(declared))
		properties.ForEach(func(name, _ gjson.Result) bool { names = append(names, name.Str); return true })
		hint = node.Nearest(path[:i], path[i], names)
		return strings.Join(path[:i+1], "."), hint, hint != "" || !r.near && schema.Get("additionalProperties").Type == gjson.False
	}
	return "", "", false
}
