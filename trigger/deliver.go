package trigger

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

const (
	// maxKey is how long a key may be; a longer one is kept as its hash.
	maxKey = 200
	// maxStoredPayload is how large a payload that is read again may be.
	maxStoredPayload = 64 << 20
)

// newDelivery is a delivery to a trigger with an id of its own.
func newDelivery(t store.Trigger, at int64) store.TriggerDelivery {
	return store.TriggerDelivery{Workspace: t.Workspace, ID: "dlv_" + strings.ToLower(rand.Text()), WorkflowID: t.WorkflowID, Node: t.Node,
		Kind: t.Kind, Revision: t.Revision, Received: at}
}

// boundedKey is a key that fits into an index.
func boundedKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// deliver records an event and starts its execution, both in one step. It returns without an error when the delivery is on disk: started,
// ignored, taken before, or accepted, to be started as soon as that is possible. Cursor, unless it is nil, is kept with it. What can never
// be started is an error, and the outcome has the refusal that was recorded.
func (s *Service) deliver(ctx context.Context, t store.Trigger, e Event, cursor []byte, replayOf string,
	follow func(execution string)) (Outcome, error) {
	p, at := identity.System(t.Workspace), now()
	d := newDelivery(t, at.UnixMilli())
	d.Key, d.ReplayOf, d.Conversation = boundedKey(e.Key), replayOf, e.Conversation
	if err := s.keepPayload(ctx, p, &d, e.Payload); err != nil {
		return Outcome{}, err
	}
	if e.Ignored != "" {
		d.Decision, d.Reason = store.DeliveryIgnored, e.Ignored
		return s.record(ctx, p, d, cursor)
	}
	started, err := s.begin(ctx, p, d, e.Payload, &store.Arrival{Delivery: d, Cursor: cursor}, follow)
	if err == nil {
		d.Decision, d.Execution = store.DeliveryStarted, started.Execution
		return Outcome{Delivery: d, Started: started}, nil
	}
	if _, late := errors.AsType[*store.SupersededError](err); late {
		return Outcome{}, err
	}
	if was, is := known(err); is {
		if cursor != nil { // the source has come past it
			return s.record(ctx, p, accepted(d, at), cursor)
		}
		return Outcome{Delivery: was, Repeated: true}, nil
	}
	if ctx.Err() != nil { // who sent it is gone, or this process is about to be; it was not taken
		return Outcome{}, err
	}
	if permanent(err) {
		d.Decision, d.Reason = store.DeliveryRefused, reasonOf(err)
		out, rerr := s.record(ctx, p, d, cursor)
		if rerr != nil {
			return Outcome{}, errors.Join(err, rerr)
		}
		return out, err
	}
	s.o.Log.Warn("a delivery is kept and not started yet; trying again", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "delivery", d.ID, "error", err)
	d.Reason, d.Attempts = reasonOf(err), 1
	out, rerr := s.record(context.WithoutCancel(ctx), p, accepted(d, at.Add(pauseAfter(1))), cursor)
	if rerr != nil {
		return Outcome{}, errors.Join(err, rerr)
	}
	nudge(s.sweep.wake)
	return out, nil
}

func accepted(d store.TriggerDelivery, next time.Time) store.TriggerDelivery {
	d.Decision, d.NextAt = store.DeliveryAccepted, next.UnixMilli()
	return d
}

// permanent says that another try would come to the same.
func permanent(err error) bool {
	e := fault.From(err)
	switch e.Code.Class() {
	case fault.ClassInvalid, fault.ClassNotFound, fault.ClassForbidden, fault.ClassLimit:
		return !e.Retryable
	}
	return e.Code == fault.Unsupported
}

func reasonOf(err error) string {
	e := fault.From(err)
	return string(e.Code) + ": " + e.Message
}

// keepPayload puts a large payload beside the store.
func (s *Service) keepPayload(ctx context.Context, p identity.Principal, d *store.TriggerDelivery, payload json.RawMessage) error {
	d.PayloadSize = int64(len(payload))
	if len(payload) <= host.MaxInline {
		d.Payload = payload
		return nil
	}
	blob, err := s.o.Blobs.Put(ctx, p, bytes.NewReader(payload))
	d.PayloadBlob = blob.Hash
	return err
}

// Payload is what a delivery has brought, also a large one.
func (s *Service) Payload(ctx context.Context, d store.TriggerDelivery) (payload json.RawMessage, err error) {
	if d.PayloadBlob == "" {
		return d.Payload, nil
	}
	content, _, err := s.o.Blobs.Get(ctx, identity.System(d.Workspace), d.PayloadBlob)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := content.Close(); err == nil {
			err = cerr
		}
	}()
	return io.ReadAll(io.LimitReader(content, maxStoredPayload))
}

// record keeps a delivery that starts nothing now.
func (s *Service) record(ctx context.Context, p identity.Principal, d store.TriggerDelivery, cursor []byte) (Outcome, error) {
	err := s.o.Triggers.Record(ctx, p, d, cursor)
	if was, is := known(err); is {
		return Outcome{Delivery: was, Repeated: true}, nil
	}
	return Outcome{Delivery: d}, err
}

// begin starts the execution of a delivery.
func (s *Service) begin(ctx context.Context, p identity.Principal, d store.TriggerDelivery, payload json.RawMessage, a *store.Arrival,
	follow func(execution string)) (host.Started, error) {
	start := Start{Execution: host.NewExecutionID(now()), WorkflowID: d.WorkflowID, Revision: d.Revision, Node: d.Node, Kind: d.Kind,
		Payload: payload, Arrival: a}
	if follow != nil {
		start.Follow = func() { follow(start.Execution) }
	}
	return s.o.Start(ctx, p, start)
}

// Replay starts an execution once more for what a delivery has brought, at the trigger as it is deployed now. Key, if it is given, makes
// asking for it twice start it once.
func (s *Service) Replay(ctx context.Context, p identity.Principal, id, key string) (Outcome, error) {
	d, err := s.o.Triggers.Delivery(ctx, p, id)
	if err != nil {
		return Outcome{}, err
	}
	if d.PayloadSize == 0 && (d.Decision == store.DeliveryRefused || d.Decision == store.DeliveryIgnored) {
		return Outcome{}, fault.Newf(fault.Conflict, "delivery %q was %s, and nothing of it was kept; let its sender send it again", id, d.Decision)
	}
	if d.Decision == store.DeliveryStarted && d.PayloadSize == 0 {
		return Outcome{}, fault.Newf(fault.Conflict, "what delivery %q has brought was deleted with its execution %q; let its sender send it again", id, d.Execution)
	}
	triggers, err := s.o.Triggers.InForce(ctx, p, d.WorkflowID)
	if err != nil {
		return Outcome{}, err
	}
	payload, err := s.Payload(ctx, d)
	if err != nil {
		return Outcome{}, err
	}
	for _, t := range triggers {
		if t.Node == d.Node {
			e := Event{Payload: payload}
			if key != "" {
				e.Key = "replay:" + key
			}
			return s.deliver(ctx, t, e, nil, id, nil)
		}
	}
	return Outcome{}, fault.Newf(fault.Conflict, "workflow %q has no trigger %q in force; deploy it, then replay", d.WorkflowID, d.Node)
}

// sweep starts what was accepted and not started: a process has died in between, or the start was not possible for a while.
type sweep struct {
	s    *Service
	wake chan struct{}
}

func newSweep(s *Service) *sweep { return &sweep{s, make(chan struct{}, 1)} }

const (
	sweepBatch  = 256
	sweepAtOnce = 32
	// sweepLongest is the longest pause before another try.
	sweepLongest = 5 * time.Minute
)

// pauseAfter is how long to wait after so many tries.
func pauseAfter(attempts int) time.Duration {
	return min(time.Second<<min(attempts-1, 10), sweepLongest)
}

func (w *sweep) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(w.pass(ctx))
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// pass starts what is due and says how long to wait for the next.
func (w *sweep) pass(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		at := now().UnixMilli()
		due, next, err := w.s.o.Triggers.DueDeliveries(ctx, identity.System(""), at, sweepBatch)
		if err != nil {
			if ctx.Err() == nil {
				w.s.o.Log.Error("deliveries that are to be started cannot be read; trying again", "error", err)
			}
			return time.Second
		}
		if len(due) == 0 {
			return w.s.nap(at, next)
		}
		if !eachOf(due, sweepAtOnce, func(d store.TriggerDelivery) bool { return w.one(ctx, d) }) {
			return time.Second
		}
	}
	return w.s.o.LongestNap
}

// one tries to start a delivery and says whether it is out of the way for now.
func (w *sweep) one(ctx context.Context, d store.TriggerDelivery) bool {
	p := identity.System(d.Workspace)
	payload, err := w.s.Payload(ctx, d)
	if err == nil {
		_, err = w.s.begin(ctx, p, d, payload, &store.Arrival{Delivery: d, Stored: true}, nil)
	}
	if _, is := known(err); err == nil || is || ctx.Err() != nil {
		return true
	}
	d.Attempts++
	d.Reason = reasonOf(err)
	d.NextAt = now().Add(pauseAfter(d.Attempts)).UnixMilli()
	if permanent(err) {
		d.Decision, d.NextAt = store.DeliveryGivenUp, 0
	}
	w.s.o.Log.Warn("a delivery could not be started", "workspace", d.Workspace, "delivery", d.ID, "attempts", d.Attempts,
		"decision", d.Decision, "error", err)
	if err := w.s.o.Triggers.Settle(ctx, p, d); err != nil && !errors.Is(err, store.ErrConflict) {
		w.s.o.Log.Error("what became of a delivery cannot be written; trying again", "workspace", d.Workspace, "delivery", d.ID, "error", err)
		return false
	}
	return true
}

// eachOf calls a function for each of a list, several at once, and says whether all of them were true.
func eachOf[T any](list []T, atOnce int, do func(T) bool) bool {
	var wait sync.WaitGroup
	turn, failed := make(chan struct{}, atOnce), make(chan struct{}, len(list))
	for _, one := range list {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			if !do(one) {
				failed <- struct{}{}
			}
		})
	}
	wait.Wait()
	return len(failed) == 0
}

// nudge wakes the goroutine that waits on a channel, if nothing else has yet.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
