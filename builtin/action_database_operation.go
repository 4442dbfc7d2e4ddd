package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"tandem/database"
	"tandem/fault"
	"tandem/node"
)

type databaseOperationConfig struct {
	Operation    string            `json:"operation" enum:"insert|update|delete|upsert|execute|transaction" required:"true"`
	Table        string            `json:"table"`
	Rows         []json.RawMessage `json:"rows"`
	Values       node.Object       `json:"values"`
	Where        node.Object       `json:"where"`
	ConflictKeys []string          `json:"conflict_keys"`
	Returning    []string          `json:"returning"`
	Statement    string            `json:"statement"`
	Statements   []json.RawMessage `json:"statements"`
	Parameters   json.RawMessage   `json:"parameters"`
	AllowAllRows bool              `json:"allow_all_rows"`
}

type databaseResult struct {
	AffectedRows int64 `json:"affected_rows"`
	// ReturnedRows are the rows that came back: those of returning, or of the last statement that returned any.
	ReturnedRows json.RawMessage `json:"returned_rows"`
	// LastInsertID is the number that the database gave the last row, null if it gave none.
	LastInsertID json.RawMessage `json:"last_insert_id"`
}

// databaseOperation writes to a database, in one transaction.
func databaseOperation(pools *database.Pools) node.Kind {
	return node.Define(
		info("ACTION.DATABASE_OPERATION", "Database operation", "数据库操作", "Writes to a database in one transaction.", "在一个事务中写入数据库。"),
		func(ctx context.Context, call *node.Call, cfg databaseOperationConfig, _ json.RawMessage) (databaseResult, error) {
			target, err := databaseTarget(ctx, call, pools)
			if err != nil {
				return databaseResult{}, err
			}
			o, err := cfg.read(call)
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
		})
}

// read makes an operation of the configuration.
func (c *databaseOperationConfig) read(call *node.Call) (database.Operation, error) {
	o := database.Operation{
		Kind: c.Operation, Table: c.Table, Rows: c.Rows, Values: json.RawMessage(c.Values), Where: json.RawMessage(c.Where),
		AllRows: c.AllowAllRows, ConflictKeys: c.ConflictKeys, Returning: c.Returning, Repeatable: c.Operation == database.Upsert,
	}
	required := func(field string) error {
		return fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", field, c.Operation).With("path", "configurations."+field)
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
		text, err := databaseText(call, c.Statement, c.Parameters)
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
