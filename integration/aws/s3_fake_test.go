package aws

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/objectstore/objectstoretest"
)

// fakeS3 is a server that speaks S3: it recomputes every signature from what arrived, compares every sum, and keeps of
// objects what can be asked for.
type fakeS3 struct {
	id, secret, session, region, bucket string

	mu      sync.Mutex
	objects map[string]objectstoretest.Stored
	uploads map[string]*fakeUpload
	begun   int
	// sickJoin makes the next joining of parts fail after its status was sent.
	sickJoin bool
	expected []string // requests that asked before they sent
}

type fakeUpload struct {
	key    string
	object objectstoretest.Stored
	parts  map[string]*fakePart
}

type fakePart struct {
	etag string
	data []byte
}

func (f *fakeS3) refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>4442587FB7D0A2F9</RequestId><HostId>x</HostId></Error>", code, message)
}

// hexMAC is one step of the derivation of keys.
func hexMAC(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text))
	return h.Sum(nil)
}

// genuine recomputes the signature for S3.
func (f *fakeS3) genuine(r *http.Request) (code string) {
	return genuine(r, keys{AccessKeyID: f.id, SecretAccessKey: f.secret, SessionToken: f.session, Region: f.region}, "s3")
}

// genuine recomputes the signature. It reads the request line as it arrived and knows nothing of the code that signs.
func genuine(r *http.Request, k keys, service string) (code string) {
	var credential, names, signature string
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "AccessDenied"
	}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			names = value
		case "Signature":
			signature = value
		}
	}
	scope := strings.SplitN(credential, "/", 2)
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	switch {
	case err != nil || len(scope) != 2:
		return "AuthorizationHeaderMalformed"
	case scope[0] != k.AccessKeyID:
		return "InvalidAccessKeyId"
	case r.Header.Get("X-Amz-Security-Token") != k.SessionToken:
		return "InvalidToken"
	case scope[1] != stamp[:8]+"/"+k.Region+"/"+service+"/aws4_request":
		return "AuthorizationHeaderMalformed"
	case time.Since(at).Abs() > 15*time.Minute:
		return "RequestTimeTooSkewed"
	}
	signed := strings.Split(names, ";")
	for name := range r.Header { // everything that says something about the object must be covered
		lower := strings.ToLower(name)
		if (strings.HasPrefix(lower, "x-amz-") || lower == "content-type" || lower == "content-md5") && !slices.Contains(signed, lower) {
			return "AccessDenied"
		}
	}
	if !slices.Contains(signed, "host") {
		return "AccessDenied"
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if service != "s3" { // escaped once more, all but what never is
		path = regexp.MustCompile(`[^A-Za-z0-9._~/-]`).ReplaceAllStringFunc(path, func(c string) string { return fmt.Sprintf("%%%02X", c) })
	}
	pairs := strings.Split(query, "&")
	slices.Sort(pairs)
	lines := []string{r.Method, path, strings.Join(pairs, "&")}
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		for strings.Contains(value, "  ") {
			value = strings.ReplaceAll(value, "  ", " ")
		}
		lines = append(lines, name+":"+strings.TrimSpace(value))
	}
	lines = append(lines, "", names, r.Header.Get("X-Amz-Content-Sha256"))
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	key := []byte("AWS4" + k.SecretAccessKey)
	for step := range strings.SplitSeq(scope[1], "/") {
		key = hexMAC(key, step)
	}
	if want := hex.EncodeToString(hexMAC(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope[1]+"\n"+hex.EncodeToString(sum[:]))); want != signature {
		return "SignatureDoesNotMatch"
	}
	return ""
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amz-Request-Id", "4442587FB7D0A2F9")
	if code := f.genuine(r); code != "" {
		status := http.StatusForbidden
		if code == "AuthorizationHeaderMalformed" {
			status = http.StatusBadRequest
			code += "</Code><Region>" + f.region + "</Region><Code>"
			f.refuse(w, status, strings.TrimSuffix(code, "<Code>"), "")
			return
		}
		f.refuse(w, status, code, "Access Denied")
		return
	}
	escaped, _, _ := strings.Cut(r.RequestURI, "?")
	path, err := url.PathUnescape(escaped)
	if err != nil {
		f.refuse(w, http.StatusBadRequest, "InvalidURI", err.Error())
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if bucket != f.bucket {
		f.refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
		return
	}
	if r.Header.Get("Expect") != "" {
		f.mu.Lock()
		f.expected = append(f.expected, key)
		f.mu.Unlock()
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && query.Get("uploadId") != "":
		f.part(w, r, query.Get("uploadId"), query.Get("partNumber"))
	case r.Method == http.MethodPut:
		f.object(w, r, key)
	case r.Method == http.MethodPost && query.Has("uploads"):
		f.begin(w, r, key)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		f.join(w, r, query.Get("uploadId"))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		f.mu.Lock()
		_, ok := f.uploads[query.Get("uploadId")]
		delete(f.uploads, query.Get("uploadId"))
		f.mu.Unlock()
		if !ok {
			f.refuse(w, http.StatusNotFound, "NoSuchUpload", "gone")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		f.refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "")
	}
}

// body reads a body and compares its sums with those announced. Keep keeps it, for parts.
func (f *fakeS3) body(r *http.Request, keep io.Writer) (size int64, sum, etag, problem string) {
	whole, digest := sha256.New(), md5.New()
	size, err := io.Copy(io.MultiWriter(whole, digest, keep), r.Body)
	switch {
	case err != nil || size != r.ContentLength:
		return 0, "", "", "IncompleteBody"
	case hex.EncodeToString(whole.Sum(nil)) != r.Header.Get("X-Amz-Content-Sha256"):
		return 0, "", "", "XAmzContentSHA256Mismatch"
	case r.Header.Get("Content-Md5") != "" && base64.StdEncoding.EncodeToString(digest.Sum(nil)) != r.Header.Get("Content-Md5"):
		return 0, "", "", "BadDigest"
	}
	return size, hex.EncodeToString(whole.Sum(nil)), `"` + hex.EncodeToString(digest.Sum(nil)) + `"`, ""
}

func about(r *http.Request) objectstoretest.Stored {
	s := objectstoretest.Stored{ContentType: r.Header.Get("Content-Type"), CacheControl: r.Header.Get("Cache-Control"), Extra: r.Header.Get("X-Amz-Storage-Class"), Meta: map[string]string{}}
	for name, values := range r.Header {
		if own, ok := strings.CutPrefix(name, "X-Amz-Meta-"); ok {
			s.Meta[strings.ToLower(own)] = values[0]
		}
	}
	return s
}

func (f *fakeS3) object(w http.ResponseWriter, r *http.Request, key string) {
	stored := about(r)
	size, sum, etag, problem := f.body(r, io.Discard)
	if problem != "" {
		f.refuse(w, http.StatusBadRequest, problem, "")
		return
	}
	stored.Size, stored.SHA256 = size, sum
	f.mu.Lock()
	f.objects[key] = stored
	f.mu.Unlock()
	w.Header().Set("ETag", etag)
	w.Header().Set("X-Amz-Version-Id", "v1")
}

func (f *fakeS3) begin(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	f.begun++
	id := fmt.Sprintf("upload/%d+==", f.begun) // has to be escaped
	f.uploads[id] = &fakeUpload{key: key, object: about(r), parts: map[string]*fakePart{}}
	f.mu.Unlock()
	_, _ = fmt.Fprintf(w, `<InitiateMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>b</Bucket><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, id)
}

func (f *fakeS3) part(w http.ResponseWriter, r *http.Request, id, number string) {
	f.mu.Lock()
	u := f.uploads[id]
	f.mu.Unlock()
	if u == nil {
		f.refuse(w, http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist")
		return
	}
	var data bytes.Buffer
	_, _, etag, problem := f.body(r, &data)
	if problem != "" {
		f.refuse(w, http.StatusBadRequest, problem, "")
		return
	}
	f.mu.Lock()
	u.parts[number] = &fakePart{etag, data.Bytes()}
	f.mu.Unlock()
	w.Header().Set("ETag", etag)
}

func (f *fakeS3) join(w http.ResponseWriter, r *http.Request, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var data bytes.Buffer
	if _, _, _, problem := f.body(r, &data); problem != "" {
		f.refuse(w, http.StatusBadRequest, problem, "")
		return
	}
	var list struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []struct{ PartNumber, ETag string }
	}
	u := f.uploads[id]
	switch err := xml.Unmarshal(data.Bytes(), &list); {
	case u == nil:
		f.refuse(w, http.StatusNotFound, "NoSuchUpload", "")
		return
	case err != nil || len(list.Part) == 0:
		f.refuse(w, http.StatusBadRequest, "MalformedXML", "")
		return
	}
	w.WriteHeader(http.StatusOK) // S3 answers before it knows
	if f.sickJoin {
		f.sickJoin = false
		_, _ = io.WriteString(w, "<?xml version=\"1.0\"?>\n  <Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>")
		return
	}
	whole, tags := sha256.New(), md5.New()
	for i, p := range list.Part {
		part := u.parts[p.PartNumber]
		if part == nil || part.etag != p.ETag || i < len(list.Part)-1 && len(part.data) < 5<<20 {
			_, _ = io.WriteString(w, "<Error><Code>InvalidPart</Code></Error>")
			return
		}
		u.object.Size += int64(len(part.data))
		_, _ = whole.Write(part.data)
		_, _ = tags.Write([]byte(part.etag))
	}
	u.object.SHA256 = hex.EncodeToString(whole.Sum(nil))
	f.objects[u.key] = u.object
	delete(f.uploads, id)
	_, _ = fmt.Fprintf(w, `<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ETag>&quot;%x-%d&quot;</ETag></CompleteMultipartUploadResult>`, tags.Sum(nil), len(list.Part))
}
