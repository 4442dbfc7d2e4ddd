package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/console/tree/treetest"
	"tandem/engine"
)

// zero is when the executions of these tests begin.
var zero = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func event(seq uint64, at time.Duration, kind string, update api.ExecutionUpdate) api.Event {
	data, err := json.Marshal(update)
	if err != nil {
		panic(err)
	}
	return api.Event{EventType: kind, Seq: seq, Timestamp: zero.Add(at).UnixMilli(), Data: data}
}

func nodeEvent(seq uint64, at time.Duration, id string, status engine.NodeStatus, change ...func(*api.NodeExecution)) api.Event {
	n := api.NodeExecution{ActivationID: id, NodeID: id, Status: string(status)}
	for _, c := range change {
		c(&n)
	}
	kind := map[engine.NodeStatus]string{engine.NodeRunning: "node_started", engine.NodeWaitingInput: "user_input_required"}[status]
	if kind == "" {
		kind = "node_" + string(status)
	}
	return event(seq, at, kind, api.ExecutionUpdate{NodeExecution: &n})
}

func failing(code, message string) func(*api.NodeExecution) {
	return func(n *api.NodeExecution) { n.Error = &api.NodeError{ErrorCode: code, ErrorMessage: message} }
}

func grow(t *testing.T, tr *tree, events ...api.Event) {
	t.Helper()
	for _, e := range events {
		if err := tr.apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

func picture(tr *tree, v view, at time.Duration) string {
	v.now = zero.Add(at)
	return strings.Join(tr.draw(v), "\n")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Trim(want, "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTree_Draw(t *testing.T) {
	t.Parallel()
	tr := newTree()
	v := view{width: 80, height: 24}
	second := time.Second
	grow(t, tr,
		event(1, 0, "execution_started", api.ExecutionUpdate{ExecutionStatus: "RUNNING"}),
		nodeEvent(1, 0, "start", engine.NodeRunning),
		nodeEvent(2, 3*time.Millisecond, "start", engine.NodeDone),
		nodeEvent(2, 3*time.Millisecond, "fetch", engine.NodeRunning),
		nodeEvent(2, 3*time.Millisecond, "ask", engine.NodeRunning),
		nodeEvent(2, 3*time.Millisecond, "never", engine.NodeSkip),
	)
	want(t, "running", picture(tr, v, 2*second), `
✓ start  3ms
⠋ fetch  2.0s
⠋ ask  2.0s
↷ never
RUNNING in 2.0s`)
	grow(t, tr,
		nodeEvent(3, second, "fetch", engine.NodeRetrying, failing("network_error", "connection\nrefused\x1b[2J"), func(n *api.NodeExecution) {
			n.RetryCount, n.NextAt = 1, zero.Add(5*second).UnixMilli()
		}),
		nodeEvent(4, second, "ask", engine.NodeWaitingInput),
		event(4, second, "execution_paused", api.ExecutionUpdate{ExecutionStatus: "WAITING_FOR_HUMAN", Reason: "human"}),
	)
	want(t, "waiting", picture(tr, v, 3*second), `
✓ start  3ms
↻ fetch  3.0s  1 retry  again in 2.0s  connection refused[2J [network_error]
⏸ ask  3.0s  waits for a person
↷ never
WAITING_FOR_HUMAN in 3.0s`)
	grow(t, tr,
		event(5, 70*second, "execution_resumed", api.ExecutionUpdate{ExecutionStatus: "RUNNING"}),
		nodeEvent(5, 70*second, "ask", engine.NodeCanceled),
		nodeEvent(6, 75*second, "fetch", engine.NodeFailure, failing("network_error", "connection refused"), func(n *api.NodeExecution) { n.RetryCount = 3 }),
		event(6, 75*second, "execution_failed", api.ExecutionUpdate{ExecutionStatus: "ERROR", Error: &api.ExecutionError{ErrorCode: "network_error", ErrorMessage: "connection refused"}}),
	)
	want(t, "failed", picture(tr, v, 90*second), `
✓ start  3ms
✗ fetch  1m14s  3 retries  connection refused [network_error]
⊘ ask  1m09s
↷ never
ERROR in 1m15s  connection refused [network_error]`)
	want(t, "narrow", picture(tr, view{width: 20, height: 24}, 90*second), `
✓ start  3ms
✗ fetch  1m14s  3 …
⊘ ask  1m09s
↷ never
ERROR in 1m15s  co…`)
	coloured := picture(tr, view{width: 20, height: 24, colour: true}, 90*second)
	for line := range strings.SplitSeq(coloured, "\n") {
		if w := ansi.StringWidth(line); w > 19 || !strings.Contains(line, "\x1b[") {
			t.Errorf("line %q has the width %d, or no colour", line, w)
		}
	}
	if strings.Contains(picture(tr, v, 0), "\x1b") {
		t.Error("without colour there must be no escape")
	}
}

// loop is an execution that goes through a list, several at once.
func loop(t *testing.T, tr *tree, count, done, failed int, each func()) {
	seq := uint64(2)
	grow(t, tr, event(1, 0, "execution_started", api.ExecutionUpdate{ExecutionStatus: "RUNNING"}), nodeEvent(1, 0, "each", engine.NodeRunning))
	for i := range done + 2 {
		seq++
		if i > 1 { // two at a time
			body := fmt.Sprintf("each[%d]/", i-2)
			status := engine.NodeDone
			if i-2 < failed {
				status = engine.NodeFailure
			}
			grow(t, tr, nodeEvent(seq, time.Millisecond, body+"work", status, func(n *api.NodeExecution) {
				if status == engine.NodeFailure {
					failing("code_error", "bad item")(n)
				}
			}), nodeEvent(seq, time.Millisecond, body+"other", engine.NodeSkip))
		}
		if i < count {
			e := nodeEvent(seq, time.Millisecond, fmt.Sprintf("each[%d]/work", i), engine.NodeRunning)
			if i == 0 {
				n := api.NodeExecution{ActivationID: "each[0]/work", Status: "running"}
				e = event(seq, time.Millisecond, "node_started", api.ExecutionUpdate{NodeExecution: &n, Iterations: int64(count)})
			}
			grow(t, tr, e)
		}
		if each != nil {
			each()
		}
	}
}

// A tree that was told nothing yet, as that of an execution which is taken up again, draws nothing: it is not known how it stands.
func TestTree_NothingHeard(t *testing.T) {
	t.Parallel()
	if lines := newTree().draw(view{width: 80}); len(lines) > 0 {
		t.Errorf("it draws %q", lines)
	}
}

// A long loop is one line and the iterations that are under way, whatever its length.
func TestTree_CollapsesLoops(t *testing.T) {
	t.Parallel()
	tr := newTree()
	most := 0
	loop(t, tr, 1000, 998, 0, func() { most = max(most, len(tr.draw(view{width: 80, height: 100, now: zero}))) })
	want(t, "loop", picture(tr, view{width: 80, height: 24}, time.Millisecond), `
⠋ each  998/1000
  [998]
    ⠋ work
  [999]
    ⠋ work
RUNNING in 1ms`)
	if most > 10 {
		t.Errorf("a drawing had %d lines", most)
	}
	if kept := len(tr.top.byName["each"].bodies); kept > 4 {
		t.Errorf("%d iterations are kept", kept)
	}
}

func TestTree_KeepsSomeFailures(t *testing.T) {
	t.Parallel()
	tr := newTree()
	loop(t, tr, 10, 10, 5, nil)
	grow(t, tr, nodeEvent(99, time.Second, "each", engine.NodeDone), event(99, time.Second, "execution_completed", api.ExecutionUpdate{ExecutionStatus: "SUCCESS"}))
	want(t, "loop", picture(tr, view{width: 80, height: 24}, time.Second), `
✓ each  10/10  5 failed  1.0s
  [0]
    ✗ work  0s  bad item [code_error]
    ↷ other
  [1]
    ✗ work  0s  bad item [code_error]
    ↷ other
  [2]
    ✗ work  0s  bad item [code_error]
    ↷ other
SUCCESS in 1.0s`)
	// One that is tried again is no longer failed.
	grow(t, tr, nodeEvent(100, 2*time.Second, "each[0]/work", engine.NodeRunning), nodeEvent(101, 3*time.Second, "x", engine.NodeRunning))
	if got := tr.top.byName["each"].failed; got != 4 {
		t.Errorf("%d failed, want 4", got)
	}
}

func TestTree_NestedAndPartial(t *testing.T) {
	t.Parallel()
	tr := newTree()
	grow(t, tr,
		nodeEvent(1, 0, "outer[0]/inner[3]/leaf", engine.NodeRunning),
		nodeEvent(1, 0, "other[]/leaf", engine.NodeSkip),
		nodeEvent(1, 0, "say", engine.NodeRunning),
		event(0, 0, "node_output_update", api.ExecutionUpdate{PartialOutput: &api.PartialOutput{ActivationID: "say", Text: "first line\nsecond"}}),
		event(0, 0, "node_output_update", api.ExecutionUpdate{PartialOutput: &api.PartialOutput{ActivationID: "say", Offset: 17, Text: " half 你好"}}),
	)
	want(t, "nested", picture(tr, view{width: 80}, 0), `
· outer  0 done
  [0]
    · inner  3 done
      [3]
        ⠋ leaf
· other
  ↷ leaf
⠋ say  second half 你好
PENDING`)
	grow(t, tr, event(0, 0, "node_output_update", api.ExecutionUpdate{PartialOutput: &api.PartialOutput{ActivationID: "say", Offset: 9000, Text: "all of it", Snapshot: true}}))
	if got := tr.top.byName["say"].text; got != "all of it" {
		t.Errorf("after a snapshot the text is %q", got)
	}
}

// What does not fit gives way from the top, finished first; the end shows everything.
func TestTree_FitsTheScreen(t *testing.T) {
	t.Parallel()
	tr := newTree()
	for i := range 30 {
		status := engine.NodeDone
		if i >= 20 {
			status = engine.NodeRunning
		}
		grow(t, tr, nodeEvent(uint64(i+1), 0, fmt.Sprintf("n%02d", i), status))
	}
	want(t, "some", picture(tr, view{width: 40, height: 15}, 0), `
… 18 finished
✓ n18  0s
✓ n19  0s
⠋ n20
⠋ n21
⠋ n22
⠋ n23
⠋ n24
⠋ n25
⠋ n26
⠋ n27
⠋ n28
⠋ n29
PENDING`)
	want(t, "few", picture(tr, view{width: 40, height: 6}, 0), `
… 20 finished, 7 more below
⠋ n20
⠋ n21
⠋ n22
PENDING`)
	if got := len(tr.draw(view{width: 40})); got != 31 {
		t.Errorf("without a limit there are %d lines", got)
	}
	for height := range 10 {
		if got := len(tr.draw(view{width: 40, height: max(height, 1)})); got > max(height-1, 3) {
			t.Errorf("height %d: %d lines", height, got)
		}
	}
}

// The screen is drawn in place, in one write each time, and a change of its width leaves nothing behind.
func TestScreen_Draw(t *testing.T) {
	t.Parallel()
	f := treetest.NewTerminal(t, 30, 8)
	fmt.Fprint(f, "before\r\n")
	s := &screen{out: f, size: f.Size}
	draw := func(lines ...string) {
		t.Helper()
		writes := f.Writes
		if err := s.draw(lines); err != nil {
			t.Fatal(err)
		}
		if f.Writes > writes+1 {
			t.Errorf("%d writes for one drawing", f.Writes-writes)
		}
	}
	draw("a long line of some text", "b", "c")
	draw("shorter", "b")
	want(t, "shrunk", f.Shown(), "before\nshorter\nb")
	draw("a long line of some text, 30 w", "b", "c")
	f.Resize(12)
	want(t, "broken by the terminal", f.Shown(), "before\na long line\nof some text\n, 30 w\nb\nc")
	draw("a long lin…", "b", "c")
	want(t, "drawn again", f.Shown(), "before\na long lin…\nb\nc")
	if !f.Hidden {
		t.Error("the cursor is in the way")
	}
	if err := s.leave(); err != nil || f.Hidden {
		t.Errorf("the cursor is not given back: %v", err)
	}
	fmt.Fprint(f, "after\r\n")
	want(t, "after", f.Shown(), "before\na long lin…\nb\nc\nafter")
}

func TestScreen_WritesNothingTwice(t *testing.T) {
	t.Parallel()
	f := treetest.NewTerminal(t, 30, 8)
	s := &screen{out: f, size: f.Size}
	for range 5 {
		if err := s.draw([]string{"same"}); err != nil {
			t.Fatal(err)
		}
	}
	if f.Writes > 2 {
		t.Errorf("%d writes for one picture", f.Writes)
	}
}

// A tree is drawn while frames come in; at its end all of it stands there, and the cursor is back.
func TestLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := treetest.NewTerminal(t, 40, 6)
		l := newLive(&screen{out: f, size: f.Size}, newTree(), true)
		l.start()
		for i := range 8 {
			now := time.Since(zero)
			if err := l.frame(nodeEvent(uint64(i+1), now, fmt.Sprintf("n%d", i), engine.NodeRunning)); err != nil {
				t.Fatal(err)
			}
			if i < 7 {
				if err := l.frame(nodeEvent(uint64(i+1), now, fmt.Sprintf("n%d", i), engine.NodeDone)); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(tick) // of the bubble's clock
			synctest.Wait()
		}
		want(t, "while it runs", f.Shown(), "… 5 finished\n✓ n5  0s\n✓ n6  0s\n⠇ n7\nPENDING")
		if !f.Hidden {
			t.Error("the cursor is in the way")
		}
		if err := l.endDrawing(); err != nil || f.Hidden {
			t.Errorf("ended with %v, cursor hidden: %v", err, f.Hidden)
		}
		if got := f.Shown(); !strings.HasPrefix(got, "✓ n0  0s\n✓ n1") || strings.Count(got, "n7") != 1 {
			t.Errorf("in the end the screen shows\n%s", got)
		}
	})
}

func TestLive_TellsThatNobodyReads(t *testing.T) {
	t.Parallel()
	l := newLive(&screen{out: brokenWriter{}, size: func() (int, int) { return 80, 24 }}, newTree(), false)
	l.start()
	if err := l.endDrawing(); err != errBroken {
		t.Errorf("ended with %v", err)
	}
	if err := l.frame(nodeEvent(1, 0, "n", engine.NodeRunning)); err != errBroken {
		t.Errorf("a frame later: %v", err)
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
