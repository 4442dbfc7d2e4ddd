// Package database reads and writes the databases that people's credentials lead to: PostgreSQL, MySQL and MariaDB, and
// SQLite files of a workspace.
//
// [Pools.Query] runs one statement that reads, in a transaction that cannot write and is rolled back. [Pools.Do] runs one
// operation that writes, in one transaction, and says of a failure whether the database can have taken it. Values only
// ever travel beside a statement, never in it. Names of tables and columns are looked up in the database's own catalogue
// and quoted.
//
// Connections are pooled per credential and bounded. They go through the guarded dialler, so private addresses are
// refused; SQLite opens files in the directory of the workspace and nowhere else.
//
// What comes back is JSON. Whole numbers beyond 2^53 and decimals of more than 15 digits are texts, as are NaN and
// Infinity; bytes are base64; instants are RFC 3339 in UTC, times without a zone are written without one; arrays and JSON
// of PostgreSQL are lists and values; every other type is the text that the database writes for it. Bytes are given as
// {"base64": "…"}. Sessions of MySQL have UTC as their time zone unless the dsn says otherwise.
//
// The package is not where Tandem keeps its own data (the store is) and knows nothing of nodes. The kinds that work on
// databases import it, and so does the package that puts a program together.
package database

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
)

// What pools do when their options do not say.
const (
	DefaultPools       = 100
	DefaultConnections = 8
	DefaultIdle        = 5 * time.Minute
)

const (
	// connectTimeout bounds making one connection, commitTimeout waiting for the answer to COMMIT, and cleanTimeout what
	// is done after a node has ended.
	connectTimeout = 15 * time.Second
	commitTimeout  = 30 * time.Second
	cleanTimeout   = 5 * time.Second
)

// Options are the limits and seams of pools. Zero values mean the defaults above.
type Options struct {
	// Dial connects to a server; it is the guard's. Nil: no server can be reached.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Files is the directory that has one directory per workspace, for SQLite. Empty: there is none.
	Files string
	// Pools is how many credentials have connections at once, Connections how many each, Idle how long they are kept
	// after their last use.
	Pools, Connections int
	Idle               time.Duration
}

// Target is the credential a database is reached with.
type Target struct {
	Workspace string
	// Credential is its id, Data its fields: driver and dsn. Other data under the same id closes the old connections.
	Credential string
	Data       json.RawMessage
}

// Pools are the connections of all credentials. It is safe for concurrent use.
type Pools struct {
	options Options

	mu     sync.Mutex
	closed bool
	pools  map[poolKey]*pool
	work   sync.WaitGroup // what ends connections in the background
}

// poolKey names a credential.
type poolKey struct{ workspace, credential string }

// pool is the connections of one credential. Pools.mu guards its fields but server.
type pool struct {
	key    poolKey
	sum    [sha256.Size]byte // of all the credential holds
	server server
	users  int
	stale  bool // out of the table: closed by its last user
	idle   *time.Timer
	used   time.Time
}

// server makes sessions of one credential.
type server interface {
	dialect() dialect
	session(ctx context.Context, m mode) (session, error)
	// explain turns an error of making a connection into what a user reads.
	explain(err error) *fault.Error
	close()
}

// New makes pools. Nothing is connected before it is needed.
func New(o Options) *Pools {
	if o.Pools <= 0 {
		o.Pools = DefaultPools
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	return &Pools{options: o, pools: map[poolKey]*pool{}}
}

// Close ends all connections that nobody uses; those in use end with their use.
func (p *Pools) Close() {
	p.mu.Lock()
	p.closed = true
	for key := range p.pools {
		p.retire(key)
	}
	p.mu.Unlock()
	p.work.Wait()
}

// Len is how many credentials have connections.
func (p *Pools) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pools)
}

// retire takes a pool out of the table and closes it, now or when its last user has gone. The lock is held.
func (p *Pools) retire(key poolKey) {
	q := p.pools[key]
	delete(p.pools, key)
	q.stale = true
	if q.idle != nil {
		q.idle.Stop()
	}
	if q.users == 0 {
		p.work.Go(q.server.close)
	}
}

// background does something that nobody waits for but Close.
func (p *Pools) background(f func()) {
	p.mu.Lock()
	if !p.closed {
		p.work.Go(f)
		f = func() {}
	}
	p.mu.Unlock()
	f() // Close may be over already
}

// acquire returns the pool of a credential; release is called when its use has ended.
func (p *Pools) acquire(t Target) (q *pool, release func(), err error) {
	sum := sha256.Sum256(t.Data)
	key := poolKey{t.Workspace, t.Credential}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, fault.New(fault.Canceled, "the program is stopping")
	}
	if q = p.pools[key]; q != nil && q.sum != sum {
		p.retire(key) // the credential was changed
		q = nil
	}
	if q == nil {
		if err := p.makeRoom(); err != nil {
			return nil, nil, err
		}
		s, err := p.open(t)
		if err != nil {
			return nil, nil, err
		}
		q = &pool{key: key, sum: sum, server: s}
		p.pools[key] = q
	}
	q.users++
	if q.idle != nil {
		q.idle.Stop()
		q.idle = nil
	}
	return q, sync.OnceFunc(func() { p.release(q) }), nil
}

func (p *Pools) release(q *pool) {
	p.mu.Lock()
	q.users--
	last := q.users == 0
	if last && !q.stale {
		q.used = time.Now()
		q.idle = time.AfterFunc(p.options.Idle, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !p.closed && !q.stale && q.users == 0 && time.Since(q.used) >= p.options.Idle {
				p.retire(q.key)
			}
		})
	}
	stale := q.stale
	p.mu.Unlock()
	if last && stale {
		q.server.close()
	}
}

// makeRoom lets another pool in: the one that was not used for longest goes. The lock is held.
func (p *Pools) makeRoom() error {
	if len(p.pools) < p.options.Pools {
		return nil
	}
	var oldest *pool
	for _, q := range p.pools { // order does not matter: the oldest is looked for
		if q.users == 0 && (oldest == nil || q.used.Before(oldest.used)) {
			oldest = q
		}
	}
	if oldest == nil {
		return fault.Newf(fault.RateLimited, "%d databases are in use at once, which is the limit; the node tries again", p.options.Pools)
	}
	p.retire(oldest.key)
	return nil
}

// open reads the credential. Nothing is connected yet.
func (p *Pools) open(t Target) (server, error) {
	var fields struct {
		Driver string `json:"driver"`
		DSN    string `json:"dsn"`
	}
	if err := json.Unmarshal(t.Data, &fields); err != nil {
		return nil, fault.New(fault.CredentialInvalid, "the credential cannot be read; save it again")
	}
	secrets, err := Credential().Secrets(t.Data)
	if err != nil {
		return nil, fault.New(fault.CredentialInvalid, "the credential cannot be read; save it again")
	}
	private := &private{}
	private.redactor.Hold(append(secrets, fields.DSN)...) // as long as the pool lives
	switch dialect(fields.Driver) {
	case postgresDialect:
		return newPostgres(p, fields.DSN, private)
	case mysqlDialect:
		return newMySQL(p, fields.DSN, private)
	case sqliteDialect:
		return newSQLite(p, t.Workspace, fields.DSN, private)
	}
	return nil, fault.Newf(fault.CredentialInvalid, "the credential has the driver %q; choose postgres, mysql or sqlite", fields.Driver)
}

// workspaceDir is where the SQLite files of a workspace are.
func (p *Pools) workspaceDir(workspace string) (string, error) {
	if p.options.Files == "" {
		return "", fault.New(fault.Unsupported, "there is no directory for files here, so SQLite cannot be used")
	}
	if err := identity.CheckWorkspace(workspace); err != nil {
		return "", err
	}
	return filepath.Join(p.options.Files, workspace), nil
}

// dial connects through the guard.
func (p *Pools) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.options.Dial == nil {
		return nil, fault.New(fault.Unsupported, "no database server can be reached from here")
	}
	conn, err := p.options.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &metered{Conn: conn}, nil
}

// metered is a connection whose peer cannot send without end: what comes between two requests is bounded.
type metered struct {
	net.Conn
	read int64 // by the one who reads
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if m.read += int64(n); m.read > maxWire {
		return 0, fault.Newf(fault.TooLarge, "the answer of the database has more than %d bytes; ask for less", maxWire).With("limit", maxWire)
	}
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	m.read = 0
	return m.Conn.Write(b)
}

// private keeps what is in a dsn out of what is said.
type private struct{ redactor credential.Redactor }

func (p *private) clean(f *fault.Error) *fault.Error { return p.redactor.Fault(f) }
