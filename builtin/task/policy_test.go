package task_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/mcp"
	"tandem/store"
)

// wipes is a task whose model wants to call a tool of which its server says nothing, and calls that harmless.
func wipes(t *testing.T, arguments string) *taskRig {
	t.Helper()
	r := autoRig(t, "srv/wipe")
	r.mind.says["params"] = []string{`{"arguments":` + arguments + `}`}
	r.mind.says["tool_risk"] = []string{`{"risk":"low","reason":"it only looks"}`}
	return r
}

// called checks what the server got.
func (r *taskRig) called(times int) {
	r.t.Helper()
	if got := r.noted(); len(got) != times {
		r.t.Errorf("the server got %q, want %d calls", got, times)
	}
}

// A tool of which its server says nothing is asked about, whatever the model says of it.
func TestTask_AnUnclassedToolIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := wipes(t, `{"database":"production"}`)
	r.begin(ask)
	request := r.asksFor("confirm_1", "confirm")
	has(t, "request", request, `{"risk":"medium","tool":"srv/wipe","arguments":{"database":"production"}}`)
	has(t, "risk_1", r.result("risk_1"), `{"risk":"medium","policy":{"decision":"destructive","from":"nobody"}}`)
	if !strings.Contains(request, "Nobody has said what this tool does") {
		t.Errorf("request %s", request)
	}
	r.called(0)
	r.answer(`{"confirm":true}`)
	r.ends(engine.StatusSuccess)
	r.called(1)
}

// An agent whose policy approves of medium risk runs it: that is what its policy says.
func TestTask_AnUnclassedToolIsOfMediumRisk(t *testing.T) {
	t.Parallel()
	r := wipes(t, `{}`)
	r.spec.Policy.AutoApprove = []agent.Risk{agent.Medium}
	r.begin(ask)
	has(t, "result", r.ends(engine.StatusSuccess), `{"steps":[{"status":"completed","risk":"medium"}]}`)
	r.called(1)
}

func TestTask_Policies(t *testing.T) {
	t.Parallel()
	byDatabase := []store.MCPRule{
		{Argument: "database", Equals: json.RawMessage(`"test"`), Policy: store.MCPReadOnly}, {Argument: "database", Equals: json.RawMessage(`"production"`), Policy: store.MCPNever},
	}
	for name, c := range map[string]struct {
		policy    store.MCPPolicy
		arguments string
		risk      string
		// approves are levels that need no confirmation; off is without auto_execute.
		approves []agent.Risk
		off      bool
		want     string
	}{
		"read-only runs":                       {policy: store.MCPPolicy{Policy: store.MCPReadOnly}, want: "runs"},
		"read-only runs whatever the model":    {policy: store.MCPPolicy{Policy: store.MCPReadOnly}, risk: "high", want: "runs"},
		"read-only without auto_execute":       {policy: store.MCPPolicy{Policy: store.MCPReadOnly}, off: true, want: "asks"},
		"ask":                                  {policy: store.MCPPolicy{Policy: store.MCPAsk}, want: "asks"},
		"ask whatever the agent approves of":   {policy: store.MCPPolicy{Policy: store.MCPAsk}, approves: []agent.Risk{agent.Low, agent.Medium, agent.High}, want: "asks"},
		"never":                                {policy: store.MCPPolicy{Policy: store.MCPNever}, want: "refused"},
		"by argument: runs":                    {policy: store.MCPPolicy{Policy: store.MCPAsk, Rules: byDatabase}, arguments: `{"database":"test"}`, want: "runs"},
		"by argument: never":                   {policy: store.MCPPolicy{Policy: store.MCPAsk, Rules: byDatabase}, arguments: `{"database":"production"}`, want: "shut"},
		"by argument: otherwise":               {policy: store.MCPPolicy{Policy: store.MCPReadOnly, Rules: byDatabase}, arguments: `{"database":"other"}`, want: "runs"},
		"by argument: unclear":                 {policy: store.MCPPolicy{Policy: store.MCPReadOnly, Rules: byDatabase[:1]}, arguments: `{"database":"TEST"}`, want: "asks"},
		"by argument: missing":                 {policy: store.MCPPolicy{Policy: store.MCPReadOnly, Rules: byDatabase[:1]}, arguments: `{}`, want: "asks"},
		"by argument: no match and no default": {policy: store.MCPPolicy{Rules: byDatabase}, arguments: `{"database":"other"}`, want: "asks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.arguments == "" {
				c.arguments = `{"database":"test"}`
			}
			r := wipes(t, c.arguments)
			if c.risk != "" {
				r.mind.says["tool_risk"] = []string{`{"risk":"` + c.risk + `","reason":"x"}`}
			}
			r.spec.Policy.AutoApprove, r.spec.AutoExecute = c.approves, !c.off
			r.allow(map[string]store.MCPPolicy{"wipe": c.policy})
			r.begin(ask)
			switch c.want {
			case "runs":
				r.ends(engine.StatusSuccess)
				r.called(1)
			case "asks":
				r.asksFor("confirm_1", "confirm")
				r.called(0)
				r.answer(`{"confirm":true}`)
				r.ends(engine.StatusSuccess)
				r.called(1)
			case "refused": // the planner is told, and the tool is not chosen
				has(t, "result", r.ends(engine.StatusSuccess), `{"step_count":0}`)
				if told := prompt(r.mind.last(t, "plan")); !strings.Contains(told, "[not allowed]") || !strings.Contains(told, "ada has set the policy never") {
					t.Errorf("told %s", told)
				}
				r.called(0)
			case "shut": // these arguments are not allowed, which the way out is told
				has(t, "result", r.ends(engine.StatusSuccess), `{"failure_count":1,"steps":[{"status":"failed"}]}`)
				if told := prompt(r.mind.last(t, "alternative")); !strings.Contains(told, "not allowed") {
					t.Errorf("told %s", told)
				}
				r.called(0)
			}
		})
	}
}

// What somebody decides while a task is under way holds for its next call, also for one that was judged before.
func TestTask_APolicyThatComesInBetween(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		answer string
		calls  int
	}{
		"ask, yes": {store.MCPAsk, `{"approved":true}`, 1},
		"ask, no":  {store.MCPAsk, `{"approved":false}`, 0},
		"never":    {store.MCPNever, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wipes(t, `{"database":"test"}`)
			r.allow(map[string]store.MCPPolicy{"wipe": {Policy: store.MCPReadOnly}})
			r.stop = func(name string) bool { return name == "step_1" }
			r.begin(ask)
			r.called(0)
			r.allow(map[string]store.MCPPolicy{"wipe": {Policy: c.policy}})
			r.stop = nil
			for _, run := range r.left {
				r.run(run)
			}
			if c.answer != "" {
				has(t, "request", r.asksFor("step_1", "tool_approval"), `{"tool":"srv/wipe","arguments":{"database":"test"}}`)
				r.called(0)
				r.answer(c.answer)
			}
			r.ends(engine.StatusSuccess)
			r.called(c.calls)
		})
	}
}

// A policy is about the tool as it was. When the tool changes, it grants nothing before the change is accepted, and then what was accepted.
func TestTask_APolicyAndAChangedTool(t *testing.T) {
	t.Parallel()
	r := wipes(t, `{"database":"test"}`)
	r.allow(map[string]store.MCPPolicy{"wipe": {Policy: store.MCPReadOnly}})
	r.register("srv", "worded")
	r.by = "ada"
	r.begin(ask)
	r.asksFor("step_1", "drift")
	r.called(0)
	r.answer(`{"accept":true}`)
	r.ends(engine.StatusSuccess)
	r.called(1)
	records, err := r.rows.Acceptances(t.Context(), toolUser(), "srv", "", 10)
	if err != nil || len(records) != 1 || records[0].By != "ada" || records[0].User != "ada" || records[0].Execution != "exec_1" ||
		!strings.Contains(string(records[0].Before), "for ever") || !strings.Contains(string(records[0].After), "and its copies") {
		t.Errorf("recorded %+v, %v", records, err)
	}
	v, err := r.pool.Verdict(t.Context(), toolUser(), "srv", "wipe", nil)
	if err != nil || v.Decision != mcp.Runs {
		t.Errorf("then %+v, %v", v, err)
	}
}

// Nobody accepts for another user, except an admin, who accepts for all.
func TestTask_WhoAcceptsAChange(t *testing.T) {
	t.Parallel()
	t.Run("SomebodyElse", func(t *testing.T) {
		t.Parallel()
		r := wipes(t, `{}`)
		r.allow(map[string]store.MCPPolicy{"wipe": {Policy: store.MCPReadOnly}})
		r.register("srv", "worded")
		r.by = "bob"
		r.begin(ask)
		r.asksFor("step_1", "drift")
		r.answer(`{"accept":true}`)
		r.ends(engine.StatusSuccess)
		if v := r.fold.View().Nodes["step_1"]; v.Error == nil || v.Error.Code != fault.Forbidden || !strings.Contains(v.Error.Message, `"bob" cannot accept`) {
			t.Errorf("ended with %v", v.Error)
		}
		r.called(0)
	})
	t.Run("AnAdmin", func(t *testing.T) {
		t.Parallel()
		r := wipes(t, `{}`)
		other := toolUser()
		other.User = "bob"
		if _, err := r.pool.Activate(t.Context(), other, "srv", mcp.Activation{}); err != nil {
			t.Fatal(err)
		}
		r.allow(map[string]store.MCPPolicy{"wipe": {Policy: store.MCPReadOnly}})
		r.register("srv", "worded")
		r.by = "root"
		r.begin(ask)
		r.asksFor("step_1", "drift")
		r.answer(`{"accept":true}`)
		r.ends(engine.StatusSuccess)
		r.called(1)
		changes, err := r.pool.Check(t.Context(), other, "srv")
		if err != nil || len(changes) != 0 {
			t.Errorf("left for bob: %v, %v", changes, err)
		}
		records, err := r.rows.Acceptances(t.Context(), toolUser(), "srv", "", 10)
		if err != nil || len(records) != 1 || records[0].By != "root" || records[0].User != "" {
			t.Errorf("recorded %+v, %v", records, err)
		}
	})
}

// Arguments that were made for a tool as it was are not sent to the tool as it is: they are derived anew.
func TestTask_ArgumentsForAToolThatHasChanged(t *testing.T) {
	t.Parallel()
	r := autoRig(t, "srv/weather")
	r.mind.says["params"] = []string{`{"arguments":{"city":"Turin"}}`, `{"arguments":{"place":"Turin"}}`}
	r.register("srv", "reshaped")
	r.begin(ask)
	r.asksFor("step_1", "drift")
	r.answer(`{"accept":true}`)
	r.ends(engine.StatusSuccess)
	if got := r.noted(); len(got) != 1 || got[0] != `weather {"place":"Turin"}` {
		t.Errorf("the server got %q", got)
	}
	told := prompt(r.mind.last(t, "params"))
	for _, part := range []string{`"place"`, "do not fit it as it is now"} {
		if !strings.Contains(told, part) {
			t.Errorf("the model was not told %q: %s", part, told)
		}
	}
}

// isAdmin is what the pools of these tests know of users.
func isAdmin(_ context.Context, _, user string) (bool, error) { return user == "root", nil }
