package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/fault"
	"tandem/node/nodetest"
)

func TestHTTPClient(t *testing.T) {
	t.Parallel()
	var thief atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			thief.Add(1)
		}
		_, _ = io.WriteString(w, "other"+r.Header.Get("Content-Type"))
	}))
	t.Cleanup(other.Close)
	r := newServiceRig(t, "TOOL.HTTP_CLIENT", nil, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>Hi</title><script>x()</script><p>there</p>")
		case "/echo":
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"method": %q, "uri": %q, "type": %q, "auth": %q, "own": %q, "body": %q}`, req.Method, req.URL.RequestURI(), req.Header.Get("Content-Type"), req.Header.Get("Authorization"), req.Header.Get("X-Own"), body)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("\"\n", 50<<10))
		case "/huge":
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
		case "/away":
			http.Redirect(w, req, "http://elsewhere.example/", http.StatusFound)
		case "/inside":
			http.Redirect(w, req, "/echo?from=inside", http.StatusSeeOther)
		case "/kept":
			http.Redirect(w, req, "/echo", http.StatusTemporaryRedirect)
		case "/partner":
			http.Redirect(w, req, other.URL+"/", http.StatusFound)
		case "/partner-kept":
			http.Redirect(w, req, other.URL+"/", http.StatusTemporaryRedirect)
		case "/round":
			http.Redirect(w, req, "/round", http.StatusFound)
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = io.WriteString(w, "\x89PNG")
		case "/drop":
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "no such page")
		}
	})
	r.credentialType, r.credential = "http_auth", `{"scheme": "bearer", "token": "t0ken-of-the-user"}`
	config := func(more string) string { return `{"allowed_domains": ["127.0.0.1"]` + more + `}` }
	all := `, "allowed_methods": ["GET", "post"], "credential_id": "c"`
	for name, c := range map[string]struct{ config, args, want string }{
		"Page":     {config(``), `{"url": "$URL/page"}`, `{"status_code": 200, "text": "Hi\nthere", "truncated": false}`},
		"Query":    {config(``), `{"url": "$URL/echo?a=1", "query": {"b": "x y"}, "headers": {"X-Own": "o"}}`, `{"json": {"method": "GET", "uri": "/echo?a=1&b=x+y", "own": "o", "auth": ""}}`},
		"Post":     {config(all), `{"method": "POST", "url": "$URL/echo", "body": {"a": [1]}, "headers": {"Authorization": "mine"}}`, `{"json": {"type": "application/json", "auth": "Bearer t0ken-of-the-user", "body": "{\"a\": [1]}"}}`},
		"PostText": {config(all), `{"method": "POST", "url": "$URL/echo", "body": "plain"}`, `{"json": {"type": "text/plain; charset=utf-8", "body": "plain"}}`},
		"Inside":   {config(all), `{"method": "POST", "url": "$URL/inside", "body": {"a": 1}}`, `{"json": {"method": "GET", "uri": "/echo?from=inside", "body": "", "auth": "Bearer t0ken-of-the-user"}}`},
		"Kept":     {config(all), `{"method": "POST", "url": "$URL/kept", "body": {"a": 1}}`, `{"json": {"method": "POST", "body": "{\"a\": 1}"}}`},
		"Partner":  {config(all), `{"url": "$URL/partner"}`, `{"text": "other"}`},
		"Led":      {config(all), `{"method": "POST", "url": "$URL/partner-kept", "body": {"a": 1}}`, `{"text": "otherapplication/json"}`},
		"Port":     {`{"allowed_domains": ["` + strings.TrimPrefix(r.server.URL, "http://") + `"]}`, `{"url": "$URL/page"}`, `{"status_code": 200}`},
		"Below":    {`{"allowed_domains": ["*.example.com"]}`, `{"url": "http://a.b.example.com:` + r.server.URL[strings.LastIndexByte(r.server.URL, ':')+1:] + `/page"}`, `{"status_code": 200}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := r.result(t, c.config, `{"tool_name": "http_request", "function_args": `+c.args+`}`)
			for _, d := range nodetest.Differences("result", nodetest.Value(t, `{"success": true, "result": `+c.want+`}`), nodetest.Value(t, out)) {
				t.Error(d)
			}
		})
	}
	t.Run("Truncated", func(t *testing.T) {
		t.Parallel()
		out := r.result(t, config(``), `{"tool_name": "http_request", "function_args": {"url": "$URL/long"}}`)
		if len(out) > 64<<10 || len(out) < 50<<10 || !strings.Contains(out, `"truncated":true`) {
			t.Errorf("%d bytes", len(out))
		}
	})
	for name, c := range map[string]struct {
		config, args string
		code         fault.Code
		part         string
	}{
		"OtherDomain":  {config(``), `{"url": "http://elsewhere.example/"}`, fault.ToolError, "not among the allowed domains"},
		"NotBelow":     {`{"allowed_domains": ["*.example.com"]}`, `{"url": "http://badexample.com/"}`, fault.ToolError, "not among the allowed domains"},
		"NotItself":    {`{"allowed_domains": ["example.com"]}`, `{"url": "http://example.com.evil.test/"}`, fault.ToolError, "not among"},
		"UserInfo":     {`{"allowed_domains": ["example.com"]}`, `{"url": "http://example.com@evil.test/"}`, fault.ToolError, "not among"},
		"Redirect":     {config(``), `{"url": "$URL/away"}`, fault.ToolError, "redirects elsewhere"},
		"Round":        {config(``), `{"url": "$URL/round"}`, fault.ToolError, "more than 5 redirects"},
		"Method":       {config(``), `{"url": "$URL/page", "method": "DELETE"}`, fault.ToolError, "use GET"},
		"NoURL":        {config(``), `{}`, fault.ParameterMissing, "url"},
		"BadURL":       {config(``), `{"url": "page"}`, fault.ToolError, "absolute address"},
		"UnknownField": {config(``), `{"url": "$URL/page", "methode": "GET"}`, fault.ToolError, "methode"},
		"Private":      {`{"allowed_domains": ["10.0.0.1"]}`, `{"url": "http://10.0.0.1/"}`, fault.BlockedAddress, "10.0.0.1"},
		"Missing":      {config(``), `{"url": "$URL/none"}`, fault.NotFound, "404"},
		"Huge":         {config(``), `{"url": "$URL/huge"}`, fault.TooLarge, "1048576"},
		"Image":        {config(``), `{"url": "$URL/image"}`, fault.ToolError, "image/png"},
		"Dropped":      {config(all), `{"url": "$URL/drop", "method": "POST"}`, fault.OutcomeUnknown, "not known"},
		"NoDomains":    {`{"allowed_domains": []}`, `{"url": "$URL/page"}`, fault.InvalidConfig, "allowed_domains"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := r.run(c.config, `{"tool_name": "http_request", "function_args": `+c.args+`}`)
			nodetest.WantError(t, err, c.code, c.part)
		})
	}
	t.Run("Name", func(t *testing.T) {
		t.Parallel()
		_, err := r.run(config(`, "tool_prefix": "web_"`), `{"tool_name": "web_http_requst", "function_args": {}}`)
		nodetest.WantError(t, err, fault.ToolError, `"http_request"`)
		if out := r.result(t, config(`, "tool_prefix": "web_"`), `{"tool_name": "web_http_request", "function_args": {"url": "$URL/page"}}`); !strings.Contains(out, `"success":true`) {
			t.Errorf("got %s", out)
		}
	})
	t.Cleanup(func() {
		if thief.Load() > 0 {
			t.Error("the credential was sent to another host")
		}
		if shown := fmt.Sprint(r.said); strings.Contains(shown, "t0ken") {
			t.Errorf("the credential is told: %s", shown)
		}
	})
}
