package data

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/models"
	"tandem/database"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type databaseQueryConfig struct {
	_ struct{} `need:"query|question"`

	Query      node.SQL        `json:"query" doc:"The statement, which may only read. Placeholders become values beside it." zh:"只读的 SQL 语句；占位符作为参数传入。"`
	Question   node.Words      `json:"question" prompt:"true" doc:"A question from which a model makes the statement." zh:"由模型据此生成语句的问题。"`
	LLMProfile string          `json:"llm_profile" names:"profile" older:"profile_id" doc:"The model profile that makes the statement." zh:"生成语句的模型配置档。"`
	Tables     []string        `json:"tables" doc:"The tables that the model may use." zh:"模型可使用的表。"`
	Parameters json.RawMessage `json:"parameters" takes:"list|object" doc:"Values for the marks of the statement." zh:"语句参数的值。"`
	MaxRows    int             `json:"max_rows" range:"1..100000" doc:"The most rows that are returned." zh:"最多返回的行数。"`
	RowFormat  string          `json:"row_format" enum:"objects|arrays" doc:"Whether rows are objects or lists." zh:"行以对象还是列表返回。"`
}

func (c *databaseQueryConfig) Defaults() { c.MaxRows, c.RowFormat = 1000, "objects" }

type databaseRows struct {
	// Rows are objects, or lists when row_format is "arrays".
	Rows     json.RawMessage   `json:"rows" doc:"The rows, as objects or lists." zh:"查询到的行，为对象或列表。"`
	RowCount int               `json:"row_count" doc:"How many rows there are." zh:"行数。"`
	Columns  []database.Column `json:"columns" doc:"The columns with their names and types." zh:"各列的名称和类型。"`
	// Truncated says that there were more than max_rows.
	Truncated bool `json:"truncated" doc:"Whether there were more than max_rows." zh:"是否截断：行数超过 max_rows 时为真。"`
	// SQL is the statement with marks in the place of values.
	SQL string `json:"sql" doc:"The statement with marks in the place of values." zh:"以占位标记代替值的语句。"`
}

// databaseQuery reads from a database.
func databaseQuery(pools *database.Pools, models *models.Models) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.DATABASE_QUERY", Title: node.Says("Database query", "数据库查询"),
			Description: node.Says("Reads from a database with one statement.", "用一条语句读取数据库。"),
			Effect:      workflow.Idempotent, Older: []string{"SQL"},
			Needs: node.Needs{Credential: []string{"sql"}, Also: []node.Text{node.Says("With question a model profile.",
				"使用 question 时需要模型配置档。")}},
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The rows, their columns and their number.", "查询到的行、列和行数。")}},
			Inputs: []node.Value{node.Meaning("*", "Whatever the placeholders of the statement name.", "语句中占位符所引用的值。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Finds large orders. Values are bound, never spliced into the statement.", "查询大额订单。值以参数绑定，不会拼入语句。"),
					Config: `{"credential_id": "orders_db", "query": "select id, customer from orders where total > {{limit}}"}`,
					Input:  `{"limit": 100}`,
					Output: `{"result": {"rows": [{"id": 1, "customer": "Ann"}], "row_count": 1, "columns": [{"name": "id", "type": "integer"}, {"name": "customer", "type": "text"}], "truncated": false, "sql": "select id, customer from orders where total > ?"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg databaseQueryConfig, _ json.RawMessage) (databaseRows, error) {
			if cfg.Query == "" && cfg.Question == "" {
				return databaseRows{}, fault.New(fault.InvalidConfig, `"query" is required; set it to a statement that reads`).With("path", "configurations.query")
			}
			target, err := databaseTarget(ctx, call, pools)
			if err != nil {
				return databaseRows{}, err
			}
			ctx, cancel := databaseDeadline(ctx, call)
			defer cancel()
			var rows database.Rows
			if cfg.Query == "" {
				rows, err = question(ctx, call, pools, models, target, cfg)
			} else {
				rows, err = queryRows(ctx, call, pools, target, cfg)
			}
			if err != nil {
				return databaseRows{}, err
			}
			databaseDetail(call, map[string]any{"sql": rows.SQL, "row_count": rows.Count})
			return databaseRows{Rows: rows.Rows, RowCount: rows.Count, Columns: rows.Columns, Truncated: rows.Truncated, SQL: rows.SQL}, nil
		}, planDatabaseQuery)
}

func queryRows(ctx context.Context, call *node.Call, pools *database.Pools, target database.Target,
	cfg databaseQueryConfig) (database.Rows, error) {
	text, err := databaseText(call, string(cfg.Query), cfg.Parameters)
	if err != nil {
		return database.Rows{}, err
	}
	return pools.Query(ctx, target, database.Query{Text: text, MaxRows: cfg.MaxRows, Arrays: cfg.RowFormat == "arrays"})
}

// databaseTarget opens the node's credential.
func databaseTarget(ctx context.Context, call *node.Call, pools *database.Pools) (database.Target, error) {
	if pools == nil {
		return database.Target{}, fault.New(fault.Unsupported, "databases cannot be reached by this installation")
	}
	id := gjson.GetBytes(call.Config, "credential_id").Str
	if id == "" || call.Credential == nil {
		return database.Target{}, fault.New(fault.CredentialMissing, "configurations.credential_id: the node needs a credential of the type sql; choose one")
	}
	c, err := call.Credential(ctx, id, "sql")
	if err != nil {
		return database.Target{}, err
	}
	return database.Target{Workspace: call.Workspace, Credential: c.ID, Data: c.Data}, nil
}

// databaseText resolves the placeholders of a statement into values beside it.
func databaseText(call *node.Call, statement string, parameters json.RawMessage) (database.Text, error) {
	if call.Bind == nil {
		return database.Text{Words: []string{statement}, Parameters: parameters}, nil
	}
	b, err := call.Bind(statement)
	return database.Text{Words: b.Text, Values: b.Values, Parameters: parameters}, err
}

// databaseDeadline ends the work of an attempt by itself a little before the attempt would be ended, so that what became
// of it is known.
func databaseDeadline(ctx context.Context, call *node.Call) (context.Context, context.CancelFunc) {
	seconds := gjson.GetBytes(call.Config, "timeout").Float()
	if seconds <= 0 {
		seconds = 420
	}
	limit := time.Duration(seconds * float64(time.Second))
	return context.WithTimeout(ctx, limit-min(limit/10, time.Second))
}

func databaseDetail(call *node.Call, fields map[string]any) {
	if call.Detail != nil {
		call.Detail(fields)
	}
}

func planDatabaseQuery(p *node.Planning, _ *databaseQueryConfig) {
	if p.Has("question") && !p.Has("query") {
		p.Require("llm_profile", "when a question takes the place of the query")
	}
	if p.Has("query") && p.Has("question") {
		p.Invalid(p.At("question"), "and query exclude each other; keep one of them")
	}
	if v := p.Value("query"); v.Type == gjson.String {
		if err := database.CheckReading(v.Str); err != nil {
			p.Saving(func() { p.Invalid(p.At("query"), "%s", fault.From(err).Message) })
		}
	}
}
