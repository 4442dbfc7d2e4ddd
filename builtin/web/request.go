package web

import (
	"context"
	"encoding/json"

	"tandem/builtin/httpcall"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

// httpRequest makes one HTTP call, or one for every page of a list.
func httpRequest(client *outbound.Client) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	k := node.Define(
		node.About{
			Name: "ACTION.HTTP_REQUEST", Title: node.Says("HTTP request", "HTTP 请求"),
			Description: node.Says("Calls an address and hands its answer on.", "调用一个地址并传递其响应。"),
			Effect:      workflow.Idempotent, // as the method says
			Needs:       node.Needs{Credential: []string{"http_auth", "oauth2"}, Optional: true},
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The status, the headers and the body of the answer; json, if it is that.", "响应的状态码、头和正文；若为 JSON 则含 json。")}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks a service for an order.", "向服务查询订单。"),
					Config:  `{"method": "GET", "url": "https://api.example.com/orders/7", "credential_id": "api_token"}`,
					Replies: []string{`{"id": 7, "total": 120}`},
					Output:  `{"result": {"status_code": 200, "headers": {"content-length": "23", "content-type": "application/json"}, "body": "{\"id\": 7, \"total\": 120}", "json": {"id": 7, "total": 120}, "success": true, "response_time": "…", "url": "https://api.example.com/orders/7"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg httpcall.Config, in httpcall.Input) (httpcall.Output, error) {
			x := &httpcall.Call{Client: client, Node: call, Config: cfg,
				Once: httpcall.OnceMethod(cfg.Method) && cfg.IdempotencyHeader == ""}
			out, err := x.Run(ctx, in, tokens)
			if err != nil {
				return httpcall.Output{}, x.Failed(err)
			}
			return out, nil
		}, planHTTPRequest)
	k.Own = map[string]func(json.RawMessage) json.RawMessage{"url": httpcall.UrlNames}
	k.Sent = httpcall.SentRequest
	return k
}

func planHTTPRequest(p *node.Planning, c *httpcall.Config) {
	httpcall.Plan(p)
	p.Effect = httpcall.EffectOf(p.Choice("method", c.Method))
	if p.Has("idempotency_header") {
		p.Effect = workflow.Idempotent
	}
}
