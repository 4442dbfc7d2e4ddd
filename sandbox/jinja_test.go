package sandbox

import (
	"strings"
	"testing"
	"time"

	"tandem/fault"
)

func TestJinja(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{})
	for name, c := range map[string]struct {
		source, input, want string
		code                fault.Code
		part                string
	}{
		"Values":       {`{{ a }}|{{ b.c[0] }}|{{ none }}|{{ missing }}`, `{"a": 1, "b": {"c": ["x"]}, "none": null}`, `"1|x||"`, "", ""},
		"Numbers":      {`{{ a }} {{ b }} {{ c }} {{ a + 1 }}`, `{"a": 9007199254740993, "b": 1.5, "c": 2}`, `"9007199254740993 1.5 2 9007199254740994"`, "", ""},
		"Loop":         {`{% for x in l %}{{ loop.index }}{{ x }}{{ "," if not loop.last }}{% endfor %}`, `{"l": ["a", "b"]}`, `"1a,2b"`, "", ""},
		"Fields":       {`{% for k, v in o.items() %}{{ k }}={{ v }};{% endfor %}`, `{"o": {"z": 1, "a": 2}}`, `"a=2;z=1;"`, "", ""},
		"Filters":      {`{{ l|map(attribute="n")|join("-") }} {{ s|upper|replace("A", "B") }} {{ o|tojson }}`, `{"l": [{"n": 1}, {"n": 2}], "s": "a<b", "o": {"k": [true]}}`, `"1-2 B<B {\"k\":[true]}"`, "", ""},
		"Format":       {`{{ "%.2f|%05d|%s|%5.1f%%|%x"|format(4, 7.0, l, 2.25, 255) }}`, `{"l": ["a"]}`, `"4.00|00007|['a']|  2.2%|ff"`, "", ""},
		"Macro":        {`{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(1) }}{{ m("é") }}`, `{}`, `"[1][é]"`, "", ""},
		"Newline":      {"a\n", `{}`, `"a\n"`, "", ""},
		"Syntax":       {"a\n{{ b c }}", `{}`, "", fault.CodeError, "line 2"},
		"Fails":        {"a\n{{ none.x }}", `{"none": null}`, "", fault.CodeError, "line 2"},
		"NoObject":     {`{{ a }}`, `[1]`, "", fault.CodeError, "object"},
		"NoIncludes":   {`{% include "/etc/passwd" %}`, `{}`, "", fault.CodeError, "cannot load another"},
		"NoRandomness": {`{{ [1, 2]|random }}`, `{}`, "", fault.CodeError, "random"},
		"Endless":      {`{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`, `{}`, "", fault.CodeLimit, "did not end"},
		"TooLong":      {`{% for a in range(2000) %}{{ "x" * 10000 }}{% endfor %}`, `{}`, "", fault.CodeLimit, "returned more than"},
		"TooDeep":      {`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, `{}`, "", fault.CodeLimit, "lost"},
		"TooMuch":      {`{% set ns = namespace(s="x" * 1000000) %}{% for a in range(20) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`, `{}`, "", fault.CodeLimit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if name == "Endless" {
				limit = 200 * time.Millisecond
			}
			result, err := p.Run(t.Context(), Call{Tenant: "t", Language: Jinja, Source: c.source, Input: []byte(c.input), TimeLimit: limit})
			if fault.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.part) {
				t.Fatalf("%v, want %q with %q", err, c.code, c.part)
			}
			if err == nil && string(result.Value) != c.want {
				t.Errorf("%s, want %s", result.Value, c.want)
			}
		})
	}
}

func TestCheckJinja(t *testing.T) {
	t.Parallel()
	if err := CheckJinja("{{ a }}\n{% endif %}"); err == nil || strings.Contains(err.Error(), "{{ a }}") {
		t.Errorf("a wrong end: %v", err)
	}
	if err := CheckJinja(strings.Repeat("(", 1<<20)); err != nil {
		t.Errorf("what is too long to be checked here: %v", err)
	}
	if err := CheckJinja("{{ " + strings.Repeat("(", 30_000)); err == nil {
		t.Error("deep nesting is not refused")
	}
}
