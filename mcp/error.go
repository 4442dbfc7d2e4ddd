package mcp

import (
	"fmt"
	"strings"

	"tandem/fault"
	"tandem/shortage"
	"tandem/text"
)

// Kind says what went wrong.
type Kind string

// The kinds of errors.
const (
	NotActivated  Kind = "not_activated"  // the user does not use the server
	UnknownServer Kind = "unknown_server" // there is no such server, or it is switched off
	UnknownTool   Kind = "unknown_tool"   // the server has no such tool
	BadArguments  Kind = "bad_arguments"  // what was given is not a JSON object
	Closed        Kind = "closed"         // there is no connection, or it ended before the answer
	NotStarted    Kind = "not_started"    // the process of the server cannot be started, or ended before it had answered
	Timeout       Kind = "timeout"        // the server did not answer in time
	Stopped       Kind = "stopped"        // the caller's context ended
	Protocol      Kind = "protocol"       // the server refused the request, or what it says makes no sense
	TooLarge      Kind = "too_large"      // the answer is larger than what is taken
	Unauthorized  Kind = "unauthorized"   // the server wants another token, or one at all
	NotAllowed    Kind = "not_allowed"    // a policy says that the tool is never called, or not with these arguments
	ToolFailed    Kind = "tool_failed"    // the tool itself says that it failed; its words are the message
)

// Error is why a call has no good result. A caller that needs to know more than its kind looks at the fields.
type Error struct {
	Kind   Kind
	Server string
	Tool   string
	// Message is for people.
	Message text.Text
	// Sent says that the request may have reached the server, so that the tool may have run.
	Sent bool
	// Once says that the tool may not be called again without knowledge of what the first call did.
	Once bool
	// Code is that of the protocol's error, Status that of HTTP; zero when there was none.
	Code   int64
	Status int
	// Challenge is what the server said with status 401 or 403, for [BeginAuthorization].
	Challenge []string
	// Exit is how the server's process ended, such as "exit status 1", and Stderr what it printed last, if it was one.
	Exit   string
	Stderr []string

	// ends says that the connection has ended with it: whose answer it was nobody can say, so it answers nothing.
	ends  bool
	cause error
}

// Error returns all that is known, for logs.
func (e *Error) Error() string {
	said := fmt.Sprintf("tool server %q: %s", e.Server, e.Message)
	if e.Tool != "" {
		said = fmt.Sprintf("tool %q of server %q: %s", e.Tool, e.Server, e.Message)
	}
	if e.Unknown() {
		said += " (whether the tool ran is unknown)"
	}
	return said
}

// Unwrap returns what it comes from.
func (e *Error) Unwrap() error { return e.cause }

// Unknown says that nobody knows whether the tool ran, and that it matters.
func (e *Error) Unknown() bool {
	if !e.Sent || !e.Once {
		return false
	}
	switch e.Kind {
	case Closed, Timeout, Stopped:
		return true
	case Protocol:
		return e.ends || e.Status == 502 || e.Status == 504 // somebody in between has answered
	case TooLarge:
		return e.ends
	}
	return false
}

// Fault returns the error as a user reads it.
func (e *Error) Fault() *fault.Error {
	code := fault.Internal
	switch e.Kind {
	case NotActivated, NotAllowed:
		code = fault.Forbidden
	case UnknownServer, UnknownTool:
		code = fault.NotFound
	case BadArguments:
		code = fault.InvalidInput
	case Closed:
		code = fault.NetworkError
	case NotStarted:
		code = fault.RemoteError
	case Timeout:
		code = fault.Timeout
	case Stopped:
		code = fault.Canceled
	case Protocol:
		code = fault.RemoteError
		if e.Code == codeInvalidParams {
			code = fault.InvalidInput
		}
	case TooLarge:
		code = fault.TooLarge
	case Unauthorized:
		code = fault.CredentialInvalid
	case ToolFailed:
		code = fault.ToolError
	}
	if !e.Sent && shortage.Is(e.cause) {
		code = fault.Shortage
	}
	if e.Unknown() {
		code = fault.OutcomeUnknown
	}
	f := fault.Newf(code, "tool server %q: %s", e.Server, e.Message).With("server_id", e.Server).With("kind", string(e.Kind))
	if e.Exit != "" {
		f = f.With("exit", e.Exit)
	}
	if len(e.Stderr) > 0 {
		f = f.With("stderr", e.Stderr)
	}
	if e.Kind == NotStarted && code != fault.Shortage {
		f = f.Final() // it ends in the same way every time, until somebody mends it
	}
	if e.Tool != "" {
		f = f.With("tool", e.Tool)
	}
	if e.cause != nil {
		f = f.WithCause(e.cause)
	}
	return f
}

// NotAllowedBy says that a policy refuses a call.
func NotAllowedBy(server, tool string, v Verdict) *Error {
	why := text.Of("the tool is not allowed: %s has set the policy never for it", v.By)
	if v.From == FromWorkspace {
		why = text.Of("the tool is not allowed: %s has set the policy never for it in this workspace", v.By)
	}
	if v.Detail != "" {
		why = text.Of("%s (%s)", why, v.Detail)
	}
	return &Error{Kind: NotAllowed, Server: server, Tool: tool, Message: text.Of("%s; do without it", why)}
}

const codeInvalidParams = -32602

// Drifted says that tools are not what the user has accepted. It is a question rather than a failure: the caller asks a person and accepts
// the difference with [Pool.Accept], or leaves it.
type Drifted struct {
	Server string
	Tool   string
	// Changes is what differs of the tool that was called.
	Changes []Change
}

// Error names what differs.
func (d *Drifted) Error() string {
	texts := make([]string, len(d.Changes))
	for i, c := range d.Changes {
		texts[i] = c.Summary
	}
	return fmt.Sprintf("tool %q of server %q is not what was accepted (%s); somebody has to accept the difference", d.Tool, d.Server, strings.Join(texts, "; "))
}
