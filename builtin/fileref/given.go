package fileref

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/payload"
)

// Given opens a file, or makes one of the content that stands in its place: a text as it is, anything else as JSON.
func Given(ctx context.Context, store *files.Store, call *node.Call, file, content json.RawMessage, limit int64) (*Source, error) {
	if !payload.IsNull(file) {
		return Open(ctx, store, call, file, "file", limit)
	}
	data, contentType := []byte(content), "application/json"
	if text := gjson.ParseBytes(content); text.Type == gjson.String {
		data, contentType = []byte(text.Str), "text/plain; charset=utf-8"
	}
	if int64(len(data)) > limit {
		return nil, fault.Newf(fault.TooLarge, "content has %d bytes, more than the %d that max_bytes allows", len(data), limit).With("path", "content").With("limit", limit)
	}
	return &Source{Name: "file", ContentType: contentType, Size: int64(len(data)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}, nil
}

// Keep keeps what a service sends as a stored value. Where is its path there; the media type is the one that the service tells, or else
// that of the name.
func Keep(ctx context.Context, call *node.Call, content io.Reader, where, contentType string) (*Value, error) {
	if call.Files == nil {
		return nil, fault.New(fault.Unsupported, "files cannot be kept here")
	}
	from := &noting{from: content}
	hash, size, err := call.Files.Keep(ctx, from)
	if from.err != nil {
		return nil, from.err // what went wrong on the way says more than what the store makes of it
	}
	if err != nil {
		return nil, err
	}
	name := CleanName(path.Base(where))
	return &Value{
		Blob: hash, Name: cmp.Or(name, "file"), ContentType: cmp.Or(contentType, TypeByName(name)), Size: size, SHA256: hash,
	}, nil
}

// noting remembers what reading failed with.
type noting struct {
	from io.Reader
	err  error
}

// Read reads.
func (n *noting) Read(p []byte) (int, error) {
	count, err := n.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err
}
