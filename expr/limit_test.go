package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/expr"
	"tandem/fault"
)

// limitHit evaluates and returns which limit ended it, "" if none did. Anything else is an error of the test.
func limitHit(t testing.TB, source string, env expr.Env, lim expr.Limits) string {
	t.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", clip(source), err)
	}
	_, err = p.Eval(env, lim)
	if err == nil {
		return ""
	}
	fe, ok := errors.AsType[*fault.Error](err)
	if !ok || fe.Details["limit"] == nil {
		t.Fatalf("%s: %v, want a limit", clip(source), err)
	}
	return fe.Details["limit"].(string)
}

// numbers is a list that costs little to write down and much to visit.
func numbers(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

func heavy() expr.Vars {
	deep := any("end")
	for range 5_000 {
		deep = []any{deep}
	}
	wide := map[string]any{}
	for i := range 20_000 {
		wide[fmt.Sprintf("key%d", i)] = i
	}
	objects := make([]any, 1_000)
	for i := range objects {
		objects[i] = map[string]any{"i": i}
	}
	return expr.Vars{Values: map[string]any{
		"n": numbers(1_000), "many": numbers(60_000), "deep": deep, "deep2": []any{deep.([]any)[0]}, "wide": wide, "objects": objects,
		"long": strings.Repeat("ab", 300_000), "huge": strings.Repeat("a", 8<<20), "digits": json.Number(strings.Repeat("7", 1<<20)),
		"googols": slices.Repeat([]any{json.Number("1" + strings.Repeat("0", 300))}, 1_000), "floats": slices.Repeat([]any{1e308}, 60_000),
	}}
}

// It runs alone, because what it allocates is measured for the whole process.
func TestLimits(t *testing.T) {
	env := heavy()
	env.Values[expr.PlaceholderName(0)] = env.Values["huge"]
	doubling := "'0123456789abcdef'"
	for range 30 {
		doubling = "map([" + doubling + "], x => x + x)[0]"
	}
	dates := "[now()]"
	for range 5 {
		dates = "map([" + dates + "], x => [x, x, x, x, x, x, x, x, x, x, x, x])[0]"
	}
	for _, c := range []struct{ name, source, want string }{
		{"NestedMap", `map(n, a => map(n, b => map(n, c => 1)))`, "steps"},
		{"NestedAny", `any(n, a => any(n, b => any(n, c => false)))`, "steps"},
		{"NestedCount", `count(n, a => count(n, b => b == a) > 5)`, "steps"},
		{"In", `all(n, a => -1 not in n)`, "steps"},
		{"DeepEquality", `all(n, a => deep == deep2)`, "steps"},
		{"WideEquality", `all(n, a => wide == wide)`, "steps"},
		{"ListEquality", `all(n, a => many == many)`, "steps"},
		{"TextEquality", `all(n, a => long == long)`, "steps"},
		{"TextOrder", `all(n, a => long <= long)`, "steps"},
		{"TextLength", `all(n, a => huge.length > 0)`, "steps"},
		{"TextIndex", `all(n, a => huge[8000000] == 'a')`, "steps"},
		{"Trim", `all(n, a => trim(huge) != '')`, "steps"},
		{"Contains", `all(n, a => !contains(huge, 'b'))`, "steps"},
		{"SortMany", `sort(sort(many, x => -x))`, "bytes"},
		{"SortNested", `all(n, a => sort(n, x => -x)[0] == 999)`, "bytes"},
		{"UniqueObjects", `unique(objects)`, "steps"},
		{"Keys", `all(n, a => keys(wide) != null)`, "steps"},
		{"Sum", `all(n, a => sum(n) > 0)`, "steps"},
		{"Regex", `matches(huge, '(a|aa)+b')`, "steps"},
		{"RegexRepeated", `all(n, a => !matches(long, 'x' + a))`, "steps"},
		{"RegexCompiled", `all(n, a => !matches('b', '(a{1,9}){1,9}' + a))`, "bytes"},
		{"HugeNumber", `all(n, a => [digits][0] != 1)`, "steps"},
		{"HugeNumberText", `str(digits)`, "bytes"},
		{"Concat", doubling, "bytes"},
		{"ConcatLoop", `map(n, a => map(n, b => long + 'x'))`, "bytes"},
		{"Replace", `replace(replace(long, 'a', '0123456789'), '0', '0123456789')`, "bytes"},
		{"Join", `join(many, long)`, "bytes"},
		{"JoinNested", `join([join(n, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), join(n, long)], '')`, "bytes"},
		{"Split", `split(long, '')`, "bytes"},
		{"Upper", `upper(huge)`, "bytes"},
		{"Str", `map(n, a => str(wide))`, "steps"},
		{"Template", `'{{0}}{{0}}'`, "bytes"},
		{"MapMany", `map(map(many, x => x), x => [x])`, "steps"},
		{"FilterMany", `filter(many, x => true)`, "bytes"},
		{"Objects", `map(n, a => map(n, b => {a: a, b: b}))`, "bytes"},
		{"Slices", `map(n, a => slice(many, 0))`, "bytes"},
		{"FormatDate", `format_date(0, long)`, "steps"},
		{"Amplified", `map(n, a => huge)`, "result"},
		{"AmplifiedList", `map(n, a => many)`, "result"},
		{"AmplifiedDates", dates, "bytes"},
		{"AmplifiedTwice", `map(n, a => [wide, wide, wide])`, "result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			got := limitHit(t, c.source, env, expr.Limits{})
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if got != c.want {
				t.Errorf("limit = %q, want %q", got, c.want)
			}
			if took > expr.MaxTime {
				t.Errorf("took %v until its limit", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
				t.Errorf("allocated %d bytes until its limit", used)
			}
			t.Logf("%v, %d KiB", took, (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}

// What is within its limits is cheap as well: here nothing is made but a list of one, and a result that shares all it shows.
// It runs alone, because what it allocates is measured for the whole process.
func TestLimits_CheapWithin(t *testing.T) {
	env := heavy()
	empty := "{}"
	for range 5 {
		empty = "map([" + empty + "], x => [x, x, x, x, x, x, x, x, x, x, x, x])[0]"
	}
	for _, source := range []string{`unique(floats)`, "[now(), " + empty + "]"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := limitHit(t, source, env, expr.Limits{}); got != "" {
			t.Errorf("%s: limit %q", clip(source), got)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
			t.Errorf("%s: allocated %d bytes", clip(source), used)
		}
	}
}

// A number that is kept as digits costs what its digits do, wherever it is compared.
func TestLimits_HugeNumbers(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`5.5 in googols`, `any(googols, x => x < 5.5)`, `unique(googols)`} {
		if got := limitHit(t, source, heavy(), expr.Limits{Steps: 20_000}); got != "steps" {
			t.Errorf("%s: limit %q, want steps", source, got)
		}
	}
}

// The same evaluation needs the same steps and bytes every time, so whether a limit is reached does not depend on luck.
func TestLimits_Deterministic(t *testing.T) {
	t.Parallel()
	env := scope(t)
	const source = `data == input && str(data) != '' && sort(map(data.items, x => x.n)) == ['one', 'three', 'two'] && unique(values(data.plain)).length == 2`
	for _, set := range []func(n int) expr.Limits{
		func(n int) expr.Limits { return expr.Limits{Steps: n} },
		func(n int) expr.Limits { return expr.Limits{Bytes: n} },
	} {
		need := 0
		for need = 1; limitHit(t, source, env, set(need)) != ""; need++ {
			if need > 20_000 {
				t.Fatal("no limit is enough")
			}
		}
		for range 50 {
			if limitHit(t, source, scope(t), set(need)) != "" || limitHit(t, source, scope(t), set(need-1)) == "" {
				t.Fatalf("need differs from the %d found before", need)
			}
		}
	}
}

func TestLimits_Expired(t *testing.T) {
	t.Parallel()
	polls := 0
	lim := expr.Limits{Expired: func() bool { polls++; return polls == 3 }}
	if got := limitHit(t, `any(n, a => any(n, b => any(n, c => false)))`, heavy(), lim); got != "time" || polls != 3 {
		t.Errorf("limit = %q after %d polls, want time after 3", got, polls)
	}
	polls = 0
	if got := limitHit(t, `[many]`, heavy(), lim); got != "time" {
		t.Errorf("limit = %q while the result is measured, want time", got)
	}
}

// Data is handed on as it is, however large, when the expression only picks it.
func TestLimits_PickingIsFree(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`huge`, `wide`, `{kept: huge, n: len(many)}`, `wide.key7 == 7 ? many : null`} {
		if got := limitHit(t, source, heavy(), expr.Limits{}); got != "" {
			t.Errorf("%s: limit %q", source, got)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	for _, c := range []struct{ name, source string }{
		{"Condition", `data.x > 3 && !data.tags.includes('a')`},
		{"Equality", `data.name == 'Ada'`},
		{"Lambda", `any(data.items, x => x.a > 2 && x.n.startsWith('th'))`},
		{"Matches", `matches(data.name, '^[A-Z][a-z]+$')`},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := expr.Compile(c.source)
			if err != nil {
				b.Fatal(err)
			}
			env := scope(b)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := p.Eval(env, expr.Limits{}); err != nil || v != true {
					b.Fatal(v, err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.Compile(`data.x > 3 && !data.tags.includes('a')`); err != nil {
			b.Fatal(err)
		}
	}
}
