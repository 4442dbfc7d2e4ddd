package fileref

import (
	"bytes"
	"context"
	"encoding/base64"
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
	file, err = Keep(ctx, call, bytes.NewReader(content), where, "")
	return "", file, err
}
