package database

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
)

// bindText takes a text apart whose placeholders are written {{json}}, and puts marks into it.
func bindText(d dialect, text, parameters string) (bound, error) {
	t := Text{Parameters: json.RawMessage(parameters)}
	for {
		before, rest, ok := strings.Cut(text, "{{")
		t.Words = append(t.Words, before)
		if !ok {
			break
		}
		value, after, _ := strings.Cut(rest, "}}")
		t.Values, text = append(t.Values, json.RawMessage(value)), after
	}
	s, err := parseStatement(d, t)
	if err != nil {
		return bound{}, err
	}
	return s.bind()
}

func TestStatement_Bind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect            dialect
		text, params, want string
		values             string
	}{
		{postgresDialect, "select * from t where a = :a and b = :b or a = :a", `{"a": 1, "b": "x"}`, "select * from t where a = $1 and b = $2 or a = $1", `1 "x"`},
		{mysqlDialect, "select * from t where a = :a and b = :b or a = :a", `{"a": 1, "b": "x"}`, "select * from t where a = ? and b = ? or a = ?", `1 "x" 1`},
		{mysqlDialect, "select $2, $1, $2", `[1, 2]`, "select ?, ?, ?", `2 1 2`},
		{sqliteDialect, "select ?, ?2", `[1, 2]`, "", "mixes"},
		{sqliteDialect, "select ?2, ?1", `[1, 2]`, "select ?, ?", `2 1`},
		{postgresDialect, "select ?,? where a=? and (?) is null", `[1, 2, 3, 4]`, "select $1,$2 where a=$3 and ($4) is null", `1 2 3 4`},
		{postgresDialect, "select a ? 'k', a ?| array['x'], a ?& b, a @? '$.x', j->'a' ? :k, x ?? 'y' from t", `{"k": "z"}`, "select a ? 'k', a ?| array['x'], a ?& b, a @? '$.x', j->'a' ? $1, x ? 'y' from t", `"z"`},
		{postgresDialect, "select * from t where name like ? and n between ? and ? limit ? offset ?", `[1, 2, 3, 4, 5]`, "select * from t where name like $1 and n between $2 and $3 limit $4 offset $5", "1 2 3 4 5"},
		{postgresDialect, "select ?||'x', a||?", `["a", "b"]`, "select $1||'x', a||$2", `"a" "b"`},
		{postgresDialect, "select x::int, ':a', \":b\", $$ :c ? $$, $t$ $1 $$ $t$, E'\\' :d', a[1:2], a[lo:hi], f(x => 1), :e::text", `{"e": 1}`,
			"select x::int, ':a', \":b\", $$ :c ? $$, $t$ $1 $$ $t$, E'\\' :d', a[1:2], a[lo:hi], f(x => 1), $1::text", "1"},
		{mysqlDialect, `select ':a', "?", ` + "`:b`" + `, 'it''s \' ?', @x := 1, :c # ? :d
			-- ? :e`, `{"c": 1}`, "select ':a', \"?\", `:b`, 'it''s \\' ?', @x := 1, ?", "1"},
		{mysqlDialect, "select 5--1, :a", `{"a": 1}`, "select 5--1, ?", "1"},
		{sqliteDialect, "select [a?b], `c?`, \"d?\", 'e?' -- ?\n, ?", `[1]`, "select [a?b], `c?`, \"d?\", 'e?'  \n, ?", "1"},
		{postgresDialect, "select /* ? /* ? */ :x */ ?", `[1]`, "select   $1", "1"},
		{mysqlDialect, "select /* ? /* */ ?", `[1]`, "select   ?", "1"},
		{postgresDialect, "select * from t where a = {{1}} and b like '%{{\"O'x\"}}%' and c = '{{{\"a\":1}}} '", "", "select * from t where a = $1 and b like $2 and c = $3", `1 "%O'x%" "{\"a\":1} "`},
		{postgresDialect, "select {{1}} -- {{2}}\n, {{3}}", "", "select $1  \n, $2", "1 3"},
		{mysqlDialect, "select * from t where id in (:ids) and n in ({{[4]}})", `{"ids": [1, 2, 3]}`, "select * from t where id in (?, ?, ?) and n in (?)", "1 2 3 4"},
		{postgresDialect, "select :ids = any(:ids)", `{"ids": [1]}`, "select $1 = any($1)", "[1]"},
		{sqliteDialect, "select * from t where id in (:ids);", `{"ids": []}`, "select * from t where id in (NULL)", ""},
		{postgresDialect, "select 1; ;  -- end", "", "select 1", ""},
		{postgresDialect, "select tbl$1 from x", "", "select tbl$1 from x", ""},
		{postgresDialect, "select '{\"a\": \"b\"}'::jsonb, 10:x", "", "", "do not have"},
	} {
		got, err := bindText(c.dialect, c.text, c.params)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), c.values) {
				t.Errorf("%s %s: %q, %v; want an error with %q", c.dialect, c.text, got.sql, err, c.values)
			}
			continue
		}
		var values []string
		for _, v := range got.values {
			values = append(values, string(v))
		}
		if err != nil || got.sql != c.want || strings.Join(values, " ") != c.values {
			t.Errorf("%s %s:\n got %s | %s (%v)\nwant %s | %s", c.dialect, c.text, got.sql, strings.Join(values, " "), err, c.want, c.values)
		}
	}
}

func TestStatement_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect            dialect
		text, params, part string
		code               fault.Code
	}{
		{postgresDialect, "select 1; select 2", "", "several statements", fault.InvalidInput},
		{mysqlDialect, "select ';'; -- x\n ;drop table t", "", "several statements", fault.InvalidInput},
		{postgresDialect, "{{\"drop table t\"}}", "", "never SQL", fault.InvalidConfig},
		{postgresDialect, "select * from {{\"t\"}}x", "", "part of a name", fault.InvalidConfig},
		{postgresDialect, "select * from t_{{1}}", "", "part of a name", fault.InvalidConfig},
		{postgresDialect, "select \"{{1}}\"", "", "name in quotes", fault.InvalidConfig},
		{mysqlDialect, "select `{{1}}`", "", "name in quotes", fault.InvalidConfig},
		{postgresDialect, "select E'{{1}}'", "", "prefix", fault.InvalidConfig},
		{mysqlDialect, `select 'a\'{{1}}'`, "", "escapes", fault.InvalidConfig},
		{postgresDialect, "select $$ {{1}} $$", "", "parameter", fault.InvalidConfig},
		{postgresDialect, "select 'x", "", "does not end", fault.InvalidConfig},
		{postgresDialect, "select /* x", "", "does not end", fault.InvalidConfig},
		{mysqlDialect, "select 1 /*!50000 union select 2 */", "", "would execute", fault.InvalidConfig},
		{mysqlDialect, "select 1 /*M! union select 2 */", "", "would execute", fault.InvalidConfig},
		{postgresDialect, "select :nme", `{"name": 1}`, "did you mean :name", fault.InvalidConfig},
		{postgresDialect, "select :a", `[1]`, "are a list", fault.InvalidConfig},
		{mysqlDialect, "select ?", `{"a": 1}`, "have names", fault.InvalidConfig},
		{mysqlDialect, "select ?, ?", `[1]`, "asks for number 2", fault.InvalidConfig},
		{mysqlDialect, "select ?", `[1, 2]`, "are 2", fault.InvalidConfig},
		{mysqlDialect, "select $1", `[1, 2]`, "are 2", fault.InvalidConfig},
		{mysqlDialect, "select $0", `[1]`, "from 1", fault.InvalidConfig},
		{mysqlDialect, "select $99999", `[1]`, "at most", fault.InvalidConfig},
		{mysqlDialect, "select 1 where 1 not in (?)", `[[]]`, "NOT IN is empty", fault.InvalidInput},
		{postgresDialect, "  -- nothing\n", "", "is empty", fault.InvalidConfig},
		{postgresDialect, "select 1\x00", "", "NUL", fault.InvalidConfig},
		{postgresDialect, "'x'", "", "not SQL", fault.InvalidConfig},
		{postgresDialect, "select ?", `"x"`, "a list or an object", fault.InvalidConfig},
	} {
		_, err := bindText(c.dialect, c.text, c.params)
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s %q: %v, want %s with %q", c.dialect, c.text, err, c.code, c.part)
		}
	}
}

// TestStatement_Class says which statements leave the transaction, or the connection, in other hands.
func TestStatement_Class(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect        dialect
		text           string
		refuse, traces bool
	}{
		{mysqlDialect, "set @a = 1", false, true},
		{mysqlDialect, "set @a = concat('x', 'y'), @b = 2", false, true},
		{mysqlDialect, "set @a = 1, autocommit = 1", true, true},
		{mysqlDialect, "set @a = (select max(v), 1 from t), @@autocommit = 1", true, true},
		{mysqlDialect, "set @@sql_mode = ''", true, true},
		{mysqlDialect, "set autocommit = 1", true, true},
		{mysqlDialect, "/* x */ commit", true, true},
		{mysqlDialect, "select `get_lock`('a', 1)", false, true},
		{mysqlDialect, "select v from t", false, false},
		{postgresDialect, `select "set_config"('role', 'x', false)`, false, true},
		{postgresDialect, "with a as (select 1) select * into temp b from a", false, true},
		{postgresDialect, "insert into t values (1)", false, false},
		{postgresDialect, "select a, \"into\" from t", false, false},
		{sqliteDialect, "attach database 'x' as y", true, true},
	} {
		s, err := parseStatement(c.dialect, Text{Words: []string{c.text}})
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		if err := s.checkWrite(); (err != nil) != c.refuse {
			t.Errorf("%q: %v", c.text, err)
		}
		if got := s.leavesTraces(); got != c.traces {
			t.Errorf("%q leaves traces: %v", c.text, got)
		}
	}
}

// FuzzStatement: whatever is written, there are as many values as marks, and no value is part of the text.
func FuzzStatement(f *testing.F) {
	f.Add("select * from t where a = {{1}} and b = '{{2}}' -- {{3}}", uint8(0))
	f.Add("select $$ x $$, E'\\'', a ? b, :c::int /* /* */ */", uint8(1))
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		d := []dialect{postgresDialect, mysqlDialect, sqliteDialect}[which%3]
		const secret = "s3cr3tv4lu3"
		words := strings.Split(strings.ReplaceAll(text, secret, ""), "{{")
		in := Text{Words: words}
		for range words[1:] {
			in.Values = append(in.Values, json.RawMessage(`"`+secret+`"`))
		}
		s, err := parseStatement(d, in)
		if err != nil {
			return
		}
		b, err := s.bind()
		if err != nil {
			return
		}
		if strings.Contains(b.sql, secret) || strings.IndexByte(b.sql, marker) >= 0 {
			t.Fatalf("a value is part of the statement: %q", b.sql)
		}
		again, err := parseStatement(d, Text{Words: []string{b.sql}})
		if err != nil {
			t.Fatalf("%q became %q, which cannot be read: %v", text, b.sql, err)
		}
		marks := map[string]bool{}
		n := 0
		for _, token := range again.tokens {
			if token.kind == tokenPosition || token.kind == tokenNext {
				marks[token.text] = true
				n++
			}
		}
		if d == postgresDialect {
			n = len(marks)
		}
		if n != len(b.values) {
			t.Fatalf("%q became %q: %d marks and %d values", text, b.sql, n, len(b.values))
		}
	})
}
