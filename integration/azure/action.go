package azure

import (
	"context"
	"encoding/json"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	Container   string          `json:"container" with:"action_type=blob_get|blob_list|blob_put" doc:"The container." zh:"容器：容器的名称。"`
	Name        string          `json:"name" with:"action_type=blob_get|blob_put" doc:"The name of the blob." zh:"名称：Blob 的名称。"`
	Prefix      string          `json:"prefix" with:"action_type=blob_list" doc:"What the names begin with." zh:"前缀：名称的开头。"`
	File        json.RawMessage `json:"file" takes:"file" with:"action_type=blob_put" doc:"The file that is stored." zh:"文件：要存储的文件。"`
	Content     json.RawMessage `json:"content" with:"action_type=blob_put" doc:"What is stored in the place of a file: a text, or anything else as JSON." zh:"内容：代替文件存储的文本，其他值以 JSON 存储。"`
	ContentType string          `json:"content_type" with:"action_type=blob_put" doc:"The media type of the blob. Empty: that of the file." zh:"媒体类型：Blob 的媒体类型；留空则取文件的类型。"`
	IfMatch     string          `json:"if_match" with:"action_type=blob_put" doc:"The ETag that the blob must have to be replaced." zh:"匹配条件：Blob 须具有此 ETag 才会被替换。"`
	MaxBytes    int64           `json:"max_bytes" range:"1..1073741824" with:"action_type=blob_get|blob_put" doc:"How large the blob may be, in bytes." zh:"大小上限：Blob 的最大字节数。"`
	Namespace   string          `json:"namespace" with:"action_type=servicebus_send" doc:"The namespace of the Service Bus, where the credential is a client." zh:"命名空间：凭据为客户端时 Service Bus 的命名空间。"`
	Queue       string          `json:"queue" with:"action_type=servicebus_send" doc:"The queue." zh:"队列：队列的名称。"`
	Topic       string          `json:"topic" with:"action_type=servicebus_send" doc:"The topic, in the place of a queue." zh:"主题：代替队列的主题。"`
	Body        json.RawMessage `json:"body" with:"action_type=servicebus_send|function_invoke" doc:"The message: a text, or anything else as JSON; what a function is sent, as JSON." zh:"正文：消息文本，其他值以 JSON 发送；发送给函数的 JSON。"`
	Properties  node.Object     `json:"properties" with:"action_type=servicebus_send" doc:"Properties of the message: texts, numbers, yes or no, by name." zh:"消息属性：按名称给出的文本、数字或是否值。"`
	SessionID   string          `json:"session_id" with:"action_type=servicebus_send" doc:"The session of the message, for queues that have sessions." zh:"会话：启用会话的队列中消息所属的会话。"`
	URL         string          `json:"url" with:"action_type=function_invoke" doc:"The address of the function, or a path below the base_url of the credential." zh:"地址：函数的地址，或凭据 base_url 之下的路径。"`
	Method      string          `json:"method" enum:"GET|POST|PUT|PATCH|DELETE" with:"action_type=function_invoke" doc:"The method of the call." zh:"方法：请求方法。"`
	Scope       string          `json:"scope" with:"action_type=function_invoke" doc:"The scope of the token, api://…/.default for instance, where the credential is a client." zh:"范围：凭据为客户端时令牌的范围，例如 api://…/.default。"`
}

// defaultMaxBytes is how large a blob may be unless a node says so.
const defaultMaxBytes = 100 << 20

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.Limit, c.MaxBytes, c.Method = action.DefaultLimit, defaultMaxBytes, "POST"
}

type actionResult struct {
	action.Result
	File       *fileref.Value  `json:"file" doc:"The blob that was read; else null." zh:"文件：所读取的 Blob；否则为 null。"`
	ETag       string          `json:"etag" doc:"The ETag of the blob." zh:"ETag：Blob 的 ETag。"`
	MessageID  string          `json:"message_id" doc:"The id of the message that was sent." zh:"消息编号：已发送消息的编号。"`
	StatusCode int             `json:"status_code" doc:"What the function has answered with; else 0." zh:"状态码：函数的状态码；否则为 0。"`
	Body       json.RawMessage `json:"body" doc:"The answer of the function; else null." zh:"响应正文：函数的响应；否则为 null。"`
	Response   json.RawMessage `json:"azure_response" doc:"What else Azure has answered; null for lists." zh:"Azure 响应：Azure 的其他响应；列表为 null。"`
}

// act acts in services of Azure.
func act(objects *blobs, store *files.Store) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			return begin(ctx, objects, call, cfg)
		},
		End: func(out *actionResult, cfg actionConfig) {
			out.Done(cfg.ActionType)
			for _, field := range []*json.RawMessage{&out.Body, &out.Response} {
				if *field == nil {
					*field = json.RawMessage("null")
				}
			}
		},
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.AZURE_ACTION", Title: node.Says("Azure", "Azure"),
		Description: node.Says("Works in Microsoft Azure: blobs of a storage account, messages by Service Bus, functions.",
			"操作 Microsoft Azure：存储账号中的 Blob、Service Bus 消息、函数。"),
		Effect: workflow.Once,
		Needs:  node.Needs{Credential: []string{credentialType}},
		Keys:   []node.Key{{Name: "result", Meaning: node.Says("What the service has answered.", "服务的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Calls a function for an order.", "为订单调用函数。"),
			Config:  `{"credential_id": "azure_acme", "action_type": "function_invoke", "url": "/api/ship", "body": {"order": "{{order}}"}}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"shipped": true}`},
			Output: `{"result": {"success": true, "action": "function_invoke", "resource_id": "", "resource_url": "", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null,
				"error_message": "", "file": null, "etag": "", "message_id": "", "status_code": 200, "body": {"shipped": true}, "azure_response": null}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "blob_get", Effect: workflow.Idempotent, Needs: []string{"container", "name"}, Do: steps.Does((*acting).get)},
		{Name: "blob_list", Effect: workflow.Idempotent, Lists: true, Needs: []string{"container"}, Do: steps.Does((*acting).list)},
		{
			Name: "blob_put", Effect: workflow.Idempotent, Needs: []string{"container", "name", "file|content"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.put(store) }),
		},
		{Name: "servicebus_send", Effect: workflow.Once, Needs: []string{"queue|topic", "body"}, Do: steps.Does((*acting).send)},
		{Name: "function_invoke", Effect: workflow.Once, Needs: []string{"url"}, Do: steps.Does((*acting).invoke)},
	})
}
