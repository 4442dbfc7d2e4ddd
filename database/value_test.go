package database_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/database"
	"tandem/fault"
)

func TestQuery_Types(t *testing.T) {
	t.Parallel()
	for driver, cases := range map[string]map[string]string{
		"postgres": {
			"null::int": "null", "true": "true", "42::int2": "42", "9007199254740991::int8": "9007199254740991", "9007199254740992::int8": `"9007199254740992"`,
			"(-9223372036854775808)::int8": `"-9223372036854775808"`, "1.5::float4": "1.5", "0.1::float8": "0.1", "'NaN'::float8": `"NaN"`, "'-Infinity'::float8": `"-Infinity"`,
			"12.50::numeric": "12.50", "123456789012345678.9::numeric": `"123456789012345678.9"`, "'NaN'::numeric": `"NaN"`, "sum(x) from (values (1::int8)) v(x)": "1",
			"'a\"b'::text": `"a\"b"`, "'ab'::char(4)": `"ab  "`, "'\\xdeadbeef'::bytea": `"3q2+7w=="`, "'{\"a\": [1, null]}'::jsonb": `{"a":[1,null]}`, "'[1,  2]'::json": "[1,2]",
			"'2024-02-29'::date": `"2024-02-29"`, "'2024-02-29 12:30:00.5'::timestamp": `"2024-02-29T12:30:00.5"`, "'2024-02-29 12:30:00+02'::timestamptz": `"2024-02-29T10:30:00Z"`,
			"'infinity'::timestamptz": `"infinity"`, "'10:11:12'::time": `"10:11:12"`, "'1 day 2 hours'::interval": `"P1DT2H"`,
			"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid": `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, "B'0101'::bit(4)": `"0101"`, "'::1'::inet": `"::1"`,
			"array[1,null,3]": "[1,null,3]", "array[['a','b,\"c'],['NULL','']]": `[["a","b,\"c"],["NULL",""]]`, "'{}'::text[]": "[]", "'[0:1]={5,6}'::int[]": "[5,6]",
			"array['{\"a\":1}'::jsonb]": `[{"a":1}]`, "array[9007199254740993]": `["9007199254740993"]`, "'happy'::mood": `"happy"`, "array['sad'::mood]": `["sad"]`,
			"7::small": "7", "int4range(1,5)": `"[1,5)"`, "row(1,'a')": `"(1,a)"`, "'12.34'::money": `"$12.34"`, "pg_sleep(0)": "null", "'x'::\"char\"": `"x"`,
		},
		"mysql": {
			"null": "null", "true": "1", "9007199254740992": `"9007199254740992"`, "18446744073709551615": `"18446744073709551615"`, "cast(12.50 as decimal(6,2))": "12.50",
			"cast('123456789012345678.9' as decimal(30,1))": `"123456789012345678.9"`, "0.1e0": "0.1", "'三'": `"三"`, "x'deadbeef'": `"3q2+7w=="`, "b'101'": `"BQ=="`,
			"cast('2024-02-29' as date)": `"2024-02-29"`, "cast('2024-02-29 12:30:00' as datetime)": `"2024-02-29T12:30:00"`, "cast('10:11:12' as time)": `"10:11:12"`,
			"t_bit from types": "5", "t_enum from types": `"happy"`, "t_set from types": `"a,b"`, "t_stamp from types": `"2024-02-29T12:30:00Z"`, "t_year from types": "2024",
			"t_blob from types": `"3q2+7w=="`, "t_json from types": `"{\"a\": 1}"`, "t_big from types": `"18446744073709551615"`, "t_float from types": "1.5", "t_text from types": `"三"`,
		},
		"sqlite": {
			"null": "null", "42": "42", "9007199254740993": `"9007199254740993"`, "1.5": "1.5", "9e999": `"Infinity"`, "'三'": `"三"`, "x'deadbeef'": `"3q2+7w=="`,
			"b from types": "true", "j from types": `{"a":1}`, "d from types": `"2024-02-29"`, "ts from types": `"2024-02-29T12:30:00Z"`,
		},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, driver)
			switch driver {
			case "postgres":
				r.execute("create type mood as enum ('happy', 'sad')", "create domain small as int check (value < 10)")
			case "mysql":
				r.execute("create table types (t_bit bit(3), t_enum enum('happy','sad'), t_set set('a','b'), t_stamp timestamp, t_year year, t_blob blob, t_json json, t_big bigint unsigned, t_float float, t_text text)",
					`insert into types values (b'101', 'happy', 'a,b', '2024-02-29 12:30:00', 2024, x'deadbeef', '{"a": 1}', 18446744073709551615, 1.5, '三')`)
			case "sqlite":
				r.execute("create table types (b boolean, j json, d date, ts timestamp)", `insert into types values (1, '{"a": 1}', '2024-02-29', '2024-02-29 12:30:00')`)
			}
			for expression, want := range cases {
				statement := "select " + expression
				if !strings.Contains(expression, " from ") || strings.Contains(expression, "(x)") {
					statement = strings.Replace(statement, " from (values", " as v from (values", 1)
				}
				rows, err := r.pools.Query(t.Context(), r.target, database.Query{Text: text(statement), MaxRows: 1, Arrays: true})
				if err != nil || string(rows.Rows) != "[["+want+"]]" {
					t.Errorf("%s: %s, want %s (%v)", expression, rows.Rows, want, err)
				}
				if len(rows.Columns) != 1 || rows.Columns[0].Type == "" && driver != "sqlite" {
					t.Errorf("%s: columns %+v", expression, rows.Columns)
				}
			}
		})
	}
}

// TestDo_RoundTrip writes values of every sort and reads them again.
func TestDo_RoundTrip(t *testing.T) {
	t.Parallel()
	table := map[string]string{
		"postgres": "create table v (i bigint, n numeric(30,5), f float8, s text, b boolean, j jsonb, a int[], at timestamptz, raw bytea, u uuid)",
		"mysql":    "create table v (i bigint, n decimal(30,5), f double, s text, b boolean, j json, a json, at timestamp null, raw blob, u uuid)",
		"sqlite":   "create table v (i bigint, n text, f double, s text, b boolean, j json, a json, at timestamp, raw blob, u text)",
	}
	row := `{"i": "9007199254740993", "n": "123456789012345678.12345", "f": 0.1, "s": "O'Brien \\ \"三\" \u0001%_", "b": true, "j": {"k": [1, "x"]}, "a": [1, 2],
		"at": "2024-02-29T12:30:00Z", "raw": {"base64": "3q2+7w=="}, "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}`
	want := map[string]string{
		"postgres": `{"i":"9007199254740993","n":"123456789012345678.12345","f":0.1,"s":"O'Brien \\ \"三\" \u0001%_","b":true,"j":{"k":[1,"x"]},"a":[1,2],"at":"2024-02-29T12:30:00Z","raw":"3q2+7w==","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}`,
		"mysql":    `{"i":"9007199254740993","n":"123456789012345678.12345","f":0.1,"s":"O'Brien \\ \"三\" \u0001%_","b":1,"j":"{\"k\": [1, \"x\"]}","a":"[1, 2]","at":"2024-02-29T12:30:00Z","raw":"3q2+7w==","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}`,
		"sqlite":   `{"i":"9007199254740993","n":"123456789012345678.12345","f":0.1,"s":"O'Brien \\ \"三\" \u0001%_","b":true,"j":{"k":[1,"x"]},"a":[1,2],"at":"2024-02-29T12:30:00Z","raw":"3q2+7w==","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}`,
	}
	rigs(t, func(t *testing.T, r *rig) {
		r.execute(table[r.driver])
		r.do(database.Operation{Kind: database.Insert, Table: "v", Rows: rowsOf(row)})
		r.wantRows(text("select * from v"), "["+want[r.driver]+"]")
		r.wantRows(with("select s from v where i = :i and f = :f and s = :s", `{"i": 9007199254740993, "f": 0.1, "s": "O'Brien \\ \"三\" \u0001%_"}`), `[{"s":"O'Brien \\ \"三\" \u0001%_"}]`)
		r.wantRows(with("select 1 as x from v where i in (:list)", `{"list": [1, 9007199254740993]}`), `[{"x":1}]`)
		r.wantRows(with("select 1 as x from v where i in (:list)", `{"list": []}`), `[]`)
	})
}

// TestInjection puts hostile texts everywhere data can stand: nothing but the data changes.
func TestInjection(t *testing.T) {
	t.Parallel()
	hostile := rapid.OneOf(
		rapid.SampledFrom([]string{
			"'; drop table t; --", `"; drop table t; --`, "`; drop table t; --", `\'; drop table t; --`, "$1", ":a", "?", "{{x}}", "/*", "*/", "--", "' or '1'='1", `\`, "''", "%", "$$", "E'\\''", "\u00bf' or 1=1",
		}),
		rapid.StringOf(rapid.RuneFrom([]rune("abc'\"`\\;-/*$:?{}()[]%_ \n\t=,.三🙂"))),
	)
	rigs(t, func(t *testing.T, r *rig) {
		r.execute("create table t (k int primary key, v varchar(2000))", "create table canary (v int)", "insert into canary values (1)")
		rapid.Check(t, func(rt *rapid.T) {
			value := hostile.Draw(rt, "value")
			raw, err := json.Marshal(value)
			check(t, err)
			r.do(database.Operation{Kind: database.Delete, Table: "t", AllRows: true})
			r.do(database.Operation{Kind: database.Upsert, Table: "t", ConflictKeys: []string{"k"}, Rows: rowsOf(`{"k": 1, "v": ` + string(raw) + `}`)})
			for _, q := range []database.Text{
				{Words: []string{"select v from t where v = ", ""}, Values: []json.RawMessage{raw}},
				{Words: []string{"select v from t where v = '", "'"}, Values: []json.RawMessage{raw}},
				with("select v from t where v = :v", `{"v": `+string(raw)+`}`), with("select v from t where v = ?", `[`+string(raw)+`]`), with("select v from t where v = $1", `[`+string(raw)+`]`),
			} {
				rows, err := r.query(q)
				if err != nil {
					rt.Fatalf("%v: %v", q.Words, err)
				}
				var got []map[string]string
				check(t, json.Unmarshal(rows.Rows, &got))
				if len(got) != 1 || got[0]["v"] != value {
					rt.Fatalf("%v with %q: %s", q.Words, value, rows.Rows)
				}
			}
			if out := r.do(database.Operation{Kind: database.Update, Table: "t", Values: json.RawMessage(`{"v": ` + string(raw) + `}`), Where: json.RawMessage(`{"v": ` + string(raw) + `}`)}); out.Affected != 1 {
				rt.Fatalf("update by %q reached %d rows", value, out.Affected)
			}
			// As a name it is not a name that the database has.
			name := value + "x"
			quoted, err := json.Marshal(name)
			check(t, err)
			for _, o := range []database.Operation{
				{Kind: database.Insert, Table: name, Rows: rowsOf(`{"k": 2}`)}, {Kind: database.Insert, Table: "t", Rows: rowsOf(`{` + string(quoted) + `: 2}`)},
				{Kind: database.Delete, Table: "t", Where: json.RawMessage(`{` + string(quoted) + `: 2}`)}, {Kind: database.Delete, Table: "t", AllRows: true, Returning: []string{name}},
				{Kind: database.Upsert, Table: "t", ConflictKeys: []string{name}, Rows: rowsOf(`{"k": 2}`)}, {Kind: database.Update, Table: "t", Values: json.RawMessage(`{` + string(quoted) + `: 2}`), AllRows: true},
			} {
				_, err := r.pools.Do(t.Context(), r.target, o)
				if code := fault.CodeOf(err); code != fault.NotFound && code != fault.InvalidConfig && code != fault.Unsupported {
					rt.Fatalf("%s with the name %q: %v", o.Kind, name, err)
				}
			}
			r.wantRows(text("select (select count(*) from t) as t, (select count(*) from canary) as c"), `[{"t":1,"c":1}]`)
		})
	})
}

// TestDo_OddNames uses names that must be quoted.
func TestDo_OddNames(t *testing.T) {
	t.Parallel()
	rigs(t, func(t *testing.T, r *rig) {
		table, column := `odd "table`, `a"b c`
		quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
		if r.driver == "mysql" {
			table, column = "odd `table", "a`b c"
			quote = func(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
		}
		r.execute("create table " + quote(table) + " (" + quote(column) + " int, " + quote("select") + " int)")
		key, err := json.Marshal(column)
		check(t, err)
		r.do(database.Operation{Kind: database.Insert, Table: table, Rows: rowsOf(`{` + string(key) + `: 1, "select": 2}`)})
		out := r.do(database.Operation{Kind: database.Update, Table: table, Values: json.RawMessage(`{"select": 3}`), Where: json.RawMessage(`{` + string(key) + `: 1}`)})
		if out.Affected != 1 {
			t.Errorf("affected: %d", out.Affected)
		}
		r.wantRows(text("select "+quote("select")+" as s from "+quote(table)), `[{"s":3}]`)
	})
}
