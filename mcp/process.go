package mcp

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"time"
)

// How long a process that should end gets: after its input is closed, and after it was told to.
const (
	inputGrace = 500 * time.Millisecond
	termGrace  = 2 * time.Second
)

// markName is a variable that all processes of a server have in common, also those that have left its group.
const markName = "TANDEM_MCP_PROCESS"

// process is a server that runs here, with all that it starts.
//
// Goroutines: one starts it and waits for its end, another sees to its end, a third reads its error output. All have ended when ended is
// closed, and nothing of the process is left.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // written to
	stdout *os.File // read from
	stderr *os.File // read from
	mark   string   // name=value
	waited error    // how it ended; known when exited is closed, or after reap

	stopOnce sync.Once
	stopping chan struct{} // closed by stop
	exited   chan struct{} // the first process has ended; its number is still taken
	swept    chan struct{} // nothing else is left, so the number may be given away
	drained  chan struct{} // nobody reads its output any more; closed by the connection
	ended    chan struct{}
}

// launch starts a process. Its error output goes to say until it ends.
func launch(command string, args []string, dir string, env []string, say *chatter) (_ *process, err error) {
	path, err := exec.LookPath(command)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	if dir == "" {
		dir = os.TempDir()
	}
	p := &process{
		mark: markName + "=" + rand.Text(), stopping: make(chan struct{}), exited: make(chan struct{}),
		swept: make(chan struct{}), drained: make(chan struct{}), ended: make(chan struct{}),
	}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			err = errors.Join(err, p.closeFiles())
		}
	}()
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs, p.stdin = append(theirs, in), stdin
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs, p.stdout = append(theirs, out), stdout
	stderr, errs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs, p.stderr = append(theirs, errs), stderr
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{command}, args...), Dir: dir, Env: append(env, p.mark),
		Stdin: in, Stdout: out, Stderr: errs}
	if err := p.start(); err != nil {
		return nil, err
	}
	quiet := make(chan struct{})
	go func() {
		say.readChatter(p.stderr)
		close(quiet)
	}()
	go func() {
		p.oversee()
		close(p.swept)
		<-p.exited
		err := p.reap()
		// What it said last is still read. All that could write is gone, so these end by themselves, unless something has escaped.
		await(p.drained, inputGrace)
		await(quiet, inputGrace)
		err = errors.Join(err, p.closeFiles())
		<-quiet
		if err != nil {
			say.line("ending the process: " + err.Error())
		}
		close(p.ended)
	}()
	return p, nil
}

// oversee returns when the process and all that it started have ended, or were ended.
func (p *process) oversee() {
	select {
	case <-p.exited:
	case <-p.stopping:
		_ = p.stdin.Close() // the polite way; what does not listen is ended below
		await(p.exited, inputGrace)
	}
	p.terminate()
}

// stop begins to end the process, and returns at once.
func (p *process) stop() { p.stopOnce.Do(func() { close(p.stopping) }) }

// await waits for a channel, not longer than for.
func await(ch <-chan struct{}, long time.Duration) bool {
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		return false
	}
}

func (p *process) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
