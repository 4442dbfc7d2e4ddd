package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tandem/builtin/document"
	"tandem/builtin/httpcall"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

type httpToolConfig struct {
	toolset.Fields
	AllowedDomains []string `json:"allowed_domains" required:"true" doc:"The hosts that may be called." zh:"允许调用的主机。"`
	AllowedMethods []string `json:"allowed_methods" enum:"GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS" doc:"The methods that may be used." zh:"允许使用的方法。"`
	MaxBytes       int64    `json:"max_bytes" range:"1.." doc:"The most bytes of an answer." zh:"响应的最多字节数。"`
}

func (c *httpToolConfig) Defaults() {
	c.Approval, c.AllowedMethods, c.MaxBytes = "inherit", []string{http.MethodGet}, 1<<20
}

// httpToolArgs are what a model says. What the author has fixed (domains, methods, the credential) is not among it.
type httpToolArgs struct {
	Method  string          `json:"method" enum:"GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"`
	URL     string          `json:"url" required:"true"`
	Query   node.Object     `json:"query"`
	Headers node.Object     `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

func (a *httpToolArgs) Defaults() { a.Method = http.MethodGet }

type httpToolResult struct {
	StatusCode  int               `json:"status_code"`
	URL         string            `json:"url"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers"`
	// JSON is the document, if the answer is one that fits; otherwise Text is what the answer says, a page without its markup.
	JSON      json.RawMessage `json:"json,omitempty"`
	Text      string          `json:"text,omitempty"`
	Truncated bool            `json:"truncated"`
}

const (
	maxToolRedirects = 5
	// httpToolText leaves room in a result for what stands around its text.
	httpToolText = toolset.MaxResult - 8<<10
)

// httpClient gives a model HTTP calls to a few hosts.
func httpClient(client *outbound.Client) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	k := node.Define(
		node.About{
			Name: "TOOL.HTTP_CLIENT", Title: node.Says("HTTP tool", "HTTP 工具"),
			Description: node.Says("Lets a model call addresses of a few domains.", "让模型调用指定域名的地址。"),
			Effect:      workflow.Idempotent, // as the most dangerous method that is allowed
			Needs:       node.Needs{Credential: []string{"http_auth", "oauth2"}, Optional: true},
			Keys:        toolset.Keys(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Fetches a page that a model may fetch as well.", "获取模型也可以获取的页面。"),
					Config:  `{"allowed_domains": ["api.example.com"], "allowed_methods": ["GET"]}`,
					Input:   `{"tool_name": "http_request", "function_args": {"url": "https://api.example.com/orders/7"}}`,
					Replies: []string{`{"id": 7}`},
					Output:  `{"result": {"result": {"status_code": 200, "url": "https://api.example.com/orders/7", "content_type": "application/json", "headers": {}, "json": {"id": 7}, "truncated": false}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "status_code": 200, "url": "https://api.example.com/orders/7", "content_type": "application/json", "headers": {}, "json": {"id": 7}, "truncated": false}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg httpToolConfig, in toolset.Input) (toolset.Output, error) {
			if len(cfg.AllowedDomains) == 0 {
				return toolset.Output{}, fault.New(fault.InvalidConfig, `"allowed_domains" is empty; name the hosts that may be called`).With("path", "configurations.allowed_domains")
			}
			x := &httpTool{client: client, call: call, cfg: cfg, tokens: tokens}
			return toolset.Run(ctx, call, cfg.Fields, in, x.tools())
		}, planHTTPClient)
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[httpToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		list := toolset.Offered(cfg.Fields, (&httpTool{cfg: cfg}).tools())
		for i := range list {
			list[i].EffectBy, list[i].Effects = "method", map[string]workflow.Effect{http.MethodPost: workflow.Once,
				http.MethodPatch: workflow.Once}
		}
		return list, nil
	}
	return k
}

func (t *httpTool) tools() []toolset.Tool {
	text := "Makes an HTTP request. Allowed hosts: " + strings.Join(t.cfg.AllowedDomains,
		", ") + ". Allowed methods: " + strings.Join(t.cfg.AllowedMethods, ", ") + "."
	return []toolset.Tool{toolset.New("http_request", toolset.Repeats, text, t.request)}
}

// httpTool is one run.
type httpTool struct {
	client *outbound.Client
	call   *node.Call
	cfg    httpToolConfig
	tokens *httpcall.Tokens
}

func (t *httpTool) request(ctx context.Context, args httpToolArgs) (any, error) {
	if !slices.Contains(t.cfg.AllowedMethods, args.Method) {
		return nil, fault.Newf(fault.ToolError, "the method %s is not allowed; use %s", args.Method, strings.Join(t.cfg.AllowedMethods, ", ")).With("path", "function_args.method")
	}
	x := &httpcall.Call{
		Client: t.client, Node: t.call, Once: httpcall.OnceMethod(args.Method),
		Adjust: func(r *outbound.Request) { r.MaxResponse = t.cfg.MaxBytes },
		Config: httpcall.Config{Method: args.Method, URL: args.URL, Headers: args.Headers, QueryParams: args.Query, Body: args.Body,
			BodyType: bodyTypeOf(args.Body)},
	}
	if err := x.Begin(ctx, httpcall.Input{}, t.tokens); err != nil {
		return nil, asToolError(err)
	}
	auth := x.Auth // x forgets it when the call is led away
	result, err := t.follow(ctx, x)
	if err != nil {
		x.Auth = auth
		return nil, x.Failed(err)
	}
	raw, err := payload.Encode(result)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the answer cannot be handed on").WithCause(err)
	}
	if auth != nil && auth.Held {
		raw = auth.Redact.JSON(raw)
	}
	return raw, nil
}

// asToolError tells a model what is wrong with its arguments. What is wrong with the node stays what it is.
func asToolError(err error) error {
	f := fault.From(err)
	if f.Code != fault.InvalidConfig && f.Code != fault.InvalidInput {
		return err
	}
	wrong := fault.New(fault.ToolError, f.Message)
	if at, ok := f.Details["path"].(string); ok {
		wrong = wrong.With("path", "function_args."+strings.TrimPrefix(at, "configurations."))
	}
	return wrong
}

// bodyTypeOf lets a text be sent as it is, unless it is a document already.
func bodyTypeOf(body json.RawMessage) string {
	if values.Leading(body) != '"' {
		return "json"
	}
	text, _ := values.Scalar(body)
	if first := values.Leading(json.RawMessage(text)); (first == '{' || first == '[') && json.Valid([]byte(text)) {
		return "json"
	}
	return "raw"
}

// follow makes the call, and those that redirects lead to as long as they stay among the domains.
func (t *httpTool) follow(ctx context.Context, x *httpcall.Call) (*httpToolResult, error) {
	target := x.Home
	for hops := 0; ; hops++ {
		if !allowedHost(target, t.cfg.AllowedDomains) {
			wrong := fault.Newf(fault.ToolError, "host %q is not among the allowed domains: %s", target.Host, strings.Join(t.cfg.AllowedDomains, ", ")).With("path", "function_args.url")
			if hops > 0 {
				wrong.Message = "the address redirects elsewhere: " + wrong.Message
			}
			return nil, wrong
		}
		response, err := x.Ask(ctx, target)
		if err != nil {
			return nil, err
		}
		next, err := location(response)
		if err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
		if next == nil {
			return t.readResponse(x, response)
		}
		if err := response.Body.Close(); err != nil {
			x.Log(node.Debug, "the body of a redirect was not read to its end", nil)
		}
		if hops == maxToolRedirects {
			return nil, fault.Newf(fault.ToolError, "the address leads to more than %d redirects", maxToolRedirects)
		}
		x.Redirected(response.Status)
		if next.Scheme != target.Scheme || next.Host != target.Host {
			x.Auth = nil // what has left its host stays without the credential, also when it comes back
			x.Home = next
			kept := http.Header{} // what says what the body is
			if kind := x.Header.Get("Content-Type"); kind != "" {
				kept.Set("Content-Type", kind)
			}
			x.Header = kept
		}
		target = next
	}
}

// location is where a redirect leads, nil when the answer is not a redirect.
func location(r *outbound.Response) (*url.URL, error) {
	switch r.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	text := r.Header.Get("Location")
	if text == "" {
		return nil, nil
	}
	next, err := r.URL.Parse(text)
	if err != nil {
		return nil, fault.Newf(fault.ToolError, "host %q redirects to something that is not an address", r.URL.Host)
	}
	return next, nil
}

// allowedHost says whether an address is on one of the hosts: "api.example.com", with a port if only that is meant, or
// "*.example.com" for all below it.
func allowedHost(u *url.URL, list []string) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return slices.ContainsFunc(list, func(allowed string) bool {
		allowed = strings.ToLower(strings.TrimSpace(allowed))
		if name, only, ok := strings.Cut(allowed, ":"); ok && !strings.Contains(only, ":") {
			if only != port {
				return false
			}
			allowed = name
		}
		allowed = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(allowed, "["), "]"), ".")
		if below, ok := strings.CutPrefix(allowed, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return host == allowed && host != ""
	})
}

// readResponse hands an answer on as a model can use it.
func (t *httpTool) readResponse(x *httpcall.Call, r *outbound.Response) (*httpToolResult, error) {
	out := &httpToolResult{StatusCode: r.Status, URL: r.URL.String(),
		ContentType: values.Readable([]byte(r.Header.Get("Content-Type")), 200), Headers: map[string]string{}}
	for _, name := range []string{"Date", "Etag", "Last-Modified", "Link", "Location", "Retry-After"} {
		if value := r.Header.Get(name); value != "" {
			out.Headers[strings.ToLower(name)] = values.Readable([]byte(value), 1<<10)
		}
	}
	limit := int(min(t.cfg.MaxBytes, 32<<20))
	said, _, ok, err := document.PageText(r.Header.Get("Content-Type"), r.Body, limit)
	if cerr := r.Body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if problem := r.Problem(x.Node.Time()); problem != nil {
		if shown := values.Readable([]byte(said), httpcall.MaxExcerpt); shown != "" {
			problem.Fault = problem.Fault.With("body", shown)
		}
		return nil, problem
	}
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fault.Newf(fault.ToolError, "the answer is not text but %q; it cannot be handed to a model", out.ContentType)
	}
	if trimmed := strings.TrimSpace(said); len(trimmed) <= httpToolText && trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') &&
		json.Valid([]byte(trimmed)) {
		out.JSON = json.RawMessage(trimmed)
		return out, nil
	}
	out.Text = text.Head(said, httpToolText)
	for size := len(values.Encode(out.Text)); size > httpToolText; size = len(values.Encode(out.Text)) { // as JSON it may be longer
		out.Text = text.Head(out.Text, len(out.Text)*httpToolText/size)
	}
	out.Truncated = len(out.Text) < len(said)
	return out, nil
}

// planHTTPClient: the node is as dangerous as the most dangerous method that is allowed.
func planHTTPClient(p *node.Planning, _ *httpToolConfig) {
	methods, known := p.Listed("allowed_methods", http.MethodGet)
	if !known || slices.ContainsFunc(methods, func(m string) bool { return httpcall.EffectOf(m) == workflow.Once }) {
		p.Effect = workflow.Once
	}
}
