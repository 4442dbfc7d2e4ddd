package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tandem/api"
	"tandem/client"
	"tandem/store/postgres/postgrestest"
)

// waiting is a workflow that waits for somebody.
const waiting = `
metadata: {id: kid, name: kid, description: d}
nodes:
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
`

// pair are two servers of one database, of which the second stands by.
type pair struct {
	owner *exec.Cmd
	// url is where the second is reached, and said waits until it has said something.
	url  string
	said func(part string) string
	// database is the server of their database.
	database *postgrestest.Server
}

// startPair starts two servers with workflows on one data directory.
func startPair(t *testing.T, workflows map[string]string, more ...string) pair {
	t.Helper()
	database := postgrestest.Start(t)
	address := database.Database(t)
	dir := t.TempDir()
	for name, text := range workflows {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append([]string{"TANDEM_DATABASE=" + address, "TANDEM_TOKEN=a-configured-token"}, more...)
	command := func() *exec.Cmd {
		return exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--workflows", dir)
	}
	owner, _ := serving(t, command(), env...)
	second := command()
	second.Env = append(second.Environ(), env...)
	out, err := second.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	said := func(part string) string {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), part) {
				return lines.Text()
			}
		}
		t.Fatalf("the second server ended without saying %q", part)
		return ""
	}
	return pair{owner, printed(t, said("stands by"), `http://127\.0\.0\.1:[0-9]+`), said, database}
}

// kill ends the owner without a word.
func (p *pair) kill(t *testing.T) {
	t.Helper()
	if err := p.owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.owner.Wait() // it was killed
}

// Two servers have one database: one owns it, the other forwards. The owner is killed, and the other goes on with everything; who reads an
// execution by it sees every event once.
func TestServe_TwoOnOneDatabase(t *testing.T) {
	t.Parallel()
	servers := startPair(t, map[string]string{"kid": waiting})
	url, said := servers.url, servers.said
	if status := get(t, url+"/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz answers %d", status)
	}
	if status := get(t, url+"/api/v1/workflows", "a-wrong-token-of-nobody"); status != http.StatusUnauthorized {
		t.Errorf("a wrong token answers %d", status)
	}
	c, err := client.New(client.Options{URL: url, Token: "a-configured-token"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Execute(t.Context(), "kid", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	waits, ended := make(chan struct{}), make(chan error, 1)
	var events []api.Event
	go func() { // it ends with the execution
		ended <- c.Watch(t.Context(), e.ExecutionID, "", client.VocabularyExecution, func(e api.Event) error {
			events = append(events, e)
			if e.EventType == "node_started" {
				close(waits)
			}
			return nil
		})
	}()
	<-waits
	servers.kill(t)
	said("Every operation: ")
	if _, err := c.Input(t.Context(), e.ExecutionID, api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{"by":"ann"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range events {
		seen[e.EventType]++
	}
	if seen["node_started"] != 1 || seen["node_completed"] != 1 || seen["execution_completed"] != 1 {
		t.Errorf("events %v", seen)
	}
	done, err := c.Execution(t.Context(), e.ExecutionID)
	if err != nil || done.Status != "SUCCESS" {
		t.Errorf("it is %s: %v", done.Status, err)
	}
}
