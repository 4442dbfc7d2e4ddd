package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/fault"
)

// confirmation is a question of an agent about a call.
func confirmation(id string) api.UserInputRequest {
	return api.UserInputRequest{InteractionID: id, Purpose: "confirm", InteractionType: "approval", Title: "Run files/remove?", Risk: "high", Arguments: json.RawMessage(`{"path":"/etc"}`)}
}

// accepts answers everything with some content.
func accepts(content map[string]any) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
}

func TestElicit(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		for _, c := range []struct {
			name   string
			result mcp.ElicitResult
			want   string
			status string
		}{
			{"Accepted", mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, `{"confirm":true}`, "SUCCESS"},
			{"AcceptedNo", mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": false}}, `{"confirm":false}`, "SUCCESS"},
			{"Declined", mcp.ElicitResult{Action: "decline"}, `{"confirm":false}`, "SUCCESS"},
			{"Dismissed", mcp.ElicitResult{Action: "cancel"}, `{"confirm":false}`, "SUCCESS"},
		} {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				f := newFake()
				f.deploy("w", `null`)
				f.started = func(r *fakeRun) {
					r.ask(confirmation("q1"), func(d *api.InteractionDetail) {
						d.ArgumentsHash = "hash"
						d.RequestData = json.RawMessage(`{"warning":"it cannot be undone","reason":"it removes files","tool":"files/remove"}`)
					})
				}
				f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
					r.settle(id)
					r.finish(string(answer))
					return nil
				}
				var message string
				p := connect(t, f, Options{}, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					message = r.Params.Message
					return &c.result, nil
				})
				r, o := p.call(t, "w", `{}`)
				if r.IsError || o.Status != c.status || string(o.Outputs["end"]) != c.want || len(f.starts) != 1 {
					t.Errorf("%+v, %d starts", o, len(f.starts))
				}
				for _, part := range []string{"Run files/remove?", "Risk: high, it removes files", "Warning: it cannot be undone", `{"path":"/etc"}`} {
					if !strings.Contains(message, part) {
						t.Errorf("%q does not say %q", message, part)
					}
				}
			})
		}
	}
}

// A question that nobody at the client answers is a handle, by which it is answered later.
func TestElicit_Left(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		for name, action := range map[string]string{"Declined": "decline", "Dismissed": "cancel"} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := newFake()
				f.deploy("w", `null`)
				f.started = func(r *fakeRun) {
					r.ask(api.UserInputRequest{InteractionID: "q1", Purpose: "human_node", InteractionType: "approval", Title: "Buy it?"})
				}
				f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
					r.settle(id)
					r.finish(string(answer))
					return nil
				}
				p := connect(t, f, Options{}, version, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: action}, nil
				})
				r, o := p.call(t, "w", `{}`)
				if r.IsError || o.Status != "WAITING_FOR_HUMAN" || o.Resume != toolResume || len(o.Questions) != 1 || o.Questions[0].InteractionID != "q1" || !o.Questions[0].MayRespond {
					t.Fatalf("%+v %s", o, textOf(r))
				}
				if r, o = p.call(t, toolResume, `{"execution_id":"exec_1","interaction_id":"q1","answer":{"action":"approve"}}`); r.IsError || string(o.Outputs["end"]) != `{"action":"approve"}` {
					t.Errorf("%+v %s", o, textOf(r))
				}
			})
		}
	}
}

// A client that puts no questions to anybody gets the handle at once; a question that is for others is told as such.
func TestHandle_Questions(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) {
		r.ask(confirmation("q1"))
		r.ask(confirmation("q2"), func(d *api.InteractionDetail) { d.MayRespond, d.WhyNot = false, "it is for admins" })
	}
	var answers []string
	f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
		answers = append(answers, id+string(answer))
		r.settle(id)
		r.change(func() { r.e.Status = "WAITING_FOR_HUMAN" })
		return nil
	}
	p := connect(t, f, Options{}, "", nil)
	r, o := p.call(t, "w", `{}`)
	if r.IsError || len(o.Questions) != 2 || o.Questions[1].MayRespond || !strings.Contains(textOf(r), "it is for admins") {
		t.Fatalf("%+v %s", o, textOf(r))
	}
	for arguments, want := range map[string]string{
		`{"execution_id":"exec_1","answer":{"confirm":true}}`:                         "several things",
		`{"execution_id":"exec_1"}`:                                                   "waits for an answer",
		`{"execution_id":"exec_1","interaction_id":"nope","answer":{"confirm":true}}`: "no question",
	} {
		if r, _ := p.call(t, toolResume, arguments); !r.IsError || !strings.Contains(textOf(r), want) {
			t.Errorf("%s: %s", arguments, textOf(r))
		}
	}
	r, o = p.call(t, toolResume, `{"execution_id":"exec_1","interaction_id":"q1","answer":{"confirm":true}}`)
	if r.IsError || len(o.Questions) != 1 || o.Questions[0].InteractionID != "q2" || o.Resume != "" {
		t.Errorf("%+v %s", o, textOf(r))
	}
	if diff := cmp.Diff([]string{`q1{"confirm":true}`}, answers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is approved is shown as a whole, or the client does not put it to its user; how a tool has changed is part of it.
func TestElicit_ShowsAllOrNothing(t *testing.T) {
	t.Parallel()
	long := func(size int) json.RawMessage {
		return raw(map[string]string{"path": strings.Repeat("x", size) + "THE END"})
	}
	for _, version := range versions() {
		for name, c := range map[string]struct {
			arguments, changes json.RawMessage
			asked, may         bool
		}{
			"Short":   {long(3000), nil, true, true},
			"Long":    {long(5000), nil, false, true},
			"Endless": {long(30_000), nil, false, false},
			"Changes": {nil, long(3000), true, true},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := newFake()
				f.deploy("w", `null`)
				f.started = func(r *fakeRun) {
					q := confirmation("q1")
					q.Arguments, q.Description = c.arguments, strings.Repeat("words ", 2000)
					r.ask(q, func(d *api.InteractionDetail) { d.RequestData = raw(map[string]any{"changes": c.changes}) })
				}
				f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
					r.settle(id)
					r.finish(string(answer))
					return nil
				}
				message := ""
				p := connect(t, f, Options{}, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					message = r.Params.Message
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
				})
				_, o := p.call(t, "w", `{}`)
				if c.asked {
					if o.Status != "SUCCESS" || !strings.Contains(message, "THE END") {
						t.Errorf("%+v after %q", o, message)
					}
					return
				}
				if message != "" || len(o.Questions) != 1 || o.Questions[0].MayRespond != c.may {
					t.Errorf("%+v after %d characters", o, len(message))
				}
			})
		}
	}
}

// A question of another execution is not answered through this one.
func TestResume_OtherExecution(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) { r.ask(confirmation("q" + r.e.ExecutionID)) }
	p := connect(t, f, Options{}, "", nil)
	p.call(t, "w", `{}`)
	p.call(t, "w", `{}`)
	if r, _ := p.call(t, toolResume, `{"execution_id":"exec_1","interaction_id":"qexec_2","answer":{"confirm":true}}`); !r.IsError || !strings.Contains(textOf(r), "not one of execution") {
		t.Error(textOf(r))
	}
}

// An answer that is not taken is asked for again, with what was wrong, a few times.
func TestElicit_Wrong(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.deploy("w", `null`)
			f.started = func(r *fakeRun) { r.ask(confirmation("q1")) }
			tries := 0
			f.answered = func(r *fakeRun, id string, answer json.RawMessage) error {
				if tries++; tries < 2 {
					return fault.New(fault.InvalidInput, "not on a Sunday")
				}
				r.settle(id)
				r.finish(`1`)
				return nil
			}
			var messages []string
			p := connect(t, f, Options{}, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				messages = append(messages, r.Params.Message)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			})
			if r, o := p.call(t, "w", `{}`); r.IsError || o.Status != "SUCCESS" || len(messages) != 2 || !strings.Contains(messages[1], "not on a Sunday") {
				t.Errorf("%+v %q", o, messages)
			}
		})
	}
}

// Somebody else was faster: the question is taken back from the client, and the call goes on.
func TestElicit_AnsweredElsewhere(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) { r.ask(confirmation("q1")) }
	withdrawn := make(chan struct{})
	p := connect(t, f, Options{}, "2025-06-18", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		f.runs["exec_1"].settle("q1")
		f.runs["exec_1"].finish(`"by somebody else"`)
		<-ctx.Done()
		close(withdrawn)
		return nil, ctx.Err()
	})
	if r, o := p.call(t, "w", `{}`); r.IsError || string(o.Outputs["end"]) != `"by somebody else"` {
		t.Errorf("%+v %s", o, textOf(r))
	}
	<-withdrawn
}

// What a client without sessions brings back decides nothing that it could not decide otherwise.
func TestState(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) { r.ask(confirmation("q" + r.e.ExecutionID)) }
	f.answered = func(r *fakeRun, id string, _ json.RawMessage) error {
		r.settle(id)
		r.finish(`1`)
		return nil
	}
	p := connect(t, f, Options{}, newest, accepts(map[string]any{"confirm": true}))
	yes := mcp.InputResponseMap{"qexec_9": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}}
	for name, c := range map[string]struct{ state, want string }{
		"Garbage":   {`{`, "requestState"},
		"OtherTool": {`{"tool":"x","execution":"exec_1"}`, "requestState"},
		"Unknown":   {`{"tool":"w","execution":"exec_7"}`, "no execution"},
		"Long":      {`{"tool":"w","execution":"` + strings.Repeat("x", maxState) + `"}`, "requestState"},
	} {
		r, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "w", RequestState: c.state, InputResponses: yes})
		if err != nil || !r.IsError || !strings.Contains(textOf(r), c.want) {
			t.Errorf("%s: %v %s", name, err, textOf(r))
		}
	}
	if len(f.starts) != 0 {
		t.Errorf("%d starts", len(f.starts))
	}
}

// Questions of an execution that the followed one has started reach the client, too.
func TestElicit_Below(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) {
		q := confirmation("q1")
		q.ExecutionID = "exec_child"
		r.change(func() { // nothing of it is in the stream
			f.questions["q1"] = &api.InteractionDetail{Interaction: api.Interaction{ID: "q1", ExecutionID: r.e.ExecutionID, Status: "pending", RequestData: json.RawMessage(`{}`)}, MayRespond: true}
			r.e.Status, r.e.Questions = "WAITING", []api.UserInputRequest{q}
		})
	}
	f.answered = func(r *fakeRun, id string, _ json.RawMessage) error {
		r.settle(id)
		r.finish(`"done"`)
		return nil
	}
	p := connect(t, f, Options{}, "", accepts(map[string]any{"confirm": true}))
	if r, o := p.call(t, "w", `{}`); r.IsError || o.Status != "SUCCESS" {
		t.Errorf("%+v %s", o, textOf(r))
	}
}

// choicesSchema has every way to write a choice, one that nobody has to make and no form shows, and one of numbers.
const choicesSchema = `{"type":"object","required":["titled"],"properties":{
	"titled":{"type":"string","description":"d","default":"b","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
	"constants":{"anyOf":[{"const":"a"}]},
	"legacy":{"type":"string","title":"Which","enum":["a","b"],"enumNames":["A","B"]},
	"many":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":2,"default":["a"]},
	"manyTitled":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b"}]}},
	"manyNamed":{"type":"array","items":{"enum":["a"],"enumNames":["A"]}},
	"numbers":{"type":"number","enum":[1,2]},
	"free":{"type":"array","items":{"type":"string"}},
	"either":{"oneOf":[{"type":"string"},{"type":"object"}]}}}`

func TestForm(t *testing.T) {
	t.Parallel()
	type filled struct {
		content map[string]any
		answer  string
	}
	for _, c := range []struct {
		name  string
		q     api.UserInputRequest
		known map[string]json.RawMessage
		// flat is the form; empty: there is none. Whole is the schema of the answer, where it is looked at.
		flat, whole string
		filled
	}{
		{name: "Approval", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "approval", Options: json.RawMessage(`[{"value":"buy","label":"Buy it"},"no"]`)},
			flat:   `{"properties":{"action":{"oneOf":[{"const":"buy","title":"Buy it"},{"const":"no","title":"No"}],"type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["action"],"type":"object"}`,
			filled: filled{map[string]any{"action": "buy", "notes": "n"}, `{"action":"buy","notes":"n"}`}},
		{name: "Selection", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "selection", Options: json.RawMessage(`["a","b"]`)},
			flat:   `{"properties":{"selected_values":{"enum":["a","b"],"title":"Choose","type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["selected_values"],"type":"object"}`,
			filled: filled{map[string]any{"selected_values": "b"}, `{"selected_values":["b"]}`}},
		{name: "SelectionOfMany", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "selection", Options: json.RawMessage(`["a","b"]`), AllowMultiple: true},
			flat:   `{"properties":{"selected_values":{"items":{"enum":["a","b"],"type":"string"},"minItems":1,"title":"Choose","type":"array"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["selected_values"],"type":"object"}`,
			filled: filled{map[string]any{"selected_values": []any{"a", "b"}}, `{"selected_values":["a","b"]}`}},
		{name: "SelectionOfManyLabelled", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "selection", Options: json.RawMessage(`[{"value":"a","label":"The first"},"b"]`), AllowMultiple: true},
			flat:   `{"properties":{"selected_values":{"items":{"anyOf":[{"const":"a","title":"The first"},{"const":"b","title":"b"}]},"minItems":1,"title":"Choose","type":"array"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["selected_values"],"type":"object"}`,
			filled: filled{map[string]any{"selected_values": []any{"a"}}, `{"selected_values":["a"]}`}},
		{name: "Choices", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "input", Schema: json.RawMessage(choicesSchema)},
			flat:   `{"properties":{"titled":{"default":"b","description":"d","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"type":"string"},"constants":{"enum":["a"],"type":"string"},"legacy":{"enum":["a","b"],"enumNames":["A","B"],"title":"Which","type":"string"},"many":{"default":["a"],"items":{"enum":["a","b"],"type":"string"},"maxItems":2,"type":"array"},"manyTitled":{"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}]},"type":"array"},"manyNamed":{"items":{"anyOf":[{"const":"a","title":"A"}]},"type":"array"},"numbers":{"enum":["1","2"],"type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["titled"],"type":"object"}`,
			filled: filled{map[string]any{"titled": "a", "manyTitled": []any{"a", "b"}}, `{"field_values":{"manyTitled":["a","b"],"titled":"a"}}`}},
		{name: "Input", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "input", InputFields: json.RawMessage(`[{"name":"day","type":"date","required":true},{"name":"n","type":"number"},{"name":"room","type":"select","options":["x"]}]`)},
			flat:   `{"properties":{"day":{"format":"date","type":"string"},"n":{"type":"number"},"room":{"enum":["x"],"type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["day"],"type":"object"}`,
			whole:  `{"properties":{"field_values":{"properties":{"day":{"format":"date","type":"string"},"n":{"type":"number"},"room":{"enum":["x"],"type":"string"}},"required":["day"],"type":"object"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["field_values"],"type":"object"}`,
			filled: filled{map[string]any{"day": "2026-01-01", "n": 2}, `{"field_values":{"day":"2026-01-01","n":2}}`}},
		{name: "File", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "input", InputFields: json.RawMessage(`[{"name":"f","type":"file","required":true}]`)}},
		{name: "Review", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "review", Review: json.RawMessage(`{"criteria":["tone"],"scoring_system":"numeric_scale","min":1,"max":5,"require_evidence":true}`)},
			flat:   `{"properties":{"tone":{"maximum":5,"minimum":1,"type":"number"},"evidence: tone":{"title":"Evidence for “tone”","type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["tone","evidence: tone"],"type":"object"}`,
			whole:  `{"properties":{"scores":{"properties":{"tone":{"maximum":5,"minimum":1,"type":"number"}},"required":["tone"],"type":"object"},"evidence":{"properties":{"tone":{"title":"Evidence for “tone”","type":"string"}},"required":["tone"],"type":"object"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["scores","evidence"],"type":"object"}`,
			filled: filled{map[string]any{"tone": 4, "evidence: tone": "all of it"}, `{"evidence":{"tone":"all of it"},"scores":{"tone":4}}`}},
		{name: "Param", q: api.UserInputRequest{Purpose: "param", InteractionType: "input", Schema: json.RawMessage(`{"type":"object","required":["city","days","opts"],"properties":{"city":{"type":["string","null"],"pattern":"x"},"days":{"type":"integer","minimum":1},"opts":{"type":"object"}}}`)},
			known:  map[string]json.RawMessage{"days": json.RawMessage("3"), "city": json.RawMessage("null"), "opts": json.RawMessage(`{"a":1}`)},
			flat:   `{"properties":{"city":{"type":"string"},"days":{"default":3,"minimum":1,"type":"integer"},"description":{"title":"Note (optional)","type":"string"}},"required":["city"],"type":"object"}`,
			filled: filled{map[string]any{"city": "Rome", "days": 3}, `{"content":{"city":"Rome","days":3,"opts":{"a":1}}}`}},
		{name: "ParamDeep", q: api.UserInputRequest{Purpose: "param", InteractionType: "input", Schema: json.RawMessage(`{"type":"object","required":["where"],"properties":{"where":{"anyOf":[{"type":"string"},{"type":"object"}]}}}`)}},
		{name: "ParamNoSchema", q: api.UserInputRequest{Purpose: "param", InteractionType: "input"}},
		{name: "ToolApproval", q: api.UserInputRequest{Purpose: "tool_approval"}, flat: `{"properties":{"approved":{"title":"Allow it?","type":"boolean"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["approved"],"type":"object"}`,
			filled: filled{map[string]any{"approved": true}, `{"approved":true}`}},
		{name: "Drift", q: api.UserInputRequest{Purpose: "drift"}, flat: `{"properties":{"accept":{"title":"Accept it?","type":"boolean"}},"required":["accept"],"type":"object"}`,
			filled: filled{map[string]any{"accept": false}, `{"accept":false}`}},
		{name: "Budget", q: api.UserInputRequest{Purpose: "budget"}, flat: `{"properties":{"raise_by":{"title":"Raise the budget by","type":"number"}},"required":["raise_by"],"type":"object"}`,
			filled: filled{map[string]any{"raise_by": 5}, `{"raise_by":5}`}},
		{name: "Outcome", q: api.UserInputRequest{Purpose: "outcome_unknown"}, flat: `{"properties":{"outcome":{"oneOf":[{"const":"done","title":"It was done"},{"const":"not_done","title":"It was not: do it now"},{"const":"stop","title":"Stop"}],"title":"Was it done?","type":"string"}},"required":["outcome"],"type":"object"}`,
			filled: filled{map[string]any{"outcome": "stop"}, `{"outcome":"stop"}`}},
		{name: "Unreadable", q: api.UserInputRequest{Purpose: "human_node", InteractionType: "approval", Options: json.RawMessage(`7`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := drawQuestion(&c.q, c.known, newest)
			if schema := f.answerSchema(); !json.Valid(schema) {
				t.Errorf("answer schema %s", schema)
			} else if c.whole != "" {
				if diff := cmp.Diff(c.whole, string(schema)); diff != "" {
					t.Errorf("answer schema (-want +got):\n%s", diff)
				}
			}
			if f.flat != (c.flat != "") {
				t.Fatalf("flat is %v", f.flat)
			}
			if c.flat == "" {
				return
			}
			if diff := cmp.Diff(c.flat, string(f.flatSchema())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got, wrong := f.answer(c.content); string(got) != c.answer || wrong != nil {
				t.Errorf("answer %s, want %s; wrong is %v", got, c.answer, wrong)
			}
		})
	}
	// To a client of an earlier version titles are names beside the values, and what it cannot show is left out where it may be.
	earlier := drawQuestion(&api.UserInputRequest{Purpose: "human_node", InteractionType: "input", Schema: json.RawMessage(choicesSchema)}, nil, "2025-06-18")
	want := `{"properties":{"titled":{"default":"b","description":"d","enum":["a","b"],"enumNames":["A","B"],"type":"string"},"constants":{"enum":["a"],"type":"string"},"legacy":{"enum":["a","b"],"enumNames":["A","B"],"title":"Which","type":"string"},"numbers":{"enum":["1","2"],"type":"string"},"notes":{"title":"Notes (optional)","type":"string"}},"required":["titled"],"type":"object"}`
	if !earlier.flat {
		t.Error("a form with a titled choice is not put to a client of an earlier version")
	} else if diff := cmp.Diff(want, string(earlier.flatSchema())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := drawQuestion(&api.UserInputRequest{Purpose: "human_node", InteractionType: "selection", Options: json.RawMessage(`["a"]`), AllowMultiple: true}, nil, "2025-06-18")
	if many.flat {
		t.Error("a choice of several is put to a client that does not know such a thing")
	}
}
