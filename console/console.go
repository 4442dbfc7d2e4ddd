// Package console is what the commands of Tandem do and show on a terminal: lists and single things as tables, executions that are watched,
// questions that are put to the person who sits there, conversations with agents, recorded runs. It asks everything of the API, through
// an [app.Connection], and knows nothing of flags: the command tandem reads those and imports it, nobody else does.
package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Terminal is where a command reads from and writes to.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	// Words puts what the API says into the words of the command: its flags instead of fields, commands instead of requests.
	Words func(text string) string
	// Failed puts an error of the work into the words of the command, as it would be printed at its end.
	Failed func(err error) error
}

// How a command ends that has already said what there is to say.
var (
	// ErrReported ends a command that has said what is wrong.
	ErrReported = errors.New("reported")
	// ErrParked ends a command that was interrupted, or waits for a person, and has said how to go on.
	ErrParked = errors.New("parked")
)

// UsageError is a wrong call of a command that is only found out while it does its work.
type UsageError struct{ err error }

// Usage makes an error of usage.
func Usage(err error) error { return UsageError{err} }

// Error implements error.
func (e UsageError) Error() string { return e.err.Error() }

// ProblemError is what went wrong while a command did its work; any other error is one of usage.
type ProblemError struct{ err error }

// Problem makes an error of the work.
func Problem(err error) error { return ProblemError{err} }

// Error implements error.
func (e ProblemError) Error() string { return e.err.Error() }

// Unwrap returns what went wrong.
func (e ProblemError) Unwrap() error { return e.err }

// ParseValue reads a flag that takes JSON. A text that is not JSON is taken as it is, unless it must be an object.
func ParseValue(flag, text string, object bool) (json.RawMessage, error) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if !json.Valid(raw) {
		if object {
			return nil, Usage(fmt.Errorf("--%s %q is not JSON; quote it for the shell, such as --%s '{\"a\": 1}'", flag, text, flag))
		}
		return json.Marshal(text)
	}
	if object && raw[0] != '{' {
		return nil, Usage(fmt.Errorf("--%s must be a JSON object, such as '{\"a\": 1}'", flag))
	}
	return raw, nil
}
