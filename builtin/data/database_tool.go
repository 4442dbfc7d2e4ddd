package data

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/database"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type databaseToolConfig struct {
	Query      node.SQL    `json:"query" required:"true" doc:"The statement, which may only read. Its marks :name are the arguments of the tool; placeholders become values beside it." zh:"只读的 SQL 语句；标记 :name 为工具的参数，占位符作为值传入。"`
	Parameters node.Object `json:"parameters" doc:"The JSON Schema of the arguments, an object. What is not required and not given is null." zh:"参数的模式：参数对象的 JSON Schema；非必填且未提供的为 null。"`
	MaxRows    int         `json:"max_rows" range:"1..1000" doc:"The most rows that the model is given." zh:"提供给模型的最多行数。"`
	toolset.Single
}

func (c *databaseToolConfig) Defaults() {
	c.ToolName, c.Approval, c.MaxRows = "database_query", "inherit", 100
}

// databaseTool gives a model one statement of the author's, which reads, with arguments that are bound.
func databaseTool(pools *database.Pools) node.Kind {
	k := node.Define(
		node.About{
			Name: "TOOL.DATABASE_TOOL", Title: node.Says("Database tool", "数据库工具"),
			Description: node.Says("Lets a model read from a database with a statement that you write, and with typed arguments.", "让模型以类型化参数执行您编写的只读语句。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Needs:       node.Needs{Credential: []string{"sql"}},
			Examples: []node.Example{{
				Shows:  node.Says("Finds the orders of a customer. Arguments are bound, never spliced into the statement.", "查询客户的订单。参数以绑定方式传入，不会拼入语句。"),
				Config: `{"credential_id": "orders_db", "tool_name": "orders_of", "description": "The orders of a customer.", "query": "select id, total from orders where customer = :customer", "parameters": {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}}`,
				Input:  `{"function_args": {"customer": "Ann"}}`,
				Output: `{"result": {"result": {"rows": [{"id": 1, "total": 120}], "row_count": 1, "truncated": false}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "rows": [{"id": 1, "total": 120}], "row_count": 1, "truncated": false}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg databaseToolConfig, in toolset.Input) (toolset.Output, error) {
			return toolset.Run(ctx, call, cfg.Fields(in), in, []toolset.Tool{cfg.tool(call, pools)})
		}, func(p *node.Planning, _ *databaseToolConfig) {
			if v := p.Value("query"); v.Type == gjson.String {
				if err := database.CheckReading(v.Str); err != nil {
					p.Saving(func() { p.Invalid(p.At("query"), "%s", fault.From(err).Message) })
				}
			}
		})
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[databaseToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return toolset.Offered(cfg.Fields(toolset.Input{}), []toolset.Tool{cfg.tool(call, pools)}), nil
	}
	return toolset.Kind(k)
}

// toolRows are what a model is told of rows.
type toolRows struct {
	Rows      []json.RawMessage `json:"rows"`
	RowCount  int               `json:"row_count"`
	Truncated bool              `json:"truncated"`
}

func (c *databaseToolConfig) tool(call *node.Call, pools *database.Pools) toolset.Tool {
	schema := json.RawMessage(c.Parameters)
	if values.IsNull(schema) {
		schema = toolset.OpenParameters()
	}
	return toolset.Tool{
		Name: c.ToolName, Description: c.Description, Effect: toolset.Reads, Parameters: func() json.RawMessage { return schema },
		Run: func(ctx context.Context, args json.RawMessage) (any, error) {
			if err := toolset.Fits(schema, args); err != nil {
				return nil, err
			}
			target, err := databaseTarget(ctx, call, pools)
			if err != nil {
				return nil, err
			}
			text, err := databaseText(call, string(c.Query), given(schema, args))
			if err != nil {
				return nil, err
			}
			ctx, cancel := databaseDeadline(ctx, call)
			defer cancel()
			rows, err := pools.Query(ctx, target, database.Query{Text: text, MaxRows: c.MaxRows})
			if err != nil {
				return nil, err
			}
			databaseDetail(call, map[string]any{"sql": rows.SQL, "row_count": rows.Count})
			return fitting(rows)
		},
	}
}

// given are the arguments with null for those that the schema names and a call leaves out.
func given(schema, args json.RawMessage) json.RawMessage {
	list := values.Members(args)
	for name := range gjson.GetBytes(schema, "properties").Map() { // order does not matter: values are bound by name
		if _, ok := (values.Path{name}).Walk(args); !ok {
			list = append(list, values.Member{Key: name, Value: json.RawMessage("null")})
		}
	}
	return values.Object(list)
}

// fitting are as many rows as a result of a tool has room for.
func fitting(rows database.Rows) (toolRows, error) {
	out := toolRows{Rows: []json.RawMessage{}, Truncated: rows.Truncated}
	room := toolset.MaxResult - 256 // what stands around the rows
	for _, row := range gjson.ParseBytes(rows.Rows).Array() {
		if room -= len(row.Raw) + 1; room < 0 {
			if len(out.Rows) == 0 {
				return out, fault.Newf(fault.TooLarge, "a row has more than %d bytes; select less of it",
					toolset.MaxResult).With("limit", toolset.MaxResult)
			}
			out.Truncated = true
			break
		}
		out.Rows = append(out.Rows, json.RawMessage(row.Raw))
	}
	out.RowCount = len(out.Rows)
	return out, nil
}
