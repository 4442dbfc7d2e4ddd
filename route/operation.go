package route

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/identity"
)

// Prefix is before the path of every operation.
const Prefix = "/api/v1"

// MaxBody is how large the body of a request may be.
const MaxBody = 10 << 20

// bodyTimeout is how long a body may take to arrive.
const bodyTimeout = time.Minute

// Common sets of roles. An admin may call everything, whether a set names it or not.

// Readers are all who have a role.
func Readers() []identity.Role { return identity.Roles() }

// Editors write workflows and templates.
func Editors() []identity.Role { return []identity.Role{identity.Admin, identity.Editor} }

// Operators start executions and act on them. People who write workflows may try them.
func Operators() []identity.Role {
	return []identity.Role{identity.Admin, identity.Editor, identity.Operator}
}

// Admins keep users and credentials.
func Admins() []identity.Role { return []identity.Role{identity.Admin} }

// Tagged returns a function that describes the operations of one chapter of the API document.
func Tagged(tag string) func(method, path, id, summary string) huma.Operation {
	return func(method, path, id, summary string) huma.Operation {
		return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, Tags: []string{tag}}
	}
}

// Handle registers an operation. Allow are the roles that may call it; an admin always may. Path is without the prefix. The
// function gets the caller, whose roles were checked before the request was read; what it returns as an error, whatever
// that is, is sent as a problem document. Operations are documented with their roles and refusals.
func Handle[I, O any](s *Router, op huma.Operation, allow []identity.Role,
	fn func(ctx context.Context, p identity.Principal, in *I) (*O, error)) {
	op.Path = Prefix + op.Path
	allow = s.declare(&op, allow)
	op.MaxBodyBytes = MaxBody + 1 // a body of exactly this many bytes is refused
	op.BodyReadTimeout = bodyTimeout
	keys := MaxKeys
	if wide, ok := any(new(I)).(interface{ MaxBodyKeys() int }); ok {
		keys = wide.MaxBodyKeys()
	}
	guarded := op
	op.Middlewares = append(huma.Middlewares{s.guard(&guarded, allow), s.bodyDoor(keys)}, op.Middlewares...)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		p := PrincipalOf(ctx)
		out, err := fn(ctx, p, in)
		if err == nil {
			err = s.Settle(ctx)
		}
		if err != nil {
			return nil, s.Problem(ctx, p, err)
		}
		return out, nil
	})
}

// Stream registers an operation that writes its answer itself, for as long as it likes: server-sent events, a WebSocket, a
// page of text. Op documents it: method, path without the prefix, parameters, responses. An error that is returned before
// anything was written is sent as a problem document; later it is logged. The deadlines of the
// connection are lifted, so the stream sets its own.
func (s *Router) Stream(op huma.Operation, allow []identity.Role,
	fn func(w http.ResponseWriter, r *http.Request, p identity.Principal) error) {
	op.Path = Prefix + op.Path
	s.Plain(op, allow, func(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
		defer s.o.Counter.Reading(op.OperationID)()
		if err := Unlimited(w); err != nil {
			return err
		}
		return fn(w, r, p)
	})
}

// Plain is stream for a path that stands outside of the prefix.
func (s *Router) Plain(op huma.Operation, allow []identity.Role,
	fn func(w http.ResponseWriter, r *http.Request, p identity.Principal) error) {
	allow = s.declare(&op, allow)
	s.Document().AddOperation(&op)
	s.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		p, err := s.admit(r.Context(), &op, Authorization(r), allow)
		if err == nil {
			ctx := s.drafted(withPrincipal(r.Context(), p), p, &op, r.PathValue("id"))
			if err = fn(w, r.WithContext(ctx), p); err == nil {
				err = s.Settle(ctx)
			}
		}
		if err == nil {
			return
		}
		if Begun(w) {
			s.Log.DebugContext(r.Context(), "a stream ended early", "route", r.Pattern, "error", err)
			return
		}
		s.Refuse(w, r, s.Problem(r.Context(), p, err))
	})
}

// Public registers a page that needs no token. There are few, and they are listed in a test.
func (s *Router) Public(pattern string, fn http.HandlerFunc) {
	s.mux.open = append(s.mux.open, pattern)
	s.mux.HandleFunc(pattern, fn)
}

// stranger is an address that people and services call without a token: everybody who has the address, or signs the request, may.
type stranger struct {
	// path is before what differs, which is rest, as patterns have it.
	path, rest string
	limit      int64
	methods    []string
}

// maxStrangerBody is how much of the body of a stranger's request is ever kept.
const maxStrangerBody = 12 << 20

// ToStrangers registers such an address for methods. Limit is how large a body may be; the handler may refuse sooner.
func (s *Router) ToStrangers(path, rest string, limit int64, handlers map[string]http.HandlerFunc) {
	methods := slices.Sorted(maps.Keys(handlers))
	s.strangers = append(s.strangers, stranger{path, rest, limit, methods})
	for _, method := range methods {
		handler := handlers[method]
		s.Public(method+" "+path+rest, func(w http.ResponseWriter, r *http.Request) {
			handler(w, r.WithContext(s.WithOrigin(r.Context())))
		})
	}
}

// strangerAt finds the registered address that a path belongs to.
func (s *Router) strangerAt(path string) (stranger, bool) {
	i := slices.IndexFunc(s.strangers, func(o stranger) bool { return strings.HasPrefix(path, o.path) })
	if i < 0 {
		return stranger{}, false
	}
	return s.strangers[i], true
}

// declare completes the documentation of an operation and returns all roles that may call it.
func (s *Router) declare(op *huma.Operation, allow []identity.Role) []identity.Role {
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
	if _, said := op.Extensions[scopeOf]; !said {
		op.Extensions[scopeOf] = string(usualScope(op, all))
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
		http.StatusUnprocessableEntity} {
		s.DeclareProblem(op, status)
	}
	return all
}

// guard lets those in who have a role, before anything of the request is read.
func (s *Router) guard(op *huma.Operation, allow []identity.Role) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		p, err := s.admit(c.Context(), op, c.Header("Authorization"), allow)
		if err != nil {
			r, w := humago.Unwrap(c)
			s.Refuse(w, r, s.Problem(c.Context(), p, err))
			return
		}
		next(huma.WithContext(c, s.drafted(withPrincipal(c.Context(), p), p, op, c.Param("id"))))
	}
}

// bodyDoor reads the body of a request before the framework does, within the bounds of all bodies.
func (s *Router) bodyDoor(keys int) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(c)
		body, err := s.ReadBody(w, r, keys)
		if err != nil {
			s.Refuse(w, r, s.Problem(c.Context(), PrincipalOf(c.Context()), err))
			return
		}
		if body != nil {
			if slices.Contains(s.o.OlderNames, c.Operation().OperationID) {
				body = newerNames(body)
			}
			r.Body = &KeptBody{bytes.NewReader(body), body}
		}
		next(c)
	}
}

// KeptBody is a body that was read, for a handler that reads it again, or wants all of it.
type KeptBody struct {
	*bytes.Reader
	Text []byte
}

// Close implements io.Closer.
func (*KeptBody) Close() error { return nil }

// principalKey is where the caller stands in a context.
type principalKey struct{}

func withPrincipal(ctx context.Context, p identity.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf returns the caller; when there is none, an anonymous principal, which has no permissions.
func PrincipalOf(ctx context.Context) identity.Principal {
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
