package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/builtin/web"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// httpRig is a service on loopback and the kind that calls it.
type httpRig struct {
	t      *testing.T
	kind   node.Kind
	server *httptest.Server

	mu      sync.Mutex
	details map[string]any
	logs    []string
	files   nodetest.Files
	creds   map[string]string
}

func newHTTPRig(t *testing.T, handler http.HandlerFunc) *httpRig {
	t.Helper()
	r := &httpRig{t: t, server: nodetest.Serve(t, handler), details: map[string]any{}, creds: map[string]string{}}
	r.kind = nodetest.Of(web.Kinds(web.Deps{HTTP: nodetest.Client(t, "127.0.0.0/8")})...).Kind(t, "ACTION.HTTP_REQUEST")
	return r
}

// call runs the kind. URL is put in front of a config that has none.
func (r *httpRig) call(config, input string) (map[string]any, error) {
	r.t.Helper()
	call := nodetest.NewCall(r.t, strings.ReplaceAll(config, "$URL", r.server.URL), input)
	if own := r.kind.Own["url"]; own == nil {
		r.t.Fatal("the kind has no names for its address")
	}
	call.Clock = func() time.Time { return nodetest.Start() }
	call.Files = &r.files
	call.Detail = func(fields map[string]any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		maps.Copy(r.details, fields)
	}
	call.Log = func(level node.Level, message string, fields map[string]any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logs = append(r.logs, fmt.Sprint(level, message, fields))
	}
	call.Credential = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		data, ok := r.creds[id]
		if !ok || len(types) == 0 || types[0] != "http_auth" {
			return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q", id)
		}
		return credential.Opened{ID: id, Type: "http_auth", Data: json.RawMessage(strings.ReplaceAll(data, "$URL", r.server.URL))}, nil
	}
	out, err := r.kind.Run(r.t.Context(), call)
	if err != nil {
		return nil, err
	}
	result, ok := nodetest.Value(r.t, string(out.(node.Done)["result"])).(map[string]any)
	if !ok {
		r.t.Fatalf("result is %s", out.(node.Done)["result"])
	}
	return result, nil
}

func (r *httpRig) want(config, input, want string) map[string]any {
	r.t.Helper()
	got, err := r.call(config, input)
	if err != nil {
		r.t.Fatalf("%s: %v", config, err)
	}
	for _, d := range nodetest.Differences("result", nodetest.Value(r.t, strings.ReplaceAll(want, "$URL", r.server.URL)), got) {
		r.t.Error(d)
	}
	return got
}

// mirror answers with what it was asked.
func mirror(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	headers := map[string]string{}
	for name := range r.Header {
		headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"method": r.Method, "uri": r.URL.RequestURI(), "headers": headers, "body": string(body),
	})
}

func TestHTTPRequest_Requests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, config, input, want string }{
		{"Get", `{"url": "$URL/a?x=1", "query_params": {"b": [1, true], "c": "ä &", "d": null}}`, ``,
			`{"status_code": 200, "success": true, "url": "$URL/a?x=1&b=1&b=true&c=%C3%A4+%26", "json": {"method": "GET", "uri": "/a?x=1&b=1&b=true&c=%C3%A4+%26", "body": ""}}`},
		{"JSON", `{"url": "$URL", "method": "post", "body": {"n": 1.10, "z": [], "a": null}}`, `{"body": "mine"}`,
			`{"json": {"method": "POST", "body": "{\"n\": 1.10, \"z\": [], \"a\": null}", "headers": {"content-type": "application/json"}}}`},
		{"JSONText", `{"url": "$URL", "method": "POST", "body": "{\"a\": 1}"}`, ``, `{"json": {"body": "{\"a\": 1}"}}`},
		{"JSONWord", `{"url": "$URL", "method": "POST", "body": "hello"}`, ``, `{"json": {"body": "\"hello\""}}`},
		{"BodyFromInput", `{"url": "$URL", "method": "PUT"}`, `{"body": {"a": 1}}`, `{"json": {"body": "{\"a\": 1}"}}`},
		{"NoBodyFromInputForGet", `{"url": "$URL"}`, `{"body": {"a": 1}}`, `{"json": {"body": ""}}`},
		{"Form", `{"url": "$URL", "method": "POST", "body_type": "form", "body": {"a": "x y", "b": [1, 2]}}`, ``,
			`{"json": {"body": "a=x+y&b=1&b=2", "headers": {"content-type": "application/x-www-form-urlencoded"}}}`},
		{"Raw", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": "<a/>", "headers": {"content-type": "text/xml"}}`, ``,
			`{"json": {"body": "<a/>", "headers": {"content-type": "text/xml"}}}`},
		{"RawFile", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": {"base64": "aGk=", "name": "a.txt"}}`, ``,
			`{"json": {"body": "hi", "headers": {"content-type": "application/octet-stream"}}}`},
		{"None", `{"url": "$URL", "method": "POST", "body_type": "none", "body": {"a": 1}}`, ``, `{"json": {"body": ""}}`},
		{"Headers", `{"url": "$URL", "headers": {"X-A": 1, "X-B": "fixed"}}`, `{"dynamic_headers": {"x-b": "data", "X-C": "data"}, "dynamic_query_params": {"q": "1"}}`,
			`{"json": {"uri": "/?q=1", "headers": {"x-a": "1", "x-b": "fixed", "x-c": "data"}}}`},
		{"QueryIsFixed", `{"url": "$URL/?a=1", "query_params": {"b": 1}}`, `{"dynamic_query_params": {"a": 2, "b": 2, "c": 2}}`, `{"json": {"uri": "/?a=1&b=1&c=2"}}`},
		{"Variables", `{"url": "$URL/u/{id}/{{kind}}?n={n}"}`, `{"url_variables": {"id": "a/../b?x#y", "kind": "ü {id}", "n": 7}}`,
			`{"json": {"uri": "/u/a%2F..%2Fb%3Fx%23y/%C3%BC%20%7Bid%7D?n=7"}}`},
		{"ChineseVariable", `{"url": "$URL/{{用户}}"}`, `{"url_variables": {"用户": "安"}}`, `{"json": {"uri": "/%E5%AE%89"}}`},
		{"BracesInQuery", `{"url": "$URL/?q={\"a\":1}&r={x}"}`, ``, `{"json": {"uri": "/?q={%22a%22:1}&r={x}"}}`},
		{"Head", `{"url": "$URL", "method": "HEAD"}`, ``, `{"status_code": 200, "body": "", "json": null}`},
		{"BrowserHeaders", `{"url": "$URL", "headers": {"Accept-Encoding": "gzip, deflate, br"}}`, ``, `{"json": {"headers": {"accept-encoding": "gzip", "user-agent": "tandem"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newHTTPRig(t, mirror).want(c.config, c.input, c.want)
		})
	}
}

func TestHTTPRequest_RefusesRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, config, input string
		code                fault.Code
		part                string
	}{
		{"NoURL", `{}`, ``, fault.InvalidConfig, "url"},
		{"Relative", `{"url": "/x"}`, ``, fault.InvalidConfig, "absolute"},
		{"Unreadable", `{"url": "http://a b/%zz?password=hunter2"}`, ``, fault.InvalidConfig, "cannot be read"},
		{"UserInfo", `{"url": "http://u:hunter2@127.0.0.1/"}`, ``, fault.InvalidInput, "credential"},
		{"Scheme", `{"url": "ftp://127.0.0.1/"}`, ``, fault.BlockedAddress, "ftp"},
		{"Blocked", `{"url": "http://10.0.0.1/"}`, ``, fault.BlockedAddress, "--http-allow"},
		{"Metadata", `{"url": "http://169.254.169.254/latest/meta-data"}`, ``, fault.BlockedAddress, "--http-allow"},
		{"Decimal", `{"url": "http://2130706433/"}`, ``, fault.BlockedAddress, "unusual form"},
		{"HeaderInjection", `{"url": "$URL", "headers": {"X-A": "b\r\nX-Evil: 1"}}`, ``, fault.InvalidConfig, "line break"},
		{"DynamicHeaderInjection", `{"url": "$URL"}`, `{"dynamic_headers": {"X-A": "b\nc"}}`, fault.InvalidInput, "line break"},
		{"HeaderName", `{"url": "$URL"}`, `{"dynamic_headers": {"X A": "b"}}`, fault.InvalidInput, "name of a header"},
		{"HostHeader", `{"url": "$URL", "headers": {"host": "inner"}}`, ``, fault.InvalidConfig, "leave it out"},
		{"HeaderObject", `{"url": "$URL", "headers": {"a": {}}}`, ``, fault.InvalidConfig, "headers.a"},
		{"DynamicHeadersList", `{"url": "$URL"}`, `{"dynamic_headers": [1]}`, fault.InvalidInput, "dynamic_headers"},
		{"VariableMissing", `{"url": "$URL/{id}"}`, `{"url_variables": {"other": 1}}`, fault.ParameterMissing, "{id}"},
		{"VariableDots", `{"url": "$URL/a/{id}"}`, `{"url_variables": {"id": ".."}}`, fault.InvalidInput, "url_variables.id"},
		{"VariableEmpty", `{"url": "$URL/a/{id}/b"}`, `{"url_variables": {"id": ""}}`, fault.InvalidInput, "url_variables.id"},
		{"VariableObject", `{"url": "$URL/{id}"}`, `{"url_variables": {"id": {}}}`, fault.InvalidInput, "an object"},
		{"VariableInHost", `{"url": "http://{h}/"}`, `{"url_variables": {"h": "evil.example/"}}`, fault.InvalidConfig, "cannot be read"},
		{"RawList", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": [1]}`, ``, fault.InvalidInput, "body"},
		{"RawNoFile", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": {"a": 1}}`, ``, fault.InvalidInput, "not a file"},
		{"RawBadBase64", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": {"base64": "%"}}`, ``, fault.InvalidInput, "base64"},
		{"RawFileGone", `{"url": "$URL", "method": "POST", "body_type": "raw", "body": {"blob": "00"}}`, ``, fault.NotFound, "00"},
		{"FormNested", `{"url": "$URL", "method": "POST", "body_type": "form", "body": {"a": {"b": 1}}}`, ``, fault.InvalidInput, "body.a"},
		{"EmptyIdempotencyHeader", `{"url": "$URL", "method": "POST", "idempotency_header": ""}`, ``, fault.InvalidConfig, "idempotency_header"},
		{"CredentialUnknown", `{"url": "$URL", "credential_id": "none"}`, ``, fault.CredentialMissing, "none"},
		{"CursorPath", `{"url": "$URL", "pagination": {"mode": "cursor"}}`, ``, fault.InvalidConfig, "cursor_path"},
		{"PagesOfFiles", `{"url": "$URL", "response_type": "file", "pagination": {"mode": "page"}}`, ``, fault.InvalidConfig, "response_type"},
		{"PagesMode", `{"url": "$URL", "pagination": {}}`, ``, fault.InvalidConfig, "pagination.mode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newHTTPRig(t, func(http.ResponseWriter, *http.Request) { t.Error("the service was called") })
			_, err := r.call(c.config, c.input)
			nodetest.WantError(t, err, c.code, c.part)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows a password", err)
			}
		})
	}
}

func TestHTTPRequest_Answers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		if name := r.URL.Query().Get("name"); name != "" {
			w.Header().Set("Content-Disposition", name)
		}
		body := r.URL.Query().Get("body")
		if body == "long" {
			body = `"` + long + `"`
		}
		_, _ = io.WriteString(w, body) // the client may be gone
	}
	ask := func(kind, contentType, body string, more ...string) string {
		q := url.Values{"type": {contentType}, "body": {body}}
		if len(more) > 0 {
			q.Set("name", more[0])
		}
		return fmt.Sprintf(`{"url": "$URL/dir/file.bin?%s", "response_type": %q}`, q.Encode(), kind)
	}
	for _, c := range []struct{ name, config, want string }{
		{"JSON", ask("auto", "application/json", `{"n": 12345678901234567890.50}`), `{"json": {"n": 12345678901234567890.50}, "body": "{\"n\": 12345678901234567890.50}"}`},
		{"JSONSuffix", ask("auto", "application/problem+json", `[]`), `{"json": []}`},
		{"JSONUntyped", ask("auto", "", `{"a": 1}`), `{"json": {"a": 1}}`},
		{"NotJSON", ask("auto", "application/json", `<html>`), `{"json": null, "body": "<html>"}`},
		{"LargeJSON", ask("auto", "application/json", `long`), `{"json": "` + long + `", "body": ""}`},
		{"WantedJSON", ask("json", "text/plain", " \ufeff1 "), `{"json": null}`},
		{"WantedJSONWithMark", ask("json", "text/plain", "\ufeff{\"a\":1}"), `{"json": {"a": 1}}`},
		{"EmptyJSON", ask("json", "application/json", ``), `{"json": null, "body": ""}`},
		{"Text", ask("auto", "text/html; charset=utf-8", `<p>é`), `{"json": null, "body": "<p>é"}`},
		{"TextThatIsJSON", ask("text", "application/json", `{}`), `{"json": null, "body": "{}"}`},
		{"Latin", ask("auto", "text/plain; charset=ISO-8859-1", "\xe9"), `{"body": "é"}`},
		{"Chinese", ask("auto", "text/plain; charset=gbk", "\xd6\xd0\xce\xc4"), `{"body": "中文"}`},
		{"Broken", ask("auto", "text/plain", "a\xffb"), `{"body": "a\ufffdb"}`},
		{"File", ask("auto", "image/png", "\x89PNG"), `{"body": "", "file": {"name": "file.bin", "content_type": "image/png", "size": 4}}`},
		{"FileUntyped", ask("auto", "", "\x89\xff"), `{"file": {"name": "file.bin", "content_type": "application/octet-stream", "size": 2}}`},
		{"FileWanted", ask("file", "text/csv; charset=utf-8", "a,b", `attachment; filename="../../etc/re:port.csv"`), `{"file": {"name": "report.csv", "content_type": "text/csv", "size": 3}}`},
		{"FileName", ask("file", "text/csv", "a", `attachment; filename="..\\.."`), `{"file": {"name": "download"}}`},
		{"EmptyFile", ask("auto", "image/png", ""), `{"body": "", "json": null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "WantedJSON" { // a mark in the middle is not a mark
				_, err := newHTTPRig(t, serve).call(c.config, ``)
				nodetest.WantError(t, err, fault.OutputInvalid, "not JSON")
				return
			}
			r := newHTTPRig(t, serve)
			got := r.want(c.config, ``, c.want)
			if file, ok := got["file"].(map[string]any); ok {
				if _, kept := r.files.Content(file["blob"].(string)); !kept || file["blob"] != file["sha256"] {
					t.Errorf("file %v is not kept", file)
				}
			}
		})
	}
}

func TestHTTPRequest_Statuses(t *testing.T) {
	t.Parallel()
	serve := func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscan(strings.Trim(r.URL.Path, "/"), &status); err != nil {
			t.Error(err)
		}
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"why": "because"}`) // the client may be gone
	}
	const once, key = `"method": "POST"`, `"method": "POST", "idempotency_header": "Idempotency-Key"`
	for _, c := range []struct {
		path, config string
		code         fault.Code
		retryable    bool
		after        time.Duration
	}{
		{"400", ``, fault.RemoteRejected, false, 0}, {"401", ``, fault.CredentialInvalid, false, 0}, {"403", ``, fault.CredentialInvalid, false, 0}, {"404", ``, fault.NotFound, false, 0},
		{"410", ``, fault.NotFound, false, 0}, {"409", ``, fault.Conflict, false, 0}, {"412", ``, fault.Conflict, false, 0},
		{"429", ``, fault.RateLimited, true, 0}, {"429?after=7", ``, fault.RateLimited, true, 7 * time.Second}, {"429?after=7", once, fault.RateLimited, true, 7 * time.Second},
		{"429?after=99999", once, fault.RateLimited, true, time.Hour},
		{"500", ``, fault.RemoteError, true, 0}, {"500", once, fault.RemoteError, false, 0}, {"500", key, fault.RemoteError, true, 0}, {"501", once, fault.RemoteError, false, 0},
		{"502", ``, fault.RemoteError, true, 0}, {"502", once, fault.OutcomeUnknown, false, 0}, {"502", key, fault.RemoteError, true, 0}, {"504", once, fault.OutcomeUnknown, false, 0},
		{"504", `"method": "PATCH"`, fault.OutcomeUnknown, false, 0}, {"504", `"method": "DELETE"`, fault.RemoteError, true, 0}, {"504", `"method": "PUT"`, fault.RemoteError, true, 0},
		{"503", once, fault.RemoteError, false, 0}, {"503?after=3", once, fault.RemoteError, true, 3 * time.Second}, {"503", ``, fault.RemoteError, true, 0},
	} {
		t.Run(c.path+c.config, func(t *testing.T) {
			t.Parallel()
			r := newHTTPRig(t, serve)
			more := ""
			if c.config != "" {
				more = ", " + c.config
			}
			_, err := r.call(`{"url": "$URL/`+c.path+`"`+more+`}`, ``)
			f := fault.From(err)
			if f.Code != c.code || f.Retryable != c.retryable {
				t.Fatalf("got %v, retryable %v", err, f.Retryable)
			}
			if f.Details["body"] != `{"why": "because"}` {
				t.Errorf("details %v", f.Details)
			}
			later, ok := errors.AsType[*node.Failure](err)
			if !ok || later.RetryAfter != c.after {
				t.Errorf("retry after %v, want %s", later, c.after)
			}
			if got := r.details["response_status"]; fmt.Sprint(got) != c.path[:3] {
				t.Errorf("details tell the status %v", got)
			}
			r.want(`{"url": "$URL/`+c.path+`", "fail_on_status": false`+more+`}`, ``, `{"status_code": `+c.path[:3]+`, "success": false, "json": {"why": "because"}}`)
		})
	}
}

func TestHTTPRequest_Unknown(t *testing.T) {
	t.Parallel()
	var taken atomic.Int32
	serve := func(w http.ResponseWriter, r *http.Request) {
		taken.Add(1)
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	r := newHTTPRig(t, serve)
	for _, c := range []struct {
		config    string
		code      fault.Code
		retryable bool
		hits      int32
	}{
		{`{"url": "$URL/drop", "method": "POST", "body": {"pay": 1}}`, fault.OutcomeUnknown, false, 1},
		{`{"url": "$URL/cut", "method": "POST", "response_type": "file"}`, fault.OutcomeUnknown, false, 1},
		{`{"url": "$URL/drop", "method": "POST", "idempotency_header": "X-Key"}`, fault.NetworkError, true, 1},
		{`{"url": "$URL/cut"}`, fault.NetworkError, true, 1},
		{`{"url": "$URL/cut", "response_type": "file"}`, fault.NetworkError, true, 1},
		{`{"url": "http://gone.example/", "method": "POST"}`, fault.NetworkError, true, 0},
		{`{"url": "http://127.0.0.1:1/", "method": "POST"}`, fault.NetworkError, true, 0},
	} {
		before := taken.Load()
		_, err := r.call(c.config, ``)
		if f := fault.From(err); f.Code != c.code || f.Retryable != c.retryable {
			t.Errorf("%s: got %v, retryable %v", c.config, err, f.Retryable)
		}
		if hits := taken.Load() - before; hits != c.hits {
			t.Errorf("%s: arrived %d times, want %d", c.config, hits, c.hits)
		}
	}
}

func TestHTTPRequest_Timeout(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a beginning") // and no end
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := r.call(`{"url": "$URL", "timeout": 1, "method": "POST"}`, ``)
	if code := fault.CodeOf(err); code != fault.OutcomeUnknown || fault.From(err).Details["cause"] != "timeout" {
		t.Errorf("got %v", err)
	}
	hung := make(chan struct{})
	r = newHTTPRig(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(hung)
	})
	_, err = r.call(`{"url": "$URL", "timeout": 1}`, ``)
	if f := fault.From(err); f.Code != fault.Timeout || !f.Retryable {
		t.Errorf("got %v", err)
	}
	<-hung
}

func TestHTTPRequest_IdempotencyKey(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, mirror)
	key := func(config string) any {
		got := r.want(config, ``, `{"status_code": 200}`)
		return got["json"].(map[string]any)["headers"].(map[string]any)["x-key"]
	}
	const config = `{"url": "$URL", "method": "POST", "idempotency_header": "X-Key"}`
	first := key(config)
	if text, ok := first.(string); !ok || len(text) < 32 || key(config) != first {
		t.Errorf("the key is %v and then another", first)
	}
	if got := key(`{"url": "$URL", "method": "POST", "idempotency_header": "X-Key", "headers": {"x-key": "mine"}}`); got != "mine" {
		t.Errorf("the author's key became %v", got)
	}
	call := nodetest.NewCall(t, strings.ReplaceAll(config, "$URL", r.server.URL), ``)
	call.Generation = 1
	out, err := r.kind.Run(t.Context(), call)
	if err != nil || strings.Contains(string(out.(node.Done)["result"]), first.(string)) {
		t.Errorf("another generation has the same key: %v", err)
	}
}

func TestHTTPRequest_Redirects(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		mirror(w, r)
	})
	r.creds["c"] = `{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`
	r.want(`{"url": "$URL/?to=/next"}`, ``, `{"url": "$URL/next", "redirects": [{"status_code": 302, "url": "$URL/next"}]}`)
	r.want(`{"url": "$URL/?to=/next", "follow_redirects": false}`, ``, `{"status_code": 302, "success": false, "headers": {"location": "/next"}}`)
	_, err := r.call(`{"url": "$URL/?to=/next", "max_redirects": 0}`, ``)
	nodetest.WantError(t, err, fault.RemoteRejected, "redirect")
	_, err = r.call(`{"url": "$URL/?to=http://10.0.0.1/"}`, ``)
	nodetest.WantError(t, err, fault.BlockedAddress, "10.0.0.1")
	port := r.server.URL[strings.LastIndexByte(r.server.URL, ':'):]
	got := r.want(`{"url": "$URL/?to=http://other.example`+port+`/", "credential_id": "c", "fail_on_status": false}`, ``, `{"status_code": 200}`)
	if headers := got["json"].(map[string]any)["headers"].(map[string]any); headers["authorization"] != nil {
		t.Errorf("the other host got %v", headers)
	}
	if len(r.logs) != 1 || !strings.Contains(r.logs[0], "credential was not sent") {
		t.Errorf("logs %v", r.logs)
	}
}

func TestHTTPRequest_Details(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session="+nodetest.Canary)
		w.Header().Set("X-Request-Id", "7")
	})
	r.want(`{"url": "$URL/a?api_key=`+nodetest.Canary+`&sig=`+nodetest.Canary+`&q=1", "method": "PUT", "headers": {"Authorization": "`+nodetest.Canary+`", "Cookie": "`+nodetest.Canary+`", "X-Trace": "t"}}`, ``, `{"status_code": 200}`)
	if all := nodetest.Text(r.details); strings.Contains(all, nodetest.Canary) {
		t.Errorf("the details show a secret: %s", all)
	}
	want := `{"api_endpoint": "` + r.server.URL + `/a?api_key=[redacted]&sig=[redacted]&q=1", "http_method": "PUT", "response_status": 200,
		"request_headers": {"authorization": "[redacted]", "x-trace": "t"}, "response_headers": {"set-cookie": "[redacted]", "x-request-id": "7"}}`
	for _, d := range nodetest.Differences("details", nodetest.Value(t, want), nodetest.Value(t, nodetest.Text(r.details))) {
		t.Error(d)
	}
}

func TestHTTPRequest_Names(t *testing.T) {
	t.Parallel()
	own := kinds().Kind(t, "ACTION.HTTP_REQUEST").Own["url"]
	got := own(json.RawMessage(`{"id": "mine", "x": 1, "url_variables": {"id": "a/b", "n": 7}}`))
	for _, d := range nodetest.Differences("names", nodetest.Value(t, `{"id": "{id}", "n": "{n}", "x": 1}`), nodetest.Value(t, string(got))) {
		t.Error(d)
	}
	if got := own(json.RawMessage(`{"id": 1}`)); string(got) != `{"id": 1}` {
		t.Errorf("got %s", got)
	}
}

// TestHTTPRequest_AnsweredThenFailed lets the keeping of an answer fail for a while: the call is not made again for that.
func TestHTTPRequest_AnsweredThenFailed(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = io.WriteString(w, "%PDF-1.4")
	})
	r.files.Full = fault.New(fault.Timeout, "the store is slow")
	for method, again := range map[string]bool{"POST": false, "PATCH": false, "GET": true, "PUT": true} {
		_, err := r.call(`{"url": "$URL", "method": "`+method+`"}`, `{}`)
		if f := fault.From(err); f == nil || f.Code != fault.Timeout || f.Retryable != again {
			t.Errorf("%s: %v", method, err)
		}
	}
}
