package temporal

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// What one loop may do: activities at once, commands in one answer to Temporal, events before it goes on as a new run.
const (
	maxRuns     = 500
	maxCommands = 200
	maxEvents   = 4000
	// mostCommands leaves room for one that attends, a clock and a sleep.
	mostCommands = maxCommands - 3
)

// one is an activity that runs an attempt, and the row as of which it was wanted. An attempt that has waited runs again under the
// same id: again is the last row as of which it was wanted, which is another run if it comes behind the end of this one.
type one struct {
	cancel     workflow.CancelFunc
	seq, again uint64
}

// looping is the loop of one execution.
type looping struct {
	going
	running map[string]one
	stop    []string
	// commands counts those since the last answer to Temporal, which was behind so many events; timer is when the clock rings that is set.
	commands, events        int
	timer                   int64
	looking, ended, changed bool
}

// loop has the attempts of an execution run and the execution attended to, until it has ended.
func loop(ctx workflow.Context, g going) error {
	l := &looping{going: g, running: map[string]one{}}
	if l.AtOnce == 0 {
		l.AtOnce = maxRuns
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for wake := workflow.GetSignalChannel(ctx, wakeSignal); ; {
			wake.Receive(ctx, nil)
			l.Look, l.changed = true, true
		}
	})
	for {
		events := workflow.GetInfo(ctx).GetCurrentHistoryLength()
		if events != l.events { // else more of what Temporal has told at once
			l.events, l.commands = events, 0
		}
		outgrown := events > maxEvents
		l.begin(ctx, outgrown)
		idle := len(l.running) == 0 && !l.looking
		switch {
		case l.commands >= maxCommands:
			if err := workflow.Sleep(ctx, time.Millisecond); err != nil { // the rest is for the next answer
				return err
			}
		case idle && l.ended && !l.Look && len(l.Run) == 0:
			return nil
		case idle && outgrown:
			l.Look = true // whether it has ended is not handed on
			return workflow.NewContinueAsNewError(ctx, loopName, l.going)
		default:
			if err := workflow.Await(ctx, func() bool { return l.changed }); err != nil {
				return err
			}
		}
		l.changed = false
	}
}

// begin starts what is to be done, as far as it may be started now.
func (l *looping) begin(ctx workflow.Context, outgrown bool) {
	for len(l.stop) > 0 && l.commands < mostCommands {
		if r, ok := l.running[l.stop[0]]; ok {
			r.cancel()
			l.commands++
		}
		l.stop = l.stop[1:]
	}
	if l.Look && !l.looking && !(outgrown && len(l.running) == 0) {
		l.attend(ctx)
	}
	for len(l.Run) > 0 && len(l.running) < l.AtOnce && l.commands < mostCommands && !outgrown {
		w := l.Run[0]
		l.Run = l.Run[1:]
		l.step(ctx, w)
	}
	if len(l.stop) > 0 || len(l.Run) > 0 && len(l.running) < l.AtOnce && !outgrown {
		l.commands = maxCommands // the sleep is the last of them
		return
	}
	if l.Due != 0 && !l.Look && !l.looking && !outgrown && (l.timer == 0 || l.Due < l.timer) {
		l.clock(ctx)
	}
}

// attend has the execution attended to.
func (l *looping) attend(ctx workflow.Context) {
	lost := l.Lost
	l.looking, l.Look, l.Lost, l.Due = true, false, nil, 0
	l.commands++
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second, RetryPolicy: retries(0)})
		var a answer
		if err := workflow.ExecuteActivity(ctx, attendName, l.Execution, lost).Get(ctx, &a); err != nil {
			l.Lost, l.Look = append(l.Lost, lost...), true
		}
		l.looking = false
		l.takeAnswer(ctx, a)
	})
}

// step has an attempt run.
func (l *looping) step(ctx workflow.Context, w work) {
	ctx, cancel := workflow.WithCancel(ctx)
	l.running[w.ID] = one{cancel: cancel, seq: l.Seq}
	l.commands++
	tries := int32(0)
	if w.Once {
		tries = 1
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Duration(w.LimitMS)*time.Millisecond + time.Hour, HeartbeatTimeout: 10 * time.Second,
			WaitForCancellation: true, RetryPolicy: retries(tries),
		})
		var a answer
		if err := workflow.ExecuteActivity(ctx, stepName, l.Execution, w.ID).Get(ctx, &a); err != nil {
			l.Lost, l.Look = append(l.Lost, w.ID), true
		}
		again := l.running[w.ID].again
		delete(l.running, w.ID)
		l.takeAnswer(ctx, a)
		if again != 0 && again >= a.Seq && !slices.Contains(l.Run, w) {
			l.Run = append(l.Run, w)
		}
	})
}

// clock wakes the loop when something is due.
func (l *looping) clock(ctx workflow.Context) {
	due := l.Due
	l.timer = due
	l.commands++
	workflow.Go(ctx, func(ctx workflow.Context) {
		wait := max(time.UnixMilli(due).Sub(workflow.Now(ctx)), time.Millisecond)
		if workflow.Sleep(ctx, wait) != nil || l.timer != due {
			return // one that is due earlier has come between
		}
		l.timer, l.Look, l.changed = 0, true, true
	})
}

// takeAnswer adds the answer of an activity. An older answer does not count for the end, unless it has no row: then there are no more.
func (l *looping) takeAnswer(ctx workflow.Context, a answer) {
	l.changed = true
	if a.Ended && a.Seq == 0 {
		a.Seq, a.All, l.Run = l.Seq, true, nil
	}
	if a.Seq >= l.Seq {
		l.Look = l.Look || l.ended && !a.Ended // it may be one of before
		l.Seq, l.ended = a.Seq, a.Ended
		if l.Search && a.Status != "" && a.Status != l.Status {
			l.Status = a.Status
			l.commands++
			// It fails only when it is called without attributes.
			_ = workflow.UpsertTypedSearchAttributes(ctx, inStatus.ValueSet(a.Status), inWorkflow.ValueSet(a.Workflow))
		}
	}
	if a.AtOnce > 0 {
		l.AtOnce = min(a.AtOnce, maxRuns)
	}
	if a.Due != 0 && (l.Due == 0 || a.Due < l.Due) {
		l.Due = a.Due
	}
	l.stop = append(l.stop, a.Stop...)
	for _, w := range a.Run {
		if r, runs := l.running[w.ID]; runs {
			r.again = max(r.again, a.Seq)
			l.running[w.ID] = r
		} else if !slices.Contains(l.Run, w) {
			l.Run = append(l.Run, w)
		}
	}
	if !a.All {
		return
	}
	for _, id := range workflow.DeterministicKeys(l.running) {
		if l.running[id].seq <= a.Seq && !slices.ContainsFunc(a.Run, func(w work) bool { return w.ID == id }) {
			l.stop = append(l.stop, id)
		}
	}
}
