package file

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/httpcall"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
)

// putObject puts a file into an object store. A repeat writes the same object again, so nothing of it has to be known.
func putObject(ctx context.Context, store *files.Store, to objectstore.Store, call *node.Call, cfg uploadConfig,
	in uploadInput) (out uploadOutput, err error) {
	common := gjson.GetManyBytes(call.Config, "credential_id", "timeout")
	id := common[0].Str
	switch {
	case to == nil:
		return out, fault.Newf(fault.Unsupported, `files cannot be put into %q here; use target "http" with an address that the store has signed`, cfg.Target).With("path", "configurations.target")
	case cfg.Bucket == "":
		return out, fault.Newf(fault.InvalidConfig, `"bucket" is required when target is %q`, cfg.Target).With("path", "configurations.bucket")
	case id == "" || call.Credential == nil:
		return out, fault.Newf(fault.CredentialMissing, `target %q needs a credential of the type %q; choose one with credential_id`, cfg.Target, to.CredentialType()).With("path", "configurations.credential_id")
	}
	if cfg.URL != "" && call.Log != nil {
		call.Log(node.Warn, `url is not used: the address of an object store is the base_url of its credential`, map[string]any{"target": cfg.Target})
	}
	source, err := uploadSource(ctx, store, call, cfg, in)
	if err != nil {
		return out, err
	}
	key := cfg.Key
	if key == "" || strings.HasSuffix(key, "/") {
		key += source.Name
	}
	if err = objectstore.CheckKey(key); err != nil {
		return out, err
	}
	object := objectstore.Object{
		Bucket: cfg.Bucket, Key: key, ContentType: source.ContentType, Header: http.Header{},
		Timeout: time.Duration(common[1].Int()) * time.Second,
		Content: objectstore.Content{Size: source.Size, Open: source.Open}, Clock: call.Clock,
	}
	if object.Timeout <= 0 {
		object.Timeout = outbound.DefaultTotal
	}
	if object.Clock == nil {
		object.Clock = time.Now // a signature is judged by the service's clock, not by the start of the activation
	}
	if err = httpcall.AddHeaders(object.Header, cfg.Headers, in.DynamicHeaders); err != nil {
		return out, err
	}
	opened, err := call.Credential(ctx, id, to.CredentialType())
	if err != nil {
		return out, err
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"target": cfg.Target, "bucket": object.Bucket, "key": object.Key})
	}
	receipt, err := to.Put(ctx, opened, object)
	if err != nil {
		if e, ok := errors.AsType[*outbound.Error](err); ok {
			return out, &node.Failure{Err: e.Fault, RetryAfter: e.RetryAfter}
		}
		return out, err
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"api_endpoint": receipt.URL, "response_status": receipt.Status})
	}
	return uploadOutput{
		URL: receipt.URL, StatusCode: receipt.Status, Size: source.Size, SHA256: receipt.SHA256,
		ETag: receipt.ETag, Response: receipt.Response,
	}, nil
}
