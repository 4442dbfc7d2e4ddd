package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/node"
	"tandem/workflow"
)

// cancelSignal is the name of the signal that ends a delay or a wait early.
const cancelSignal = "cancel"

type delayConfig struct {
	Seconds float64 `json:"duration_seconds" range:"0..31536000" doc:"How long to wait, in seconds." zh:"等待多久（秒）。"`
}

func (c *delayConfig) Defaults() { c.Seconds = 5 }

// flowDelay lets its input pass after a time. The end is fixed when the activation starts, so neither a restart nor a
// pause moves it.
func flowDelay() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.DELAY", Title: node.Says("Delay", "延迟"),
			Traits:      workflow.Traits{Signals: workflow.SignalsCancel},
			Description: node.Says("Lets its input pass after a time.", "经过一段时间后再传递输入。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "result", Meaning: node.Says("The input with delay_info, when the time is over.", "到时后的输入及 delay_info。"),
					Fields: delayed()},
				{Name: "cancelled", Instead: true, Meaning: node.Says("The same, when a signal has ended the delay early.", "被信号提前结束时的输入及 delay_info。"), Fields: delayed()},
			},
			Aliases: map[string]string{"delayed": workflow.DefaultKey, "canceled": "cancelled"},
			Inputs:  node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Hands an order on after five seconds.", "五秒后传递订单。"),
					Config: `{"duration_seconds": 5}`,
					Input:  `{"order": 7}`,
					Output: `{"result": {"order": 7, "delay_info": {"duration_seconds": 5, "started_at": "…", "ends_at": "…", "cancelled": false}}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg delayConfig, in json.RawMessage) (node.Outcome, error) {
			end := call.Now.Add(seconds(cfg.Seconds))
			told := func(cancelled bool) json.RawMessage {
				return values.HandOn(in, values.Field("delay_info", delayInfo{cfg.Seconds, stamp(call.Now), stamp(end), cancelled}))
			}
			switch {
			case !end.After(call.Now), call.Wake != nil && call.Wake.By == engine.WakeTimer:
				return node.Done{"result": told(false)}, nil
			case call.Wake != nil && cancels(call.Wake):
				return node.Done{"cancelled": told(true)}, nil
			}
			return node.Wait{Until: end, Signal: cancelSignal}, nil
		})
	k.Hands = func(json.RawMessage) bool { return true }
	return k
}

// delayed are the fields of both payloads.
func delayed() []node.Value {
	return []node.Value{node.Meaning("delay_info", "How long the delay was, from when until when, and whether it was cancelled.", "延迟时长、起止时间及是否被取消。"), node.HandedOn()}
}

type delayInfo struct {
	Seconds   float64 `json:"duration_seconds" doc:"How long the delay was to be." zh:"延迟时长。"`
	StartedAt string  `json:"started_at" doc:"When it began." zh:"开始时间。"`
	EndsAt    string  `json:"ends_at" doc:"When it was to end." zh:"应结束的时间。"`
	Cancelled bool    `json:"cancelled" doc:"Whether a signal has ended it early." zh:"是否被信号提前结束。"`
}

// cancels says that a signal ends the wait: one called "cancel" does by its name unless it says {"cancel": false}.
func cancels(w *node.Wake) bool {
	if w.By != engine.WakeSignal {
		return false
	}
	c := gjson.GetBytes(w.Payload, "cancel")
	return !c.Exists() || c.Bool()
}

// stamp is a time as it stands in payloads.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// seconds is a duration; what is longer than a duration can be is as long as one can be.
func seconds(n float64) time.Duration {
	const most = float64(1<<63-1) / float64(time.Second)
	if n >= most {
		return 1<<63 - 1
	}
	return time.Duration(n * float64(time.Second))
}
