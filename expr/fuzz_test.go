package expr_test

import (
	"encoding/json"
	"testing"

	"tandem/expr"
	"tandem/fault"
)

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		``, `data.x > 3 && !data.tags.includes('a')`, `any(data.items, x => x.a > 1)`, `'{{x}}' == 'a'`, `{{{a.b["}}"]}}} ?? ${c}`, `{a: [1, -2.5e3, "\u00e9"], 'b': {c: null}}`,
		`data.list.0 + data.obj.b.c[1].d.length`, `a ? b : c ? d : e`, `not x in [1] and y not in z`, `matches(data.name, '^(A|B)+$')`, `sort(data.items, x => -x.a, 'desc')`, `map(data.list, x => map(data.list, y => x * y))`,
		`format_date(now() - duration('1h30m'), '%Y-%m-%d')`, `date(data.when) - date(data.early)`, `unique(split(replace(data.name, 'a', 'b'), ''))`, `str(data) + str(data)`, `round(1/3, 2) % 0.1`, `-9223372036854775808 / -1`,
		`((((((((((`, `!!!!!!!!-1`, `'\{{x}} \u007b{`, "'\xff", "a\x00", `1e400`, `99999999999999999999 * 2`, `slice(data.uni, -2, 1)`, `min(data.list) < max('a', 'b')`, `{{x}}{{y}}`, `x=>x`, `data?.[0]?.a`, `avg(data.floats) ?? sum([])`,
		`int('٣') + num("1_0")`, `keys(data)[0] in values(data)`, `join(data.mixed, ',') + bool('1')`, `has(data, 'x') === true`, `count(data.list, (x) => x % 2 == 1)`, `first(last([[data]]))`, `abs(-data.id)`, `data.vast == data.vast`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := expr.Compile(source)
		if err != nil {
			if fault.CodeOf(err) != fault.ExpressionError {
				t.Fatalf("compile %q: %v", source, err)
			}
			return
		}
		env := scope(t)
		for i := range p.Placeholders() {
			env.Values[expr.PlaceholderName(i)] = []any{"v", i}
		}
		for _, name := range p.Roots() {
			if _, ok := env.Values[name]; !ok {
				env.Values[name] = env.Values["data"].(map[string]any)[name]
			}
		}
		polls := 0
		lim := expr.Limits{Steps: 20_000, Bytes: 200_000, Expired: func() bool { polls++; return false }}
		got, err := p.Eval(env, lim)
		if polls > 20_000/256+expr.MaxResult/256 {
			t.Fatalf("eval %q went on for %d polls", source, polls)
		}
		if err != nil {
			if fault.CodeOf(err) != fault.ExpressionError {
				t.Fatalf("eval %q: %v", source, err)
			}
			return
		}
		first, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("result of %q is not JSON: %v", source, err)
		}
		again, err := p.Eval(env, expr.Limits{Steps: 20_000, Bytes: 200_000})
		if err != nil {
			t.Fatalf("eval %q again: %v", source, err)
		}
		if second, err := json.Marshal(again); err != nil || string(second) != string(first) {
			t.Fatalf("eval %q gives %s, then %s (%v)", source, first, second, err)
		}
	})
}
