package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve runs the command as a process of its own and waits until it has said everything.
func serve(t *testing.T, dir string, env ...string) (cmd *exec.Cmd, said string) {
	t.Helper()
	return serving(t, exec.CommandContext(t.Context(), "tandem", "serve", "--addr", "127.0.0.1:0", "--data", dir), env...)
}

// serving starts a command that serves and waits until it has said everything.
func serving(t *testing.T, cmd *exec.Cmd, env ...string) (_ *exec.Cmd, said string) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), env...)
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Every operation: ") {
			return cmd, text.String()
		}
	}
	t.Fatalf("the command ended: %v after\n%s", cmd.Wait(), text.String())
	return nil, ""
}

func printed(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindString(text)
	if found == "" {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return found
}

// What the first start prints is enough to come in, and both signals stop it well.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cmd, said := serve(t, dir)
	url, token := printed(t, said, `http://127\.0\.0\.1:[0-9]+`), printed(t, said, `tdm_[A-Za-z0-9_-]{43}`)
	code := strings.TrimPrefix(printed(t, said, `/login#code=tdm_[A-Za-z0-9_-]{43}`), "/login#code=")
	if code == token || !strings.Contains(said, url+"/login#code="+code) || !strings.Contains(said, `curl -H "Authorization: Bearer `+token+`" `+url+"/api/v1/workflows") {
		t.Errorf("it said\n%s", said)
	}
	if status := get(t, url+"/api/v1/workflows", token); status != http.StatusOK {
		t.Errorf("what it says to try answers %d", status)
	}
	if status := get(t, url+"/api/v1/workflows", code); status != http.StatusForbidden {
		t.Errorf("the code of the link is taken for a token: %d", status)
	}
	stop(t, cmd, syscall.SIGTERM)

	cmd, said = serve(t, dir, "TANDEM_TOKEN=a-configured-token")
	if strings.Contains(said, "tdm_") || strings.Contains(said, "a-configured-token") {
		t.Errorf("a token is shown that is not new:\n%s", said)
	}
	if status := get(t, printed(t, said, `http://127\.0\.0\.1:[0-9]+`)+"/api/v1/users/me", "a-configured-token"); status != http.StatusOK {
		t.Errorf("the configured token: %d", status)
	}
	stop(t, cmd, syscall.SIGINT)
}

// A disk that does not take what it is given ends the process with a failure, for a supervisor to start another. Files that
// may not grow stand for it.
func TestServe_DiskFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("limits of file sizes are set with a shell of Linux")
	}
	dir, examples := filepath.Join(t.TempDir(), "data"), filepath.Join("..", "..", "examples")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 3000; exec tandem serve --addr 127.0.0.1:0 --data "$0" --workflows "$1"`, dir, examples)
	cmd, said := serving(t, cmd, "TANDEM_TOKEN=a-configured-token")
	url := printed(t, said, `http://127\.0\.0\.1:[0-9]+`) + "/api/v1/workflows/parcels/execute"
	for n := 0; ; n++ {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"inputs":{"parcels":[{"id":"p1","kg":2},{"id":"p2","kg":31}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer a-configured-token")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			break // it no longer listens
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
		if res.StatusCode >= 500 {
			break
		}
		if n > 5000 {
			t.Fatal("the files grew beyond their limit")
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != exitProblem {
		t.Errorf("it ended with %v, want status %d", exit, exitProblem)
	}
}

func get(t *testing.T, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

func stop(t *testing.T, cmd *exec.Cmd, signal syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after %v it ended with %v", signal, err)
	}
}
