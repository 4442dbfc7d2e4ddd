package github

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/builtin/values"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

// kind is the kind of trigger that events of a repository start.
const kind = "TRIGGER.GITHUB"

// commentContains is the condition that is about what a comment or a review says, and not about a path.
const commentContains = "comment_contains"

type config struct {
	Repository     string          `json:"repository" required:"true" fixed:"true" doc:"The repository, as owner/name." zh:"仓库，格式为 owner/name。"`
	Events         []string        `json:"events" enum:"push|pull_request|issues|issue_comment|pull_request_review|release|workflow_run|repository|star|watch|fork" fixed:"true" doc:"The events that start something. The webhook in GitHub must send them." zh:"触发的事件；GitHub 中的 webhook 也须发送这些事件。"`
	Branches       []string        `json:"branches" fixed:"true" doc:"The branches that count: of a push the one that was pushed to, of a pull request and a review the one it is to be merged into. * stands for anything but a slash, ** for anything. Other events are not about a branch, and count always; none: every branch counts." zh:"限定的分支：推送时为被推送的分支，拉取请求与评审时为目标分支。* 匹配除斜杠外的任意内容，** 匹配任意内容。其他事件不受限制；为空则不限。"`
	Conditions     json.RawMessage `json:"filter_conditions" takes:"object" fixed:"true" checked:"plan" doc:"What the payload must have: a path such as pull_request.draft, and the value that must stand there, or a list of which one must. comment_contains is a text, or a list of which one counts, that a comment or a review must have." zh:"负载须满足的条件：路径（如 pull_request.draft）及其值，或可选值列表。comment_contains 为评论或评审须包含的文本（或其中之一）。"`
	IncludePayload bool            `json:"include_payload" fixed:"true" doc:"Whether github_payload has all that GitHub has sent." zh:"包含完整内容：github_payload 是否包含 GitHub 发送的完整内容。"`
	Path           string          `json:"webhook_path" fixed:"true" doc:"The path below the address of the workflow that GitHub calls. Two triggers of one workflow need two." zh:"路径：工作流地址之下供 GitHub 调用的路径；同一工作流的两个触发器须不同。"`
}

func (c *config) Defaults() {
	c.Events, c.IncludePayload, c.Path = []string{"push", "pull_request"}, true, "/github"
}

// triggerGitHub is where an execution begins that an event of a repository has started.
func triggerGitHub() node.Kind {
	k := node.Define(
		node.About{
			Name: kind, Title: node.Says("GitHub", "GitHub 触发"),
			Description: node.Says("Starts when something happens in a GitHub repository, once the workflow is deployed and its address is a webhook of the repository.", "工作流部署后，且其地址已设为仓库的 webhook 时，GitHub 仓库发生事件即启动。"),
			Effect:      workflow.Pure,
			Needs:       node.Needs{Credential: []string{credentialType}},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The event, with trigger_time, execution_id and trigger_message.", "事件内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("event_type", "The event, such as push.", "事件类型，例如 push。"), node.Meaning("action", "What has happened to it, such as opened; empty for a push.", "具体动作，例如 opened；推送时为空。"),
				node.Meaning("repository", "The repository, as owner/name.", "仓库（owner/name）。"),
				node.Meaning("sender", "Who did it.", "操作者。"),
				node.Meaning("branch", "The branch that was pushed to, the head of the pull request, or the target of the release; else empty.", "被推送的分支、拉取请求的源分支或发布的目标；否则为空。"),
				node.Meaning("commit_sha", "The commit that it is about; else empty.", "相关提交；否则为空。"),
				node.Meaning("delivery_id", "GitHub's id of the delivery.", "GitHub 的投递编号。"),
				node.Meaning("github_payload", "All that GitHub has sent; null without include_payload.", "GitHub 发送的完整内容；未启用 include_payload 时为 null。"),
			}, start.Meanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The event; when somebody starts it by hand, what it is started with.", "事件内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Starts when somebody comments /deploy on a pull request or an issue.", "有人在拉取请求或议题中评论 /deploy 时启动。"),
					Config: `{"repository": "acme/shop", "events": ["issue_comment"], "filter_conditions": {"action": "created", "comment_contains": "/deploy"}, "include_payload": false, "credential_id": "github_acme"}`,
					Input:  `{"event_type": "issue_comment", "action": "created", "repository": "acme/shop", "sender": "ann", "branch": "", "commit_sha": "", "delivery_id": "72d3162e", "github_payload": null}`,
					Output: `{"result": {"event_type": "issue_comment", "action": "created", "repository": "acme/shop", "sender": "ann", "branch": "", "commit_sha": "", "delivery_id": "72d3162e", "github_payload": null, "trigger_time": "…", "execution_id": "…", "trigger_message": "issue_comment created in acme/shop by ann"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, _ config, in json.RawMessage) (json.RawMessage, error) {
			message := "started by hand"
			if event := gjson.GetBytes(in, "event_type").String(); event != "" {
				words := []string{event, gjson.GetBytes(in, "action").String(), "in", gjson.GetBytes(in, "repository").String(), "by",
					gjson.GetBytes(in, "sender").String()}
				message = strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
			}
			return values.HandOn(in, start.Fields(call, message)...), nil
		}, plan)
	k.Brief = true // it is over at once
	return k
}

// plan refuses what could not be deployed.
func plan(p *node.Planning, cfg *config) {
	if p.Has("repository") && !regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`).MatchString(cfg.Repository) {
		p.Invalid(p.At("repository"), "%q is not a repository; write it as owner/name", cfg.Repository)
	}
	if p.Has("events") && len(cfg.Events) == 0 {
		p.Invalid(p.At("events"), "must name an event; leave it out for push and pull_request")
	}
	if !regexp.MustCompile(`^(/[A-Za-z0-9_.~-]*[A-Za-z0-9_~-])+$`).MatchString(cfg.Path) || len(cfg.Path) > 200 {
		p.Invalid(p.At("webhook_path"), "%q is not a path; write it like /github, with letters, digits, dots and hyphens", cfg.Path)
	}
	for _, branch := range cfg.Branches {
		if strings.TrimSpace(branch) == "" {
			p.Invalid(p.At("branches"), "a branch has no name")
		}
	}
	for _, m := range payload.Members(cfg.Conditions) {
		at := p.At("filter_conditions") + "." + m.Key
		if m.Key == commentContains {
			if _, ok := texts(m.Value); !ok {
				p.Invalid(at, "must be a text or a list of texts, none of them empty")
			}
			continue
		}
		if _, err := values.ParsePath(m.Key); err != nil {
			p.Invalid(at, "%q is not a path into the payload; write it like pull_request.base.ref", m.Key)
		}
		if values.IsObject(m.Value) {
			p.Invalid(at, "must be a value, or a list of values of which one must fit; write a longer path for what is inside of an object")
		}
	}
}

// texts reads a text or a list of texts.
func texts(raw json.RawMessage) (list []string, ok bool) {
	items := []json.RawMessage{raw}
	if values.IsList(raw) {
		items = values.Elements(raw)
	}
	for _, item := range items {
		text := gjson.ParseBytes(item)
		if text.Type != gjson.String || text.Str == "" {
			return nil, false
		}
		list = append(list, text.Str)
	}
	return list, len(list) > 0
}
