package app

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/loopback"
	"tandem/store/sqlite/sqlitetest"
)

// deaths kills the process of a server at every point that it comes to, once at each.
type deaths struct {
	mu   sync.Mutex
	seen map[string]bool
	// at tells the test that a point was reached for the first time; the goroutine that reached it waits until the process is gone.
	at chan string
}

// reach says that a point was reached. It returns true when the process died there; the caller's answer goes nowhere.
func (d *deaths) reach(point string, gone <-chan struct{}) bool {
	d.mu.Lock()
	first := !d.seen[point]
	d.seen[point] = true
	d.mu.Unlock()
	if !first {
		return false
	}
	select {
	case d.at <- point:
	case <-gone: // the test has given up
		return true
	}
	<-gone
	return true
}

// A task whose process is killed with -9 in every decision, in every call and at every question goes on where it was: no decision that is
// on disk is asked for again, a call that may run once only is not repeated, a question stays the same question, and counters go on.
func TestTask_KilledInEveryState(t *testing.T) {
	t.Parallel()
	d := &deaths{seen: map[string]bool{}, at: make(chan string)}
	b := newToolbox(t, func(c toolCall, gone <-chan struct{}) toolReply {
		if d.reach("call "+c.Tool+" "+string(c.Arguments), gone) {
			return toolReply{Die: true}
		}
		switch {
		case strings.Contains(string(c.Arguments), "Atlantis"):
			return toolReply{Failed: true, Text: "no such city"}
		case strings.Contains(string(c.Arguments), "Broken"):
			return toolReply{Failed: true, Text: "out of order"}
		}
		return toolReply{Text: `{"found":"Suzhou"}`}
	}, cityTools()...)
	m := newMind(t, nil, func(q decided) any {
		if d.reach("decision "+q.name+" "+q.step, q.gone) {
			return ""
		}
		switch q.name + " " + q.step {
		case "flow_risk ":
			return map[string]any{"risk": "medium", "reason": "it pays"}
		case "plan step_1", "plan step_3":
			return map[string]any{"tool_id": "box/read", "description": "read"}
		case "plan step_2":
			return map[string]any{"tool_id": "box/pay", "description": "pay"}
		case "params step_1":
			return arguments(`{"city":"Atlantis"}`)
		case "analyze step_1":
			return map[string]any{"is_param_error": true, "reason": "no such city"}
		case "missing step_1":
			return map[string]any{"message": "Which city?", "params": map[string]any{"city": nil}}
		case "fill step_1":
			return arguments(`{"city":"Hangzhou"}`)
		case "params step_2":
			return arguments(`{"city":"{{step_1.outputs.found}}"}`)
		case "params step_3":
			return arguments(`{"city":"Broken"}`)
		case "replan step_3":
			return map[string]any{"description": "look", "steps": []any{map[string]any{"tool_id": "box/look", "description": "look"}}}
		case "params step_3_2":
			return arguments(`{"city":"Hangzhou"}`)
		}
		return nil
	})
	plan := m.decide
	replanned := false
	m.decide = func(q decided) any {
		switch q.name {
		case "replan":
			replanned = replanned || q.times > 1 // the first asking is lost with the process
		case "plan":
			if q.step == "step_3" && replanned {
				if d.reach("decision plan anew", q.gone) {
					return ""
				}
				return map[string]any{"tool_id": "box/look", "description": "look"}
			}
		}
		return plan(q)
	}

	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	i := openInstance(t, c.dir)
	if err := i.SaveProfile(t.Context(), user, m.profile("mind")); err != nil {
		t.Fatal(err)
	}
	if err := i.stores.MCPServers.Put(t.Context(), user, b.server(t, "box")); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	kill := c.serve()
	t.Cleanup(func() { kill() }) // before the services are closed that the process waits for
	if _, err := c.client.PutAgent(t.Context(), api.Agent{ID: "helper", LLMProfile: "mind", MCPServers: []string{"box"}}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.ActivateMCPServer(t.Context(), "box", api.MCPActivate{Policies: map[string]api.MCPToolPolicy{"look": {Policy: "ask"}}}); err != nil {
		t.Fatal(err)
	}
	started, err := c.client.StartTask(t.Context(), "helper", api.TaskRequest{Question: "do it"}, "once")
	if err != nil {
		t.Fatal(err)
	}
	id := started.ExecutionID

	// Two things happen: a point is reached, and the process is killed there; or the task asks, the process is killed, and the same
	// is asked when it is back and then answered.
	var points []string
	answered := map[string]bool{}
	var last api.Execution
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond) // the server is another process
	defer tick.Stop()
	for {
		select {
		case point := <-d.at:
			points = append(points, point)
			kill()
			kill = c.serve()
			continue
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the task is %s after %q with questions %+v", last.Status, points, last.Questions)
		}
		e, err := c.client.Execution(ctx, id)
		if err != nil {
			continue // it is just being started
		}
		last = e
		if engine.Status(e.Status).Final() {
			break
		}
		if e.Status != string(engine.StatusWaitingForHuman) || answered[e.Questions[0].InteractionID] {
			continue
		}
		q := e.Questions[0]
		kill()
		kill = c.serve()
		after := c.becomes(id, engine.StatusWaitingForHuman)
		if len(after.Questions) != 1 || after.Questions[0].InteractionID != q.InteractionID {
			t.Fatalf("after the crash it asks %+v instead of %+v", after.Questions, q)
		}
		points = append(points, "question "+q.NodeID+" "+q.Purpose)
		answered[q.InteractionID] = true
		answer := map[string]string{
			"confirm": `{"confirm":true}`, "param": `{"content":{},"description":"Hangzhou, please"}`, "outcome_unknown": `{"outcome":"done","result":{"receipt":7}}`,
		}[q.Purpose]
		if _, err := c.client.Input(ctx, id, api.InputRequest{NodeID: q.NodeID, InteractionID: q.InteractionID, InputData: json.RawMessage(answer)}); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := c.client.MCPPolicies(t.Context(), "box"); err != nil || kept.Policies["look"].Policy != "ask" || kept.Policies["look"].Lapsed {
		t.Errorf("of the policies there is left %+v, %v", kept, err)
	}
	if last.Status != string(engine.StatusSuccess) {
		t.Fatalf("the task is %s (%+v) after %q", last.Status, last.Error, points)
	}
	agrees(t, "points", points, []string{
		"decision flow_name ", "decision flow_risk ", "question confirm_flow confirm",
		"decision plan step_1", "decision params step_1", "decision tool_risk step_1", "question confirm_1 confirm", `call read {"city":"Atlantis"}`,
		"decision analyze step_1", "decision missing step_1", "question ask_1 param", "decision fill step_1", "question confirm_1_2 confirm", `call read {"city":"Hangzhou"}`,
		"decision plan step_2", "decision params step_2", "decision tool_risk step_2", "question confirm_2 confirm", `call pay {"city":"Suzhou"}`, "question step_2 outcome_unknown",
		"decision plan step_3", "decision params step_3", "decision tool_risk step_3", "question confirm_3 confirm", `call read {"city":"Broken"}`, "decision analyze step_3",
		"decision alternative step_3", "decision repair step_3", "decision replan step_3", "decision plan anew",
		"decision params step_3_2", "decision tool_risk step_3_2", "question confirm_3_2 confirm", `call look {"city":"Hangzhou"}`,
		"decision plan step_4", "decision summary ", "decision facts ",
	})
	// What a process was killed in was asked for twice, what it had on disk never again.
	counts := map[string]int{}
	for _, one := range m.decisions() {
		counts[one]++
	}
	for one, n := range counts {
		want := 2
		if one == "tool_risk step_1" {
			want = 3 // judged for the first arguments, lost once, and for the second
		}
		if one == "plan step_3" {
			want = 4 // planned, lost once, and planned anew, lost once
		}
		if n != want {
			t.Errorf("%q was asked for %d times, want %d", one, n, want)
		}
	}
	calls := b.made()
	if n := len(slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return !strings.HasPrefix(c, "pay") })); n != 1 {
		t.Errorf("what may run once was called %d times: %q", n, calls)
	}
	agrees(t, "steps", stepsOf(last), []string{"step_1 box/read SUCCESS", "step_2 box/pay SUCCESS", "step_3 box/read ERROR", "step_3_2 box/look SUCCESS replan"})
	if last.Task.FailureCount != 1 || last.Task.StepCount != 3 || last.Task.PlanID != "plan-2" {
		t.Errorf("the counters are %+v", last.Task)
	}
}
