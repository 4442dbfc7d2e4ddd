package gcp

import (
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/objectstore/objectstoretest"
)

// fakeStorage is a server that speaks the JSON interface of Cloud Storage: uploads in one call and in sessions.
type fakeStorage struct {
	bucket string
	tokens *fakeTokens
	base   string

	mu       sync.Mutex
	objects  map[string]objectstoretest.Stored
	sessions map[string]*fakeSession
	begun    int
	// keep is how many bytes of a call a session keeps; 0: all.
	keep int64
	// revoked tokens are refused although they have not expired.
	revoked map[string]bool
}

type fakeSession struct {
	resource map[string]any
	size     int64
	have     int64
	sums     *fakeSums
}

// fakeSums are computed while content arrives.
type fakeSums struct{ sha, md5, crc hash.Hash }

func newSums() *fakeSums {
	return &fakeSums{sha256.New(), md5.New(), crc32.New(crc32.MakeTable(crc32.Castagnoli))}
}

func (s *fakeSums) Write(p []byte) (int, error) {
	return io.MultiWriter(s.sha, s.md5, s.crc).Write(p)
}

func (f *fakeStorage) refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error": {"code": %d, "message": %q, "errors": [{"message": %q, "domain": "global", "reason": %q}]}}`, status, message, message, reason)
}

func (f *fakeStorage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("upload_id")
	if id == "" { // a session lets everybody in who knows it
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		f.mu.Lock()
		revoked := f.revoked[token]
		f.mu.Unlock()
		if !ok || revoked || !f.tokens.knows(token) {
			f.refuse(w, http.StatusUnauthorized, "authError", "Invalid Credentials")
			return
		}
	}
	bucket, ok := strings.CutPrefix(r.URL.Path, "/upload/storage/v1/b/")
	bucket, rest, _ := strings.Cut(bucket, "/")
	switch kind := r.URL.Query().Get("uploadType"); {
	case !ok || rest != "o":
		f.refuse(w, http.StatusNotFound, "notFound", "Not Found")
	case bucket != f.bucket:
		f.refuse(w, http.StatusNotFound, "notFound", "The specified bucket does not exist.")
	case r.Method == http.MethodPost && kind == "multipart":
		f.together(w, r)
	case r.Method == http.MethodPost && kind == "resumable":
		f.begin(w, r)
	case r.Method == http.MethodPut && id != "":
		f.session(w, r, id)
	default:
		f.refuse(w, http.StatusBadRequest, "invalid", "unknown call")
	}
}

func (f *fakeStorage) together(w http.ResponseWriter, r *http.Request) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		f.refuse(w, http.StatusBadRequest, "badContent", "no multipart/related")
		return
	}
	reader := multipart.NewReader(r.Body, parameters["boundary"])
	resource := map[string]any{}
	sums := newSums()
	var size int64
	part, err := reader.NextPart()
	if err == nil {
		err = json.NewDecoder(part).Decode(&resource)
	}
	if err == nil {
		part, err = reader.NextPart()
	}
	if err == nil {
		size, err = io.Copy(sums, part)
	}
	if err == nil {
		if _, end := reader.NextPart(); end != io.EOF {
			err = fmt.Errorf("a third part: %w", end)
		}
	}
	if err != nil {
		f.refuse(w, http.StatusBadRequest, "badContent", err.Error())
		return
	}
	f.finish(w, resource, size, sums)
}

func (f *fakeStorage) finish(w http.ResponseWriter, resource map[string]any, size int64, sums *fakeSums) {
	crc, sum := base64.StdEncoding.EncodeToString(sums.crc.Sum(nil)), base64.StdEncoding.EncodeToString(sums.md5.Sum(nil))
	if given, ok := resource["crc32c"]; ok && given != crc {
		f.refuse(w, http.StatusBadRequest, "invalid", fmt.Sprintf("Provided CRC32C %q doesn't match calculated CRC32C %q.", given, crc))
		return
	}
	if given, ok := resource["md5Hash"]; ok && given != sum {
		f.refuse(w, http.StatusBadRequest, "invalid", fmt.Sprintf("Provided MD5 hash %q doesn't match calculated MD5 hash %q.", given, sum))
		return
	}
	text := func(name string) string { s, _ := resource[name].(string); return s }
	stored := objectstoretest.Stored{
		Size: size, SHA256: hex.EncodeToString(sums.sha.Sum(nil)), ContentType: text("contentType"), CacheControl: text("cacheControl"), Extra: text("storageClass"), Meta: map[string]string{},
	}
	if meta, ok := resource["metadata"].(map[string]any); ok {
		for name, value := range meta {
			stored.Meta[name] = fmt.Sprint(value)
		}
	}
	f.mu.Lock()
	f.objects[text("name")] = stored
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "storage#object", "name": text("name"), "bucket": f.bucket, "size": strconv.FormatInt(size, 10), "crc32c": crc, "md5Hash": sum, "etag": "CJ+", "generation": "1"})
}

func (f *fakeStorage) begin(w http.ResponseWriter, r *http.Request) {
	resource := map[string]any{}
	size, err := strconv.ParseInt(r.Header.Get("X-Upload-Content-Length"), 10, 64)
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&resource)
	}
	if err != nil {
		f.refuse(w, http.StatusBadRequest, "badContent", err.Error())
		return
	}
	f.mu.Lock()
	f.begun++
	id := fmt.Sprintf("session-canary-%d", f.begun)
	f.sessions[id] = &fakeSession{resource: resource, size: size, sums: newSums()}
	f.mu.Unlock()
	w.Header().Set("Location", f.base+r.URL.Path+"?uploadType=resumable&upload_id="+id)
}

func (f *fakeStorage) session(w http.ResponseWriter, r *http.Request, id string) {
	f.mu.Lock()
	s, keep := f.sessions[id], f.keep
	f.mu.Unlock()
	if s == nil {
		f.refuse(w, http.StatusNotFound, "notFound", "Not Found")
		return
	}
	var from, to, size int64
	if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); err != nil || size != s.size || from != s.have || to-from+1 != r.ContentLength {
		f.refuse(w, http.StatusBadRequest, "invalid", "the range "+r.Header.Get("Content-Range")+" does not fit")
		return
	}
	want := r.ContentLength
	if keep > 0 && keep < want {
		want = keep
	}
	n, err := io.CopyN(s.sums, r.Body, want)
	s.have += n
	if err != nil {
		return // the client is gone; what has arrived stays
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if s.have < s.size {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", s.have-1))
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	f.mu.Lock()
	delete(f.sessions, id)
	f.mu.Unlock()
	f.finish(w, s.resource, s.have, s.sums)
}

// fakeTokens is a server that gives tokens to accounts that prove who they are.
type fakeTokens struct {
	key   *rsa.PublicKey
	email string
	url   string

	mu    sync.Mutex
	given []string
	// audiences are whom tokens are for that say who the account is.
	audiences map[string]string
	// refuse, when it is not 0, is the status of every answer.
	refuse int
	life   int
}

func (f *fakeTokens) knows(token string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.given {
		if t == token {
			return true
		}
	}
	return false
}

func (f *fakeTokens) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.given)
}

func (f *fakeTokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != 0 {
		http.Error(w, `{"error": "busy"}`, f.refuse)
		return
	}
	problem, audience := f.problem(r)
	if problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error": "invalid_grant", "error_description": %q}`, problem)
		return
	}
	token := fmt.Sprintf("ya29.token-canary-%d", len(f.given)+1)
	f.given = append(f.given, token)
	if audience != "" {
		f.audiences[token] = audience
		_, _ = fmt.Fprintf(w, `{"id_token": %q}`, token)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token": %q, "expires_in": %d, "token_type": "Bearer"}`, token, f.life)
}

func (f *fakeTokens) problem(r *http.Request) (problem, audience string) {
	if r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "unknown grant", ""
	}
	parts := strings.Split(r.PostFormValue("assertion"), ".")
	if len(parts) != 3 {
		return "no JWT", ""
	}
	var header struct{ Alg, Kid string }
	var claims struct {
		Iss, Aud, Scope string
		Audience        string `json:"target_audience"`
		Iat, Exp        int64
	}
	for i, v := range []any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, v) != nil {
			return "a part cannot be read", ""
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now().Unix()
	switch {
	case err != nil || header.Alg != "RS256" || rsa.VerifyPKCS1v15(f.key, crypto.SHA256, sum[:], signature) != nil:
		return "Invalid JWT Signature.", ""
	case header.Kid != "kid-1" || claims.Iss != f.email || claims.Aud != f.url || claims.Scope != storageScope && claims.Scope != allScope && claims.Audience == "":
		return "wrong claims", ""
	case claims.Iat > now+300 || claims.Exp < now || claims.Exp-claims.Iat > 3600:
		return "wrong time", ""
	}
	return "", claims.Audience
}
