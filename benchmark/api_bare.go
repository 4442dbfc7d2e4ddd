package benchmark

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"tandem/store/postgres"
)

// bareAPI is the least that a server with a durable journal can be, and so the yardstick of the API: net/http and
// encoding/json on the bare journal. It decodes what a start carries and writes as many rows as Tandem does, of the same
// bytes, each on disk before the next; it reads the rows of an execution, or a page of executions, with prepared statements, and sends
// what Tandem would without making it from them; it tells the readers of a stream what was written. It knows no users, no workflows
// and no states.
type bareAPI struct {
	journal bareRows
	read    *sql.DB
	get     *sql.Stmt
	rows    *sql.Stmt
	list    *sql.Stmt
	sample  apiSample
	place   atomic.Int64
	total   atomic.Int64

	mu sync.Mutex
	// told is closed when there is another row for the readers of the stream. Frames are those of the rows, made once for all.
	told   chan struct{}
	frames [][]byte
}

func serveAPIBare(ctx context.Context, o SideOptions, started func(APISide)) (err error) {
	sample, err := readSample(o.Dir)
	if err != nil {
		return err
	}
	journal, err := openBareOn(ctx, o.Dir, o.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.stop()) }()
	b := &bareAPI{journal: journal, sample: sample, told: make(chan struct{})}
	if b.read, err = openRead(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.read.Close()) }()
	if err := b.open(ctx, o.Database != ""); err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/workflows/{id}/execute", b.execute)
	mux.HandleFunc("POST "+apiHookPath, b.hook)
	mux.HandleFunc("GET /api/v1/executions/{id}", b.getOne)
	mux.HandleFunc("GET /api/v1/executions", b.listPage)
	mux.HandleFunc("POST /api/v1/executions/{id}/input", b.signal)
	mux.HandleFunc("GET /api/v1/executions/{id}/events", b.events)
	// Without a time of its own for what lies idle, the one for headers would end connections while it is the other side's turn.
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Hour}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }() // it ends with Close, below
	started(APISide{URL: "http://" + listener.Addr().String()})
	<-ctx.Done()
	err = web.Close()
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// openRead opens the database that is read from.
func openRead(o SideOptions) (*sql.DB, error) {
	if o.Database != "" {
		config, err := postgres.Pool(o.Database) // as Tandem has it
		if err != nil {
			return nil, err
		}
		db := stdlib.OpenDB(*config.ConnConfig)
		db.SetMaxOpenConns(int(config.MaxConns))
		db.SetMaxIdleConns(int(config.MaxConns))
		return db, nil
	}
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(filepath.Join(o.Dir, "read.db"))}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	return db, nil
}

// open makes what is read: the summary and the rows of each execution, as long as Tandem's, laid out by execution.
func (b *bareAPI) open(ctx context.Context, server bool) (err error) {
	tables := []string{
		`CREATE TABLE executions (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, summary BLOB NOT NULL) STRICT`,
		`CREATE TABLE stored (place INTEGER PRIMARY KEY, time INTEGER NOT NULL, body BLOB NOT NULL) STRICT`,
	}
	if server {
		tables = []string{
			`CREATE TABLE executions (n bigint PRIMARY KEY, id text NOT NULL UNIQUE, summary bytea NOT NULL)`,
			`CREATE TABLE stored (place bigint PRIMARY KEY, time bigint NOT NULL, body bytea NOT NULL)`,
		}
	}
	for _, table := range tables {
		if _, err := b.read.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	if server {
		err = b.copyIn(ctx)
	} else {
		err = b.fill(ctx)
	}
	if err != nil {
		return err
	}
	b.total.Store(int64(b.sample.Executions))
	for _, s := range []struct {
		into **sql.Stmt
		text string
	}{
		{&b.get, `SELECT n, summary FROM executions WHERE id = $1`},
		{&b.rows, `SELECT time, body FROM stored WHERE place > $1 AND place < $2 ORDER BY place`},
		{&b.list, `SELECT summary FROM executions ORDER BY n DESC LIMIT 20`},
	} {
		if *s.into, err = b.read.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}

// copyIn fills the tables on a server, which takes no statement for each row.
func (b *bareAPI) copyIn(ctx context.Context) (err error) {
	conn, err := b.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	each := len(b.sample.Rows)
	return conn.Raw(func(driver any) error {
		raw, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver is a %T: %w", driver, errUnlike)
		}
		_, err := raw.Conn().CopyFrom(ctx, pgx.Identifier{"executions"}, []string{"n", "id", "summary"},
			pgx.CopyFromSlice(b.sample.Executions, func(n int) ([]any, error) {
				return []any{int64(n + 1), apiExecution(n), b.sample.Summary}, nil
			}))
		if err != nil {
			return err
		}
		_, err = raw.Conn().CopyFrom(ctx, pgx.Identifier{"stored"}, []string{"place", "time", "body"},
			pgx.CopyFromSlice(b.sample.Executions*each, func(i int) ([]any, error) {
				return []any{int64(i/each+1)<<32 | int64(i%each+1), time.Now().UnixMilli(), b.sample.Rows[i%each]}, nil
			}))
		return err
	})
}

func (b *bareAPI) fill(ctx context.Context) (err error) {
	tx, err := b.read.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	execution, err := tx.PrepareContext(ctx, `INSERT INTO executions (n, id, summary) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	row, err := tx.PrepareContext(ctx, `INSERT INTO stored (place, time, body) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	for n := range b.sample.Executions {
		if _, err := execution.ExecContext(ctx, n+1, apiExecution(n), b.sample.Summary); err != nil {
			return err
		}
		for seq, body := range b.sample.Rows {
			if _, err := row.ExecContext(ctx, int64(n+1)<<32|int64(seq+1), time.Now().UnixMilli(), body); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

func (b *bareAPI) execute(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Inputs      map[string]json.RawMessage `json:"inputs"`
		WaitSeconds float64                    `json:"wait_seconds"`
	}
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil || r.PathValue("id") == "" || want.Inputs == nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	run := b.place.Add(1)
	for n, body := range b.sample.Rows {
		if err := b.journal.append(run<<32|int64(n+1), time.Now().UnixMilli(), body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	b.answer(w, b.sample.Execute)
}

// hook keeps what a webhook has brought in one row and sends the answer that Tandem's workflow comes to.
func (b *bareAPI) hook(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := b.journal.append(b.place.Add(1)<<32, time.Now().UnixMilli(), body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.answer(w, b.sample.Hook)
}

func (b *bareAPI) answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has left does not concern the measurement
}

func (b *bareAPI) getOne(w http.ResponseWriter, r *http.Request) {
	n, err := b.readRows(r.Context(), r.PathValue("id"))
	if err == nil && n != len(b.sample.Rows) {
		err = fmt.Errorf("the execution has %d rows: %w", n, errUnlike)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	b.answer(w, b.sample.Get)
}

// readRows reads the summary of an execution and its rows, and says how many rows there are.
func (b *bareAPI) readRows(ctx context.Context, id string) (count int, err error) {
	var n int64
	var summary []byte
	if err := b.get.QueryRowContext(ctx, id).Scan(&n, &summary); err != nil {
		return 0, err
	}
	rows, err := b.rows.QueryContext(ctx, n<<32, (n+1)<<32)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var at int64
		var body []byte
		if err := rows.Scan(&at, &body); err != nil {
			return 0, err
		}
		count++
	}
	return count, rows.Err()
}

func (b *bareAPI) listPage(w http.ResponseWriter, r *http.Request) {
	rows, err := b.list.QueryContext(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer rows.Close()
	var page []json.RawMessage
	for rows.Next() {
		var summary []byte
		if err := rows.Scan(&summary); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page = append(page, summary)
	}
	body, err := json.Marshal(map[string]any{"executions": page, "total_count": b.total.Load(), "page": 1, "page_size": 20})
	if err := errors.Join(err, rows.Err()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.answer(w, body)
}

// signal writes a row and tells the readers.
func (b *bareAPI) signal(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Node string          `json:"node_id"`
		Data json.RawMessage `json:"input_data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := b.journal.append(b.place.Add(1)<<32, time.Now().UnixMilli(), b.sample.Rows[0]); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b.mu.Lock()
	b.frames = append(b.frames, b.sample.framesOf(len(b.frames)))
	close(b.told)
	b.told = make(chan struct{})
	b.mu.Unlock()
	b.answer(w, []byte(`{"status":"RUNNING"}`))
}

// events sends every reader the frames of the rows that come.
func (b *bareAPI) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	b.mu.Lock()
	sent, told := len(b.frames), b.told
	b.mu.Unlock()
	if _, err := fmt.Fprint(w, ": hello\n\n"); err != nil || control.Flush() != nil {
		return
	}
	for {
		select {
		case <-told:
		case <-r.Context().Done():
			return
		}
		b.mu.Lock()
		frames := b.frames
		told = b.told
		b.mu.Unlock()
		for ; sent < len(frames); sent++ {
			if _, err := w.Write(frames[sent]); err != nil {
				return
			}
		}
		if control.Flush() != nil {
			return
		}
	}
}

// framesOf are the frames of a signal, as Tandem would send them.
func (s *apiSample) framesOf(n int) []byte {
	return bytes.ReplaceAll(s.Frames, []byte(apiSignalMark(0)), []byte(apiSignalMark(n)))
}

// apiSignalMark is in the frames that tell of the n-th signal, and in no others.
func apiSignalMark(n int) string {
	return strings.Repeat("=", 3) + "signal " + strconv.Itoa(n) + strings.Repeat("=", 3)
}
