package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tandem/builtin/document"
	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/node/shape"
	"tandem/outbound"
	"tandem/payload"
	"tandem/workflow"
)

// Callback is what a service may call back: one activation, in one generation, until a time. It is also what keeps call
// backs apart: however often an attempt is repeated, there is one call back for it.
type Callback struct {
	Workspace  string
	Execution  string
	Activation engine.ActivationID
	Generation uint32
	// Signal is what wakes the activation. It has the generation in its name, so a retry waits for a call back of its own.
	Signal string
	// Expires is when it is too late, in Unix milliseconds.
	Expires int64
}

// Callbacks makes the address under which a service calls back. It is a secret: anyone who has it is the service.
type Callbacks func(Callback) (address string, err error)

// callbackSlack is how much longer a node waits than its call back is accepted, so that one that was accepted is on disk
// before the node gives up.
const callbackSlack = time.Second

type webhookConfig struct {
	URL             string          `json:"url" required:"true" doc:"The address." zh:"地址。"`
	Method          string          `json:"method" enum:"POST|PUT|GET" doc:"The method of the call." zh:"调用方法。"`
	Headers         node.Object     `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	Payload         json.RawMessage `json:"payload" doc:"What is sent; without it the input." zh:"发送的内容；省略时为输入。"`
	WaitForCallback bool            `json:"wait_for_callback" doc:"Whether the node waits until the service calls back." zh:"是否等待服务回调。"`
	CallbackTimeout int64           `json:"callback_timeout_seconds" range:"1..2592000" with:"wait_for_callback=true" doc:"How long it waits for that, in seconds." zh:"等待回调的时间（秒）。"`
}

func (c *webhookConfig) Defaults() { c.Method, c.CallbackTimeout = http.MethodPost, 3600 }

// webhookOutput is also what the node remembers while it waits.
type webhookOutput struct {
	StatusCode int             `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	Response   json.RawMessage `json:"response" doc:"The answer, as a value if it is JSON." zh:"响应内容；为 JSON 时是其值。"`
	Callback   json.RawMessage `json:"callback" doc:"What the call back has brought; null without one." zh:"回调的内容；没有回调时为 null。"`
}

// webhookCall posts data and can wait until the service calls back.
func webhookCall(client *outbound.Client, callbacks Callbacks) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	k := node.Raw(
		node.About{
			Name: "ACTION.WEBHOOK_CALL", Title: node.Says("Webhook call", "Webhook 调用"),
			Description: node.Says("Sends data to an address and can wait for it to call back.", "向地址发送数据，并可等待其回调。"),
			Effect:      workflow.Once, // as the method says
			Needs:       node.Needs{Credential: []string{"http_auth", "oauth2"}, Optional: true},
			Keys: []node.Key{
				{Name: "result", Meaning: node.Says("The status and the answer, and what the call back has brought.", "状态码、响应和回调内容。"), Fields: node.ValuesOf[webhookOutput]()},
				{Name: "timeout", Instead: true, Meaning: node.Says("The same, when nobody has called back in time.", "未按时收到回调时的输出。"),
					Fields: node.ValuesOf[webhookOutput]()},
			},
			Inputs: []node.Value{node.Meaning("*", "What is sent, if the configuration has no payload.", "未配置 payload 时发送的内容。")},
			Examples: []node.Example{
				{
					Shows:   node.Says("Tells a service about an order.", "将订单通知服务。"),
					Config:  `{"url": "https://api.example.com/hooks/orders"}`,
					Input:   `{"order": 7}`,
					Replies: []string{`{"received": true}`},
					Output:  `{"result": {"status_code": 200, "response": {"received": true}, "callback": null}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg webhookConfig, in json.RawMessage) (node.Outcome, error) {
			w := &webhook{client: client, call: call, cfg: cfg, callbacks: callbacks}
			if call.Wake != nil {
				return w.woken()
			}
			return w.send(ctx, in, tokens)
		}, planWebhookCall)
	k.EffectFirst = true
	k.Sent = func(call *node.Call) (any, error) {
		cfg, err := node.Configuration[webhookConfig](call.Config)
		if err != nil {
			return nil, err
		}
		payload, input := cfg.Payload, call.Input
		if values.IsNull(payload) {
			payload, input = call.Input, nil
		}
		sent := httpcall.Config{Method: cfg.Method, URL: cfg.URL, Headers: cfg.Headers}
		if cfg.Method == http.MethodGet {
			sent.QueryParams, payload = queryOf(payload), nil
		}
		return httpcall.Sent(sent, httpcall.Input{}, payload, input)
	}
	k.OutputSchema = shape.SchemaText(`{"type":"object","properties":{"status_code":{"type":"integer"},"response":true,"callback":true}}`)
	return k
}

// webhook is one run.
type webhook struct {
	client    *outbound.Client
	call      *node.Call
	cfg       webhookConfig
	callbacks Callbacks
}

func (w *webhook) send(ctx context.Context, in json.RawMessage, tokens *httpcall.Tokens) (node.Outcome, error) {
	payload := w.cfg.Payload
	if values.IsNull(payload) {
		payload = in
	}
	inner := *w.call
	x := &httpcall.Call{Client: w.client, Node: &inner, Once: httpcall.OnceMethod(w.cfg.Method), Config: httpcall.Config{
		Method: w.cfg.Method, URL: w.cfg.URL, Headers: w.cfg.Headers, BodyType: "json", ResponseType: "text", FollowRedirects: true,
		MaxRedirects: 5, FailOnStatus: true,
	}}
	// The address of the call back is taken out of whatever a service repeats of it: it would be anybody's who may look.
	kept := &httpcall.Auth{Held: w.cfg.WaitForCallback}
	wait := node.Wait{}
	if w.cfg.WaitForCallback {
		address, expires, err := w.address()
		if err != nil {
			return nil, err
		}
		kept.Redact.Hold(address, address[strings.LastIndexByte(address, '/')+1:]) // until the run ends, and the redactor with it
		if inner.Detail != nil {
			inner.Detail = func(fields map[string]any) { w.call.Detail(kept.CleanFields(fields)) }
		}
		if payload, err = withCallback(payload, address); err != nil {
			return nil, err
		}
		wait = node.Wait{Until: expires.Add(callbackSlack), Signal: w.signal()}
	}
	if w.cfg.Method == http.MethodGet {
		x.Config.QueryParams = queryOf(payload)
	} else {
		x.Config.Body = payload
	}
	answer, err := x.Run(ctx, httpcall.Input{}, tokens)
	if err != nil {
		err = x.Failed(err)
		if failure, ok := err.(*node.Failure); ok {
			failure.Err = kept.Redact.Fault(fault.From(failure.Err))
			return nil, failure
		}
		return nil, kept.Redact.Fault(fault.From(err))
	}
	if err := kept.Clean(&answer); err != nil {
		return nil, err
	}
	out := webhookOutput{StatusCode: answer.StatusCode, Response: responseOf(&answer), Callback: json.RawMessage("null")}
	if !w.cfg.WaitForCallback {
		return node.Done{"result": values.Encode(out)}, nil
	}
	wait.Memo = values.Encode(out)
	return wait, nil
}

// address makes the address of the call back.
func (w *webhook) address() (string, time.Time, error) {
	if w.callbacks == nil {
		return "", time.Time{}, fault.New(fault.Unsupported, "nobody can call back here: only a server listens; run the workflow with tandem serve, or set wait_for_callback to false")
	}
	expires := w.call.Time().Add(time.Duration(w.cfg.CallbackTimeout) * time.Second)
	address, err := w.callbacks(Callback{
		Workspace: w.call.Workspace, Execution: w.call.ExecutionID, Activation: w.call.ActivationID, Generation: w.call.Generation,
		Signal: w.signal(), Expires: expires.UnixMilli(),
	})
	return address, expires, err
}

func (w *webhook) signal() string { return fmt.Sprintf("callback.%d", w.call.Generation) }

// woken goes on after the call back, or after its time.
func (w *webhook) woken() (node.Outcome, error) {
	var out webhookOutput
	if err := json.Unmarshal(w.call.Memo, &out); err != nil {
		return nil, fault.New(fault.Internal, "what the node remembered cannot be read").WithCause(err)
	}
	if w.call.Wake.By == engine.WakeSignal {
		if out.Callback = w.call.Wake.Payload; len(out.Callback) == 0 {
			out.Callback = json.RawMessage("null")
		}
		return node.Done{"result": values.Encode(out)}, nil
	}
	if !w.call.Connected("timeout") {
		return nil, fault.Newf(fault.Timeout, "the service took the call and did not call back within %d s; raise %q or connect %q", w.cfg.CallbackTimeout, "callback_timeout_seconds", "timeout").Final()
	}
	return node.Done{"timeout": values.Encode(out)}, nil
}

// withCallback puts the address into what is sent. A template may have written the object as text.
func withCallback(body json.RawMessage, address string) (json.RawMessage, error) {
	if values.Leading(body) == '"' {
		if text, _ := values.Scalar(body); json.Valid([]byte(text)) {
			body = json.RawMessage(text)
		}
	}
	if !values.IsObject(body) {
		return nil, fault.Newf(fault.InvalidConfig, `"payload" must be an object when wait_for_callback is true, since it gets the callback_url; it is %s`, values.Short(body)).With("path", "configurations.payload")
	}
	return values.Object(values.Overlay(values.Members(body), values.Field("callback_url", address))), nil
}

// queryOf is a payload as query parameters: what is not a single value goes along as JSON.
func queryOf(payload json.RawMessage) node.Object {
	if !values.IsObject(payload) {
		if values.IsNull(payload) {
			return nil
		}
		return node.Object(values.Object([]values.Member{{Key: "payload", Value: asText(payload)}}))
	}
	list := values.Members(payload)
	for i := range list {
		list[i].Value = asText(list[i].Value)
	}
	return node.Object(values.Object(list))
}

// asText leaves single values as they are and writes others as a text of JSON.
func asText(raw json.RawMessage) json.RawMessage {
	if values.IsObject(raw) || values.IsList(raw) {
		return values.Encode(payload.JSON(raw))
	}
	return raw
}

// responseOf is what a service has answered: a document if it is one, else a text, null if there is nothing.
func responseOf(answer *httpcall.Output) json.RawMessage {
	text := strings.TrimSpace(strings.TrimPrefix(answer.Body, "\uFEFF"))
	mediaType, _, _ := strings.Cut(answer.Headers["content-type"], ";")
	switch {
	case text == "":
		return json.RawMessage("null")
	case (document.JSONType(strings.ToLower(strings.TrimSpace(mediaType))) || text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return values.Encode(answer.Body)
}

func planWebhookCall(p *node.Planning, c *webhookConfig) {
	p.Effect = httpcall.EffectOf(p.Choice("method", c.Method))
	httpcall.Plan(p)
}
