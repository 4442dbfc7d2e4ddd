package flow

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
)

const (
	// maxCheck is how long one check may take: a source that does not answer must not keep others from being looked at.
	maxCheck = 30 * time.Second
	// lastCheck is how long the check at the deadline may take.
	lastCheck = time.Second
	// maxPause is the longest that a growing interval becomes.
	maxPause = time.Hour
)

// waitMemo is what a wait remembers between two checks: all that it costs meanwhile, besides its timer.
type waitMemo struct {
	Attempts int64     `json:"attempts"`
	Next     time.Time `json:"next"`
	// Seen is what a database answered first, as a hash; empty: it has not answered yet.
	Seen string `json:"seen,omitempty"`
	// Error is why the last check could not be made; nil: it could.
	Error *checkError `json:"error,omitempty"`
}

// checkError is why a check could not be made.
type checkError struct {
	Code    fault.Code `json:"error_code"`
	Message string     `json:"error_message"`
}

// checked is what came of one check.
type checked struct {
	// met says that what is waited for has come, as far as the source alone can say; poll is what it has answered.
	met  bool
	poll json.RawMessage
}

// checks looks whether what is waited for has come, and if not waits until it looks again. A check that cannot be made is one that is not
// met: what it looks for may come later. It is repeated when the process dies in the middle of it, so that it must change nothing.
func (w *waiting) checks(sources *waitSources) (node.Outcome, error) {
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
	found, err := w.check(sources, &memo, deadline)
	if err != nil && (w.ctx.Err() != nil || final(err)) {
		return nil, err // the run was stopped, or no later check can be any better
	}
	w.note(&memo, err)
	if err == nil && found.met {
		return w.done("completed", waitResult{ConditionMet: true, AttemptsMade: memo.Attempts}, found.poll), nil
	}
	now := memo.Next
	if t := w.call.Time(); t.After(now) {
		now = t
	}
	if w.cfg.MaxAttempts >= 0 && memo.Attempts >= w.cfg.MaxAttempts || !deadline.IsZero() && !now.Before(deadline) {
		return w.timeout(memo.Attempts, memo.Error)
	}
	memo.Next = now.Add(w.pause(memo.Attempts))
	if !deadline.IsZero() && memo.Next.After(deadline) {
		memo.Next = deadline
	}
	return w.again(memo), nil
}

// pause is how long to wait after a check.
func (w *waiting) pause(attempts int64) time.Duration {
	pause := w.cfg.CheckSeconds
	if w.cfg.Backoff {
		pause = min(maxPause.Seconds(), pause*math.Pow(w.cfg.Multiplier, float64(attempts-1)))
	}
	return seconds(pause)
}

func (w *waiting) again(memo waitMemo) node.Wait {
	return node.Wait{Until: memo.Next, Signal: cancelSignal, Memo: values.Encode(memo)}
}

// check looks once.
func (w *waiting) check(sources *waitSources, memo *waitMemo, deadline time.Time) (checked, error) {
	if w.cfg.Type == "condition" {
		if w.cfg.Condition == "" {
			return checked{}, fault.Newf(fault.InvalidConfig, "%q is required when wait_type is %q", "wait_condition",
				"condition").With("path", "configurations.wait_condition")
		}
		met, err := w.holds(nil)
		return checked{met: met}, err
	}
	limit := maxCheck
	if !deadline.IsZero() {
		limit = min(limit, max(lastCheck, deadline.Sub(w.call.Time())))
	}
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	found, err := sources.ask(ctx, w, memo)
	if err != nil {
		return checked{}, err
	}
	if w.cfg.Condition != "" {
		found.met, err = w.holds(found.poll)
	}
	return found, err
}

// holds evaluates the condition with what the source has answered.
func (w *waiting) holds(poll json.RawMessage) (bool, error) {
	var answer any
	if poll != nil {
		answer = values.Decode(poll)
	}
	v, err := w.call.Eval(string(w.cfg.Condition), map[string]any{"poll": answer})
	return err == nil && expr.Truth(v), err
}

// note records why a check could not be made, for people who look at the activation; a reason that is new is also a line of the log.
func (w *waiting) note(memo *waitMemo, err error) {
	before := memo.Error
	if memo.Error = nil; err != nil {
		f := fault.From(err)
		memo.Error = &checkError{Code: f.Code, Message: f.Message}
		if w.call.Log != nil && (before == nil || *before != *memo.Error) {
			w.call.Log(node.Warn, "a check of the wait could not be made and counts as not met: "+f.Message, map[string]any{"error_code": string(f.Code), "attempt": memo.Attempts})
		}
	}
	if w.call.Detail == nil || w.cfg.Type == "condition" && memo.Error == nil && before == nil {
		return
	}
	fields := map[string]any{"checks_made": memo.Attempts, "check_error": nil}
	if memo.Error != nil {
		fields["check_error"] = memo.Error
	}
	w.call.Detail(fields)
}

// final says that a failure of a check is one of the node itself, which no later check can be without.
func final(err error) bool {
	switch fault.CodeOf(err) {
	case fault.InvalidConfig, fault.Unsupported, fault.CredentialMissing, fault.BlockedAddress,
		fault.ForbiddenPath, fault.DisabledByOperator:
		return true
	}
	return false
}
