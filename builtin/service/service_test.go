package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
	"tandem/workflow"
)

// shop is a document of a shop. $BASE stands for where it is.
const shop = `{
	"openapi": "3.0.3", "servers": [{"url": "$BASE/{version}", "variables": {"version": {"default": "v2"}}}],
	"paths": {
		"/orders/{id}": {
			"parameters": [{"$ref": "#/components/parameters/id"}],
			"get": {"operationId": "getOrder", "parameters": [
				{"name": "fields", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}},
				{"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
				{"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
				{"name": "X-Trace", "in": "header", "schema": {"type": "string"}}
			], "responses": {"200": {"$ref": "#/components/responses/Order"}}},
			"delete": {"operationId": "deleteOrder", "responses": {"204": {"description": "gone"}}}
		},
		"/orders": {
			"post": {"operationId": "createOrder", "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewOrder"}}}}, "responses": {"2XX": {"$ref": "#/components/responses/Order"}}}
		},
		"/payments": {
			"post": {"operationId": "pay", "parameters": [{"name": "Idempotency-Key", "in": "header", "required": true, "schema": {"type": "string"}}], "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"amount": {"type": "number"}}}}}}, "responses": {}}
		},
		"/notes": {"put": {"operationId": "note", "requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}}},
		"/files": {"put": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {"schema": {"type": "object", "required": ["file"], "properties": {
			"file": {"type": "string", "format": "binary"}, "more": {"type": "array", "items": {"type": "string", "format": "binary"}}, "title": {"type": "string"}, "about": {"type": "object"}}}}}}}},
		"/pictures": {"put": {"operationId": "picture", "requestBody": {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}}}
	},
	"components": {
		"parameters": {"id": {"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}}},
		"responses": {"Order": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}},
		"schemas": {
			"Order": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "note": {"type": "string", "nullable": true}, "parent": {"$ref": "#/components/schemas/Order"}}},
			"NewOrder": {"type": "object", "required": ["customer", "lines"], "properties": {"customer": {"type": "string"}, "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}}, "rush": {"type": "boolean"}}}
		}
	}
}`

// bench is the kind with a service that tells what it is sent.
type bench struct {
	*actiontest.Service
	t    testing.TB
	kind node.Kind
	data map[string]any
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t}
	b.Service = actiontest.NewService(t, "/shop", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer "+actiontest.Token:
			actiontest.Write(t, w, 401, map[string]any{"error": "who are you"})
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(r.URL.Path, "/notes"):
			fmt.Fprint(w, "noted")
		default:
			actiontest.Write(t, w, 200, map[string]any{"id": 7, "note": nil, "parent": map[string]any{"id": 6}, "echo": string(body)})
		}
	}))
	b.data = map[string]any{"openapi": strings.ReplaceAll(shop, "$BASE", b.URL), "auth": map[string]any{"scheme": "bearer", "token": actiontest.Token}}
	b.kind = apiCall(b.Client)
	return b
}

func (b *bench) call(config, input string) *node.Call {
	b.t.Helper()
	call := nodetest.NewCall(b.t, config, input)
	call.Credential = func(_ context.Context, _ string, types ...string) (credential.Opened, error) {
		if len(types) != 1 || types[0] != "service" {
			b.t.Errorf("a credential of the types %q is opened", types)
		}
		data, err := json.Marshal(b.data)
		return credential.Opened{ID: "shop", Data: data}, err
	}
	return call
}

func (b *bench) run(config, input string) (gjson.Result, error) {
	b.t.Helper()
	out, err := b.kind.Run(context.Background(), b.call(config, input))
	if err != nil {
		if told := fault.From(err); strings.Contains(fmt.Sprint(err, told.Detail, told.Details), actiontest.Token) {
			b.t.Errorf("the token is told: %v", err)
		}
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(out.(node.Done)["result"]), nil
}

func TestAPICall(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(apiCall(nil)))
	for name, c := range map[string]struct {
		config, input, call, query, body string
		header                           map[string]string
		result                           string
	}{
		"ByID":          {config: `{"operation_id":"getOrder"}`, input: `{"id":7}`, call: "GET /v2/orders/7", result: `{"http_code":200,"result":{"id":7}}`},
		"ByPath":        {config: `{"method":"GET","path":"/orders/{id}"}`, input: `{"path_params":{"id":"7"}}`, call: "GET /v2/orders/7"},
		"ByEndpoint":    {config: `{"endpoint":"get /orders/7"}`, call: "GET /v2/orders/7"},
		"Named":         {config: `{"operation_id":"getOrder","method":"GET","headers":{"X-Trace":"fixed"}}`, input: `{"id":7,"X-Trace":"other"}`, call: "GET /v2/orders/7", header: map[string]string{"X-Trace": "fixed"}},
		"Groups":        {config: `{"operation_id":"getOrder"}`, input: `{"path_params":{"id":7},"query_params":{"fields":["a","b"],"filter":{"x":1},"tag":["a","b"]},"header_params":{"X-Trace":"t"}}`, call: "GET /v2/orders/7", query: "fields=a%2Cb&filter%5Bx%5D=1&tag=a&tag=b", header: map[string]string{"X-Trace": "t"}},
		"Flat":          {config: `{"operation_id":"createOrder"}`, input: `{"customer":"Ann","lines":[{"sku":"x"}],"rush":"true","other":1}`, call: "POST /v2/orders", body: `{"customer":"Ann","lines":[{"sku":"x"}],"rush":true}`},
		"Body":          {config: `{"operation_id":"createOrder"}`, input: `{"body":{"customer":"Ann","lines":[],"more":1}}`, call: "POST /v2/orders", body: `{"customer":"Ann","lines":[],"more":1}`},
		"OlderData":     {config: `{"operation_id":"getOrder"}`, input: `{"data":{"id":7}}`, call: "GET /v2/orders/7"},
		"Form":          {config: `{"operation_id":"pay"}`, input: `{"amount":7.5}`, call: "POST /v2/payments", body: `amount=7.5`, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		"Text":          {config: `{"operation_id":"note"}`, input: `{"body":"hello"}`, call: "PUT /v2/notes", body: `hello`, header: map[string]string{"Content-Type": "text/plain"}, result: `{"result":"noted"}`},
		"Nothing":       {config: `{"operation_id":"deleteOrder"}`, input: `{"id":7}`, call: "DELETE /v2/orders/7", result: `{"http_code":204,"result":null}`},
		"ValidResponse": {config: `{"operation_id":"getOrder","validate_response":true}`, input: `{"id":7}`, call: "GET /v2/orders/7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			got, err := b.run(c.config, c.input)
			if err != nil {
				t.Fatal(err)
			}
			calls := b.Calls(c.call)
			if len(calls) != 1 || calls[0].Query.Encode() != c.query {
				t.Fatalf("%s was called as %+v", c.call, b.Calls(""))
			}
			if c.body != "" && !strings.HasPrefix(c.body, "{") && string(calls[0].Body) != c.body {
				t.Errorf("sent %s", calls[0].Body)
			}
			if strings.HasPrefix(c.body, "{") {
				for _, problem := range nodetest.Differences("body", nodetest.Value(t, c.body), nodetest.Value(t, string(calls[0].Body))) {
					t.Error(problem)
				}
			}
			for name, want := range c.header { // order does not matter: each is told by itself
				if got := calls[0].Header.Get(name); got != want {
					t.Errorf("the header %s is %q", name, got)
				}
			}
			if c.result != "" {
				for _, problem := range nodetest.Differences("result", nodetest.Value(t, c.result), nodetest.Value(t, got.Raw)) {
					t.Errorf("%s\n%s", problem, got.Raw)
				}
			}
		})
	}
}

func TestAPICall_Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, input string
		code          fault.Code
		part          string
	}{
		"Unknown":       {`{"operation_id":"getOrders"}`, `{}`, fault.InvalidConfig, `did you mean "getOrder"`},
		"UnknownPath":   {`{"endpoint":"GET /order/7"}`, `{}`, fault.InvalidConfig, `GET /orders/{id}`},
		"OtherMethod":   {`{"operation_id":"getOrder","method":"POST"}`, `{"id":7}`, fault.InvalidConfig, "is called by GET"},
		"Missing":       {`{"operation_id":"getOrder"}`, `{}`, fault.ParameterMissing, "needs id"},
		"MissingFields": {`{"operation_id":"createOrder"}`, `{"customer":"Ann"}`, fault.ParameterMissing, "needs lines"},
		"MissingBody":   {`{"operation_id":"createOrder"}`, `{}`, fault.ParameterMissing, "customer, lines"},
		"Type":          {`{"operation_id":"getOrder"}`, `{"id":"seven"}`, fault.InvalidInput, "id"},
		"Bound":         {`{"operation_id":"getOrder"}`, `{"id":0}`, fault.InvalidInput, "id"},
		"Choice":        {`{"operation_id":"getOrder"}`, `{"id":7,"tag":["c"]}`, fault.InvalidInput, "tag"},
		"BodyType":      {`{"operation_id":"createOrder"}`, `{"body":{"customer":7,"lines":[]}}`, fault.InvalidInput, "body"},
		"InsideBody":    {`{"operation_id":"createOrder"}`, `{"body":{"customer":"Ann","lines":[{}]}}`, fault.InvalidInput, "sku"},
		"Stranger":      {`{"operation_id":"getOrder"}`, `{"id":7,"query_params":{"field":"a"}}`, fault.InvalidInput, `did you mean "fields"`},
		"Picture":       {`{"operation_id":"picture"}`, `{"body":"x"}`, fault.Unsupported, "image/png"},
		"Up":            {`{"method":"GET","path":"/orders/.."}`, `{}`, fault.InvalidInput, "id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if _, err := b.run(c.config, c.input); fault.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.part) {
				t.Errorf("%v; want %s with %q", err, c.code, c.part)
			}
			if n := len(b.Calls("")); n != 0 {
				t.Errorf("the service was called %d times", n)
			}
		})
	}
}

// TestAPICall_Endpoints: a service may be described by a plain list.
// orders is a document of version 2, in YAML.
const orders = `
swagger: "2.0"
host: $HOST
basePath: /shop/v1
schemes: [http]
consumes: [application/json]
parameters:
  id: {name: id, in: path, required: true, type: integer, minimum: 0, exclusiveMinimum: true}
paths:
  /orders/{id}:
    parameters:
      - $ref: "#/parameters/id"
    get:
      operationId: getOrder
      parameters:
        - {name: tag, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: fields, in: query, type: array, items: {type: string}}
        - {name: sort, in: query, type: array, items: {type: string}, collectionFormat: pipes}
      responses:
        "200": {description: ok, schema: {$ref: "#/definitions/Order"}}
  /orders:
    post:
      operationId: createOrder
      parameters:
        - {name: order, in: body, required: true, schema: {$ref: "#/definitions/Order"}}
  /pay:
    post:
      operationId: pay
      parameters:
        - {name: amount, in: formData, type: number, required: true}
        - {name: note, in: formData, type: string}
  /files:
    post:
      operationId: attach
      parameters:
        - {name: file, in: formData, type: file, required: true}
        - {name: title, in: formData, type: string}
definitions:
  Order: {type: object, required: [id], properties: {id: {type: integer}}}
`

// Documents of version 2, and documents in YAML, are read like those of version 3 in JSON.
func TestAPICall_Swagger(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.data["openapi"] = strings.ReplaceAll(orders, "$HOST", strings.TrimSuffix(strings.TrimPrefix(b.URL, "http://"), "/shop"))
	for _, c := range []struct{ config, input, call, query, body, kind string }{
		{`{"operation_id":"getOrder","validate_response":true}`, `{"id":"7","tag":["a","b"],"fields":["x","y"],"sort":["u","v"]}`, "GET /v1/orders/7", "fields=x%2Cy&sort=u%7Cv&tag=a&tag=b", "", ""},
		{`{"operation_id":"createOrder"}`, `{"id":7}`, "POST /v1/orders", "", `{"id":7}`, "application/json"},
		{`{"operation_id":"pay"}`, `{"amount":7,"note":"n"}`, "POST /v1/pay", "", "amount=7&note=n", "application/x-www-form-urlencoded"},
		{`{"operation_id":"attach"}`, `{"title":"T","file":{"name":"a.txt","base64":"aGVsbG8=","content_type":"text/plain"}}`, "POST /v1/files", "", "", "multipart/form-data"},
	} {
		if _, err := b.run(c.config, c.input); err != nil {
			t.Fatalf("%s: %v", c.config, err)
		}
		calls := b.Calls(c.call)
		if len(calls) != 1 || calls[0].Query.Encode() != c.query || c.body != "" && string(calls[0].Body) != c.body || !strings.HasPrefix(calls[0].Header.Get("Content-Type"), c.kind) {
			t.Errorf("%s was called as %+v", c.call, b.Calls(""))
		}
	}
	for input, code := range map[string]fault.Code{`{"id":0}`: fault.InvalidInput, `{}`: fault.ParameterMissing} {
		if _, err := b.run(`{"operation_id":"getOrder"}`, input); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", input, err)
		}
	}
	if _, err := b.run(`{"operation_id":"attach"}`, `{"title":"T"}`); fault.CodeOf(err) != fault.ParameterMissing {
		t.Errorf("without its file: %v", err)
	}
	b.data["openapi"] = "a: [b"
	if _, err := b.run(`{"operation_id":"getOrder"}`, `{"id":7}`); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("neither JSON nor YAML: %v", err)
	}
	for _, version := range []string{"3.0", "3.1", `"3.0.3"`} {
		b.data["openapi"] = "openapi: " + version + "\nservers: [{url: " + b.URL + "}]\npaths: {/bare: {get: {operationId: bare}}}\n"
		if _, err := b.run(`{"operation_id":"bare"}`, `{}`); err != nil {
			t.Errorf("openapi: %s: %v", version, err)
		}
	}
	types := Credentials(nil)[0]
	for text, good := range map[string]bool{orders: true, shop: true, "a: [b": false, "just words": false} {
		data, err := json.Marshal(map[string]any{"openapi": text})
		if err != nil {
			t.Fatal(err)
		}
		if err := types.Validate(data); (err == nil) != good {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// The fields of a body in parts are sent as parts: files with their names and types, lists as several, objects as JSON. A repeat sends the same bytes.
func TestAPICall_Multipart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const input = `{"file":{"name":"rä.txt","base64":"aGVsbG8=","content_type":"text/plain"},"more":[{"base64":"YQ=="},{"base64":"Yg==","name":"b.bin"}],"title":"Say \"hi\"","about":{"n":1}}`
	for range 2 {
		if _, err := b.run(`{"operation_id":"upload"}`, input); err != nil {
			t.Fatal(err)
		}
	}
	calls := b.Calls("PUT /v2/files")
	if len(calls) != 2 || !bytes.Equal(calls[0].Body, calls[1].Body) {
		t.Fatalf("called as %+v", b.Calls(""))
	}
	_, params, err := mime.ParseMediaType(calls[0].Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := multipart.NewReader(bytes.NewReader(calls[0].Body), params["boundary"]); ; {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", part.FormName(), part.FileName(), part.Header.Get("Content-Type"), content))
	}
	want := []string{`about||application/json|{"n":1}`, `file|rä.txt|text/plain|hello`, `more|more|application/octet-stream|a`, `more|b.bin|application/octet-stream|b`, `title|||Say "hi"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for written, sent := range map[string]string{
		`text/plain\r\nX-Injected: yes`: "application/octet-stream", `text/plain;\r\n charset=utf-8`: "text/plain; charset=utf-8", `text/plain; a=b c`: "text/plain",
		`text/csv; charset=\"utf-8\"`: "text/csv; charset=utf-8", `nothing`: "application/octet-stream",
	} { // order does not matter: each is sent by itself
		if _, err := b.run(`{"operation_id":"upload"}`, `{"file":{"base64":"YQ==","content_type":"`+written+`"}}`); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		calls := b.Calls("PUT /v2/files")
		if body := string(calls[len(calls)-1].Body); !strings.Contains(body, "Content-Type: "+sent+"\r\n\r\na\r\n") {
			t.Errorf("%s was sent as %q", written, body)
		}
	}
	for input, code := range map[string]fault.Code{`{"title":"T"}`: fault.ParameterMissing, `{"body":"text"}`: fault.InvalidInput, `{"file":{"base64":"%"}}`: fault.InvalidInput} {
		if _, err := b.run(`{"operation_id":"upload"}`, input); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", input, err)
		}
	}
}

func TestAPICall_Endpoints(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	delete(b.data, "openapi")
	b.data["base_url"] = b.URL + "/"
	b.data["endpoints"] = []any{
		map[string]any{"name": "find", "path": "/orders/{id}", "parameters": []any{map[string]any{"name": "limit", "in": "query", "type": "integer"}}, "response": map[string]any{"type": "array"}},
		map[string]any{"endpoint": "POST /orders", "idempotency_header": "X-Once", "body": map[string]any{"type": "object", "required": []any{"customer"}, "properties": map[string]any{"customer": map[string]any{"type": "string"}}}},
	}
	if _, err := b.run(`{"operation_id":"find"}`, `{"id":"a/b","limit":"5"}`); err != nil || len(b.Calls("GET /orders/a%2Fb")) != 1 || b.Calls("GET")[0].Query.Get("limit") != "5" {
		t.Errorf("%v, %+v", err, b.Calls(""))
	}
	if _, err := b.run(`{"operation_id":"find","validate_response":true}`, `{"id":"a"}`); fault.CodeOf(err) != fault.OutputInvalid || fault.From(err).Retryable {
		t.Errorf("another answer: %v", err)
	}
	if _, err := b.run(`{"endpoint":"POST /orders"}`, `{"customer":"Ann"}`); err != nil || b.Calls("POST /orders")[0].Header.Get("X-Once") == "" {
		t.Errorf("%v", err)
	}
}

func TestAPICall_Credentials(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]map[string]any{
		"Older":     {"openapi": map[string]any{"swagger": "2.0"}},
		"Empty":     {"openapi": map[string]any{"openapi": "3.1.0", "servers": []any{map[string]any{"url": "https://example.com"}}}},
		"NoAddress": {"endpoints": []any{map[string]any{"path": "/a", "name": "getOrder"}}},
		"Relative":  {"openapi": map[string]any{"openapi": "3.1.0", "servers": []any{map[string]any{"url": "/v2"}}, "paths": map[string]any{"/a": map[string]any{"get": map[string]any{"operationId": "getOrder"}}}}},
	} {
		b := newBench(t)
		b.data = data
		if _, err := b.run(`{"operation_id":"getOrder"}`, `{"id":7}`); fault.CodeOf(err) != fault.CredentialInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := newBench(t)
	b.data["base_url"] = b.URL + "/other/"
	if _, err := b.run(`{"operation_id":"getOrder"}`, `{"id":7}`); err != nil || len(b.Calls("GET /other/orders/7")) != 1 {
		t.Errorf("base_url: %v, %+v", err, b.Calls(""))
	}
	b.data["auth"] = map[string]any{"scheme": "bearer", "token": "other"}
	if _, err := b.run(`{"operation_id":"getOrder"}`, `{"id":7}`); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("another token: %v", err)
	}
	delete(b.data, "auth")
	if _, err := b.run(`{"operation_id":"getOrder"}`, `{"id":7}`); fault.CodeOf(err) != fault.CredentialInvalid || b.Calls("GET /other/orders/7")[2].Header.Get("Authorization") != "" {
		t.Errorf("no token: %v", err)
	}
}

// TestAPICall_Failures: what may be repeated is told apart from what may not, by the method and by what the operation declares.
func TestAPICall_Failures(t *testing.T) {
	t.Parallel()
	const order, get, pay = `{"customer":"Ann","lines":[]}`, `{"id":7}`, `{"amount":1}`
	for name, c := range map[string]struct {
		operation, input string
		reply            actiontest.Reply
		code             fault.Code
		retryable        bool
	}{
		"PostServer":  {"createOrder", order, actiontest.Reply{Status: 500}, fault.RemoteError, false},
		"PostLimit":   {"createOrder", order, actiontest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}}, fault.RateLimited, true},
		"PostGateway": {"createOrder", order, actiontest.Reply{Status: 502}, fault.OutcomeUnknown, false},
		"GetServer":   {"getOrder", get, actiontest.Reply{Status: 500}, fault.RemoteError, true},
		"GetGone":     {"getOrder", get, actiontest.Reply{Status: 404}, fault.NotFound, false},
		"KeyServer":   {"pay", pay, actiontest.Reply{Status: 502}, fault.RemoteError, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Answers("", c.reply)
			_, err := b.run(`{"operation_id":"`+c.operation+`"}`, c.input)
			if f := fault.From(err); f.Code != c.code || f.Retryable != c.retryable {
				t.Errorf("%v, retryable %v", err, f.Retryable)
			}
			if later, _ := errors.AsType[*node.Failure](err); c.reply.Status == 429 && (later == nil || later.RetryAfter != 7*time.Second) {
				t.Errorf("it is to be asked again after %+v", later)
			}
			if n := len(b.Calls("")); n != 1 {
				t.Errorf("the service was called %d times", n)
			}
			if _, err := b.run(`{"operation_id":"`+c.operation+`"}`, c.input); err != nil {
				t.Errorf("it is there again: %v", err)
			}
		})
	}
	b := newBench(t)
	b.Loses("POST /v2/orders")
	if _, err := b.run(`{"operation_id":"createOrder"}`, order); fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Errorf("the answer was lost: %v", err)
	}
	b.Kind(t, b.Hasty())
	b.Hangs("GET /v2/orders")
	if _, err := b.run(`{"operation_id":"getOrder","timeout":1}`, get); fault.CodeOf(err) != fault.Timeout || !fault.From(err).Retryable {
		t.Errorf("no answer: %v", err)
	}
}

// TestAPICall_ExpiredToken: a token that the service no longer takes is replaced once, and the call made with the new one.
func TestAPICall_ExpiredToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	issued := 0
	tokens := actiontest.NewService(t, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		issued++
		actiontest.Write(t, w, 200, map[string]any{"access_token": actiontest.Token, "token_type": "Bearer", "expires_in": 3600})
	}))
	b.data["auth"] = map[string]any{"scheme": "oauth2_client", "client_id": "me", "client_secret": "canary", "token_url": tokens.URL + "/token"}
	order := func(calls, tokens int) {
		t.Helper()
		if _, err := b.run(`{"operation_id":"createOrder"}`, `{"customer":"Ann","lines":[]}`); err != nil || issued != tokens || len(b.Calls("POST /v2/orders")) != calls {
			t.Errorf("%d tokens, %d calls: %v", issued, len(b.Calls("POST /v2/orders")), err)
		}
	}
	order(1, 1)
	b.Answers("POST /v2/orders", actiontest.Reply{Status: 401, Body: `{}`})
	order(3, 2)
}

// TestAPICall_OtherBody: a body that is not what the definition promises fails the node that wants to know; whether a POST was carried out is then known all the same.
func TestAPICall_OtherBody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Answers("GET /v2/orders/7", actiontest.Reply{Status: 200, Body: `["not an order"]`})
	if _, err := b.run(`{"operation_id":"getOrder","validate_response":true}`, `{"id":7}`); fault.CodeOf(err) != fault.OutputInvalid {
		t.Errorf("another shape: %v", err)
	}
	b.Answers("GET /v2/orders/7", actiontest.Reply{Status: 200, Body: `<html>`})
	if _, err := b.run(`{"operation_id":"getOrder","validate_response":true}`, `{"id":7}`); err == nil {
		t.Error("no JSON is taken")
	}
}

// Kind makes the kind anew on another client.
func (b *bench) Kind(t testing.TB, client *outbound.Client) {
	t.Helper()
	b.kind = apiCall(client)
}

// TestAPICall_Classes: the class is that of the method where the configuration says it; else a run whose outcome is not known is looked at again.
func TestAPICall_Classes(t *testing.T) {
	t.Parallel()
	v := actiontest.Vendor{Kind: apiCall}
	for config, want := range map[string]workflow.Effect{
		`{"endpoint":"GET /a"}`: workflow.Idempotent, `{"endpoint":"POST /a"}`: workflow.Once, `{"method":"PUT","path":"/a"}`: workflow.Idempotent, `{"operation_id":"a"}`: workflow.Once,
		`{"operation_id":"a","method":"GET"}`: workflow.Idempotent, `{"endpoint":"{{e}}"}`: workflow.Once,
	} {
		if got := v.Planned(t, config); got != want {
			t.Errorf("%s is %s", config, got)
		}
	}
	b := newBench(t)
	for operation, sure := range map[string]bool{"getOrder": true, "pay": true, "createOrder": false} {
		out, err := b.kind.Inquire(context.Background(), b.call(`{"operation_id":"`+operation+`"}`, `{}`))
		if out != nil || sure != (err == nil) || !sure && fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%s: %v, %v", operation, out, err)
		}
	}
	first, again := b.call(`{"operation_id":"pay"}`, `{"amount":1}`), b.call(`{"operation_id":"pay"}`, `{"amount":1}`)
	again.Attempt = 2
	for _, call := range []*node.Call{first, again} {
		if _, err := b.kind.Run(context.Background(), call); err != nil {
			t.Fatal(err)
		}
	}
	calls := b.Calls("POST /v2/payments")
	if key := calls[0].Header.Get("Idempotency-Key"); key == "" || key != calls[1].Header.Get("Idempotency-Key") {
		t.Errorf("the keys are %q and %q", key, calls[1].Header.Get("Idempotency-Key"))
	}
}

// TestAPICall_Wants: what the operation takes is known, so that it can be filled.
func TestAPICall_Wants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	schema, err := b.kind.Wants(context.Background(), b.call(`{"operation_id":"createOrder"}`, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	got := gjson.ParseBytes(schema)
	if got.Get("properties.customer.type").Str != "string" || got.Get("required").Raw != `["customer","lines"]` {
		t.Errorf("it wants %s", schema)
	}
	if _, err := b.kind.Wants(context.Background(), b.call(`{"operation_id":"none"}`, `{}`)); !errors.As(err, new(*fault.Error)) {
		t.Errorf("an operation that is not there: %v", err)
	}
}
