package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// slowService answers /slow when it is let, and everything else at once. Every call is noted, and whether it was cut off.
type slowService struct {
	*httptest.Server
	called, release chan struct{}

	mu   sync.Mutex
	said []string
}

func newSlowService(t *testing.T) *slowService {
	s := &slowService{called: make(chan struct{}, 10), release: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *slowService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.URL.Path
	_, _ = io.Copy(io.Discard, r.Body) // who goes away is noticed after that
	if strings.HasPrefix(what, "/slow") {
		s.called <- struct{}{}
		select {
		case <-s.release:
		case <-r.Context().Done():
			what += " cut off"
		}
	}
	s.mu.Lock()
	s.said = append(s.said, what)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{}`)) // a client that has gone away does not read it
}

func (s *slowService) calls() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, ", ")
}

// interrupted starts a command, interrupts it while the service is being called, and returns when it says that it drains.
func (s *slowService) interrupted(t *testing.T, stdin string, args ...string) (cmd *exec.Cmd, rest func() string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "tandem", append(args, "--http-allow", "127.0.0.1")...)
	cmd.WaitDelay = time.Minute
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ended := make(chan struct{})
	told, all := make(chan struct{}), &strings.Builder{}
	go func() { // it ends with the process
		defer close(ended)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Press Ctrl-C again to stop at once") {
				close(told)
			}
		}
	}()
	late := time.After(5 * time.Minute) // so that what is not told is told of
	for _, step := range []<-chan struct{}{s.called, told} {
		select {
		case <-step:
		case <-late:
			_ = cmd.Process.Kill() // its end is told below
			<-ended
			t.Fatalf("%q does not drain: %v\n%s", args, cmd.Wait(), all)
		case <-ended:
			t.Fatalf("%q ended: %v\n%s", args, cmd.Wait(), all)
		}
		if step == s.called {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cmd, func() string {
		<-ended
		return all.String()
	}
}

func exitStatus(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode()
}

// flowFile is a workflow that calls addresses one after the other.
func (s *slowService) flowFile(t *testing.T, paths ...string) string {
	t.Helper()
	text, before := "metadata: {id: calls, name: calls, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n", "start"
	after := "connections:\n"
	for _, path := range paths {
		id := strings.Trim(path, "/")
		text += "  - {id: " + id + ", description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: \"" + s.URL + path + "\"}}\n"
		after += "  - {from_node: " + before + ", to_node: " + id + "}\n"
		before = id
	}
	name := filepath.Join(t.TempDir(), "calls.yaml")
	if err := os.WriteFile(name, []byte(text+after), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The first interrupt of a run lets what runs end and begins nothing new; what it did is known, and done once.
func TestInterrupt_RunDrains(t *testing.T) {
	t.Parallel()
	s, dir := newSlowService(t), filepath.Join(t.TempDir(), "d")
	cmd, rest := s.interrupted(t, "", "run", s.flowFile(t, "/slow", "/next"), "--data", dir)
	close(s.release)
	said := rest()
	if status := exitStatus(t, cmd); status != exitParked || s.calls() != "/slow" {
		t.Fatalf("status %d after %s:\n%s", status, s.calls(), said)
	}
	id := regexp.MustCompile(`--resume (exec_\w+)`).FindStringSubmatch(said)
	if id == nil {
		t.Fatalf("it does not say how to go on:\n%s", said)
	}
	out, err := exec.CommandContext(t.Context(), "tandem", "run", "--resume", id[1], "--data", dir, "--http-allow", "127.0.0.1").CombinedOutput()
	if err != nil || s.calls() != "/slow, /next" {
		t.Errorf("resumed: %v after %s\n%s", err, s.calls(), out)
	}
}

// What ends within the grace may be the end of all, and is told as such.
func TestInterrupt_RunEnds(t *testing.T) {
	t.Parallel()
	s := newSlowService(t)
	cmd, rest := s.interrupted(t, "", "run", s.flowFile(t, "/slow"), "--data", filepath.Join(t.TempDir(), "d"))
	close(s.release)
	said := rest()
	if status := exitStatus(t, cmd); status != exitOK || s.calls() != "/slow" {
		t.Errorf("status %d after %s:\n%s", status, s.calls(), said)
	}
}

// The second interrupt ends the process at once.
func TestInterrupt_RunTwice(t *testing.T) {
	t.Parallel()
	s := newSlowService(t)
	cmd, rest := s.interrupted(t, "", "run", s.flowFile(t, "/slow"), "--data", filepath.Join(t.TempDir(), "d"), "--grace", "10m")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// Tasks of agents drain, too: the model may end its sentence.
func TestInterrupt_TasksDrain(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"agent run": {"agent", "run", "Say hello.", "--agent", "clerk"}, "chat": {"chat", "clerk"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := newSlowService(t), filepath.Join(t.TempDir(), "d")
			for _, part := range [][2]string{{"profiles", `{id: slow, provider: openai, model: m, base_url: "` + s.URL + `/slow/v1"}`}, {"agent", `{id: clerk, llm_profile: slow}`}} {
				set := exec.CommandContext(t.Context(), "tandem", part[0], "set", "-", "--data", dir)
				set.Stdin = strings.NewReader(part[1])
				if out, err := set.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			cmd, rest := s.interrupted(t, "Say hello.\n", append(args, "--data", dir)...)
			close(s.release)
			said := rest()
			if status := exitStatus(t, cmd); status != exitParked || strings.Contains(s.calls(), "cut off") || !strings.Contains(said, "parked; go on with: tandem agent run --resume exec_") {
				t.Errorf("status %d after %s:\n%s", status, s.calls(), said)
			}
		})
	}
}
