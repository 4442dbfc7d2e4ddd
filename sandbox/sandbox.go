// Package sandbox runs untrusted Python and JavaScript functions (conversions, code nodes, code tools, custom filters) and templates of
// Jinja2.
//
// Code runs behind two walls. The inner one is an interpreter that has nothing to reach with: CPython compiled to WebAssembly, QuickJS
// without its system modules, or a template engine without a loader. The outer one is a child process of our own binary with an empty
// environment, no files, no network and bounded memory; [Walls] tells which of these this machine provides. A [Pool] keeps children warm,
// gives each to one tenant only, and kills a child at its deadline. A call starts from the same first state every time: nothing of one call
// is visible to the next.
//
// It is not a place for host processes, for code that needs files or the network, or for the expression language.
// Kinds of nodes and the wiring above them may import it. The main function of every program that has Tandem inside, and the TestMain of
// tests that use this package, must begin with
//
//	if sandbox.IsChild() {
//		sandbox.Child()
//	}
//
// In a program that does not, a child is the program once more: it panics when it makes a [Pool], instead of starting children of its own.
package sandbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/fault"
)

// Language is what a source is written in.
type Language string

// The languages.
const (
	Python     Language = "python"
	JavaScript Language = "javascript"
	// Jinja is the language of templates: the source is a template, the fields of the input are its variables, the result is a text.
	Jinja Language = "jinja"
)

// The bounds of a call and what holds when it names none.
const (
	DefaultTimeLimit   = 10 * time.Second
	DefaultMemoryMB    = 128
	MaxMemoryMB        = 1024
	DefaultOutputLimit = 10 << 20

	// streamLimit is how much of stdout and stderr is kept, each.
	streamLimit = 64 << 10
	// maxSource and maxInput bound what is sent to a child.
	maxSource = 1 << 20
	maxInput  = 64 << 20
	// imageRoomMB is the memory that every call may use without growing; the smallest limit of a call.
	imageRoomMB = 16
)

// Call is one run of one function.
type Call struct {
	// Tenant owns the call. Children are never shared between tenants. It must not be empty.
	Tenant string
	// Language of Source.
	Language Language
	// Source defines at least one function, or is a single lambda, arrow function or function expression.
	Source string
	// Entry names the function to call. Where there is none of that name, the last function defined is called.
	Entry string
	// Input is the argument, as JSON; nothing is null.
	Input json.RawMessage
	// Aliases are other names of the whole input: the function finds it under them, too, wherever the input has no such field. They are
	// never part of what it returns. What is not an object is found under these names only.
	Aliases []string
	// TimeLimit is counted from when a child has the call; the child is killed then. Zero is DefaultTimeLimit.
	TimeLimit time.Duration
	// MemoryMB is what the code may use beside the interpreter itself, 16 to MaxMemoryMB. Zero is DefaultMemoryMB.
	MemoryMB int
	// OutputLimit bounds the result in bytes of JSON. Zero is DefaultOutputLimit.
	OutputLimit int
	// Now, unless zero, is what the code's clock shows during the whole call.
	Now time.Time
	// Seed, unless empty, makes the code's randomness repeatable.
	Seed []byte
	// Begun is called when a child has the call, which may have waited for one to be started and compiled. May be nil.
	Begun func()
	// Waiting is called when the call has to wait for the interpreter to be compiled, which takes seconds. May be nil.
	Waiting func()
	// Printed is told what the code prints while it runs, in pieces, which end with a line where the code prints whole lines.
	// It is called by the goroutine that makes the call. May be nil.
	Printed func(stream Stream, text string)
}

// Stream is one of the two that code prints to.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Result is what came of a call that ended well.
type Result struct {
	// Value is what the function returned, as JSON.
	Value json.RawMessage
	// Stdout and Stderr are the first 64 KiB of what the code printed.
	Stdout, Stderr string
	// Duration is the time the code took in the child.
	Duration time.Duration
}

// request returns what is sent to a child, with the defaults filled in.
func (c *Call) request() (*request, *fault.Error) {
	q := &request{
		source: []byte(c.Source), entry: []byte(c.Entry), input: bytes.TrimSpace(c.Input), seed: c.Seed,
		aliases:  []byte(strings.Join(c.Aliases, ",")),
		memoryMB: c.MemoryMB, outputLimit: c.OutputLimit,
	}
	if !c.Now.IsZero() {
		q.now = c.Now.UnixNano()
	}
	if q.memoryMB == 0 {
		q.memoryMB = DefaultMemoryMB
	}
	if q.outputLimit == 0 {
		q.outputLimit = DefaultOutputLimit
	}
	if len(q.input) == 0 {
		q.input = []byte("null")
	}
	switch {
	case c.Tenant == "":
		return nil, fault.New(fault.Internal, "a call of the sandbox names no tenant")
	case c.Language != Python && c.Language != JavaScript && c.Language != Jinja:
		return nil, fault.Newf(fault.InvalidConfig, "language %q is unknown; use %q, %q or %q", c.Language, Python, JavaScript, Jinja)
	case q.memoryMB < imageRoomMB || q.memoryMB > MaxMemoryMB:
		return nil, fault.Newf(fault.InvalidConfig, "memory limit %d MB is outside %d to %d", q.memoryMB, imageRoomMB, MaxMemoryMB)
	case c.TimeLimit < 0:
		return nil, fault.Newf(fault.InvalidConfig, "time limit %s is negative", c.TimeLimit)
	case len(q.source) > maxSource:
		return nil, fault.Newf(fault.TooLarge, "the code has %d bytes; at most %d are allowed", len(q.source), maxSource)
	case len(q.input) > maxInput:
		return nil, fault.Newf(fault.TooLarge, "the input of the code has %d bytes; at most %d are allowed", len(q.input), maxInput)
	case !json.Valid(q.input):
		return nil, fault.New(fault.InvalidInput, "the input of the code is not JSON")
	case q.outputLimit < 0 || q.outputLimit > maxInput:
		return nil, fault.Newf(fault.InvalidConfig, "output limit %d is outside 0 to %d", q.outputLimit, maxInput)
	}
	return q, nil
}

// result turns the words of a child into the answer for the caller. The child has run untrusted code, so what it says
// is believed only as far as it can do no harm: the value must be JSON and within the limit, texts are cut, and what they
// have that is not text is replaced.
func (r *reply) result(c *Call, q *request) (Result, error) {
	res := Result{Value: r.value, Stdout: said(string(r.stdout)), Stderr: said(string(r.stderr)), Duration: max(0, r.duration)}
	r.errorType, r.message, r.traceback, r.limit = said(r.errorType), said(r.message), said(r.traceback), said(r.limit)
	var err *fault.Error
	switch r.kind {
	case replyValue:
		if len(r.value) <= q.outputLimit && utf8.Valid(r.value) && json.Valid(r.value) {
			return res, nil
		}
		err = fault.New(fault.OutputInvalid, "what the function returned is not JSON")
	case replyInvalid:
		err = fault.Newf(fault.OutputInvalid, "what the function returned is not JSON: %s", r.message)
	case replyLimit:
		err = r.limitError(q)
	case replyError:
		err = fault.New(fault.CodeError, r.message)
		if r.errorType != "" {
			err.Message = r.errorType + ": " + r.message
			if r.message == "" {
				err.Message = r.errorType
			}
		}
		if r.line > 0 {
			err = fault.Newf(fault.CodeError, "line %d: %s", r.line, err.Message)
		}
		err = err.With("type", r.errorType).With("message", r.message)
	default:
		err = fault.New(fault.CodeError, "the process that ran the code gave an answer that nobody understands; run it again")
	}
	if r.line > 0 {
		err = err.With("line", r.line)
	}
	if r.traceback != "" {
		err = err.With("traceback", r.traceback)
	}
	res.Value = nil
	return res, err.With("language", string(c.Language))
}

// maxSaid bounds a text of a child; its own bounds are below.
const maxSaid = streamLimit + 1<<10

// said is a text of a child as it can be kept.
func said(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxSaid)], "\uFFFD")
}

// The limits a call can run into.
const (
	limitTime   = "time"
	limitMemory = "memory"
	limitOutput = "output"
	limitStack  = "stack"
)

func (r *reply) limitError(q *request) *fault.Error {
	var err *fault.Error
	switch r.limit {
	case limitMemory:
		err = fault.Newf(fault.CodeLimit, "the code needs more than its %d MB of memory; raise memory_mb or hold less at once", q.memoryMB)
	case limitOutput:
		err = fault.Newf(fault.CodeLimit, "the function returned more than %d bytes of JSON; return less", q.outputLimit)
	case limitStack:
		err = fault.New(fault.CodeLimit, "the code ran out of stack; use less recursion")
		if r.traceback != "" {
			err = err.WithDetail(r.traceback)
			r.traceback = ""
		}
	default:
		err = fault.New(fault.CodeLimit, "the code reached a limit")
	}
	return err.With("limit", r.limit)
}

func timeLimitError(limit time.Duration) *fault.Error {
	return fault.Newf(fault.CodeLimit, "the code did not end within %s; raise time_limit_ms or do less", limit).With("limit", limitTime)
}
