package fileref

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// Form is a form with a file as one of its fields, as services take uploads: what opens it, its size and its media type. The file is sent
// as it is read.
func (s *Source) Form(field string) (open func() (io.ReadCloser, error), size int64, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	quote := strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "", "\n", "")
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="`+quote.Replace(field)+`"; filename="`+quote.Replace(s.Name)+`"`)
	header.Set("Content-Type", s.ContentType)
	if _, err = w.CreatePart(header); err != nil {
		return nil, 0, "", err
	}
	before := bytes.Clone(b.Bytes())
	if err = w.Close(); err != nil {
		return nil, 0, "", err
	}
	after := bytes.Clone(b.Bytes()[len(before):])
	open = func() (io.ReadCloser, error) {
		content, err := s.Open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(before), content, bytes.NewReader(after)), content}, nil
	}
	return open, int64(len(before)) + s.Size + int64(len(after)), w.FormDataContentType(), nil
}
