package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The real program, unpacked from the image and seeing nothing but what is in it, runs as the user of the image: it serves, answers the
// probes of the manifests, passes the health check of the compose file, and ends well when it is told to stop.
func TestImage_Runs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a process another root directory")
	}
	_, files := built(t, realProgram(t))
	root, err := os.MkdirTemp("", "tandem-root-") // below it every directory must be open to the user
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(root)) })
	check(t, os.Chmod(root, 0o755))
	f, err := os.Open(files)
	check(t, err)
	unpack(t, f, root)
	check(t, f.Close())

	_, container := server(t)
	how := howToRun("")
	port := freePort(t)
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), how.Entrypoint[0], args...)
		cmd.Path = how.Entrypoint[0]
		cmd.Err = nil // it is looked for in another root directory
		cmd.Dir = how.WorkingDir
		cmd.Env = append([]string{"TANDEM_TOKEN=a-configured-token"}, how.Env...)
		for i, e := range cmd.Env {
			if strings.HasPrefix(e, "TANDEM_ADDR=") {
				cmd.Env[i] = fmt.Sprintf("TANDEM_ADDR=127.0.0.1:%d", port)
			}
		}
		for _, e := range container.Env {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		cmd.WaitDelay = time.Minute
		return cmd
	}
	if out, err := inside("doctor", "--ready").CombinedOutput(); err == nil || !strings.Contains(string(out), "no server answers") {
		t.Errorf("without a server the health check says: %v\n%s", err, out)
	}
	cmd := inside(container.Args...)
	out, err := cmd.StdoutPipe()
	check(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	check(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Every operation: ") {
			break
		}
	}
	for _, probe := range []string{container.LivenessProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.StartupProbe.HTTPGet.Path} {
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, probe))
		if err != nil {
			t.Fatalf("%s: %v\n%s", probe, err, said.String())
		}
		body, err := io.ReadAll(res.Body)
		check(t, err)
		check(t, res.Body.Close())
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d: %s", probe, res.StatusCode, body)
		}
	}
	if out, err := inside("doctor", "--ready").CombinedOutput(); err != nil || !regexp.MustCompile(`ok\s+server`).Match(out) {
		t.Errorf("the health check says: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "tandem", "tandem.db")); err != nil {
		t.Errorf("its data: %v", err)
	}
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop it ends with %v\n%s", err, said.String())
	}
}

// realProgram is the one that TANDEM_BINARY names, or a new one.
func realProgram(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("TANDEM_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(t.TempDir(), "tandem")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./cmd/tandem")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return binary
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	check(t, l.Close())
	return port
}
