package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

// gatewayPath is where clients of the Model Context Protocol connect to.
const gatewayPath = "/mcp"

// Gateway serves the Model Context Protocol. It gets requests of callers whose tokens are valid, and makes requests to the API with
// these tokens.
type Gateway interface {
	http.Handler
	// Close ends all sessions and waits for their requests.
	Close()
}

// gateways registers the address. Every user with a role may connect: the roles are checked for each request that the gateway makes.
func (s *Server) gateways() {
	op := func(method, id, summary, about string) huma.Operation {
		return huma.Operation{
			Method: method, Path: gatewayPath, OperationID: id, Summary: summary, Description: about, Tags: []string{"mcp"},
			Responses: map[string]*huma.Response{"default": {Description: "As the protocol has it."}},
		}
	}
	post := op(http.MethodPost, "send-mcp", "Send a message of the Model Context Protocol",
		"Deployed workflows and agents are tools of an MCP server at this address (streamable HTTP). The answer is JSON or a stream of server-sent events, as the protocol says.")
	post.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Description: "A JSON-RPC message."}}}}
	s.Plain(route.ChangesNothing(post), route.Readers(), s.serveGateway)
	s.Plain(op(http.MethodGet, "follow-mcp", "Listen to notifications of a session of the Model Context Protocol", ""), route.Readers(), s.serveGateway)
	s.Plain(route.ChangesNothing(op(http.MethodDelete, "end-mcp", "End a session of the Model Context Protocol", "Executions that were started in it go on.")), route.Readers(), s.serveGateway)
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request, _ identity.Principal) error {
	if s.gateway == nil {
		return fault.New(fault.NotFound, "this server does not serve the Model Context Protocol")
	}
	// The answer may take as long as a person thinks. The message may not, so it is read before.
	message, err := s.ReadBody(w, r, route.MaxKeys)
	if err != nil {
		return err
	}
	if err := route.Unlimited(w); err != nil {
		return err
	}
	inner := r.Clone(r.Context())
	inner.Header.Set(api.CallerHeader, s.AddressOf(r.Context()))
	inner.Body = io.NopCloser(bytes.NewReader(message))
	defer s.o.Metrics.Reading("mcp")()
	out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: s.open.patience}
	defer out.end()
	s.gateway.ServeHTTP(out, inner)
	return nil
}

// patientWriter gives up a reader that does not take what it is sent within a limit, as streams do. The time between two writes is not
// limited.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter. The time starts again for each piece of a long write: a reader may be slow as long as it goes on.
func (w *patientWriter) Write(b []byte) (written int, err error) {
	for {
		if err := w.begin(); err != nil {
			return written, err
		}
		piece := b[written:min(len(b), written+maxFlush)]
		n, err := w.ResponseWriter.Write(piece)
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

// FlushError is what http.ResponseController calls. The time starts again for what was written before.
func (w *patientWriter) FlushError() error {
	if err := w.begin(); err != nil {
		return err
	}
	return w.control.Flush()
}

// begin starts the time that the reader has.
func (w *patientWriter) begin() error {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end is called before the end of the answer is sent, which may be long after the last write: without it that would fail. The
// next request on the connection gets a deadline of its own.
func (w *patientWriter) end() {
	if err := w.begin(); err != nil {
		return // there is no connection any more
	}
}
