package action

import (
	"context"
	"errors"
	"maps"
	"time"

	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// Failed tells the runtime what the failure of a call means for a repeat. Once is that of an operation that must not be repeated: one that
// the service has not taken may be tried again, one whose outcome is not known needs a decision, and any other answer is final.
func Failed(err error, once bool) error {
	if told, ok := errors.AsType[*node.Failure](err); ok {
		return told
	}
	if later, ok := errors.AsType[*Pause](err); ok {
		return later
	}
	f := fault.From(err)
	call, outside := errors.AsType[*outbound.Error](err)
	switch {
	case outside && once && call.Fate == outbound.Unknown:
		lost := fault.Newf(fault.OutcomeUnknown, "%s; whether the service has taken the request is not known", f.Message).WithDetail(f.Detail)
		lost.Details = maps.Clone(f.Details)
		return &node.Failure{Err: lost.With("cause", string(f.Code)), Unknown: true}
	case outside && once && call.Fate == outbound.Answered, !outside && once && f.Code != fault.RateLimited:
		return f.Final()
	case outside:
		return &node.Failure{Err: f, RetryAfter: call.RetryAfter}
	}
	return &node.Failure{Err: f, RetryAfter: wished(f)}
}

// NotTaken says of what went wrong before the call itself was made that the call has not been: looking something up before it is sent, for
// instance.
func NotTaken(err error) error {
	if err == nil {
		return nil
	}
	if told, ok := errors.AsType[*node.Failure](err); ok {
		return told
	}
	f := fault.From(err)
	if call, ok := errors.AsType[*outbound.Error](err); ok {
		return &node.Failure{Err: f, RetryAfter: call.RetryAfter}
	}
	return &node.Failure{Err: f, RetryAfter: wished(f)}
}

// wished is how long a service that asks to slow down wants to be left alone.
func wished(f *fault.Error) time.Duration {
	switch ms := f.Details["retry_after_ms"].(type) {
	case int64:
		return time.Duration(ms) * time.Millisecond
	case float64:
		return time.Duration(ms) * time.Millisecond
	}
	return 0
}

// Pause is what an operation ends a run with when the service needs time: the node waits, and the operation is run again with
// what it has left as its memo.
type Pause struct{ Wait node.Wait }

// Error says that it waits.
func (p *Pause) Error() string { return "the service needs more time" }

// pausing makes a run wait that pauses.
func pausing(run runs) runs {
	return func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		out, err := run(ctx, call)
		if later, ok := errors.AsType[*Pause](err); ok {
			return later.Wait, nil
		}
		return out, err
	}
}
