package azure

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/credential"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/payload"
)

// acting is one run of an operation.
type acting struct {
	ctx     context.Context
	call    *node.Call
	cfg     actionConfig
	objects *blobs
	opened  credential.Opened
}

func begin(ctx context.Context, objects *blobs, call *node.Call, cfg actionConfig) (*acting, error) {
	opened, err := rest.Credential(ctx, call, "Azure", credentialType)
	return &acting{ctx: ctx, call: call, cfg: cfg, objects: objects, opened: opened}, err
}

// clock tells the time for signatures and tokens, which the service judges by its own.
func (a *acting) clock() time.Time { return rest.Clock(a.call) }

func (a *acting) patience() time.Duration { return rest.Patience(a.call) }

// blob opens the account for the blob that the node names.
func (a *acting) blob() (*blobPut, error) {
	if a.cfg.Name != "" {
		if err := objectstore.CheckKey(a.cfg.Name); err != nil {
			return nil, err
		}
	}
	return a.objects.open(a.opened, objectstore.Object{Bucket: a.cfg.Container, Key: a.cfg.Name,
		Timeout: cmp.Or(a.patience(), outbound.DefaultTotal), Clock: a.clock})
}

// answered says what is wrong with an answer that the vendor's library cannot read: it does not come from the service.
func (p *blobPut) answered(err error) error {
	told := p.failed(err)
	_, refused := errors.AsType[*azcore.ResponseError](err)
	_, called := errors.AsType[*outbound.Error](err)
	if refused || called || fault.CodeOf(told) != fault.NetworkError {
		return told
	}
	return p.unreadable()
}

func (p *blobPut) unreadable() error {
	return &outbound.Error{Fate: outbound.Unknown, Fault: fault.Newf(fault.RemoteError,
		"host %q answers in a way that is not that of Blob Storage; check the base_url of the credential", p.account.endpoint.Host)}
}

func (a *acting) get() (out actionResult, err error) {
	p, err := a.blob()
	if err != nil {
		return out, err
	}
	err = a.objects.enter(p, func() error {
		out, err = a.download(p)
		return err
	})
	return out, err
}

func (a *acting) download(p *blobPut) (out actionResult, err error) {
	options := &blob.ClientOptions{ClientOptions: p.clientOptions(a.cfg.MaxBytes)}
	library, err := open(p, p.address().String(), func(address string, key *blob.SharedKeyCredential) (*blob.Client, error) {
		return blob.NewClientWithSharedKeyCredential(address, key, options)
	}, func(address string) (*blob.Client, error) { return blob.NewClientWithNoCredential(address, options) })
	if err != nil {
		return out, fault.Newf(fault.CredentialInvalid, "credential %q cannot be used", a.opened.ID)
	}
	response, err := library.DownloadStream(a.ctx, nil)
	if err != nil {
		return out, p.answered(err)
	}
	defer func() {
		if failed := response.Body.Close(); failed != nil && err == nil {
			err = fault.New(fault.NetworkError, "the answer could not be read to its end").WithCause(failed)
		}
	}()
	if response.ETag == nil {
		return out, p.unreadable()
	}
	kind := ""
	if response.ContentType != nil {
		kind = *response.ContentType
	}
	if out.File, err = fileref.Keep(a.ctx, a.call, response.Body, path.Base(a.cfg.Name), kind); err != nil {
		return out, p.failed(err)
	}
	out.ETag, out.ResourceID, out.ResourceURL = string(*response.ETag), a.cfg.Name, p.address().String()
	about := rest.Fields{"container": a.cfg.Container, "blob": a.cfg.Name}.Text("content_type", kind)
	if response.LastModified != nil {
		about["last_modified"] = response.LastModified.UTC().Format(time.RFC3339)
	}
	out.Response, err = payload.Encode(about)
	return out, err
}

func (a *acting) list() (out actionResult, err error) {
	p, err := a.blob()
	if err != nil {
		return out, err
	}
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor,
		func(cursor string) (items []json.RawMessage, next string, err error) {
			err = a.objects.enter(p, func() (err error) {
				items, next, err = a.page(p, cursor)
				return err
			})
			return items, next, err
		})
	return out, err
}

// page is a page of the blobs of a container. The cursor is the marker of the service, escaped.
func (a *acting) page(p *blobPut, cursor string) (items []json.RawMessage, next string, err error) {
	marker, err := url.QueryUnescape(cursor)
	if err != nil {
		return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
	}
	options := &container.ClientOptions{ClientOptions: p.clientOptions(outbound.DefaultMaxResponse)}
	library, err := open(p, p.account.endpoint.String()+"/"+a.cfg.Container,
		func(address string, key *blob.SharedKeyCredential) (*container.Client, error) {
			return container.NewClientWithSharedKeyCredential(address, key, options)
		}, func(address string) (*container.Client, error) {
			return container.NewClientWithNoCredential(address, options)
		})
	if err != nil {
		return nil, "", fault.Newf(fault.CredentialInvalid, "credential %q cannot be used", a.opened.ID)
	}
	most := int32(min(a.cfg.Limit, 1000))
	asked := &container.ListBlobsFlatOptions{MaxResults: &most, Prefix: &a.cfg.Prefix}
	if marker != "" {
		asked.Marker = &marker
	}
	told, err := library.NewListBlobsFlatPager(asked).NextPage(a.ctx)
	if err != nil {
		return nil, "", p.answered(err)
	}
	if told.Segment == nil {
		return nil, "", p.unreadable()
	}
	for _, b := range told.Segment.BlobItems {
		about := rest.Fields{"name": *b.Name}
		if q := b.Properties; q != nil {
			if q.ContentLength != nil {
				about["size"] = *q.ContentLength
			}
			if q.ETag != nil {
				about["etag"] = string(*q.ETag)
			}
			if q.ContentType != nil {
				about["content_type"] = *q.ContentType
			}
			if q.LastModified != nil {
				about["last_modified"] = q.LastModified.UTC().Format(time.RFC3339)
			}
		}
		item, err := payload.Encode(about)
		if err != nil {
			return nil, "", err
		}
		items = append(items, item)
	}
	if told.NextMarker != nil {
		next = url.QueryEscape(*told.NextMarker)
	}
	return items, next, nil
}

// put stores a blob. When it is tried again, the blob may have another ETag because the attempt before has put it: one with the same
// content is a success.
func (a *acting) put(store *files.Store) (out actionResult, err error) {
	p, err := a.blob()
	if err != nil {
		return out, err
	}
	source, err := fileref.Given(a.ctx, store, a.call, a.cfg.File, a.cfg.Content, a.cfg.MaxBytes)
	if err != nil {
		return out, err
	}
	object := p.object
	object.ContentType = cmp.Or(a.cfg.ContentType, source.ContentType)
	object.Content = objectstore.Content{Size: source.Size, Open: func() (io.ReadCloser, error) { return source.Open() }}
	receipt, err := a.objects.put(a.ctx, a.opened, object, a.cfg.IfMatch)
	if fault.CodeOf(err) == fault.Conflict && a.call.Attempt > 1 {
		if etag := a.isThere(p, object); etag != "" {
			receipt, err = objectstore.Receipt{URL: p.address().String(), ETag: etag, Response: json.RawMessage("null")}, nil
		}
	}
	if err != nil {
		return out, err
	}
	out.ResourceID, out.ResourceURL, out.ETag, out.Response = a.cfg.Name, receipt.URL, receipt.ETag, receipt.Response
	return out, nil
}

// isThere is the ETag of the blob if it has the content that was to be put. If that cannot be told, it stays a conflict.
func (a *acting) isThere(p *blobPut, o objectstore.Object) (etag string) {
	measured, err := o.Content.Measure(a.ctx, max(o.Content.Size, 1), newMD5)
	if err != nil {
		return ""
	}
	_ = a.objects.enter(p, func() error { // what cannot be asked for is not there
		var library *blockblob.Client
		if library, err = p.library(); err != nil {
			return err
		}
		properties, err := library.GetProperties(a.ctx, nil)
		if err == nil && properties.ETag != nil &&
			base64.StdEncoding.EncodeToString(properties.ContentMD5) == base64.StdEncoding.EncodeToString(measured.Parts[0].Sums[0]) {
			etag = string(*properties.ETag)
		}
		return err
	})
	return etag
}
