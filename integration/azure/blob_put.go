package azure

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

// Blobs puts objects into Azure Blob Storage, as block blobs.
func Blobs(client *outbound.Client) objectstore.Store { return &blobs{client: client} }

type blobs struct {
	client *outbound.Client
	tokens objectstore.Tokens
}

// containerName is what the service allows, and its own containers.
var containerName = regexp.MustCompile(`^([a-z0-9](-?[a-z0-9]){2,62}|\$root|\$web)$`)

// metaName is a name that metadata can have: one of a variable.
var metaName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// CredentialType returns the type of its credentials.
func (*blobs) CredentialType() string { return credentialType }

// Put sends short content at once and longer content in blocks, which the service joins when all of them are there. The
// service compares the sum of each. Blocks that are never joined it forgets after a week.
func (s *blobs) Put(ctx context.Context, c credential.Opened, o objectstore.Object) (r objectstore.Receipt, err error) {
	return s.put(ctx, c, o, "")
}

// put is Put for a blob that has an ETag, empty: any.
func (s *blobs) put(ctx context.Context, c credential.Opened, o objectstore.Object, etag string) (r objectstore.Receipt, err error) {
	p, err := s.open(c, o)
	if err != nil {
		return r, err
	}
	if p.options, err = uploadOptions(o); err != nil {
		return r, err
	}
	if etag != "" {
		match := azcore.ETag(etag)
		p.options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &match}}
	}
	if p.measured, err = o.Content.Measure(ctx, objectstore.PartSize(o.Content.Size), func() hash.Hash { return md5.New() }); err != nil {
		return r, err
	}
	p.reader = o.Content.Reader(ctx)
	defer func() { err = errors.Join(err, p.reader.Close()) }()
	err = s.enter(p, func() (err error) {
		r, err = p.put(ctx)
		return err
	})
	return r, err
}

// open opens an account for one object.
func (s *blobs) open(c credential.Opened, o objectstore.Object) (*blobPut, error) {
	a, err := openAccount(c)
	if err != nil {
		return nil, err
	}
	if !containerName.MatchString(o.Bucket) || len(o.Bucket) > 63 {
		return nil, fault.Newf(fault.InvalidConfig, "%q is not the name of a container; it has 3 to 63 lower-case letters, digits and single dashes", o.Bucket).With("path", "configurations.bucket")
	}
	return &blobPut{client: s.client, account: a, object: o}, nil
}

// enter makes calls with a token where the account needs one. A token that is refused is renewed once.
func (s *blobs) enter(p *blobPut, do func() error) error {
	if p.account.client == nil {
		return do()
	}
	fresh, renew := true, false
	p.token = func(ctx context.Context) (token string, err error) {
		token, fresh, err = s.tokens.Get(ctx, p.account.credential, p.object.Clock, renew,
			func(ctx context.Context) (string, time.Duration, error) {
				return p.account.client.token(ctx, s.client, p.object.Clock())
			})
		renew = false
		return token, err
	}
	if err := do(); fault.CodeOf(err) != fault.CredentialInvalid || fresh {
		return err
	}
	renew = true // the token may have been taken back before its time
	return do()
}

func uploadOptions(o objectstore.Object) (*blockblob.UploadOptions, error) {
	a, err := o.Attributes("x-ms-meta-", "X-Ms-Access-Tier")
	if err != nil {
		return nil, err
	}
	given := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	options := &blockblob.UploadOptions{Metadata: map[string]*string{}, HTTPHeaders: &blob.HTTPHeaders{
		BlobContentType: given(a.ContentType), BlobCacheControl: given(a.CacheControl), BlobContentDisposition: given(a.ContentDisposition),
		BlobContentEncoding: given(a.ContentEncoding), BlobContentLanguage: given(a.ContentLanguage),
	}}
	for name, value := range a.Meta {
		if !metaName.MatchString(name) {
			return nil, fault.Newf(fault.InvalidConfig, "the header %q names metadata that this service cannot keep; use letters, digits and underscores", "x-ms-meta-"+name).With("path", "configurations.headers")
		}
		options.Metadata[name] = &value
	}
	if tier := blob.AccessTier(a.Service.Get("X-Ms-Access-Tier")); tier != "" {
		options.Tier = &tier
	}
	return options, nil
}

// blobPut is one object on its way.
type blobPut struct {
	client   *outbound.Client
	account  *account
	object   objectstore.Object
	options  *blockblob.UploadOptions
	measured objectstore.Measured
	reader   *objectstore.Reader
	// token, when it is not nil, returns what lets a call in.
	token  func(context.Context) (string, error)
	redact credential.Redactor // holds what nobody outside knows of: tokens
}

// address is where the blob is.
func (p *blobPut) address() *url.URL {
	u := *p.account.endpoint
	u.Path += "/" + p.object.Bucket + "/" + p.object.Key
	u.RawPath = objectstore.EscapeKey(u.Path)
	return &u
}

// maxAnswer bounds what the service may say.
const maxAnswer = 1 << 20

func (p *blobPut) put(ctx context.Context) (objectstore.Receipt, error) {
	library, err := p.library()
	if err != nil {
		return objectstore.Receipt{}, fault.Newf(fault.CredentialInvalid, "credential %q cannot be used", p.account.credential.ID)
	}
	var raw *http.Response
	ctx = policy.WithCaptureResponse(ctx, &raw)
	if len(p.measured.Parts) == 1 {
		part := p.measured.Parts[0]
		options := *p.options
		options.TransactionalValidation = blob.TransferValidationTypeMD5(part.Sums[0])
		_, err = library.Upload(ctx, p.reader.Section(0, part.Size), &options)
	} else {
		err = p.blocks(ctx, library)
	}
	if err != nil {
		return objectstore.Receipt{}, p.failed(err)
	}
	return p.receipt(raw)
}

func (p *blobPut) blocks(ctx context.Context, library *blockblob.Client) error {
	var ids []string
	for i, part := range p.measured.Parts {
		// The ids follow from the content, so that two attempts at once do not mix theirs.
		id := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(p.measured.SHA256[:16:16], uint32(i)))
		if _, err := library.StageBlock(ctx, id, p.reader.Section(part.Offset, part.Size), &blockblob.StageBlockOptions{
			TransactionalValidation: blob.TransferValidationTypeMD5(part.Sums[0]),
		}); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	_, err := library.CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{HTTPHeaders: p.options.HTTPHeaders,
		Metadata: p.options.Metadata, Tier: p.options.Tier, AccessConditions: p.options.AccessConditions})
	return err
}

// clientOptions are those of the vendor's clients: they try once, go out through the guard, and follow nothing.
func (p *blobPut) clientOptions(most int64) azcore.ClientOptions {
	options := azcore.ClientOptions{
		Retry:     policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{Disabled: true},
		Transport: &http.Client{
			Transport: p.client.RoundTripper(most), Timeout: p.object.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if p.account.client != nil {
		options.PerRetryPolicies = []policy.Policy{bearer{p}}
	}
	return options
}

// open hands an address over to the vendor's client of one sort, with what lets it in.
func open[C any](p *blobPut, address string, withKey func(string, *blob.SharedKeyCredential) (C, error),
	without func(string) (C, error)) (none C, err error) {
	switch {
	case p.account.key != "":
		key, err := blob.NewSharedKeyCredential(p.account.name, p.account.key)
		if err != nil {
			return none, err
		}
		return withKey(address, key)
	case p.account.sas != "":
		return without(address + "?" + p.account.sas)
	}
	return without(address)
}

// library makes the vendor's client of a blob.
func (p *blobPut) library() (*blockblob.Client, error) {
	options := &blockblob.ClientOptions{ClientOptions: p.clientOptions(maxAnswer)}
	return open(p, p.address().String(), func(address string, key *blob.SharedKeyCredential) (*blockblob.Client, error) {
		return blockblob.NewClientWithSharedKeyCredential(address, key, options)
	}, func(address string) (*blockblob.Client, error) {
		return blockblob.NewClientWithNoCredential(address, options)
	})
}

// bearer puts a token into every call; one that takes long needs more than one.
type bearer struct{ put *blobPut }

// Do adds the token.
func (b bearer) Do(q *policy.Request) (*http.Response, error) {
	token, err := b.put.token(q.Raw().Context())
	if err != nil {
		return nil, err
	}
	b.put.redact.Hold(token) // until the run ends, and the redactor with it
	q.Raw().Header.Set("Authorization", "Bearer "+token)
	return q.Next()
}

func (p *blobPut) receipt(r *http.Response) (objectstore.Receipt, error) {
	raw, err := objectstore.Told(map[string]string{"container": p.object.Bucket, "blob": p.object.Key}, r.Header, map[string]string{
		"version_id": "X-Ms-Version-Id", "request_id": "X-Ms-Request-Id", "last_modified": "Last-Modified",
	})
	if err != nil {
		return objectstore.Receipt{}, err
	}
	return objectstore.Receipt{
		URL: p.address().String(), Status: r.StatusCode, SHA256: p.measured.Hex(),
		ETag: strings.ToValidUTF8(r.Header.Get("ETag"), ""), Response: raw,
	}, nil
}

// failed says what an error of the library means. Its own words may have the address with a signature in them.
func (p *blobPut) failed(err error) error {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.RawResponse != nil {
		return p.refused(answer)
	}
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		out := *e
		out.Fault = p.redact.Fault(e.Fault)
		return &out
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return p.redact.Fault(f)
	}
	host := p.account.endpoint.Host
	if slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && slow.Timeout() {
		return &outbound.Error{Fault: fault.Newf(fault.Timeout, "host %q did not answer completely in time; raise timeout", host)}
	}
	if errors.Is(err, context.Canceled) {
		return fault.Newf(fault.Canceled, "the call of host %q was stopped", host)
	}
	return &outbound.Error{Fault: fault.Newf(fault.NetworkError, "host %q could not be called, or its answer could not be read", host)}
}

// refused reads why the service refuses a call.
func (p *blobPut) refused(answer *azcore.ResponseError) error {
	var e struct{ Message string }
	if data, err := io.ReadAll(io.LimitReader(answer.RawResponse.Body, 64<<10)); err != nil ||
		xml.Unmarshal([]byte(strings.TrimPrefix(string(data), "\uFEFF")), &e) != nil {
		e.Message = "" // a page of somebody in between; the status says enough
	}
	s := objectstore.Said{Code: answer.ErrorCode, Message: e.Message}
	switch answer.ErrorCode {
	case "ContainerNotFound", "ResourceNotFound":
		s.As, s.Remedy = fault.NotFound, "create the container or correct its name"
	case "ContainerBeingDeleted", "OperationTimedOut", "InternalError":
		s.As = fault.RemoteError
	case "ServerBusy", "TooManyRequests":
		s.As = fault.RateLimited
	case "Md5Mismatch", "InvalidMd5", "InvalidBlockList":
		damaged := objectstore.Damaged()
		s.As, s.Remedy = damaged.As, damaged.Remedy
	case "RequestBodyTooLarge":
		s.As = fault.TooLarge
	case "InvalidResourceName", "OutOfRangeInput":
		s.As = fault.InvalidConfig
	case "AccountIsDisabled", "NoAuthenticationInformation", "InvalidAuthenticationInfo":
		s.As = fault.CredentialInvalid
	}
	u := *p.account.endpoint
	problem := objectstore.Refusal(&outbound.Response{Status: answer.StatusCode, Header: answer.RawResponse.Header, URL: &u}, s,
		p.object.Clock())
	problem.Fault = p.redact.Fault(problem.Fault)
	return problem
}
