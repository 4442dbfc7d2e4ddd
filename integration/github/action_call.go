package github

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/fault"
)

func (a *acting) createIssue() (actionResult, error) {
	text, err := a.text()
	if err != nil {
		return actionResult{}, err
	}
	body := rest.Fields{"title": a.cfg.Title, "body": a.marked(text)}.Texts("labels", a.cfg.Labels).Texts("assignees", a.cfg.Assignees)
	return a.do("number", rest.Call{Method: "POST", Path: a.repo + "/issues", Body: body, Fields: []string{"number"}})
}

func (a *acting) comments() string {
	return a.repo + rest.Path("issues", max(a.cfg.IssueNumber, a.cfg.PRNumber), "comments")
}

func (a *acting) comment() (actionResult, error) {
	return a.do("id", rest.Call{Method: "POST", Path: a.comments(),
		Body: rest.Fields{"body": a.marked(a.cfg.Comment)}, Fields: []string{"id"}})
}

func (a *acting) createPullRequest() (actionResult, error) {
	text, err := a.text()
	if err != nil {
		return actionResult{}, err
	}
	body := rest.Fields{"title": a.cfg.Title, "head": a.cfg.Head, "base": a.cfg.Base, "body": a.marked(text)}
	return a.do("number", rest.Call{Method: "POST", Path: a.repo + "/pulls", Body: body, Fields: []string{"number"}})
}

func (a *acting) createRelease() (actionResult, error) {
	text, err := a.text()
	if err != nil {
		return actionResult{}, err
	}
	body := rest.Fields{"tag_name": a.cfg.TagName, "body": a.marked(text)}
	return a.do("id", rest.Call{Method: "POST", Path: a.repo + "/releases", Body: body, Fields: []string{"id"}})
}

// triggerWorkflow starts a workflow. GitHub answers with nothing, and cannot be asked whether it has heard.
func (a *acting) triggerWorkflow() (actionResult, error) {
	ref := a.cfg.Ref
	if ref == "" {
		ref = "main"
	}
	body := rest.Fields{"ref": ref}
	if len(a.cfg.Inputs) > 0 {
		body["inputs"] = a.cfg.Inputs
	}
	file := path.Base(a.cfg.WorkflowFile)
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "POST", Path: a.repo + rest.Path("actions", "workflows", file, "dispatches"),
		Body: body, Wants: rest.Value})
	out := made(answer, "id")
	out.ResourceID = file
	return out, err
}

func (a *acting) issue() string { return a.repo + rest.Path("issues", a.cfg.IssueNumber) }

func (a *acting) updateIssue() (actionResult, error) {
	text, err := a.text()
	if err != nil {
		return actionResult{}, err
	}
	if a.cfg.State == "all" {
		return actionResult{}, fault.New(fault.InvalidInput, "state of an issue is open or closed").With("path", "state")
	}
	body := rest.Fields{}.Text("title", a.cfg.Title).Text("body", text).Text("state", a.cfg.State).Texts("labels",
		a.cfg.Labels).Texts("assignees", a.cfg.Assignees)
	return a.do("number", rest.Call{Method: "PATCH", Path: a.issue(), Body: body, Repeatable: true, Fields: []string{"number"}})
}

func (a *acting) closeIssue() (actionResult, error) {
	return a.do("number", rest.Call{Method: "PATCH", Path: a.issue(), Body: rest.Fields{"state": "closed"},
		Repeatable: true, Fields: []string{"number"}})
}

func (a *acting) addLabels() (actionResult, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: "POST", Path: a.issue() + "/labels", Body: rest.Fields{"labels": a.cfg.Labels}, Repeatable: true, Wants: rest.List,
	})
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.RateLimit = strconv.Itoa(a.cfg.IssueNumber), answer.Limits()
	return out, err
}

// merge merges a pull request. One that is merged already is refused by GitHub, and done.
func (a *acting) merge() (actionResult, error) {
	where := a.repo + rest.Path("pulls", a.cfg.PRNumber)
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "PUT", Path: where + "/merge", Body: rest.Fields{}, Fields: []string{"merged"}})
	if rest.Status(err) == 405 || rest.Status(err) == 409 {
		now, lerr := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: where})
		if lerr == nil && now.Get("merged").Bool() {
			answer, err = now, nil
		}
	}
	out := made(answer, "number")
	out.ResourceID = strconv.Itoa(a.cfg.PRNumber)
	return out, err
}

func (a *acting) listIssues() (actionResult, error) {
	query := url.Values{"state": {a.cfg.State}, "labels": {strings.Join(a.cfg.Labels, ",")}}
	// GitHub lists pull requests among the issues.
	return a.list(a.repo+"/issues", query, func(item gjson.Result) bool { return !item.Get("pull_request").Exists() })
}

func (a *acting) listPullRequests() (actionResult, error) {
	return a.list(a.repo+"/pulls", url.Values{"state": {a.cfg.State}, "base": {a.cfg.Base}}, nil)
}

func (a *acting) list(where string, query url.Values, wanted func(item gjson.Result) bool) (out actionResult, err error) {
	for name := range query {
		if query.Get(name) == "" {
			query.Del(name)
		}
	}
	query.Set("per_page", strconv.Itoa(min(a.cfg.Limit, pageSize)))
	var last rest.Answer
	out.Items, out.NextCursor, last, err = a.api.Listed(a.ctx, rest.Call{Method: "GET", Path: where, Query: query},
		a.cfg.Limit, a.cfg.Cursor, nextPage, wanted)
	out.RateLimit, out.Response = last.Limits(), json.RawMessage("null")
	return out, err
}

// pageSize is how many entries GitHub puts on a page at most.
const pageSize = 100

func (a *acting) request() (actionResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	out := made(answer, "id")
	return out, err
}

// seek looks for the newest resource that has the marker of the node in its body. Lists are of what has changed since the node began, or
// are in the order of their making, the newest first.
func (a *acting) seek(where string, query url.Values, id string) (actionResult, bool, error) {
	query.Set("per_page", strconv.Itoa(pageSize))
	var since time.Time
	if query.Get("direction") == "desc" {
		since = a.began()
	}
	answer, found, err := a.api.Seek(a.ctx, rest.Call{Method: "GET", Path: where, Query: query}, since, nextPage,
		func(item gjson.Result) bool { return strings.Contains(item.Get("body").Str, a.marker()) })
	if err != nil || !found {
		return actionResult{}, false, err
	}
	return made(answer, id), true, nil
}

// began is when the node began, by a clock that may be behind.
func (a *acting) began() time.Time { return a.call.Now.Add(-rest.ClockSkew) }

// nextPage is the query of the page that follows, which GitHub names in a header.
func nextPage(_ url.Values, answer rest.Answer) string { return rest.NextQuery(answer.Header) }

func (a *acting) findIssue() (actionResult, bool, error) {
	return a.seek(a.repo+"/issues", url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"desc"}}, "number")
}

func (a *acting) findPullRequest() (actionResult, bool, error) {
	return a.seek(a.repo+"/pulls", url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"desc"}}, "number")
}

func (a *acting) findComment() (actionResult, bool, error) {
	return a.seek(a.comments(), url.Values{"since": {a.began().UTC().Format(time.RFC3339)}}, "id")
}

func (a *acting) findRelease() (actionResult, bool, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.repo + rest.Path("releases", "tags", a.cfg.TagName)})
	if rest.IsCode(err, fault.NotFound) {
		return actionResult{}, false, nil
	}
	if err != nil || !strings.Contains(answer.Get("body").Str, a.marker()) {
		return actionResult{}, false, err
	}
	return made(answer, "id"), true, nil
}

// encoded is the content of a file as GitHub takes it.
func encoded(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }
