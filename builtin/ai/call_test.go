package ai_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/builtin/ai"
	"tandem/builtin/models"
	"tandem/builtin/models/modelstest"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/node/nodetest"
)

// talker is a model that says what a test wants, and notes what it was asked.
type talker struct {
	say   []string
	asked []llm.Request
	err   error
}

func (p *talker) Complete(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
	p.asked = append(p.asked, r)
	if p.err != nil {
		return llm.Completion{}, p.err
	}
	text := p.say[min(len(p.asked), len(p.say))-1]
	return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: text}, Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 10, OutputTokens: 5}}, nil
}

// calls runs a CALL kind until it ends or waits for somebody.
type calls struct {
	t    *testing.T
	kind node.Kind
	call *node.Call
	// waits are what it has waited for.
	waits []node.Wait
	used  int64
}

func newCalls(t *testing.T, name string, m *talker, p models.Purse, config, input string, c dataflow.Context) *calls {
	t.Helper()
	o := ai.Deps{}
	if m != nil {
		o.Models = &models.Models{
			Profile: func(_ context.Context, _, id string) (llm.Profile, error) {
				if id != "p" {
					return llm.Profile{}, fault.Newf(fault.NotFound, "no profile %q", id)
				}
				return llm.Profile{ID: "p", Provider: "fake", Model: "m", Budgets: []llm.Budget{{Per: "day", Tokens: 1}}}, nil
			},
			Providers: map[string]llm.Factory{"fake": func(llm.Settings) (llm.Provider, error) { return m, nil }},
			Executor:  llm.NewExecutor(llm.Options{}), Purse: p,
		}
	}
	x := &calls{t: t}
	for _, k := range ai.Kinds(o) {
		if k.About.Name == name {
			x.kind = k
		}
	}
	x.call = nodetest.NewCall(t, config, input)
	x.call.Kind = name
	x.call.Context = func() (dataflow.Context, error) { return c, nil }
	x.call.History = func(n int) ([]node.Past, error) { return node.History(c, n), nil }
	x.call.Used = func(u node.Usage) { x.used += u.InputTokens + u.OutputTokens }
	x.call.Detail = func(map[string]any) {}
	x.call.Clock = func() time.Time { return nodetest.Start() }
	return x
}

// run goes on until the kind ends or asks; waits for a time are over at once.
func (x *calls) run() (node.Done, error) {
	x.t.Helper()
	for range 10 {
		out, err := x.kind.Run(x.t.Context(), x.call)
		if err != nil {
			return nil, err
		}
		w, ok := out.(node.Wait)
		if !ok {
			return out.(node.Done), nil
		}
		x.waits = append(x.waits, w)
		x.call.Memo = w.Memo
		switch {
		case w.Ask != nil:
			return nil, nil
		case !w.Until.Equal(nodetest.Start()):
			x.t.Fatalf("it waits for %+v", w)
		}
		x.call.Wake = &node.Wake{By: engine.WakeTimer}
	}
	x.t.Fatal("it does not end")
	return nil, nil
}

// answer lets it go on with what a person says.
func (x *calls) answer(data string) (node.Done, error) {
	x.t.Helper()
	x.call.Wake = &node.Wake{By: engine.WakeAnswer, Outcome: engine.AskDone, Payload: json.RawMessage(data)}
	return x.run()
}

func (x *calls) ends(want string) {
	x.t.Helper()
	done, err := x.run()
	if err != nil {
		x.t.Fatal(err)
	}
	nodetest.CheckDone(x.t, done, map[string]string{"result": want})
}

func step(id, kind, output string, ordinal uint64) dataflow.StepResult {
	return dataflow.StepResult{StepID: id, StepName: id, ToolID: kind, Output: json.RawMessage(output), IsSuccess: true, Ordinal: ordinal}
}

func TestCallSummary_WithoutAModel(t *testing.T) {
	t.Parallel()
	past := dataflow.Context{StepResults: map[string]dataflow.StepResult{
		"start": step("start", "TRIGGER.MANUAL", `{}`, 1),
		"talk":  step("talk", "AI_AGENT.LLM", `{"context":{"conversation":[{"role":"user","content":"We need 4 chairs."},{"role":"assistant","content":"Noted."}]}}`, 2),
		"count": step("count", "CALL.EMPTY", `"There are 3 in stock."`, 3),
	}}
	for name, c := range map[string]struct {
		config, input, want string
		context             dataflow.Context
	}{
		"Messages": {``, `{"messages":[{"role":"user","content":"The meeting is on Friday."},"And bring 2 cakes."]}`, `{"summary":"user: The meeting is on Friday.\nuser: And bring 2 cakes.","text":"user: The meeting is on Friday.\nuser: And bring 2 cakes.","token_usage":{"total_tokens":0}}`, past},
		"Cut":      {`{"max_chars":7}`, `{"messages":["一二三四五六七八九十"]}`, `{"summary":"user:…"}`, past},
		"SoFar":    {``, ``, `{"summary":"user: We need 4 chairs.\nassistant: Noted.\ncount: There are 3 in stock."}`, past},
		"Nothing":  {``, ``, `{"summary":"","text":""}`, dataflow.Context{}},
		"None":     {``, `{"messages":[]}`, `{"summary":""}`, past},
		"NoPast":   {`{"history_size":0}`, ``, `{"summary":""}`, past},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newCalls(t, "CALL.SUMMARY", nil, nil, c.config, c.input, c.context).ends(c.want)
		})
	}
	_, err := newCalls(t, "CALL.SUMMARY", nil, nil, ``, `{"messages":"x"}`, past).run()
	nodetest.WantError(t, err, fault.InvalidInput, "messages")
}

func TestCallSummary_WithAModel(t *testing.T) {
	t.Parallel()
	m := &talker{say: []string{"  四把椅子，三把有货  "}}
	x := newCalls(t, "CALL.SUMMARY", m, &modelstest.Purse{Refuses: 1}, `{"profileId":"p","language":"zh","max_chars":5}`, `{"messages":["four chairs"]}`, dataflow.Context{})
	if done, err := x.run(); done != nil || err != nil || len(x.waits) != 1 || x.waits[0].Ask.Purpose != "budget" {
		t.Fatalf("it waits for no budget: %v, %v, %+v", done, err, x.waits)
	}
	x.ends(`{"summary":"四把椅子…","text":"四把椅子…","token_usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`)
	if r := m.asked[0]; !strings.Contains(r.Messages[0].Content, "摘要") || !strings.Contains(r.Messages[1].Content, "four chairs") || x.used != 15 {
		t.Errorf("asked %+v, used %d", r.Messages, x.used)
	}

	m = &talker{say: []string{"x"}}
	newCalls(t, "CALL.SUMMARY", m, nil, `{"profile_id":"p"}`, `{"messages":[" "]}`, dataflow.Context{}).ends(`{"summary":""}`)
	if len(m.asked) > 0 {
		t.Error("a model was asked to summarise nothing")
	}
	_, err := newCalls(t, "CALL.SUMMARY", m, nil, `{"profile_id":"other"}`, `{"messages":["a"]}`, dataflow.Context{}).run()
	nodetest.WantError(t, err, fault.NotFound, "other")
}

func TestCallFacts(t *testing.T) {
	t.Parallel()
	newCalls(t, "CALL.FACTS", nil, nil, `{"max_facts":2}`, `{"content":"The sky is blue. Is it? the sky is blue! 北京是中国的首都。 Water is wet."}`, dataflow.Context{}).
		ends(`{"facts":["The sky is blue.","北京是中国的首都。"],"domain":[]}`)
	newCalls(t, "CALL.FACTS", nil, nil, ``, ``, dataflow.Context{}).ends(`{"facts":[],"domain":[]}`)

	m := &talker{say: []string{"I know none", `{"facts":"one"}`, "```json\n{\"facts\":[\"A is b.\",\"a  is B\",\"\"],\"domain\":[\"letters\"]}\n```"}}
	x := newCalls(t, "CALL.FACTS", m, nil, `{"llm_profile":"p"}`, `{"messages":["A is b."]}`, dataflow.Context{})
	x.ends(`{"facts":["A is b."],"domain":["letters"],"token_usage":{"total_tokens":45}}`)
	if len(x.waits) != 2 || len(m.asked[2].Messages) != 6 || !strings.Contains(m.asked[2].Messages[5].Content, "facts") {
		t.Errorf("%d waits, the last was asked %+v", len(x.waits), m.asked[2].Messages)
	}
	m = &talker{say: []string{"no"}}
	_, err := newCalls(t, "CALL.FACTS", m, nil, `{"profile_id":"p"}`, `{"content":"A is b."}`, dataflow.Context{}).run()
	nodetest.WantError(t, err, fault.OutputInvalid, "shape")
	if len(m.asked) != 3 {
		t.Errorf("the model was asked %d times", len(m.asked))
	}
}

const slotSchema = `"schema":{"type":"object","required":["to","n"],"properties":{"to":{"type":"string"},"n":{"type":"integer"},"opt":{"type":"string"}}}`

func TestCallSlot_FillsFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	known := dataflow.Context{RuntimeMetadata: map[string]json.RawMessage{"n": json.RawMessage(`3`), "opt": json.RawMessage(`"x"`)}}
	m := &talker{say: []string{`{}`}}
	newCalls(t, "CALL.SLOT", m, nil, `{`+slotSchema+`,"profile_id":"p"}`, `{"data":{"to":"a","n":1,"opt":"y"}}`, known).
		ends(`{"slot_data":{"to":"a","n":1,"opt":"y"},"filled_fields":[],"remaining_schema":null}`)
	newCalls(t, "CALL.SLOT", m, nil, `{`+slotSchema+`,"profile_id":"p"}`, `{"data":{"to":"a"}}`, known).
		ends(`{"slot_data":{"to":"a","n":3,"opt":"x"},"filled_fields":["n","opt"],"remaining_schema":null}`)
	if len(m.asked) > 0 {
		t.Errorf("the model was asked for nothing: %+v", m.asked)
	}
	newCalls(t, "CALL.SLOT", nil, nil, `{`+slotSchema+`,"ask":false,"override_input":{"required":["more"],"properties":{"more":{"type":"boolean"}}}}`, ``, known).
		ends(`{"slot_data":{"n":3,"opt":"x"},"filled_fields":["n","opt"],"remaining_schema":{"required":["more","to"],"properties":{"more":{"type":"boolean"}}}}`)
	_, err := newCalls(t, "CALL.SLOT", nil, nil, `{}`, ``, known).run()
	nodetest.WantError(t, err, fault.InvalidConfig, "schema")
}

func TestCallSlot_AsksTheModelThenAPerson(t *testing.T) {
	t.Parallel()
	m := &talker{say: []string{`{"to":"a","n":"x"}`, `{"n":null}`}}
	p := &modelstest.Purse{}
	x := newCalls(t, "CALL.SLOT", m, p, `{`+slotSchema+`,"profile_id":"p"}`, `{"question":"to whom?","data":{}}`, dataflow.Context{
		Merged:      map[string]json.RawMessage{"facts": json.RawMessage(`["A is b."]`)},
		StepResults: map[string]dataflow.StepResult{"before": step("before", "CALL.EMPTY", `{"z":1}`, 1)},
	})
	if done, err := x.run(); done != nil || err != nil {
		t.Fatal(done, err)
	}
	asked := x.waits[len(x.waits)-1].Ask
	var form struct {
		Message string         `json:"message"`
		Params  map[string]any `json:"params"`
		Schema  struct {
			Required []string `json:"required"`
		} `json:"schema"`
	}
	if err := json.Unmarshal(asked.Request, &form); err != nil {
		t.Fatal(err)
	}
	if value, has := form.Params["n"]; asked.Purpose != "param" || form.Message == "" || !has || value != nil || len(form.Params) != 1 || !slices.Equal(form.Schema.Required, []string{"n"}) {
		t.Errorf("asked %s", asked.Request)
	}
	if text := m.asked[0].Messages[1].Content; !strings.Contains(text, "to whom?") || !strings.Contains(text, "A is b.") || !strings.Contains(text, `{"z":1}`) {
		t.Errorf("the model was told %s", text)
	}
	done, err := x.answer(`{"content":{"n":"four"},"description":"d"}`)
	if err != nil || done != nil || len(x.waits) != 3 || !strings.Contains(string(x.waits[2].Ask.Request), "could not be used") {
		t.Fatalf("%v, %v, %+v", done, err, x.waits)
	}
	if done, err = x.answer(`{"content":{"n":4}}`); err != nil {
		t.Fatal(err)
	}
	nodetest.CheckDone(t, done, map[string]string{"result": `{"slot_data":{"to":"a","n":4},"filled_fields":["n","to"],"remaining_schema":null}`})
	if len(m.asked) != 2 {
		t.Errorf("the model was asked %d times", len(m.asked))
	}
	x.call.Wake = &node.Wake{By: engine.WakeAnswer, Outcome: engine.AskCanceled}
	_, err = x.run()
	nodetest.WantError(t, err, fault.ParameterMissing, `"n"`)
}

// What was found before a budget ran out is kept; its answer does not answer the form.
func TestCallSlot_WaitsForABudget(t *testing.T) {
	t.Parallel()
	m := &talker{say: []string{`{"to":"a"}`, `{"n":2}`}}
	p := &modelstest.Purse{}
	x := newCalls(t, "CALL.SLOT", m, p, `{`+slotSchema+`,"profile_id":"p"}`, ``, dataflow.Context{})
	out, err := x.kind.Run(t.Context(), x.call)
	if err != nil {
		t.Fatal(err)
	}
	x.call.Memo, x.call.Wake, p.Refuses = out.(node.Wait).Memo, &node.Wake{By: engine.WakeTimer}, 1
	if done, err := x.run(); done != nil || err != nil || x.waits[0].Ask.Purpose != "budget" {
		t.Fatalf("%v, %v, %+v", done, err, x.waits)
	}
	done, err := x.answer(`{"raise_by":100}`)
	if err != nil {
		t.Fatal(err)
	}
	nodetest.CheckDone(t, done, map[string]string{"result": `{"slot_data":{"to":"a","n":2},"filled_fields":["n","to"],"remaining_schema":null}`})
}

func TestCallSlot_FailsWithItsModel(t *testing.T) {
	t.Parallel()
	m := &talker{err: fault.New(fault.ModelRefused, "no")}
	_, err := newCalls(t, "CALL.SLOT", m, nil, `{`+slotSchema+`,"profile_id":"p"}`, ``, dataflow.Context{}).run()
	nodetest.WantError(t, err, fault.ModelRefused, "no")
}
