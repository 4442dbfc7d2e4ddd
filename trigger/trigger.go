// Package trigger starts executions of deployed workflows by themselves: when a request comes, when the time has come, when something has
// arrived that a source listens for.
//
// A [Source] knows one kind of trigger and nothing else: what its configuration means, whether a request is genuine, when the next time is.
// Extensions bring sources, and the built-in kinds are sources like all others. The [Service] does what all kinds have in common: it
// deploys and undeploys, records each delivery together with the start of its execution, so that one delivery leads to one execution
// whatever dies in between, keeps one clock over one index for all schedules, and lets listeners run.
//
// The server, the package that puts a program together and sources import it. It does not know any kind or vendor.
package trigger

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"tandem/credential"
	"tandem/store"
)

// Source is what starts executions for one kind of trigger. It is at least one of [Receiver], [Scheduler], [Listener], [Shared] and
// [Presenter], unless people start what it stands for. It is used by several goroutines at once.
type Source interface {
	// Kind is the kind of node that it is the source of, such as TRIGGER.WEBHOOK.
	Kind() string
	// Register checks a trigger that is to be deployed, and makes everything ready for it outside if that is needed. An error says why it
	// cannot be deployed. It may be called again for a trigger that is registered.
	Register(ctx context.Context, t Trigger) error
}

// Unregisterer is a [Source] that has to undo what Register has made outside.
type Unregisterer interface {
	Source
	// Unregister is called when the trigger is no longer in force. What fails is logged.
	Unregister(ctx context.Context, t Trigger) error
}

// Receiver is a [Source] that takes requests.
type Receiver interface {
	Source
	// Route is where the trigger takes which requests; without a path it takes none. It depends on the configuration alone.
	Route(t Trigger) (Route, error)
	// Receive looks at a request to that address and says what becomes of it. What is not genuine is a [fault.Unauthorized] error; what
	// cannot be read is [fault.InvalidInput] or [fault.TooLarge]. Nothing of a request is kept before Receive has returned.
	Receive(ctx context.Context, t Trigger, r *Request) (Verdict, error)
}

// Scheduler is a [Source] that starts executions at times.
type Scheduler interface {
	Source
	// Schedule is when. It depends on the configuration alone.
	Schedule(t Trigger) (Schedule, error)
}

// Listener is a [Source] that has to look for events itself: a mailbox, a connection to a service.
type Listener interface {
	Source
	// Listen hands over what arrives until the context ends. It begins where the cursor of the trigger says, and returns early only with an
	// error; then it is begun again after a pause, from the cursor that is stored by then. It calls [Trigger.Ready] once it hears what
	// arrives. Of one trigger one Listen runs at a time, also while the workflow is deployed anew.
	Listen(ctx context.Context, t Trigger, deliver Deliver) error
}

// Positioner is a [Listener] whose triggers begin at the moment of their deployment, even if nobody is able to listen then.
type Positioner interface {
	Listener
	// Position returns the cursor that a trigger begins with. It is called while the trigger is deployed, after Register. The cursor of t
	// is that of the trigger of the same node which is in force so far, nil if there is none; if Position returns nil, the new trigger goes
	// on from where that one is when it is replaced. An error keeps the trigger from being deployed.
	Position(ctx context.Context, t Trigger) ([]byte, error)
}

// Deliver takes an event of a [Listener]. It returns without an error once the event and the cursor are on disk; one whose key is known
// changes the cursor alone. After an error the same event has to be delivered again. Once another revision is in force, an event with a
// cursor is refused with a *[store.SupersededError]: the listener of that revision delivers it.
type Deliver func(ctx context.Context, e Event, cursor []byte) error

// Trigger is a trigger of a deployed workflow, or of one that is being deployed, as its source sees it.
type Trigger struct {
	store.Trigger
	// Open opens the credentials of the workspace. The source releases what it opens.
	Open credential.Opener
	// Address is where the requests of the workflow come to, without the trigger's own path; empty: this instance has no address.
	Address string
	// Callback is the address of the account that a [Shared] source's trigger is registered for; empty: it has none.
	Callback string
	// KeepFile keeps the content of a file and returns the hash of it. It returns when the content is on disk.
	KeepFile func(ctx context.Context, r io.Reader) (store.Blob, error)

	// Ready and Move are there for a [Listener] while it listens. Ready says that it hears what arrives from now on, which people see;
	// it may be called again. Move keeps how far the listener has come without an event.
	Ready func()
	Move  func(ctx context.Context, cursor []byte) error
}

// Event is something that starts an execution.
type Event struct {
	// Key is the sender's id of it: a trigger takes one event with it. Empty: it has none, and each is one of its own.
	Key string
	// Payload is what the trigger brings, a JSON object. It is kept, so it must not hold secrets.
	Payload json.RawMessage
	// Conversation is the one that it is part of; empty: none.
	Conversation string
	// Ignored is why nothing is started; the event is kept in the history all the same. Empty: an execution is.
	Ignored string
	// Time is when it happened, as its sender says. Triggers that share an account leave out what happened before they were deployed. Zero:
	// nobody knows.
	Time time.Time
}

// Route is where a trigger takes requests.
type Route struct {
	// Path is below the address of the workflow. A part in braces, as in "/orders/{id}", stands for any one part.
	Path    string
	Methods []string
	// Reply is how senders are answered; empty: at once. What a FLOW.RESPOND node says reaches a sender only where this is [ReplyNode].
	Reply Reply
}

// Request is a request that has come to a trigger.
type Request struct {
	Method string
	// Path is what follows the address of the workflow; PathParams are its parts that the route has in braces.
	Path       string
	PathParams map[string]string
	Query      url.Values
	Header     http.Header
	Body       []byte
	// RemoteAddr is the address that it came from, without a port.
	RemoteAddr string
	Received   time.Time
	// KeepFile keeps the content of a file and returns the hash of it. It returns when the content is on disk.
	KeepFile func(ctx context.Context, r io.Reader) (store.Blob, error)
}

// Reply is how the sender of a request is answered that starts an execution.
type Reply string

// The ways to answer: at once, with the result when the execution has ended, or when a node of it says so.
const (
	ReplyAtOnce Reply = "async"
	ReplyResult Reply = "sync"
	ReplyNode   Reply = "node"
)

// Verdict is what becomes of a request: it is answered at once and nothing is kept, or it is an event.
type Verdict struct {
	// Answer is sent at once, such as the answer to a challenge; nothing is recorded then.
	Answer *Answer
	Event  Event
	// Reply is how the sender is answered when the event starts something, Wait how long the sender waits for it, and Format what a result
	// is sent as: json, text or html.
	Reply  Reply
	Wait   time.Duration
	Format string
}

// Answer is an answer to a request.
type Answer struct {
	Status      int               `json:"status"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Body        string            `json:"body,omitempty"`
	// Blob is the hash of a stored value that is sent as the body, Name the file name that is offered for it.
	Blob string `json:"blob,omitempty"`
	Name string `json:"name,omitempty"`
}

// Missed is what a schedule does about times at which nothing was running.
type Missed string

// The policies: nothing, the newest of them once, or the newest few of them in order.
const (
	MissedSkip    Missed = "skip"
	MissedRunOnce Missed = "run_once"
	MissedRunAll  Missed = "run_all"
)

// Schedule is when a trigger starts executions.
type Schedule struct {
	// Next is the first time after another one; false: there is none.
	Next func(after time.Time) (time.Time, bool)
	// Event is what a scheduled time brings. Its key is set by the service.
	Event func(at time.Time) (Event, error)
	// Missed and MaxMissed say what is done about missed times.
	Missed    Missed
	MaxMissed int
	// Jitter is the longest that a start is put off by; how long is the same for the same time.
	Jitter time.Duration
}
