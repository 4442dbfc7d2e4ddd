package sqlite

import (
	"reflect"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"tandem/store/relational"
	"tandem/store/sqlite/sqlconn"
)

// Prepared tells of all statements that are prepared on the connections of a database how often SQLite has prepared them anew.
// The driver does not tell, so the handles are taken out of its connections.
func Prepared(t *testing.T, db *DB) map[string]int {
	t.Helper()
	seen := map[string]int{}
	look := func(raw any) {
		c := reflect.ValueOf(raw).Elem()
		handle, tls := uintptr(c.FieldByName("db").Uint()), (*libc.TLS)(c.FieldByName("tls").UnsafePointer())
		for st := lib.Xsqlite3_next_stmt(tls, handle, 0); st != 0; st = lib.Xsqlite3_next_stmt(tls, handle, st) {
			text := libc.GoString(lib.Xsqlite3_sql(tls, st))
			seen[text] += int(lib.Xsqlite3_stmt_status(tls, st, lib.SQLITE_STMTSTATUS_REPREPARE, 0))
		}
	}
	look(db.writer.c.Raw())
	var readers func(left int)
	readers = func(left int) { // one inside the other, so that each has another connection
		if left == 0 {
			return
		}
		if err := db.read.Use(t.Context(), func(c relational.Reader) error {
			look(c.(*sqlconn.Conn).Raw())
			readers(left - 1)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	readers(4)
	return seen
}
