package sandbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Parent and child talk in frames over two pipes: four bytes of length, then fields, each either eight bytes or four
// bytes of length and the bytes. Both are the same binary, so there is no version.

// request is one call as the child gets it.
type request struct {
	source, entry, input, seed []byte
	aliases                    []byte // separated by commas
	now                        int64  // nanoseconds since 1970; 0 is the real clock
	memoryMB, outputLimit      int
}

// reply is what a child says of one call. Its first reply is the greeting: replyValue, or an error when it could not
// start.
type reply struct {
	kind               byte
	value              []byte
	stdout, stderr     []byte
	errorType, message string
	traceback, limit   string
	line               int
	duration           time.Duration
}

const (
	replyPrinted = 'P' // the code has printed something, in stdout or stderr, and goes on
	replyValue   = 'V' // the function returned
	replyError   = 'E' // the code raised, or did not compile
	replyInvalid = 'J' // what it returned is not JSON
	replyLimit   = 'L' // it reached a limit other than time
	replyBroken  = 'B' // the child itself cannot go on
)

// maxFrame bounds what a parent reads from a child.
const maxFrame = maxInput + maxSource + 4*streamLimit

// frameStep is how much of a frame is made room for before anything of it has arrived; after that, as much as has.
const frameStep = 256 << 10

var errFrame = errors.New("a frame of the sandbox is cut off") // read-only

func (q *request) append(b []byte) []byte {
	b = appendBytes(b, q.source)
	b = appendBytes(b, q.entry)
	b = appendBytes(b, q.input)
	b = appendBytes(b, q.seed)
	b = appendBytes(b, q.aliases)
	b = appendInt(b, q.now)
	b = appendInt(b, int64(q.memoryMB))
	return appendInt(b, int64(q.outputLimit))
}

func parseRequest(b []byte) (*request, error) {
	f := fields{b: b}
	q := &request{source: f.bytes(), entry: f.bytes(), input: f.bytes(), seed: f.bytes(), aliases: f.bytes(), now: f.int(),
		memoryMB: int(f.int()), outputLimit: int(f.int())}
	return q, f.end()
}

func (r *reply) append(b []byte) []byte {
	b = append(b, r.kind)
	b = appendBytes(b, r.value)
	b = appendBytes(b, r.stdout)
	b = appendBytes(b, r.stderr)
	for _, s := range []string{r.errorType, r.message, r.traceback, r.limit} {
		b = appendBytes(b, []byte(s))
	}
	b = appendInt(b, int64(r.line))
	return appendInt(b, int64(r.duration))
}

func parseReply(b []byte) (*reply, error) {
	if len(b) == 0 {
		return nil, errFrame
	}
	f := fields{b: b[1:]}
	r := &reply{kind: b[0], value: f.bytes(), stdout: f.bytes(), stderr: f.bytes()}
	for _, s := range []*string{&r.errorType, &r.message, &r.traceback, &r.limit} {
		*s = string(f.bytes())
	}
	r.line, r.duration = int(f.int()), time.Duration(f.int())
	return r, f.end()
}

func appendBytes(b, field []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(field)))
	return append(b, field...)
}

func appendInt(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }

// fields reads a frame from the front; after the first error everything is empty.
type fields struct {
	b   []byte
	err error
}

func (f *fields) take(n int) []byte {
	if f.err != nil || n < 0 || n > len(f.b) {
		f.err = errFrame
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) bytes() []byte {
	n := f.take(4)
	if n == nil {
		return nil
	}
	return f.take(int(binary.LittleEndian.Uint32(n)))
}

func (f *fields) int() int64 {
	v := f.take(8)
	if v == nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(v))
}

func (f *fields) end() error {
	if f.err == nil && len(f.b) > 0 {
		f.err = errFrame
	}
	return f.err
}

// frame begins a frame in b; writeFrame fills its length in and sends it.
func frame(b []byte) []byte { return append(b[:0], 0, 0, 0, 0) }

func writeFrame(w io.Writer, b []byte) error {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	_, err := w.Write(b)
	return err
}

// readFrame reads one frame; the end of the stream before its first byte is io.EOF.
func readFrame(r *bufio.Reader) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxFrame {
		return nil, fmt.Errorf("a frame of the sandbox has %d bytes, at most %d are allowed", size, maxFrame)
	}
	// What is announced is believed as it arrives: a child that announces much and sends nothing costs nothing.
	var b []byte
	for len(b) < int(size) {
		at := len(b)
		b = slices.Grow(b, min(int(size)-at, max(frameStep, at)))
		b = b[:min(cap(b), int(size))]
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
	}
	return b, nil
}
