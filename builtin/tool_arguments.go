package builtin

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/node"
)

// checkArguments holds arguments against the tool's schema. Missing are required arguments that are not there; they are the only problem then. What is
// null and may not be counts as not there. A schema that cannot be used leaves the judgement to the server.
func checkArguments(schema, args json.RawMessage) (fixed json.RawMessage, missing []string, problem string) {
	compiled, err := node.CompileSchema(schema)
	if err != nil {
		return args, nil, ""
	}
	problems := compiled.Problems("", decode(args))
	if all := members(args); len(problems) > 0 && slices.ContainsFunc(all, func(m member) bool { return isNull(m.value) }) {
		without := object(slices.DeleteFunc(all, func(m member) bool { return isNull(m.value) }))
		if again := compiled.Problems("", decode(without)); len(again) < len(problems) || lacksOnly(again) {
			args, problems = without, again
		}
	}
	if len(problems) == 0 {
		return args, nil, ""
	}
	if lacksOnly(problems) {
		if missing = missingArguments(schema, args); len(missing) > 0 {
			return args, missing, ""
		}
	}
	lines := make([]string, 0, len(problems))
	for _, p := range problems[:min(len(problems), maxNamedProblems)] {
		lines = append(lines, p.String())
	}
	return args, nil, strings.Join(lines, "; ")
}

// lacksOnly says that nothing is wrong with arguments but that some are not there.
func lacksOnly(problems []node.SchemaProblem) bool {
	return !slices.ContainsFunc(problems, func(p node.SchemaProblem) bool { return p.Rule != "required" || p.Path != "" })
}

// maxNamedProblems is how many problems of arguments a model is told at once.
const maxNamedProblems = 8

// missingArguments are the required arguments that are not there.
func missingArguments(schema, args json.RawMessage) []string {
	var list []string
	there := gjson.ParseBytes(args)
	for _, name := range gjson.GetBytes(schema, "required").Array() {
		if value, ok := (path{name.String()}).walk(json.RawMessage(there.Raw)); !ok || isNull(value) {
			list = append(list, name.String())
		}
	}
	return list
}
