package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/identity"
)

// prefix is before the path of every operation.
const prefix = "/api/v1"

// maxBody is how large the body of a request may be.
const maxBody = 10 << 20

// bodyTimeout is how long a body may take to arrive.
const bodyTimeout = time.Minute

// Common sets of roles. An admin may call everything, whether a set names it or not.

// readers are all who have a role.
func readers() []identity.Role { return identity.Roles() }

// editors write workflows and templates.
func editors() []identity.Role { return []identity.Role{identity.Admin, identity.Editor} }

// operators start executions and act on them. Who writes workflows may try them.
func operators() []identity.Role {
	return []identity.Role{identity.Admin, identity.Editor, identity.Operator}
}

// admins keep users and credentials.
func admins() []identity.Role { return []identity.Role{identity.Admin} }

// handle registers an operation. Allow are the roles that may call it; an admin always may. Path is without the prefix. The
// function gets the caller, whose roles were checked before the request was read; what it returns as an error, whatever
// that is, is sent as a problem document. Operations are documented with their roles and refusals.
func handle[I, O any](s *Server, op huma.Operation, allow []identity.Role, fn func(ctx context.Context, p identity.Principal, in *I) (*O, error)) {
	op.Path = prefix + op.Path
	allow = s.declare(&op, allow)
	op.MaxBodyBytes = maxBody + 1 // a body of exactly this many bytes is refused
	op.BodyReadTimeout = bodyTimeout
	keys := maxKeys
	if wide, ok := any(new(I)).(interface{ maxKeys() int }); ok {
		keys = wide.maxKeys()
	}
	op.Middlewares = append(huma.Middlewares{s.guard(allow), s.bodyDoor(keys)}, op.Middlewares...)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		p := principalOf(ctx)
		out, err := fn(ctx, p, in)
		if err != nil {
			return nil, s.problem(ctx, p, err)
		}
		return out, nil
	})
}

// stream registers an operation that writes its answer itself, for as long as it likes: server-sent events, a WebSocket, a
// page of text. Op documents it: method, path without the prefix, parameters, responses. An error that is returned before
// anything was written is sent as a problem document; later it is logged. The deadlines of the
// connection are lifted, so the stream sets its own.
func (s *Server) stream(op huma.Operation, allow []identity.Role, fn func(w http.ResponseWriter, r *http.Request, p identity.Principal) error) {
	op.Path = prefix + op.Path
	s.plain(op, allow, func(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
		defer s.o.Metrics.reading(op.OperationID)()
		if err := unlimited(w); err != nil {
			return err
		}
		return fn(w, r, p)
	})
}

// plain is stream for a path that stands outside of the prefix.
func (s *Server) plain(op huma.Operation, allow []identity.Role, fn func(w http.ResponseWriter, r *http.Request, p identity.Principal) error) {
	allow = s.declare(&op, allow)
	s.api.OpenAPI().AddOperation(&op)
	s.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		p, err := s.admit(r.Context(), authorization(r), allow)
		if err == nil {
			err = fn(w, r.WithContext(withPrincipal(r.Context(), p)), p)
		}
		if err == nil {
			return
		}
		if begun(w) {
			s.log.DebugContext(r.Context(), "a stream ended early", "route", r.Pattern, "error", err)
			return
		}
		s.refuse(w, r, s.problem(r.Context(), p, err))
	})
}

// public registers a page that needs no token. There are few, and they are listed in a test.
func (s *Server) public(pattern string, fn http.HandlerFunc) {
	s.mux.open = append(s.mux.open, pattern)
	s.mux.HandleFunc(pattern, fn)
}

// declare completes the documentation of an operation and returns all roles that may call it.
func (s *Server) declare(op *huma.Operation, allow []identity.Role) []identity.Role {
	if len(allow) == 0 {
		panic(fmt.Sprintf("server: %s %s allows no role", op.Method, op.Path))
	}
	if op.OperationID == "" || op.Summary == "" || len(op.Tags) != 1 {
		panic(fmt.Sprintf("server: %s %s needs an operation id, a summary and one tag", op.Method, op.Path))
	}
	var names []string
	var all []identity.Role
	for _, r := range identity.Roles() {
		if r == identity.Admin || slices.Contains(allow, r) {
			all = append(all, r)
			names = append(names, string(r))
		}
	}
	roles := "Roles: " + strings.Join(names, ", ") + "."
	if op.Description != "" {
		roles = op.Description + "\n\n" + roles
	}
	op.Description = roles
	op.Security = []map[string][]string{{"bearer": {}}}
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	op.Extensions["x-roles"] = names
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
		s.declareProblem(op, status)
	}
	return all
}

// guard lets those in who have a role, before anything of the request is read.
func (s *Server) guard(allow []identity.Role) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		p, err := s.admit(c.Context(), c.Header("Authorization"), allow)
		if err != nil {
			r, w := humago.Unwrap(c)
			s.refuse(w, r, s.problem(c.Context(), p, err))
			return
		}
		next(huma.WithContext(c, withPrincipal(c.Context(), p)))
	}
}

// bodyDoor reads the body of a request before the framework does, within the bounds of all bodies.
func (s *Server) bodyDoor(keys int) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(c)
		body, err := s.readBody(w, r, keys)
		if err != nil {
			s.refuse(w, r, s.problem(c.Context(), principalOf(c.Context()), err))
			return
		}
		if body != nil {
			if takesOlderNames(c.Operation().OperationID) {
				body = newerNames(body)
			}
			r.Body = &keptBody{bytes.NewReader(body), body}
		}
		next(c)
	}
}

// keptBody is a body that was read, for whoever reads it again, or wants all of it.
type keptBody struct {
	*bytes.Reader
	text []byte
}

// Close implements io.Closer.
func (*keptBody) Close() error { return nil }

// principalKey is where the caller stands in a context.
type principalKey struct{}

func withPrincipal(ctx context.Context, p identity.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principalOf returns the caller; nobody, who may nothing, when there is none.
func principalOf(ctx context.Context) identity.Principal {
	p, _ := ctx.Value(principalKey{}).(identity.Principal)
	return p
}

// routes is a mux that remembers what was registered, so that a test can look at all of it.
type routes struct {
	*http.ServeMux
	patterns []string
	// open are the patterns of pages that need no token.
	open []string
}

func newRoutes() *routes { return &routes{ServeMux: http.NewServeMux()} }

// HandleFunc implements humago.Mux.
func (m *routes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.HandleFunc(pattern, handler)
}
