package database_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tandem/database"
	"tandem/fault"
)

// people makes a table with a number that the database gives.
func (r *rig) people() {
	r.t.Helper()
	r.execute(map[string]string{
		"postgres": "create table people (id serial primary key, name text not null unique, age int, note text)",
		"mysql":    "create table people (id int auto_increment primary key, name varchar(200) not null unique, age int, note text)",
		"sqlite":   "create table people (id integer primary key, name text not null unique, age int, note text)",
	}[r.driver])
}

func TestDo_TableOperations(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.people()
		out := r.do(database.Operation{Kind: database.Insert, Table: "people", Returning: []string{"name", "id"}, Rows: rowsOf(
			`{"name": "Ada", "age": 36}`, `{"name": "O'Brien; drop table people; --", "age": null}`, `{"name": "Lin", "note": "三"}`)})
		if out.Affected != 3 || string(out.LastID) != "3" || string(out.Returned) != `[{"name":"Ada","id":1},{"name":"O'Brien; drop table people; --","id":2},{"name":"Lin","id":3}]` {
			t.Errorf("insert: %d, %s, %s", out.Affected, out.LastID, out.Returned)
		}
		out = r.do(database.Operation{Kind: database.Update, Table: "People", Values: json.RawMessage(`{"AGE": 37}`), Where: json.RawMessage(`{"name": "Ada"}`)})
		if out.Affected != 1 || string(out.Returned) != "[]" || out.LastID != nil {
			t.Errorf("update: %+v", out)
		}
		// A row that is updated to what it was counts, as in every database.
		if out = r.do(database.Operation{Kind: database.Update, Table: "people", Values: json.RawMessage(`{"age": 37}`), Where: json.RawMessage(`{"name": "Ada"}`)}); out.Affected != 1 {
			t.Errorf("the same again: %+v", out)
		}
		upsert := database.Operation{Kind: database.Upsert, Table: "people", ConflictKeys: []string{"name"}, Repeatable: true, Rows: rowsOf(
			`{"name": "Ada", "age": 38}`, `{"name": "New", "age": 1}`)}
		for range 2 {
			if out = r.do(upsert); out.Affected != 2 {
				t.Errorf("upsert: %+v", out)
			}
		}
		r.do(database.Operation{Kind: database.Upsert, Table: "people", ConflictKeys: []string{"name"}, Rows: rowsOf(`{"name": "Lin"}`)})
		out = r.do(database.Operation{Kind: database.Delete, Table: "people", Where: json.RawMessage(`{"age": {"op": "is_null"}, "name": {"op": "like", "value": "O'B%"}}`)})
		if out.Affected != 1 {
			t.Errorf("delete: %+v", out)
		}
		r.wantRows(text("select name, age, note from people order by name"), `[{"name":"Ada","age":38,"note":null},{"name":"Lin","age":null,"note":"三"},{"name":"New","age":1,"note":null}]`)
		if out = r.do(database.Operation{Kind: database.Insert, Table: "people", Rows: nil}); out.Affected != 0 {
			t.Errorf("no rows: %+v", out)
		}
	})
}

func TestDo_Where(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.execute("create table n (v int, s varchar(20))")
		var rows []json.RawMessage
		for i := range 10 {
			rows = append(rows, json.RawMessage(fmt.Sprintf(`{"v": %d, "s": "Item%d"}`, i, i)))
		}
		r.do(database.Operation{Kind: database.Insert, Table: "n", Rows: append(rows, json.RawMessage(`{"v": null, "s": null}`))})
		for where, want := range map[string]int64{
			`{"v": 3}`: 1, `{"v": null}`: 1, `{"v": [1, 2, 99]}`: 2, `{"v": {"op": ">", "value": 7}}`: 2, `{"v": {"op": "gte", "value": 7}}`: 3,
			`{"v": {"op": "!=", "value": null}}`: 10, `{"v": {"op": "between", "value": [2, 4]}}`: 3, `{"v": {"op": "in", "value": []}}`: 0,
			`{"v": {"op": "not_in", "value": [1]}}`: 9, `{"s": {"op": "ilike", "value": "ITEM_"}}`: 10, `{"s": {"op": "not_like", "value": "%1"}}`: 9,
			`{"v": {"op": "<", "value": 5}, "s": {"op": "not_null"}}`: 5, `{"s": "Item1' or '1'='1"}`: 0,
		} {
			if out := r.do(database.Operation{Kind: database.Update, Table: "n", Values: json.RawMessage(`{"s": "Item1"}`), Where: json.RawMessage(where)}); out.Affected != want {
				t.Errorf("%s: %d rows, want %d", where, out.Affected, want)
			}
			r.do(database.Operation{Kind: database.Delete, Table: "n", AllRows: true})
			r.do(database.Operation{Kind: database.Insert, Table: "n", Rows: append(rows, json.RawMessage(`{"v": null, "s": null}`))})
		}
		for where, part := range map[string]string{
			``: "allow_all_rows", `{}`: "allow_all_rows", `{"v": {"op": "not_in", "value": []}}`: "allow_all_rows", `{"w": 1}`: `no column "w"`,
			`{"v": {"value": 1}}`: `without "op"`, `{"v": {"op": "~~", "value": 1}}`: "operator", `{"v": {"op": "<", "value": null}}`: "null",
			`{"v = 1 or 1": 1}`: "no column",
		} {
			_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Delete, Table: "n", Where: json.RawMessage(where)})
			wantFault(t, err, fault.InvalidConfig, false, part)
		}
		r.wantRows(text("select count(*) as n from n"), `[{"n":11}]`)
	})
}

func TestDo_Transaction(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.people()
		out := r.do(database.Operation{Kind: database.Transaction, Statements: []database.Text{
			with("insert into people (name, age) values (:name, :age)", `{"name": "a", "age": 1, "unused": 0}`),
			with("insert into people (name, age) values ($2, $1)", `[2, "b"]`),
			with("update people set age = age + ?", `[10]`),
			{Words: []string{"delete from people where name = ", " or name like '%", "%'"}, Values: rowsOf(`"nobody"`, `"zz"`)},
		}})
		if out.Affected != 4 {
			t.Errorf("affected: %d", out.Affected)
		}
		_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Transaction, Statements: []database.Text{
			text("delete from people"), with("insert into people (name) values (?)", `["c"]`), with("insert into people (name) values (?)", `["c"]`),
		}})
		wantFault(t, err, fault.Conflict, false, "statement 3: ")
		r.wantRows(text("select name, age from people order by name"), `[{"name":"a","age":11},{"name":"b","age":12}]`)
		for _, statement := range []string{"commit", "begin", "rollback", "savepoint x"} {
			_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text(statement)}})
			wantFault(t, err, fault.InvalidInput, false, "begins and ends the transaction itself")
		}
		_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text("delete from people; delete from people")}})
		wantFault(t, err, fault.InvalidInput, false, "several statements")
	})
}

func TestDo_Faults(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.people()
		insert := func(table, row string) error {
			_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Insert, Table: table, Rows: rowsOf(row)})
			return err
		}
		check(t, insert("people", `{"name": "Ada"}`))
		wantFault(t, insert("people", `{"name": "Ada"}`), fault.Conflict, false, "")
		wantFault(t, insert("peple", `{"name": "x"}`), fault.NotFound, false, `did you mean "people"?`)
		wantFault(t, insert("people", `{"nme": "x"}`), fault.InvalidConfig, false, `did you mean "name"?`)
		wantFault(t, insert("people", `{"name": null}`), fault.InvalidInput, false, "")
		wantFault(t, insert("people", `[1]`), fault.InvalidInput, false, "not an object")
		wantFault(t, insert("people", `{"name": "a", "NAME": "b"}`), fault.InvalidInput, false, "twice")
		wantFault(t, insert(`people (name) values ('x'); --`, `{"name": "x"}`), fault.NotFound, false, "no table")
		_, err := r.query(text("select * from peeple"))
		wantFault(t, err, fault.NotFound, false, `did you mean "people"?`)
		_, err = r.query(text("select nothing_such from people"))
		wantFault(t, err, fault.InvalidConfig, false, "nothing_such")
		_, err = r.query(text("select from from"))
		wantFault(t, err, fault.InvalidConfig, false, "")
		_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Upsert, Table: "people", ConflictKeys: []string{"age"}, Rows: rowsOf(`{"age": 1, "name": "q"}`)})
		if code := fault.CodeOf(err); code != fault.InvalidConfig && code != fault.Unsupported {
			t.Errorf("an upsert by no key: %v", err)
		}
		r.wantRows(text("select name from people"), `[{"name":"Ada"}]`)
	})
}

func TestQuery_Refuses(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.people()
		r.execute("insert into people (name) values ('Ada')")
		for _, statement := range []string{
			"delete from people", "select 1; delete from people", "insert into people (name) values ('x')", "update people set age = 1", "drop table people",
			"create table x (a int)", "with d as (delete from people returning 1) select * from d", "select * into y from people", "begin", "commit",
			"set x = 1", "truncate people", "call x()", "explain delete from people", "vacuum", "attach 'x' as y", "pragma journal_mode = wal",
			"/* select */ delete from people", "-- select\ndelete from people", "(delete from people)",
		} {
			_, err := r.query(text(statement))
			if code := fault.CodeOf(err); code != fault.InvalidInput && code != fault.InvalidConfig {
				t.Errorf("%s: %v", statement, err)
			}
		}
		r.wantRows(text("select count(*) as n from people;  -- all"), `[{"n":1}]`)
	})
}

// TestQuery_ServerRefusesWrites gets around the words: the database must refuse by itself.
func TestQuery_ServerRefusesWrites(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "postgres")
		r.people()
		r.execute("create function sneaky() returns int language sql as $$ insert into people (name) values ('x') returning id $$")
		_, err := r.query(text("select sneaky()"))
		wantFault(t, err, fault.InvalidInput, false, "DATABASE_OPERATION")
		_, err = r.query(text("select set_config('transaction_read_only', 'off', false), sneaky()"))
		if err == nil {
			t.Error("a query has made its transaction one that writes")
		}
		_, err = r.query(text("select * from people for update"))
		wantFault(t, err, fault.InvalidInput, false, "")
		r.wantRows(text("select count(*) as n from people"), `[{"n":0}]`)
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "mysql")
		r.people()
		name := r.dsn()[strings.LastIndexByte(r.dsn(), '/')+1:]
		_, err := r.admin.Exec("create function " + name + ".sneaky() returns int modifies sql data begin insert into people (name) values ('x'); return 1; end")
		check(t, err)
		_, err = r.query(text("select sneaky()"))
		wantFault(t, err, fault.InvalidInput, false, "DATABASE_OPERATION")
		for _, statement := range []string{"select 1 /*! into outfile '/tmp/x' */", "select 1 into outfile '/tmp/x'", "select 1 into @x"} {
			if _, err := r.query(text(statement)); err == nil {
				t.Errorf("%s was taken", statement)
			}
		}
		r.wantRows(text("select count(*) as n from people"), `[{"n":0}]`)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "sqlite")
		r.people()
		for _, statement := range []string{
			"select load_extension('x')", "select * from pragma_journal_mode", "attach database 'other.db' as o", "vacuum into 'copy.db'", "vacuum",
			"pragma writable_schema = on", "pragma temp_store_directory = '/tmp'", "detach main", "pragma database_list", "pragma main.database_list", "PRAGMA Database_List", "select * from pragma_database_list",
			"select file from pragma_database_list()", "with d as (select * from pragma_database_list) select file from d", "select (select file from pragma_database_list limit 1)",
			"pragma temp_store_directory", "pragma data_store_directory", "pragma module_list", "pragma vfs_list", "select fts3_tokenizer('simple')", "select readfile('/etc/hostname')", "select * from fsdir('.')",
		} {
			if _, err := r.query(text(statement)); err == nil {
				t.Errorf("query: %s was taken", statement)
			}
			if _, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text(statement)}}); err == nil {
				t.Errorf("operation: %s was taken", statement)
			}
		}
		// Whatever SQLite has by itself, nothing that is taken tells where the file is.
		dir := os.TempDir() // tests keep their files below it
		names := map[string]bool{"database_list": true, "table_info": true, "compile_options": true, "function_list": true, "collation_list": true, "table_list": true, "data_store_directory": true, "temp_store_directory": true}
		for name := range names {
			for _, statement := range []string{"pragma " + name, "select * from pragma_" + name} {
				rows, err := r.query(text(statement))
				if told := fmt.Sprintf("%s %v", rows.Rows, err); strings.Contains(told, dir) {
					t.Errorf("%s tells the path: %.300s", statement, told)
				}
			}
		}
		r.wantRows(text("pragma table_info(people)"), `[{"cid":0,"name":"id","type":"INTEGER","notnull":0,"dflt_value":null,"pk":1},`+
			`{"cid":1,"name":"name","type":"TEXT","notnull":1,"dflt_value":null,"pk":0},{"cid":2,"name":"age","type":"INT","notnull":0,"dflt_value":null,"pk":0},`+
			`{"cid":3,"name":"note","type":"TEXT","notnull":0,"dflt_value":null,"pk":0}]`)
	})
}

func TestQuery_MaxRows(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		many := map[string]string{
			"postgres": "select g as n from generate_series(1, 3000000) g",
			"mysql":    "select seq as n from seq_1_to_3000000",
			"sqlite":   "with recursive c(n) as (select 1 union all select n + 1 from c where n < 3000000) select n from c",
		}[r.driver]
		for range 3 { // the connection must be of use afterwards, or another be made
			rows, err := r.pools.Query(t.Context(), r.target, database.Query{Text: text(many), MaxRows: 3})
			if r.driver == "sqlite" && fault.CodeOf(err) == fault.NotFound {
				r.execute("create table t (a int)")
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(rows.Rows) != `[{"n":1},{"n":2},{"n":3}]` || !rows.Truncated || rows.Count != 3 {
				t.Errorf("%s, truncated %v", rows.Rows, rows.Truncated)
			}
		}
		three := "select * from (" + many + ") x where n <= 3"
		if r.driver == "mysql" {
			three = "select seq as n from seq_1_to_3"
		}
		rows, err := r.pools.Query(t.Context(), r.target, database.Query{Text: text(strings.Replace(three, "3000000", "3", 1)), MaxRows: 3, Arrays: true})
		if err != nil || string(rows.Rows) != `[[1],[2],[3]]` || rows.Truncated {
			t.Errorf("%s, truncated %v, %v", rows.Rows, rows.Truncated, err)
		}
		wide := strings.Replace(strings.Replace(many, "g as n", "repeat('x', 1000) as n", 1), "seq as n", "repeat('x', 1000) as n", 1)
		if r.driver == "sqlite" {
			wide = strings.Replace(wide, "select n from c", "select hex(zeroblob(1000)) as n from c", 1)
		}
		_, err = r.pools.Query(t.Context(), r.target, database.Query{Text: text(wide), MaxRows: 100_000})
		wantFault(t, err, fault.TooLarge, false, "rows")
	})
}

func TestQuery_Columns(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		r.people()
		rows, err := r.query(text("select 1 as a, 2 as a, 3 as a_2, 4 as b"))
		if err != nil {
			t.Fatal(err)
		}
		if string(rows.Rows) != `[{"a":1,"a_3":2,"a_2":3,"b":4}]` || len(rows.Columns) != 4 || rows.SQL != "select 1 as a, 2 as a, 3 as a_2, 4 as b" {
			t.Errorf("%s %v %q", rows.Rows, rows.Columns, rows.SQL)
		}
	})
}

func TestQuery_Cancel(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, r *rig) {
		sleep, count := "select pg_sleep(600) as x", "select count(*) as n from pg_stat_activity where query like '%pg_sleep(600)%' and state = 'active' and pid <> pg_backend_pid() and query not like '%count(*)%'"
		if r.driver == "mysql" {
			sleep, count = "select sleep(600) as x", "select count(*) as n from information_schema.processlist where info like 'select sleep(600)%'"
		}
		await := func(want string) {
			t.Helper()
			for {
				rows, err := r.query(text(count))
				if err != nil {
					t.Fatal(err)
				}
				if string(rows.Rows) == want {
					return
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := r.pools.Query(ctx, r.target, database.Query{Text: text(sleep), MaxRows: 1})
			done <- err
		}()
		await(`[{"n":1}]`)
		cancel()
		wantFault(t, <-done, fault.Canceled, false, "stopped")
		await(`[{"n":0}]`)
	})
}

func TestQuery_CancelSQLite(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	r.execute("create table t (a int)")
	ctx, cancel := context.WithTimeout(t.Context(), 50e6)
	defer cancel()
	_, err := r.pools.Query(ctx, r.target, database.Query{
		Text: text("with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c"), MaxRows: 1,
	})
	wantFault(t, err, fault.Timeout, true, "in time")
}

// TestQuery_CancelSQLiteAfterFirstRow ends a statement that has given one row and will never give another.
func TestQuery_CancelSQLiteAfterFirstRow(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	r.execute("create table t (a int)")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := r.pools.Query(ctx, r.target, database.Query{
		Text: text("with recursive c(n) as (select 1 union all select n + 1 from c limit 200000000) select n from c where n = 1 or n = 200000001"), MaxRows: 10,
	})
	wantFault(t, err, fault.Timeout, true, "in time")
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the statement went on for %v", took)
	}
	r.wantRows(text("select count(*) as n from t"), `[{"n":0}]`)
}

// TestQuery_SideEffects calls functions that do something in spite of a transaction that only reads.
func TestQuery_SideEffects(t *testing.T) {
	t.Parallel()
	for driver, statements := range map[string][]string{
		"postgres": {
			"select lo_export(1, '/tmp/x')", `select "lo_export"(1, '/tmp/x')`, "select pg_catalog.pg_terminate_backend(1)", "select dblink_exec('host=x', 'drop table t')",
			"select pg_reload_conf()", "select PG_STAT_RESET()", "select pg_promote()",
		},
		"mysql": {"select nextval(seq)", "select setval(seq, 100)", "select next value for seq", "select load_file('/etc/passwd'), 1 into outfile '/tmp/x'"},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, driver)
			if driver == "mysql" {
				r.execute("create sequence seq start with 1")
			}
			for _, s := range statements {
				_, err := r.query(text(s))
				wantFault(t, err, fault.InvalidInput, false, "a query reads")
			}
			r.execute("create table lo_export (pg_promote int)", "insert into lo_export values (1)")
			r.wantRows(text("select pg_promote from lo_export"), `[{"pg_promote":1}]`)
			if driver == "mysql" {
				r.wantRows(text("select next_not_cached_value as n from seq"), `[{"n":1}]`)
			}
		})
	}
}

// TestPools_LeavesNothing looks for what one node leaves in a connection and the next would find.
func TestPools_LeavesNothing(t *testing.T) {
	t.Parallel()
	t.Run("TemporaryTable", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "postgres")
		r.execute("create table customers (a int)", "insert into customers values (1)", "select 2 as a into temp customers")
		r.wantRows(text("select a from customers"), `[{"a":1}]`)
	})
	t.Run("Lock", func(t *testing.T) {
		t.Parallel()
		servers(t, func(t *testing.T, r *rig) {
			lock, held := `select "pg_advisory_lock"(770077) is null as x`, "select count(*) > 0 as n from pg_locks where locktype = 'advisory' and objid = 770077"
			if r.driver == "mysql" {
				lock, held = "select `get_lock`('tandem 770077', 1) as x", "select is_used_lock('tandem 770077') is not null as n"
			}
			if _, err := r.query(text(lock)); err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); ; {
				rows, err := r.query(text(held))
				check(t, err)
				if got := string(rows.Rows); got == `[{"n":false}]` || got == `[{"n":0}]` {
					return
				}
				if time.Since(begun) > time.Minute {
					t.Fatal("the lock is still held")
				}
			}
		})
	})
}

// TestQuery_ModesOfMySQL writes texts that end elsewhere for a server that was told to read them in another way.
func TestQuery_ModesOfMySQL(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mysql")
	for mode, statement := range map[string]string{
		"NO_BACKSLASH_ESCAPES": `select '\' into outfile '/tmp/never' -- '`,
		"ANSI_QUOTES":          `select 1 as "\" into outfile '/tmp/never' -- "`,
	} {
		target := r.with(r.dsn() + "?sql_mode=%27" + mode + "%27")
		_, err := r.pools.Query(t.Context(), target, database.Query{Text: text(statement), MaxRows: 1})
		wantFault(t, err, fault.InvalidConfig, false, "sql_mode")
		rows, err := r.pools.Query(t.Context(), target, database.Query{Text: with("select ? as a, 'it''s' as b", `["\\"]`), MaxRows: 1})
		if err != nil || string(rows.Rows) != `[{"a":"\\","b":"it's"}]` {
			t.Errorf("%s: %s %v", mode, rows.Rows, err)
		}
	}
	r.wantRows(text(`select 'it\'s' as a`), `[{"a":"it's"}]`)
}
