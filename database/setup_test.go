package database_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"tandem/database"
	"tandem/fault"
	"tandem/outbound"
)

// The servers that start has started: the address of PostgreSQL, the dsn of MariaDB, and the port of a way over TCP to the
// former, since nodes reach nothing else. stops ends them; TestMain calls it.
var (
	postgresURL  string
	mariadbDSN   string
	postgresPort string
	stops        []func() error
)

// start starts the servers, when the first test wants one: fuzzing wants none.
var start = sync.OnceValue(func() (err error) {
	if postgresURL, err = startServer("postgres.sh"); err != nil {
		return fmt.Errorf("no PostgreSQL for the tests: %w", err)
	}
	if mariadbDSN, err = startServer("mariadb.sh"); err != nil {
		return fmt.Errorf("no MariaDB for the tests: %w", err)
	}
	way, err := newProxy(postgresDial)
	if err != nil {
		return err
	}
	stops = append([]func() error{way.close}, stops...)
	postgresPort = way.port()
	return nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range stops {
		if err := stop(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func startServer(script string) (string, error) {
	path, err := filepath.Abs("../scripts/" + script)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("/tmp", "tandem-db") // a short path: it holds a socket
	if err != nil {
		return "", err
	}
	command := exec.Command(path, "start", dir)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s start: %w; install the server, or run the tests as root on Debian", script, err)
	}
	stops = append(stops, func() error {
		defer os.RemoveAll(dir)
		if out, err := exec.Command(path, "stop", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%s stop: %w: %s", script, err, out)
		}
		return nil
	})
	return strings.TrimSpace(string(out)), nil
}

func postgresDial() (net.Conn, error) {
	u, err := url.Parse(postgresURL)
	if err != nil {
		return nil, err
	}
	return net.Dial("unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
}

func mariadbDial() (net.Conn, error) {
	c, err := mysql.ParseDSN(mariadbDSN)
	if err != nil {
		return nil, err
	}
	return net.Dial("tcp", c.Addr)
}

// proxy stands between a client and a server. It can cut a connection at a word.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu    sync.Mutex
	conns map[net.Conn]bool
	word  string // in what a client sends
	// pass says whether what has the word is still handed to the server, whose answer is then lost.
	pass bool
	hits int
	work sync.WaitGroup
}

func newProxy(dial func() (net.Conn, error)) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, dial: dial, conns: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	return p, nil
}

func (p *proxy) port() string {
	_, port, _ := net.SplitHostPort(p.listener.Addr().String())
	return port
}

// cutAt cuts the connection in which a client sends the word, once.
func (p *proxy) cutAt(word string, pass bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.pass, p.hits = word, pass, 0
}

func (p *proxy) cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := p.dial()
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		end := sync.OnceFunc(func() {
			_, _ = client.Close(), server.Close()
			p.mu.Lock()
			delete(p.conns, client)
			delete(p.conns, server)
			p.mu.Unlock()
		})
		var mute atomic.Bool
		p.work.Go(func() { p.forward(server, client, true, &mute, end) })
		p.work.Go(func() { p.forward(client, server, false, &mute, end) })
	}
}

func (p *proxy) forward(to, from net.Conn, fromClient bool, mute *atomic.Bool, end func()) {
	defer end()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			cut := fromClient && p.word != "" && p.hits == 0 && bytes.Contains(buffer[:n], []byte(p.word))
			pass := p.pass
			if cut {
				p.hits++
			}
			p.mu.Unlock()
			if cut && !pass || !fromClient && mute.Load() {
				return // the answer is lost, and so what was asked for is done
			}
			if cut {
				mute.Store(true)
			}
			if _, werr := to.Write(buffer[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// rig is one database of a test's own.
type rig struct {
	t       *testing.T
	driver  string
	pools   *database.Pools
	target  database.Target
	files   string
	through *proxy
	// admin is a connection beside the pools.
	admin *sql.DB
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// rigs runs a test on every database.
func rigs(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, driver := range []string{"postgres", "mysql", "sqlite"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, driver))
		})
	}
}

// servers runs a test on the databases that are reached over a network.
func servers(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, driver))
		})
	}
}

func newRig(t *testing.T, driver string) *rig {
	t.Helper()
	check(t, start())
	r := &rig{t: t, driver: driver, files: t.TempDir()}
	name := unfit.ReplaceAllString(strings.ToLower(t.Name()), "_")
	if len(name) > 50 {
		name = name[len(name)-50:]
	}
	var dsn string
	switch driver {
	case "postgres":
		conn, err := pgx.Connect(t.Context(), postgresURL)
		check(t, err)
		_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
		check(t, err)
		check(t, conn.Close(t.Context()))
		r.through, err = newProxy(postgresDial)
		check(t, err)
		dsn = "postgres://tandem:" + canary + "@127.0.0.1:" + r.through.port() + "/postgres?sslmode=disable&search_path=" + name
	case "mysql":
		admin, err := sql.Open("mysql", mariadbDSN)
		check(t, err)
		_, err = admin.Exec("CREATE DATABASE `" + name + "`")
		check(t, err)
		_, err = admin.Exec("CREATE USER IF NOT EXISTS 'canary'@'127.0.0.1' IDENTIFIED BY '" + canary + "'")
		check(t, err)
		_, err = admin.Exec("GRANT ALL ON *.* TO 'canary'@'127.0.0.1'")
		check(t, err)
		r.admin = admin
		t.Cleanup(func() { check(t, admin.Close()) })
		r.through, err = newProxy(mariadbDial)
		check(t, err)
		dsn = "canary:" + canary + "@tcp(127.0.0.1:" + r.through.port() + ")/" + name
	case "sqlite":
		dsn = "shop.db"
	}
	if r.through != nil {
		t.Cleanup(func() { check(t, r.through.close()) })
	}
	r.pools = pools(t, r.files, database.Options{})
	r.target = r.with(dsn)
	return r
}

const canary = "c4nary-s3cret-value"

func pools(t *testing.T, files string, o database.Options) *database.Pools {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	check(t, err)
	client := outbound.New(outbound.Options{Allow: allow})
	if o.Dial == nil {
		o.Dial = client.DialContext
	}
	o.Files = files
	p := database.New(o)
	t.Cleanup(p.Close)
	return p
}

// with is the target with another dsn.
func (r *rig) with(dsn string) database.Target {
	data, err := json.Marshal(map[string]string{"driver": r.driver, "dsn": dsn})
	check(r.t, err)
	return database.Target{Workspace: "default", Credential: "cred_1", Data: data}
}

func (r *rig) dsn() string {
	var fields struct {
		DSN string `json:"dsn"`
	}
	check(r.t, json.Unmarshal(r.target.Data, &fields))
	return fields.DSN
}

// do carries an operation out that must succeed.
func (r *rig) do(o database.Operation) database.Result {
	r.t.Helper()
	result, err := r.pools.Do(r.t.Context(), r.target, o)
	if err != nil {
		r.t.Fatalf("%s: %v (%s)", o.Kind, err, fault.From(err).Detail)
	}
	return result
}

// execute runs statements, one after the other.
func (r *rig) execute(statements ...string) {
	r.t.Helper()
	for _, s := range statements {
		r.do(database.Operation{Kind: database.Execute, Statements: []database.Text{text(s)}})
	}
}

func text(sql string) database.Text { return database.Text{Words: []string{sql}} }

func with(sql, parameters string) database.Text {
	return database.Text{Words: []string{sql}, Parameters: json.RawMessage(parameters)}
}

func (r *rig) query(q database.Text) (database.Rows, error) {
	return r.pools.Query(r.t.Context(), r.target, database.Query{Text: q, MaxRows: 1000})
}

// wantRows compares the rows of a query.
func (r *rig) wantRows(q database.Text, want string) {
	r.t.Helper()
	rows, err := r.query(q)
	if err != nil {
		r.t.Fatalf("%v: %v (%s)", q.Words, err, fault.From(err).Detail)
	}
	if diff := cmp.Diff(want, string(rows.Rows)); diff != "" {
		r.t.Errorf("%v (-want +got):\n%s", q.Words, diff)
	}
}

func rowsOf(rows ...string) []json.RawMessage {
	var list []json.RawMessage
	for _, row := range rows {
		list = append(list, json.RawMessage(row))
	}
	return list
}

// wantFault checks an error's code, what it says, and whether it may be tried again.
func wantFault(t *testing.T, err error, code fault.Code, retryable bool, part string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it worked, want %s with %q", code, part)
	}
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		t.Fatalf("got %v (%s), want %s with %q", err, fault.From(err).Detail, code, part)
	}
	if f := fault.From(err); f.Retryable != retryable {
		t.Errorf("%v: retryable is %v", err, f.Retryable)
	}
	if raw, merr := json.Marshal(fault.From(err)); merr != nil || strings.Contains(string(raw), canary) {
		t.Errorf("the error tells the secret, or cannot be written: %s %v", raw, merr)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
