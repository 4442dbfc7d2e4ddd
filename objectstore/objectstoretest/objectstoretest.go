// Package objectstoretest is the conformance suite of object stores: whatever implements objectstore.Store passes it
// against a local server that speaks the service's protocol. Only tests import it.
package objectstoretest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

// Service is a store and the local server behind it.
type Service struct {
	Store      objectstore.Store
	Credential credential.Opened
	Handler    http.Handler
	// Bucket exists, and no other does.
	Bucket string
	// Meta is the prefix of metadata, Header one more header that the service knows.
	Meta   string
	Header http.Header
	// Object returns what the server has.
	Object func(key string) (Stored, bool)
	// Pending is how many uploads were begun and neither finished nor given up; nil: the service forgets them by itself.
	Pending func() int
	// Refuse answers like the service does: "denied", "busy", "broken", "damaged".
	Refuse func(w http.ResponseWriter, r *http.Request, how string)
	// Secrets may appear nowhere.
	Secrets func() []string
}

// Stored is an object that a server has.
type Stored struct {
	Size                      int64
	SHA256                    string
	ContentType, CacheControl string
	Meta                      map[string]string
	Extra                     string // the value of Service.Header
}

// Rig is a running service.
type Rig struct {
	Service
	URL string
	t   testing.TB

	mu        sync.Mutex
	interfere func(w http.ResponseWriter, r *http.Request) bool
	requests  int
	received  atomic.Int64
}

// Setup makes a service whose server will be at an address.
type Setup func(t testing.TB, client *outbound.Client, base string) Service

// Client is a guarded client that reaches this machine.
func Client(t testing.TB) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Options{Allow: allow})
	t.Cleanup(client.Close)
	return client
}

// New starts a service.
func New(t testing.TB, setup Setup) *Rig {
	t.Helper()
	rig := &Rig{t: t}
	server := httptest.NewServer(rig)
	t.Cleanup(server.Close)
	rig.URL = server.URL
	rig.Service = setup(t, Client(t), server.URL)
	return rig
}

// ServeHTTP lets a test interfere before the service sees a request.
func (r *Rig) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	r.requests++
	interfere := r.interfere
	r.mu.Unlock()
	q.Body = &counted{q.Body, &r.received}
	if interfere != nil && interfere(w, q) {
		return
	}
	r.Handler.ServeHTTP(w, q)
}

// Interfere sets who sees requests first; true: that was all.
func (r *Rig) Interfere(f func(w http.ResponseWriter, q *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interfere = f
}

// Requests is how many there were.
func (r *Rig) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Pattern is content that nobody has to keep: every byte follows from its place.
type Pattern struct {
	Size   int64
	Opened atomic.Int32
	Read   atomic.Int64 // bytes, of the last opening
	Salt   atomic.Int64 // changes the content
	Short  atomic.Int64 // how many bytes are missing at the end
}

// Content is what a store reads.
func (p *Pattern) Content() objectstore.Content {
	return objectstore.Content{Size: p.Size, Open: func() (io.ReadCloser, error) {
		p.Opened.Add(1)
		p.Read.Store(0)
		return io.NopCloser(io.LimitReader(&patternReader{p: p}, p.Size-p.Short.Load())), nil
	}}
}

// SHA256 is that of the content.
func (p *Pattern) SHA256() string {
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(&patternReader{p: &Pattern{}}, p.Size)); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// block is after how many bytes the content begins anew, but for the number that each block begins with.
const block = 64 << 10

// patternReader copies whole stretches, since the race detector makes single bytes dear.
type patternReader struct {
	p     *Pattern
	at    int64
	bytes []byte // of one block
}

func (r *patternReader) Read(b []byte) (int, error) {
	if r.bytes == nil {
		r.bytes = make([]byte, block)
		for i := range r.bytes {
			r.bytes[i] = byte(i) ^ byte(i>>8)
		}
	}
	within := r.at % block
	binary.BigEndian.PutUint64(r.bytes, uint64(r.at/block+r.p.Salt.Load()))
	n := copy(b, r.bytes[within:])
	r.at += int64(n)
	r.p.Read.Add(int64(n))
	return n, nil
}

// Object makes an object of content.
func (r *Rig) Object(key string, p *Pattern) objectstore.Object {
	return objectstore.Object{
		Bucket: r.Bucket, Key: key, ContentType: "text/plain", Content: p.Content(), Timeout: time.Minute, Clock: time.Now,
	}
}

// Put puts an object that must arrive as it is.
func (r *Rig) Put(o objectstore.Object, p *Pattern) objectstore.Receipt {
	r.t.Helper()
	got, err := r.Store.Put(r.t.Context(), r.Credential, o)
	if err != nil {
		r.t.Fatalf("put %q: %v (%s)", o.Key, err, fault.From(err).Detail)
	}
	stored, ok := r.Service.Object(o.Key)
	if want := p.SHA256(); !ok || stored.Size != p.Size || stored.SHA256 != want || got.SHA256 != want {
		r.t.Fatalf("put %q: the server has %+v (%v), the receipt %+v, want %d bytes with %s", o.Key, stored, ok, got, p.Size, want)
	}
	if got.Status/100 != 2 || got.ETag == "" || got.Response[0] != '{' || !strings.HasPrefix(got.URL, r.URL) || strings.Contains(got.URL, "?") {
		r.t.Errorf("put %q: receipt %+v with response %s", o.Key, got, got.Response)
	}
	return got
}

// Refused puts an object that must fail with a code, without telling a secret.
func (r *Rig) Refused(ctx context.Context, o objectstore.Object, code fault.Code, part string) *fault.Error {
	r.t.Helper()
	_, err := r.Store.Put(ctx, r.Credential, o)
	f := fault.From(err)
	if err == nil || f.Code != code || !strings.Contains(f.Message, part) {
		r.t.Fatalf("got %v, want %s with %q", err, code, part)
	}
	for _, secret := range r.Secrets() {
		if text := err.Error() + f.Message + f.Detail + fmt.Sprint(f.Details); strings.Contains(text, secret) {
			r.t.Errorf("the error tells %q: %s", secret, text)
		}
	}
	return f
}

const mib = 1 << 20

// Run runs the suite.
func Run(t *testing.T, setup Setup) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *Rig){
		"Sizes": testSizes, "Keys": testKeys, "Attributes": testAttributes, "Overwrites": testOverwrites, "Refusals": testRefusals,
		"MissingBucket": testMissingBucket,
		"Cut":           testCut, "CutThenAgain": testCutThenAgain, "Changed": testChanged, "Shorter": testShorter, "Canceled": testCanceled,
		"Streams": testStreams, "NotAServer": testNotAServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, New(t, setup))
		})
	}
	t.Run("Blocked", func(t *testing.T) {
		t.Parallel()
		client := outbound.New(outbound.Options{})
		t.Cleanup(client.Close)
		rig := &Rig{t: t, Service: setup(t, client, "http://127.0.0.1:1")}
		rig.Refused(t.Context(), rig.Object("k", &Pattern{Size: 3}), fault.BlockedAddress, "")
	})
}

func testSizes(t *testing.T, r *Rig) {
	for _, size := range []int64{0, 1, mib, 8 * mib, 8*mib + 1, 16 * mib, 20*mib + 7} {
		p := &Pattern{Size: size}
		r.Put(r.Object(fmt.Sprint("size/", size), p), p)
		if n := p.Opened.Load(); n > 2 {
			t.Errorf("%d bytes were opened %d times, not once to measure and once to send", size, n)
		}
	}
	if r.Pending != nil && r.Pending() != 0 {
		t.Errorf("%d uploads are left over", r.Pending())
	}
}

func testKeys(_ *testing.T, r *Rig) {
	for _, key := range []string{"a", "dir/sub/b.txt", "with space+plus&amp?query#hash", "报告/二月.pdf", `"quotes"'<xml>%41%2F`, "a//b", strings.Repeat("x", 1024)} {
		p := &Pattern{Size: 5}
		r.Put(r.Object(key, p), p)
	}
	p := &Pattern{Size: 9 * mib}
	r.Put(r.Object("große datei+%20/ü.bin", p), p)
}

func testAttributes(t *testing.T, r *Rig) {
	for _, size := range []int64{10, 9 * mib} {
		p := &Pattern{Size: size}
		o := r.Object("attributes", p)
		o.Header = http.Header{"Cache-Control": {"max-age=60"}, r.Meta + "Owner": {"ada  lovelace"}}
		for name, values := range r.Header {
			o.Header[name] = values
		}
		r.Put(o, p)
		got, _ := r.Service.Object(o.Key)
		if got.ContentType != "text/plain" || got.CacheControl != "max-age=60" || got.Meta["owner"] == "" || got.Extra == "" {
			t.Errorf("%d bytes: %+v", size, got)
		}
	}
	before := r.Requests()
	for name, value := range map[string]string{"X-Other": "1", "Authorization": "mine", r.Meta: "no name", r.Meta + "Name": "名字"} {
		o := r.Object("k", &Pattern{Size: 1})
		o.Header = http.Header{name: {value}}
		r.Refused(t.Context(), o, fault.InvalidConfig, "header")
	}
	if r.Requests() != before {
		t.Error("something was sent")
	}
}

func testOverwrites(t *testing.T, r *Rig) {
	p := &Pattern{Size: 9 * mib}
	first := r.Put(r.Object("k", p), p)
	again := r.Put(r.Object("k", p), p)
	if first.URL != again.URL || first.SHA256 != again.SHA256 {
		t.Errorf("%+v, then %+v", first, again)
	}
	p = &Pattern{Size: 4}
	r.Put(r.Object("k", p), p)
}

// carries says that a request has some of the object in it.
func carries(q *http.Request) bool { return q.ContentLength > 2048 }

func testRefusals(t *testing.T, r *Rig) {
	for _, c := range []struct {
		how        string
		code       fault.Code
		retryable  bool
		retryAfter time.Duration
	}{
		{"denied", fault.CredentialInvalid, false, 0},
		{"busy", fault.RateLimited, true, 7 * time.Second},
		{"broken", fault.RemoteError, true, 0},
		{"damaged", fault.NetworkError, true, 0},
	} {
		for _, size := range []int64{5000, 20 * mib} {
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !carries(q) {
					return false
				}
				if _, err := io.Copy(io.Discard, q.Body); err != nil {
					t.Log("the client is gone:", err)
				}
				if c.how == "busy" {
					w.Header().Set("Retry-After", "7")
				}
				r.Refuse(w, q, c.how)
				return true
			})
			_, err := r.Store.Put(t.Context(), r.Credential, r.Object("k", &Pattern{Size: size}))
			e, ok := errors.AsType[*outbound.Error](err)
			if !ok || e.Fault.Code != c.code || e.Fault.Retryable != c.retryable || e.RetryAfter != c.retryAfter {
				t.Errorf("%s with %d bytes: got %#v", c.how, size, err)
			}
			r.Refused(t.Context(), r.Object("k", &Pattern{Size: size}), c.code, "host")
		}
	}
	if _, ok := r.Service.Object("k"); ok {
		t.Error("there is an object")
	}
	if r.Pending != nil && r.Pending() != 0 {
		t.Errorf("%d uploads are left over", r.Pending())
	}
}

func testMissingBucket(t *testing.T, r *Rig) {
	for _, size := range []int64{5, 9 * mib} {
		p := &Pattern{Size: size}
		o := r.Object("k", p)
		o.Bucket = "no-such-bucket"
		r.Refused(t.Context(), o, fault.NotFound, "correct its name")
	}
	for _, bucket := range []string{"", "a/b", "a?b", "evil.example.com/", "..", "a b", "ümlaut"} {
		o := r.Object("k", &Pattern{Size: 1})
		o.Bucket = bucket
		r.Refused(t.Context(), o, fault.InvalidConfig, "not the name")
	}
}

// cut closes the connection when some of a request's content has arrived, every time it is true.
func cut(r *Rig, when func() bool) {
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		if !carries(q) || !when() {
			return false
		}
		if _, err := io.CopyN(io.Discard, q.Body, 1500); err != nil {
			r.t.Log("less than that has arrived:", err)
		}
		panic(http.ErrAbortHandler)
	})
}

func testCut(t *testing.T, r *Rig) {
	cut(r, func() bool { return true })
	for _, size := range []int64{3 * mib, 20 * mib} {
		f := r.Refused(t.Context(), r.Object("k", &Pattern{Size: size}), fault.NetworkError, "host")
		if !f.Retryable {
			t.Errorf("%v may be repeated", f)
		}
	}
	if _, ok := r.Service.Object("k"); ok {
		t.Error("there is an object")
	}
	if r.Pending != nil && r.Pending() != 0 {
		t.Errorf("%d uploads are left over", r.Pending())
	}
}

// testCutThenAgain breaks the connection in the second part of three; the next attempt, a whole one, brings everything.
func testCutThenAgain(t *testing.T, r *Rig) {
	var seen atomic.Int32
	cut(r, func() bool {
		n := seen.Add(1)
		return n == 1 && r.Pending == nil || n == 2 && r.Pending != nil
	})
	p := &Pattern{Size: 20 * mib}
	r.Refused(t.Context(), r.Object("k", p), fault.NetworkError, "")
	if _, ok := r.Service.Object("k"); ok {
		t.Error("there is an object")
	}
	r.Interfere(nil)
	r.Put(r.Object("k", p), p)
	if r.Pending != nil && r.Pending() != 0 {
		t.Errorf("%d uploads are left over", r.Pending())
	}
}

// testChanged changes the content between measuring and sending: the service must find out.
func testChanged(t *testing.T, r *Rig) {
	for _, size := range []int64{500, 9 * mib} {
		p := &Pattern{Size: size}
		o := r.Object("k", p)
		open := o.Content.Open
		o.Content.Open = func() (io.ReadCloser, error) {
			if p.Opened.Load() > 0 {
				p.Salt.Store(1)
			}
			return open()
		}
		if f := r.Refused(t.Context(), o, fault.NetworkError, "changed"); !f.Retryable {
			t.Errorf("%v may be repeated", f)
		}
		if _, ok := r.Service.Object("k"); ok {
			t.Error("there is an object")
		}
	}
}

func testShorter(t *testing.T, r *Rig) {
	sizes := []int64{500, 9 * mib}
	for _, size := range sizes { // found while it is measured
		p := &Pattern{Size: size}
		p.Short.Store(1)
		r.Refused(t.Context(), r.Object("k", p), fault.Conflict, "shorter")
	}
	if r.Requests() != 0 {
		t.Error("something was sent")
	}
	for _, size := range sizes { // found while it is sent
		p := &Pattern{Size: size}
		o := r.Object("k", p)
		open := o.Content.Open
		o.Content.Open = func() (io.ReadCloser, error) {
			p.Short.Store(int64(p.Opened.Load()))
			return open()
		}
		r.Refused(t.Context(), o, fault.Conflict, "shorter")
		if _, ok := r.Service.Object("k"); ok {
			t.Error("there is an object")
		}
	}
}

func testCanceled(t *testing.T, r *Rig) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cut := make(chan struct{})
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		if !carries(q) {
			return false
		}
		cancel()
		<-cut
		panic(http.ErrAbortHandler)
	})
	defer close(cut)
	r.Refused(ctx, r.Object("k", &Pattern{Size: 9 * mib}), fault.Canceled, "stopped")
	if r.Pending != nil && r.Pending() != 0 {
		t.Errorf("%d uploads are left over", r.Pending())
	}
	r.Refused(ctx, r.Object("k", &Pattern{Size: 9 * mib}), fault.Canceled, "stopped")
}

// testStreams sends 100 MB that are nowhere: what is in memory at once is what the sender is ahead.
func testStreams(t *testing.T, r *Rig) {
	p := &Pattern{Size: 100 * mib}
	var ahead atomic.Int64
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		q.Body = &watched{q.Body, func() {
			if p.Opened.Load() > 1 { // the first opening is for measuring
				ahead.Store(max(ahead.Load(), p.Read.Load()-r.received.Load()))
			}
		}}
		return false
	})
	r.Put(r.Object("k", p), p)
	t.Logf("the sender was %d KiB ahead", ahead.Load()>>10)
	if n := ahead.Load(); n > 16*mib || n == 0 {
		t.Errorf("%d bytes were read before they were sent", n)
	}
}

type watched struct {
	io.ReadCloser
	look func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.look()
	return n, err
}

// testNotAServer answers with what is not the service's language.
func testNotAServer(t *testing.T, r *Rig) {
	for status, code := range map[int]fault.Code{502: fault.RemoteError, 403: fault.CredentialInvalid, 404: fault.NotFound, 301: "",
		429: fault.RateLimited, 400: fault.RemoteRejected} {
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Location", r.URL+"/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><body>"+q.Header.Get("Authorization")+" "+q.URL.String()+"</body>")
			return true
		})
		for _, size := range []int64{5, 9 * mib} {
			before := r.Requests()
			_, err := r.Store.Put(t.Context(), r.Credential, r.Object("k", &Pattern{Size: size}))
			if f := fault.From(err); err == nil || code != "" && f.Code != code {
				t.Errorf("%d with %d bytes: got %v, want %s", status, size, err, code)
			}
			if n := r.Requests() - before; status == 301 && n > 1 {
				t.Errorf("%d requests: a redirect was followed", n)
			}
			for _, secret := range r.Secrets() {
				if strings.Contains(err.Error()+fault.From(err).Detail, secret) {
					t.Errorf("the error tells %q: %v", secret, err)
				}
			}
		}
	}
}
