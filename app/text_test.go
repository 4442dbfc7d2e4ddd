package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// Values are readable wherever people and models read them, no matter who wrote the JSON; what a prompt names and nobody knows stays as
// written and is warned of.
func TestText_PromptsAndQuestions(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.putProfile(t, "echo", `{"provider":"scripted","script":{"rules":[{"matches":"(?s)^(.*)$","reply":"$1"}]}}`)
	x.save(t, `
metadata: {id: text, name: text, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: within, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: echo, systemPrompt: "You are {{who}}.", prompt: "{{nope}} ${gone.x} {{order}}"}}
  - {id: whole, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: echo, prompt: "{{order}}"}}
  - {id: chat, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: echo, messages: [{role: user, content: "{{list}} {{missing}}"}]}}
  - {id: given, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: echo, system_prompt: s}, input_params: {user_prompt: "${absent} {{order}}"}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "{{order}}", description: "Pay {{order}}?"}}
connections:
  - {from_node: start, to_node: within}
  - {from_node: start, to_node: whole}
  - {from_node: start, to_node: chat}
  - {from_node: start, to_node: given}
  - {from_node: start, to_node: ask}
`)
	const inputs = `{"inputs":{"order":{"\u540d":"\u5f20\u003cb\u003e"},"list":["\u5f20",1]}}`
	r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/text/execute", inputs), http.StatusAccepted)
	const order = `{"名":"张<b>"}`
	asked := x.opens(t, r.ExecutionID, 1)
	var request struct{ Title, Description string }
	if err := json.Unmarshal(asked[0].RequestData, &request); err != nil || request.Title != order || request.Description != "Pay "+order+"?" {
		t.Errorf("asked %+v, %v", request, err)
	}
	x.call(t, "operator", "POST", "/interactions/"+asked[0].ID+"/respond", `{"response_data":{"action":"approve"}}`)
	x.reaches(t, r.ExecutionID, engine.StatusSuccess)
	e := x.read(t, r.ExecutionID)
	for node, text := range map[string]string{
		"within": "{{nope}} ${gone.x} " + order, "whole": order, "chat": `["张",1] {{missing}}`, "given": "${absent} " + order,
	} {
		var said struct{ Response string }
		if err := json.Unmarshal(e.NodeExecutions[node].OutputData["result"], &said); err != nil || said.Response != text {
			t.Errorf("%s was told %q; want %q (%v, %+v)", node, said.Response, text, err, e.NodeExecutions[node].Error)
		}
	}
	for node, paths := range map[string]string{
		"within": "configurations.prompt {{nope}},configurations.prompt ${gone.x},configurations.systemPrompt {{who}}", "whole": "", "ask": "",
		"chat": "configurations.messages[0].content {{missing}}", "given": "input_params.user_prompt ${absent}",
	} {
		var list []string
		for _, w := range e.NodeExecutions[node].Warnings {
			list = append(list, w.Path+" "+w.Placeholder)
			if !strings.Contains(w.Message, "stays as written") {
				t.Errorf("%s: warning %q", node, w.Message)
			}
		}
		if got := strings.Join(list, ","); got != paths {
			t.Errorf("%s: warnings %q; want %q", node, got, paths)
		}
	}
}

// A key that stands twice is refused at every door, by its name: nobody is shown one value while another one is used.
func TestText_KeysThatStandTwice(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: twice, name: twice, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: t}}
connections: [{from_node: start, to_node: ask}]
`)
	a := x.call(t, "operator", "POST", "/workflows/twice/execute", `{"inputs":{"order":{"total":1,"\u0074otal":999}}}`)
	refused(t, a, http.StatusUnprocessableEntity, "invalid_input")
	if !strings.Contains(string(a.body), "inputs.order.total") || !strings.Contains(string(a.body), "twice") {
		t.Errorf("execute: %s", a.body)
	}
	r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/twice/execute", `{}`), http.StatusAccepted)
	asked := x.opens(t, r.ExecutionID, 1)
	for _, door := range []string{"/interactions/" + asked[0].ID + "/respond", "/executions/" + r.ExecutionID + "/input"} {
		a := x.call(t, "operator", "POST", door, `{"node_id":"ask","input_data":{"action":"reject","action":"approve"},"response_data":{"action":"reject","action":"approve"}}`)
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "action") || !strings.Contains(string(a.body), "twice") {
			t.Errorf("%s: %d %s", door, a.status, a.body)
		}
	}
}
