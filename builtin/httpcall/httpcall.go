// Package httpcall makes the HTTP calls of kinds: an address filled from data, headers and a body, a credential that stays on its host,
// pages of a list, and the answer as text, JSON or a file. A kind that calls a service sets a [Call] up and runs it.
//
// The families of kinds import it. The connections are made by package outbound.
package httpcall

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

	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

// Config is what a call is configured with. The kinds that call services share it.
type Config struct {
	Method            string          `json:"method" enum:"GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS" doc:"The method of the call." zh:"调用方法。"`
	URL               string          `json:"url" required:"true" doc:"The address." zh:"地址。"`
	Headers           node.Object     `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	QueryParams       node.Object     `json:"query_params" doc:"Parameters that are added to the address." zh:"附加到地址的查询参数。"`
	Body              json.RawMessage `json:"body" doc:"What is sent; without it the body of the input." zh:"发送的内容；省略时取输入的 body。"`
	BodyType          string          `json:"body_type" enum:"json|form|raw|none" doc:"How the body is written." zh:"请求体的格式。"`
	FollowRedirects   bool            `json:"follow_redirects" doc:"Whether redirects are followed." zh:"是否跟随重定向。"`
	MaxRedirects      int             `json:"max_redirects" range:"0..20" with:"follow_redirects=true" doc:"How many redirects are followed." zh:"最多跟随几次重定向。"`
	ResponseType      string          `json:"response_type" enum:"auto|json|text|file" doc:"How the answer is read." zh:"如何读取响应。"`
	FailOnStatus      bool            `json:"fail_on_status" doc:"Whether a status of 400 or more fails the node." zh:"按状态码失败：状态码不小于 400 时节点是否失败。"`
	IdempotencyHeader string          `json:"idempotency_header" filled:"true" doc:"A header that lets the service recognise a repeated call; with it the call may be repeated." zh:"使服务识别重复调用的请求头；设置后可安全重试。"`
	Pagination        *Pages          `json:"pagination" doc:"How further pages are fetched and put together." zh:"如何获取并合并后续页面。"`
}

func (c *Config) Defaults() {
	c.Method, c.BodyType, c.ResponseType = http.MethodGet, "json", "auto"
	c.FollowRedirects, c.MaxRedirects, c.FailOnStatus = true, 5, true
}

// Input is what data may add to a call. It never replaces what the author has fixed.
type Input struct {
	Body               json.RawMessage `json:"body,omitempty" doc:"What is sent, if the configuration has no body." zh:"内容：未配置 body 时发送的内容。"`
	URLVariables       json.RawMessage `json:"url_variables,omitempty" doc:"Values for the names in braces in the address." zh:"地址中花括号名称的值。"`
	DynamicHeaders     json.RawMessage `json:"dynamic_headers,omitempty" doc:"Further headers." zh:"附加的请求头。"`
	DynamicQueryParams json.RawMessage `json:"dynamic_query_params,omitempty" doc:"Further parameters of the query." zh:"附加的查询参数。"`
}

// Output is what came of a call.
type Output struct {
	StatusCode int               `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	Headers    map[string]string `json:"headers" doc:"The headers of the answer, in lower case." zh:"响应头，名称为小写。"`
	Body       string            `json:"body" doc:"The body of the answer as text." zh:"响应正文。"`
	JSON       json.RawMessage   `json:"json" doc:"The body as a value, if it is JSON; else null." zh:"正文为 JSON 时的值，否则为 null。"`
	Success    bool              `json:"success" doc:"Whether the status is one of success, 200 to 299." zh:"是否成功：状态码为 200 至 299。"`
	// ResponseTime is in milliseconds, of all pages together.
	ResponseTime int64          `json:"response_time" doc:"How long the call took, in milliseconds." zh:"调用耗时（毫秒）。"`
	URL          string         `json:"url" doc:"The address that answered." zh:"作出响应的地址。"`
	Redirects    []Hop          `json:"redirects,omitempty" doc:"The addresses that led there." zh:"经过的重定向。"`
	File         *fileref.Value `json:"file,omitempty" doc:"The body as a file, with response_type file." zh:"文件：response_type 为 file 时的文件。"`
	// Pages and Truncated are about pagination: how many were read, and whether there are more.
	Pages     int  `json:"pages,omitempty" doc:"How many pages were fetched, with pagination." zh:"分页时获取的页数。"`
	Truncated bool `json:"truncated,omitempty" doc:"Whether there were more pages than max_pages." zh:"是否截断：超过 max_pages 而未取完。"`
}

// Hop is one redirect that was followed: the status and where it led.
type Hop struct {
	StatusCode int    `json:"status_code"`
	URL        string `json:"url"`
}

const (
	// maxText is up to which size a JSON answer is also handed on as text: a larger one would be kept twice.
	maxText = 256 << 10
	// MaxExcerpt is how much of a refusal's body its error shows.
	MaxExcerpt = 2 << 10
	// maxPages bounds what all pages together have.
	maxPages = outbound.DefaultMaxResponse
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

// SentRequest tells what a call of the kind sends.
func SentRequest(call *node.Call) (any, error) {
	cfg, err := node.Configuration[Config](call.Config)
	if err != nil {
		return nil, err
	}
	var in Input
	if len(call.Input) > 0 && json.Unmarshal(call.Input, &in) != nil {
		in = Input{} // the kind says what is wrong with it
	}
	body, input := cfg.Body, call.Input
	if values.IsNull(body) && cfg.Method != http.MethodGet && !values.IsNull(in.Body) {
		body, input = in.Body, nil
	}
	return Sent(cfg, in, body, input)
}

// Sent is the call as people are shown it before it is made: without what is secret, and with what a credential adds left out.
func Sent(cfg Config, in Input, body, input json.RawMessage) (any, error) {
	out := sentHTTP{Method: cfg.Method, URL: cfg.URL, Input: input}
	if !values.IsNull(body) {
		out.Body = body
	}
	if address, err := address(cfg.URL, in.URLVariables, ""); err == nil { // otherwise the rest of it is in the credential
		if addQuery(address, cfg.QueryParams, in.DynamicQueryParams) == nil {
			out.URL = maskedURL(address)
		}
	}
	header := http.Header{}
	if err := AddHeaders(header, cfg.Headers, in.DynamicHeaders); err != nil {
		return nil, err
	}
	out.Headers = masked(header)
	return out, nil
}

// OnceMethod says that repeating a call with this method may do its work a second time.
func OnceMethod(method string) bool { return method == http.MethodPost || method == http.MethodPatch }

// Call is one run of the kind.
type Call struct {
	Client *outbound.Client
	Node   *node.Call
	Config Config
	Once   bool // a repeat would be a second effect
	// Answered is how many calls of this run the service has answered well: what has happened cannot be "not taken".
	Answered int
	// reached says that the service has answered at all.
	reached bool
	Auth    *Auth
	Header  http.Header
	body    []byte
	Home    *url.URL
	timeout time.Duration
	elapsed time.Duration
	// Adjust, when it is not nil, has the last word on every call.
	Adjust func(*outbound.Request)
}

// Run makes the call, or all calls of a listing that comes in pages, and reads the answer.
func (x *Call) Run(ctx context.Context, in Input, tokens *Tokens) (Output, error) {
	if err := x.Begin(ctx, in, tokens); err != nil {
		return Output{}, err
	}
	var out Output
	var err error
	if x.Config.Pagination != nil {
		out, err = x.pages(ctx)
	} else {
		out, err = x.single(ctx)
	}
	if err == nil && x.Auth != nil {
		err = x.Auth.Clean(&out)
	}
	return out, err
}

// Begin reads what all kinds have in common, opens the credential and makes the parts of the call.
func (x *Call) Begin(ctx context.Context, in Input, tokens *Tokens) error {
	common := gjson.GetManyBytes(x.Node.Config, "credential_id", "timeout", "idempotency_header")
	if common[2].Type == gjson.String && x.Config.IdempotencyHeader == "" {
		// The node counts as repeatable because of it.
		return fault.New(fault.InvalidConfig, `"idempotency_header" is empty; name the header or leave it out`).With("path", "configurations.idempotency_header")
	}
	x.timeout = time.Duration(common[1].Int()) * time.Second
	if x.timeout <= 0 {
		x.timeout = outbound.DefaultTotal
	}
	base := ""
	if id := common[0].Str; id != "" && x.Auth == nil {
		var err error
		if x.Auth, err = openAuth(ctx, x.Node, id, tokens); err != nil {
			return err
		}
		base = x.Auth.data.BaseURL
	}
	return x.build(ctx, in, base)
}

// build makes the address, the headers and the body.
func (x *Call) build(ctx context.Context, in Input, base string) error {
	var err error
	if x.Home, err = address(x.Config.URL, in.URLVariables, base); err != nil {
		return err
	}
	if err = addQuery(x.Home, x.Config.QueryParams, in.DynamicQueryParams); err != nil {
		return err
	}
	x.Header = http.Header{}
	if err = AddHeaders(x.Header, x.Config.Headers, in.DynamicHeaders); err != nil {
		return err
	}
	given := x.Config.Body
	if values.IsNull(given) && (x.Config.Method == http.MethodPost || x.Config.Method == http.MethodPut ||
		x.Config.Method == http.MethodPatch) {
		given = in.Body
	}
	var contentType string
	if x.body, contentType, err = bodyOf(ctx, x.Node, x.Config.BodyType, given); err != nil {
		return err
	}
	if contentType != "" && x.Header.Get("Content-Type") == "" {
		x.Header.Set("Content-Type", contentType)
	}
	if x.Header.Get("Accept") == "" && x.Config.ResponseType == "json" {
		x.Header.Set("Accept", "application/json")
	}
	return nil
}

// idempotencyKey follows from what is being done, so that every attempt of it has the same.
func (x *Call) idempotencyKey() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", x.Node.ExecutionID, x.Node.ActivationID, x.Node.Generation, x.Answered))
	return "tandem-" + hex.EncodeToString(sum[:16])
}

// Ask makes a call, and makes it again with a fresh token if the service refuses an old one.
func (x *Call) Ask(ctx context.Context, target *url.URL) (*outbound.Response, error) {
	header := x.Header.Clone()
	r := outbound.Request{
		Method: x.Config.Method, URL: target, Home: x.Home, Header: header, Body: x.body, Redirects: outbound.NoFollow,
		Timeout: x.timeout, FirstByte: x.timeout, Repeatable: !x.Once,
	}
	if x.Config.FollowRedirects {
		r.Redirects = x.Config.MaxRedirects
	}
	if name := x.Config.IdempotencyHeader; name != "" {
		r.Portable = []string{name}
		if header.Get(name) == "" {
			header.Set(name, x.idempotencyKey())
		}
	}
	if x.Adjust != nil {
		x.Adjust(&r)
	}
	for refreshed := false; ; refreshed = true {
		fresh := true
		if x.Auth != nil {
			var err error
			if r.Secret, fresh, err = x.Auth.secret(ctx, refreshed); err != nil {
				return nil, err
			}
		}
		x.detail(r, nil)
		begun := time.Now()
		response, err := x.Client.Do(ctx, r)
		x.elapsed += time.Since(begun)
		if err != nil {
			return nil, err
		}
		x.detail(r, response)
		if refused := response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden; refused &&
			!fresh && !response.Foreign {
			if err := response.Body.Close(); err != nil {
				x.Log(node.Debug, "the refusal of an old token was not read to its end", nil)
			}
			continue
		}
		if response.Foreign && r.Secret != nil {
			x.Log(node.Warn, "the call was led to another host, so the credential was not sent there", map[string]any{"host": response.URL.Host})
		}
		x.reached = true
		return response, nil
	}
}

// Log writes a line to the log of the node, if the run has one.
func (x *Call) Log(level node.Level, message string, fields map[string]any) {
	if x.Node.Log != nil {
		x.Node.Log(level, message, fields)
	}
}

// detail tells people what was called and what came back, without what is secret by its name.
func (x *Call) detail(r outbound.Request, response *outbound.Response) {
	if x.Node.Detail == nil {
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
	x.Node.Detail(x.Auth.CleanFields(fields))
}

func masked(header http.Header) map[string]string {
	out := FlatHeader(header)
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
		if plain, err := url.QueryUnescape(name); ok && (err != nil || credential.SensitiveHeader(plain) ||
			strings.EqualFold(plain, "key") || strings.EqualFold(plain, "sig")) {
			pair = name + "=" + credential.Mark
		}
		pairs = append(pairs, pair)
	}
	shown.RawQuery = strings.Join(pairs, "&")
	return shown.String()
}

// FlatHeader is a header with a value for each name, in lower case; several values are joined by commas.
func FlatHeader(header http.Header) map[string]string {
	out := make(map[string]string, len(header))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		out[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(header[name], ", "), "\uFFFD")
	}
	return out
}

func hops(r *outbound.Response) []Hop {
	var list []Hop
	for _, h := range r.Hops {
		list = append(list, Hop{h.Status, h.URL})
	}
	return list
}

// Failed tells the runtime what a failure means for a repeat.
func (x *Call) Failed(err error) error {
	e, ok := errors.AsType[*outbound.Error](err)
	f := fault.From(err)
	if x.Auth != nil {
		f = x.Auth.Redact.Fault(f)
	}
	if !ok {
		if x.Once && (x.Answered > 0 || x.reached) {
			f = f.Final() // what goes wrong here does not undo what was done there
		}
		return f
	}
	switch {
	case x.Once && e.Fate == outbound.Unknown:
		lost := fault.Newf(fault.OutcomeUnknown, "%s; whether the service has taken the request is not known", f.Message).WithDetail(f.Detail)
		lost.Details = maps.Clone(f.Details)
		f = lost.With("cause", string(f.Code))
	case x.Once && (e.Fate == outbound.Answered || x.Answered > 0):
		f = f.Final() // a known outcome, or a page after one that had its effect
	}
	return &node.Failure{Err: f, RetryAfter: e.RetryAfter}
}

// EffectOf is the class of an HTTP call: what is repeatable by the protocol is idempotent.
func EffectOf(method string) workflow.Effect {
	switch strings.ToUpper(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return workflow.Idempotent
	}
	return workflow.Once // also when the method is only known at run time
}

// Redirected makes the call what follows a redirect.
func (x *Call) Redirected(status int) {
	keep := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect || x.Config.Method == http.MethodGet ||
		x.Config.Method == http.MethodHead
	if keep || status != http.StatusSeeOther && x.Config.Method != http.MethodPost {
		return
	}
	if x.Once {
		x.Answered++ // the first host has taken it; only its answer is fetched now
	}
	x.Config.Method, x.body = http.MethodGet, nil
	x.Header.Del("Content-Type")
}
