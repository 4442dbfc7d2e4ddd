package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/file"
	"tandem/credential"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/objectstore"
	"tandem/outbound"
)

// shelf is a store in memory that remembers what it was asked.
type shelf struct {
	mu      sync.Mutex
	puts    []objectstore.Object
	content []string
	cred    credential.Opened
	err     error
}

func (s *shelf) CredentialType() string { return "aws_keys" }

func (s *shelf) Put(_ context.Context, c credential.Opened, o objectstore.Object) (objectstore.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := o.Content.Open()
	if err != nil {
		return objectstore.Receipt{}, err
	}
	data, err := io.ReadAll(from)
	if err = errors.Join(err, from.Close(), s.err); err != nil {
		return objectstore.Receipt{}, err
	}
	s.puts, s.content, s.cred = append(s.puts, o), append(s.content, string(data)), c
	return objectstore.Receipt{URL: "https://store/" + o.Bucket + "/" + o.Key, Status: 201, SHA256: digest(string(data)), ETag: `"e"`, Response: json.RawMessage(`{"version_id":"3"}`)}, nil
}

func newShelfRig(t *testing.T) (*fileRig, *shelf) {
	t.Helper()
	s := &shelf{}
	r := newFileRig(t, nil)
	for _, k := range file.Kinds(file.Deps{Files: files.New(strings.TrimSuffix(r.dir, "/acme")), ObjectStores: map[string]objectstore.Store{"s3": s}}) {
		r.kinds[k.About.Name] = k
	}
	r.put("docs/a.txt", "hello")
	r.creds["keys"] = `{"access_key_id": "a"}`
	return r, s
}

func TestFileUpload_Store(t *testing.T) {
	t.Parallel()
	r, s := newShelfRig(t)
	r.good(uploadKind, `{"target": "s3", "bucket": "b", "key": "in/x.txt", "credential_id": "keys", "headers": {"Cache-Control": "no-cache"}, "timeout": 9}`,
		`{"file": "docs/a.txt", "dynamic_headers": {"cache-control": "public", "X-Amz-Acl": "private"}}`,
		`{"url": "https://store/b/in/x.txt", "status_code": 201, "size": 5, "sha256": "`+hello+`", "etag": "\"e\"", "response": {"version_id": "3"}}`)
	o := s.puts[0]
	if s.content[0] != "hello" || o.Bucket != "b" || o.Content.Size != 5 || o.ContentType != "text/plain; charset=utf-8" || o.Timeout != 9*time.Second || !o.Clock().Equal(nodetest.Start()) || s.cred.ID != "keys" {
		t.Errorf("got %q as %+v with %s", s.content, o, s.cred.ID)
	}
	if len(o.Header) != 2 || o.Header.Get("Cache-Control") != "no-cache" || o.Header.Get("X-Amz-Acl") != "private" {
		t.Errorf("headers %v", o.Header)
	}
	for _, c := range []struct{ config, input, key string }{
		{`"key": "in/"`, `{"file": "docs/a.txt"}`, "in/a.txt"},
		{`"max_bytes": 5`, `{"file": "docs/a.txt"}`, "a.txt"},
		{`"file": {"base64": "aGVsbG8=", "name": "../b.png"}`, `{}`, "b.png"},
	} {
		got := r.good(uploadKind, `{"target": "s3", "bucket": "b", "credential_id": "keys", `+c.config+`}`, c.input, `{"size": 5}`)
		if got["url"] != "https://store/b/"+c.key {
			t.Errorf("%s: %v", c.config, got["url"])
		}
	}
}

func TestFileUpload_StoreRefuses(t *testing.T) {
	t.Parallel()
	r, s := newShelfRig(t)
	in := `{"file": "docs/a.txt"}`
	for _, c := range []struct {
		config, input string
		code          fault.Code
		part          string
	}{
		{`{"target": "gcs", "bucket": "b", "credential_id": "keys"}`, in, fault.InvalidConfig, "gcs"},
		{`{"target": "s3", "credential_id": "keys"}`, in, fault.InvalidConfig, `"bucket"`},
		{`{"target": "s3", "bucket": "b"}`, in, fault.CredentialMissing, "aws_keys"},
		{`{"target": "s3", "bucket": "b", "credential_id": "gone"}`, in, fault.CredentialMissing, "gone"},
		{`{"target": "s3", "bucket": "b", "credential_id": "keys", "max_bytes": 4}`, in, fault.TooLarge, "max_bytes"},
		{`{"target": "s3", "bucket": "b", "credential_id": "keys", "key": "a/../b"}`, in, fault.InvalidConfig, `"key"`},
		{`{"target": "s3", "bucket": "b", "credential_id": "keys"}`, `{}`, fault.ParameterMissing, `"file"`},
		{`{"target": "s3", "bucket": "b", "credential_id": "keys"}`, `{"file": "../x"}`, fault.ForbiddenPath, ""},
		{`{"target": "s3", "bucket": "b", "credential_id": "keys", "headers": {"Host": "x"}}`, in, fault.InvalidConfig, "Host"},
	} {
		r.bad(uploadKind, c.config, c.input, c.code, c.part)
	}
	if len(s.puts) != 0 {
		t.Errorf("%d arrived", len(s.puts))
	}
}

// TestFileUpload_StoreRetries: what the service says about a repeat reaches the engine, and a lost answer leaves no doubt.
func TestFileUpload_StoreRetries(t *testing.T) {
	t.Parallel()
	r, s := newShelfRig(t)
	config, in := `{"target": "s3", "bucket": "b", "credential_id": "keys"}`, `{"file": "docs/a.txt"}`
	s.err = &outbound.Error{Fault: fault.New(fault.RateLimited, "slow down"), RetryAfter: 7 * time.Second, Fate: outbound.NotTaken}
	_, err := r.try(t.Context(), uploadKind, config, in)
	if f, ok := errors.AsType[*node.Failure](err); !ok || f.RetryAfter != 7*time.Second || !fault.From(err).Retryable {
		t.Errorf("got %#v", err)
	}
	s.err = &outbound.Error{Fault: fault.New(fault.NetworkError, "cut"), Fate: outbound.Unknown}
	if f := r.bad(uploadKind, config, in, fault.NetworkError, "cut"); !f.Retryable {
		t.Error("a put may be repeated")
	}
}
