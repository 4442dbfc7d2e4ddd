package values

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Canonical is a text that is the same for equal values and different for others: numbers by their value, objects by
// their sorted fields. Nothing is converted: 1 and "1" differ, 1 and 1.0 do not.
func Canonical(v any) string {
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
		for i, key := range SortedKeys(x) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(Encode(key))
			b.WriteByte(':')
			writeCanonical(b, x[key])
		}
		b.WriteByte('}')
	default:
		if n, ok := NumberOf(v); ok {
			b.WriteString(n.Text())
			return
		}
		b.Write(Encode(v))
	}
}

// Equal says that two values are the same, whatever the order of their keys and the way their numbers are written.
func Equal(a, b any) bool { return Canonical(a) == Canonical(b) }

// SortedKeys are the keys of an object in order.
func SortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Number is a number with all of its digits as far as they matter: whole numbers exactly, others as floats.
type Number struct {
	Float float64
	whole *big.Int // nil unless the float does not hold it exactly enough to compare
}

// exactFloat is the range in which every whole number is a float.
const exactFloat = 1 << 53

// NumberOf reads a number; ok is false for anything else.
func NumberOf(v any) (Number, bool) {
	switch x := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(x), 64)
		if err != nil && !math.IsInf(f, 0) {
			return Number{}, false
		}
		n := Number{Float: f}
		if math.Abs(f) >= exactFloat && !strings.ContainsAny(string(x), ".eE") {
			n.whole, _ = new(big.Int).SetString(string(x), 10)
		} else if math.Abs(f) >= exactFloat && !math.IsInf(f, 0) {
			n.whole, _ = big.NewFloat(f).Int(nil)
		}
		return n, true
	case int64:
		return NumberOf(json.Number(strconv.FormatInt(x, 10)))
	case int:
		return NumberOf(int64(x))
	case float64:
		return NumberOf(json.Number(strconv.FormatFloat(x, 'g', -1, 64)))
	}
	return Number{}, false
}

// Text writes the number without an exponent.
func (n Number) Text() string {
	switch {
	case n.whole != nil:
		return n.whole.String()
	case n.Float == 0:
		return "0" // also for minus zero
	}
	return strconv.FormatFloat(n.Float, 'f', -1, 64)
}

// Compare orders numbers: negative when n is less than m, 0 when they are equal.
func (n Number) Compare(m Number) int {
	if c := cmp.Compare(n.Float, m.Float); c != 0 || n.whole == nil && m.whole == nil {
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

// Order compares two values of one type that has an order: numbers, texts by code point, booleans. ok is false for
// anything else.
func Order(a, b any) (c int, ok bool) {
	if n, is := NumberOf(a); is {
		m, both := NumberOf(b)
		if !both {
			return 0, false
		}
		return n.Compare(m), true
	}
	switch x := a.(type) {
	case string:
		y, both := b.(string)
		return cmp.Compare(x, y), both
	case bool:
		y, both := b.(bool)
		return RankBool(x) - RankBool(y), both
	}
	return 0, false
}

// RankBool orders false before true.
func RankBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TypeOf names the JSON type of a value.
func TypeOf(v any) string {
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

// IsEmpty says that there is nothing in a value.
func IsEmpty(v any) bool {
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

// HoldsPart says whether a list has an element, an object a key, or a text a part; ok is false where that makes no sense.
func HoldsPart(whole, part any) (found, ok bool) {
	switch x := whole.(type) {
	case []any:
		return slices.ContainsFunc(x, func(item any) bool { return Equal(item, part) }), true
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

// HasType says that a value is of a type of JSON Schema.
func HasType(v any, want string) bool {
	if want == "integer" {
		n, ok := NumberOf(v)
		return ok && !strings.ContainsAny(n.Text(), ".IN")
	}
	return TypeOf(v) == want
}

// Includes says whether a value has all that is expected of it: an object every field that the other has, a list as many items, each with
// what is expected of it, anything else the same value.
func Includes(whole, part any) bool {
	switch want := part.(type) {
	case map[string]any:
		fields, ok := whole.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range want { // order does not matter: all must be there
			if got, there := fields[name]; !there || !Includes(got, value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := whole.([]any)
		if !ok || len(items) != len(want) {
			return false
		}
		for i := range want {
			if !Includes(items[i], want[i]) {
				return false
			}
		}
		return true
	}
	return Equal(whole, part)
}

// Expects says whether an answer has what is expected of it: nothing, a part of its text, or fields with their
func Expects(expected json.RawMessage, text string, document json.RawMessage) bool {
	if IsNull(expected) {
		return true
	}
	want := Decode(expected)
	if part, ok := want.(string); ok {
		return strings.Contains(text, part)
	}
	return !IsNull(document) && Includes(Decode(document), want)
}
