package database

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/payload"
)

// dialect is the SQL of one sort of server. Its name is that of the driver in a credential.
type dialect string

const (
	postgresDialect dialect = "postgres"
	mysqlDialect    dialect = "mysql"
	sqliteDialect   dialect = "sqlite"
)

// quote writes a name so that it is one, whatever is in it. Names come from the server's own catalogue, so this is the
// second wall and not the first.
func (d dialect) quote(name string) string {
	mark := `"`
	if d == mysqlDialect {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// mark is where value number n (from 1) stands in a statement.
func (d dialect) mark(n int) string {
	if d == postgresDialect {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// maxSafe is the largest whole number that every reader of JSON reads exactly.
const maxSafe = 1<<53 - 1

// appendInt writes a whole number: as a number if every reader reads it exactly, else as text.
func appendInt(dst []byte, n int64) []byte {
	if n > maxSafe || n < -maxSafe {
		return append(strconv.AppendInt(append(dst, '"'), n, 10), '"')
	}
	return strconv.AppendInt(dst, n, 10)
}

func appendUint(dst []byte, n uint64) []byte {
	if n > maxSafe {
		return append(strconv.AppendUint(append(dst, '"'), n, 10), '"')
	}
	return strconv.AppendUint(dst, n, 10)
}

// appendFloat writes a number with the digits it needs; what JSON has no number for is text.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

// appendDecimal writes an exact decimal: as a number as long as every reader keeps all of its digits, else as text.
func appendDecimal(dst []byte, text string) []byte {
	digits := 0
	leading := true
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if c != '0' {
				leading = false
			}
			if !leading {
				digits++
			}
		case c != '-' && c != '.':
			return payload.AppendText(dst, text) // NaN, Infinity, an exponent
		}
	}
	if digits > 15 || !json.Valid([]byte(text)) {
		return payload.AppendText(dst, text)
	}
	return append(dst, text...)
}

// appendJSON writes a value that is JSON already, or the text of it if it is not.
func appendJSON(dst []byte, text string) []byte {
	if !json.Valid([]byte(text)) {
		return payload.AppendText(dst, text)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return payload.AppendText(dst, text)
	}
	return append(dst, b.Bytes()...)
}

// plainInteger writes a number without a fraction and an exponent, if it is a whole one of a reasonable size.
func plainInteger(literal string) (string, bool) {
	if !strings.ContainsAny(literal, ".eE") {
		return literal, true
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(literal), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 400 || n < -400 {
			return "", false
		}
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok || !r.IsInt() {
		return "", false
	}
	return r.Num().String(), true
}

// argument is a value as the drivers of MySQL and SQLite take it: lists and objects as JSON, numbers as exactly as they
// can be held.
func argument(raw json.RawMessage) any {
	v := gjson.ParseBytes(raw)
	switch v.Type {
	case gjson.Null:
		return nil
	case gjson.String:
		return v.Str
	case gjson.True:
		return int64(1)
	case gjson.False:
		return int64(0)
	case gjson.Number:
		if whole, ok := plainInteger(v.Raw); ok {
			if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
				return n
			}
			return whole
		}
		if f, err := strconv.ParseFloat(v.Raw, 64); err == nil && sameDecimal(v.Raw, f) {
			return f
		}
		return v.Raw
	}
	return v.Raw
}

// sameDecimal says that a float is written with the digits of the literal: nothing is lost.
func sameDecimal(literal string, f float64) bool {
	if len(literal) > 40 {
		return false
	}
	a, ok := new(big.Rat).SetString(literal)
	b, both := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && both && a.Cmp(b) == 0
}
