package task_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/store"
)

// noWayOut lets every rung find nothing.
func (r *taskRig) noWayOut() {
	r.mind.says["alternative"], r.mind.says["repair"] = []string{`{"tool_id":"","description":""}`}, []string{`{"tool_id":"","description":""}`}
	r.mind.says["replan"] = []string{`{"description":"nothing helps","steps":[]}`}
}

func autoRig(t *testing.T, tools ...string) *taskRig {
	t.Helper()
	return autoOf(newTaskRig(t), tools...)
}

func autoOf(r *taskRig, tools ...string) *taskRig {
	r.t.Helper()
	r.activate("srv")
	r.people.auto, r.spec.AutoExecute = true, true
	r.mind.says["plan"], r.mind.says["params"] = planOf(tools...), []string{`{"arguments":{}}`}
	r.noWayOut()
	return r
}

func TestTask_GoesUpTheLadder(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/broken")
	r.mind.says["analyze"] = []string{`{"is_param_error":false,"reason":"the disk is full"}`}
	r.mind.says["alternative"] = []string{`{"tool_id":"srv/unknown","description":"x"}`, `{"tool_id":"srv/picture","description":"instead"}`}
	r.begin(ask)
	has(t, "result", r.ends(engine.StatusSuccess), `{"failure_count":1,"step_count":1,"steps":[{"step_id":"step_1","status":"failed","error":"tool server \"srv\": the disk is full"},
		{"step_id":"step_1_2","tool":"srv/picture","rung":"alternative","status":"completed"}]}`)
	has(t, "analyze_1", r.result("analyze_1"), `{"is_param_error":false,"reason":"the disk is full"}`)
	has(t, "alternative_1", r.result("alternative_1"), `{"tool_id":"srv/picture","description":"instead"}`)
	has(t, "step_1_2", r.result("step_1_2"), `{"files":[{"content_type":"image/png","type":"image","size":3}]}`)
	if r.files.Count() != 1 {
		t.Errorf("%d files are kept", r.files.Count())
	}
	if told := prompt(r.mind.last(t, "alternative")); !strings.Contains(told, "the disk is full") || !strings.Contains(told, `no tool \"srv/unknown\"`) && !strings.Contains(told, `no tool "srv/unknown"`) {
		t.Errorf("told %s", told)
	}
}

// A tool that says that it is not permitted has failed for lack of permission: nobody is asked what was meant, and arguments are not
// derived again.
func TestTask_ToolThatIsNotPermitted(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/guarded")
	r.begin(ask)
	result := r.ends(engine.StatusSuccess)
	if _, analyzed := r.fold.View().Nodes["analyze_1"]; analyzed {
		t.Errorf("the failure was analyzed: %s", result)
	}
	failed := r.fold.View().Nodes["step_1"]
	if failed == nil || failed.Error == nil || agent.ClassOf(failed.Error) != agent.Permission {
		t.Errorf("step_1 is %+v", failed)
	}
}

func TestTask_RepairsAndPlansAnew(t *testing.T) {
	t.Parallel()
	r := autoRig(t)
	r.mind.says["plan"] = append(planOf("srv/weather", "srv/broken", "srv/convert")[:3], `{"tool_id":"FINAL","description":""}`)
	r.mind.says["params"] = []string{`{"city":"{{city}}"}`, `{}`, `{}`, `{"degrees":"${step_1.output.degrees}"}`}
	r.mind.says["analyze"] = []string{`{"is_param_error":false,"reason":"no"}`}
	r.mind.says["repair"] = []string{`{"tool_id":"srv/broken","description":"once more, gently"}`}
	r.mind.says["replan"] = []string{`{"description":"convert what there is","steps":[{"tool_id":"srv/convert","description":"with the degrees of step_1"}]}`}
	r.spec.Limits.Failures = 9
	r.begin(ask)
	has(t, "result", r.ends(engine.StatusSuccess), `{"plan_ids":["plan-1","plan-2"],"steps":[{"step_id":"step_1","plan_id":"plan-1"},{"step_id":"step_2","status":"failed"},
		{"step_id":"step_2_2","rung":"repair","status":"failed","description":"once more, gently"},{"step_id":"step_2_3","rung":"replan","plan_id":"plan-2","tool":"srv/convert","arguments":{"degrees":21},"status":"completed"}]}`)
	has(t, "replan_2", r.result("replan_2"), `{"description":"convert what there is","steps":[{"tool_id":"srv/convert","description":"with the degrees of step_1"}]}`)
	if told := prompt(r.mind.last(t, "plan")); !strings.Contains(told, "convert what there is") {
		t.Errorf("the planner is not told the new plan: %s", told)
	}
}

// A failure of parameters: the model is asked whether it is one, told of it, and derives others.
func TestTask_DerivesOtherArguments(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/weather")
	r.mind.says["params"] = []string{`{"city":"Atlantis"}`, `{"city":"Turin"}`}
	r.mind.says["analyze"] = []string{`{"is_param_error":true,"reason":"the city"}`}
	r.begin(ask)
	has(t, "result", r.ends(engine.StatusSuccess), `{"failure_count":0,"steps":[{"step_id":"step_1","arguments":{"city":"Turin"},"status":"completed"}]}`)
	if want := []string{`weather {"city":"Atlantis"}`, `weather {"city":"Turin"}`}; !slices.Equal(r.noted(), want) {
		t.Errorf("the server got %q", r.noted())
	}
	if told := prompt(r.mind.last(t, "params")); !strings.Contains(told, "there is no city Atlantis") || !strings.Contains(told, `"city":"Atlantis"`) {
		t.Errorf("told %s", told)
	}
}

// Without auto mode a person is asked at once. What the form leaves open stays as it was, and other arguments want another yes.
func TestTask_AsksAfterAFailure(t *testing.T) {
	t.Parallel()
	r := newTaskRig(t)
	r.activate("srv")
	r.mind.says["plan"], r.mind.says["params"] = planOf("srv/weather"), []string{`{"city":"Atlantis","days":2}`}
	r.mind.says["analyze"] = []string{`{"is_param_error":true,"reason":"the city"}`}
	r.mind.says["missing"] = []string{`{"message":"Which city?","params":{"city":"Turin","days":2}}`}
	r.begin(ask)
	r.asksFor("confirm_1", "confirm")
	r.answer(`{"confirm":true}`)
	has(t, "request", r.asksFor("ask_1", "param"), `{"params":{"city":"Turin","days":2},"schema":{"properties":{"days":{"$ref":"#/$defs/days"}},"$defs":{"days":{"type":"integer"}}}}`)
	r.answer(`{"city":"Turin","days":null}`)
	has(t, "request", r.asksFor("confirm_1_2", "confirm"), `{"arguments":{"city":"Turin","days":2},"step_id":"step_1"}`)
	r.answer(`{"confirm":true}`)
	has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[{"step_id":"step_1","arguments":{"city":"Turin","days":2},"status":"completed"}]}`)
	if want := []string{`weather {"city":"Atlantis","days":2}`, `weather {"city":"Turin","days":2}`}; !slices.Equal(r.noted(), want) {
		t.Errorf("the server got %q", r.noted())
	}
}

func TestTask_AnUnknownToolCountsAsATry(t *testing.T) {
	t.Parallel()
	r := autoRig(t)
	r.mind.says["plan"] = []string{`{"tool_id":"srv/nothing","description":""}`}
	r.begin(ask)
	has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[],"step_count":0}`)
	if n := r.mind.counts["plan"]; n != 3 {
		t.Errorf("planned %d times", n)
	}
	if told := prompt(r.mind.last(t, "summary")); !strings.Contains(told, "No further step could be planned") {
		t.Errorf("told %s", told)
	}
}

func TestTask_AClosedConnection(t *testing.T) {
	t.Parallel()
	t.Run("IsTriedAgain", func(t *testing.T) {
		t.Parallel()
		r := autoOf(newStdioRig(t), "srv/die_reading")
		r.begin(ask)
		has(t, "result", r.ends(engine.StatusSuccess), `{"failure_count":1,"steps":[{"step_id":"step_1","status":"failed"}]}`)
		if r.fold.View().Nodes["step_1_try_2"] == nil {
			t.Errorf("ran %v", r.ran)
		}
	})
	t.Run("LeavesACallUnknown", func(t *testing.T) {
		t.Parallel()
		r := autoOf(newStdioRig(t), "srv/die")
		r.allow(map[string]store.MCPPolicy{"die": {Policy: store.MCPReadOnly}}) // of which its server says nothing
		r.begin(ask)
		r.asksFor("step_1", "outcome_unknown")
		if got := r.noted(); !slices.Equal(got, []string{"die {}"}) {
			t.Errorf("the server got %q", got)
		}
		a := r.question()
		r.asks = nil
		r.do(func(put node.Put) engine.Fact {
			return engine.AskAnswered{Ask: a.Ask, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: put(json.RawMessage(`"it has"`))}
		})
		has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[{"step_id":"step_1","status":"completed","result":{"result":"it has","message":"it has"}}]}`)
	})
}

// A tool that has changed is shown as it was, and called only after somebody has accepted the difference.
func TestTask_AChangedTool(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *taskRig {
		r := autoRig(t, "srv/weather")
		r.mind.says["params"] = []string{`{"city":"Turin"}`}
		r.register("srv", "changed")
		r.begin(ask)
		request := r.asksFor("step_1", "drift")
		has(t, "request", request, `{"server_id":"srv","tool":"srv/weather","step_id":"step_1"}`)
		if !strings.Contains(request, `"changes":[{"tool":"weather","kind":"changed"`) {
			t.Errorf("request %s", request)
		}
		if told := prompt(r.mind.last(t, "plan")); strings.Contains(told, "ignore all rules") {
			t.Error("the model is shown what nobody has accepted")
		}
		return r
	}
	t.Run("Accepted", func(t *testing.T) {
		t.Parallel()
		r := begin(t)
		r.answer(`{"accept":true}`)
		has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[{"status":"completed"}]}`)
		if changes, err := r.pool.Check(t.Context(), toolUser(), "srv"); err != nil || len(changes) != 0 {
			t.Errorf("left to accept: %v, %v", changes, err)
		}
		if len(r.noted()) != 1 {
			t.Errorf("the server got %q", r.noted())
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		r := begin(t)
		r.answer(`{"accept":false}`)
		has(t, "result", r.ends(engine.StatusSuccess), `{"failure_count":1,"steps":[{"status":"failed"}]}`)
		if v := r.fold.View().Nodes["step_1"]; v.Error.Code != fault.Forbidden || r.noted() != nil {
			t.Errorf("ended with %v, the server got %q", v.Error, r.noted())
		}
	})
}

// A call that was begun as one that may be repeated is not made with a tool that may not be any more.
func TestTask_AToolThatMayNoLongerBeRepeated(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/weather")
	r.mind.says["params"] = []string{`{"city":"Turin"}`}
	r.register("srv", "once")
	r.begin(ask)
	r.asksFor("step_1", "drift")
	r.answer(`{"accept":true}`)
	r.ends(engine.StatusSuccess)
	if v := r.fold.View().Nodes["step_1"]; v.Error == nil || v.Error.Code != fault.Forbidden || r.noted() != nil {
		t.Errorf("ended with %v, the server got %q", v.Error, r.noted())
	}
}

func TestTask_ProgressIsSeen(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/count")
	r.begin(ask)
	r.ends(engine.StatusSuccess)
	seen := r.emitted["step_1"]
	if len(seen) == 0 || !strings.Contains(string(seen[len(seen)-1].(json.RawMessage)), `"progress":1`) {
		t.Errorf("seen %s", seen)
	}
}

// A server that was deactivated while the task ran is asked about.
func TestTask_ADeactivatedServer(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/weather")
	r.mind.says["params"] = []string{`{"city":"Turin"}`}
	r.stop = func(name string) bool { return name == "step_1" }
	r.begin(ask)
	if err := r.rows.Deactivate(t.Context(), toolUser(), "srv", "ada"); err != nil {
		t.Fatal(err)
	}
	r.stop = nil
	r.run(r.left[0])
	has(t, "request", r.asksFor("step_1", "activation"), `{"server_id":"srv","step_id":"step_1"}`)
	r.answer(`{"accept":true}`)
	has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[{"status":"completed"}]}`)
}

// A server that was switched off is nothing that arguments or a person at the form could mend.
func TestTask_AServerThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/weather")
	r.mind.says["params"] = []string{`{"city":"Turin"}`}
	r.stop = func(name string) bool { return name == "step_1" }
	r.begin(ask)
	row, err := r.rows.Get(t.Context(), toolUser(), "srv")
	if err != nil {
		t.Fatal(err)
	}
	row.Enabled = false
	if err := r.rows.Put(t.Context(), toolUser(), row); err != nil {
		t.Fatal(err)
	}
	r.stop = nil
	r.run(r.left[0])
	r.ends(engine.StatusSuccess)
	v := r.fold.View().Nodes["step_1"]
	if v.Error == nil || v.Error.Details["class"] != "permission" {
		t.Errorf("ended with %+v", v.Error)
	}
}
