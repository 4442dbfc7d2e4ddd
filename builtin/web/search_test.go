package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/web"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// serviceRig is a kind that calls a service on loopback with a credential.
type serviceRig struct {
	t      *testing.T
	kind   node.Kind
	server *httptest.Server
	// credentialType and credential are what the node can open as "c".
	credentialType, credential string

	mu   sync.Mutex
	said []string // details and log lines
}

func newServiceRig(t *testing.T, name string, callbacks web.Callbacks, handler http.HandlerFunc) *serviceRig {
	t.Helper()
	r := &serviceRig{t: t, server: nodetest.Serve(t, handler)}
	r.kind = nodetest.Of(web.Kinds(web.Deps{HTTP: nodetest.Client(t, "127.0.0.1"), Callbacks: callbacks})...).Kind(t, name)
	return r
}

func (r *serviceRig) note(parts ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprint(parts...))
}

func (r *serviceRig) newCall(config, input string) *node.Call {
	call := nodetest.NewCall(r.t, strings.ReplaceAll(config, "$URL", r.server.URL), strings.ReplaceAll(input, "$URL", r.server.URL))
	call.Workspace = "acme"
	call.Clock = func() time.Time { return nodetest.Start() }
	call.Detail = func(fields map[string]any) {
		raw, err := json.Marshal(fields)
		r.note(string(raw), err)
	}
	call.Log = func(level node.Level, message string, fields map[string]any) { r.note(level, message, fields) }
	call.Credential = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		if id != "c" || !slices.Contains(types, r.credentialType) {
			return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q of %v", id, types)
		}
		return credential.Opened{ID: id, Type: r.credentialType, Data: json.RawMessage(strings.ReplaceAll(r.credential, "$URL", r.server.URL))}, nil
	}
	return call
}

func (r *serviceRig) run(config, input string) (node.Outcome, error) {
	return r.kind.Run(context.Background(), r.newCall(config, input))
}

func (r *serviceRig) result(t *testing.T, config, input string) string {
	t.Helper()
	out, err := r.run(config, input)
	if err != nil {
		t.Fatal(err)
	}
	done, ok := out.(node.Done)
	if !ok {
		t.Fatalf("%#v is not an end", out)
	}
	return string(done["result"])
}

func TestWebSearch_Providers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string // besides the query and filters
		path   string
		query  map[string]string // what must be in the query or, for a post, in the body
		header [2]string
		answer string
		want   string
	}{
		"searxng": {
			path: "/base/search", query: map[string]string{"q": "go lang", "format": "json", "pageno": "1", "time_range": "week", "language": "en-US"}, header: [2]string{"Authorization", "Bearer " + nodetest.Canary},
			answer: `{"number_of_results": 120, "results": [{"title": "Go", "url": "https://go.dev/a", "content": "List<String> &amp; more", "publishedDate": "2030-01-30T08:00:00", "score": 1.5}]}`,
			want:   `{"results":[{"title":"Go","url":"https://go.dev/a","snippet":"List<String> & more","published":"2030-01-30T08:00:00Z","score":1.5,"content":null}],"total":120,"provider":"searxng"}`,
		},
		"brave": {
			path: "/base/res/v1/web/search", query: map[string]string{"q": "go lang (site:go.dev OR site:pkg.go.dev) -site:x.go.dev", "count": "10", "offset": "0", "freshness": "pw", "search_lang": "en"}, header: [2]string{"X-Subscription-Token", nodetest.Canary},
			answer: `{"web": {"results": [{"title": "<strong>Go</strong>", "url": "https://go.dev/a", "description": "The <strong>Go</strong> language", "page_age": "2030-01-29T08:00:00"}]}}`,
			want:   `{"results":[{"title":"Go","snippet":"The Go language","published":"2030-01-29T08:00:00Z","score":null}],"total":1,"provider":"brave"}`,
		},
		"tavily": {
			path: "/base/search", query: map[string]string{"query": `"go lang"`, "max_results": "10", "time_range": `"week"`, "include_domains": `["go.dev","pkg.go.dev"]`, "exclude_domains": `["x.go.dev"]`}, header: [2]string{"Authorization", "Bearer " + nodetest.Canary},
			answer: `{"results": [{"title": "Go", "url": "https://go.dev/a", "content": "text", "score": 0.9}]}`,
			want:   `{"results":[{"title":"Go","published":null,"score":0.9}],"total":1,"provider":"tavily"}`,
		},
		"bing": {
			path: "/base/v7.0/search", query: map[string]string{"q": "go lang (site:go.dev OR site:pkg.go.dev) -site:x.go.dev", "count": "10", "offset": "0", "freshness": "Week", "setLang": "en-US"}, header: [2]string{"Ocp-Apim-Subscription-Key", nodetest.Canary},
			answer: `{"webPages": {"totalEstimatedMatches": 9000, "value": [{"name": "Go", "url": "https://go.dev/a", "snippet": "s", "datePublished": "2030-01-30T08:00:00.0000000Z"}]}}`,
			want:   `{"results":[{"title":"Go","snippet":"s","published":"2030-01-30T08:00:00Z"}],"total":9000,"provider":"bing"}`,
		},
		"json": {
			config: `, "mapping": {"url": "find/{query}?n={max_results}&p={page}&l={language}", "results_path": "data.hits", "total_path": "data.count", "key_header": "x-key",
				"fields": {"title": "name", "url": "link.href", "snippet": "text", "published": "when"}}`,
			path: "/base/find/go lang", query: map[string]string{"n": "10", "p": "1", "l": "en-US"}, header: [2]string{"X-Key", nodetest.Canary},
			answer: `{"data": {"count": 3, "hits": [{"name": "Go", "link": {"href": "https://go.dev/a"}, "text": "t", "when": 1895990400}, {"name": "no date", "link": {"href": "https://go.dev/b"}}]}}`,
			want:   `{"results":[{"title":"Go","url":"https://go.dev/a","snippet":"t","published":"2030-01-30T08:00:00Z"}],"total":3,"provider":"json"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			r := newServiceRig(t, "ACTION.WEB_SEARCH", nil, func(w http.ResponseWriter, req *http.Request) {
				if asked++; asked > 1 {
					_, _ = io.WriteString(w, `{}`) // no more pages
					return
				}
				if req.URL.Path != c.path || req.Header.Get(c.header[0]) != c.header[1] {
					t.Errorf("asked %s with %v", req.URL.Path, req.Header)
				}
				got := req.URL.Query()
				if req.Method == http.MethodPost {
					var body map[string]json.RawMessage
					if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
						t.Error(err)
					}
					got = url.Values{}
					for key, value := range body {
						got.Set(key, string(value))
					}
				}
				for key, want := range c.query {
					if got.Get(key) != want {
						t.Errorf("%s is %q, want %q", key, got.Get(key), want)
					}
				}
				_, _ = io.WriteString(w, c.answer)
			})
			r.credentialType, r.credential = "search", `{"provider": "`+name+`", "api_key": "`+nodetest.Canary+`", "base_url": "$URL/base/"}`
			language := `"language": "en-US", `
			if name == "tavily" {
				language = ""
			}
			out := r.result(t, `{"credential_id": "c", `+language+`"time_range": "week", "include_domains": ["https://go.dev/", "*.pkg.go.dev"], "exclude_domains": ["x.go.dev"]`+c.config+`}`, `{"query": "go lang"}`)
			for _, d := range nodetest.Differences("result", nodetest.Value(t, c.want), nodetest.Value(t, out)) {
				t.Error(d)
			}
		})
	}
}

// Filters that a service does not apply are applied here, pages are asked for until there is enough, and nothing comes twice.
func TestWebSearch_FiltersAndPages(t *testing.T) {
	t.Parallel()
	pages := 0
	r := newServiceRig(t, "ACTION.WEB_SEARCH", nil, func(w http.ResponseWriter, req *http.Request) {
		pages++
		n := req.URL.Query().Get("pageno")
		_, _ = io.WriteString(w, `{"results": [
			{"title": "a", "url": "https://good.example/`+n+`", "publishedDate": "2030-01-31T01:00:00Z"}, {"title": "same", "url": "https://good.example/same"},
			{"title": "old", "url": "https://good.example/old`+n+`", "publishedDate": "2020-01-01"}, {"title": "b", "url": "https://other.example/`+n+`"},
			{"title": "c", "url": "https://bad.good.example/`+n+`"}, {"title": "d", "url": "javascript:alert(1)"}, {"title": "e", "url": "https://notgood.example/"}]}`)
	})
	r.credentialType, r.credential = "search", `{"provider": "searxng", "base_url": "$URL"}`
	out := r.result(t, `{"credential_id": "c", "max_results": 3, "time_range": "day", "include_domains": ["good.example"], "exclude_domains": ["bad.good.example"]}`, `{"query": "x"}`)
	want := `{"results": [{"url": "https://good.example/1"}, {"url": "https://good.example/same"}, {"url": "https://good.example/2"}], "total": 3}`
	for _, d := range nodetest.Differences("result", nodetest.Value(t, want), nodetest.Value(t, out)) {
		t.Error(d)
	}
	if pages != 2 {
		t.Errorf("%d pages were asked for", pages)
	}
}

func TestWebSearch_FetchesPages(t *testing.T) {
	t.Parallel()
	r := newServiceRig(t, "ACTION.WEB_SEARCH", nil, nil)
	long := strings.Repeat("é ", 30<<10)
	r.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/search" && len(req.Header["Authorization"]) > 0 {
			t.Error("the key was sent to a page")
		}
		switch req.URL.Path {
		case "/search":
			host := "http://" + req.Host
			_, _ = fmt.Fprintf(w, `{"results": [{"url": "%[1]s/page"}, {"url": "%[1]s/long"}, {"url": "%[1]s/missing"}, {"url": "%[1]s/image"}, {"url": "http://10.1.2.3/private"}, {"url": "%[1]s/away"}]}`, host)
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			_, _ = io.WriteString(w, "<html><head><title>T\xe9</title><style>p{}</style></head><body><nav>menu</nav><script>alert('x')</script><p>one  <b>two</b>\n three</p><table><tr><td>a</td><td>b</td></tr></table>&lt;end&gt;</body>")
		case "/long":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, long)
		case "/image":
			w.Header().Set("Content-Type", "image/png")
		case "/away":
			http.Redirect(w, req, "http://169.254.169.254/latest", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	r.credentialType, r.credential = "search", `{"provider": "searxng", "base_url": "$URL", "api_key": "`+nodetest.Canary+`"}`
	var out struct {
		Results []struct {
			URL     string  `json:"url"`
			Content *string `json:"content"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(r.result(t, `{"credential_id": "c", "fetch_content": true}`, `{"query": "x"}`)), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Results) != 6 || out.Results[0].Content == nil || *out.Results[0].Content != "Té\nmenu\none two three\na b\n<end>" {
		t.Fatalf("got %+v", out.Results)
	}
	if c := out.Results[1].Content; c == nil || len(*c) > 20<<10 || len(*c) < 20<<10-4 || !strings.HasPrefix(long, *c) {
		t.Error("the long page is not cut where it should be")
	}
	for _, r := range out.Results[2:] {
		if r.Content != nil {
			t.Errorf("%s: %q", r.URL, *r.Content)
		}
	}
}

func TestWebSearch_Refuses(t *testing.T) {
	t.Parallel()
	r := newServiceRig(t, "ACTION.WEB_SEARCH", nil, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/html/search":
			_, _ = io.WriteString(w, "<html>sign in</html>")
		case "/busy/search":
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	searxng := `{"provider": "searxng", "base_url": "$URL%s"}`
	keyed := `{"provider": "json", "api_key": "` + nodetest.Canary + `", "base_url": "https://search.example"}`
	for name, c := range map[string]struct {
		config, input, credential string
		code                      fault.Code
		part                      string
	}{
		"NoQuery":      {`{"credential_id": "c"}`, `{}`, searxng, fault.ParameterMissing, `"query" is required`},
		"LongQuery":    {`{"credential_id": "c"}`, `{"query": "` + strings.Repeat("é", 401) + `"}`, searxng, fault.InvalidInput, "401 characters"},
		"NoCredential": {`{}`, `{"query": "x"}`, searxng, fault.CredentialMissing, "credential_id"},
		"Mismatch":     {`{"credential_id": "c", "provider": "brave"}`, `{"query": "x"}`, searxng, fault.InvalidConfig, `"brave"`},
		"BadDomain":    {`{"credential_id": "c", "include_domains": ["a b"]}`, `{"query": "x"}`, searxng, fault.InvalidConfig, "not a domain"},
		"NoMapping":    {`{"credential_id": "c"}`, `{"query": "x"}`, keyed, fault.InvalidConfig, `"mapping" is required`},
		"KeyElsewhere": {`{"credential_id": "c", "mapping": {"url": "https://thief.example/{query}"}}`, `{"query": "x"}`, keyed, fault.InvalidConfig, "not sent elsewhere"},
		"KeyForNobody": {`{"credential_id": "c", "mapping": {"url": "https://thief.example/{query}"}}`, `{"query": "x"}`, `{"provider": "json", "api_key": "` + nodetest.Canary + `"}`, fault.CredentialInvalid, "base_url"},
		"TimeUnknown":  {`{"credential_id": "c", "time_range": "day", "mapping": {"url": "x?q={query}"}}`, `{"query": "x"}`, keyed, fault.Unsupported, "time_range"},
		"LanguageLost": {`{"credential_id": "c", "language": "de", "mapping": {"url": "x?q={query}"}}`, `{"query": "x"}`, keyed, fault.Unsupported, "language"},
		"NoLanguage":   {`{"credential_id": "c", "language": "de"}`, `{"query": "x"}`, `{"provider": "tavily", "api_key": "` + nodetest.Canary + `"}`, fault.Unsupported, "tavily"},
		"MappedField":  {`{"credential_id": "c", "mapping": {"url": "x", "fields": {"titel": "a"}}}`, `{"query": "x"}`, keyed, fault.InvalidConfig, "titel"},
		"NotJSON":      {`{"credential_id": "c"}`, `{"query": "x"}`, strings.Replace(searxng, "%s", "/html", 1), fault.OutputInvalid, "does not answer with JSON"},
		"WrongKey":     {`{"credential_id": "c"}`, `{"query": "x"}`, strings.Replace(searxng, "%s", "/no", 1), fault.CredentialInvalid, "401"},
		"Private":      {`{"credential_id": "c"}`, `{"query": "x"}`, `{"provider": "searxng", "base_url": "http://10.0.0.1"}`, fault.BlockedAddress, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.credential = strings.ReplaceAll(c.credential, "%s", "")
			r.credentialType, r.credential = "search", c.credential
			_, err := r.run(c.config, c.input)
			nodetest.WantError(t, err, c.code, c.part)
			if strings.Contains(fmt.Sprintf("%+v", fault.From(err)), nodetest.Canary) {
				t.Errorf("the key is in %v", err)
			}
		})
	}
	t.Run("Busy", func(t *testing.T) {
		r.credentialType, r.credential = "search", strings.Replace(searxng, "%s", "/busy", 1)
		_, err := r.run(`{"credential_id": "c"}`, `{"query": "x"}`)
		failure, ok := err.(*node.Failure)
		if !ok || failure.RetryAfter != 30*time.Second || !fault.From(err).Retryable {
			t.Errorf("got %#v", err)
		}
	})
}
