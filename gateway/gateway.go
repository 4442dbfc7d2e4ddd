// Package gateway lets clients of the Model Context Protocol use Tandem: every deployed workflow and every agent is a tool.
//
// It stands on the API: whatever a client of the protocol does is a request of a Tandem client, so every rule of the API holds and
// there is none besides. It holds no state that matters: an execution goes on whatever becomes of the call, the session or the
// process that has started it. It is not a client of tool servers; that is package mcp.
//
// A [Server] serves one caller over any transport, [HTTP] serves many over the protocol's HTTP transport. Package app and the command line
// may import it.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
	"tandem/payload"
)

// API is what the gateway asks of Tandem: a [client.Client].
type API interface {
	Workflows(ctx context.Context, q client.WorkflowQuery) (api.Workflows, error)
	Workflow(ctx context.Context, id string, revision int64) (api.Workflow, error)
	Execute(ctx context.Context, id string, r api.ExecuteRequest, key string) (api.ExecuteResponse, error)
	Execution(ctx context.Context, id string) (api.Execution, error)
	Watch(ctx context.Context, execution, after, vocabulary string, each func(api.Event) error) error
	Act(ctx context.Context, execution string, r api.ActionRequest) (api.ActionResponse, error)
	Value(ctx context.Context, execution, hash string) (io.ReadCloser, error)
	Interaction(ctx context.Context, id string) (api.InteractionDetail, error)
	Respond(ctx context.Context, id string, r api.RespondRequest) (api.Interaction, error)
	Agents(ctx context.Context, q client.AgentQuery) (api.Agents, error)
	StartTask(ctx context.Context, agent string, r api.TaskRequest, key string) (api.TaskStarted, error)
}

// Options say how a gateway behaves. The zero value of everything but Version is a good choice.
type Options struct {
	// Version is that of the program.
	Version string
	// Wait is how long a call waits for its execution before it answers with a handle; 25 s by default, below what clients wait.
	Wait time.Duration
	// Patience is how long a question stays with a client that has it put to its user before the call answers with a handle;
	// 10 minutes by default.
	Patience time.Duration
	// Look is how often it is looked whether other workflows and agents are there, while a client listens; 5 s by default.
	Look time.Duration
	// MaxOutput is how many bytes of outputs a result may have; 100,000 by default.
	MaxOutput int
	// TakeUp goes on with an execution that was parked. Nil: the API does that by itself.
	TakeUp func(ctx context.Context, execution string) error
	// Log may be nil.
	Log *slog.Logger
}

func (o *Options) complete() {
	set := func(d *time.Duration, usual time.Duration) {
		if *d <= 0 {
			*d = usual
		}
	}
	set(&o.Wait, 25*time.Second)
	set(&o.Patience, 10*time.Minute)
	set(&o.Look, 5*time.Second)
	if o.MaxOutput <= 0 {
		o.MaxOutput = 100_000
	}
	if o.TakeUp == nil {
		o.TakeUp = func(context.Context, string) error { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// maxCalls is how many calls of one caller may wait at once. More are refused: each holds a stream of events.
const maxCalls = 64

// newest is the first version of the protocol without sessions. From it on a question is the result of a call, which the client
// repeats with the answer; before it the server asks while the call waits.
const newest = "2026-07-28"

// Server is Tandem as one caller sees it. It must be closed.
type Server struct {
	api API
	o   Options
	mcp *mcp.Server
	// root ends with Close; everything that waits does, too.
	root context.Context
	end  context.CancelFunc
	// calls holds a token for each call that may wait.
	calls chan struct{}

	// listing is held while the tools are compared with what there is.
	listing sync.Mutex
	// read remembers what was read of a workflow's definition, by id.
	read map[string]reading

	// mu guards what follows.
	mu sync.Mutex
	// tools are those that clients are shown, by name; nil before the first look.
	tools map[string]tool
	// looking says that a goroutine looks for changes; closed that there will be none any more.
	looking, closed bool
	background      sync.WaitGroup
}

// New makes a server for the user of the API's client.
func New(a API, o Options) *Server {
	o.complete()
	s := &Server{api: a, o: o, calls: make(chan struct{}, maxCalls), read: map[string]reading{}}
	s.root, s.end = context.WithCancel(context.Background())
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "tandem", Title: "Tandem", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		// What is listed depends on who asks.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 0, "private" },
	})
	s.mcp.AddReceivingMiddleware(s.receive)
	s.addOwnTools()
	return s
}

const instructions = "Each tool runs a workflow of Tandem, or gives an agent of Tandem a task (agent_…). " +
	"A run that has not ended when the call does goes on by itself; the result then has its execution_id: execution_status says how it stands. " +
	"A run that waits for a person lists its questions; execution_resume takes the answers. Ask the user for them: approvals and missing values are theirs to give."

// Serve serves one session over a transport until the client leaves or ctx ends, neither of which is an error. The API is asked first, so
// that one that cannot be reached, or refuses the caller, is told at once.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	if err := s.list(ctx); err != nil {
		return err
	}
	err := s.mcp.Run(ctx, t)
	if ctx.Err() != nil || s.root.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// ServeIO is Serve over a pair of streams, a message on each line: what a client does that starts a process.
func (s *Server) ServeIO(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.Serve(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}, MaxLineLength: maxBody})
}

type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }

// Close ends sessions and whatever waits, and returns when nothing does any more. Executions go on.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	for session := range s.sessions() {
		s.leave(session)
	}
	s.background.Wait()
}

// sessions are those that are open.
func (s *Server) sessions() iter.Seq[*mcp.ServerSession] { return s.mcp.Sessions() }

func (s *Server) leave(session *mcp.ServerSession) {
	if err := session.Close(); err != nil {
		s.o.Log.Debug("a session of the protocol ended with an error", "error", err)
	}
}

// receive is what every message of a client passes: the list of tools is brought up to date where that matters, and a defect ends a
// request and not the process.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if defect := recover(); defect != nil {
				s.o.Log.Error("a request of the protocol broke off", "method", method, "panic", defect, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "an internal error occurred; the operator's log has the detail"}
			}
		}()
		ctx = withCaller(ctx, req)
		switch method {
		case "initialize", "subscriptions/listen":
			s.look()
		case "tools/list":
			if err := s.list(ctx); err != nil {
				return nil, protocolError(err)
			}
		case "tools/call":
			if r, ok := req.(*mcp.CallToolRequest); ok && !s.knows(r.Params.Name) {
				if err := s.list(ctx); err != nil {
					return nil, protocolError(err)
				}
			}
		}
		return next(ctx, method, req)
	}
}

// protocolError is an error of the API for a request that has no result to put it into.
func protocolError(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: messageOf(err)}
}

// messageOf is what a client is told of an error.
func messageOf(err error) string {
	f := fault.From(err)
	return fmt.Sprintf("%s [%s]", f.Message, f.Code)
}

// look begins to look for changes of the tools, unless somebody does. It ends when nobody is connected any more.
func (s *Server) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking || s.closed {
		return
	}
	s.looking = true
	s.background.Go(s.keepLooking)
}

func (s *Server) keepLooking() {
	every := time.NewTicker(s.o.Look)
	defer every.Stop()
	for {
		select {
		case <-s.root.Done():
			return
		case <-every.C:
		}
		s.mu.Lock()
		connected := false
		for range s.sessions() {
			connected = true
			break
		}
		if !connected {
			s.looking = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if err := s.list(s.root); err != nil {
			s.o.Log.Debug("the tools that clients are shown cannot be compared with what there is", "error", err)
		}
	}
}

// raw encodes a value that can always be encoded: it is made of what was read as JSON, texts and numbers.
func raw(v any) json.RawMessage {
	out, err := payload.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gateway: encode %T: %v", v, err))
	}
	return out
}
