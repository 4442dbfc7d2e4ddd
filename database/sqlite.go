package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"modernc.org/libc"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"tandem/fault"
	"tandem/payload"
	"tandem/shortage"
)

// sqliteServer is the connections to one SQLite file of a workspace.
type sqliteServer struct {
	dir     string // of the workspace
	file    string // inside it, with slashes
	pools   *Pools
	address string
	private *private

	mu sync.Mutex
	db *sql.DB // connections to the file that is there
	// there is that file as it was last seen.
	there fs.FileInfo
}

// sqliteBusy is how long a statement waits for another that writes.
const sqliteBusy = 5 * time.Second

func newSQLite(p *Pools, workspace, dsn string, private *private) (server, error) {
	dir, err := p.workspaceDir(workspace)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(dsn, "sqlite:"), "file:"), "//")
	forbidden := func(why string) error {
		return fault.Newf(fault.ForbiddenPath, "the dsn of the credential %s; give the path of a file inside the workspace, such as \"data/shop.db\"", why)
	}
	switch {
	case name == "" || strings.HasPrefix(name, ":memory:"):
		return nil, badDSN("names no file; give the path of a file inside the workspace, such as \"data/shop.db\"")
	case strings.ContainsAny(name, "?#%"):
		return nil, badDSN("has settings or escapes after the path; give the path alone")
	case strings.ContainsAny(name, "\\:\x00"):
		return nil, forbidden("is not a plain path")
	case strings.HasPrefix(name, "/"):
		return nil, forbidden("is an absolute path")
	}
	name = path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
		return nil, forbidden("leads out of the workspace")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".tandem") {
			return nil, forbidden("leads to what the workspace keeps for itself")
		}
	}
	s := &sqliteServer{dir: dir, file: name, pools: p, private: private}
	absolute, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(absolute), RawQuery: "mode=rw"}
	s.address = address.String()
	if s.db, err = s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// open makes room for connections; there are none yet.
func (s *sqliteServer) open() (*sql.DB, error) {
	db, err := sql.Open("sqlite", s.address)
	if err != nil {
		return nil, badDSN("cannot be used; check it")
	}
	db.SetMaxOpenConns(s.pools.options.Connections)
	db.SetMaxIdleConns(2)
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}

func (s *sqliteServer) dialect() dialect { return sqliteDialect }

func (s *sqliteServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.db.Close() // nothing is left to do about it
}

// find makes sure that the path is a file inside the workspace and no link leads away from it. A database that is to be
// written is made if it does not exist: an empty file is an empty database.
func (s *sqliteServer) find(m mode) (found fs.FileInfo, err error) {
	if m == readWrite {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, shortage.Or(err, fault.New(fault.Internal, "the directory of the workspace cannot be made"))
		}
	}
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.missing()
	}
	if err != nil {
		return nil, shortage.Or(err, fault.New(fault.Internal, "the directory of the workspace cannot be opened"))
	}
	defer func() {
		if cerr := root.Close(); err == nil {
			err = cerr
		}
	}()
	parts := strings.Split(s.file, "/")
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		last := i == len(parts)-1
		if found, err = root.Lstat(at); errors.Is(err, fs.ErrNotExist) && m == readWrite && last {
			f, ferr := root.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if ferr == nil {
				ferr = f.Close()
			}
			if ferr != nil && !errors.Is(ferr, fs.ErrExist) { // somebody else has made it meanwhile
				return nil, fault.New(fault.ForbiddenPath, "the file of the credential cannot be made in the workspace").WithDetail(innermost(ferr))
			}
			found, err = root.Lstat(at)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, s.missing()
		case err != nil:
			return nil, fault.New(fault.ForbiddenPath, "the file of the credential cannot be reached in the workspace").WithDetail(innermost(err))
		case last && !found.Mode().IsRegular(), !last && !found.IsDir():
			return nil, fault.New(fault.ForbiddenPath, "the path of the credential does not lead over directories to a file; links are not followed")
		}
	}
	return found, nil
}

// connections are those to the file that was found. When another has taken its place, those to the one before end: they
// have a file open that nobody else sees.
func (s *sqliteServer) connections(found fs.FileInfo) (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there != nil && !os.SameFile(s.there, found) {
		db, err := s.open()
		if err != nil {
			return nil, err
		}
		old := s.db
		s.db = db
		s.pools.background(func() { _ = old.Close() }) // what is in use ends with its use
	}
	s.there = found
	return s.db, nil
}

func (s *sqliteServer) missing() error {
	return fault.New(fault.NotFound, "the file of the credential does not exist in the workspace; the first operation that writes makes it, if its directory exists")
}

func (s *sqliteServer) session(ctx context.Context, m mode) (session, error) {
	found, err := s.find(m)
	if err != nil {
		return nil, err
	}
	db, err := s.connections(found)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	x := &sqliteSession{server: s, conn: conn, mode: m, own: true}
	for id, limit := range map[int]int{lib.SQLITE_LIMIT_ATTACHED: 0, lib.SQLITE_LIMIT_LENGTH: maxMessage} { // order does not matter
		if _, err := sqlite.Limit(conn, id, limit); err != nil {
			x.close(false)
			return nil, err
		}
	}
	err = conn.Raw(func(c any) error {
		r, ok := c.(sqlite.AuthorizerRegisterer)
		if !ok {
			return fault.New(fault.Internal, "SQLite cannot be guarded by this program")
		}
		var err error
		if x.handle, err = sqliteHandle(c); err != nil {
			return err
		}
		return r.RegisterAuthorizer(x.authorize)
	})
	if err != nil {
		x.close(false)
		return nil, err
	}
	for _, text := range []string{
		"PRAGMA busy_timeout = 5000", "PRAGMA foreign_keys = ON", "PRAGMA trusted_schema = OFF",
		map[mode]string{readOnly: "PRAGMA query_only = ON", readWrite: "PRAGMA query_only = OFF"}[m],
	} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			x.close(false)
			return nil, err
		}
	}
	return x, nil
}

func (s *sqliteServer) explain(err error) *fault.Error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.private.clean(sqliteFault(e, readWrite))
	}
	return nil
}

// sqliteSession is one connection to a SQLite file.
type sqliteSession struct {
	server *sqliteServer
	conn   *sql.Conn
	mode   mode
	// own statements are those of this package; others may do less.
	own bool
	// handle is what SQLite calls the connection.
	handle uintptr
}

// authorize is asked by SQLite for everything a statement would do, whatever way it is written.
func (s *sqliteSession) authorize(action sqlite.AuthorizerActionCode, one, two, _, _ string) sqlite.AuthorizerReturnCode {
	if s.own {
		return sqlite.AuthorizerOK
	}
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if reachesOut(two) {
			return sqlite.AuthorizerDeny
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthPragma:
		if readingPragma(one) {
			return sqlite.AuthorizerOK
		}
		return sqlite.AuthorizerDeny
	case sqlite.AuthAttach, sqlite.AuthDetach, sqlite.AuthTransaction, sqlite.AuthSavepoint:
		return sqlite.AuthorizerDeny
	}
	if s.mode == readOnly {
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

// reachesOut says that a function of SQLite, or of its usual extensions, reads or writes files, starts programs or loads code. Not all are
// built in.
func reachesOut(function string) bool {
	switch strings.ToLower(function) {
	case "load_extension", "readfile", "writefile", "edit", "lsdir", "fsdir", "lsmode", "fts3_tokenizer", "sqlar_compress",
		"sqlar_uncompress", "zipfile", "shell_putsnl":
		return true
	}
	return false
}

func (s *sqliteSession) dialect() dialect { return sqliteDialect }

func (s *sqliteSession) begin(ctx context.Context, m mode) error {
	text := "BEGIN IMMEDIATE"
	if m == readOnly {
		text = "BEGIN"
	}
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

func (s *sqliteSession) commit(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == lib.SQLITE_IOERR {
		return &lostError{err} // the disk did not say how it ended
	}
	return err
}

func (s *sqliteSession) rollback(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "ROLLBACK")
	return err
}

func (s *sqliteSession) close(reuse bool) {
	s.own = true
	if !reuse {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // the way to have it thrown away
	}
	_ = s.conn.Close() // gives it back; it says nothing of use
}

func (s *sqliteSession) returning(string) bool { return true }

func (s *sqliteSession) run(ctx context.Context, b bound, to *sink) (outcome, error) {
	s.own = false
	defer func() { s.own = true }()
	args, err := b.arguments()
	if err != nil {
		return outcome{}, err
	}
	if !b.returns {
		result, err := s.conn.ExecContext(ctx, b.sql, args...)
		if err != nil {
			return outcome{}, err
		}
		out := outcome{}
		switch b.keyword { // other statements leave the counters of the one before
		case "INSERT", "REPLACE":
			if id, err := result.LastInsertId(); err == nil && id != 0 {
				out.lastID = appendInt(nil, id)
			}
			fallthrough
		case "UPDATE", "DELETE", "WITH":
			if out.affected, err = result.RowsAffected(); err != nil {
				return outcome{}, err
			}
		}
		return out, nil
	}
	rows, err := s.conn.QueryContext(ctx, b.sql, args...)
	if err != nil {
		return outcome{}, err
	}
	defer s.interruptible(ctx)()
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	return s.readRows(rows, b, to)
}

// interruptible stops the statement when the context ends: the driver does so until the first row is there, and then no
// more. What it returns is called when the rows are closed, and lets nothing be stopped after that.
func (s *sqliteSession) interruptible(ctx context.Context) (end func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		tls := libc.NewTLS()
		defer tls.Close()
		lib.Xsqlite3_interrupt(tls, s.handle)
	})
	return func() {
		if !stop() {
			<-over // the handle is used until then
		}
	}
}

// sqliteHandle is SQLite's own name of a connection, which the driver keeps to itself. read-only
func sqliteHandle(conn any) (uintptr, error) {
	v := reflect.ValueOf(conn)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if field := v.FieldByName("db"); field.IsValid() && field.Kind() == reflect.Uintptr && field.Uint() != 0 {
			return uintptr(field.Uint()), nil
		}
	}
	return 0, fault.New(fault.Internal, "statements of SQLite cannot be stopped by this program")
}

func (s *sqliteSession) readRows(rows *sql.Rows, b bound, to *sink) (outcome, error) {
	columns, values, targets, err := columnsOf(rows)
	if err != nil {
		return outcome{}, err
	}
	to.beginRows(columns)
	before := to.count
	for rows.Next() {
		if to.full() {
			return outcome{}, nil
		}
		if err := rows.Scan(targets...); err != nil {
			return outcome{}, err
		}
		if err := to.addRow(func(dst []byte, i int) []byte { return appendSQLite(dst, columns[i].Type, values[i]) }); err != nil {
			return outcome{}, err
		}
	}
	out := outcome{}
	switch b.keyword {
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		out.affected = int64(to.count - before)
	}
	return out, rows.Err()
}

// appendSQLite writes a value of SQLite, which has five types; what a column was declared as makes a boolean, JSON or a
// time of some.
func appendSQLite(dst []byte, declared string, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case int64:
		if (declared == "boolean" || declared == "bool") && (v == 0 || v == 1) {
			if v == 1 {
				return append(dst, "true"...)
			}
			return append(dst, "false"...)
		}
		return appendInt(dst, v)
	case float64:
		return appendFloat(dst, v, 64)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case []byte:
		return payload.AppendText(dst, base64.StdEncoding.EncodeToString(v))
	case time.Time: // the driver reads the texts of columns that are declared as times; without a zone they are UTC
		if v = v.UTC(); declared == "date" {
			return payload.AppendText(dst, v.Format(time.DateOnly))
		}
		return payload.AppendText(dst, v.Format(time.RFC3339Nano))
	case string:
		if declared == "json" || declared == "jsonb" {
			return appendJSON(dst, v)
		}
		return payload.AppendText(dst, v)
	}
	return append(dst, "null"...) // the driver knows no other type
}

func (s *sqliteSession) explain(err error) *fault.Error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.server.private.clean(sqliteFault(e, s.mode))
	}
	return nil
}

func (s *sqliteSession) table(ctx context.Context, name string) (_ *table, err error) {
	rows, err := s.conn.QueryContext(ctx, `SELECT m.name, c.name, c.type, c.pk, (SELECT count(*) FROM pragma_table_xinfo(m.name) k WHERE k.pk > 0), m.name = ?1
		FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c
		WHERE m.type IN ('table', 'view') AND lower(m.name) = lower(?1) AND c.hidden IN (0, 2, 3) ORDER BY m.name <> ?1, m.name, c.cid`, name)
	if err != nil {
		return nil, err
	}
	t := &table{dialect: sqliteDialect}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for rows.Next() {
		var tableName, column, typ string
		var key, keys int
		var exact bool
		if err := rows.Scan(&tableName, &column, &typ, &key, &keys, &exact); err != nil {
			return nil, err
		}
		if t.name == "" {
			t.name, t.quoted = tableName, sqliteDialect.quote(tableName)
		}
		if t.name != tableName {
			continue
		}
		t.columns = append(t.columns, tableColumn{name: column, typ: strings.ToLower(typ)})
		if key == 1 && keys == 1 && strings.EqualFold(typ, "integer") {
			t.identity = column
		}
	}
	if err := rows.Err(); err != nil || t.name != "" {
		return t, err
	}
	names, err := s.names(ctx)
	if err != nil {
		return nil, err
	}
	return nil, noTable(name, names)
}

func (s *sqliteSession) names(ctx context.Context) ([]string, error) {
	rows, err := s.conn.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1 LIMIT 1000")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// sqliteFault says what an error of SQLite means.
func sqliteFault(e *sqlite.Error, m mode) *fault.Error {
	text := strings.TrimPrefix(e.Error(), "SQL logic error: ")
	code := e.Code()
	f := sqliteCode(code, text, m)
	return f.With("error_number", code)
}

func sqliteCode(code int, text string, m mode) *fault.Error {
	switch code {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID, lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return said(fault.Conflict, text, "")
	}
	switch code & 0xff {
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_RANGE:
		return said(fault.InvalidInput, text, "")
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return deadlocked("the file was locked for longer than " + sqliteBusy.String())
	case lib.SQLITE_READONLY:
		if m == readOnly {
			return fault.New(fault.InvalidInput, "a query reads and does not write; use ACTION.DATABASE_OPERATION")
		}
		return said(fault.ForbiddenPath, text, "; the file cannot be written")
	case lib.SQLITE_AUTH:
		if m == readOnly {
			return fault.New(fault.InvalidInput, "a query reads and does not write; use ACTION.DATABASE_OPERATION")
		}
		return fault.New(fault.Forbidden, "the statement is not taken: a database of the workspace reaches no other file, and the node begins and ends the transaction")
	case lib.SQLITE_INTERRUPT:
		return fault.New(fault.Timeout, "the statement was stopped; nothing was committed")
	case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
		return fault.New(fault.CredentialInvalid, "the file of the credential is not an SQLite database, or is damaged")
	case lib.SQLITE_CANTOPEN:
		return fault.New(fault.NotFound, "the file of the credential cannot be opened")
	case lib.SQLITE_TOOBIG, lib.SQLITE_NOMEM:
		return said(fault.TooLarge, text, "")
	case lib.SQLITE_FULL, lib.SQLITE_IOERR:
		return said(fault.RemoteError, text, "")
	case lib.SQLITE_ERROR:
		switch {
		case strings.Contains(text, "no such table"):
			return said(fault.NotFound, text, "")
		case strings.Contains(text, "too many attached"):
			return fault.New(fault.Forbidden, "the statement is not taken: a database of the workspace reaches no other file")
		}
		return said(fault.InvalidConfig, text, "")
	}
	return said(fault.SQLError, text, "")
}
