package builtin

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// canonical is a text that is the same for equal values and different for others: numbers by their value, objects by
// their sorted fields. Nothing is converted: 1 and "1" differ, 1 and 1.0 do not.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch x := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range sortedKeys(x) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(encode(key))
			b.WriteByte(':')
			writeCanonical(b, x[key])
		}
		b.WriteByte('}')
	default:
		if n, ok := numberOf(v); ok {
			b.WriteString(n.text())
			return
		}
		b.Write(encode(v))
	}
}

func equal(a, b any) bool { return canonical(a) == canonical(b) }

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// number is a number with all of its digits as far as they matter: whole numbers exactly, others as floats.
type number struct {
	float float64
	whole *big.Int // nil unless the float does not hold it exactly enough to compare
}

// exactFloat is the range in which every whole number is a float.
const exactFloat = 1 << 53

func numberOf(v any) (number, bool) {
	switch x := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(x), 64)
		if err != nil && !math.IsInf(f, 0) {
			return number{}, false
		}
		n := number{float: f}
		if math.Abs(f) >= exactFloat && !strings.ContainsAny(string(x), ".eE") {
			n.whole, _ = new(big.Int).SetString(string(x), 10)
		} else if math.Abs(f) >= exactFloat && !math.IsInf(f, 0) {
			n.whole, _ = big.NewFloat(f).Int(nil)
		}
		return n, true
	case int64:
		return numberOf(json.Number(strconv.FormatInt(x, 10)))
	case int:
		return numberOf(int64(x))
	case float64:
		return numberOf(json.Number(strconv.FormatFloat(x, 'g', -1, 64)))
	}
	return number{}, false
}

func (n number) text() string {
	switch {
	case n.whole != nil:
		return n.whole.String()
	case n.float == 0:
		return "0" // also for minus zero
	}
	return strconv.FormatFloat(n.float, 'f', -1, 64)
}

func (n number) compare(m number) int {
	if c := cmp.Compare(n.float, m.float); c != 0 || n.whole == nil && m.whole == nil {
		return c
	}
	switch {
	case n.whole == nil: // beyond every float
		return 1
	case m.whole == nil:
		return -1
	}
	return n.whole.Cmp(m.whole)
}

// order compares two values of one type that has an order: numbers, texts by code point, booleans. ok is false for
// anything else.
func order(a, b any) (c int, ok bool) {
	if n, is := numberOf(a); is {
		m, both := numberOf(b)
		if !both {
			return 0, false
		}
		return n.compare(m), true
	}
	switch x := a.(type) {
	case string:
		y, both := b.(string)
		return cmp.Compare(x, y), both
	case bool:
		y, both := b.(bool)
		return rankBool(x) - rankBool(y), both
	}
	return 0, false
}

func rankBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// typeOf names the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// isEmpty says that there is nothing in a value.
func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// holdsPart says whether a list has an element, an object a key, or a text a part; ok is false where that makes no sense.
func holdsPart(whole, part any) (found, ok bool) {
	switch x := whole.(type) {
	case []any:
		return slices.ContainsFunc(x, func(item any) bool { return equal(item, part) }), true
	case map[string]any:
		key, is := part.(string)
		_, has := x[key]
		return has, is
	case string:
		text, is := part.(string)
		return is && strings.Contains(x, text), is
	}
	return false, false
}

func hasType(v any, want string) bool {
	if want == "integer" {
		n, ok := numberOf(v)
		return ok && !strings.ContainsAny(n.text(), ".IN")
	}
	return typeOf(v) == want
}
