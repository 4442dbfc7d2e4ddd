package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/text"
)

// stdio speaks with a process: one message per line. Unlike the SDK's own it lets a caller leave while the process does not
// read, knows what was sent, keeps answers as they came, and passes over what a server prints among its messages.
//
// Goroutines: writeLoop owns the process's input. The caller of Read owns its output; the session does so with one goroutine.
type stdio struct {
	process *process
	table   *exchanges
	note    func(string) // told of lines that are not messages

	drained sync.Once
	queue   chan frame // taken by writeLoop: what was taken may have been sent
	closed  chan struct{}
	once    sync.Once
	lines   *bufio.Reader
}

type frame struct {
	data []byte
	x    *exchange
	done chan error // has room for one
}

// Connect implements the SDK's Transport. The process runs already.
func (s *stdio) Connect(context.Context) (sdk.Connection, error) {
	s.queue, s.closed = make(chan frame), make(chan struct{})
	s.lines = bufio.NewReaderSize(s.process.stdout, 64<<10)
	go s.writeLoop()
	return s, nil
}

func (s *stdio) writeLoop() {
	for {
		select {
		case <-s.closed:
			return
		case f := <-s.queue:
			_, err := s.process.stdin.Write(f.data)
			f.done <- err
			if err != nil {
				return
			}
		}
	}
}

// SessionID implements the SDK's Connection.
func (s *stdio) SessionID() string { return "" }

// Write implements the SDK's Connection.
func (s *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	f := frame{data: append(data, '\n'), done: make(chan error, 1)}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		if f.x = exchangeOf(ctx); f.x != nil {
			s.table.addExchange(fmt.Sprint(r.ID.Raw()), f.x)
		}
	}
	select {
	case s.queue <- f:
		if f.x != nil {
			f.x.markSent()
		}
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errGone
	}
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done(): // the rest goes out all the same: half a line would spoil the next one
		return ctx.Err()
	case <-s.closed:
		return errGone
	}
}

var errGone = errors.New("the connection is closed")

// Read implements the SDK's Connection.
func (s *stdio) Read(context.Context) (jsonrpc.Message, error) {
	m, err := s.next()
	if err != nil {
		s.drained.Do(func() {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				go s.readRest()
				return
			}
			close(s.process.drained)
		})
	}
	return m, err
}

// readRest notes what a process had printed when the connection was closed and nobody had read yet: the last words of a server that ends
// while it is spoken to. It waits until nothing is left that could print more, unless something has escaped, and is the only reader from
// then on.
func (s *stdio) readRest() {
	defer close(s.process.drained)
	<-s.process.swept
	if err := s.process.stdout.SetReadDeadline(time.Now().Add(inputGrace)); err != nil {
		return // the files are closed already
	}
	for {
		if _, err := s.next(); err != nil {
			return
		}
	}
}

func (s *stdio) next() (jsonrpc.Message, error) {
	for {
		line, size, err := s.line()
		if err != nil {
			return nil, err
		}
		if size > maxMessage {
			return s.oversized(line, size)
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if line[0] != '{' && line[0] != '[' {
			s.note(string(line[:min(len(line), maxLogLine)]))
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, &Error{Kind: Protocol, Message: text.Of("the server sent a line that is not a message"), ends: true, cause: err}
		}
		if r, ok := m.(*jsonrpc.Response); ok {
			if x := s.table.getExchange(fmt.Sprint(r.ID.Raw())); x != nil {
				x.answer(r.Result)
			}
		}
		return m, nil
	}
}

// line reads a line. Of one that is too large it returns the beginning and the end.
func (s *stdio) line() (line []byte, size int, err error) {
	for {
		part, err := s.lines.ReadSlice('\n')
		size += len(part)
		if size <= maxMessage {
			line = append(line, part...)
		} else {
			line = append(line[:min(len(line), 2*edge)], part...)
			if len(line) > 4*edge {
				line = append(line[:edge], line[len(line)-edge:]...)
			}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && size > 0 && len(bytes.TrimSpace(line)) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return line, size, err
	}
}

// edge is how much of the beginning and of the end of a large message is looked at for what it answers.
const edge = 256

// oversized turns an answer that is too large into a refusal, so that only its caller suffers. Servers write the id first or last.
func (s *stdio) oversized(line []byte, size int) (jsonrpc.Message, error) {
	told := text.Of("the answer has %d bytes, and %d are taken", size, maxMessage)
	too := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: told.String()}
	number := regexp.MustCompile(`"id"\s*:\s*(\d{1,15})\s*[,}]`)
	for _, part := range [][]byte{line[:min(len(line), edge)], line[max(0, len(line)-edge):]} {
		found := number.FindAllSubmatch(part, -1)
		if len(found) != 1 {
			continue
		}
		x := s.table.getExchange(string(found[0][1]))
		if x == nil {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(string(found[0][1]), &n); err != nil {
			continue
		}
		id, err := jsonrpc.MakeID(n)
		if err != nil {
			continue
		}
		x.mu.Lock()
		x.answered, x.tooLarge = true, true
		x.mu.Unlock()
		return &jsonrpc.Response{ID: id, Error: too}, nil
	}
	return nil, &Error{Kind: TooLarge, Message: told, ends: true}
}

// Close implements the SDK's Connection. It does not wait for the process.
func (s *stdio) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.process.stop()
		// A reader need not wait for the end of the process.
		if err := s.process.stdout.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, os.ErrClosed) {
			s.note("stop reading: " + err.Error())
		}
	})
	return nil
}

// Limits of what is logged of a server.
const (
	maxLogLine   = 2 << 10
	maxLogLines  = 50
	logLineSpell = 10 * time.Second
)

// chatter passes on lines that a server prints, some at a time.
type chatter struct {
	say func(line string, left int)

	mu    sync.Mutex
	since time.Time
	said  int
	left  int
	last  []string // the lines that came last, however many there were
}

// How many lines are kept of what a server printed last, and how long each.
const (
	maxLastLines = 10
	maxLastLine  = 300
)

// lastLines are the lines that came last.
func (c *chatter) lastLines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.last)
}

// line passes one on, or counts it.
func (c *chatter) line(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == maxLastLines {
		c.last = c.last[1:]
	}
	c.last = append(c.last, shown(text))
	now := time.Now()
	if now.Sub(c.since) >= logLineSpell {
		if c.left > 0 {
			c.say("lines were left out", c.left)
		}
		c.since, c.said, c.left = now, 0, 0
	}
	if c.said >= maxLogLines {
		c.left++
		return
	}
	c.said++
	c.say(strings.ToValidUTF8(text, "\uFFFD"), 0)
}

// shown is a line as a person may be shown it: without what is not seen, and not too long.
func shown(line string) string {
	line = line[:min(len(line), (maxLastLine+1)*utf8.UTFMax)] // of a flood of long lines most need not be looked at
	line = strings.Map(func(r rune) rune {
		if unseen(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, "\uFFFD"))
	if runes := []rune(line); len(runes) > maxLastLine {
		line = string(runes[:maxLastLine]) + "…"
	}
	return strings.TrimSpace(line)
}

// readChatter reads lines until there are no more.
func (c *chatter) readChatter(from io.Reader) {
	r := bufio.NewReaderSize(from, maxLogLine)
	for {
		part, err := r.ReadSlice('\n')
		if text := bytes.TrimRight(part, "\r\n"); len(text) > 0 {
			c.line(string(text))
		}
		for err == bufio.ErrBufferFull { // the rest of a long line is of no use
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			c.mu.Lock()
			if c.left > 0 {
				c.say("lines were left out", c.left)
				c.left = 0
			}
			c.mu.Unlock()
			return
		}
	}
}

// inherited are the variables that a process has of ours. Everything else is what its server says.
func inherited() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
