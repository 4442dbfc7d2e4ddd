package expr

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/text"
)

// During an evaluation a value is nil, bool, int64, float64, json.Number (only what fits neither: a whole number beyond
// int64, or one beyond every float), string, []any, map[string]any, time.Time or time.Duration. Data is brought into this
// form when it is read, one value at a time; lists and objects are never copied for it.

// Truth says whether a value is true as JavaScript judges it.
func Truth(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	case string:
		return x != ""
	case int64:
		return x != 0
	case float64:
		return x != 0 && !math.IsNaN(x)
	case time.Duration:
		return x != 0
	}
	switch n, _ := normalize(v); x := n.(type) {
	case int64:
		return x != 0
	case float64:
		return x != 0 && !math.IsNaN(x)
	}
	return true
}

// normalize brings one value into the form of an evaluation; false if it is nothing JSON has.
func normalize(v any) (any, bool) {
	switch x := v.(type) {
	case nil, bool, string, int64, float64, []any, map[string]any, time.Duration:
		return v, true
	case time.Time:
		return fixedOffset(x), true
	case json.Number:
		return normNumber(x)
	case int:
		return int64(x), true
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case uint:
		return normNumber(json.Number(strconv.FormatUint(uint64(x), 10)))
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint64:
		return normNumber(json.Number(strconv.FormatUint(x, 10)))
	case float32:
		return float64(x), true
	}
	return nil, false
}

// normNumber reads a JSON number as exactly as possible.
func normNumber(n json.Number) (any, bool) {
	s := string(n)
	if len(s) <= len("-9223372036854775808") && !strings.HasPrefix(s, "+") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, true
		}
	}
	if !validNumber(s) {
		return nil, false
	}
	if wholeNumber(s) {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return n, true // beyond every float; it can be handed on, but not computed with
	}
	return f, true
}

// wholeNumber says whether a valid number has neither fraction nor exponent.
func wholeNumber(s string) bool { return !strings.ContainsAny(s, ".eE") }

// norm is normalize for data met during an evaluation. A number of a million digits costs what it weighs.
func (r *run) norm(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, string, int64, float64, []any, map[string]any:
		return v, nil
	case json.Number:
		if len(x) > 64 {
			if err := r.scan(len(x)); err != nil {
				return nil, err
			}
		}
	}
	got, ok := normalize(v)
	if !ok {
		return nil, r.fail("the data has a value of type %T, which is not JSON", v)
	}
	return got, nil
}

// typeName is how errors call the type of a value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	case time.Time:
		return "date"
	case time.Duration:
		return "duration"
	}
	return "number"
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64, json.Number:
		return true
	}
	return false
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// sortedKeys returns the keys of an object in their one order.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// keys is sortedKeys, paid for.
func (r *run) keys(m map[string]any) ([]string, error) {
	if err := r.step(1 + 2*len(m)); err != nil {
		return nil, err
	}
	return sortedKeys(m), nil
}

// clip shortens a text for an error message.
func clip(s string) string { return text.Clip(s, 40) }

// field reads a field by name.
func (r *run) field(x any, name string) (any, error) {
	if err := r.step(1); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case map[string]any:
		if v, ok := x[name]; ok {
			return r.norm(v)
		}
		if name == "length" {
			return int64(len(x)), nil
		}
	case []any:
		if name == "length" {
			return int64(len(x)), nil
		}
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(x) && isDigit(rune(name[0])) {
			return r.norm(x[i])
		}
	case string:
		if name == "length" {
			return r.length(x)
		}
	}
	return nil, nil
}

// index reads an element by position, or a field by a computed name.
func (r *run) index(x, i any) (any, error) {
	switch i := i.(type) {
	case nil:
		return nil, r.step(1)
	case string:
		return r.field(x, i)
	case int64:
		return r.element(x, i)
	case float64:
		if i == math.Trunc(i) && math.Abs(i) < 1<<53 {
			return r.element(x, int64(i))
		}
		return nil, r.step(1)
	case json.Number:
		return nil, r.step(1)
	}
	return nil, r.fail("an index is a number or a text, not %s", typeName(i))
}

func (r *run) element(x any, i int64) (any, error) {
	switch x := x.(type) {
	case map[string]any:
		return r.field(x, strconv.FormatInt(i, 10))
	case []any:
		if i >= 0 && i < int64(len(x)) {
			if err := r.step(1); err != nil {
				return nil, err
			}
			return r.norm(x[i])
		}
	case string:
		if err := r.scan(len(x)); err != nil {
			return nil, err
		}
		for _, c := range x {
			if i == 0 {
				return string(c), nil
			}
			i--
		}
	}
	return nil, r.step(1)
}

// length counts the characters of a text.
func (r *run) length(s string) (any, error) {
	if err := r.scan(len(s)); err != nil {
		return nil, err
	}
	return int64(utf8.RuneCountInString(s)), nil
}

// contains says whether x holds y: an element, a key or a part of a text. Null holds nothing.
func (r *run) contains(x, y any) (bool, error) {
	switch x := x.(type) {
	case nil:
		return false, nil
	case []any:
		for _, item := range x {
			item, err := r.norm(item)
			if err != nil {
				return false, err
			}
			if same, err := r.equal(item, y); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case map[string]any:
		key, ok := y.(string)
		_, has := x[key]
		return ok && has, r.step(1)
	case string:
		part, ok := y.(string)
		if !ok {
			return false, r.fail("a text can contain a text, not %s; convert with str()", typeName(y))
		}
		if err := r.scan(len(x) + len(part)); err != nil {
			return false, err
		}
		return strings.Contains(x, part), nil
	}
	return false, r.fail("cannot look for something in %s; a list, an object or a text is needed", typeName(x))
}

// equal compares without converting; lists and objects in depth, objects in the order of their keys, so that a limit falls
// on the same step every time.
func (r *run) equal(x, y any) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case bool:
		z, ok := y.(bool)
		return ok && x == z, nil
	case string:
		z, ok := y.(string)
		if !ok || len(x) != len(z) {
			return false, nil
		}
		return x == z, r.step(len(x) / 64)
	case time.Time:
		z, ok := y.(time.Time)
		return ok && x.Equal(z), nil
	case time.Duration:
		z, ok := y.(time.Duration)
		return ok && x == z, nil
	case []any:
		z, ok := y.([]any)
		if !ok || len(x) != len(z) {
			return false, nil
		}
		return r.equalLists(x, z)
	case map[string]any:
		z, ok := y.(map[string]any)
		if !ok || len(x) != len(z) {
			return false, nil
		}
		return r.equalObjects(x, z)
	}
	if !isNumber(y) {
		return false, nil
	}
	if err := r.payNumbers(x, y); err != nil {
		return false, err
	}
	cmp, ok := compareNumbers(x, y)
	return ok && cmp == 0, nil
}

// equalLists compares lists of the same length.
func (r *run) equalLists(x, y []any) (bool, error) {
	for i := range x {
		if same, err := r.equalData(x[i], y[i]); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// equalObjects compares objects with as many keys.
func (r *run) equalObjects(x, y map[string]any) (bool, error) {
	keys, err := r.keys(x)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		other, ok := y[key]
		if !ok {
			return false, nil
		}
		if same, err := r.equalData(x[key], other); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalData(x, y any) (bool, error) {
	x, err := r.norm(x)
	if err != nil {
		return false, err
	}
	y, err = r.norm(y)
	if err != nil {
		return false, err
	}
	return r.equal(x, y)
}

// ordered answers < <= > >=. With null, or with NaN, every ordering is false.
func (r *run) ordered(op string, x, y any) (bool, error) {
	if x == nil || y == nil {
		return false, nil
	}
	cmp, ok, err := r.compare(x, y)
	if !ok || err != nil {
		return false, err
	}
	switch op {
	case "<":
		return cmp < 0, nil
	case "<=":
		return cmp <= 0, nil
	case ">":
		return cmp > 0, nil
	}
	return cmp >= 0, nil
}

// compare orders two values that are not null; ok is false for numbers without an order.
func (r *run) compare(x, y any) (cmp int, ok bool, err error) {
	if typeName(x) != typeName(y) {
		return 0, false, r.fail("cannot order %s and %s%s", typeName(x), typeName(y), remedy(x, y))
	}
	switch x := x.(type) {
	case bool:
		return boolInt(x) - boolInt(y.(bool)), true, nil
	case string:
		z := y.(string)
		return strings.Compare(x, z), true, r.step(min(len(x), len(z)) / 64)
	case time.Time:
		return x.Compare(y.(time.Time)), true, nil
	case time.Duration:
		z := y.(time.Duration)
		return cmpInt(int64(x), int64(z)), true, nil
	case []any, map[string]any:
		return 0, false, r.fail("a %s has no order", typeName(x))
	}
	for _, v := range [...]any{x, y} {
		if n, huge := v.(json.Number); huge && !wholeNumber(string(n)) {
			return 0, false, r.fail("the number is too large to compare")
		}
	}
	if err := r.payNumbers(x, y); err != nil {
		return 0, false, err
	}
	cmp, ok = compareNumbers(x, y)
	return cmp, ok, nil
}

// payNumbers pays for comparing numbers that are kept as digits; the others cost nothing besides their step.
func (r *run) payNumbers(numbers ...any) error {
	for _, v := range numbers {
		if n, ok := v.(json.Number); ok {
			if err := r.step(len(n) / 8); err != nil {
				return err
			}
		}
	}
	return nil
}

// remedy names the conversion that would make two values of different types comparable.
func remedy(x, y any) string {
	for _, name := range [...]string{typeName(x), typeName(y)} {
		switch name {
		case "date":
			return "; convert with date()"
		case "duration":
			return "; convert with duration()"
		case "number":
			return "; convert with num()"
		}
	}
	return ""
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
