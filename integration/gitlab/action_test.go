package gitlab

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node/nodetest"
)

// fake is version 4 of the API of GitLab with one project, acme/shop. It refuses what the real one refuses.
type fake struct {
	t      testing.TB
	mu     sync.Mutex
	issues []map[string]any // newest first
	merges []map[string]any
	notes  []map[string]any
	files  map[string]string
	merged map[string]bool
}

const issueCount = 250

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t, files: map[string]string{"docs/a.md": "old", "logo.png": "\x89PNG\xff"}, merged: map[string]bool{}}
	for n := range issueCount {
		f.issues = append(f.issues, map[string]any{"iid": issueCount - n, "created_at": nodetest.Start().Add(-time.Hour).Format(time.RFC3339), "description": nil})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"POST /api/v4/projects/{p}/issues":           func(w http.ResponseWriter, r *http.Request) { f.make(w, r, &f.issues, "iid", "title") },
		"GET /api/v4/projects/{p}/issues":            func(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.issues) },
		"PUT /api/v4/projects/{p}/issues/{n}":        f.change,
		"POST /api/v4/projects/{p}/issues/{n}/notes": func(w http.ResponseWriter, r *http.Request) { f.make(w, r, &f.notes, "id", "body") },
		"GET /api/v4/projects/{p}/issues/{n}/notes":  func(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.notes) },
		"POST /api/v4/projects/{p}/merge_requests": func(w http.ResponseWriter, r *http.Request) {
			f.make(w, r, &f.merges, "iid", "source_branch", "target_branch", "title")
		},
		"GET /api/v4/projects/{p}/merge_requests":            func(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.merges) },
		"GET /api/v4/projects/{p}/merge_requests/{n}":        f.mergeRequest,
		"PUT /api/v4/projects/{p}/merge_requests/{n}/merge":  f.merge,
		"POST /api/v4/projects/{p}/merge_requests/{n}/notes": func(w http.ResponseWriter, r *http.Request) { f.make(w, r, &f.notes, "id", "body") },
		"GET /api/v4/projects/{p}/merge_requests/{n}/notes":  func(w http.ResponseWriter, r *http.Request) { f.page(w, r, f.notes) },
		"POST /api/v4/projects/{p}/pipeline":                 func(w http.ResponseWriter, r *http.Request) { f.make(w, r, &[]map[string]any{}, "id", "ref") },
		"GET /api/v4/projects/{p}/repository/files/{file}":   f.read,
		"POST /api/v4/projects/{p}/repository/files/{file}":  f.write,
		"PUT /api/v4/projects/{p}/repository/files/{file}":   f.write,
		"GET /api/v4/version": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"version": "17"})
		},
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.Header.Get("Private-Token") != actiontest.Token {
				actiontest.Write(t, w, 401, map[string]any{"message": "401 Unauthorized"})
				return
			}
			if p := r.PathValue("p"); p != "" && p != "acme/shop" && p != "7" {
				actiontest.Write(t, w, 404, map[string]any{"message": "404 Project Not Found"})
				return
			}
			serve(w, r)
		})
	}
	return m
}

func (f *fake) make(w http.ResponseWriter, r *http.Request, list *[]map[string]any, id string, needs ...string) {
	v := actiontest.Read(f.t, r)
	for _, name := range needs {
		if v[name] == nil || v[name] == "" || v[name] == "invalid" {
			actiontest.Write(f.t, w, 400, map[string]any{"message": map[string]any{name: []any{"can't be blank", "is too short"}}})
			return
		}
	}
	v[id], v["web_url"], v["created_at"] = 1000, "https://gitlab.com/acme/shop/-/x/1000", nodetest.Start().Format(time.RFC3339)
	*list = append([]map[string]any{v}, *list...)
	actiontest.Write(f.t, w, 201, v)
}

func (f *fake) page(w http.ResponseWriter, r *http.Request, list []map[string]any) {
	size, at := min(actiontest.Number(r, "per_page", 20), 100), actiontest.Number(r, "page", 1)
	items, more := actiontest.Part(list, (at-1)*size, size)
	w.Header().Set("X-Next-Page", "")
	if more {
		w.Header().Set("X-Next-Page", strconv.Itoa(at+1))
	}
	w.Header().Set("RateLimit-Limit", "2000")
	actiontest.Write(f.t, w, 200, items)
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	v["iid"], v["web_url"] = 5, "https://gitlab.com/acme/shop/-/issues/5"
	actiontest.Write(f.t, w, 200, v)
}

func (f *fake) merge(w http.ResponseWriter, r *http.Request) {
	if n := r.PathValue("n"); n == "405" || f.merged[n] {
		actiontest.Write(f.t, w, 405, map[string]any{"message": "405 Method Not Allowed"})
		return
	}
	f.merged[r.PathValue("n")] = true
	f.mergeRequest(w, r)
}

func (f *fake) mergeRequest(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		f.t.Error(err)
	}
	state := "opened"
	if f.merged[r.PathValue("n")] {
		state = "merged"
	}
	actiontest.Write(f.t, w, 200, map[string]any{"iid": n, "state": state})
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func (f *fake) read(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, ok := f.files[name]
	if !ok || r.URL.Query().Get("ref") == "" {
		actiontest.Write(f.t, w, 404, map[string]any{"message": "404 File Not Found"})
		return
	}
	actiontest.Write(f.t, w, 200, map[string]any{
		"file_path": name, "content_sha256": hashOf(content), "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(content)), "last_commit_id": "c-" + hashOf(content),
	})
}

func (f *fake) write(w http.ResponseWriter, r *http.Request) {
	v, name := actiontest.Read(f.t, r), r.PathValue("file")
	content, err := base64.StdEncoding.DecodeString(v["content"].(string))
	if err != nil || v["encoding"] != "base64" || v["branch"] != "main" || v["commit_message"] == nil {
		f.t.Errorf("a commit of %v", v)
	}
	old, there := f.files[name]
	switch {
	case there && r.Method == "POST":
		actiontest.Write(f.t, w, 400, map[string]any{"message": "A file with this name already exists"})
		return
	case there && v["last_commit_id"] != "c-"+hashOf(old):
		actiontest.Write(f.t, w, 400, map[string]any{"message": "You are attempting to update a file that has changed since you started editing it."})
		return
	}
	f.files[name] = string(content)
	actiontest.Write(f.t, w, 201, map[string]any{"file_path": name, "branch": "main"})
}

const (
	inShop = `"project":"acme/shop"`
	at     = "/api/v4/projects/acme%2Fshop"
)

func vendor() actiontest.Vendor {
	issue := actiontest.Sample{Config: `{"action_type":"create_issue",` + inShop + `,"title":"t"}`, Call: "POST " + at + "/issues"}
	note := actiontest.Sample{Config: `{"action_type":"add_issue_comment",` + inShop + `,"issue_iid":5,"body":"c"}`, Call: "POST " + at + "/issues/5/notes"}
	onMerge := actiontest.Sample{Config: `{"action_type":"add_merge_request_comment",` + inShop + `,"mr_iid":5,"body":"c"}`, Call: "POST " + at + "/merge_requests/5/notes"}
	merge := actiontest.Sample{Config: `{"action_type":"create_merge_request",` + inShop + `,"title":"t","source_branch":"s","target_branch":"main"}`, Call: "POST " + at + "/merge_requests"}
	list := actiontest.Sample{Config: `{"action_type":"list_issues",` + inShop + `}`, Call: "GET " + at + "/issues"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind: act, Serve: newFake, Prefix: "/gitlab", Once: issue, Read: list, Settled: []actiontest.Sample{issue, note, onMerge, merge}, Pages: list, Total: issueCount,
		Refusals: []actiontest.Refusal{
			{Name: "Validation", Sample: only(`{"action_type":"create_issue",` + inShop + `,"title":"invalid"}`), Code: fault.RemoteRejected, Part: "title can't be blank; title is too short"},
			{Name: "NoTitle", Sample: only(`{"action_type":"create_issue",` + inShop + `}`), Code: fault.InvalidInput, Part: "title"},
			{Name: "NoProject", Sample: only(`{"action_type":"create_issue","title":"t"}`), Code: fault.InvalidInput, Part: "project"},
			{Name: "OtherProject", Sample: only(`{"action_type":"list_issues","project":"acme/none"}`), Code: fault.NotFound, Part: "Project Not Found"},
			{Name: "BodyIsNoText", Sample: only(`{"action_type":"add_issue_comment",` + inShop + `,"issue_iid":5,"body":[1]}`), Code: fault.InvalidInput, Part: "body"},
			{Name: "StateOfOne", Sample: only(`{"action_type":"update_issue",` + inShop + `,"issue_iid":5,"state":"all"}`), Code: fault.InvalidInput, Part: "state"},
			{Name: "NotMergeable", Sample: only(`{"action_type":"merge_merge_request",` + inShop + `,"mr_iid":405}`), Code: fault.RemoteRejected},
			{Name: "VariableIsNoText", Sample: only(`{"action_type":"trigger_pipeline",` + inShop + `,"ref":"main","variables":{"A":{}}}`), Code: fault.InvalidInput, Part: "variables"},
			{Name: "FileIsThere", Sample: only(`{"action_type":"create_file",` + inShop + `,"path":"docs/a.md","content":"new","branch":"main","commit_message":"m"}`), Code: fault.Conflict, Part: "update_file"},
			{Name: "FileIsNotThere", Sample: only(`{"action_type":"update_file",` + inShop + `,"path":"b.md","content":"new","branch":"main","commit_message":"m"}`), Code: fault.NotFound},
			{Name: "AnotherWriter", Sample: actiontest.Sample{Config: `{"action_type":"update_file",` + inShop + `,"path":"docs/a.md","content":"new","branch":"main","commit_message":"m"}`, Call: "GET " + at + "/repository/files/docs%2Fa.md"}, Reply: actiontest.Reply{Status: 200, Body: `{"content_sha256":"0","last_commit_id":"older"}`}, Code: fault.Conflict, Part: "has changed"},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "CreateIssue", Config: `{"action_type":"create_issue",` + inShop + `,"title":"t","description":"d","labels":["a","b"]}`, Call: "POST " + at + "/issues",
			Body: `{"title":"t","labels":"a,b"}`, Text: `d\n\n<!-- tandem `, Header: map[string]string{"Private-Token": actiontest.Token},
			Result: `{"success":true,"action":"create_issue","resource_id":"1000","resource_url":"https://gitlab.com/acme/shop/-/x/1000"}`,
		},
		{Name: "ProjectByNumber", Config: `{"action_type":"create_issue","project":7,"title":"t"}`, Call: "POST /api/v4/projects/7/issues", Text: `"<!-- tandem `},
		{Name: "InputFills", Config: `{"action_type":"create_issue",` + inShop + `}`, Input: `{"data":{"title":"t","project":"evil/x"}}`, Call: "POST " + at + "/issues", Body: `{"title":"t"}`},
		{Name: "Comment", Config: `{"action_type":"add_issue_comment",` + inShop + `,"issue_iid":5,"body":"c"}`, Call: "POST " + at + "/issues/5/notes", Text: `"c\n\n<!-- tandem `, Result: `{"resource_id":"1000"}`},
		{Name: "CommentOnMerge", Config: `{"action_type":"add_merge_request_comment",` + inShop + `,"mr_iid":6,"body":"c"}`, Call: "POST " + at + "/merge_requests/6/notes"},
		{Name: "MergeRequest", Config: `{"action_type":"create_merge_request",` + inShop + `,"title":"t","source_branch":"s","target_branch":"main","description":"d"}`, Call: "POST " + at + "/merge_requests", Body: `{"title":"t","source_branch":"s","target_branch":"main"}`, Text: "d\\n\\n<!--"},
		{Name: "Pipeline", Config: `{"action_type":"trigger_pipeline",` + inShop + `,"ref":"main","variables":{"A":1,"B":"x"}}`, Call: "POST " + at + "/pipeline", Body: `{"ref":"main","variables":[{"key":"A","value":"1"},{"key":"B","value":"x"}]}`, Result: `{"resource_id":"1000"}`},
		{Name: "Update", Config: `{"action_type":"update_issue",` + inShop + `,"issue_iid":5,"title":"t","description":"d","labels":["a"],"state":"opened"}`, Call: "PUT " + at + "/issues/5", Body: `{"title":"t","description":"d","labels":"a","state_event":"reopen"}`, Result: `{"resource_id":"5"}`},
		{Name: "Close", Config: `{"action_type":"close_issue",` + inShop + `,"issue_iid":5}`, Call: "PUT " + at + "/issues/5", Body: `{"state_event":"close"}`},
		{Name: "Merge", Config: `{"action_type":"merge_merge_request",` + inShop + `,"mr_iid":9}`, Call: "PUT " + at + "/merge_requests/9/merge", Result: `{"resource_id":"9","gitlab_response":{"state":"merged"}}`},
		{Name: "CreateFile", Config: `{"action_type":"create_file",` + inShop + `,"path":"/docs/b c.md","content":"héllo","branch":"main","commit_message":"m"}`, Call: "POST " + at + "/repository/files/docs%2Fb%20c.md", Body: `{"content":"aMOpbGxv","commit_message":"m"}`, Result: `{"resource_id":"docs/b c.md"}`},
		{Name: "UpdateFile", Config: `{"action_type":"update_file",` + inShop + `,"path":"docs/a.md","content":"new","branch":"main","commit_message":"m"}`, Call: "PUT " + at + "/repository/files/docs%2Fa.md", Body: `{"last_commit_id":"c-` + hashOf("old") + `"}`},
		{Name: "Issues", Config: `{"action_type":"list_issues",` + inShop + `,"state":"closed","limit":2}`, Call: "GET " + at + "/issues", Query: map[string]string{"state": "closed", "per_page": "2"}, Result: `{"items":[{"iid":250},{"iid":249}],"truncated":true,"rate_limit_info":{"limit":2000},"gitlab_response":null}`},
		{Name: "MergeRequests", Config: `{"action_type":"list_merge_requests",` + inShop + `,"state":"merged"}`, Call: "GET " + at + "/merge_requests", Query: map[string]string{"state": "merged"}, Result: `{"items":[]}`},
		{Name: "File", Config: `{"action_type":"get_file",` + inShop + `,"path":"docs/a.md"}`, Call: "GET " + at + "/repository/files/docs%2Fa.md", Query: map[string]string{"ref": "HEAD"}, Result: `{"content":"old","file":null,"resource_id":"docs/a.md"}`},
		{Name: "FileOfRef", Config: `{"action_type":"get_file",` + inShop + `,"path":"docs/a.md","ref":"v1"}`, Call: "GET " + at + "/repository/files/docs%2Fa.md", Query: map[string]string{"ref": "v1"}},
		{Name: "Request", Config: `{"action_type":"request","method":"GET","path":"/version","query":{"a":1}}`, Call: "GET /api/v4/version", Query: map[string]string{"a": "1"}, Result: `{"gitlab_response":{"version":"17"}}`},
		{Name: "RequestOfWholePath", Config: `{"action_type":"request","method":"PUT","path":"/api/v4/projects/7/issues/5","body":{"title":"x"}}`, Call: "PUT /api/v4/projects/7/issues/5", Body: `{"title":"x"}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_Again: what is so already is not done again, and is a success.
func TestAction_Again(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	for _, config := range []string{
		`{"action_type":"merge_merge_request",` + inShop + `,"mr_iid":9}`,
		`{"action_type":"create_file",` + inShop + `,"path":"n.md","content":"c","branch":"main","commit_message":"m"}`,
		`{"action_type":"update_file",` + inShop + `,"path":"docs/a.md","content":"c","branch":"main","commit_message":"m"}`,
	} {
		for range 2 {
			if _, err := b.Run(config, ``); err != nil {
				t.Errorf("%s: %v", config, err)
			}
		}
	}
	if n := len(b.Calls("PUT " + at + "/repository/files")); n != 1 {
		t.Errorf("the same content was written %d times", n)
	}
}

// TestAction_NotAsked: GitLab cannot be asked whether it has started a pipeline.
func TestAction_NotAsked(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	if _, err := b.Kind.Inquire(context.Background(), b.Call(`{"action_type":"trigger_pipeline",`+inShop+`,"ref":"main"}`, ``)); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

// TestAction_Binary: a file that is not a text is kept as one.
func TestAction_Binary(t *testing.T) {
	t.Parallel()
	b, files := vendor().New(t), &nodetest.Files{}
	call := b.Call(`{"action_type":"get_file",`+inShop+`,"path":"logo.png"}`, ``)
	call.Files = files
	if _, err := b.Kind.Run(context.Background(), call); err != nil || files.Count() != 1 {
		t.Errorf("%v, %d files", err, files.Count())
	}
}
