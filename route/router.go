package route

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/store"
)

// Options is what a router needs. Everything but Sessions, Hosts, Proxies and OlderNames must be there.
type Options struct {
	Tokens store.Tokens
	// Sessions are those of browsers; nil: nobody logs in with one.
	Sessions store.Sessions
	// Audit is the audit log, and Workspace where that is entered which belongs to no workspace: logins that were refused.
	Audit     store.Audit
	Workspace string
	Counter   Counter
	Version   string
	// Hosts are the names under which the server may be asked, without ports; none: any. A server on a loopback address
	// must have them: otherwise a page of another site could reach it under a name of its own.
	Hosts []string
	// Proxies are the networks of proxies in front of the server, whose word is taken for where a request comes from; none: the
	// address of the connection counts.
	Proxies []netip.Prefix
	// OlderNames are the ids of the operations whose bodies may have fields under their older names.
	OlderNames []string
	Now        func() time.Time
	Log        *slog.Logger
}

// Counter counts what is served.
type Counter interface {
	// Served is called for a request that was answered; left says that its client has gone before.
	Served(method, pattern string, status int, left bool, took time.Duration)
	// Reading counts a reader of a stream until the function that it returns is called.
	Reading(stream string) (done func())
}

// Router takes requests: it lets callers in, bounds bodies, finds the operation, tells refusals as problem documents and documents what
// there is. It is not changed once everything is registered, and is safe for concurrent use.
type Router struct {
	o         Options
	Log       *slog.Logger
	mux       *routes
	api       huma.API
	spec      func() (*document, error)
	strangers []stranger
	Bodies    *Bodies
	// Guesses throttles who shows wrong tokens, Pages who shows wrong passwords of pages, Links who shows wrong links of questions and
	// invitations, and Calls who calls with wrong signatures and addresses. Each counts for itself: who guesses at a page that is open to
	// everybody does not lock out those who have a token.
	Guesses, Pages, Links, Calls *Throttle
	// Stray shows people where they are who come to an address where nothing is. Programs are answered in JSON, and people, too, when it is
	// nil.
	Stray http.HandlerFunc
	// uses are when the tokens and sessions that came lately were last noted as used.
	uses uses
	// refusals bounds how many refused logins are entered in the audit log.
	refusals *AddressLimiter
}

// New makes a router with nothing registered.
func New(o Options) *Router {
	s := &Router{o: o, Log: o.Log, mux: newRoutes(), Bodies: newBodies(), Guesses: newThrottle(o.Now), Pages: newThrottle(o.Now),
		Links: newThrottle(o.Now), Calls: newThrottle(o.Now),
		uses: uses{known: newRecent[string, int64](knownUses)}}
	s.refusals = NewAddressLimiter(wrongAddresses, refusalInterval, refusalBurst)
	s.api = newAPI(s.mux, o.Version)
	return s
}

// NowMS is the time in Unix milliseconds, as records have it.
func (s *Router) NowMS() int64 { return s.o.Now().UnixMilli() }

// Document is the document of what is registered. It may be changed until it is served.
func (s *Router) Document() *huma.OpenAPI { return s.api.OpenAPI() }

// Patterns are those of all that is registered, and of it what needs no token.
func (s *Router) Patterns() (all, open []string) { return s.mux.patterns, s.mux.open }
