package gitlab

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
)

// acting is one run of an operation.
type acting struct {
	ctx  context.Context
	call *node.Call
	cfg  actionConfig
	api  *rest.API
	// project is where the project is, as a path.
	project string
}

// marker stands in a text where people do not see it.
func (a *acting) marker() string { return action.Hidden(a.call, "gitlab") }

// marked is a text with the marker.
func (a *acting) marked(text string) string { return action.Marked(text, a.marker()) }

// made is the result of an answer that is one resource.
func made(answer rest.Answer, id string) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get(id).String(), answer.Get("web_url").Str, answer.Limits()
	return out
}

// do makes a call whose answer is one resource, with an id.
func (a *acting) do(id string, c rest.Call) (actionResult, error) {
	c.Fields = []string{id}
	answer, err := a.api.Do(a.ctx, c)
	if err != nil {
		return actionResult{}, err
	}
	return made(answer, id), nil
}

func (a *acting) createIssue() (actionResult, error) {
	body := rest.Fields{"title": a.cfg.Title, "description": a.marked(a.cfg.Description)}.Text("labels", strings.Join(a.cfg.Labels, ","))
	return a.do("iid", rest.Call{Method: "POST", Path: a.project + "/issues", Body: body})
}

func (a *acting) createMergeRequest() (actionResult, error) {
	body := rest.Fields{
		"source_branch": a.cfg.SourceBranch, "target_branch": a.cfg.TargetBranch, "title": a.cfg.Title,
		"description": a.marked(a.cfg.Description),
	}
	return a.do("iid", rest.Call{Method: "POST", Path: a.project + "/merge_requests", Body: body})
}

// notes is where the comments are.
func (a *acting) notes() string {
	if a.cfg.ActionType == "add_issue_comment" {
		return a.issue() + "/notes"
	}
	return a.mergeRequest() + "/notes"
}

func (a *acting) comment() (actionResult, error) {
	text, err := rest.Text("body", a.cfg.Body)
	if err != nil {
		return actionResult{}, err
	}
	return a.do("id", rest.Call{Method: "POST", Path: a.notes(), Body: rest.Fields{"body": a.marked(text)}})
}

// triggerPipeline starts a pipeline. GitLab keeps nothing with it by which it could be found again.
func (a *acting) triggerPipeline() (actionResult, error) {
	list := []map[string]string{}
	err := a.cfg.Variables.Each(func(name string, value json.RawMessage) error {
		text, ok := values.Scalar(value)
		if !ok {
			return fault.Newf(fault.InvalidInput, "variables: %q must be a text", name).With("path", "variables")
		}
		list = append(list, map[string]string{"key": name, "value": text})
		return nil
	})
	if err != nil {
		return actionResult{}, err
	}
	body := rest.Fields{"ref": a.cfg.Ref}
	if len(list) > 0 {
		body["variables"] = list
	}
	return a.do("id", rest.Call{Method: "POST", Path: a.project + "/pipeline", Body: body})
}

func (a *acting) issue() string { return a.project + rest.Path("issues", a.cfg.IssueIID) }

func (a *acting) mergeRequest() string { return a.project + rest.Path("merge_requests", a.cfg.MRIID) }

func (a *acting) updateIssue() (actionResult, error) {
	event, ok := map[string]string{"": "", "opened": "reopen", "closed": "close"}[a.cfg.State]
	if !ok {
		return actionResult{}, fault.New(fault.InvalidInput, "state of an issue is opened or closed").With("path", "state")
	}
	body := rest.Fields{}.Text("title", a.cfg.Title).Text("description", a.cfg.Description).Text("labels",
		strings.Join(a.cfg.Labels, ",")).Text("state_event", event)
	return a.do("iid", rest.Call{Method: "PUT", Path: a.issue(), Body: body})
}

func (a *acting) closeIssue() (actionResult, error) {
	return a.do("iid", rest.Call{Method: "PUT", Path: a.issue(), Body: rest.Fields{"state_event": "close"}})
}

// merge merges a merge request. One that is merged already is refused by GitLab, and done.
func (a *acting) merge() (actionResult, error) {
	out, err := a.do("iid", rest.Call{Method: "PUT", Path: a.mergeRequest() + "/merge", Body: rest.Fields{}})
	if rest.Status(err) == 405 || rest.Status(err) == 409 || rest.Status(err) == 422 {
		now, lerr := a.do("iid", rest.Call{Method: "GET", Path: a.mergeRequest()})
		if lerr == nil && gjson.GetBytes(now.Response, "state").Str == "merged" {
			return now, nil
		}
	}
	return out, err
}

// nextPage is the query of the page that follows: GitLab tells its number in a header.
func nextPage(query url.Values, answer rest.Answer) string {
	page := answer.Header.Get("X-Next-Page")
	if page == "" {
		return ""
	}
	next := url.Values{"page": {page}}
	for name, list := range query {
		if name != "page" {
			next[name] = list
		}
	}
	return next.Encode()
}

// pageSize is how many entries GitLab puts on a page at most.
const pageSize = 100

func (a *acting) list(what string) (out actionResult, err error) {
	query := url.Values{"per_page": {strconv.Itoa(min(a.cfg.Limit, pageSize))}}
	if a.cfg.State != "" {
		query.Set("state", a.cfg.State)
	}
	var last rest.Answer
	out.Items, out.NextCursor, last, err = a.api.Listed(a.ctx, rest.Call{Method: "GET", Path: a.project + "/" + what, Query: query},
		a.cfg.Limit, a.cfg.Cursor, nextPage, nil)
	out.RateLimit, out.Response = last.Limits(), json.RawMessage("null")
	return out, err
}

func (a *acting) request() (actionResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	return made(answer, "id"), err
}

// seek looks for a resource that has the marker of the node in a field, among those that were made since the node began.
func (a *acting) seek(where string, query url.Values, field, id string) (actionResult, bool, error) {
	query.Set("per_page", strconv.Itoa(pageSize))
	query.Set("order_by", "created_at")
	query.Set("sort", "desc")
	answer, found, err := a.api.Seek(a.ctx, rest.Call{Method: "GET", Path: where, Query: query}, a.call.Now.Add(-rest.ClockSkew), nextPage,
		func(item gjson.Result) bool { return strings.Contains(item.Get(field).Str, a.marker()) })
	if err != nil || !found {
		return actionResult{}, false, err
	}
	return made(answer, id), true, nil
}

func (a *acting) findIssue() (actionResult, bool, error) {
	return a.seek(a.project+"/issues", url.Values{"state": {"all"}}, "description", "iid")
}

func (a *acting) findMergeRequest() (actionResult, bool, error) {
	query := url.Values{"state": {"all"}, "source_branch": {a.cfg.SourceBranch}, "target_branch": {a.cfg.TargetBranch}}
	return a.seek(a.project+"/merge_requests", query, "description", "iid")
}

func (a *acting) findComment() (actionResult, bool, error) {
	return a.seek(a.notes(), url.Values{}, "body", "id")
}

// file is where a file is: its path is one part of the address.
func (a *acting) file() string {
	return a.project + "/repository/files" + rest.Path(strings.Trim(a.cfg.Path, "/"))
}

func (a *acting) present() (rest.Answer, error) {
	return a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.file(), Query: url.Values{"ref": {a.cfg.Branch}},
		Fields: []string{"content_sha256"}})
}

// same says that the file has the content already.
func (a *acting) same(file rest.Answer) bool {
	sum := sha256.Sum256([]byte(a.cfg.Content))
	return file.Get("content_sha256").Str == hex.EncodeToString(sum[:])
}

func (a *acting) write(method, commit string) (actionResult, error) {
	body := rest.Fields{
		"branch": a.cfg.Branch, "content": base64.StdEncoding.EncodeToString([]byte(a.cfg.Content)), "encoding": "base64", "commit_message": a.cfg.CommitMessage,
	}.Text("last_commit_id", commit)
	return a.do("file_path", rest.Call{Method: method, Path: a.file(), Body: body, Repeatable: true})
}

// createFile writes a file that is not there yet. The same content there is what was to be done.
func (a *acting) createFile() (actionResult, error) {
	out, err := a.write("POST", "")
	if rest.Status(err) != 400 {
		return out, err
	}
	now, lerr := a.present()
	switch {
	case lerr != nil:
		return actionResult{}, err
	case a.same(now):
		return made(now, "file_path"), nil
	}
	return actionResult{}, fault.Newf(fault.Conflict, "%s is there already on %s, with another content; use update_file", a.cfg.Path, a.cfg.Branch).
		With("path", "path")
}

// updateFile replaces the content that the file has now. When somebody else has written it meanwhile, GitLab refuses.
func (a *acting) updateFile() (actionResult, error) {
	now, err := a.present()
	if err != nil {
		return actionResult{}, err
	}
	if a.same(now) {
		return made(now, "file_path"), nil
	}
	return a.write("PUT", now.Get("last_commit_id").Str)
}

func (a *acting) readFile() (actionResult, error) {
	ref := a.cfg.Ref
	if ref == "" {
		ref = "HEAD"
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.file(), Query: url.Values{"ref": {ref}}, Fields: []string{"content"}})
	if err != nil {
		return actionResult{}, err
	}
	out := made(answer, "file_path")
	out.Content, out.File, err = fileref.Decoded(a.ctx, a.call, answer.Get("content").Str, a.cfg.Path)
	return out, err
}
