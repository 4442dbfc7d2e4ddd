package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
)

// Edge is what every request passes first: headers that browsers heed, sizes, requests from other sites, defects, counting.
func (s *Router) Edge() http.Handler {
	origins := http.NewCrossOriginProtection()
	// Nothing of a browser's is the authority of these: everybody who has the address, or signs the request, may. The response page
	// is among them because a browser sends no origin from a page without referrer.
	for _, open := range s.strangers {
		for _, method := range open.methods {
			origins.AddInsecureBypassPattern(method + " " + open.path + open.rest)
		}
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		began := time.Now()
		limit, forms := s.takes(r.URL.Path)
		w := &writer{ResponseWriter: out}
		protect(w.Header(), r.URL.Path)
		visit := &visit{request: r}
		defer func() {
			gone := visit.left(r.Context())
			s.caught(w, r, recover())
			s.o.Counter.Served(r.Method, r.Pattern, w.status, gone, time.Since(began))
		}()
		switch err := origins.Check(r); {
		case !s.o.asked(r.Host):
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, fault.Newf(fault.Forbidden, "this server is not %q; ask it under its address, such as 127.0.0.1", r.Host)))
		case err != nil:
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{},
				fault.New(fault.Forbidden, "a page of another site may not ask for this").WithCause(err)))
		case r.ContentLength > limit:
			s.Refuse(w, r, TooLarge(limit))
		default:
			// The body is bounded in a copy. A request that does not hold its own body any more looks to net/http as if it had been
			// read to its end: the connection would be kept, and what is left of the body taken for the next request.
			inner := r.WithContext(context.WithValue(r.Context(), visitKey{}, visit))
			if r.Body != nil && r.Body != http.NoBody {
				visit.meter = s.meter(r, http.MaxBytesReader(out, r.Body, limit+2)) // operations refuse sooner, with a problem document
				inner.Body = visit.meter
				defer visit.meter.done()
			}
			defer func() { r.Pattern = inner.Pattern }() // for the code that counts
			if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") && !forms {
				inner.Header.Del("Content-Type") // no operation takes forms: it is what curl says of a body unless it is told
			}
			s.serve(w, inner)
		}
	})
}

// visit is what is known of a request from its arrival on.
type visit struct {
	// request is the one that came; who asks from where is read from it when somebody has to know.
	request *http.Request
	// meter is the body; nil: there is none.
	meter *meter
}

type visitKey struct{}

// visitOf returns the request under a context; nil: there is none, a caller in this process asks without HTTP.
func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// left says that the client has gone before the request was answered: the connection has ended, or the body broke off.
func (v *visit) left(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) || v.meter != nil && v.meter.brokeOff()
}

// meter makes the counted body of a request.
func (s *Router) meter(r *http.Request, body io.ReadCloser) *meter {
	m := &meter{ReadCloser: body, ctx: r.Context(), room: s.Bodies.Users, patience: s.Bodies.Patience, most: MaxBody}
	if _, open := s.strangerAt(r.URL.Path); open {
		m.room, m.most = s.Bodies.Strangers, maxStrangerBody
	}
	return m
}

// takes says how large a body an address takes, and whether it takes forms.
func (s *Router) takes(path string) (limit int64, forms bool) {
	if open, ok := s.strangerAt(path); ok {
		return open.limit, true
	}
	return MaxBody, false
}

func (s *Router) serve(w *writer, r *http.Request) {
	h, pattern := s.mux.Handler(r)
	if pattern == "" {
		answer := &recorder{header: http.Header{}}
		h.ServeHTTP(answer, r)
		s.unknown(w, r, answer)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// The headers that hold for every answer. They are lists because headers are: each is shared by all answers and never changed, since
// to set a header is to give it another list.
var (
	noSniffing     = []string{"nosniff"}                                    // read-only
	noFrames       = []string{"DENY"}                                       // read-only
	noReferrer     = []string{"no-referrer"}                                // read-only
	sameOrigin     = []string{"same-origin"}                                // read-only
	nothingAllowed = []string{"default-src 'none'; frame-ancestors 'none'"} // read-only
	notKept        = []string{"no-store"}                                   // read-only
)

// protect sets what holds for every answer. Pages that need more say so themselves.
func protect(h http.Header, path string) {
	h["X-Content-Type-Options"] = noSniffing
	h["X-Frame-Options"] = noFrames
	h["Referrer-Policy"] = noReferrer
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	h["Content-Security-Policy"] = nothingAllowed
	if strings.HasPrefix(path, Prefix+"/") || path == "/metrics" {
		h["Cache-Control"] = notKept
	}
}

// caught answers for a handler that broke off because of a defect.
func (s *Router) caught(w *writer, r *http.Request, defect any) {
	if defect == nil {
		return
	}
	if err, ok := defect.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(defect)
	}
	err := fault.New(fault.Internal, "an internal error occurred; the operator's log has the detail").
		WithDetail(fmt.Sprintf("panic: %v\n%s", defect, debug.Stack()))
	out := s.Problem(r.Context(), identity.Principal{}, err)
	if w.status != 0 {
		panic(http.ErrAbortHandler) // the reader must not take half an answer for a whole one
	}
	s.Refuse(w, r, out)
}

// writer remembers what was answered. Streams reach what is below it through Unwrap.
type writer struct {
	http.ResponseWriter
	// status is zero until something was written.
	status int
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Begun says whether an answer has begun.
func Begun(w http.ResponseWriter) bool {
	for {
		switch x := w.(type) {
		case *writer:
			return x.status != 0
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return false
		}
	}
}

// Unlimited lifts the deadlines that hold for requests. A writer without deadlines needs none lifted.
func Unlimited(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	for _, lift := range []func(time.Time) error{control.SetReadDeadline, control.SetWriteDeadline} {
		if err := lift(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	return nil
}

// asked says whether the server may be asked under the name in a request.
func (o *Options) asked(name string) bool {
	if len(o.Hosts) == 0 {
		return true
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return slices.ContainsFunc(o.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}
