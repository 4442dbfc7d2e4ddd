package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

const schemaFlow = `
metadata: {id: form, name: form, description: d}
nodes:
  - id: start
    description: d
    type: TRIGGER
    subtype: MANUAL
    configurations:
      input_schema: {type: object, required: [mail], properties: {mail: {type: string}, count: {type: integer}}}
  - {id: other, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: work, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out}
  - {from_node: other, to_node: each}
  - {from_node: each, to_node: work, output_key: iteration}
  - {from_node: work, to_node: each}
`

func TestAPI_Execute(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, chain("chain"))
	x.save(t, waitFlow)
	x.save(t, schemaFlow)

	t.Run("WaitsForTheEnd", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("ends"))
		a := x.call(t, "operator", "POST", "/workflows/ends/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":7}`), WaitSeconds: 30})
		r := want[api.ExecuteResponse](t, a, http.StatusOK)
		if r.Status != "SUCCESS" || !strings.Contains(string(r.Outputs["out"]), `"n":7`) || a.header.Get("Location") != "/api/v1/executions/"+r.ExecutionID {
			t.Errorf("answer %s, %v", a.body, a.header)
		}
		list := want[api.Executions](t, x.call(t, "viewer", "GET", "/executions?workflow_id=ends&status=success,ERROR", nil), http.StatusOK)
		if list.TotalCount != 1 || list.Executions[0].ExecutionID != r.ExecutionID || list.Executions[0].TriggerType != "MANUAL" {
			t.Errorf("listing %+v", list)
		}
		for query, n := range map[string]int{"?workflow_id=ends&status=RUNNING&status=CANCELLED": 0, "?workflow_id=ends&page=2": 0, "?workflow_id=no-such": 0} {
			if list := want[api.Executions](t, x.call(t, "viewer", "GET", "/executions"+query, nil), http.StatusOK); len(list.Executions) != n {
				t.Errorf("%s lists %+v", query, list)
			}
		}
		refused(t, x.call(t, "viewer", "GET", "/executions?status=DONE", nil), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "viewer", "GET", "/executions?page=-1", nil), http.StatusUnprocessableEntity, "invalid_input")
	})

	t.Run("DoesNotWaitForEver", func(t *testing.T) {
		t.Parallel()
		r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/waits/execute", api.ExecuteRequest{WaitSeconds: 0.05}), http.StatusAccepted)
		if r.Outputs != nil || r.ExecutionID == "" || r.Status == "SUCCESS" {
			t.Errorf("answer %+v", r)
		}
	})

	t.Run("StartsOncePerKey", func(t *testing.T) {
		t.Parallel()
		body := api.ExecuteRequest{Inputs: json.RawMessage(`{"a": 1}`)}
		first := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/chain/execute", body, "Idempotency-Key", "k1"), http.StatusAccepted)
		body.WaitSeconds = 30 // how long one waits does not make it another request
		again := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/chain/execute", body, "Idempotency-Key", "k1"), http.StatusOK)
		if again.ExecutionID != first.ExecutionID || !again.Repeated || first.Repeated {
			t.Errorf("first %+v, again %+v", first, again)
		}
		body.Inputs, body.WaitSeconds = json.RawMessage(`{"a": 2}`), 0
		refused(t, x.call(t, "operator", "POST", "/workflows/chain/execute", body, "Idempotency-Key", "k1"), http.StatusConflict, "conflict")
		refused(t, x.call(t, "operator", "POST", "/workflows/waits/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"a":1}`)}, "Idempotency-Key", "k1"), http.StatusConflict, "conflict")
		if other := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/chain/execute", body), http.StatusAccepted); other.ExecutionID == first.ExecutionID {
			t.Error("without a key the first execution was answered")
		}
		ids := make(chan string, 8)
		for range cap(ids) { // at the same moment
			go func() {
				var r api.ExecuteResponse
				if a := x.call(t, "operator", "POST", "/workflows/chain/execute", api.ExecuteRequest{}, "Idempotency-Key", "k2"); json.Unmarshal(a.body, &r) != nil || a.status != http.StatusAccepted {
					t.Errorf("answer %d %s", a.status, a.body)
				}
				ids <- r.ExecutionID
			}()
		}
		one := <-ids
		for range cap(ids) - 1 {
			if id := <-ids; id != one || id == "" {
				t.Errorf("one key started %q and %q", one, id)
			}
		}
	})

	t.Run("RefusesWhatCannotBe", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct{ body, path string }{
			"MissingInput":   {`{"inputs":{"count":1}}`, "inputs"},
			"WrongInput":     {`{"inputs":{"mail":"m","count":"x"}}`, "inputs.count"},
			"NoObject":       {`{"inputs":[1]}`, "inputs"},
			"NoTrigger":      {`{"trigger_node":"out"}`, "trigger_node"},
			"UnknownTrigger": {`{"trigger_node":"gone"}`, "trigger_node"},
			"UnknownStart":   {`{"start_from_node":"gone"}`, "start_from_node"},
			"InsideALoop":    {`{"start_from_node":"work"}`, "start_from_node"},
			"BothStarts":     {`{"trigger_node":"start","start_from_node":"out"}`, "start_from_node"},
			"WaitTooLong":    {`{"wait_seconds":61}`, "wait_seconds"},
			"UnknownField":   {`{"input":{}}`, "input"},
			"BadPriority":    {`{"priority":6}`, "priority"},
			"BadLanguage":    {`{"language":"fr"}`, "language"},
		} {
			f := refused(t, x.call(t, "operator", "POST", "/workflows/form/execute", c.body), http.StatusUnprocessableEntity, "invalid_input")
			if !slices.Contains(fields(f), c.path) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		refused(t, x.call(t, "operator", "POST", "/workflows/form/execute", `{"revision":9}`), http.StatusNotFound, "not_found")
		if list := want[api.Executions](t, x.call(t, "viewer", "GET", "/executions?workflow_id=form", nil), http.StatusOK); list.TotalCount != 0 {
			t.Errorf("something was started: %+v", list)
		}
	})

	t.Run("BeginsWhereItIsTold", func(t *testing.T) {
		t.Parallel()
		x.save(t, strings.Replace(schemaFlow, "id: form", "id: places", 1))
		id := x.execute(t, "places", api.ExecuteRequest{StartFromNode: "out", Inputs: json.RawMessage(`{"v":1}`), WaitSeconds: 30, Priority: 1, Language: "zh"})
		e := x.read(t, id)
		if e.TriggerInfo.TriggerType != "API" || !slices.Equal(e.ExecutionSequence, []string{"out"}) || e.Priority != 1 {
			t.Errorf("execution %+v", e)
		}
		id = x.execute(t, "places", api.ExecuteRequest{TriggerNode: "other", Inputs: json.RawMessage(`{"list":[]}`), WaitSeconds: 30})
		e = x.read(t, id)
		if _, reached := e.NodeExecutions["start"]; e.TriggerInfo.TriggerType != "MANUAL" || e.NodeExecutions["other"].Status != "completed" || reached {
			t.Errorf("execution %+v", e)
		}
	})
}

func TestAPI_ReadsAnExecution(t *testing.T) {
	t.Parallel()
	x := openSite(t)

	t.Run("WhileItWaits", func(t *testing.T) {
		t.Parallel()
		x.save(t, waitFlow)
		id := x.execute(t, "waits", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":7}`)})
		x.reaches(t, id, engine.StatusWaiting)
		got := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"?include=workflow", nil), http.StatusOK)
		e := got.Execution
		if e.Status != "WAITING" || e.CurrentNodeID != "w" || !slices.Equal(e.CurrentNodeIDs, []string{"w"}) || !slices.Equal(e.NextNodes, []string{"out"}) {
			t.Errorf("execution %+v", e)
		}
		if s := e.NodeExecutions["start"]; s.Status != "completed" || !strings.Contains(string(s.OutputData["result"]), `"n":7`) || s.NodeType != "TRIGGER" || s.NodeSubtype != "MANUAL" || s.Effect != "pure" || s.ActivationID != "start" {
			t.Errorf("start %+v", s)
		}
		if w, out := e.NodeExecutions["w"], e.NodeExecutions["out"]; w.Status != "running" || out.Status != "pending" || out.StartTime != 0 {
			t.Errorf("w %+v, out %+v", w, out)
		}
		if string(e.TriggerInfo.TriggerData) != `{"n":7}` || e.TriggerInfo.UserID != "operator" || e.Outputs != nil || e.Error != nil || len(e.Questions) != 0 {
			t.Errorf("execution %+v", e)
		}
		if !strings.Contains(string(got.WorkflowDefinition), `"signal_name"`) {
			t.Errorf("definition %s", got.WorkflowDefinition)
		}
		c := got.Checkpoint
		if c == nil || c.ID != e.Seq || c.ExecutorStatus != "RUNNING" || c.StepID != "w" || c.StepStatus != "RUNNING" || c.StepType != "FLOW.WAIT" || c.AppID != "waits" {
			t.Errorf("checkpoint %+v", c)
		}
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"?include=all", nil), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "viewer", "GET", "/executions/no-such", nil), http.StatusNotFound, "not_found")
	})

	t.Run("WithALoopOfAThousand", func(t *testing.T) {
		t.Parallel()
		x.save(t, strings.Replace(loopFlow, "max_concurrency: 2", "max_concurrency: 4", 1))
		items := make([]int, 1000)
		for n := range items {
			items[n] = n
		}
		inputs, err := json.Marshal(map[string]any{"n": 5, "list": items})
		if err != nil {
			t.Fatal(err)
		}
		id := x.execute(t, "loops", api.ExecuteRequest{Inputs: inputs, WaitSeconds: 60})
		e := x.read(t, id)
		if work := e.NodeExecutions["work"]; work.ActivationCount != 1000 || len(work.Activations) != 20 || work.Activations[19].ActivationID != work.ActivationID || work.Activations[0].EndTime == 0 || e.NodeExecutions["no"].Status != "skipped" || int64(len(e.ExecutionSequence))+e.SequenceOmitted < 1000 {
			t.Errorf("work %+v, no %+v", work, e.NodeExecutions["no"])
		}
		seen := map[string]bool{}
		after, parts := "", 0
		for {
			part := want[api.Activations](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations?node_id=work&limit=300&after="+after, nil), http.StatusOK)
			for _, a := range part.Activations {
				if a.Iteration == nil || seen[a.ActivationID] || !strings.Contains(string(a.OutputData["result"]), fmt.Sprintf(`"got":%d`, *a.Iteration)) {
					t.Fatalf("activation %+v", a)
				}
				seen[a.ActivationID] = true
			}
			parts++
			if after = part.Next; after == "" {
				break
			}
		}
		if len(seen) != 1000 || parts != 4 {
			t.Errorf("%d activations in %d parts", len(seen), parts)
		}
		for _, path := range []string{"each[7]/work", url.PathEscape("each[7]/work")} {
			a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+path, nil), http.StatusOK)
			if a.NodeID != "work" || *a.Iteration != 7 || !strings.Contains(string(a.InputData), `"got":7`) || !strings.Contains(string(a.Lineage), "{{item}}") {
				t.Errorf("activation %+v: %s %s", a, a.InputData, a.Lineage)
			}
		}
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/each[1000]/work", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations?node_id=gone", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations?after=x", nil), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations?limit=0", nil), http.StatusUnprocessableEntity, "invalid_input")
		c := want[api.Context](t, x.call(t, "viewer", "GET", "/executions/"+id+"/context", nil), http.StatusOK)
		if string(c.InitialMetadata["n"]) != "5" || !c.StepResults["start"].IsSuccess || c.StepResults["each"].ToolID != "FLOW.FOR_EACH" {
			t.Errorf("context %+v", c.StepResults["each"])
		}
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/context?scope=each[3]", nil), http.StatusNotFound, "not_found")
	})

	t.Run("InsideAnOpenIteration", func(t *testing.T) {
		t.Parallel()
		x.save(t, `
metadata: {id: inner, name: inner, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list}}
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
  - {id: in, description: d, type: CALL, subtype: EMPTY}
  - {id: after, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: w, output_key: iteration}
  - {from_node: w, to_node: in, output_key: completed}
  - {from_node: in, to_node: each}
  - {from_node: each, to_node: after, output_key: completed}
`)
		id := x.execute(t, "inner", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":["a","b"]}`)})
		x.reaches(t, id, engine.StatusWaiting)
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{"signal":"go"}`)}), http.StatusOK)
		x.reaches(t, id, engine.StatusWaiting)
		c := want[api.Context](t, x.call(t, "viewer", "GET", "/executions/"+id+"/context?scope="+url.QueryEscape("each[1]"), nil), http.StatusOK)
		if string(c.Variables["item"]) != `"b"` {
			t.Errorf("variables %v", c.Variables)
		}
		e := x.read(t, id)
		if !slices.Equal(e.CurrentNodeIDs, []string{"each", "w"}) || !slices.Equal(e.NextNodes, []string{"in", "after"}) || e.NodeExecutions["w"].ActivationCount != 2 {
			t.Errorf("current %v, next %v, w %+v", e.CurrentNodeIDs, e.NextNodes, e.NodeExecutions["w"])
		}
	})

	t.Run("WithLargeValues", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("large"))
		text := strings.Repeat("all work and no play ", 10_000)
		inputs, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		id := x.execute(t, "large", api.ExecuteRequest{Inputs: inputs, WaitSeconds: 60})
		e := x.read(t, id)
		var blob struct {
			Hash string `json:"$blob"`
			Size int    `json:"size"`
		}
		if err := json.Unmarshal(e.NodeExecutions["out"].OutputData["result"], &blob); err != nil || len(blob.Hash) != 64 || blob.Size < len(text) {
			t.Fatalf("output %.200s: %v", e.NodeExecutions["out"].OutputData["result"], err)
		}
		if !strings.Contains(string(e.Outputs["out"]), blob.Hash) || strings.Contains(string(e.TriggerInfo.TriggerData), "play") {
			t.Errorf("outputs %.200s, trigger data %.200s", e.Outputs["out"], e.TriggerInfo.TriggerData)
		}
		path := "/executions/" + id + "/values/" + blob.Hash
		a := x.call(t, "viewer", "GET", path, nil)
		if v := want[map[string]any](t, a, http.StatusOK); v["text"] != text || a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" || len(a.body) != blob.Size {
			t.Errorf("value of %d bytes, %v", len(a.body), a.header)
		}
		if a := x.call(t, "viewer", "GET", path, nil, "If-None-Match", a.header.Get("ETag")); a.status != http.StatusNotModified || len(a.body) != 0 {
			t.Errorf("not modified: %d", a.status)
		}
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/values/"+strings.Repeat("0", 64), nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/values/x", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/executions/no-such/values/"+blob.Hash, nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "stranger", "GET", path, nil), http.StatusNotFound, "not_found")
		own := want[api.Saved](t, x.call(t, "stranger", "POST", "/workflows", chain("large")), http.StatusCreated)
		mine := want[api.ExecuteResponse](t, x.call(t, "stranger", "POST", "/workflows/"+own.Workflow.ID+"/execute", api.ExecuteRequest{WaitSeconds: 30}), http.StatusOK)
		refused(t, x.call(t, "stranger", "GET", "/executions/"+mine.ExecutionID+"/values/"+blob.Hash, nil), http.StatusNotFound, "not_found")
		got := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/out", nil), http.StatusOK)
		if !strings.Contains(string(got.InputData), text) {
			t.Errorf("input %.200s", got.InputData)
		}
	})

	t.Run("WithLogs", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("logged"))
		id := x.execute(t, "logged", api.ExecuteRequest{WaitSeconds: 30})
		x.writeLines(t, id)
		logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?limit=2", nil), http.StatusOK)
		if len(logs.Lines) != 2 || logs.Next != logs.Lines[1].ID || logs.Lines[0].Message != "one" || logs.Lines[0].Level != "DEBUG" || string(logs.Lines[0].Context) != `{"a":1}` {
			t.Errorf("logs %+v", logs)
		}
		rest := want[api.Logs](t, x.call(t, "viewer", "GET", fmt.Sprintf("/executions/%s/logs?after=%d", id, logs.Next), nil), http.StatusOK)
		if len(rest.Lines) != 1 || rest.Next != 0 || rest.Lines[0].Level != "ERROR" {
			t.Errorf("the rest %+v", rest)
		}
		for query, n := range map[string]int{"?level=WARN": 1, "?level=DEBUG": 3, "?node_id=out": 1, "?activation_id=start": 2, "?node_id=gone": 0} {
			if logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs"+query, nil), http.StatusOK); len(logs.Lines) != n {
				t.Errorf("%s has %+v", query, logs)
			}
		}
		refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?level=LOUD", nil), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "viewer", "GET", "/executions/no-such/logs", nil), http.StatusNotFound, "not_found")
	})

	t.Run("NotOfAnotherWorkspace", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("hidden"))
		id := x.execute(t, "hidden", api.ExecuteRequest{WaitSeconds: 30})
		for _, path := range []string{"", "/activations", "/activations/start", "/context", "/logs"} {
			want[any](t, x.call(t, "viewer", "GET", "/executions/"+id+path, nil), http.StatusOK)
			refused(t, x.call(t, "stranger", "GET", "/executions/"+id+path, nil), http.StatusNotFound, "not_found")
			if a := x.call(t, "nobody", "GET", "/executions/"+id+path, nil); a.status != http.StatusUnauthorized {
				t.Errorf("%s without a token: %d", path, a.status)
			}
		}
		refused(t, x.call(t, "stranger", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "cancel"}), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "stranger", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "start"}), http.StatusNotFound, "not_found")
		if list := want[api.Executions](t, x.call(t, "stranger", "GET", "/executions?workflow_id=hidden", nil), http.StatusOK); list.TotalCount != 0 {
			t.Errorf("the stranger sees %+v", list)
		}
	})
}

// BenchmarkAPI_Reads reads an execution whose loop ran a thousand times.
func BenchmarkAPI_Reads(b *testing.B) {
	x := openSite(b)
	x.save(b, loopFlow)
	inputs, err := json.Marshal(map[string]any{"n": 5, "list": make([]int, 1000)})
	if err != nil {
		b.Fatal(err)
	}
	id := x.execute(b, "loops", api.ExecuteRequest{Inputs: inputs, WaitSeconds: 60})
	for name, path := range map[string]string{"Execution": "", "Activations": "/activations?limit=100", "Activation": "/activations/each[999]/work", "Context": "/context"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				want[json.RawMessage](b, x.call(b, "viewer", "GET", "/executions/"+id+path, nil), http.StatusOK)
			}
		})
	}
}
