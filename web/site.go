package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// nonceMark is where index.html wants the nonce of the page.
const nonceMark = "CSP-NONCE"

// Site serves the UI from its files.
type Site struct {
	files fs.FS
	index []byte
}

// NewSite makes a site of files as npm builds them. Without an index.html there is no UI, and the site is nil.
func NewSite(files fs.FS) (*Site, error) {
	if files == nil {
		return nil, nil
	}
	index, err := fs.ReadFile(files, "index.html")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the web UI: %w", err)
	}
	return &Site{files, index}, nil
}

// Page sends the one page there is, with a status. Which view it shows, it reads from its address.
func (s *Site) Page(w http.ResponseWriter, status int) error {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(bytes.Replace(s.index, []byte(nonceMark), []byte(nonce), 1))
	return err
}

// Asset is a file whose name changes whenever its contents do.
type Asset struct {
	name   string
	data   []byte
	packed bool
}

// Asset finds a file by its name below /assets. It is kept compressed, as nearly every browser wants it, and unpacked for the others. A
// file that does not exist is an [fs.ErrNotExist].
func (s *Site) Asset(r *http.Request, file string) (Asset, error) {
	a := Asset{name: "assets" + path.Clean("/"+file)} // what leads out of them leads nowhere
	data, err := fs.ReadFile(s.files, a.name+".gz")
	a.packed = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		data, err = fs.ReadFile(s.files, a.name)
	}
	if err == nil && a.packed && !takesGzip(r) {
		data, err = unpack(data)
		a.packed = false
	}
	a.data = data
	return a, err
}

// Send sends the file.
func (a Asset) Send(w http.ResponseWriter) error {
	h := w.Header()
	if a.packed {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", typeOf(a.name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, err := w.Write(a.data)
	return err
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

func unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// typeOf is the type of a file by its name. Those that the UI is made of do not depend on what the machine has been told.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}
