package google

import (
	"context"
	"encoding/json"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type sheetsConfig struct {
	action.Fields
	action.Paging
	SpreadsheetID string          `json:"spreadsheet_id" doc:"The id of the spreadsheet, or its address." zh:"电子表格：编号或地址。"`
	Sheet         string          `json:"sheet" with:"action_type=read_rows|append_rows|upsert_rows" doc:"The title of the sheet. Empty: the first one." zh:"工作表：标题；留空则为第一个。"`
	Range         string          `json:"range" with:"action_type=get_values|update_values|clear_values" doc:"The cells, Orders!A1:C9 for instance." zh:"范围：单元格，例如 Orders!A1:C9。"`
	Values        json.RawMessage `json:"values" takes:"list" with:"action_type=append_rows|update_values" doc:"The values, a list of rows, each a list of cells." zh:"值：行的列表，每行为单元格的列表。"`
	Rows          json.RawMessage `json:"rows" takes:"list|object" with:"action_type=append_rows|upsert_rows" doc:"The rows, as objects of the columns by their headings. One needs no list." zh:"行：按列标题组成的对象；单行无需列表。"`
	Where         node.Object     `json:"where" with:"action_type=read_rows" doc:"What the columns of the rows must be, by their headings; none: all rows." zh:"条件：各列须具有的值，按列标题给出；留空则为所有行。"`
	KeyColumn     string          `json:"key_column" with:"action_type=upsert_rows" doc:"The column by which a row is known to be the same." zh:"键列：用于识别同一行的列。"`
	HeaderRow     int             `json:"header_row" range:"1..1000" with:"action_type=read_rows|append_rows|upsert_rows" doc:"The row with the headings." zh:"标题行：列标题所在的行号。"`
	Title         string          `json:"title" with:"action_type=create_spreadsheet|add_sheet" doc:"What the spreadsheet or sheet is called." zh:"标题：电子表格或工作表的名称。"`
	ValueInput    string          `json:"value_input" enum:"USER_ENTERED|RAW" with:"action_type=append_rows|upsert_rows|update_values" doc:"Whether values are read as if they were typed in, formulas and dates included, or kept as they are." zh:"写入方式：按用户输入解析（含公式与日期），或原样保存。"`
	ValueRender   string          `json:"value_render" enum:"UNFORMATTED_VALUE|FORMATTED_VALUE|FORMULA" with:"action_type=read_rows|get_values" doc:"Whether values are read as they are, as people see them, or as formulas." zh:"读取方式：原值、显示值或公式。"`
	Method        string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path          string          `json:"path" with:"action_type=request" doc:"The path below the address of the API, /spreadsheets/… for instance." zh:"路径：API 地址下的路径，例如 /spreadsheets/…。"`
	Query         node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
	Body          json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *sheetsConfig) Defaults() {
	c.ActionType, c.Limit, c.HeaderRow, c.ValueInput, c.ValueRender = "read_rows", action.DefaultLimit, 1,
		"USER_ENTERED", "UNFORMATTED_VALUE"
}

type sheetsResult struct {
	action.Result
	Values   json.RawMessage `json:"values" doc:"The cells that were read, a list of rows; else null." zh:"值：所读取的单元格，为行的列表；否则为 null。"`
	Updated  int64           `json:"updated_rows" doc:"How many rows were written." zh:"写入行数：已写入的行数。"`
	Response json.RawMessage `json:"sheets_response" doc:"The answer of Google; null for lists." zh:"Sheets 响应：Google 的原始响应；列表为 null。"`
}

// sheetsAction acts on spreadsheets.
func sheetsAction(client *outbound.Client) node.Kind {
	steps := action.Steps[sheetsConfig, *sheetsActing, sheetsResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg sheetsConfig) (*sheetsActing, error) {
			api, err := service("Google Sheets", "https://sheets.googleapis.com", "/v4").Open(ctx, client, call)
			return &sheetsActing{ctx: ctx, call: call, cfg: cfg, api: api}, err
		},
		End: func(out *sheetsResult, cfg sheetsConfig) {
			out.Done(cfg.ActionType)
			for _, field := range []*json.RawMessage{&out.Values, &out.Response} {
				if *field == nil {
					*field = json.RawMessage("null")
				}
			}
		},
	}
	const idempotent, once = workflow.Idempotent, workflow.Once
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GOOGLE_SHEETS", Title: node.Says("Google Sheets", "Google 表格"),
		Description: node.Says("Works on spreadsheets of Google: reads, adds and changes rows by their headings, and cells by their range.",
			"操作 Google 表格：按列标题读取、添加与更改行，按范围读写单元格。"),
		Effect: once,
		Needs: node.Needs{Credential: []string{credentialType}, Also: []node.Text{node.Says(
			"The account must have been authorized for https://www.googleapis.com/auth/spreadsheets.", "账号须已授权 https://www.googleapis.com/auth/spreadsheets。")}},
		Keys: []node.Key{{Name: "result", Meaning: node.Says("What Google has answered.", "Google 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Adds a line to a list of orders.", "向订单列表添加一行。"),
			Config:  `{"credential_id": "google_acme", "action_type": "append_rows", "spreadsheet_id": "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "sheet": "Orders", "values": [["{{order}}", "open"]]}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"spreadsheetId": "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "updates": {"updatedRange": "Orders!A9:B9", "updatedRows": 1}}`},
			Output: `{"result": {"success": true, "action": "append_rows", "resource_id": "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms",
				"resource_url": "https://docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null,
				"error_message": "", "values": null, "updated_rows": 1,
				"sheets_response": {"spreadsheetId": "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "updates": {"updatedRange": "Orders!A9:B9", "updatedRows": 1}}}}`,
		}},
	}, []action.Operation[sheetsConfig, sheetsResult]{
		{Name: "append_rows", Effect: once, Needs: []string{"spreadsheet_id", "rows|values"}, Do: steps.Does((*sheetsActing).appendRows)},
		{Name: "create_spreadsheet", Effect: once, Needs: []string{"title"}, Do: steps.Does((*sheetsActing).create)},
		{Name: "upsert_rows", Effect: idempotent, Needs: []string{"spreadsheet_id", "rows", "key_column"},
			Do: steps.Does((*sheetsActing).upsertRows)},
		{Name: "update_values", Effect: idempotent, Needs: []string{"spreadsheet_id", "range", "values"},
			Do: steps.Does((*sheetsActing).update)},
		{Name: "clear_values", Effect: idempotent, Needs: []string{"spreadsheet_id", "range"}, Do: steps.Does((*sheetsActing).clear)},
		{Name: "add_sheet", Effect: idempotent, Needs: []string{"spreadsheet_id", "title"}, Do: steps.Does((*sheetsActing).addSheet)},
		{Name: "read_rows", Effect: idempotent, Lists: true, Needs: []string{"spreadsheet_id"}, Do: steps.Does((*sheetsActing).readRows)},
		{Name: "get_values", Effect: idempotent, Needs: []string{"spreadsheet_id", "range"}, Do: steps.Does((*sheetsActing).get)},
		{Name: "get_spreadsheet", Effect: idempotent, Needs: []string{"spreadsheet_id"}, Do: steps.Does((*sheetsActing).about)},
		{
			Name: "request", EffectOf: func(c sheetsConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*sheetsActing).request),
		},
	})
}
