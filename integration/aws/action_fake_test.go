package aws

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
)

// fakeAWS is five services of AWS at one address. It recomputes every signature, compares the sum of every body, and refuses what the real
// services refuse.
type fakeAWS struct {
	t testing.TB

	mu       sync.Mutex
	objects  map[string]fakeObject
	items    map[string]json.RawMessage // of the table orders, by their id
	messages []string
	once     map[string]string // the ids of messages, by what makes them unique
}

type fakeObject struct {
	kind string
	data []byte
}

const (
	queueURL  = "https://sqs.eu-test-1.amazonaws.com/123456789012/orders"
	topicARN  = "arn:aws:sns:eu-test-1:123456789012:orders"
	itemCount = 5
	keyCount  = 7
)

func newFakeAWS(t testing.TB) http.Handler {
	f := &fakeAWS{t: t, objects: map[string]fakeObject{}, items: map[string]json.RawMessage{}, once: map[string]string{}}
	for n := range keyCount {
		f.objects[fmt.Sprintf("list/%d@ü", n)] = fakeObject{"text/plain", []byte("x")}
	}
	f.objects["in/a b.txt"] = fakeObject{"text/plain", []byte("hello")}
	for n := range itemCount {
		id := strconv.Itoa(n)
		f.items[id] = json.RawMessage(`{"id":{"N":"` + id + `"},"customer":{"S":"ann"},"tags":{"SS":["a","b"]},"raw":{"B":"AAE="},"sizes":{"NS":["1","2.50"]},"more":{"M":{"ok":{"BOOL":true},"none":{"NULL":true},"list":{"L":[{"S":"x"}]}}}}`)
	}
	return f
}

// serviceOf is the one that a call is for.
func serviceOf(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	switch {
	case strings.HasPrefix(target, "AmazonSQS."):
		return "sqs"
	case strings.HasPrefix(target, "DynamoDB_20120810."):
		return "dynamodb"
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		return "sns"
	case strings.HasPrefix(r.URL.Path, "/2015-03-31/functions/"):
		return "lambda"
	}
	return "s3"
}

// ServeHTTP implements [http.Handler].
func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := serviceOf(r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	code := genuine(r, keys{AccessKeyID: testID, SecretAccessKey: actiontest.Token, SessionToken: testSession, Region: "eu-test-1"}, name)
	if sum := sha256.Sum256(body); code == "" && r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
		code = "XAmzContentSHA256Mismatch"
	}
	if code != "" {
		f.refuse(w, name, http.StatusForbidden, code, "The request signature we calculated does not match.")
		return
	}
	switch name {
	case "sqs":
		f.send(w, r, body)
	case "dynamodb":
		f.dynamo(w, r, body)
	case "sns":
		f.publish(w, body)
	case "lambda":
		f.invoke(w, r, body)
	default:
		f.s3(w, r, body)
	}
}

// refuse answers as each service does.
func (f *fakeAWS) refuse(w http.ResponseWriter, service string, status int, code, message string) {
	switch service {
	case "sns":
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, message)
	case "s3":
		(&fakeS3{}).refuse(w, status, code, message)
	case "lambda":
		w.Header().Set("X-Amzn-Errortype", code+":http://internal.amazon.com/coral/com.amazonaws.awsgirapi/")
		actiontest.Write(f.t, w, status, map[string]string{"Type": "User", "Message": message})
	default:
		actiontest.Write(f.t, w, status, map[string]string{"__type": "com.amazonaws." + service + "#" + code, "message": message})
	}
}

// deliver takes a message, once for what makes it unique.
func (f *fakeAWS) deliver(unique string) string {
	if id, ok := f.once[unique]; ok && unique != "" {
		return id
	}
	id := fmt.Sprintf("message-%d", len(f.messages)+1)
	f.messages, f.once[unique] = append(f.messages, id), id
	return id
}

// wrongGroup is what is wrong with the fields of a FIFO queue.
func wrongGroup(isFIFO bool, group, unique string) string {
	switch {
	case isFIFO && group == "":
		return "The request must contain the parameter MessageGroupId."
	case isFIFO && unique == "":
		return "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
	case !isFIFO && unique != "":
		return "The request includes a parameter that is not valid for this queue type"
	}
	return ""
}

func (f *fakeAWS) send(w http.ResponseWriter, r *http.Request, body []byte) {
	q := gjson.ParseBytes(body)
	where := q.Get("QueueUrl").Str
	wrong := wrongGroup(fifo(where), q.Get("MessageGroupId").Str, q.Get("MessageDeduplicationId").Str)
	switch {
	case r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" || r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		f.refuse(w, "sqs", 400, "UnknownOperationException", "")
	case where != queueURL && where != queueURL+".fifo":
		f.refuse(w, "sqs", 400, "QueueDoesNotExist", "The specified queue does not exist.")
	case q.Get("MessageBody").Str == "" || wrong != "":
		f.refuse(w, "sqs", 400, "InvalidParameterValue", wrong)
	default:
		sum := md5.Sum([]byte(q.Get("MessageBody").Str))
		actiontest.Write(f.t, w, 200, map[string]string{"MessageId": f.deliver(q.Get("MessageDeduplicationId").Str), "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
}

func (f *fakeAWS) publish(w http.ResponseWriter, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		f.t.Error(err)
	}
	where := form.Get("TopicArn")
	wrong := wrongGroup(fifo(where), form.Get("MessageGroupId"), form.Get("MessageDeduplicationId"))
	switch {
	case form.Get("Action") != "Publish" || form.Get("Version") != "2010-03-31":
		f.refuse(w, "sns", 400, "InvalidAction", "")
	case where != topicARN && where != topicARN+".fifo":
		f.refuse(w, "sns", 404, "NotFound", "Topic does not exist")
	case form.Get("Message") == "" || wrong != "" || len(form.Get("Subject")) > 100:
		f.refuse(w, "sns", 400, "InvalidParameter", "Invalid parameter: "+wrong)
	default:
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>%s</MessageId></PublishResult><ResponseMetadata><RequestId>req</RequestId></ResponseMetadata></PublishResponse>`,
			f.deliver(form.Get("MessageDeduplicationId")))
	}
}

func (f *fakeAWS) invoke(w http.ResponseWriter, r *http.Request, body []byte) {
	name, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/2015-03-31/functions/"), "/invocations")
	switch {
	case !ok || r.Method != http.MethodPost || !json.Valid(body):
		f.refuse(w, "lambda", 400, "InvalidRequestContentException", "Could not parse request body into json")
	case name == "fail":
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		actiontest.Write(f.t, w, 200, map[string]any{"errorMessage": "no stock", "errorType": "ValueError", "stackTrace": []string{}})
	case name == "echo" || name == "arn:aws:lambda:eu-test-1:123456789012:function:echo:live":
		w.Header().Set("X-Amz-Executed-Version", "$LATEST")
		actiontest.Write(f.t, w, 200, map[string]json.RawMessage{"given": body})
	default:
		f.refuse(w, "lambda", 404, "ResourceNotFoundException", "Function not found: "+name)
	}
}

// typedItem says that a value is one of DynamoDB: every one has one type.
func typedItem(v gjson.Result) bool {
	ok := v.IsObject()
	v.ForEach(func(_, one gjson.Result) bool {
		ok = ok && one.IsObject() && len(one.Map()) == 1
		one.ForEach(func(kind, inner gjson.Result) bool {
			ok = ok && slices.Contains([]string{"S", "N", "BOOL", "NULL", "L", "M", "B", "SS", "NS", "BS"}, kind.Str) && (kind.Str != "N" || inner.Type == gjson.String)
			if kind.Str == "M" {
				ok = ok && typedItem(inner)
			}
			return true
		})
		return true
	})
	return ok
}

func (f *fakeAWS) dynamo(w http.ResponseWriter, r *http.Request, body []byte) {
	q := gjson.ParseBytes(body)
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	switch {
	case q.Get("TableName").Str != "orders":
		f.refuse(w, "dynamodb", 400, "ResourceNotFoundException", "Requested resource not found")
	case operation == "GetItem" && q.Get("Key.id.N").Exists():
		found, ok := f.items[q.Get("Key.id.N").Str]
		if !ok {
			actiontest.Write(f.t, w, 200, map[string]any{})
			return
		}
		actiontest.Write(f.t, w, 200, map[string]any{"Item": found})
	case operation == "PutItem" && typedItem(q.Get("Item")) && q.Get("Item.id.N").Exists():
		id := q.Get("Item.id.N").Str
		if there, ok := f.items[id]; ok && q.Get("ConditionExpression").Str == "attribute_not_exists(id)" {
			refusal := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed"}
			if q.Get("ReturnValuesOnConditionCheckFailure").Str == "ALL_OLD" {
				refusal["Item"] = there
			}
			actiontest.Write(f.t, w, 400, refusal)
			return
		}
		f.items[id] = json.RawMessage(q.Get("Item").Raw)
		actiontest.Write(f.t, w, 200, map[string]any{})
	case operation == "Query" && q.Get("KeyConditionExpression").Str == "customer = :c" && q.Get(`ExpressionAttributeValues.:c.S`).Exists():
		f.query(w, q)
	default:
		f.refuse(w, "dynamodb", 400, "ValidationException", "One or more parameter values were invalid")
	}
}

// query hands out at most two items at once.
func (f *fakeAWS) query(w http.ResponseWriter, q gjson.Result) {
	ids := slices.Sorted(maps.Keys(f.items))
	if last := q.Get("ExclusiveStartKey.id.N"); last.Exists() {
		ids = ids[slices.Index(ids, last.Str)+1:]
	}
	size := 2
	if limit := q.Get("Limit"); limit.Exists() {
		size = min(size, int(limit.Int()))
	}
	page, more := actiontest.Part(ids, 0, size)
	answer := map[string]any{"Count": len(page)}
	items := []json.RawMessage{}
	for _, id := range page {
		items = append(items, f.items[id])
	}
	answer["Items"] = items
	if more {
		answer["LastEvaluatedKey"] = map[string]any{"id": map[string]string{"N": page[len(page)-1]}}
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *fakeAWS) s3(w http.ResponseWriter, r *http.Request, body []byte) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case bucket != "docs":
		f.refuse(w, "s3", 404, "NoSuchBucket", "The specified bucket does not exist")
	case r.Method == http.MethodPut && key != "":
		f.objects[key] = fakeObject{r.Header.Get("Content-Type"), body}
		w.Header().Set("ETag", `"etag"`)
	case r.Method == http.MethodGet && key == "" && r.URL.Query().Get("list-type") == "2":
		f.list(w, r.URL.Query())
	case r.Method == http.MethodGet && key != "":
		o, ok := f.objects[key]
		if !ok {
			f.refuse(w, "s3", 404, "NoSuchKey", "The specified key does not exist.")
			return
		}
		w.Header().Set("Content-Type", o.kind)
		w.Header().Set("ETag", `"etag"`)
		w.Header().Set("X-Amz-Meta-Owner", "ann")
		_, _ = io.Copy(w, bytes.NewReader(o.data)) // the client may have left
	default:
		f.refuse(w, "s3", 405, "MethodNotAllowed", "")
	}
}

// list hands out at most three keys at once, as stores may.
func (f *fakeAWS) list(w http.ResponseWriter, q url.Values) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(f.objects)), func(key string) bool { return !strings.HasPrefix(key, q.Get("prefix")) })
	if token := q.Get("continuation-token"); token != "" {
		at := slices.Index(keys, strings.TrimPrefix(token, "1/+=@"))
		if at < 0 {
			f.refuse(w, "s3", 400, "InvalidArgument", "The continuation token provided is incorrect")
			return
		}
		keys = keys[at+1:]
	}
	size, err := strconv.Atoi(q.Get("max-keys"))
	if err != nil {
		f.t.Error(err)
	}
	page, more := actiontest.Part(keys, 0, min(size, 3))
	type contents struct {
		Key, LastModified, ETag, StorageClass string
		Size                                  int
	}
	answer := struct {
		XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Contents []contents
		More     bool   `xml:"IsTruncated"`
		Next     string `xml:"NextContinuationToken,omitempty"`
	}{More: more}
	for _, key := range page {
		answer.Contents = append(answer.Contents, contents{key, "2026-11-17T00:00:00.000Z", `"etag"`, "STANDARD", len(f.objects[key].data)})
	}
	if more {
		answer.Next = "1/+=@" + page[len(page)-1]
	}
	if err := xml.NewEncoder(w).Encode(answer); err != nil {
		f.t.Error(err)
	}
}
