package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tandem/fault"
)

const (
	// oldest is the oldest version of PostgreSQL that is supported, as the server numbers them.
	oldest = 150000
	// connectTimeout is how long a server may take to answer, unless the address says otherwise.
	connectTimeout = 10 * time.Second
	// leastConns is how many connections there may be at least, unless the address says otherwise: those who read do not wait for those
	// who write.
	leastConns = 12
)

// IsURL says whether a text is meant as the address of a database of PostgreSQL.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// address is where a database is, for people: whoever reads a message must not learn the password.
type address struct{ user, host, name string }

func addressOf(c *pgx.ConnConfig) address {
	host := c.Host
	if !strings.HasPrefix(host, "/") { // not the directory of a socket
		host = net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	}
	return address{c.User, host, c.Database}
}

// String implements [fmt.Stringer].
func (a address) String() string { return fmt.Sprintf("%q on %s", a.name, a.host) }

// Beside is the address of another database on the same server, for the same user.
func Beside(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", unreadable("is not an address")
	}
	u.Path = "/" + name
	q := u.Query()
	q.Del("dbname")
	q.Del("database")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Pool is how connections to a database are made.
func Pool(address string) (*pgxpool.Config, error) { return configure(address) }

// Where is a database, for people: without the password.
func Where(address string) (string, error) {
	config, err := configure(address)
	if err != nil {
		return "", err
	}
	return addressOf(config.ConnConfig).String(), nil
}

// unreadable is the refusal of an address. Nothing of it is repeated: it may have a password anywhere.
func unreadable(why string) error {
	return fault.Newf(fault.Invalid, "the address of the database (--database, TANDEM_DATABASE) %s; write it as postgres://USER:PASSWORD@HOST:PORT/NAME, with %% and two digits for signs in the password that an address cannot have", why)
}

// configure reads the address of a database.
func configure(text string) (*pgxpool.Config, error) {
	if !IsURL(text) {
		return nil, unreadable("does not begin with postgres://")
	}
	if _, err := url.Parse(text); err != nil {
		return nil, unreadable("is not an address")
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, unreadable("has a part that cannot be read")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !strings.Contains(text, "pool_max_conns=") {
		config.MaxConns = max(config.MaxConns, leastConns)
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = fmt.Sprintf("tandem, process %d", os.Getpid())
	}
	config.AfterConnect = settle
	return config, nil
}

// stayAlive are settings by which a server finds out within half a minute that a machine is gone without a word.
const stayAlive = `set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`

// settings are those of every connection that reads and writes, whatever the role or the database have as theirs. That a commit is on
// disk when it is acknowledged is a promise of ours; how many copies have it by then is for the server to say, so that only off is
// raised. The two that follow end transactions of a machine that is gone. Who is alive gives a transaction up before that, and reads
// what it has asked for.
const settings = `set_config('default_transaction_isolation', 'read committed', false),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
	set_config('idle_in_transaction_session_timeout', $1, false), set_config('tcp_user_timeout', '60000', false)`

// backend is a process of the server that has a connection of ours. Others have the same number before and after it.
type backend struct {
	pid   int64
	began time.Time
}

// backendKey is where a connection keeps its [backend].
const backendKey = "backend"

// backendOf is the process that has a connection.
func backendOf(conn *pgx.Conn) backend {
	b, _ := conn.PgConn().CustomData()[backendKey].(backend)
	return b
}

// settle prepares a connection of a pool.
func settle(ctx context.Context, conn *pgx.Conn) error {
	return introduce(ctx, conn, stayAlive+`, `+settings, strconv.FormatInt((commitTimeout+time.Minute).Milliseconds(), 10))
}

// introduce makes the settings of a connection, and notes which process of the server has it.
func introduce(ctx context.Context, conn *pgx.Conn, settings string, args ...any) error {
	var b pgx.Batch
	var own backend
	b.Queue(`SELECT `+settings, args...)
	b.Queue(`SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`).QueryRow(func(row pgx.Row) error { return row.Scan(&own.pid, &own.began) })
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	conn.PgConn().CustomData()[backendKey] = own
	return nil
}

// endTimeout is how long it is waited for a process of the server to end.
const endTimeout = 5 * time.Second

// end ends a process of the server, if it is still the same, and waits a little for that. It returns also when it does not end.
func (b backend) end(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid, $3) FROM pg_stat_activity
		WHERE pid = $1 AND backend_start = $2 AND datname = current_database() AND application_name = current_setting('application_name')`,
		b.pid, b.began, endTimeout.Milliseconds())
	return err
}

// connect reaches a database and looks whether it is one that can be used.
func connect(ctx context.Context, text string) (*pgxpool.Pool, error) {
	return connectBy(ctx, text, &lines{})
}

// connectBy is connect with the lines that connections are.
func connectBy(ctx context.Context, text string, by *lines) (*pgxpool.Pool, error) {
	return connectPrepared(ctx, text, by, nil)
}

// connectPrepared is connectBy with something that is done with each connection before it is used; nil: nothing.
func connectPrepared(ctx context.Context, text string, by *lines, prepare func(context.Context, *pgx.Conn) (bool, error)) (*pgxpool.Pool, error) {
	config, err := configure(text)
	if err != nil {
		return nil, err
	}
	config.PrepareConn = prepare
	by.through(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, explain(config.ConnConfig, err)
	}
	if err := usable(ctx, pool); err != nil {
		pool.Close()
		return nil, explain(config.ConnConfig, err)
	}
	return pool, nil
}

// usable refuses servers that are too old, and databases that do not take every text.
func usable(ctx context.Context, pool *pgxpool.Pool) error {
	var version, encoding string
	var standby bool
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&version, &encoding, &standby); err != nil {
		return err
	}
	return suits(version, encoding, standby)
}

// suits says whether a server can be used, by what it tells of itself.
func suits(version, encoding string, standby bool) error {
	number, err := strconv.Atoi(version)
	if err != nil {
		return fmt.Errorf("the server has the version %q: %w", version, err)
	}
	switch {
	case number < oldest:
		return fault.Newf(fault.Invalid, "the server is PostgreSQL %d, and Tandem needs %d or newer; upgrade it, or name another with --database (TANDEM_DATABASE)", number/10000, oldest/10000)
	case encoding != "UTF8":
		return fault.Newf(fault.Invalid, "the database has the encoding %s, which does not take every text; make one with UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0), and name it with --database (TANDEM_DATABASE)", encoding)
	case standby:
		return fault.New(fault.Invalid, "the server is a standby, which takes no changes; name the primary with --database (TANDEM_DATABASE), or all of them with target_session_attrs=read-write")
	}
	return nil
}

// Codes of errors that a person can do something about.
const (
	noDatabase  = "3D000"
	noRight     = "42501"
	noRole      = "28000"
	badPassword = "28P01"
	tooMany     = "53300"
)

// explain says in words what keeps a database from being opened, and what to do about it.
func explain(c *pgx.ConnConfig, err error) error {
	at := addressOf(c)
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if _, refused := errors.AsType[*pgconn.ConnectError](err); refused {
			return fault.Newf(fault.NetworkError, "the database %s cannot be reached; start its server, or correct --database (TANDEM_DATABASE)", at).WithCause(err)
		}
		return err
	}
	say := func(code fault.Code, text string, args ...any) error {
		return fault.Newf(code, text, args...).WithCause(err)
	}
	switch e.Code {
	case noDatabase:
		return say(fault.NotFound, "there is no database %s; make it (CREATE DATABASE), or correct --database (TANDEM_DATABASE)", at)
	case noRight:
		return say(fault.Forbidden, "the user %q lacks a right in the database %s: %s; make the user its owner (ALTER DATABASE … OWNER TO …), or name another with --database (TANDEM_DATABASE)", at.user, at, e.Message)
	case noRole, badPassword:
		return say(fault.Unauthorized, "the server of the database %s does not let the user %q in; correct the user and the password in --database (TANDEM_DATABASE), or what pg_hba.conf allows", at, at.user)
	case tooMany:
		return say(fault.Shortage, "the server of the database %s has no connection left; raise its max_connections, or use fewer with pool_max_conns in --database (TANDEM_DATABASE)", at)
	}
	return fmt.Errorf("open the database %s: %w", at, err)
}

// known is the version that this program brings databases to.
func known() (int64, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		return 0, errors.Join(errors.New("there are no migrations"), err)
	}
	last := slices.Max(files)
	return strconv.ParseInt(strings.TrimPrefix(last[:strings.Index(last, "_")], "migrations/"), 10, 64)
}

// Inspection is what can be said of a database without opening it.
type Inspection struct {
	// Where is the database, without the password, and Server the version of what keeps it.
	Where, Server string
	// Version is the one that the database has, zero when there is nothing of Tandem in it, and Known the one that this program brings
	// it to.
	Version, Known int64
	// InUse says that a process owns the database, and Public that every role of its server may connect to it.
	InUse, Public bool
	// Credentials is how many there are, Size what the database takes up.
	Credentials, Size int64
}

// Inspect looks at a database without changing it.
func Inspect(ctx context.Context, text string) (i Inspection, err error) {
	pool, err := connect(ctx, text)
	if err != nil {
		return i, err
	}
	defer pool.Close()
	i.Where = addressOf(pool.Config().ConnConfig).String()
	if i.Known, err = known(); err != nil {
		return i, err
	}
	var there bool
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version'), pg_database_size(current_database()), to_regclass('goose_db_version') IS NOT NULL, EXISTS (SELECT 1 FROM pg_locks
		WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND classid = $1 AND objid = $2 AND objsubid = 1),
		has_database_privilege('public', current_database(), 'CONNECT')`,
		ownerLock>>32, ownerLock&0xffffffff).Scan(&i.Server, &i.Size, &there, &i.InUse, &i.Public); err != nil || !there {
		return i, err
	}
	if err := pool.QueryRow(ctx, hasVersion).Scan(&i.Version); err != nil || i.Version == 0 {
		return i, err
	}
	var credentials bool
	if err := pool.QueryRow(ctx, `SELECT to_regclass('credentials') IS NOT NULL`).Scan(&credentials); err != nil || !credentials {
		return i, err
	}
	return i, pool.QueryRow(ctx, `SELECT count(*) FROM credentials`).Scan(&i.Credentials)
}
