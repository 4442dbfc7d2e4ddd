package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"tandem/fault"
	"tandem/payload"
)

// mysqlServer is the connections to one MySQL or MariaDB.
type mysqlServer struct {
	pools     *Pools
	connector driver.Connector
	db        *sql.DB
	private   *private
	utc       bool // the session's clock is UTC, so a TIMESTAMP is an instant
}

func newMySQL(p *Pools, dsn string, private *private) (server, error) {
	config, err := mysql.ParseDSN(strings.TrimPrefix(dsn, "mysql://"))
	if err != nil {
		return nil, badDSN("cannot be read; write user:password@tcp(host:3306)/database")
	}
	if config.Net != "tcp" {
		return nil, fault.New(fault.BlockedAddress, "the dsn of the credential does not lead to a host; write user:password@tcp(host:3306)/database")
	}
	switch config.TLSConfig {
	case "", "true", "false", "skip-verify", "preferred":
	default:
		return nil, badDSN("has tls=%s; choose true, skip-verify, preferred or false", config.TLSConfig)
	}
	if config.ServerPubKey != "" {
		return nil, badDSN("has serverPubKey, which names a key of this machine; leave it out")
	}
	config.AllowAllFiles, config.MultiStatements, config.InterpolateParams, config.ParseTime = false, false, false, false
	config.ColumnsWithAlias, config.RejectReadOnly, config.AllowOldPasswords = false, false, false
	config.ClientFoundRows = true // an update counts the rows it matches, as elsewhere
	config.Logger = &mysql.NopLogger{}
	config.Timeout = connectTimeout
	config.DialFunc = p.dial
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	s := &mysqlServer{pools: p, private: private}
	if _, ok := config.Params["time_zone"]; !ok {
		config.Params["time_zone"] = "'+00:00'"
	}
	s.utc = config.Params["time_zone"] == "'+00:00'"
	if s.connector, err = mysql.NewConnector(config); err != nil {
		return nil, badDSN("cannot be used; check it")
	}
	s.db = sql.OpenDB(s.connector)
	s.db.SetMaxOpenConns(p.options.Connections)
	s.db.SetMaxIdleConns(p.options.Connections)
	s.db.SetConnMaxIdleTime(p.options.Idle)
	return s, nil
}

func (s *mysqlServer) dialect() dialect { return mysqlDialect }

func (s *mysqlServer) close() { _ = s.db.Close() } // what a connection says when it is closed helps nobody

func (s *mysqlServer) session(ctx context.Context, _ mode) (session, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	x := &mysqlSession{server: s, conn: conn}
	var version, sqlMode string
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), VERSION(), COALESCE(DATABASE(), ''), @@SESSION.sql_mode").Scan(&x.id, &version, &x.database, &sqlMode); err != nil {
		x.broken.Store(true)
		x.close(false)
		return nil, err
	}
	x.mariadb = strings.Contains(strings.ToLower(version), "mariadb")
	x.plain = strings.Contains(sqlMode, "NO_BACKSLASH_ESCAPES") || strings.Contains(sqlMode, "ANSI_QUOTES")
	// The driver only closes its end when a context ends; the server is told to stop over another connection.
	x.armed, x.stop = true, context.AfterFunc(ctx, x.kill)
	return x, nil
}

func (s *mysqlServer) explain(err error) *fault.Error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return s.private.clean(mysqlFault(e))
	}
	return nil
}

// mysqlSession is one connection to MySQL or MariaDB. It belongs to one goroutine, but kill runs in another.
type mysqlSession struct {
	server   *mysqlServer
	conn     *sql.Conn
	id       int64
	database string
	mariadb  bool
	// plain says that in some texts a backslash is one and hides no quote.
	plain  bool
	broken atomic.Bool
	// armed sessions are killed when their context ends; stop keeps that from happening.
	armed bool
	stop  func() bool
}

// disarm keeps the end of the context from killing the connection; false: that has happened.
func (s *mysqlSession) disarm() bool {
	if s.armed && !s.stop() {
		s.broken.Store(true)
	}
	s.armed = false
	return !s.broken.Load()
}

// kill ends the connection at the server.
func (s *mysqlSession) kill() {
	s.broken.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	conn, err := s.server.connector.Connect(ctx)
	if err != nil {
		return // the server cannot be told; it sees that the connection has ended when it answers
	}
	defer func() { _ = conn.Close() }() // it has done its work
	if e, ok := conn.(driver.ExecerContext); ok {
		_, _ = e.ExecContext(ctx, "KILL "+strconv.FormatInt(s.id, 10), nil) // a connection that is gone is what is wanted
	}
}

func (s *mysqlSession) dialect() dialect { return mysqlDialect }

func (s *mysqlSession) begin(ctx context.Context, m mode) error {
	text := "START TRANSACTION READ WRITE"
	if m == readOnly {
		text = "START TRANSACTION READ ONLY"
	}
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

func (s *mysqlSession) commit(ctx context.Context) error {
	if !s.disarm() {
		return context.Canceled // the connection is being killed, and COMMIT was not sent
	}
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	if err == nil {
		return nil
	}
	s.broken.Store(true)
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && !mysqlGone(e.Number) || errors.Is(err, driver.ErrBadConn) {
		return err // an answer, or nothing was sent
	}
	return &lostError{err}
}

func (s *mysqlSession) rollback(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "ROLLBACK")
	return err
}

func (s *mysqlSession) close(reuse bool) {
	if !s.disarm() || !reuse {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // the way to have it thrown away
	}
	_ = s.conn.Close() // gives it back; it says nothing of use
}

// returning says what MariaDB can return; MySQL returns nothing.
func (s *mysqlSession) returning(operation string) bool { return s.mariadb && operation != "update" }

func (s *mysqlSession) run(ctx context.Context, b bound, to *sink) (outcome, error) {
	if b.escapes && s.plain {
		// Where the text ends is read here as servers read it by default; this one could read SQL where a text was seen.
		return outcome{}, wrongStatement("has a backslash in a text, and the sql_mode of this server (NO_BACKSLASH_ESCAPES or ANSI_QUOTES) gives it another meaning; give the text as a parameter, or set sql_mode in the credential's dsn")
	}
	args, err := b.arguments()
	if err != nil {
		return outcome{}, err
	}
	if !b.returns {
		result, err := s.conn.ExecContext(ctx, b.sql, args...)
		if err != nil {
			return outcome{}, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return outcome{}, err
		}
		out := outcome{affected: n}
		if id, err := result.LastInsertId(); err == nil && id != 0 && (b.keyword == "INSERT" || b.keyword == "REPLACE") {
			out.lastID = appendUint(nil, uint64(id))
		}
		return out, nil
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	rows, err := s.conn.QueryContext(reading, b.sql, args...)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	return s.readRows(stop, rows, b, to)
}

// columnsOf are the columns of rows, with a value for each of them and what rows are scanned into to fill these.
func columnsOf(rows *sql.Rows) (columns []Column, values, targets []any, err error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, nil, err
	}
	columns, values, targets = make([]Column, len(types)), make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		columns[i] = Column{Name: t.Name(), Type: strings.ToLower(t.DatabaseTypeName())}
		targets[i] = &values[i]
	}
	return columns, values, targets, nil
}

func (s *mysqlSession) readRows(stop func(), rows *sql.Rows, b bound, to *sink) (outcome, error) {
	columns, values, targets, err := columnsOf(rows)
	if err != nil {
		return outcome{}, err
	}
	to.beginRows(columns)
	before := to.count
	for rows.Next() {
		if to.full() {
			// What is left would be read to its end otherwise, however much it is.
			s.broken.Store(true)
			stop()
			s.server.pools.background(s.kill)
			return outcome{}, nil
		}
		if err := rows.Scan(targets...); err != nil {
			return outcome{}, err
		}
		if err := to.addRow(func(dst []byte, i int) []byte { return s.server.append(dst, columns[i].Type, values[i]) }); err != nil {
			s.broken.Store(true)
			stop()
			s.server.pools.background(s.kill)
			return outcome{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return outcome{}, err
	}
	out := outcome{}
	if b.keyword == "INSERT" || b.keyword == "REPLACE" || b.keyword == "DELETE" {
		out.affected = int64(to.count - before) // those that RETURNING returned
	}
	return out, nil
}

// append writes a value of MySQL. JSON of MariaDB is a text there, so it is one here; BIT is a number.
func (s *mysqlServer) append(dst []byte, typ string, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case int64:
		return appendInt(dst, v)
	case uint64:
		return appendUint(dst, v)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case float64:
		return appendFloat(dst, v, 64)
	case time.Time:
		return payload.AppendText(dst, v.UTC().Format(time.RFC3339Nano))
	case string:
		return s.appendBytes(dst, typ, []byte(v))
	case []byte:
		return s.appendBytes(dst, typ, v)
	}
	return payload.AppendText(dst, fmt.Sprint(value))
}

func (s *mysqlServer) appendBytes(dst []byte, typ string, value []byte) []byte {
	text := string(value)
	switch strings.TrimPrefix(typ, "unsigned ") {
	case "decimal":
		return appendDecimal(dst, text)
	case "json":
		return appendJSON(dst, text)
	case "bit":
		var n uint64
		for _, b := range value {
			n = n<<8 | uint64(b)
		}
		return appendUint(dst, n)
	case "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary", "geometry", "vector":
		return payload.AppendText(dst, base64.StdEncoding.EncodeToString(value))
	case "datetime", "timestamp":
		text = strings.Replace(text, " ", "T", 1)
		if typ == "timestamp" && s.utc {
			text += "Z"
		}
	}
	return payload.AppendText(dst, text)
}

func (s *mysqlSession) explain(err error) *fault.Error { return s.server.explain(err) }

func (s *mysqlSession) strings(ctx context.Context, text string, args ...any) ([][]string, error) {
	rows, err := s.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		row, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		plain := make([]string, len(row))
		for i, v := range row {
			plain[i] = v.String
		}
		all = append(all, plain)
	}
	return all, rows.Err()
}

func (s *mysqlSession) table(ctx context.Context, name string) (*table, error) {
	// The conditions are constants, so that the server opens this table and no other.
	const text = `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, EXTRA FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`
	var found [][]string
	var err error
	if possible(name) {
		found, err = s.strings(ctx, text, s.database, name)
		if schema, rest, dotted := strings.Cut(name, "."); err == nil && len(found) == 0 && dotted {
			found, err = s.strings(ctx, text, schema, rest)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		all, err := s.strings(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY 1 LIMIT 1000", s.database)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, row := range all {
			names = append(names, row[0])
		}
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 && names[i] != name {
			return s.table(ctx, names[i])
		}
		return nil, noTable(name, names)
	}
	first := found[0]
	t := &table{dialect: mysqlDialect, schema: first[0], name: first[1]}
	t.quoted = mysqlDialect.quote(t.schema) + "." + mysqlDialect.quote(t.name)
	for _, row := range found {
		if row[1] != t.name {
			continue
		}
		t.columns = append(t.columns, tableColumn{name: row[2], typ: strings.ToLower(row[3])})
		if strings.Contains(strings.ToLower(row[4]), "auto_increment") {
			t.identity = row[2]
		}
	}
	engines, err := s.strings(ctx, "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND ENGINE IS NOT NULL", t.schema, t.name)
	if err != nil {
		return nil, err
	}
	if len(engines) > 0 { // a view has none
		safe, err := s.strings(ctx, "SELECT ENGINE FROM information_schema.ENGINES WHERE ENGINE = ? AND TRANSACTIONS = 'YES'", engines[0][0])
		if err != nil {
			return nil, err
		}
		t.unsafe = len(safe) == 0
	}
	keys, err := s.strings(ctx, `SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
		WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX`, t.schema, t.name)
	if err != nil {
		return nil, err
	}
	last := ""
	for i, row := range keys {
		if i == 0 || row[0] != last {
			t.unique = append(t.unique, nil)
			last = row[0]
		}
		t.unique[len(t.unique)-1] = append(t.unique[len(t.unique)-1], row[1])
	}
	return t, nil
}

// possible says whether a name can be that of a table: names have no characters beyond the first 65,536.
func possible(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r > 0xffff })
}

// mysqlGone lists the errors with which a server ends a connection instead of answering.
func mysqlGone(number uint16) bool {
	return number == 1053 || number == 1927 || number == 1077 || number == 1078 || number == 1079
}

// mysqlFault says what an error of the server means.
func mysqlFault(e *mysql.MySQLError) *fault.Error {
	return mysqlCode(e).With("sql_state", string(e.SQLState[:])).With("error_number", e.Number)
}

func mysqlCode(e *mysql.MySQLError) *fault.Error {
	switch e.Number {
	case 1213, 1205, 1020:
		return deadlocked(words(e.Message))
	case 1053, 1927, 1077, 1078, 1079, 1152, 1184:
		return lost(nil)
	case 1317, 1969, 3024:
		return fault.New(fault.Timeout, "the database stopped the statement: it took too long or was canceled; nothing was committed")
	case 1040, 1203, 1041, 1021, 1037, 1038:
		return said(fault.RemoteError, e.Message, "")
	case 1044, 1045, 1049, 1698, 1130, 1862, 1820:
		return fault.New(fault.CredentialInvalid, "the database refuses the credential; check user, password and database of its dsn")
	case 1142, 1143, 1227, 1370, 1410:
		return fault.New(fault.CredentialInvalid, "the user of the credential may not do this; grant it, or use another credential")
	case 1792:
		return fault.New(fault.InvalidInput, "a query reads and does not write; use ACTION.DATABASE_OPERATION")
	case 1062, 1586, 1169, 1451, 1452, 1216, 1217:
		return said(fault.Conflict, e.Message, "")
	case 1048, 1364, 1406, 1264, 1366, 1292, 1265, 1411, 3819, 4025, 1690, 1690 + 1, 3140, 3141, 1365, 1367:
		return said(fault.InvalidInput, e.Message, "")
	case 1146, 1051, 1109:
		return said(fault.NotFound, e.Message, "")
	case 1054, 1064, 1149, 1063, 1066, 1052, 1136, 1305, 1318, 1582, 1110, 1111, 1140, 1055:
		return said(fault.InvalidConfig, e.Message, "")
	case 1235, 1295:
		return said(fault.Unsupported, e.Message, "")
	case 1153, 1301:
		return said(fault.TooLarge, e.Message, "")
	}
	return said(fault.SQLError, e.Message, "")
}
