package data

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/database"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type databaseOperationConfig struct {
	Operation    string            `json:"operation" enum:"insert|update|delete|upsert|execute|transaction" required:"true" doc:"What is done." zh:"进行的操作。"`
	Table        string            `json:"table" doc:"The table." zh:"表名。"`
	Rows         []json.RawMessage `json:"rows" doc:"The rows to insert." zh:"要插入的行。"`
	Values       node.Object       `json:"values" doc:"The values of one row, or those to set." zh:"一行的值，或要更新的值。"`
	Where        node.Object       `json:"where" doc:"Which rows are changed or removed: columns with their values." zh:"更改或删除哪些行：列及其值。"`
	ConflictKeys []string          `json:"conflict_keys" doc:"The columns that tell whether a row is there already, for upsert." zh:"冲突列：upsert 时判断行是否已存在的列。"`
	Returning    []string          `json:"returning" doc:"The columns that come back." zh:"返回的列。"`
	Statement    node.SQL          `json:"statement" doc:"The statement, for execute." zh:"execute 的语句。"`
	Statements   []json.RawMessage `json:"statements" doc:"The statements of a transaction: texts, or objects with statement and parameters." zh:"事务的语句：文本，或含 statement 与 parameters 的对象。"`
	Parameters   json.RawMessage   `json:"parameters" takes:"list|object" doc:"Values for the marks of the statement." zh:"语句参数的值。"`
	AllowAllRows bool              `json:"allow_all_rows" doc:"Whether update and delete may go without where." zh:"允许全部行：是否允许不带 where 的更新和删除。"`
}

type databaseResult struct {
	AffectedRows int64 `json:"affected_rows" doc:"How many rows were changed." zh:"受影响的行数。"`
	// ReturnedRows are the rows that came back: those of returning, or of the last statement that returned any.
	ReturnedRows json.RawMessage `json:"returned_rows" doc:"The columns of returning, of the rows that were changed." zh:"返回的行：受影响行中 returning 所列的列。"`
	// LastInsertID is the number that the database gave the last row, null if it gave none.
	LastInsertID json.RawMessage `json:"last_insert_id" doc:"The key that the database gave to the row that was inserted last; null if it does not say." zh:"新行的主键：最后插入的行由数据库分配的主键；未知时为 null。"`
}

// databaseOperation writes to a database, in one transaction.
func databaseOperation(pools *database.Pools) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.DATABASE_OPERATION", Title: node.Says("Database operation", "数据库操作"),
			Description: node.Says("Writes to a database in one transaction.", "在一个事务中写入数据库。"),
			Effect:      workflow.Once,
			Needs:       node.Needs{Credential: []string{"sql"}},
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("How many rows were changed, and those that came back.", "受影响的行数和返回的行。")}},
			Inputs:      []node.Value{node.Meaning("*", "Whatever the placeholders of the values name.", "占位符所引用的值。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Adds an order.", "新增一个订单。"),
					Config: `{"credential_id": "orders_db", "operation": "insert", "table": "orders", "values": {"id": 3, "customer": "Cem", "total": 40}}`,
					Output: `{"result": {"affected_rows": 1, "returned_rows": [], "last_insert_id": 3}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg databaseOperationConfig, _ json.RawMessage) (databaseResult, error) {
			target, err := databaseTarget(ctx, call, pools)
			if err != nil {
				return databaseResult{}, err
			}
			o, err := cfg.readOperation(call)
			if err != nil {
				return databaseResult{}, err
			}
			ctx, cancel := databaseDeadline(ctx, call)
			defer cancel()
			result, err := pools.Do(ctx, target, o)
			if err != nil {
				return databaseResult{}, err
			}
			databaseDetail(call, map[string]any{"operation": o.Kind, "affected_rows": result.Affected})
			return databaseResult{AffectedRows: result.Affected, ReturnedRows: result.Returned, LastInsertID: result.LastID}, nil
		}, planDatabaseOperation)
}

// readOperation makes an operation of the configuration.
func (c *databaseOperationConfig) readOperation(call *node.Call) (database.Operation, error) {
	o := database.Operation{
		Kind: c.Operation, Table: c.Table, Rows: c.Rows, Values: json.RawMessage(c.Values), Where: json.RawMessage(c.Where),
		AllRows: c.AllowAllRows, ConflictKeys: c.ConflictKeys, Returning: c.Returning, Repeatable: c.Operation == database.Upsert,
	}
	required := func(field string) error {
		return fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", field,
			c.Operation).With("path", "configurations."+field)
	}
	switch c.Operation {
	case database.Insert, database.Upsert:
		switch {
		case c.Values != nil && c.Rows != nil:
			return o, fault.New(fault.InvalidConfig, `"rows" and "values" exclude each other; keep one of them`).With("path", "configurations.values")
		case c.Values != nil:
			o.Rows = []json.RawMessage{json.RawMessage(c.Values)}
		case c.Rows == nil:
			return o, required("rows")
		}
	case database.Execute:
		if c.Statement == "" {
			return o, required("statement")
		}
		text, err := databaseText(call, string(c.Statement), c.Parameters)
		o.Statements = []database.Text{text}
		return o, err
	case database.Transaction:
		if len(c.Statements) == 0 {
			return o, required("statements")
		}
		for i, raw := range c.Statements {
			text, err := c.statement(call, i, gjson.ParseBytes(raw))
			if err != nil {
				return o, err
			}
			o.Statements = append(o.Statements, text)
		}
	}
	return o, nil
}

// statement reads one of the statements: a text, which has the parameters of the node, or an object with its own.
func (c *databaseOperationConfig) statement(call *node.Call, i int, v gjson.Result) (database.Text, error) {
	if v.Type == gjson.String {
		return databaseText(call, v.Str, c.Parameters)
	}
	path := fmt.Sprintf("statements[%d]", i)
	wrong := func(text string) error {
		return fault.Newf(fault.InvalidConfig, "%q %s", path, text).With("path", "configurations."+path)
	}
	if !v.IsObject() || v.Get("statement").Type != gjson.String {
		return database.Text{}, wrong(`must be an SQL text, or an object with "statement" and "parameters"`)
	}
	parameters := c.Parameters
	var unknown string
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "statement":
		case "parameters":
			parameters = json.RawMessage(value.Raw)
		default:
			unknown = key.Str
		}
		return true
	})
	if unknown != "" {
		return database.Text{}, wrong(fmt.Sprintf(`has %q; only "statement" and "parameters" are known`, unknown))
	}
	return databaseText(call, v.Get("statement").Str, parameters)
}

func planDatabaseOperation(p *node.Planning, c *databaseOperationConfig) {
	if c.Operation == "upsert" {
		p.Effect = workflow.Idempotent
	}
	const because = "when %s is %q"
	switch c.Operation {
	case "insert", "upsert", "update", "delete":
		p.Require("table", because, "operation", c.Operation)
	case "execute":
		p.Require("statement", because, "operation", c.Operation)
	case "transaction":
		p.Require("statements", because, "operation", c.Operation)
	}
	switch {
	case c.Operation == "upsert":
		p.Require("conflict_keys", because, "operation", c.Operation)
		fallthrough
	case c.Operation == "insert":
		if !p.Has("rows") {
			p.Require("values", "when %s is %q and %s is not set", "operation", c.Operation, "rows")
		}
	case c.Operation == "update":
		p.Require("values", because, "operation", c.Operation)
	}
	planStatements(p)
	where := strings.TrimSpace(p.Value("where").Raw)
	if (c.Operation == "update" || c.Operation == "delete") && (where == "" || where == "{}") && !c.AllowAllRows && !p.Templated() {
		p.Invalid(p.At("where"), "is required when %s is %q; set allow_all_rows to true if every row is meant", "operation", c.Operation)
	}
}

// planStatements: the statements of a transaction are SQL, alone or with parameters of their own.
func planStatements(p *node.Planning) {
	if p.Value("statements").Type == gjson.String {
		p.Bound = append(p.Bound, p.At("statements")) // a placeholder is a value and never SQL, also not a list of it
	}
	for i, item := range p.Items("statements") {
		at := fmt.Sprintf("%s[%d]", p.At("statements"), i)
		switch {
		case item.IsObject():
			p.Bound = append(p.Bound, at+".statement")
		case item.Type == gjson.String:
			p.Bound = append(p.Bound, at)
		default:
			p.Invalid(at, `must be an SQL text, or an object with "statement" and "parameters", not %s`, node.Excerpt(item))
		}
	}
}
