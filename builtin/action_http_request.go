package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type httpConfig struct {
	Method            string          `json:"method" enum:"GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS" doc:"The method of the call." zh:"调用方法。"`
	URL               string          `json:"url" required:"true" doc:"The address." zh:"地址。"`
	Headers           node.Object     `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	QueryParams       node.Object     `json:"query_params" doc:"Parameters that are added to the address." zh:"附加到地址的查询参数。"`
	Body              json.RawMessage `json:"body" doc:"What is sent; without it the body of the input." zh:"发送的内容；省略时取输入的 body。"`
	BodyType          string          `json:"body_type" enum:"json|form|raw|none" doc:"How the body is written." zh:"请求体的格式。"`
	FollowRedirects   bool            `json:"follow_redirects" doc:"Whether redirects are followed." zh:"是否跟随重定向。"`
	MaxRedirects      int             `json:"max_redirects" range:"0..20" with:"follow_redirects=true" doc:"How many redirects are followed." zh:"最多跟随几次重定向。"`
	ResponseType      string          `json:"response_type" enum:"auto|json|text|file" doc:"How the answer is read." zh:"如何读取响应。"`
	FailOnStatus      bool            `json:"fail_on_status" doc:"Whether a status of 400 or more fails the node." zh:"状态码不小于 400 时节点是否失败。"`
	IdempotencyHeader string          `json:"idempotency_header" doc:"A header that lets the service recognise a repeated call; with it the call may be repeated." zh:"使服务识别重复调用的请求头；设置后可安全重试。"`
	Pagination        *httpPages      `json:"pagination" doc:"How further pages are fetched and put together." zh:"如何获取并合并后续页面。"`
}

func (c *httpConfig) Defaults() {
	c.Method, c.BodyType, c.ResponseType = http.MethodGet, "json", "auto"
	c.FollowRedirects, c.MaxRedirects, c.FailOnStatus = true, 5, true
}

// httpInput is what data may add to a call. It never replaces what the author has fixed.
type httpInput struct {
	Body               json.RawMessage `json:"body,omitempty" doc:"What is sent, if the configuration has no body." zh:"未配置 body 时发送的内容。"`
	URLVariables       json.RawMessage `json:"url_variables,omitempty" doc:"Values for the names in braces in the address." zh:"地址中花括号名称的值。"`
	DynamicHeaders     json.RawMessage `json:"dynamic_headers,omitempty" doc:"Further headers." zh:"附加的请求头。"`
	DynamicQueryParams json.RawMessage `json:"dynamic_query_params,omitempty" doc:"Further parameters of the query." zh:"附加的查询参数。"`
}

type httpOutput struct {
	StatusCode int               `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	Headers    map[string]string `json:"headers" doc:"The headers of the answer, in lower case." zh:"响应头，名称为小写。"`
	Body       string            `json:"body" doc:"The body of the answer as text." zh:"响应正文。"`
	JSON       json.RawMessage   `json:"json" doc:"The body as a value, if it is JSON; else null." zh:"正文为 JSON 时的值，否则为 null。"`
	Success    bool              `json:"success" doc:"Whether the status is one of success, 200 to 299." zh:"状态码是否为 200 至 299。"`
	// ResponseTime is in milliseconds, of all pages together.
	ResponseTime int64      `json:"response_time" doc:"How long the call took, in milliseconds." zh:"调用耗时（毫秒）。"`
	URL          string     `json:"url" doc:"The address that answered." zh:"作出响应的地址。"`
	Redirects    []httpHop  `json:"redirects,omitempty" doc:"The addresses that led there." zh:"经过的重定向。"`
	File         *fileValue `json:"file,omitempty" doc:"The body as a file, with response_type file." zh:"response_type 为 file 时的文件。"`
	// Pages and Truncated are about pagination: how many were read, and whether there are more.
	Pages     int  `json:"pages,omitempty" doc:"How many pages were fetched, with pagination." zh:"分页时获取的页数。"`
	Truncated bool `json:"truncated,omitempty" doc:"Whether there were more pages than max_pages." zh:"是否超过 max_pages 而未取完。"`
}

type httpHop struct {
	StatusCode int    `json:"status_code"`
	URL        string `json:"url"`
}

const (
	// maxHTTPText is up to which size a JSON answer is also handed on as text: a larger one would be kept twice.
	maxHTTPText = 256 << 10
	// maxHTTPExcerpt is how much of a refusal's body its error shows.
	maxHTTPExcerpt = 2 << 10
	// maxHTTPPages bounds what all pages together have.
	maxHTTPPages = outbound.DefaultMaxResponse
)

// sentHTTP is what a call sends, as far as it can be told without its credential.
type sentHTTP struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	// Input is the node's, unless it is what the body was taken from.
	Input json.RawMessage `json:"input,omitempty"`
}

// sentRequest tells what a call of the kind sends.
func sentRequest(call *node.Call) (any, error) {
	cfg, err := node.Configuration[httpConfig](call.Config)
	if err != nil {
		return nil, err
	}
	var in httpInput
	if len(call.Input) > 0 && json.Unmarshal(call.Input, &in) != nil {
		in = httpInput{} // the kind says what is wrong with it
	}
	body, input := cfg.Body, call.Input
	if isNull(body) && cfg.Method != http.MethodGet && !isNull(in.Body) {
		body, input = in.Body, nil
	}
	return sentCall(cfg, in, body, input)
}

func sentCall(cfg httpConfig, in httpInput, body, input json.RawMessage) (any, error) {
	out := sentHTTP{Method: cfg.Method, URL: cfg.URL, Input: input}
	if !isNull(body) {
		out.Body = body
	}
	if address, err := httpAddress(cfg.URL, in.URLVariables, ""); err == nil { // otherwise the rest of it is in the credential
		if addQuery(address, cfg.QueryParams, in.DynamicQueryParams) == nil {
			out.URL = maskedURL(address)
		}
	}
	header := http.Header{}
	if err := addHeaders(header, cfg.Headers, in.DynamicHeaders); err != nil {
		return nil, err
	}
	out.Headers = masked(header)
	return out, nil
}

func onceMethod(method string) bool { return method == http.MethodPost || method == http.MethodPatch }

// httpCall is one run of the kind.
type httpCall struct {
	client *outbound.Client
	call   *node.Call
	cfg    httpConfig
	once   bool // a repeat would be a second effect
	// answered is how many calls of this run the service has answered well: what has happened cannot be "not taken".
	answered int
	// reached says that the service has answered at all.
	reached bool
	auth    *httpAuth
	header  http.Header
	body    []byte
	home    *url.URL
	timeout time.Duration
	elapsed time.Duration
	// adjust, when it is not nil, has the last word on every call.
	adjust func(*outbound.Request)
}

func (x *httpCall) run(ctx context.Context, in httpInput, tokens *tokenCache) (httpOutput, error) {
	if err := x.begin(ctx, in, tokens); err != nil {
		return httpOutput{}, err
	}
	var out httpOutput
	var err error
	if x.cfg.Pagination != nil {
		out, err = x.pages(ctx)
	} else {
		out, err = x.single(ctx)
	}
	if err == nil && x.auth != nil {
		err = x.auth.clean(&out)
	}
	return out, err
}

// begin reads what all kinds have in common, opens the credential and makes the parts of the call.
func (x *httpCall) begin(ctx context.Context, in httpInput, tokens *tokenCache) error {
	common := gjson.GetManyBytes(x.call.Config, "credential_id", "timeout", "idempotency_header")
	if common[2].Type == gjson.String && x.cfg.IdempotencyHeader == "" {
		// The node counts as repeatable because of it.
		return fault.New(fault.InvalidConfig, `"idempotency_header" is empty; name the header or leave it out`).With("path", "configurations.idempotency_header")
	}
	x.timeout = time.Duration(common[1].Int()) * time.Second
	if x.timeout <= 0 {
		x.timeout = outbound.DefaultTotal
	}
	base := ""
	if id := common[0].Str; id != "" {
		var err error
		if x.auth, err = openHTTPAuth(ctx, x.call, id, tokens); err != nil {
			return err
		}
		base = x.auth.data.BaseURL
	}
	return x.build(ctx, in, base)
}

// build makes the address, the headers and the body.
func (x *httpCall) build(ctx context.Context, in httpInput, base string) error {
	var err error
	if x.home, err = httpAddress(x.cfg.URL, in.URLVariables, base); err != nil {
		return err
	}
	if err = addQuery(x.home, x.cfg.QueryParams, in.DynamicQueryParams); err != nil {
		return err
	}
	x.header = http.Header{}
	if err = addHeaders(x.header, x.cfg.Headers, in.DynamicHeaders); err != nil {
		return err
	}
	given := x.cfg.Body
	if isNull(given) && (x.cfg.Method == http.MethodPost || x.cfg.Method == http.MethodPut || x.cfg.Method == http.MethodPatch) {
		given = in.Body
	}
	var contentType string
	if x.body, contentType, err = httpBody(ctx, x.call, x.cfg.BodyType, given); err != nil {
		return err
	}
	if contentType != "" && x.header.Get("Content-Type") == "" {
		x.header.Set("Content-Type", contentType)
	}
	if x.header.Get("Accept") == "" && x.cfg.ResponseType == "json" {
		x.header.Set("Accept", "application/json")
	}
	return nil
}

// idempotencyKey follows from what is being done, so that every attempt of it has the same.
func (x *httpCall) idempotencyKey() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", x.call.ExecutionID, x.call.ActivationID, x.call.Generation, x.answered))
	return "tandem-" + hex.EncodeToString(sum[:16])
}

// ask makes a call, and makes it again with a fresh token if the service refuses an old one.
func (x *httpCall) ask(ctx context.Context, target *url.URL) (*outbound.Response, error) {
	header := x.header.Clone()
	r := outbound.Request{
		Method: x.cfg.Method, URL: target, Home: x.home, Header: header, Body: x.body, Redirects: outbound.NoFollow,
		Timeout: x.timeout, FirstByte: x.timeout, Repeatable: !x.once,
	}
	if x.cfg.FollowRedirects {
		r.Redirects = x.cfg.MaxRedirects
	}
	if name := x.cfg.IdempotencyHeader; name != "" {
		r.Portable = []string{name}
		if header.Get(name) == "" {
			header.Set(name, x.idempotencyKey())
		}
	}
	if x.adjust != nil {
		x.adjust(&r)
	}
	for refreshed := false; ; refreshed = true {
		fresh := true
		if x.auth != nil {
			var err error
			if r.Secret, fresh, err = x.auth.secret(ctx, refreshed); err != nil {
				return nil, err
			}
		}
		x.detail(r, nil)
		begun := time.Now()
		response, err := x.client.Do(ctx, r)
		x.elapsed += time.Since(begun)
		if err != nil {
			return nil, err
		}
		x.detail(r, response)
		if refused := response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden; refused && !fresh && !response.Foreign {
			if err := response.Body.Close(); err != nil {
				x.log(node.Debug, "the refusal of an old token was not read to its end", nil)
			}
			continue
		}
		if response.Foreign && r.Secret != nil {
			x.log(node.Warn, "the call was led to another host, so the credential was not sent there", map[string]any{"host": response.URL.Host})
		}
		x.reached = true
		return response, nil
	}
}

func (x *httpCall) log(level node.Level, message string, fields map[string]any) {
	if x.call.Log != nil {
		x.call.Log(level, message, fields)
	}
}

// detail tells people what was called and what came back, without what is secret by its name.
func (x *httpCall) detail(r outbound.Request, response *outbound.Response) {
	if x.call.Detail == nil {
		return
	}
	sent := r.Header.Clone()
	if r.Secret != nil {
		for name := range r.Secret.Header {
			sent.Set(name, credential.Mark)
		}
	}
	fields := map[string]any{"api_endpoint": maskedURL(r.URL), "http_method": r.Method, "request_headers": masked(sent)}
	if response != nil {
		fields["response_status"], fields["response_headers"] = response.Status, masked(response.Header)
		if len(response.Hops) > 0 {
			fields["redirects"] = hops(response)
		}
	}
	x.call.Detail(x.auth.cleanFields(fields))
}

func masked(header http.Header) map[string]string {
	out := flatHeader(header)
	for name := range out {
		if credential.SensitiveHeader(name) {
			out[name] = credential.Mark
		}
	}
	return out
}

// maskedURL hides the values of query parameters that are secret by their name.
func maskedURL(u *url.URL) string {
	shown := *u
	var pairs []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, ok := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); ok && (err != nil || credential.SensitiveHeader(plain) || strings.EqualFold(plain, "key") || strings.EqualFold(plain, "sig")) {
			pair = name + "=" + credential.Mark
		}
		pairs = append(pairs, pair)
	}
	shown.RawQuery = strings.Join(pairs, "&")
	return shown.String()
}

func flatHeader(header http.Header) map[string]string {
	out := make(map[string]string, len(header))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		out[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(header[name], ", "), "\uFFFD")
	}
	return out
}

func hops(r *outbound.Response) []httpHop {
	var list []httpHop
	for _, h := range r.Hops {
		list = append(list, httpHop{h.Status, h.URL})
	}
	return list
}

// failed tells the runtime what a failure means for a repeat.
func (x *httpCall) failed(err error) error {
	e, ok := errors.AsType[*outbound.Error](err)
	f := fault.From(err)
	if x.auth != nil {
		f = x.auth.redact.Fault(f)
	}
	if !ok {
		if x.once && (x.answered > 0 || x.reached) {
			f = f.Final() // what goes wrong here does not undo what was done there
		}
		return f
	}
	switch {
	case x.once && e.Fate == outbound.Unknown:
		lost := fault.Newf(fault.OutcomeUnknown, "%s; whether the service has taken the request is not known", f.Message).WithDetail(f.Detail)
		lost.Details = maps.Clone(f.Details)
		f = lost.With("cause", string(f.Code))
	case x.once && (e.Fate == outbound.Answered || x.answered > 0):
		f = f.Final() // a known outcome, or a page after one that had its effect
	}
	return &node.Failure{Err: f, RetryAfter: e.RetryAfter}
}

// effectOfMethod is the class of an HTTP call: what is repeatable by the protocol is idempotent.
func effectOfMethod(method string) workflow.Effect {
	switch strings.ToUpper(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return workflow.Idempotent
	}
	return workflow.Once // also when the method is only known at run time
}

// redirected makes the call what follows a redirect.
func (x *httpCall) redirected(status int) {
	keep := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect || x.cfg.Method == http.MethodGet || x.cfg.Method == http.MethodHead
	if keep || status != http.StatusSeeOther && x.cfg.Method != http.MethodPost {
		return
	}
	if x.once {
		x.answered++ // the first host has taken it; only its answer is fetched now
	}
	x.cfg.Method, x.body = http.MethodGet, nil
	x.header.Del("Content-Type")
}
