package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/llm"
	"tandem/metrics"
	"tandem/server"
	"tandem/store"
	"tandem/workflow"
)

// counting is a site whose numbers are kept as those of a server are.
func counting(t *testing.T) *site {
	kept := metrics.New()
	return openSiteAs(t, func(o *Options, _ string) {
		o.Recorded = func(_ store.Ref, graph *workflow.Graph, row host.Row) { kept.Recorded(row, graph) }
	}, func(o *server.Options) { o.Metrics = kept })
}

// numbers are the lines of the metrics that count work, tokens and cost.
func (x *site) numbers(t *testing.T) string {
	t.Helper()
	a := x.call(t, "viewer", "GET", "/../../metrics", nil)
	if a.status != http.StatusOK {
		t.Fatalf("metrics answer %d %s", a.status, a.body)
	}
	var lines []string
	for line := range strings.Lines(string(a.body)) {
		for _, name := range []string{"tandem_activations_total{", "tandem_tokens_total{", "tandem_cost_total{"} {
			if strings.HasPrefix(line, name) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "")
}

// Everything that is counted has a kind: also what models and their tools do within a node. Tokens and cost are counted too.
func TestMetrics_KindsTokensCost(t *testing.T) {
	t.Parallel()
	x, tools := counting(t), newCounted(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
			return chatReply{tokens: 10, calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/a"}`)}}
		}
		return chatReply{tokens: 5, text: []string{"done"}}
	})
	profile := model.profile("m")
	profile.Price = llm.Price{Input: 1_000_000, Output: 2_000_000}
	x.saveProfile(t, profile)
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m}`, `web`, httpTool("web", ``)))
	x.talk(t, "go")
	x.save(t, `
metadata: {id: alone, name: alone, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: call, description: d, type: TOOL, subtype: HTTP_CLIENT, configurations: {allowed_domains: [127.0.0.1], tool_name: http_request, function_args: {url: "{{url}}"}}}
connections:
  - {from_node: start, to_node: call}
`)
	id := x.execute(t, "alone", api.ExecuteRequest{Inputs: json.RawMessage(`{"url":"` + tools.URL + `/b"}`)})
	x.reaches(t, id, engine.StatusSuccess)
	got := x.numbers(t)
	if strings.Contains(got, "unknown") {
		t.Errorf("something counts as unknown:\n%s", got)
	}
	for _, line := range []string{
		`tandem_activations_total{kind="AI_AGENT.LLM",outcome="completed"} 1`,
		`tandem_activations_total{kind="AI_AGENT.LLM/complete",outcome="completed"} 2`,
		`tandem_activations_total{kind="TOOL.HTTP_CLIENT",outcome="completed"} 2`,
		`tandem_tokens_total{kind="AI_AGENT.LLM",type="input"} 0`,
		`tandem_tokens_total{kind="AI_AGENT.LLM",type="output"} 15`,
		`tandem_cost_total{kind="AI_AGENT.LLM"} 30`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %s in\n%s", line, got)
		}
	}
}
