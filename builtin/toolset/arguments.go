package toolset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node/slot"
	"tandem/payload"
)

// CheckArguments holds arguments against the tool's schema. Missing are required arguments that are not there; they are the only problem
// then. What is null and may not be counts as not there. A schema that cannot be used leaves the judgement to the server.
func CheckArguments(schema, args json.RawMessage) (fixed json.RawMessage, missing []string, problem string) {
	compiled, err := payload.CompileSchema(schema)
	if err != nil {
		return args, nil, ""
	}
	problems := compiled.Problems("", values.Decode(args))
	if all := values.Members(args); len(problems) > 0 &&
		slices.ContainsFunc(all, func(m values.Member) bool { return values.IsNull(m.Value) }) {
		without := values.Object(slices.DeleteFunc(all, func(m values.Member) bool { return values.IsNull(m.Value) }))
		if again := compiled.Problems("", values.Decode(without)); len(again) < len(problems) || lacksOnly(again) {
			args, problems = without, again
		}
	}
	if len(problems) == 0 {
		return args, nil, ""
	}
	if lacksOnly(problems) {
		if missing = MissingArguments(schema, args); len(missing) > 0 {
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
func lacksOnly(problems []payload.SchemaProblem) bool {
	return !slices.ContainsFunc(problems, func(p payload.SchemaProblem) bool { return p.Rule != "required" || p.Path != "" })
}

// maxNamedProblems is how many problems of arguments a model is told at once.
const maxNamedProblems = 8

// MissingArguments are the required arguments that are not there.
func MissingArguments(schema, args json.RawMessage) []string {
	var list []string
	there := gjson.ParseBytes(args)
	for _, name := range gjson.GetBytes(schema, "required").Array() {
		if value, ok := (values.Path{name.String()}).Walk(json.RawMessage(there.Raw)); !ok || values.IsNull(value) {
			list = append(list, name.String())
		}
	}
	return list
}

// lacks says which arguments a tool needs that a node does not give, and where to write them. What is given under a name that the tool does
// not have may have been meant.
func lacks(tool, where string, missing []string, schema, args json.RawMessage) error {
	hint := ""
	known := gjson.GetBytes(schema, "properties").Map()
	for _, m := range values.Members(args) {
		if _, has := known[m.Key]; has {
			continue
		}
		if near := fault.Nearest(m.Key, missing); near != "" {
			hint = fmt.Sprintf("; %q is not an argument of it: did you mean %q?", m.Key, near)
		}
	}
	return slot.Missing(missing, "the tool %q needs %s; set it in %s%s", tool, strings.Join(missing, ", "), where,
		hint).With("path", "function_args."+missing[0])
}
