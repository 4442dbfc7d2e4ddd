package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tandem/fault"
	"tandem/shortage"
)

// errTimeLimit says that a child was killed because its call took too long.
var errTimeLimit = errors.New("the time limit was reached") // read-only

// startLimit is how long a child may take to get ready; compiling the interpreter on a slow machine is in it.
const startLimit = 3 * time.Minute

// child is the parent's side of one process. Between acquire and release it belongs to one caller.
type child struct {
	key   laneKey
	cmd   *exec.Cmd
	in    *os.File // requests
	out   *bufio.Reader
	files []*os.File // the parent's ends, closed when the process is gone

	// gone is closed when the process has ended and was waited for.
	gone   chan struct{}
	killed atomic.Bool
	stderr lockedClip
	buf    []byte

	idleSince time.Time // guarded by Pool.mu
}

// startChild starts a process and waits until its interpreter is loaded and its walls are up.
func startChild(ctx context.Context, key laneKey, dir string) (*child, error) {
	if key.language == Python && !pythonAvailable() {
		return nil, fault.New(fault.Unsupported, "this binary was built without the Python interpreter; run scripts/python_wasm.sh and build again")
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, shortage.Or(err, fault.New(fault.Internal, "the sandbox has no directory for its compiled interpreters"))
		}
	}
	ch, err := spawn(key, string(key.language), dir)
	if err != nil {
		return nil, shortage.Or(err, fault.New(fault.Internal, "a process for the code could not be started"))
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, ch.kill)
	defer stop()
	greeting, err := ch.readReply()
	if err == nil && greeting.kind == replyValue {
		return ch, nil
	}
	ch.kill()
	<-ch.gone
	if err != nil && strings.Contains(ch.stderr.String(), mustAsk) {
		return nil, fault.New(fault.Internal, "this program cannot run code: its "+mustAsk)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "a process for the code did not get ready").WithCause(ch.explain(err))
	}
	if greeting.errorType != "" {
		return nil, fault.New(fault.Code(greeting.errorType), greeting.message)
	}
	return nil, fault.New(fault.Internal, "a process for the code did not get ready").WithDetail(greeting.message)
}

// spawn starts our own binary as a child. It gets no environment, and three files: requests, replies, and the leash, a
// pipe that ends when this process does, so that a child in an endless loop does not outlive its parent.
func spawn(key laneKey, mode, dir string) (*child, error) {
	var opened []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w, err
	}
	closeAll := func() {
		for _, f := range opened {
			f.Close()
		}
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	leashR, leashW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, err
	}
	ch := &child{key: key, in: inW, out: bufio.NewReaderSize(outR, 64<<10), files: []*os.File{inW, outR, leashW}, gone: make(chan struct{})}
	ch.stderr.clip.limit = 16 << 10
	var err error
	for _, attr := range processAttributes() {
		cmd := exec.Command(executable(), childArg+mode+"="+dir)
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = inR, outW, &ch.stderr, []*os.File{leashR}
		cmd.SysProcAttr = attr
		if err = cmd.Start(); err == nil {
			ch.cmd = cmd
			break
		}
	}
	if err != nil {
		closeAll()
		return nil, err
	}
	inR.Close()
	outW.Close()
	leashR.Close()
	go func() {
		// How it ended does not matter here; who talks to it meets the end of the stream.
		_ = ch.cmd.Wait()
		for _, f := range ch.files {
			f.Close()
		}
		close(ch.gone)
	}()
	return ch, nil
}

// kill ends the process; it may be called at any time and more than once.
func (c *child) kill() {
	if c.killed.CompareAndSwap(false, true) {
		// An error means that it is gone already.
		_ = c.cmd.Process.Kill()
	}
}

// lost says whether the process is gone.
func (c *child) lost() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// exchange sends one call and waits for the reply. After an error the child cannot be used any more; the reply has what the code had
// printed by then.
func (c *child) exchange(ctx context.Context, q *request, limit time.Duration, printed func(stream Stream, text string)) (*reply, error) {
	var late atomic.Bool
	timer := time.AfterFunc(limit, func() {
		late.Store(true)
		c.kill()
	})
	defer timer.Stop()
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	c.buf = q.append(frame(c.buf))
	r, err := (*reply)(nil), writeFrame(c.in, c.buf)
	if cap(c.buf) > 1<<20 {
		c.buf = nil
	}
	heard := listener{printed: printed}
	for err == nil {
		if r, err = c.readReply(); err != nil || r.kind != replyPrinted {
			break
		}
		err = heard.hear(r)
	}
	switch {
	case late.Load():
		return heard.reply(), errTimeLimit
	case err != nil:
		return heard.reply(), c.explain(err)
	case r.kind == replyBroken:
		return heard.reply(), errors.New(said(r.message))
	case c.out.Buffered() > 0: // nobody may have what comes next taken for the answer to another call
		return heard.reply(), errors.New("the process said more than it was asked")
	case c.killed.Load():
		return heard.reply(), errors.New("the call was given up")
	}
	return r, nil
}

// listener takes what a child says that code prints, as far as code may print.
type listener struct {
	stdout, stderr []byte
	printed        func(stream Stream, text string)
}

func (l *listener) hear(r *reply) error {
	l.stdout, l.stderr = append(l.stdout, r.stdout...), append(l.stderr, r.stderr...)
	if len(r.stdout)+len(r.stderr) == 0 || len(l.stdout) > streamLimit || len(l.stderr) > streamLimit {
		return errors.New("the process said more than code may print")
	}
	if l.printed == nil {
		return nil
	}
	if len(r.stdout) > 0 {
		l.printed(Stdout, said(string(r.stdout)))
	}
	if len(r.stderr) > 0 {
		l.printed(Stderr, said(string(r.stderr)))
	}
	return nil
}

func (l *listener) reply() *reply { return &reply{stdout: l.stdout, stderr: l.stderr} }

func (c *child) readReply() (*reply, error) {
	b, err := readFrame(c.out)
	if err != nil {
		return nil, err
	}
	return parseReply(b)
}

// explain adds what the process said before it ended, for operators.
func (c *child) explain(err error) error {
	if text := c.stderr.String(); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// lockedClip is a clipped that the goroutine of exec.Cmd writes while others read.
type lockedClip struct {
	mu   sync.Mutex
	clip clipped
}

func (l *lockedClip) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clip.Write(b)
}

func (l *lockedClip) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.clip.bytes())
}
