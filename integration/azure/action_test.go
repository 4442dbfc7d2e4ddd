package azure

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

const allKeys = "AccountName=" + testAccount + ";SharedAccessKeyName=" + busKeyName + ";SharedAccessKey=" + busKey + ";Endpoint=sb://x.servicebus.windows.net/;AccountKey="

func vendor(t testing.TB) (actiontest.Vendor, *fakeLogin, string) {
	t.Helper()
	login := &fakeLogin{}
	server := httptest.NewServer(login)
	t.Cleanup(server.Close)
	send := actiontest.Sample{Config: `{"action_type":"servicebus_send","queue":"orders","body":"b"}`, Call: "POST /orders/messages"}
	list := actiontest.Sample{Config: `{"action_type":"blob_list","container":"box-1","prefix":"list/"}`, Call: "GET /box-1"}
	get := actiontest.Sample{Config: `{"action_type":"blob_get","container":"box-1","name":"in/a b.txt"}`, Call: "GET /box-1/in/a%20b.txt"}
	put := actiontest.Sample{Config: `{"action_type":"blob_put","container":"box-1","name":"k","content":"c"}`, Call: "PUT /box-1/k"}
	invoke := actiontest.Sample{Config: `{"action_type":"function_invoke","url":"/api/f"}`, Call: "POST /api/f"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind:  func(client *outbound.Client) node.Kind { return act(&blobs{client: client}, nil) },
		Serve: func(t testing.TB) http.Handler { return newFakeAzure(t, login) }, Prefix: "/cloud", Key: "connection_string",
		Credential: map[string]string{"connection_string": allKeys + testKey(), "function_key": funcKey},
		Once:       send, Read: list, Pages: list, Total: blobCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoBody", Sample: only(`{"action_type":"servicebus_send","queue":"orders"}`), Code: fault.InvalidInput, Part: "body"},
			{Name: "NoQueue", Sample: only(`{"action_type":"servicebus_send","body":"b"}`), Code: fault.InvalidInput, Part: "queue or topic"},
			{Name: "OtherQueue", Sample: only(`{"action_type":"servicebus_send","queue":"x","body":"b"}`), Code: fault.NotFound},
			{Name: "WrongQueue", Sample: only(`{"action_type":"servicebus_send","queue":"../x","body":"b"}`), Code: fault.InvalidInput},
			{Name: "WrongProperty", Sample: only(`{"action_type":"servicebus_send","queue":"orders","body":"b","properties":{"a b":1}}`), Code: fault.InvalidInput, Part: "properties"},
			{Name: "OtherBlob", Sample: only(`{"action_type":"blob_get","container":"box-1","name":"none"}`), Code: fault.NotFound, Part: "BlobNotFound"},
			{Name: "OtherContainer", Sample: only(`{"action_type":"blob_list","container":"none"}`), Code: fault.NotFound, Part: "create the container"},
			{Name: "WrongContainer", Sample: only(`{"action_type":"blob_list","container":"../x"}`), Code: fault.InvalidConfig},
			{Name: "TooLarge", Sample: only(`{"action_type":"blob_get","container":"box-1","name":"in/a b.txt","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "OtherETag", Sample: only(`{"action_type":"blob_put","container":"box-1","name":"in/a b.txt","content":"c","if_match":"0x4"}`), Code: fault.Conflict},
			{Name: "NotOfAzure", Sample: only(`{"action_type":"function_invoke","url":"https://evil.example.com/api/f"}`), Code: fault.InvalidInput, Part: "evil.example.com"},
			{Name: "NoAddress", Sample: only(`{"action_type":"function_invoke","url":"x"}`), Code: fault.InvalidInput},
			{Name: "BusBusy", Sample: send, Reply: actiontest.Reply{Status: 503, Body: `<Error><Code>503</Code><Detail>The request was terminated because the entity is being throttled.</Detail></Error>`}, Code: fault.RateLimited, Retryable: true},
			{Name: "BlobsBusy", Sample: list, Reply: actiontest.Reply{Status: 503, Header: map[string]string{"X-Ms-Error-Code": "ServerBusy"}}, Code: fault.RateLimited, Retryable: true},
			{Name: "FunctionFails", Sample: invoke, Reply: actiontest.Reply{Status: 500, Body: `{"error":"no stock"}`}, Code: fault.RemoteError, Part: "no stock"},
			{Name: "FunctionLost", Sample: invoke, Reply: actiontest.Reply{Status: 504}, Code: fault.OutcomeUnknown},
			{Name: "NotABlob", Sample: get, Reply: actiontest.Reply{Status: 200, Body: "<html>"}, Code: fault.RemoteError, Retryable: true},
			{Name: "PutFails", Sample: put, Reply: actiontest.Reply{Status: 500, Header: map[string]string{"X-Ms-Error-Code": "InternalError"}}, Code: fault.RemoteError, Retryable: true},
		},
	}, login, server.URL + "/token"
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	v, _, _ := vendor(t)
	v.Operations(t, []actiontest.Operation{
		{
			Name: "Get", Config: `{"action_type":"blob_get","container":"box-1","name":"in/a b.txt"}`, Call: "GET /box-1/in/a%20b.txt",
			Result: `{"success":true,"resource_id":"in/a b.txt","etag":"0x5","file":{"name":"a b.txt","content_type":"text/plain","size":5},"azure_response":{"last_modified":"2030-01-31T09:00:00Z"}}`,
		},
		{Name: "List", Config: `{"action_type":"blob_list","container":"box-1","prefix":"in/","limit":1}`, Call: "GET /box-1", Query: map[string]string{"prefix": "in/", "maxresults": "1"}, Result: `{"items":[{"name":"in/a b.txt","size":5,"etag":"0x5"}],"truncated":false,"azure_response":null}`},
		{Name: "Put", Config: `{"action_type":"blob_put","container":"box-1","name":"out/ü","content":"héllo"}`, Call: "PUT /box-1/out/%C3%BC", Text: "héllo", Header: map[string]string{"X-Ms-Blob-Content-Type": "text/plain; charset=utf-8"}, Result: `{"resource_id":"out/ü","etag":"0xN1"}`},
		{Name: "PutMatching", Config: `{"action_type":"blob_put","container":"box-1","name":"in/a b.txt","file":{"base64":"aGVsbG8=","name":"a.pdf"},"content_type":"text/x","if_match":"0x5"}`, Call: "PUT /box-1/in/a%20b.txt", Text: "hello", Header: map[string]string{"If-Match": "0x5", "X-Ms-Blob-Content-Type": "text/x"}},
		{Name: "Send", Config: `{"action_type":"servicebus_send","queue":"orders","body":{"a":1},"properties":{"n":7,"s":"x"},"session_id":"s1"}`, Call: "POST /orders/messages", Body: `{"a":1}`, Header: map[string]string{"Content-Type": "application/json", "N": "7", "S": `"x"`}},
		{Name: "SendToTopic", Config: `{"action_type":"servicebus_send","topic":"news"}`, Input: `{"body":"b"}`, Call: "POST /news/messages", Text: "b", Header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{Name: "Invoke", Config: `{"action_type":"function_invoke","url":"/api/f?a=b","body":{"x":1}}`, Call: "POST /api/f", Query: map[string]string{"a": "b"}, Body: `{"x":1}`, Header: map[string]string{"X-Functions-Key": funcKey}, Result: `{"status_code":202,"body":{"method":"POST","given":"{\"x\":1}"}}`},
		{Name: "InvokeGet", Config: `{"action_type":"function_invoke","url":"/api/f","method":"GET","body":{"never":"sent"}}`, Call: "GET /api/f", Result: `{"body":{"method":"GET","given":""}}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	v, _, _ := vendor(t)
	v.Failures(t)
}

// TestAction_MessageID: the id of a message is the same in every attempt, and that of the session goes along.
func TestAction_MessageID(t *testing.T) {
	t.Parallel()
	v, _, _ := vendor(t)
	b := v.New(t)
	call := b.Call(`{"action_type":"servicebus_send","queue":"orders","body":"b","session_id":"s1"}`, ``)
	for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
		if _, err := b.Kind.Run(context.Background(), call); err != nil {
			t.Fatal(err)
		}
	}
	calls := b.Calls("POST /orders/messages")
	first, second := calls[0].Header.Get("BrokerProperties"), calls[1].Header.Get("BrokerProperties")
	if first != second || !strings.Contains(first, `"MessageId":"`) || !strings.Contains(first, `"SessionId":"s1"`) {
		t.Errorf("%s, %s", first, second)
	}
}

// TestAction_Client: an application gets tokens for each service, and a new one when one is refused.
func TestAction_Client(t *testing.T) {
	t.Parallel()
	v, login, tokenURL := vendor(t)
	v.Credential = map[string]string{"tenant_id": "t", "client_id": "app", "client_secret": "client-secret-canary", "token_url": tokenURL}
	b := v.New(t)
	for _, config := range []string{
		`{"action_type":"blob_list","container":"box-1"}`, `{"action_type":"servicebus_send","queue":"orders","body":"b","namespace":"shop-bus"}`,
		`{"action_type":"function_invoke","url":"/api/f","scope":"api://app/.default"}`,
	} {
		if _, err := b.Run(config, ``); err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		login.mu.Lock()
		given := len(login.given)
		login.revoked = append(login.revoked, login.given...)
		login.mu.Unlock()
		out, err := b.Run(config, ``)
		if err != nil {
			t.Errorf("%s: with a token that was taken back: %v", config, err)
		}
		login.mu.Lock()
		if len(login.given) != given+1 {
			t.Errorf("%s: %d tokens, and %d before", config, len(login.given), given)
		}
		login.mu.Unlock()
		if strings.Contains(out.Raw, "canary") {
			t.Errorf("the token is told: %s", out.Raw)
		}
	}
	v.Credential["client_secret"] = "wrong"
	if _, err := v.New(t).Run(v.Once.Config, ``); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("no token is given: %v", err)
	}
}

// TestAction_PutAgain: a blob that the attempt before has put is there.
func TestAction_PutAgain(t *testing.T) {
	t.Parallel()
	v, _, _ := vendor(t)
	b := v.New(t)
	put := func(content string, attempt uint32) error {
		call := b.Call(`{"action_type":"blob_put","container":"box-1","name":"in/a b.txt","content":"`+content+`","if_match":"0x5"}`, ``)
		call.Attempt = attempt
		_, err := b.Kind.Run(context.Background(), call)
		return err
	}
	b.Loses("PUT /")
	if err := put("c", 1); !fault.From(err).Retryable {
		t.Fatalf("the answer was lost: %v", err)
	}
	if err := put("c", 2); err != nil {
		t.Errorf("it is there: %v", err)
	}
	if err := put("other", 2); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another is there: %v", err)
	}
	if err := put("c", 1); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("it was there before: %v", err)
	}
}

// TestAction_Bus: the address of a Service Bus is that of the connection string, or of the namespace.
func TestAction_Bus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ connection, namespace, want string }{
		{allKeys, "", "https://x.servicebus.windows.net"},
		{"SharedAccessKeyName=a;SharedAccessKey=b", "shop-bus", "https://shop-bus.servicebus.windows.net"},
		{"SharedAccessKeyName=a;SharedAccessKey=b", "shop-bus.servicebus.chinacloudapi.cn", "https://shop-bus.servicebus.chinacloudapi.cn"},
		{"SharedAccessKeyName=a;SharedAccessKey=b", "evil.example.com", ""},
	} {
		a := &acting{call: &node.Call{}, objects: &blobs{}, opened: credentialOf(t, map[string]string{"connection_string": c.connection}), cfg: actionConfig{Namespace: c.namespace}}
		api, err := a.bus()
		if err != nil {
			if c.want != "" {
				t.Error(err)
			}
			continue
		}
		if got := api.Base.String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
