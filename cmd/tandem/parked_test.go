package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite/datadir"
)

// parked are the executions in testdata/release/schema-15.tar.gz: the data directory of a server of an earlier release, with version 15 of the database, as
// it was left when the server was killed. Each waits for something else. For each it is said what the record of a
// node has in the end.
var parked = []struct{ id, waits, has, want string }{
	{"exec_3obq54nf3wqrgx5wf7d7pgyadl", "for a person", "done.output_data.result.content.item", `"desk"`},
	{"exec_3obq54nhjpf27gezapqjtrsjik", "for a person", "done.output_data.result.content.item", `"lamp"`},
	{"exec_3obq54nglla5zcet5yug66n6q2", "for a person in the first of three iterations", "done.output_data.result.successful_iterations", "3"},
	{"exec_3obq54nh2pbmablqqhalmzq3hy", "for an execution below it, which waits for a person", "done.output_data.result.outputs.done.content.item", `"chair"`},
	{parkedSignal, "for a signal, beside a node that has ended", "both.output_data.result.merged_data.#", "2"},
	{"exec_3obq54ng42fpteau2tmicb42ji", "for a time that has passed since", "done.output_data.result.n", "12345678901234567890"},
}

const (
	parkedToken  = "fixture-token-of-an-earlier-release"
	parkedSignal = "exec_3obq54nflw2qzss3xm4abcixqo"
)

// What waited when a server of an earlier release was killed is finished by this one, with the revision and the rules that it began with: on the
// database that it is on, on PostgreSQL, and on Temporal.
func TestParked_EarlierRelease(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		server, said := serve(t, unpackParked(t), "TANDEM_TOKEN="+parkedToken)
		finishParked(t, printed(t, said, `http://127\.0\.0\.1:[0-9]+`))
		stop(t, server, syscall.SIGTERM)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		dir, address := unpackParked(t), withPassword(postgrestest.Start(t).Database(t))
		runCommand(t, 0, address, "migrate", "--data", dir)
		server, said := serve(t, dir, "TANDEM_TOKEN="+parkedToken, "TANDEM_DATABASE="+address)
		finishParked(t, printed(t, said, `http://127\.0\.0\.1:[0-9]+`))
		stop(t, server, syscall.SIGTERM)
	})
	t.Run("Temporal", func(t *testing.T) {
		t.Parallel()
		if os.Getenv(withoutTemporal) != "" {
			t.Skipf("NOTICE: %s is set: executions on Temporal are NOT TESTED", withoutTemporal)
		}
		dir, address := unpackParked(t), withPassword(postgrestest.Start(t).Database(t))
		runCommand(t, 0, address, "migrate", "--data", dir)
		env := []string{"TANDEM_TOKEN=" + parkedToken, "TANDEM_DATABASE=" + address, "TANDEM_TEMPORAL_ADDRESS=" + startTemporal(t).address, "TANDEM_TASK_QUEUE=parked"}
		server, said := serving(t, exec.CommandContext(t.Context(), "tandem", "serve", "--engine", "temporal", "--addr", "127.0.0.1:0", "--data", dir), env...)
		worker := exec.CommandContext(t.Context(), "tandem", "worker", "--addr", "127.0.0.1:0", "--data", dir)
		worker.Env, worker.Stderr = append(worker.Environ(), env...), t.Output()
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		finishParked(t, printed(t, said, `http://127\.0\.0\.1:[0-9]+`))
		stop(t, worker, syscall.SIGTERM)
		stop(t, server, syscall.SIGTERM)
	})
}

// unpackParked makes a copy of the data directory. Questions in it wait a week from now: those of an archive would grow old.
func unpackParked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join("testdata", "release", "schema-15.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for list := tar.NewReader(packed); ; {
		h, err := list.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(filepath.Join(dir, h.Name), 0o700)
		} else {
			var body []byte
			if body, err = io.ReadAll(list); err == nil {
				err = os.WriteFile(filepath.Join(dir, h.Name), body, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	week := time.Now().Add(7 * 24 * time.Hour).UnixMilli()
	for _, later := range []string{
		"UPDATE hil_interactions SET timeout_at = ?, next_at = ?1 WHERE timeout_at > 0", "UPDATE timers SET until = ? WHERE id LIKE 'wait#%'",
	} {
		if _, err := db.ExecContext(t.Context(), later, week); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// finishParked gives everything that waits what it waits for, until all have ended well.
func finishParked(t *testing.T, url string) {
	t.Helper()
	if status := asked(t, http.MethodPost, url+"/api/v1/executions/"+parkedSignal+"/input", parkedToken, `{"node_id":"wait","input_data":{"ok":true}}`, nil); status >= 300 {
		t.Errorf("the signal: status %d", status)
	}
	var all sync.WaitGroup
	for _, p := range parked {
		all.Go(func() { watchParked(t, url, p.id) })
	}
	all.Wait()
	for _, p := range parked {
		var raw json.RawMessage
		if status := asked(t, http.MethodGet, url+"/api/v1/executions/"+p.id, parkedToken, "", &raw); status != http.StatusOK {
			t.Fatalf("execution %s: status %d", p.id, status)
		}
		if got := gjson.GetBytes(raw, "execution.status").Str; got != "SUCCESS" {
			t.Errorf("the one that waited %s has the status %s", p.waits, got)
		}
		if got := gjson.GetBytes(raw, "execution.node_executions."+p.has).Raw; got != p.want {
			t.Errorf("the one that waited %s: %s is %s, want %s\n%s", p.waits, p.has, got, p.want, raw)
		}
	}
}

// watchParked follows an execution to its end. When it asks, all that is asked at that time is answered.
func watchParked(t *testing.T, url, id string) {
	watch := exec.CommandContext(t.Context(), "tandem", "executions", "watch", id, "--server", url)
	watch.Env = append(watch.Environ(), "TANDEM_TOKEN="+parkedToken)
	watch.WaitDelay = time.Minute
	out, err := watch.StdoutPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !strings.Contains(lines.Text(), "waiting_input") {
			continue
		}
		var open struct {
			Interactions []struct {
				ID string `json:"id"`
			} `json:"interactions"`
		}
		asked(t, http.MethodGet, url+"/api/v1/interactions?status=pending", parkedToken, "", &open)
		for _, q := range open.Interactions {
			status := asked(t, http.MethodPost, url+"/api/v1/interactions/"+q.ID+"/respond", parkedToken, `{"response_data":{"action":"approve"}}`, nil)
			if status != http.StatusOK && status != http.StatusConflict { // another watch may have answered it
				t.Errorf("a question of %s is not answered: %d", id, status)
			}
		}
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("watch %s: %v", id, err)
	}
}
