package sheet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// MaxFile is how large a file in a form may be, MaxBody how large a form: a file and what is written beside it.
const (
	MaxFile = 10 << 20
	MaxBody = 12 << 20
)

// File is a file that came with a form, as payloads have files.
type File struct {
	Blob        string `json:"blob"`
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
}

// KeepFile stores the content of a file. Its name and type are what the sender says, so they are made harmless.
func KeepFile(ctx context.Context, blobs store.Blobs, p identity.Principal, name, contentType string, content io.Reader) (*File, error) {
	blob, err := blobs.Put(ctx, p, content)
	if err != nil {
		return nil, err
	}
	return &File{Blob: blob.Hash, Name: FileName(name), ContentType: FileType(contentType), Size: blob.Size, SHA256: blob.Hash}, nil
}

// StoreFiles stores the files that came with a form.
func (f *Sheet) StoreFiles(ctx context.Context, blobs store.Blobs, workspace string) (err error) {
	for _, c := range f.Controls {
		if c.Upload == nil {
			continue
		}
		err := withUpload(c.Upload, func(content io.Reader) error {
			c.File, err = KeepFile(ctx, blobs, identity.System(workspace), c.Upload.Filename, c.Upload.Header.Get("Content-Type"), content)
			return err
		})
		if err != nil {
			return err
		}
		c.Upload = nil
	}
	return nil
}

// DescribeUpload tells a file that was sent as it will be once it is stored.
func DescribeUpload(h *multipart.FileHeader) (*File, error) {
	sum := sha256.New()
	err := withUpload(h, func(content io.Reader) error {
		_, err := io.Copy(sum, content)
		return err
	})
	hash := hex.EncodeToString(sum.Sum(nil))
	return &File{Blob: hash, Name: FileName(h.Filename), ContentType: FileType(h.Header.Get("Content-Type")), Size: h.Size, SHA256: hash},
		err
}

func withUpload(h *multipart.FileHeader, read func(io.Reader) error) (err error) {
	content, err := h.Open()
	if err != nil {
		return fault.New(fault.Internal, "the file that was sent cannot be read").WithCause(err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return read(content)
}

// FileName is a name without a path and without what cannot be shown.
func FileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name))
	for len(name) > 200 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" || name == "." || name == ".." {
		return "file"
	}
	return name
}

// FileType is a media type without its parameters; what is not a media type becomes that of any bytes.
func FileType(given string) string {
	if kind, _, err := mime.ParseMediaType(given); err == nil && utf8.ValidString(kind) && len(kind) <= 200 {
		return kind
	}
	return "application/octet-stream"
}

// ReadForm reads both encodings of forms. Large files are on disk until RemoveAll.
func ReadForm(r *http.Request, body io.Reader) (url.Values, *multipart.Form, error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, nil, err
		}
		values, err := url.ParseQuery(string(text))
		return values, nil, err
	case "multipart/form-data":
		files, err := multipart.NewReader(body, parameters["boundary"]).ReadForm(1 << 20)
		if err != nil {
			return nil, files, err
		}
		return url.Values(files.Value), files, nil
	}
	return nil, nil, errors.New("this is not a form")
}
