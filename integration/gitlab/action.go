package gitlab

import (
	"context"
	"encoding/json"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	Project       node.Scalar     `json:"project" doc:"The project, by its id or its path, such as group/name." zh:"项目：项目的编号或路径，例如 group/name。"`
	Title         string          `json:"title" with:"action_type=create_issue|update_issue|create_merge_request" doc:"The title." zh:"标题：议题或合并请求的标题。"`
	Description   string          `json:"description" with:"action_type=create_issue|update_issue|create_merge_request" doc:"The text of the issue or merge request." zh:"描述：议题或合并请求的内容。"`
	Labels        []string        `json:"labels" with:"action_type=create_issue|update_issue" doc:"The labels." zh:"标签：议题的标签。"`
	IssueIID      int             `json:"issue_iid" range:"1.." with:"action_type=add_issue_comment|update_issue|close_issue" doc:"The number of the issue in its project." zh:"议题号：议题在项目中的编号。"`
	MRIID         int             `json:"mr_iid" range:"1.." with:"action_type=add_merge_request_comment|merge_merge_request" doc:"The number of the merge request in its project." zh:"合并请求号：合并请求在项目中的编号。"`
	Body          json.RawMessage `json:"body" with:"action_type=add_issue_comment|add_merge_request_comment|request" doc:"The text of the comment; for request what is sent, as JSON." zh:"正文：评论的内容；request 时为发送的 JSON。"`
	SourceBranch  string          `json:"source_branch" with:"action_type=create_merge_request" doc:"The branch with the changes." zh:"源分支：包含更改的分支。"`
	TargetBranch  string          `json:"target_branch" with:"action_type=create_merge_request" doc:"The branch that they are to go into." zh:"目标分支：更改要合入的分支。"`
	State         string          `json:"state" enum:"opened|closed|merged|locked|all" with:"action_type=update_issue|list_issues|list_merge_requests" doc:"Which ones are listed; of update_issue what the issue becomes, opened or closed." zh:"状态：列出哪些；update_issue 时为议题的新状态（opened 或 closed）。"`
	Ref           string          `json:"ref" with:"action_type=trigger_pipeline|get_file" doc:"The branch, tag or commit. get_file reads the default branch if nothing is said." zh:"引用：分支、标签或提交；get_file 默认读取默认分支。"`
	Variables     node.Object     `json:"variables" with:"action_type=trigger_pipeline" doc:"The variables of the pipeline, by their names." zh:"变量：流水线的变量，按名称给出。"`
	Path          string          `json:"path" with:"action_type=create_file|update_file|get_file|request" doc:"The path of the file in the repository; for request the path below the address of the API." zh:"路径：仓库中文件的路径；request 时为 API 地址下的路径。"`
	Content       string          `json:"content" with:"action_type=create_file|update_file" doc:"What is to stand in the file." zh:"内容：文件的内容。"`
	Branch        string          `json:"branch" with:"action_type=create_file|update_file" doc:"The branch that is written to." zh:"分支：写入的分支。"`
	CommitMessage string          `json:"commit_message" with:"action_type=create_file|update_file" doc:"The message of the commit." zh:"提交说明：提交的说明。"`
	Method        string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Query         node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() { c.ActionType, c.Limit = "create_issue", action.DefaultLimit }

type actionResult struct {
	action.Result
	Content  string          `json:"content" doc:"The text of the file that was read." zh:"内容：所读取文件的文本。"`
	File     *fileref.Value  `json:"file" doc:"The file that was read, when it is not a text; else null." zh:"文件：所读取的文件（非文本时）；否则为 null。"`
	Response json.RawMessage `json:"gitlab_response" doc:"The answer of GitLab; null for lists." zh:"GitLab 响应：GitLab 的原始响应；列表为 null。"`
}

// act acts in a project.
func act(client *outbound.Client) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			api, err := gitLab().Open(ctx, client, call)
			return &acting{ctx: ctx, call: call, cfg: cfg, api: api, project: rest.Path("projects", cfg.Project)}, err
		},
		End: func(out *actionResult, cfg actionConfig) { out.Done(cfg.ActionType) },
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GITLAB_ACTION", Title: node.Says("GitLab", "GitLab"),
		Description: node.Says("Works on a GitLab project: issues, merge requests, pipelines and files.", "操作 GitLab 项目：议题、合并请求、流水线与文件。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What GitLab has answered.", "GitLab 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Opens an issue for an order that could not be shipped.", "为无法发货的订单创建议题。"),
			Config:  `{"credential_id": "gitlab_acme", "action_type": "create_issue", "project": "acme/shop", "title": "Order {{order}} is stuck", "labels": ["shipping"]}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"iid": 12, "web_url": "https://gitlab.com/acme/shop/-/issues/12"}`},
			Output:  `{"result": {"success": true, "action": "create_issue", "resource_id": "12", "resource_url": "https://gitlab.com/acme/shop/-/issues/12", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "content": "", "file": null, "gitlab_response": {"iid": 12, "web_url": "https://gitlab.com/acme/shop/-/issues/12"}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "create_issue", Effect: workflow.Once, Needs: []string{"project", "title"}, Do: steps.Does((*acting).createIssue),
			Inquire: steps.Asks((*acting).findIssue)},
		{Name: "add_issue_comment", Effect: workflow.Once, Needs: []string{"project", "issue_iid", "body"},
			Do: steps.Does((*acting).comment), Inquire: steps.Asks((*acting).findComment)},
		{
			Name: "create_merge_request", Effect: workflow.Once, Needs: []string{"project", "source_branch", "target_branch", "title"},
			Do: steps.Does((*acting).createMergeRequest), Inquire: steps.Asks((*acting).findMergeRequest),
		},
		{Name: "add_merge_request_comment", Effect: workflow.Once, Needs: []string{"project", "mr_iid", "body"},
			Do: steps.Does((*acting).comment), Inquire: steps.Asks((*acting).findComment)},
		{Name: "trigger_pipeline", Effect: workflow.Once, Needs: []string{"project", "ref"}, Do: steps.Does((*acting).triggerPipeline)},
		{Name: "update_issue", Effect: workflow.Idempotent, Needs: []string{"project", "issue_iid", "title|description|labels|state"},
			Do: steps.Does((*acting).updateIssue)},
		{Name: "close_issue", Effect: workflow.Idempotent, Needs: []string{"project", "issue_iid"}, Do: steps.Does((*acting).closeIssue)},
		{Name: "merge_merge_request", Effect: workflow.Idempotent, Needs: []string{"project", "mr_iid"}, Do: steps.Does((*acting).merge)},
		{Name: "create_file", Effect: workflow.Idempotent, Needs: []string{"project", "path", "content", "branch", "commit_message"},
			Do: steps.Does((*acting).createFile)},
		{Name: "update_file", Effect: workflow.Idempotent, Needs: []string{"project", "path", "content", "branch", "commit_message"},
			Do: steps.Does((*acting).updateFile)},
		{Name: "list_issues", Effect: workflow.Idempotent, Lists: true, Needs: []string{"project"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.list("issues") })},
		{Name: "list_merge_requests", Effect: workflow.Idempotent, Lists: true, Needs: []string{"project"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.list("merge_requests") })},
		{Name: "get_file", Effect: workflow.Idempotent, Needs: []string{"project", "path"}, Do: steps.Does((*acting).readFile)},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	})
}
