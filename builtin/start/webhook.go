package start

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

// The ways by which a webhook knows who calls.
const (
	authNone      = "none"
	authHeader    = "header_token"
	authQuery     = "query_param"
	authSignature = "signature"
)

const (
	webhookCredential = "webhook_secret"
	// What a secret is sent under unless the credential says otherwise.
	defaultTokenHeader = "X-Tandem-Token"
	defaultTokenParam  = "token"
	// The headers of a signed request, as those of the calls that Tandem signs itself.
	headerTimestamp = "X-Tandem-Timestamp"
	headerSignature = "X-Tandem-Signature"
	// signatureWindow is how far the time of a signed request may be from ours.
	signatureWindow = 5 * time.Minute
)

type webhookConfig struct {
	Path           string   `json:"webhook_path" fixed:"true" doc:"The path below the address of the workflow. A part in braces, as in /orders/{id}, stands for any one part and is told in path_params." zh:"工作流地址之下的路径。花括号中的部分（如 /orders/{id}）可为任意一段，见 path_params。"`
	Methods        []string `json:"allowed_methods" enum:"GET|POST|PUT|PATCH|DELETE" fixed:"true" doc:"The methods that are taken." zh:"接受的请求方法。"`
	Authentication string   `json:"authentication" enum:"none|header_token|query_param|signature" fixed:"true" doc:"How a caller shows that it may: not at all, by the secret in a header or a parameter, or by signing the request with it." zh:"调用方如何证明身份：无需、请求头中的密钥、参数中的密钥，或用密钥签名。"`
	ResponseMode   string   `json:"response_mode" enum:"async|sync|node" fixed:"true" doc:"When the caller is answered: at once, with the result when the execution has ended, or when a FLOW.RESPOND node says so." zh:"何时答复调用方：立即、执行结束后返回结果，或由 FLOW.RESPOND 节点答复。"`
	ResponseFormat string   `json:"response_format" enum:"json|text|html" fixed:"true" with:"response_mode=sync" doc:"What the result is sent as." zh:"结果的格式。"`
	Timeout        int      `json:"response_timeout_seconds" range:"1..300" fixed:"true" with:"response_mode=sync|node" doc:"How long a caller waits for the answer, in seconds; then it is told that the execution goes on." zh:"调用方最多等待多少秒；超时则告知执行仍在继续。"`
	IDHeaders      []string `json:"delivery_id_headers" fixed:"true" doc:"The headers in which senders give the id of a delivery. The first that is there counts: a second request with the same id starts nothing and is answered as the first was." zh:"发送方给出投递编号的请求头，取首个存在者；编号相同的再次请求不会重复启动，答复与首次相同。"`
}

func (c *webhookConfig) Defaults() {
	c.Path, c.Methods, c.Authentication = "/webhook", []string{http.MethodPost}, authNone
	c.ResponseMode, c.ResponseFormat, c.Timeout = string(trigger.ReplyAtOnce), "json", 30
	c.IDHeaders = []string{"Idempotency-Key", "Webhook-Id", "X-Delivery-Id", "X-GitHub-Delivery"}
}

// triggerWebhook is where an execution begins that a request has started.
func triggerWebhook() node.Kind {
	return node.Define(
		node.About{
			Name: "TRIGGER.WEBHOOK", Title: node.Says("Webhook", "Webhook 触发"),
			Description: node.Says("Starts when a request comes to the address of the workflow, once it is deployed.", "工作流部署后，收到发往其地址的请求时启动。"),
			Effect:      workflow.Pure,
			Needs:       node.Needs{Credential: []string{webhookCredential}, Optional: true},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The request, with trigger_time, execution_id and trigger_message.", "请求内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("method", "The method.", "请求方法。"), node.Meaning("path",
					"The path below the address of the workflow.", "工作流地址之下的路径。"),
				node.Meaning("path_params", "The parts of the path that stand in braces.", "路径中花括号部分的值。"),
				node.Meaning("query_params", "The parameters of the query, without the secret.", "查询参数（不含密钥）。"),
				node.Meaning("headers", "The headers by their names in small letters, without secrets.", "请求头（名称小写，不含密钥）。"),
				node.Meaning("body", "The body: the value of JSON, the fields of a form, else a text.", "请求体：JSON 的值、表单字段或文本。"), node.Meaning("files", "The files of a form, each stored, with the field that it came in as field.", "表单中的文件，均已存储；field 为其所在的表单字段。"),
				node.Meaning("client_ip", "The address that the request came from.", "请求来源地址。"),
				node.Meaning("timestamp", "When it came.", "收到的时间。"),
			}, startedMeanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The request; when somebody starts it by hand, what it is started with.", "请求内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Takes orders as signed requests.", "接收已签名的订单请求。"),
					Config: `{"webhook_path": "/orders", "authentication": "signature", "credential_id": "shop_signing"}`,
					Input:  `{"method": "POST", "path": "/orders", "body": {"order": 7}}`,
					Output: `{"result": {"method": "POST", "path": "/orders", "body": {"order": 7}, "trigger_time": "…", "execution_id": "…", "trigger_message": "POST /orders"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg webhookConfig, in json.RawMessage) (json.RawMessage, error) {
			method, path := gjson.GetBytes(in, "method").String(), gjson.GetBytes(in, "path").String()
			if method == "" {
				method, path = "started by hand", ""
			}
			return values.HandOn(in, startedFields(call, strings.TrimSpace(method+" "+path))...), nil
		}, planWebhook)
}

// planWebhook refuses what could not be deployed.
func planWebhook(p *node.Planning, cfg *webhookConfig) {
	if wrong := wrongPath(cfg.Path); wrong != "" {
		p.Invalid(p.At("webhook_path"), "%s", wrong)
	}
	if p.Has("allowed_methods") && len(cfg.Methods) == 0 {
		p.Invalid(p.At("allowed_methods"), "must name a method; leave it out for POST")
	}
	if cfg.Authentication != authNone {
		p.Require("credential_id", "because %s is %s", "authentication", cfg.Authentication)
	}
}

// wrongPath says what is wrong with a path; empty: nothing.
func wrongPath(path string) string {
	names := map[string]bool{}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		name, braced := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		switch {
		case part == "" || part == "." || part == "..":
			return strconv.Quote(path) + " is not a path; write it like /orders or /orders/{id}"
		case braced && closed && (name == "" || names[name] || strings.ContainsAny(name, "{}")):
			return "a part of " + strconv.Quote(path) + " in braces needs a name of its own, as in /orders/{id}"
		case braced && closed:
			names[name] = true
		case strings.ContainsAny(part, "{}?#%\\ \t\n"):
			return strconv.Quote(path) + " is not a path; braces stand around a whole part, and ?, #, % and spaces cannot be in it"
		}
	}
	if !strings.HasPrefix(path, "/") || len(path) > 500 {
		return strconv.Quote(path) + " must begin with / and have at most 500 letters"
	}
	return ""
}

// webhookSource starts executions for requests.
type webhookSource struct{}

// Kind implements [trigger.Source].
func (webhookSource) Kind() string { return "TRIGGER.WEBHOOK" }

// Register implements [trigger.Source].
func (w webhookSource) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[webhookConfig](t.Config)
	if err != nil || cfg.Authentication == authNone {
		return err
	}
	_, err = openSecret(ctx, t)
	return err
}

// Route implements [trigger.Receiver].
func (webhookSource) Route(t trigger.Trigger) (trigger.Route, error) {
	cfg, err := node.Configuration[webhookConfig](t.Config)
	if err == nil {
		if wrong := wrongPath(cfg.Path); wrong != "" {
			err = fault.Newf(fault.InvalidConfig, "webhook_path: %s", wrong)
		}
	}
	return trigger.Route{Path: cfg.Path, Methods: cfg.Methods, Reply: trigger.Reply(cfg.ResponseMode)}, err
}

// Receive implements [trigger.Receiver].
func (w webhookSource) Receive(ctx context.Context, t trigger.Trigger, r *trigger.Request) (trigger.Verdict, error) {
	cfg, err := node.Configuration[webhookConfig](t.Config)
	if err != nil {
		return trigger.Verdict{}, err
	}
	seen := newRedaction()
	key := ""
	for _, name := range cfg.IDHeaders {
		if key = strings.TrimSpace(r.Header.Get(name)); key != "" {
			break
		}
	}
	if cfg.Authentication != authNone {
		secret, err := openSecret(ctx, t)
		if err != nil {
			return trigger.Verdict{}, notGenuine(err)
		}
		mac, err := secret.check(cfg.Authentication, r)
		if err != nil {
			return trigger.Verdict{}, err
		}
		seen.hide(secret)
		if key == "" && mac != "" {
			key = "signature:" + mac // the same signed request a second time is a repetition
		}
	}
	payload, err := requestPayload(ctx, r, seen)
	if err != nil {
		return trigger.Verdict{}, err
	}
	return trigger.Verdict{
		Event: trigger.Event{Key: key, Payload: payload}, Reply: trigger.Reply(cfg.ResponseMode),
		Wait: time.Duration(cfg.Timeout) * time.Second, Format: cfg.ResponseFormat,
	}, nil
}

// webhookSecret is what a caller must know.
type webhookSecret struct{ secret, header, param string }

// openSecret reads the credential of a trigger.
func openSecret(ctx context.Context, t trigger.Trigger) (webhookSecret, error) {
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return webhookSecret{}, fault.New(fault.CredentialMissing, "credential_id: a trigger that only those may start who know a secret needs a credential of the type webhook_secret")
	}
	c, err := t.Open(ctx, id, webhookCredential)
	if err != nil {
		return webhookSecret{}, err
	}
	defer c.Release()
	var fields struct {
		Secret    string `json:"secret"`
		Header    string `json:"header"`
		Parameter string `json:"parameter"`
	}
	if err := json.Unmarshal(c.Data, &fields); err != nil || fields.Secret == "" {
		return webhookSecret{}, fault.Newf(fault.CredentialInvalid, "credential %q has no secret; set it again", id)
	}
	s := webhookSecret{fields.Secret, defaultTokenHeader, defaultTokenParam}
	if fields.Header != "" {
		s.header = fields.Header
	}
	if fields.Parameter != "" {
		s.param = fields.Parameter
	}
	return s, nil
}

// notGenuine is the one refusal of everything that is wrong with the proof of a caller: an outsider learns nothing of the trigger. What may
// pass is returned.
func notGenuine(cause error) error {
	if cause != nil && fault.From(cause).Retryable {
		return cause
	}
	refused := fault.New(fault.Unauthorized, "the request does not show that its sender may start this; send the secret or the signature as the trigger wants it")
	if cause != nil {
		refused = refused.WithDetail(fault.From(cause).Message)
	}
	return refused
}

// check says whether a request is genuine, and returns its signature if it has one.
func (s webhookSecret) check(mode string, r *trigger.Request) (mac string, err error) {
	switch mode {
	case authHeader:
		given := r.Header.Get(s.header)
		if strings.EqualFold(s.header, "Authorization") {
			given = strings.TrimPrefix(given, "Bearer ")
		}
		return "", s.same(given)
	case authQuery:
		return "", s.same(r.Query.Get(s.param))
	}
	stamp := r.Header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", notGenuine(nil)
	}
	if off := r.Received.Sub(time.Unix(seconds, 0)); off > signatureWindow || off < -signatureWindow {
		return "", notGenuine(fault.Newf(fault.Unauthorized, "the timestamp is %s off", off))
	}
	text := r.Header.Get(headerSignature)
	given, err := hex.DecodeString(strings.TrimPrefix(strings.TrimPrefix(text, "v1="), "sha256="))
	if err != nil {
		return "", notGenuine(nil)
	}
	hash := hmac.New(sha256.New, []byte(s.secret))
	_, _ = hash.Write([]byte(stamp + ".")) // a hash takes everything
	_, _ = hash.Write(r.Body)
	if !hmac.Equal(given, hash.Sum(nil)) {
		return "", notGenuine(nil)
	}
	return hex.EncodeToString(given), nil
}

// same compares in a time that says nothing of what is right.
func (s webhookSecret) same(given string) error {
	want, got := sha256.Sum256([]byte(s.secret)), sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return notGenuine(nil)
	}
	return nil
}

// redaction is what of a request is not kept.
type redaction struct {
	headers []string
	secret  string
	param   string
}

// redacted stands for what was left out.
const redacted = "[redacted]"

// newRedaction leaves out what is a secret, no matter who sends it.
func newRedaction() *redaction { return &redaction{} }

// secretHeader says by its name that a header carries a secret: one of its words is a word for secrets. Keys that only tell requests apart
// are not.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" || name == "sec-websocket-key" {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), func(word string) bool {
		switch word {
		case "authorization", "auth", "authentication", "token", "secret", "password", "passwd", "pwd", "key", "apikey", "cookie",
			"credential", "credentials", "session", "jwt", "bearer", "otp", "pin":
			return true
		}
		return false
	})
}

func (h *redaction) hide(s webhookSecret) {
	h.headers = append(h.headers, strings.ToLower(s.header))
	h.secret, h.param = s.secret, s.param
}

// header is the value of a header as it is kept.
func (h *redaction) header(name string, list []string) string {
	if secretHeader(name) || slices.Contains(h.headers, strings.ToLower(name)) {
		return redacted
	}
	return h.text(strings.Join(list, ", "))
}

// text is any text of a request without the secret.
func (h *redaction) text(value string) string {
	if h.secret == "" {
		return value
	}
	return strings.ReplaceAll(value, h.secret, redacted)
}
