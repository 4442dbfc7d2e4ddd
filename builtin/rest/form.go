package rest

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/textproto"

	"tandem/builtin/fileref"
	"tandem/fault"
)

// Part is a field of a form besides its file. ContentType is empty for plain text.
type Part struct {
	Name, ContentType string
	Value             []byte
}

// Upload makes the body of a call a form with fields and a file, which is sent as it is read.
func (c *Call) Upload(field string, file *fileref.Source, parts ...Part) error {
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	for _, p := range parts {
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + p.Name + `"`}}
		if p.ContentType != "" {
			header.Set("Content-Type", p.ContentType)
		}
		into, err := w.CreatePart(header)
		if err == nil {
			_, err = into.Write(p.Value)
		}
		if err != nil {
			return fault.New(fault.Internal, "a form cannot be written").WithCause(err)
		}
	}
	_, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition(field, file.Name)}, "Content-Type": {file.ContentType}})
	if err != nil {
		return fault.New(fault.Internal, "a form cannot be written").WithCause(err)
	}
	before := bytes.Clone(head.Bytes())
	head.Reset()
	if err := w.Close(); err != nil {
		return fault.New(fault.Internal, "a form cannot be written").WithCause(err)
	}
	behind := head.Bytes()
	c.ContentType, c.Size = w.FormDataContentType(), int64(len(before))+file.Size+int64(len(behind))
	c.Open = func() (io.ReadCloser, error) {
		content, err := file.Open()
		if err != nil {
			return nil, err
		}
		return &formBody{io.MultiReader(bytes.NewReader(before), content, bytes.NewReader(behind)), content}, nil
	}
	return nil
}

// formBody is a form with the file in it.
type formBody struct {
	io.Reader
	file io.Closer
}

// Close closes the file.
func (f *formBody) Close() error { return f.file.Close() }
