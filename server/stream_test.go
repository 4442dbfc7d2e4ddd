package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

func stageLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// reader opens a reader of the stage.
func (st *stage) reader(words vocabulary, after string) *reader {
	st.t.Helper()
	from, err := parsePosition("after", after)
	if err != nil {
		st.t.Fatal(err)
	}
	r, err := st.server.stories.follow(context.Background(), st.server.open.ctx, stageUser(), stageExecution, words, from)
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(r.close)
	return r
}

// drain reads what there is without waiting. Ended says that there will be no more.
func (r *reader) drain(t testing.TB) (frames []frame, ended bool) {
	t.Helper()
	now := make(chan time.Time)
	close(now)
	for {
		more, err := r.next(context.Background(), now)
		if errors.Is(err, errFinished) {
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
func told(frames []frame) []string {
	out := []string{}
	for _, f := range frames {
		if f.seq > 0 {
			out = append(out, f.id()+" "+f.name+" "+string(f.body))
		}
	}
	return out
}

func names(frames []frame) []string {
	out := []string{}
	for _, f := range frames {
		if f.seq > 0 {
			out = append(out, f.id()+" "+f.name)
		} else {
			out = append(out, f.name)
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

// scene plays an execution in which nearly everything happens once.
func scene(st *stage) {
	st.row(plain(engine.ExecutionStarted{}))                                                                            // 2
	st.row(st.completes("start", "result", `"plain text"`))                                                             // 3
	st.row(st.fails("side", fault.New(fault.NetworkError, "no answer").With("host", "a").With("n", 3)))                 // 4
	st.row(st.opens("each", 2))                                                                                         // 5
	st.row(st.completes("each[1]/work", "result", `{"v":1}`), plain(engine.ExecutionPaused{}))                          // 6
	st.row(plain(engine.ExecutionResumed{}))                                                                            // 7
	st.row(st.asksFor("each[0]/work", "param", `{"title":"City?","schema":{"type":"object"},"message":"Which city?"}`)) // 8
	st.row(st.asksFor("safe", "confirm", `{"description":"Pay?","risk":"high","arguments":{"sum":5}}`))                 // 9
	st.row(plain(engine.TimerFired{Timer: st.timers[0]}))                                                               // 10
	st.row(st.completes("side", "result", `{"big":"`+strings.Repeat("x", host.MaxInline)+`"}`))                         // 11
	st.row(plain(engine.AskAnswered{Ask: st.asks[0], Outcome: engine.AskDone}))                                         // 12
	st.row(st.completes("each[0]/work", "result", `{"v":0}`))                                                           // 13
	st.row(st.completes("each", "completed", `{"results":[]}`))                                                         // 14
	st.row(plain(engine.AskAnswered{Ask: st.asks[1], Outcome: engine.AskDone}))                                         // 15
	st.row(st.fails("safe", fault.New(fault.Invalid, "")))
	st.row(st.completes("safe", "error", `{}`))
	st.row(st.fails("end", fault.New(fault.CodeError, "line 3").With("line", 3).With("missing_fields", []string{"a"}).WithDetail("canary")))
	st.row(plain(engine.NodeRetried{Activation: "end"}))
	st.row(st.completes("end", "result", `{}`)) // 16
}

func TestStream_Scene(t *testing.T) {
	t.Parallel()
	want := map[vocabulary]string{
		vocabularyExecution: `
2.1 execution_started, 2.2 node_started, 3.1 node_completed, 3.2 node_started, 3.3 node_started, 3.4 node_started, 4.1 node_retrying,
5.1 node_started, 5.2 node_started, 6.1 node_completed, 6.2 execution_paused, 7.1 execution_resumed, 8.1 user_input_required,
9.1 user_input_required, 9.2 execution_paused, 10.1 execution_resumed, 11.1 node_completed, 11.2 execution_paused, 12.1 execution_resumed,
13.1 node_completed, 14.1 node_completed, 14.2 execution_paused, 15.1 execution_resumed, 17.1 node_failed, 17.2 node_started,
18.1 node_failed, 18.2 execution_failed, 19.1 execution_resumed, 19.2 node_started, 20.1 node_completed, 20.2 execution_completed`,
		vocabularyFlow: `
2.1 flow.start, 2.2 step.init, 2.3 step.input, 3.1 step.output, 3.2 step.init, 3.3 step.input, 3.4 step.init, 3.5 step.input, 3.6 step.init,
3.7 step.input, 4.1 step.retry, 5.1 step.init, 5.2 step.input, 5.3 step.init, 5.4 step.input, 6.1 step.output, 6.2 flow.stop, 7.1 flow.resume,
8.1 step.waiting_for_param, 9.1 step.waiting_for_start, 9.2 flow.stop, 10.1 flow.resume, 11.1 step.output, 11.2 flow.stop, 12.1 flow.resume,
13.1 step.output, 14.1 step.output, 14.2 flow.stop, 15.1 flow.resume, 17.1 step.error, 17.2 step.init, 17.3 step.input, 18.1 step.error,
18.2 flow.failed, 19.1 flow.resume, 19.2 step.init, 19.3 step.input, 20.1 step.output, 20.2 flow.success`,
	}
	for words, list := range want {
		t.Run(string(words), func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			scene(st)
			frames, ended := st.reader(words, "").drain(t)
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(strings.ReplaceAll(list, ",\n", ", ")), ", "), names(frames)); diff != "" || !ended {
				t.Errorf("ended %v, frames (-want +got):\n%s", ended, diff)
			}
			for _, f := range frames {
				e := decode[api.Event](t, f.body)
				if e.ExecutionID != stageExecution || e.Seq != f.seq || e.Part != f.part || e.EventType != f.name || e.Timestamp == 0 || len(e.Data) == 0 {
					t.Errorf("envelope of %s: %s", f.id(), f.body)
				}
				if strings.Contains(string(f.body), "xxxx") || strings.Contains(string(f.body), "canary") {
					t.Errorf("%s holds what must not be sent: %.300s", f.id(), f.body)
				}
			}
		})
	}
}

// data finds a frame by its id and returns its data.
func data[T any](t *testing.T, frames []frame, id string) (T, api.Event) {
	t.Helper()
	for _, f := range frames {
		if f.id() == id {
			e := decode[api.Event](t, f.body)
			return decode[T](t, e.Data), e
		}
	}
	t.Fatalf("there is no frame %s", id)
	panic("not reached")
}

func TestStream_ExecutionWords(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	scene(st)
	frames, _ := st.reader(vocabularyExecution, "").drain(t)
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
	if q := asked.UserInputRequest; asked.Kind != "param" || q.InteractionID != host.InteractionID("w", stageExecution, st.asks[0]) || q.Title != "City?" || q.Purpose != "param" || q.ActivationID != "each[0]/work" || *asked.NodeExecution.Iteration != 0 {
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
	st := newStage(t)
	scene(st)
	frames, _ := st.reader(vocabularyFlow, "").drain(t)
	for id, want := range map[string]string{
		"2.1": `{}`, "2.2": `{}`, "2.3": `{"in":null}`, "3.1": `{"text":"plain text"}`, "5.2": `{"in":[{"item":0}]}`, "6.1": `{"v":1}`, "6.2": `{"reason":"operator"}`,
		"8.1":  `{"message":"Which city?","params":null,"interaction_id":"` + host.InteractionID("w", stageExecution, st.asks[0]) + `","schema":{"type":"object"}}`,
		"9.1":  `{"risk":"high","reason":"Pay?","interaction_id":"` + host.InteractionID("w", stageExecution, st.asks[1]) + `","arguments":{"sum":5}}`,
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
	if diff := cmp.Diff(api.FlowExecutor{ExecutorID: stageExecution, ExecutorName: "Flow", ExecutorStatus: "RUNNING"}, *e.Executor); diff != "" {
		t.Errorf("executor (-want +got):\n%s", diff)
	}
}

// listener follows the stage like a client: it notes what it got, and when the stream ends it connects again after that.
type listener struct {
	st    *stage
	words vocabulary
	r     *reader
	last  string
	got   []frame
}

func (l *listener) pump(t testing.TB) {
	if l.r == nil {
		l.r = l.st.reader(l.words, l.last)
	}
	frames, ended := l.r.drain(t)
	for _, f := range frames {
		if f.seq > 0 {
			l.last = f.id()
			l.got = append(l.got, f)
		}
	}
	if ended {
		l.r.close()
		l.r = nil
	}
}

// Whatever happens, and whenever somebody begins to read: the same frames with the same ids, each once and in order.
func TestStream_LiveIsReplayFromAnyPosition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		st := newStage(t)
		var listeners []*listener
		for _, words := range []vocabulary{vocabularyExecution, vocabularyFlow} {
			listeners = append(listeners, &listener{st: st, words: words})
		}
		st.row(plain(engine.ExecutionStarted{}))
		for range rapid.IntRange(5, 30).Draw(rt, "rows") {
			if rapid.IntRange(0, 2).Draw(rt, "read") == 0 {
				rapid.SampledFrom(listeners).Draw(rt, "who").pump(t)
			}
			if rapid.IntRange(0, 9).Draw(rt, "snapshot") == 0 {
				st.takeSnapshot()
			}
			st.improvise(rt)
		}
		if rapid.Bool().Draw(rt, "alone") { // those that come now have nothing to share
			for _, l := range listeners {
				l.pump(t)
				if l.r != nil {
					l.r.close()
					l.r = nil
				}
			}
		}
		for _, l := range listeners {
			r := st.reader(l.words, "")
			all, _ := r.drain(t)
			r.close()
			all = slices.DeleteFunc(all, func(f frame) bool { return f.seq == 0 })
			l.pump(t)
			if diff := cmp.Diff(told(all), told(l.got)); diff != "" {
				rt.Fatalf("%s live and replayed (-replayed +live):\n%s", l.words, diff)
			}
			for i := range all {
				after := all[i].id()
				if i+1 < len(all) && all[i+1].seq != all[i].seq && rapid.Bool().Draw(rt, "row") {
					after = fmt.Sprint(all[i].seq) // behind the last part of a row is behind the row
				}
				r := st.reader(l.words, after)
				rest, _ := r.drain(t)
				r.close()
				if !slices.Equal(told(all[i+1:]), told(rest)) {
					rt.Fatalf("%s after %s (-want +got):\n%s", l.words, after, cmp.Diff(told(all[i+1:]), told(rest)))
				}
			}
		}
	})
}

// improvise writes a row of what could happen next.
func (st *stage) improvise(rt *rapid.T) {
	pick := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
	var facts []stageFact
	for range 1 + pick(2, "facts") {
		switch n := pick(20, "what"); {
		case n == 0:
			facts = append(facts, plain(engine.ExecutionPaused{}))
		case n <= 2:
			facts = append(facts, plain(engine.ExecutionResumed{}))
		case n == 3 && len(st.rows) > 25:
			facts = append(facts, plain(engine.CancelRequested{}))
		case n <= 5 && len(st.asks) > 0:
			facts = append(facts, plain(engine.AskAnswered{Ask: st.asks[pick(len(st.asks), "ask")], Outcome: engine.AskDone}))
		case n <= 8 && len(st.timers) > 0:
			facts = append(facts, plain(engine.TimerFired{Timer: st.timers[pick(len(st.timers), "timer")]}))
		case n == 9:
			ids := []engine.ActivationID{"start", "side", "safe", "end", "each[0]/work"}
			facts = append(facts, plain(engine.NodeRetried{Activation: ids[pick(len(ids), "retry")]}))
		case len(st.pending) > 0:
			facts = append(facts, st.outcome(rt, st.pending[pick(len(st.pending), "run")]))
		}
	}
	st.row(facts...)
}

func (st *stage) outcome(rt *rapid.T, run engine.RunNode) stageFact {
	id := run.Activation
	name := host.NodeOf(st.graph, id)
	switch run.Cause.Kind {
	case engine.CauseClose:
		return st.completes(id, "completed", `{"results":[1]}`)
	case engine.CauseError:
		return st.completes(id, "error", `{"error":"x"}`)
	}
	if name == "each" {
		return st.opens(id, int64(rapid.IntRange(0, 3).Draw(rt, "count")))
	}
	switch rapid.IntRange(0, 9).Draw(rt, "outcome") {
	case 0:
		return st.fails(id, fault.New(fault.NetworkError, "gone").With("n", 1<<40).With("list", []string{"a<b"}))
	case 1:
		return st.fails(id, fault.New(fault.Invalid, "wrong"))
	case 2:
		return st.asksFor(id, rapid.SampledFrom([]string{"param", "confirm"}).Draw(rt, "purpose"), `{"title":"?","z":1,"a":"<&>"}`)
	case 3:
		return st.completes(id, "result", `"`+strings.Repeat("large ", 6000)+`"`)
	case 4:
		st.hub.Emit(host.Ref{Workspace: "w", Execution: stageExecution}, host.Chunk{Attempt: run.Attempt, Text: "while "})
	}
	return st.completes(id, "result", fmt.Sprintf(`{"of": %q, "html": "<b>", "n": 1.50}`, id))
}

func TestPosition(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]position{"": {0, wholeRow}, "0": {0, wholeRow}, "17": {17, wholeRow}, "17.2": {17, 2}, "17.0": {17, 0}} {
		if got, err := parsePosition("after", text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "-1", "1.", ".1", "1.2.3", "1.x", "99999999999999999999", "1.9999999999", " 1", "1e3"} {
		if _, err := parsePosition("after", text); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestStream_APositionBeyondTheEndWaits(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.row(plain(engine.ExecutionStarted{}))
	r := st.reader(vocabularyExecution, "3.1")
	if frames, ended := r.drain(t); len(frames) != 0 || ended {
		t.Fatalf("%v, ended %v", names(frames), ended)
	}
	far := st.reader(vocabularyFlow, "1000")
	st.row(st.completes("start", "result", `{}`))
	frames, _ := r.drain(t)
	if diff := cmp.Diff([]string{"3.2 node_started", "3.3 node_started", "3.4 node_started"}, names(frames)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	st.row(plain(engine.CancelRequested{}))
	if frames, ended := far.drain(t); len(frames) != 0 || !ended {
		t.Errorf("of an execution that has ended before the position: %v, ended %v", names(frames), ended)
	}
}

func TestStream_Output(t *testing.T) {
	t.Parallel()
	at := host.Ref{Workspace: "w", Execution: stageExecution}
	text := func(st *stage, id engine.ActivationID, n uint32, s string) {
		st.hub.Emit(at, host.Chunk{Attempt: engine.Attempt{Activation: id, Attempt: n}, Text: s})
	}
	begin := func(t *testing.T) *stage {
		st := newStage(t)
		st.row(plain(engine.ExecutionStarted{}))
		st.row(st.completes("start", "result", `{}`))
		return st
	}
	outputs := func(t *testing.T, frames []frame) (list []api.PartialOutput) {
		for _, f := range frames {
			if f.name == eventNodeOutput {
				if f.seq != 0 {
					t.Errorf("output has the id %s", f.id())
				}
				list = append(list, *decode[api.ExecutionUpdate](t, decode[api.Event](t, f.body).Data).PartialOutput)
			}
		}
		return list
	}
	t.Run("SnapshotThenPieces", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		text(st, "side", 1, "Hel")
		r := st.reader(vocabularyExecution, "")
		frames, _ := r.drain(t)
		if got := frames[len(frames)-1].name; got != eventNodeOutput {
			t.Errorf("the snapshot comes before what was recorded: %v", names(frames))
		}
		text(st, "side", 1, "lo")
		more, _ := r.drain(t)
		want := []api.PartialOutput{{ActivationID: "side", Attempt: 1, Text: "Hel", Snapshot: true}, {ActivationID: "side", Attempt: 1, Offset: 3, Text: "lo"}}
		if diff := cmp.Diff(want, outputs(t, append(frames, more...))); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
	})
	t.Run("ComesBeforeTheEndOfItsNode", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(vocabularyExecution, "")
		r.drain(t)
		text(st, "safe", 1, "all of it")
		st.row(st.completes("safe", "result", `{"text":"all of it"}`))
		frames, _ := r.drain(t)
		if diff := cmp.Diff([]string{"node_output_update", "4.1 node_completed"}, names(frames)); diff != "" {
			t.Errorf("frames (-want +got):\n%s", diff)
		}
	})
	t.Run("ANewAttemptBeginsAtZero", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		r := st.reader(vocabularyExecution, "")
		r.drain(t)
		text(st, "side", 1, "first")
		st.row(st.fails("side", fault.New(fault.NetworkError, "x")))
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
		r := st.reader(vocabularyExecution, "")
		before, _ := r.drain(t)
		for i := range 3000 {
			text(st, "side", 1, fmt.Sprintf("%04d", i))
			if i == 1500 {
				st.row(st.completes("safe", "result", `{}`))
			}
		}
		frames, _ := r.drain(t)
		got := outputs(t, frames)
		if len(got) != 1 || !got[0].Missed || !got[0].Snapshot || len(got[0].Text) != 12000 {
			t.Fatalf("%d outputs", len(got))
		}
		all, _ := st.reader(vocabularyExecution, "").drain(t)
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
		r := st.reader(vocabularyFlow, "")
		r.drain(t)
		text(st, "safe", 1, "not for the user")
		text(st, "side", 1, "for the user")
		st.hub.Emit(at, host.Chunk{Attempt: engine.Attempt{Activation: "side", Attempt: 1}, Data: json.RawMessage(`{"progress":1}`)})
		frames, _ := r.drain(t)
		if diff := cmp.Diff([]string{"text.add", "step.update"}, names(frames)); diff != "" {
			t.Fatalf("frames (-want +got):\n%s", diff)
		}
		add, update := decode[api.Event](t, frames[0].body), decode[api.Event](t, frames[1].body)
		if string(add.Data) != `{"text":"for the user","activation_id":"side","attempt":1,"offset":0}` || string(update.Data) != `{"progress":1}` || update.Step.StepID != "side" {
			t.Errorf("%s\n%s", frames[0].body, frames[1].body)
		}
	})
}

// What is far apart is told right, although it is not shared.
func TestStream_ReadersFarApart(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.row(plain(engine.ExecutionStarted{}))
	st.row(st.completes("start", "result", `{}`))
	st.row(st.opens("each", 1500))
	for i := range 1500 {
		st.row(st.completes(engine.ActivationID(fmt.Sprintf("each[%d]/work", i)), "result", `{}`))
	}
	for _, words := range []vocabulary{vocabularyExecution, vocabularyFlow} {
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
			st := newStage(b)
			st.row(plain(engine.ExecutionStarted{}))
			readers := make([]*reader, n)
			for i := range readers {
				readers[i] = st.reader(vocabularyExecution, "")
				readers[i].drain(b)
			}
			st.row(st.completes("start", "result", `{}`))
			st.row(st.opens("each", 1<<40))
			total := 0
			for b.Loop() {
				st.row(st.completes(st.pending[len(st.pending)-1].Activation, "result", `{"a":1}`))
				for _, r := range readers {
					frames, _ := r.drain(b)
					total += len(frames)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(total), "ns/reader-event")
		})
	}
}
