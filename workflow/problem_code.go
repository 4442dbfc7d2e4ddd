package workflow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// The codes of problems. They are sent to programs, so a released one never changes its meaning. A kind's Plan may use
// codes of its own besides these.
const (
	// Reading a file.
	ProblemSyntax       = "syntax"
	ProblemTooLarge     = "too_large"
	ProblemDuplicateKey = "duplicate_key"
	ProblemUnknownField = "unknown_field"
	ProblemWrongType    = "wrong_type"
	ProblemOldField     = "old_field"
	ProblemAlias        = "ambiguous_spelling"

	// Names and ends.
	ProblemNoNodes       = "no_nodes"
	ProblemEmptyID       = "empty_id"
	ProblemDuplicateID   = "duplicate_id"
	ProblemDuplicateName = "duplicate_name"
	ProblemInvalidName   = "invalid_name"
	ProblemNoDescription = "no_description"
	ProblemUnknownKind   = "unknown_kind"
	ProblemUnknownNode   = "unknown_node"
	ProblemUnknownKey    = "unknown_output_key"
	ProblemNotAgent      = "attached_to_non_agent"
	ProblemAttachedKind  = "attached_kind"
	ProblemAttachedEdge  = "attached_connected"
	ProblemDeadKey       = "key_not_produced"
	ProblemErrorUnused   = "error_not_connected"
	ProblemNotTrigger    = "not_a_trigger"
	ProblemSettings      = "invalid_settings"
	ProblemInvalidTest   = "invalid_test"

	// The shape of the graph.
	ProblemCycle         = "cycle"
	ProblemCrossing      = "edge_crosses_scope"
	ProblemEmptyBody     = "empty_body"
	ProblemNesting       = "nesting_too_deep"
	ProblemUnreachable   = "unreachable"
	ProblemAmbiguousName = "ambiguous_name"

	// What is written inside nodes and connections.
	ProblemConfig             = "invalid_config"
	ProblemExpression         = "invalid_expression"
	ProblemConversion         = "invalid_conversion"
	ProblemUnknownReference   = "unknown_reference"
	ProblemInvalidPlaceholder = "invalid_placeholder"
	ProblemNotBefore          = "reference_not_before"
)

// problemsPerCode bounds a report: what is wrong a thousand times is said a thousand times and then counted.
const problemsPerCode = 1000

func errorAt(code, path, format string, args ...any) Problem {
	return Problem{Severity: SeverityError, Code: code, Path: path}.Saying(text.Formatted(format, args...))
}

func warningAt(code, path, format string, args ...any) Problem {
	return Problem{Severity: SeverityWarning, Code: code, Path: path}.Saying(text.Formatted(format, args...))
}

// HasErrors tells whether any of the problems is more than a warning.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity != SeverityWarning })
}

// problemList collects problems. Of one sort, a code and severity, it keeps as many as a report shows and counts the
// others, so that a file in which everything is wrong costs no more memory than one that is large.
type problemList struct {
	kept  []Problem
	count map[problemSort]int
}

type problemSort struct {
	severity Severity
	code     string
}

func (l *problemList) report(p Problem) {
	if l.count == nil {
		l.count = make(map[problemSort]int)
	}
	sort := problemSort{p.Severity, p.Code}
	if l.count[sort]++; l.count[sort] <= problemsPerCode+1 {
		l.kept = append(l.kept, p)
	}
}

// full tells whether another error of this code would only be counted, and counts it in that case.
func (l *problemList) full(code string) bool {
	sort := problemSort{SeverityError, code}
	if l.count[sort] <= problemsPerCode {
		return false
	}
	l.count[sort]++
	return true
}

// ordered sorts the problems by their place in the definition (metadata, nodes, connections, triggers; each by index)
// and says of the last of a sort how many more there are.
func (l *problemList) ordered() []Problem {
	type placed struct {
		Problem
		section, index int
	}
	rows := make([]placed, len(l.kept))
	for i, p := range l.kept {
		section, index := placeOf(p.Path)
		rows[i] = placed{p, section, index}
	}
	slices.SortStableFunc(rows, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.index, b.index))
	})
	seen := make(map[problemSort]int)
	sorted := make([]Problem, len(rows))
	for i, r := range rows {
		sort := problemSort{r.Severity, r.Code}
		seen[sort]++
		if more := l.count[sort] - seen[sort]; seen[sort] == problemsPerCode+1 && more > 0 {
			r.Problem = r.Saying(text.Of("%s (and %d more problems of this sort, which are not listed)", r.Says(), more))
		}
		sorted[i] = r.Problem
	}
	return sorted
}

// placeOf reads the section and the index off the front of a path: "nodes[12].name" is (2, 12).
func placeOf(path string) (section, index int) {
	head, rest := path, ""
	if i := strings.IndexAny(path, ".["); i >= 0 {
		head, rest = path[:i], path[i:]
	}
	switch head {
	case "":
		section = 0
	case "metadata":
		section = 1
	case "nodes":
		section = 2
	case "connections":
		section = 3
	case "triggers":
		section = 4
	default:
		section = 5
	}
	index = -1
	if strings.HasPrefix(rest, "[") {
		if end := strings.IndexByte(rest, ']'); end > 0 {
			if n, err := strconv.Atoi(rest[1:end]); err == nil {
				index = n
			}
		}
	}
	return section, index
}

func nodePath(i int) string       { return payload.JoinIndex("nodes", i) }
func connectionPath(i int) string { return payload.JoinIndex("connections", i) }
