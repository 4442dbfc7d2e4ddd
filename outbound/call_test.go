package outbound

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/fault"
)

func TestClient_Do_Redirects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status               int
		method, want, change string
	}{
		{301, "GET", "GET", ""}, {302, "HEAD", "HEAD", ""}, {301, "POST", "GET", ""}, {302, "POST", "GET", ""}, {303, "POST", "GET", ""}, {303, "PUT", "GET", ""},
		{303, "HEAD", "HEAD", ""}, {302, "PUT", "PUT", "x"}, {301, "PATCH", "PATCH", "x"}, {307, "POST", "POST", "x"}, {308, "POST", "POST", "x"}, {308, "DELETE", "DELETE", "x"},
	} {
		t.Run(fmt.Sprintf("%d_%s", c.status, c.method), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var got, contentType string
			w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					http.Redirect(rw, r, "/next?a=1", c.status)
					return
				}
				body, err := io.ReadAll(r.Body)
				got, contentType = fmt.Sprint(r.Method, " ", string(body), err, r.Header.Get("Referer")), r.Header.Get("Content-Type")
			})
			r := get(t, "http://a.example/")
			r.Method = c.method
			if c.method != "GET" && c.method != "HEAD" {
				r.Body, r.Header = []byte("x"), http.Header{"Content-Type": {"text/plain"}}
			}
			response, _ := answer(t, w.client(Options{}), r)
			if want := c.want + " " + c.change + "<nil>"; got != want || (contentType != "") != (c.change != "") {
				t.Errorf("after %d the service got %q (%q), want %q", c.status, got, contentType, want)
			}
			if len(response.Hops) != 1 || response.Hops[0] != (Hop{c.status, "http://a.example/next?a=1"}) || response.URL.Path != "/next" {
				t.Errorf("hops %v, url %s", response.Hops, response.URL)
			}
		})
	}
}

func TestClient_Do_RedirectLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/nowhere" {
			rw.WriteHeader(http.StatusFound)
			return
		}
		http.Redirect(rw, r, "/again", http.StatusFound)
	})
	c := w.client(Options{})
	e := failure(t, c, get(t, "http://a.example/"))
	wantFailure(t, e, fault.RemoteRejected, Answered)
	r := get(t, "http://a.example/")
	r.Redirects = 0
	wantFailure(t, failure(t, c, r), fault.RemoteRejected, Answered)
	r.Redirects = NoFollow
	if response, _ := answer(t, c, r); response.Status != http.StatusFound || response.Hops != nil {
		t.Errorf("not following: %d, %v", response.Status, response.Hops)
	}
	if response, _ := answer(t, c, get(t, "http://a.example/nowhere")); response.Status != http.StatusFound {
		t.Errorf("a redirect to nowhere: %d", response.Status)
	}
}

func TestClient_Do_RedirectToBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["inner.example"] = func() []string { return []string{"10.0.0.1"} }
	var to atomic.Value
	w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", to.Load().(string))
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	c := w.client(Options{})
	for _, target := range []string{"http://127.0.0.1/", "http://169.254.169.254/latest", "http://[::1]/", "http://2130706433/", "http://inner.example/", "file:///etc/passwd", "gopher://a.example/", "//10.0.0.1/x"} {
		to.Store(target)
		if e := failure(t, c, get(t, "http://a.example/")); e.Fault.Code != fault.BlockedAddress {
			t.Errorf("%s: %v", target, e)
		}
		if _, err := c.HTTPClient().Get("http://a.example/"); fault.CodeOf(err) != fault.BlockedAddress {
			t.Errorf("plain, %s: %v", target, err)
		}
	}
	to.Store("http://u:hunter2@a.example/")
	if e := failure(t, c, get(t, "http://a.example/")); e.Fault.Code != fault.InvalidInput || strings.Contains(e.Error(), "hunter2") {
		t.Errorf("user name in a redirect: %v", e)
	}
	for _, address := range w.dials() {
		if address != "93.184.216.34" {
			t.Errorf("dialled %s", address)
		}
	}
}

// secrets make a call that carries every sort of secret and return what each server saw of them.
func TestClient_Do_SecretsStayAtHome(t *testing.T) {
	t.Parallel()
	const canary = "c4nary-s3cret"
	w := newWorld(t)
	seen := make(chan string, 10)
	handler := func(rw http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Custom", "X-Secret"} {
			if r.Header.Get(name) != "" {
				b.WriteString(name + ";")
			}
		}
		seen <- fmt.Sprintf("%s %s%s %s%s", r.Method, r.Host, r.URL.RequestURI(), b.String(), r.Header.Get("Idempotency-Key"))
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(rw, r, to, http.StatusTemporaryRedirect)
		}
	}
	w.serve("a.example", "93.184.216.34", handler)
	w.serve("b.example", "93.184.216.35", handler)
	c := w.client(Options{})
	request := func(to string) Request {
		r := get(t, "http://a.example/?to="+url.QueryEscape(to))
		r.Header = http.Header{"Authorization": {"mine"}, "Cookie": {"a=b"}, "X-Custom": {"1"}, "X-Api-Key": {"k"}, "Idempotency-Key": {"i"}}
		r.Portable = []string{"idempotency-key"}
		r.Secret = &Secret{Header: http.Header{"X-Secret": {"Token " + canary}}, Query: url.Values{"key": {canary}}}
		return r
	}
	for _, test := range []struct {
		name, to string
		want     []string
	}{
		{"SameOrigin", "/x", []string{"GET a.example/x?key=" + canary + " Authorization;Cookie;X-Api-Key;X-Custom;X-Secret;i"}},
		{"SameOriginEchoed", "/x?key=" + canary, []string{"GET a.example/x?key=" + canary + " Authorization;Cookie;X-Api-Key;X-Custom;X-Secret;i"}},
		{"OtherHost", "http://b.example/x", []string{"GET b.example/x i"}},
		{"OtherPort", "http://a.example:8080/x", []string{"GET a.example:8080/x i"}},
		{"OtherHostEchoed", "http://b.example/x?a=1&key=" + canary + "&other=Token+" + canary + "&bare=" + canary, []string{"GET b.example/x?a=1 i"}},
		{"ThereAndBack", "http://b.example/?to=" + url.QueryEscape("http://a.example/y?key=1"), []string{
			"GET b.example/?to=" + url.QueryEscape("http://a.example/y?key=1") + " i", "GET a.example/y i",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, _ := answer(t, c, request(test.to))
			if first := <-seen; !strings.Contains(first, "Authorization;Cookie;X-Api-Key;X-Custom;X-Secret;i") || !strings.Contains(first, "key="+canary) {
				t.Errorf("at home the service saw %q", first)
			}
			for _, want := range test.want {
				if got := <-seen; got != want {
					t.Errorf("the service saw %q, want %q", got, want)
				}
			}
			if text := response.URL.String() + fmt.Sprint(response.Hops); strings.Contains(text, canary) {
				t.Errorf("the response shows the secret: %s", text)
			}
			if want := !strings.HasPrefix(test.name, "SameOrigin"); response.Foreign != want {
				t.Errorf("foreign is %v", response.Foreign)
			}
		})
	}
	t.Run("Page", func(t *testing.T) {
		r := request("")
		r.Home, r.URL = r.URL, parse(t, "http://b.example/page2?key="+canary)
		answer(t, c, r)
		if got := <-seen; got != "GET b.example/page2 i" {
			t.Errorf("the service saw %q", got)
		}
	})
	t.Run("PlainClient", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example/?to="+url.QueryEscape("http://a.example:81/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = request("").Header
		response, err := c.HTTPClient().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		<-seen
		if got := <-seen; got != "GET a.example:81/ " {
			t.Errorf("the service saw %q", got)
		}
	})
}

func TestCrosses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"http://a/", "http://a:80/x", false}, {"https://a:443/", "https://A./", false}, {"http://a/", "https://a/", false}, {"https://a/", "http://a/", true},
		{"http://a:8080/", "https://a/", true}, {"http://a/", "https://a:8443/", true}, {"https://a/", "https://a:444/", true}, {"https://a/", "https://b.a/", true}, {"http://a:443", "https://a", true},
	} {
		if got := crosses(parse(t, c.from), parse(t, c.to)); got != c.want {
			t.Errorf("%s to %s: %v", c.from, c.to, got)
		}
	}
}

func TestClient_Do_AllowedHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, name := range []string{"api.example", "x.api.example", "api.example.evil.example"} {
		w.serve(name, fmt.Sprintf("93.184.216.%d", 40+i), echo)
	}
	c := w.client(Options{})
	for _, test := range []struct {
		hosts, target string
		want          bool
	}{
		{"api.example", "http://api.example/", true}, {"API.example.", "http://api.example/", true}, {"api.example", "http://x.api.example/", false},
		{"*.api.example", "http://x.api.example/", true}, {"*.api.example", "http://api.example/", false}, {"api.example", "http://api.example.evil.example/", false},
		{"api.example:80", "http://api.example/", true}, {"api.example:443", "http://api.example/", false}, {"other.example", "http://api.example/", false},
	} {
		r := get(t, test.target)
		r.Secret = &Secret{Header: http.Header{"Authorization": {"x"}}, Hosts: []string{test.hosts}}
		if test.want {
			answer(t, c, r)
			continue
		}
		before := len(w.dials())
		e := failure(t, c, r)
		wantFailure(t, e, fault.CredentialInvalid, NotTaken)
		if !strings.Contains(e.Error(), "allowed_hosts") || len(w.dials()) != before {
			t.Errorf("%v to %s: %v", test.hosts, test.target, e)
		}
	}
}

func TestClient_Do_RefusesHeaders(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client(Options{})
	for _, header := range []http.Header{
		{"X-A": {"b\r\nX-Evil: 1"}}, {"X-A": {"b\nc"}}, {"X-A": {"\x00"}}, {"X A": {"b"}}, {"X-A:": {"b"}}, {"": {"b"}}, {"X-Ä": {"b"}}, {"A\r\nB": {"c"}},
		{"Host": {"internal"}}, {"Content-Length": {"0"}}, {"transfer-encoding": {"chunked"}}, {"Connection": {"upgrade"}},
	} {
		r := get(t, "http://a.example/")
		r.Header = header
		wantFailure(t, failure(t, c, r), fault.InvalidInput, NotTaken)
		r.Header, r.Secret = nil, &Secret{Header: header}
		wantFailure(t, failure(t, c, r), fault.CredentialInvalid, NotTaken)
	}
}

func TestClient_Do_Size(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := zip.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			_, _ = rw.Write(make([]byte, 1000))
		case "/declared":
			rw.Header().Set("Content-Length", "1001")
			_, _ = rw.Write(make([]byte, 1001))
		case "/chunked":
			for range 20 {
				_, _ = rw.Write(make([]byte, 100))
				rw.(http.Flusher).Flush()
			}
		case "/bomb", "/unasked":
			rw.Header().Set("Content-Encoding", "gzip")
			_, _ = rw.Write(bomb.Bytes())
		case "/headers":
			for i := range 400 {
				rw.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("a", 1000))
			}
		case "/head":
			rw.Header().Set("Content-Length", "99999")
		}
	})
	c := w.client(Options{MaxResponse: 1000})
	if _, body := answer(t, c, get(t, "http://a.example/exact")); len(body) != 1000 {
		t.Errorf("%d bytes", len(body))
	}
	for _, path := range []string{"/declared", "/chunked", "/bomb"} {
		wantFailure(t, failure(t, c, get(t, "http://a.example"+path)), fault.TooLarge, Answered)
		response, err := c.HTTPClient().Get("http://a.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		if cerr := response.Body.Close(); cerr != nil {
			t.Error(cerr)
		}
		if fault.CodeOf(err) != fault.TooLarge || len(data) > 1000 {
			t.Errorf("plain, %s: %d bytes, %v", path, len(data), err)
		}
	}
	unasked := get(t, "http://a.example/unasked")
	unasked.Header = http.Header{"Accept-Encoding": {"identity"}}
	wantFailure(t, failure(t, c, unasked), fault.TooLarge, Answered)
	unasked.MaxResponse = 8 << 20
	if response, body := answer(t, c, unasked); len(body) != 4<<20 || response.Header.Get("Content-Encoding") != "" {
		t.Errorf("%d bytes, encoding %q", len(body), response.Header.Get("Content-Encoding"))
	}
	wantFailure(t, failure(t, c, get(t, "http://a.example/headers")), fault.TooLarge, Unknown)
	head := get(t, "http://a.example/head")
	head.Method = http.MethodHead
	answer(t, c, head)
}

func TestClient_Do_ReusesConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(rw, r, "/", http.StatusFound)
		}
	})
	c := w.client(Options{})
	for range 5 {
		answer(t, c, get(t, "http://a.example/redirect"))
	}
	if dials := w.dials(); len(dials) != 1 {
		t.Errorf("%d connections for ten round trips", len(dials))
	}
}

func TestClient_Do_Fates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var taken atomic.Int32
	drop := func(rw http.ResponseWriter) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	w.serve("a.example", "93.184.216.34", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		taken.Add(1)
		switch r.URL.Path {
		case "/drop":
			drop(rw)
		case "/cut":
			rw.Header().Set("Content-Length", "100")
			_, _ = rw.Write([]byte("begin"))
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/seeother-drop":
			http.Redirect(rw, r, "/drop", http.StatusSeeOther)
		case "/seeother-gone":
			http.Redirect(rw, r, "http://gone.example/", http.StatusSeeOther)
		case "/seeother-inner":
			http.Redirect(rw, r, "http://10.0.0.1/", http.StatusSeeOther)
		case "/seeother-busy":
			http.Redirect(rw, r, "/busy", http.StatusSeeOther)
		case "/temporary-gone":
			http.Redirect(rw, r, "http://gone.example/", http.StatusTemporaryRedirect)
		case "/busy":
			rw.WriteHeader(http.StatusTooManyRequests)
		}
	})
	w.names["refused.example"] = func() []string { return []string{"93.184.216.99"} }
	post := func(path string) Request {
		r := get(t, path)
		r.Method, r.Body = http.MethodPost, []byte("pay")
		return r
	}
	c := w.client(Options{})
	for _, test := range []struct {
		url  string
		code fault.Code
		fate Fate
		hits int32
	}{
		{"http://a.example/drop", fault.NetworkError, Unknown, 1},
		{"http://a.example/cut", fault.NetworkError, Unknown, 1},
		{"http://a.example/seeother-drop", fault.NetworkError, Unknown, 0},
		{"http://a.example/seeother-gone", fault.NetworkError, Unknown, 1}, // the payment was taken; only its page cannot be had
		{"http://a.example/seeother-inner", fault.BlockedAddress, Answered, 1},
		{"http://a.example/temporary-gone", fault.NetworkError, NotTaken, 1},
		{"http://gone.example/", fault.NetworkError, NotTaken, 0},
		{"http://refused.example/", fault.NetworkError, NotTaken, 0},
		{"https://a.example/", fault.NetworkError, NotTaken, 0}, // it speaks no TLS
	} {
		before := taken.Load()
		wantFailure(t, failure(t, c, post(test.url)), test.code, test.fate)
		if hits := taken.Load() - before; test.hits > 0 && hits != test.hits {
			t.Errorf("%s arrived %d times, want %d", test.url, hits, test.hits)
		}
	}
	for url, want := range map[string]Fate{"http://a.example/drop": Unknown, "http://gone.example/": NotTaken, "http://10.0.0.1/": NotTaken, "http://2130706433/": NotTaken} {
		response, err := c.HTTPClient().Post(url, "text/plain", strings.NewReader("pay"))
		if err == nil {
			_ = response.Body.Close()
		}
		if _, typed := errors.AsType[*Error](err); !typed || FateOf(err) != want {
			t.Errorf("plain, %s: %v (%s), want %s", url, err, FateOf(err), want)
		}
	}
	busy, _ := answer(t, c, post("http://a.example/seeother-busy"))
	if e := busy.Problem(time.Now()); e.Fate != Unknown || e.Fault.Code != fault.RateLimited {
		t.Errorf("busy after the effect: %v (%s)", e, e.Fate)
	}
}

func TestClient_Do_Certificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.names["a.example"] = func() []string { return []string{"93.184.216.34"} }
	w.servers["93.184.216.34"] = server.Listener.Addr().String()
	e := failure(t, w.client(Options{}), get(t, "https://a.example/"))
	wantFailure(t, e, fault.NetworkError, NotTaken)
	if !strings.Contains(e.Error(), "certificate") {
		t.Errorf("got %v", e)
	}
}

func TestResponse_Problem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		after     string
		code      fault.Code
		fate      Fate
		retryable bool
	}{
		{400, "", fault.RemoteRejected, Answered, false}, {401, "", fault.CredentialInvalid, Answered, false}, {403, "", fault.CredentialInvalid, Answered, false},
		{404, "", fault.NotFound, Answered, false}, {410, "", fault.NotFound, Answered, false}, {409, "", fault.Conflict, Answered, false}, {412, "", fault.Conflict, Answered, false},
		{422, "", fault.RemoteRejected, Answered, false}, {429, "", fault.RateLimited, NotTaken, true}, {429, "7", fault.RateLimited, NotTaken, true},
		{500, "", fault.RemoteError, Answered, true}, {501, "", fault.RemoteError, Answered, true}, {502, "", fault.RemoteError, Unknown, true},
		{503, "", fault.RemoteError, Answered, true}, {503, "7", fault.RemoteError, NotTaken, true}, {504, "7", fault.RemoteError, Unknown, true}, {599, "", fault.RemoteError, Answered, true},
	} {
		r := &Response{Status: c.status, Header: http.Header{}, URL: parse(t, "http://a.example/x?k=v"), fate: NotTaken}
		if c.after != "" {
			r.Header.Set("Retry-After", c.after)
		}
		e := r.Problem(time.Now())
		if e.Fault.Code != c.code || e.Fate != c.fate || e.Fault.Retryable != c.retryable || strings.Contains(e.Error(), "k=v") {
			t.Errorf("%d %q: %v, %s, retryable %v", c.status, c.after, e, e.Fate, e.Fault.Retryable)
		}
		if want := c.after != "" && c.fate == NotTaken; (e.RetryAfter == 7*time.Second) != want {
			t.Errorf("%d: retry after %s", c.status, e.RetryAfter)
		}
	}
	for _, status := range []int{200, 204, 299, 301, 304} {
		if e := (&Response{Status: status}).Problem(time.Now()); e != nil {
			t.Errorf("%d: %v", status, e)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "30", 30 * time.Second}, {"Retry-After", " 1.5 ", 1500 * time.Millisecond}, {"Retry-After", "86400", time.Hour}, {"Retry-After", "-5", 0}, {"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0}, {"Retry-After", "Inf", time.Hour}, {"Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), 0}, {"Retry-After", now.Add(48 * time.Hour).Format(http.TimeFormat), time.Hour},
		{"Retry-After-Ms", "250", 250 * time.Millisecond}, {"X-RateLimit-Reset-After", "2.5", 2500 * time.Millisecond}, {"RateLimit-Reset", "12", 12 * time.Second},
		{"X-RateLimit-Reset", fmt.Sprint(now.Unix() + 40), 40 * time.Second}, {"X-RateLimit-Reset", fmt.Sprint(now.UnixMilli() + 5000), 5 * time.Second}, {"X-Other", "9", 0},
	} {
		header := http.Header{}
		header.Set(c.name, c.value)
		if got := RetryAfter(header, now); got != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

// The proxy of the environment is not asked: it would connect where nobody looks.
func TestClient_Do_IgnoresProxies(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://203.0.113.1:3128")
	t.Setenv("http_proxy", "http://203.0.113.1:3128")
	w := newWorld(t)
	w.serve("a.example", "93.184.216.34", echo)
	if _, body := answer(t, w.client(Options{}), get(t, "http://a.example/x y?q=a b&ü=1")); body != "GET a.example/x%20y?q=a%20b&%C3%BC=1 " {
		t.Errorf("got %q", body)
	}
	if dials := w.dials(); len(dials) != 1 || dials[0] != "93.184.216.34" {
		t.Errorf("dialled %v", dials)
	}
}

// TestClient_Do_DeliversOnce drops the connection under a call, on one that was kept from a call before: the transport would
// make some calls again by itself.
func TestClient_Do_DeliversOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, body, key string
		repeatable        bool
		once              bool
	}{
		{method: "POST", once: true},
		{method: "POST", body: "x", once: true},
		{method: "POST", key: "Idempotency-Key", once: true},
		{method: "POST", key: "X-Idempotency-Key", once: true},
		{method: "POST", body: "x", key: "Idempotency-Key", once: true},
		{method: "PATCH", key: "Idempotency-Key", once: true},
		{method: "POST", body: "x", key: "Idempotency-Key", repeatable: true},
		{method: "GET"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			var delivered atomic.Int32
			w := newWorld(t)
			w.serve("shop.example", "93.184.216.34", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/warm" {
					return
				}
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != c.body || r.ContentLength != int64(len(c.body)) {
					t.Errorf("got %q of %d bytes, %v", body, r.ContentLength, err)
				}
				if delivered.Add(1) > 1 {
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					err = conn.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
			client := w.client(Options{})
			answer(t, client, get(t, "http://shop.example/warm"))
			r := Request{Method: c.method, URL: parse(t, "http://shop.example/buy"), Header: http.Header{}, Body: []byte(c.body), Repeatable: c.repeatable}
			if c.key != "" {
				r.Header.Set(c.key, "k")
			}
			if !c.once {
				answer(t, client, r)
				return
			}
			if e := failure(t, client, r); e.Fate != Unknown {
				t.Errorf("its fate is %v", e.Fate)
			}
			if n := delivered.Load(); n != 1 {
				t.Errorf("it was delivered %d times", n)
			}
		})
	}
}
