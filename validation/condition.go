package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

// missingFields warns of conditions that read a field which their input does not have, where its shape is known: directly behind a
// manual trigger with an input_schema. A schema that closes its objects says so of every other field, an open one only of a
// name that is nearly a declared one.
func missingFields(def *workflow.Definition, kinds workflow.Kinds) (problems []workflow.Problem) {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if n.Kind() != "FLOW.IF" && n.Kind() != "FLOW.SWITCH" || !emptyObject(n.InputParams) {
			continue
		}
		schema, ok := inputShape(def, n.ID)
		kind, known := kinds.Kind(n.Kind())
		if !ok || !known {
			continue
		}
		plan, _ := kind.Plan(n)
		for _, e := range plan.Expressions {
			if node.AsksForAbsence(e.Source) {
				continue
			}
			program, err := expr.Compile(e.Source)
			if err != nil {
				continue // said already
			}
			for _, path := range program.Paths() {
				if field, hint, missing := notIn(schema, path); missing {
					problems = append(problems, workflow.Problem{
						Severity: workflow.SeverityWarning, Code: ProblemMissingField, Path: fmt.Sprintf("nodes[%d].%s", i, e.Path),
						Message: fmt.Sprintf("the condition reads %q, which the trigger's input_schema does not have and which then counts as null%s", field, hint),
					})
				}
			}
		}
	}
	return problems
}

func emptyObject(raw []byte) bool { return len(gjson.ParseBytes(raw).Map()) == 0 }

// inputShape is the schema of what comes to a node that only a manual trigger leads to, as the trigger was given it.
func inputShape(def *workflow.Definition, to string) (gjson.Result, bool) {
	from, count := "", 0
	for i := range def.Connections {
		if c := &def.Connections[i]; c.ToNode == to {
			from, count = c.FromNode, count+1
			if c.ConversionFunction != "" {
				return gjson.Result{}, false
			}
		}
	}
	at := slices.IndexFunc(def.Nodes, func(n workflow.Node) bool { return n.ID == from })
	if count != 1 || at < 0 || def.Nodes[at].Kind() != "TRIGGER.MANUAL" || !emptyObject(def.Nodes[at].InputParams) {
		return gjson.Result{}, false
	}
	schema := gjson.GetBytes(def.Nodes[at].Configurations, "input_schema")
	return schema, schema.Get("properties").IsObject()
}

// triggerFields are what a manual trigger adds to its inputs.
func triggerFields() []string {
	return []string{"trigger_time", "execution_id", "trigger_message", "user_id"}
}

// notIn finds the first step of a path below "input" or "data" that a schema does not have.
func notIn(schema gjson.Result, path []string) (field, hint string, missing bool) {
	top := schema.Get("properties").Map()
	if _, taken := top[path[0]]; len(path) < 2 || taken || path[0] != "input" && path[0] != "data" {
		return "", "", false
	}
	for i, step := range path[1:] {
		properties := schema.Get("properties")
		if !properties.IsObject() || slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"}, func(k string) bool { _, is := schema.Map()[k]; return is }) {
			return "", "", false
		}
		declared := properties.Map()
		if next, ok := declared[step]; ok {
			schema = next
			continue
		}
		if i == 0 && slices.Contains(triggerFields(), step) {
			return "", "", false
		}
		names := make([]string, 0, len(declared))
		properties.ForEach(func(name, _ gjson.Result) bool { names = append(names, name.Str); return true })
		near := fault.Nearest(step, names)
		if near != "" {
			hint = fmt.Sprintf("; did you mean %q?", strings.Join(append(slices.Clone(path[:i+1]), near), "."))
		}
		return strings.Join(path[:i+2], "."), hint, near != "" || schema.Get("additionalProperties").Type == gjson.False
	}
	return "", "", false
}
