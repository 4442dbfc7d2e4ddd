package host

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/engine"
)

// maxPlainRow is how long a row may be that is read in the plain way, so that it cannot be deeper than any reader goes.
const maxPlainRow = 16 << 10

// decodePlainRow reads a row that is written as [Row.Encode] writes it, which most are, with less effort than a reader of any JSON
// needs. What is unusual in any way it leaves to decodeRow. Both read the same.
func decodePlainRow(seq uint64, time int64, body []byte) (row Row, ok bool) {
	if len(body) > maxPlainRow || !utf8.Valid(body) || !gjson.ValidBytes(body) {
		return Row{}, false
	}
	row = Row{Seq: seq, Time: time, Facts: []engine.Fact{}, Stored: len(body)}
	text := gjson.ParseBytes(body)
	ok = text.IsObject()
	var seen [6]bool
	text.ForEach(func(key, value gjson.Result) bool {
		n := 0
		switch key.Raw {
		case `"facts"`:
			n, ok = 0, value.IsArray() && row.plainFacts(value)
		case `"values"`:
			n, ok = 1, value.IsArray()
			row.Values = plainValues(value)
		case `"large"`:
			n, ok = 2, json.Unmarshal([]byte(value.Raw), &row.Large) == nil
		case `"beside"`:
			n, ok = 5, json.Unmarshal([]byte(value.Raw), &row.Beside) == nil
		case `"told"`:
			n, ok = 3, value.IsArray() && row.plainTold(value)
		case `"closed"`:
			n, ok = 4, value.IsBool()
			row.Closed = value.Bool()
		default:
			ok = false
			return false
		}
		ok = ok && !seen[n] // what stands there twice is unusual
		seen[n] = true
		return ok
	})
	return row, ok
}

func (r *Row) plainFacts(list gjson.Result) bool {
	ok := true
	list.ForEach(func(_, raw gjson.Result) bool {
		fact, err := engine.DecodeFactText(raw.Raw)
		r.Facts = append(r.Facts, fact)
		ok = err == nil
		return ok
	})
	return ok
}

func plainValues(list gjson.Result) []json.RawMessage {
	values := []json.RawMessage{}
	list.ForEach(func(_, raw gjson.Result) bool {
		values = append(values, json.RawMessage(raw.Raw))
		return true
	})
	return values
}

func (r *Row) plainTold(list gjson.Result) bool {
	r.Told = []Told{}
	ok := true
	list.ForEach(func(_, raw gjson.Result) bool {
		r.Told = append(r.Told, Told{})
		ok = raw.IsObject() && r.Told[len(r.Told)-1].plain(raw)
		return ok
	})
	return ok
}

// plain reads something that is told, unless it has texts with escapes, numbers that are not whole, or anything twice.
func (t *Told) plain(object gjson.Result) bool {
	ok := true
	object.ForEach(func(key, value gjson.Result) bool {
		switch key.Raw {
		case `"w"`:
			ok = plainText(value, &t.What)
		case `"a"`:
			ok = plainText(value, &t.Activation)
		case `"g"`:
			ok = plainCount(value, &t.Generation)
		case `"t"`:
			ok = plainCount(value, &t.Attempt)
		case `"n"`:
			ok = plainText(value, &t.Node)
		case `"s"`:
			ok = plainText(value, &t.Status)
		case `"e"`:
			ok = t.Error == nil && json.Unmarshal([]byte(value.Raw), &t.Error) == nil
		case `"u"`:
			var err error
			t.Time, err = strconv.ParseInt(value.Raw, 10, 64)
			ok = err == nil
		case `"k"`:
			ok = plainText(value, &t.Ask)
		case `"p"`:
			ok = plainText(value, &t.Purpose)
		case `"r"`:
			ok = plainText(value, &t.Ref)
		case `"d"`:
			t.Detail = json.RawMessage(value.Raw)
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// plainText reads a text without escapes.
func plainText[T ~string](value gjson.Result, to *T) bool {
	*to = T(value.Str)
	return value.Type == gjson.String && len(value.Raw) == len(value.Str)+2
}

func plainCount(value gjson.Result, to *uint32) bool {
	n, err := strconv.ParseUint(value.Raw, 10, 32)
	*to = uint32(n)
	return err == nil
}
