package app

import (
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/llm"
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

func TestAgent_AnswersWithAProfile(t *testing.T) {
	t.Parallel()
	i := openInstance(t, t.TempDir())
	p := Local()
	if err := i.SaveProfile(t.Context(), p, llm.Profile{ID: "demo", Provider: "scripted", Model: "m", Price: llm.Price{Input: 1, Output: 2}, Script: llm.Script{Rules: []llm.Rule{
		{Contains: "weather", Reply: "It rains in {{last}}."},
	}}}); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, agentFlow(`{profile_id: demo, system_prompt: be brief}`, ``, ``))
	id, err := i.Start(t.Context(), p, "talk", json.RawMessage(`{"question":"the weather"}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := i.Wait(t.Context(), p, id)
	if err != nil || e.Status != engine.StatusSuccess {
		t.Fatalf("%+v, %v", e, err)
	}
	t.Logf("%+v", e)
}
