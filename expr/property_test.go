package expr_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/expr"
	"tandem/fault"
)

// tree is an expression as the naive evaluator sees it.
type tree struct {
	op   string // "" for a leaf
	leaf any    // nil, bool, int64 or string
	kids []tree
}

// level is the precedence of the operators, loosest first; leaves and calls are never in parentheses.
var level = map[string]int{"?": 1, "||": 2, "??": 2, "&&": 3, "not": 4, "==": 5, "!=": 5, "<": 6, "<=": 6, ">": 6, ">=": 6, "+": 7, "-": 7, "*": 8, "%": 8, "!": 9, "neg": 9}

func genTree(depth int) *rapid.Generator[tree] {
	return rapid.Custom(func(t *rapid.T) tree {
		if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
			return tree{leaf: rapid.SampledFrom([]any{nil, true, false, int64(0), int64(1), int64(2), int64(-7), int64(math.MaxInt64), int64(math.MinInt64), int64(1 << 53), "", "a", "b"}).Draw(t, "value")}
		}
		op := rapid.SampledFrom([]string{"?", "||", "??", "&&", "not", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "%", "!", "neg"}).Draw(t, "op")
		n := 2
		switch op {
		case "?":
			n = 3
		case "!", "neg", "not":
			n = 1
		}
		x := tree{op: op}
		for range n {
			x.kids = append(x.kids, genTree(depth-1).Draw(t, "kid"))
		}
		return x
	})
}

// write spells a tree with as few parentheses as the precedence allows.
func (x tree) write(b *strings.Builder, spell func(op string) string) {
	sub := func(kid tree, loosest int) {
		mixed := (kid.op == "??") != (x.op == "??") && (kid.op == "??" || x.op == "??") && (kid.op == "||" || kid.op == "&&" || x.op == "||" || x.op == "&&")
		if kid.op != "" && (level[kid.op] < loosest || mixed) {
			b.WriteString("(")
			kid.write(b, spell)
			b.WriteString(")")
			return
		}
		kid.write(b, spell)
	}
	switch x.op {
	case "":
		switch v := x.leaf.(type) {
		case nil:
			b.WriteString(spell("null"))
		case string:
			b.WriteString("'" + v + "'")
		case int64:
			if v < 0 {
				b.WriteString("(" + strconv.FormatInt(v, 10) + ")")
			} else {
				b.WriteString(strconv.FormatInt(v, 10))
			}
		case bool:
			b.WriteString(strconv.FormatBool(v))
		}
	case "?":
		sub(x.kids[0], 2)
		b.WriteString(" ? ")
		sub(x.kids[1], 1)
		b.WriteString(" : ")
		sub(x.kids[2], 1)
	case "!":
		b.WriteString("!")
		sub(x.kids[0], 9)
	case "neg":
		b.WriteString("- ")
		sub(x.kids[0], 10) // -(-x), so that no number is read together with its sign
	case "not":
		b.WriteString("not ")
		sub(x.kids[0], 5)
	default:
		sub(x.kids[0], level[x.op])
		b.WriteString(" " + spell(x.op) + " ")
		sub(x.kids[1], level[x.op]+1)
	}
}

var errNaive = errors.New("naive error")

func naiveTruth(v any) bool {
	return v != nil && v != false && v != int64(0) && v != ""
}

// naive evaluates with big integers and no cleverness.
func (x tree) naive() (any, error) {
	var a, b any
	var err error
	if len(x.kids) > 0 {
		if a, err = x.kids[0].naive(); err != nil {
			return nil, err
		}
	}
	switch x.op {
	case "":
		return x.leaf, nil
	case "?":
		if naiveTruth(a) {
			return x.kids[1].naive()
		}
		return x.kids[2].naive()
	case "||":
		if naiveTruth(a) {
			return a, nil
		}
		return x.kids[1].naive()
	case "&&":
		if !naiveTruth(a) {
			return a, nil
		}
		return x.kids[1].naive()
	case "??":
		if a != nil {
			return a, nil
		}
		return x.kids[1].naive()
	case "!", "not":
		return !naiveTruth(a), nil
	case "neg":
		return naiveWhole("-", int64(0), a)
	}
	if b, err = x.kids[1].naive(); err != nil {
		return nil, err
	}
	switch x.op {
	case "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "<", "<=", ">", ">=":
		return naiveOrder(x.op, a, b)
	}
	return naiveWhole(x.op, a, b)
}

func naiveOrder(op string, a, b any) (any, error) {
	if a == nil || b == nil {
		return false, nil
	}
	var less, same bool
	switch p := a.(type) {
	case bool:
		q, ok := b.(bool)
		if !ok {
			return nil, errNaive
		}
		less, same = !p && q, p == q
	case int64:
		q, ok := b.(int64)
		if !ok {
			return nil, errNaive
		}
		less, same = p < q, p == q
	case string:
		q, ok := b.(string)
		if !ok {
			return nil, errNaive
		}
		less, same = p < q, p == q
	}
	return map[string]bool{"<": less, "<=": less || same, ">": !less && !same, ">=": !less}[op], nil
}

func naiveWhole(op string, a, b any) (any, error) {
	if op == "+" {
		_, p := a.(string)
		_, q := b.(string)
		if (p || q) && a != nil && b != nil {
			return naiveText(a) + naiveText(b), nil
		}
	}
	p, ok := a.(int64)
	q, ok2 := b.(int64)
	if !ok || !ok2 || op == "%" && q == 0 {
		return nil, errNaive
	}
	x, y, z := big.NewInt(p), big.NewInt(q), new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "%":
		z.Rem(x, y)
	}
	if !z.IsInt64() {
		return nil, errNaive
	}
	return z.Int64(), nil
}

func naiveText(v any) string {
	switch x := v.(type) {
	case int64:
		return strconv.FormatInt(x, 10)
	case bool:
		return strconv.FormatBool(x)
	}
	return v.(string)
}

func TestEval_AgreesWithNaive(t *testing.T) {
	t.Parallel()
	spellings := map[string][]string{"||": {"||", "or"}, "&&": {"&&", "and"}, "==": {"==", "==="}, "!=": {"!=", "!=="}, "null": {"null", "undefined"}}
	rapid.Check(t, func(rt *rapid.T) {
		x := genTree(5).Draw(rt, "tree")
		var source strings.Builder
		x.write(&source, func(op string) string {
			if s := spellings[op]; s != nil {
				return rapid.SampledFrom(s).Draw(rt, "spelling")
			}
			return op
		})
		want, wantErr := x.naive()
		got, err := eval(t, source.String())
		if (err != nil) != (wantErr != nil) {
			rt.Fatalf("%s: error %v, naive error %v (value %v)", source.String(), err, wantErr, want)
		}
		if err == nil && got != want {
			rt.Fatalf("%s = %#v, naive %#v", source.String(), got, want)
		}
		if err != nil && fault.CodeOf(err) != fault.ExpressionError {
			rt.Fatalf("%s: %v", source.String(), err)
		}
	})
}

// genData makes JSON data with numbers in all their Go forms.
func genData(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth == 0 {
			kind %= 6
		}
		switch kind {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.SampledFrom([]string{"", "a", "b", "1", "é"}).Draw(t, "text")
		case 3, 4, 5:
			n := rapid.Int64Range(-3, 3).Draw(t, "number")
			return rapid.SampledFrom([]any{n, int(n), float64(n), json.Number(strconv.FormatInt(n, 10)), json.Number(strconv.FormatInt(n, 10) + ".0"), json.Number("9007199254740993"), int64(9007199254740993), json.Number("18446744073709551616"), 18446744073709551616.0}).Draw(t, "form")
		case 6, 7:
			return rapid.SliceOfN(genData(depth-1), 0, 3).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), genData(depth-1), 0, 3).Draw(t, "object")
	})
}

// rat makes every number exact, so reflect can compare.
func rat(v any) any {
	switch x := v.(type) {
	case []any:
		out := []any{}
		for _, item := range x {
			out = append(out, rat(item))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, item := range x {
			out[k] = rat(item)
		}
		return out
	case int, int64, json.Number:
		r, _ := new(big.Rat).SetString(reflect.ValueOf(v).String())
		if r == nil {
			r = new(big.Rat).SetInt64(reflect.ValueOf(v).Int())
		}
		return "number " + r.String()
	case float64:
		return "number " + new(big.Rat).SetFloat64(x).String()
	case string:
		return "text " + x
	}
	return v
}

func evalWith(t testing.TB, source string, values map[string]any) any {
	t.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(expr.Vars{Values: values}, expr.Limits{})
	if err != nil {
		t.Fatalf("%s with %v: %v", source, values, err)
	}
	return v
}

func TestEquality_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := genData(3).Draw(rt, "a"), genData(3).Draw(rt, "b")
		env := map[string]any{"a": a, "b": b}
		want := reflect.DeepEqual(rat(a), rat(b))
		for _, source := range []string{`a == b`, `b == a`, `[a] == [b]`, `{k: a} == {k: b}`, `a in [b]`, `!(a != b)`, `unique([a, b]).length == 1`, `a === b`} {
			if got := evalWith(t, source, env); got != want {
				rt.Fatalf("%s = %v with %#v and %#v", source, got, a, b)
			}
		}
		if evalWith(t, `a == a`, env) != true {
			rt.Fatalf("%#v is not equal to itself", a)
		}
		if want && evalWith(t, `str([a]) == str([b])`, env) != (textOf(a) == textOf(b)) {
			rt.Fatalf("text of equal values %#v and %#v", a, b)
		}
		if evalWith(t, `a ? true : false`, env) != expr.Truth(a) {
			rt.Fatalf("truth of %#v", a)
		}
	})
}

// textOf is the text of a value apart from the spelling of numbers.
func textOf(v any) string {
	var s strings.Builder
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false)
	if err := e.Encode(canonical(v)); err != nil {
		return err.Error()
	}
	return s.String()
}

func canonical(v any) any {
	switch x := v.(type) {
	case []any:
		out := []any{}
		for _, item := range x {
			out = append(out, canonical(item))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, item := range x {
			out[k] = canonical(item)
		}
		return out
	case json.Number:
		if f, err := x.Float64(); err == nil && strings.Contains(string(x), ".") {
			return f
		}
	case float64:
		if x == 18446744073709551616.0 {
			return json.Number("18446744073709552000") // as floats are written
		}
	}
	return v
}

func TestSort_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rapid.Float64Range(-5, 5), 0, 40).Draw(rt, "list")
		data := make([]any, len(list))
		for i, f := range list {
			data[i] = math.Round(f)
		}
		got := evalWith(t, `map(sort(data, x => x), x => x)`, map[string]any{"data": data}).([]any)
		want := slices.Clone(data)
		slices.SortStableFunc(want, func(a, b any) int { return int(a.(float64) - b.(float64)) })
		if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			rt.Fatalf("sort(%v) = %v", data, got)
		}
		down := evalWith(t, `sort(data, 'desc')`, map[string]any{"data": data}).([]any)
		slices.Reverse(down)
		if len(want) > 0 && !reflect.DeepEqual(down, want) {
			rt.Fatalf("sort(%v, 'desc') is %v reversed", data, down)
		}
	})
}
