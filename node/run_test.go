package node

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/rundata"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// planKinds tells compilation about the kinds of these tests.
type planKinds struct{}

func (planKinds) Kind(name string) (workflow.Kind, bool) {
	k := workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		var c struct {
			Effect    workflow.Effect  `json:"effect"`
			OnError   workflow.OnError `json:"on_error"`
			Disabled  bool             `json:"disabled"`
			Condition string           `json:"condition"`
			Keys      []string         `json:"keys"`
		}
		if err := json.Unmarshal(n.Configurations, &c); err != nil {
			return workflow.Plan{}, []workflow.Problem{{Severity: workflow.SeverityError, Message: err.Error()}}
		}
		plan := workflow.Plan{Effect: workflow.Pure, OnError: c.OnError, Disabled: c.Disabled, Keys: c.Keys, Shielded: []string{"configurations.code"}}
		if c.Effect != "" {
			plan.Effect = c.Effect
		}
		if c.Condition != "" {
			plan.Expressions = []workflow.Expression{{Path: "configurations.condition", Source: c.Condition}}
		}
		return plan, nil
	}}
	if name == "TEST.LOOP" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

func (planKinds) Names() []string                     { return nil }
func (planKinds) Alias(string, string) (string, bool) { return "", false }

// rig is one node under test, with an edge out of it for every connection given, and its execution's data.
type rig struct {
	t        *testing.T
	revision *Revision
	layers   *dataflow.Layers
	values   map[engine.Ref]json.RawMessage
	put      []json.RawMessage
}

// newRig makes the workflow from -> node -> to, where the node is of the kind under test.
func newRig(t *testing.T, kind Kind, config, params string, connections ...workflow.Connection) *rig {
	t.Helper()
	text := text.Beside("test", "测试")
	kind.About.Title, kind.About.Description = text, text
	var registry Registry
	registry.Register(kind, Kind{
		About: About{Name: "TEST.STEP", Title: text, Description: text},
		Run:   func(context.Context, *Call) (Outcome, error) { return Done{}, nil },
	})
	typ, subtype := kind.About.Name[:4], kind.About.Name[5:]
	def := &workflow.Definition{
		Nodes: []workflow.Node{
			{ID: "from", Name: "from", Type: "TEST", Subtype: "STEP", Configurations: json.RawMessage("{}")},
			{ID: "node", Name: "node", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config), InputParams: json.RawMessage(params)},
			{ID: "to", Name: "to", Type: "TEST", Subtype: "STEP", Configurations: json.RawMessage("{}")},
		},
		Connections: append([]workflow.Connection{{ID: "in", FromNode: "from", ToNode: "node", OutputKey: "result"}}, connections...),
	}
	graph, problems := workflow.Compile(def, planKinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	revision, err := Prepare(def, graph, &registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := dataflow.New(dataflow.Start{ExecutionID: "exec", WorkflowID: "flow", Initial: json.RawMessage(`{"city":"Hangzhou"}`), Trigger: json.RawMessage(`{"who":"ann"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layers.Sync(dataflow.Step{Seq: 1, NodeID: "from", NodeName: "from", Output: map[string]json.RawMessage{"result": json.RawMessage(`{"n":5}`)}}); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, revision: revision, layers: layers, values: map[engine.Ref]json.RawMessage{"in": json.RawMessage(`{"n":5,"name":"own"}`)}}
}

func (r *rig) run(cause engine.Cause) engine.Fact {
	r.t.Helper()
	if cause.Kind == "" {
		cause.Kind = engine.CauseRun
	}
	job := Job{
		Run: engine.RunNode{
			Attempt: engine.Attempt{Activation: "node", Attempt: 1}, Node: 1, Cause: cause, Inputs: []engine.Input{{Edge: 0, Ref: "in"}},
			AsOf: 1, LastTry: true,
		},
		Data: rundata.Data{Layers: r.layers, Lock: &sync.RWMutex{}, View: dataflow.View{AsOf: 1}},
		Now:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Execution: Execution{ID: "exec", WorkflowID: "flow"},
		Value: func(ref engine.Ref) (json.RawMessage, error) {
			v, ok := r.values[ref]
			if !ok {
				return nil, errors.New("no such value: " + string(ref))
			}
			return v, nil
		},
		Scope: ScopeData{Results: func() ([]json.RawMessage, error) { return []json.RawMessage{json.RawMessage("1")}, nil }},
	}
	return r.revision.Run(context.Background(), job).Fact(func(v json.RawMessage, _ ...payload.Part) engine.Ref {
		r.put = append(r.put, v)
		return engine.Ref(v)
	})
}

func step(run func(context.Context, *Call) (Outcome, error)) Kind {
	return Kind{About: About{Name: "TEST.KIND"}, Run: run}
}

func connect(key, conversion string) workflow.Connection {
	return workflow.Connection{ID: "out_" + key, FromNode: "node", ToNode: "to", OutputKey: key, ConversionFunction: conversion}
}

func TestRun_BuildsWhatTheKindGets(t *testing.T) {
	t.Parallel()
	var got Call
	r := newRig(t, step(func(_ context.Context, c *Call) (Outcome, error) {
		got = *c
		return Done{"result": c.Input}, nil
	}), `{"text":"{{name}} in {{city}}","code":"x = {{not_a_placeholder}}"}`, `{"n":"{{from.outputs.n}}","m":"{{city}}"}`, connect("result", ""))
	fact := r.run(engine.Cause{})
	if string(got.Input) != `{"n":5,"name":"own","m":"Hangzhou"}` {
		t.Errorf("input %s", got.Input)
	}
	if string(got.Config) != `{"text":"own in Hangzhou","code":"x = {{not_a_placeholder}}"}` {
		t.Errorf("config %s", got.Config)
	}
	if len(got.Contributions) != 1 || got.Contributions[0].Node != "from" || !got.Connected("result") || got.Connected("other") {
		t.Errorf("call %+v", got)
	}
	done, ok := fact.(engine.NodeCompleted)
	if !ok || len(done.Outputs) != 1 || done.Outputs[0].Key != "result" || len(done.Settled) != 0 {
		t.Errorf("fact %+v", fact)
	}
}

func TestRun_Conversions(t *testing.T) {
	t.Parallel()
	kind := step(func(context.Context, *Call) (Outcome, error) {
		return Done{"result": json.RawMessage(`{"a":2,"data":7}`), "list": json.RawMessage(`[1,2]`)}, nil
	})
	for name, c := range map[string]struct {
		key, conversion string
		want            engine.Verdict
		code            fault.Code
	}{
		"value is the payload":      {"result", "value.a + a", engine.Verdict{Edge: 1, Live: true, Ref: "4"}, ""},
		"its own fields come first": {"result", "data", engine.Verdict{Edge: 1, Live: true, Ref: "7"}, ""},
		"aliases of a list":         {"list", "len(output) + len(data)", engine.Verdict{Edge: 1, Live: true, Ref: "4"}, ""},
		"it may kill":               {"result", "{'skip_execution': a == 2}", engine.Verdict{Edge: 1}, ""},
		"it may fail":               {"result", "nobody.x", engine.Verdict{Edge: 1}, fault.ConversionFailed},
		"another language":          {"result", "lambda x: x", engine.Verdict{Edge: 1}, fault.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fact := newRig(t, kind, "{}", "{}", connect(c.key, c.conversion)).run(engine.Cause{}).(engine.NodeCompleted)
			if len(fact.Settled) != 1 {
				t.Fatalf("settled %+v", fact.Settled)
			}
			got := fact.Settled[0]
			if got.Live != c.want.Live || got.Ref != c.want.Ref || fault.CodeOf(errOrNil(got.Error)) != c.code {
				t.Errorf("verdict %+v", got)
			}
		})
	}
	t.Run("OnlyOfKeysThatWereProduced", func(t *testing.T) {
		t.Parallel()
		fact := newRig(t, kind, "{}", "{}", connect("other", "value")).run(engine.Cause{}).(engine.NodeCompleted)
		if len(fact.Settled) != 0 {
			t.Errorf("settled %+v", fact.Settled)
		}
	})
}

func errOrNil(e *fault.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func TestRun_Failures(t *testing.T) {
	t.Parallel()
	bad := step(func(context.Context, *Call) (Outcome, error) { return nil, fault.New(fault.NotFound, "gone") })
	t.Run("AOnceEffectThatMayHaveHappenedIsUnknown", func(t *testing.T) {
		t.Parallel()
		unsure := step(func(context.Context, *Call) (Outcome, error) {
			return nil, fault.New(fault.OutcomeUnknown, "the connection broke after the request was sent")
		})
		for config, want := range map[string]bool{`{"effect":"once","on_error":"continue"}`: true, `{"effect":"idempotent"}`: false} {
			if f := newRig(t, unsure, config, "{}").run(engine.Cause{}).(engine.NodeFailed); f.Unknown != want || f.Handled {
				t.Errorf("%s: fact %+v", config, f)
			}
		}
		// A known failure is one, also of a once kind.
		if f := newRig(t, bad, `{"effect":"once"}`, "{}").run(engine.Cause{}).(engine.NodeFailed); f.Unknown {
			t.Errorf("fact %+v", f)
		}
		// What fails before the kind's own work begins has had no effect.
		if f := newRig(t, unsure, `{"effect":"once"}`, `{"x":"{{citty}}"}`).run(engine.Cause{}).(engine.NodeFailed); f.Unknown {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("GoToTheEngine", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, bad, "{}", "{}").run(engine.Cause{}).(engine.NodeFailed)
		if f.Handled || f.Error.Code != fault.NotFound {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("ContinueMakesAnOutputOfThem", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, bad, `{"on_error":"continue"}`, "{}", connect("error", "error_code + '!'")).run(engine.Cause{}).(engine.NodeFailed)
		if !f.Handled || len(f.Outputs) != 1 || f.Outputs[0].Key != "error" || len(f.Settled) != 1 || f.Settled[0].Ref != `"not_found!"` {
			t.Fatalf("fact %+v", f)
		}
		var payload map[string]any
		if err := json.Unmarshal([]byte(f.Outputs[0].Ref), &payload); err != nil || payload["success"] != false || payload["error_message"] != "gone" {
			t.Errorf("payload %v, %v", payload, err)
		}
	})
	t.Run("DefaultOutputStandsIn", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, bad, `{"on_error":"default_output","default_output":{"ok":"{{city}}"}}`, "{}").run(engine.Cause{}).(engine.NodeFailed)
		if !f.Handled || f.Outputs[0].Key != "result" || f.Outputs[0].Ref != `{"ok":"Hangzhou"}` {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("TheEngineMayAskForTheOutputAlone", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, bad, `{"on_error":"continue"}`, "{}").run(engine.Cause{Kind: engine.CauseError, Error: fault.New(fault.Timeout, "late")}).(engine.NodeCompleted)
		if len(f.Outputs) != 1 || f.Outputs[0].Key != "error" {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("AnUnresolvedPlaceholderIsOne", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, bad, "{}", `{"x":"{{citty}}"}`).run(engine.Cause{}).(engine.NodeFailed)
		if f.Error.Code != fault.UnresolvedPlaceholder {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("AnOutputThatIsNotJSONIsOne", func(t *testing.T) {
		t.Parallel()
		kind := step(func(context.Context, *Call) (Outcome, error) { return Done{"result": json.RawMessage(`{"a":`)}, nil })
		f := newRig(t, kind, "{}", "{}").run(engine.Cause{}).(engine.NodeFailed)
		if f.Error.Code != fault.OutputInvalid {
			t.Errorf("fact %+v", f)
		}
	})
}

func TestRun_OtherCauses(t *testing.T) {
	t.Parallel()
	never := step(func(context.Context, *Call) (Outcome, error) { panic("it ran") })
	t.Run("AGivenOutputIsOnlySettled", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, never, "{}", "{}", connect("result", "value + 1"))
		r.values["given"] = json.RawMessage("41")
		f := r.run(engine.Cause{Kind: engine.CauseOutput, Ref: "given"}).(engine.NodeCompleted)
		if f.Outputs[0].Ref != "41" || f.Settled[0].Ref != "42" {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("ADisabledNodeHandsItsInputOn", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, never, `{"disabled":true}`, "{}").run(engine.Cause{}).(engine.NodeCompleted)
		if f.Outputs[0].Ref != `{"n":5,"name":"own"}` {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("AWaitAndWhatEndsIt", func(t *testing.T) {
		t.Parallel()
		kind := step(func(_ context.Context, c *Call) (Outcome, error) {
			if c.Wake == nil {
				return Wait{Until: c.Now.Add(time.Minute), Signal: "go", Memo: json.RawMessage(`{"round":1}`)}, nil
			}
			return Done{"result": json.RawMessage(`{"memo":` + string(c.Memo) + `,"payload":` + string(c.Wake.Payload) + `}`)}, nil
		})
		r := newRig(t, kind, "{}", "{}")
		w := r.run(engine.Cause{}).(engine.NodeSuspended)
		if w.Signal != "go" || w.Until != time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC).UnixMilli() || w.Memo != `{"round":1}` {
			t.Errorf("fact %+v", w)
		}
		r.values["memo"], r.values["signal"] = json.RawMessage(`{"round":1}`), json.RawMessage(`"hi"`)
		f := r.run(engine.Cause{Memo: "memo", Wake: &engine.Wake{By: engine.WakeSignal, Ref: "signal"}}).(engine.NodeCompleted)
		if f.Outputs[0].Ref != `{"memo":{"round":1},"payload":"hi"}` {
			t.Errorf("fact %+v", f)
		}
	})
}

func TestRun_Expressions(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		"n > 3":                       true,
		"input.name":                  "own",
		"data.name":                   "own",
		"steps.from.n + 1":            int64(6),
		"runtime.from_n":              int64(5),
		"initial.city":                "Hangzhou",
		"trigger.who":                 "ann",
		"execution.id + workflow.id":  "execflow",
		"'{{city}}' == 'Hangzhou'":    true,
		"{{from.outputs.n}} * 2":      int64(10),
		"extra":                       "added",
		"format_date(now(), '%Y-%m')": "2026-01",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			var got any
			kind := step(func(_ context.Context, c *Call) (Outcome, error) {
				v, err := c.Eval(source, map[string]any{"extra": "added"})
				got = v
				return Done{}, err
			})
			config, err := json.Marshal(map[string]string{"condition": source})
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := newRig(t, kind, string(config), "{}").run(engine.Cause{}).(engine.NodeFailed); ok {
				t.Fatal(f.Error)
			}
			if got != want {
				t.Errorf("got %#v, want %#v", got, want)
			}
		})
	}
	t.Run("AnUnknownNameIsAnError", func(t *testing.T) {
		t.Parallel()
		kind := step(func(_ context.Context, c *Call) (Outcome, error) {
			_, err := c.Eval("inputt.n", nil)
			return nil, err
		})
		f := newRig(t, kind, "{}", "{}").run(engine.Cause{}).(engine.NodeFailed)
		if f.Error.Code != fault.ExpressionError || f.Error.Details["nearest"] != "input" {
			t.Errorf("error %v %v", f.Error, f.Error.Details)
		}
	})
}

func TestRun_Scopes(t *testing.T) {
	t.Parallel()
	loop := Kind{About: About{Name: "TEST.LOOP"}, Scope: &Scope{
		Open: func(_ context.Context, c *Call) (Opening, error) {
			return Opening{Count: 3, Concurrency: 2, KeepGoing: true, State: json.RawMessage(`{"at":0}`), Deadline: c.Now.Add(time.Second)}, nil
		},
		Iteration: func(c *Call, state json.RawMessage, index int64) (Iteration, error) {
			payload, err := json.Marshal(map[string]any{"index": index, "state": state, "in": c.Input})
			return Iteration{Payload: payload, Vars: map[string]json.RawMessage{"item": payload}}, err
		},
		Turn: func(_ context.Context, _ *Call, t Turn) (Advance, error) {
			return Advance{Open: t.Index < 2, State: json.RawMessage(`{"at":9}`)}, nil
		},
		Close: func(_ context.Context, _ *Call, c Closing) (Done, error) {
			results, err := c.Results()
			if err != nil {
				return nil, err
			}
			out, err := json.Marshal(map[string]any{"results": results, "state": c.State, "succeeded": c.Succeeded})
			return Done{"completed": out}, err
		},
	}}
	body := workflow.Connection{ID: "body", FromNode: "node", ToNode: "to", OutputKey: "iteration"}
	t.Run("Open", func(t *testing.T) {
		t.Parallel()
		f := newRig(t, loop, "{}", "{}", body).run(engine.Cause{}).(engine.ScopeOpened)
		if f.Count != 3 || f.Concurrency != 2 || !f.KeepGoing || f.Turns || f.State != `{"at":0}` || f.Until == 0 {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("AConversionOnTheWayInNeedsATurn", func(t *testing.T) {
		t.Parallel()
		converting := body
		converting.ConversionFunction = "index + 10"
		r := newRig(t, loop, "{}", "{}", converting)
		if f := r.run(engine.Cause{}).(engine.ScopeOpened); !f.Turns {
			t.Errorf("fact %+v", f)
		}
		r.values["state"] = json.RawMessage(`{"at":1}`)
		f := r.run(engine.Cause{Kind: engine.CauseTurn, Index: 1, State: "state"}).(engine.ScopeAdvanced)
		if !f.Open || f.State != `{"at":9}` || len(f.Entry) != 1 || !f.Entry[0].Live || f.Entry[0].Ref != "11" {
			t.Errorf("fact %+v", f)
		}
		if f := r.run(engine.Cause{Kind: engine.CauseTurn, Index: 2, State: "state"}).(engine.ScopeAdvanced); f.Open || len(f.Entry) != 0 {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("Close", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, loop, "{}", "{}", body)
		r.values["state"] = json.RawMessage(`{"at":2}`)
		f := r.run(engine.Cause{Kind: engine.CauseClose, State: "state", Closed: &engine.Closed{Succeeded: 1}}).(engine.NodeCompleted)
		if f.Outputs[0].Key != "completed" || f.Outputs[0].Ref != `{"results":[1],"state":{"at":2},"succeeded":1}` {
			t.Errorf("fact %+v", f)
		}
	})
	t.Run("Iterations", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, loop, "{}", "{}", body)
		of, _, err := r.revision.Iterations(Job{
			Run:   engine.RunNode{Attempt: engine.Attempt{Activation: "node", Attempt: 1}, Node: 1, Inputs: []engine.Input{{Edge: 0, Ref: "in"}}, AsOf: 1},
			Data:  rundata.Data{Layers: r.layers, Lock: &sync.RWMutex{}, View: dataflow.View{AsOf: 1}},
			Value: func(ref engine.Ref) (json.RawMessage, error) { return r.values[ref], nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		it, err := of(json.RawMessage(`1`), 7)
		if err != nil || string(it.Payload) != `{"in":{"n":5,"name":"own"},"index":7,"state":1}` {
			t.Errorf("iteration %s, %v", it.Payload, err)
		}
	})
}

func TestPrepare_RefusesAKindThatCannotBeRun(t *testing.T) {
	t.Parallel()
	def := &workflow.Definition{Nodes: []workflow.Node{{ID: "a", Type: "TEST", Subtype: "NOBODY", Configurations: json.RawMessage("{}")}}}
	graph, _ := workflow.Compile(def, planKinds{})
	if _, err := Prepare(def, graph, &Registry{}, nil); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("error %v", err)
	}
}

// A field that sees names of its own finds them before the input and the layers; the others do not find them.
func TestRun_OwnNames(t *testing.T) {
	t.Parallel()
	kind := Raw(About{Name: "TEST.OWN"}, func(_ context.Context, call *Call, cfg struct {
		URL   string `json:"url"`
		Other string `json:"other"`
	}, _ json.RawMessage) (Outcome, error) {
		result, err := payload.Encode(cfg)
		return Done{"result": result}, err
	})
	kind.Own = map[string]func(json.RawMessage) json.RawMessage{"url": func(input json.RawMessage) json.RawMessage {
		if string(input) != `{"n":5,"name":"own"}` {
			t.Errorf("the input is %s", input)
		}
		return json.RawMessage(`{"name":"{name}","n":"seven"}`)
	}}
	r := newRig(t, kind, `{"url": "/{{name}}/{{n}}/{{city}}/\\{{n}}", "other": "{{name}} {{n}}"}`, `{}`)
	r.run(engine.Cause{})
	want := `{"url":"/{name}/seven/Hangzhou/{{n}}","other":"own 5"}`
	if len(r.put) != 1 || string(r.put[0]) != want {
		t.Errorf("got %s, want %s", r.put, want)
	}
	if fact, ok := newRig(t, kind, `{"url": "/{{nothing}}"}`, `{}`).run(engine.Cause{}).(engine.NodeFailed); !ok || fact.Error.Code != fault.UnresolvedPlaceholder || fact.Error.Details["path"] != "url" {
		t.Errorf("got %+v", fact)
	}
}

func TestRun_TellsWhenToRetry(t *testing.T) {
	t.Parallel()
	kind := Kind{About: About{Name: "TEST.BUSY"}, Run: func(context.Context, *Call) (Outcome, error) {
		return nil, &Failure{Err: fault.New(fault.RateLimited, "slow down"), RetryAfter: 90 * time.Second}
	}}
	fact, ok := newRig(t, kind, `{}`, `{}`).run(engine.Cause{}).(engine.NodeFailed)
	if !ok || fact.RetryAfterMS != 90_000 || fact.Error.Code != fault.RateLimited || !fact.Error.Retryable {
		t.Errorf("got %+v", fact)
	}
}
