// Package mcp uses the tools of MCP servers: it keeps connections to them ([Pool]), calls their tools, reads results ([Read])
// and notices when a tool is no longer what a person has accepted ([Drift]).
//
// It does not decide who may register a server, does not ask people and keeps nothing on disk: rows are those of
// [store.MCPServers], secrets and tokens come through [Secrets] and [Grants], HTTP goes through the client it is given. Nothing is started
// or reached before somebody uses a tool. The kinds of tool nodes, the server and the wiring import it.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"tandem/identity"
	"tandem/store"
)

// Secrets opens what variables and headers refer to.
type Secrets interface {
	// Secret returns a field of a credential of the principal's workspace. Release ends its use; until then what is logged is
	// redacted of it.
	Secret(ctx context.Context, p identity.Principal, credential, field string) (text string, release func(), err error)
	// Version tells a credential apart from what it was before it was changed, by whichever process, and from another of the same name.
	Version(ctx context.Context, p identity.Principal, credential string) (string, error)
}

// Grants keeps the OAuth tokens of servers, sealed in a credential.
type Grants interface {
	Load(ctx context.Context, p identity.Principal, credential string) (Grant, error)
	Save(ctx context.Context, p identity.Principal, credential string, g Grant) error
}

// Options are what a pool works with.
type Options struct {
	// Servers is needed, the rest where servers need it.
	Servers store.MCPServers
	Secrets Secrets
	Grants  Grants
	// HTTP is the guarded client. Its time limit is not used, since streams live longer than calls: it must bound connecting
	// itself, and must not bound how long or how large an answer is.
	HTTP *http.Client
	// Redact takes the secrets of a workspace out of what servers say: on their error output, with progress and in errors. Clean does so
	// with the results of tools, which are JSON. Nil leaves it as it is.
	Redact func(workspace, text string) string
	Clean  func(workspace string, document json.RawMessage) json.RawMessage
	Log    *slog.Logger
	// ToolsChanged is told that a server says its tools have changed. It must return soon.
	ToolsChanged func(Key)

	// Connect bounds how long a server may take until it can be used: 20 s, or longer for one that says so, see [StartLimit]. CheckAfter is
	// how long a connection may have been silent to be used without a look: 30 s. ListAge is how long a list of tools is believed: 60 s.
	Connect, CheckAfter, ListAge time.Duration
	// Admin says that a user is an admin, whose acceptance of a change counts for everybody. Without it nobody is.
	Admin func(ctx context.Context, workspace, user string) (bool, error)
	// Version is told to servers.
	Version string
}

// Key is what a connection is for.
type Key struct {
	Workspace, Server, User string
}

// Call is a use of a tool.
type Call struct {
	Server string
	Tool   string
	// Arguments is a JSON object; empty is one without members.
	Arguments json.RawMessage
	// Silence is how long the server may say nothing; progress begins it anew. The server's timeout_seconds when zero.
	Silence time.Duration
	// SilenceFrom is the setting that Silence comes from, for what people are told when it was too short.
	SilenceFrom string
	// Limit is how long the call may take in all, whatever the progress: ten times the silence when zero, and 10 minutes at least.
	Limit time.Duration
	// Progress is told of progress, in order, and not after the call has returned. It must return soon.
	Progress func(Progress)
	// NoRepeat says that a call which may have reached the server is not made again here: the caller sees to that, and counts.
	NoRepeat bool
	// Check, when it is set, sees the tool as it is called and what the call meets, and refuses the call with an error, which is returned
	// as it is. What is never allowed is refused without it.
	Check func(Tool, Verdict) error
}

// Progress is how far a call has come.
type Progress struct {
	Done    float64 `json:"progress"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// minLimit is the least of what a call may take in all when nobody says so.
const minLimit = 10 * time.Minute

// maxMessage is how large one message of a server may be.
const maxMessage = 16 << 20

// exchange follows one request: whether it may have gone out, and the exact bytes of its answer.
type exchange struct {
	mu       sync.Mutex
	id       string
	sent     bool
	answered bool
	tooLarge bool
	status   int
	result   json.RawMessage
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func (x *exchange) markSent() {
	x.mu.Lock()
	x.sent = true
	x.mu.Unlock()
}

// answer notes what the server said. A result of nil is a refusal.
func (x *exchange) answer(result json.RawMessage) {
	x.mu.Lock()
	x.answered, x.result = true, result
	x.mu.Unlock()
}

// exchanges are those of a connection that are under way, by the id of the request.
type exchanges struct {
	mu   sync.Mutex
	open map[string]*exchange
}

func (e *exchanges) addExchange(id string, x *exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[string]*exchange{}
	}
	x.id = id
	e.open[id] = x
}

func (e *exchanges) remove(x *exchange) {
	e.mu.Lock()
	delete(e.open, x.id)
	e.mu.Unlock()
}

func (e *exchanges) getExchange(id string) *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[id]
}
