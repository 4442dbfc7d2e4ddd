package aws

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"hash"
	"io"
	"net/http"
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

// S3 puts objects into Amazon S3 and into stores that speak like it.
func S3(client *outbound.Client) objectstore.Store { return &s3Store{client} }

type s3Store struct{ client *outbound.Client }

// CredentialType returns the type of its credentials.
func (*s3Store) CredentialType() string { return credentialType }

// bucketName keeps a bucket from being more than a part of an address. Services are stricter, each in its own way.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$`)

// hostBucket is a bucket that can be the first part of a host's name; one with dots has no certificate.
var hostBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

// objectHeaders are the headers that S3 knows for an object. None of them changes what the call does.
func objectHeaders() []string {
	return []string{
		"Expires", "X-Amz-Acl", "X-Amz-Storage-Class", "X-Amz-Tagging", "X-Amz-Website-Redirect-Location", "X-Amz-Server-Side-Encryption",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled",
	}
}

// Put sends short content at once and longer content in parts, which the service joins when all of them are there. Every
// part is signed with the sum of its content, so the service takes nothing else.
func (s *s3Store) Put(ctx context.Context, c credential.Opened, o objectstore.Object) (r objectstore.Receipt, err error) {
	k, base, err := openKeys(c)
	if err != nil {
		return r, err
	}
	return s.put(ctx, k, base, o)
}

// put is Put with the keys of a credential.
func (s *s3Store) put(ctx context.Context, k keys, base *url.URL, o objectstore.Object) (r objectstore.Receipt, err error) {
	if !bucketName.MatchString(o.Bucket) {
		return r, fault.Newf(fault.InvalidConfig, "%q is not the name of a bucket; it has letters, digits, dots and dashes", o.Bucket).With("path", "configurations.bucket")
	}
	attributes, err := o.Attributes("x-amz-meta-", objectHeaders()...)
	if err != nil {
		return r, err
	}
	p := &s3Put{client: s.client, signer: signer{k, "s3"}, object: o, address: objectAddress(k.Region, base, o.Bucket, o.Key),
		header: writeHeader(attributes)}
	if p.measured, err = o.Content.Measure(ctx, objectstore.PartSize(o.Content.Size), sha256.New,
		func() hash.Hash { return md5.New() }); err != nil {
		return r, err
	}
	p.reader = o.Content.Reader(ctx)
	defer func() { err = errors.Join(err, p.reader.Close()) }()
	if len(p.measured.Parts) == 1 {
		return p.atOnce(ctx)
	}
	return p.inParts(ctx)
}

// objectAddress is where an object is. Stores at an address of their own have the bucket in the path.
func objectAddress(region string, base *url.URL, bucket, key string) *url.URL {
	u := &url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}
	if strings.HasPrefix(region, "cn-") {
		u.Host += ".cn"
	}
	switch {
	case base != nil:
		u.Scheme, u.Host, u.Path = base.Scheme, base.Host, base.Path+"/"+bucket+"/"+key
	case hostBucket.MatchString(bucket):
		u.Host, u.Path = bucket+"."+u.Host, "/"+key
	default:
		u.Path = "/" + bucket + "/" + key
	}
	u.RawPath = objectstore.EscapeKey(u.Path)
	return u
}

func writeHeader(a objectstore.Attributes) http.Header {
	h := a.Service.Clone()
	for name, value := range map[string]string{
		"Content-Type": a.ContentType, "Cache-Control": a.CacheControl, "Content-Disposition": a.ContentDisposition,
		"Content-Encoding": a.ContentEncoding, "Content-Language": a.ContentLanguage,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	for name, value := range a.Meta {
		h.Set("X-Amz-Meta-"+name, value)
	}
	return h
}

// s3Put is one object on its way.
type s3Put struct {
	client   *outbound.Client
	signer   signer
	object   objectstore.Object
	address  *url.URL
	header   http.Header // of the object
	measured objectstore.Measured
	reader   *objectstore.Reader
}

// emptySum is the sum of no content.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// expectFrom is from which size the service is asked whether it wants the content before it is sent.
const expectFrom = 1 << 20

// request is one call of the service.
type request struct {
	method string
	query  url.Values
	header http.Header
	body   []byte
	part   *objectstore.Part // takes the place of body
}

// call makes a signed call and reads the answer to its end.
func (p *s3Put) call(ctx context.Context, q request) (*outbound.Response, []byte, error) {
	u := *p.address
	u.RawQuery = canonicalQuery(q.query)
	header := q.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	r := outbound.Request{
		Method: q.method, URL: &u, Header: header, Body: q.body, Redirects: outbound.NoFollow, Timeout: p.object.Timeout,
		FirstByte: p.object.Timeout, MaxResponse: 1 << 20,
	}
	sum := emptySum
	switch {
	case q.part != nil:
		sum = hex.EncodeToString(q.part.Sums[0])
		header.Set("Content-Md5", base64.StdEncoding.EncodeToString(q.part.Sums[1])) // buckets with locks insist on it
		r.Size = q.part.Size
		r.Open = func() (io.ReadCloser, error) { return p.reader.Section(q.part.Offset, q.part.Size), nil }
	case len(q.body) > 0:
		digest := sha256.Sum256(q.body)
		sum = hex.EncodeToString(digest[:])
	}
	r.Secret = &outbound.Secret{Header: p.signer.sign(q.method, &u, header, sum, p.object.Clock())}
	response, err := p.client.Do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	data, err := response.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if response.Status < 200 || response.Status > 299 {
		return nil, nil, refused(response, data, p.object.Clock())
	}
	return response, data, nil
}

func (p *s3Put) atOnce(ctx context.Context) (objectstore.Receipt, error) {
	header := p.header.Clone()
	if p.object.Content.Size >= expectFrom {
		header.Set("Expect", "100-continue")
	}
	response, _, err := p.call(ctx, request{method: http.MethodPut, header: header, part: &p.measured.Parts[0]})
	if err != nil {
		return objectstore.Receipt{}, err
	}
	return p.receipt(response, response.Header.Get("ETag"))
}

// abortTimeout bounds the giving up of parts that lead nowhere.
const abortTimeout = 20 * time.Second

func (p *s3Put) inParts(ctx context.Context) (objectstore.Receipt, error) {
	_, data, err := p.call(ctx, request{method: http.MethodPost, query: url.Values{"uploads": {""}}, header: p.header})
	if err != nil {
		return objectstore.Receipt{}, err
	}
	var begun struct {
		UploadID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal(data, &begun); err != nil || begun.UploadID == "" {
		return objectstore.Receipt{}, unreadable(p.address.Host)
	}
	receipt, err := p.sendParts(ctx, begun.UploadID)
	if err != nil {
		// Parts that nobody joins are paid for until they are given up. The node may have been stopped; this is not.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		if _, _, aborted := p.call(ctx, request{method: http.MethodDelete,
			query: url.Values{"uploadId": {begun.UploadID}}}); aborted != nil && fault.From(aborted).Details["service_code"] != "NoSuchUpload" {
			return receipt, withDetail(err, "the parts sent so far were not given up: "+aborted.Error())
		}
	}
	return receipt, err
}

func (p *s3Put) sendParts(ctx context.Context, id string) (objectstore.Receipt, error) {
	type part struct {
		PartNumber int
		ETag       string
	}
	var list struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []part
	}
	for i := range p.measured.Parts {
		response, _, err := p.call(ctx, request{
			method: http.MethodPut, query: url.Values{"partNumber": {strconv.Itoa(i + 1)}, "uploadId": {id}}, part: &p.measured.Parts[i],
		})
		if err != nil {
			return objectstore.Receipt{}, err
		}
		etag := response.Header.Get("ETag")
		if etag == "" {
			return objectstore.Receipt{}, unreadable(p.address.Host)
		}
		list.Part = append(list.Part, part{i + 1, etag})
	}
	body, err := xml.Marshal(list)
	if err != nil {
		return objectstore.Receipt{}, fault.New(fault.Internal, "the list of parts cannot be written").WithCause(err)
	}
	response, data, err := p.call(ctx, request{method: http.MethodPost, query: url.Values{"uploadId": {id}},
		header: http.Header{"Content-Type": {"application/xml"}}, body: body})
	if err != nil {
		return objectstore.Receipt{}, err
	}
	// The status was sent before the parts were joined, so it says nothing.
	var joined struct {
		XMLName xml.Name
		ETag    string
	}
	switch err := xml.Unmarshal(data, &joined); {
	case err == nil && joined.XMLName.Local == "Error":
		response.Status = http.StatusInternalServerError
		return objectstore.Receipt{}, refused(response, data, p.object.Clock())
	case err != nil || joined.ETag == "":
		return objectstore.Receipt{}, unreadable(p.address.Host)
	}
	return p.receipt(response, joined.ETag)
}

func (p *s3Put) receipt(r *outbound.Response, etag string) (objectstore.Receipt, error) {
	raw, err := objectstore.Told(map[string]string{"bucket": p.object.Bucket, "key": p.object.Key}, r.Header, map[string]string{
		"version_id": "X-Amz-Version-Id", "request_id": "X-Amz-Request-Id", "server_side_encryption": "X-Amz-Server-Side-Encryption",
	})
	if err != nil {
		return objectstore.Receipt{}, err
	}
	return objectstore.Receipt{URL: p.address.String(), Status: r.Status, SHA256: p.measured.Hex(),
		ETag: strings.ToValidUTF8(etag, ""), Response: raw}, nil
}

func unreadable(host string) error {
	return &outbound.Error{Fault: fault.Newf(fault.RemoteError, "host %q answers in a way that is not that of S3; check the base_url of the credential", host), Fate: outbound.Unknown}
}

func withDetail(err error, detail string) error {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return err
	}
	out := *e
	out.Fault = e.Fault.WithDetail(strings.TrimPrefix(e.Fault.Detail+"\n"+detail, "\n"))
	return &out
}
