package start

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/human/form"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/trigger"
	"tandem/workflow"
)

type formConfig struct {
	pageConfig

	Schema       node.Object `json:"form_schema" fixed:"true" required:"true" doc:"What is asked for, as a JSON Schema of an object: a field for each property, with its title, description, default and limits. A property with enum is a choice, a list of them several choices, the format date a day, the format file a file." zh:"表单内容（对象的 JSON Schema）：每个属性一个字段，含标题、说明、默认值和限制。enum 为单选，其列表为多选，format 为 date 是日期，为 file 是文件。"`
	MaxFile      int         `json:"max_file_mb" range:"1..10" fixed:"true" doc:"How large a file may be, in MiB." zh:"文件大小上限（MiB）。"`
	ResponseMode string      `json:"response_mode" enum:"async|sync|node" fixed:"true" doc:"What a visitor sees who has sent the form: thanks at once, the result when the execution has ended, or what a FLOW.RESPOND node says." zh:"提交后访客看到的内容：立即致谢、执行结束后的结果，或 FLOW.RESPOND 节点的答复。"`
	Timeout      int         `json:"response_timeout_seconds" range:"1..300" fixed:"true" with:"response_mode=sync|node" doc:"How long a visitor waits for the answer, in seconds; then thanks are said." zh:"访客最多等待多少秒；超时则致谢。"`
	Thanks       string      `json:"thank_you" fixed:"true" doc:"What is said to a visitor who has sent the form." zh:"提交后的致谢语。"`
	Redirect     string      `json:"redirect_url" fixed:"true" with:"response_mode=async" doc:"Where a visitor is sent who has sent the form, instead of thanks." zh:"提交后跳转的地址，代替致谢。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *formConfig) Defaults() {
	c.pageConfig.Defaults()
	c.MaxFile, c.ResponseMode, c.Timeout = 10, string(trigger.ReplyAtOnce), 30
}

// formKind is the kind that forms of visitors start.
const formKind = "TRIGGER.FORM"

// triggerForm is where an execution begins that a visitor has started by sending a form.
func triggerForm() node.Kind {
	return node.Define(
		node.About{
			Name: formKind, Title: node.Says("Form", "表单触发"),
			Description: node.Says("Starts when a visitor sends the form on the page of the workflow, once it is deployed.", "工作流部署后，访客在其页面提交表单时启动。"),
			Effect:      workflow.Pure,
			Needs:       node.Needs{Credential: []string{webhookCredential}, Optional: true},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("What was filled in, with trigger_time, execution_id and trigger_message.", "填写的内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("fields", "The values by their names; a file is stored and told by its blob, name, content_type and size.", "各字段的值；文件已存储，以 blob、name、content_type、size 表示。"),
				node.Meaning("language", "The language of the page: en or zh.", "页面语言：en 或 zh。"),
				node.Meaning("user_id", "Who has sent it, on a page for users.", "提交者（仅限登录用户的页面）。"),
				node.Meaning("client_ip", "The address that it came from.", "来源地址。"), node.Meaning("timestamp", "When it came.", "收到的时间。"),
			}, startedMeanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "What was sent; when somebody starts it by hand, what it is started with.", "提交的内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("A page that takes requests for leave.", "受理请假申请的页面。"),
					Config: `{"title": "Request for leave", "thank_you": "We will answer soon.", "form_schema": {"type": "object", "required": ["name", "from"], "properties": {"name": {"type": "string", "title": "Your name"}, "from": {"type": "string", "format": "date", "title": "First day"}}}}`,
					Input:  `{"fields": {"name": "Ada", "from": "2027-03-01"}, "language": "en"}`,
					Output: `{"result": {"fields": {"name": "Ada", "from": "2027-03-01"}, "language": "en", "trigger_time": "…", "execution_id": "…", "trigger_message": "form: Request for leave"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg formConfig, in json.RawMessage) (json.RawMessage, error) {
			message := "form: " + cfg.Title
			if !gjson.GetBytes(in, "fields").Exists() {
				message = "started by hand"
			}
			return values.HandOn(in, startedFields(call, message)...), nil
		}, planForm)
}

// planForm refuses what could not be deployed.
func planForm(p *node.Planning, cfg *formConfig) {
	cfg.plan(p)
	if p.Has("form_schema") {
		if wrong := wrongFormSchema(json.RawMessage(cfg.Schema)); wrong != "" {
			p.Invalid(p.At("form_schema"), "%s", wrong)
		}
	}
	if cfg.Redirect != "" && wrongRedirect(cfg.Redirect) {
		p.Invalid(p.At("redirect_url"), "%q is not an address; write it like https://www.example.com/thanks", cfg.Redirect)
	}
}

func wrongRedirect(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil
}

// wrongFormSchema says what is wrong with the schema of a form; empty: nothing.
func wrongFormSchema(schema json.RawMessage) string {
	if _, err := payload.CompileSchema(schema); err != nil {
		return "it is not a usable JSON Schema: " + fault.From(err).Message
	}
	if len(gjson.GetBytes(schema, "properties").Map()) == 0 {
		return "it asks for nothing; write each field under properties"
	}
	asked := form.New(form.Question{Purpose: form.PurposeNode, Type: form.Input, Schema: schema}, text.English)
	for i := range asked.Entries {
		e := &asked.Entries[i]
		if kind := gjson.GetBytes(e.Schema, "type"); e.Kind == form.File && kind.Exists() && kind.String() != "object" {
			return "properties." + e.Name + ": a file is an object with its name and its content; write type: object beside format: file, or leave the type out"
		}
	}
	return ""
}

// present implements [paged].
func (c *formConfig) present() (trigger.Page, error) {
	page, err := c.page(trigger.PageForm)
	if err != nil {
		return page, err
	}
	if wrong := wrongFormSchema(json.RawMessage(c.Schema)); wrong != "" {
		return page, fault.Newf(fault.InvalidConfig, "form_schema: %s", wrong)
	}
	if c.Redirect != "" && wrongRedirect(c.Redirect) {
		return page, fault.Newf(fault.InvalidConfig, "redirect_url: %q is not an address", c.Redirect)
	}
	page.Schema, page.MaxFile, page.Thanks, page.Redirect = json.RawMessage(c.Schema), int64(c.MaxFile)<<20, c.Thanks, c.Redirect
	page.Reply, page.Wait = trigger.Reply(c.ResponseMode), time.Duration(c.Timeout)*time.Second
	return page, nil
}
