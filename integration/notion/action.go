package notion

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/models"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/workflow"
)

type actionConfig struct {
	action.Optional
	action.Paging
	Instruction   node.Template   `json:"instruction" prompt:"true" doc:"What is to be done, in words, instead of action_type: the model of llm_profile plans it with the operations." zh:"指令：代替 action_type，用文字说明要做的事；由 llm_profile 的模型用各操作完成。"`
	Context       json.RawMessage `json:"context" doc:"What the model is told besides the instruction." zh:"上下文：除指令外提供给模型的内容。"`
	LLMProfile    string          `json:"llm_profile" names:"profile" older:"profile_id" doc:"The model profile that plans what an instruction wants." zh:"模型配置档：用于规划指令的模型。"`
	OperationType string          `json:"operation_type" enum:"database|page|both" with:"action_type=search" doc:"What is searched for." zh:"查找类型：查找数据库、页面或两者。"`
	DatabaseID    string          `json:"database_id" with:"action_type=create_database_item|query_database" doc:"The id of the database." zh:"数据库：数据库的编号。"`
	PageID        string          `json:"page_id" with:"action_type=append_blocks|add_comment|update_page|update_database_item|archive_page|get_page|get_blocks" doc:"The id of the page." zh:"页面：页面的编号。"`
	Parent        json.RawMessage `json:"parent" takes:"text|object" with:"action_type=create_page" doc:"Where the page is made: the id of a page, or an object with page_id or database_id." zh:"上级：新页面所在页面的编号，或含 page_id 或 database_id 的对象。"`
	Properties    node.Object     `json:"properties" with:"action_type=create_page|create_database_item|update_page|update_database_item" doc:"The properties by their names. Plain values take the form of the property; of a page without a database there is title alone." zh:"属性：按名称给出；普通值会转换为属性的格式；不属于数据库的页面只有 title。"`
	Children      json.RawMessage `json:"children" takes:"list" with:"action_type=create_page|create_database_item|append_blocks" doc:"Blocks, as Notion writes them." zh:"内容块：Notion 格式的块列表。"`
	Markdown      string          `json:"markdown" with:"action_type=create_page|create_database_item|append_blocks" doc:"What is written, as Markdown: headings, lists, quotes, code and paragraphs become blocks." zh:"Markdown 正文：写入的内容；标题、列表、引用、代码与段落会转换为块。"`
	Text          string          `json:"text" with:"action_type=add_comment" doc:"The text of the comment." zh:"评论：评论的内容。"`
	Filter        json.RawMessage `json:"filter" takes:"object" with:"action_type=query_database" doc:"Which items are wanted, as Notion writes filters." zh:"筛选：Notion 格式的筛选条件。"`
	Sorts         json.RawMessage `json:"sorts" takes:"list" with:"action_type=query_database" doc:"Their order, as Notion writes it." zh:"排序：Notion 格式的排序。"`
	Query         json.RawMessage `json:"query" with:"action_type=search|request" doc:"The words that are searched for in titles; of request an object with the parameters of the call." zh:"查询：在标题中查找的文字；request 时为包含请求参数的对象。"`
	Method        string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path          string          `json:"path" with:"action_type=request" doc:"The path below the address of the API." zh:"路径：API 地址下的路径。"`
	Body          json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.Limit, c.OperationType = usualAction, action.DefaultLimit, "database"
}

// usualAction is what is done when neither an operation is named nor a model that plans.
const usualAction = "create_page"

type actionResult struct {
	action.Result
	Response json.RawMessage `json:"notion_response" doc:"The answer of Notion; null for lists." zh:"Notion 响应：Notion 的原始响应；列表为 null。"`
	// AIExecution and Discovered are there when a model has planned.
	AIExecution *planned   `json:"ai_execution,omitempty" doc:"What a model has done for an instruction: each step, and what it says in the end." zh:"AI 执行：模型为完成指令执行的各步骤，及其最后的说明。"`
	Discovered  []resource `json:"discovered_resources,omitempty" doc:"The pages and databases that a model came across." zh:"发现的资源：模型遇到的页面与数据库。"`
}

// act acts on pages and databases.
func act(client *outbound.Client, ask asker) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			api, err := service().Open(ctx, client, call)
			return &acting{ctx: ctx, cfg: cfg, api: api}, err
		},
		End: func(out *actionResult, cfg actionConfig) {
			if out.Done(cfg.ActionType); out.Response == nil {
				out.Response = json.RawMessage("null")
			}
		},
	}
	operations := operations(steps)
	k := action.Define(node.About{
		Name: "EXTERNAL_ACTION.NOTION", Title: node.Says("Notion", "Notion"),
		Description: node.Says("Works on Notion: makes, changes, finds and reads pages, items of databases, blocks and comments; or lets a model do what an instruction wants.", "操作 Notion：创建、更改、查找与读取页面、数据库条目、内容块与评论；也可由模型按指令完成。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Notion has answered.", "Notion 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Makes a page of the minutes of a meeting.", "用会议记录创建页面。"),
			Config:  `{"credential_id": "notion_acme", "action_type": "create_page", "parent": "5c6a28216bb14a7eb6e1c50111515c3d", "properties": {"title": "Meeting of {{day}}"}, "markdown": "# Decisions\n- Ship it"}`,
			Input:   `{"day": "2026-11-20"}`,
			Replies: []string{`{"object": "page", "id": "p1", "url": "https://www.notion.so/p1"}`},
			Output:  `{"result": {"success": true, "action": "create_page", "resource_id": "p1", "resource_url": "https://www.notion.so/p1", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "notion_response": {"object": "page", "id": "p1", "url": "https://www.notion.so/p1"}}}`,
		}},
	}, operations, planAction)
	plain := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		config := named(call.Config)
		switch {
		case given(config["action_type"]):
			return plain(ctx, call)
		case !given(config["llm_profile"]) && given(config["instruction"]):
			return nil, fault.New(fault.InvalidConfig, "an instruction needs the model that plans it; set llm_profile").With("path", "configurations.llm_profile")
		case !given(config["llm_profile"]):
			inner, err := *call, error(nil)
			if inner.Config, err = sjson.SetBytes(call.Config, "action_type", usualAction); err != nil {
				return nil, fault.New(fault.InvalidConfig, "the configurations must be an object").WithCause(err)
			}
			return plain(ctx, &inner)
		}
		out, err := (&planning{call: call, config: config, ask: ask, run: plain,
			tools: action.Offered(operations, said(), planFields()...)}).execute(ctx)
		if err != nil {
			return models.WaitOrFail(err)
		}
		return node.Succeed(out)
	}
	return k
}

// operations are what can be done.
func operations(steps action.Steps[actionConfig, *acting, actionResult]) []action.Operation[actionConfig, actionResult] {
	return []action.Operation[actionConfig, actionResult]{
		{Name: "create_page", Effect: workflow.Once, Needs: []string{"parent", "properties"}, Do: steps.Does((*acting).createPage)},
		{Name: "create_database_item", Also: []string{"create_database_entry"}, Effect: workflow.Once,
			Needs: []string{"database_id", "properties"}, Do: steps.Does((*acting).createItem)},
		{Name: "append_blocks", Effect: workflow.Once, Needs: []string{"page_id", "children|markdown"},
			Do: steps.Does((*acting).appendBlocks)},
		{Name: "add_comment", Effect: workflow.Once, Needs: []string{"page_id", "text"}, Do: steps.Does((*acting).comment)},
		{Name: "update_page", Effect: workflow.Idempotent, Needs: []string{"page_id", "properties"}, Do: steps.Does((*acting).update)},
		{Name: "update_database_item", Effect: workflow.Idempotent, Needs: []string{"page_id", "properties"},
			Do: steps.Does((*acting).update)},
		{Name: "archive_page", Effect: workflow.Idempotent, Needs: []string{"page_id"},
			Do: steps.Does(func(a *acting) (actionResult, error) { return a.change(rest.Fields{"archived": true}) })},
		{Name: "search", Effect: workflow.Idempotent, Lists: true, Do: steps.Does((*acting).search)},
		{Name: "get_page", Effect: workflow.Idempotent, Needs: []string{"page_id"}, Do: steps.Does(func(a *acting) (actionResult, error) {
			return a.do(rest.Call{Method: "GET", Path: rest.Path("pages", a.cfg.PageID)})
		})},
		{Name: "get_blocks", Effect: workflow.Idempotent, Lists: true, Needs: []string{"page_id"}, Do: steps.Does((*acting).blocks)},
		{Name: "query_database", Effect: workflow.Idempotent, Lists: true, Needs: []string{"database_id"}, Do: steps.Does((*acting).queryDatabase)},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	}
}

// acting is one run of an operation.
type acting struct {
	ctx context.Context
	cfg actionConfig
	api *rest.API
}

// made is the result of an answer that is one resource.
func made(answer rest.Answer) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get("id").Str, answer.Get("url").Str, answer.Limits()
	return out
}

func (a *acting) do(c rest.Call) (actionResult, error) {
	c.Fields = append(c.Fields, "object")
	answer, err := a.api.Do(a.ctx, c)
	if err != nil {
		return actionResult{}, err
	}
	return made(answer), nil
}

// parent is where a page is made.
func (a *acting) parent() (rest.Fields, error) {
	given := gjson.ParseBytes(a.cfg.Parent)
	switch {
	case given.Type == gjson.String:
		return rest.Fields{"page_id": given.Str}, nil
	case given.Get("database_id").Str != "":
		return rest.Fields{"database_id": given.Get("database_id").Str}, nil
	case given.Get("page_id").Str != "":
		return rest.Fields{"page_id": given.Get("page_id").Str}, nil
	case given.Get("workspace").Bool():
		return rest.Fields{"type": "workspace", "workspace": true}, nil
	}
	return nil, fault.New(fault.InvalidInput, "parent must be the id of a page, or an object with page_id or database_id").With("path", "parent")
}

func (a *acting) createPage() (actionResult, error) {
	parent, err := a.parent()
	if err != nil {
		return actionResult{}, err
	}
	return a.create(parent)
}

func (a *acting) createItem() (actionResult, error) {
	return a.create(rest.Fields{"database_id": a.cfg.DatabaseID})
}

// create makes a page. Notion takes so many blocks at once; further ones follow.
func (a *acting) create(parent rest.Fields) (actionResult, error) {
	blocks, err := a.written()
	if err != nil {
		return actionResult{}, err
	}
	known := map[string]string{"title": "title"}
	if id, ok := parent["database_id"].(string); ok {
		if known, err = a.types(rest.Path("databases", id)); err != nil {
			return actionResult{}, action.NotTaken(err)
		}
	}
	properties, err := shaped(a.cfg.Properties, known)
	if err != nil {
		return actionResult{}, err
	}
	body := rest.Fields{"parent": parent, "properties": properties}
	first := min(len(blocks), maxBlocks)
	if first > 0 {
		body["children"] = blocks[:first]
	}
	out, err := a.do(rest.Call{Method: "POST", Path: "/pages", Body: body, Fields: []string{"id"}})
	if err != nil || first == len(blocks) {
		return out, err
	}
	_, err = a.addBlocks(out.ResourceID, blocks[first:], "the page "+out.ResourceID+" was made, and then its content could not be written wholly")
	return out, err
}

// types are the types of the properties of a database or a page, by their names.
func (a *acting) types(where string) (map[string]string, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: where, Fields: []string{"properties"}})
	known := map[string]string{}
	answer.Get("properties").ForEach(func(name, p gjson.Result) bool { known[name.Str] = p.Get("type").Str; return true })
	return known, err
}

// written are the blocks that the configuration says.
func (a *acting) written() ([]json.RawMessage, error) {
	if payload.IsNull(a.cfg.Children) {
		return blocksOf(a.cfg.Markdown), nil
	}
	if !values.IsList(a.cfg.Children) {
		return nil, fault.New(fault.InvalidInput, "children must be a list of blocks").With("path", "children")
	}
	return append(values.Elements(a.cfg.Children), blocksOf(a.cfg.Markdown)...), nil
}

// addBlocks appends blocks, some at a time. When some have been written, a failure says so and is final: a repeat would write them again.
func (a *acting) addBlocks(page string, blocks []json.RawMessage, already string) (out actionResult, err error) {
	for sent := 0; sent < len(blocks); sent += maxBlocks {
		part := blocks[sent:min(sent+maxBlocks, len(blocks))]
		next, err := a.do(rest.Call{Method: "PATCH", Path: rest.Path("blocks", page, "children"), Body: rest.Fields{"children": part}})
		if err != nil {
			if call, ok := errors.AsType[*outbound.Error](err); (!ok || call.Fate != outbound.Unknown) && (sent > 0 || already != "") {
				f := fault.From(err)
				return out, fault.Newf(fault.RemoteError, "%s (%d of %d blocks are there): %s",
					orElse(already, "not all blocks could be written"), sent, len(blocks), f.Message).With("cause", string(f.Code)).Final()
			}
			return out, err
		}
		out.Items = append(out.Items, rest.Items(gjson.GetBytes(next.Response, "results"))...)
		out.Response, out.RateLimit = next.Response, next.RateLimit
	}
	out.ResourceID = page
	return out, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (a *acting) appendBlocks() (actionResult, error) {
	blocks, err := a.written()
	if err != nil {
		return actionResult{}, err
	}
	if len(blocks) == 0 {
		return actionResult{}, fault.New(fault.InvalidInput, "append_blocks has nothing to write; set children or markdown").With("path", "children")
	}
	return a.addBlocks(a.cfg.PageID, blocks, "")
}

func (a *acting) comment() (actionResult, error) {
	return a.do(rest.Call{Method: "POST", Path: "/comments",
		Body: rest.Fields{"parent": rest.Fields{"page_id": a.cfg.PageID}, "rich_text": richText(a.cfg.Text)}, Fields: []string{"id"}})
}

func (a *acting) change(fields rest.Fields) (actionResult, error) {
	return a.do(rest.Call{Method: "PATCH", Path: rest.Path("pages", a.cfg.PageID), Body: fields, Repeatable: true, Fields: []string{"id"}})
}

func (a *acting) update() (actionResult, error) {
	known, err := a.types(rest.Path("pages", a.cfg.PageID))
	if err != nil {
		return actionResult{}, err
	}
	properties, err := shaped(a.cfg.Properties, known)
	if err != nil {
		return actionResult{}, err
	}
	return a.change(rest.Fields{"properties": properties})
}

// list reads a list; ask makes the call of a page of so many.
func (a *acting) list(ask func(cursor string, size int) rest.Call) (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		call := ask(cursor, min(a.cfg.Limit, maxBlocks))
		call.Repeatable, call.Fields = true, []string{"results"}
		answer, err := a.api.Do(a.ctx, call)
		out.RateLimit = answer.Limits()
		return rest.Items(answer.Get("results")), answer.Get("next_cursor").Str, err
	})
	return out, err
}

func (a *acting) blocks() (actionResult, error) {
	return a.list(func(cursor string, size int) rest.Call {
		query := url.Values{"page_size": {strconv.Itoa(size)}}
		if cursor != "" {
			query.Set("start_cursor", cursor)
		}
		return rest.Call{Method: "GET", Path: rest.Path("blocks", a.cfg.PageID, "children"), Query: query}
	})
}

func (a *acting) queryDatabase() (actionResult, error) {
	return a.list(func(cursor string, size int) rest.Call {
		body := rest.Fields{"page_size": size}.Text("start_cursor", cursor).JSON("filter", a.cfg.Filter).JSON("sorts", a.cfg.Sorts)
		return rest.Call{Method: "POST", Path: rest.Path("databases", a.cfg.DatabaseID, "query"), Body: body}
	})
}

func (a *acting) search() (actionResult, error) {
	words, err := rest.Text("query", a.cfg.Query)
	if err != nil {
		return actionResult{}, err
	}
	return a.list(func(cursor string, size int) rest.Call {
		body := rest.Fields{"page_size": size}.Text("start_cursor", cursor).Text("query", words)
		if a.cfg.OperationType != "both" {
			body["filter"] = rest.Fields{"property": "object", "value": a.cfg.OperationType}
		}
		return rest.Call{Method: "POST", Path: "/search", Body: body}
	})
}

func (a *acting) request() (actionResult, error) {
	var query node.Object
	if !payload.IsNull(a.cfg.Query) {
		if !values.IsObject(a.cfg.Query) {
			return actionResult{}, fault.New(fault.InvalidInput, "query must be an object with the parameters of the call").With("path", "query")
		}
		query = node.Object(a.cfg.Query)
	}
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: query, Body: a.cfg.Body})
	return made(answer), err
}
