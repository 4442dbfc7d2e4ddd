package route

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// How long a session of a browser lasts: without being used, and in all.
const (
	SessionIdle = 12 * time.Hour
	SessionLife = 30 * 24 * time.Hour
)

// The names of the cookie that a session is known by. The first is for connections that are encrypted: browsers take it from this very
// host alone, and only with Secure.
const (
	secureCookie = "__Host-tandem_session"
	plainCookie  = "tandem_session"
)

// useNoted is how often it is noted at most that a token or a session was used, knownUses of how many it is remembered when.
const (
	useNoted  = time.Minute
	knownUses = 5_000
)

// Refused logins of an address that are entered in the audit log: so many at once, then one per interval.
const (
	refusalBurst    = 10
	refusalInterval = time.Minute
)

// uses is when tokens and sessions were last noted as used.
type uses struct {
	mu    sync.Mutex
	known *Recent[string, int64]
}

// due says that a use is to be noted, and remembers that it was.
func (u *uses) due(key string, now int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.known.get(key); ok && now-last < useNoted.Milliseconds() {
		return false
	}
	u.known.put(key, now)
	return true
}

// noteUse notes now and then that a token is used. That it cannot be noted is not a reason to refuse what was asked for.
func (s *Router) noteUse(ctx context.Context, p identity.Principal, token string) {
	now := s.NowMS()
	if !s.uses.due("token "+p.Workspace+" "+token, now) {
		return
	}
	if err := s.o.Tokens.Used(ctx, p, token, now); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "it was not noted that a token was used", "token", token, "error", err)
	}
}

// Encrypted says that a request came by an encrypted connection: to this server, or to a proxy in front of it that is believed.
func (s *Router) Encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && Among(s.o.Proxies, from.Addr()) && strings.EqualFold(strings.TrimSpace(r.Header.Get("X-Forwarded-Proto")), "https")
}

// SetSession gives a browser the cookie of its session; an empty secret takes it away.
func (s *Router) SetSession(w http.ResponseWriter, r *http.Request, secret string) {
	http.SetCookie(w, s.sessionCookie(r, secret))
}

func (s *Router) sessionCookie(r *http.Request, secret string) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(SessionLife / time.Second)}
	if s.Encrypted(r) {
		c.Name, c.Secure = secureCookie, true
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// SessionCookie is [Router.SetSession] for an operation, which sends its headers itself: the value of Set-Cookie.
func (s *Router) SessionCookie(ctx context.Context, secret string) string {
	v := visitOf(ctx)
	if v == nil {
		return ""
	}
	return s.sessionCookie(v.request, secret).String()
}

// SessionSecret is the secret in the cookie of a request; empty: there is none.
func (s *Router) SessionSecret(ctx context.Context) string {
	v := visitOf(ctx)
	if v == nil || s.o.Sessions == nil {
		return ""
	}
	name := plainCookie
	if s.Encrypted(v.request) {
		name = secureCookie
	}
	c, err := v.request.Cookie(name)
	if err != nil || len(c.Value) > maxSecret {
		return ""
	}
	return c.Value
}

// inSession finds out whose browser asks. A cookie comes with a request, no matter who has made it, so one that could change
// something, or that opens a WebSocket, must come from a page of this server.
func (s *Router) inSession(ctx context.Context, secret string) (identity.Principal, error) {
	r := visitOf(ctx).request
	asked := r
	if Upgrades(r) { // a page of another site can open one, and read what comes
		asked = r.Clone(ctx)
		asked.Method = http.MethodPost
	}
	if err := http.NewCrossOriginProtection().Check(asked); err != nil {
		return identity.Principal{}, fault.New(fault.Forbidden, "a page of another site may not ask for this").WithCause(err)
	}
	hash := identity.HashSecret(secret)
	leave, err := s.Guesses.Enter(ctx, s.AddressOf(ctx), hash)
	if err != nil {
		return identity.Principal{}, err
	}
	now := s.NowMS()
	session, user, err := s.o.Sessions.Resolve(ctx, identity.System(""), hash, now, now-SessionIdle.Milliseconds())
	leave(err == nil, err == nil || errors.Is(err, store.ErrNotFound))
	if errors.Is(err, store.ErrNotFound) {
		return identity.Principal{}, fault.New(fault.Unauthorized, "the session has ended; log in again")
	}
	if err != nil {
		return identity.Principal{}, err
	}
	p := user.Principal()
	p.Means, p.Scopes = session.Means(), session.Scopes
	if now-session.Seen >= useNoted.Milliseconds() && s.uses.due("session "+p.Workspace+" "+session.ID, now) {
		if err := s.o.Sessions.Seen(ctx, p, session.ID, now); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "it was not noted that a session was used", "session", session.ID, "error", err)
		}
	}
	return p, nil
}

// refusedLogin enters in the audit log that somebody was not let in. Of many that come from one address only some are entered, so that
// nobody can fill the disk with them.
func (s *Router) refusedLogin(ctx context.Context, method, why string) {
	e := s.origin(ctx)
	e.Workspace = s.o.Workspace
	s.RefusedLogin(ctx, e, method, why)
}

// RefusedLogin is the same for code that knows more about who it was: user and workspace are in the entry.
func (s *Router) RefusedLogin(ctx context.Context, e store.AuditEntry, method, why string) {
	from := s.origin(ctx)
	e.Time, e.Address, e.Agent = from.Time, from.Address, from.Agent
	if e.Workspace == "" {
		e.Workspace = s.o.Workspace
	}
	if s.o.Audit == nil || e.Workspace == "" || !s.refusals.Allow(e.Address, s.o.Now()) {
		return
	}
	e.Action, e.Object, e.Outcome = "login.refuse", "login", store.AuditRefused
	e.Detail = store.AuditDetail(map[string]string{"method": method, "why": why})
	if err := s.Enter(ctx, e); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "a refused login was not entered in the audit log", "error", err)
	}
}
