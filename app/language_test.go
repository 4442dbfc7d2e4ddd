package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/server"
)

// Questions are in the language that whoever started it asked for, else that of the workflow, else that of the installation, and so are
// the steps that Tandem names itself.
func TestLanguage_OfQuestionsAndSteps(t *testing.T) {
	t.Parallel()
	text := func(id, settings string) string {
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d` + settings + `}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: ai, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: m, prompt: p}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: t}}
connections: [{from_node: start, to_node: ai}, {from_node: ai, to_node: ask}]
`
	}
	const inEnglish, inChinese = `, settings: {language: en}`, `, settings: {language: ZH}`
	for name, c := range map[string]struct{ installed, settings, asked, want string }{
		"Nobody":       {"", "", "", "en"},
		"Installation": {"zh", "", "", "zh"},
		"Workflow":     {"zh", inEnglish, "", "en"},
		"Start":        {"", inChinese, "en", "en"},
		"OnlyWorkflow": {"", inChinese, "", "zh"},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openSiteAs(t, func(o *Options, _ string) { o.Language = c.installed }, func(o *server.Options) { o.Language = c.installed })
			x.putProfile(t, "m", `{"provider":"scripted","script":{"rules":[{"reply":"r"}]}}`)
			x.save(t, text("w", c.settings))
			id := x.execute(t, "w", api.ExecuteRequest{Language: c.asked})
			var request struct{ Language string }
			if err := json.Unmarshal(x.opens(t, id, 1)[0].RequestData, &request); err != nil || request.Language != c.want {
				t.Errorf("asked in %q, %v; want %q", request.Language, err, c.want)
			}
			x.reaches(t, id, engine.StatusWaitingForHuman)
			body := string(x.call(t, "viewer", "GET", "/executions/"+id, nil).body)
			if strings.Contains(body, "模型回答 1") != (c.want == "zh") {
				t.Errorf("the step has another name: %s", body)
			}
		})
	}
	x := openSite(t)
	refused(t, x.call(t, "editor", "POST", "/workflows", text("w", `, settings: {language: fr}`)), http.StatusUnprocessableEntity, "invalid")
}
