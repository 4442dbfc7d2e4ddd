package jira

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// fake is Jira: version 3 of its API as the cloud has it, version 2 as own servers do. It refuses what the real one refuses.
type fake struct {
	t        testing.TB
	mu       sync.Mutex
	issues   []map[string]any // newest first
	comments []map[string]any
}

const issueCount = 250

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t}
	for n := range issueCount {
		f.issues = append(f.issues, map[string]any{"key": "SHOP-" + strconv.Itoa(issueCount-n), "fields": map[string]any{"summary": "t"}})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"POST /rest/api/{v}/issue": f.create, "GET /rest/api/{v}/issue/{key}": f.get, "PUT /rest/api/{v}/issue/{key}": f.change, "PUT /rest/api/{v}/issue/{key}/assignee": f.change,
		"GET /rest/api/{v}/issue/{key}/properties/tandem": f.property, "POST /rest/api/{v}/issue/{key}/comment": f.comment, "GET /rest/api/{v}/issue/{key}/comment": f.listComments,
		"GET /rest/api/{v}/issue/{key}/transitions": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"transitions": []any{
				map[string]any{"id": "11", "name": "Start", "to": map[string]any{"name": "In Progress"}}, map[string]any{"id": "21", "name": "Finish", "to": map[string]any{"name": "Done"}},
			}})
		},
		"POST /rest/api/{v}/issue/{key}/transitions": f.change, "POST /rest/api/{v}/issue/{key}/attachments": f.attach, "POST /rest/api/3/search/jql": f.searchCloud, "POST /rest/api/2/search": f.searchServer,
		"GET /rest/api/3/field": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, []any{map[string]any{"id": "summary"}})
		},
		"PUT /rest/api/3/thing": func(w http.ResponseWriter, r *http.Request) { actiontest.Write(t, w, 200, actiontest.Read(t, r)) },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if user, password, ok := r.BasicAuth(); (!ok || user != "ann@example.com" || password != actiontest.Token) && r.Header.Get("Authorization") != "Bearer "+actiontest.Token {
				actiontest.Write(t, w, 401, map[string]any{"errorMessages": []any{"Client must be authenticated to access this resource."}})
				return
			}
			serve(w, r)
		})
	}
	return m
}

func wrong(field, text string) map[string]any {
	return map[string]any{"errorMessages": []any{}, "errors": map[string]any{field: text}}
}

// isText says that a text has the form of the version.
func isText(r *http.Request, v any) bool {
	document, isDocument := v.(map[string]any)
	if r.PathValue("v") == "3" {
		return isDocument && document["type"] == "doc" && document["version"] == 1.0
	}
	_, ok := v.(string)
	return ok
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	fields, _ := v["fields"].(map[string]any)
	project, _ := fields["project"].(map[string]any)
	if project["key"] != "SHOP" {
		actiontest.Write(f.t, w, 400, wrong("project", "valid project is required"))
		return
	}
	if d := fields["description"]; d != nil && !isText(r, d) {
		actiontest.Write(f.t, w, 400, wrong("description", "Operation value must be an Atlassian Document"))
		return
	}
	v["key"] = "SHOP-1000"
	f.issues = append([]map[string]any{v}, f.issues...)
	actiontest.Write(f.t, w, 201, map[string]any{"id": "1", "key": "SHOP-1000"})
}

func (f *fake) find(w http.ResponseWriter, r *http.Request) map[string]any {
	i := slices.IndexFunc(f.issues, func(v map[string]any) bool { return v["key"] == r.PathValue("key") })
	if i < 0 {
		actiontest.Write(f.t, w, 404, map[string]any{"errorMessages": []any{"Issue does not exist or you do not have permission to see it."}})
		return nil
	}
	return f.issues[i]
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	if v := f.find(w, r); v != nil {
		actiontest.Write(f.t, w, 200, v)
	}
}

func (f *fake) property(w http.ResponseWriter, r *http.Request) {
	v := f.find(w, r)
	if v == nil {
		return
	}
	if list, _ := v["properties"].([]any); len(list) > 0 {
		actiontest.Write(f.t, w, 200, list[0])
		return
	}
	actiontest.Write(f.t, w, 404, map[string]any{"errorMessages": []any{"The property does not exist."}})
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	if f.find(w, r) == nil {
		return
	}
	v := actiontest.Read(f.t, r)
	if fields, _ := v["fields"].(map[string]any); fields["description"] != nil && !isText(r, fields["description"]) {
		actiontest.Write(f.t, w, 400, wrong("description", "Operation value must be an Atlassian Document"))
		return
	}
	w.WriteHeader(204)
}

func (f *fake) comment(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	if !isText(r, v["body"]) {
		actiontest.Write(f.t, w, 400, wrong("comment", "Comment body is not valid!"))
		return
	}
	v["id"] = "77"
	f.comments = append(f.comments, v)
	actiontest.Write(f.t, w, 201, map[string]any{"id": "77", "body": v["body"]})
}

func (f *fake) listComments(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("expand") != "properties" {
		f.t.Errorf("it lists comments with %s", r.URL.RawQuery)
	}
	list, _ := actiontest.Part(f.comments, actiontest.Number(r, "startAt", 0), 1)
	actiontest.Write(f.t, w, 200, map[string]any{"comments": list, "total": len(f.comments)})
}

func (f *fake) attach(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Atlassian-Token") != "no-check" {
		w.WriteHeader(403)
		return
	}
	_, file, err := r.FormFile("file")
	if err != nil {
		f.t.Errorf("the form has no file: %v", err)
		return
	}
	actiontest.Write(f.t, w, 200, []any{map[string]any{"id": "31", "filename": file.Filename, "size": file.Size, "content": "https://a.example.com/attachment/31"}})
}

func (f *fake) searchCloud(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	token, _ := v["nextPageToken"].(string)
	from, _ := strconv.Atoi(strings.TrimPrefix(token, "token"))
	list, more := actiontest.Part(f.issues, from, min(int(v["maxResults"].(float64)), 100))
	answer := map[string]any{"issues": list, "isLast": !more}
	if more {
		answer["nextPageToken"] = fmt.Sprint("token", from+len(list))
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *fake) searchServer(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	from := int(v["startAt"].(float64))
	list, _ := actiontest.Part(f.issues, from, min(int(v["maxResults"].(float64)), 100))
	actiontest.Write(f.t, w, 200, map[string]any{"issues": list, "startAt": from, "total": len(f.issues)})
}

// vendor is Jira with a version of its API.
func vendor(version string) actiontest.Vendor {
	with := func(config string) string { return strings.Replace(config, "{", `{"api_version":`+version+`,`, 1) }
	at := "/rest/api/" + version
	issue := actiontest.Sample{Config: with(`{"action_type":"create_issue","project_key":"SHOP","summary":"t","description":"d"}`), Call: "POST " + at + "/issue"}
	comment := actiontest.Sample{Config: with(`{"action_type":"add_comment","issue_key":"SHOP-5","body":"c"}`), Call: "POST " + at + "/issue/SHOP-5/comment"}
	get := actiontest.Sample{Config: with(`{"action_type":"get_issue","issue_key":"SHOP-5"}`), Call: "GET " + at + "/issue/SHOP-5"}
	search := actiontest.Sample{Config: with(`{"action_type":"search_issues","jql":"project = SHOP"}`), Call: "POST " + at + "/search"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: with(config)} }
	v := actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Serve: newFake, Prefix: "/jira", Once: issue, Read: get,
		Settled: []actiontest.Sample{comment}, Unsure: []actiontest.Sample{issue}, Pages: search, Total: issueCount,
		Refusals: []actiontest.Refusal{
			{Name: "Validation", Sample: only(`{"action_type":"create_issue","project_key":"NONE","summary":"t"}`), Code: fault.RemoteRejected, Part: "project: valid project is required"},
			{Name: "NoProject", Sample: only(`{"action_type":"create_issue","summary":"t"}`), Code: fault.InvalidInput, Part: "project_key"},
			{Name: "NoSummary", Sample: only(`{"action_type":"create_issue","project_key":"SHOP"}`), Code: fault.InvalidInput, Part: "summary"},
			{Name: "OtherIssue", Sample: only(`{"action_type":"get_issue","issue_key":"SHOP-9999"}`), Code: fault.NotFound, Part: "does not exist"},
			{Name: "OtherTransition", Sample: only(`{"action_type":"transition_issue","issue_key":"SHOP-5","transition":"Fly"}`), Code: fault.InvalidInput, Part: "open are: Start, Finish"},
			{Name: "TransitionsAway", Sample: actiontest.Sample{Config: with(`{"action_type":"transition_issue","issue_key":"SHOP-5","transition":"Start"}`), Call: "GET " + at + "/issue/SHOP-5/transitions"}, Reply: actiontest.Reply{Status: 502}, Code: fault.RemoteError, Retryable: true},
			{Name: "TransitionLost", Sample: actiontest.Sample{Config: with(`{"action_type":"transition_issue","issue_key":"SHOP-5","transition":"Start"}`), Call: "POST " + at + "/issue/SHOP-5/transitions"}, Reply: actiontest.Reply{Status: 502}, Code: fault.OutcomeUnknown},
			{Name: "NoParameter", Sample: only(`{"action_type":"search_issues","jql":"project = :p"}`), Code: fault.InvalidInput, Part: "jql_params"},
			{Name: "ParameterIsAnObject", Sample: only(`{"action_type":"search_issues","jql":"project = :p","jql_params":{"p":{}}}`), Code: fault.InvalidInput, Part: "jql_params"},
			{Name: "FieldsOfASearch", Sample: only(`{"action_type":"search_issues","jql":"x","fields":{"a":1}}`), Code: fault.InvalidInput, Part: "fields"},
			{Name: "FieldsOfAnIssue", Sample: only(`{"action_type":"update_issue","issue_key":"SHOP-5","fields":["a"]}`), Code: fault.InvalidInput, Part: "fields"},
			{Name: "BodyIsNoText", Sample: only(`{"action_type":"add_comment","issue_key":"SHOP-5","body":[1]}`), Code: fault.InvalidInput, Part: "body"},
		},
	}
	if version == "3" {
		v.Credential = map[string]string{"email": "ann@example.com"}
	}
	return v
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	const issue = "/rest/api/3/issue"
	vendor("3").Operations(t, []actiontest.Operation{
		{
			Name: "Create", Config: `{"action_type":"create_issue","project_key":"SHOP","summary":"t","description":"one\ntwo\n\nthree","fields":{"labels":["a"],"environment":"e"}}`, Call: "POST " + issue,
			Body: `{"fields":{"project":{"key":"SHOP"},"summary":"t","issuetype":{"name":"Task"},"labels":["a"],
				"environment":{"type":"doc","version":1,"content":[{"type":"paragraph","content":[{"type":"text","text":"e"}]}]},
				"description":{"type":"doc","version":1,"content":[{"type":"paragraph","content":[{"type":"text","text":"one"},{"type":"hardBreak"},{"type":"text","text":"two"}]},{"type":"paragraph","content":[{"type":"text","text":"three"}]}]}},
				"properties":[{"key":"tandem"}]}`,
			Result: `{"success":true,"action":"create_issue","resource_id":"SHOP-1000","jira_response":{"key":"SHOP-1000"}}`,
		},
		{Name: "CreateOfAType", Config: `{"action_type":"create_issue","summary":"t","issue_type":"Bug"}`, Input: `{"data":{"project_key":"SHOP"}}`, Call: "POST " + issue, Body: `{"fields":{"issuetype":{"name":"Bug"}}}`},
		{Name: "Comment", Config: `{"action_type":"add_comment","issue_key":"SHOP-5","body":"c"}`, Call: "POST " + issue + "/SHOP-5/comment", Body: `{"body":{"type":"doc"},"properties":[{"key":"tandem"}]}`, Result: `{"resource_id":"77"}`},
		{Name: "CommentOfADocument", Config: `{"action_type":"add_comment","issue_key":"SHOP-5","body":{"type":"doc","version":1,"content":[]}}`, Call: "POST " + issue + "/SHOP-5/comment", Body: `{"body":{"type":"doc","version":1,"content":[]}}`},
		{Name: "MoveByName", Config: `{"action_type":"transition_issue","issue_key":"SHOP-5","transition":"finish"}`, Call: "POST " + issue + "/SHOP-5/transitions", Body: `{"transition":{"id":"21"}}`, Result: `{"resource_id":"SHOP-5","jira_response":null}`},
		{Name: "MoveByID", Config: `{"action_type":"transition_issue","issue_key":"SHOP-5","transition":11}`, Call: "POST " + issue + "/SHOP-5/transitions", Body: `{"transition":{"id":"11"}}`},
		{Name: "MoveToStatus", Config: `{"action_type":"transition_issue","issue_key":"SHOP-5","transition":"Done"}`, Call: "POST " + issue + "/SHOP-5/transitions", Body: `{"transition":{"id":"21"}}`},
		{Name: "Attach", Config: `{"action_type":"add_attachment","issue_key":"SHOP-5","file":{"base64":"aGVsbG8=","name":"a \"b\".txt"}}`, Call: "POST " + issue + "/SHOP-5/attachments", Text: "hello", Result: `{"resource_id":"31","resource_url":"https://a.example.com/attachment/31","jira_response":[{"id":"31","size":5}]}`},
		{Name: "Update", Config: `{"action_type":"update_issue","issue_key":"SHOP-5","fields":{"summary":"s","description":"d"}}`, Call: "PUT " + issue + "/SHOP-5", Body: `{"fields":{"summary":"s","description":{"type":"doc"}}}`, Result: `{"resource_id":"SHOP-5"}`},
		{Name: "Assign", Config: `{"action_type":"assign_issue","issue_key":"SHOP-5","account_id":"u1"}`, Call: "PUT " + issue + "/SHOP-5/assignee", Body: `{"accountId":"u1"}`},
		{Name: "Get", Config: `{"action_type":"get_issue","issue_key":"SHOP-5"}`, Call: "GET " + issue + "/SHOP-5", Result: `{"resource_id":"SHOP-5","jira_response":{"fields":{"summary":"t"}}}`},
		{
			Name: "Search", Config: `{"action_type":"search_issues","jql":"project = :p AND summary ~ \"a: 'b\" AND n > :n AND x in :l AND y is :none AND z = :t","jql_params":{"p":"a\"b\\","n":5,"l":["x",1],"none":null,"t":true},"fields":["summary"],"limit":2}`,
			Call: "POST /rest/api/3/search/jql", Body: `{"jql":"project = \"a\\\"b\\\\\" AND summary ~ \"a: 'b\" AND n > 5 AND x in (\"x\", 1) AND y is EMPTY AND z = \"true\"","fields":["summary"],"maxResults":2}`,
			Result: `{"items":[{"key":"SHOP-250"},{"key":"SHOP-249"}],"truncated":true,"next_cursor":"token2"}`,
		},
		{Name: "SearchAllFields", Config: `{"action_type":"search_issues","jql":"x","limit":1}`, Call: "POST /rest/api/3/search/jql", Body: `{"fields":["*navigable"]}`},
		{Name: "Transitions", Config: `{"action_type":"list_transitions","issue_key":"SHOP-5"}`, Call: "GET " + issue + "/SHOP-5/transitions", Result: `{"items":[{"id":"11"},{"id":"21"}],"truncated":false}`},
		{Name: "Request", Config: `{"action_type":"request","method":"GET","path":"/rest/api/3/field","query":{"a":1}}`, Call: "GET /rest/api/3/field", Query: map[string]string{"a": "1"}, Result: `{"jira_response":[{"id":"summary"}]}`},
		{Name: "RequestWithBody", Config: `{"action_type":"request","method":"PUT","path":"/rest/api/3/thing","body":{"a":1}}`, Call: "PUT /rest/api/3/thing", Body: `{"a":1}`},
	})
}

// TestAction_OwnServer: version 2 takes texts as they are, and people by their names.
func TestAction_OwnServer(t *testing.T) {
	t.Parallel()
	b := vendor("2").New(t)
	for config, want := range map[string]string{
		`{"api_version":2,"action_type":"create_issue","project_key":"SHOP","summary":"t","description":"d"}`:    `"description":"d"`,
		`{"api_version":2,"action_type":"add_comment","issue_key":"SHOP-5","body":"c"}`:                          `"body":"c"`,
		`{"api_version":2,"action_type":"assign_issue","issue_key":"SHOP-5","account_id":"ann"}`:                 `{"name":"ann"}`,
		`{"api_version":2,"action_type":"update_issue","issue_key":"SHOP-5","fields":{"description":"changed"}}`: `"description":"changed"`,
	} {
		before := len(b.Calls(""))
		if _, err := b.Run(config, ``); err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		calls := b.Calls("")[before:]
		if len(calls) != 1 || !strings.Contains(string(calls[0].Body), want) || calls[0].Header.Get("Authorization") != "Bearer "+actiontest.Token {
			t.Errorf("%s: sent %s with %v", config, calls[0].Body, calls[0].Header)
		}
	}
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		t.Run("Version"+version, func(t *testing.T) {
			t.Parallel()
			vendor(version).Failures(t)
		})
	}
}
