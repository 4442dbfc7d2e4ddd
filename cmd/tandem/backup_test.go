package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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

	"tandem/credential"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// asked calls the API and reads its answer; it returns the status as well.
func asked(t *testing.T, method, url, token, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = res.Body.Close() }() // it was read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
		return 0
	}
	if into != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			t.Errorf("%s %s: %v in %s", method, url, err, text)
		}
	}
	return res.StatusCode
}

// What was damaged before a backup was made is in what is restored, and the status of every command says so.
func TestRestore_Damaged(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	value, err := db.Stores().Blobs.Put(t.Context(), identity.System("ws"), strings.NewReader("value"))
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join("blobs", "ws", value.Hash[:2], value.Hash[2:4], value.Hash)
	if err := os.WriteFile(filepath.Join(dir, at), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, copied := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "new")
	for _, args := range [][]string{{"backup", file, "--data", dir}, {"restore", "--check", file}, {"restore", file, "--data", copied}} {
		cmd := exec.CommandContext(t.Context(), "tandem", args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "DAMAGED") || !strings.Contains(string(out), value.Hash) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if b, err := os.ReadFile(filepath.Join(copied, at)); err != nil || string(b) != "other" {
		t.Errorf("the value is %q: %v", b, err)
	}
}

// A backup whose credentials nobody could open is made, and the status of the command says so.
func TestBackup_MissingKeys(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := credential.CreateKeyFile(root)
	if err = errors.Join(err, root.Close()); err != nil {
		t.Fatal(err)
	}
	sealed, err := ring.Seal([]byte("secret"), credential.Context("ws", "c", "http"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Stores().Credentials.Create(t.Context(), identity.System("ws"), store.Credential{ID: "c", Name: "c", Type: "http", Sealed: sealed})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if said := runCommand(t, 0, "", "backup", filepath.Join(t.TempDir(), "b"), "--data", dir); strings.Contains(said, "MISSING") {
		t.Errorf("with the key it says %s", said)
	}
	if err := os.Remove(filepath.Join(dir, credential.KeyFile)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if said := runCommand(t, 1, "", "backup", file, "--data", dir); !strings.Contains(said, "MISSING KEYS") || !strings.Contains(said, ring.Keys()[0]) {
		t.Errorf("without the key it says %s", said)
	}
	runCommand(t, 0, "", "restore", "--check", file)
}

// A backup is made while a server runs under load, and is whole: a server on what is restored has everything that was acknowledged before it
// began, goes on with what had not ended, and has the questions that were open. The first server notices nothing.
func TestBackup_Serving(t *testing.T) {
	t.Parallel()
	const token = "a-configured-token"
	dir := filepath.Join(t.TempDir(), "data")
	first := exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", dir, "--workflows", filepath.Join("..", "..", "examples"))
	first, said := serving(t, first, "TANDEM_TOKEN="+token)
	api := printed(t, said, `http://127\.0\.0\.1:[0-9]+`) + "/api/v1"

	// Every start asks a person, with a value that is too large for a row.
	start := func(n int) (id string) {
		var e struct {
			ID string `json:"execution_id"`
		}
		body := fmt.Sprintf(`{"inputs":{"item":%q,"amount":900}}`, fmt.Sprintf("%d %s", n, strings.Repeat("desk", 20_000)))
		if status := asked(t, http.MethodPost, api+"/workflows/human_approval/execute", token, body, &e); status >= 300 {
			t.Errorf("start %d: status %d", n, status)
		}
		return e.ID
	}
	var before []string
	for n := range 5 {
		before = append(before, start(n))
	}
	enough := make(chan struct{})
	var load sync.WaitGroup
	for sender := range 4 {
		load.Go(func() {
			for n := 1000 * (sender + 1); ; n++ {
				select {
				case <-enough:
					return
				default:
					start(n)
				}
			}
		})
	}
	file := filepath.Join(t.TempDir(), "b")
	out, err := exec.CommandContext(t.Context(), "tandem", "backup", file, "--data", dir).CombinedOutput()
	if err != nil {
		t.Errorf("backup: %v\n%s", err, out)
	}
	after := start(999)
	close(enough)
	load.Wait()
	if status := asked(t, http.MethodGet, api+"/executions/"+after, token, "", nil); status != http.StatusOK {
		t.Errorf("the first server does not know what was started after the backup: %d", status)
	}
	copied := filepath.Join(t.TempDir(), "new")
	out, err = exec.CommandContext(t.Context(), "tandem", "restore", file, "--data", copied).CombinedOutput()
	if err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	stop(t, first, syscall.SIGTERM)

	second, said := serve(t, copied, "TANDEM_TOKEN="+token)
	server := printed(t, said, `http://127\.0\.0\.1:[0-9]+`)
	if status := asked(t, http.MethodGet, server+"/api/v1/executions/"+after, token, "", nil); status != http.StatusNotFound {
		t.Errorf("what was started after the backup is in it: %d", status)
	}
	for _, id := range before {
		answered(t, server, token, id)
	}
	stop(t, second, syscall.SIGTERM)
}

// answered waits until an execution asks, says yes, and waits until it has ended well.
func answered(t *testing.T, server, token, id string) {
	t.Helper()
	watch := exec.CommandContext(t.Context(), "tandem", "executions", "watch", id, "--server", server)
	watch.Env = append(watch.Environ(), "TANDEM_TOKEN="+token)
	watch.WaitDelay = time.Minute
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), "waiting_input") {
			continue
		}
		var open struct {
			Interactions []struct {
				ID string `json:"id"`
			} `json:"interactions"`
		}
		if status := asked(t, http.MethodGet, server+"/api/v1/interactions?status=pending&execution_id="+id, token, "", &open); status != http.StatusOK || len(open.Interactions) != 1 {
			t.Fatalf("the question of %s: status %d, %+v", id, status, open)
		}
		if status := asked(t, http.MethodPost, server+"/api/v1/interactions/"+open.Interactions[0].ID+"/respond", token, `{"response_data":{"action":"buy"}}`, nil); status != http.StatusOK {
			t.Fatalf("the question of %s is not answered: %d", id, status)
		}
	}
	if err := watch.Wait(); err != nil || !strings.Contains(all.String(), "SUCCESS") {
		t.Errorf("execution %s: %v\n%.2000s", id, err, all.String())
	}
}
