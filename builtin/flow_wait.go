package builtin

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
)

type waitConfig struct {
	Type       string      `json:"wait_type" enum:"timer|webhook|signal|event|condition|api_response|file|database_change|approval|resource|queue_message"`
	ForSeconds *float64    `json:"for_seconds" range:"0.."`
	Until      node.Scalar `json:"until"`
	Timezone   string      `json:"timezone"`
	SignalName node.Scalar `json:"signal_name"`
	Condition  node.Scalar `json:"wait_condition"`

	CheckSeconds float64 `json:"check_interval_seconds" range:"0.1..3600"`
	Backoff      bool    `json:"exponential_backoff"`
	Multiplier   float64 `json:"backoff_multiplier" range:"1.1..3"`
	MaxAttempts  int64   `json:"max_attempts" range:"-1.."`
	Timeout      float64 `json:"timeout_seconds" range:"0..31536000"`

	// Sources outside, which cannot be asked yet.
	Webhook  node.Object `json:"webhook_config"`
	API      node.Object `json:"api_config"`
	File     node.Object `json:"file_config"`
	Database node.Object `json:"database_config"`
}

func (c *waitConfig) Defaults() {
	c.Type, c.CheckSeconds, c.Multiplier, c.MaxAttempts, c.Timeout = "condition", 5, 1.5, -1, 300
}

// waitMemo is what a waiting condition remembers between two checks.
type waitMemo struct {
	Attempts int64     `json:"attempts"`
	Next     time.Time `json:"next"`
}

type waitResult struct {
	ConditionMet    bool  `json:"condition_met"`
	AttemptsMade    int64 `json:"attempts_made"`
	TimeoutOccurred bool  `json:"timeout_occurred"`
	WasCancelled    bool  `json:"was_cancelled"`
}

// flowWait waits for a time, a signal or a condition. Between checks nothing is held: each is a durable timer.
func flowWait() node.Kind {
	kind := node.Raw(
		info("FLOW.WAIT", "Wait", "等待", "Waits for a time, a signal or a condition.", "等待某个时间、信号或条件。"),
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
		})
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
	case isObject(wake.Payload) && isTrue(wake.Payload, "cancel"):
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
	return node.Wait{Until: memo.Next, Signal: cancelSignal, Memo: encode(memo)}
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
	return node.Done{key: handOn(w.in, field("wait_result", r), member{"trigger_data", brought})}
}

func isTrue(raw json.RawMessage, name string) bool {
	v, ok := path{name}.walk(raw)
	return ok && expr.Truth(decode(v))
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
