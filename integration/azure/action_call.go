package azure

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
	"tandem/payload"
)

func newMD5() hash.Hash { return md5.New() }

// opens opens what is sent as it is.
func opens(body []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// azure is what Service Bus and Functions have in common.
func azure() *rest.Service {
	return &rest.Service{Name: "Azure", Said: func(body gjson.Result) string {
		return cmp.Or(body.Get("error.message").Str, body.Get("error").Str, body.Get("message").Str, body.Get("Message").Str, body.Str)
	}, Refine: func(r *rest.Refusal) {
		said := bytes.ToLower(r.Raw)
		if r.Status == http.StatusServiceUnavailable && (bytes.Contains(said, []byte("busy")) ||
			bytes.Contains(said, []byte("throttled"))) {
			r.Limit("Azure", r.Problem.RetryAfter)
		}
	}}
}

// bearer lets calls in with tokens of the application for a scope.
func (a *acting) bearer(app *client, scope string) rest.Authorize {
	kept := credential.Opened{ID: a.opened.ID + "\x00" + scope, Data: a.opened.Data}
	fresh := false
	return func(ctx context.Context, _ *outbound.Request, renew bool) (*outbound.Secret, error) {
		if renew && fresh {
			return nil, nil // a token that is new and not taken does not get better
		}
		token, made, err := a.objects.tokens.Get(ctx, kept, a.clock, renew, func(ctx context.Context) (string, time.Duration, error) {
			return app.tokenFor(ctx, a.objects.client, scope, a.clock())
		})
		fresh = made
		return &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + token}}}, err
	}
}

// with lets calls in with a header.
func with(name, value string) rest.Authorize {
	return func(_ context.Context, _ *outbound.Request, renew bool) (*outbound.Secret, error) {
		if renew {
			return nil, nil // a key is what it is
		}
		return &outbound.Secret{Header: http.Header{name: {value}}}, nil
	}
}

var (
	namespaceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{4,48}[A-Za-z0-9](\.servicebus\.[a-z.]+)?$`)
	entityName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,259}$`)
	propertyName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,127}$`)
)

// sasLife is how long a signature for Service Bus is good.
const sasLife = 10 * time.Minute

// bus is the Service Bus of the credential: its address, and what lets calls in.
func (a *acting) bus() (*rest.API, error) {
	f, err := readFields(a.opened)
	if err != nil {
		return nil, err
	}
	base, err := f.address(a.opened)
	if err != nil {
		return nil, err
	}
	parts := connection(f.ConnectionString)
	if endpoint, parsed := url.Parse(parts["endpoint"]); base == nil && parsed == nil && endpoint.Host != "" {
		base = &url.URL{Scheme: "https", Host: endpoint.Host}
	}
	if base == nil {
		if !namespaceName.MatchString(a.cfg.Namespace) {
			return nil, fault.New(fault.InvalidInput, "namespace must name the Service Bus: the credential does not").With("path", "namespace")
		}
		host := a.cfg.Namespace
		if !strings.Contains(host, ".") {
			host += ".servicebus.windows.net"
		}
		base = &url.URL{Scheme: "https", Host: host}
	}
	app, err := f.application(a.opened)
	if err != nil {
		return nil, err
	}
	switch {
	case parts["sharedaccesskeyname"] != "" && parts["sharedaccesskey"] != "":
		return azure().At(a.objects.client, base, with("Authorization",
			sign(base, parts["sharedaccesskeyname"], parts["sharedaccesskey"], a.clock()))), nil
	case strings.HasPrefix(f.SAS, "SharedAccessSignature "):
		return azure().At(a.objects.client, base, with("Authorization", f.SAS)), nil
	case app != nil:
		return azure().At(a.objects.client, base, a.bearer(app, "https://servicebus.azure.net/.default")), nil
	}
	return nil, wrong(a.opened, "lets nobody into a Service Bus; set its connection_string, or tenant_id, client_id and client_secret")
}

// sign makes a signature of a key for everything below an address.
func sign(base *url.URL, name, key string, now time.Time) string {
	resource := url.QueryEscape(base.String())
	until := strconv.FormatInt(now.Add(sasLife).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(resource + "\n" + until))
	return "SharedAccessSignature sr=" + resource + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))) + "&se=" + until + "&skn=" + url.QueryEscape(name)
}

func (a *acting) send() (out actionResult, err error) {
	api, err := a.bus()
	if err != nil {
		return out, err
	}
	entity := cmp.Or(a.cfg.Queue, a.cfg.Topic)
	if !entityName.MatchString(entity) || strings.Contains(entity, "..") {
		return out, fault.Newf(fault.InvalidInput, "%q is not the name of a queue or topic", entity).With("path", "queue")
	}
	text, kind := string(a.cfg.Body), "application/json"
	if v := gjson.ParseBytes(a.cfg.Body); v.Type == gjson.String {
		text, kind = v.Str, "text/plain; charset=utf-8"
	}
	out.MessageID = action.Marker(a.call, "servicebus")
	broker, err := payload.Encode(rest.Fields{"MessageId": out.MessageID}.Text("SessionId", a.cfg.SessionID))
	if err != nil {
		return out, err
	}
	header := http.Header{"Brokerproperties": {string(broker)}}
	err = a.cfg.Properties.Each(func(name string, value json.RawMessage) error {
		plain, ok := values.Scalar(value)
		if !ok || !propertyName.MatchString(name) || strings.ContainsFunc(plain, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			return fault.Newf(fault.InvalidInput, "properties: %q must have a simple name, and be a text in ASCII, a number, or yes or no", name).With("path", "properties")
		}
		if gjson.ParseBytes(value).Type == gjson.String {
			plain = strconv.Quote(plain)
		}
		header.Set(name, plain)
		return nil
	})
	if err != nil {
		return out, err
	}
	body := []byte(text)
	answer, err := api.Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: "/" + entity + "/messages", Open: opens(body), Size: int64(len(body)), ContentType: kind,
		Header: header, Wants: rest.Anything,
	})
	if err != nil {
		return out, err
	}
	if answer.Status != http.StatusCreated {
		return out, &outbound.Error{Fate: outbound.Unknown, Fault: fault.Newf(fault.RemoteError,
			"host %q answers in a way that is not that of Service Bus; check the base_url of the credential", api.Base.Host)}
	}
	out.ResourceID = out.MessageID
	return out, nil
}

// functionHost is where functions are that have no domain of their own.
var functionHost = regexp.MustCompile(`\.azurewebsites\.(net|us|cn)$`)

// invoke calls a function. A key goes to functions of Azure and to the base_url of the credential, and to nobody else.
func (a *acting) invoke() (out actionResult, err error) {
	f, err := readFields(a.opened)
	if err != nil {
		return out, err
	}
	base, err := f.address(a.opened)
	if err != nil {
		return out, err
	}
	target, err := url.Parse(a.cfg.URL)
	switch {
	case err == nil && target.Host != "" && (functionHost.MatchString(target.Hostname()) || base != nil && base.Host == target.Host):
		base = &url.URL{Scheme: target.Scheme, Host: target.Host}
	case err == nil && target.Host != "":
		return out, fault.Newf(fault.InvalidInput, "host %q is not known to be one of Azure; set the base_url of the credential to its address", target.Hostname()).With("path", "url")
	case err != nil || base == nil || !strings.HasPrefix(a.cfg.URL, "/"):
		return out, fault.Newf(fault.InvalidInput, "%q is not an address; write it like https://app.azurewebsites.net/api/name", a.cfg.URL).With("path", "url")
	}
	app, err := f.application(a.opened)
	if err != nil {
		return out, err
	}
	var enter rest.Authorize
	switch {
	case a.cfg.Scope != "" && app != nil:
		enter = a.bearer(app, a.cfg.Scope)
	case f.FunctionKey != "":
		enter = with("X-Functions-Key", f.FunctionKey)
	default:
		return out, wrong(a.opened, "lets nobody into a function; set function_key, or a client and scope of the node")
	}
	c := rest.Call{Method: a.cfg.Method, Path: cmp.Or(target.EscapedPath(), "/"), Query: target.Query(),
		Wants: rest.Anything, Patience: a.patience()}
	if !payload.IsNull(a.cfg.Body) && a.cfg.Method != http.MethodGet {
		c.Body = a.cfg.Body
	}
	answer, err := azure().At(a.objects.client, base, enter).Do(a.ctx, c)
	if err != nil {
		return out, err
	}
	out.StatusCode, out.Body = answer.Status, answer.Raw()
	return out, nil
}
