package app

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"tandem/identity"
	"tandem/login"
	"tandem/server"
	"tandem/web"
)

// door is an address that needs no token, as somebody who comes to it finds it. What is not said is as for nobody.
type door struct {
	// pattern is the route; path is an address of it.
	pattern, path string
	values        url.Values
	// nobody is the status for a caller without a token, wrong for one with a token that does not exist, foreign for an admin of another
	// workspace.
	nobody, wrong, foreign int
	roles                  map[identity.Role]int
}

// TestRoutes_Strangers goes through every route that is not in the OpenAPI document and says who may call it: nobody in particular,
// somebody with a wrong token or session, each role, and an admin of another workspace. TestRoutes_Denied of package server does the same
// for every route in the document: REST, server-sent events, WebSocket, MCP. A route that is in neither list fails one of the two.
func TestRoutes_Strangers(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	x := openSite(t, func(o *server.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		o.Web = fstest.MapFS{"index.html": {Data: []byte("<html>")}, "assets/main.js": {Data: []byte("1")}}
		o.Login = login.Provider{Issuer: "http://127.0.0.1:1", ClientID: "here"} // nobody answers there
	})
	x.keep(t, "door", "webhook_secret", `{"secret":"Zq8Lw2Vt9Rk4Xp7Nd3Hs"}`)
	all := `"GET","POST","PUT","PATCH","DELETE"`
	x.deploys(t, "hooks", hookFlow("hooks", `{"webhook_path":"/in","authentication":"header_token","credential_id":"door","allowed_methods":[`+all+`]}`, "", ""))
	for _, access := range []string{"public", "password", "users"} {
		config := `{path: /p, access: ` + access + `, roles: [operator], credential_id: door, `
		if access != "users" {
			config = strings.Replace(config, "roles: [operator], ", "", 1)
		}
		if access != "password" {
			config = strings.Replace(config, "credential_id: door, ", "", 1)
		}
		root := strings.Replace(config, "path: /p, ", "", 1)
		node := func(id, kind, config string) string {
			return "  - {id: " + id + ", name: " + id + ", description: d, type: TRIGGER, subtype: " + kind + ", configurations: " + config + "}\n"
		}
		x.deploys(t, access, visitFlow(access, "FORM", config+oneField+"}", node("b", "FORM", root+oneField+"}")+node("c", "CHAT", config+"greeting: g}")+node("d", "CHAT", root+"greeting: g}"), "  []\n"))
	}
	x.save(t, runFlow)

	same := func(status int) door { return door{nobody: status, wrong: status, foreign: status} }
	list := []door{}
	add := func(d door, pattern, path string, values url.Values) {
		d.pattern, d.path, d.values = pattern, path, values
		list = append(list, d)
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/openapi", "/openapi.json", "/openapi.yaml", "/login", "/mcp/authorized", "/credentials/authorized", "/credentials/authorize"} {
		add(same(http.StatusOK), "GET "+strings.Replace(path+"$", "/$", "/{$}", 1), path, nil)
		list[len(list)-1].pattern = strings.TrimSuffix(list[len(list)-1].pattern, "$")
	}
	for _, place := range web.Places() { // the page has no data of its own
		add(same(http.StatusOK), "GET "+place, place, nil)
		add(same(http.StatusOK), "GET "+place+"/{rest...}", place+"/guess", nil)
	}
	add(same(http.StatusOK), "GET /assets/{file...}", "/assets/main.js", nil)
	add(same(http.StatusNotFound), "GET /client-metadata.json", "/client-metadata.json", nil) // there is one where the server is reached by https
	add(same(http.StatusUnprocessableEntity), "POST /login", "/login", nil)
	add(same(http.StatusServiceUnavailable), "GET /login/oidc", "/login/oidc", nil)
	add(same(http.StatusConflict), "GET /login/oidc/callback", "/login/oidc/callback?state=guess", nil)
	for _, page := range []string{"respond", "join"} {
		add(same(http.StatusNotFound), "GET /"+page+"/{token}", "/"+page+"/guess", nil)
		add(same(http.StatusNotFound), "POST /"+page+"/{token}", "/"+page+"/guess", nil)
	}
	for _, method := range []string{http.MethodHead, http.MethodOptions} { // they start nothing, no matter who asks
		add(same(http.StatusMethodNotAllowed), method+" /hooks/{workflow}/{path...}", "/hooks/hooks/in", nil)
		add(same(http.StatusNotFound), method+" /hooks/{workflow}/{path...}", "/hooks/other/in", nil)
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		add(same(http.StatusUnauthorized), method+" /hooks/{workflow}/{path...}", "/hooks/hooks/in", nil)
		add(same(http.StatusNotFound), method+" /hooks/{workflow}/{path...}", "/hooks/other/in", nil)
		if method != "DELETE" {
			add(same(http.StatusNotFound), method+" /callbacks/{token}", "/callbacks/guess", nil)
		}
	}
	add(same(http.StatusNotFound), "POST /channels/{channel}/{workspace}/{credential}", "/channels/slack/default/guess", nil)

	may := map[identity.Role]int{identity.Operator: http.StatusOK, identity.Admin: http.StatusOK}
	mayNot := func(status int, rest map[identity.Role]int) map[identity.Role]int {
		out := map[identity.Role]int{}
		for _, r := range identity.Roles() {
			out[r] = status
		}
		maps.Copy(out, rest)
		return out
	}
	for _, page := range []struct{ kind, path string }{{"forms", ""}, {"forms", "/p"}, {"chat", ""}, {"chat", "/p"}} {
		rest := "{workflow}"
		if page.path != "" {
			rest += "/{path...}"
		}
		get, post := "GET /"+page.kind+"/"+rest, "POST /"+page.kind+"/"+rest
		base := "/" + page.kind + "/"
		add(same(http.StatusNotFound), get, base+"none"+page.path, nil)
		add(same(http.StatusNotFound), post, base+"other:public"+page.path, nil)
		add(same(http.StatusOK), get, base+"public"+page.path, nil)
		add(same(http.StatusUnauthorized), get, base+"password"+page.path, nil)
		add(same(http.StatusUnauthorized), post, base+"password"+page.path, url.Values{"q0": {"x"}})
		add(door{nobody: http.StatusSeeOther, wrong: http.StatusSeeOther, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, may)}, get, base+"users"+page.path, nil)
		if page.kind == "forms" {
			sent := http.StatusConflict // the page was not looked at before
			add(same(sent), post, base+"public"+page.path, url.Values{"q0": {"x"}})
			add(door{nobody: http.StatusUnauthorized, wrong: http.StatusUnauthorized, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, map[identity.Role]int{identity.Operator: sent, identity.Admin: sent})}, post, base+"users"+page.path, url.Values{"q0": {"x"}})
			continue
		}
		for _, query := range []string{"?do=send", "?do=answer&id=x"} {
			add(same(http.StatusForbidden), post, base+"public"+page.path+query, nil) // there is no cookie, so it is nobody's conversation
			add(door{nobody: http.StatusUnauthorized, wrong: http.StatusUnauthorized, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, nil)}, post, base+"users"+page.path+query, nil)
		}
		for _, query := range []string{"?view=messages", "?view=events&execution=x", "?view=question&id=x"} {
			add(same(http.StatusForbidden), get, base+"public"+page.path+query, nil)
			add(door{nobody: http.StatusUnauthorized, wrong: http.StatusUnauthorized, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, nil)}, get, base+"users"+page.path+query, nil)
		}
	}
	run := map[identity.Role]int{identity.Operator: http.StatusOK, identity.Editor: http.StatusOK, identity.Admin: http.StatusOK}
	add(door{nobody: http.StatusSeeOther, wrong: http.StatusUnauthorized, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, run)}, "GET /run/{workflow}", "/run/run_me", nil)
	for r := range run {
		run[r] = http.StatusConflict // the page was not looked at before
	}
	add(door{nobody: http.StatusUnauthorized, wrong: http.StatusUnauthorized, foreign: http.StatusNotFound, roles: mayNot(http.StatusForbidden, run)}, "POST /run/{workflow}", "/run/run_me", url.Values{"q0": {"1"}})

	_, open := x.api.Patterns()
	var listed []string
	for _, d := range list {
		listed = append(listed, d.pattern)
		x.comes(t, d, &passed)
	}
	slices.Sort(listed)
	for _, pattern := range open {
		if !slices.Contains(listed, pattern) {
			t.Errorf("%s needs no token, and nothing says who may call it", pattern)
		}
	}
	for _, pattern := range slices.Compact(listed) {
		if !slices.Contains(open, pattern) {
			t.Errorf("%s is listed and is not a route", pattern)
		}
	}
}

// comes tries an address as everybody there is.
func (x *site) comes(t *testing.T, d door, passed *atomic.Int64) {
	t.Helper()
	method, _, _ := strings.Cut(d.pattern, " ")
	try := func(who string, status int, prepare func(*visitor)) {
		t.Helper()
		passed.Add(int64(2 * time.Minute)) // this is not about how often an address may guess
		v := x.visitor(t)
		prepare(v)
		kind := ""
		if method != http.MethodGet {
			kind = "application/x-www-form-urlencoded"
		}
		if a := v.ask(t, method, d.path, kind, strings.NewReader(d.values.Encode())); a.status != status {
			t.Errorf("%s %s as %s: %d, want %d: %.300s", method, d.path, who, a.status, status, a.body)
		}
	}
	try("nobody", d.nobody, func(*visitor) {})
	wrong := d.wrong
	if wrong == http.StatusSeeOther { // a visitor with a wrong token is sent to log in as well
		wrong = d.nobody
	}
	try("somebody with a wrong token", wrong, func(v *visitor) { v.header["Authorization"] = "Bearer tdm_wrong" })
	session := d.nobody
	try("somebody with a wrong session", session, func(v *visitor) { v.header["Cookie"] = "tandem_session=wrong" })
	for _, role := range identity.Roles() {
		status, said := d.roles[role]
		if !said {
			status = d.nobody
		}
		try(fmt.Sprint(role), status, func(v *visitor) { v.header["Authorization"] = "Bearer " + x.tokens[string(role)] })
	}
	try("an admin of another workspace", d.foreign, func(v *visitor) { v.header["Authorization"] = "Bearer " + x.tokens["stranger"] })
}
