package expr

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// listArg returns an argument that must be a list; null is the empty one.
func (r *run) listArg(c *call, v any) ([]any, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return x, nil
	}
	hint := ""
	if _, ok := v.(map[string]any); ok {
		hint = "; use values() or keys()"
	}
	return nil, r.fail("%s needs a list, not %s%s", c.f.name, typeName(v), hint)
}

// each calls visit for the elements of a list, with what the lambda makes of them if there is one, until it returns false.
func (r *run) each(c *call, items []any, visit func(item, made any) (bool, error)) error {
	for _, item := range items {
		if err := r.step(1); err != nil {
			return err
		}
		item, err := r.norm(item)
		if err != nil {
			return err
		}
		made := item
		if c.lambda != nil {
			if made, err = r.apply(c, item); err != nil {
				return err
			}
		}
		if on, err := visit(item, made); !on || err != nil {
			return err
		}
	}
	return nil
}

func fnAny(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	found := false
	err = r.each(c, items, func(_, made any) (bool, error) {
		found = Truth(made)
		return !found, nil
	})
	return found, err
}

func fnAll(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	all := true
	err = r.each(c, items, func(_, made any) (bool, error) {
		all = Truth(made)
		return all, nil
	})
	return all, err
}

func fnCount(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil || c.lambda == nil {
		return int64(len(items)), err
	}
	n := int64(0)
	err = r.each(c, items, func(_, made any) (bool, error) {
		n += int64(boolInt(Truth(made)))
		return true, nil
	})
	return n, err
}

func fnMap(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	return r.made(c, items)
}

// made returns the elements, or what the lambda makes of them, as a new list.
func (r *run) made(c *call, items []any) ([]any, error) {
	out, err := r.newList(len(items))
	if err != nil {
		return nil, err
	}
	err = r.each(c, items, func(_, made any) (bool, error) {
		out = append(out, made)
		return true, nil
	})
	return out, err
}

func fnFilter(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	out, err := r.newList(0)
	if err != nil {
		return nil, err
	}
	err = r.each(c, items, func(item, made any) (bool, error) {
		if !Truth(made) {
			return true, nil
		}
		out = append(out, item)
		return true, r.alloc(32) // twice the size of an element: lists grow by doubling
	})
	return out, err
}

func fnSum(r *run, c *call, args []any) (any, error) {
	total, _, err := r.total(c, args[0])
	return total, err
}

func fnAvg(r *run, c *call, args []any) (any, error) {
	total, n, err := r.total(c, args[0])
	if err != nil || n == 0 {
		return nil, err
	}
	return r.arithmetic("/", total, int64(n))
}

func (r *run) total(c *call, list any) (any, int, error) {
	items, err := r.listArg(c, list)
	if err != nil {
		return nil, 0, err
	}
	var total any = int64(0)
	err = r.each(c, items, func(_, made any) (bool, error) {
		if !isNumber(made) {
			return false, r.fail("%s needs numbers, but an element is %s; leave it out with filter() or give a default with ??", c.f.name, typeName(made))
		}
		total, err = r.arithmetic("+", total, made)
		return true, err
	})
	return total, len(items), err
}

func fnMin(r *run, c *call, args []any) (any, error) { return extreme(r, c, args, -1) }

func fnMax(r *run, c *call, args []any) (any, error) { return extreme(r, c, args, 1) }

func extreme(r *run, c *call, args []any, sign int) (any, error) {
	items := args
	if _, list := args[0].([]any); len(args) == 1 && (list || args[0] == nil) {
		items, _ = args[0].([]any)
	} else if c.lambda != nil {
		return nil, r.fail("%s with a lambda needs a list, not %s", c.f.name, typeName(args[0]))
	}
	var best any
	err := r.each(c, items, func(_, made any) (bool, error) {
		if made == nil {
			return false, r.fail("%s cannot order null; leave it out with filter() or give a default with ??", c.f.name)
		}
		if best == nil {
			best = made
		}
		cmp, _, err := r.compare(made, best)
		if cmp*sign > 0 {
			best = made
		}
		return true, err
	})
	return best, err
}

func numberArg(r *run, c *call, v any) error {
	if isNumber(v) {
		return nil
	}
	return r.fail("%s needs a number, not %s", c.f.name, typeName(v))
}

func fnAbs(r *run, c *call, args []any) (any, error) {
	v := args[0]
	if v == nil {
		return nil, nil
	}
	if err := numberArg(r, c, v); err != nil {
		return nil, err
	}
	if cmp, ok := compareNumbers(v, int64(0)); ok && cmp < 0 {
		return r.minus(v)
	}
	return v, nil
}

func fnFloor(r *run, c *call, args []any) (any, error) { return toWhole(r, c, args[0], math.Floor) }

func fnCeil(r *run, c *call, args []any) (any, error) { return toWhole(r, c, args[0], math.Ceil) }

// toWhole applies a rounding; whole numbers stay as they are, also huge ones, and so does null.
func toWhole(r *run, c *call, v any, round func(float64) float64) (any, error) {
	if v == nil {
		return nil, nil
	}
	if err := numberArg(r, c, v); err != nil {
		return nil, err
	}
	f, ok := v.(float64)
	if !ok {
		return v, nil
	}
	return wholeIfFits(round(f)), nil
}

func fnRound(r *run, c *call, args []any) (any, error) {
	if len(args) == 1 {
		return toWhole(r, c, args[0], math.Round)
	}
	digits, ok := args[1].(int64)
	if !ok || digits < 0 || digits > 15 {
		return nil, r.fail("%s needs a number of digits from 0 to 15", c.f.name)
	}
	scale := math.Pow10(int(digits))
	return toWhole(r, c, args[0], func(f float64) float64 {
		if math.Abs(f) >= 1<<53 || math.IsNaN(f) {
			return f // it has no fraction
		}
		return math.Round(f*scale) / scale
	})
}

func fnKeys(r *run, c *call, args []any) (any, error) {
	return r.entries(c, args[0], func(key string, _ any) any { return key })
}

func fnValues(r *run, c *call, args []any) (any, error) {
	return r.entries(c, args[0], func(_ string, value any) any { return value })
}

func (r *run) entries(c *call, v any, pick func(key string, value any) any) (any, error) {
	x, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, r.fail("%s needs an object, not %s", c.f.name, typeName(v))
	}
	out, err := r.newList(len(x))
	if err != nil {
		return nil, err
	}
	keys, err := r.keys(x)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		out = append(out, pick(key, x[key]))
	}
	return out, nil
}

func fnHas(r *run, c *call, args []any) (any, error) {
	switch x := args[0].(type) {
	case nil:
		return false, nil
	case map[string]any:
		key, ok := args[1].(string)
		if !ok {
			return nil, r.fail("%s needs a text as the key, not %s", c.f.name, typeName(args[1]))
		}
		_, has := x[key]
		return has, nil
	case []any:
		i, ok := args[1].(int64)
		if !ok {
			return nil, r.fail("%s needs a whole number as the index, not %s", c.f.name, typeName(args[1]))
		}
		return i >= 0 && i < int64(len(x)), nil
	}
	return nil, r.fail("%s needs an object or a list, not %s", c.f.name, typeName(args[0]))
}

func fnFirst(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return r.norm(items[0])
}

func fnLast(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return r.norm(items[len(items)-1])
}

func fnSlice(r *run, c *call, args []any) (any, error) {
	size := 0
	s, text := args[0].(string)
	var items []any
	if text {
		if err := r.scan(2 * len(s)); err != nil {
			return nil, err
		}
		size = utf8.RuneCountInString(s)
	} else {
		var err error
		if items, err = r.listArg(c, args[0]); err != nil {
			return nil, err
		}
		size = len(items)
	}
	bounds := [2]int{0, size}
	for i, arg := range args[1:] {
		if arg == nil {
			continue
		}
		n, ok := arg.(int64)
		if !ok {
			return nil, r.fail("%s needs whole numbers as positions, not %s", c.f.name, typeName(arg))
		}
		if n < 0 {
			n = max(0, n+int64(size))
		}
		bounds[i] = int(min(n, int64(size)))
	}
	from, to := bounds[0], max(bounds[0], bounds[1])
	if text {
		return s[runeOffset(s, from):runeOffset(s, to)], r.alloc(16)
	}
	out, err := r.newList(to - from)
	if err != nil {
		return nil, err
	}
	return append(out, items[from:to]...), nil
}

// runeOffset returns where character n of s starts.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// fnUnique finds equal scalars by a map and compares only lists and objects with each other.
func fnUnique(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	out, err := r.newList(0)
	if err != nil {
		return nil, err
	}
	scalars := map[any]bool{}
	var compounds []any
	err = r.each(c, items, func(item, made any) (bool, error) {
		switch x := made.(type) {
		case []any, map[string]any:
			known, err := r.contains(compounds, x)
			if known || err != nil {
				return true, err
			}
			compounds = append(compounds, x)
		default:
			if err := r.payNumbers(x); err != nil {
				return false, err
			}
			key := scalarKey(x)
			if text, ok := key.(string); ok {
				if err := r.scan(len(text)); err != nil {
					return false, err
				}
			}
			if scalars[key] {
				return true, nil
			}
			scalars[key] = true
		}
		out = append(out, item)
		return true, r.alloc(100)
	})
	return out, err
}

// scalarKey maps equal scalars, and only them, to equal keys.
func scalarKey(v any) any {
	switch x := v.(type) {
	case float64:
		return wholeIfFits(x)
	case json.Number:
		return digitsKey(x)
	}
	if t, ok := instant(v); ok {
		return t
	}
	return v
}

// digitsKey is the key of a number that is kept as digits: the float that is exactly it, where there is one.
func digitsKey(n json.Number) any {
	if len(n) > mostDigits {
		return n
	}
	if f, err := strconv.ParseFloat(string(n), 64); err == nil && bigDigits(f) == string(n) {
		return f
	}
	return n
}

// fnSort is a stable merge sort: unlike the library's it can stop at a limit or at values without an order.
func fnSort(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	down := false
	if len(args) == 2 {
		switch args[1] {
		case "asc", nil:
		case "desc":
			down = true
		default:
			return nil, r.fail("%s needs 'asc' or 'desc' as its direction", c.f.name)
		}
	}
	if err := r.alloc(96 * len(items)); err != nil { // keys and two buffers
		return nil, err
	}
	list := make([]sortItem, 0, len(items))
	err = r.each(c, items, func(item, made any) (bool, error) {
		list = append(list, sortItem{item, made})
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.mergeSort(list, make([]sortItem, len(list)), down); err != nil {
		return nil, err
	}
	out, err := r.newList(len(list))
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		out = append(out, item.value)
	}
	return out, nil
}

type sortItem struct{ value, key any }

func (r *run) mergeSort(list, spare []sortItem, down bool) error {
	if len(list) < 2 {
		return nil
	}
	half := len(list) / 2
	if err := r.mergeSort(list[:half], spare[:half], down); err != nil {
		return err
	}
	if err := r.mergeSort(list[half:], spare[half:], down); err != nil {
		return err
	}
	copy(spare, list)
	left, right := spare[:half], spare[half:len(list)]
	for i := range list {
		takeRight := len(left) == 0
		if !takeRight && len(right) > 0 {
			after, err := r.sortsAfter(left[0].key, right[0].key, down)
			if err != nil {
				return err
			}
			takeRight = after
		}
		if takeRight {
			list[i], right = right[0], right[1:]
		} else {
			list[i], left = left[0], left[1:]
		}
	}
	return nil
}

// sortsAfter says whether x has to stand after y. Nulls stand last in both directions.
func (r *run) sortsAfter(x, y any, down bool) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if x == nil || y == nil {
		return x == nil && y != nil, nil
	}
	cmp, _, err := r.compare(x, y)
	if down {
		cmp = -cmp
	}
	return cmp > 0, err
}
