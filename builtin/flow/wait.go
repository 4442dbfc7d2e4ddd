package flow

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type waitConfig struct {
	Type       string        `json:"wait_type" enum:"timer|webhook|signal|event|condition|api_response|file|database_change" legacy:"approval|resource|queue_message" doc:"What is waited for: a time, a signal, an event or a condition." zh:"等待的对象：时间、信号、事件或条件。"`
	ForSeconds *float64      `json:"for_seconds" range:"0.." with:"wait_type=timer" doc:"How long to wait, in seconds, for timer." zh:"timer 时等待多久（秒）。"`
	Until      node.Template `json:"until" with:"wait_type=timer" doc:"The point in time to wait for, for timer." zh:"timer 时等待到的时刻。"`
	Timezone   string        `json:"timezone" with:"wait_type=timer" doc:"The time zone of until, if it names none." zh:"until 未注明时采用的时区。"`
	SignalName node.Template `json:"signal_name" with:"wait_type=signal|event" doc:"The name of the signal that ends the wait." zh:"结束等待的信号名称。"`
	Condition  node.Expr     `json:"wait_condition" with:"wait_type=condition" doc:"The condition that is tested again and again." zh:"反复判断的条件。"`

	CheckSeconds float64 `json:"check_interval_seconds" range:"0.1..3600" with:"wait_type=condition" doc:"How long to wait between two tests, in seconds." zh:"两次判断的间隔（秒）。"`
	Backoff      bool    `json:"exponential_backoff" with:"wait_type=condition" doc:"Whether the interval grows with every test." zh:"间隔是否逐次增长。"`
	Multiplier   float64 `json:"backoff_multiplier" range:"1.1..3" with:"wait_type=condition,exponential_backoff=true" doc:"By how much the interval grows." zh:"间隔的增长倍数。"`
	MaxAttempts  int64   `json:"max_attempts" range:"-1.." with:"wait_type=condition" doc:"The most tests; -1 for no limit." zh:"最多判断次数；-1 表示不限。"`
	Timeout      float64 `json:"timeout_seconds" range:"0..31536000" doc:"When to give up, in seconds." zh:"多久后放弃（秒）。"`

	// Sources outside, which cannot be asked yet.
	Webhook  node.Of[waitWebhook]  `json:"webhook_config" with:"wait_type=webhook" doc:"For wait_type webhook, which cannot be used yet." zh:"用于尚不支持的 webhook 等待。"`
	API      node.Of[waitAPI]      `json:"api_config" with:"wait_type=api_response" doc:"For wait_type api_response, which cannot be used yet." zh:"用于尚不支持的 api_response 等待。"`
	File     node.Of[waitFile]     `json:"file_config" with:"wait_type=file" doc:"For wait_type file, which cannot be used yet." zh:"用于尚不支持的 file 等待。"`
	Database node.Of[waitDatabase] `json:"database_config" with:"wait_type=database_change" doc:"For wait_type database_change, which cannot be used yet." zh:"用于尚不支持的 database_change 等待。"`
}

func (c *waitConfig) Defaults() {
	c.Type, c.CheckSeconds, c.Multiplier, c.MaxAttempts, c.Timeout = "condition", 5, 1.5, -1, 300
}

// What the sources outside are to be asked, once they can be.
type (
	waitWebhook struct {
		Method         string `json:"method" doc:"The method of the call that ends the wait." zh:"结束等待的调用方法。"`
		Payload        any    `json:"expected_payload" doc:"What the call must bring." zh:"调用须带来的内容。"`
		Authentication bool   `json:"authentication_required" doc:"Whether the call must prove who makes it." zh:"是否要求调用方证明身份。"`
	}
	waitAPI struct {
		URL      node.Template `json:"url" required:"true" doc:"The address that is asked." zh:"查询的地址。"`
		Method   string        `json:"method" doc:"The method of the call." zh:"调用方法。"`
		Headers  node.Object   `json:"headers" doc:"The headers of the call." zh:"调用的请求头。"`
		Response any           `json:"expected_response" doc:"What the answer must have." zh:"响应须包含的内容。"`
	}
	waitFile struct {
		Path    node.Template `json:"file_path" required:"true" doc:"The file that is looked for." zh:"查找的文件。"`
		Content any           `json:"expected_content" doc:"What it must have." zh:"文件须包含的内容。"`
	}
	waitDatabase struct {
		Query node.SQL `json:"query" required:"true" doc:"The query whose result is to change." zh:"结果将发生变化的查询。"`
	}
)

func (c *waitWebhook) Defaults() { c.Method, c.Authentication = "POST", true }

// changing matches what can be different at the next check of a waiting condition.
var changing = regexp.MustCompile(`\b(poll|runtime|steps|now|context|variables)\b|\{\{|\$\{`)

func planWait(p *node.Planning, c *waitConfig) {
	switch c.Type {
	case "timer", "webhook", "signal", "event", "condition":
	default:
		p.Effect = workflow.Idempotent // it asks a source outside, again and again
	}
	because := `when wait_type is "` + c.Type + `"`
	switch c.Type {
	case "timer":
		if !p.Has("until") {
			p.Require("for_seconds", because+" and until is not set")
		}
	case "signal", "event":
		p.Require("signal_name", because)
	case "condition":
		p.Require("wait_condition", because)
		if v := p.Value("wait_condition"); v.Type == gjson.String && !changing.MatchString(v.Str) {
			p.Warn(node.ProblemNeverChanges, p.At("wait_condition"), "the condition reads nothing that changes while it waits; use steps, runtime, poll or now()")
		}
	case "webhook", "api_response", "file", "database_change":
		if name := map[string]string{"api_response": "api_config", "file": "file_config", "database_change": "database_config"}[c.Type]; name != "" {
			p.Require(name, because)
		}
		p.Refuse(node.ProblemUnsupported, p.At("wait_type"), "waiting for %q cannot be done by this version; use wait_type \"signal\" and let the source send one, or \"condition\"", c.Type)
	case "approval", "resource", "queue_message":
		p.Refuse(node.ProblemUnsupported, p.At("wait_type"), "waiting for %q is not supported; use a HUMAN_IN_THE_LOOP node for approvals, wait_type \"signal\" for the rest", c.Type)
	}
}

// waitMemo is what a waiting condition remembers between two checks.
type waitMemo struct {
	Attempts int64     `json:"attempts"`
	Next     time.Time `json:"next"`
}

// waited are the fields of all payloads.
func waited() []node.Value {
	return []node.Value{
		node.Meaning("wait_result", "How the wait has ended, and how often the condition was tested.", "等待如何结束及判断次数。"),
		node.Meaning("trigger_data", "What the signal has brought; null if there was none.", "信号带来的内容；没有时为 null。"), node.HandedOn(),
	}
}

type waitResult struct {
	ConditionMet    bool  `json:"condition_met" doc:"Whether what was waited for has come." zh:"是否等到。"`
	AttemptsMade    int64 `json:"attempts_made" doc:"How often the condition was tested." zh:"条件判断的次数。"`
	TimeoutOccurred bool  `json:"timeout_occurred" doc:"Whether the time was over before." zh:"是否超时。"`
	WasCancelled    bool  `json:"was_cancelled" doc:"Whether the wait was cancelled." zh:"是否被取消。"`
}

// flowWait waits for a time, a signal or a condition. Between checks nothing is held: each is a durable timer.
func flowWait() node.Kind {
	kind := node.Raw(
		node.About{
			Name: "FLOW.WAIT", Title: node.Says("Wait", "等待"),
			Description: node.Says("Waits for a time, a signal or a condition.", "等待某个时间、信号或条件。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "completed", Meaning: node.Says("The input with wait_result, when what was waited for has come.", "等到之后的输入及 wait_result。"), Fields: waited()},
				{Name: "timeout", Meaning: node.Says("The same, when it did not come in time.", "超时后的输入及 wait_result。"), Fields: waited()},
				{Name: "cancelled", Meaning: node.Says("The same, when the wait was cancelled.", "等待被取消后的输入及 wait_result。"), Fields: waited()},
			},
			Aliases: map[string]string{workflow.DefaultKey: "completed", "canceled": "cancelled"},
			Needs:   node.Needs{Credential: []string{"http_auth", "sql", "webhook_secret"}, Optional: true},
			Inputs:  node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Waits for a tenth of a second.", "等待十分之一秒。"),
					Config: `{"wait_type": "timer", "for_seconds": 0.1}`,
					Input:  `{"order": 7}`,
					Output: `{"completed": {"order": 7, "wait_result": {"condition_met": true, "attempts_made": 0, "timeout_occurred": false, "was_cancelled": false}, "trigger_data": null}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg waitConfig, in json.RawMessage) (node.Outcome, error) {
			w := waiting{call: call, cfg: cfg, in: in}
			switch cfg.Type {
			case "timer":
				return w.timer()
			case "signal", "event":
				return w.signal()
			case "condition":
				return w.condition()
			case "approval":
				return nil, fault.New(fault.Unsupported, "waiting for an approval is done by a HUMAN_IN_THE_LOOP node")
			case "resource", "queue_message":
				return nil, fault.Newf(fault.Unsupported, "waiting for %q is not supported; use wait_type %q", cfg.Type, "signal")
			}
			return nil, fault.Newf(fault.Unsupported, "waiting for %q is not supported yet; use wait_type %q and let the source send one", cfg.Type, "signal")
		}, planWait)
	kind.Fresh = true // a condition waits for what other nodes write meanwhile
	return kind
}

// waiting is one run of a wait.
type waiting struct {
	call *node.Call
	cfg  waitConfig
	in   json.RawMessage
}

func (w *waiting) timer() (node.Outcome, error) {
	var end time.Time
	switch {
	case w.cfg.Until != "":
		var err error
		if end, err = parseTime(string(w.cfg.Until), w.cfg.Timezone); err != nil {
			return nil, err
		}
	case w.cfg.ForSeconds != nil:
		end = w.call.Now.Add(seconds(*w.cfg.ForSeconds))
	default:
		return nil, fault.Newf(fault.InvalidConfig, "%q or %q is required when wait_type is %q", "for_seconds", "until", "timer")
	}
	wake := w.call.Wake
	switch {
	case !end.After(w.call.Now), wake != nil && wake.By == engine.WakeTimer:
		return w.done("completed", waitResult{ConditionMet: true}, nil), nil
	case wake != nil && cancels(wake):
		return w.done("cancelled", waitResult{WasCancelled: true}, wake.Payload), nil
	}
	return node.Wait{Until: end, Signal: cancelSignal}, nil
}

func (w *waiting) signal() (node.Outcome, error) {
	name := string(w.cfg.SignalName)
	if name == "" {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when wait_type is %q", "signal_name", w.cfg.Type)
	}
	wake := w.call.Wake
	switch {
	case wake == nil:
		return node.Wait{Until: w.deadline(), Signal: name}, nil
	case wake.By != engine.WakeSignal:
		return w.timeout(0)
	case values.IsObject(wake.Payload) && isTrue(wake.Payload, "cancel"):
		return w.done("cancelled", waitResult{AttemptsMade: 1, WasCancelled: true}, wake.Payload), nil
	}
	return w.done("completed", waitResult{ConditionMet: true, AttemptsMade: 1}, wake.Payload), nil
}

func (w *waiting) condition() (node.Outcome, error) {
	if w.cfg.Condition == "" {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when wait_type is %q", "wait_condition", "condition")
	}
	memo := waitMemo{Next: w.call.Now}
	if len(w.call.Memo) > 0 {
		if err := json.Unmarshal(w.call.Memo, &memo); err != nil {
			return nil, fault.New(fault.Internal, "what the wait remembered cannot be read").WithCause(err)
		}
	}
	deadline := w.deadline()
	if wake := w.call.Wake; wake != nil && wake.By == engine.WakeSignal {
		if cancels(wake) {
			return w.done("cancelled", waitResult{AttemptsMade: memo.Attempts, WasCancelled: true}, wake.Payload), nil
		}
		return w.again(memo), nil // not meant for us: the check stays when it was to be
	}
	memo.Attempts++
	// A check that cannot be made is one that is not met: what it reads may come later.
	v, err := w.call.Eval(string(w.cfg.Condition), map[string]any{"poll": nil})
	if err == nil && expr.Truth(v) {
		return w.done("completed", waitResult{ConditionMet: true, AttemptsMade: memo.Attempts}, nil), nil
	}
	now := memo.Next
	if w.call.Clock != nil {
		if t := w.call.Clock(); t.After(now) {
			now = t
		}
	}
	if w.cfg.MaxAttempts >= 0 && memo.Attempts >= w.cfg.MaxAttempts || !deadline.IsZero() && !now.Before(deadline) {
		return w.timeout(memo.Attempts)
	}
	pause := w.cfg.CheckSeconds
	if w.cfg.Backoff {
		pause = min(3600, pause*math.Pow(w.cfg.Multiplier, float64(memo.Attempts-1)))
	}
	memo.Next = now.Add(seconds(pause))
	if !deadline.IsZero() && memo.Next.After(deadline) {
		memo.Next = deadline
	}
	return w.again(memo), nil
}

func (w *waiting) again(memo waitMemo) node.Wait {
	return node.Wait{Until: memo.Next, Signal: cancelSignal, Memo: values.Encode(memo)}
}

// deadline is when the wait gives up, zero for never.
func (w *waiting) deadline() time.Time {
	if w.cfg.Timeout == 0 {
		return time.Time{}
	}
	return w.call.Now.Add(seconds(w.cfg.Timeout))
}

// timeout ends the wait along its key, or as an error when nobody is there to take it.
func (w *waiting) timeout(attempts int64) (node.Outcome, error) {
	if !w.call.Connected("timeout") {
		return nil, fault.Newf(fault.Timeout, "what the node waited for did not come in time; raise %q or connect %q", "timeout_seconds", "timeout").Final()
	}
	return w.done("timeout", waitResult{AttemptsMade: attempts, TimeoutOccurred: true}, nil), nil
}

func (w *waiting) done(key string, r waitResult, brought json.RawMessage) node.Done {
	if len(brought) == 0 {
		brought = json.RawMessage("null")
	}
	return node.Done{key: values.HandOn(w.in, values.Field("wait_result", r), values.Member{Key: "trigger_data", Value: brought})}
}

func isTrue(raw json.RawMessage, name string) bool {
	v, ok := values.Path{name}.Walk(raw)
	return ok && expr.Truth(values.Decode(v))
}

// parseTime reads a time with its offset, or one that is local to a zone (UTC if none is named).
func parseTime(text, zone string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fault.Newf(fault.InvalidConfig, "%q is no time zone; write one like %q", zone, "Europe/Berlin").WithCause(err)
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, location); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Newf(fault.InvalidConfig, "%q is no time; write it like %q, or local with a timezone", text, "2030-01-31T09:00:00Z")
}
