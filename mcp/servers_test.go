package mcp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/store"
	"tandem/workflow"
)

// installed returns the directory of the servers that others wrote.
var installed = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../scripts/npm_packages.sh", "mcp/testdata/servers").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})

func script(t testing.TB, name string) string {
	t.Helper()
	dir, err := installed()
	if err != nil {
		t.Fatalf("the servers that others wrote cannot be had: %v; install Node 20 or newer with npm (Debian: apt-get install nodejs npm)", err)
	}
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
}

// everything starts the server of that name on a port and returns its address.
func everything(t *testing.T, mode, path string) string {
	t.Helper()
	file := script(t, "server-everything")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file, mode)
	cmd.Env = append(os.Environ(), "PORT="+port)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(said); s.Scan(); {
			select {
			case lines <- s.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
		_ = cmd.Wait() // it was killed
	})
	for late := time.After(3 * time.Minute); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, "port "+port) {
				return "http://127.0.0.1:" + port + path
			}
		case <-ended:
			t.Fatal("the server has ended")
		case <-late:
			t.Fatal("the server does not begin")
		}
	}
}

func TestServers_Everything(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{store.MCPStdio, store.MCPSSE, store.MCPHTTP} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			s := store.MCPServer{ID: "every", Transport: transport, Enabled: true}
			switch transport {
			case store.MCPStdio:
				s.Command, s.Args = "node", []string{script(t, "server-everything"), "stdio"}
			case store.MCPSSE:
				s.URL = everything(t, "sse", "/sse")
			case store.MCPHTTP:
				s.URL = everything(t, "streamableHttp", "/mcp")
			}
			w.put(t, s)
			w.activate(t, "every")
			useEverything(t, w)
		})
	}
}

func useEverything(t *testing.T, w *world) {
	if out := w.must(t, "every", "echo", `{"message":"héllo"}`); out.Message != "Echo: héllo" {
		t.Errorf("got %+v", out)
	}
	out := w.must(t, "every", "get-structured-content", `{"location":"New York"}`)
	var weather struct{ Temperature, Humidity float64 }
	if err := json.Unmarshal(out.Structured, &weather); err != nil || weather.Humidity == 0 {
		t.Errorf("got %s, %v", out.Structured, err)
	}
	if out := w.must(t, "every", "get-tiny-image", `{}`); len(out.Files) != 1 || out.Files[0].MediaType != "image/png" || !strings.HasPrefix(string(out.Files[0].Data), "\x89PNG") {
		t.Errorf("got %d files", len(out.Files))
	}
	if out := w.must(t, "every", "get-resource-links", `{"count":3}`); len(out.Files) != 3 || out.Files[0].Sort != "link" || out.Files[0].URI == "" {
		t.Errorf("got %+v", out.Files)
	}
	if out := w.must(t, "every", "get-resource-reference", `{"resourceType":"Blob","resourceId":2}`); len(out.Files) != 1 || len(out.Files[0].Data) == 0 {
		t.Errorf("got %+v", out.Files)
	}
	_, err := w.call(t, "every", "get-sum", `{"a":"x"}`)
	if e, ok := err.(*Error); !ok || e.Kind != ToolFailed && e.Kind != Protocol {
		t.Errorf("wrong arguments: %v", err)
	}
	var seen []Progress
	long, err := w.Call(t.Context(), ann(), Call{Server: "every", Tool: "trigger-long-running-operation", Arguments: json.RawMessage(`{"duration":4,"steps":16}`),
		Silence: 3 * time.Second, Progress: func(p Progress) { seen = append(seen, p) }})
	// It takes longer than silence may last. On a busy machine the answer is there before the last notices were handled; those that were
	// came in order.
	inOrder := true
	for i, p := range seen {
		inOrder = inOrder && p.Done == float64(i+1) && p.Total == 16
	}
	if err != nil || len(seen) < 8 || !inOrder {
		t.Errorf("got %+v, %v, progress %v", long, err, seen)
	}
	if _, err := w.Call(t.Context(), ann(), Call{Server: "every", Tool: "trigger-long-running-operation", Arguments: json.RawMessage(`{"duration":60,"steps":1}`),
		Silence: 300 * time.Millisecond}); kindOf(t, err, Timeout) == nil {
		t.Error("it took long")
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			arguments := fmt.Sprintf(`{"a":%d,"b":1}`, i)
			out, err := w.Call(t.Context(), ann(), Call{Server: "every", Tool: "get-sum", Arguments: json.RawMessage(arguments)})
			if err != nil || !strings.Contains(out.Text, fmt.Sprint(i+1)) {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
	wg.Wait()
	if changes, err := w.Check(t.Context(), ann(), "every"); err != nil || len(changes) != 0 {
		t.Errorf("changes %v, %v", changes, err)
	}
}

func TestServers_FilesystemAndMemory(t *testing.T) {
	t.Parallel()
	w := setup(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put(t, store.MCPServer{ID: "files", Transport: store.MCPStdio, Command: "node", Args: []string{script(t, "server-filesystem"), dir}, Enabled: true})
	w.activate(t, "files")
	if out := w.must(t, "files", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt"))); !strings.Contains(out.Text, "inside") {
		t.Errorf("got %+v", out)
	}
	_, err := w.call(t, "files", "read_text_file", `{"path":"/etc/passwd"}`)
	kindOf(t, err, ToolFailed)
	tools, err := w.Tools(t.Context(), ann(), "files")
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]workflow.Effect{}
	for _, tool := range tools {
		effects[tool.Name] = Effect(tool)
	}
	if effects["read_text_file"] != workflow.Idempotent || effects["move_file"] != workflow.Once {
		t.Errorf("effects %v", effects)
	}

	memory := filepath.Join(dir, "memory.jsonl")
	w.put(t, store.MCPServer{ID: "memory", Transport: store.MCPStdio, Command: "node", Args: []string{script(t, "server-memory")}, Enabled: true,
		Env: map[string]store.MCPValue{"MEMORY_FILE_PATH": {Text: memory}}})
	w.activate(t, "memory")
	w.must(t, "memory", "create_entities", `{"entities":[{"name":"Ann","entityType":"person","observations":["likes tea"]}]}`)
	w.Stop("w", "memory", "ann") // another process reads the file
	out := w.must(t, "memory", "search_nodes", `{"query":"tea"}`)
	object, err := out.Object()
	if err != nil || !strings.Contains(string(object), `"Ann"`) || !strings.Contains(string(object), `"message"`) {
		t.Errorf("got %s, %v", object, err)
	}
}

// The server forgets all sessions, as after a restart.
func TestServers_ForgottenSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	url := everything(t, "streamableHttp", "/mcp")
	w.put(t, store.MCPServer{ID: "every", Transport: store.MCPHTTP, URL: url, Enabled: true})
	w.activate(t, "every")
	before := w.slot("every").conn
	request, err := http.NewRequest(http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Mcp-Session-Id", before.session.ID())
	response, err := w.options.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if out := w.must(t, "every", "echo", `{"message":"again"}`); out.Message != "Echo: again" || w.slot("every").conn == before {
		t.Errorf("got %+v", out)
	}
}
