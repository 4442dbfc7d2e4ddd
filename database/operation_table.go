package database

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

func ordinal(i int) string { return fmt.Sprintf("statement %d: ", i+1) }

// maxBatch is how many rows one INSERT has.
const maxBatch = 500

// checkTable checks what can be checked without the database.
func (w *writer) checkTable() error {
	o := &w.operation
	if o.Table == "" {
		return needs(o.Kind, "table")
	}
	if strings.IndexByte(o.Table, 0) >= 0 {
		return fault.New(fault.InvalidConfig, "the name of the table has a NUL character in it; remove it")
	}
	switch o.Kind {
	case Insert, Upsert:
		for i, row := range o.Rows {
			if !gjson.ParseBytes(row).IsObject() {
				return fault.Newf(fault.InvalidInput, "rows[%d] is not an object of columns and values", i).With("path",
					fmt.Sprintf("configurations.rows[%d]", i))
			}
		}
		if o.Kind == Upsert && len(o.ConflictKeys) == 0 {
			return needs(o.Kind, "conflict_keys")
		}
	case Update:
		if v := gjson.ParseBytes(o.Values); !v.IsObject() || len(v.Map()) == 0 {
			return needs(o.Kind, "values")
		}
	}
	return nil
}

func needs(kind, field string) error {
	return fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", field, kind).With("path", "configurations."+field)
}

func (w *writer) writeTable(ctx context.Context) error {
	o := w.operation
	t, err := w.transaction.session.table(ctx, o.Table)
	if err != nil {
		return err
	}
	returning, err := w.columns(t, o.Returning, "returning")
	if err != nil {
		return err
	}
	if len(returning) > 0 && !w.transaction.session.returning(o.Kind) {
		return fault.Newf(fault.Unsupported, "this database cannot return the rows of an %s; leave returning out and read them with ACTION.DATABASE_QUERY", o.Kind).With("path", "configurations.returning")
	}
	to := newSink(maxReturned, false)
	to.keep = true
	b := &builder{table: t}
	if o.Kind == Insert || o.Kind == Upsert {
		return w.insert(ctx, t, returning, to)
	}
	if o.Kind == Update {
		b.write("UPDATE ", t.quoted, " SET ")
		if err := w.assign(b); err != nil {
			return err
		}
	} else {
		b.write("DELETE FROM ", t.quoted)
	}
	some, err := b.where(o.Where)
	if err != nil {
		return err
	}
	if !some && !o.AllRows {
		return fault.Newf(fault.InvalidConfig, "the %s has no condition and would reach every row; give where, or set allow_all_rows to true if that is meant", o.Kind).With("path", "configurations.where")
	}
	b.returning(returning)
	return w.run(ctx, b, to, returning != nil)
}

// columns finds columns by their names; "*" stands for all.
func (w *writer) columns(t *table, names []string, field string) ([]string, error) {
	var found []string
	for _, name := range names {
		if name == "*" && field == "returning" {
			for _, c := range t.columns {
				found = append(found, c.name)
			}
			continue
		}
		c, err := t.column(name, field)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, c.name) {
			found = append(found, c.name)
		}
	}
	return found, nil
}

func (w *writer) run(ctx context.Context, b *builder, to *sink, returned bool) error {
	w.sent = b.table.unsafe
	out, err := w.transaction.session.run(ctx, b.done(), to)
	if err != nil {
		return err
	}
	if !returned {
		to = newSink(0, false) // what came back was not asked for
	}
	return w.took(out, to)
}

func (w *writer) assign(b *builder) error {
	first := true
	seen := map[string]bool{}
	return each(w.operation.Values, func(key string, value json.RawMessage) error {
		c, err := b.table.column(key, "values")
		if err != nil {
			return err
		}
		if seen[c.name] {
			return twice(c.name)
		}
		seen[c.name] = true
		if !first {
			b.write(", ")
		}
		first = false
		b.write(b.name(c.name), " = ")
		b.value(c, value)
		return nil
	})
}

func twice(column string) error {
	return fault.Newf(fault.InvalidInput, "the column %q stands twice in a row; keep one of them", column)
}

// insert writes rows in as few statements as their columns allow, in their order.
func (w *writer) insert(ctx context.Context, t *table, returning []string, to *sink) error {
	o := w.operation
	keys, err := w.columns(t, o.ConflictKeys, "conflict_keys")
	if err != nil {
		return err
	}
	identity := ""
	if w.transaction.session.returning(o.Kind) {
		identity = t.identity
	}
	asked := returning
	if identity != "" { // one more column than was asked for tells the number that the database gave
		to.watch = len(returning)
		asked = append(slices.Clone(returning), identity)
	}
	for rest := o.Rows; len(rest) > 0; {
		columns, err := w.rowColumns(t, rest[0])
		if err != nil {
			return err
		}
		limit := min(len(rest), maxBatch, max(1, maxParameters/max(1, len(columns))))
		b := &builder{table: t}
		n, err := w.batch(b, columns, rest[:limit])
		if err != nil {
			return err
		}
		if o.Kind == Upsert {
			if err := b.conflict(columns, keys, len(returning) > 0); err != nil {
				return err
			}
		}
		b.returning(asked)
		before := w.result.Affected
		if err := w.run(ctx, b, to, len(returning) > 0); err != nil {
			return err
		}
		if o.Kind == Upsert && t.dialect == mysqlDialect {
			w.result.Affected, w.result.LastID = before+int64(n), nil // it counts a row that it replaces twice
		}
		if to.last != nil && string(to.last) != "null" {
			w.result.LastID = to.last
		}
		rest = rest[n:]
	}
	return nil
}

// rowColumns are the columns of a row, in its order.
func (w *writer) rowColumns(t *table, row json.RawMessage) ([]tableColumn, error) {
	var columns []tableColumn
	err := each(row, func(key string, _ json.RawMessage) error {
		c, err := t.column(key, "rows")
		if err != nil {
			return err
		}
		if slices.Contains(columns, c) {
			return twice(c.name)
		}
		columns = append(columns, c)
		return nil
	})
	return columns, err
}

// batch writes the rows that have the same columns as the first one and says how many they are.
func (w *writer) batch(b *builder, columns []tableColumn, rows []json.RawMessage) (n int, err error) {
	b.write("INSERT INTO ", b.table.quoted)
	if len(columns) == 0 {
		if b.table.dialect == mysqlDialect {
			b.write(" () VALUES ()")
		} else {
			b.write(" DEFAULT VALUES")
		}
		return 1, nil
	}
	var names []string
	for _, c := range columns {
		names = append(names, b.name(c.name))
	}
	b.write(" (", strings.Join(names, ", "), ") VALUES ")
	for n = 0; n < len(rows); n++ {
		values := map[string]json.RawMessage{}
		count := 0
		err := each(rows[n], func(key string, value json.RawMessage) error {
			c, err := b.table.column(key, "rows")
			if err == nil {
				values[c.name] = value
				count++
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		same := len(values) == len(columns) && count == len(columns)
		for _, c := range columns {
			_, has := values[c.name]
			same = same && has
		}
		if !same {
			break // it begins the next batch
		}
		if n > 0 {
			b.write(", ")
		}
		b.write("(")
		for i, c := range columns {
			if i > 0 {
				b.write(", ")
			}
			b.value(c, values[c.name])
		}
		b.write(")")
	}
	return n, nil
}

// builder writes one statement about one table. All names in it come from the catalogue, all values stand beside it.
type builder struct {
	table  *table
	sql    strings.Builder
	values []json.RawMessage
	rows   bool
}

func (b *builder) write(parts ...string) {
	for _, p := range parts {
		b.sql.WriteString(p)
	}
}

func (b *builder) name(column string) string { return b.table.dialect.quote(column) }

func (b *builder) value(c tableColumn, raw json.RawMessage) {
	b.values = append(b.values, fitted(b.table.dialect, c, raw))
	b.write(b.table.dialect.mark(len(b.values)))
}

func (b *builder) done() bound {
	text := b.sql.String()
	word, _, _ := strings.Cut(text, " ")
	return bound{sql: text, values: b.values, keyword: word, returns: b.rows}
}

func (b *builder) returning(columns []string) {
	if len(columns) == 0 {
		return
	}
	b.rows = true
	for i, c := range columns {
		if i == 0 {
			b.write(" RETURNING ")
		} else {
			b.write(", ")
		}
		b.write(b.name(c))
	}
}

// fitted brings a value into the form that its column takes where a database is particular about it.
func fitted(d dialect, c tableColumn, raw json.RawMessage) json.RawMessage {
	v := gjson.ParseBytes(raw)
	if d == postgresDialect || v.Type == gjson.Null {
		return raw
	}
	switch c.typ {
	case "json", "jsonb":
		if v.Type == gjson.String {
			return payload.AppendText(nil, v.Raw) // the text of the JSON
		}
	case "datetime", "timestamp":
		if d == mysqlDialect && v.Type == gjson.String {
			if at, err := time.Parse(time.RFC3339Nano, v.Str); err == nil {
				return payload.AppendText(nil, at.UTC().Format("2006-01-02 15:04:05.999999"))
			}
		}
	}
	return raw
}

// conflict says what becomes of a row that is there already.
func (b *builder) conflict(columns []tableColumn, keys []string, returning bool) error {
	for _, key := range keys {
		if !slices.ContainsFunc(columns, func(c tableColumn) bool { return c.name == key }) {
			return fault.Newf(fault.InvalidInput, "a row has no %q, by which an upsert finds the row that is there; give it in every row", key)
		}
	}
	var set []string
	for _, c := range columns {
		if slices.Contains(keys, c.name) {
			continue
		}
		if b.table.dialect == mysqlDialect {
			set = append(set, b.name(c.name)+" = VALUES("+b.name(c.name)+")")
		} else {
			set = append(set, b.name(c.name)+" = excluded."+b.name(c.name))
		}
	}
	if b.table.dialect == mysqlDialect {
		if err := b.oneKey(columns, keys); err != nil {
			return err
		}
		if len(set) == 0 {
			set = []string{b.name(keys[0]) + " = " + b.name(keys[0])}
		}
		b.write(" ON DUPLICATE KEY UPDATE ", strings.Join(set, ", "))
		return nil
	}
	var quoted []string
	for _, key := range keys {
		quoted = append(quoted, b.name(key))
	}
	b.write(" ON CONFLICT (", strings.Join(quoted, ", "), ") DO ")
	switch {
	case len(set) > 0:
		b.write("UPDATE SET ", strings.Join(set, ", "))
	case returning:
		b.write("UPDATE SET ", quoted[0], " = excluded.", quoted[0]) // a row that is left alone is not returned
	default:
		b.write("NOTHING")
	}
	return nil
}

// oneKey makes sure that MySQL, which cannot be told by which key a row is found, has no choice.
func (b *builder) oneKey(columns []tableColumn, keys []string) error {
	sorted := slices.Sorted(slices.Values(keys))
	found := false
	for _, unique := range b.table.unique {
		if slices.Equal(slices.Sorted(slices.Values(unique)), sorted) {
			found = true
			continue
		}
		given := func(name string) bool {
			return slices.ContainsFunc(columns, func(c tableColumn) bool { return c.name == name })
		}
		made := slices.ContainsFunc(unique, func(name string) bool { return name == b.table.identity && !given(name) })
		if !made {
			return fault.Newf(fault.Unsupported, "table %q has another unique key (%s), and this database would replace rows by it as well; leave its columns to the database, or use update and insert", b.table.name, strings.Join(unique, ", "))
		}
	}
	if !found {
		return fault.Newf(fault.InvalidConfig, "table %q has no unique key of %s; make one, or choose other conflict_keys", b.table.name, strings.Join(keys, ", ")).With("path", "configurations.conflict_keys")
	}
	return nil
}

// where writes the conditions and says whether there is any that excludes something.
func (b *builder) where(raw json.RawMessage) (some bool, err error) {
	if v := gjson.ParseBytes(raw); len(bytes.TrimSpace(raw)) > 0 && v.Type != gjson.Null && !v.IsObject() {
		return false, fault.New(fault.InvalidConfig, `"where" must be an object of columns and values`).With("path", "configurations.where")
	}
	count := 0
	err = each(raw, func(key string, value json.RawMessage) error {
		c, err := b.table.column(key, "where")
		if err != nil {
			return err
		}
		if count == 0 {
			b.write(" WHERE ")
		} else {
			b.write(" AND ")
		}
		count++
		excludes, err := b.condition(c, value)
		some = some || excludes
		return err
	})
	return some, err
}

// condition writes one condition. One that holds for every row excludes nothing.
func (b *builder) condition(c tableColumn, raw json.RawMessage) (excludes bool, err error) {
	v := gjson.ParseBytes(raw)
	op, value := "=", v
	if v.IsObject() {
		op = strings.ToLower(strings.TrimSpace(v.Get("op").Str))
		value = v.Get("value")
		if op == "" {
			return false, wrongCondition(c.name, `is an object without "op"; write {"op": "=", "value": …}`)
		}
		for field := range v.Map() { // order does not matter: any one is named
			if field != "op" && field != "value" {
				return false, wrongCondition(c.name, fmt.Sprintf(`has %q; only "op" and "value" are known`, field))
			}
		}
	} else if v.IsArray() {
		op = "in"
	}
	return b.compare(c, op, value)
}

func wrongCondition(column, why string) error {
	return fault.Newf(fault.InvalidConfig, "the condition on %q %s", column, why).With("path", "configurations.where."+column)
}

func (b *builder) compare(c tableColumn, op string, value gjson.Result) (bool, error) {
	name, raw := b.name(c.name), json.RawMessage(value.Raw)
	null := value.Type == gjson.Null
	if sign, ok := map[string]string{
		"=": "=", "==": "=", "eq": "=", "!=": "<>", "<>": "<>", "ne": "<>", "<": "<", "lt": "<", "<=": "<=", "lte": "<=", ">": ">",
		"gt": ">", ">=": ">=", "gte": ">=",
	}[op]; ok {
		switch {
		case !null:
			b.write(name, " ", sign, " ")
			b.value(c, raw)
		case sign == "=":
			b.write(name, " IS NULL")
		case sign == "<>":
			b.write(name, " IS NOT NULL")
		default:
			return false, wrongCondition(c.name, "orders by null, which nothing is before or after; give a value")
		}
		return true, nil
	}
	switch op = strings.ReplaceAll(op, " ", "_"); op {
	case "is_null", "null":
		b.write(name, " IS NULL")
	case "not_null", "is_not_null":
		b.write(name, " IS NOT NULL")
	case "like", "not_like", "ilike":
		return true, b.like(c, op, value)
	case "in", "not_in":
		return b.oneOf(c, op == "not_in", value)
	case "between":
		pair := value.Array()
		if !value.IsArray() || len(pair) != 2 {
			return false, wrongCondition(c.name, "needs a list of two values for between")
		}
		b.write(name, " BETWEEN ")
		b.value(c, json.RawMessage(pair[0].Raw))
		b.write(" AND ")
		b.value(c, json.RawMessage(pair[1].Raw))
	default:
		return false, wrongCondition(c.name, fmt.Sprintf("has the operator %q; choose =, !=, <, <=, >, >=, in, not_in, like, not_like, ilike, between, is_null or not_null", op))
	}
	return true, nil
}

func (b *builder) like(c tableColumn, op string, value gjson.Result) error {
	if value.Type != gjson.String {
		return wrongCondition(c.name, "needs a text for "+op)
	}
	raw := json.RawMessage(value.Raw)
	switch {
	case op == "ilike" && b.table.dialect == postgresDialect:
		b.write(b.name(c.name), " ILIKE ")
	case op == "ilike":
		raw = payload.AppendText(nil, strings.ToLower(value.Str))
		b.write("LOWER(", b.name(c.name), ") LIKE ")
	case op == "not_like":
		b.write(b.name(c.name), " NOT LIKE ")
	default:
		b.write(b.name(c.name), " LIKE ")
	}
	b.value(tableColumn{name: c.name}, raw)
	return nil
}

// oneOf writes IN. SQL has no empty list: nothing is in it, and everything is not.
func (b *builder) oneOf(c tableColumn, not bool, value gjson.Result) (bool, error) {
	if !value.IsArray() {
		return false, wrongCondition(c.name, "needs a list for in and not_in")
	}
	items := value.Array()
	if len(items) == 0 {
		if not {
			b.write("1 = 1")
			return false, nil
		}
		b.write("1 = 0")
		return true, nil
	}
	if len(items) > maxParameters/2 {
		return false, wrongCondition(c.name, fmt.Sprintf("has a list of %d values; at most %d are taken", len(items), maxParameters/2))
	}
	word := " IN ("
	if not {
		word = " NOT IN ("
	}
	b.write(b.name(c.name), word)
	for i, item := range items {
		if item.Type == gjson.Null {
			return false, wrongCondition(c.name, "has null in its list, which equals nothing; leave it out")
		}
		if i > 0 {
			b.write(", ")
		}
		b.value(c, json.RawMessage(item.Raw))
	}
	b.write(")")
	return true, nil
}

// each visits the fields of an object in order.
func each(raw json.RawMessage, visit func(key string, value json.RawMessage) error) (err error) {
	object := gjson.ParseBytes(raw)
	if !object.IsObject() {
		return nil
	}
	object.ForEach(func(key, value gjson.Result) bool {
		err = visit(key.Str, json.RawMessage(value.Raw))
		return err == nil
	})
	return err
}
