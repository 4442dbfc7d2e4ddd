package aws

import (
	"context"
	"encoding/json"
	"strings"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	Region       string          `json:"region" doc:"The region. Empty: the one that an address or ARN names, else that of the credential." zh:"区域：留空则取地址或 ARN 中的区域，否则取凭据的区域。"`
	Bucket       string          `json:"bucket" with:"action_type=s3_get_object|s3_list_objects|s3_put_object" doc:"The bucket." zh:"存储桶：存储桶的名称。"`
	Key          json.RawMessage `json:"key" takes:"text|object" with:"action_type=s3_get_object|s3_put_object|dynamodb_get_item" doc:"The key of the object, or the primary key of the item as an object." zh:"键：对象的键；或以对象表示的条目主键。"`
	Prefix       string          `json:"prefix" with:"action_type=s3_list_objects" doc:"What the keys begin with." zh:"前缀：键的开头。"`
	File         json.RawMessage `json:"file" takes:"file" with:"action_type=s3_put_object" doc:"The file that is stored." zh:"文件：要存储的文件。"`
	Content      json.RawMessage `json:"content" with:"action_type=s3_put_object" doc:"What is stored in the place of a file: a text, or anything else as JSON." zh:"内容：代替文件存储的文本，其他值以 JSON 存储。"`
	ContentType  string          `json:"content_type" with:"action_type=s3_put_object" doc:"The media type of the object. Empty: that of the file." zh:"媒体类型：对象的媒体类型；留空则取文件的类型。"`
	MaxBytes     int64           `json:"max_bytes" range:"1..1073741824" with:"action_type=s3_get_object|s3_put_object" doc:"How large the object may be, in bytes." zh:"大小上限：对象的最大字节数。"`
	QueueURL     string          `json:"queue_url" with:"action_type=sqs_send_message" doc:"The address of the queue." zh:"队列地址：队列的 URL。"`
	Body         json.RawMessage `json:"body" with:"action_type=sqs_send_message" doc:"The message: a text, or anything else as JSON." zh:"消息正文：文本，其他值以 JSON 发送。"`
	Attributes   node.Object     `json:"attributes" with:"action_type=sqs_send_message|sns_publish" doc:"Attributes of the message: texts and numbers by name." zh:"消息属性：按名称给出的文本和数字。"`
	MessageGroup string          `json:"message_group_id" with:"action_type=sqs_send_message|sns_publish" doc:"The group of the message, in a FIFO queue or topic. Empty: the workflow is one." zh:"消息组：FIFO 队列或主题中的消息组；留空则以工作流为组。"`
	TopicARN     string          `json:"topic_arn" with:"action_type=sns_publish" doc:"The ARN of the topic." zh:"主题 ARN：主题的 ARN。"`
	Message      json.RawMessage `json:"message" with:"action_type=sns_publish" doc:"The message: a text, or anything else as JSON." zh:"消息：文本，其他值以 JSON 发送。"`
	Subject      string          `json:"subject" with:"action_type=sns_publish" doc:"The subject, for those who get it by mail." zh:"主题行：供邮件订阅者阅读。"`
	Function     string          `json:"function" with:"action_type=lambda_invoke" doc:"The name or ARN of the function, perhaps with a version or alias." zh:"函数：函数的名称或 ARN，可带版本或别名。"`
	Payload      json.RawMessage `json:"payload" with:"action_type=lambda_invoke" doc:"What the function is given; nothing: the input of the node." zh:"载荷：传给函数的值；留空则为节点的输入。"`
	Table        string          `json:"table" with:"action_type=dynamodb_get_item|dynamodb_query|dynamodb_put_item" doc:"The table." zh:"表：表的名称。"`
	Item         node.Object     `json:"item" with:"action_type=dynamodb_put_item" doc:"The item, as a plain object." zh:"条目：普通对象形式的条目。"`
	Condition    string          `json:"condition" with:"action_type=dynamodb_put_item" doc:"A condition expression; if it does not hold, the item is not stored." zh:"条件：条件表达式；不成立则不存储。"`
	KeyCondition string          `json:"key_condition" with:"action_type=dynamodb_query" doc:"The key condition expression, customer = :c for instance." zh:"键条件：键条件表达式，例如 customer = :c。"`
	Values       node.Object     `json:"values" with:"action_type=dynamodb_query|dynamodb_put_item" doc:"The values of the expressions by their names, such as :c." zh:"表达式的值：按名称给出，例如 :c。"`
	Names        node.Object     `json:"names" with:"action_type=dynamodb_query|dynamodb_put_item" doc:"Attributes by the names that stand for them in expressions, such as #n." zh:"属性名：表达式中代替属性名的名称，例如 #n。"`
	Index        string          `json:"index" with:"action_type=dynamodb_query" doc:"The index that is asked in the place of the table." zh:"索引：代替表进行查询的索引。"`
	Filter       string          `json:"filter" with:"action_type=dynamodb_query" doc:"A filter expression for what the key condition finds." zh:"过滤：对键条件所得结果的过滤表达式。"`
}

// defaultMaxBytes is how large an object may be unless a node says so.
const defaultMaxBytes = 100 << 20

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() { c.Limit, c.MaxBytes = action.DefaultLimit, defaultMaxBytes }

type actionResult struct {
	action.Result
	File      *fileref.Value  `json:"file" doc:"The object that was read; else null." zh:"文件：所读取的对象；否则为 null。"`
	MessageID string          `json:"message_id" doc:"The id of the message that was sent." zh:"消息编号：已发送消息的编号。"`
	ETag      string          `json:"etag" doc:"The ETag of the object." zh:"ETag：对象的 ETag。"`
	Payload   json.RawMessage `json:"payload" doc:"What a function has returned, or the item that was read, as a plain object; null if there is none." zh:"载荷：函数的返回值，或以普通对象表示的条目；没有则为 null。"`
	Response  json.RawMessage `json:"aws_response" doc:"What else the service has answered; null for lists." zh:"AWS 响应：服务的其他响应；列表为 null。"`
}

// fifo says that a queue or topic, by its address or ARN, takes a message once however often it arrives.
func fifo(name string) bool { return strings.HasSuffix(name, ".fifo") }

// onceUnless is the effect of sending a message.
func onceUnless(repeatable bool) workflow.Effect {
	if repeatable {
		return workflow.Idempotent
	}
	return workflow.Once
}

// act acts in five services of AWS.
func act(client *outbound.Client, store *files.Store) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			return begin(ctx, client, call, cfg)
		},
		End: func(out *actionResult, cfg actionConfig) {
			if out.Done(cfg.ActionType); out.Payload == nil {
				out.Payload = json.RawMessage("null")
			}
			if out.Response == nil {
				out.Response = json.RawMessage("null")
			}
		},
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.AWS_ACTION", Title: node.Says("AWS", "AWS"),
		Description: node.Says("Works in Amazon Web Services: objects in S3 and stores like it, messages by SQS and SNS, functions of Lambda, items of DynamoDB.",
			"操作 Amazon Web Services：S3 及兼容存储中的对象、SQS 与 SNS 消息、Lambda 函数、DynamoDB 条目。"),
		Effect: workflow.Once,
		Needs:  node.Needs{Credential: []string{credentialType}},
		Keys:   []node.Key{{Name: "result", Meaning: node.Says("What the service has answered.", "服务的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Puts an order into a queue.", "将订单放入队列。"),
			Config:  `{"credential_id": "aws_acme", "action_type": "sqs_send_message", "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "body": "Order {{order}}"}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"MessageId": "5fea7756-0ea4-451a-a703-a558b933e274", "MD5OfMessageBody": "fafb00f5732ab283681e124bf8747ed1"}`},
			Output: `{"result": {"success": true, "action": "sqs_send_message", "resource_id": "5fea7756-0ea4-451a-a703-a558b933e274", "resource_url": "", "items": [], "next_cursor": "",
				"truncated": false, "rate_limit_info": null, "error_message": "", "file": null, "message_id": "5fea7756-0ea4-451a-a703-a558b933e274", "etag": "", "payload": null,
				"aws_response": {"MessageId": "5fea7756-0ea4-451a-a703-a558b933e274", "MD5OfMessageBody": "fafb00f5732ab283681e124bf8747ed1"}}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "s3_get_object", Effect: workflow.Idempotent, Needs: []string{"bucket", "key"}, Do: steps.Does((*acting).getObject)},
		{Name: "s3_list_objects", Effect: workflow.Idempotent, Lists: true, Needs: []string{"bucket"}, Do: steps.Does((*acting).listObjects)},
		{
			Name: "s3_put_object", Effect: workflow.Idempotent, Needs: []string{"bucket", "key", "file|content"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.putObject(store) }),
		},
		{
			Name: "sqs_send_message", EffectOf: func(c actionConfig) workflow.Effect { return onceUnless(fifo(c.QueueURL)) }, Needs: []string{"queue_url", "body"},
			Do: steps.Does((*acting).sendMessage),
		},
		{
			Name: "sns_publish", EffectOf: func(c actionConfig) workflow.Effect { return onceUnless(fifo(c.TopicARN)) }, Needs: []string{"topic_arn", "message"},
			Do: steps.Does((*acting).publish),
		},
		{Name: "lambda_invoke", Effect: workflow.Once, Needs: []string{"function"}, Do: steps.Does((*acting).invoke)},
		{Name: "dynamodb_get_item", Effect: workflow.Idempotent, Needs: []string{"table", "key"}, Do: steps.Does((*acting).getItem)},
		{Name: "dynamodb_query", Effect: workflow.Idempotent, Lists: true, Needs: []string{"table", "key_condition", "values"}, Do: steps.Does((*acting).query)},
		{Name: "dynamodb_put_item", Effect: workflow.Idempotent, Needs: []string{"table", "item"}, Do: steps.Does((*acting).putItem)},
	})
}
