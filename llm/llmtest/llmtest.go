// Package llmtest is what every provider of package llm must do. A provider's test calls [Run] with a [Harness].
//
// The suite is the service: a local HTTP server that does what a [Scenario] says. Scenarios know nothing of protocols;
// the provider's test brings a [Wire] that writes them in the bytes of its service and reads what the provider has sent.
// What goes wrong on the way (answers that are cut, that stall, that come in awkward pieces) is done by the suite to
// those bytes, so it is the same for all. Providers are called through the guarded client, as they are when they run.
//
// Only tests import it.
package llmtest

import (
	"errors"
	"net/http"

	"tandem/fault"
	"tandem/llm"
)

// Harness is a provider and all that the suite has to know of it.
type Harness struct {
	// New makes the provider. The suite gives it the address of its server, a key and a client.
	New llm.Factory
	// Wire speaks the service's side of the protocol.
	Wire Wire
	// BasePath is what base URLs of the service end with, such as "/v1"; empty for none.
	BasePath string
	// Model is a name that the provider takes for a model without peculiarities, so that no parameter is left out.
	Model string
	// Without says what the service has no way to do, and why. What depends on it is left out or not looked at. Names that
	// are not features fail the test.
	Without map[Feature]string
}

// Feature is something that not every service can do.
type Feature string

// The features.
const (
	// Reasoning is that a model's thoughts can be seen, in answers and streams.
	Reasoning Feature = "reasoning"
	// CallIDs is that tool calls have ids that the service gives and wants back.
	CallIDs Feature = "call_ids"
	// FailedResults is that a tool result says that it is a failure, apart from its text.
	FailedResults Feature = "failed_results"
	// OneTool is that a request can keep the model from calling several tools at once.
	OneTool Feature = "one_tool"
	// Schemas is that a request can ask for an object that fits a schema, and that the schema arrives unchanged.
	Schemas Feature = "schemas"
	// AnyJSON is that a request can ask for any JSON object.
	AnyJSON Feature = "any_json"
	// WholeToolSchemas is that the schemas of tools arrive unchanged, with $ref, anyOf and recursion.
	WholeToolSchemas Feature = "whole_tool_schemas"
	// StreamErrors is that the service can tell of a failure inside a stream that has begun.
	StreamErrors Feature = "stream_errors"
	// RetryAfter is that the provider reads Retry-After (seconds, a date) and Retry-After-Ms.
	RetryAfter Feature = "retry_after"
	// CRLF is that events of a stream may end with CR LF.
	CRLF Feature = "crlf"
	// KeepAlive is that comments may stand between the events of a stream.
	KeepAlive Feature = "keep_alive"
	// NoKey is that a provider can be made without a key and then sends none.
	NoKey Feature = "no_key"
)

// ErrUnsayable is what a Wire returns for a scenario that its protocol cannot express. The case is skipped.
var ErrUnsayable = errors.New("the protocol has no way to say this")

// Wire is the service's side of a protocol. It is used by several goroutines at once.
type Wire interface {
	// Decode tells what a provider's request asks for, in the words of package llm. Messages come in the order in which they
	// were sent, system messages first and joined with a blank line if the protocol has one place for them. The result of a
	// tool call has the ToolCallID and the ToolName that it answers, as far as the request tells them (the name can be found
	// at the call). Arguments are the JSON text that was sent. What the protocol does not carry stays empty. Decode fails
	// if the service would refuse the request: a wrong path, a part it does not know, a duplicate.
	Decode(r *http.Request, body []byte) (Call, error)
	// Encode writes what the service does with a call: a stream if the call asked for one, else one body.
	Encode(c Call, s Scenario) (Reply, error)
}

// Call is a request as the service understands it.
type Call struct {
	llm.Request
	// Key is the secret that came with it, without a scheme ("Bearer"); empty if there was none.
	Key string
	// Header is what came with it. The suite fills it in.
	Header http.Header
}

// Scenario is what the model and the service do with one call.
type Scenario struct {
	// Deltas are what the model says, in the order in which it says it. A stream has an event for each, none of them joined
	// or split; an answer that is not streamed has all of them together. The calls of tools come one after the other, each
	// with its ID and Name in its first piece. Services that cannot send arguments in pieces send a call's pieces as one.
	Deltas []llm.Delta
	// Finish is why it ended.
	Finish llm.Finish
	// Refused ends the answer with the service's sign that the model refuses, instead of Finish. Deltas come before it.
	Refused bool
	// Usage is what the service says was used; nil says nothing.
	Usage *llm.Usage
	// Model and ID are the service's names for the model and the call.
	Model, ID string

	// Fail is an error that the service answers with instead, given by what the provider has to make of it: rate_limited,
	// remote_error, credential_invalid, not_found, context_too_long, remote_rejected. Its status and body are the protocol's.
	// With Deltas it comes inside the stream, after them: remote_error only.
	Fail fault.Code
	// Message is the text of the error.
	Message string
}

// Reply is an answer in bytes.
type Reply struct {
	// Status is 200 if zero.
	Status int
	Header http.Header
	// Frames are the bytes up to the sign that the answer is complete. Each is whole by itself, such as an event of a stream
	// with the blank line after it. An answer that is not a stream is one frame.
	Frames [][]byte
	// End is the sign that the answer is complete, in as many frames as it takes (the finish reason, usage, [DONE]). A
	// stream that ends without the first frame of it was cut.
	End [][]byte
}
