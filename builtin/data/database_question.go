package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/models"
	"tandem/database"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
)

// A question takes the place of a query: a model that is shown the tables writes one statement, which is held to the same
// rules as any other. What the database refuses is told to the model, which may try again.

const (
	questionTries = 3
	// maxColumns and maxSchema bound what the model is shown of the database.
	maxColumns = 2000
	maxSchema  = 64 << 10
)

// statement is what the model is asked for.
type statement struct {
	SQL string `json:"sql"`
}

// question answers a question with the rows of a statement that a model writes.
func question(ctx context.Context, call *node.Call, pools *database.Pools, models *models.Models, target database.Target,
	cfg databaseQueryConfig) (database.Rows, error) {
	if cfg.LLMProfile == "" {
		return database.Rows{}, fault.New(fault.InvalidConfig, `"llm_profile" is missing; a question needs a model that writes the query`).With("path", "configurations.llm_profile")
	}
	driver := gjson.GetBytes(target.Data, "driver").Str
	tables, err := describeTables(ctx, pools, target, driver, cfg.Tables)
	if err != nil {
		return database.Rows{}, err
	}
	messages := []llm.Message{
		{Role: llm.System, Content: fmt.Sprintf("You write one SELECT statement for a %s database that answers the question. Use only the tables and columns below. Answer with JSON: {\"sql\": \"…\"}.\n\n%s", driver, tables)},
		{Role: llm.User, Content: string(cfg.Question)},
	}
	shape := &llm.Schema{Name: "statement", JSON: json.RawMessage(`{"type":"object","required":["sql"],"properties":{"sql":{"type":"string","minLength":1}},"additionalProperties":false}`)}
	for try := 1; ; try++ {
		said, err := models.Ask(ctx, call, cfg.LLMProfile, llm.Request{Messages: messages, Schema: shape})
		if err != nil {
			return database.Rows{}, err
		}
		rows, err := runStatement(ctx, pools, target, shape, said.Message.Content, cfg)
		if err == nil {
			return rows, nil
		}
		f := fault.From(err)
		if try == questionTries || f.Retryable || ctx.Err() != nil {
			return database.Rows{}, err
		}
		call.Log(node.Warn, "a statement that the model wrote cannot be used", map[string]any{"try": try, "error": f.Message})
		messages = append(messages, said.Message, llm.Repair(f.Message, call.Language))
	}
}

func runStatement(ctx context.Context, pools *database.Pools, target database.Target, shape *llm.Schema, answer string,
	cfg databaseQueryConfig) (database.Rows, error) {
	raw, err := shape.Read(answer)
	if err != nil {
		return database.Rows{}, fault.Newf(fault.OutputInvalid, "the model's answer: %s", fault.From(err).Message)
	}
	var s statement
	if err := json.Unmarshal(raw, &s); err != nil {
		return database.Rows{}, fault.Newf(fault.OutputInvalid, "the model's answer cannot be read: %w", err)
	}
	return pools.Query(ctx, target, database.Query{Text: database.Text{Words: []string{s.SQL}}, MaxRows: cfg.MaxRows,
		Arrays: cfg.RowFormat == "arrays"})
}

// tableColumn is a column as catalogues tell it.
type tableColumn struct {
	Table  string `json:"t"`
	Column string `json:"c"`
	Type   string `json:"d"`
}

// describeTables tells the tables of the database, those that are named or all, a line each.
func describeTables(ctx context.Context, pools *database.Pools, target database.Target, driver string, named []string) (string, error) {
	query := `SELECT table_name AS t, column_name AS c, data_type AS d FROM information_schema.columns
		WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'mysql', 'performance_schema', 'sys') ORDER BY table_schema, table_name, ordinal_position`
	switch driver {
	case "sqlite":
		query = `SELECT m.name AS t, p.name AS c, p.type AS d FROM sqlite_master m JOIN pragma_table_info(m.name) p
			WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid`
	case "mysql":
		query = `SELECT table_name AS t, column_name AS c, data_type AS d FROM information_schema.columns
			WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position`
	}
	rows, err := pools.Query(ctx, target, database.Query{Text: database.Text{Words: []string{query}}, MaxRows: maxColumns})
	if err != nil {
		return "", err
	}
	var columns []tableColumn
	if err := json.Unmarshal(rows.Rows, &columns); err != nil {
		return "", fault.Newf(fault.Internal, "the catalogue of the database cannot be read: %w", err)
	}
	var text strings.Builder
	last := ""
	known := map[string]bool{}
	for _, c := range columns {
		known[c.Table] = true
		if len(named) > 0 && !slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(n, c.Table) }) {
			continue
		}
		if c.Table != last {
			if text.Len() > maxSchema {
				break
			}
			fmt.Fprintf(&text, "\n%s:", c.Table)
			last = c.Table
		} else {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, " %s %s", c.Column, strings.ToLower(c.Type))
	}
	for _, n := range named {
		if !slices.ContainsFunc(columns, func(c tableColumn) bool { return strings.EqualFold(c.Table, n) }) {
			names := make([]string, 0, len(known))
			for name := range known { // order does not matter: the nearest is looked for
				names = append(names, name)
			}
			slices.Sort(names)
			return "", fault.Newf(fault.InvalidConfig, "there is no table %q in the database; did you mean %q?", n, fault.Nearest(n, names)).With("path", "configurations.tables")
		}
	}
	if text.Len() == 0 {
		return "", fault.New(fault.NotFound, "the database has no tables that this credential can see")
	}
	return strings.TrimSpace(text.String()), nil
}
