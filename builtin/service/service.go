// Package service holds the kind that calls the operations of a service which a credential describes: by an OpenAPI document, or by a list
// of endpoints.
//
// A document is read here and not by a library: of all that OpenAPI has, a call needs where the service is, the operation, its parameters
// and bodies with their schemas, which package payload checks. How a call is made is in package httpcall. The package that puts a program
// together imports it; nothing else does.
package service

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// credentialType is the type of the credentials that describe services.
const credentialType = "service"

// Credentials are the types of credentials of this package.
func Credentials(client *outbound.Client) []credential.Type {
	auth := httpcall.Credential(client)
	return []credential.Type{{Name: credentialType, Label: text.Beside("Service definition", "服务定义"), Fields: []credential.Field{
		{Name: "openapi", Label: text.Beside("OpenAPI document", "OpenAPI 文档"), Format: credential.FormatDocument, YAML: true},
		{Name: "endpoints", Label: text.Beside("Endpoints", "接口列表"), Format: credential.FormatObjects},
		{Name: "auth", Label: text.Beside("Authentication", "认证"), Format: credential.FormatAuth, Secret: true, Of: &auth},
	}, Alternatives: []credential.Alternative{{Requires: []string{"openapi"}}, {Requires: []string{"endpoints"}}},
		Untried: text.Beside("it describes the calls of a service, and does not say which of them changes nothing; run a node that uses it", "它描述服务的接口，但没有说明哪个调用不会产生改动；请运行使用它的节点来验证")}}
}

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// HTTP is how they call services; nil means a client that reaches public addresses only.
	HTTP *outbound.Client
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.HTTP == nil {
		d.HTTP = outbound.New(outbound.Options{})
	}
	return []node.Kind{apiCall(d.HTTP)}
}

type config struct {
	OperationID      string      `json:"operation_id" doc:"The operationId of the OpenAPI document, or the name of an endpoint." zh:"操作：OpenAPI 文档中的 operationId，或接口名称。"`
	Method           string      `json:"method" enum:"GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS" doc:"The method, with path; with operation_id it says how the operation may be repeated, and must be its own." zh:"方法：与 path 一同指定操作；与 operation_id 同用时须与其一致，用于说明可否重试。"`
	Path             string      `json:"path" doc:"The path of the operation, as in the document (/orders/{id}) or with values (/orders/7)." zh:"路径：操作的路径，如文档中的 /orders/{id}，或带值的 /orders/7。"`
	Endpoint         string      `json:"endpoint" doc:"Method and path in one: GET /orders/{id}." zh:"接口：方法与路径合写，如 GET /orders/{id}。"`
	Headers          node.Object `json:"headers" doc:"Further headers." zh:"请求头：附加的请求头。"`
	ValidateResponse bool        `json:"validate_response" doc:"Whether an answer that is not as the definition says fails the node." zh:"校验响应：响应与定义不符时节点是否失败。"`
}

type output struct {
	HTTPCode int               `json:"http_code" doc:"The status of the answer." zh:"状态码：响应的状态码。"`
	Result   json.RawMessage   `json:"result" doc:"The body of the answer: a value if it is JSON, a text, or a file." zh:"结果：响应正文；为 JSON 时是值，否则为文本或文件。"`
	Headers  map[string]string `json:"headers" doc:"The headers of the answer, in lower case." zh:"响应头：名称为小写。"`
	URL      string            `json:"url" doc:"The address that answered." zh:"地址：作出响应的地址。"`
}

// given is what data may bring: the parameters in groups, or each by its own name.
type given struct {
	PathParams   json.RawMessage `json:"path_params,omitempty" doc:"The parameters of the path, by their names." zh:"路径参数：按名称给出。"`
	QueryParams  json.RawMessage `json:"query_params,omitempty" doc:"Those of the query." zh:"查询参数：按名称给出。"`
	HeaderParams json.RawMessage `json:"header_params,omitempty" doc:"Those of the header." zh:"请求头参数：按名称给出。"`
	Body         json.RawMessage `json:"body,omitempty" doc:"What is sent." zh:"正文：发送的内容。"`
}

// apiCall calls an operation of a service.
func apiCall(client *outbound.Client) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	k := node.Define(node.About{
		Name: "EXTERNAL_ACTION.API_CALL", Older: []string{"API"}, Title: node.Says("API call", "API 调用"),
		Description: node.Says("Calls an operation of a service that a credential describes: by an OpenAPI document (version 2 or 3, JSON or YAML), or by a list of endpoints. Parameters are those of the operation, and are checked.", "调用凭据所描述服务的操作：由 OpenAPI 文档（2 或 3 版，JSON 或 YAML）或接口列表定义；参数为该操作的参数，并会校验。"),
		Effect:      workflow.Once, // as the method says
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What the service has answered.", "服务的响应。")}},
		Inputs:      append(node.ValuesOf[given](), node.Meaning("*", "Parameters of the operation, and fields of its body, by their own names.", "操作的参数及正文字段，按各自名称给出。")),
		Examples: []node.Example{{
			Shows:   node.Says("Asks a service for an order.", "向服务查询订单。"),
			Config:  `{"credential_id": "orders_service", "operation_id": "getOrder"}`,
			Input:   `{"id": 7}`,
			Replies: []string{`{"id": 7, "total": 120}`},
			Output:  `{"result": {"http_code": 200, "result": {"id": 7, "total": 120}, "headers": {"content-length": "23", "content-type": "application/json"}, "url": "https://api.example.com/orders/7"}}`,
		}},
	}, func(ctx context.Context, call *node.Call, cfg config, _ json.RawMessage) (output, error) {
		a, err := begin(ctx, call, cfg)
		if err != nil {
			return output{}, err
		}
		return a.run(ctx, client, tokens)
	}, plan)
	k.InputSchema = node.SchemaOf[given](k.About.Name)
	k.Wants = func(ctx context.Context, call *node.Call) (json.RawMessage, error) {
		a, err := configured(ctx, call)
		if err != nil {
			return nil, err
		}
		return a.wants(), nil
	}
	// What may be repeated is, whatever became of it. Of anything else nobody can be asked.
	k.Inquire = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		a, err := configured(ctx, call)
		if err != nil {
			return nil, err
		}
		if a.once() {
			return nil, fault.Newf(fault.Unsupported, "the service cannot be asked what became of %s", a.operation.name())
		}
		return nil, nil
	}
	return k
}

// plan says what is wrong with a configuration, and its class as far as it is known without the definition.
func plan(p *node.Planning, cfg *config) {
	method := cfg.Method
	if words := strings.Fields(cfg.Endpoint); len(words) == 2 && method == "" {
		method = words[0]
	}
	p.Effect = httpcall.EffectOf(method)
	if p.Dynamic("method") || p.Dynamic("endpoint") {
		p.Effect = workflow.Once
	}
	switch {
	case p.Has("endpoint") && !p.Dynamic("endpoint") && len(strings.Fields(cfg.Endpoint)) != 2:
		p.Invalid(p.At("endpoint"), `must be a method and a path, such as "GET /orders/{id}"`)
	case p.Has("path") && !p.Has("method"):
		p.Invalid(p.At("path"), "needs method beside it")
	case !p.Has("operation_id") && !p.Has("path") && !p.Has("endpoint"):
		p.Invalid(p.At("operation_id"), "is needed, or method and path, or endpoint")
	}
}

// calling is one run.
type calling struct {
	call       *node.Call
	cfg        config
	definition *definition
	auth       json.RawMessage
	credential string
	operation  operation
	// fixed are parameters of the path that the author has written into it.
	fixed map[string]string
}

// configured begins a call as the node is configured.
func configured(ctx context.Context, call *node.Call) (*calling, error) {
	cfg, err := node.Configuration[config](call.Config)
	if err != nil {
		return nil, err
	}
	return begin(ctx, call, cfg)
}

// begin opens the credential and finds the operation.
func begin(ctx context.Context, call *node.Call, cfg config) (*calling, error) {
	opened, err := rest.Credential(ctx, call, "a service", credentialType)
	if err != nil {
		return nil, err
	}
	data := gjson.Parse(string(opened.Data))
	a := &calling{call: call, cfg: cfg, credential: opened.ID, auth: json.RawMessage(data.Get("auth").Raw)}
	if a.definition, err = read(opened.ID, data); err != nil {
		return nil, err
	}
	return a, a.find()
}

// find finds the operation that the configuration names.
func (a *calling) find() (err error) {
	method, path, field := a.cfg.Method, a.cfg.Path, "path"
	if words := strings.Fields(a.cfg.Endpoint); len(words) == 2 {
		method, path, field = strings.ToUpper(words[0]), words[1], "endpoint"
	}
	switch {
	case a.cfg.OperationID != "":
		if a.operation, err = a.definition.byID(a.cfg.OperationID); err == nil && method != "" && method != a.operation.Method {
			err = fault.Newf(fault.InvalidConfig, "the operation %q is called by %s, not by %s", a.cfg.OperationID, a.operation.Method, method).With("path", "configurations.method")
		}
	case path != "" && method != "":
		a.operation, a.fixed, err = a.definition.byPath(field, method, path)
	default:
		err = fault.New(fault.InvalidConfig, "nothing says what is called; set operation_id, or method and path, or endpoint").With("path", "configurations.operation_id")
	}
	return err
}

// once says that a repeat would be a second effect.
func (a *calling) once() bool {
	return httpcall.OnceMethod(a.operation.Method) && a.operation.Idempotency == ""
}

func (a *calling) run(ctx context.Context, client *outbound.Client, tokens *httpcall.Tokens) (output, error) {
	sent, err := a.arguments()
	if err != nil {
		return output{}, err
	}
	base, err := url.Parse(a.definition.base)
	if err != nil {
		return output{}, fault.Newf(fault.CredentialInvalid, "credential %q has an address that cannot be used", a.credential)
	}
	auth, err := httpcall.AuthOf(a.credential, a.auth, tokens, base.Host)
	if err != nil {
		return output{}, err
	}
	cfg := httpcall.Config{}
	cfg.Defaults()
	cfg.Method, cfg.URL, cfg.Headers, cfg.IdempotencyHeader = a.operation.Method, a.definition.base+sent.path,
		a.cfg.Headers, a.operation.Idempotency
	cfg.Body, cfg.BodyType = sent.body, sent.bodyType
	if query := sent.query.Encode(); query != "" {
		cfg.URL += "?" + query
	}
	x := &httpcall.Call{Client: client, Node: a.call, Config: cfg, Once: a.once(), Auth: auth}
	out, err := x.Run(ctx, httpcall.Input{DynamicHeaders: values.Encode(sent.header)}, tokens)
	if err != nil {
		return output{}, x.Failed(err)
	}
	made := output{HTTPCode: out.StatusCode, Result: out.JSON, Headers: out.Headers, URL: out.URL}
	if payload.IsNull(out.JSON) && out.Body != "" && out.Body != "null" {
		made.Result = values.Encode(out.Body)
	}
	if out.File != nil {
		made.Result = values.Encode(out.File)
	}
	return made, a.valid(made)
}

// valid holds an answer against the definition, if that is wanted. What was done was done: it is not tried again.
func (a *calling) valid(out output) error {
	schema := a.operation.response(out.HTTPCode)
	if !a.cfg.ValidateResponse || schema == nil {
		return nil
	}
	if problems := check(schema, out.Result); len(problems) > 0 {
		return fault.Newf(fault.OutputInvalid, "the answer of %s is not as its definition says: %s", a.operation.name(), problems[0]).With("path", problems[0].Path).Final()
	}
	return nil
}

// check holds a value against a schema. One that cannot be read leaves the judgement to the service.
func check(schema, value json.RawMessage) []payload.SchemaProblem {
	compiled, err := payload.CompileSchema(schema)
	if err != nil {
		return nil
	}
	return compiled.Problems("", values.Decode(value))
}

// wants is what the operation takes, as the schema of an object: parameters and fields of the body by their names.
func (a *calling) wants() json.RawMessage {
	properties, required := map[string]json.RawMessage{}, []string{}
	for _, p := range a.operation.Parameters {
		if _, fixed := a.fixed[p.Name]; fixed && p.In == "path" || p.Name == a.operation.Idempotency {
			continue
		}
		properties[p.Name] = p.Schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if b := a.operation.Body; b != nil {
		fields := gjson.GetBytes(b.Schema, "properties")
		if !fields.IsObject() {
			properties["body"] = b.Schema
			if b.Required {
				required = append(required, "body")
			}
		}
		fields.ForEach(func(name, schema gjson.Result) bool {
			if _, taken := properties[name.Str]; !taken {
				properties[name.Str] = json.RawMessage(schema.Raw)
			}
			return true
		})
		for _, name := range gjson.GetBytes(b.Schema, "required").Array() {
			if b.Required && fields.Get(gjson.Escape(name.Str)).Exists() && !slices.Contains(required, name.Str) {
				required = append(required, name.Str)
			}
		}
	}
	return values.Encode(map[string]any{"type": "object", "properties": properties, "required": required})
}
