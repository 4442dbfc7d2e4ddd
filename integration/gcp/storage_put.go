package gcp

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

// Storage puts objects into Google Cloud Storage.
func Storage(client *outbound.Client) objectstore.Store { return &storage{client: client} }

type storage struct {
	client *outbound.Client
	tokens objectstore.Tokens
}

const (
	storageBase  = "https://storage.googleapis.com"
	storageScope = "https://www.googleapis.com/auth/devstorage.read_write"
	// atOnce is up to which size content and what is said about it are one call.
	atOnce = 8 << 20
)

// bucketName keeps a bucket from being more than a part of a path. The service is stricter.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// CredentialType returns the type of its credentials.
func (*storage) CredentialType() string { return credentialType }

// Put sends short content in one call and longer content in a session, which the service finishes when all of it is there
// and its sums are those that were announced.
func (s *storage) Put(ctx context.Context, c credential.Opened, o objectstore.Object) (r objectstore.Receipt, err error) {
	return s.put(ctx, c, o, "")
}

// put is Put for an object that is of a generation, empty: of any.
func (s *storage) put(ctx context.Context, c credential.Opened, o objectstore.Object,
	generation string) (r objectstore.Receipt, err error) {
	a, err := openAccount(c)
	if err != nil {
		return r, err
	}
	if !bucketName.MatchString(o.Bucket) {
		return r, fault.Newf(fault.InvalidConfig, "%q is not the name of a bucket; it has lower-case letters, digits, dots, dashes and underscores", o.Bucket).With("path", "configurations.bucket")
	}
	p := &storagePut{client: s.client, object: o, base: a.base, generation: generation}
	if p.base == nil {
		p.base = &url.URL{Scheme: "https", Host: strings.TrimPrefix(storageBase, "https://")}
	}
	if err = p.measure(ctx); err != nil {
		return r, err
	}
	p.reader = o.Content.Reader(ctx)
	defer func() { err = errors.Join(err, p.reader.Close()) }()
	for renew := false; ; renew = true {
		token, fresh, err := s.tokens.Get(ctx, c, o.Clock, renew, func(ctx context.Context) (string, time.Duration, error) {
			return a.token(ctx, s.client, storageScope, o.Clock())
		})
		if err != nil {
			return r, err
		}
		p.authorize(token)
		r, err = p.put(ctx)
		if fault.CodeOf(err) == fault.CredentialInvalid && !fresh {
			continue // the token may have been taken back before its time
		}
		return r, p.clean(err)
	}
}

// storagePut is one object on its way.
type storagePut struct {
	client *outbound.Client
	object objectstore.Object
	base   *url.URL
	// generation, when it is not empty, is the one that the object must have; 0: there must be none.
	generation string
	measured   objectstore.Measured
	resource   []byte // what is said about the object
	reader     *objectstore.Reader
	secret     *outbound.Secret
	redact     credential.Redactor // holds what nobody outside knows of: tokens and sessions
}

func (p *storagePut) authorize(token string) {
	p.redact.Hold(token) // until the run ends, and the redactor with it
	p.secret = &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + token}}}
}

// clean takes tokens and sessions out of an error.
func (p *storagePut) clean(err error) error {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return err
	}
	out := *e
	out.Fault = p.redact.Fault(e.Fault)
	return &out
}

// measure reads the content once and writes what is said about the object.
func (p *storagePut) measure(ctx context.Context) error {
	attributes, err := p.object.Attributes("x-goog-meta-", "X-Goog-Storage-Class")
	if err != nil {
		return err
	}
	castagnoli := func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }
	if p.measured, err = p.object.Content.Measure(ctx, max(p.object.Content.Size, 1), castagnoli,
		func() hash.Hash { return md5.New() }); err != nil {
		return err
	}
	resource := map[string]any{
		"name":   p.object.Key,
		"crc32c": base64.StdEncoding.EncodeToString(p.measured.Parts[0].Sums[0]), "md5Hash": base64.StdEncoding.EncodeToString(p.measured.Parts[0].Sums[1]),
	}
	for name, value := range map[string]string{
		"contentType": attributes.ContentType, "cacheControl": attributes.CacheControl, "contentDisposition": attributes.ContentDisposition,
		"contentEncoding": attributes.ContentEncoding, "contentLanguage": attributes.ContentLanguage,
		"storageClass": attributes.Service.Get("X-Goog-Storage-Class"),
	} {
		if value != "" {
			resource[name] = value
		}
	}
	if len(attributes.Meta) > 0 {
		resource["metadata"] = attributes.Meta
	}
	if p.resource, err = json.Marshal(resource); err != nil {
		return fault.New(fault.Internal, "what is said about the object cannot be written").WithCause(err)
	}
	return nil
}

func (p *storagePut) put(ctx context.Context) (objectstore.Receipt, error) {
	if p.object.Content.Size <= atOnce {
		return p.together(ctx)
	}
	session, err := p.begin(ctx)
	if err != nil {
		return objectstore.Receipt{}, err
	}
	return p.send(ctx, session)
}

func (p *storagePut) uploads(kind string) *url.URL {
	u := *p.base
	u.Path += "/upload/storage/v1/b/" + p.object.Bucket + "/o"
	query := url.Values{"uploadType": {kind}}
	if p.generation != "" {
		query.Set("ifGenerationMatch", p.generation)
	}
	u.RawQuery = query.Encode()
	return &u
}

// request is a call of the service with the bounds of this object.
func (p *storagePut) request(method string, u *url.URL, header http.Header) outbound.Request {
	return outbound.Request{
		Method: method, URL: u, Header: header, Repeatable: true, Redirects: outbound.NoFollow,
		Timeout: p.object.Timeout, FirstByte: p.object.Timeout, MaxResponse: 1 << 20,
	}
}

// together sends what is said about the object and its content in one call.
func (p *storagePut) together(ctx context.Context) (objectstore.Receipt, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("tandem" + rand.Text()); err != nil {
		return objectstore.Receipt{}, err
	}
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=utf-8"}})
	if err == nil {
		_, err = part.Write(p.resource)
	}
	if err == nil {
		_, err = w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/octet-stream"}})
	}
	before := bytes.Clone(b.Bytes())
	if err = errors.Join(err, w.Close()); err != nil {
		return objectstore.Receipt{}, fault.New(fault.Internal, "the call cannot be written").WithCause(err)
	}
	after := bytes.Clone(b.Bytes()[len(before):])
	q := p.request(http.MethodPost, p.uploads("multipart"), http.Header{"Content-Type": {"multipart/related; boundary=" + w.Boundary()}})
	q.Secret = p.secret
	q.Size = int64(len(before)) + p.object.Content.Size + int64(len(after))
	q.Open = func() (io.ReadCloser, error) {
		content := p.reader.Section(0, p.object.Content.Size)
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(before), content, bytes.NewReader(after)), content}, nil
	}
	response, data, err := p.do(ctx, q)
	if err != nil {
		return objectstore.Receipt{}, err
	}
	return p.finish(response, data)
}

// begin opens a session. Its address lets in anyone who knows it, so it is a secret.
func (p *storagePut) begin(ctx context.Context) (*url.URL, error) {
	q := p.request(http.MethodPost, p.uploads("resumable"), http.Header{
		"Content-Type":            {"application/json; charset=utf-8"},
		"X-Upload-Content-Length": {strconv.FormatInt(p.object.Content.Size, 10)},
	})
	q.Secret, q.Body = p.secret, p.resource
	response, data, err := p.do(ctx, q)
	if err != nil {
		return nil, err
	}
	if response.Status != http.StatusOK && response.Status != http.StatusCreated {
		return nil, p.refused(response, data)
	}
	session, err := url.Parse(response.Header.Get("Location"))
	if err != nil || session.Host == "" {
		return nil, unreadable(p.base.Host)
	}
	p.redact.Hold(session.String(), session.RawQuery, session.Query().Get("upload_id"))
	return session, nil
}

// received is the end of a range: bytes=0-42.
var received = regexp.MustCompile(`^bytes=0-([0-9]{1,18})$`)

// send sends the content to a session. The service may keep less than it was sent and say how much; the rest follows.
func (p *storagePut) send(ctx context.Context, session *url.URL) (objectstore.Receipt, error) {
	size := p.object.Content.Size
	for offset := int64(0); ; {
		q := p.request(http.MethodPut, session, http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", offset, size-1, size)}})
		from := offset
		q.Size = size - from
		q.Open = func() (io.ReadCloser, error) { return p.reader.Section(from, size-from), nil }
		response, data, err := p.do(ctx, q)
		if err != nil {
			return objectstore.Receipt{}, err
		}
		if response.Status != http.StatusPermanentRedirect {
			return p.finish(response, data)
		}
		m := received.FindStringSubmatch(response.Header.Get("Range"))
		if m == nil {
			return objectstore.Receipt{}, stuck(session.Host)
		}
		last, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || last < offset || last+1 >= size {
			return objectstore.Receipt{}, stuck(session.Host)
		}
		offset = last + 1
	}
}

func stuck(host string) error {
	return &outbound.Error{Fault: fault.Newf(fault.NetworkError, "host %q keeps nothing of what it is sent", host), Fate: outbound.Unknown}
}

func unreadable(host string) error {
	return &outbound.Error{Fault: fault.Newf(fault.RemoteError, "host %q answers in a way that is not that of Cloud Storage; check the base_url of the credential", host), Fate: outbound.Unknown}
}

// do makes a call and reads its answer; 308 is one, it asks for more.
func (p *storagePut) do(ctx context.Context, q outbound.Request) (*outbound.Response, []byte, error) {
	response, err := p.client.Do(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	data, err := response.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if good := response.Status >= 200 && response.Status <= 299; !good && response.Status != http.StatusPermanentRedirect {
		return nil, nil, p.refused(response, data)
	}
	return response, data, nil
}

// finish reads what the service says of the object and compares it with what was sent.
func (p *storagePut) finish(r *outbound.Response, data []byte) (objectstore.Receipt, error) {
	var object struct {
		ETag   string `json:"etag"`
		CRC32C string `json:"crc32c"`
	}
	if r.Status > 299 || json.Unmarshal(data, &object) != nil {
		return objectstore.Receipt{}, unreadable(p.base.Host)
	}
	if ours := base64.StdEncoding.EncodeToString(p.measured.Parts[0].Sums[0]); object.CRC32C != "" && object.CRC32C != ours {
		r.Status = http.StatusBadRequest
		return objectstore.Receipt{}, objectstore.Refusal(r, objectstore.Damaged(), p.object.Clock())
	}
	u := *p.base
	u.Path += "/" + p.object.Bucket + "/" + p.object.Key
	u.RawPath = objectstore.EscapeKey(u.Path)
	if object.ETag == "" {
		object.ETag = r.Header.Get("ETag")
	}
	return objectstore.Receipt{
		URL: u.String(), Status: r.Status, SHA256: p.measured.Hex(), ETag: strings.ToValidUTF8(object.ETag, ""),
		Response: p.redact.JSON(bytes.TrimSpace(data)),
	}, nil
}

// refused reads why the service refuses a call.
func (p *storagePut) refused(r *outbound.Response, data []byte) error {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		e.Error.Message = "" // a page of somebody in between; the status says enough
	}
	s := objectstore.Said{Message: e.Error.Message}
	if len(e.Error.Errors) > 0 {
		s.Code = e.Error.Errors[0].Reason
	}
	switch {
	case s.Code == "rateLimitExceeded" || s.Code == "userRateLimitExceeded" || r.Status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "":
		s.As = fault.RateLimited
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		s.As, s.Remedy = fault.NotFound, "create the bucket or correct its name"
		if p.reader != nil && r.URL.Query().Get("upload_id") != "" {
			s.As, s.Remedy = fault.RemoteError, "the service has forgotten the upload; it begins anew"
		}
	case r.Status == http.StatusRequestTimeout:
		s.As = fault.RemoteError
	case r.Status == http.StatusBadRequest && (strings.Contains(e.Error.Message, "hash") || strings.Contains(e.Error.Message, "CRC32C") ||
		strings.Contains(e.Error.Message, "MD5")):
		damaged := objectstore.Damaged()
		s.As, s.Remedy = damaged.As, damaged.Remedy
	}
	if s.Message != "" && s.Code == "" {
		s.Code = http.StatusText(r.Status)
	}
	return objectstore.Refusal(r, s, p.object.Clock())
}
