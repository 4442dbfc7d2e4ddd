package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// background runs commands besides a script: servers, and runs that are interrupted.
//
//	background PATTERN COMMAND...  starts it and waits for a line of its output that matches; MATCH is then the first group
//	interrupt CODE                 sends it an interrupt and waits for its end with that exit status
//
// What it writes is then in the files background.out and background.err.
type background struct {
	mu      sync.Mutex
	running map[*testscript.TestScript]*process
}

type process struct {
	cmd *exec.Cmd
	// read is closed when all of its output was read.
	read     chan struct{}
	out, err bytes.Buffer
}

func (b *background) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: background PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	p := &process{cmd: exec.Command(find(ts, args[1]), args[2:]...), read: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "WORK", "TANDEM_DATA", "TANDEM_SERVER", "TANDEM_TOKEN", "TMPDIR", "GOGC"} {
		p.cmd.Env = append(p.cmd.Env, name+"="+ts.Getenv(name))
	}
	p.cmd.Stderr = &p.err
	pipe, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	b.mu.Lock()
	b.running[ts] = p
	b.mu.Unlock()
	ts.Defer(func() { b.end(ts, os.Kill) })
	found := make(chan string, 1)
	go func() { // it ends with the process
		defer close(p.read)
		defer close(found)
		lines := bufio.NewScanner(io.TeeReader(pipe, &p.out))
		for lines.Scan() {
			if m := pattern.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[len(m)-1]:
				default: // the first counts
				}
			}
		}
	}()
	match, ok := <-found
	if !ok {
		b.end(ts, os.Kill)
		ts.Fatalf("%q ended without a line that matches %q:\n%s%s", args[1:], args[0], p.out.String(), p.err.String())
	}
	ts.Setenv("MATCH", match)
}

// find looks for a program where the script does.
func find(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	ts.Fatalf("there is no program %q", name)
	return ""
}

// end ends the process of a script, if there is one, and returns its exit status.
func (b *background) end(ts *testscript.TestScript, s os.Signal) int {
	b.mu.Lock()
	p := b.running[ts]
	delete(b.running, ts)
	b.mu.Unlock()
	if p == nil {
		return 0
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		ts.Logf("signal: %v", err)
	}
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			ts.Logf("wait: %v", err)
		}
	}
	for name, text := range map[string]string{"background.out": p.out.String(), "background.err": p.err.String()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
	return p.cmd.ProcessState.ExitCode()
}

func (b *background) interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt CODE")
	}
	if got := strconv.Itoa(b.end(ts, os.Interrupt)); got != args[0] {
		text, err := os.ReadFile(ts.MkAbs("background.err"))
		ts.Check(err)
		ts.Fatalf("it ended with status %s, want %s:\n%s", got, args[0], text)
	}
}

// keep sets a variable to what is in the first group of a pattern in the output of the last command: keep ID 'execution (.*)'.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	m := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no line of the output matches %q", args[1])
	}
	ts.Setenv(args[0], strings.TrimSpace(m[len(m)-1]))
}
