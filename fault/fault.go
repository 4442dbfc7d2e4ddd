// Package fault is the one error taxonomy of Tandem.
//
// An [Error] has a code that programs act on, a message that a user reads, detail that only an operator sees, and it
// says whether trying again can help. It has one persisted form, so an error reads the same from a journal, an event
// or an API answer. Nothing here knows about HTTP; the mapping from a [Class] to a status lives at the server's edge.
//
// Every package may import fault; fault imports nothing of Tandem.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Error is an error with a code. Make one with [New] or [Newf]; add to it with the With methods, which copy.
type Error struct {
	// Code tells programs what happened.
	Code Code
	// Message is for the user: what is wrong, where, and what to do about it. It never holds a secret.
	Message string
	// Detail is for operators only (a cause chain, a stack). It is persisted but not shown to users.
	Detail string
	// Details are machine-readable facts for the user: a path, a position, the names that were available.
	Details map[string]any
	// Retryable says that the same call may succeed later.
	Retryable bool

	cause error
	// words are what it says in the languages of readers, in the form of [Words].Stored.
	words json.RawMessage
	// format and values are what [Newf] has made the message of. They are not stored.
	format string
	values []any
}

// Words are what an error says to people in their language. A text of package text is one.
type Words interface {
	// In is what it says to a reader of a language; en is English.
	In(language string) string
	// Stored is the form in which an error keeps it: enough to say it in any language later, also after it was read from a journal.
	Stored() json.RawMessage
}

// Say is [New] for an error that people read in their language. Its message is the English one.
func Say(code Code, words Words) *Error {
	e := New(code, words.In("en"))
	e.words = words.Stored()
	return e
}

// Words is what the error says in the languages of readers, in the form of package text, which says it with text.ErrorIn. It is empty
// where the message is all that it says, as in errors that were stored by older versions.
func (e *Error) Words() json.RawMessage { return e.words }

// New makes an error; whether it is retryable follows from the code.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message, Retryable: code.Retryable()}
}

// Newf is New with a format. An operand of %w becomes the cause; with several, all of them do.
func Newf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	e := New(code, wrapped.Error())
	e.format, e.values = format, args
	e.cause = errors.Unwrap(wrapped)
	if _, several := wrapped.(interface{ Unwrap() []error }); several {
		e.cause = wrapped
	}
	return e
}

// English is the message.
func (e *Error) English() string { return e.Message }

// MadeOf is the format of the message and the values in it, so that it can be said in another language. Without a format it is the message.
func (e *Error) MadeOf() (format string, values []any) {
	if e.format == "" {
		return e.Message, nil
	}
	return e.format, e.values
}

// Error returns the code and the message for the user.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error of the same code, so errors.Is(err, fault.New(fault.NotFound, "")) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// WithCause returns a copy whose operator detail and chain include err.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	if err != nil && c.Detail == "" {
		c.Detail = err.Error()
	}
	return &c
}

// WithDetail returns a copy with operator detail.
func (e *Error) WithDetail(detail string) *Error {
	c := *e
	c.Detail = detail
	return &c
}

// With returns a copy with one more machine-readable fact.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Details = make(map[string]any, len(e.Details)+1)
	for k, v := range e.Details {
		c.Details[k] = v
	}
	c.Details[name] = value
	return &c
}

// Final returns a copy that is not retryable: errors that cross a scope or a child's border are final.
func (e *Error) Final() *Error {
	c := *e
	c.Retryable = false
	return &c
}

// CodeOf returns the code of the first Error in err's chain, Internal for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// From returns the first Error in err's chain, or wraps err as Internal: the user reads that something inside failed,
// the operator reads what.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return New(Internal, "an internal error occurred; the operator's log has the detail").WithCause(err)
}

// persisted is the stored form of an Error. Its names are those of the node and execution records.
type persisted struct {
	Code      Code           `json:"error_code"`
	Message   string         `json:"error_message"`
	Details   map[string]any `json:"error_details,omitempty"`
	Detail    string         `json:"operator_detail,omitempty"`
	Retryable bool           `json:"is_retryable"`
	// Words let it be said in other languages than that of the message.
	Words json.RawMessage `json:"error_words,omitempty"`
}

// MarshalJSON writes the persisted form. The cause is kept as text in the operator's detail.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(persisted{e.Code, e.Message, e.Details, e.Detail, e.Retryable, e.words})
}

// UnmarshalJSON reads the persisted form.
func (e *Error) UnmarshalJSON(data []byte) error {
	var p persisted
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read persisted error: %w", err)
	}
	if p.Code == "" {
		return errors.New("read persisted error: error_code is missing")
	}
	*e = Error{Code: p.Code, Message: p.Message, Details: p.Details, Detail: p.Detail, Retryable: p.Retryable, words: p.Words}
	return nil
}

// Public returns a copy as workflows, models and clients see it: without what only operators may see, and in English alone.
func (e *Error) Public() *Error {
	c := *e
	c.Detail, c.cause, c.words, c.format, c.values = "", nil, nil, "", nil
	return &c
}
