package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type repository struct {
	Owner    string `json:"owner" doc:"Who owns it." zh:"所有者：仓库的所有者。"`
	Repo     string `json:"repo" doc:"Its name." zh:"仓库名：仓库的名称。"`
	FullName string `json:"full_name" doc:"Both, as owner/name." zh:"全名：两者，格式为 owner/name。"`
}

type actionConfig struct {
	action.Fields
	action.Paging
	Repository    repository      `json:"repository_config" doc:"The repository." zh:"仓库：所操作的仓库。"`
	Owner         string          `json:"owner" doc:"Who owns the repository, when repository_config does not say so." zh:"所有者：repository_config 未指定时的仓库所有者。"`
	Repo          string          `json:"repo" doc:"The name of the repository, when repository_config does not say so." zh:"仓库名：repository_config 未指定时的仓库名称。"`
	Title         string          `json:"title" with:"action_type=create_issue|update_issue|create_pull_request" doc:"The title." zh:"标题：议题或拉取请求的标题。"`
	Body          json.RawMessage `json:"body" with:"action_type=create_issue|update_issue|create_pull_request|create_release|request" doc:"The text; for request what is sent, as JSON." zh:"正文：文本内容；request 时为发送的 JSON。"`
	Labels        []string        `json:"labels" with:"action_type=create_issue|update_issue|add_issue_labels|list_issues" doc:"The labels. Of a list those that its issues must have, all of them." zh:"标签：所用的标签；读取列表时为议题须全部具有的标签。"`
	Assignees     []string        `json:"assignees" with:"action_type=create_issue|update_issue" doc:"Who is to care for it, by their logins." zh:"负责人：负责人的登录名。"`
	IssueNumber   int             `json:"issue_number" range:"1.." with:"action_type=add_issue_comment|update_issue|close_issue|add_issue_labels" doc:"The number of the issue." zh:"议题号：议题的编号。"`
	PRNumber      int             `json:"pr_number" range:"1.." with:"action_type=add_pr_comment|merge_pull_request" doc:"The number of the pull request." zh:"拉取请求号：拉取请求的编号。"`
	Comment       string          `json:"comment" with:"action_type=add_issue_comment|add_pr_comment" doc:"The text of the comment." zh:"评论：评论的内容。"`
	State         string          `json:"state" enum:"open|closed|all" with:"action_type=update_issue|list_issues|list_pull_requests" doc:"Which ones are listed; of update_issue what the issue becomes, open or closed." zh:"状态：列出哪些；update_issue 时为议题的新状态（open 或 closed）。"`
	Head          string          `json:"head" with:"action_type=create_pull_request" doc:"The branch with the changes." zh:"源分支：包含更改的分支。"`
	Base          string          `json:"base" with:"action_type=create_pull_request|list_pull_requests" doc:"The branch that they are to go into." zh:"目标分支：更改要合入的分支。"`
	TagName       string          `json:"tag_name" with:"action_type=create_release" doc:"The tag of the release." zh:"标签名：发布的标签。"`
	WorkflowFile  string          `json:"workflow_file" with:"action_type=trigger_workflow" doc:"The file of the workflow, such as build.yml." zh:"工作流文件：例如 build.yml。"`
	Inputs        node.Object     `json:"inputs" with:"action_type=trigger_workflow" doc:"What the workflow is started with." zh:"输入：工作流启动时的输入。"`
	Ref           string          `json:"ref" with:"action_type=trigger_workflow|get_file_content" doc:"The branch, tag or commit. trigger_workflow takes main if nothing is said, get_file_content the default branch." zh:"引用：分支、标签或提交；未指定时 trigger_workflow 为 main，get_file_content 为默认分支。"`
	Path          string          `json:"path" with:"action_type=create_file|update_file|get_file_content|request" doc:"The path of the file in the repository; for request the path below the address of the API." zh:"路径：仓库中文件的路径；request 时为 API 地址下的路径。"`
	Content       string          `json:"content" with:"action_type=create_file|update_file" doc:"What is to stand in the file." zh:"内容：文件的内容。"`
	CommitMessage string          `json:"commit_message" with:"action_type=create_file|update_file" doc:"The message of the commit." zh:"提交说明：提交的说明。"`
	Branch        string          `json:"branch" with:"action_type=create_file|update_file" doc:"The branch that is written to." zh:"分支：写入的分支。"`
	Method        string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Query         node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.Branch, c.Limit = "create_issue", "main", action.DefaultLimit
}

type actionResult struct {
	action.Result
	Content  string          `json:"content" doc:"The text of the file that was read." zh:"内容：所读取文件的文本。"`
	File     *fileref.Value  `json:"file" doc:"The file that was read, when it is not a text; else null." zh:"文件：所读取的文件（非文本时）；否则为 null。"`
	Response json.RawMessage `json:"github_response" doc:"The answer of GitHub; null for lists." zh:"GitHub 响应：GitHub 的原始响应；列表为 null。"`
}

// gitHub is the service. It is called without a library: see the package.
func gitHub() *rest.Service {
	return &rest.Service{
		Name: "GitHub", Base: apiAddress, Credentials: []string{credentialType},
		Header: http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}},
		Secret: rest.Bearer, Said: said, Refine: refine,
	}
}

// said is the message of a refusal, and what it says of single fields.
func said(body gjson.Result) string {
	texts := []string{body.Get("message").Str}
	for _, e := range body.Get("errors").Array() {
		if e.Type == gjson.String {
			texts = append(texts, e.Str)
			continue
		}
		texts = append(texts, cmp.Or(e.Get("message").Str, strings.TrimSpace(e.Get("field").Str+" "+e.Get("code").Str)))
	}
	return strings.Join(texts, "; ")
}

// refine tells limits from missing rights, which have the same status.
func refine(r *rest.Refusal) {
	if r.Status != http.StatusForbidden && r.Status != http.StatusTooManyRequests {
		return
	}
	after := outbound.RetryAfter(r.Header, time.Now())
	switch secondary := strings.Contains(strings.ToLower(r.Body.Get("message").Str), "secondary rate limit"); {
	case r.Header.Get("Retry-After") != "", r.Header.Get("X-Ratelimit-Remaining") == "0":
		r.Limit("GitHub", after)
	case secondary:
		r.Limit("GitHub", time.Minute) // what GitHub asks for when it names no time
	}
}

// act acts in a repository.
func act(client *outbound.Client) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			return begin(ctx, client, call, cfg)
		},
		End: func(out *actionResult, cfg actionConfig) { out.Done(cfg.ActionType) },
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GITHUB", Title: node.Says("GitHub", "GitHub"),
		Description: node.Says("Works on a GitHub repository: issues, pull requests, releases, workflows and files.", "操作 GitHub 仓库：议题、拉取请求、发布、工作流与文件。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What GitHub has answered.", "GitHub 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Opens an issue for an order that could not be shipped.", "为无法发货的订单创建议题。"),
			Config:  `{"credential_id": "github_acme", "action_type": "create_issue", "repository_config": {"owner": "acme", "repo": "shop"}, "title": "Order {{order}} is stuck", "labels": ["shipping"]}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"number": 12, "html_url": "https://github.com/acme/shop/issues/12"}`},
			Output:  `{"result": {"success": true, "action": "create_issue", "resource_id": "12", "resource_url": "https://github.com/acme/shop/issues/12", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "content": "", "file": null, "github_response": {"number": 12, "html_url": "https://github.com/acme/shop/issues/12"}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "create_issue", Effect: workflow.Once, Needs: []string{"title"}, Do: steps.Does((*acting).createIssue),
			Inquire: steps.Asks((*acting).findIssue)},
		{Name: "add_issue_comment", Effect: workflow.Once, Needs: []string{"issue_number", "comment"}, Do: steps.Does((*acting).comment),
			Inquire: steps.Asks((*acting).findComment)},
		{Name: "create_pull_request", Effect: workflow.Once, Needs: []string{"title", "head", "base"},
			Do: steps.Does((*acting).createPullRequest), Inquire: steps.Asks((*acting).findPullRequest)},
		{Name: "add_pr_comment", Effect: workflow.Once, Needs: []string{"pr_number", "comment"}, Do: steps.Does((*acting).comment),
			Inquire: steps.Asks((*acting).findComment)},
		{Name: "create_release", Effect: workflow.Once, Needs: []string{"tag_name"}, Do: steps.Does((*acting).createRelease),
			Inquire: steps.Asks((*acting).findRelease)},
		{Name: "trigger_workflow", Effect: workflow.Once, Needs: []string{"workflow_file"}, Do: steps.Does((*acting).triggerWorkflow)},
		{Name: "update_issue", Effect: workflow.Idempotent, Needs: []string{"issue_number", "title|body|labels|assignees|state"},
			Do: steps.Does((*acting).updateIssue)},
		{Name: "close_issue", Effect: workflow.Idempotent, Needs: []string{"issue_number"}, Do: steps.Does((*acting).closeIssue)},
		{Name: "add_issue_labels", Effect: workflow.Idempotent, Needs: []string{"issue_number", "labels"},
			Do: steps.Does((*acting).addLabels)},
		{Name: "merge_pull_request", Effect: workflow.Idempotent, Needs: []string{"pr_number"}, Do: steps.Does((*acting).merge)},
		{Name: "create_file", Effect: workflow.Idempotent, Needs: []string{"path", "content", "commit_message"},
			Do: steps.Does((*acting).createFile)},
		{Name: "update_file", Effect: workflow.Idempotent, Needs: []string{"path", "content", "commit_message"},
			Do: steps.Does((*acting).updateFile)},
		{Name: "list_issues", Effect: workflow.Idempotent, Lists: true, Do: steps.Does((*acting).listIssues)},
		{Name: "list_pull_requests", Effect: workflow.Idempotent, Lists: true, Do: steps.Does((*acting).listPullRequests)},
		{Name: "get_file_content", Effect: workflow.Idempotent, Needs: []string{"path"}, Do: steps.Does((*acting).readFile)},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	})
}

// acting is one run of an operation.
type acting struct {
	ctx  context.Context
	call *node.Call
	cfg  actionConfig
	api  *rest.API
	// repo is where the repository is, as a path.
	repo string
}

var nameOfRepository = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`) // read-only

func begin(ctx context.Context, client *outbound.Client, call *node.Call, cfg actionConfig) (*acting, error) {
	a := &acting{ctx: ctx, call: call, cfg: cfg}
	if cfg.ActionType != "request" {
		owner, repo := cmp.Or(cfg.Repository.Owner, cfg.Owner), cmp.Or(cfg.Repository.Repo, cfg.Repo)
		if full := cfg.Repository.FullName; full != "" {
			owner, repo, _ = strings.Cut(full, "/")
		}
		if !nameOfRepository.MatchString(owner) || !nameOfRepository.MatchString(repo) {
			return nil, fault.Newf(fault.InvalidInput, "%q is not a repository; set owner and repo, or full_name as owner/name, in repository_config, or let the input bring owner and repo", owner+"/"+repo).
				With("path", "repository_config")
		}
		a.repo = rest.Path("repos", owner, repo)
	}
	var err error
	a.api, err = gitHub().Open(ctx, client, call)
	return a, err
}

// text is the body of an issue, a pull request or a release.
func (a *acting) text() (string, error) { return rest.Text("body", a.cfg.Body) }

// marker stands in a text where people do not see it.
func (a *acting) marker() string { return action.Hidden(a.call, "github") }

// marked is a text with the marker.
func (a *acting) marked(text string) string { return action.Marked(text, a.marker()) }

// made is the result of an answer that is one resource.
func made(answer rest.Answer, id string) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get(id).String(), answer.Get("html_url").Str, answer.Limits()
	return out
}

// do makes a call whose answer is one resource.
func (a *acting) do(id string, c rest.Call) (actionResult, error) {
	answer, err := a.api.Do(a.ctx, c)
	if err != nil {
		return actionResult{}, err
	}
	return made(answer, id), nil
}
