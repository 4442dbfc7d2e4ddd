package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// wait runs a kind that must wait.
func wait(t testing.TB, name string, call *node.Call) node.Wait {
	t.Helper()
	out, err := kinds().Run(t, name, call)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := out.(node.Wait)
	if !ok {
		t.Fatalf("%#v is not a wait", out)
	}
	return w
}

func signal(payload string) *node.Wake {
	return &node.Wake{By: engine.WakeSignal, Payload: json.RawMessage(payload)}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"duration_seconds": 90}`, `{"a": 1}`)
	w := wait(t, "FLOW.DELAY", call)
	if !w.Until.Equal(nodetest.Start().Add(90*time.Second)) || w.Signal != "cancel" {
		t.Errorf("waits %+v", w)
	}
	call.Wake = signal(`{"cancel": false}`)
	if again := wait(t, "FLOW.DELAY", call); !again.Until.Equal(w.Until) {
		t.Errorf("the end moved to %v", again.Until)
	}
	call.Wake = &node.Wake{By: engine.WakeTimer}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.DELAY", call), map[string]string{"result": `{"a": 1, "delay_info": {"duration_seconds": 90, "started_at": "2030-01-31T09:00:00Z", "ends_at": "2030-01-31T09:01:30Z", "cancelled": false}}`})
	for _, payload := range []string{`{"cancel": true}`, `null`, ``} {
		call.Wake = signal(payload)
		nodetest.CheckDone(t, kinds().Done(t, "FLOW.DELAY", call), map[string]string{"cancelled": `{"a": 1, "delay_info": {"cancelled": true}}`})
	}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.DELAY", nodetest.NewCall(t, `{"duration_seconds": 0}`, `{"a": 1}`)), map[string]string{"result": `{"a": 1}`})
	if w := wait(t, "FLOW.DELAY", nodetest.NewCall(t, `{}`, `{}`)); !w.Until.Equal(nodetest.Start().Add(5 * time.Second)) {
		t.Errorf("by default it waits until %v", w.Until)
	}
	_, err := kinds().Run(t, "FLOW.DELAY", nodetest.NewCall(t, `{"duration_seconds": -1}`, `{}`))
	nodetest.WantError(t, err, fault.InvalidConfig, "duration_seconds")
}

func TestWait_Timer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		until  time.Time
	}{
		"For":      {`{"wait_type": "timer", "for_seconds": 1.5}`, nodetest.Start().Add(1500 * time.Millisecond)},
		"Until":    {`{"wait_type": "timer", "until": "2030-02-01T00:00:00+01:00"}`, time.Date(2030, 1, 31, 23, 0, 0, 0, time.UTC)},
		"Local":    {`{"wait_type": "timer", "until": "2030-02-01T08:00:00", "timezone": "Asia/Shanghai"}`, time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC)},
		"LocalUTC": {`{"wait_type": "timer", "until": "2030-02-01"}`, time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := nodetest.NewCall(t, c.config, `{"a": 1}`)
			if w := wait(t, "FLOW.WAIT", call); !w.Until.Equal(c.until) {
				t.Errorf("waits until %v, want %v", w.Until, c.until)
			}
			call.Wake = &node.Wake{By: engine.WakeTimer}
			nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"completed": `{"a": 1, "trigger_data": null, "wait_result": {"condition_met": true, "timeout_occurred": false, "was_cancelled": false}}`})
			call.Wake = signal(`{"cancel": true}`)
			nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"cancelled": `{"wait_result": {"condition_met": false, "was_cancelled": true}}`})
		})
	}
	kinds().Check(t, "FLOW.WAIT", []nodetest.Case{
		{Name: "PastPassesAtOnce", Config: `{"wait_type": "timer", "until": "2029-01-01T00:00:00Z"}`, Want: map[string]string{"completed": `{}`}},
		{Name: "ZeroPassesAtOnce", Config: `{"wait_type": "timer", "for_seconds": 0}`, Want: map[string]string{"completed": `{}`}},
		{Name: "NoTime", Config: `{"wait_type": "timer"}`, Code: fault.InvalidConfig, Part: "for_seconds"},
		{Name: "BadTime", Config: `{"wait_type": "timer", "until": "soon"}`, Code: fault.InvalidConfig, Part: "soon"},
		{Name: "BadZone", Config: `{"wait_type": "timer", "until": "2030-02-01", "timezone": "Moon/Base"}`, Code: fault.InvalidConfig, Part: "Moon/Base"},
		{Name: "Approval", Config: `{"wait_type": "approval"}`, Code: fault.Unsupported, Part: "HUMAN_IN_THE_LOOP"},
		{Name: "Queue", Config: `{"wait_type": "queue_message"}`, Code: fault.Unsupported, Part: "signal"},
		{Name: "NoSignalName", Config: `{"wait_type": "signal"}`, Code: fault.InvalidConfig, Part: "signal_name"},
		{Name: "NoCondition", Config: `{}`, Code: fault.InvalidConfig, Part: "wait_condition"},
		{Name: "MetAtOnce", Config: `{"wait_condition": "a == 1"}`, Input: `{"a": 1}`, Want: map[string]string{"completed": `{"a": 1, "wait_result": {"condition_met": true, "attempts_made": 1}}`}},
	})
}

func TestWait_Signal(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"wait_type": "event", "signal_name": "paid", "timeout_seconds": 60}`, `{"a": 1}`)
	if w := wait(t, "FLOW.WAIT", call); w.Signal != "paid" || !w.Until.Equal(nodetest.Start().Add(time.Minute)) {
		t.Errorf("waits %+v", w)
	}
	forever := nodetest.NewCall(t, `{"wait_type": "signal", "signal_name": "paid", "timeout_seconds": 0}`, `{}`)
	if w := wait(t, "FLOW.WAIT", forever); !w.Until.IsZero() {
		t.Errorf("for ever ends at %v", w.Until)
	}
	call.Wake = signal(`{"sum": 5}`)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"completed": `{"a": 1, "trigger_data": {"sum": 5}, "wait_result": {"condition_met": true, "attempts_made": 1}}`})
	call.Wake = signal(`{"cancel": true}`)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"cancelled": `{"wait_result": {"was_cancelled": true}}`})
	call.Wake = &node.Wake{By: engine.WakeTimer}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"timeout": `{"a": 1, "wait_result": {"condition_met": false, "timeout_occurred": true}}`})
	call.Connected = func(key string) bool { return key != "timeout" }
	_, err := kinds().Run(t, "FLOW.WAIT", call)
	nodetest.WantError(t, err, fault.Timeout, "timeout_seconds")
}

func TestWait_Condition(t *testing.T) {
	t.Parallel()
	setup := func(config string) (*node.Call, *bool, *time.Time) {
		call := nodetest.NewCall(t, config, `{"a": 1}`)
		met, now := new(bool), nodetest.Start()
		call.Clock = func() time.Time { return now }
		call.Eval = func(_ string, extra map[string]any) (any, error) {
			if _, ok := extra["poll"]; !ok {
				t.Error("poll is not in scope")
			}
			if !*met {
				return nil, errors.New("not there yet")
			}
			return true, nil
		}
		return call, met, &now
	}
	// again lets the timer of a wait fire and returns the next wait.
	again := func(call *node.Call, now *time.Time, w node.Wait) node.Wait {
		*now, call.Memo, call.Wake = w.Until, w.Memo, &node.Wake{By: engine.WakeTimer}
		return wait(t, "FLOW.WAIT", call)
	}

	call, met, now := setup(`{"wait_condition": "x"}`)
	w := again(call, now, wait(t, "FLOW.WAIT", call))
	if !w.Until.Equal(nodetest.Start().Add(10 * time.Second)) {
		t.Errorf("the third check is at %v", w.Until.Sub(nodetest.Start()))
	}
	call.Memo, call.Wake = w.Memo, signal(`{"cancel": false}`)
	if same := wait(t, "FLOW.WAIT", call); !same.Until.Equal(w.Until) {
		t.Errorf("a signal moved the check to %v", same.Until)
	}
	call.Wake = signal(`{"cancel": true}`)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"cancelled": `{"wait_result": {"was_cancelled": true, "attempts_made": 2}}`})
	*met, *now, call.Wake = true, w.Until, &node.Wake{By: engine.WakeTimer}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"completed": `{"a": 1, "wait_result": {"condition_met": true, "attempts_made": 3}}`})

	call, _, now = setup(`{"wait_condition": "x", "exponential_backoff": true, "backoff_multiplier": 2, "check_interval_seconds": 1}`)
	if w = again(call, now, again(call, now, wait(t, "FLOW.WAIT", call))); !w.Until.Equal(nodetest.Start().Add(7 * time.Second)) {
		t.Errorf("with backoff the fourth check is at %v", w.Until.Sub(nodetest.Start()))
	}
	// A check that was due in downtime is followed by one an interval later, not by all that were missed.
	*now, call.Memo, call.Wake = nodetest.Start().Add(100*time.Second), w.Memo, &node.Wake{By: engine.WakeTimer}
	if w = wait(t, "FLOW.WAIT", call); !w.Until.Equal(nodetest.Start().Add(108 * time.Second)) {
		t.Errorf("after downtime the check is at %v", w.Until.Sub(nodetest.Start()))
	}

	call, _, now = setup(`{"wait_condition": "x", "timeout_seconds": 7}`)
	w = again(call, now, wait(t, "FLOW.WAIT", call))
	if !w.Until.Equal(nodetest.Start().Add(7 * time.Second)) {
		t.Errorf("the last check is at %v, want the deadline", w.Until.Sub(nodetest.Start()))
	}
	*now, call.Memo = w.Until, w.Memo
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"timeout": `{"wait_result": {"timeout_occurred": true, "attempts_made": 3}}`})

	call, _, _ = setup(`{"wait_condition": "x", "max_attempts": 1}`)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.WAIT", call), map[string]string{"timeout": `{"wait_result": {"timeout_occurred": true, "attempts_made": 1}}`})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	scope, ctx := kinds().Kind(t, "FLOW.TIMEOUT").Scope, context.Background()
	for name, c := range map[string]struct {
		config   string
		deadline time.Time
	}{
		"Default":      {`{}`, nodetest.Start().Add(300 * time.Second)},
		"Seconds":      {`{"timeout_seconds": 0.5}`, nodetest.Start().Add(500 * time.Millisecond)},
		"Deadline":     {`{"deadline": "2030-01-31T10:00:00Z"}`, nodetest.Start().Add(time.Hour)},
		"NoDeadline":   {`{"condition": "a == 1"}`, time.Time{}},
		"WithDeadline": {`{"condition_expression": "a == 2"}`, nodetest.Start().Add(300 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := scope.Open(ctx, nodetest.NewCall(t, c.config, `{"a": 1}`))
			if err != nil || o.Count != 1 || !o.Deadline.Equal(c.deadline) || o.KeepGoing || o.Done != nil {
				t.Errorf("got %+v, %v; want the deadline %v", o, err, c.deadline)
			}
		})
	}
	call := nodetest.NewCall(t, `{}`, `{"a": 1}`)
	if it, err := scope.Iteration(call, nil, 0); err != nil || string(it.Payload) != `{"a": 1}` {
		t.Errorf("the body gets %s, %v", it.Payload, err)
	}
	closing := func(deadline bool, results ...json.RawMessage) node.Closing {
		return node.Closing{Closed: engine.Closed{Deadline: deadline, Unfinished: []engine.ActivationID{"n[0]/b%2Fc", "n[0]/a", "n[0]/l[3]/a"}}, Elapsed: 1500 * time.Millisecond,
			Results: func() ([]json.RawMessage, error) { return results, nil }}
	}
	check := func(c node.Closing, want map[string]string) {
		t.Helper()
		got, err := scope.Close(ctx, call, c)
		if err != nil {
			t.Fatal(err)
		}
		nodetest.CheckDone(t, got, want)
	}
	check(closing(false, json.RawMessage(`{"r": 1}`)), map[string]string{"result": `{"r": 1}`})
	check(closing(false, nil), map[string]string{"result": `null`})
	check(closing(true), map[string]string{"timeout": `{"timed_out": true, "elapsed_seconds": 1.5, "unfinished": ["a", "b/c"], "partial": null}`})
	check(closing(true, json.RawMessage(`{"r": 1}`)), map[string]string{"timeout": `{"partial": {"r": 1}}`})
	call.Connected = func(key string) bool { return key == "body" }
	_, err := scope.Close(ctx, call, closing(true))
	nodetest.WantError(t, err, fault.Timeout, "timeout")
	_, err = scope.Open(ctx, nodetest.NewCall(t, `{"deadline": "tomorrow"}`, `{}`))
	nodetest.WantError(t, err, fault.InvalidConfig, "tomorrow")
}

func TestSubWorkflow(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"workflow_id": "wf_2"}`, `{"a": 1}`)
	w := wait(t, "FLOW.SUB_WORKFLOW", call)
	if w.Child == nil || w.Child.Workflow != "wf_2" || w.Child.Revision != "deployed" || w.Child.Detached || string(w.Child.Input) != `{"a": 1}` {
		t.Errorf("starts %+v", w.Child)
	}
	if w := wait(t, "FLOW.SUB_WORKFLOW", nodetest.NewCall(t, `{"workflow_id": "wf_2", "revision": 3, "wait": false}`, `{}`)); w.Child.Revision != "3" || !w.Child.Detached {
		t.Errorf("starts %+v", w.Child)
	}
	ended := func(status engine.Status, err error) *node.Wake {
		return &node.Wake{By: engine.WakeChild, Child: "child_1", Status: status, Error: err, Payload: json.RawMessage(`{"x": {"v": 1}, "y": 2}`)}
	}
	call.Wake = ended(engine.StatusSuccess, nil)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.SUB_WORKFLOW", call), map[string]string{"result": `{"execution_id": "child_1", "status": "SUCCESS", "outputs": {"x": {"v": 1}, "y": 2}}`})
	call.Config = json.RawMessage(`{"workflow_id": "wf_2", "output_nodes": ["y", "z"]}`)
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.SUB_WORKFLOW", call), map[string]string{"result": `{"outputs": {"y": 2, "z": null}}`})
	call.Wake = ended(engine.StatusError, fault.New(fault.NetworkError, "gone"))
	_, err := kinds().Run(t, "FLOW.SUB_WORKFLOW", call)
	nodetest.WantError(t, err, fault.NetworkError, "gone")
	for status, code := range map[engine.Status]fault.Code{engine.StatusCanceled: fault.Canceled, engine.StatusTimeout: fault.Timeout, engine.StatusError: fault.Internal} {
		call.Wake = ended(status, nil)
		_, err := kinds().Run(t, "FLOW.SUB_WORKFLOW", call)
		nodetest.WantError(t, err, code, "wf_2")
	}
	call.Config, call.Wake = json.RawMessage(`{"workflow_id": "wf_2", "wait": false}`), &node.Wake{By: engine.WakeChild, Child: "child_1"}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.SUB_WORKFLOW", call), map[string]string{"result": `{"execution_id": "child_1", "status": "NEW", "outputs": {}}`})
	kinds().Check(t, "FLOW.SUB_WORKFLOW", []nodetest.Case{
		{Name: "NoWorkflow", Config: `{}`, Code: fault.InvalidConfig, Part: "workflow_id"},
		{Name: "BadRevision", Config: `{"workflow_id": "w", "revision": "newest"}`, Code: fault.InvalidConfig, Part: "newest"},
	})
}
