package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// TestTerminal runs the command on a terminal, with somebody who types; see testdata/terminal.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := &background{running: map[*testscript.TestScript]*process{}}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "terminal"), RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": expectStatus, "keep": keep, "talk": talk, "background": b.start, "interrupt": b.interrupt,
		},
	})
}

// talk runs a command on a terminal: talk FILE CODE COMMAND... Each line of the file is what the command must have shown since the last one,
// then " => " and what is typed then; ^C and ^D are typed as such. What was shown is afterwards in talk.out.
func talk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: talk FILE CODE COMMAND...")
	}
	here, there, err := openTerminal()
	ts.Check(err)
	cmd := exec.Command(find(ts, args[2]), args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "WORK", "TANDEM_DATA", "TANDEM_SERVER", "TANDEM_TOKEN", "TMPDIR", "GOGC"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = there, there, there
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(there.Close())
	shown := &sight{changed: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() { // it ends with the process, when nobody has the terminal any more
		defer close(read)
		shown.read(here)
	}()
	problem := ""
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		want, typed, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !ok {
			ts.Fatalf("%s: %q has no \" => \"", args[0], line)
		}
		if !shown.await(want, read) {
			problem = fmt.Sprintf("it never shows %q", want)
			break
		}
		keys := typed + "\n"
		switch typed {
		case "^C":
			keys = "\x03"
		case "^D":
			keys = "\x04"
		}
		if _, err := here.WriteString(keys); err != nil {
			problem = err.Error()
			break
		}
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // it waits for what nobody types; its status tells
	defer late.Stop()
	if problem != "" {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			ts.Logf("kill: %v", err)
		}
	}
	<-read
	if err := cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			ts.Logf("wait: %v", err)
		}
	}
	ts.Check(here.Close())
	ts.Check(os.WriteFile(ts.MkAbs("talk.out"), []byte(shown.text()), 0o600))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); problem != "" || got != args[1] {
		ts.Fatalf("%q: %s; status %s, want %s; it showed:\n%s", args[2:], problem, got, args[1], shown.text())
	}
}

// sight is what a terminal has shown. The reader adds to it; mu is between it and who looks.
type sight struct {
	mu      sync.Mutex
	all     bytes.Buffer
	seen    int
	changed chan struct{}
}

func (s *sight) read(f *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := f.Read(buffer)
		s.mu.Lock()
		s.all.Write(buffer[:n])
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default: // it was told already
		}
		if err != nil { // a terminal that nobody has open any more is an error to read
			return
		}
	}
}

func (s *sight) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.all.String(), "\r\n", "\n")
}

// await waits until something is shown that was not there at the last time.
func (s *sight) await(want string, over <-chan struct{}) bool {
	patience := time.NewTimer(time.Minute) // so that a wrong script ends
	defer patience.Stop()
	for last := false; ; {
		s.mu.Lock()
		at := bytes.Index(s.all.Bytes()[s.seen:], []byte(want))
		if at >= 0 {
			s.seen += at + len(want)
		}
		s.mu.Unlock()
		if at >= 0 || last {
			return at >= 0
		}
		select {
		case <-s.changed:
		case <-over:
			last = true
		case <-patience.C:
			return false
		}
	}
}

// openTerminal makes a terminal: here is the side of the person, there that of the program.
func openTerminal() (here, there *os.File, err error) {
	here, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number := 0
	raw, err := here.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
			if err == nil {
				err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120})
			}
		})
		err = errors.Join(err, cerr)
	}
	if err == nil {
		there, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, here.Close())
	}
	return here, there, nil
}
