package validation

import (
	"strconv"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/text"
	"tandem/workflow"
)

// Tell tells what is wrong with a definition, to a reader of a language; the definition, if there is one, says which nodes it is about.
func Tell(language string, problems []workflow.Problem, def *workflow.Definition) []api.Problem {
	list := make([]api.Problem, len(problems))
	for i, p := range problems {
		list[i] = api.Problem{Code: p.Code, Severity: string(p.Severity), Message: p.In(language), Path: p.Path,
			Line: p.Line, Column: p.Column}
		if n, ok := NodeIndex(p.Path); ok && def != nil && n < len(def.Nodes) {
			list[i].Node = def.Nodes[n].ID
		}
	}
	return list
}

// NodeIndex is the node that a path leads into: 12 for "nodes[12].name".
func NodeIndex(path string) (int, bool) {
	rest, ok := strings.CutPrefix(path, "nodes[")
	digits, _, closed := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	return n, ok && closed && err == nil && n >= 0
}

// Refusal refuses a definition with everything that is wrong with it.
func Refusal(problems []workflow.Problem) error {
	failures := make([]workflow.Problem, 0, len(problems))
	for _, p := range problems {
		if p.Severity != workflow.SeverityWarning {
			failures = append(failures, p)
		}
	}
	detail := text.Of("the definition has errors")
	switch len(failures) {
	case 0:
	case 1:
		detail = failures[0].Says()
		if failures[0].Path != "" {
			detail = text.Of("%s: %s", failures[0].Path, detail)
		}
	default:
		detail = text.Of("the definition has %d errors; the first: %s", len(failures), failures[0].Says())
	}
	return fault.Say(fault.Invalid, detail).With("problems", problems)
}
