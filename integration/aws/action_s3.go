package aws

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/payload"
)

// object is where the object is that the node names: the store, and the path below it.
func (a *acting) object(key string) (*rest.API, string, error) {
	if !bucketName.MatchString(a.cfg.Bucket) {
		return nil, "", fault.Newf(fault.InvalidInput, "%q is not the name of a bucket; it has letters, digits, dots and dashes", a.cfg.Bucket).With("path", "bucket")
	}
	u := objectAddress(a.keys.Region, a.base, a.cfg.Bucket, key)
	where := u.RawPath
	api := a.api("s3")
	if a.base == nil {
		api.Base = &url.URL{Scheme: u.Scheme, Host: u.Host}
	} else {
		where = strings.TrimPrefix(where, objectstore.EscapeKey(a.base.Path))
	}
	return api, where, nil
}

// key is that of an object.
func (a *acting) key() (string, error) {
	key, err := rest.Text("key", a.cfg.Key)
	if err == nil {
		err = objectstore.CheckKey(key)
	}
	return key, err
}

func (a *acting) getObject() (out actionResult, err error) {
	key, err := a.key()
	if err != nil {
		return out, err
	}
	api, where, err := a.object(key)
	if err != nil {
		return out, err
	}
	response, err := api.Send(a.ctx, rest.Call{
		Method: http.MethodGet, Path: where, Header: http.Header{"Accept": {"*/*"}}, Patience: a.patience(), MostBytes: a.cfg.MaxBytes,
	})
	if err != nil {
		return out, err
	}
	defer func() { err = closed(response, err) }()
	if out.ETag = response.Header.Get("ETag"); out.ETag == "" {
		return out, unreadable(response.URL.Host)
	}
	if out.File, err = fileref.Keep(a.ctx, a.call, response.Body, path.Base(key), response.Header.Get("Content-Type")); err != nil {
		return out, err
	}
	out.ResourceID, out.ResourceURL = key, response.URL.String()
	about := rest.Fields{"bucket": a.cfg.Bucket, "key": key}.Text("content_type", response.Header.Get("Content-Type")).
		Text("last_modified", response.Header.Get("Last-Modified")).Text("version_id", response.Header.Get("X-Amz-Version-Id"))
	meta := map[string]string{}
	for name := range response.Header { // order does not matter: they are named
		if own, ok := strings.CutPrefix(name, "X-Amz-Meta-"); ok {
			meta[strings.ToLower(own)] = response.Header.Get(name)
		}
	}
	if len(meta) > 0 {
		about["metadata"] = meta
	}
	out.Response, err = payload.Encode(about)
	return out, err
}

// closed closes an answer that was read.
func closed(response *outbound.Response, err error) error {
	if failed := response.Body.Close(); failed != nil && err == nil {
		return fault.New(fault.NetworkError, "the answer could not be read to its end").WithCause(failed)
	}
	return err
}

func (a *acting) listObjects() (out actionResult, err error) {
	api, where, err := a.object("")
	if err != nil {
		return out, err
	}
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		return a.page(api, where, cursor)
	})
	return out, err
}

// page is a page of the objects of a bucket. The cursor is the token of the service, escaped.
func (a *acting) page(api *rest.API, where, cursor string) (items []json.RawMessage, next string, err error) {
	query := url.Values{"list-type": {"2"}, "max-keys": {strconv.Itoa(min(a.cfg.Limit, 1000))}, "prefix": {a.cfg.Prefix}}
	if cursor != "" {
		token, err := url.QueryUnescape(cursor)
		if err != nil {
			return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
		}
		query.Set("continuation-token", token)
	}
	response, err := api.Send(a.ctx, rest.Call{Method: http.MethodGet, Path: where, Query: query,
		Header: http.Header{"Accept": {"application/xml"}}})
	if err != nil {
		return nil, "", err
	}
	data, err := response.ReadAll()
	if err != nil {
		return nil, "", err
	}
	var told struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []struct {
			Key, LastModified, ETag, StorageClass string
			Size                                  int64
		}
		More bool   `xml:"IsTruncated"`
		Next string `xml:"NextContinuationToken"`
	}
	if xml.Unmarshal(data, &told) != nil || told.More && told.Next == "" {
		return nil, "", unreadable(response.URL.Host)
	}
	for _, c := range told.Contents {
		item, err := payload.Encode(map[string]any{"key": c.Key, "size": c.Size, "etag": c.ETag, "last_modified": c.LastModified,
			"storage_class": c.StorageClass})
		if err != nil {
			return nil, "", err
		}
		items = append(items, item)
	}
	return items, url.QueryEscape(told.Next), nil
}

func (a *acting) putObject(store *files.Store) (out actionResult, err error) {
	key, err := a.key()
	if err != nil {
		return out, err
	}
	source, err := fileref.Given(a.ctx, store, a.call, a.cfg.File, a.cfg.Content, a.cfg.MaxBytes)
	if err != nil {
		return out, err
	}
	object := objectstore.Object{
		Bucket: a.cfg.Bucket, Key: key, ContentType: cmp.Or(a.cfg.ContentType, source.ContentType),
		Timeout: cmp.Or(a.patience(), outbound.DefaultTotal),
		Content: objectstore.Content{Size: source.Size, Open: func() (io.ReadCloser, error) { return source.Open() }}, Clock: a.clock,
	}
	receipt, err := a.store().put(a.ctx, a.keys, a.base, object)
	if err != nil {
		return out, err
	}
	out.ResourceID, out.ResourceURL, out.ETag, out.Response = key, receipt.URL, receipt.ETag, receipt.Response
	return out, nil
}

func (a *acting) store() *s3Store { return &s3Store{a.client} }
