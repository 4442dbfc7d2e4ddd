package mailbox

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
	"tandem/payload"
)

// ErrLost says that a service does not know a position any more: what has come has to be found by its time.
var ErrLost = errors.New("the service does not know the position any more") // read-only

// usualAnswer is how much is read of an answer that is not a message.
const usualAnswer = 8 << 20

// Account calls the API of a service with the token of a credential, and once more with a new one when the service does not take it.
type Account struct {
	http    *outbound.Client
	service string
	base    *url.URL
	opened  credential.Opened
	token   string
}

// NewAccount reads a credential. Service is what errors call it, usual where its API is unless the credential says otherwise.
func NewAccount(client *outbound.Client, service, usual string, c credential.Opened) (*Account, error) {
	var f struct {
		Token   string `json:"token"`
		BaseURL string `json:"base_url"`
	}
	if payload.Read(c.Data, &f) != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", c.ID)
	}
	if f.Token == "" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has no token; authorize the account: tandem credentials authorize %s", c.ID, c.ID)
	}
	if !strings.HasPrefix(f.BaseURL, "http") { // that of a mail server
		f.BaseURL = ""
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(f.BaseURL, usual), "/"))
	if err != nil || base.Host == "" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that cannot be used; write it like https://host", c.ID)
	}
	return &Account{http: client, service: service, base: base, opened: c, token: f.Token}, nil
}

// Call is a call of an API.
type Call struct {
	Method string
	// Path is below the address of the API, with its query; or a whole address there, as an earlier answer has named it.
	Path   string
	Header http.Header
	// Body is sent as JSON, unless it is nil.
	Body any
	// Most is how many bytes the answer may have; zero: as many as are usual for one that is not a message.
	Most int64
}

// Do makes a call and returns the answer. What is not below 300 is an error.
func (a *Account) Do(ctx context.Context, c Call) ([]byte, error) {
	answer, err := a.once(ctx, c)
	if status(err) != http.StatusUnauthorized || a.opened.Renew == nil {
		return answer, err
	}
	again, err := a.opened.Renew(ctx, a.token)
	if err != nil {
		return nil, err
	}
	defer again.Release()
	var f struct {
		Token string `json:"token"`
	}
	if payload.Read(again.Data, &f) != nil || f.Token == "" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has no token; authorize the account anew", a.opened.ID)
	}
	a.token = f.Token
	return a.once(ctx, c)
}

// Ask is [Account.Do], and reads the answer into a value.
func (a *Account) Ask(ctx context.Context, c Call, into any) error {
	answer, err := a.Do(ctx, c)
	if err != nil {
		return err
	}
	if err := payload.Read(answer, into); err != nil {
		return fault.Newf(fault.RemoteError, "%s answered with something that cannot be read", a.service).WithCause(err)
	}
	return nil
}

func (a *Account) once(ctx context.Context, c Call) ([]byte, error) {
	address, err := a.address(c.Path)
	if err != nil {
		return nil, err
	}
	request := outbound.Request{
		Method: c.Method, URL: address, Header: c.Header.Clone(), Redirects: outbound.NoFollow, MaxResponse: cmp.Or(c.Most, usualAnswer),
		Secret: &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + a.token}}},
	}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	if c.Body != nil {
		if request.Body, err = payload.Encode(c.Body); err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.http.Do(ctx, request)
	if err != nil {
		return nil, err
	}
	answer, err := response.ReadAll()
	if err != nil {
		return nil, err
	}
	if response.Status >= 300 {
		return nil, a.refused(response, answer)
	}
	return answer, nil
}

// address is where a call goes. A whole address is taken if it is one of the API: the token is for nobody else.
func (a *Account) address(path string) (*url.URL, error) {
	if strings.HasPrefix(path, "/") {
		path = a.base.String() + path
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != a.base.Scheme || u.Host != a.base.Host {
		return nil, fault.Newf(fault.RemoteError, "%s has named an address that is not its own", a.service)
	}
	return u, nil
}

// refused says why the service did not do something, in its own words where it has any.
func (a *Account) refused(r *outbound.Response, answer []byte) error {
	var said struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	words := ""
	if payload.Read(answer, &said) == nil && said.Error.Message != "" {
		words = ": " + said.Error.Message
	}
	problem := r.Problem(time.Now())
	if problem == nil {
		return fault.Newf(fault.RemoteError, "%s answered %d, which leads elsewhere", a.service, r.Status).With("status_code", r.Status)
	}
	code := problem.Fault.Code
	for _, e := range said.Error.Errors {
		if strings.HasSuffix(e.Reason, "LimitExceeded") { // Google answers 403 to a client that asks too often
			code = fault.RateLimited
		}
	}
	f := fault.Newf(code, "%s answered %d%s", a.service, r.Status, words).With("status_code", r.Status)
	var secrets credential.Redactor
	defer secrets.Hold(a.token)()
	return secrets.Fault(f)
}

// Answered says whether an error is an answer of a service with a status.
func Answered(err error, with int) bool { return status(err) == with }

func status(err error) int {
	if err == nil {
		return 0
	}
	var details struct {
		Status int `json:"status_code"`
	}
	raw, encodes := payload.Encode(fault.From(err).Details)
	if encodes != nil || payload.Read(raw, &details) != nil {
		return 0
	}
	return details.Status
}
