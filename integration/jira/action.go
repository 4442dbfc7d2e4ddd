package jira

import (
	"context"
	"encoding/json"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	ProjectKey  string          `json:"project_key" with:"action_type=create_issue" doc:"The project, by its key." zh:"项目：项目的键。"`
	APIVersion  int             `json:"api_version" range:"2..3" doc:"The version of the API: 3 for the cloud, 2 for own servers." zh:"API 版本：云端为 3，自建服务器为 2。"`
	Summary     string          `json:"summary" with:"action_type=create_issue" doc:"What the issue is about, in a line." zh:"概要：一行文字说明议题。"`
	IssueType   string          `json:"issue_type" with:"action_type=create_issue" doc:"The type of the issue." zh:"类型：议题的类型。"`
	Description json.RawMessage `json:"description" with:"action_type=create_issue" doc:"The text of the issue, or a document as version 3 defines it." zh:"描述：议题的内容，或版本 3 定义的文档。"`
	FieldValues json.RawMessage `json:"fields" takes:"object|list" with:"action_type=create_issue|update_issue|search_issues" doc:"Further fields of the issue and their values; of a search a list of the fields that are read." zh:"字段：议题的其他字段及其值；搜索时为要读取的字段列表。"`
	IssueKey    string          `json:"issue_key" with:"action_type=add_comment|transition_issue|add_attachment|update_issue|assign_issue|get_issue|list_transitions" doc:"The issue, by its key or id." zh:"议题：议题的键或编号。"`
	Body        json.RawMessage `json:"body" with:"action_type=add_comment|request" doc:"The text of the comment, or a document as version 3 defines it; for request what is sent, as JSON." zh:"正文：评论的内容，或版本 3 定义的文档；request 时为发送的 JSON。"`
	Transition  node.Scalar     `json:"transition" with:"action_type=transition_issue" doc:"The transition, by its name, its id or the status that it leads to." zh:"流转：流转的名称、编号或目标状态。"`
	File        json.RawMessage `json:"file" takes:"file" with:"action_type=add_attachment" doc:"The file that is attached." zh:"文件：要附加的文件。"`
	AccountID   string          `json:"account_id" with:"action_type=assign_issue" doc:"Who is to care for it: the account id, on own servers the user name." zh:"账号：负责人的账号编号；自建服务器为用户名。"`
	JQL         string          `json:"jql" with:"action_type=search_issues" doc:"The query. A name after a colon stands for a value of jql_params." zh:"查询：JQL 查询；冒号后的名称代表 jql_params 中的值。"`
	JQLParams   node.Object     `json:"jql_params" with:"action_type=search_issues" doc:"Values for the query, which are quoted." zh:"查询参数：查询中的值，会自动加引号。"`
	Method      string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path        string          `json:"path" with:"action_type=request" doc:"The path below the address of the site, /rest/api/3/field for instance." zh:"路径：站点地址下的路径，例如 /rest/api/3/field。"`
	Query       node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.APIVersion, c.IssueType, c.Limit = "create_issue", 3, "Task", action.DefaultLimit
}

type actionResult struct {
	action.Result
	Response json.RawMessage `json:"jira_response" doc:"The answer of Jira; null for lists, and where it answers nothing." zh:"Jira 响应：Jira 的原始响应；列表或无响应时为 null。"`
}

// act acts on issues.
func act(client *outbound.Client, store *files.Store) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			api, err := jira().Open(ctx, client, call)
			return &acting{ctx: ctx, call: call, cfg: cfg, api: api, version: cfg.APIVersion,
				rest: rest.Path("rest", "api", cfg.APIVersion)}, err
		},
		End: func(out *actionResult, cfg actionConfig) { out.Done(cfg.ActionType) },
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.JIRA_ACTION", Title: node.Says("Jira", "Jira"),
		Description: node.Says("Works on Jira issues: creates, finds, changes, assigns and moves them, with comments and attachments.", "操作 Jira 议题：创建、搜索、更改、指派与流转，以及评论和附件。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Jira has answered.", "Jira 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Opens an issue for an order that could not be shipped.", "为无法发货的订单创建议题。"),
			Config:  `{"credential_id": "jira_acme", "action_type": "create_issue", "project_key": "SHOP", "summary": "Order {{order}} is stuck", "description": "It waits for a carrier."}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"id": "10012", "key": "SHOP-12"}`},
			Output:  `{"result": {"success": true, "action": "create_issue", "resource_id": "SHOP-12", "resource_url": "https://api.example.com/browse/SHOP-12", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "jira_response": {"id": "10012", "key": "SHOP-12"}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "create_issue", Effect: workflow.Once, Needs: []string{"summary"}, Do: steps.Does((*acting).createIssue),
			Inquire: steps.Asks((*acting).findIssue)},
		{Name: "add_comment", Effect: workflow.Once, Needs: []string{"issue_key", "body"}, Do: steps.Does((*acting).comment),
			Inquire: steps.Asks((*acting).findComment)},
		{Name: "transition_issue", Effect: workflow.Once, Needs: []string{"issue_key", "transition"}, Do: steps.Does((*acting).move)},
		{Name: "add_attachment", Effect: workflow.Once, Needs: []string{"issue_key", "file"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.attach(store) })},
		{Name: "update_issue", Effect: workflow.Idempotent, Needs: []string{"issue_key", "fields"}, Do: steps.Does((*acting).update)},
		{Name: "assign_issue", Effect: workflow.Idempotent, Needs: []string{"issue_key", "account_id"}, Do: steps.Does((*acting).assign)},
		{Name: "get_issue", Effect: workflow.Idempotent, Needs: []string{"issue_key"}, Do: steps.Does((*acting).get)},
		{Name: "search_issues", Effect: workflow.Idempotent, Lists: true, Needs: []string{"jql"}, Do: steps.Does((*acting).search)},
		{Name: "list_transitions", Effect: workflow.Idempotent, Needs: []string{"issue_key"}, Do: steps.Does((*acting).listTransitions)},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	})
}
