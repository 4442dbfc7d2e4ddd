package azure

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
)

// fakeAzure is a storage account, a Service Bus and functions at one address. It recomputes every signature and refuses what the real
// services refuse.
type fakeAzure struct {
	t     testing.TB
	blobs *fakeBlobs
	login *fakeLogin

	mu       sync.Mutex
	objects  map[string]fakeBlob
	messages []string
	puts     int
}

type fakeBlob struct {
	kind, etag string
	data       []byte
}

const (
	blobCount  = 7
	busKeyName = "sender"
	busKey     = "bus-key-canary-0123456789="
	funcKey    = "function-key-canary"
)

func newFakeAzure(t testing.TB, login *fakeLogin) *fakeAzure {
	key, err := base64.StdEncoding.DecodeString(testKey())
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeAzure{t: t, login: login, blobs: &fakeBlobs{account: testAccount, key: key, bearers: login.knows}, objects: map[string]fakeBlob{}}
	for n := range blobCount {
		f.objects[fmt.Sprintf("list/%d", n)] = fakeBlob{"text/plain", "0x1", []byte("x")}
	}
	f.objects["in/a b.txt"] = fakeBlob{"text/plain", "0x5", []byte("hello")}
	return f
}

// ServeHTTP implements [http.Handler].
func (f *fakeAzure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		f.send(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/"):
		f.function(w, r)
	case f.blobs.genuine(r) == "":
		status := http.StatusForbidden
		if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			status = http.StatusUnauthorized
		}
		f.blobs.refuse(w, status, "AuthenticationFailed", "Server failed to authenticate the request.")
	case !strings.HasPrefix(r.URL.Path, "/box-1"):
		f.blobs.refuse(w, 404, "ContainerNotFound", "The specified container does not exist.")
	case r.URL.Query().Get("comp") == "list":
		f.list(w, r)
	default:
		f.blob(w, r, strings.TrimPrefix(r.URL.Path, "/box-1/"))
	}
}

func (f *fakeAzure) blob(w http.ResponseWriter, r *http.Request, name string) {
	b, there := f.objects[name]
	switch r.Method {
	case http.MethodPut:
		if match := r.Header.Get("If-Match"); match != "" && match != b.etag {
			f.blobs.refuse(w, 412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
			return
		}
		data, err := io.ReadAll(r.Body)
		sum := md5.Sum(data)
		if err != nil || r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) {
			f.blobs.refuse(w, 400, "Md5Mismatch", "The MD5 value did not match.")
			return
		}
		f.puts++
		b = fakeBlob{r.Header.Get("X-Ms-Blob-Content-Type"), fmt.Sprintf("0xN%d", f.puts), data}
		f.objects[name] = b
		w.Header().Set("ETag", b.etag)
		w.WriteHeader(http.StatusCreated)
	case http.MethodGet, http.MethodHead:
		if !there {
			f.blobs.refuse(w, 404, "BlobNotFound", "The specified blob does not exist.")
			return
		}
		sum := md5.Sum(b.data)
		w.Header().Set("ETag", b.etag)
		w.Header().Set("Content-Type", b.kind)
		w.Header().Set("Content-Md5", base64.StdEncoding.EncodeToString(sum[:]))
		w.Header().Set("Last-Modified", "Thu, 31 Jan 2030 09:00:00 GMT")
		if r.Method == http.MethodGet {
			_, _ = w.Write(b.data) // the client may have left
		}
	}
}

// list hands out at most three blobs at once.
func (f *fakeAzure) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.objects)), func(name string) bool { return !strings.HasPrefix(name, q.Get("prefix")) })
	if marker := q.Get("marker"); marker != "" {
		at := slices.Index(names, strings.TrimPrefix(marker, "2!@/"))
		if at < 0 {
			f.blobs.refuse(w, 400, "OutOfRangeInput", "One of the request inputs is out of range.")
			return
		}
		names = names[at+1:]
	}
	page, more := actiontest.Part(names, 0, min(3, actiontest.Number(r, "maxresults", 5000)))
	type properties struct {
		Length int    `xml:"Content-Length"`
		Kind   string `xml:"Content-Type"`
		Etag   string
	}
	type entry struct {
		Name       string
		Properties properties
	}
	answer := struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct{ Blob []entry }
		Next    string `xml:"NextMarker"`
	}{}
	for _, name := range page {
		b := f.objects[name]
		answer.Blobs.Blob = append(answer.Blobs.Blob, entry{name, properties{len(b.data), b.kind, b.etag}})
	}
	if more {
		answer.Next = "2!@/" + page[len(page)-1]
	}
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(answer); err != nil {
		f.t.Error(err)
	}
}

// signed recomputes the signature of a call of the Service Bus.
func (f *fakeAzure) signed(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "SharedAccessSignature ")
	if !ok {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return ok && f.login.knows(token)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, "&") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	mac := hmac.New(sha256.New, []byte(busKey))
	_, _ = mac.Write([]byte(parts["sr"] + "\n" + parts["se"]))
	resource, err := url.QueryUnescape(parts["sr"])
	until, number := strconv.ParseInt(parts["se"], 10, 64)
	return err == nil && number == nil && until > time.Now().Unix() && parts["skn"] == busKeyName && strings.HasPrefix("http://"+r.Host+r.RequestURI, resource+"/") &&
		parts["sig"] == url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func (f *fakeAzure) send(w http.ResponseWriter, r *http.Request) {
	id := gjson.Get(r.Header.Get("BrokerProperties"), "MessageId").Str
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	switch {
	case !f.signed(r):
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, "<Error><Code>401</Code><Detail>InvalidSignature: The token has an invalid signature.</Detail></Error>")
	case r.URL.Path != "/orders/messages" && r.URL.Path != "/news/messages":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>404</Code><Detail>The messaging entity could not be found.</Detail></Error>")
	case id == "" || len(id) > 128 || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusBadRequest)
	default:
		f.messages = append(f.messages, string(body))
		w.WriteHeader(http.StatusCreated)
	}
}

func (f *fakeAzure) function(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.Header.Get("X-Functions-Key") != funcKey && !(ok && f.login.knows(token)) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	actiontest.Write(f.t, w, 202, map[string]any{"method": r.Method, "query": r.URL.RawQuery, "given": string(body), "token": r.Header.Get("Authorization")})
}
