package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/payload"
)

// acting is one run of an operation.
type acting struct {
	ctx    context.Context
	call   *node.Call
	cfg    actionConfig
	client *outbound.Client
	keys   keys
	base   *url.URL // nil: the services' own addresses
	said   []byte   // with which the last call was refused
}

func begin(ctx context.Context, client *outbound.Client, call *node.Call, cfg actionConfig) (*acting, error) {
	opened, err := rest.Credential(ctx, call, "AWS", credentialType)
	if err != nil {
		return nil, err
	}
	k, base, err := openKeys(opened)
	if err != nil {
		return nil, err
	}
	if cfg.Region != "" && !regionName.MatchString(cfg.Region) {
		return nil, fault.Newf(fault.InvalidInput, `%q is not a region; write it like "eu-central-1"`, cfg.Region).With("path", "region")
	}
	k.Region = cmp.Or(cfg.Region, k.Region)
	return &acting{ctx: ctx, call: call, cfg: cfg, client: client, keys: k, base: base}, nil
}

// clock tells the time for signatures, which the service judges by its own.
func (a *acting) clock() time.Time { return rest.Clock(a.call) }

// at takes the region from an ARN or from the address of a queue: no other one knows what is named there.
func (a *acting) at(name string) {
	region := ""
	if u, err := url.Parse(name); err == nil && strings.HasPrefix(u.Host, "sqs.") {
		region = strings.Split(u.Host, ".")[1]
	}
	if parts := strings.Split(name, ":"); len(parts) > 5 && parts[0] == "arn" {
		region = parts[3]
	}
	if regionName.MatchString(region) {
		a.keys.Region = region
	}
}

// api is a service of AWS. All of them are below the one address of a credential that has one.
func (a *acting) api(service string) *rest.API {
	base := a.base
	if base == nil {
		base = &url.URL{Scheme: "https", Host: service + "." + a.keys.Region + ".amazonaws.com"}
		if strings.HasPrefix(a.keys.Region, "cn-") {
			base.Host += ".cn"
		}
	}
	s := signer{a.keys, service}
	told := func(r *rest.Refusal) {
		a.said = r.Raw
		refine(r)
	}
	return (&rest.Service{Name: "AWS", Refine: told}).At(a.client, base,
		func(_ context.Context, r *outbound.Request, renew bool) (*outbound.Secret, error) {
			if renew {
				return nil, nil // keys are what they are
			}
			r.URL.RawQuery = canonicalQuery(r.URL.Query())
			sum := sha256.Sum256(r.Body)
			return &outbound.Secret{Header: s.sign(r.Method, r.URL, r.Header, hex.EncodeToString(sum[:]), a.clock())}, nil
		})
}

// patience is as long as the node has: functions may take their time.
func (a *acting) patience() time.Duration { return rest.Patience(a.call) }

// target calls an operation by the JSON protocol.
func (a *acting) target(service, operation string, repeatable bool, body any, fields ...string) (rest.Answer, error) {
	return a.api(service).Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: "/", Body: body, Repeatable: repeatable, Fields: fields,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {operation}},
	})
}

// readXML makes a call whose answer is XML.
func (a *acting) readXML(service string, c rest.Call, into any) (*outbound.Response, error) {
	c.Header = http.Header{"Accept": {"application/xml"}}
	response, err := a.api(service).Send(a.ctx, c)
	if err != nil {
		return nil, err
	}
	data, err := response.ReadAll()
	if err != nil {
		return nil, err
	}
	if xml.Unmarshal(data, into) != nil {
		return nil, unreadable(response.URL.Host)
	}
	return response, nil
}

// plain is a text as it is, and anything else as JSON.
func plain(raw json.RawMessage) string {
	if text := gjson.ParseBytes(raw); text.Type == gjson.String {
		return text.Str
	}
	return string(raw)
}

// attributes are those of a message, as kind and value.
func (a *acting) attributes(add func(name, kind, value string)) error {
	return a.cfg.Attributes.Each(func(name string, value json.RawMessage) error {
		text, ok := values.Scalar(value)
		kind := "String"
		if gjson.ParseBytes(value).Type == gjson.Number {
			kind = "Number"
		}
		if !ok || text == "" {
			return fault.Newf(fault.InvalidInput, "attributes: %q must be a text that is not empty, a number, or yes or no", name).With("path", "attributes")
		}
		add(name, kind, text)
		return nil
	})
}

// group is the group of a message in a FIFO queue.
func (a *acting) group() string { return cmp.Or(a.cfg.MessageGroup, a.call.WorkflowID, "tandem") }

func (a *acting) sendMessage() (out actionResult, err error) {
	a.at(a.cfg.QueueURL)
	attributes := map[string]any{}
	if err := a.attributes(func(name, kind, value string) {
		attributes[name] = map[string]string{"DataType": kind, "StringValue": value}
	}); err != nil {
		return out, err
	}
	body := rest.Fields{"QueueUrl": a.cfg.QueueURL, "MessageBody": plain(a.cfg.Body)}.Text("MessageGroupId", a.cfg.MessageGroup)
	if len(attributes) > 0 {
		body["MessageAttributes"] = attributes
	}
	if fifo(a.cfg.QueueURL) {
		body["MessageGroupId"], body["MessageDeduplicationId"] = a.group(), action.Marker(a.call, "sqs")
	}
	answer, err := a.target("sqs", "AmazonSQS.SendMessage", fifo(a.cfg.QueueURL), body, "MessageId")
	out.MessageID, out.Response = answer.Get("MessageId").Str, answer.Raw()
	out.ResourceID = out.MessageID
	return out, err
}

func (a *acting) publish() (out actionResult, err error) {
	a.at(a.cfg.TopicARN)
	form := url.Values{"Action": {"Publish"}, "Version": {"2010-03-31"}, "TopicArn": {a.cfg.TopicARN}, "Message": {plain(a.cfg.Message)}}
	if a.cfg.Subject != "" {
		form.Set("Subject", a.cfg.Subject)
	}
	count := 0
	if err := a.attributes(func(name, kind, value string) {
		count++
		entry := "MessageAttributes.entry." + strconv.Itoa(count) + "."
		form.Set(entry+"Name", name)
		form.Set(entry+"Value.DataType", kind)
		form.Set(entry+"Value.StringValue", value)
	}); err != nil {
		return out, err
	}
	if fifo(a.cfg.TopicARN) {
		form.Set("MessageGroupId", a.group())
		form.Set("MessageDeduplicationId", action.Marker(a.call, "sns"))
	}
	var told struct {
		XMLName   xml.Name `xml:"PublishResponse"`
		MessageID string   `xml:"PublishResult>MessageId"`
		Sequence  string   `xml:"PublishResult>SequenceNumber"`
		RequestID string   `xml:"ResponseMetadata>RequestId"`
	}
	response, err := a.readXML("sns", rest.Call{Method: http.MethodPost, Path: "/", Form: form, Repeatable: fifo(a.cfg.TopicARN)}, &told)
	if err != nil {
		return out, err
	}
	if told.MessageID == "" {
		return out, unreadable(response.URL.Host)
	}
	out.MessageID, out.ResourceID = told.MessageID, told.MessageID
	out.Response, err = payload.Encode(rest.Fields{"MessageId": told.MessageID}.Text("SequenceNumber",
		told.Sequence).Text("RequestId", told.RequestID))
	return out, err
}

// escaped is a step of a path as signatures want it.
func escaped(step string) string { return strings.ReplaceAll(objectstore.EscapeKey(step), "/", "%2F") }

func (a *acting) invoke() (out actionResult, err error) {
	a.at(a.cfg.Function)
	given := a.cfg.Payload
	if payload.IsNull(given) {
		given = a.call.Input
	}
	answer, err := a.api("lambda").Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: "/2015-03-31/functions/" + escaped(a.cfg.Function) + "/invocations", Body: given,
		Wants: rest.Value, Patience: a.patience(),
		Header: http.Header{"X-Amz-Invocation-Type": {"RequestResponse"}},
	})
	if err != nil {
		return out, err
	}
	if how := answer.Header.Get("X-Amz-Function-Error"); how != "" {
		told := cmp.Or(strings.TrimPrefix(answer.Get("errorType").Str+": "+answer.Get("errorMessage").Str, ": "), how)
		return out, &outbound.Error{Fate: outbound.Answered,
			Fault: fault.Newf(fault.RemoteRejected, "the function %q failed: %s", a.cfg.Function,
				objectstore.Plain(strings.TrimSuffix(told, ": "), 500)).With("function_error", objectstore.Plain(how, 80))}
	}
	out.ResourceID, out.Payload = a.cfg.Function, answer.Raw()
	out.Response, err = payload.Encode(rest.Fields{"status_code": answer.Status}.
		Text("executed_version", answer.Header.Get("X-Amz-Executed-Version")).Text("request_id", answer.Header.Get("X-Amzn-Requestid")))
	return out, err
}
