package route

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/shortage"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// ProblemType is the content type of every refusal.
const ProblemType = "application/problem+json"

// StatusOf is the one place where an error becomes an HTTP status. Most follow from the class of its code.
func StatusOf(err error, code fault.Code) int {
	switch {
	case store.Waits(err), errors.Is(err, store.ErrBroken):
		return http.StatusServiceUnavailable
	case code == fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case code == fault.Timeout:
		return http.StatusGatewayTimeout
	case code == fault.StorageExhausted: // waiting does not help
		return http.StatusInsufficientStorage
	}
	switch code.Class() {
	case fault.ClassInvalid, fault.ClassFailed:
		return http.StatusUnprocessableEntity
	case fault.ClassNotFound:
		return http.StatusNotFound
	case fault.ClassConflict:
		return http.StatusConflict
	case fault.ClassForbidden:
		return http.StatusForbidden
	case fault.ClassUnknown:
		return http.StatusUnauthorized
	case fault.ClassLimit:
		return http.StatusTooManyRequests
	case fault.ClassUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Problem is a problem document on its way out. It is an error that the framework sends as it is.
type Problem struct {
	api.Fault
	Headers http.Header `json:"-"`
	// words are the detail in the languages of readers; none: it is as it is.
	words text.Text
}

// in is the problem as it is told to a reader of a language.
func (p *Problem) in(language string) *Problem {
	if p.words.IsZero() {
		return p
	}
	told := *p
	told.Detail = p.words.In(language)
	return &told
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.Headers }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return ProblemType }

// Problem tells any error to a caller. What only operators may know is left out for others, and is in the log when the
// error is ours.
func (s *Router) Problem(ctx context.Context, p identity.Principal, err error) *Problem {
	if ready, ok := errors.AsType[*Problem](err); ok {
		return ready.in(LanguageOf(ctx))
	}
	if left(ctx, err) {
		// Nobody reads this, and nothing is wrong with the server: what was recorded stays, the rest was not begun.
		s.Log.DebugContext(ctx, "a client left before it was answered", "error", err, "workspace", p.Workspace, "user", p.User)
		return &Problem{Fault: api.Fault{Title: "Client Closed Request", Status: StatusClientLeft, Code: string(fault.Canceled), Detail: "the client left before it was answered"}, Headers: http.Header{}}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fault.New(fault.Timeout, "the request was given up before it was answered").WithCause(err)
	}
	f := fault.From(err)
	if f.Code == fault.Internal && shortage.Is(err) {
		f = shortage.Or(err, fault.New(fault.Internal, "the request cannot be answered now"))
	}
	status, language := StatusOf(err, f.Code), LanguageOf(ctx)
	switch {
	case f.Code == fault.Busy:
		s.Log.WarnContext(ctx, "a request was put off", "message", f.Message, "workspace", p.Workspace, "user", p.User)
	case f.Code == fault.NotReady: // who has noticed, or stops it, has said so in the log
		s.Log.DebugContext(ctx, "a request came while the instance is not ready", "message", f.Message)
	case status >= http.StatusInternalServerError:
		s.Log.ErrorContext(ctx, "a request failed", "code", f.Code, "message", f.Message, "detail", f.Detail, "error", err,
			"workspace", p.Workspace, "user", p.User)
	}
	doc := api.Fault{Title: http.StatusText(status), Status: status, Code: string(f.Code),
		Detail: text.ErrorIn(language, f)}
	if doc.Detail == "" {
		doc.Detail = doc.Title
	}
	doc.Errors, doc.Details = factsOf(language, f.Details)
	if p.Has(identity.Admin, identity.Operator) {
		doc.OperatorDetail = f.Detail
	}
	out := &Problem{Fault: doc, Headers: http.Header{}}
	switch status {
	case http.StatusUnauthorized:
		out.Headers.Set("WWW-Authenticate", `Bearer realm="tandem"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		out.Headers.Set("Retry-After", retryAfter(f))
	}
	return out
}

// StatusClientLeft is what a request is counted as whose client has left before it was answered. It is never read by anybody.
const StatusClientLeft = 499

// left says that an error is nothing but the end of a request that its client has broken off.
func left(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Canceled) && visitOf(ctx) != nil
}

// retryAfter is how many seconds to wait, as the error says or one.
func retryAfter(f *fault.Error) string {
	switch seconds := f.Details["retry_after"].(type) {
	case int:
		return strconv.Itoa(max(1, seconds))
	case int64:
		return strconv.FormatInt(max(1, seconds), 10)
	case float64:
		return strconv.Itoa(max(1, int(seconds+0.999)))
	}
	if ms, ok := f.Details["retry_after_ms"].(int64); ok {
		return strconv.FormatInt(max(1, (ms+999)/1000), 10)
	}
	return "1"
}

// factsOf tells the facts of an error: those about fields as such, the others as they are.
func factsOf(language string, facts map[string]any) (fields []api.FaultField, rest map[string]any) {
	for name, value := range facts { // order does not matter: each name is handled by itself, and lists keep theirs
		switch list := value.(type) {
		case []api.FaultField:
			for _, one := range list {
				one.Message = one.Text().In(language)
				fields = append(fields, one)
			}
		case []credential.Problem:
			for _, p := range list {
				fields = append(fields, api.FaultField{Path: strings.TrimSuffix("data."+p.Field, "."), Message: p.Words.In(language)})
			}
		case []workflow.Problem:
			for _, p := range list {
				fields = append(fields, api.FaultField{Path: p.Path, Message: p.In(language), Code: p.Code, Severity: string(p.Severity),
					Line: p.Line, Column: p.Column})
			}
		default:
			if rest == nil {
				rest = map[string]any{}
			}
			rest[name] = value
		}
	}
	return fields, rest
}

// Refuse writes a problem document where the framework does not.
func (s *Router) Refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	p = p.in(LanguageOf(r.Context()))
	body, err := json.Marshal(p.Fault)
	if err != nil {
		// Only a fact of an error can be to blame; the rest are texts.
		s.Log.ErrorContext(r.Context(), "a problem cannot be told", "error", err, "code", p.Code)
		body = []byte(`{"title":"Internal Server Error","status":500,"detail":"an internal error occurred; the operator's log has the detail","code":"internal"}`)
		p.Status = http.StatusInternalServerError
	}
	for name, values := range p.Headers {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(p.Status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		s.Log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}

// retell makes our problem documents of those that the framework makes when it cannot read a request. What was sent is
// never repeated: it may hold a secret.
func retell(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	doc := api.Fault{Title: http.StatusText(e.Status), Status: e.Status, Code: string(fault.InvalidInput)}
	language, says := LanguageOf(ctx.Context()), text.Of("the request is not as it should be")
	switch e.Status {
	case http.StatusBadRequest:
		says = text.Of("the body of the request cannot be read as JSON")
		if len(e.Errors) == 0 {
			says = text.Of("the request needs a body")
		}
	case http.StatusRequestEntityTooLarge:
		return &Problem{Fault: bodyTooLarge().in(language).Fault}, nil
	case http.StatusRequestTimeout:
		doc.Code, says = string(fault.Timeout), text.Of("the body of the request took too long to arrive")
	case http.StatusUnsupportedMediaType:
		doc.Code, doc.Detail = string(fault.Unsupported), text.Of("the body of the request must be application/json").In(language)
		return &Problem{Fault: doc}, nil
	case http.StatusInternalServerError:
		doc.Code, doc.Detail = string(fault.Internal), text.Of("the request could not be read").In(language)
		return &Problem{Fault: doc}, nil
	}
	for _, d := range e.Errors {
		if d == nil {
			continue
		}
		doc.Errors = append(doc.Errors, api.FaultField{Path: FieldPath(d.Location), Message: d.Message})
	}
	if len(doc.Errors) > 0 {
		says = text.Of("%s: %s: %s", says, doc.Errors[0].Path, doc.Errors[0].Message)
	}
	doc.Detail = says.In(language)
	return &Problem{Fault: doc}, nil
}

// FieldPath is a place in a body as people write it; places elsewhere keep where they are.
func FieldPath(location string) string {
	if inside, ok := strings.CutPrefix(location, "body."); ok {
		return inside
	}
	return location
}

func bodyTooLarge() *Problem { return TooLarge(MaxBody) }

// TooLarge is a refusal of a body over a limit.
func TooLarge(limit int64) *Problem {
	return Refused(http.StatusRequestEntityTooLarge, fault.TooLarge, text.Of("the body of the request has more than %d MiB", limit>>20))
}

// Refused is a refusal with a status of its own.
func Refused(status int, code fault.Code, detail text.Text) *Problem {
	return &Problem{Fault: api.Fault{Title: http.StatusText(status), Status: status, Code: string(code), Detail: detail.In(text.English)},
		Headers: http.Header{}, words: detail}
}
