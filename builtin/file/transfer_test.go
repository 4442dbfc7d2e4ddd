package file_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/builtin/file"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
)

const (
	downloadKind = "ACTION.FILE_DOWNLOAD"
	uploadKind   = "ACTION.FILE_UPLOAD"
)

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// brittle serves a file and cuts every answer off after some bytes.
type brittle struct {
	mu      sync.Mutex
	content string
	etag    string
	cut     int // bytes per answer; 0: all
	asked   []string
	// ignoreRange serves from the start whatever is asked; lie answers ranges with the wrong bytes.
	ignoreRange, lie bool
}

func (b *brittle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, r.Header.Get("Range")+" "+r.Header.Get("If-Range"))
	w.Header().Set("Content-Type", "text/plain")
	if b.etag != "" {
		w.Header().Set("ETag", b.etag)
	}
	from, status := 0, http.StatusOK
	if asked, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !b.ignoreRange && (r.Header.Get("If-Range") == b.etag || b.lie) {
		from, _ = strconv.Atoi(strings.TrimSuffix(asked, "-"))
		status = http.StatusPartialContent
		told := from
		if b.lie {
			told = from + 1
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", told, len(b.content)-1, len(b.content)))
	}
	rest := b.content[from:]
	w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
	w.WriteHeader(status)
	if b.cut > 0 && len(rest) > b.cut {
		_, _ = io.WriteString(w, rest[:b.cut]) // the client goes away before the end, by design
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, rest)
}

func (b *brittle) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func TestFileDownload(t *testing.T) {
	t.Parallel()
	plain := func(contentType, content string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Disposition", `attachment; filename="../../evil name.txt"`)
			_, _ = io.WriteString(w, content)
		}
	}
	t.Run("Blob", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, plain("text/plain", "hello"))
		r.good(downloadKind, `{"url": "$URL/x"}`, ``, `{"status_code": 200, "filename": "evil name.txt",
			"file": {"blob": "`+hello+`", "name": "evil name.txt", "content_type": "text/plain", "size": 5, "sha256": "`+hello+`"}}`)
		if got := r.left(); got != "" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("Saved", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, plain("text/plain", "hello"))
		r.good(downloadKind, `{"url": "$URL/x", "save_path": "in/a.txt", "sha256": "`+strings.ToUpper(hello)+`"}`, ``,
			`{"path": "in/a.txt", "file": {"name": "a.txt", "path": "in/a.txt", "size": 5, "sha256": "`+hello+`"}}`)
		r.bad(downloadKind, `{"url": "$URL/x", "save_path": "in/a.txt"}`, ``, fault.Conflict, "overwrite")
		r.good(downloadKind, `{"url": "$URL/x", "save_path": "in/a.txt", "overwrite": true}`, ``, `{"path": "in/a.txt"}`)
		r.good(downloadKind, `{"url": "$URL/x", "save_path": "in/"}`, ``, `{"path": "in/evil name.txt"}`)
		// An attempt that crashed after it had saved the file is found to have done so.
		r.execution = "crashed"
		r.good(downloadKind, `{"url": "$URL/x", "save_path": "b.txt"}`, ``, `{"path": "b.txt"}`)
		r.good(downloadKind, `{"url": "$URL/x", "save_path": "b.txt"}`, ``, `{"path": "b.txt"}`)
		if got := r.left(); got != "b.txt in/a.txt in/evil name.txt" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("NothingKept", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/html":
				plain("image/png", "<!DOCTYPE html><html>no picture</html>")(w, q)
			case "/raw":
				plain("application/octet-stream", "\x89PNG\r\n\x1a\n and so on")(w, q)
			case "/endless":
				w.Header().Set("ETag", `"e"`)
				for _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err == nil; {
					_, err = io.WriteString(w, strings.Repeat("x", 64<<10))
				}
			case "/announced":
				w.Header().Set("Content-Length", "2000000000")
				w.WriteHeader(http.StatusOK)
			case "/private":
				http.Redirect(w, q, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			case "/lan":
				http.Redirect(w, q, "http://10.1.2.3/", http.StatusTemporaryRedirect)
			case "/part":
				w.Header().Set("Content-Range", "bytes 0-4/100")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = io.WriteString(w, "hello")
			case "/gone":
				http.Error(w, "gone", http.StatusGone)
			case "/nowhere":
				w.WriteHeader(http.StatusFound)
			default:
				plain("text/plain", "hello")(w, q)
			}
		})
		for _, c := range []struct {
			config string
			code   fault.Code
			part   string
		}{
			{`{"url": "$URL/x", "save_path": "f", "sha256": "` + strings.Repeat("0", 64) + `"}`, fault.OutputInvalid, "SHA-256"},
			{`{"url": "$URL/x", "save_path": "f", "sha256": "short"}`, fault.InvalidConfig, "64"},
			{`{"url": "$URL/x", "save_path": "f", "allowed_types": ["image/*"]}`, fault.OutputInvalid, "text/plain"},
			{`{"url": "$URL/html", "save_path": "f", "allowed_types": ["image/*"]}`, fault.OutputInvalid, "text/html"},
			{`{"url": "$URL/raw", "save_path": "f", "allowed_types": ["application/pdf"]}`, fault.OutputInvalid, "image/png"},
			{`{"url": "$URL/x", "save_path": "f", "max_bytes": 4}`, fault.TooLarge, "max_bytes"},
			{`{"url": "$URL/announced", "save_path": "f"}`, fault.TooLarge, "max_bytes"},
			{`{"url": "$URL/endless", "save_path": "f", "max_bytes": 3000000}`, fault.TooLarge, "max_bytes"},
			{`{"url": "$URL/x", "save_path": "../f"}`, fault.ForbiddenPath, ""},
			{`{"url": "$URL/private", "save_path": "f"}`, fault.BlockedAddress, ""},
			{`{"url": "$URL/lan", "save_path": "f"}`, fault.BlockedAddress, ""},
			{`{"url": "$URL/part", "save_path": "f"}`, fault.OutputInvalid, "part"},
			{`{"url": "$URL/gone", "save_path": "f"}`, fault.NotFound, "410"},
			{`{"url": "$URL/nowhere", "save_path": "f"}`, fault.RemoteRejected, "302"},
			{`{"url": "http://gone.example/", "save_path": "f"}`, fault.NetworkError, "DNS"},
		} {
			r.bad(downloadKind, c.config, ``, c.code, c.part)
			if got := r.left(); got != "" || r.files.Count() > 0 {
				t.Fatalf("%s left %s and %d blobs", c.config, got, r.files.Count())
			}
		}
		r.good(downloadKind, `{"url": "$URL/raw", "allowed_types": ["image/*"]}`, ``, `{"file": {"content_type": "image/png"}}`)
	})
	t.Run("Credential", func(t *testing.T) {
		t.Parallel()
		r := newFileRig(t, func(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, q.Header.Get("Authorization")) })
		r.creds["c"] = `{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`
		r.good(downloadKind, `{"url": "$URL/x", "credential_id": "c", "headers": {"X-A": "b"}}`, ``, `{"file": {"sha256": "`+digest("Bearer "+nodetest.Canary)+`"}}`)
		if strings.Contains(nodetest.Text(r.details), nodetest.Canary) {
			t.Error("the secret is in the details")
		}
	})
}

func TestFileDownload_GoesOn(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", 4096)
	config := `{"url": "$URL/big", "save_path": "big.txt", "sha256": "` + digest(content) + `"}`
	// attempts downloads until it is done, as the engine would, and counts.
	attempts := func(t *testing.T, r *fileRig, most int) int {
		t.Helper()
		r.execution = "one"
		for n := 1; ; n++ {
			_, err := r.try(t.Context(), downloadKind, config, ``)
			if err == nil {
				return n
			}
			if f := fault.From(err); f.Code != fault.NetworkError || !f.Retryable || n == most {
				t.Fatalf("attempt %d: %v", n, err)
			}
		}
	}
	t.Run("ByRange", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: content, etag: `"v1"`, cut: 20000}
		r := newFileRig(t, b.ServeHTTP)
		if n := attempts(t, r, 6); n != 4 || r.content("big.txt") != content {
			t.Errorf("%d attempts", n)
		}
		if got := fmt.Sprint(b.requests()); got != `[  bytes=20000- "v1" bytes=40000- "v1" bytes=60000- "v1"]` {
			t.Errorf("asked %s", got)
		}
		if got := r.left(); got != "big.txt" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("ChangedMeanwhile", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: strings.Repeat("old ", 20000), etag: `"v1"`, cut: 20000}
		r := newFileRig(t, b.ServeHTTP)
		r.execution = "one"
		if _, err := r.try(t.Context(), downloadKind, config, ``); fault.CodeOf(err) != fault.NetworkError {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.content, b.etag, b.cut = content, `"v2"`, 0
		b.mu.Unlock()
		if n := attempts(t, r, 1); n != 1 || r.content("big.txt") != content {
			t.Error("the two versions were mixed")
		}
	})
	t.Run("WrongRange", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: content, etag: `"v1"`, cut: 20000}
		r := newFileRig(t, b.ServeHTTP)
		r.execution = "one"
		if _, err := r.try(t.Context(), downloadKind, config, ``); fault.CodeOf(err) != fault.NetworkError {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.lie, b.cut = true, 0
		b.mu.Unlock()
		if n := attempts(t, r, 1); n != 1 || r.content("big.txt") != content || len(b.requests()) != 3 {
			t.Errorf("asked %v", b.requests())
		}
	})
	t.Run("NoValidator", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: content, cut: 20000}
		r := newFileRig(t, b.ServeHTTP)
		r.execution = "one"
		if _, err := r.try(t.Context(), downloadKind, config, ``); fault.CodeOf(err) != fault.NetworkError {
			t.Fatal(err)
		}
		if got := r.left(); got != "" {
			t.Errorf("what nobody can go on from is kept: %s", got)
		}
	})
	t.Run("RangesIgnored", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: content, etag: `"v1"`, cut: 20000, ignoreRange: true}
		r := newFileRig(t, b.ServeHTTP)
		r.execution = "one"
		if _, err := r.try(t.Context(), downloadKind, config, ``); fault.CodeOf(err) != fault.NetworkError {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.cut = 0
		b.mu.Unlock()
		if attempts(t, r, 1); r.content("big.txt") != content {
			t.Error("the file is not what was served")
		}
	})
	t.Run("OtherExecution", func(t *testing.T) {
		t.Parallel()
		b := &brittle{content: content, etag: `"v1"`, cut: 20000}
		r := newFileRig(t, b.ServeHTTP)
		r.bad(downloadKind, config, ``, fault.NetworkError, "")
		r.bad(downloadKind, config, ``, fault.NetworkError, "")
		if got := fmt.Sprint(b.requests()); got != `[   ]` {
			t.Errorf("asked %s", got)
		}
	})
	t.Run("Stopped", func(t *testing.T) {
		t.Parallel()
		begun := make(chan struct{})
		r := newFileRig(t, func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.WriteString(w, "drip")
			_ = http.NewResponseController(w).Flush()
			close(begun)
			<-q.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if _, err := r.try(ctx, downloadKind, `{"url": "$URL/x"}`, ``); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

// receiver takes uploads and remembers the last.
type receiver struct {
	mu    sync.Mutex
	got   map[string]string
	taken int
	// respond is asked before the body is read; true: that was all.
	respond func(w http.ResponseWriter, r *http.Request) bool
}

func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.respond != nil && v.respond(w, r) {
		return
	}
	got := map[string]string{"method": r.Method, "type": r.Header.Get("Content-Type"), "length": strconv.FormatInt(r.ContentLength, 10), "auth": r.Header.Get("Authorization")}
	if reader, err := r.MultipartReader(); err == nil {
		part, err := reader.NextPart()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, err := io.ReadAll(part)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		got["field"], got["name"], got["part_type"], got["content"] = part.FormName(), part.FileName(), part.Header.Get("Content-Type"), string(data)
		got["type"] = "multipart"
	} else {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		got["content"] = string(data)
	}
	v.mu.Lock()
	v.got = got
	v.taken++
	v.mu.Unlock()
	w.Header().Set("ETag", `"e1"`)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id": 7}`)
}

func TestFileUpload(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*fileRig, *receiver) {
		v := &receiver{}
		r := newFileRig(t, v.ServeHTTP)
		r.put("docs/a.txt", "hello")
		return r, v
	}
	wantGot := func(t *testing.T, v *receiver, want map[string]string) {
		t.Helper()
		v.mu.Lock()
		defer v.mu.Unlock()
		for k, w := range want {
			if v.got[k] != w {
				t.Errorf("%s is %q, want %q", k, v.got[k], w)
			}
		}
	}
	t.Run("Form", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		r.good(uploadKind, `{"url": "$URL/up"}`, `{"file": "docs/a.txt"}`,
			`{"url": "`+r.server.URL+`/up", "status_code": 200, "size": 5, "sha256": "`+hello+`", "etag": "\"e1\"", "response": {"id": 7}}`)
		wantGot(t, v, map[string]string{"method": "POST", "field": "file", "name": "a.txt", "part_type": "text/plain; charset=utf-8", "content": "hello"})
	})
	t.Run("Put", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		r.good(uploadKind, `{"url": "$URL/up", "method": "PUT", "file": {"base64": "aGVsbG8=", "name": "x.png"}}`, `{"file": "other"}`, `{"size": 5, "sha256": "`+hello+`"}`)
		wantGot(t, v, map[string]string{"method": "PUT", "type": "image/png", "length": "5", "content": "hello"})
	})
	t.Run("Blob", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		read := r.good(fileOp, `{"operation": "read", "path": "docs/a.txt"}`, ``, `{}`)
		r.good(uploadKind, `{"url": "$URL/up", "field_name": "the \"doc\""}`, `{"file": `+nodetest.Text(read["file"])+`}`, `{"size": 5}`)
		wantGot(t, v, map[string]string{"name": "a.txt", "content": "hello"})
	})
	t.Run("Empty", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		r.put("empty.bin", "")
		r.good(uploadKind, `{"url": "$URL/up", "method": "PUT"}`, `{"file": "empty.bin"}`, `{"size": 0, "sha256": "`+digest("")+`"}`)
		wantGot(t, v, map[string]string{"content": "", "length": "0"})
	})
	t.Run("Redirected", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		v.respond = func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path == "/up" {
				http.Redirect(w, q, "/there", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}
		r.good(uploadKind, `{"url": "$URL/up"}`, `{"file": "docs/a.txt"}`, `{"url": "`+r.server.URL+`/there", "sha256": "`+hello+`"}`)
		wantGot(t, v, map[string]string{"content": "hello"})
	})
	t.Run("Refuses", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		for _, c := range []struct {
			config, input string
			code          fault.Code
			part          string
		}{
			{`{"url": "$URL/up", "max_bytes": 4}`, `{"file": "docs/a.txt"}`, fault.TooLarge, "max_bytes"},
			{`{"url": "$URL/up", "max_bytes": 4}`, `{"file": {"base64": "aGVsbG8=", "name": "x"}}`, fault.TooLarge, "max_bytes"},
			{`{"url": "$URL/up"}`, `{"file": "../secret"}`, fault.ForbiddenPath, ""},
			{`{"url": "$URL/up"}`, `{"file": "gone"}`, fault.NotFound, ""},
			{`{"url": "$URL/up"}`, `{"file": {"blob": "nope"}}`, fault.NotFound, ""},
			{`{"url": "$URL/up"}`, `{"file": 7}`, fault.InvalidInput, "not a file"},
			{`{"url": "$URL/up"}`, `{"file": {"base64": "%"}}`, fault.InvalidInput, "base64"},
			{`{"url": "$URL/up"}`, `{}`, fault.ParameterMissing, `"file"`},
			{`{}`, `{"file": "docs/a.txt"}`, fault.InvalidConfig, `"url"`},
			{`{"url": "$URL/up", "headers": {"Content-Length": "1"}}`, `{"file": "docs/a.txt"}`, fault.InvalidConfig, "Content-Length"},
			{`{"url": "http://127.0.0.2/up"}`, `{"file": "docs/a.txt"}`, fault.BlockedAddress, ""},
			{`{"target": "s3", "bucket": "b", "key": "k"}`, `{"file": "docs/a.txt"}`, fault.InvalidConfig, "s3"},
			{`{"target": "gcs", "bucket": "b"}`, `{"file": "docs/a.txt"}`, fault.InvalidConfig, "gcs"},
			{`{"target": "azure_blob", "bucket": "b"}`, `{"file": "docs/a.txt"}`, fault.InvalidConfig, "azure_blob"},
		} {
			r.bad(uploadKind, c.config, c.input, c.code, c.part)
		}
		if v.taken != 0 {
			t.Errorf("%d arrived", v.taken)
		}
	})
	t.Run("Fates", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		v.respond = func(w http.ResponseWriter, q *http.Request) bool {
			switch q.URL.Path {
			case "/drop":
				panic(http.ErrAbortHandler)
			case "/busy":
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				w.WriteHeader(http.StatusInternalServerError)
			}
			return true
		}
		in := `{"file": "docs/a.txt"}`
		r.bad(uploadKind, `{"url": "$URL/drop"}`, in, fault.OutcomeUnknown, "not known")
		if f := r.bad(uploadKind, `{"url": "$URL/drop", "method": "PUT"}`, in, fault.NetworkError, ""); !f.Retryable {
			t.Error("a PUT may be repeated")
		}
		if f := r.bad(uploadKind, `{"url": "$URL/sick"}`, in, fault.RemoteError, "500"); f.Retryable {
			t.Error("an answered POST is not repeated")
		}
		_, err := r.try(t.Context(), uploadKind, strings.ReplaceAll(`{"url": "$URL/busy"}`, "$URL", r.server.URL), in)
		f, ok := errors.AsType[*node.Failure](err)
		if !ok || f.RetryAfter.Seconds() != 7 || !fault.From(err).Retryable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AnsweredEarly", func(t *testing.T) {
		t.Parallel()
		r, v := setup(t)
		r.put("big.bin", strings.Repeat("x", 4<<20))
		v.respond = func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "thanks")
			return true
		}
		got, err := r.try(t.Context(), uploadKind, `{"url": "$URL/up", "method": "PUT"}`, `{"file": "big.bin"}`)
		// Either the answer wins or the broken connection: the sum must be right in the one case, the fate in the other.
		if err == nil && got["sha256"] != digest(strings.Repeat("x", 4<<20)) || err != nil && !fault.From(err).Retryable {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// zeros is a stored file of any size that nobody has to keep.
type zeros struct {
	size int64
	read atomic.Int64
}

func (z *zeros) Keep(context.Context, io.Reader) (string, int64, error) {
	return "", 0, errors.New("nothing is kept here")
}

func (z *zeros) Open(context.Context, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(io.LimitReader(&counting{z}, z.size)), z.size, nil
}

type counting struct{ z *zeros }

func (c *counting) Read(p []byte) (int, error) {
	c.z.read.Add(int64(len(p)))
	return len(p), nil
}

// sink takes an upload as it comes and notes how far the sender is ahead of what has arrived.
func sink(z *zeros, ahead *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 64<<10)
		var received int64
		for {
			n, err := r.Body.Read(buffer)
			received += int64(n)
			ahead.Store(max(ahead.Load(), z.read.Load()-received))
			if err != nil {
				break
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"received": %d}`, received)
	}
}

// TestFileUpload_Streams sends a gigabyte that is nowhere: what is in memory at once is what the sender is ahead.
func TestFileUpload_Streams(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	z := &zeros{size: size}
	var ahead atomic.Int64
	r := newFileRig(t, sink(z, &ahead))
	call := nodetest.NewCall(t, `{"url": "`+r.server.URL+`", "method": "PUT", "max_bytes": 2000000000}`, `{"file": {"blob": "big"}}`)
	call.Workspace, call.Files = "acme", z
	out, err := r.kinds[uploadKind].Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out.(node.Done)["result"]); !strings.Contains(got, `"received":1073741824`) {
		t.Errorf("got %s", got)
	}
	if ahead.Load() > 32<<20 {
		t.Errorf("%d bytes were read before they were sent", ahead.Load())
	}
}

func BenchmarkFileUpload(b *testing.B) {
	const size = 1 << 30
	z := &zeros{size: size}
	var ahead atomic.Int64
	server := httptest.NewServer(sink(z, &ahead))
	defer server.Close()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		b.Fatal(err)
	}
	client := outbound.New(outbound.Options{Allow: allow})
	defer client.Close()
	var kind node.Kind
	for _, k := range file.Kinds(file.Deps{HTTP: client}) {
		if k.About.Name == uploadKind {
			kind = k
		}
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		z.read.Store(0)
		call := nodetest.NewCall(b, `{"url": "`+server.URL+`", "method": "PUT", "max_bytes": 2000000000}`, `{"file": {"blob": "big"}}`)
		call.Files = z
		if _, err := kind.Run(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
