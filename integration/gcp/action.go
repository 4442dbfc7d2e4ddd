package gcp

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
	ProjectID   string          `json:"project_id" with:"action_type=bigquery_query|pubsub_publish" doc:"The project. Empty: that of the service account." zh:"项目：留空则为服务账号所属的项目。"`
	Bucket      string          `json:"bucket" with:"action_type=gcs_get_object|gcs_list_objects|gcs_put_object" doc:"The bucket." zh:"存储桶：存储桶的名称。"`
	Object      string          `json:"object" with:"action_type=gcs_get_object|gcs_put_object" doc:"The name of the object." zh:"对象：对象的名称。"`
	Prefix      string          `json:"prefix" with:"action_type=gcs_list_objects" doc:"What the names begin with." zh:"前缀：名称的开头。"`
	File        json.RawMessage `json:"file" takes:"file" with:"action_type=gcs_put_object" doc:"The file that is stored." zh:"文件：要存储的文件。"`
	Content     json.RawMessage `json:"content" with:"action_type=gcs_put_object" doc:"What is stored in the place of a file: a text, or anything else as JSON." zh:"内容：代替文件存储的文本，其他值以 JSON 存储。"`
	ContentType string          `json:"content_type" with:"action_type=gcs_put_object" doc:"The media type of the object. Empty: that of the file." zh:"媒体类型：对象的媒体类型；留空则取文件的类型。"`
	Generation  node.Scalar     `json:"if_generation_match" with:"action_type=gcs_put_object" doc:"The generation that the object must have to be replaced; 0: there must be none." zh:"代际条件：对象须为此代才会被替换；0 表示须不存在。"`
	MaxBytes    int64           `json:"max_bytes" range:"1..1073741824" with:"action_type=gcs_get_object|gcs_put_object" doc:"How large the object may be, in bytes." zh:"大小上限：对象的最大字节数。"`
	Query       node.SQL        `json:"query" with:"action_type=bigquery_query" doc:"The statement, which may only read. Placeholders become parameters beside it." zh:"语句：只读的 SQL 语句；占位符作为参数传入。"`
	Parameters  json.RawMessage `json:"parameters" takes:"list|object" with:"action_type=bigquery_query" doc:"Values for the marks of the statement: a list for ?, an object for @name." zh:"参数：语句标记的值；? 用列表，@name 用对象。"`
	MaxRows     int             `json:"max_rows" range:"1..100000" with:"action_type=bigquery_query" doc:"The most rows that are returned." zh:"行数上限：最多返回的行数。"`
	Location    string          `json:"location" with:"action_type=bigquery_query" doc:"Where the data is, EU for instance. Empty: BigQuery finds out." zh:"位置：数据所在位置，例如 EU；留空则由 BigQuery 判断。"`
	Topic       string          `json:"topic" with:"action_type=pubsub_publish" doc:"The topic, by its name or as projects/…/topics/…." zh:"主题：主题名称，或 projects/…/topics/…。"`
	Messages    json.RawMessage `json:"messages" with:"action_type=pubsub_publish" doc:"The messages: a list of objects with data, attributes and ordering_key, or of anything that is the data itself. One needs no list." zh:"消息：由含 data、attributes、ordering_key 的对象组成的列表，或直接为数据；单条消息无需列表。"`
	URL         string          `json:"url" with:"action_type=cloud_run_invoke|function_invoke" doc:"The address that is called, or a path below the base_url of the credential." zh:"地址：所调用的地址，或凭据 base_url 之下的路径。"`
	Method      string          `json:"method" enum:"GET|POST|PUT|PATCH|DELETE" with:"action_type=cloud_run_invoke|function_invoke" doc:"The method of the call." zh:"方法：请求方法。"`
	Body        json.RawMessage `json:"body" with:"action_type=cloud_run_invoke|function_invoke" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
	Audience    string          `json:"audience" with:"action_type=cloud_run_invoke|function_invoke" doc:"Whom the token is for. Empty: the address of the service, of a function with its path." zh:"受众：令牌的接收方；留空则为服务的地址，函数则含其路径。"`
}

// defaultMaxBytes is how large an object may be unless a node says so.
const defaultMaxBytes = 100 << 20

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.Limit, c.MaxBytes, c.MaxRows, c.Method = action.DefaultLimit, defaultMaxBytes, 1000, "POST"
}

type actionResult struct {
	action.Result
	File       *fileref.Value    `json:"file" doc:"The object that was read; else null." zh:"文件：所读取的对象；否则为 null。"`
	Rows       []json.RawMessage `json:"rows" doc:"The rows that a query has found, as objects." zh:"行：查询所得的行，均为对象。"`
	MessageIDs []string          `json:"message_ids" doc:"The ids of the messages that were published." zh:"消息编号：已发布消息的编号。"`
	StatusCode int               `json:"status_code" doc:"What the service that was invoked has answered with; else 0." zh:"状态码：被调用服务的状态码；否则为 0。"`
	Body       json.RawMessage   `json:"body" doc:"The answer of the service that was invoked; else null." zh:"响应正文：被调用服务的响应；否则为 null。"`
	Response   json.RawMessage   `json:"gcp_response" doc:"What else Google has answered; null for lists." zh:"GCP 响应：Google 的其他响应；列表为 null。"`
}

// act acts in services of Google Cloud.
func act(objects *storage, store *files.Store) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			return begin(ctx, objects, call, cfg)
		},
		End: func(out *actionResult, cfg actionConfig) {
			truncated := out.Truncated
			out.Done(cfg.ActionType)
			out.Truncated = out.Truncated || truncated
			for _, field := range []*json.RawMessage{&out.Body, &out.Response} {
				if *field == nil {
					*field = json.RawMessage("null")
				}
			}
			if out.Rows == nil {
				out.Rows = []json.RawMessage{}
			}
			if out.MessageIDs == nil {
				out.MessageIDs = []string{}
			}
		},
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GCP_ACTION", Title: node.Says("Google Cloud", "Google Cloud"),
		Description: node.Says("Works in Google Cloud: objects of Cloud Storage, messages by Pub/Sub, queries of BigQuery, services of Cloud Run and Cloud Functions.",
			"操作 Google Cloud：Cloud Storage 对象、Pub/Sub 消息、BigQuery 查询、Cloud Run 与 Cloud Functions 服务。"),
		Effect: workflow.Once,
		Needs:  node.Needs{Credential: []string{credentialType}},
		Keys:   []node.Key{{Name: "result", Meaning: node.Says("What the service has answered.", "服务的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Publishes an order.", "发布一个订单。"),
			Config:  `{"credential_id": "gcp_acme", "action_type": "pubsub_publish", "topic": "orders", "messages": [{"data": "Order {{order}}", "attributes": {"shop": "north"}}]}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"access_token": "ya29.canary", "expires_in": 3600}`, `{"messageIds": ["2070443601311540"]}`},
			Output: `{"result": {"success": true, "action": "pubsub_publish", "resource_id": "2070443601311540", "resource_url": "", "items": [], "next_cursor": "", "truncated": false,
				"rate_limit_info": null, "error_message": "", "file": null, "rows": [], "message_ids": ["2070443601311540"], "status_code": 0, "body": null,
				"gcp_response": {"messageIds": ["2070443601311540"]}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "gcs_get_object", Effect: workflow.Idempotent, Needs: []string{"bucket", "object"}, Do: steps.Does((*acting).getObject)},
		{Name: "gcs_list_objects", Effect: workflow.Idempotent, Lists: true, Needs: []string{"bucket"}, Do: steps.Does((*acting).listObjects)},
		{Name: "bigquery_query", Effect: workflow.Idempotent, Needs: []string{"query"}, Do: steps.Does((*acting).query)},
		{
			Name: "gcs_put_object", Effect: workflow.Idempotent, Needs: []string{"bucket", "object", "file|content"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.putObject(store) }),
		},
		{Name: "pubsub_publish", Effect: workflow.Once, Needs: []string{"topic", "messages"}, Do: steps.Does((*acting).publish)},
		{Name: "cloud_run_invoke", Effect: workflow.Once, Needs: []string{"url"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.invoke(false) })},
		{Name: "function_invoke", Effect: workflow.Once, Needs: []string{"url"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.invoke(true) })},
	})
}
