package mcp

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/fault"
	"tandem/store"
)

// A server that does not start is told of with how it ended and what it printed, and is not tried again and again.
func TestProcess_NotStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		kind   Kind
		exit   string
		stderr []string
		says   string
	}{
		"fails":           {"echo one >&2; echo \"the token is $TOKEN\" >&2; exit 3", NotStarted, "exit status 3", []string{"one", "the token is [redacted]"}, "ended before it had answered, with exit status 3; it printed last: one / the token is [redacted]"},
		"says nothing":    {"exit 0", NotStarted, "exit status 0", nil, "with exit status 0; it printed nothing"},
		"is killed":       {"kill -9 $$", NotStarted, "signal: killed", nil, "signal: killed"},
		"leaves a child":  {"sleep 100 & echo bad >&2; exit 1", NotStarted, "exit status 1", []string{"bad"}, "bad"},
		"says much":       {"i=0; while [ $i -lt 30 ]; do echo line $i >&2; i=$((i+1)); done; exit 1", NotStarted, "exit status 1", []string{"line 20", "line 21", "line 22", "line 23", "line 24", "line 25", "line 26", "line 27", "line 28", "line 29"}, "line 27 / line 28 / line 29"},
		"on its output":   {"echo Usage: server DIR; exit 2", NotStarted, "exit status 2", []string{"Usage: server DIR"}, "Usage: server DIR"},
		"hides signs":     {"printf '\\033[31mred\\033[0m\\n' >&2; exit 1", NotStarted, "exit status 1", []string{"[31mred [0m"}, "[31mred [0m"},
		"hangs":           {"echo waiting for a browser >&2; exec sleep 100", Timeout, "", []string{"waiting for a browser"}, "did not answer within 300ms of its start; if it needs longer, set its timeout_seconds to more than 60, which its start may then take too; it printed last: waiting for a browser"},
		"hangs on output": {"echo Starting server; exec sleep 100", Timeout, "", []string{"Starting server"}, "it printed last: Starting server"},
		"hangs silently":  {"exec sleep 100", Timeout, "", nil, "of its start; if it needs longer, set its timeout_seconds to more than 60, which its start may then take too; it printed nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, func(o *Options) {
				if strings.HasPrefix(name, "hangs") {
					o.Connect = 300 * time.Millisecond
				}
			})
			w.put(t, store.MCPServer{ID: "s", Transport: store.MCPStdio, Command: "sh", Args: []string{"-c", c.script}, Enabled: true,
				Env: map[string]store.MCPValue{"TOKEN": {Credential: "c", Field: "token"}}})
			_, err := w.Activate(t.Context(), ann(), "s", Activation{})
			e := kindOf(t, err, c.kind)
			if e.Exit != c.exit || !slices.Equal(e.Stderr, c.stderr) || !strings.Contains(e.Message.String(), c.says) {
				t.Errorf("exit %q, stderr %q, message %q; want %q, %q, %q", e.Exit, e.Stderr, e.Message, c.exit, c.stderr, c.says)
			}
			if f := e.Fault(); f.Retryable != (c.kind == Timeout) || c.exit != "" && f.Details["exit"] != c.exit {
				t.Errorf("the fault is %+v", f)
			}
		})
	}
	w := setup(t)
	w.put(t, store.MCPServer{ID: "s", Transport: store.MCPStdio, Command: "no-such-command", Enabled: true})
	_, err := w.Activate(t.Context(), ann(), "s", Activation{})
	e := kindOf(t, err, NotStarted)
	if !strings.Contains(e.Message.String(), `check command and dir: exec: "no-such-command": executable file not found`) || e.Fault().Retryable || e.Fault().Code != fault.RemoteError {
		t.Errorf("%v, cause %v", e.Fault(), errors.Unwrap(err))
	}
}

// A start takes no longer than 20 s, unless the server says that it is slow.
func TestStartLimit(t *testing.T) {
	t.Parallel()
	for seconds, limit := range map[int]time.Duration{1: 20 * time.Second, store.DefaultMCPTimeout: 20 * time.Second, 61: 61 * time.Second, 600: 10 * time.Minute} {
		if got := StartLimit(seconds, DefaultConnect); got != limit {
			t.Errorf("with timeout_seconds %d: %v, want %v", seconds, got, limit)
		}
	}
	w := setup(t)
	if got := w.options.Connect; got != DefaultConnect {
		t.Errorf("a pool that is told nothing waits %v", got)
	}
}

// What a process printed before it ended is told of, also when the connection was closed before anybody had read it.
func TestProcess_LastWords(t *testing.T) {
	t.Parallel()
	say := &chatter{say: func(string, int) {}}
	p, err := launch("sh", []string{"-c", "echo Usage: server DIR; exit 2"}, "", nil, say)
	if err != nil {
		t.Fatal(err)
	}
	s := &stdio{process: p, table: &exchanges{}, note: say.line}
	if _, err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Read(t.Context()); err == nil {
		t.Errorf("read %v from a closed connection", m)
	}
	<-p.ended
	if got := say.lastLines(); !slices.Equal(got, []string{"Usage: server DIR"}) {
		t.Errorf("it printed last: %q", got)
	}
}
