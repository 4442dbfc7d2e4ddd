package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/reference"
)

// agentFlow is a workflow of one agent with the given configurations, and what is attached to it.
func agentFlow(config, attached, nodes string) string {
	return `
metadata: {id: talk, name: talk, description: a turn with a model}
nodes:
  - {id: start, name: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - id: agent
    name: agent
    description: answers
    type: AI_AGENT
    subtype: LLM
    configurations: ` + config + `
    attached_nodes: [` + attached + `]
` + nodes + `
connections:
  - {from_node: start, to_node: agent}
`
}

// httpTool is an attached node that lets the model call a service of this machine.
func httpTool(id, config string) string {
	return `  - {id: ` + id + `, name: ` + id + `, description: calls, type: TOOL, subtype: HTTP_CLIENT, configurations: {allowed_domains: [127.0.0.1], allowed_methods: [GET, POST]` + config + `}}
`
}

// turnResult is what a test reads of an agent's result.
type turnResult struct {
	Content      json.RawMessage `json:"content"`
	Response     string          `json:"response"`
	FinishReason string          `json:"finish_reason"`
	Usage        struct {
		Total int `json:"total_tokens"`
	} `json:"usage"`
	ToolResults []struct {
		Name   string          `json:"name"`
		Result json.RawMessage `json:"result"`
		Failed bool            `json:"failed"`
	} `json:"tool_results"`
	Context struct {
		Conversation []llm.Message `json:"conversation"`
		Appended     int           `json:"appended"`
	} `json:"context"`
}

// talk starts the workflow, waits for its end and reads the agent's result.
func (x *site) talk(t *testing.T, question string) (api.Execution, turnResult) {
	t.Helper()
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: rawObject(t, map[string]any{"question": question})})
	x.reaches(t, id, engine.StatusSuccess)
	return x.result(t, id)
}

func (x *site) result(t *testing.T, id string) (e api.Execution, r turnResult) {
	t.Helper()
	e = x.read(t, id)
	if err := json.Unmarshal(e.NodeExecutions["agent"].OutputData["result"], &r); err != nil {
		t.Fatalf("%s: %v", e.NodeExecutions["agent"].OutputData["result"], err)
	}
	return e, r
}

func rawObject(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (x *site) saveProfile(t *testing.T, p llm.Profile) {
	t.Helper()
	if err := x.SaveProfile(t.Context(), identity.System("default"), p); err != nil {
		t.Fatal(err)
	}
}

// counted is a service that tools call.
type counted struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
}

func newCounted(t *testing.T) *counted {
	c := &counted{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.calls = append(c.calls, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
		if r.URL.Path == "/broken" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counted) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(c.calls)
	slices.Sort(list)
	return list
}

func TestAgent_AnswersOffline(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.saveProfile(t, llm.Profile{ID: "demo", Provider: "scripted", Model: "m", Price: llm.Price{Input: 1, Output: 2}, Script: llm.Script{Rules: []llm.Rule{
		{Contains: "weather", Reply: "It rains: {{last}}."},
	}}})
	x.save(t, agentFlow(`{profileId: demo, system_prompt: be brief}`, ``, ``))
	e, r := x.talk(t, "the weather")
	if r.Response != "It rains: the weather." || string(r.Content) != `"It rains: the weather."` || r.FinishReason != "stop" || r.Usage.Total == 0 {
		t.Errorf("result %+v", r)
	}
	if got := r.Context.Conversation; len(got) != 2 || got[0].Content != "the weather" || got[1].Role != llm.Assistant || r.Context.Appended != 2 {
		t.Errorf("conversation %+v", got)
	}
	if e.CreditsConsumed <= 0 || e.NodeExecutions["agent"].CreditsConsumed != e.CreditsConsumed || e.TokensUsed == nil || e.TokensUsed.TotalTokens != int64(r.Usage.Total) {
		t.Errorf("credits %v and %v, tokens %+v", e.CreditsConsumed, e.NodeExecutions["agent"].CreditsConsumed, e.TokensUsed)
	}
	if step, _ := stepOf(e, "agent", "complete_1"); step.Status != string(engine.NodeDone) || step.ActivationID != "agent[0]/complete_1" {
		t.Errorf("the completion is an activation of its own: %+v", step)
	}
}

func TestAgent_UsesItsTools(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" {
			return chatReply{tokens: 10, calls: []chatCall{
				chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/a"}`), chatCallOf(1, "http_request", `{"url":"`+tools.URL+`/broken"}`),
				chatCallOf(2, "http_request", `{"url":`), chatCallOf(3, "http_requests", `{}`),
			}}
		}
		var said []string
		for _, m := range r.Messages {
			if m.Role == "tool" {
				said = append(said, m.ToolCallID+"="+m.text())
			}
		}
		return chatReply{tokens: 5, text: []string{"done: ", strings.Join(said, " | ")}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m}`, `web`, httpTool("web", ``)))
	e, r := x.talk(t, "go")
	if got := tools.list(); !slices.Equal(got, []string{"GET /a", "GET /broken"}) {
		t.Errorf("called %q", got)
	}
	for _, part := range []string{"/a", "not_found", "not a JSON object", `did you mean`} {
		if !strings.Contains(r.Response, part) {
			t.Errorf("the model was not told %q: %s", part, r.Response)
		}
	}
	if len(r.ToolResults) != 4 || r.ToolResults[0].Failed || !r.ToolResults[1].Failed || r.Usage.Total != 15 || model.count() != 2 {
		t.Errorf("result %+v, asked %d times", r, model.count())
	}
	if got := model.asked[0].Tools; len(got) != 1 || got[0].Function.Name != "http_request" || !strings.Contains(string(got[0].Function.Parameters), `"url"`) {
		t.Errorf("offered %+v", got)
	}
	if len(e.Errors) != 3 {
		t.Errorf("errors that were handled stay readable: %+v", e.Errors)
	}
}

func TestAgent_AsksBeforeACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer, want string
		calls              []string
	}{
		{"Approved", `{"approved":true}`, `{"path":"/pay"}`, []string{"POST /pay"}},
		{"Rejected", `{"approved":false}`, "refused", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, tools := openSite(t), newCounted(t)
			model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
				last := r.Messages[len(r.Messages)-1]
				if last.Role == "user" {
					return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{"amount":5}}`)}}
				}
				return chatReply{text: []string{last.text()}}
			})
			x.saveProfile(t, model.profile("m"))
			x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m, tool_approval: always}`, `web`, httpTool("web", ``)))
			id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"pay"}`)})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			if len(tools.list()) != 0 {
				t.Fatal("the call was made before anybody approved of it")
			}
			asked := x.read(t, id).Questions
			if len(asked) != 1 || asked[0].Purpose != "tool_approval" || !strings.Contains(string(asked[0].Arguments), `"amount":5`) {
				t.Fatalf("asked %+v", asked)
			}
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(c.answer)}), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			if _, r := x.result(t, id); !strings.Contains(r.Response, c.want) || !slices.Equal(tools.list(), c.calls) {
				t.Errorf("response %q, called %q", r.Response, tools.list())
			}
		})
	}
}

func TestAgent_WantsAnObject(t *testing.T) {
	t.Parallel()
	const schema = `{user_prompt: "{{question}}", profileId: m, response_format: schema, output_schema: {type: object, required: [n], properties: {n: {type: integer}}}}`
	t.Run("Repaired", func(t *testing.T) {
		t.Parallel()
		x := openSite(t)
		model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
			if len(r.Messages) == 1 {
				return chatReply{text: []string{"Sure! ```json\n{\"n\": \"five\"}\n```"}}
			}
			return chatReply{text: []string{`Here: {"n": 5}`}}
		})
		x.saveProfile(t, model.profile("m"))
		x.save(t, agentFlow(schema, ``, ``))
		e, r := x.talk(t, "count")
		if string(r.Content) != `{"n":5}` || e.NodeExecutions["agent"].OutputData["structured_data"] == nil || model.count() != 2 {
			t.Errorf("result %+v after %d completions", r, model.count())
		}
		if told := model.asked[1].Messages; len(told) != 3 || !strings.Contains(told[2].text(), "answer.n") {
			t.Errorf("the model is told what was wrong: %+v", told)
		}
		if len(r.Context.Conversation) != 2 {
			t.Errorf("conversation %+v", r.Context.Conversation)
		}
	})
	t.Run("Never", func(t *testing.T) {
		t.Parallel()
		x := openSite(t)
		model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"no"}} })
		x.saveProfile(t, model.profile("m"))
		x.save(t, agentFlow(schema, ``, ``))
		id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"q"}`)})
		x.reaches(t, id, engine.StatusError)
		if e := x.read(t, id); e.Error.ErrorCode != "output_invalid" || model.count() != 3 {
			t.Errorf("error %+v after %d completions", e.Error, model.count())
		}
	})
}

func TestAgent_FallsBack(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	broken := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{status: http.StatusUnauthorized} })
	good := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"from the other"}} })
	x.saveProfile(t, good.profile("good"))
	first := broken.profile("first")
	first.Fallbacks = []string{"good"}
	x.saveProfile(t, first)
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: first}`, ``, ``))
	if _, r := x.talk(t, "q"); r.Response != "from the other" || broken.count() != 1 || good.count() != 1 {
		t.Errorf("%q; asked %d and %d times", r.Response, broken.count(), good.count())
	}
}

func TestAgent_KeepsItsTimeLimits(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(_ chatRequest, gone <-chan struct{}) chatReply {
		<-gone
		return chatReply{}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m, first_token_timeout_seconds: 1, max_retries: 0}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"q"}`)})
	x.reaches(t, id, engine.StatusError)
	e := x.read(t, id)
	if e.Error.ErrorCode != "timeout" || !strings.Contains(e.Error.ErrorMessage, "first token") || !strings.Contains(e.Error.ErrorMessage, "1s") {
		t.Errorf("error %+v", e.Error)
	}
	for range model.count() {
		<-model.hungUp // the service sees that nobody listens any more
	}
}

// What is too long for a model loses its oldest parts before the turn fails.
func TestAgent_ShortensWhatIsTooLong(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		for _, m := range r.Messages {
			if m.text() == "first" && len(r.Messages) > 1 {
				return chatReply{status: http.StatusRequestEntityTooLarge}
			}
		}
		return chatReply{text: []string{fmt.Sprint(len(r.Messages), " messages")}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, `
metadata: {id: talk, name: talk, description: two turns}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: one, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: first}}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: second}}
connections:
  - {from_node: start, to_node: one}
  - {from_node: one, to_node: agent}
`)
	if _, r := x.talk(t, "q"); r.Response != "1 messages" || model.count() != 3 {
		t.Errorf("response %q after %d calls", r.Response, model.count())
	}
}

// A long stream is one row when it ends, and everybody who reads along gets all of it.
func TestAgent_StreamsALongAnswer(t *testing.T) {
	t.Parallel()
	const pieces = 10_000
	x := openSite(t)
	text := make([]string, pieces)
	for i := range text {
		text[i] = fmt.Sprintf("%d ", i)
	}
	begin := make(chan struct{})
	model := newModelService(t, func(_ chatRequest, gone <-chan struct{}) chatReply {
		select {
		case <-begin:
		case <-gone:
		}
		return chatReply{text: text}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, to_user: true, stream: true}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	var once sync.Once
	events, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", func(heard) bool {
		once.Do(func() { close(begin) }) // somebody reads along
		return false
	})
	x.reaches(t, id, engine.StatusSuccess)
	e, r := x.read(t, id), turnResult{}
	outputs, err := x.Outputs(t.Context(), identity.System("default"), id) // the API tells a large one by its name
	if err != nil || json.Unmarshal(outputs["agent"], &r) != nil || r.Response != strings.Join(text, "") {
		t.Errorf("%d bytes of %d", len(r.Response), len(strings.Join(text, "")))
	}
	if e.Seq > 6 {
		t.Errorf("%d rows for one completion", e.Seq)
	}
	read := ""
	for _, h := range events {
		var event struct {
			Data struct {
				Text   string `json:"text"`
				Offset int    `json:"offset"`
			} `json:"data"`
		}
		if h.Name != "text.add" {
			continue
		}
		if err := json.Unmarshal([]byte(h.Data), &event); err != nil || event.Data.Offset > len(read) {
			t.Fatalf("%s after %d bytes: %v", h.Data, len(read), err)
		}
		read = read[:event.Data.Offset] + event.Data.Text
	}
	if read == "" || !strings.HasPrefix(r.Response, read) {
		t.Errorf("the reader has %d bytes that are not the beginning of the answer", len(read))
	}
}

func TestAgent_RemembersTheConversation(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		var said []string
		for _, m := range r.Messages {
			said = append(said, m.Role+":"+m.text())
		}
		return chatReply{text: []string{strings.Join(said, ",")}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, `
metadata: {id: talk, name: talk, description: two turns}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: one, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: first}}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: second, system_prompt: s}}
connections:
  - {from_node: start, to_node: one}
  - {from_node: one, to_node: agent}
`)
	_, r := x.talk(t, "q")
	if r.Response != "system:s,user:first,assistant:user:first,user:second" || len(r.Context.Conversation) != 4 || r.Context.Appended != 2 {
		t.Errorf("response %q, conversation %+v", r.Response, r.Context)
	}
}

// What is said in one execution is known in the next, as long as the same person asks.
func TestAgent_UsesItsMemories(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		var known []string
		for _, m := range r.Messages {
			if m.Role == "system" {
				known = append(known, m.text())
			}
		}
		return chatReply{text: []string{"known: " + strings.Join(known, "; ")}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m}`, `buffer, broken`, `
  - {id: buffer, description: d, type: MEMORY, subtype: CONVERSATION_BUFFER}
  - {id: broken, description: d, type: MEMORY, subtype: VECTOR_DATABASE, configurations: {embedding_profile: gone}}
`))
	e, first := x.talk(t, "my name is Ada")
	if first.Response != "known: " {
		t.Errorf("the first turn knows %q", first.Response)
	}
	attached := e.NodeExecutions["agent"].AttachedExecutions
	if len(attached["buffer"]) != 2 || len(attached["broken"]) != 2 || attached["broken"][0].Error == nil {
		t.Errorf("what attached nodes have done: %+v", attached)
	}
	if _, second := x.talk(t, "what is my name?"); !strings.Contains(second.Response, "my name is Ada") {
		t.Errorf("the second turn knows %q", second.Response)
	}
	id := want[api.ExecuteResponse](t, x.call(t, "editor", "POST", "/workflows/talk/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"who am I?"}`)}), http.StatusAccepted).ExecutionID
	x.reaches(t, id, engine.StatusSuccess)
	if _, other := x.result(t, id); strings.Contains(other.Response, "Ada") {
		t.Errorf("another person is told: %q", other.Response)
	}
}

// The tools that a node lists by itself run: those of a tool server by server/tool, in each way to write it. A function that only the
// workflow knows ends the turn.
func TestAgent_ToolsOfItsOwn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	box := newToolbox(t, nil, toolDefinition{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), ReadOnly: true},
		toolDefinition{Name: "put", Description: "puts", Schema: json.RawMessage(`{"type":"object"}`)})
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return chatReply{text: []string{"got " + last.text()}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, r.Tools[0].Function.Name, `{"n":1}`)}}
	})
	x.saveProfile(t, model.profile("main"))
	start := func(name, tools string) string {
		text := agentFlow(`{profile_id: main, user_prompt: look, tools: `+tools+`}`, "", "")
		x.save(t, strings.Replace(text, "id: talk", "id: "+name, 1))
		return x.execute(t, name, api.ExecuteRequest{})
	}
	id := start("first", `["box/look"]`)
	if list := x.opens(t, id, 1); list[0].Purpose != "activation" { // nobody has accepted the server yet
		t.Fatalf("asked %+v", list)
	}
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", `{"node_id":"agent","input_data":{"accept":true}}`), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	if _, r := x.result(t, id); r.Response != `got {"done":true,"message":"{\"done\":true}"}` || len(r.ToolResults) != 1 || r.ToolResults[0].Failed {
		t.Errorf("the turn ends with %+v", r)
	}
	if got := box.made(); !slices.Equal(got, []string{`look {"n":1}`}) {
		t.Errorf("calls %q", got)
	}
	for name, tools := range map[string]string{
		"name":   `[{name: box/look, description: Look!}]`,
		"openai": `[{type: function, function: {name: box/look}}]`,
		"glob":   `["box/l*"]`,
	} {
		id := start(name, tools)
		x.reaches(t, id, engine.StatusSuccess)
		if _, r := x.result(t, id); len(r.ToolResults) != 1 || r.ToolResults[0].Failed || r.FinishReason != "stop" {
			t.Errorf("%s ends with %+v", name, r)
		}
	}
	if n := len(box.made()); n != 4 {
		t.Errorf("the server was called %d times, want 4", n)
	}
	id = start("mine", `[{type: function, function: {name: mine, parameters: {type: object}}}]`)
	x.reaches(t, id, engine.StatusSuccess)
	if _, r := x.result(t, id); r.FinishReason != "tool_calls" || len(r.ToolResults) != 0 {
		t.Errorf("a function of the workflow ends with %+v", r)
	}
	id = start("wrong", `["box/lok"]`)
	x.reaches(t, id, engine.StatusError)
	if e := x.read(t, id); e.Error == nil || e.Error.ErrorCode != "invalid_config" || !strings.Contains(e.Error.ErrorMessage, `did you mean "box/look"?`) {
		t.Errorf("a tool that is not there: %+v", e.Error)
	}
}

// Prompts find the variables that the input brings for them, before the rest of the input; what is not an object is refused.
func TestAgent_Variables(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"ok"}} })
	x.saveProfile(t, model.profile("main"))
	x.save(t, agentFlow(`{profile_id: main, systemPrompt: "Be {{tone}}.", messages: [{role: user, content: "{{question}} in {{place.city}}"}]}`, "", ""))
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"asked","tone":"rude","variables":{"tone":"kind","place":{"city":"Bern"}}}`)})
	x.reaches(t, id, engine.StatusSuccess)
	var said []string
	for _, m := range model.asked[0].Messages {
		said = append(said, m.Role+": "+m.text())
	}
	if want := []string{"system: Be kind.", "user: asked in Bern", "user: asked"}; !slices.Equal(said, want) {
		t.Errorf("the model was told %q, want %q", said, want)
	}
	id = x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"asked","tone":"rude","place":{"city":"Bern"},"variables":["kind"]}`)})
	x.reaches(t, id, engine.StatusError)
	if e := x.read(t, id); e.Error.ErrorCode != "invalid_input" || !strings.Contains(e.Error.ErrorMessage, `"variables" must be an object`) {
		t.Errorf("variables that are a list: %+v", e.Error)
	}
}

// A kind that has answers told piece by piece says so; by default AI_AGENT.LLM tells the whole.
func TestAgent_LLMDoesNotStreamByDefault(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"AI_AGENT.LLM": "", "AI_AGENT.OPENAI_CHATGPT": "true"} {
		k, err := NodeKind(name)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := reference.Fields(k.ConfigSchema)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(fields, func(f reference.Field) bool { return f.Name == "stream" })
		if i < 0 || fields[i].Default != want {
			t.Errorf("stream of %s is %q by default, want %q", name, fields[i].Default, want)
		}
	}
}
