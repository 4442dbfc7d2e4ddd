package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/loopback"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// billFlow is a workflow with a typed input that calls a service once.
func billFlow(address string) string {
	return `
metadata: {id: pay, name: Pay, description: Pays a bill.}
nodes:
  - id: start
    description: d
    type: TRIGGER
    subtype: MANUAL
    configurations: {input_schema: {type: object, required: [amount], properties: {amount: {type: number, description: In euros.}}}}
  - {id: send, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "` + address + `/pay", body: {amount: "{{amount}}"}}}
  - {id: done, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {receipt: "{{send.outputs.body.receipt}}"}}
connections:
  - {from_node: start, to_node: send}
  - {from_node: send, to_node: done}
`
}

const payTool = `  - {id: pays, description: d, type: TOOL, subtype: WORKFLOW_TOOL, configurations: {workflow_id: pay, output_nodes: [done]}}
`

// payingModel wants a bill paid, first with arguments that do not fit, and then says what it was told.
func payingModel(t *testing.T) *modelService {
	return newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		var told []string
		for _, m := range r.Messages {
			if m.Role == "tool" {
				told = append(told, m.text())
			}
		}
		switch len(told) {
		case 0:
			return chatReply{calls: []chatCall{chatCallOf(0, "pay", `{"amount":"much"}`)}}
		case 1:
			return chatReply{calls: []chatCall{chatCallOf(1, "pay", `{"amount":7}`)}}
		}
		return chatReply{text: []string{strings.Join(told, "\n")}}
	})
}

// A deployed workflow is a tool with the parameters of its trigger. A call is a child that is linked in the record, and neither lost nor
// made twice when the process is killed while it runs.
func TestTools_WorkflowKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	model := payingModel(t)
	reached, release := make(chan struct{}, 10), make(chan struct{})
	var posts atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if posts.Add(1) == 1 {
			reached <- struct{}{}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"receipt":"r-1"}`))
	}))
	t.Cleanup(service.Close)
	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	i := openInstance(t, c.dir)
	if err := i.SaveProfile(t.Context(), user, model.profile("m")); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, billFlow(service.URL))
	i.saveText(t, agentFlow(`{user_prompt: go, profileId: m, tool_approval: once}`, `pays`, payTool))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	kill := c.serve()
	if _, err := c.client.Deploy(t.Context(), "pay"); err != nil {
		t.Fatal(err)
	}
	started, err := c.client.Execute(t.Context(), "talk", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	id := started.ExecutionID
	// What the workflow does in the end is to be done once, so a person is asked, about each call.
	for range 2 {
		asked := c.becomes(id, engine.StatusWaitingForHuman).Questions
		if len(asked) != 1 || asked[0].Purpose != "tool_approval" {
			t.Fatalf("asked %+v", asked)
		}
		if _, err := c.client.Input(t.Context(), id, api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"approved":true}`)}); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	kill()
	close(release)
	kill = c.serve()
	defer func() { kill() }()
	// The service was called by the child, which asks what became of that.
	waits := c.becomes(id, engine.StatusWaitingForHuman).Questions
	if len(waits) != 1 || waits[0].Purpose != engine.PurposeOutcomeUnknown || waits[0].ExecutionID == "" || waits[0].ExecutionID == id {
		t.Fatalf("asked %+v", waits)
	}
	child := waits[0].ExecutionID
	if _, err := c.client.Input(t.Context(), child, api.InputRequest{NodeID: "send", InputData: json.RawMessage(`{"outcome":"done","result":{"body":{"receipt":"r-1"}}}`)}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c.becomes(id, engine.StatusSuccess).NodeExecutions["agent"].OutputData)
	if err != nil {
		t.Fatal(err)
	}
	out := gjson.GetBytes(raw, "result")
	if got := out.Get("tool_results.1.result"); got.Get("execution_id").Str != child || got.Get("outputs.done.receipt").Str != "r-1" || got.Get("status").Str != "SUCCESS" {
		t.Errorf("the tool returned %s", got.Raw)
	}
	if refused := out.Get("tool_results.0"); !refused.Get("failed").Bool() || !strings.Contains(refused.Get("result").Str, "amount") {
		t.Errorf("the call that does not fit returned %s", refused.Raw)
	}
	if model.count() != 3 || posts.Load() != 1 {
		t.Errorf("the model was asked %d times, the service %d times", model.count(), posts.Load())
	}
	offered := model.asked[0].Tools
	if len(offered) != 1 || offered[0].Function.Name != "pay" || gjson.GetBytes(offered[0].Function.Parameters, "properties.amount.type").Str != "number" {
		t.Errorf("the model was offered %+v", offered)
	}
	if e, err := c.client.Execution(t.Context(), child); err != nil || e.ParentExecutionID != id {
		t.Errorf("the child has the parent %q: %v", e.ParentExecutionID, err)
	}
}

// A statement of the author's and the search of a memory are tools with typed arguments, whose results are bounded.
func TestTools_QueryAndMemory(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		results := 0
		for _, m := range r.Messages {
			if m.Role == "tool" {
				results++
			}
		}
		if results == 0 {
			return chatReply{calls: []chatCall{
				chatCallOf(0, "orders_of", `{"customer":"Ann' or 1=1 --"}`), chatCallOf(1, "orders_of", `{"customer":"Ann"}`), chatCallOf(2, "orders_of", `{}`),
				chatCallOf(3, "orders_of", `{"customer":"many"}`), chatCallOf(4, "memory_search", `{"query":"annual leave of trainees"}`),
			}}
		}
		return chatReply{text: []string{"30 days [leave.md:2]"}}
	})
	x.saveProfile(t, model.profile("m"))
	db := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": "db", "type": "sql", "data": map[string]any{"driver": "sqlite", "dsn": "shop.db"}}), http.StatusCreated).ID
	x.save(t, `
metadata: {id: fill, name: fill, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - id: rows
    description: d
    type: ACTION
    subtype: DATABASE_OPERATION
    configurations:
      credential_id: `+db+`
      operation: transaction
      statements: ["create table orders (id integer, customer text, note text)", "insert into orders values (1, 'Ann', 'x'), (2, 'Bob', 'y')",
        "with recursive n(i) as (select 10 union all select i + 1 from n where i < 60) insert into orders select i, 'many', hex(zeroblob(1000)) from n"]
  - id: texts
    description: d
    type: MEMORY
    subtype: VECTOR_DATABASE
    configurations: {session_id: book, operation: store}
    input_params: {items: [{id: "leave.md:2", content: "annual leave of trainees is 30 days", metadata: {document: leave.md, page: 4, chunk: 2}}]}
connections:
  - {from_node: start, to_node: rows}
  - {from_node: rows, to_node: texts}
`)
	x.reaches(t, x.execute(t, "fill", api.ExecuteRequest{}), engine.StatusSuccess)
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, `query, find`, `  - {id: query, description: d, type: TOOL, subtype: DATABASE_TOOL, configurations: {credential_id: `+db+`, tool_name: orders_of, description: Orders.,
      query: "select id, note from orders where customer = :customer order by id", parameters: {type: object, required: [customer], properties: {customer: {type: string}}}}}
  - {id: find, description: d, type: TOOL, subtype: MEMORY_TOOL, configurations: {session_id: book}}
`))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	kept := gjson.GetBytes(x.read(t, id).NodeExecutions["agent"].OutputData["result"], `\$blob`).Str // it is too large to stand in the record
	out := gjson.ParseBytes(x.call(t, "viewer", "GET", "/executions/"+id+"/values/"+kept, nil).body)
	same(t, out.Get("tool_results.0.result.row_count").Raw, "0") // what is bound cannot change the statement
	same(t, out.Get("tool_results.1.result.rows").Raw, `[{"id":1,"note":"x"}]`)
	same(t, out.Get("tool_results.2.failed").Bool() && strings.Contains(out.Get("tool_results.2.result").Str, "customer"), true)
	many := out.Get("tool_results.3.result")
	if n := many.Get("row_count").Int(); n < 20 || n > 32 || !many.Get("truncated").Bool() || len(many.Raw) > 64<<10 {
		t.Errorf("%d rows in %d bytes", n, len(many.Raw))
	}
	if got := out.Get("sources").Array(); len(got) != 1 || got[0].Get("page").Int() != 4 || !got[0].Get("cited").Bool() {
		t.Errorf("the sources are %s, the search has returned %s", out.Get("sources").Raw, out.Get("tool_results.4.result").Raw)
	}
}

// lostTool is a kind of tool whose calls are lost, and which can be asked what became of them.
func lostTool(runs, asked *atomic.Int64) plug.Maker {
	return func(plug.Deps) plug.Extension {
		answer := func() (node.Outcome, error) {
			return node.Succeed(map[string]any{"result": map[string]any{"sent": true}, "success": true})
		}
		k := node.Raw(node.About{
			Name: "TOOL.LOST", Title: node.Says("Lost", "丢失"), Description: node.Says("Loses.", "丢失。"), Effect: workflow.Once, Keys: []node.Key{{Name: "result", Meaning: node.Says("r", "结果")}},
			Examples: []node.Example{{Shows: node.Says("s", "示例"), Config: `{}`, Output: `{"result": {}}`}},
		}, func(_ context.Context, _ *node.Call, _ struct{}, _ json.RawMessage) (node.Outcome, error) {
			if runs.Add(1) > 1 {
				return answer()
			}
			return nil, &node.Failure{Err: fault.New(fault.NetworkError, "the answer was lost"), Unknown: true}
		})
		k.Tools = func(context.Context, *node.Call) ([]node.Tool, error) {
			return []node.Tool{{Name: "send", Description: "sends", Parameters: json.RawMessage(`{"type":"object"}`), Effect: workflow.Once}}, nil
		}
		k.Inquire = func(context.Context, *node.Call) (node.Outcome, error) {
			if asked.Add(1) == 1 {
				return answer()
			}
			return nil, nil
		}
		return plug.Extension{Name: "lost", Kinds: []node.Kind{k}}
	}
}

// The service is asked what became of a call of a model whose answer was lost, before a person is: a call that arrived is not made again.
// Of one that did not, the model is told, and it may want it again.
func TestTools_SettleALostCall(t *testing.T) {
	t.Parallel()
	var runs, asked atomic.Int64
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == "tool" && strings.Contains(last.text(), "it may be sent again"):
			return chatReply{calls: []chatCall{chatCallOf(1, "send", `{}`)}}
		case last.Role == "tool":
			return chatReply{text: []string{last.text()}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, "send", `{}`)}}
	})
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "d"), HTTPAllow: allow, Extensions: []plug.Maker{lostTool(&runs, &asked)}})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if err := i.SaveProfile(t.Context(), user, model.profile("m")); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, agentFlow(`{user_prompt: go, profileId: m}`, `lost`, "  - {id: lost, description: d, type: TOOL, subtype: LOST}\n"))
	i.ends(t, i.startText(t, "talk", `{}`), engine.StatusSuccess)
	if runs.Load() != 1 || asked.Load() != 1 {
		t.Errorf("the call was made %d times, and asked about %d times", runs.Load(), asked.Load())
	}
	runs.Store(0) // the next one did not arrive
	i.ends(t, i.startText(t, "talk", `{}`), engine.StatusSuccess)
	if runs.Load() != 2 || asked.Load() != 2 {
		t.Errorf("the call that did not arrive was made %d times, and asked about %d times", runs.Load(), asked.Load())
	}
}
