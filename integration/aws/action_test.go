package aws

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

const fifoBody = `{"action_type":"sqs_send_message","queue_url":"` + queueURL + `.fifo","body":"b"}`

func vendor() actiontest.Vendor {
	send := actiontest.Sample{Config: `{"action_type":"sqs_send_message","queue_url":"` + queueURL + `","body":"b"}`, Call: "POST /"}
	list := actiontest.Sample{Config: `{"action_type":"s3_list_objects","bucket":"docs","prefix":"list/"}`, Call: "GET /docs/"}
	get := actiontest.Sample{Config: `{"action_type":"dynamodb_get_item","table":"orders","key":{"id":1}}`, Call: "POST /"}
	put := actiontest.Sample{Config: `{"action_type":"s3_put_object","bucket":"docs","key":"k","content":"c"}`, Call: "PUT /docs/k"}
	publish := actiontest.Sample{Config: `{"action_type":"sns_publish","topic_arn":"` + topicARN + `","message":"m"}`, Call: "POST /"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	said := func(status int, body string) actiontest.Reply { return actiontest.Reply{Status: status, Body: body} }
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Serve: newFakeAWS, Prefix: "/cloud/aws", Key: "secret_access_key",
		Credential: map[string]string{"access_key_id": testID, "secret_access_key": actiontest.Token, "session_token": testSession, "region": "eu-test-1"},
		Once:       send, Read: get, Pages: list, Total: keyCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoBody", Sample: only(`{"action_type":"sqs_send_message","queue_url":"q"}`), Code: fault.InvalidInput, Part: "body"},
			{Name: "NoContent", Sample: only(`{"action_type":"s3_put_object","bucket":"docs","key":"k"}`), Code: fault.InvalidInput, Part: "file or content"},
			{Name: "OtherQueue", Sample: only(`{"action_type":"sqs_send_message","queue_url":"https://sqs.eu-test-1.amazonaws.com/1/x","body":"b"}`), Code: fault.NotFound, Part: "QueueDoesNotExist: The specified queue does not exist"},
			{Name: "OtherTopic", Sample: only(`{"action_type":"sns_publish","topic_arn":"arn:aws:sns:eu-test-1:1:x","message":"m"}`), Code: fault.NotFound, Part: "Topic does not exist"},
			{Name: "OtherTable", Sample: only(`{"action_type":"dynamodb_get_item","table":"x","key":{"id":1}}`), Code: fault.NotFound},
			{Name: "OtherFunction", Sample: only(`{"action_type":"lambda_invoke","function":"x"}`), Code: fault.NotFound, Part: "Function not found"},
			{Name: "OtherKey", Sample: only(`{"action_type":"s3_get_object","bucket":"docs","key":"none"}`), Code: fault.NotFound, Part: "NoSuchKey"},
			{Name: "OtherBucket", Sample: only(`{"action_type":"s3_list_objects","bucket":"none"}`), Code: fault.NotFound, Part: "create the bucket"},
			{Name: "NoBucket", Sample: only(`{"action_type":"s3_list_objects","bucket":"../x"}`), Code: fault.InvalidInput, Part: "bucket"},
			{Name: "NoKey", Sample: only(`{"action_type":"s3_get_object","bucket":"docs","key":"a/../b"}`), Code: fault.InvalidConfig},
			{Name: "KeyIsText", Sample: only(`{"action_type":"dynamodb_get_item","table":"orders","key":"1"}`), Code: fault.InvalidInput, Part: "primary key"},
			{Name: "WrongRegion", Sample: only(`{"action_type":"s3_list_objects","bucket":"docs","region":"evil.example.com/"}`), Code: fault.InvalidInput, Part: "region"},
			{Name: "WrongCursor", Sample: only(`{"action_type":"dynamodb_query","table":"orders","key_condition":"customer = :c","values":{":c":"ann"},"cursor":"!"}`), Code: fault.InvalidInput, Part: "cursor"},
			{Name: "WrongAttribute", Sample: only(`{"action_type":"sqs_send_message","queue_url":"` + queueURL + `","body":"b","attributes":{"a":[]}}`), Code: fault.InvalidInput, Part: "attributes"},
			{Name: "TooLarge", Sample: only(`{"action_type":"s3_get_object","bucket":"docs","key":"in/a b.txt","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "TooLargeToPut", Sample: only(`{"action_type":"s3_put_object","bucket":"docs","key":"k","content":"hello","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "FunctionFails", Sample: only(`{"action_type":"lambda_invoke","function":"fail"}`), Code: fault.RemoteRejected, Part: "ValueError: no stock"},
			{Name: "Condition", Sample: only(`{"action_type":"dynamodb_put_item","table":"orders","item":{"id":1},"condition":"attribute_not_exists(id)"}`), Code: fault.Conflict},
			{Name: "Throttled", Sample: send, Reply: said(400, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow"}`), Code: fault.RateLimited, Retryable: true},
			{Name: "ThrottledInXML", Sample: publish, Reply: said(400, `<ErrorResponse><Error><Code>Throttled</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`), Code: fault.RateLimited, Retryable: true, Part: "Rate exceeded"},
			{Name: "Capacity", Sample: get, Reply: said(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`), Code: fault.RateLimited, Retryable: true},
			{Name: "SlowDown", Sample: list, Reply: actiontest.Reply{Status: 503, Header: map[string]string{"Retry-After": "4"}, Body: `<Error><Code>SlowDown</Code></Error>`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 4},
			{Name: "Away", Sample: send, Reply: said(503, `{"__type":"ServiceUnavailable"}`), Code: fault.RemoteError},
			{Name: "Expired", Sample: get, Reply: said(400, `{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"The security token included in the request is expired"}`), Code: fault.CredentialInvalid, Part: "expired"},
			{Name: "OtherRegion", Sample: list, Reply: actiontest.Reply{Status: 301, Header: map[string]string{"X-Amz-Bucket-Region": "eu-west-3"}, Body: `<Error><Code>PermanentRedirect</Code></Error>`}, Code: fault.CredentialInvalid, Part: `to "eu-west-3"`},
			{Name: "NotXML", Sample: publish, Reply: said(200, `{}`), Code: fault.OutcomeUnknown},
			{Name: "OtherXML", Sample: publish, Reply: said(200, `<html></html>`), Code: fault.OutcomeUnknown},
			{Name: "NoID", Sample: publish, Reply: said(200, `<PublishResponse></PublishResponse>`), Code: fault.OutcomeUnknown},
			{Name: "ListNotXML", Sample: list, Reply: said(200, `[]`), Code: fault.RemoteError, Retryable: true},
			{Name: "PutFails", Sample: put, Reply: said(500, `<Error><Code>InternalError</Code></Error>`), Code: fault.RemoteError, Retryable: true},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	target := func(name string) map[string]string {
		return map[string]string{"X-Amz-Target": name, "Content-Type": "application/x-amz-json-1.0"}
	}
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "Get", Config: `{"action_type":"s3_get_object","bucket":"docs","key":"in/a b.txt"}`, Call: "GET /docs/in/a%20b.txt",
			Result: `{"success":true,"action":"s3_get_object","resource_id":"in/a b.txt","etag":"\"etag\"","file":{"name":"a b.txt","content_type":"text/plain","size":5},"aws_response":{"metadata":{"owner":"ann"}}}`,
		},
		{Name: "List", Config: `{"action_type":"s3_list_objects","bucket":"docs","prefix":"in/","limit":1}`, Call: "GET /docs/", Query: map[string]string{"prefix": "in/", "max-keys": "1"}, Result: `{"items":[{"key":"in/a b.txt","size":5,"etag":"\"etag\""}],"truncated":false,"aws_response":null}`},
		{Name: "PutText", Config: `{"action_type":"s3_put_object","bucket":"docs"}`, Input: `{"key":"out/ü+1","content":"héllo"}`, Call: "PUT /docs/out/%C3%BC%2B1", Text: "héllo", Header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, Result: `{"resource_id":"out/ü+1","etag":"\"etag\""}`},
		{Name: "PutJSON", Config: `{"action_type":"s3_put_object","bucket":"docs","key":"k","content":{"a":1},"content_type":"text/x"}`, Call: "PUT /docs/k", Body: `{"a":1}`, Header: map[string]string{"Content-Type": "text/x"}},
		{Name: "PutFile", Config: `{"action_type":"s3_put_object","bucket":"docs","key":"k","file":{"base64":"aGVsbG8=","name":"a.pdf"}}`, Call: "PUT /docs/k", Text: "hello", Header: map[string]string{"Content-Type": "application/pdf"}},
		{
			Name: "Send", Config: `{"action_type":"sqs_send_message","queue_url":"` + queueURL + `","body":{"a":1},"attributes":{"n":7,"s":"x"}}`, Call: "POST /", Header: target("AmazonSQS.SendMessage"),
			Body:   `{"QueueUrl":"` + queueURL + `","MessageBody":"{\"a\":1}","MessageAttributes":{"n":{"DataType":"Number","StringValue":"7"},"s":{"DataType":"String","StringValue":"x"}}}`,
			Result: `{"message_id":"message-1","resource_id":"message-1"}`,
		},
		{Name: "SendInOrder", Config: `{"action_type":"sqs_send_message","queue_url":"` + queueURL + `.fifo","body":"b","message_group_id":"g"}`, Call: "POST /", Body: `{"MessageGroupId":"g"}`, Text: `"MessageDeduplicationId":"`},
		{Name: "SendInOrderOfWorkflow", Config: fifoBody, Call: "POST /", Body: `{"MessageGroupId":"wf_1"}`},
		{
			Name: "Publish", Config: `{"action_type":"sns_publish","topic_arn":"` + topicARN + `","message":"a b","subject":"s","attributes":{"n":7}}`, Call: "POST /",
			Text:   "Message=a+b&MessageAttributes.entry.1.Name=n&MessageAttributes.entry.1.Value.DataType=Number&MessageAttributes.entry.1.Value.StringValue=7&Subject=s",
			Result: `{"message_id":"message-1","aws_response":{"RequestId":"req"}}`,
		},
		{Name: "PublishInOrder", Config: `{"action_type":"sns_publish","topic_arn":"` + topicARN + `.fifo","message":"m","message_group_id":"g"}`, Call: "POST /", Text: "MessageGroupId=g"},
		{Name: "Invoke", Config: `{"action_type":"lambda_invoke","function":"echo","payload":{"a":1}}`, Call: "POST /2015-03-31/functions/echo/invocations", Body: `{"a":1}`, Result: `{"payload":{"given":{"a":1}},"resource_id":"echo","aws_response":{"executed_version":"$LATEST"}}`},
		{Name: "InvokeByARN", Config: `{"action_type":"lambda_invoke","function":"arn:aws:lambda:eu-test-1:123456789012:function:echo:live","region":"us-east-1"}`, Input: `{"x":1}`, Call: "POST /2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-test-1%3A123456789012%3Afunction%3Aecho%3Alive/invocations", Body: `{"x":1}`},
		{
			Name: "GetItem", Config: `{"action_type":"dynamodb_get_item","table":"orders","key":{"id":1}}`, Call: "POST /", Header: target("DynamoDB_20120810.GetItem"), Body: `{"TableName":"orders","Key":{"id":{"N":"1"}}}`,
			Result: `{"payload":{"id":1,"customer":"ann","tags":["a","b"],"raw":{"base64":"AAE="},"sizes":[1,2.50],"more":{"ok":true,"none":null,"list":["x"]}}}`,
		},
		{Name: "GetNoItem", Config: `{"action_type":"dynamodb_get_item","table":"orders","key":{"id":99}}`, Call: "POST /", Result: `{"payload":null}`},
		{
			Name: "Query", Config: `{"action_type":"dynamodb_query","table":"orders","key_condition":"customer = :c","values":{":c":"ann"},"names":{"#n":"name"},"index":"i","limit":1}`, Call: "POST /", Header: target("DynamoDB_20120810.Query"),
			Body:   `{"KeyConditionExpression":"customer = :c","ExpressionAttributeValues":{":c":{"S":"ann"}},"ExpressionAttributeNames":{"#n":"name"},"IndexName":"i","Limit":1}`,
			Result: `{"items":[{"id":0}],"truncated":true}`,
		},
		{Name: "QueryFiltered", Config: `{"action_type":"dynamodb_query","table":"orders","key_condition":"customer = :c","values":{":c":"ann"},"filter":"x = :c","limit":1}`, Call: "POST /", Body: `{"FilterExpression":"x = :c"}`},
		{
			Name: "PutItem", Config: `{"action_type":"dynamodb_put_item","table":"orders","item":{"id":9007199254740993,"ok":true,"raw":{"base64":"AAE="},"list":[1,"a",null],"more":{"x":{"base64":"AA==","y":1}}},"condition":"attribute_not_exists(id)","values":{":v":1}}`, Call: "POST /",
			Header: target("DynamoDB_20120810.PutItem"),
			Body:   `{"Item":{"id":{"N":"9007199254740993"},"ok":{"BOOL":true},"raw":{"B":"AAE="},"list":{"L":[{"N":"1"},{"S":"a"},{"NULL":true}]},"more":{"M":{"x":{"M":{"base64":{"S":"AA=="},"y":{"N":"1"}}}}}},"ConditionExpression":"attribute_not_exists(id)"}`,
		},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_QueryPages: a query goes over pages, and goes on where it ended.
func TestAction_QueryPages(t *testing.T) {
	t.Parallel()
	v := vendor()
	v.Pages, v.Total = actiontest.Sample{Config: `{"action_type":"dynamodb_query","table":"orders","key_condition":"customer = :c","values":{":c":"ann"}}`, Call: "POST /"}, itemCount
	v.Refusals = nil
	v.Failures(t)
}

// TestAction_Effects: what a FIFO queue or topic takes may be repeated.
func TestAction_Effects(t *testing.T) {
	t.Parallel()
	r := &node.Registry{}
	r.Register(act(nil, nil))
	k, _ := r.Kind("EXTERNAL_ACTION.AWS_ACTION")
	for config, want := range map[string]workflow.Effect{
		fifoBody: workflow.Idempotent, vendor().Once.Config: workflow.Once,
		`{"action_type":"sns_publish","topic_arn":"` + topicARN + `.fifo","message":"m"}`: workflow.Idempotent,
		`{"action_type":"sns_publish","topic_arn":"` + topicARN + `","message":"m"}`:      workflow.Once,
		`{"action_type":"lambda_invoke","function":"f"}`:                                  workflow.Once,
		`{"action_type":"s3_put_object","bucket":"b","key":"k","content":"c"}`:            workflow.Idempotent,
		`{"action_type":"dynamodb_put_item","table":"t","item":{"id":1}}`:                 workflow.Idempotent,
	} {
		plan, problems := k.Plan(&workflow.Node{ID: "n", Name: "n", Type: "EXTERNAL_ACTION", Subtype: "AWS_ACTION", Configurations: []byte(config)})
		if plan.Effect != want {
			t.Errorf("%s is %s, want %s (%v)", config, plan.Effect, want, problems)
		}
	}
}

// TestAction_FIFO: a message whose answer was lost is sent again and arrives once.
func TestAction_FIFO(t *testing.T) {
	t.Parallel()
	for _, config := range []string{fifoBody, `{"action_type":"sns_publish","topic_arn":"` + topicARN + `.fifo","message":"m"}`} {
		b := vendor().New(t)
		call := b.Call(config, ``)
		b.Loses("POST /")
		_, err := b.Kind.Run(context.Background(), call)
		if failed, ok := errors.AsType[*node.Failure](err); !ok || failed.Unknown || !fault.From(err).Retryable {
			t.Fatalf("the answer was lost: %v", err)
		}
		call.Attempt = 2
		out, err := b.Kind.Run(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out.(node.Done)["result"]), `"message_id":"message-1"`) {
			t.Errorf("it arrived as another message: %s", out)
		}
	}
}

// TestAction_PutItemAgain: an item that the attempt before has put is there, although the condition says that it must not be; one that
// somebody else has put is a conflict.
func TestAction_PutItemAgain(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	put := func(item string, attempt uint32) error {
		call := b.Call(`{"action_type":"dynamodb_put_item","table":"orders","item":`+item+`,"condition":"attribute_not_exists(id)"}`, ``)
		call.Attempt = attempt
		_, err := b.Kind.Run(context.Background(), call)
		return err
	}
	b.Loses("POST /")
	if err := put(`{"id":50,"a":[1.0]}`, 1); fault.CodeOf(err) != fault.NetworkError {
		t.Fatalf("the answer was lost: %v", err)
	}
	if err := put(`{"id":50,"a":[1.0]}`, 2); err != nil {
		t.Errorf("it is there: %v", err)
	}
	if err := put(`{"id":50,"a":[2]}`, 2); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another is there: %v", err)
	}
	if err := put(`{"id":50,"a":[1.0]}`, 1); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("it was there before: %v", err)
	}
}

// TestAction_Content: what is read is what was stored.
func TestAction_Content(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	if _, err := b.Run(`{"action_type":"s3_put_object","bucket":"docs","key":"a/b.bin","file":{"base64":"AAH/","name":"b.bin"}}`, ``); err != nil {
		t.Fatal(err)
	}
	out, err := b.Run(`{"action_type":"s3_get_object","bucket":"docs","key":"a/b.bin"}`, ``)
	if err != nil {
		t.Fatal(err)
	}
	if data, ok := b.Files.Content(out.Get("file.blob").Str); !ok || string(data) != "\x00\x01\xff" || out.Get("file.name").Str != "b.bin" {
		t.Errorf("%q, %s", data, out.Raw)
	}
}

// TestAction_Addresses: without a base_url every service has its own address, in the region that is named.
func TestAction_Addresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ service, region, name, want string }{
		{"sqs", "eu-west-1", "", "https://sqs.eu-west-1.amazonaws.com"},
		{"sqs", "eu-west-1", "https://sqs.us-east-2.amazonaws.com/1/q", "https://sqs.us-east-2.amazonaws.com"},
		{"sns", "eu-west-1", "arn:aws:sns:ap-south-1:1:t", "https://sns.ap-south-1.amazonaws.com"},
		{"lambda", "cn-north-1", "echo", "https://lambda.cn-north-1.amazonaws.com.cn"},
		{"lambda", "eu-west-1", "arn:aws:lambda:evil.example.com/:1:function:f", "https://lambda.eu-west-1.amazonaws.com"},
	} {
		a := &acting{keys: keys{Region: c.region}}
		a.at(c.name)
		if got := a.api(c.service).Base.String(); got != c.want {
			t.Errorf("%s of %s is at %s, want %s", c.name, c.service, got, c.want)
		}
	}
	a := &acting{keys: keys{Region: "eu-west-1"}, cfg: actionConfig{Bucket: "docs"}}
	if api, where, err := a.object("a b"); err != nil || api.Base.String()+where != "https://docs.s3.eu-west-1.amazonaws.com/a%20b" {
		t.Errorf("%s%s, %v", api.Base, where, err)
	}
}

// TestAction_Region: the region of a node wins over that of the credential; the signature is for it.
func TestAction_Region(t *testing.T) {
	t.Parallel()
	v := vendor()
	v.Credential["region"] = "us-east-1"
	if _, err := v.New(t).Run(`{"action_type":"s3_list_objects","bucket":"docs"}`, ``); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("the signature is for another region: %v", err)
	}
	if _, err := v.New(t).Run(`{"action_type":"s3_list_objects","bucket":"docs","region":"eu-test-1"}`, ``); err != nil {
		t.Error(err)
	}
}
