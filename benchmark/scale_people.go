package benchmark

import (
	"context"
	"slices"
	"strconv"
	"time"

	"tandem/app"
	"tandem/fault"
	"tandem/store"
)

const (
	scaleAsk = "scale_ask"
	scaleDue = "scale_due"
	// scaleDueSeconds is the shortest time that people may be given.
	scaleDueSeconds = 60
	// scaleTimers is how many questions run out while the next process looks after all of them.
	scaleTimers = 1000
)

func scaleQuestion(id string, seconds int) string {
	return `
metadata: {id: ` + id + `, name: asks, description: measured by tandem bench}
nodes:
  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - {id: ask, description: asks, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: Refund, description: 'Refund {{customer}}?', timeout_seconds: ` + strconv.Itoa(seconds) + `, timeout_action: continue}}
  - {id: end, description: ends, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: ask}
  - {from_node: ask, to_node: end}
`
}

// ask lets many executions ask a person, the last of them for a short time only.
func (r *scaleRun) ask(ctx context.Context) error {
	if err := r.keepWorkflow(ctx, scaleQuestion(scaleAsk, 604800)); err != nil {
		return err
	}
	if err := r.keepWorkflow(ctx, scaleQuestion(scaleDue, scaleDueSeconds)); err != nil {
		return err
	}
	r.reading.Store(true)
	begin := time.Now()
	if err := r.beginAll(ctx, scaleAsk, r.Parked); err != nil {
		return err
	}
	r.report.Count, r.report.Seconds = r.Parked, time.Since(begin).Seconds()
	return r.beginAll(ctx, scaleDue, scaleTimers)
}

// due waits for the questions that run out, and says how late the last of them were that ran out while this process looked.
func (r *scaleRun) due(ctx context.Context) error {
	opened := time.Now()
	pending, err := r.Stores().Interactions.List(ctx, app.Local(),
		store.InteractionQuery{Statuses: []store.InteractionStatus{store.InteractionPending}, Page: store.Page{Size: 1}})
	if err != nil {
		return err
	}
	for n := range scaleTimers {
		if _, err := r.Wait(ctx, app.Local(), scaleName(scaleDue, n)); err != nil {
			return err
		}
	}
	var late []time.Duration
	for n := range scaleTimers {
		page, err := r.Stores().Interactions.List(ctx, app.Local(), store.InteractionQuery{Execution: scaleName(scaleDue, n)})
		if err != nil {
			return err
		}
		if page.Total != 1 || page.Interactions[0].Status != store.InteractionTimeout {
			return fault.Newf(fault.Internal, "execution %q has asked %d times, and its question is not over", scaleName(scaleDue, n), page.Total)
		}
		i := page.Interactions[0]
		if i.TimeoutAt > opened.UnixMilli() {
			late = append(late, time.Duration(i.Updated-i.TimeoutAt)*time.Millisecond)
		}
	}
	left, err := r.Stores().Interactions.List(ctx, app.Local(),
		store.InteractionQuery{Statuses: []store.InteractionStatus{store.InteractionPending}, Page: store.Page{Size: 1}})
	if err != nil {
		return err
	}
	if left.Total != r.Parked || pending.Total > r.Parked+scaleTimers {
		return fault.Newf(fault.Internal, "%d questions are open instead of %d", left.Total, r.Parked)
	}
	r.report.Count = left.Total
	if len(late) > 0 {
		slices.Sort(late)
		r.report.LateP50MS, r.report.LateMaxMS = milliseconds(late[len(late)/2]), milliseconds(late[len(late)-1])
	}
	return nil
}
