package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
)

const hubSecret = "8WkzPqLr3mNvT6yB"

// What events of GitHub have in common, in the shape that GitHub sends it.
const hubCommon = `"repository": {"id": 186853002, "node_id": "MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=", "name": "shop", "full_name": "Acme/Shop", "private": false,
	"owner": {"login": "Acme", "id": 21031067, "node_id": "MDQ6VXNlcjIxMDMxMDY3", "avatar_url": "https://avatars1.githubusercontent.com/u/21031067?v=4", "type": "Organization", "site_admin": false},
	"html_url": "https://github.com/Acme/Shop", "description": null, "fork": false, "url": "https://api.github.com/repos/Acme/Shop", "created_at": "2019-05-15T15:19:25Z", "pushed_at": "2019-05-15T15:20:32Z",
	"stargazers_count": 0, "language": "Go", "archived": false, "license": null, "topics": [], "visibility": "public", "default_branch": "main"},
	"sender": {"login": "ann", "id": 21031068, "node_id": "MDQ6VXNlcjIxMDMxMDY4", "gravatar_id": "", "html_url": "https://github.com/ann", "type": "User", "site_admin": false}`

// hubPayload is a payload in GitHub's shape; own is what is particular to the event.
func hubPayload(own string) string { return "{" + own + ", " + hubCommon + "}" }

func hubPush(ref string) string {
	return hubPayload(`"ref": "` + ref + `", "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246", "after": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c", "created": false, "deleted": false, "forced": false, "base_ref": null,
		"compare": "https://github.com/Acme/Shop/compare/6113728f27ae...0d1a26e67d8f", "commits": [{"id": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c", "tree_id": "f9d2a07e9488b91af2641b26b9407fe22a451433", "distinct": true, "message": "Correct the price",
		"timestamp": "2019-05-15T15:20:30+02:00", "author": {"name": "Ann", "email": "ann@example.com", "username": "ann"}, "added": [], "removed": [], "modified": ["README.md"]}],
		"head_commit": {"id": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c", "message": "Correct the price"}, "pusher": {"name": "ann", "email": "ann@example.com"}`)
}

// hubPull is what a pull request is in events.
const hubPull = `"pull_request": {"url": "https://api.github.com/repos/Acme/Shop/pulls/2", "id": 279147437, "number": 2, "state": "open", "locked": false, "title": "Update the README", "user": {"login": "ann", "id": 21031068},
	"body": "A simple change.", "draft": false, "merged": false, "labels": [], "head": {"label": "ann:changes", "ref": "changes", "sha": "ec26c3e57ca3a959ca5aad62de7213c562f8c821"}, "base": {"label": "Acme:main", "ref": "main", "sha": "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"}}`

func hubSigned(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// fromGitHub sends an event as GitHub does.
func (x *site) fromGitHub(t testing.TB, path, event, delivery, body string, headers ...string) answer {
	t.Helper()
	return x.hooked(t, "POST", path, body, append([]string{
		"User-Agent", "GitHub-Hookshot/044aadd", "X-GitHub-Event", event, "X-GitHub-Delivery", delivery, "X-GitHub-Hook-Id", "292430182", "X-Hub-Signature-256", hubSigned(hubSecret, body),
	}, headers...)...)
}

func hubFlow(id, config string) string {
	return strings.ReplaceAll(hookFlow(id, `{"repository":"acme/shop","credential_id":"hub"`+config+`}`, "", ""), `"subtype":"WEBHOOK"`, `"subtype":"GITHUB"`)
}

func openHub(t *testing.T, change ...func(*Options, string)) *site {
	t.Helper()
	x := openSiteAs(t, func(o *Options, url string) {
		o.PublicURL = url
		for _, f := range change {
			f(o, url)
		}
	})
	want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"hub","type":"github_token","data":{"webhook_secret":"`+hubSecret+`"}}`), http.StatusCreated)
	return x
}

// TestGitHub_Starts: a signed event starts an execution with what it is about, once, in both content types of GitHub.
func TestGitHub_Starts(t *testing.T) {
	t.Parallel()
	x := openHub(t)
	x.deploys(t, "hub", hubFlow("hub", `,"events":["push","pull_request","release","workflow_run","issue_comment"]`))
	list := want[api.Triggers](t, x.call(t, "viewer", "GET", "/workflows/hub/triggers", nil), http.StatusOK).Triggers
	same(t, fmt.Sprint(list[0].Address, " ", list[0].Methods), strings.TrimSuffix(x.url, "/api/v1")+"/hooks/hub/github [POST]")

	push := hubPush("refs/heads/release/1.2")
	first := x.fromGitHub(t, "hub/github", "push", "72d3162e-cc78-11e3-81ab-4c9367dc0958", push)
	_, out := x.startedBy(t, first)
	for path, value := range map[string]string{
		"event_type": "push", "action": "", "repository": "Acme/Shop", "sender": "ann", "branch": "release/1.2", "commit_sha": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",
		"delivery_id": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "github_payload.commits.0.message": "Correct the price", "trigger_message": "push in Acme/Shop by ann",
	} {
		same(t, path+" "+out.Get(path).String(), path+" "+value)
	}
	again := x.fromGitHub(t, "hub/github", "push", "72d3162e-cc78-11e3-81ab-4c9367dc0958", push)
	same(t, string(again.body), string(first.body))
	same(t, x.executionsOf(t, "hub"), 1)

	form := url.Values{"payload": {hubPayload(`"action": "opened", "number": 2, ` + hubPull)}}.Encode()
	_, out = x.startedBy(t, x.fromGitHub(t, "hub/github", "pull_request", "d2", form, "Content-Type", "application/x-www-form-urlencoded"))
	same(t, fmt.Sprint(out.Get("action"), out.Get("branch"), out.Get("commit_sha"), out.Get("github_payload.pull_request.number"), out.Get("trigger_message")), "opened changes ec26c3e57ca3a959ca5aad62de7213c562f8c821 2 pull_request opened in Acme/Shop by ann")
	for delivery, c := range map[string][3]string{
		"r": {"release", `"action": "published", "release": {"id": 17372790, "tag_name": "0.0.1", "target_commitish": "main", "draft": false}`, "main "},
		"w": {"workflow_run", `"action": "completed", "workflow_run": {"id": 289782451, "head_branch": "main", "head_sha": "3484a3fb816e0859fd6e1cea078d76385ff50625", "status": "completed", "conclusion": "success"}`, " 3484a3fb816e0859fd6e1cea078d76385ff50625"},
		"c": {"issue_comment", `"action": "created", "issue": {"number": 1, "title": "Spelling"}, "comment": {"id": 492700400, "body": "You are right!"}`, " "},
		"t": {"push", strings.TrimSuffix(strings.TrimPrefix(hubPush("refs/tags/v1"), "{"), ", "+hubCommon+"}"), " 0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"},
	} { // order does not matter: each is one of its own
		_, out := x.startedBy(t, x.fromGitHub(t, "hub/github", c[0], delivery, hubPayload(c[1])))
		same(t, c[0]+": "+out.Get("branch").String()+" "+out.Get("commit_sha").String(), c[0]+": "+c[2])
	}

	// Without the payload, at another path, and with no id: the same request again is a repetition.
	x.deploys(t, "hub", hubFlow("hub", `,"include_payload":false,"webhook_path":"/from/github"`))
	refused(t, x.fromGitHub(t, "hub/github", "push", "d3", push), http.StatusNotFound, "not_found")
	one := x.fromGitHub(t, "hub/from/github", "push", "", push)
	_, out = x.startedBy(t, one)
	same(t, out.Get("github_payload").Raw, "null")
	same(t, string(x.fromGitHub(t, "hub/from/github", "push", "", push).body), string(one.body))
}

// TestGitHub_Signature refuses everything that GitHub has not signed with the secret, and what cannot be read.
func TestGitHub_Signature(t *testing.T) {
	t.Parallel()
	x := openHub(t)
	x.deploys(t, "hub", hubFlow("hub", ""))
	push := hubPush("refs/heads/main")
	right := hubSigned(hubSecret, push)
	for what, signature := range map[string]string{
		"None": "", "Other": hubSigned("another-secret-7QwXz", push), "OtherBody": hubSigned(hubSecret, push+" "), "Short": right[:20], "Prefix": "sha1=" + right[7:], "NoHex": "sha256=zz", "Empty": "sha256=",
	} { // order does not matter
		if a := x.fromGitHub(t, "hub/github", "push", "d", push, "X-Hub-Signature-256", signature); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	refused(t, x.fromGitHub(t, "hub/github", "push", "d", push, "X-Hub-Signature-256", "", "X-Hub-Signature", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6"), http.StatusUnauthorized, "unauthorized")
	refused(t, x.fromGitHub(t, "hub/github", "ping", "d", `{"zen":"Design for failure.","hook_id":1}`, "X-Hub-Signature-256", ""), http.StatusUnauthorized, "unauthorized")
	refused(t, x.fromGitHub(t, "hub/github", "push", "d", `{"ref":`), http.StatusBadRequest, "invalid_input")
	refused(t, x.fromGitHub(t, "hub/github", "push", "d", `[]`), http.StatusBadRequest, "invalid_input")
	refused(t, x.fromGitHub(t, "hub/github", "", "d", push), http.StatusBadRequest, "invalid_input")
	refused(t, x.fromGitHub(t, "hub/github", "push", "d", "a=b", "Content-Type", "application/x-www-form-urlencoded"), http.StatusBadRequest, "invalid_input")
	refused(t, x.hooked(t, "GET", "hub/github", ""), http.StatusMethodNotAllowed, "unsupported")
	same(t, x.executionsOf(t, "hub"), 0)
	// A secret that was changed holds from then on.
	id := want[api.Credentials](t, x.call(t, "admin", "GET", "/credentials", nil), http.StatusOK).Credentials[0].ID
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+id, `{"name":"hub","type":"github_token","data":{"webhook_secret":"another-secret-7QwXz"}}`), http.StatusOK)
	refused(t, x.fromGitHub(t, "hub/github", "push", "d", push), http.StatusUnauthorized, "unauthorized")
	x.startedBy(t, x.fromGitHub(t, "hub/github", "push", "d", push, "X-Hub-Signature-256", hubSigned("another-secret-7QwXz", push)))
}

// TestGitHub_Filters: what does not fit is answered with 200 and the reason, is in the history, and starts nothing.
func TestGitHub_Filters(t *testing.T) {
	t.Parallel()
	x := openHub(t)
	comment := func(text string) string {
		return hubPayload(`"action": "created", "issue": {"number": 1, "labels": []}, "comment": {"id": 492700400, "user": {"login": "ann"}, "body": "` + text + `"}`)
	}
	pull := hubPayload(`"action": "opened", "number": 2, ` + hubPull)
	review := hubPayload(`"action": "submitted", "review": {"id": 237895671, "body": "Please DEPLOY it", "state": "approved"}, ` + hubPull)
	n := 0
	for _, c := range []struct{ config, event, body, why string }{
		{``, "push", hubPush("refs/heads/main"), ""},
		{``, "ping", `{"zen": "Design for failure.", "hook_id": 109948940, "hook": {"type": "Repository", "id": 109948940, "active": true, "events": ["*"], "config": {"content_type": "json", "secret": "********"}}, ` + hubCommon + `}`, "GitHub has tried the address out, and reaches it"},
		{``, "star", hubPayload(`"action": "created", "starred_at": "2019-05-15T15:20:40Z"`), `the event "star" is not among events`},
		{`,"events":["star"]`, "star", hubPayload(`"action": "created", "starred_at": "2019-05-15T15:20:40Z"`), ""},
		{``, "push", strings.ReplaceAll(hubPush("refs/heads/main"), "Acme/Shop", "acme/other"), `it is about the repository "acme/other"`},
		{``, "push", `{"action": "member_added", "organization": {"login": "Acme"}}`, "it is not about a repository"},
		{`,"branches":["main"]`, "push", hubPush("refs/heads/main"), ""},
		{`,"branches":["main"]`, "push", hubPush("refs/heads/mainly"), `the branch "mainly" is not among branches`},
		{`,"branches":["main"]`, "push", hubPush("refs/tags/main"), "it is not about a branch, and branches is set"},
		{`,"branches":["x","release/*"]`, "push", hubPush("refs/heads/release/1.2"), ""},
		{`,"branches":["release/*"]`, "push", hubPush("refs/heads/release/1/2"), `the branch "release/1/2" is not among branches`},
		{`,"branches":["release/**"]`, "push", hubPush("refs/heads/release/1/2"), ""},
		{`,"branches":["v?.x"]`, "push", hubPush("refs/heads/v1.x"), ""},
		{`,"branches":["v?.x"]`, "push", hubPush("refs/heads/v1yx"), `the branch "v1yx" is not among branches`},
		{`,"branches":["main"]`, "pull_request", pull, ""}, // by what it is to be merged into
		{`,"branches":["changes"]`, "pull_request", pull, `the branch "main" is not among branches`},
		{`,"events":["issue_comment"],"branches":["main"]`, "issue_comment", comment("x"), ""},
		{`,"filter_conditions":{"action":["opened","reopened"],"pull_request.draft":false,"pull_request.number":2}`, "pull_request", pull, ""},
		{`,"filter_conditions":{"action":"closed"}`, "pull_request", pull, "it does not fit filter_conditions.action"},
		{`,"filter_conditions":{"pull_request.number":"2"}`, "pull_request", pull, "it does not fit filter_conditions.pull_request.number"},
		{`,"filter_conditions":{"pull_request.nothing":true}`, "pull_request", pull, "it does not fit filter_conditions.pull_request.nothing"},
		{`,"events":["issue_comment"],"filter_conditions":{"comment_contains":"/Deploy"}`, "issue_comment", comment("please /deploy now"), ""},
		{`,"events":["issue_comment"],"filter_conditions":{"comment_contains":["/deploy","/ship"]}`, "issue_comment", comment("nice"), "it does not fit filter_conditions.comment_contains"},
		{`,"events":["pull_request_review"],"filter_conditions":{"comment_contains":"deploy"}`, "pull_request_review", review, ""},
		{`,"filter_conditions":{"comment_contains":"deploy"}`, "push", hubPush("refs/heads/main"), ""}, // which has no comment
	} {
		n++
		id := fmt.Sprint("hub", n)
		x.deploys(t, id, hubFlow(id, c.config))
		a := x.fromGitHub(t, id+"/github", c.event, "d", c.body)
		if c.why == "" {
			x.startedBy(t, a)
			continue
		}
		got := want[api.Received](t, a, http.StatusOK)
		if got.Ignored != c.why || got.ExecutionID != "" || x.executionsOf(t, id) != 0 {
			t.Errorf("%s %s: %+v, want %q", c.config, c.event, got, c.why)
		}
		history := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id="+id, nil), http.StatusOK).Deliveries
		same(t, fmt.Sprint(len(history), history[0].Decision, history[0].Reason == c.why), "1ignoredtrue")
		refused(t, x.call(t, "operator", "POST", "/deliveries/"+history[0].ID+"/replay", nil), http.StatusConflict, "conflict")
	}

	// What was ignored starts something when GitHub sends it again and the trigger is another by then.
	x.deploys(t, "later", hubFlow("later", `,"events":["fork"]`))
	push := hubPush("refs/heads/main")
	want[api.Received](t, x.fromGitHub(t, "later/github", "push", "again", push), http.StatusOK)
	x.deploys(t, "later", hubFlow("later", ""))
	x.startedBy(t, x.fromGitHub(t, "later/github", "push", "again", push))
}

// TestGitHub_Deploy finds out at the deployment whether the repository is there, if there is a token to ask with.
func TestGitHub_Deploy(t *testing.T) {
	t.Parallel()
	api3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "Bearer old":
			http.Error(w, `{"message": "Bad credentials"}`, http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer ghp_canary":
			http.Error(w, `{}`, http.StatusInternalServerError)
		case r.URL.Path == "/api/v3/repos/acme/shop":
			fmt.Fprint(w, `{"full_name": "Acme/Shop"}`)
		case r.URL.Path == "/api/v3/repos/acme/former":
			http.Redirect(w, r, "/api/v3/repos/acme/shop", http.StatusMovedPermanently)
		default:
			http.Error(w, `{"message": "Not Found"}`, http.StatusNotFound)
		}
	}))
	t.Cleanup(api3.Close)
	log := &debugLog{}
	x := openHub(t, func(o *Options, _ string) { o.Log = slog.New(slog.NewJSONHandler(log, nil)) })
	for name, token := range map[string]string{"good": "ghp_canary", "old": "old", "broken": "5xx"} { // order does not matter
		want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", fmt.Sprintf(`{"name":%q,"type":"github_token","data":{"token":%q,"webhook_secret":%q,"base_url":"%s/api/v3"}}`, name, token, hubSecret, api3.URL)), http.StatusCreated)
	}
	want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"mute","type":"github_token","data":{"token":"t"}}`), http.StatusCreated)
	for _, c := range []struct {
		credential, repository, code, says string
		status                             int
	}{
		{"good", "acme/shop", "", "", http.StatusOK}, {"broken", "acme/shop", "", "", http.StatusOK}, {"hub", "acme/unseen", "", "", http.StatusOK},
		{"good", "acme/former", "invalid_config", `is called \"Acme/Shop\" now`, http.StatusUnprocessableEntity},
		{"good", "acme/nothing", "not_found", "check repository and token", http.StatusNotFound},
		{"old", "acme/shop", "credential_invalid", "does not take the token", http.StatusForbidden},
		{"mute", "acme/shop", "credential_invalid", "has no webhook_secret", http.StatusForbidden},
	} {
		x.saves(t, "hub", strings.NewReplacer(`"acme/shop"`, `"`+c.repository+`"`, `"credential_id":"hub"`, `"credential_id":"`+c.credential+`"`).Replace(hubFlow("hub", "")))
		a := x.call(t, "editor", "POST", "/workflows/hub/deploy", nil)
		if a.status != c.status || gjson.GetBytes(a.body, "code").Str != c.code || !strings.Contains(string(a.body), c.says) {
			t.Errorf("%s %s: %d %s", c.credential, c.repository, a.status, a.body)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if said := log.all.String(); !strings.Contains(said, "whether a repository is there could not be found out") || strings.Contains(said, "canary") {
		t.Errorf("the log says %s", said)
	}
}
