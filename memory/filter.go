package memory

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

// filter is conditions on the metadata of records: every one must hold. A condition is a value that must be equal, or an
// object of bounds and choices.
type filter []condition

type condition struct {
	path     string
	equal    gjson.Result
	hasEqual bool
	gte, lte gjson.Result
	in       []gjson.Result
	hasIn    bool
}

// newFilter reads filters: {"field": value} or {"field": {"gte": 1, "lte": 9, "in": []}}.
func newFilter(raw json.RawMessage) (filter, error) { return filterIn("filters", raw) }

// filterIn reads filters that stand in a field of the input.
func filterIn(at string, raw json.RawMessage) (filter, error) {
	if len(bytes.TrimSpace(raw)) == 0 || gjson.ParseBytes(raw).Type == gjson.Null {
		return nil, nil
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() {
		return nil, fault.Newf(fault.InvalidInput, "%q must be an object of fields and what they must be", at).With("path", at)
	}
	var f filter
	var err error
	root.ForEach(func(key, value gjson.Result) bool {
		c := condition{path: key.Str}
		if !value.IsObject() {
			c.equal, c.hasEqual = value, true
			f = append(f, c)
			return true
		}
		value.ForEach(func(name, bound gjson.Result) bool {
			switch name.Str {
			case "gte":
				c.gte = bound
			case "lte":
				c.lte = bound
			case "in":
				if !bound.IsArray() {
					err = fault.Newf(fault.InvalidInput, `"in" of the filter %q must be a list`, key.Str).With("path", at+"."+key.Str)
				}
				c.in, c.hasIn = bound.Array(), true
			default:
				err = fault.Newf(fault.InvalidInput, `the filter %q has %q; only "gte", "lte" and "in" are known`, key.Str, name.Str).With("path", at+"."+key.Str)
			}
			return err == nil
		})
		f = append(f, c)
		return err == nil
	})
	return f, err
}

// holds says whether the fields of an object are as the filter wants them. A field that is a list fits if one of its
// elements does.
func (f filter) holds(object json.RawMessage) bool {
	if len(f) == 0 {
		return true
	}
	fields := gjson.ParseBytes(object)
	for _, c := range f {
		var value gjson.Result
		fields.ForEach(func(key, v gjson.Result) bool {
			if key.Str == c.path {
				value = v
			}
			return value.Type == gjson.Null && !value.Exists()
		})
		if !value.Exists() {
			value = fields.Get(escapePath(c.path))
		}
		values := []gjson.Result{value}
		if value.IsArray() && !(c.hasEqual && c.equal.IsArray()) {
			values = value.Array()
		}
		if !slices.ContainsFunc(values, c.fits) {
			return false
		}
	}
	return true
}

// escapePath lets dots lead into objects and takes every other sign as it is.
func escapePath(path string) string {
	var b strings.Builder
	for _, r := range path {
		if strings.ContainsRune(`*?|#@!{}[]()<>=%\:~"`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c condition) fits(v gjson.Result) bool {
	switch {
	case c.hasEqual && !same(c.equal, v),
		c.gte.Exists() && !ordered(c.gte, v),
		c.lte.Exists() && !ordered(v, c.lte),
		c.hasIn && !slices.ContainsFunc(c.in, func(one gjson.Result) bool { return same(one, v) }):
		return false
	}
	return true
}

// same compares without converting: 1 is no "1".
func same(a, b gjson.Result) bool {
	switch {
	case a.Type != b.Type:
		return false
	case a.Type == gjson.String:
		return a.Str == b.Str
	case a.Type == gjson.Number:
		return payload.SameNumber(json.Number(a.Raw), json.Number(b.Raw))
	case a.Type == gjson.JSON:
		var x, y bytes.Buffer
		if json.Compact(&x, []byte(a.Raw)) != nil || json.Compact(&y, []byte(b.Raw)) != nil {
			return false
		}
		return x.String() == y.String()
	}
	return true
}

// ordered says that a is not after b; values of different types have no order.
func ordered(a, b gjson.Result) bool {
	switch {
	case a.Type == gjson.Number && b.Type == gjson.Number:
		return !payload.MoreNumber(json.Number(a.Raw), json.Number(b.Raw))
	case a.Type == gjson.String && b.Type == gjson.String:
		return a.Str <= b.Str
	}
	return false
}

// sorted is a list in order.
func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
