package workflow

import "fmt"

// Severity tells an error, which a workflow must not have to be saved, from a warning.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong with a definition.
type Problem struct {
	Severity Severity `json:"severity"`
	// Code is stable, for programs: "unknown_kind".
	Code string `json:"code"`
	// Path is a JSON path into the definition: "nodes[2].configurations.condition_expression".
	Path string `json:"path"`
	// Message says what is wrong and names the remedy.
	Message string `json:"message"`
	// Line and Column are where the path stands in the file, counted from 1; 0 when unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// Error makes a problem usable as an error.
func (p Problem) Error() string { return fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Code) }
