package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/server"
)

// Questions are in the language that the person who started it asked for, else that of the workflow, else that of the installation, and so are
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

// Pages for visitors are in the language that was chosen on them, else that of the reader's account, else the browser's, else the
// workflow's, else the installation's.
func TestLanguage_OfPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ installed, settings, account, browser, chosen, want string }{
		"Nobody":             {want: "en"},
		"Installation":       {installed: "zh", want: "zh-CN"},
		"Workflow":           {settings: "ZH", want: "zh-CN"},
		"WorkflowFirst":      {installed: "zh", settings: "en", browser: "de", want: "en"},
		"UnknownToBrowser":   {settings: "zh", browser: "de-DE, fr;q=0.5", want: "zh-CN"},
		"Browser":            {settings: "zh", browser: "de, en;q=0.5", want: "en"},
		"Account":            {settings: "en", account: "zh", browser: "en", want: "zh-CN"},
		"Chosen":             {settings: "en", account: "en", browser: "en", chosen: "zh", want: "zh-CN"},
		"AccountSaysNothing": {settings: "zh", browser: "en", want: "en"},
	} { // order does not matter: each is for itself
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openSiteAs(t, func(o *Options, _ string) { o.Language = c.installed }, func(o *server.Options) { o.Language = c.installed })
			settings := ""
			if c.settings != "" {
				settings = ", settings: {language: " + c.settings + "}"
			}
			in := x.visitor(t)
			in.header["Accept-Language"] = c.browser
			shown := func(path string) {
				t.Helper()
				if c.chosen != "" {
					path += "?lang=" + c.chosen
				}
				says(t, in.get(t, path), http.StatusOK, `<html lang="`+c.want+`">`)
			}
			for id, kind := range map[string]string{"form": "FORM", "chat": "CHAT"} { // order does not matter either
				config := map[string]string{"form": oneField, "chat": "title: Talk"}[id]
				open := strings.Replace(visitFlow(id, kind, "{"+config+"}"), "description: d}", "description: d"+settings+"}", 1)
				x.deploys(t, id, open)
				x.deploys(t, id+"_ours", strings.Replace(strings.Replace(open, "id: "+id+",", "id: "+id+"_ours,", 1), "{"+config, "{access: users, "+config, 1))
				if c.account == "" {
					shown("/" + map[string]string{"form": "forms", "chat": "chat"}[id] + "/" + id)
				}
			}
			x.save(t, "metadata: {id: hand, name: hand, description: d"+settings+"}\nnodes:\n  - {id: page, name: page, description: d, type: TRIGGER, subtype: MANUAL}\nconnections: []\n")
			if c.account != "" {
				want[api.User](t, x.call(t, "operator", "PATCH", "/users/me", map[string]any{"language": c.account}), http.StatusOK)
			}
			in.post(t, "/login", url.Values{"token": {x.tokens["operator"]}})
			for _, path := range []string{"/forms/form_ours", "/chat/chat_ours", "/run/hand"} {
				shown(path)
			}
		})
	}
}
