package story

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/story/storytest"
)

// reader opens a reader of the stage.
func (st *staged) reader(words Vocabulary, after string) *Reader {
	st.T.Helper()
	from, err := ParsePosition("after", after)
	if err != nil {
		st.T.Fatal(err)
	}
	r, err := st.lib.Follow(context.Background(), context.Background(), storytest.User(), storytest.Execution, words, from)
	if err != nil {
		st.T.Fatal(err)
	}
	st.T.Cleanup(r.Close)
	return r
}

// drain reads what there is without waiting. Ended says that there will be no more.
func (r *Reader) drain(t testing.TB) (frames []Frame, ended bool) {
	t.Helper()
	now := make(chan time.Time)
	close(now)
	for {
		more, err := r.Next(context.Background(), now)
		if errors.Is(err, ErrFinished) {
			return frames, true
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			return frames, false
		}
		frames = append(frames, more...)
	}
}

// told is frames as text, without output while it is made.
func told(frames []Frame) []string {
	out := []string{}
	for _, f := range frames {
		if f.Seq > 0 {
			out = append(out, f.ID()+" "+f.Name+" "+string(f.Body))
		}
	}
	return out
}

func names(frames []Frame) []string {
	out := []string{}
	for _, f := range frames {
		if f.Seq > 0 {
			out = append(out, f.ID()+" "+f.Name)
		} else {
			out = append(out, f.Name)
		}
	}
	return out
}

func decode[T any](t testing.TB, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

func TestStream_Scene(t *testing.T) {
	t.Parallel()
	want := map[Vocabulary]string{
		VocabularyExecution: `
2.1 execution_started, 2.2 node_started, 3.1 node_completed, 3.2 node_started, 3.3 node_started, 3.4 node_started, 4.1 node_retrying,
5.1 node_started, 5.2 node_started, 6.1 node_completed, 6.2 execution_paused, 7.1 execution_resumed, 8.1 user_input_required,
9.1 user_input_required, 9.2 execution_paused, 10.1 execution_resumed, 11.1 node_completed, 11.2 execution_paused, 12.1 execution_resumed,
13.1 node_completed, 14.1 node_completed, 14.2 execution_paused, 15.1 execution_resumed, 17.1 node_failed, 17.2 node_started,
18.1 node_failed, 18.2 execution_failed, 19.1 execution_resumed, 19.2 node_started, 20.1 node_completed, 20.2 execution_completed`,
		VocabularyFlow: `
2.1 flow.start, 2.2 step.init, 2.3 step.input, 3.1 step.output, 3.2 step.init, 3.3 step.input, 3.4 step.init, 3.5 step.input, 3.6 step.init,
3.7 step.input, 4.1 step.retry, 5.1 step.init, 5.2 step.input, 5.3 step.init, 5.4 step.input, 6.1 step.output, 6.2 flow.stop, 7.1 flow.resume,
8.1 step.waiting_for_param, 9.1 step.waiting_for_start, 9.2 flow.stop, 10.1 flow.resume, 11.1 step.output, 11.2 flow.stop, 12.1 flow.resume,
13.1 step.output, 14.1 step.output, 14.2 flow.stop, 15.1 flow.resume, 17.1 step.error, 17.2 step.init, 17.3 step.input, 18.1 step.error,
18.2 flow.failed, 19.1 flow.resume, 19.2 step.init, 19.3 step.input, 20.1 step.output, 20.2 flow.success`,
	}
	for words, list := range want {
		t.Run(string(words), func(t *testing.T) {
			t.Parallel()
			st := newStaged(t)
			storytest.PlayScene(st.Stage)
			frames, ended := st.reader(words, "").drain(t)
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(strings.ReplaceAll(list, ",\n", ", ")), ", "), names(frames)); diff != "" || !ended {
				t.Errorf("ended %v, frames (-want +got):\n%s", ended, diff)
			}
			for _, f := range frames {
				e := decode[api.Event](t, f.Body)
				if e.ExecutionID != storytest.Execution || e.Seq != f.Seq || e.Part != f.part || e.EventType != f.Name || e.Timestamp == 0 || len(e.Data) == 0 {
					t.Errorf("envelope of %s: %s", f.ID(), f.Body)
				}
				if strings.Contains(string(f.Body), "xxxx") || strings.Contains(string(f.Body), "canary") {
					t.Errorf("%s holds what must not be sent: %.300s", f.ID(), f.Body)
				}
			}
		})
	}
}

// data finds a frame by its id and returns its data.
func data[T any](t *testing.T, frames []Frame, id string) (T, api.Event) {
	t.Helper()
	for _, f := range frames {
		if f.ID() == id {
			e := decode[api.Event](t, f.Body)
			return decode[T](t, e.Data), e
		}
	}
	t.Fatalf("there is no frame %s", id)
	panic("not reached")
}

func TestStream_ExecutionWords(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	storytest.PlayScene(st.Stage)
	frames, _ := st.reader(VocabularyExecution, "").drain(t)
	done, _ := data[api.ExecutionUpdate](t, frames, "11.1")
	n := done.NodeExecution
	if n.StartTime != 1021 || n.EndTime != 1077 || n.DurationMS != 56 || n.RetryCount != 1 || n.Attempt != 2 || n.CreditsConsumed != 0.5 || n.NodeName != "Side" || n.NodeType != "TEST" || n.MaxRetries != 2 {
		t.Errorf("completed: %+v", n)
	}
	if blob := decode[map[string]any](t, n.OutputData["result"]); blob["size"] != 32778.0 || len(fmt.Sprint(blob["$blob"])) != 64 {
		t.Errorf("a large value is told as %s", n.OutputData["result"])
	}
	retrying, _ := data[api.ExecutionUpdate](t, frames, "4.1")
	if e := retrying.NodeExecution.Error; e.ErrorCode != "network_error" || !e.IsRetryable || string(e.ErrorDetails) != `{"host":"a","n":3}` || retrying.NodeExecution.NextAt == 0 {
		t.Errorf("retrying: %+v", retrying.NodeExecution)
	}
	asked, _ := data[api.ExecutionUpdate](t, frames, "8.1")
	if q := asked.UserInputRequest; asked.Kind != "param" || q.InteractionID != host.InteractionID("w", storytest.Execution, st.Asks[0]) || q.Title != "City?" || q.Purpose != "param" || q.ActivationID != "each[0]/work" || *asked.NodeExecution.Iteration != 0 {
		t.Errorf("asked: %+v", asked)
	}
	for id, reason := range map[string]string{"6.2": "operator", "7.1": "operator", "9.2": "human", "12.1": "human", "19.1": "operator"} {
		if got, _ := data[api.ExecutionUpdate](t, frames, id); got.Reason != reason {
			t.Errorf("reason of %s: %q, want %q", id, got.Reason, reason)
		}
	}
	failed, _ := data[api.ExecutionUpdate](t, frames, "18.2")
	if e := failed.Error; failed.ExecutionStatus != "ERROR" || e.ErrorCode != "code_error" || e.ErrorNodeID != "end" || e.StackTrace != "" {
		t.Errorf("failed: %+v", e)
	}
}

func TestStream_FlowWords(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	storytest.PlayScene(st.Stage)
	frames, _ := st.reader(VocabularyFlow, "").drain(t)
	for id, want := range map[string]string{
		"2.1": `{}`, "2.2": `{}`, "2.3": `{"in":null}`, "3.1": `{"text":"plain text"}`, "5.2": `{"in":[{"item":0}]}`, "6.1": `{"v":1}`, "6.2": `{"reason":"operator"}`,
		"8.1":  `{"message":"Which city?","params":null,"interaction_id":"` + host.InteractionID("w", storytest.Execution, st.Asks[0]) + `","schema":{"type":"object"}}`,
		"9.1":  `{"risk":"high","reason":"Pay?","interaction_id":"` + host.InteractionID("w", storytest.Execution, st.Asks[1]) + `","arguments":{"sum":5}}`,
		"17.1": `{"err_msg":"invalid","data":{"error_type":"invalid"}}`,
		"18.1": `{"err_msg":"line 3","data":{"error_type":"code_error","missing_fields":["a"],"details":{"line":3}}}`,
		"18.2": `{}`, "20.2": `{}`,
	} {
		if got, _ := data[json.RawMessage](t, frames, id); string(got) != want {
			t.Errorf("data of %s:\n%s, want\n%s", id, got, want)
		}
	}
	for id, want := range map[string]string{
		"2.2": "INIT RUNNING", "2.3": "RUNNING RUNNING", "4.1": "RUNNING RUNNING", "6.1": "SUCCESS WAITING", "8.1": "PARAM RUNNING", "9.1": "WAITING WAITING", "18.1": "ERROR ERROR", "20.1": "SUCCESS SUCCESS",
	} {
		if _, e := data[json.RawMessage](t, frames, id); e.Step.StepStatus+" "+e.Executor.ExecutorStatus != want {
			t.Errorf("statuses of %s: %s %s, want %s", id, e.Step.StepStatus, e.Executor.ExecutorStatus, want)
		}
	}
	_, e := data[json.RawMessage](t, frames, "5.2")
	if diff := cmp.Diff(api.FlowStep{StepID: "each[0]/work", StepName: "Work", StepType: "TEST.STEP", StepStatus: "RUNNING", NodeID: "work"}, *e.Step); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(api.FlowExecutor{ExecutorID: storytest.Execution, ExecutorName: "Flow", ExecutorStatus: "RUNNING"}, *e.Executor); diff != "" {
		t.Errorf("executor (-want +got):\n%s", diff)
	}
}

// listener follows the stage like a client: it notes what it got, and when the stream ends it connects again after that.
type listener struct {
	st    *staged
	words Vocabulary
	r     *Reader
	last  string
	got   []Frame
}

func (l *listener) pump(t testing.TB) {
	if l.r == nil {
		l.r = l.st.reader(l.words, l.last)
	}
	frames, ended := l.r.drain(t)
	for _, f := range frames {
		if f.Seq > 0 {
			l.last = f.ID()
			l.got = append(l.got, f)
		}
	}
	if ended {
		l.r.Close()
		l.r = nil
	}
}

// Whatever happens, and whenever somebody begins to read: the same frames with the same ids, each once and in order.
func TestStream_LiveIsReplayFromAnyPosition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		st := newStaged(t)
		var listeners []*listener
		for _, words := range []Vocabulary{VocabularyExecution, VocabularyFlow} {
			listeners = append(listeners, &listener{st: st, words: words})
		}
		st.Row(storytest.Plain(engine.ExecutionStarted{}))
		for range rapid.IntRange(5, 30).Draw(rt, "rows") {
			if rapid.IntRange(0, 2).Draw(rt, "read") == 0 {
				rapid.SampledFrom(listeners).Draw(rt, "who").pump(t)
			}
			if rapid.IntRange(0, 9).Draw(rt, "snapshot") == 0 {
				st.TakeSnapshot()
			}
			st.improvise(rt)
		}
		if rapid.Bool().Draw(rt, "alone") { // those that come now have nothing to share
			for _, l := range listeners {
				l.pump(t)
				if l.r != nil {
					l.r.Close()
					l.r = nil
				}
			}
		}
		for _, l := range listeners {
			r := st.reader(l.words, "")
			all, _ := r.drain(t)
			r.Close()
			all = slices.DeleteFunc(all, func(f Frame) bool { return f.Seq == 0 })
			l.pump(t)
			if diff := cmp.Diff(told(all), told(l.got)); diff != "" {
				rt.Fatalf("%s live and replayed (-replayed +live):\n%s", l.words, diff)
			}
			for i := range all {
				after := all[i].ID()
				if i+1 < len(all) && all[i+1].Seq != all[i].Seq && rapid.Bool().Draw(rt, "row") {
					after = fmt.Sprint(all[i].Seq) // behind the last part of a row is behind the row
				}
				r := st.reader(l.words, after)
				rest, _ := r.drain(t)
				r.Close()
				if !slices.Equal(told(all[i+1:]), told(rest)) {
					rt.Fatalf("%s after %s (-want +got):\n%s", l.words, after, cmp.Diff(told(all[i+1:]), told(rest)))
				}
			}
		}
	})
}

// improvise writes a row of what could happen next.
func (st *staged) improvise(rt *rapid.T) {
	pick := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
	var facts []storytest.Fact
	for range 1 + pick(2, "facts") {
		switch n := pick(20, "what"); {
		case n == 0:
			facts = append(facts, storytest.Plain(engine.ExecutionPaused{}))
		case n <= 2:
			facts = append(facts, storytest.Plain(engine.ExecutionResumed{}))
		case n == 3 && len(st.Written) > 25:
			facts = append(facts, storytest.Plain(engine.CancelRequested{}))
		case n <= 5 && len(st.Asks) > 0:
			facts = append(facts, storytest.Plain(engine.AskAnswered{Ask: st.Asks[pick(len(st.Asks), "ask")], Outcome: engine.AskDone}))
		case n <= 8 && len(st.Timers) > 0:
			facts = append(facts, storytest.Plain(engine.TimerFired{Timer: st.Timers[pick(len(st.Timers), "timer")]}))
		case n == 9:
			ids := []engine.ActivationID{"start", "side", "safe", "end", "each[0]/work"}
			facts = append(facts, storytest.Plain(engine.NodeRetried{Activation: ids[pick(len(ids), "retry")]}))
		case len(st.Pending) > 0:
			facts = append(facts, st.outcome(rt, st.Pending[pick(len(st.Pending), "run")]))
		}
	}
	st.Row(facts...)
}

func (st *staged) outcome(rt *rapid.T, run engine.RunNode) storytest.Fact {
	id := run.Activation
	name := host.NodeOf(st.Graph, id)
	switch run.Cause.Kind {
	case engine.CauseClose:
		return st.Completes(id, "completed", `{"results":[1]}`)
	case engine.CauseError:
		return st.Completes(id, "error", `{"error":"x"}`)
	}
	if name == "each" {
		return st.Opens(id, int64(rapid.IntRange(0, 3).Draw(rt, "count")))
	}
	switch rapid.IntRange(0, 9).Draw(rt, "outcome") {
	case 0:
		return st.Fails(id, fault.New(fault.NetworkError, "gone").With("n", 1<<40).With("list", []string{"a<b"}))
	case 1:
		return st.Fails(id, fault.New(fault.Invalid, "wrong"))
	case 2:
		return st.AsksFor(id, rapid.SampledFrom([]string{"param", "confirm"}).Draw(rt, "purpose"), `{"title":"?","z":1,"a":"<&>"}`)
	case 3:
		return st.Completes(id, "result", `"`+strings.Repeat("large ", 6000)+`"`)
	case 4:
		st.Hub.Emit(host.Ref{Workspace: "w", Execution: storytest.Execution}, host.Chunk{Attempt: run.Attempt, Text: "while "})
	}
	return st.Completes(id, "result", fmt.Sprintf(`{"of": %q, "html": "<b>", "n": 1.50}`, id))
}

func TestPosition(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Position{"": {0, wholeRow}, "0": {0, wholeRow}, "17": {17, wholeRow}, "17.2": {17, 2}, "17.0": {17, 0}} {
		if got, err := ParsePosition("after", text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "-1", "1.", ".1", "1.2.3", "1.x", "99999999999999999999", "1.9999999999", " 1", "1e3"} {
		if _, err := ParsePosition("after", text); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestStream_APositionBeyondTheEndWaits(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	r := st.reader(VocabularyExecution, "3.1")
	if frames, ended := r.drain(t); len(frames) != 0 || ended {
		t.Fatalf("%v, ended %v", names(frames), ended)
	}
	far := st.reader(VocabularyFlow, "1000")
	st.Row(st.Completes("start", "result", `{}`))
	frames, _ := r.drain(t)
	if diff := cmp.Diff([]string{"3.2 node_started", "3.3 node_started", "3.4 node_started"}, names(frames)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	st.Row(storytest.Plain(engine.CancelRequested{}))
	if frames, ended := far.drain(t); len(frames) != 0 || !ended {
		t.Errorf("of an execution that has ended before the position: %v, ended %v", names(frames), ended)
	}
}

func TestStream_Output(t *testing.T) {
	t.Parallel()
	at := host.Ref{Workspace: "w", Execution: storytest.Execution}
	text := func(st *staged, id engine.ActivationID, n uint32, s string) {
		st.Hub.Emit(at, host.Chunk{Attempt: engine.Attempt{Activation: id, Attempt: n}, Text: s})
	}
	begin := func(t *testing.T) *staged {
		st := newStaged(t)
		st.Row(storytest.Plain(engine.ExecutionStarted{}))
		st.Row(st.Completes("start", "result", `{}`))
		return st
	}
	outputs := func(t *testing.T, frames []Frame) (list []api.PartialOutput) {
		for _, f := range frames {
			if f.Name == eventNodeOutput {
				if f.Seq != 0 {
					t.Errorf("output has the id %s", f.ID())
				}
				list = append(list, *decode[api.ExecutionUpdate](t, decode[api.Event](t, f.Body).Data).PartialOutput)
			}
		}
		return list
	}
	t.Run("SnapshotThenPieces", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		text(st, "side", 1, "Hel")
		r := st.reader(VocabularyExecution, "")
		frames, _ := r.drain(t)
		if got := frames[len(frames)-1].Name; got != eventNodeOutput {
			t.Errorf("the snapshot comes before what was recorded: %v", names(frames))
		}
		text(st, "side", 1, "lo")
		more, _ := r.drain(t)
		want := []api.PartialOutput{{ActivationID: "side", Attempt: 1, Text: "Hel", Snapshot: true}, {ActivationID: "side", Attempt: 1, Offset: 3, Text: "lo"}}
		if diff := cmp.Diff(want, outputs(t, append(frames, more...))); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
	})
	t.Run("LinesAreTold", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r, flow := st.reader(VocabularyExecution, ""), st.reader(VocabularyFlow, "")
		r.drain(t)
		flow.drain(t)
		st.Hub.Log(host.Ref{Workspace: "w", Execution: storytest.Execution}, host.Logged{Attempt: engine.Attempt{Activation: "side", Attempt: 1}, Lines: 2})
		frames, _ := r.drain(t)
		if diff := cmp.Diff([]string{"node_logs_update"}, names(frames)); diff != "" {
			t.Fatalf("frames (-want +got):\n%s", diff)
		}
		if !strings.Contains(string(frames[0].Body), `"data":{"node_id":"side","written_lines":{"activation_id":"side","count":2}}`) {
			t.Errorf("it says %s", frames[0].Body)
		}
		if frames, _ := flow.drain(t); len(frames) > 0 {
			t.Errorf("who follows it as a flow is told %v", names(frames))
		}
	})
	t.Run("ComesBeforeTheEndOfItsNode", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(VocabularyExecution, "")
		r.drain(t)
		text(st, "safe", 1, "all of it")
		st.Row(st.Completes("safe", "result", `{"text":"all of it"}`))
		frames, _ := r.drain(t)
		if diff := cmp.Diff([]string{"node_output_update", "4.1 node_completed"}, names(frames)); diff != "" {
			t.Errorf("frames (-want +got):\n%s", diff)
		}
	})
	t.Run("ANewAttemptBeginsAtZero", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(VocabularyExecution, "")
		r.drain(t)
		text(st, "side", 1, "first")
		st.Row(st.Fails("side", fault.New(fault.NetworkError, "x")))
		text(st, "side", 2, "second")
		frames, _ := r.drain(t)
		want := []api.PartialOutput{{ActivationID: "side", Attempt: 1, Text: "first"}, {ActivationID: "side", Attempt: 2, Text: "second"}}
		if diff := cmp.Diff(want, outputs(t, frames)); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
	})
	t.Run("ASlowReaderIsToldAndMissesNoEvent", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(VocabularyExecution, "")
		before, _ := r.drain(t)
		for i := range 3000 {
			text(st, "side", 1, fmt.Sprintf("%04d", i))
			if i == 1500 {
				st.Row(st.Completes("safe", "result", `{}`))
			}
		}
		frames, _ := r.drain(t)
		got := outputs(t, frames)
		if len(got) != 1 || !got[0].Missed || !got[0].Snapshot || len(got[0].Text) != 12000 {
			t.Fatalf("%d outputs", len(got))
		}
		if lines := slices.DeleteFunc(slices.Clone(frames), func(f Frame) bool { return f.Name != eventNodeLogs }); len(lines) != 1 || !strings.Contains(string(lines[0].Body), `"written_lines":{"missed":true}`) {
			t.Errorf("who was slow is told of lines: %v", names(lines))
		}
		all, _ := st.reader(VocabularyExecution, "").drain(t)
		if diff := cmp.Diff(told(all), told(slices.Concat(before, frames))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		text(st, "side", 1, "on")
		frames, _ = r.drain(t)
		if next := outputs(t, frames); len(next) != 1 || next[0].Offset != 12000 || next[0].Missed {
			t.Errorf("after the snapshot: %+v", next)
		}
	})
	t.Run("FlowHearsWhatIsForTheUser", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(VocabularyFlow, "")
		r.drain(t)
		text(st, "safe", 1, "not for the user")
		text(st, "side", 1, "for the user")
		st.Hub.Emit(at, host.Chunk{Attempt: engine.Attempt{Activation: "side", Attempt: 1}, Data: json.RawMessage(`{"progress":1}`)})
		frames, _ := r.drain(t)
		if diff := cmp.Diff([]string{"text.add", "step.update"}, names(frames)); diff != "" {
			t.Fatalf("frames (-want +got):\n%s", diff)
		}
		add, update := decode[api.Event](t, frames[0].Body), decode[api.Event](t, frames[1].Body)
		if string(add.Data) != `{"text":"for the user","activation_id":"side","attempt":1,"offset":0}` || string(update.Data) != `{"progress":1}` || update.Step.StepID != "side" {
			t.Errorf("%s\n%s", frames[0].Body, frames[1].Body)
		}
	})
}

// What is far apart is told right, although it is not shared.
func TestStream_ReadersFarApart(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	st.Row(st.Completes("start", "result", `{}`))
	st.Row(st.Opens("each", 1500))
	for i := range 1500 {
		st.Row(st.Completes(engine.ActivationID(fmt.Sprintf("each[%d]/work", i)), "result", `{}`))
	}
	for _, words := range []Vocabulary{VocabularyExecution, VocabularyFlow} {
		all, _ := st.reader(words, "").drain(t)
		late, early := st.reader(words, "1400"), st.reader(words, "")
		a, _ := late.drain(t)
		b, _ := early.drain(t)
		if diff := cmp.Diff(told(all), told(b)); diff != "" {
			t.Errorf("%s from the beginning (-want +got):\n%s", words, diff)
		}
		if n := len(all) - len(a); n < 0 || !slices.Equal(told(all[n:]), told(a)) {
			t.Errorf("%s from row 1400: %d of %d frames", words, len(a), len(all))
		}
	}
}

// BenchmarkStream_FanOut is the cost of one event for one reader, without a network.
func BenchmarkStream_FanOut(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("Readers%d", n), func(b *testing.B) {
			st := newStaged(b)
			st.Row(storytest.Plain(engine.ExecutionStarted{}))
			readers := make([]*Reader, n)
			for i := range readers {
				readers[i] = st.reader(VocabularyExecution, "")
				readers[i].drain(b)
			}
			st.Row(st.Completes("start", "result", `{}`))
			st.Row(st.Opens("each", 1<<40))
			total := 0
			for b.Loop() {
				st.Row(st.Completes(st.Pending[len(st.Pending)-1].Activation, "result", `{"a":1}`))
				for _, r := range readers {
					frames, _ := r.drain(b)
					total += len(frames)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(total), "ns/reader-event")
		})
	}
}

// Readers that come, stay and go while the execution is under way, and text all the time.
func TestStream_WhileItRuns(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	st.Row(storytest.Plain(engine.ExecutionStarted{}))
	var wg sync.WaitGroup
	results := make([][]string, 16)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range results {
		words := []Vocabulary{VocabularyExecution, VocabularyFlow}[i%2]
		begin := make(chan struct{})
		hear, at := st.Changed, uint64(3+i*4)
		st.Changed = func(seq uint64) {
			if hear != nil {
				hear(seq)
			}
			if seq == at {
				close(begin)
			}
		}
		wg.Go(func() {
			<-begin
			r, err := st.lib.Follow(ctx, context.Background(), storytest.User(), storytest.Execution, words, Position{part: wholeRow})
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			for {
				frames, err := r.Next(ctx, nil)
				if errors.Is(err, ErrFinished) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = append(results[i], told(frames)...)
			}
		})
	}
	st.Row(st.Completes("start", "result", `{}`))
	st.Row(st.Opens("each", 300))
	for i := range 300 {
		st.Hub.Emit(host.Ref{Workspace: "w", Execution: storytest.Execution}, host.Chunk{Attempt: engine.Attempt{Activation: "side", Attempt: 1}, Text: "x"})
		st.Row(st.Completes(engine.ActivationID(fmt.Sprintf("each[%d]/work", i)), "result", `{"a":1}`))
	}
	st.Row(storytest.Plain(engine.CancelRequested{}))
	wg.Wait()
	for i, got := range results {
		words := []Vocabulary{VocabularyExecution, VocabularyFlow}[i%2]
		all, _ := st.reader(words, "").drain(t)
		if diff := cmp.Diff(told(all), got); diff != "" {
			t.Errorf("reader %d (-want +got):\n%.2000s", i, diff)
		}
	}
}

// TestStream_Followed: it is said that somebody follows an execution that goes on, and not of one that has ended: it hands nothing out.
func TestStream_Followed(t *testing.T) {
	t.Parallel()
	st := newStaged(t)
	followed := 0
	st.lib.Followed = func(host.Ref) func() {
		followed++
		return func() { followed-- }
	}
	goesOn := st.reader(VocabularyExecution, "")
	if followed != 1 {
		t.Errorf("%d follow what goes on", followed)
	}
	goesOn.Close()
	storytest.PlayScene(st.Stage)
	if _, ended := st.reader(VocabularyExecution, "").drain(t); followed != 0 || !ended {
		t.Errorf("%d follow what has ended (%v)", followed, ended)
	}
}
