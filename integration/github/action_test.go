package github

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// fake is the REST API of GitHub with one repository, acme/shop. It refuses what the real one refuses.
type fake struct {
	t        testing.TB
	mu       sync.Mutex
	issues   []map[string]any // also pull requests, newest first
	comments []map[string]any
	releases map[string]map[string]any
	files    map[string]string
	merged   map[string]bool
}

const issueCount = 250

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t, releases: map[string]map[string]any{}, merged: map[string]bool{}, files: map[string]string{"README.md": "old", "logo.png": "\x89PNG\xff"}}
	for n := range issueCount {
		issue := map[string]any{"number": issueCount - n, "created_at": nodetest.Start().Add(-time.Hour).Format(time.RFC3339), "body": nil}
		if n%5 == 4 {
			issue["pull_request"] = map[string]any{}
		}
		f.issues = append(f.issues, issue)
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"POST /repos/acme/shop/issues": f.create("title"), "POST /repos/acme/shop/pulls": f.create("title", "head", "base"), "GET /repos/acme/shop/issues": f.list, "GET /repos/acme/shop/pulls": f.list,
		"POST /repos/acme/shop/issues/{n}/comments": f.comment, "GET /repos/acme/shop/issues/{n}/comments": func(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.comments) },
		"PATCH /repos/acme/shop/issues/{n}": f.change, "POST /repos/acme/shop/issues/{n}/labels": f.label, "PUT /repos/acme/shop/pulls/{n}/merge": f.merge, "GET /repos/acme/shop/pulls/{n}": f.pull,
		"POST /repos/acme/shop/releases": f.release, "GET /repos/acme/shop/releases/tags/{tag}": f.tagged,
		"POST /repos/acme/shop/actions/workflows/{file}/dispatches": f.dispatch, "GET /repos/acme/shop/contents/{path...}": f.read, "PUT /repos/acme/shop/contents/{path...}": f.write,
		"GET /rate_limit": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", "4999")
			actiontest.Write(t, w, 200, map[string]any{"id": 1})
		},
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer "+actiontest.Token || r.Header.Get("User-Agent") == "" {
				actiontest.Write(t, w, 401, map[string]any{"message": "Bad credentials"})
				return
			}
			serve(w, r)
		})
	}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		actiontest.Write(t, w, 404, map[string]any{"message": "Not Found"})
	})
	return m
}

func (f *fake) create(needs ...string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		v := actiontest.Read(f.t, r)
		for _, name := range needs {
			if v[name] == nil || v[name] == "" || v[name] == "invalid" {
				actiontest.Write(f.t, w, 422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"resource": "Issue", "field": name, "code": "missing_field"}}})
				return
			}
		}
		v["number"], v["html_url"], v["created_at"] = 1000, "https://github.com/acme/shop/issues/1000", nodetest.Start().Format(time.RFC3339)
		f.issues = append([]map[string]any{v}, f.issues...)
		actiontest.Write(f.t, w, 201, v)
	}
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.issues) }

// page answers with a page and where the others are, as GitHub does.
func (f *fake) page(w http.ResponseWriter, r *http.Request, list []map[string]any) {
	size, at := min(actiontest.Number(r, "per_page", 30), 100), actiontest.Number(r, "page", 1)
	items, more := actiontest.Part(list, (at-1)*size, size)
	if more {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(at+1))
		w.Header().Set("Link", fmt.Sprintf(`<https://api.github.com%s?%s>; rel="next", <https://api.github.com/x>; rel="last"`, r.URL.Path, query.Encode()))
	}
	actiontest.Write(f.t, w, 200, items)
}

func (f *fake) comment(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	v["id"], v["html_url"] = 77, "https://github.com/acme/shop/issues/5#issuecomment-77"
	f.comments = append(f.comments, v)
	actiontest.Write(f.t, w, 201, v)
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	v["number"], v["html_url"] = 5, "https://github.com/acme/shop/issues/5"
	actiontest.Write(f.t, w, 200, v)
}

func (f *fake) label(w http.ResponseWriter, r *http.Request) {
	actiontest.Write(f.t, w, 200, actiontest.Read(f.t, r)["labels"])
}

func (f *fake) merge(w http.ResponseWriter, r *http.Request) {
	if n := r.PathValue("n"); n == "405" || f.merged[n] {
		actiontest.Write(f.t, w, 405, map[string]any{"message": "Pull Request is not mergeable"})
		return
	}
	f.merged[r.PathValue("n")] = true
	actiontest.Write(f.t, w, 200, map[string]any{"sha": "abc", "merged": true})
}

func (f *fake) pull(w http.ResponseWriter, r *http.Request) {
	actiontest.Write(f.t, w, 200, map[string]any{"number": 9, "merged": f.merged[r.PathValue("n")]})
}

func (f *fake) release(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	tag, _ := v["tag_name"].(string)
	if f.releases[tag] != nil {
		actiontest.Write(f.t, w, 422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"field": "tag_name", "code": "already_exists"}}})
		return
	}
	v["id"], v["html_url"] = 31, "https://github.com/acme/shop/releases/tag/"+tag
	f.releases[tag] = v
	actiontest.Write(f.t, w, 201, v)
}

func (f *fake) tagged(w http.ResponseWriter, r *http.Request) {
	if v := f.releases[r.PathValue("tag")]; v != nil {
		actiontest.Write(f.t, w, 200, v)
		return
	}
	actiontest.Write(f.t, w, 404, map[string]any{"message": "Not Found"})
}

func (f *fake) dispatch(w http.ResponseWriter, r *http.Request) {
	if actiontest.Read(f.t, r)["ref"] == nil {
		actiontest.Write(f.t, w, 422, map[string]any{"message": `Invalid request. "ref" wasn't supplied.`})
		return
	}
	w.WriteHeader(204)
}

func hashOf(content string) string {
	sum := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(content), content)))
	return hex.EncodeToString(sum[:])
}

func (f *fake) read(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	content, ok := f.files[name]
	switch {
	case name == "docs":
		actiontest.Write(f.t, w, 200, []any{map[string]any{"name": "a.md"}, map[string]any{"name": "b.md"}})
	case name == "huge.bin":
		actiontest.Write(f.t, w, 200, map[string]any{"sha": "1", "encoding": "none", "content": "", "size": 2_000_000})
	case !ok:
		actiontest.Write(f.t, w, 404, map[string]any{"message": "Not Found"})
	default:
		text := base64.StdEncoding.EncodeToString([]byte(content))
		actiontest.Write(f.t, w, 200, map[string]any{"sha": hashOf(content), "encoding": "base64", "content": text[:2] + "\n" + text[2:], "html_url": "https://github.com/acme/shop/blob/main/" + name})
	}
}

func (f *fake) write(w http.ResponseWriter, r *http.Request) {
	v, name := actiontest.Read(f.t, r), r.PathValue("path")
	content, err := base64.StdEncoding.DecodeString(v["content"].(string))
	if err != nil || v["message"] == nil || v["branch"] != "main" {
		f.t.Errorf("a commit of %v", v)
	}
	old, there := f.files[name]
	switch {
	case there && v["sha"] == nil:
		actiontest.Write(f.t, w, 422, map[string]any{"message": `Invalid request. "sha" wasn't supplied.`})
		return
	case there && v["sha"] != hashOf(old):
		actiontest.Write(f.t, w, 409, map[string]any{"message": name + " does not match " + v["sha"].(string)})
		return
	}
	f.files[name] = string(content)
	actiontest.Write(f.t, w, 201, map[string]any{"content": map[string]any{"sha": hashOf(string(content)), "html_url": "https://github.com/acme/shop/blob/main/" + name}})
}

const inShop = `"repository_config":{"owner":"acme","repo":"shop"}`

func vendor() actiontest.Vendor {
	issue := actiontest.Sample{Config: `{"action_type":"create_issue",` + inShop + `,"title":"t","body":"b"}`, Call: "POST /repos/acme/shop/issues"}
	comment := actiontest.Sample{Config: `{"action_type":"add_issue_comment",` + inShop + `,"issue_number":5,"comment":"c"}`, Call: "POST /repos/acme/shop/issues/5/comments"}
	onPull := actiontest.Sample{Config: `{"action_type":"add_pr_comment",` + inShop + `,"pr_number":5,"comment":"c"}`, Call: "POST /repos/acme/shop/issues/5/comments"}
	pull := actiontest.Sample{Config: `{"action_type":"create_pull_request",` + inShop + `,"title":"t","head":"h","base":"main"}`, Call: "POST /repos/acme/shop/pulls"}
	release := actiontest.Sample{Config: `{"action_type":"create_release",` + inShop + `,"tag_name":"v1/a"}`, Call: "POST /repos/acme/shop/releases"}
	pulls := actiontest.Sample{Config: `{"action_type":"list_pull_requests",` + inShop + `}`, Call: "GET /repos/acme/shop/pulls"}
	limited := func(status int, header map[string]string, message string) actiontest.Reply {
		return actiontest.Reply{Status: status, Header: header, Body: `{"message":"` + message + `"}`}
	}
	reset := map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10)}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind: act, Serve: newFake, Prefix: "/api/v3", Once: issue, Read: pulls, Settled: []actiontest.Sample{issue, comment, onPull, pull, release}, Pages: pulls, Total: issueCount,
		Refusals: []actiontest.Refusal{
			{Name: "LimitInA403", Sample: issue, Reply: limited(403, reset, "API rate limit exceeded"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 600},
			{Name: "LimitInA429", Sample: pulls, Reply: limited(429, reset, "API rate limit exceeded"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 600},
			{Name: "SecondaryLimit", Sample: issue, Reply: limited(403, nil, "You have exceeded a secondary rate limit."), Code: fault.RateLimited, Retryable: true, AfterSeconds: 60},
			{Name: "SecondaryLimitWithTime", Sample: issue, Reply: limited(403, map[string]string{"Retry-After": "30"}, "secondary rate limit"), Code: fault.RateLimited, Retryable: true, AfterSeconds: 30},
			{Name: "NoRight", Sample: issue, Reply: limited(403, map[string]string{"X-RateLimit-Remaining": "4999"}, "Resource not accessible by personal access token"), Code: fault.CredentialInvalid, Part: "not accessible"},
			{Name: "Validation", Sample: only(`{"action_type":"create_issue",` + inShop + `,"title":"invalid"}`), Code: fault.RemoteRejected, Part: "Validation Failed; title missing_field"},
			{Name: "NoTitle", Sample: only(`{"action_type":"create_issue",` + inShop + `}`), Code: fault.InvalidInput, Part: "title"},
			{Name: "NoRepository", Sample: only(`{"action_type":"create_issue","title":"t"}`), Code: fault.InvalidInput, Part: "repository_config"},
			{Name: "NotARepository", Sample: only(`{"action_type":"create_issue","title":"t","repository_config":{"full_name":"acme/shop/issues"}}`), Code: fault.InvalidInput, Part: "repository_config"},
			{Name: "OtherRepository", Sample: only(`{"action_type":"list_issues","repository_config":{"full_name":"acme/none"}}`), Code: fault.NotFound},
			{Name: "BodyIsNoText", Sample: only(`{"action_type":"create_issue",` + inShop + `,"title":"t","body":{"a":1}}`), Code: fault.InvalidInput, Part: "body"},
			{Name: "StateOfOne", Sample: only(`{"action_type":"update_issue",` + inShop + `,"issue_number":5,"state":"all"}`), Code: fault.InvalidInput, Part: "state"},
			{Name: "NotMergeable", Sample: only(`{"action_type":"merge_pull_request",` + inShop + `,"pr_number":405}`), Code: fault.RemoteRejected, Part: "not mergeable"},
			{Name: "FileIsThere", Sample: only(`{"action_type":"create_file",` + inShop + `,"path":"README.md","content":"new","commit_message":"m"}`), Code: fault.Conflict, Part: "update_file"},
			{Name: "FileIsNotThere", Sample: only(`{"action_type":"update_file",` + inShop + `,"path":"a.md","content":"new","commit_message":"m"}`), Code: fault.NotFound},
			{Name: "AnotherWriter", Sample: actiontest.Sample{Config: `{"action_type":"update_file",` + inShop + `,"path":"README.md","content":"new","commit_message":"m"}`, Call: "GET /repos/acme/shop/contents/README.md"}, Reply: actiontest.Reply{Status: 200, Body: `{"sha":"0000"}`}, Code: fault.Conflict, Part: "does not match"},
			{Name: "FileTooLarge", Sample: only(`{"action_type":"get_file_content",` + inShop + `,"path":"huge.bin"}`), Code: fault.TooLarge},
			{Name: "OutOfTheRepository", Sample: only(`{"action_type":"get_file_content",` + inShop + `,"path":"../../other"}`), Code: fault.InvalidInput},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	const issue, at = "/repos/acme/shop/issues", "https://github.com/acme/shop/"
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "CreateIssue", Config: `{"action_type":"create_issue",` + inShop + `,"title":"t","body":"b","labels":["l"],"assignees":["ann"]}`, Call: "POST " + issue,
			Body: `{"title":"t","labels":["l"],"assignees":["ann"]}`, Text: `b\n\n<!-- tandem `,
			Header: map[string]string{"Authorization": "Bearer " + actiontest.Token, "Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
			Result: `{"success":true,"action":"create_issue","resource_id":"1000","resource_url":"` + at + `issues/1000","github_response":{"number":1000}}`,
		},
		{Name: "RepositoryOfTheInput", Config: `{"action_type":"create_issue","title":"t","body":5}`, Input: `{"owner":"acme","repo":"shop"}`, Call: "POST " + issue, Text: `"5\n\n`},
		{Name: "InputDoesNotChangeIt", Config: `{"action_type":"create_issue",` + inShop + `,"title":"t"}`, Input: `{"owner":"evil","repo":"x","repository_config":{"full_name":"evil/x"}}`, Call: "POST " + issue},
		{Name: "OlderInput", Config: `{"action_type":"create_issue"}`, Input: `{"data":{"title":"t","repository_config":{"full_name":"acme/shop"}}}`, Call: "POST " + issue, Body: `{"title":"t"}`},
		{Name: "Comment", Config: `{"action_type":"add_issue_comment",` + inShop + `,"issue_number":5,"comment":"c"}`, Call: "POST " + issue + "/5/comments", Text: `"c\n\n<!-- tandem `, Result: `{"resource_id":"77","resource_url":"` + at + `issues/5#issuecomment-77"}`},
		{Name: "CommentOnPull", Config: `{"action_type":"add_pr_comment",` + inShop + `,"pr_number":6,"comment":"c"}`, Call: "POST " + issue + "/6/comments"},
		{Name: "Pull", Config: `{"action_type":"create_pull_request",` + inShop + `,"title":"t","head":"h","base":"main","body":"b"}`, Call: "POST /repos/acme/shop/pulls", Body: `{"title":"t","head":"h","base":"main"}`, Result: `{"resource_id":"1000"}`},
		{Name: "Release", Config: `{"action_type":"create_release",` + inShop + `,"tag_name":"v1","body":"notes"}`, Call: "POST /repos/acme/shop/releases", Body: `{"tag_name":"v1"}`, Text: "notes", Result: `{"resource_id":"31","resource_url":"` + at + `releases/tag/v1"}`},
		{Name: "Workflow", Config: `{"action_type":"trigger_workflow",` + inShop + `,"workflow_file":".github/workflows/build.yml","inputs":{"a":"1"}}`, Call: "POST /repos/acme/shop/actions/workflows/build.yml/dispatches", Body: `{"ref":"main","inputs":{"a":"1"}}`, Result: `{"resource_id":"build.yml","github_response":null}`},
		{Name: "WorkflowOfRef", Config: `{"action_type":"trigger_workflow",` + inShop + `,"workflow_file":"build.yml","ref":"dev"}`, Call: "POST /repos/acme/shop/actions/workflows/build.yml/dispatches", Body: `{"ref":"dev"}`},
		{Name: "Update", Config: `{"action_type":"update_issue",` + inShop + `,"issue_number":5,"title":"t","body":"b","state":"open","labels":["l"],"assignees":["bob"]}`, Call: "PATCH " + issue + "/5", Body: `{"title":"t","body":"b","state":"open","labels":["l"],"assignees":["bob"]}`, Result: `{"resource_id":"5"}`},
		{Name: "Close", Config: `{"action_type":"close_issue",` + inShop + `,"issue_number":5}`, Call: "PATCH " + issue + "/5", Body: `{"state":"closed"}`},
		{Name: "Labels", Config: `{"action_type":"add_issue_labels",` + inShop + `,"issue_number":5,"labels":["a","b"]}`, Call: "POST " + issue + "/5/labels", Body: `{"labels":["a","b"]}`, Result: `{"resource_id":"5","github_response":["a","b"]}`},
		{Name: "Merge", Config: `{"action_type":"merge_pull_request",` + inShop + `,"pr_number":9}`, Call: "PUT /repos/acme/shop/pulls/9/merge", Result: `{"resource_id":"9","github_response":{"merged":true}}`},
		{Name: "CreateFile", Config: `{"action_type":"create_file",` + inShop + `,"path":"docs/a b.md","content":"héllo","commit_message":"m"}`, Call: "PUT /repos/acme/shop/contents/docs/a%20b.md", Body: `{"message":"m","content":"aMOpbGxv","branch":"main"}`, Result: `{"resource_id":"` + hashOf("héllo") + `"}`},
		{Name: "UpdateFile", Config: `{"action_type":"update_file",` + inShop + `,"path":"README.md","content":"new","commit_message":"m","branch":"main"}`, Call: "PUT /repos/acme/shop/contents/README.md", Body: `{"sha":"` + hashOf("old") + `"}`, Result: `{"resource_id":"` + hashOf("new") + `"}`},
		{Name: "Issues", Config: `{"action_type":"list_issues",` + inShop + `,"state":"closed","labels":["a","b"],"limit":3}`, Call: "GET " + issue, Query: map[string]string{"state": "closed", "labels": "a,b", "per_page": "3", "page": ""}, Result: `{"truncated":true,"github_response":null}`},
		{Name: "Pulls", Config: `{"action_type":"list_pull_requests",` + inShop + `,"state":"all","base":"main","limit":1}`, Call: "GET /repos/acme/shop/pulls", Query: map[string]string{"state": "all", "base": "main"}},
		{Name: "ReadFile", Config: `{"action_type":"get_file_content",` + inShop + `,"path":"/README.md","ref":"v1"}`, Call: "GET /repos/acme/shop/contents/README.md", Query: map[string]string{"ref": "v1"}, Result: `{"content":"old","file":null,"resource_id":"` + hashOf("old") + `"}`},
		{Name: "ReadDirectory", Config: `{"action_type":"get_file_content",` + inShop + `,"path":"docs"}`, Call: "GET /repos/acme/shop/contents/docs", Result: `{"items":[{"name":"a.md"},{"name":"b.md"}]}`},
		{Name: "Request", Config: `{"action_type":"request","method":"GET","path":"/rate_limit","query":{"a":1}}`, Call: "GET /rate_limit", Query: map[string]string{"a": "1"}, Result: `{"github_response":{"id":1},"rate_limit_info":{"limit":5000,"remaining":4999}}`},
		{Name: "RequestWithBody", Config: `{"action_type":"request","method":"PATCH","path":"/repos/acme/shop/issues/5","body":{"title":"x"}}`, Call: "PATCH " + issue + "/5", Body: `{"title":"x"}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_IssuesOnly: pull requests, which GitHub lists among the issues, are left out over all pages.
func TestAction_IssuesOnly(t *testing.T) {
	t.Parallel()
	all, err := vendor().New(t).Run(`{"action_type":"list_issues",`+inShop+`,"limit":1000}`, ``)
	if err != nil || len(all.Get("items").Array()) != issueCount*4/5 || strings.Contains(all.Raw, "pull_request") {
		t.Errorf("%d issues: %v", len(all.Get("items").Array()), err)
	}
}

// TestAction_Again: what is so already is not done again, and is a success.
func TestAction_Again(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	for _, config := range []string{
		`{"action_type":"merge_pull_request",` + inShop + `,"pr_number":9}`,
		`{"action_type":"create_file",` + inShop + `,"path":"n.md","content":"c","commit_message":"m"}`,
		`{"action_type":"update_file",` + inShop + `,"path":"README.md","content":"c","commit_message":"m"}`,
	} {
		for range 2 {
			if _, err := b.Run(config, ``); err != nil {
				t.Errorf("%s: %v", config, err)
			}
		}
	}
	if n := len(b.Calls("PUT /repos/acme/shop/contents/README.md")); n != 1 {
		t.Errorf("the same content was written %d times", n)
	}
}

// TestAction_Binary: a file that is not a text is kept as one.
func TestAction_Binary(t *testing.T) {
	t.Parallel()
	b, files := vendor().New(t), &nodetest.Files{}
	call := b.Call(`{"action_type":"get_file_content",`+inShop+`,"path":"logo.png"}`, ``)
	call.Files = files
	out, err := b.Kind.Run(context.Background(), call)
	if err != nil || files.Count() != 1 {
		t.Fatalf("%v, %d files", err, files.Count())
	}
	nodetest.CheckDone(t, out.(node.Done), map[string]string{"result": `{"content":"","file":{"name":"logo.png","content_type":"image/png","size":5}}`})
}

// TestAction_NotAsked: GitHub cannot be asked whether it has started a workflow.
func TestAction_NotAsked(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	call := b.Call(`{"action_type":"trigger_workflow",`+inShop+`,"workflow_file":"build.yml"}`, ``)
	if _, err := b.Kind.Inquire(context.Background(), call); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

// TestAction_Moved: a repository that has moved is read where it is now.
func TestAction_Moved(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	b.Answers("GET /repos/acme/shop/issues", actiontest.Reply{Status: 301, Header: map[string]string{"Location": b.URL + "/repos/acme/shop/pulls"}})
	if _, err := b.Run(`{"action_type":"list_issues",`+inShop+`}`, ``); err != nil {
		t.Error(err)
	}
}
