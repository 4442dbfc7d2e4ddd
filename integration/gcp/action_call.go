package gcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/payload"
)

// allScope is the scope of tokens for everything that the account may do.
const allScope = "https://www.googleapis.com/auth/cloud-platform"

// acting is one run of an operation.
type acting struct {
	ctx     context.Context
	call    *node.Call
	cfg     actionConfig
	objects *storage
	account *account
}

func begin(ctx context.Context, objects *storage, call *node.Call, cfg actionConfig) (*acting, error) {
	opened, err := rest.Credential(ctx, call, "Google Cloud", credentialType)
	if err != nil {
		return nil, err
	}
	account, err := openAccount(opened)
	return &acting{ctx: ctx, call: call, cfg: cfg, objects: objects, account: account}, err
}

// clock tells the time that the account signs with, which Google judges by its own.
func (a *acting) clock() time.Time { return rest.Clock(a.call) }

func (a *acting) patience() time.Duration { return rest.Patience(a.call) }

// api is a service at its own address, or at that of the credential, with tokens of a claim.
func (a *acting) api(base *url.URL, claim, of string) *rest.API {
	kept := credential.Opened{ID: a.account.credential.ID + "\x00" + claim + "\x00" + of, Data: a.account.credential.Data}
	fresh := false
	return google().At(a.objects.client, base, func(ctx context.Context, _ *outbound.Request, renew bool) (*outbound.Secret, error) {
		if renew && fresh {
			return nil, nil // a token that is new and not taken does not get better
		}
		token, made, err := a.objects.tokens.Get(ctx, kept, a.clock, renew, func(ctx context.Context) (string, time.Duration, error) {
			return a.account.exchange(ctx, a.objects.client, claim, of, a.clock())
		})
		fresh = made
		return &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + token}}}, err
	})
}

// service is one of Google's.
func (a *acting) service(name string) *rest.API {
	base := a.account.base
	if base == nil {
		base = &url.URL{Scheme: "https", Host: name + ".googleapis.com"}
	}
	return a.api(base, "scope", allScope)
}

// google is what all services have in common.
func google() *rest.Service {
	return &rest.Service{Name: "Google Cloud", Said: func(body gjson.Result) string {
		return cmp.Or(body.Get("error.message").Str, body.Get("error").Str, body.Get("message").Str, body.Str)
	}, Refine: func(r *rest.Refusal) {
		reason := r.Body.Get("error.errors.0.reason").Str
		limits := []string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "jobRateLimitExceeded"}
		if r.Status == http.StatusForbidden && slices.Contains(limits, reason) || r.Body.Get("error.status").Str == "RESOURCE_EXHAUSTED" {
			r.Limit("Google Cloud", cmp.Or(r.Problem.RetryAfter, outbound.RetryAfter(r.Header, time.Now())))
		}
	}}
}

// projectName keeps a project from being more than a part of a path.
var projectName = regexp.MustCompile(`^[a-z0-9.:-]{1,100}$`)

func (a *acting) project() (string, error) {
	name := cmp.Or(a.cfg.ProjectID, a.account.project)
	if !projectName.MatchString(name) {
		return "", fault.New(fault.InvalidInput, "project_id must name the project").With("path", "project_id")
	}
	return name, nil
}

// object is the path of the object that the node names.
func (a *acting) object() (string, error) {
	if err := a.checkBucket(); err != nil {
		return "", err
	}
	return rest.Path("storage", "v1", "b", a.cfg.Bucket, "o", a.cfg.Object), objectstore.CheckKey(a.cfg.Object)
}

func (a *acting) checkBucket() error {
	if !bucketName.MatchString(a.cfg.Bucket) {
		return fault.Newf(fault.InvalidInput, "%q is not the name of a bucket; it has lower-case letters, digits, dots, dashes and underscores", a.cfg.Bucket).With("path", "bucket")
	}
	return nil
}

func (a *acting) getObject() (out actionResult, err error) {
	where, err := a.object()
	if err != nil {
		return out, err
	}
	response, err := a.service("storage").Send(a.ctx, rest.Call{
		Method: http.MethodGet, Path: where, Query: url.Values{"alt": {"media"}}, Header: http.Header{"Accept": {"*/*"}},
		Patience: a.patience(), MostBytes: a.cfg.MaxBytes,
	})
	if err != nil {
		return out, err
	}
	defer func() {
		if failed := response.Body.Close(); failed != nil && err == nil {
			err = fault.New(fault.NetworkError, "the answer could not be read to its end").WithCause(failed)
		}
	}()
	generation := response.Header.Get("X-Goog-Generation")
	if generation == "" {
		return out, unreadable(response.URL.Host)
	}
	kind := response.Header.Get("Content-Type")
	if out.File, err = fileref.Keep(a.ctx, a.call, response.Body, path.Base(a.cfg.Object), kind); err != nil {
		return out, err
	}
	out.ResourceID = a.cfg.Object
	out.Response, err = payload.Encode(rest.Fields{"bucket": a.cfg.Bucket, "name": a.cfg.Object,
		"generation": generation}.Text("contentType", kind).Text("etag", response.Header.Get("ETag")))
	return out, err
}

func (a *acting) listObjects() (out actionResult, err error) {
	if err := a.checkBucket(); err != nil {
		return out, err
	}
	api := a.service("storage")
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		query, err := rest.CursorQuery(cursor, url.Values{"prefix": {a.cfg.Prefix}, "maxResults": {strconv.Itoa(min(a.cfg.Limit, 1000))}})
		if err != nil {
			return nil, "", err
		}
		answer, err := api.Do(a.ctx, rest.Call{Method: http.MethodGet,
			Path: rest.Path("storage", "v1", "b", a.cfg.Bucket, "o"), Query: query})
		if err != nil {
			return nil, "", err
		}
		return rest.Items(answer.Get("items")), following(query, answer.Get("nextPageToken").Str), nil
	})
	return out, err
}

// following is the cursor of the page with a token: the query of it.
func following(query url.Values, token string) string {
	if token == "" {
		return ""
	}
	query.Set("pageToken", token)
	return query.Encode()
}

// putObject stores an object. When it is tried again, the object may be of another generation because the attempt before has put it: one
// with the same content is a success.
func (a *acting) putObject(store *files.Store) (out actionResult, err error) {
	where, err := a.object()
	if err != nil {
		return out, err
	}
	source, err := fileref.Given(a.ctx, store, a.call, a.cfg.File, a.cfg.Content, a.cfg.MaxBytes)
	if err != nil {
		return out, err
	}
	object := objectstore.Object{
		Bucket: a.cfg.Bucket, Key: a.cfg.Object, ContentType: cmp.Or(a.cfg.ContentType, source.ContentType),
		Timeout: cmp.Or(a.patience(), outbound.DefaultTotal),
		Content: objectstore.Content{Size: source.Size, Open: func() (io.ReadCloser, error) { return source.Open() }}, Clock: a.clock,
	}
	receipt, err := a.objects.put(a.ctx, a.account.credential, object, string(a.cfg.Generation))
	if fault.CodeOf(err) == fault.Conflict && a.call.Attempt > 1 {
		if there, same := a.isThere(where, object); same {
			receipt, err = there, nil
		}
	}
	if err != nil {
		return out, err
	}
	out.ResourceID, out.ResourceURL, out.Response = a.cfg.Object, receipt.URL, receipt.Response
	return out, nil
}

// isThere says that the object has the content that was to be put. If that cannot be told, it stays a conflict.
func (a *acting) isThere(where string, o objectstore.Object) (r objectstore.Receipt, same bool) {
	p := &storagePut{object: o}
	if p.measure(a.ctx) != nil {
		return r, false
	}
	answer, err := a.service("storage").Do(a.ctx, rest.Call{Method: http.MethodGet, Path: where})
	if err != nil || answer.Get("md5Hash").Str != base64.StdEncoding.EncodeToString(p.measured.Parts[0].Sums[1]) {
		return r, false
	}
	return objectstore.Receipt{Response: answer.Raw()}, true
}

// topicName is a topic with its project.
var topicName = regexp.MustCompile(`^projects/[a-z0-9.:-]+/topics/[A-Za-z0-9._~+%-]+$`)

func (a *acting) publish() (out actionResult, err error) {
	topic := a.cfg.Topic
	if !strings.Contains(topic, "/") {
		project, err := a.project()
		if err != nil {
			return out, err
		}
		topic = "projects/" + project + "/topics/" + topic
	}
	if !topicName.MatchString(topic) {
		return out, fault.Newf(fault.InvalidInput, "%q is not the name of a topic", a.cfg.Topic).With("path", "topic")
	}
	messages, err := a.messages()
	if err != nil {
		return out, err
	}
	answer, err := a.service("pubsub").Do(a.ctx, rest.Call{Method: http.MethodPost, Path: "/v1/" + topic + ":publish",
		Body: map[string]any{"messages": messages}, Fields: []string{"messageIds"}})
	if err != nil {
		return out, err
	}
	for _, id := range answer.Get("messageIds").Array() {
		out.MessageIDs = append(out.MessageIDs, id.String())
	}
	if len(out.MessageIDs) == 1 {
		out.ResourceID = out.MessageIDs[0]
	}
	out.Response = answer.Raw()
	return out, nil
}

// maxMessages is how many messages Pub/Sub takes in one call.
const maxMessages = 1000

// messages are those of the node as Pub/Sub takes them.
func (a *acting) messages() (list []any, err error) {
	given := []json.RawMessage{a.cfg.Messages}
	if values.IsList(a.cfg.Messages) {
		given = values.Elements(a.cfg.Messages)
	}
	if len(given) == 0 || len(given) > maxMessages {
		return nil, fault.Newf(fault.InvalidInput, "there are %d messages; Pub/Sub takes 1 to %d at once", len(given), maxMessages).With("path", "messages")
	}
	for _, raw := range given {
		m := gjson.ParseBytes(raw)
		data, out := raw, map[string]any{}
		if m.IsObject() && m.Get("data").Exists() {
			data = json.RawMessage(m.Get("data").Raw)
			attributes := map[string]string{}
			m.Get("attributes").ForEach(func(name, value gjson.Result) bool {
				attributes[name.Str] = value.String()
				return true
			})
			if len(attributes) > 0 {
				out["attributes"] = attributes
			}
			if key := m.Get("ordering_key").Str; key != "" {
				out["orderingKey"] = key
			}
		}
		text := string(data)
		if v := gjson.ParseBytes(data); v.Type == gjson.String {
			text = v.Str
		}
		out["data"] = base64.StdEncoding.EncodeToString([]byte(text))
		list = append(list, out)
	}
	return list, nil
}

// invoke calls a service that runs in the cloud. The token says who calls and is good for that service alone, so it may be sent to wherever
// the node says.
func (a *acting) invoke(withPath bool) (out actionResult, err error) {
	base, where := a.account.base, a.cfg.URL
	target, err := url.Parse(a.cfg.URL)
	switch {
	case err == nil && target.Host != "":
		base, where = &url.URL{Scheme: target.Scheme, Host: target.Host}, target.EscapedPath()
	case err != nil || base == nil || !strings.HasPrefix(where, "/"):
		return out, fault.Newf(fault.InvalidInput, "%q is not an address; write it like https://service-abc.run.app/path", a.cfg.URL).With("path", "url")
	default:
		where = target.EscapedPath()
	}
	audience := a.cfg.Audience
	if audience == "" {
		if audience = base.String(); withPath {
			audience += where
		}
	}
	c := rest.Call{Method: a.cfg.Method, Path: cmp.Or(where, "/"), Query: target.Query(), Wants: rest.Anything, Patience: a.patience()}
	if !payload.IsNull(a.cfg.Body) && a.cfg.Method != http.MethodGet {
		c.Body = a.cfg.Body
	}
	answer, err := a.api(base, "target_audience", audience).Do(a.ctx, c)
	if err != nil {
		return out, err
	}
	out.StatusCode, out.Body = answer.Status, answer.Raw()
	return out, nil
}
