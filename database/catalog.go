package database

import (
	"fmt"
	"slices"
	"strings"

	"tandem/fault"
)

// table is a table as the database knows it. Names in statements are those from here, never those that were given.
type table struct {
	dialect      dialect
	schema, name string
	quoted       string
	columns      []tableColumn
	// identity is the column whose values the database makes, if there is one.
	identity string
	// unsafe tables have no transactions: what was written stays.
	unsafe bool
	// unique are the columns of each unique key, where the database has to be asked for them.
	unique [][]string
}

type tableColumn struct{ name, typ string }

// column finds a column by its name, or by its name in another letter case if only one is called so.
func (t *table) column(name, field string) (tableColumn, error) {
	if i := slices.IndexFunc(t.columns, func(c tableColumn) bool { return c.name == name }); i >= 0 {
		return t.columns[i], nil
	}
	var found []tableColumn
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
		if strings.EqualFold(c.name, name) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	hint := "; it has " + strings.Join(shortened(names), ", ")
	if near := fault.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return tableColumn{}, fault.Newf(fault.InvalidConfig, "table %q has no column %q%s", t.name, name, hint).With("path",
		"configurations."+field).With("column", name)
}

// noTable is the error for a table that does not exist.
func noTable(name string, names []string) error {
	hint := "; the database has no tables that this user sees"
	if len(names) > 0 {
		hint = "; there are " + strings.Join(shortened(names), ", ")
	}
	if near := fault.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fault.Newf(fault.NotFound, "the database has no table %q%s", name, hint).With("path", "configurations.table").With("table", name)
}

func shortened(names []string) []string {
	if len(names) > 20 {
		return append(slices.Clone(names[:20]), "…")
	}
	return names
}
