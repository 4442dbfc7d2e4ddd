package route

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// webSocketBearer is before the token in the handshake of a WebSocket, among its protocols: for those who cannot send a header.
const webSocketBearer = "bearer."

// maxSecret bounds what is taken for a token.
const maxSecret = 1 << 10

// As makes every request under a context that of a caller in this process, who needs no token: the command line on its own
// data directory. Nothing that a request carries can do that.
func As(ctx context.Context, p identity.Principal) context.Context {
	p.Means.Kind = identity.ByLocal
	return context.WithValue(ctx, insideKey{}, p)
}

// Inside says that a caller in this process asks.
func Inside(ctx context.Context) bool {
	_, ok := ctx.Value(insideKey{}).(identity.Principal)
	return ok
}

// insideKey is where a caller in this process stands in a context.
type insideKey struct{}

// admit finds out who calls, whether one of the roles is theirs, and whether what they came with may be used for the operation. Who shows
// many wrong tokens is throttled.
func (s *Router) admit(ctx context.Context, op *huma.Operation, authorization string, allow []identity.Role) (identity.Principal, error) {
	if p, ok := ctx.Value(insideKey{}).(identity.Principal); ok && p.Has(allow...) {
		return p, nil
	}
	p, err := s.identify(ctx, authorization)
	if err != nil {
		return identity.Principal{}, err
	}
	if scope, _ := op.Extensions[scopeOf].(string); scope != "" && !p.MayUse(identity.Scope(scope)) {
		return p, fault.Newf(fault.Forbidden, "this needs a token with the scope %s; yours has %s", scope, scopeList(p.Scopes))
	}
	if op.Method != http.MethodGet {
		p = p.Narrowed()
	}
	if !p.Has(allow...) {
		return p, fault.Newf(fault.Forbidden, "this needs the role %s; user %q has %s", RoleList(allow, "or"),
			p.User, RoleList(p.Roles, "and"))
	}
	return p, nil
}

// Identify finds out whose token a text is, as a header has it, for a page on which somebody logs in with it.
func (s *Router) Identify(ctx context.Context, authorization string) (identity.Principal, error) {
	return s.identify(ctx, authorization)
}

// identify finds out who calls, by a token or by the session of a browser. The store is asked about every one that is sent, by its hash. It
// may have those at hand that were used lately, but answers with what is on disk: a token that is taken away is refused from then on.
func (s *Router) identify(ctx context.Context, authorization string) (identity.Principal, error) {
	if authorization == "" {
		if secret := s.SessionSecret(ctx); secret != "" {
			return s.inSession(ctx, secret)
		}
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > maxSecret {
		return identity.Principal{}, fault.New(fault.Unauthorized, "the request carries no token; send it as: Authorization: Bearer TOKEN")
	}
	hash := identity.HashSecret(secret)
	leave, err := s.Guesses.Enter(ctx, s.AddressOf(ctx), hash)
	if err != nil {
		return identity.Principal{}, err
	}
	token, user, err := s.o.Tokens.Resolve(ctx, identity.System(""), hash, s.NowMS())
	leave(err == nil, err == nil || errors.Is(err, store.ErrNotFound))
	if errors.Is(err, store.ErrNotFound) {
		s.refusedLogin(ctx, "token", "the token is not known, has expired, or its user is disabled")
		return identity.Principal{}, fault.New(fault.Unauthorized, "the token is not known, has expired, or its user is disabled")
	}
	if err != nil {
		return identity.Principal{}, err
	}
	p := user.Principal()
	p.Means, p.Scopes = token.Means(), token.Scopes
	s.noteUse(ctx, p, token.ID)
	return p, nil
}

// RoleList names roles in a sentence, with a word before the last: "admin or operator".
func RoleList(roles []identity.Role, word string) text.Text {
	if len(roles) == 0 {
		return text.Of("none")
	}
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	last := len(names) - 1
	switch {
	case last == 0:
		return text.As(names[0])
	case word == "or":
		return text.Of("%s or %s", strings.Join(names[:last], ", "), names[last])
	}
	return text.Of("%s and %s", strings.Join(names[:last], ", "), names[last])
}

// unknown answers what no route is for. Below the prefix only callers who have a role learn that there is nothing.
func (s *Router) unknown(w http.ResponseWriter, r *http.Request, answer *recorder) {
	p := identity.Principal{}
	if strings.HasPrefix(r.URL.Path, Prefix+"/") {
		var err error
		if p, err = s.admit(r.Context(), &huma.Operation{Method: http.MethodGet}, r.Header.Get("Authorization"), Readers()); err != nil {
			s.Refuse(w, r, s.Problem(r.Context(), p, err))
			return
		}
	}
	if s.Stray != nil && answer.status == http.StatusNotFound && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") &&
		strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.Stray(w, r)
		return
	}
	out := s.Problem(r.Context(), p, fault.Newf(fault.NotFound, "there is nothing at %q; /openapi lists what there is", r.URL.Path))
	if answer.status == http.StatusMethodNotAllowed {
		out.Status, out.Title, out.Code = answer.status, http.StatusText(answer.status), string(fault.Unsupported)
		out.Detail = "the method " + r.Method + " is not for this address; it takes " + answer.header.Get("Allow")
		out.Headers.Set("Allow", answer.header.Get("Allow"))
	}
	s.Refuse(w, r, out)
}

// recorder takes the answer that a mux gives by itself.
type recorder struct {
	header http.Header
	status int
}

func (a *recorder) Header() http.Header         { return a.header }
func (a *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (a *recorder) WriteHeader(status int)      { a.status = status }

// Authorization is what a request says about who makes it: the header, or, in the handshake of a WebSocket, the token among
// the protocols.
func Authorization(r *http.Request) string {
	header := r.Header.Get("Authorization")
	if header != "" || !Upgrades(r) {
		return header
	}
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for _, name := range strings.Split(line, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(name), webSocketBearer); ok {
				return "Bearer " + token
			}
		}
	}
	return ""
}

// Upgrades says that a request asks for a WebSocket.
func Upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }
