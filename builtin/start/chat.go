package start

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/node"
	"tandem/text"
	"tandem/trigger"
	"tandem/workflow"
)

type chatConfig struct {
	pageConfig

	Greeting   string `json:"greeting" fixed:"true" doc:"What the chat says before the visitor has written." zh:"访客发言之前显示的问候语。"`
	MaxMessage int    `json:"max_message_length" range:"1..20000" fixed:"true" doc:"How many characters a message may have." zh:"单条消息的字符数上限。"`
	Earlier    int    `json:"earlier_messages" range:"0..100" fixed:"true" doc:"How many earlier messages of the conversation an execution is told in messages." zh:"此前的消息数：执行所得 messages 中包含多少条此前的消息。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *chatConfig) Defaults() {
	c.pageConfig.Defaults()
	c.MaxMessage, c.Earlier = 4000, 20
}

// chatKind is the kind that messages of visitors start.
const chatKind = "TRIGGER.CHAT"

// triggerChat is where an execution begins that a visitor has started by writing a message.
func triggerChat() node.Kind {
	return node.Define(
		node.About{
			Name: chatKind, Title: node.Says("Chat", "对话触发"),
			Description: node.Says("Starts when a visitor writes a message on the chat page of the workflow, once it is deployed. What nodes with to_user say is the answer, while they say it; a question whose approver is visitor is put to the visitor in the chat.", "工作流部署后，访客在其对话页面发送消息时启动。带 to_user 的节点的输出即为答复，边生成边显示；approvers 为 visitor 的问题会在对话中询问该访客。"),
			Effect:      workflow.Pure,
			Needs:       node.Needs{Credential: []string{webhookCredential}, Optional: true},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The message, with trigger_time, execution_id and trigger_message.", "消息内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("message", "What the visitor has written.", "访客所写的内容。"), node.Meaning("conversation_id", "The conversation of this visitor: the same for all of its messages, and nobody else's. Memories can use it as their session.", "该访客的会话编号：其所有消息相同，且不与他人共用；可用作记忆的 session_id。"),
				node.Meaning("messages", "The messages before it, the oldest first, each with role (user or assistant) and content.", "此前的消息（由旧到新），各有 role（user 或 assistant）和 content。"),
				node.Meaning("language", "The language of the page: en or zh.", "页面语言：en 或 zh。"),
				node.Meaning("user_id", "Who has written it, on a page for users.", "发送者（仅限登录用户的页面）。"),
				node.Meaning("client_ip", "The address that it came from.", "来源地址。"), node.Meaning("timestamp", "When it came.", "收到的时间。"),
			}, startedMeanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The message; when somebody starts it by hand, what it is started with.", "消息内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("A chat on the site of a shop, which that site may show.", "可内嵌到商店网站的对话页面。"),
					Config: `{"title": "Ask the shop", "greeting": "How can we help?", "allowed_origins": ["https://shop.example.com"]}`,
					Input:  `{"message": "Where is my parcel?", "conversation_id": "conv_1", "messages": []}`,
					Output: `{"result": {"message": "Where is my parcel?", "conversation_id": "conv_1", "messages": [], "trigger_time": "…", "execution_id": "…", "trigger_message": "chat: Where is my parcel?"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, _ chatConfig, in json.RawMessage) (json.RawMessage, error) {
			message := "started by hand"
			if said := gjson.GetBytes(in, "message"); said.Exists() {
				message = "chat: " + text.Clip(said.String(), maxTold)
			}
			return values.HandOn(in, startedFields(call, message)...), nil
		}, func(p *node.Planning, cfg *chatConfig) { cfg.plan(p) })
}

// maxTold is how much of a message is shown as what has started an execution.
const maxTold = 80

// present implements [paged].
func (c *chatConfig) present() (trigger.Page, error) {
	page, err := c.page(trigger.PageChat)
	page.Greeting, page.MaxMessage, page.Earlier = c.Greeting, c.MaxMessage, c.Earlier
	page.Reply = trigger.ReplyNode // what a node answers is part of the conversation
	return page, err
}
