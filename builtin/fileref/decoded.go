package fileref

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"path"
	"strings"
	"unicode/utf8"

	"tandem/fault"
	"tandem/node"
)

// Decoded is a file that a service has sent as base64, perhaps in lines: a text, or a stored value when it is not one. Where is its path
// there.
func Decoded(ctx context.Context, call *node.Call, encoded, where string) (text string, file *Value, err error) {
	content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(encoded, "\n", ""))
	if err != nil {
		return "", nil, fault.New(fault.RemoteError, "the service sends the content of the file in a way that cannot be read").WithCause(err)
	}
	if utf8.Valid(content) {
		return string(content), nil, nil
	}
	if call.Files == nil {
		return "", nil, fault.New(fault.Unsupported, "the file is not a text, and files cannot be kept here")
	}
	hash, size, err := call.Files.Keep(ctx, bytes.NewReader(content))
	if err != nil {
		return "", nil, err
	}
	name := CleanName(path.Base(where))
	return "", &Value{Blob: hash, Name: name, ContentType: cmp.Or(TypeByName(name), "application/octet-stream"), Size: size, SHA256: hash}, nil
}
