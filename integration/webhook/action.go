package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type sendConfig struct {
	URL     string          `json:"url" required:"true" doc:"The address of the receiver." zh:"接收方的地址。"`
	Event   string          `json:"event" required:"true" doc:"What has happened, order.created for instance. It is sent as the header webhook-event." zh:"事件名称，例如 order.created；以请求头 webhook-event 发送。"`
	Method  string          `json:"method" enum:"POST|PUT" doc:"The method of the call." zh:"调用方法。"`
	Headers node.Object     `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	Payload json.RawMessage `json:"payload" doc:"What is sent as the body, as JSON; without it the input." zh:"正文：以 JSON 发送的内容；省略时为输入。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *sendConfig) Defaults() { c.Method = http.MethodPost }

type sendResult struct {
	StatusCode   int    `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	DeliveryID   string `json:"delivery_id" doc:"The webhook-id, the same in every attempt." zh:"投递编号（webhook-id），每次尝试都相同。"`
	ResponseBody string `json:"response_body" doc:"What the receiver has answered, 64 KiB of it at most." zh:"接收方的响应内容，最多 64 KiB。"`
}

// The headers of Standard Webhooks, and the one that names the event.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
	headerEvent     = "webhook-event"
)

// maxAnswer is how much of an answer is handed on.
const maxAnswer = 64 << 10

// send sends a signed webhook.
func send(client *outbound.Client) node.Kind {
	k := node.Define(node.About{
		Name: "EXTERNAL_ACTION.WEBHOOK", Title: node.Says("Webhook", "Webhook"),
		Description: node.Says("Sends an event to another program, signed by the rules of Standard Webhooks.", "按 Standard Webhooks 规范签名，将事件发送给其他程序。"),
		Effect:      workflow.Idempotent, // every attempt has the same webhook-id
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What the receiver has answered.", "接收方的响应。")}},
		Inputs:      []node.Value{node.Meaning("*", "What is sent, if the configuration has no payload.", "未配置 payload 时发送的内容。")},
		Examples: []node.Example{{
			Shows:   node.Says("Tells a service of an order.", "将订单通知服务。"),
			Config:  `{"credential_id": "partner_secret", "url": "https://api.example.com/hooks/orders", "event": "order.created"}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"received": true}`},
			Output:  `{"result": {"status_code": 200, "delivery_id": "…", "response_body": "{\"received\": true}"}}`,
		}},
	}, func(ctx context.Context, call *node.Call, cfg sendConfig, in json.RawMessage) (sendResult, error) {
		out, err := deliver(ctx, client, call, cfg, in)
		if err != nil {
			return out, action.Failed(err, false)
		}
		return out, nil
	})
	k.Sent = func(call *node.Call) (any, error) {
		cfg, err := node.Configuration[sendConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return httpcall.Sent(httpcall.Config{Method: cfg.Method, URL: cfg.URL, Headers: cfg.Headers}, httpcall.Input{},
			bodyOf(cfg, call.Input), nil)
	}
	return k
}

// bodyOf is what is sent.
func bodyOf(cfg sendConfig, in json.RawMessage) json.RawMessage {
	if values.IsNull(cfg.Payload) {
		return in
	}
	return cfg.Payload
}

// deliver makes one attempt.
func deliver(ctx context.Context, client *outbound.Client, call *node.Call, cfg sendConfig, in json.RawMessage) (sendResult, error) {
	target, err := url.Parse(cfg.URL)
	if err != nil {
		return sendResult{}, fault.New(fault.InvalidConfig, "url: it is not an address; write it like https://example.com/hooks").With("path", "configurations.url").WithCause(err)
	}
	id := gjson.GetBytes(call.Config, "credential_id").Str
	opened, err := call.Credential(ctx, id, credentialType)
	if err != nil {
		return sendResult{}, err
	}
	key, err := signingKey(id, opened)
	if err != nil {
		return sendResult{}, err
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	if err := httpcall.AddHeaders(header, cfg.Headers, nil); err != nil {
		return sendResult{}, err
	}
	body, now, delivery := bodyOf(cfg, in), time.Now(), deliveryID(call)
	header.Set(headerEvent, cfg.Event)
	sign(header, key, delivery, now, body)
	// A redirect is not followed: what was signed is for the address that was named.
	response, err := client.Do(ctx, outbound.Request{Method: cfg.Method, URL: target, Header: header, Body: body, Repeatable: true,
		Redirects: outbound.NoFollow})
	if err != nil {
		return sendResult{}, err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close() // the rest of it is not wanted
	out := sendResult{StatusCode: response.Status, DeliveryID: delivery, ResponseBody: strings.ToValidUTF8(string(answer), "\uFFFD")}
	if problem := response.Problem(now); problem != nil {
		if shown := values.Readable(answer, httpcall.MaxExcerpt); shown != "" {
			problem.Fault = problem.Fault.With("body", shown)
		}
		return out, problem
	}
	return out, errors.Join(redirected(response, "url"), err)
}

// deliveryID names what the node sends, the same in every attempt.
func deliveryID(call *node.Call) string { return "msg_" + action.Marker(call, "webhook") }

// keyPrefix begins a secret that is written as Standard Webhooks has it: the key in base64 follows.
const keyPrefix = "whsec_"

// signingKey is what calls are signed with: the secret as it is, or what stands in base64 behind the prefix.
func signingKey(id string, c credential.Opened) ([]byte, error) {
	secret, err := secretOf(id, c)
	if err != nil {
		return nil, err
	}
	encoded, ok := strings.CutPrefix(secret, keyPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a secret that begins with %q and goes on with something that is not base64", id, keyPrefix)
	}
	return key, nil
}

// sign adds the headers by which a receiver knows who sends, what, and when.
func sign(header http.Header, key []byte, id string, now time.Time, body []byte) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, id+"."+stamp+".") // a hash takes everything
	_, _ = mac.Write(body)
	header.Set(headerID, id)
	header.Set(headerTimestamp, stamp)
	header.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
