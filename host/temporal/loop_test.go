package temporal

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// crowd stands in for the activities of an execution that fans out to so many attempts.
type crowd struct {
	mu         sync.Mutex
	size, done int
	tries      map[string]int
}

func (c *crowd) attend(context.Context, execution, []string) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := answer{Seq: uint64(1 + c.done), AtOnce: 10_000, Ended: len(c.tries) == c.size}
	for i := range c.size {
		if id := fmt.Sprintf("n%d@0.1", i); c.tries[id] == 0 {
			a.Run = append(a.Run, work{ID: id, LimitMS: 1000})
		}
	}
	return a, nil
}

func (c *crowd) step(_ context.Context, _ execution, id string) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries[id]++
	c.done++
	return answer{Seq: uint64(1 + c.done), Ended: len(c.tries) == c.size}, nil
}

// TestLoop_Bounds lets a loop have more to do than it may at once: its answers to Temporal are bounded, so is what runs, and past so many
// events it goes on as a new run.
func TestLoop_Bounds(t *testing.T) {
	t.Parallel()
	// With 500 at once at least 3 × 1,700 - 2 × 500 events have happened when the last is begun, which is past 4,000.
	c := &crowd{size: 1700, tries: map[string]int{}}
	queue := newQueue()
	serve(t, queue, c.attend, c.step)
	run, err := server.SignalWithStartWorkflow(t.Context(), queue, wakeSignal, nil, client.StartWorkflowOptions{TaskQueue: queue}, loopName, going{Execution: execution{"w", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	first := run.GetRunID() // then it is that of the last
	err = run.Get(t.Context(), nil)
	for isAway(err) && t.Context().Err() == nil { // a server with much to do does not answer in time
		err = run.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(c.tries) != c.size { // some may have run twice, if the machine was slow
		t.Errorf("%d attempts ran %d times", len(c.tries), c.done)
	}
	runs := 0
	for id := first; id != ""; runs++ {
		id = c.checkHistory(t, queue, id)
	}
	if runs < 2 {
		t.Errorf("it went on in %d runs", runs)
	}
}

// checkHistory looks at one run of a loop, and returns the id of the one that it went on as.
func (c *crowd) checkHistory(t *testing.T, id, run string) (next string) {
	commands, open, events := map[int64]int{}, 0, 0
	for history := server.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		e, err := history.Next()
		if err != nil {
			t.Fatal(err)
		}
		events++
		switch e.EventType {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			commands[e.GetActivityTaskScheduledEventAttributes().WorkflowTaskCompletedEventId]++
			if open++; open > maxRuns+1 { // and one that attends
				t.Fatalf("%d activities at once", open)
			}
		case enums.EVENT_TYPE_TIMER_STARTED:
			commands[e.GetTimerStartedEventAttributes().WorkflowTaskCompletedEventId]++
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			open--
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().NewExecutionRunId
		}
	}
	for _, n := range commands {
		if n > maxCommands {
			t.Errorf("%d commands in one answer", n)
		}
	}
	if most := maxEvents + 8*maxRuns; events > most {
		t.Errorf("a run has %d events, more than %d", events, most)
	}
	return next
}

// TestLoop_IsSmall keeps the loop as small as it has to be to stay frozen.
func TestLoop_IsSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("loop.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 200 {
		t.Errorf("the loop has %d lines", n)
	}
}
