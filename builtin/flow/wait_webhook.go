package flow

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
)

// waitWebhook is the call that ends a wait.
type waitWebhook struct {
	Method         string          `json:"method" enum:"POST|PUT|PATCH|GET" doc:"The method of the call that ends the wait." zh:"结束等待的调用方法。"`
	Payload        json.RawMessage `json:"expected_payload" doc:"What the call must bring: fields with their values, or a part of its text. Another call is refused and the wait goes on." zh:"调用须带来的内容：字段及其值，或一段文本。其他调用会被拒绝，等待继续。"`
	Authentication bool            `json:"authentication_required" doc:"Whether the call must prove who makes it: with a token of a user of the workspace who may send signals, or, if the node has a credential (webhook_secret), with a signature. If false, anyone who has the address may call." zh:"调用方是否须证明身份：使用工作区中可发送信号的用户的令牌；节点配有凭据（webhook_secret）时使用签名。为 false 时，持有地址者即可调用。"`
}

func (c *waitWebhook) Defaults() { c.Method, c.Authentication = http.MethodPost, true }

// webhookSlack is how long before the end of the wait the last call is taken, at most and as a part of the wait, so that one that was taken
// is looked at before the node gives up.
const (
	webhookSlack     = 500 * time.Millisecond
	webhookSlackPart = 10
)

// webhook waits for a call. The address is made where the execution is told to people who may use it; here it is only said what
// the call must be like.
func (w *waiting) webhook(listens bool) (node.Outcome, error) {
	if wake := w.call.Wake; wake != nil {
		called := gjson.GetBytes(wake.Payload, api.WaitCalled)
		switch {
		case wake.By != engine.WakeSignal:
			return w.timeout(0, nil)
		case called.Exists() && called.Get("generation").Uint() == uint64(w.call.Generation):
			return w.done("completed", waitResult{ConditionMet: true, AttemptsMade: 1}, json.RawMessage(called.Get("body").Raw)), nil
		case !called.Exists() && cancels(wake):
			return w.done("cancelled", waitResult{WasCancelled: true}, wake.Payload), nil
		}
		// a call for an earlier try of the node, or a signal that does not cancel: the wait goes on
	}
	if !listens {
		return nil, fault.New(fault.Unsupported, `nobody can call here: only a server listens; run the workflow with tandem serve, or use wait_type "signal"`)
	}
	cfg := waitWebhook{}
	if cfg.Defaults(); w.cfg.Webhook != nil {
		cfg = *w.cfg.Webhook
	}
	awaited := api.WaitedCall{Method: cfg.Method, ExpectedPayload: cfg.Payload, AuthenticationRequired: cfg.Authentication}
	until := w.deadline()
	if !until.IsZero() {
		awaited.ExpiresAt = until.Add(-min(webhookSlack, seconds(w.cfg.Timeout)/webhookSlackPart)).UnixMilli()
	}
	if id := gjson.GetBytes(w.call.Config, "credential_id").Str; id != "" && cfg.Authentication {
		if w.call.Credential == nil {
			return nil, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are no credentials here", id)
		}
		opened, err := w.call.Credential(w.ctx, id, "webhook_secret")
		if err != nil {
			return nil, err
		}
		awaited.SignedWith = opened.ID
	}
	if w.call.Detail != nil {
		w.call.Detail(map[string]any{api.WaitDetail: awaited})
	}
	return node.Wait{Until: until, Signal: cancelSignal}, nil
}
