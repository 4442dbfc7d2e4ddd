package data_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/data"
	"tandem/credential"
	"tandem/database"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// databaseRig is a SQLite file of a workspace and the kinds that use it; the servers are tested where they are reached.
type databaseRig struct {
	t     *testing.T
	kinds map[string]node.Kind
}

func newDatabaseRig(t *testing.T) *databaseRig {
	t.Helper()
	pools := database.New(database.Options{Files: t.TempDir()})
	t.Cleanup(pools.Close)
	r := &databaseRig{t: t, kinds: map[string]node.Kind{}}
	for _, k := range data.Kinds(data.Deps{Databases: pools}) {
		r.kinds[k.About.Name] = k
	}
	return r
}

// call runs a kind. Placeholders of SQL are written {{name}} and read from the input, as the runtime does it.
func (r *databaseRig) call(name, config, input string) (map[string]any, error) {
	r.t.Helper()
	call := nodetest.NewCall(r.t, config, input)
	call.Workspace = "default"
	call.Credential = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		if id != "shop" || len(types) != 1 || types[0] != "sql" {
			return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q", id)
		}
		return credential.Opened{ID: id, Type: "sql", Data: json.RawMessage(`{"driver": "sqlite", "dsn": "` + nodetest.Canary + `.db"}`)}, nil
	}
	call.Bind = func(text string) (dataflow.Bound, error) {
		template, err := dataflow.CompileText(text)
		if err != nil {
			return dataflow.Bound{}, err
		}
		layers, err := dataflow.New(dataflow.Start{})
		if err != nil {
			return dataflow.Bound{}, err
		}
		return template.Bind(layers, dataflow.Request{Own: call.Input})
	}
	out, err := r.kinds[name].Run(r.t.Context(), call)
	if err != nil {
		if raw, merr := json.Marshal(fault.From(err)); merr != nil || strings.Contains(string(raw), nodetest.Canary) {
			r.t.Errorf("the error tells the dsn, or cannot be written: %s", raw)
		}
		return nil, err
	}
	return nodetest.Value(r.t, string(out.(node.Done)["result"])).(map[string]any), nil
}

func (r *databaseRig) want(name, config, input, want string) {
	r.t.Helper()
	got, err := r.call(name, config, input)
	if err != nil {
		r.t.Fatalf("%s: %v", config, err)
	}
	for _, d := range nodetest.Differences("result", nodetest.Value(r.t, want), got) {
		r.t.Error(d)
	}
}

const (
	queryKind     = "ACTION.DATABASE_QUERY"
	operationKind = "ACTION.DATABASE_OPERATION"
)

func TestDatabase(t *testing.T) {
	t.Parallel()
	r := newDatabaseRig(t)
	r.want(operationKind, `{"credential_id": "shop", "operation": "execute", "statement": "create table item (id integer primary key, name text unique, price real)"}`, "",
		`{"affected_rows": 0, "returned_rows": [], "last_insert_id": null}`)
	r.want(operationKind, `{"credential_id": "shop", "operation": "insert", "table": "item", "values": {"name": "pen", "price": 1.5}, "returning": ["id"]}`, "",
		`{"affected_rows": 1, "returned_rows": [{"id": 1}], "last_insert_id": 1}`)
	r.want(operationKind, `{"credential_id": "shop", "operation": "UPSERT", "table": "item", "conflict_keys": ["name"], "rows": [{"name": "pen", "price": 2}, {"name": "ink", "price": 9}]}`, "",
		`{"affected_rows": 2}`)
	r.want(operationKind, `{"credential_id": "shop", "operation": "transaction", "parameters": {"by": 10}, "statements": ["update item set price = price + :by",
		{"statement": "insert into item (name, price) values ({{name}}, ?)", "parameters": [5]}]}`, `{"name": "it's; drop table item"}`, `{"affected_rows": 3}`)
	r.want(queryKind, `{"credential_id": "shop", "query": "select name, price from item where price > {{least}} and name like '%{{part}}%' order by id"}`, `{"least": 4, "part": "in"}`,
		`{"rows": [{"name": "ink", "price": 19}], "row_count": 1, "truncated": false, "columns": [{"name": "name", "type": "text"}, {"name": "price", "type": "real"}],
			"sql": "select name, price from item where price > ? and name like ? order by id"}`)
	r.want(queryKind, `{"credential_id": "shop", "query": "select name from item order by id", "row_format": "arrays", "max_rows": 2}`, "", `{"rows": [["pen"], ["ink"]], "row_count": 2, "truncated": true}`)
	r.want(operationKind, `{"credential_id": "shop", "operation": "delete", "table": "item", "where": {"price": {"op": ">=", "value": 5}}}`, "", `{"affected_rows": 3}`)
}

func TestDatabase_Refuses(t *testing.T) {
	t.Parallel()
	r := newDatabaseRig(t)
	r.want(operationKind, `{"credential_id": "shop", "operation": "execute", "statement": "create table item (id integer primary key, name text unique)"}`, "", `{}`)
	for _, c := range []struct {
		kind, config string
		code         fault.Code
		part         string
	}{
		{queryKind, `{"credential_id": "shop", "question": "how many items are there?", "llm_profile": "p"}`, fault.Unsupported, "profiles"},
		{queryKind, `{"credential_id": "shop"}`, fault.InvalidConfig, "query"},
		{queryKind, `{"query": "select 1"}`, fault.CredentialMissing, "credential_id"},
		{queryKind, `{"query": "select 1", "credential_id": "other"}`, fault.CredentialMissing, "other"},
		{queryKind, `{"credential_id": "shop", "query": "{{q}}"}`, fault.InvalidConfig, "never SQL"},
		{queryKind, `{"credential_id": "shop", "query": "select {{gone}}"}`, fault.UnresolvedPlaceholder, "gone"},
		{queryKind, `{"credential_id": "shop", "query": "delete from item"}`, fault.InvalidInput, "DATABASE_OPERATION"},
		{queryKind, `{"credential_id": "shop", "query": "select 1; select 2"}`, fault.InvalidInput, "several"},
		{queryKind, `{"credential_id": "shop", "query": "select 1", "max_rows": 0}`, fault.InvalidConfig, "max_rows"},
		{operationKind, `{"credential_id": "shop", "operation": "delete", "table": "item"}`, fault.InvalidConfig, "allow_all_rows"},
		{operationKind, `{"credential_id": "shop", "operation": "insert", "table": "item"}`, fault.InvalidConfig, "rows"},
		{operationKind, `{"credential_id": "shop", "operation": "insert", "table": "item", "rows": [], "values": {}}`, fault.InvalidConfig, "exclude"},
		{operationKind, `{"credential_id": "shop", "operation": "insert", "table": "itm", "values": {"name": "x"}}`, fault.NotFound, `"item"`},
		{operationKind, `{"credential_id": "shop", "operation": "update", "table": "item", "allow_all_rows": true}`, fault.InvalidConfig, "values"},
		{operationKind, `{"credential_id": "shop", "operation": "upsert", "table": "item", "values": {"name": "x"}}`, fault.InvalidConfig, "conflict_keys"},
		{operationKind, `{"credential_id": "shop", "operation": "execute"}`, fault.InvalidConfig, "statement"},
		{operationKind, `{"credential_id": "shop", "operation": "transaction", "statements": []}`, fault.InvalidConfig, "statements"},
		{operationKind, `{"credential_id": "shop", "operation": "transaction", "statements": [{"sql": "x"}]}`, fault.InvalidConfig, "statements[0]"},
		{operationKind, `{"credential_id": "shop", "operation": "transaction", "statements": "{{list}}"}`, fault.InvalidConfig, "list"},
		{operationKind, `{"credential_id": "shop", "operation": "drop", "table": "item"}`, fault.InvalidConfig, "operation"},
	} {
		_, err := r.call(c.kind, c.config, `{"q": "select 1", "list": ["delete from item"]}`)
		nodetest.WantError(t, err, c.code, c.part)
	}
}

func TestDatabase_WithoutPools(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		queryKind:     `{"credential_id": "shop", "query": "select 1"}`,
		operationKind: `{"credential_id": "shop", "operation": "execute", "statement": "delete from t"}`,
	} {
		_, err := kinds().Run(t, name, nodetest.NewCall(t, config, ""))
		nodetest.WantError(t, err, fault.Unsupported, "databases")
	}
}
