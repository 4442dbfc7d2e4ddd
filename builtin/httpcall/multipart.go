package httpcall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime/multipart"
	"net/textproto"
	"strings"

	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
)

// Multipart is the type of a body whose fields are sent as parts, of which each may be a file.
const Multipart = "multipart"

// partsOf writes the fields of an object as parts: files with their names, lists as several parts of one name, objects as JSON, anything
// else as text. The same fields give the same bytes, so that a repeat is the same call.
func partsOf(ctx context.Context, call *node.Call, raw json.RawMessage) (data []byte, contentType string, err error) {
	if !values.IsObject(raw) {
		return nil, "", fault.New(fault.InvalidInput, `"body" must be an object with the fields of the form`).With("path", "body")
	}
	sum := sha256.Sum256(raw)
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(hex.EncodeToString(sum[:])); err != nil {
		return nil, "", err
	}
	for _, m := range values.Members(raw) {
		list := []json.RawMessage{m.Value}
		if values.IsList(m.Value) {
			list = values.Elements(m.Value)
		}
		for _, one := range list {
			if payload.IsNull(one) {
				continue
			}
			if err := writePart(ctx, call, w, m.Key, one); err != nil {
				return nil, "", err
			}
			if b.Len() > outbound.DefaultMaxResponse {
				return nil, "", fault.Newf(fault.TooLarge, "the body is larger than %d bytes",
					outbound.DefaultMaxResponse).With("path", "body."+m.Key)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}

// writePart writes one part.
func writePart(ctx context.Context, call *node.Call, w *multipart.Writer, name string, value json.RawMessage) error {
	header := textproto.MIMEHeader{"Content-Disposition": {plainDisposition(name)}}
	var file struct {
		Name   string  `json:"name"`
		Blob   string  `json:"blob"`
		Base64 *string `json:"base64"`
	}
	isObject := values.IsObject(value)
	if isObject {
		if err := json.Unmarshal(value, &file); err != nil {
			file.Blob, file.Base64 = "", nil // an object whose fields of these names are something else
		}
	}
	content := []byte(value)
	switch {
	case isObject && (file.Blob != "" || file.Base64 != nil):
		var kind string
		var err error
		if content, kind, err = rawFile(ctx, call, value); err != nil {
			return err
		}
		header.Set("Content-Disposition", multipart.FileContentDisposition(name, cmp.Or(fileref.CleanName(file.Name), name)))
		header.Set("Content-Type", kind)
	case isObject:
		header.Set("Content-Type", "application/json")
	default:
		if text, ok := values.Scalar(value); ok {
			content = []byte(text)
		}
	}
	part, err := w.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}

// plainDisposition is that of a field which is not a file.
func plainDisposition(name string) string {
	return `form-data; name="` + strings.NewReplacer("\\", "\\\\", `"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name) + `"`
}
