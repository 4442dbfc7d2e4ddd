// Package fileref is what a file in a payload means: a path in the workspace, a stored value, or content in base64. Kinds open
// what they are given with it, and tell what they have made.
//
// The families of kinds import it. Where files are kept is the matter of package files and of the call.
package fileref

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	paths "path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/files"
	"tandem/node"
)

// Value is a file as payloads have it: a stored value by its hash, or a file of the workspace by its path.
type Value struct {
	Blob        string `json:"blob,omitempty"`
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	// Path is set for a file that is kept in the workspace and not as a stored value.
	Path string `json:"path,omitempty"`
}

// Source is a file that data names, wherever it is. It can be read more than once.
type Source struct {
	Name        string
	ContentType string
	Size        int64
	Open        func() (io.ReadCloser, error)
}

// Workspace opens the files of the workspace that a call is for.
func Workspace(store *files.Store, call *node.Call) (*files.Dir, error) {
	if store == nil {
		return nil, fault.New(fault.Unsupported, "there is no files directory here")
	}
	return store.Open(call.Workspace)
}

// Open finds what a file value means: a path, {blob}, {base64, name} or {path}. At is where it stands, for errors;
// more than limit bytes is too_large, before anything of it is read.
func Open(ctx context.Context, store *files.Store, call *node.Call, raw json.RawMessage, at string, limit int64) (*Source, error) {
	wrong := fault.Newf(fault.InvalidInput, `%q is not a file; give a path in the workspace, a file with "blob", or one with "base64" and "name"`, at).With("path", at)
	var v struct {
		Blob        string  `json:"blob"`
		Base64      *string `json:"base64"`
		Path        string  `json:"path"`
		Name        string  `json:"name"`
		ContentType string  `json:"content_type"`
	}
	switch given := gjson.ParseBytes(raw); {
	case given.Type == gjson.String:
		v.Path = given.Str
	case given.IsObject():
		if json.Unmarshal(raw, &v) != nil {
			return nil, wrong
		}
	default:
		return nil, wrong
	}
	s := &Source{Name: CleanName(v.Name), ContentType: v.ContentType}
	var err error
	switch {
	case v.Base64 != nil:
		err = s.inline(*v.Base64, at, limit)
	case v.Blob != "":
		err = s.stored(ctx, call, v.Blob)
	case v.Path != "":
		err = s.kept(store, call, v.Path)
	default:
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	if s.Size > limit {
		return nil, fault.Newf(fault.TooLarge, "%q has %d bytes, more than the %d that max_bytes allows", at, s.Size, limit).With("path", at).With("limit", limit)
	}
	if s.Name == "" {
		s.Name = "file"
	}
	if _, _, err := mime.ParseMediaType(s.ContentType); err != nil || !utf8.ValidString(s.ContentType) ||
		strings.ContainsFunc(s.ContentType, unicode.IsControl) {
		s.ContentType = TypeByName(s.Name)
	}
	return s, nil
}

func (s *Source) inline(text, at string, limit int64) error {
	if int64(base64.StdEncoding.DecodedLen(len(text))) > limit+2 {
		s.Size = int64(base64.StdEncoding.DecodedLen(len(text)))
		return nil // refused by its size
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fault.Newf(fault.InvalidInput, "%q is not base64", at+".base64").With("path", at+".base64").WithCause(err)
	}
	s.Size = int64(len(data))
	s.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return nil
}

func (s *Source) stored(ctx context.Context, call *node.Call, hash string) error {
	if call.Files == nil {
		return fault.New(fault.Unsupported, "stored files cannot be read here")
	}
	content, size, err := call.Files.Open(ctx, hash)
	if err != nil {
		return err
	}
	s.Size = size
	s.Open = func() (io.ReadCloser, error) {
		content, _, err := call.Files.Open(ctx, hash)
		return content, err
	}
	return content.Close()
}

func (s *Source) kept(store *files.Store, call *node.Call, name string) error {
	open := func() (*inDir, error) {
		dir, err := Workspace(store, call)
		if err != nil {
			return nil, err
		}
		f, err := dir.Open(name)
		if err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		return &inDir{f, dir}, nil
	}
	f, err := open()
	if err != nil {
		return err
	}
	s.Size = f.Info.Size
	if s.Name == "" {
		s.Name = paths.Base(f.Info.Path)
	}
	s.Open = func() (io.ReadCloser, error) {
		f, err := open()
		if err != nil {
			return nil, err // not f: a nil pointer would be a reader
		}
		return f, nil
	}
	return f.Close()
}

// inDir is a file that closes its directory too.
type inDir struct {
	*files.File
	dir *files.Dir
}

// Close closes both.
func (f *inDir) Close() error { return errors.Join(f.File.Close(), f.dir.Close()) }

// ReadAll reads a file that is known to be small enough.
func (s *Source) ReadAll(ctx context.Context, limit int64) ([]byte, error) {
	content, err := s.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(files.Reader(ctx, content), limit+1))
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fault.Newf(fault.TooLarge, "%q has more than %d bytes", s.Name, limit).With("limit", limit)
	}
	return data, nil
}

// CleanName makes a name of a file of what somebody calls it: no path, nothing that a system cannot keep.
func CleanName(name string) string {
	name = strings.TrimRight(strings.ReplaceAll(strings.ToValidUTF8(name, ""), `\`, "/"), "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || strings.ContainsRune(`:*?"<>|`, c) {
			return -1
		}
		return c
	}, name)
	for len(name) > 200 { // from the front, so that the extension stays
		_, n := utf8.DecodeRuneInString(name)
		name = name[n:]
	}
	name = strings.TrimRight(strings.TrimSpace(name), ". ")
	if _, err := files.Clean(name); err != nil || strings.Trim(name, ".") == "" {
		return ""
	}
	return name
}

// TypeByName tells the media type by the extension. It has a table of its own: the system's differs from host to host.
func TypeByName(name string) string {
	switch strings.ToLower(paths.Ext(name)) {
	case ".txt", ".log":
		return "text/plain; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".html", ".htm":
		return "text/html; charset=utf-8"
	case ".json":
		return "application/json"
	case ".xml":
		return "application/xml"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".pdf":
		return "application/pdf"
	case ".zip":
		return "application/zip"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".bmp":
		return "image/bmp"
	case ".tif", ".tiff":
		return "image/tiff"
	case ".svg":
		return "image/svg+xml"
	case ".docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case ".xlsx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	return "application/octet-stream"
}

// TypeByContent tells the media type by the first bytes, "" when they say nothing.
func TypeByContent(head []byte) string {
	found, _, err := mime.ParseMediaType(http.DetectContentType(head))
	if err != nil || found == "application/octet-stream" || len(head) == 0 {
		return ""
	}
	return found
}
