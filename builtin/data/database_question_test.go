package data_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/data"
	"tandem/builtin/models/modelstest"
	"tandem/credential"
	"tandem/database"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestDatabaseQuery_AnswersAQuestion(t *testing.T) {
	t.Parallel()
	pools := database.New(database.Options{Files: t.TempDir()})
	t.Cleanup(pools.Close)
	run := func(o data.Deps, kind, config string) (json.RawMessage, error) {
		o.Databases = pools
		call := nodetest.NewCall(t, config, `{}`)
		call.Workspace = "default"
		call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
		call.Credential = func(context.Context, string, ...string) (credential.Opened, error) {
			return credential.Opened{ID: "shop", Type: "sql", Data: json.RawMessage(`{"driver": "sqlite", "dsn": "shop.db"}`)}, nil
		}
		out, err := nodetest.Of(data.Kinds(o)...).Kind(t, kind).Run(t.Context(), call)
		if err != nil {
			return nil, err
		}
		return out.(node.Done)["result"], nil
	}
	for _, s := range []string{"create table item (id integer primary key, name text)", "insert into item (name) values ('pen'), ('ink')"} {
		if _, err := run(data.Deps{}, operationKind, `{"credential_id": "shop", "operation": "execute", "statement": "`+s+`"}`); err != nil {
			t.Fatal(err)
		}
	}
	const ask = `{"credential_id": "shop", "question": "how many items?", "llm_profile": "m"}`
	// The model is shown the tables; what the database refuses it is told, and it mends its statement.
	models := modelstest.Scripted(
		llm.Rule{Contains: "no such column", JSON: json.RawMessage(`{"sql":"select count(*) as n from item"}`)},
		llm.Rule{System: "item: id integer, name text", Contains: "how many", JSON: json.RawMessage(`{"sql":"select count(nme) as n from item"}`)},
	)
	got, err := run(data.Deps{Models: models}, queryKind, ask)
	if err != nil || !strings.Contains(string(got), `"rows":[{"n":2}]`) || !strings.Contains(string(got), `"sql":"select count(*) as n from item"`) {
		t.Errorf("got %s, %v", got, err)
	}
	// It is held to the rules of any query.
	writes := modelstest.Scripted(llm.Rule{JSON: json.RawMessage(`{"sql":"delete from item"}`)})
	if _, err := run(data.Deps{Models: writes}, queryKind, ask); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("a statement that writes: %v", err)
	}
	if _, err := run(data.Deps{Models: models}, queryKind, `{"credential_id": "shop", "question": "q", "llm_profile": "m", "tables": ["itm"]}`); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `"item"`) {
		t.Errorf("a table that is not there: %v", err)
	}
	if _, err := run(data.Deps{Models: models}, queryKind, `{"credential_id": "shop", "question": "q"}`); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), "llm_profile") {
		t.Errorf("no profile: %v", err)
	}
	if got, err := run(data.Deps{}, queryKind, `{"credential_id": "shop", "query": "select count(*) as n from item"}`); err != nil || !strings.Contains(string(got), `"n":2`) {
		t.Errorf("the rows are still there: %s, %v", got, err)
	}
}
