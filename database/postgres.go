package database

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"tandem/fault"
)

// postgres is the connections to one PostgreSQL.
type postgres struct {
	pool    *pgxpool.Pool
	private *private

	mu    sync.Mutex
	types map[uint32]postgresType
}

// postgresType is what the catalogue says of a type.
type postgresType struct {
	name string
	elem uint32 // of an array
	base uint32 // of a domain
}

// errClosed is a connection that had ended before it was used. read-only
var errClosed = errors.New("the connection is closed")

// maxMessage is how large one message of a server may be: a row, or an error.
const maxMessage = 16 << 20

func badDSN(format string, args ...any) *fault.Error {
	return fault.Newf(fault.CredentialInvalid, "the dsn of the credential "+format, args...)
}

func newPostgres(p *Pools, dsn string, private *private) (server, error) {
	settings, err := postgresSettings(dsn)
	if err != nil {
		return nil, err
	}
	// The library would fill what is missing from the environment and from files; every field is set here instead.
	config, err := pgxpool.ParseConfig("host=database.invalid port=5432 user=nobody password=x dbname=none sslmode=disable target_session_attrs=any")
	if err != nil {
		return nil, badDSN("cannot be used here: PG* variables of the environment are in the way")
	}
	c := &config.ConnConfig.Config
	port, err := strconv.ParseUint(settings.get("port", "5432"), 10, 16)
	if err != nil {
		return nil, badDSN("has no port that is a number")
	}
	c.Host, c.Port, c.User, c.Password = settings.get("host", ""), uint16(port), settings.get("user", ""), settings.get("password", "")
	c.Database = settings.get("dbname", c.User)
	switch {
	case c.Host == "":
		return nil, badDSN("names no host; write postgres://user:password@host:5432/database")
	case strings.ContainsAny(c.Host, `/\,@`):
		return nil, fault.New(fault.BlockedAddress, "the dsn of the credential does not lead to one host; sockets of this machine and lists of hosts are not taken")
	case c.User == "":
		return nil, badDSN("names no user; write postgres://user:password@host:5432/database")
	}
	c.RuntimeParams = map[string]string{"application_name": settings.get("application_name", "tandem")}
	for _, name := range []string{"search_path", "options"} {
		if value := settings.get(name, ""); value != "" {
			c.RuntimeParams[name] = value
		}
	}
	if err := postgresTLS(c, settings.get("sslmode", "prefer")); err != nil {
		return nil, err
	}
	c.ConnectTimeout = connectTimeout
	c.KerberosSrvName, c.KerberosSpn, c.OAuthTokenProvider = "", "", nil
	c.ValidateConnect, c.AfterConnect, c.OnNotice, c.OnNotification, c.OnPgError = nil, nil, nil, nil, nil
	c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil } // the guard looks it up
	c.DialFunc = p.dial
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(maxMessage)
		return f
	}
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(p.options.Connections), 0, 0
	config.MaxConnIdleTime = p.options.Idle
	s := &postgres{private: private, types: map[uint32]postgresType{}}
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, badDSN("cannot be used; check it")
	}
	return s, nil
}

// dsnSettings are the parts of a dsn by name.
type dsnSettings map[string]string

func (s dsnSettings) get(name, otherwise string) string {
	if v := s[name]; v != "" {
		return v
	}
	return otherwise
}

// postgresSettings reads a dsn, an address or a list of name=value. What would read a file or another address is refused.
func postgresSettings(dsn string) (dsnSettings, error) {
	settings := dsnSettings{}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		u, err := url.Parse(dsn)
		if err != nil {
			return nil, badDSN("is not an address; write postgres://user:password@host:5432/database, with special characters of the password as %%40 and so on")
		}
		settings["host"], settings["port"], settings["dbname"] = u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/")
		if u.User != nil {
			settings["user"] = u.User.Username()
			settings["password"], _ = u.User.Password()
		}
		for name, values := range u.Query() { // order does not matter: one entry per name
			settings[name] = values[0]
		}
	} else if err := keywordSettings(dsn, settings); err != nil {
		return nil, err
	}
	if name, ok := settings["database"]; ok && settings["dbname"] == "" {
		settings["dbname"] = name
	}
	for name, value := range settings { // order does not matter: any one that is refused will do
		switch name {
		case "host", "port", "user", "password", "dbname", "database", "sslmode", "application_name", "search_path", "options":
		case "connect_timeout", "pool_max_conns", "target_session_attrs", "channel_binding", "gssencmode", "client_encoding":
		case "sslcert", "sslkey", "sslrootcert", "sslpassword", "passfile", "service", "servicefile", "krbsrvname":
			if value == "system" && name == "sslrootcert" {
				continue
			}
			return nil, badDSN("has %s, which reads a file of this machine; leave it out", name)
		default:
			return nil, badDSN("has %q, which is not known; leave it out", name)
		}
	}
	return settings, nil
}

// keywordSettings reads name=value name='value with spaces'.
func keywordSettings(text string, into dsnSettings) error {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, rest, ok := strings.Cut(text, "=")
		name, rest = strings.TrimSpace(name), strings.TrimLeft(rest, " ")
		if !ok || name == "" || strings.ContainsAny(name, " '") {
			return badDSN("cannot be read; write postgres://user:password@host:5432/database, or name=value for each part")
		}
		var value strings.Builder
		quoted := strings.HasPrefix(rest, "'")
		i := 0
		if quoted {
			i = 1
		}
		for closed := false; ; i++ {
			if i >= len(rest) {
				if quoted {
					return badDSN("has a quote that does not end")
				}
				break
			}
			if closed = quoted && rest[i] == '\'' || !quoted && rest[i] == ' '; closed {
				i++
				break
			}
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			}
			value.WriteByte(rest[i])
		}
		into[name], text = value.String(), rest[min(i, len(rest)):]
	}
	return nil
}

// postgresTLS sets what sslmode asks for.
func postgresTLS(c *pgconn.Config, mode string) error {
	unverified := &tls.Config{ServerName: c.Host, InsecureSkipVerify: true} // what these modes mean
	c.TLSConfig, c.Fallbacks, c.SSLNegotiation = nil, nil, "postgres"
	switch mode {
	case "disable":
	case "allow", "prefer":
		c.TLSConfig = unverified
		c.Fallbacks = []*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}
	case "require":
		c.TLSConfig = unverified
	case "verify-ca", "verify-full":
		c.TLSConfig = &tls.Config{ServerName: c.Host}
	default:
		return badDSN("has the sslmode %q; choose disable, prefer, require or verify-full", mode)
	}
	return nil
}

func (s *postgres) dialect() dialect { return postgresDialect }

func (s *postgres) close() { s.pool.Close() }

func (s *postgres) session(ctx context.Context, _ mode) (session, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &postgresSession{server: s, conn: conn, pg: conn.Conn().PgConn()}, nil
}

func (s *postgres) explain(err error) *fault.Error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return s.private.clean(postgresFault(e))
	}
	return nil
}

// postgresSession is one connection to PostgreSQL. Statements go out in the extended protocol, unnamed, with all values
// and results as text: nothing is left in the connection, so poolers in between do not mind.
type postgresSession struct {
	server *postgres
	conn   *pgxpool.Conn
	pg     *pgconn.PgConn
}

func (s *postgresSession) dialect() dialect { return postgresDialect }

func (s *postgresSession) begin(ctx context.Context, m mode) error {
	text := "BEGIN READ WRITE"
	if m == readOnly {
		text = "BEGIN READ ONLY"
	}
	text += "; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3; SET LOCAL standard_conforming_strings = on"
	_, err := s.pg.Exec(ctx, text).ReadAll()
	return err
}

func (s *postgresSession) commit(ctx context.Context) error {
	if s.pg.IsClosed() {
		return errClosed
	}
	results, err := s.pg.Exec(ctx, "COMMIT").ReadAll()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || e.Severity == "PANIC" {
			return &lostError{err} // the server went away while it was at it
		}
		return err
	}
	if err != nil {
		// Whatever the library says: for a connection that ends now it says that nothing was sent.
		return &lostError{err}
	}
	if len(results) != 1 || results[0].CommandTag.String() != "COMMIT" {
		return fault.New(fault.SQLError, "the database rolled the transaction back instead of committing it")
	}
	return nil
}

func (s *postgresSession) rollback(ctx context.Context) error {
	_, err := s.pg.Exec(ctx, "ROLLBACK").ReadAll()
	return err
}

func (s *postgresSession) close(reuse bool) {
	if reuse {
		s.conn.Release() // ends it if it is broken or still in a transaction
		return
	}
	conn := s.conn.Hijack()
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	_ = conn.Close(ctx) // it is being thrown away
}

func (s *postgresSession) returning(string) bool { return true }

func (s *postgresSession) run(ctx context.Context, b bound, to *sink) (outcome, error) {
	described, err := s.pg.Prepare(ctx, "", b.sql, nil)
	if err != nil {
		return outcome{}, err
	}
	oids := slices.Clone(described.ParamOIDs)
	for _, f := range described.Fields {
		oids = append(oids, f.DataTypeOID)
	}
	if looked, err := s.learn(ctx, oids); err != nil {
		return outcome{}, err
	} else if looked { // asking has taken the place of the unnamed statement
		if _, err := s.pg.Prepare(ctx, "", b.sql, described.ParamOIDs); err != nil {
			return outcome{}, err
		}
	}
	if len(b.values) != len(described.ParamOIDs) {
		return outcome{}, fault.Newf(fault.InvalidConfig, "the database reads %d parameters in the statement, and there are %d values; write each as :name, or set marks apart", len(described.ParamOIDs), len(b.values))
	}
	values := make([][]byte, len(b.values))
	for i, raw := range b.values {
		if values[i], err = s.server.encode(described.ParamOIDs[i], raw); err != nil {
			return outcome{}, err
		}
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	result := s.pg.ExecPrepared(reading, "", values, nil, nil)
	fields := result.FieldDescriptions()
	if len(fields) > 0 {
		columns := make([]Column, len(fields))
		for i, f := range fields {
			columns[i] = Column{Name: f.Name, Type: s.server.name(f.DataTypeOID)}
		}
		to.beginRows(columns)
	}
	for result.NextRow() {
		if to.full() {
			stop() // ends the statement at the server, and the connection with it
			break
		}
		row := result.Values()
		if err := to.addRow(func(dst []byte, i int) []byte { return s.server.append(dst, fields[i].DataTypeOID, row[i]) }); err != nil {
			stop()
			_, _ = result.Close() // it was stopped; the reason is told
			return outcome{}, err
		}
	}
	tag, err := result.Close()
	if to.truncated {
		return outcome{}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{affected: affected(tag)}, nil
}

// affected is how many rows were changed; those that were only read do not count.
func affected(tag pgconn.CommandTag) int64 {
	if tag.Insert() || tag.Update() || tag.Delete() || strings.HasPrefix(tag.String(), "MERGE") {
		return tag.RowsAffected()
	}
	return 0
}

// learn asks the catalogue for types that are not known yet.
func (s *postgresSession) learn(ctx context.Context, oids []uint32) (asked bool, err error) {
	for {
		var missing []string
		s.server.mu.Lock()
		for _, oid := range oids {
			if _, ok := s.server.types[oid]; !ok && oid != 0 {
				missing = append(missing, strconv.FormatUint(uint64(oid), 10))
			}
		}
		s.server.mu.Unlock()
		if len(missing) == 0 {
			return asked, nil
		}
		asked = true
		result := s.pg.ExecParams(ctx, "SELECT oid, typname, CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END, typbasetype FROM pg_catalog.pg_type WHERE oid = ANY ($1::oid[])",
			[][]byte{[]byte("{" + strings.Join(missing, ",") + "}")}, nil, nil, nil).Read()
		if result.Err != nil {
			return asked, result.Err
		}
		oids = nil
		s.server.mu.Lock()
		if len(s.server.types) > 10_000 {
			clear(s.server.types)
		}
		for _, text := range missing { // a type that is gone meanwhile is known to be unknown
			n, _ := strconv.ParseUint(text, 10, 32) // written above
			s.server.types[uint32(n)] = postgresType{name: "unknown"}
		}
		for _, row := range result.Rows {
			var n [3]uint32
			for i, column := range []int{0, 2, 3} {
				v, perr := strconv.ParseUint(string(row[column]), 10, 32)
				if perr != nil {
					err = perr
				}
				n[i] = uint32(v)
			}
			s.server.types[n[0]] = postgresType{name: string(row[1]), elem: n[1], base: n[2]}
			oids = append(oids, n[1], n[2])
		}
		s.server.mu.Unlock()
		if err != nil {
			return asked, err
		}
	}
}

func (s *postgres) typ(oid uint32) postgresType {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.types[oid]
}

// name is what people call a type: integer[] and not _int4.
func (s *postgres) name(oid uint32) string {
	t := s.typ(oid)
	if t.elem != 0 {
		return s.name(t.elem) + "[]"
	}
	return t.name
}

func (s *postgresSession) explain(err error) *fault.Error { return s.server.explain(err) }

// table finds a table in the catalogue.
func (s *postgresSession) table(ctx context.Context, name string) (*table, error) {
	schema, rest, dotted := strings.Cut(name, ".")
	found, err := s.lookup(ctx, "", name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && dotted {
		if found, err = s.lookup(ctx, schema, rest); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		names, err := s.names(ctx)
		if err != nil {
			return nil, err
		}
		return nil, noTable(name, names)
	}
	exact := slices.ContainsFunc(found, func(row [][]byte) bool { return string(row[1]) == name || dotted && string(row[1]) == rest })
	t := &table{dialect: postgresDialect}
	for _, row := range found {
		if rowName := string(row[1]); exact && rowName != name && !(dotted && rowName == rest) {
			continue
		}
		if t.quoted == "" {
			t.schema, t.name = string(row[0]), string(row[1])
			t.quoted = postgresDialect.quote(t.schema) + "." + postgresDialect.quote(t.name)
		}
		if string(row[0]) != t.schema || string(row[1]) != t.name {
			continue
		}
		c := tableColumn{name: string(row[2]), typ: string(row[3])}
		if string(row[4]) == "t" && t.identity == "" {
			t.identity = c.name
		}
		t.columns = append(t.columns, c)
	}
	return t, nil
}

// lookup lists the columns of the tables with a name in any letter case, those first on the search path first.
func (s *postgresSession) lookup(ctx context.Context, schema, name string) ([][][]byte, error) {
	const text = `SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
		a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false)
	FROM pg_catalog.pg_class c
	JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND lower(c.relname) = lower($1)
		AND CASE WHEN $2 = '' THEN n.nspname = ANY (current_schemas(false)) ELSE lower(n.nspname) = lower($2) END
	ORDER BY c.relname <> $1, array_position(current_schemas(false), n.nspname), n.nspname, c.relname, a.attnum`
	result := s.pg.ExecParams(ctx, text, [][]byte{[]byte(name), []byte(schema)}, []uint32{25, 25}, nil, nil).Read()
	return result.Rows, result.Err
}

func (s *postgresSession) names(ctx context.Context) ([]string, error) {
	result := s.pg.ExecParams(ctx, `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY (current_schemas(false)) ORDER BY 1 LIMIT 1000`, nil, nil, nil, nil).Read()
	var names []string
	for _, row := range result.Rows {
		names = append(names, string(row[0]))
	}
	return names, result.Err
}
