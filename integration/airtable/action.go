package airtable

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	BaseID    string          `json:"base_id" doc:"The id of the base, which begins with app." zh:"数据库：以 app 开头的编号。"`
	Table     string          `json:"table" doc:"The table, by its name or id." zh:"表：表的名称或编号。"`
	RecordID  string          `json:"record_id" with:"action_type=get_record" doc:"The id of the record." zh:"记录：记录的编号。"`
	RecordIDs []string        `json:"record_ids" with:"action_type=delete_records" doc:"The ids of the records." zh:"多条记录：各记录的编号。"`
	Records   json.RawMessage `json:"records" takes:"list|object" with:"action_type=create_records|update_records|upsert_records" doc:"The records: objects of their fields, or with fields in an object of that name; to change one it has its id, too. One needs no list." zh:"记录内容：由字段组成的对象，或置于 fields 对象中；更改时须含 id。单条记录无需列表。"`
	MergeOn   []string        `json:"merge_on" with:"action_type=upsert_records" doc:"The fields, up to three, by which a record is known to be the same." zh:"匹配字段：用于识别同一记录的字段，最多三个。"`
	Typecast  bool            `json:"typecast" with:"action_type=create_records|update_records|upsert_records" doc:"Whether Airtable makes values fit, new choices of a list for instance." zh:"自动转换：是否由 Airtable 转换值，例如新增选项。"`
	View      string          `json:"view" with:"action_type=list_records" doc:"The view whose records are listed, in its order." zh:"视图：按其顺序列出其中的记录。"`
	Formula   string          `json:"formula" with:"action_type=list_records" doc:"A formula that the records fulfil, {Status} = 'open' for instance." zh:"公式：记录须满足的公式，例如 {Status} = 'open'。"`
	Columns   []string        `json:"fields" with:"action_type=list_records" doc:"The fields that are read; none: all." zh:"字段：要读取的字段；留空则为全部。"`
	Sort      []sortBy        `json:"sort" with:"action_type=list_records" doc:"What the records are sorted by." zh:"排序：记录的排序方式。"`
	Method    string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path      string          `json:"path" with:"action_type=request" doc:"The path below the address of the API." zh:"路径：API 地址下的路径。"`
	Query     node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
	Body      json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// sortBy is one field that records are sorted by.
type sortBy struct {
	Field     string `json:"field" required:"true" doc:"The field." zh:"字段：排序字段。"`
	Direction string `json:"direction" enum:"asc|desc" doc:"Which way." zh:"方向：升序或降序。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (s *sortBy) Defaults() { s.Direction = "asc" }

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() { c.ActionType, c.Limit = "list_records", action.DefaultLimit }

type actionResult struct {
	action.Result
	Response json.RawMessage `json:"airtable_response" doc:"The answer of Airtable; null for lists and several records." zh:"Airtable 响应：Airtable 的原始响应；列表或多条记录时为 null。"`
}

// act acts on records.
func act(client *outbound.Client) node.Kind {
	steps := action.Steps[actionConfig, *acting, actionResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
			api, err := airtable().Open(ctx, client, call)
			return &acting{ctx: ctx, call: call, cfg: cfg, api: api}, err
		},
		End: func(out *actionResult, cfg actionConfig) {
			if out.Done(cfg.ActionType); out.Response == nil {
				out.Response = json.RawMessage("null")
			}
		},
	}
	table := []string{"base_id", "table"}
	needs := func(more ...string) []string { return append(append([]string{}, table...), more...) }
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.AIRTABLE", Title: node.Says("Airtable", "Airtable"),
		Description: node.Says("Works on Airtable: lists, makes, changes and deletes records of a table.", "操作 Airtable：列出、创建、更改与删除表中的记录。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Airtable has answered.", "Airtable 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Keeps an order in a table; the same order is changed and not doubled.", "将订单存入表中；同一订单会被更新而不会重复。"),
			Config:  `{"credential_id": "airtable_acme", "action_type": "upsert_records", "base_id": "appShop0123456789", "table": "Orders", "merge_on": ["Number"], "records": [{"Number": "{{order}}", "Status": "open"}]}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"records": [{"id": "recA", "fields": {"Number": 7, "Status": "open"}}], "createdRecords": ["recA"], "updatedRecords": []}`},
			Output: `{"result": {"success": true, "action": "upsert_records", "resource_id": "recA", "resource_url": "", "items": [{"id": "recA", "fields": {"Number": 7, "Status": "open"}}], "next_cursor": "",
				"truncated": false, "rate_limit_info": null, "error_message": "", "airtable_response": null}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "create_records", Effect: workflow.Once, Needs: needs("records"), Do: steps.Does((*acting).create)},
		{Name: "update_records", Effect: workflow.Idempotent, Needs: needs("records"), Do: steps.Does((*acting).update)},
		{Name: "upsert_records", Effect: workflow.Idempotent, Needs: needs("records", "merge_on"), Do: steps.Does((*acting).upsert)},
		{Name: "delete_records", Effect: workflow.Idempotent, Needs: needs("record_ids"), Do: steps.Does((*acting).delete)},
		{Name: "list_records", Effect: workflow.Idempotent, Lists: true, Needs: table, Do: steps.Does((*acting).list)},
		{Name: "get_record", Effect: workflow.Idempotent, Needs: needs("record_id"), Do: steps.Does((*acting).get)},
		{Name: "list_bases", Effect: workflow.Idempotent, Lists: true, Do: steps.Does(func(a *acting) (actionResult, error) {
			return a.pages("/meta/bases", "bases", url.Values{})
		})},
		{Name: "list_tables", Effect: workflow.Idempotent, Lists: true, Needs: []string{"base_id"}, Do: steps.Does(func(a *acting) (actionResult, error) {
			return a.pages(rest.Path("meta", "bases", a.cfg.BaseID, "tables"), "tables", url.Values{})
		})},
		{
			Name: "request", EffectOf: func(c actionConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*acting).request),
		},
	})
}

// acting is one run of an operation.
type acting struct {
	ctx  context.Context
	call *node.Call
	cfg  actionConfig
	api  *rest.API
}

func (a *acting) table(more ...any) string {
	return rest.Path(append([]any{a.cfg.BaseID, a.cfg.Table}, more...)...)
}

// most is how many records Airtable takes in one call.
const most = 10

// records are those of the node, each with its fields in an object of that name.
func (a *acting) records(withID bool) ([]rest.Fields, error) {
	given := []json.RawMessage{a.cfg.Records}
	if values.IsList(a.cfg.Records) {
		given = values.Elements(a.cfg.Records)
	}
	var list []rest.Fields
	for i, raw := range given {
		r := gjson.ParseBytes(raw)
		at := "records." + strconv.Itoa(i)
		if !r.IsObject() {
			return nil, fault.Newf(fault.InvalidInput, "%s must be an object with the fields of a record", at).With("path", at)
		}
		record := rest.Fields{}
		if id := r.Get("id").Str; id != "" && withID {
			record["id"] = id
		}
		if inner := r.Get("fields"); inner.IsObject() {
			record["fields"] = json.RawMessage(inner.Raw)
		} else {
			fields := map[string]json.RawMessage{}
			for name, value := range r.Map() { // order does not matter: they are named
				if name != "id" || !withID {
					fields[name] = json.RawMessage(value.Raw)
				}
			}
			record["fields"] = fields
		}
		if withID && record["id"] == nil {
			return nil, fault.Newf(fault.InvalidInput, "%s has no id; use upsert_records where it is not known", at).With("path", at)
		}
		list = append(list, record)
	}
	if len(list) == 0 {
		return nil, fault.New(fault.InvalidInput, "records is empty").With("path", "records")
	}
	return list, nil
}

// made is the result of several records.
func (a *acting) made(items []json.RawMessage, answer rest.Answer) (out actionResult) {
	out.Items, out.RateLimit = items, answer.Limits()
	if len(items) == 1 {
		out.ResourceID = gjson.GetBytes(items[0], "id").Str
		out.ResourceURL = a.page(out.ResourceID)
	}
	return out
}

// page is where people find a record; its address needs the id of the table.
func (a *acting) page(record string) string {
	if !strings.HasPrefix(a.cfg.Table, "tbl") || record == "" {
		return ""
	}
	return "https://airtable.com" + a.table(record)
}

// send sends records in calls of at most ten, which do no harm when they are made again.
func (a *acting) send(method string, records []rest.Fields, more rest.Fields, repeatable bool) (out actionResult, err error) {
	var items []json.RawMessage
	var answer rest.Answer
	for from := 0; from < len(records); from += most {
		body := rest.Fields{"records": records[from:min(from+most, len(records))]}
		if a.cfg.Typecast {
			body["typecast"] = true
		}
		for name, value := range more { // order does not matter: they are named
			body[name] = value
		}
		answer, err = a.api.Do(a.ctx, rest.Call{Method: method, Path: a.table(), Body: body, Repeatable: repeatable,
			Fields: []string{"records"}})
		if err != nil {
			return out, err
		}
		items = append(items, rest.Items(answer.Get("records"))...)
	}
	return a.made(items, answer), nil
}

// create makes records, in one call: of several nobody would know which were made when one is lost.
func (a *acting) create() (out actionResult, err error) {
	records, err := a.records(false)
	if err != nil {
		return out, err
	}
	if len(records) > most {
		return out, fault.Newf(fault.InvalidInput, "there are %d records; Airtable makes at most %d at once: split them, or use upsert_records", len(records), most).With("path", "records")
	}
	return a.send(http.MethodPost, records, nil, false)
}

func (a *acting) update() (out actionResult, err error) {
	records, err := a.records(true)
	if err != nil {
		return out, err
	}
	return a.send(http.MethodPatch, records, nil, true)
}

func (a *acting) upsert() (out actionResult, err error) {
	records, err := a.records(false)
	if err != nil {
		return out, err
	}
	return a.send(http.MethodPatch, records, rest.Fields{"performUpsert": map[string]any{"fieldsToMergeOn": a.cfg.MergeOn}}, true)
}

// delete deletes records. Those that are gone when it is tried again were deleted before.
func (a *acting) delete() (out actionResult, err error) {
	var items []json.RawMessage
	var answer rest.Answer
	for from := 0; from < len(a.cfg.RecordIDs); from += most {
		query := url.Values{"records[]": a.cfg.RecordIDs[from:min(from+most, len(a.cfg.RecordIDs))]}
		answer, err = a.api.Do(a.ctx, rest.Call{Method: http.MethodDelete, Path: a.table(), Query: query, Fields: []string{"records"}})
		if a.call.Attempt > 1 && rest.Status(err) == http.StatusNotFound {
			err = nil
			continue
		}
		if err != nil {
			return out, err
		}
		items = append(items, rest.Items(answer.Get("records"))...)
	}
	out = a.made(items, answer)
	out.ResourceURL = ""
	return out, nil
}

func (a *acting) get() (out actionResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: a.table(a.cfg.RecordID), Fields: []string{"id"}})
	if err != nil {
		return out, err
	}
	out.ResourceID, out.Response, out.RateLimit = answer.Get("id").Str, answer.Raw(), answer.Limits()
	out.ResourceURL = a.page(out.ResourceID)
	return out, nil
}

// pageSize is how many records Airtable hands out at once.
const pageSize = 100

func (a *acting) list() (actionResult, error) {
	query := url.Values{"pageSize": {strconv.Itoa(min(a.cfg.Limit, pageSize))}}
	for name, text := range map[string]string{"view": a.cfg.View, "filterByFormula": a.cfg.Formula} { // order does not matter: they are named
		if text != "" {
			query.Set(name, text)
		}
	}
	if len(a.cfg.Columns) > 0 {
		query["fields[]"] = a.cfg.Columns
	}
	for i, s := range a.cfg.Sort {
		query.Set("sort["+strconv.Itoa(i)+"][field]", s.Field)
		query.Set("sort["+strconv.Itoa(i)+"][direction]", s.Direction)
	}
	return a.pages(a.table(), "records", query)
}

// pages reads a list. Its cursor is the query of a page.
func (a *acting) pages(where, field string, first url.Values) (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		query, err := rest.CursorQuery(cursor, first)
		if err != nil {
			return nil, "", err
		}
		answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: where, Query: query, Fields: []string{field}})
		if err != nil {
			return nil, "", err
		}
		out.RateLimit = answer.Limits()
		next := ""
		if offset := answer.Get("offset").Str; offset != "" {
			query.Set("offset", offset)
			next = query.Encode()
		}
		return rest.Items(answer.Get(field)), next, nil
	})
	return out, err
}

func (a *acting) request() (out actionResult, err error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	if err == nil && payload.IsNull(answer.Raw()) {
		return out, nil
	}
	out.ResourceID, out.Response, out.RateLimit = answer.Get("id").Str, answer.Raw(), answer.Limits()
	return out, err
}
