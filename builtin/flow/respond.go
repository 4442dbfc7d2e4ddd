package flow

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/net/http/httpguts"

	"tandem/builtin/early"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

// Respond records an answer to the request that an execution came from, or says why nobody is answered.
type Respond func(ctx context.Context, workspace, execution string, activation engine.ActivationID,
	a trigger.Answer) (reason string, err error)

// maxAnswer is how large an answer may be that is not a file.
const maxAnswer = 1 << 20

type respondConfig struct {
	Status      int             `json:"status_code" range:"200..599" doc:"The status of the answer." zh:"答复的状态码。"`
	Headers     node.Object     `json:"headers" doc:"Further headers of the answer." zh:"附加的响应头。"`
	ContentType string          `json:"content_type" doc:"The type of the body; without it application/json for a value, text/plain for a text, and that of the file for a file." zh:"响应体类型；省略时，值为 application/json，文本为 text/plain，文件为其自身类型。"`
	Body        json.RawMessage `json:"body" doc:"What is answered: a text, or a value that is sent as JSON; without it the input." zh:"答复内容：文本，或以 JSON 发送的值；省略时为输入。"`
	File        json.RawMessage `json:"file" doc:"A stored file that is sent in the place of a body." zh:"代替响应体发送的已存储文件。"`
}

func (c *respondConfig) Defaults() { c.Status = http.StatusOK }

type respondOutput struct {
	Answered bool   `json:"answered" doc:"Whether a request was answered." zh:"是否答复了请求。"`
	Reason   string `json:"reason" doc:"Why not: no_request, because no request has started the execution; not_awaited, because the response_mode of the trigger is not node; replay, because the execution repeats a delivery. Empty when it was." zh:"未答复的原因：no_request 表示执行并非由请求启动；not_awaited 表示触发器的 response_mode 不是 node；replay 表示执行是对某次投递的重放。已答复时为空。"`
	Status   int    `json:"status_code" doc:"The status that was answered with." zh:"答复的状态码。"`
}

// flowRespond answers the request that the execution came from, while the execution goes on. The answer is on disk before it is sent, so a
// sender that asks again with the id of the delivery is answered the same.
func flowRespond(respond Respond) node.Kind {
	return node.Define(
		node.About{
			Name: "FLOW.RESPOND", Title: node.Says("Respond", "答复请求"),
			Description: node.Says("Answers the request that has started the execution, which goes on.", "答复启动该执行的请求，执行继续进行。"),
			Effect:      workflow.Idempotent,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("Whether a request was answered.", "是否答复了请求。"),
				Fields: node.ValuesOf[respondOutput]()}},
			Inputs: []node.Value{node.Meaning("*", "What is answered, if the configuration has neither body nor file.", "未配置 body 和 file 时的答复内容。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Answers with the number of a new order.", "以新订单编号答复。"),
					Config: `{"status_code": 201, "body": {"order": "{{order}}"}}`,
					Input:  `{"order": 7}`,
					Output: `{"result": {"answered": false, "reason": "no_request", "status_code": 201}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg respondConfig, in json.RawMessage) (respondOutput, error) {
			answer, err := cfg.answer(in)
			if err != nil {
				return respondOutput{}, err
			}
			out := respondOutput{Status: cfg.Status, Reason: trigger.NoRequest}
			if respond == nil {
				return out, nil
			}
			if out.Reason, err = respond(ctx, call.Workspace, call.ExecutionID, call.ActivationID, answer); err != nil {
				return respondOutput{}, err
			}
			out.Answered = out.Reason == ""
			return out, nil
		}, func(p *node.Planning, cfg *respondConfig) {
			if p.Has("body") && p.Has("file") {
				p.Invalid(p.At("file"), "stands beside body; leave one of them out")
			}
			early.Read(p, "headers", func(raw json.RawMessage) error {
				return (&respondConfig{Headers: node.Object(raw)}).headers(&trigger.Answer{})
			})
		})
}

// answer makes an answer of the configuration.
func (c *respondConfig) answer(in json.RawMessage) (trigger.Answer, error) {
	a := trigger.Answer{Status: c.Status, ContentType: c.ContentType}
	if err := c.headers(&a); err != nil {
		return a, err
	}
	if !httpguts.ValidHeaderFieldValue(c.ContentType) {
		return a, fault.Newf(fault.InvalidConfig, "content_type: %q cannot be a header", c.ContentType)
	}
	if !values.IsNull(c.File) {
		file := gjson.ParseBytes(c.File)
		if a.Blob = file.Get("blob").String(); a.Blob == "" {
			return a, fault.New(fault.InvalidInput, "file: it is not a stored file; give one with \"blob\", as other nodes hand them on")
		}
		a.Name = file.Get("name").String()
		if a.ContentType == "" {
			a.ContentType = file.Get("content_type").String()
		}
		return a, nil
	}
	body := c.Body
	if values.IsNull(body) {
		body = in
	}
	if text := gjson.ParseBytes(body); text.Type == gjson.String {
		a.Body = text.Str
		if a.ContentType == "" {
			a.ContentType = "text/plain; charset=utf-8"
		}
	} else {
		a.Body = string(body)
		if a.ContentType == "" {
			a.ContentType = "application/json"
		}
	}
	if len(a.Body) > maxAnswer {
		return a, fault.Newf(fault.TooLarge, "the answer has %d bytes, and at most %d can be sent; answer with a file", len(a.Body), maxAnswer)
	}
	return a, nil
}

// headers takes the headers over, except for those that are the connection's, and those that would change what browsers think of this whole
// server: the pages of Tandem itself have the same origin.
func (c *respondConfig) headers(a *trigger.Answer) error {
	if values.IsNull(json.RawMessage(c.Headers)) {
		return nil
	}
	a.Headers = map[string]string{}
	return c.Headers.Each(func(name string, raw json.RawMessage) error {
		value, ok := values.Scalar(raw)
		switch strings.ToLower(name) {
		case "connection", "content-length", "transfer-encoding", "upgrade", "trailer", "te", "keep-alive",
			"content-security-policy", "content-type":
			return fault.Newf(fault.InvalidConfig, "headers.%s: this header is not an answer's to set; for the type of the body there is content_type", name)
		case "set-cookie", "set-cookie2", "clear-site-data", "strict-transport-security", "service-worker-allowed", "alt-svc", "nel",
			"report-to", "reporting-endpoints",
			"content-security-policy-report-only", "cross-origin-opener-policy", "cross-origin-embedder-policy", "origin-agent-cluster",
			"permissions-policy", "www-authenticate", "proxy-authenticate":
			return fault.Newf(fault.InvalidConfig, "headers.%s: an answer cannot set it, since it would count for every page of this server; leave it out", name)
		}
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fault.Newf(fault.InvalidConfig, "headers.%s: it cannot be a header; give a text of one line", name)
		}
		a.Headers[name] = value
		return nil
	})
}
