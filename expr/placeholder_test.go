package expr_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/expr"
)

// bind evaluates with values for the placeholders, in their order.
func bind(t testing.TB, source string, values ...any) (any, error) {
	t.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		return nil, err
	}
	env := scope(t)
	for i, v := range values {
		env.Values[expr.PlaceholderName(i)] = v
	}
	return p.Eval(env, expr.Limits{})
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	object := map[string]any{"b": int64(2), "a": []any{json.Number("1")}}
	for _, c := range []struct {
		source string
		found  []string
		values []any
		want   any
	}{
		{`{{x}} > 3`, []string{"x"}, []any{4}, true},
		{`{{{ a.outputs.b }}} == ${ c }`, []string{"a.outputs.b", "c"}, []any{"v", "v"}, true},
		{`{{x}} + {{y}} + {{x}}`, []string{"x", "y"}, []any{1, 2}, int64(4)},
		{`'{{x}}' == 5`, []string{"x"}, []any{5}, true},
		{`"${x}"`, []string{"x"}, []any{nil}, nil},
		{`'id-{{x}}/${y}.'`, []string{"x", "y"}, []any{json.Number("7"), "q"}, "id-7/q."},
		{`'v={{x}}'`, []string{"x"}, []any{object}, `v={"a":[1],"b":2}`},
		{`'{{x}}{{y}}'`, []string{"x", "y"}, []any{nil, true}, "nulltrue"},
		{`{{fetch.outputs}}.b + {{fetch.outputs}}['b']`, []string{"fetch.outputs"}, []any{object}, int64(4)},
		{`{a:{{x}}}.a`, []string{"x"}, []any{"v"}, "v"},
		{`{a:{{{x}}}}.a`, []string{"x"}, []any{"v"}, "v"},
		{`{{a["odd }} key"]}} == 1`, []string{`a["odd }} key"]`}, []any{1}, true},
		{`"{{a[\"k\"]}}" == 1`, []string{`a["k"]`}, []any{1}, true},
		{`'\{{x}} \${y} \{{{z}}} \u007b{w}}'`, nil, nil, "{{x}} ${y} {{{z}}} {{w}}"},
		{`'{{ not closed'`, nil, nil, "{{ not closed"},
		{`'{{}} $ {x} ${'`, nil, nil, "{{}} $ {x} ${"},
		{`'{{{x}}'`, []string{"x"}, []any{1}, "{1"},
		{`any(data.list, n => n == {{x}})`, []string{"x"}, []any{2}, true},
		{`{{x}}.includes('a')`, []string{"x"}, []any{[]any{"a"}}, true},
		{`matches('abc', '^{{x}}$')`, []string{"x"}, []any{"a.c"}, true},
	} {
		p, err := expr.Compile(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if diff := cmp.Diff(c.found, p.Placeholders()); diff != "" {
			t.Errorf("%s: placeholders (-want +got):\n%s", c.source, diff)
		}
		got, err := bind(t, c.source, c.values...)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.source, diff)
		}
	}
	wantError(t, `1 + {{a.b}}`, `placeholder "a.b" has no value`)
}

// Whatever a placeholder holds, it is one value: it equals itself as bound data and changes nothing around it.
func TestPlaceholders_AreNeverSource(t *testing.T) {
	t.Parallel()
	hostile := []string{`' || true || '`, `") || (1 == 1`, `{{x}}`, `${data.name}`, `\`, `'`, `"`, "\x00", "\n", `}}`, `{{{`, `__p0`, `data.x`, `1; drop`, "\xff\xfe", `x => x`}
	check := func(t testing.TB, s string) {
		for _, source := range []string{`{{v}} == data.name`, `'{{v}}' == data.name`, `"a{{v}}" == 'a' + data.name`, `['{{v}}'] == ["${v}"] && {{v}} == data.name`, `'{{v}}'.includes({{v}}) && {{v}} == data.name`} {
			p, err := expr.Compile(source)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			env := expr.Vars{Values: map[string]any{expr.PlaceholderName(0): s, "data": map[string]any{"name": s}}}
			if got, err := p.Eval(env, expr.Limits{}); err != nil || got != true {
				t.Fatalf("%s with %q = %v, %v", source, s, got, err)
			}
			env.Values["data"] = map[string]any{"name": s + "x"}
			if got, err := p.Eval(env, expr.Limits{}); err != nil || got != false {
				t.Fatalf("%s with %q against another value = %v, %v", source, s, got, err)
			}
		}
	}
	for _, s := range hostile {
		check(t, s)
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}$'"\\a.|= ]{0,12}`)).Draw(rt, "value"))
	})
}

func TestPlaceholderName_IsNoIdentifier(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		p, err := expr.Compile(expr.PlaceholderName(i))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{strconv.Itoa(i)}, p.Placeholders()); diff != "" || p.Roots() != nil {
			t.Errorf("the name of placeholder %d reads as data: roots %v, %s", i, p.Roots(), diff)
		}
	}
}
