package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tandem/api"
	"tandem/fault"
)

// Error is a refusal or a failure that the server reported. It unwraps to a [fault.Error] of the same code, so callers may
// ask fault.CodeOf(err).
type Error struct {
	// Fault is the problem document. For an answer without one it is made from the status.
	api.Fault
	// RetryAfter is how long the server asks the caller to wait; zero: it did not say.
	RetryAfter time.Duration
}

// Error is what the server said, with the fields that are wrong.
func (e *Error) Error() string {
	text, join := e.Detail, ": "
	for _, f := range e.Errors {
		field := strings.TrimPrefix(f.Path+": "+f.Message, ": ")
		if !strings.Contains(e.Detail, f.Message) { // often the detail is the first of them
			text, join = text+join+field, "; "
		}
	}
	return text
}

// Unwrap returns the same error as a [fault.Error].
func (e *Error) Unwrap() error { return fault.New(fault.Code(e.Code), e.Detail) }

// problem reads the answer to a request that was refused.
func problem(response *http.Response) error {
	e := &Error{}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(raw, &e.Fault)
	}
	if err != nil || e.Code == "" || e.Detail == "" {
		// A proxy has answered, or a server that is not Tandem: its text may be a whole page.
		e.Fault = api.Fault{
			Title: http.StatusText(response.StatusCode), Code: string(codeOf(response.StatusCode)),
			Detail: fmt.Sprintf("the server answered %s without saying why", response.Status),
		}
	}
	e.Status = response.StatusCode
	if seconds, err := time.ParseDuration(response.Header.Get("Retry-After") + "s"); err == nil && seconds > 0 {
		e.RetryAfter = seconds
	}
	return e
}

// codeOf is the code nearest to a status, for answers without a problem document.
func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.Forbidden
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return fault.Conflict
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests:
		return fault.RateLimited
	case http.StatusGatewayTimeout:
		return fault.Timeout
	}
	if status >= 500 {
		return fault.RemoteError
	}
	return fault.Invalid
}
