package gcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

func vendor(t testing.TB) (actiontest.Vendor, *fakeTokens) {
	t.Helper()
	tokens := newTokens(t)
	opened := credentialFor(t, "", tokens.url, pemOf(t, testKey()), true)
	publish := actiontest.Sample{Config: `{"action_type":"pubsub_publish","topic":"orders","messages":"m"}`, Call: "POST /v1/projects/p/topics/orders:publish"}
	list := actiontest.Sample{Config: `{"action_type":"gcs_list_objects","bucket":"docs","prefix":"list/"}`, Call: "GET /storage/v1/b/docs/o"}
	run := actiontest.Sample{Config: `{"action_type":"cloud_run_invoke","url":"/run/echo"}`, Call: "POST /run/echo"}
	get := actiontest.Sample{Config: `{"action_type":"gcs_get_object","bucket":"docs","object":"in/a b.txt"}`, Call: "GET /storage/v1/b/docs/o/in%2Fa%20b.txt"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	quota := `{"error":{"code":403,"message":"Quota exceeded","errors":[{"reason":"rateLimitExceeded"}]}}`
	return actiontest.Vendor{
		Kind:  func(client *outbound.Client) node.Kind { return act(&storage{client: client}, nil) },
		Serve: func(t testing.TB) http.Handler { return newCloud(t, tokens) }, Prefix: "/cloud", Key: "key",
		Credential: map[string]string{"key": gjson.GetBytes(opened.Data, "key").String(), "token_uri": tokens.url},
		Once:       publish, Read: list, Pages: list, Total: objectCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoMessages", Sample: only(`{"action_type":"pubsub_publish","topic":"orders"}`), Code: fault.InvalidInput, Part: "messages"},
			{Name: "EmptyList", Sample: only(`{"action_type":"pubsub_publish","topic":"orders","messages":[]}`), Code: fault.InvalidInput, Part: "0 messages"},
			{Name: "OtherTopic", Sample: only(`{"action_type":"pubsub_publish","topic":"x","messages":"m"}`), Code: fault.NotFound, Part: "Resource not found"},
			{Name: "NoTopic", Sample: only(`{"action_type":"pubsub_publish","topic":"projects/../x","messages":"m"}`), Code: fault.InvalidInput, Part: "topic"},
			{Name: "NoProject", Sample: only(`{"action_type":"pubsub_publish","topic":"orders","messages":"m","project_id":"../x"}`), Code: fault.InvalidInput, Part: "project"},
			{Name: "OtherObject", Sample: only(`{"action_type":"gcs_get_object","bucket":"docs","object":"none"}`), Code: fault.NotFound, Part: "No such object"},
			{Name: "NoBucket", Sample: only(`{"action_type":"gcs_list_objects","bucket":"../x"}`), Code: fault.InvalidInput, Part: "bucket"},
			{Name: "TooLarge", Sample: only(`{"action_type":"gcs_get_object","bucket":"docs","object":"in/a b.txt","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "OtherGeneration", Sample: only(`{"action_type":"gcs_put_object","bucket":"docs","object":"in/a b.txt","content":"c","if_generation_match":4}`), Code: fault.Conflict},
			{Name: "Writes", Sample: only(`{"action_type":"bigquery_query","query":"delete from t"}`), Code: fault.Unsupported, Part: "DELETE"},
			{Name: "WritesAfterReading", Sample: only(`{"action_type":"bigquery_query","query":"select 1; delete from t"}`), Code: fault.Unsupported, Part: "SCRIPT"},
			{Name: "WrongQuery", Sample: only(`{"action_type":"bigquery_query","query":"select @x"}`), Code: fault.RemoteRejected, Part: "Query parameter not found"},
			{Name: "NoAddress", Sample: only(`{"action_type":"cloud_run_invoke","url":"x"}`), Code: fault.InvalidInput, Part: "address"},
			{Name: "Quota", Sample: publish, Reply: actiontest.Reply{Status: 403, Body: quota, Header: map[string]string{"Retry-After": "9"}}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
			{Name: "RunFails", Sample: run, Reply: actiontest.Reply{Status: 500, Body: `{"error":"no stock"}`}, Code: fault.RemoteError, Part: "no stock"},
			{Name: "RunLost", Sample: run, Reply: actiontest.Reply{Status: 502}, Code: fault.OutcomeUnknown},
			{Name: "NotAnObject", Sample: get, Reply: actiontest.Reply{Status: 200, Body: "<html>"}, Code: fault.RemoteError, Retryable: true},
		},
	}, tokens
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	v.Operations(t, []actiontest.Operation{
		{
			Name: "Get", Config: `{"action_type":"gcs_get_object","bucket":"docs","object":"in/a b.txt"}`, Call: "GET /storage/v1/b/docs/o/in%2Fa%20b.txt", Query: map[string]string{"alt": "media"},
			Result: `{"success":true,"resource_id":"in/a b.txt","file":{"name":"a b.txt","content_type":"text/plain","size":5},"gcp_response":{"generation":"5"}}`,
		},
		{Name: "List", Config: `{"action_type":"gcs_list_objects","bucket":"docs","prefix":"in/","limit":1}`, Call: "GET /storage/v1/b/docs/o", Query: map[string]string{"prefix": "in/", "maxResults": "1"}, Result: `{"items":[{"name":"in/a b.txt","size":"5"}],"truncated":false}`},
		{Name: "Put", Config: `{"action_type":"gcs_put_object","bucket":"docs","object":"out/x","content":"héllo","if_generation_match":0}`, Call: "POST /upload/storage/v1/b/docs/o", Query: map[string]string{"ifGenerationMatch": "0", "uploadType": "multipart"}, Text: "héllo", Result: `{"resource_id":"out/x","gcp_response":{"generation":"1"}}`},
		{Name: "PutFile", Config: `{"action_type":"gcs_put_object","bucket":"docs","object":"out/x","file":{"base64":"aGVsbG8=","name":"a.txt"},"content_type":"text/x"}`, Call: "POST /upload/storage/v1/b/docs/o", Text: `"contentType":"text/x"`},
		{
			Name: "Query", Config: `{"action_type":"bigquery_query","query":"select * from t where a = @a","parameters":{"a":7,"b":[1.5],"c":null,"d":true},"max_rows":1,"location":"EU"}`, Call: "POST /bigquery/v2/projects/p/queries",
			Body:   `{"maxResults":1,"location":"EU","parameterMode":"NAMED","queryParameters":[{"name":"a","parameterType":{"type":"INT64"},"parameterValue":{"value":"7"}},{"name":"b","parameterType":{"type":"ARRAY","arrayType":{"type":"FLOAT64"}},"parameterValue":{"arrayValues":[{"value":"1.5"}]}},{"name":"c"},{"name":"d","parameterType":{"type":"BOOL"}}]}`,
			Result: `{"rows":[{"id":0,"name":"Ann","ok":true,"total":1.50,"at":"2023-11-14T22:13:20Z","none":null,"tags":["a","b"],"more":{"x":7}}],"truncated":true,"resource_id":"job_1"}`,
		},
		{Name: "QueryByPosition", Config: `{"action_type":"bigquery_query","query":"select ?","parameters":["x"],"project_id":"p"}`, Call: "POST /bigquery/v2/projects/p/queries", Body: `{"parameterMode":"POSITIONAL","queryParameters":[{"parameterType":{"type":"STRING"},"parameterValue":{"value":"x"}}]}`},
		{Name: "Publish", Config: `{"action_type":"pubsub_publish","topic":"orders","messages":[{"data":{"a":1},"attributes":{"n":7},"ordering_key":"k"},"text"]}`, Call: "POST /v1/projects/p/topics/orders:publish", Body: `{"messages":[{"data":"eyJhIjoxfQ==","attributes":{"n":"7"},"orderingKey":"k"},{"data":"dGV4dA=="}]}`, Result: `{"message_ids":["1","2"]}`},
		{Name: "PublishOne", Config: `{"action_type":"pubsub_publish","topic":"projects/p/topics/orders"}`, Input: `{"messages":{"a":1}}`, Call: "POST /v1/projects/p/topics/orders:publish", Body: `{"messages":[{"data":"eyJhIjoxfQ=="}]}`, Result: `{"message_ids":["1"],"resource_id":"1"}`},
		{Name: "Run", Config: `{"action_type":"cloud_run_invoke","url":"/run/echo?a=b","body":{"x":1}}`, Call: "POST /run/echo", Query: map[string]string{"a": "b"}, Body: `{"x":1}`, Result: `{"status_code":202,"body":{"audience":"/cloud","method":"POST","token":"[redacted]"}}`},
		{Name: "RunGet", Config: `{"action_type":"cloud_run_invoke","url":"/run/echo","method":"GET","body":{"never":"sent"},"audience":"https://x/cloud-audience"}`, Call: "GET /run/echo", Result: `{"body":{"audience":"/cloud-audience","given":""}}`},
		{Name: "RunText", Config: `{"action_type":"cloud_run_invoke","url":"/run/text"}`, Call: "POST /run/text", Result: `{"status_code":200,"body":"done [redacted]"}`},
		{Name: "Function", Config: `{"action_type":"function_invoke","url":"/run/echo","body":[]}`, Call: "POST /run/echo", Result: `{"body":{"audience":"/cloud/run/echo"}}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	v.Failures(t)
}

// TestAction_QueryRows: all pages of a result are read, up to max_rows.
func TestAction_QueryRows(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	b := v.New(t)
	for rows, truncated := range map[string]bool{"5": false, "4": true, "3": true} {
		out, err := b.Run(`{"action_type":"bigquery_query","query":"select 1","max_rows":`+rows+`}`, ``)
		if err != nil {
			t.Fatal(err)
		}
		if out.Get("rows.#").String() != rows || out.Get("truncated").Bool() != truncated {
			t.Errorf("%s rows, truncated %v; want %s, %v", out.Get("rows.#"), out.Get("truncated"), rows, truncated)
		}
	}
}

// TestAction_QueryBinds: placeholders become parameters, and never stand inside of quotes.
func TestAction_QueryBinds(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	b := v.New(t)
	run := func(query, parameters string, words ...string) error {
		call := b.Call(`{"action_type":"bigquery_query","query":"`+query+`"`+parameters+`}`, ``)
		call.Bind = func(string) (dataflow.Bound, error) {
			return dataflow.Bound{Text: words, Values: []json.RawMessage{json.RawMessage(`"x'; delete"`)}}, nil
		}
		_, err := b.Kind.Run(context.Background(), call)
		return err
	}
	if err := run("select {{x}} from t", `,"parameters":{"y":1}`, "select ", " from t"); err != nil {
		t.Fatal(err)
	}
	sent := gjson.ParseBytes(b.Calls("POST /bigquery/v2/projects/p/queries")[0].Body)
	if sent.Get("query").Str != "select @tandem_0 from t" || sent.Get("queryParameters.0.parameterValue.value").Str != "x'; delete" || sent.Get("queryParameters.1.name").Str != "y" {
		t.Errorf("sent %s", sent.Raw)
	}
	if err := run("select '{{x}}'", ``, "select 'it\\'s ", "'"); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), "quotes") {
		t.Errorf("inside of quotes: %v", err)
	}
	if err := run("select {{x}}", `,"parameters":[1]`, "select ", ""); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("with a list: %v", err)
	}
}

// TestAction_QueryWaits: a query that is not finished is waited for, and asked for again; it is not begun twice.
func TestAction_QueryWaits(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	b := v.New(t)
	call := b.Call(`{"action_type":"bigquery_query","query":"select slow"}`, ``)
	for range 2 {
		out, err := b.Kind.Run(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		wait, ok := out.(node.Wait)
		if !ok || !wait.Until.After(call.Now) {
			t.Fatalf("it does not wait: %v", out)
		}
		call.Memo, call.Wake = wait.Memo, &node.Wake{}
	}
	out, err := b.Kind.Run(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	if rows := gjson.GetBytes(out.(node.Done)["result"], "rows.#").Int(); rows != 5 {
		t.Errorf("%d rows", rows)
	}
	if n := len(b.Calls("POST /bigquery/v2/projects/p/queries")); n != 1 {
		t.Errorf("it was begun %d times", n)
	}
}

// TestAction_PutAgain: an object that the attempt before has put is there.
func TestAction_PutAgain(t *testing.T) {
	t.Parallel()
	v, _ := vendor(t)
	b := v.New(t)
	put := func(content string, attempt uint32) error {
		call := b.Call(`{"action_type":"gcs_put_object","bucket":"docs","object":"new","content":"`+content+`","if_generation_match":0}`, ``)
		call.Attempt = attempt
		_, err := b.Kind.Run(context.Background(), call)
		return err
	}
	b.Loses("POST /upload/")
	if err := put("c", 1); fault.CodeOf(err) != fault.NetworkError {
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

// TestAction_Tokens: a token is fetched once, one that is refused is renewed once, and a message that was refused with it is sent once
// more.
func TestAction_Tokens(t *testing.T) {
	t.Parallel()
	v, tokens := vendor(t)
	cloud := newCloud(t, tokens)
	v.Serve = func(testing.TB) http.Handler { return cloud }
	b := v.New(t)
	run := func() error { _, err := b.Run(v.Once.Config, ``); return err }
	for range 2 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if n := tokens.count(); n != 1 {
		t.Errorf("%d tokens were fetched", n)
	}
	cloud.mu.Lock()
	cloud.revoked["ya29.token-canary-1"] = true
	cloud.mu.Unlock()
	if err := run(); err != nil || tokens.count() != 2 {
		t.Errorf("%d tokens were fetched: %v", tokens.count(), err)
	}
	cloud.mu.Lock()
	cloud.revoked["ya29.token-canary-2"], cloud.revoked["ya29.token-canary-3"] = true, true
	cloud.mu.Unlock()
	if err := run(); fault.CodeOf(err) != fault.CredentialInvalid || tokens.count() != 3 || strings.Contains(err.Error(), "ya29") {
		t.Errorf("%d tokens were fetched: %v", tokens.count(), err)
	}
	tokens.mu.Lock()
	tokens.refuse = 503
	tokens.mu.Unlock()
	if err := run(); fault.CodeOf(err) != fault.RemoteError || !fault.From(err).Retryable {
		t.Errorf("no token is given, and nothing was sent: %v", err)
	}
}
