package azure

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tandem/objectstore/objectstoretest"
)

// fakeBlobs is a server that speaks the protocol of Blob Storage for one account: it recomputes every signature from what
// arrived, compares every sum, and joins blocks.
type fakeBlobs struct {
	account, container string
	key                []byte
	sas                url.Values
	bearers            func(token string) bool

	mu      sync.Mutex
	objects map[string]objectstoretest.Stored
	blocks  map[string]map[string][]byte
	auth    map[string]int // how many calls came in by which way
}

func (f *fakeBlobs) refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "\uFEFF<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s\nRequestId:1\nTime:2030-01-31T09:00:00Z</Message></Error>", code, message)
}

// genuine says how a call authenticates itself, or "".
func (f *fakeBlobs) genuine(r *http.Request) string {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "SharedKey "+f.account+":"); ok {
		if given == f.signature(r) {
			return "key"
		}
		return ""
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if f.bearers != nil && f.bearers(token) && r.Header.Get("X-Ms-Version") >= "2017-11-09" {
			return "token"
		}
		return ""
	}
	for name := range f.sas {
		if r.URL.Query().Get(name) != f.sas.Get(name) {
			return ""
		}
	}
	if len(f.sas) > 0 {
		return "sas"
	}
	return ""
}

// signature writes down what the service's documents say is signed, and signs it.
func (f *fakeBlobs) signature(r *http.Request) string {
	length := ""
	if r.ContentLength > 0 {
		length = fmt.Sprint(r.ContentLength)
	}
	lines := []string{r.Method}
	for _, name := range []string{"Content-Encoding", "Content-Language", "", "Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		if name == "" {
			lines = append(lines, length)
			continue
		}
		if name == "Date" && r.Header.Get("X-Ms-Date") != "" {
			lines = append(lines, "")
			continue
		}
		lines = append(lines, r.Header.Get(name))
	}
	var own []string
	for name, values := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			own = append(own, lower+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(own)
	lines = append(lines, own...)
	path, _, _ := strings.Cut(r.RequestURI, "?")
	lines = append(lines, "/"+f.account+path)
	var query []string
	for name, values := range r.URL.Query() {
		slices.Sort(values)
		query = append(query, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	slices.Sort(query)
	h := hmac.New(sha256.New, f.key)
	_, _ = h.Write([]byte(strings.Join(append(lines, query...), "\n")))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func (f *fakeBlobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Ms-Request-Id", "req-1")
	way := f.genuine(r)
	if way == "" {
		f.refuse(w, http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.")
		return
	}
	escaped, _, _ := strings.Cut(r.RequestURI, "?")
	path, err := url.PathUnescape(strings.TrimPrefix(escaped, "/"+f.account))
	if err != nil {
		f.refuse(w, http.StatusBadRequest, "InvalidUri", err.Error())
		return
	}
	container, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	f.mu.Lock()
	f.auth[way]++
	f.mu.Unlock()
	switch comp := r.URL.Query().Get("comp"); {
	case container != f.container:
		f.refuse(w, http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
	case r.Method != http.MethodPut:
		f.refuse(w, http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "")
	case comp == "block":
		f.block(w, r, key)
	case comp == "blocklist":
		f.join(w, r, key)
	case comp == "" && r.Header.Get("X-Ms-Blob-Type") == "BlockBlob":
		f.blob(w, r, key)
	default:
		f.refuse(w, http.StatusBadRequest, "InvalidHeaderValue", "")
	}
}

// body reads a body and compares its sum. Keep may be nil.
func (f *fakeBlobs) body(w http.ResponseWriter, r *http.Request, keep io.Writer) (n int64, sha hash.Hash, ok bool) {
	sha = sha256.New()
	sum := md5.New()
	writers := []io.Writer{sum, sha}
	if keep != nil {
		writers = append(writers, keep)
	}
	n, err := io.Copy(io.MultiWriter(writers...), r.Body)
	if err != nil || n != r.ContentLength {
		return 0, nil, false // the client is gone
	}
	if given := r.Header.Get("Content-Md5"); given != "" && given != base64.StdEncoding.EncodeToString(sum.Sum(nil)) {
		f.refuse(w, http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server.")
		return 0, nil, false
	}
	return n, sha, true
}

func about(r *http.Request) objectstoretest.Stored {
	s := objectstoretest.Stored{ContentType: r.Header.Get("X-Ms-Blob-Content-Type"), CacheControl: r.Header.Get("X-Ms-Blob-Cache-Control"), Extra: r.Header.Get("X-Ms-Access-Tier"), Meta: map[string]string{}}
	for name, values := range r.Header {
		if own, ok := strings.CutPrefix(strings.ToLower(name), "x-ms-meta-"); ok {
			s.Meta[own] = values[0]
		}
	}
	return s
}

func (f *fakeBlobs) created(w http.ResponseWriter, key string, s objectstoretest.Stored) {
	f.mu.Lock()
	f.objects[key] = s
	delete(f.blocks, key)
	f.mu.Unlock()
	w.Header().Set("ETag", `"0x8DB"`)
	w.Header().Set("Last-Modified", "Thu, 31 Jan 2030 09:00:00 GMT")
	w.WriteHeader(http.StatusCreated)
}

func (f *fakeBlobs) blob(w http.ResponseWriter, r *http.Request, key string) {
	s := about(r)
	n, sha, ok := f.body(w, r, nil)
	if !ok {
		return
	}
	s.Size, s.SHA256 = n, hex.EncodeToString(sha.Sum(nil))
	f.created(w, key, s)
}

func (f *fakeBlobs) block(w http.ResponseWriter, r *http.Request, key string) {
	id := r.URL.Query().Get("blockid")
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 || len(raw) > 64 {
		f.refuse(w, http.StatusBadRequest, "InvalidQueryParameterValue", "blockid")
		return
	}
	data := &sliceWriter{}
	if _, _, ok := f.body(w, r, data); !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks[key] == nil {
		f.blocks[key] = map[string][]byte{}
	}
	for other := range f.blocks[key] {
		if len(other) != len(id) {
			f.refuse(w, http.StatusBadRequest, "InvalidBlobOrBlock", "block ids differ in length")
			return
		}
	}
	f.blocks[key][id] = data.b
	w.WriteHeader(http.StatusCreated)
}

type sliceWriter struct{ b []byte }

func (s *sliceWriter) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

func (f *fakeBlobs) join(w http.ResponseWriter, r *http.Request, key string) {
	s := about(r)
	data := &sliceWriter{}
	if _, _, ok := f.body(w, r, data); !ok {
		return
	}
	var list struct {
		XMLName xml.Name `xml:"BlockList"`
		Latest  []string
	}
	if err := xml.Unmarshal(data.b, &list); err != nil {
		f.refuse(w, http.StatusBadRequest, "InvalidXmlDocument", err.Error())
		return
	}
	sum := sha256.New()
	f.mu.Lock()
	blocks := f.blocks[key]
	f.mu.Unlock()
	for _, id := range list.Latest {
		block, ok := blocks[id]
		if !ok {
			f.refuse(w, http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
			return
		}
		s.Size += int64(len(block))
		_, _ = sum.Write(block)
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	f.created(w, key, s)
}
