package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/expr"
	"tandem/fault"
)

// start is the start of the activation in every test.
var start = time.Date(2024, 5, 6, 7, 8, 9, 250e6, time.FixedZone("", 7200))

// decode reads JSON the way payloads are read.
func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return v
}

const sample = `{
	"x": 4, "zero": 0, "half": 0.5, "name": "Ada", "empty": "", "nothing": null, "yes": true, "no": false,
	"big": 9007199254740993, "bigger": 9007199254740992, "id": 18446744073709551615, "id2": 18446744073709551616, "vast": 1e400,
	"tags": ["b", "c"], "list": [3, 1, 2], "floats": [1.5, 2.5], "mixed": [1, "a"], "holes": [2, null, 1],
	"items": [{"a": 1, "n": "one"}, {"a": 2, "n": "two"}, {"a": 3, "n": "three"}],
	"obj": {"k": 1, "b": {"c": [10, {"d": "deep"}]}, "odd key": 7, "in": 8, "not": 9, "length": 99},
	"plain": {"p": 1, "q": 2}, "same": {"q": 2.0, "p": 1e0}, "uni": "Zoë 日本",
	"when": "2024-05-06T09:00:00+02:00", "early": "2024-05-05"}`

func scope(t testing.TB) expr.Vars {
	t.Helper()
	data := decode(t, sample).(map[string]any)
	return expr.Vars{At: start, Values: map[string]any{
		"data": data, "input": data, "item": data["items"].([]any)[0], "index": 0, "count": json.Number("12"),
		"variables": map[string]any{"limit": int64(3)}, "nan": math.NaN(), "first": "f"}}
}

func eval(t testing.TB, source string) (any, error) {
	t.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		return nil, err
	}
	return p.Eval(scope(t), expr.Limits{})
}

// wantJSON checks a result in its JSON form, which is what leaves the package.
func wantJSON(t *testing.T, source, want string) {
	t.Helper()
	v, err := eval(t, source)
	if err != nil {
		t.Errorf("%s: %v", source, err)
		return
	}
	got, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%s: result is not JSON: %v", source, err)
		return
	}
	if string(got) != want {
		t.Errorf("%s = %s, want %s", source, got, want)
	}
}

// wantError checks code and position, and that the message has the given part.
func wantError(t *testing.T, source, part string) *fault.Error {
	t.Helper()
	v, err := eval(t, source)
	if err == nil {
		t.Errorf("%s = %v, want an error with %q", clip(source), v, part)
		return nil
	}
	fe, ok := errors.AsType[*fault.Error](err)
	if !ok || fe.Code != fault.ExpressionError {
		t.Errorf("%s: error %v is not an expression_error", clip(source), err)
		return nil
	}
	if !strings.Contains(fe.Message, part) {
		t.Errorf("%s: error %q lacks %q", clip(source), fe.Message, part)
	}
	if pos, ok := fe.Details["position"].(map[string]any); !ok || pos["line"] == nil || pos["column"] == nil {
		t.Errorf("%s: error without position: %v", clip(source), fe.Details)
	}
	return fe
}

func clip(s string) string { return s[:min(len(s), 60)] }

type row struct{ source, want string }

func TestEval(t *testing.T) {
	t.Parallel()
	groups := map[string][]row{
		"Literals": {
			{`1`, `1`}, {`-1.5`, `-1.5`}, {`1e3`, `1000`}, {`"a\n\u00e9\ud83d\ude00\/"`, `"a\né😀/"`}, {`'it\'s "x"'`, `"it's \"x\""`},
			{`true`, `true`}, {`null`, `null`}, {`undefined`, `null`}, {`[1, 'a', [true]]`, `[1,"a",[true]]`}, {`[]`, `[]`}, {`[1,]`, `[1]`},
			{`{"a": 1, b: {c: []}}`, `{"a":1,"b":{"c":[]}}`}, {`{}`, `{}`}, {`-9223372036854775808`, `-9223372036854775808`},
			{`18446744073709551616`, `18446744073709551616`}, {`"\ud800"`, `"�"`}, {"\n 1 \t", `1`},
		},
		"Access": {
			{`data.x`, `4`}, {`data.obj.b.c[1].d`, `"deep"`}, {`data.obj["odd key"]`, `7`}, {`data['obj']['k']`, `1`}, {`data.obj.b.c.0`, `10`},
			{`data.obj.b.c.1.d`, `"deep"`}, {`data?.obj?.b?.["c"]?.[0]`, `10`}, {`data.obj.in + data.obj.not`, `17`}, {`data.items[index].n`, `"one"`},
			{`data.missing`, `null`}, {`data.missing.deeper[3].x`, `null`}, {`data.list[99]`, `null`}, {`data.list[-1]`, `null`},
			{`data.list[1.0]`, `1`}, {`data.list[0.5]`, `null`}, {`data.list.foo`, `null`}, {`data.x.foo`, `null`}, {`data[null]`, `null`},
			{`data.uni[4]`, `"日"`}, {`data.uni[99]`, `null`}, {`{"1": 'one'}[1]`, `"one"`}, {`count`, `12`}, {`first`, `"f"`}, {`count + count([1, 2])`, `14`},
		},
		"Truth": {
			{`!false`, `true`}, {`!null`, `true`}, {`!0`, `true`}, {`!0.0`, `true`}, {`!''`, `true`}, {`!nan`, `true`}, {`!undefined`, `true`},
			{`!![]`, `true`}, {`!!{}`, `true`}, {`!!'0'`, `true`}, {`!!'false'`, `true`}, {`!!-1`, `true`}, {`!!data.id`, `true`}, {`data.zero ? 1 : 2`, `2`},
		},
		"Logic": {
			{`data.empty || 'default'`, `"default"`}, {`data.name || 'default'`, `"Ada"`}, {`0 || null`, `null`}, {`1 && 'b'`, `"b"`}, {`0 && missing`, `0`},
			{`1 || missing`, `1`}, {`data.nothing ?? 5`, `5`}, {`data.zero ?? 5`, `0`}, {`false or 2`, `2`}, {`1 and 2`, `2`}, {`not 1`, `false`},
			{`not data.x == 5`, `true`}, {`!data.x == 5`, `false`}, {`not 'a' in data.tags and true`, `true`}, {`1 || 0 && 0`, `1`}, {`(null ?? 0) || 3`, `3`},
			{`1 ? 2 ? 'a' : 'b' : 'c'`, `"a"`}, {`0 ? 1 : 0 ? 2 : 3`, `3`}, {`true ? {a: 1} : 2`, `{"a":1}`},
		},
		"Equality": {
			{`1 == 1.0`, `true`}, {`1 == '1'`, `false`}, {`1 === 1`, `true`}, {`1 !== '1'`, `true`}, {`0 == false`, `false`}, {`null == undefined`, `true`},
			{`null == 0`, `false`}, {`'' == null`, `false`}, {`[1, [2]] == [1.0, [2]]`, `true`}, {`[1] == [1, 2]`, `false`}, {`[1, 2] == [2, 1]`, `false`},
			{`data.plain == data.same`, `true`}, {`{a: {b: [1]}} == {a: {b: [1]}}`, `true`}, {`{a: 1} == {b: 1}`, `false`}, {`{a: null} == {b: null}`, `false`}, {`[] == {}`, `false`},
			{`nan == nan`, `false`}, {`data.big == data.bigger`, `false`}, {`data.big == 9007199254740993`, `true`}, {`data.big == 9007199254740992.0`, `false`},
			{`data.id == data.id2`, `false`}, {`data.id == 18446744073709551615`, `true`}, {`data.id == 1`, `false`}, {`data.id2 == 18446744073709551616.0`, `true`},
			{`data.id == 18446744073709551616.0`, `false`}, {`data.vast == data.vast`, `true`}, {`data.missing == null`, `true`}, {`true != false`, `true`},
		},
		"Order": {
			{`1 < 2`, `true`}, {`2 <= 2.0`, `true`}, {`'a' < 'b'`, `true`}, {`'Z' < 'a'`, `true`}, {`false < true`, `true`}, {`null < 1`, `false`}, {`null >= null`, `false`},
			{`data.missing > 'a'`, `false`}, {`null < []`, `false`}, {`nan < 1`, `false`}, {`1 >= nan`, `false`}, {`data.bigger < data.big`, `true`}, {`data.id < data.id2`, `true`},
			{`data.id > data.big`, `true`}, {`-data.id < data.x`, `true`}, {`-data.id2 < -data.id`, `true`}, {`data.id < 1e300`, `true`}, {`-1 > -data.id`, `true`}, {`9007199254740993 > 9007199254740992.0`, `true`},
			{`1 < 2 == 3 < 4`, `true`}, {`0.5 > 0`, `true`}, {`-0.5 < 0`, `true`}, {`data.x > 1e300`, `false`}, {`data.x > -1e300`, `true`},
		},
		"Arithmetic": {
			{`1 + 2 * 3`, `7`}, {`(1 + 2) * 3`, `9`}, {`7 / 2`, `3.5`}, {`6 / 2`, `3`}, {`7 % 3`, `1`}, {`-7 % 3`, `-1`}, {`7.5 % 2`, `1.5`}, {`-data.x`, `-4`}, {`--data.x`, `4`},
			{`10 - 4 - 3`, `3`}, {`'a' + 'b'`, `"ab"`}, {`'n=' + 1.50`, `"n=1.5"`}, {`1 + 'a' + true`, `"1atrue"`}, {`data.big + 1`, `9007199254740994`},
			{`9223372036854775807 - 1`, `9223372036854775806`}, {`4611686018427387904 * -2`, `-9223372036854775808`}, {`data.half + 1`, `1.5`}, {`'' + data.id`, `"18446744073709551615"`},
			{`1e21 + ''`, `"1e+21"`}, {`1e-7 + ''`, `"1e-7"`}, {`0.1 + 0.2 + ''`, `"0.30000000000000004"`}, {`-(-9223372036854775807)`, `9223372036854775807`}, {`data.id - 1 > 0`, `true`},
		},
		"In": {
			{`'b' in data.tags`, `true`}, {`'a' not in data.tags`, `true`}, {`1.0 in data.list`, `true`}, {`'k' in data.obj`, `true`}, {`'z' in data.obj`, `false`}, {`1 in data.obj`, `false`},
			{`'d' in 'Ada'`, `true`}, {`1 in null`, `false`}, {`{a: 1} in [{a: 1}]`, `true`}, {`!('a' in data.tags)`, `true`}, {`null in data.holes`, `true`},
		},
		"OlderSpellings": {
			{`data.x > 3 && !data.tags.includes('a')`, `true`}, {`data.x > 3 && !data.tags.includes('b')`, `false`}, {`data.x === 4 && data.name !== 'Bob'`, `true`},
			{`data.tags.length`, `2`}, {`data.uni.length`, `6`}, {`data.plain.length`, `2`}, {`data.obj.length`, `99`}, {`data.missing.length`, `null`}, {`data.missing.length > 0`, `false`},
			{`data.name.startsWith('A')`, `true`}, {`data.name.endsWith('da')`, `true`}, {`data.name.toLowerCase()`, `"ada"`}, {`data.name.toUpperCase()`, `"ADA"`}, {`' a '.trim()`, `"a"`},
			{`data.name.trim().toLowerCase().includes('d')`, `true`}, {`data.missing?.includes('a')`, `false`}, {`data.missing.startsWith('a')`, `false`}, {`data.missing.toLowerCase()`, `null`},
			{`data.x == undefined`, `false`}, {`data.missing === undefined`, `true`}, {`data.obj.includes('k')`, `true`},
		},
		"TextFunctions": {
			{`len('日本')`, `2`}, {`len(data.list)`, `3`}, {`len(data.plain)`, `2`}, {`len(null)`, `0`}, {`lower('ÄB')`, `"äb"`}, {`upper('äb')`, `"ÄB"`}, {`trim(' a ')`, `"a"`}, {`lower(null)`, `null`},
			{`split('a,b,,c', ',')`, `["a","b","","c"]`}, {`split('日本', '')`, `["日","本"]`}, {`split('', ',')`, `[""]`}, {`split(null, ',')`, `[]`}, {`join([1, 'a', true, null, [2]], '-')`, `"1-a-true-null-[2]"`}, {`join(null, ',')`, `""`},
			{`contains('abc', 'b')`, `true`}, {`contains([1, 2], 2)`, `true`}, {`starts_with('abc', 'ab')`, `true`}, {`ends_with('abc', 'bc')`, `true`}, {`ends_with(null, 'x')`, `false`},
			{`matches('order-123', '^order-\\d+$')`, `true`}, {`matches('x', '^y')`, `false`}, {`matches(null, 'a')`, `false`}, {`matches('abc', 'B' == 'B' ? 'b' : 'c')`, `true`}, {`matches('A', '(?i)a')`, `true`},
			{`replace('a.b.c', '.', '/')`, `"a/b/c"`}, {`replace('aaa', 'a', '')`, `""`}, {`replace(null, 'a', 'b')`, `null`}, {`slice('日本語', 1)`, `"本語"`}, {`slice('abc', -2, -1)`, `"b"`},
		},
		"Conversions": {
			{`int('42')`, `42`}, {`int(' -7.9 ')`, `-7`}, {`int(3.99)`, `3`}, {`int(true)`, `1`}, {`int(null)`, `null`}, {`num('1.50')`, `1.5`}, {`num('9007199254740993')`, `9007199254740993`},
			{`str(1)`, `"1"`}, {`str(null)`, `"null"`}, {`str([1, {b: 'x"<', a: null}])`, `"[1,{\"a\":null,\"b\":\"x\\\"\u003c\"}]"`}, {`str('a')`, `"a"`}, {`str(1.0)`, `"1"`}, {`bool('true')`, `true`},
			{`bool('False')`, `false`}, {`bool('')`, `false`}, {`bool([])`, `true`}, {`bool(0)`, `false`}, {`bool(null)`, `false`}, {`num(18446744073709551615)`, `18446744073709551615`},
		},
		"NumberFunctions": {
			{`abs(-3)`, `3`}, {`abs(-0.5)`, `0.5`}, {`abs(-data.id)`, `18446744073709551615`}, {`round(2.5)`, `3`}, {`round(-2.5)`, `-3`}, {`round(1.256, 2)`, `1.26`}, {`floor(-1.5)`, `-2`}, {`ceil(1.2)`, `2`}, {`round(7)`, `7`},
			{`min(3, 1, 2)`, `1`}, {`max(data.list)`, `3`}, {`max('a', 'b')`, `"b"`}, {`min([])`, `null`}, {`max(null)`, `null`}, {`sum(data.list)`, `6`}, {`sum([])`, `0`}, {`sum(data.floats)`, `4`}, {`avg(data.list)`, `2`}, {`avg([])`, `null`}, {`avg([1, 2])`, `1.5`},
			{`sum(data.items, x => x.a * 2)`, `12`}, {`max(data.items, x => x.a)`, `3`}, {`round(null)`, `null`}, {`floor(1e300)`, `1e+300`},
		},
		"ListFunctions": {
			{`keys(data.plain)`, `["p","q"]`}, {`values(data.plain)`, `[1,2]`}, {`keys(null)`, `[]`}, {`has(data, 'nothing')`, `true`}, {`has(data, 'missing')`, `false`}, {`has(data.list, 2)`, `true`}, {`has(data.list, 3)`, `false`}, {`has(null, 'a')`, `false`},
			{`first(data.list)`, `3`}, {`last(data.list)`, `2`}, {`first([])`, `null`}, {`slice(data.list, 1)`, `[1,2]`}, {`slice(data.list, -2, 99)`, `[1,2]`}, {`slice(data.list, 2, 1)`, `[]`},
			{`sort(data.list)`, `[1,2,3]`}, {`sort(data.list, 'desc')`, `[3,2,1]`}, {`sort(data.holes)`, `[1,2,null]`}, {`sort(data.holes, 'desc')`, `[2,1,null]`}, {`map(sort(data.items, x => -x.a), x => x.a)`, `[3,2,1]`}, {`map(sort(data.items, (x) => x.n, 'desc'), y => y.a)`, `[2,3,1]`},
			{`unique([1, 1.0, '1', 'a', 'a', null, null, [1], [1.0], {a: 1}, {a: 1}, 18446744073709551616, 18446744073709551616.0])`, `[1,"1","a",null,[1],{"a":1},18446744073709551616]`}, {`unique(data.items, x => x.a % 2)`, `[{"a":1,"n":"one"},{"a":2,"n":"two"}]`},
			{`any(data.items, x => x.a > 1)`, `true`}, {`any(data.items, x => x.a > 3)`, `false`}, {`all(data.items, x => x.a > 0)`, `true`}, {`any([0, '', null])`, `false`}, {`all([1, 'a'])`, `true`}, {`any(null, x => true)`, `false`}, {`all(null, x => false)`, `true`},
			{`map(data.list, x => x * 2)`, `[6,2,4]`}, {`filter(data.items, x => x.n.length == 3)`, `[{"a":1,"n":"one"},{"a":2,"n":"two"}]`}, {`count(data.list)`, `3`}, {`count(data.list, x => x > 1)`, `2`}, {`count(null)`, `0`},
			{`map(data.list, x => map(data.tags, y => y + x))`, `[["b3","c3"],["b1","c1"],["b2","c2"]]`}, {`map([1], data => data)`, `[1]`}, {`map([1], x => map([2], x => x))`, `[[2]]`}, {`any(data.list, x => x > variables.limit - 1)`, `true`}, {`map([1, 2], x => x > 1 ? 'b' : 'a')`, `["a","b"]`},
		},
		"Dates": {
			{`now()`, `"2024-05-06T05:08:09.25Z"`}, {`date(data.when)`, `"2024-05-06T09:00:00+02:00"`}, {`date(data.early)`, `"2024-05-05T00:00:00Z"`}, {`date(0)`, `"1970-01-01T00:00:00Z"`}, {`date(1.5)`, `"1970-01-01T00:00:01.5Z"`}, {`date(null)`, `null`},
			{`date('2024-05-06 07:00:00') == date(data.when)`, `true`}, {`now() > date(data.early)`, `true`}, {`now() - date(data.early) > duration('1d')`, `true`}, {`date(data.when) + duration('1h30m')`, `"2024-05-06T10:30:00+02:00"`},
			{`date(data.when) - duration('P1DT2H')`, `"2024-05-05T07:00:00+02:00"`}, {`duration('90s')`, `90`}, {`duration('1.5s')`, `1.5`}, {`duration('2w') / duration('1d')`, `14`}, {`duration(60) * 2 + duration('1m')`, `180`}, {`duration('PT1H30M') == duration('90m')`, `true`},
			{`[now()]`, `["2024-05-06T05:08:09.25Z"]`}, {`{a: {b: duration('2m')}, c: data.x}`, `{"a":{"b":120},"c":4}`}, {`str(date(data.when))`, `"2024-05-06T09:00:00+02:00"`}, {`'at ' + date(data.when)`, `"at 2024-05-06T09:00:00+02:00"`}, {`num(date(data.when))`, `1714978800`}, {`max(map(['2024-05-06T09:00:00+02:00', '2024-05-06T08:00:00Z'], x => date(x)))`, `"2024-05-06T08:00:00Z"`},
			{`format_date(data.when, '%Y/%m/%d %H:%M:%S %z')`, `"2024/05/06 09:00:00 +0200"`}, {`format_date(now(), '%a %A %b %B %d %e %j %y %I%p %L %s %F %T %%')`, `"Mon Monday May May 06  6 127 24 05AM 250 1714972089 2024-05-06 05:08:09 %"`}, {`format_date(null, '%Y')`, `null`}, {`format_date(0, '日 %Y')`, `"日 1970"`},
			{`format_date(data.when, 'YYYY年MM月DD日')`, `"2024年05月06日"`}, {`format_date(data.when, "yyyy-M-d'T'HH:mm:ss")`, `"2024-5-6T09:00:00"`}, {`format_date(data.when, 'MMMM D, YY [at] h:mm A Z')`, `"May 6, 24 at 9:00 AM +02:00"`}, {`format_date(data.when, 'H%-H%-m%-d%:z')`, `"H956+02:00"`},
			{`sort(['2024-01-02', '2024-01-01'], x => date(x))`, `["2024-01-01","2024-01-02"]`}, {`-duration('1m') < duration(0)`, `true`}, {`unique([date('2024-01-01T00:00:00Z'), date('2024-01-01T01:00:00+01:00')])`, `["2024-01-01T00:00:00Z"]`},
		},
	}
	for name, rows := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range rows {
				wantJSON(t, r.source, r.want)
			}
		})
	}
}

func TestEval_Errors(t *testing.T) {
	t.Parallel()
	for _, r := range []row{
		{`1 < 'a'`, "cannot order number and text"}, {`'a' > 1`, "num()"}, {`true < 1`, "cannot order"}, {`[1] < [2]`, "no order"}, {`1 < 2 < 3`, "cannot order boolean and number"}, {`now() > '2024-01-01'`, "date()"},
		{`1 / 0`, "division by zero"}, {`1 % 0`, "division by zero"}, {`1.5 / 0`, "division by zero"}, {`1.5 % 0.0`, "division by zero"}, {`9223372036854775807 + 1`, "too large"}, {`-9223372036854775808 - 1`, "too large"}, {`-9223372036854775808 / -1`, "too large"},
		{`4611686018427387904 * 2`, "too large"}, {`-(-9223372036854775808)`, "too large"}, {`abs(-9223372036854775808)`, "too large"}, {`1e308 * 10`, "too large"}, {`nan + 1`, "not a number"}, {`nan`, "not finite"}, {`[nan]`, "not finite"}, {`data.vast + 1`, "too large"}, {`data.vast > 1`, "too large"},
		{`data.missing + 1`, "??"}, {`'a' + null`, "??"}, {`[1] + [2]`, `"+" cannot take list and list`}, {`-'a'`, "needs a number"}, {`2 * '3'`, "num()"}, {`zzzzzzzz`, "known are count, data"}, {`1 in 5`, "cannot look"}, {`1 in 'a1'`, "str()"}, {`data[true]`, "index"},
		{`int('abc')`, `"abc"`}, {`num('0x10')`, "cannot read"}, {`num('NaN')`, "cannot read"}, {`num('Infinity')`, "cannot read"}, {`num('1_000')`, "cannot read"}, {`num('')`, "cannot read"}, {`num('1e999')`, "cannot read"}, {`num([])`, "cannot make"}, {`bool('maybe')`, "cannot read"},
		{`sum(data.holes)`, "element is null"}, {`sum(data.mixed)`, "element is text"}, {`min(data.holes)`, "null"}, {`sort(data.mixed)`, "cannot order"}, {`sort([1], 'up')`, "asc"}, {`lower(1)`, "str()"}, {`map({a: 1}, x => x)`, "values()"}, {`len(5)`, "len needs"}, {`keys([])`, "object"},
		{`data.x.includes(1)`, "cannot look"}, {`data.x.startsWith('a')`, "startsWith needs a text"}, {`matches('a', data.name + '(')`, "pattern"}, {`replace('a', '', 'b')`, "not empty"}, {`split('a', null)`, "split by"}, {`round(1, 99)`, "digits"}, {`has({}, 1)`, "key"},
		{`date('tomorrow')`, "as a date"}, {`date(1714978800000)`, "milliseconds"}, {`date('9999-12-31') + duration('2d')`, "9999"}, {`duration('1 month')`, "cannot read"}, {`duration('P1M')`, "cannot read"}, {`duration(1e300)`, "292"}, {`format_date(now(), '%Q')`, `"%Q"`}, {`format_date(now(), '2006-01-02')`, "no part of a date"}, {`format_date(now(), '')`, "no part of a date"}, {`format_date(now(), 'YYYY week w')`, `"w"`}, {`format_date(now(), '%-')`, `"%-"`}, {`format_date(now(), '%')`, `"%"`}, {`date('9999-01-01') - date('0001-01-01')`, "292"},
	} {
		wantError(t, r.source, r.want)
	}
}

func TestCompile_Errors(t *testing.T) {
	t.Parallel()
	for _, r := range []row{
		{``, "empty"}, {`  `, "empty"}, {`1 +`, "ends where"}, {`(1`, `")"`}, {`[1`, `"]"`}, {`{a: 1`, `"}"`}, {`{1: 2}`, "a key"}, {`{a: 1, a: 2}`, "twice"}, {`1 2`, "unexpected"}, {`a = 1`, "=="}, {`a & b`, "&&"}, {`a | b`, "||"}, {`a; b`, "statements"}, {"`x`", "not part"}, {`a ** b`, "unexpected"},
		{`'abc`, "not closed"}, {"'a\nb'", "not closed on its line"}, {`'\x'`, "unknown escape"}, {`'\u12'`, "unknown escape"}, {`'\`, "unknown escape"}, {`007`, "superfluous 0"}, {`1e999`, "out of range"}, {`12abc`, "number and a name"}, {strings.Repeat("9", 500), "characters"},
		{`foo()`, "unknown function"}, {`lenn(a)`, `"len"`}, {`qqqqqqqq()`, "the functions are abs"}, {`a.b.foo()`, "the methods are endsWith"}, {`a.length()`, "without parentheses"}, {`a.include('x')`, `"includes"`}, {`a.map(x => x)`, "as a function"}, {`len()`, "takes 1 argument"}, {`len(1, 2)`, "not 2"}, {`slice(a)`, "2 or 3"}, {`map(a)`, "lambda"}, {`map(a, 1)`, "lambda"}, {`len(x => x)`, "no lambda"}, {`map(x => x, a)`, "no lambda"},
		{`x => x`, "lambda"}, {`map(a, true => 1)`, "parameter"}, {`a(1)(2)`, "unknown function"}, {`a.b[0](1)`, "only a function name"}, {`len(a,)`, "argument"}, {`a.`, "field name"}, {`a.'b'`, "plain name"}, {`a ?? b || c`, "parentheses"}, {`a && b ?? c`, "parentheses"}, {`in`, "a value"}, {`a and`, "ends where"}, {`matches(a, '(')`, "pattern"}, {`matches(a, '(?=x)')`, "pattern"},
		{`matches(a, '((x{100}){10}){10}')`, "pattern"}, {`matches(a, '` + strings.Repeat("x", 1001) + `')`, "longer"}, {"a\x00b", "NUL"}, {"'\xff'", "UTF-8"}, {"日\n  本 §", "not part"}, {`a ? b`, `":"`}, {`"` + strings.Repeat("x", expr.MaxSource) + `"`, "bytes"},
		{strings.Repeat("(", 30_000) + "1" + strings.Repeat(")", 30_000), "nested deeper"}, {strings.Repeat("[", 60_000), "nested deeper"}, {strings.Repeat("!", 60_000) + "1", "nested deeper"}, {strings.Repeat("-", 60_000) + "1", "nested deeper"}, {strings.Repeat("not ", 15_000) + "1", "nested deeper"}, {strings.Repeat("len(", 15_000), "nested deeper"}, {strings.Repeat("{a:", 20_000), "nested deeper"},
		{strings.Repeat("1?", 30_000) + "1", "nested deeper"}, {"1" + strings.Repeat("+1", 30_000), "chain"}, {"a" + strings.Repeat(".a", 30_000), "chain"}, {"a" + strings.Repeat("[0]", 20_000), "chain"}, {strings.Repeat("0?1:", 15_000) + "1", "chain"}, {strings.Repeat("map(a,x=>", 5_000), "nested deeper"},
		{`{{ }}`, "placeholder"}, {`{{a`, "placeholder"}, {`${a`, "placeholder"}, {`{{a}`, "placeholder"}, {`a.{{b}}`, "plain name"}, {`{"{{a}}": 1}`, "key cannot"}, {`{{a}} {{b}}`, "unexpected"},
	} {
		wantError(t, r.source, r.want)
		if _, err := expr.Compile(r.source); fmt.Sprint(err) != fmt.Sprint(expr.Check(r.source)) {
			t.Errorf("%s: Check says %v, Compile %v", clip(r.source), expr.Check(r.source), err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := expr.Check(`matches(data.name, '^[A-Z][a-z]{1,20}$') && any(data.items, x => x.a > 1)`); err != nil {
		t.Error(err)
	}
	for pattern, want := range map[string]string{`^a+$`: "", `(`: "not valid", `\pL{1000}`: "too large", strings.Repeat("a", expr.MaxPattern+1): "longer"} {
		if err := expr.CheckPattern(pattern); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckPattern(%q) = %v, want %q", clip(pattern), err, want)
		}
	}
}

func TestEval_UnknownRoot(t *testing.T) {
	t.Parallel()
	fe := wantError(t, "data.x > 1\n  && dta.y", `unknown name "dta"`)
	if diff := cmp.Diff(map[string]any{"position": map[string]any{"line": 2, "column": 6}, "nearest": "data"}, fe.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if fe := wantError(t, `zzzzzzzz`, "unknown name"); fe.Details["nearest"] != nil {
		t.Errorf("nearest = %v for a name like no other", fe.Details["nearest"])
	}
	if fe := wantError(t, `'日本' + lenght('x')`, "unknown function"); fe.Details["position"].(map[string]any)["column"] != 8 {
		t.Errorf("position = %v, want column 8 in characters", fe.Details["position"])
	}
}

func TestProgram_Reads(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`steps.fetch.count > 1 && steps['my node'].rows[0].id == any(data.items, x => x.a == y) || data.list[index].z || data.tags.length > 0
		|| input.name.toLowerCase() == {{a.b}} || steps.fetch.count == '${c} d' || map([1], data => data.q) || now`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data", "index", "input", "now", "steps", "y"}, p.Roots()); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	want := [][]string{{"data", "items"}, {"data", "list"}, {"data", "tags"}, {"index"}, {"input", "name"}, {"now"},
		{"steps", "fetch", "count"}, {"steps", "my node", "rows", "0", "id"}, {"y"}}
	if diff := cmp.Diff(want, p.Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.b", "c"}, p.Placeholders()); diff != "" {
		t.Errorf("placeholders (-want +got):\n%s", diff)
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, false, 0, int64(0), 0.0, math.Copysign(0, -1), math.NaN(), "", json.Number("0"), json.Number("-0.0e5"), uint8(0), float32(0)} {
		if expr.Truth(v) {
			t.Errorf("Truth(%#v) = true", v)
		}
	}
	for _, v := range []any{true, 1, -0.5, "0", []any{}, map[string]any{}, json.Number("18446744073709551616"), json.Number("1e400"), math.Inf(1)} {
		if !expr.Truth(v) {
			t.Errorf("Truth(%#v) = false", v)
		}
	}
}

func TestEval_GoData(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"list": []any{int(1), int8(1), int16(1), int32(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(1), int64(1), 1.0, json.Number("1"), json.Number("1.0"), json.Number("1e0")},
		"most": uint64(math.MaxUint64), "t": time.Date(2024, 1, 2, 3, 4, 5, 0, time.FixedZone("X", 3600)), "d": 90 * time.Second,
		"bad": make(chan int), "badNumber": json.Number("0x1"), "odd": "\x01\t\r\n\"\\ é <&> \xff \ufffd 😀",
	}
	for _, c := range []struct {
		source string
		want   any
	}{
		{`all(list, x => x == 1)`, true}, {`unique(list)`, []any{int64(1)}}, {`sum(list)`, 15.0}, {`most == 18446744073709551615`, true}, {`most`, json.Number("18446744073709551615")},
		{`[list[0]]`, []any{int64(1)}}, {`t`, "2024-01-02T03:04:05+01:00"}, {`t + d`, "2024-01-02T03:05:35+01:00"}, {`d`, int64(90)}, {`d * 1.5`, int64(135)}, {`[t, d]`, []any{"2024-01-02T03:04:05+01:00", int64(90)}},
	} {
		if diff := cmp.Diff(c.want, evalWith(t, c.source, values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.source, diff)
		}
	}
	for _, source := range []string{`bad`, `badNumber`, `[bad]`, `badNumber == 1`} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := p.Eval(expr.Vars{Values: values}, expr.Limits{}); fault.CodeOf(err) != fault.ExpressionError {
			t.Errorf("%s = %v, %v, want an expression_error", source, v, err)
		}
	}
	var back []any
	text := evalWith(t, `str([odd])`, values).(string)
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatalf("str gave %s: %v", text, err)
	}
	if want := strings.ToValidUTF8(values["odd"].(string), "\ufffd"); back[0] != want {
		t.Errorf("str([odd]) reads back as %q, want %q", back[0], want)
	}
}

// A program belongs to nobody: evaluations at the same time do not see each other, and leave the data as it was.
func TestEval_Concurrent(t *testing.T) {
	t.Parallel()
	const source = `map(sort(data.items, x => -x.a), x => {n: x.n, at: now(), ok: matches(x.n, '^t' + '')})`
	p, err := expr.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	if p.Source() != source {
		t.Errorf("source = %q", p.Source())
	}
	env := scope(t)
	want, err := p.Eval(env, expr.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				got, err := p.Eval(env, expr.Limits{})
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
					return
				}
			}
		})
	}
	group.Wait()
	if diff := cmp.Diff(scope(t).Values["data"], env.Values["data"]); diff != "" {
		t.Errorf("the data changed (-before +after):\n%s", diff)
	}
}
