package database

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

// The types of PostgreSQL that are more than text in JSON, by their number in the catalogue. Every other type is the text
// that PostgreSQL writes for it: uuid, bit, money, enums, ranges, intervals (ISO 8601), network addresses, composites.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidOID         = 26
	oidXID         = 28
	oidCID         = 29
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidVoid        = 2278
	oidJSONB       = 3802
	oidXID8        = 5069
)

// append writes a value that came as text.
func (s *postgres) append(dst []byte, oid uint32, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	t := s.typ(oid)
	for range 10 { // a domain of a domain
		if t.base == 0 {
			break
		}
		oid, t = t.base, s.typ(t.base)
	}
	if t.elem != 0 {
		if out, ok := s.appendArray(dst, t.elem, string(value)); ok {
			return out
		}
		return payload.AppendText(dst, string(value))
	}
	return appendScalar(dst, oid, string(value))
}

func appendScalar(dst []byte, oid uint32, text string) []byte {
	switch oid {
	case oidBool:
		return strconv.AppendBool(dst, text == "t")
	case oidInt2, oidInt4, oidInt8, oidOID, oidXID, oidCID, oidXID8:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return appendInt(dst, n)
		}
	case oidFloat4, oidFloat8:
		bits := 64
		if oid == oidFloat4 {
			bits = 32
		}
		if f, err := strconv.ParseFloat(text, bits); err == nil {
			return appendFloat(dst, f, bits)
		}
	case oidNumeric:
		return appendDecimal(dst, text)
	case oidJSON, oidJSONB:
		return appendJSON(dst, text)
	case oidBytea:
		if digits, ok := strings.CutPrefix(text, `\x`); ok {
			if data, err := hex.DecodeString(digits); err == nil {
				return payload.AppendText(dst, base64.StdEncoding.EncodeToString(data))
			}
		}
	case oidTimestamp:
		return payload.AppendText(dst, strings.Replace(text, " ", "T", 1))
	case oidTimestampTZ:
		for _, layout := range []string{"2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00",
			"2006-01-02 15:04:05.999999999Z07:00:00"} {
			if at, err := time.Parse(layout, text); err == nil {
				return payload.AppendText(dst, at.UTC().Format(time.RFC3339Nano))
			}
		}
	case oidVoid:
		return append(dst, "null"...)
	}
	return payload.AppendText(dst, text)
}

// appendArray writes the text of an array, {1,NULL,"a b",{…}}, as a list.
func (s *postgres) appendArray(dst []byte, elem uint32, text string) (out []byte, ok bool) {
	if strings.HasPrefix(text, "[") { // bounds that do not begin at 1
		_, rest, found := strings.Cut(text, "=")
		if !found {
			return nil, false
		}
		text = rest
	}
	r := arrayReader{text: text, element: func(dst []byte, item string) []byte { return s.append(dst, elem, []byte(item)) }}
	out = r.list(dst, 0)
	return out, !r.bad && r.at == len(text)
}

type arrayReader struct {
	text    string
	at      int
	bad     bool
	element func(dst []byte, item string) []byte
}

func (r *arrayReader) next() byte {
	if r.at >= len(r.text) {
		r.bad = true
		return 0
	}
	r.at++
	return r.text[r.at-1]
}

func (r *arrayReader) list(dst []byte, depth int) []byte {
	if r.next() != '{' || depth > 6 {
		r.bad = true
		return dst
	}
	dst = append(dst, '[')
	if strings.HasPrefix(r.text[r.at:], "}") {
		r.at++
		return append(dst, ']')
	}
	for !r.bad {
		if strings.HasPrefix(r.text[r.at:], "{") {
			dst = r.list(dst, depth+1)
		} else {
			dst = r.item(dst)
		}
		switch r.next() {
		case ',', ';': // boxes are separated by the latter
			dst = append(dst, ',')
		case '}':
			return append(dst, ']')
		default:
			r.bad = true
		}
	}
	return dst
}

func (r *arrayReader) item(dst []byte) []byte {
	var b strings.Builder
	if strings.HasPrefix(r.text[r.at:], `"`) {
		for r.at++; !r.bad; {
			switch c := r.next(); c {
			case '"':
				return r.element(dst, b.String())
			case '\\':
				b.WriteByte(r.next())
			default:
				b.WriteByte(c)
			}
		}
		return dst
	}
	end := strings.IndexAny(r.text[r.at:], ",;}")
	if end < 0 {
		r.bad = true
		return dst
	}
	item := r.text[r.at : r.at+end]
	r.at += end
	if item == "NULL" {
		return append(dst, "null"...)
	}
	return r.element(dst, item)
}

// encode writes a value as the text that PostgreSQL reads for a type.
func (s *postgres) encode(oid uint32, raw json.RawMessage) ([]byte, error) {
	v := gjson.ParseBytes(raw)
	if v.Type == gjson.Null {
		return nil, nil
	}
	t := s.typ(oid)
	for range 10 {
		if t.base == 0 {
			break
		}
		oid, t = t.base, s.typ(t.base)
	}
	text := ""
	switch {
	case oid == oidJSON || oid == oidJSONB:
		text = v.Raw
	case t.elem != 0 && v.IsArray():
		var err error
		if text, err = s.encodeArray(t.elem, v); err != nil {
			return nil, err
		}
	case v.Type == gjson.String:
		text = v.Str
	case v.Type == gjson.Number:
		text = v.Raw
		if oid == oidInt2 || oid == oidInt4 || oid == oidInt8 {
			if whole, ok := plainInteger(v.Raw); ok {
				text = whole
			}
		}
	default:
		data, isBytes, err := bytesOf(v)
		switch {
		case err != nil:
			return nil, err
		case isBytes:
			text = `\x` + hex.EncodeToString(data)
		default:
			text = v.Raw
		}
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fault.New(fault.InvalidInput, "a value has a NUL character in it, which PostgreSQL cannot keep; remove it")
	}
	return []byte(text), nil
}

// encodeArray writes a list as the text of an array.
func (s *postgres) encodeArray(elem uint32, list gjson.Result) (string, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range list.Array() {
		if i > 0 {
			b.WriteByte(',')
		}
		if item.IsArray() && elem != oidJSON && elem != oidJSONB {
			inner, err := s.encodeArray(elem, item)
			if err != nil {
				return "", err
			}
			b.WriteString(inner)
			continue
		}
		text, err := s.encode(elem, json.RawMessage(item.Raw))
		if err != nil {
			return "", err
		}
		if text == nil {
			b.WriteString("NULL")
			continue
		}
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(text)) + `"`)
	}
	b.WriteByte('}')
	return b.String(), nil
}

// bytesOf reads {"base64": "…"}, how bytes are given to every database. A name beside it is allowed, as files have one.
func bytesOf(v gjson.Result) (data []byte, ok bool, err error) {
	if !v.IsObject() {
		return nil, false, nil
	}
	field := v.Get("base64")
	fields := v.Map()
	if _, named := fields["name"]; field.Type != gjson.String || len(fields) > 2 || len(fields) == 2 && !named {
		return nil, false, nil
	}
	if data, err = base64.StdEncoding.DecodeString(field.Str); err != nil {
		return nil, false, fault.New(fault.InvalidInput, "a value has base64 that cannot be read; correct it")
	}
	return data, true, nil
}

// postgresFault says what an error of the server means.
func postgresFault(e *pgconn.PgError) *fault.Error {
	hint := ""
	if e.Hint != "" {
		hint = " (" + words(e.Hint) + ")"
	}
	f := postgresCode(e, hint).With("sql_state", e.Code)
	for name, value := range map[string]string{"constraint": e.ConstraintName, "table": e.TableName, "column": e.ColumnName} { // order does not matter
		if value != "" {
			f = f.With(name, value)
		}
	}
	if e.Position > 0 {
		f = f.With("position", e.Position)
	}
	return f
}

// postgresCode makes an error of what PostgreSQL says: by its code or, where that says nothing in particular, by the class that the code
// begins with.
func postgresCode(e *pgconn.PgError, hint string) *fault.Error {
	switch e.Code {
	case "40001", "40P01", "55P03":
		return deadlocked(words(e.Message))
	case "57014":
		return fault.New(fault.Timeout, "the database stopped the statement: it took too long or was canceled; nothing was committed")
	case "57P01", "57P02", "57P03", "57P05", "25P03":
		return lost(nil)
	case "3D000":
		return credentialRefused()
	case "42501":
		return said(fault.CredentialInvalid, e.Message, "; the user of the credential may not do this")
	case "25006":
		return fault.Newf(fault.InvalidInput, "a query reads and does not write, and the database says: %s; use ACTION.DATABASE_OPERATION", words(e.Message))
	case "23505", "23P01", "23503":
		return said(fault.Conflict, e.Message, "")
	case "42P01", "3F000":
		return said(fault.NotFound, e.Message, hint)
	case "42P18":
		return said(fault.InvalidConfig, e.Message, "; say it with a cast, such as :name::text")
	case "25001":
		return said(fault.Unsupported, e.Message, hint)
	}
	class := ""
	if len(e.Code) == 5 {
		class = e.Code[:2]
	}
	switch class {
	case "08":
		return lost(nil)
	case "53":
		return said(fault.RemoteError, e.Message, "")
	case "28":
		return credentialRefused()
	case "22", "23":
		return said(fault.InvalidInput, e.Message, hint)
	case "42":
		return said(fault.InvalidConfig, e.Message, hint)
	case "0A":
		return said(fault.Unsupported, e.Message, hint)
	}
	return said(fault.SQLError, e.Message, hint)
}

func credentialRefused() *fault.Error {
	return fault.New(fault.CredentialInvalid, "the database refuses the credential; check user, password and database of its dsn")
}
