// Package rest calls services that speak JSON over HTTP: what is the same for all of them, on the guarded client.
//
// A [Service] says how one differs from the others: where it is, how a credential goes along, what its refusals mean. An [API] is the
// service with an opened credential; [API.Do] makes one call and never makes it again, except that a token that has expired is renewed
// once. [Pages] reads lists. It is a thin client on purpose: nodes hand on the whole answer of a service and need to know of each call
// whether the service can have taken it, and the clients of vendors hide both behind types and retries of their own.
//
// The packages of vendors import it. It knows nothing of any vendor.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
)

// Service is what is particular about a service.
type Service struct {
	// Name is what errors call it.
	Name string
	// Base is its address; the base_url of a credential takes its place, also one with a path. Empty: the credential must name one.
	Base string
	// Elsewhere are schemes of a base_url that is for another protocol of the same account, such as imap: Base holds then.
	Elsewhere []string
	// Below is the path of the API below that address, such as /api/v4. A base_url may end with it, and so may the path of a raw call
	// begin.
	Below string
	// Credentials are the types of credentials that it takes.
	Credentials []string
	// Header goes along with every call.
	Header http.Header
	// Secret is what the fields of a credential add to a call; nil: they lack what is needed.
	Secret func(fields gjson.Result) *outbound.Secret
	// Said finds what the service itself says in the body of a refusal. The body may be of any form.
	Said func(body gjson.Result) string
	// Refine, when it is set, changes what a refusal means where its status does not tell it.
	Refine func(r *Refusal)
}

// Refusal is an answer with a status that is not good, and what it means. Raw is its body as it came.
type Refusal struct {
	Status  int
	Header  http.Header
	Body    gjson.Result
	Raw     []byte
	Problem *outbound.Error
}

// Limit makes a refusal one that asks to come again later, after a while that the service names or zero.
func (r *Refusal) Limit(service string, after time.Duration) {
	after = min(max(after, 0), outbound.MaxRetryAfter)
	limited := fault.Newf(fault.RateLimited, "%s asks to slow down", service).With("status_code", r.Status)
	if after > 0 {
		limited = limited.With("retry_after_ms", after.Milliseconds())
	}
	*r.Problem = outbound.Error{Fault: limited, Fate: outbound.NotTaken, RetryAfter: after}
}

// Becomes gives a refusal another code.
func (r *Refusal) Becomes(code fault.Code) {
	told := fault.New(code, r.Problem.Fault.Message)
	told.Details = r.Problem.Fault.Details
	r.Problem.Fault = told
}

// API is a service with an account.
type API struct {
	// Base is its address, without a slash at its end.
	Base *url.URL
	// Fields are those of the credential.
	Fields gjson.Result

	service *Service
	client  *outbound.Client
	secret  *outbound.Secret
	// authorize takes the place of the secret, see [Service.At].
	authorize Authorize
	redact    credential.Redactor
	// open opens the credential for the run, which keeps its secrets from leaving; renew gets a new token for it.
	open  func(ctx context.Context) (credential.Opened, error)
	renew func(ctx context.Context, refused string) (credential.Opened, error)
}

// Authorize makes what lets one call in: a signature of it, or a token that somebody gives for the credential. It may write the query of
// the call anew. Renew says that the service did not take what it made last; nil: there is nothing else.
type Authorize func(ctx context.Context, r *outbound.Request, renew bool) (*outbound.Secret, error)

// At is the service at an address, for credentials that are more than a token. What lets calls in is kept from answers and errors.
func (s *Service) At(client *outbound.Client, base *url.URL, authorize Authorize) *API {
	return &API{service: s, client: client, Base: base, authorize: authorize}
}

// Credential opens the credential that a node names by credential_id, for what it is needed for.
func Credential(ctx context.Context, call *node.Call, what string, types ...string) (credential.Opened, error) {
	if call.Credential == nil {
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "%s needs a credential, and there are none here", what)
	}
	return call.Credential(ctx, gjson.GetBytes(call.Config, "credential_id").Str, types...)
}

// Clock tells the time for signatures and tokens, which a service judges by its own clock.
func Clock(call *node.Call) time.Time {
	if call.Clock != nil {
		return call.Clock()
	}
	return time.Now()
}

// Patience is as long as the node has; zero: as long as any call may take.
func Patience(call *node.Call) time.Duration { return time.Duration(call.TimeoutMS) * time.Millisecond }

// Open opens the credential that a node names by credential_id.
func (s *Service) Open(ctx context.Context, client *outbound.Client, call *node.Call) (*API, error) {
	a := &API{service: s, client: client, open: func(ctx context.Context) (credential.Opened, error) {
		return Credential(ctx, call, s.Name, s.Credentials...)
	}}
	opened, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return a, a.takeCredential(opened)
}

// takeCredential reads an opened credential. Its bytes are copied: they are cleared when it is released.
func (a *API) takeCredential(c credential.Opened) error {
	a.Fields, a.renew = gjson.Parse(string(c.Data)), c.Renew
	if a.secret = a.service.Secret(a.Fields); a.secret == nil {
		return fault.Newf(fault.CredentialInvalid, "credential %q lacks what %s wants to see; save it again", c.ID, a.service.Name)
	}
	text := a.Fields.Get("base_url").Str
	if scheme, _, _ := strings.Cut(text, "://"); text == "" || slices.Contains(a.service.Elsewhere, scheme) {
		text = a.service.Base
	}
	base, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || base.Host == "" || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that cannot be used; write it like https://host/path", c.ID)
	}
	if a.Base = base; !strings.HasSuffix(base.Path, a.service.Below) {
		a.Base = base.JoinPath(a.service.Below)
	}
	return nil
}

// Shape is what the answer to a call must be.
type Shape uint8

// The shapes. An answer of another one says that it does not come from the service, so that nobody knows what became of the call.
const (
	Object    Shape = iota // an object
	List                   // a list
	Structure              // an object or a list
	Value                  // anything in JSON, or nothing
	Anything               // also a text that is not JSON
)

// Call is one call of a service.
type Call struct {
	Method string
	// Path is below the base, see [Path].
	Path  string
	Query url.Values
	// Body is sent as JSON, Form as the fields of a form, and what Open opens as it is, with ContentType and Size; at most one of them.
	Body        any
	Form        url.Values
	Open        func() (io.ReadCloser, error)
	Size        int64
	ContentType string
	Header      http.Header
	// Repeatable says that the service takes it once however often it arrives, although its method does not say so.
	Repeatable bool
	Wants      Shape
	// Fields are those that the answer must have.
	Fields []string
	// Patience is how long the answer may take; zero: as long as usual. MostBytes is how much it may be; zero: as much as usual.
	Patience  time.Duration
	MostBytes int64
}

// Answer is what a service has answered, with a status that is good.
type Answer struct {
	Status int
	Header http.Header
	// Body is JSON; nil when there is none. A text that is not JSON is a JSON text.
	Body json.RawMessage
}

// Get is a value of the answer.
func (a Answer) Get(path string) gjson.Result { return gjson.GetBytes(a.Body, path) }

// Raw is the answer as a value, null when there is none.
func (a Answer) Raw() json.RawMessage {
	if len(a.Body) == 0 {
		return json.RawMessage("null")
	}
	return a.Body
}

// Path is a path of segments, each escaped.
func Path(segments ...any) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(fmt.Sprint(s)))
	}
	return b.String()
}

// Do makes a call. What is wrong with its answer is an [*outbound.Error], which says what the service can have taken.
func (a *API) Do(ctx context.Context, c Call) (Answer, error) {
	response, err := a.Send(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	body, err := response.ReadAll()
	if err != nil {
		return Answer{}, a.clean(err)
	}
	answer, err := a.shaped(c, response, Answer{Status: response.Status, Header: response.Header, Body: body})
	if a.authorize != nil && len(answer.Body) > 0 {
		answer.Body = a.redact.JSON(answer.Body)
	}
	return answer, err
}

// Send makes a call like [API.Do], and returns the answer before it is read. The caller reads or closes it.
func (a *API) Send(ctx context.Context, c Call) (*outbound.Response, error) {
	response, problem, err := a.once(ctx, c, false)
	if err == nil && problem != nil && problem.Fault.Details["status_code"] == http.StatusUnauthorized &&
		(a.renew != nil || a.authorize != nil) {
		if a.renew != nil {
			if err := a.fresh(ctx); err != nil {
				return nil, &outbound.Error{Fault: fault.From(err), Fate: outbound.NotTaken}
			}
		}
		if again, refused, failed := a.once(ctx, c, true); again != nil || refused != nil || failed != nil {
			response, problem, err = again, refused, failed
		}
	}
	if err == nil && problem != nil {
		err = problem
	}
	return response, a.clean(err)
}

// clean takes what lets calls in out of an error.
func (a *API) clean(err error) error {
	told, ok := errors.AsType[*outbound.Error](err)
	if !ok || a.authorize == nil {
		return err
	}
	out := *told
	out.Fault = a.redact.Fault(told.Fault)
	return &out
}

// fresh takes a new token in the place of one that was refused. It is opened for the run, so that it does not leave it either.
func (a *API) fresh(ctx context.Context) error {
	renewed, err := a.renew(ctx, a.Fields.Get("token").Str)
	if err != nil {
		return err
	}
	defer renewed.Release()
	opened, err := a.open(ctx)
	if err != nil {
		return err
	}
	err = a.takeCredential(opened)
	a.renew = nil // a token that is new and not taken does not get better
	return err
}

// once sends a call. A refusal is a problem; an error is anything else that went wrong. Nothing at all: there is nothing new that would let
// the call in.
func (a *API) once(ctx context.Context, c Call, renewed bool) (*outbound.Response, *outbound.Error, error) {
	request, err := a.request(c)
	if err != nil {
		return nil, nil, &outbound.Error{Fault: fault.From(err), Fate: outbound.NotTaken}
	}
	if a.authorize != nil {
		if request.Secret, err = a.authorize(ctx, &request, renewed); err != nil {
			return nil, nil, before(err)
		}
		if request.Secret == nil && renewed {
			return nil, nil, nil
		}
		if token, ok := strings.CutPrefix(request.Secret.Header.Get("Authorization"), "Bearer "); ok {
			a.redact.Hold(token) // until the run ends, and the redactor with it
		}
	}
	response, err := a.client.Do(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	bad := response.Problem(time.Now())
	if bad == nil && response.Status >= 300 {
		bad = &outbound.Error{Fate: outbound.Answered, Fault: fault.Newf(fault.RemoteRejected,
			"host %q answered %d, which leads elsewhere; check the base_url of the credential, and whether what is named has moved", response.URL.Host, response.Status).
			With("status_code", response.Status)}
	}
	if bad != nil {
		body, err := response.ReadAll()
		if err != nil {
			body = nil // its status says enough
		}
		return nil, a.refused(Answer{Status: response.Status, Header: response.Header, Body: body}, bad), nil
	}
	return response, nil, nil
}

// before says of what went wrong before a call that nothing was sent.
func before(err error) error {
	told := &outbound.Error{Fault: fault.From(err), Fate: outbound.NotTaken}
	if called, ok := errors.AsType[*outbound.Error](err); ok {
		told.RetryAfter = called.RetryAfter
	}
	return told
}

// request makes what goes out.
func (a *API) request(c Call) (outbound.Request, error) {
	if err := checkPath(c.Path); err != nil {
		return outbound.Request{}, err
	}
	target, err := url.Parse(a.Base.String() + c.Path)
	if err != nil || target.Host != a.Base.Host {
		return outbound.Request{}, fault.Newf(fault.InvalidInput, "%q cannot be part of an address", c.Path)
	}
	target.RawQuery = c.Query.Encode()
	r := outbound.Request{
		Method: c.Method, URL: target, Secret: a.secret, Header: a.service.Header.Clone(), Redirects: outbound.NoFollow,
		Repeatable: c.Repeatable, Open: c.Open, Size: c.Size, Timeout: c.Patience, FirstByte: c.Patience, MaxResponse: c.MostBytes,
	}
	if a.authorize == nil && (c.Method == http.MethodGet || c.Method == http.MethodHead) { // a signature is for one address
		r.Redirects = 3
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json")
	}
	switch {
	case c.Body != nil:
		if r.Body, err = payload.Encode(c.Body); err != nil {
			return r, fault.New(fault.InvalidInput, "what is to be sent cannot be written as JSON").WithCause(err)
		}
		r.Header.Set("Content-Type", "application/json")
	case c.Form != nil:
		r.Body = []byte(c.Form.Encode())
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case c.ContentType != "":
		r.Header.Set("Content-Type", c.ContentType)
	}
	for name, list := range c.Header {
		r.Header[name] = list
	}
	return r, nil
}

// checkPath refuses what would lead out of the base.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#\\") {
		return fault.Newf(fault.InvalidInput, "%q is not a path; begin it with a slash, and write parameters into query", path).With("path", "path")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
			return fault.Newf(fault.InvalidInput, "%q is not a path: %q cannot be a part of it", path, segment).With("path", "path")
		}
	}
	return nil
}

// maxSaid is how much of what a service says is repeated.
const maxSaid = 500

// refused says what a refusal means.
func (a *API) refused(answer Answer, problem *outbound.Error) *outbound.Error {
	r := Refusal{Status: answer.Status, Header: answer.Header, Raw: answer.Body, Problem: problem}
	switch mediaType := answer.Header.Get("Content-Type"); {
	case gjson.ValidBytes(answer.Body):
		r.Body = gjson.ParseBytes(answer.Body)
	case strings.HasPrefix(mediaType, "text/plain"): // what is not JSON may still be words; a page is not
		r.Body = gjson.Result{Type: gjson.String, Str: strings.ToValidUTF8(string(answer.Body), "\uFFFD")}
	}
	if a.service.Said != nil {
		if said := strings.Join(strings.Fields(a.service.Said(r.Body)), " "); said != "" {
			problem.Fault.Message += ": " + cut(said, maxSaid)
		}
	}
	if a.service.Refine != nil {
		a.service.Refine(&r)
	}
	return r.Problem
}

// cut is the beginning of a text.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// shaped looks whether an answer is what was promised.
func (a *API) shaped(c Call, response *outbound.Response, answer Answer) (Answer, error) {
	value := gjson.ParseBytes(answer.Body)
	valid := payload.Check(answer.Body, payload.Limits{}) == nil
	fits := false
	switch c.Wants {
	case Object:
		fits = valid && value.IsObject()
	case List:
		fits = valid && value.IsArray()
	case Structure:
		fits = valid && (value.IsObject() || value.IsArray())
	case Value, Anything:
		fits = valid || len(answer.Body) == 0
	}
	if !fits && c.Wants == Anything {
		text, err := payload.Encode(strings.ToValidUTF8(string(answer.Body), "\uFFFD"))
		answer.Body = text
		return answer, err
	}
	missing := ""
	if i := slices.IndexFunc(c.Fields, func(name string) bool { return !value.Get(name).Exists() }); fits && i >= 0 {
		fits, missing = false, fmt.Sprintf(" (it has no %s)", c.Fields[i])
	}
	if !fits {
		return Answer{}, &outbound.Error{Fate: outbound.Unknown, Fault: fault.Newf(fault.RemoteError,
			"host %q answers in a way that is not that of %s%s; check the base_url of the credential", response.URL.Host, a.service.Name, missing)}
	}
	return answer, nil
}

// IsCode says whether a call was refused with a code, and not lost.
func IsCode(err error, code fault.Code) bool {
	refused, ok := errors.AsType[*outbound.Error](err)
	return ok && refused.Fate != outbound.Unknown && refused.Fault.Code == code
}

// Status is that of the answer with which a call was refused, 0 for anything else.
func Status(err error) int {
	if refused, ok := errors.AsType[*outbound.Error](err); ok && refused.Fate != outbound.Unknown {
		status, _ := refused.Fault.Details["status_code"].(int)
		return status
	}
	return 0
}

// Bearer is the secret of services that take a token in the header Authorization.
func Bearer(fields gjson.Result) *outbound.Secret {
	token := fields.Get("token").Str
	if token == "" {
		return nil
	}
	return &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + token}}}
}
