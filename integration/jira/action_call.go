package jira

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/payload"
)

// acting is one run of an operation.
type acting struct {
	ctx     context.Context
	call    *node.Call
	cfg     actionConfig
	api     *rest.API
	version int
	// rest is where the API is, as a path.
	rest string
}

// property is where an issue and a comment keep the marker of the node that has made them. People do not see it.
const property = "tandem"

func (a *acting) properties() any {
	return []any{map[string]any{"key": property, "value": map[string]string{"id": action.Marker(a.call, "jira")}}}
}

func (a *acting) issue() string { return a.rest + rest.Path("issue", a.cfg.IssueKey) }

// about is a result about an issue.
func (a *acting) about(answer rest.Answer, key string) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.RateLimit = key, answer.Limits()
	if key != "" {
		out.ResourceURL = a.api.Base.String() + "/browse/" + url.PathEscape(key)
	}
	return out
}

func (a *acting) createIssue() (actionResult, error) {
	fields, err := proseFields(a.version, a.cfg.FieldValues)
	if err != nil {
		return actionResult{}, err
	}
	if a.cfg.ProjectKey != "" {
		fields["project"] = values.Encode(map[string]string{"key": a.cfg.ProjectKey})
	}
	if fields["project"] == nil {
		return actionResult{}, fault.New(fault.InvalidInput, "create_issue needs project_key: set it in the configurations, or let the input bring it").
			With("path", "project_key")
	}
	fields["summary"], fields["issuetype"] = values.Encode(a.cfg.Summary), values.Encode(map[string]string{"name": a.cfg.IssueType})
	if !payload.IsNull(a.cfg.Description) {
		if fields["description"], err = prose(a.version, "description", a.cfg.Description); err != nil {
			return actionResult{}, err
		}
	}
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: "POST", Path: a.rest + "/issue", Body: rest.Fields{"fields": fields, "properties": a.properties()}, Fields: []string{"key"},
	})
	return a.about(answer, answer.Get("key").Str), err
}

// comments is the result that is a comment.
func (a *acting) commented(answer rest.Answer) actionResult {
	out := a.about(answer, a.cfg.IssueKey)
	out.ResourceID = answer.Get("id").String()
	out.ResourceURL += "?focusedCommentId=" + url.QueryEscape(out.ResourceID)
	return out
}

func (a *acting) comment() (actionResult, error) {
	text, err := prose(a.version, "body", a.cfg.Body)
	if err != nil {
		return actionResult{}, err
	}
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: "POST", Path: a.issue() + "/comment", Body: rest.Fields{"body": text, "properties": a.properties()}, Fields: []string{"id"},
	})
	return a.commented(answer), err
}

func (a *acting) transitions() (rest.Answer, error) {
	return a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.issue() + "/transitions", Fields: []string{"transitions"}})
}

func (a *acting) listTransitions() (actionResult, error) {
	answer, err := a.transitions()
	out := actionResult{Response: json.RawMessage("null")}
	out.Items, out.RateLimit = rest.Items(answer.Get("transitions")), answer.Limits()
	return out, err
}

// move takes an issue along a transition that is open to it now.
func (a *acting) move() (actionResult, error) {
	answer, err := a.transitions()
	if err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	list := answer.Get("transitions").Array()
	wish := string(a.cfg.Transition)
	i := slices.IndexFunc(list, func(t gjson.Result) bool { return t.Get("id").String() == wish })
	for _, name := range []string{"name", "to.name"} {
		if i < 0 {
			i = slices.IndexFunc(list, func(t gjson.Result) bool { return strings.EqualFold(t.Get(name).Str, wish) })
		}
	}
	if i < 0 {
		var open []string
		for _, t := range list {
			open = append(open, t.Get("name").Str)
		}
		return actionResult{}, fault.Newf(fault.InvalidInput, "%s has no transition %q now; open are: %s", a.cfg.IssueKey,
			wish, strings.Join(open, ", ")).
			With("path", "transition").With("transitions", open)
	}
	body := rest.Fields{"transition": map[string]string{"id": list[i].Get("id").String()}}
	answer, err = a.api.Do(a.ctx, rest.Call{Method: "POST", Path: a.issue() + "/transitions", Body: body, Wants: rest.Value})
	return a.about(answer, a.cfg.IssueKey), err
}

// maxFile is how large a file may be that is attached; a site may take less.
const maxFile = 1 << 30

func (a *acting) attach(store *files.Store) (actionResult, error) {
	source, err := fileref.Open(a.ctx, store, a.call, a.cfg.File, "file", maxFile)
	if err != nil {
		return actionResult{}, err
	}
	open, size, contentType, err := source.Form("file")
	if err != nil {
		return actionResult{}, err
	}
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: "POST", Path: a.issue() + "/attachments", Open: open, Size: size, ContentType: contentType, Wants: rest.List, Fields: []string{"0.id"},
		Header: http.Header{"X-Atlassian-Token": {"no-check"}}, // what a browser would send is refused otherwise
	})
	out := a.about(answer, a.cfg.IssueKey)
	out.ResourceID, out.ResourceURL = answer.Get("0.id").String(), answer.Get("0.content").Str
	return out, err
}

func (a *acting) update() (actionResult, error) {
	fields, err := proseFields(a.version, a.cfg.FieldValues)
	if err != nil {
		return actionResult{}, err
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "PUT", Path: a.issue(), Body: rest.Fields{"fields": fields}, Wants: rest.Value})
	return a.about(answer, a.cfg.IssueKey), err
}

// assign names somebody. Own servers know people by their names, the cloud by ids.
func (a *acting) assign() (actionResult, error) {
	who := "name"
	if a.version == 3 || a.api.Fields.Get("email").Str != "" {
		who = "accountId"
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "PUT", Path: a.issue() + "/assignee",
		Body: rest.Fields{who: a.cfg.AccountID}, Wants: rest.Value})
	return a.about(answer, a.cfg.IssueKey), err
}

func (a *acting) get() (actionResult, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.issue(), Fields: []string{"key"}})
	return a.about(answer, answer.Get("key").Str), err
}

// pageSize is how many issues a page has at most.
const pageSize = 100

func (a *acting) search() (out actionResult, err error) {
	jql, err := bound(a.cfg.JQL, a.cfg.JQLParams)
	if err != nil {
		return out, err
	}
	fields := []string{}
	switch {
	case values.IsObject(a.cfg.FieldValues):
		return out, fault.New(fault.InvalidInput, "fields of a search is a list of names").With("path", "fields")
	case payload.IsNull(a.cfg.FieldValues):
		fields = append(fields, "*navigable")
	}
	for _, raw := range values.Elements(a.cfg.FieldValues) {
		fields = append(fields, gjson.ParseBytes(raw).String())
	}
	body := rest.Fields{"jql": jql, "fields": fields, "maxResults": min(a.cfg.Limit, pageSize)}
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		answer, next, err := a.found(body, cursor)
		out.RateLimit = answer.Limits()
		return rest.Items(answer.Get("issues")), next, err
	})
	out.Response = json.RawMessage("null")
	return out, err
}

// found is a page of a search. The cloud names the next page by a token, own servers count.
func (a *acting) found(body rest.Fields, cursor string) (answer rest.Answer, next string, err error) {
	c := rest.Call{Method: "POST", Path: a.rest + "/search/jql", Body: body, Repeatable: true, Fields: []string{"issues"}}
	if a.version == 3 {
		delete(body, "nextPageToken")
		answer, err = a.api.Do(a.ctx, rest.Call{Method: c.Method, Path: c.Path, Body: body.Text("nextPageToken", cursor),
			Repeatable: true, Fields: c.Fields})
		return answer, answer.Get("nextPageToken").Str, err
	}
	start := 0
	if cursor != "" {
		if start, err = strconv.Atoi(cursor); err != nil {
			return answer, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
		}
	}
	body["startAt"] = start
	c.Path, c.Fields = a.rest+"/search", []string{"issues", "total"}
	answer, err = a.api.Do(a.ctx, c)
	if end := start + len(answer.Get("issues").Array()); int64(end) < answer.Get("total").Int() && end > start {
		next = strconv.Itoa(end)
	}
	return answer, next, err
}

func (a *acting) request() (actionResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	out := a.about(answer, answer.Get("key").Str)
	if out.ResourceID == "" {
		out.ResourceID = answer.Get("id").String()
	}
	return out, err
}

// findIssue looks for the issue that has the marker. Jira finds new issues by an index that may be behind, so what it does not find may be
// there all the same: it cannot say that there is none.
func (a *acting) findIssue() (actionResult, bool, error) {
	minutes := int(max(a.call.Time().Sub(a.call.Now), 0)+rest.ClockSkew) / int(time.Minute)
	body := rest.Fields{"jql": fmt.Sprintf("created >= -%dm ORDER BY created DESC", minutes+1),
		"fields": []string{"summary"}, "maxResults": pageSize}
	for cursor := ""; ; {
		answer, next, err := a.found(body, cursor)
		if err != nil {
			return actionResult{}, false, err
		}
		for _, issue := range answer.Get("issues").Array() {
			if issue.Get("fields.summary").Str != a.cfg.Summary {
				continue
			}
			key := issue.Get("key").Str
			marked, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.rest + rest.Path("issue", key, "properties", property)})
			if err != nil && !rest.IsCode(err, fault.NotFound) {
				return actionResult{}, false, err
			}
			if err == nil && marked.Get("value.id").Str == action.Marker(a.call, "jira") {
				return a.about(rest.Answer{Header: answer.Header, Body: json.RawMessage(issue.Raw)}, key), true, nil
			}
		}
		if next == "" {
			return actionResult{}, false, fault.New(fault.RemoteError, "Jira does not find the issue, and its search may be behind; look whether it is there")
		}
		cursor = next
	}
}

// findComment looks for the comment that has the marker.
func (a *acting) findComment() (actionResult, bool, error) {
	for start := 0; ; {
		query := url.Values{"expand": {"properties"}, "orderBy": {"-created"}, "startAt": {strconv.Itoa(start)},
			"maxResults": {strconv.Itoa(pageSize)}}
		answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.issue() + "/comment", Query: query,
			Fields: []string{"comments", "total"}})
		if err != nil {
			return actionResult{}, false, err
		}
		list := answer.Get("comments").Array()
		for _, c := range list {
			for _, p := range c.Get("properties").Array() {
				if p.Get("key").Str == property && p.Get("value.id").Str == action.Marker(a.call, "jira") {
					return a.commented(rest.Answer{Header: answer.Header, Body: json.RawMessage(c.Raw)}), true, nil
				}
			}
		}
		if start += len(list); len(list) == 0 || int64(start) >= answer.Get("total").Int() {
			return actionResult{}, false, nil
		}
	}
}
