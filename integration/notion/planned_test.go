package notion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
	"tandem/builtin/models"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

// model answers what it is asked from a list, and keeps what it was asked.
type model struct {
	answers []llm.Completion
	asked   []llm.Request
	profile string
	// fails is what the call after the last answer comes to.
	fails error
}

func (m *model) ask(_ context.Context, _ *node.Call, profile string, r llm.Request) (llm.Completion, error) {
	r.Messages = slices.Clone(r.Messages)
	m.asked, m.profile = append(m.asked, r), profile
	if len(m.asked) > len(m.answers) {
		return llm.Completion{}, m.fails
	}
	return m.answers[len(m.asked)-1], nil
}

// wants is an answer that calls operations, each with its arguments.
func wants(calls ...string) llm.Completion {
	c := llm.Completion{Message: llm.Message{Role: llm.Assistant}, Usage: llm.Usage{InputTokens: 10, OutputTokens: 2}, Model: "m1", Finish: "tool_calls"}
	for i := 0; i < len(calls); i += 2 {
		c.Message.ToolCalls = append(c.Message.ToolCalls, llm.ToolCall{ID: fmt.Sprint(i), Name: calls[i], Arguments: calls[i+1]})
	}
	return c
}

func says(text string) llm.Completion {
	return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: text}, Usage: llm.Usage{InputTokens: 5, OutputTokens: 1}, Finish: "stop"}
}

func (m *model) bench(t *testing.T) *actiontest.Bench {
	v := vendor()
	v.Kind = func(client *outbound.Client) node.Kind { return act(client, m.ask) }
	return v.New(t)
}

// TestPlanned: without action_type the model of the profile does what the instruction says with the operations, and what it did and found is told.
func TestPlanned(t *testing.T) {
	t.Parallel()
	m := &model{answers: []llm.Completion{
		wants("search", `{"query":"Tasks","limit":2}`, "nothing", `{}`, "get_page", `{"page":"x"}`),
		wants("create_database_item", `{"database_id":"other","properties":{"Name":"Buy milk"}}`),
		says("Added the task."),
	}}
	b := m.bench(t)
	const config = `{"llm_profile":"planner","database_id":"db1","operation_type":"both","instruction":"Add a task: buy milk","context":{"who":"Ann"}}`
	out, err := b.Run(config, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if calls := b.Calls("POST /v1/pages"); len(calls) != 1 || gjson.GetBytes(calls[0].Body, "parent.database_id").Str != "db1" {
		t.Errorf("what the author has fixed was changed: %+v", calls)
	}
	if calls := b.Calls("POST /v1/search"); len(calls) != 1 || gjson.GetBytes(calls[0].Body, "filter").Exists() || gjson.GetBytes(calls[0].Body, "query").Str != "Tasks" {
		t.Errorf("searched by %+v", calls)
	}
	ran := out.Get("ai_execution")
	if out.Get("action").Str != "plan" || out.Get("resource_id").Str != "new1" || ran.Get("summary").Str != "Added the task." || ran.Get("rounds").Int() != 3 || ran.Get("model").Str != "m1" ||
		ran.Get("token_usage.input_tokens").Int() != 25 || ran.Get("steps.#").Int() != 4 || ran.Get("steps.0.success").Raw != "true" ||
		!strings.Contains(ran.Get("steps.1.error_message").Str, "no operation") || !strings.Contains(ran.Get("steps.2.error_message").Str, `no argument "page"`) || ran.Get("steps.3.resource_id").Str != "new1" {
		t.Errorf("told %s", out.Raw)
	}
	if found := out.Get("discovered_resources.#.id"); !strings.Contains(found.Raw, "item000") || !strings.Contains(found.Raw, "new1") {
		t.Errorf("found %s", out.Get("discovered_resources").Raw)
	}
	first := m.asked[0]
	if m.profile != "planner" || !strings.Contains(first.Messages[1].Content, "buy milk") || !strings.Contains(first.Messages[1].Content, `"who"`) {
		t.Errorf("asked %q: %+v", m.profile, first.Messages)
	}
	var names []string
	for _, tool := range first.Tools {
		names = append(names, tool.Name)
		if !json.Valid(tool.Parameters) || strings.Contains(string(tool.Parameters), "instruction") || strings.Contains(string(tool.Parameters), "action_type") {
			t.Errorf("%s takes %s", tool.Name, tool.Parameters)
		}
	}
	if len(names) != 10 || slices.Contains(names, "request") || slices.Contains(names, "archive_page") {
		t.Errorf("offered %q", names)
	}
	last := m.asked[1].Messages
	if reply := last[len(last)-1]; !reply.Failed || reply.ToolName != "get_page" {
		t.Errorf("told the model %+v", reply)
	}
	m = &model{answers: []llm.Completion{says("nothing to do")}}
	if out, err := m.bench(t).Run(`{"profile_id":"planner"}`, `{"instruction":"look"}`); err != nil || out.Get("ai_execution.instruction").Str != "look" {
		t.Errorf("an instruction of the input: %s, %v", out.Raw, err)
	}
}

// TestPlanned_Failures: what nobody knows the outcome of ends the run as that; when something was changed, nothing is tried again; a budget is waited for as long as nothing was.
func TestPlanned_Failures(t *testing.T) {
	t.Parallel()
	const config = `{"llm_profile":"planner","instruction":"do it"}`
	add := wants("create_page", `{"parent":"page1","properties":{"title":"t"}}`)
	lost := &model{answers: []llm.Completion{add}}
	b := lost.bench(t)
	b.Loses("POST /v1/pages")
	_, err := b.Run(config, `{}`)
	if f, ok := errors.AsType[*node.Failure](err); !ok || !f.Unknown || fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Errorf("a lost answer: %v", err)
	}
	down := fault.New(fault.NetworkError, "no model")
	m := &model{answers: []llm.Completion{add}, fails: down}
	if _, err := m.bench(t).Run(config, `{}`); fault.From(err).Retryable || !strings.Contains(fmt.Sprint(err), "1 operations were done") {
		t.Errorf("a model that is gone after a change: %v", err)
	}
	m = &model{answers: []llm.Completion{wants("search", `{}`)}, fails: down}
	if _, err := m.bench(t).Run(config, `{}`); !fault.From(err).Retryable {
		t.Errorf("a model that is gone before any: %v", err)
	}
	m = &model{fails: &models.Exhausted{Budget: "b1"}}
	b = m.bench(t)
	if out, err := b.Kind.Run(t.Context(), b.Call(config, `{}`)); err != nil || out.(node.Wait).Signal != models.BudgetSignal("b1") {
		t.Errorf("no budget: %+v, %v", out, err)
	}
	m = &model{answers: slices.Repeat([]llm.Completion{wants("get_page", `{"page_id":"page1"}`)}, maxRounds)}
	if out, err := m.bench(t).Run(config, `{}`); err != nil || out.Get("ai_execution.finish_reason").Str != "max_iterations" || out.Get("ai_execution.steps.#").Int() != maxRounds {
		t.Errorf("a model without an end: %s, %v", out.Raw, err)
	}
	for _, config := range []string{`{"llm_profile":"planner"}`} {
		if _, err := (&model{}).bench(t).Run(config, `{}`); fault.CodeOf(err) != fault.ParameterMissing {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := vendor().New(t).Run(config, `{}`); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("without models: %v", err)
	}
}

// TestAction_Usual: where neither an operation nor a model is named, a page is made. An instruction without a model is refused.
func TestAction_Usual(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	out, err := b.Run(`{"parent":"page1","properties":{"title":"t"}}`, `{"limit":"of something else"}`)
	if err != nil || out.Get("action").Str != "create_page" || len(b.Calls("POST /v1/pages")) != 1 {
		t.Errorf("it did %s, %v", out.Raw, err)
	}
	if _, err := b.Run(`{"instruction":"do it","parent":"page1","properties":{"title":"t"}}`, ``); fault.CodeOf(err) != fault.InvalidConfig || len(b.Calls("POST /v1/pages")) != 1 {
		t.Errorf("an instruction without a model: %v", err)
	}
	r := &node.Registry{}
	r.Register(act(nil, nil))
	known, _ := r.Kind("EXTERNAL_ACTION.NOTION")
	for config, want := range map[string]string{
		`{"parent":"page1","properties":{"title":"t"}}`: "",
		`{"page_id":"page1"}`:                           "warning configurations.page_id",
		`{"llm_profile":"p","page_id":"page1"}`:         "",
		`{"instruction":"do it"}`:                       "error configurations.action_type",
		`{"action_type":"search","llm_profile":"p"}`:    "warning configurations.llm_profile",
	} { // order does not matter: each is planned by itself
		p, problems := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: "EXTERNAL_ACTION", Subtype: "NOTION", Configurations: json.RawMessage(config)})
		var told []string
		for _, one := range problems {
			if one.Path != "configurations.credential_id" {
				told = append(told, fmt.Sprint(one.Severity, " ", one.Path))
			}
		}
		if effect := workflow.Once; strings.Join(told, ", ") != want || p.Effect != effect && !strings.Contains(config, "search") {
			t.Errorf("%s: %q, %s", config, told, p.Effect)
		}
	}
}

// TestPlanned_Fixed: a model cannot change what the author has fixed, wherever and by whatever spelling; and it does not fill in what was to be fixed and has come to nothing.
func TestPlanned_Fixed(t *testing.T) {
	t.Parallel()
	for _, fixed := range []string{`"database_id":"db1"`, `"databaseId":"db1"`, `"data":{"database_id":"db1"}`, `"database_id":"db1","data":{"database_id":"db2"}`} {
		m := &model{answers: []llm.Completion{wants("create_database_item", `{"database_id":"other","properties":{"Name":"x"}}`), says("done")}}
		b := m.bench(t)
		out, err := b.Run(`{"llm_profile":"planner","instruction":"do it",`+fixed+`}`, `{}`)
		if calls := b.Calls("POST /v1/pages"); err != nil || len(calls) != 1 || gjson.GetBytes(calls[0].Body, "parent.database_id").Str != "db1" {
			t.Errorf("%s: %+v, %s, %v", fixed, calls, out.Raw, err)
		}
	}
	// What is made stays where the author has fixed it, by whichever operation.
	const item = `{"database_id":"other","properties":{"Name":"x"}}`
	for _, c := range []struct{ fixed, operation, args, want string }{
		{`"database_id":"db1"`, "create_page", `{"parent":"other","properties":{"Name":"x"}}`, `{"database_id":"db1"}`},
		{`"database_id":"db1","page_id":"page1"`, "create_page", `{"properties":{"Name":"x"}}`, `{"database_id":"db1"}`},
		{`"page_id":"page1"`, "create_page", `{"parent":"other","properties":{"title":"x"}}`, `{"page_id":"page1"}`},
		{`"parent":"page1","database_id":"db1"`, "create_page", `{"parent":"other","properties":{"title":"x"}}`, `{"page_id":"page1"}`},
		{`"parent":{"database_id":"db1"}`, "create_database_item", item, `{"database_id":"db1"}`},
		{`"parent":"page1"`, "create_database_item", item, ``},
		{`"page_id":"page1"`, "create_database_item", `{"database_id":"db1","properties":{"Name":"x"}}`, `{"database_id":"db1"}`},
	} {
		m := &model{answers: []llm.Completion{wants(c.operation, c.args), says("done")}}
		b := m.bench(t)
		out, err := b.Run(`{"llm_profile":"planner","instruction":"do it",`+c.fixed+`}`, `{}`)
		made := ""
		for _, call := range b.Calls("POST /v1/pages") {
			made += gjson.GetBytes(call.Body, "parent").Raw
		}
		if err != nil || made != c.want || (made == "") == out.Get("ai_execution.steps.0.success").Bool() {
			t.Errorf("%s, %s: made in %s, %s, %v", c.fixed, c.operation, made, out.Raw, err)
		}
	}
	for _, empty := range []string{`"database_id":""`, `"database_id":null`, `"data":{"database_id":""}`} {
		m := &model{answers: []llm.Completion{says("done")}}
		_, err := m.bench(t).Run(`{"llm_profile":"planner","instruction":"do it",`+empty+`}`, `{}`)
		if fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(fmt.Sprint(err), `"database_id"`) || len(m.asked) > 0 {
			t.Errorf("%s: %v, asked %d times", empty, err, len(m.asked))
		}
	}
}

// TestPlanned_Repeats: nothing is tried again once something may have been written, also in part; what was refused as a whole does not count. Who is asked about a lost
// answer learns what was done before.
func TestPlanned_Repeats(t *testing.T) {
	t.Parallel()
	const config = `{"llm_profile":"planner","instruction":"do it"}`
	down := fault.New(fault.NetworkError, "no model")
	many := wants("create_page", `{"parent":"page1","properties":{"title":"t"},"markdown":"`+strings.Repeat(`- x\n`, 150)+`"}`)
	add := wants("create_page", `{"parent":"page1","properties":{"title":"t"}}`)
	for name, c := range map[string]struct {
		wants     llm.Completion
		call      string
		status    int
		retryable bool
	}{
		"InPart":      {many, "PATCH /v1/blocks/new1/children", 400, false},
		"ServerError": {add, "POST /v1/pages", 500, false},
		"Update":      {wants("update_page", `{"page_id":"page1","properties":{"Name":"x"}}`), "PATCH /v1/pages/page1", 502, false},
		"Refused":     {add, "POST /v1/pages", 400, true},
		"Limited":     {add, "POST /v1/pages", 429, true},
	} {
		m := &model{answers: []llm.Completion{c.wants}, fails: down}
		b := m.bench(t)
		b.Answers(c.call, actiontest.Reply{Status: c.status, Body: `{}`})
		if _, err := b.Run(config, `{}`); fault.CodeOf(err) != fault.NetworkError || fault.From(err).Retryable != c.retryable {
			t.Errorf("%s: %v, retryable %v", name, err, !c.retryable)
		}
	}
	m := &model{answers: []llm.Completion{add, wants("add_comment", `{"page_id":"page1","text":"x"}`)}}
	b := m.bench(t)
	b.Loses("POST /v1/comments")
	call := b.Call(config, `{}`)
	var noted map[string]any
	call.Detail = func(fields map[string]any) { noted = fields }
	_, err := b.Kind.Run(t.Context(), call)
	f, ok := errors.AsType[*node.Failure](err)
	if !ok || !f.Unknown || fault.CodeOf(err) != fault.OutcomeUnknown || !strings.Contains(fmt.Sprint(err), "create_page new1") || !strings.Contains(fmt.Sprint(fault.From(err).Details["steps"]), "add_comment") || noted["steps"] == nil {
		t.Errorf("a lost answer after a page was made: %v, noted %v", err, noted)
	}
	m = &model{answers: []llm.Completion{add, wants("get_page", `{"page_id":"page1"}`)}}
	b = m.bench(t)
	b.Answers("GET /v1/pages/page1", actiontest.Reply{Status: 401, Body: `{}`})
	if _, err := b.Run(config, `{}`); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(fmt.Sprint(err), "create_page new1") {
		t.Errorf("a credential that ends in between: %v", err)
	}
}
