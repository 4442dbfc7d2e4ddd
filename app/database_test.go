package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/store"
)

// TestInstance_Database writes and reads a SQLite file through the whole engine: placeholders of SQL become values beside
// it, and what is secret in the credential is told nowhere.
func TestInstance_Database(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	ring, err := i.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	for id, data := range map[string]string{
		"cred_shop": `{"driver": "sqlite", "dsn": "shop.db"}`,
		"cred_far":  `{"driver": "postgres", "dsn": "postgres://u:c4nary-s3cret-value@127.0.0.1:5432/x"}`,
	} {
		sealed, err := sealedFor(t, ring, id, "sql", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := i.stores.Credentials.Create(t.Context(), user, store.Credential{ID: id, Name: id, Type: "sql", Sealed: sealed}); err != nil {
			t.Fatal(err)
		}
	}
	i.saveText(t, `
metadata: {id: shop, name: shop, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: make, description: d, type: ACTION, subtype: DATABASE_OPERATION, configurations: {credential_id: cred_shop, operation: execute,
      statement: "create table if not exists item (name text primary key, n int)"}}
  - {id: write, description: d, type: ACTION, subtype: DATABASE_OPERATION, configurations: {credential_id: cred_shop, operation: transaction,
      statements: ["delete from item", {statement: "insert into item values ({{start.outputs.name}}, ?)", parameters: ["{{start.outputs.n}}"]}]}}
  - {id: read, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {credential_id: cred_shop,
      query: "select name, n + {{start.outputs.n}} as twice from item where name = '{{start.outputs.name}}'"}}
connections:
  - {from_node: start, to_node: make}
  - {from_node: make, to_node: write}
  - {from_node: write, to_node: read}
`)
	execution := i.startText(t, "shop", `{"name": "x'; drop table item; --", "n": 21}`)
	i.ends(t, execution, engine.StatusSuccess)
	outputs, err := i.Outputs(t.Context(), user, execution)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(outputs["read"]), `{"rows":[{"name":"x'; drop table item; --","twice":42}]`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "files", "default", "shop.db")); err != nil {
		t.Error(err)
	}
	i.saveText(t, `
metadata: {id: far, name: far, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: read, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {credential_id: cred_far, query: "select 1"}}
connections:
  - {from_node: start, to_node: read}
`)
	e := i.ends(t, i.startText(t, "far", `{}`), engine.StatusError)
	if !strings.Contains(e.Error, "--http-allow") || strings.Contains(e.Error, "c4nary") {
		t.Errorf("got %s", e.Error)
	}
}
