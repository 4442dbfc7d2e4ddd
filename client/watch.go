package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/api"
	"tandem/fault"
)

// The two vocabularies in which a stream reports what happens.
const (
	VocabularyExecution = "execution"
	VocabularyFlow      = "flow"
)

const (
	// idleTimeout is how long a stream may be silent. A server sends a sign of life every 15 seconds.
	idleTimeout = 60 * time.Second
	// maxFrame is how large a frame may be. Large values are references in it.
	maxFrame = 16 << 20
	// firstPause and longestPause bound the time between two connections, maxFailures how many in a row may fail.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	maxFailures  = 12
)

// Watch calls each for every frame of an execution's stream after a position ("" is the beginning, otherwise "17" or
// "17.2"), in order, and returns nil when the execution has ended and everything was handed over. A connection that breaks is made
// again and goes on where it was: frames that tell of the journal come once each and none is missing. Frames of output
// while it is made have no position: after a break the first of them has Snapshot set and replaces what came before.
//
// It returns the error of each, that of ctx, a refusal of the server, or, when the server cannot be reached for about
// a minute, that.
func (c *Client) Watch(ctx context.Context, execution, after, vocabulary string, each func(api.Event) error) error {
	last, err := parsePosition(after)
	if err != nil {
		return err
	}
	w := &watch{client: c, execution: execution, vocabulary: vocabulary, last: last, pause: firstPause, each: each}
	for failures := 0; ; {
		before, since := w.last, time.Now()
		err := w.connect(ctx)
		if w.last != before || time.Since(since) > longestPause {
			failures = 0
		}
		var told *Error
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, new(*callerError)):
			return errors.Unwrap(err)
		case err == nil && w.over:
			return nil
		case err == nil:
			// The stream has ended before the execution: the server is being stopped, or a proxy has ended the stream.
			err = fault.Newf(fault.NetworkError, "the stream of execution %q ended again and again before the execution did", execution)
		case !temporary(err):
			return err
		}
		if failures++; failures > maxFailures {
			return err
		}
		wait := min(w.pause<<min(failures-1, 10), longestPause)
		if errors.As(err, &told) {
			wait = max(wait, min(told.RetryAfter, 30*time.Second))
		}
		if err := pause(ctx, jitter(wait)); err != nil {
			return err
		}
	}
}

// temporary says whether another try may succeed: the connection broke, or the server is not ready.
func temporary(err error) bool {
	if told, ok := errors.AsType[*Error](err); ok {
		return told.Status >= 500 || told.Status == http.StatusTooManyRequests || told.Status == http.StatusRequestTimeout
	}
	switch fault.CodeOf(err) {
	case fault.NetworkError, fault.Timeout:
		return true
	}
	return false
}

// watch is a stream over several connections. It belongs to the goroutine of Watch.
type watch struct {
	client     *Client
	execution  string
	vocabulary string
	// last is the position of the newest frame that each has seen.
	last position
	// over says that nothing more comes: the newest frame reports the end of the execution, or the server says so.
	over  bool
	pause time.Duration
	each  func(api.Event) error
}

// callerError is an error of each, which ends everything.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }
func (e *callerError) Unwrap() error { return e.err }

// connect reads one connection to its end. Nil means that the server has ended it in good order.
func (w *watch) connect(ctx context.Context) error {
	// A connection that is silent for too long is given up. Everything that is read restarts the timer.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(idleTimeout, func() {
		cancel(fault.Newf(fault.Timeout, "nothing came from %s for %v", w.client.base, idleTimeout))
	})
	defer silent.Stop()
	r := request{
		method: http.MethodGet, path: to("/executions/%s/events", w.execution), query: url.Values{},
		header: http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}},
	}
	text(r.query, "vocabulary", w.vocabulary)
	if w.last != (position{}) {
		r.header.Set("Last-Event-ID", w.last.String())
	}
	response, err := w.client.open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent { // it has ended, and nothing comes after the position
		w.over = true
		return nil
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fault.Newf(fault.RemoteError, "%s answered with %q instead of a stream of events; is it a Tandem server?", w.client.base, kind)
	}
	lines := &lineReader{in: bufio.NewReaderSize(response.Body, 32<<10), read: func() { silent.Reset(idleTimeout) }}
	if err := w.frames(lines); err != nil {
		if _, mine := errors.AsType[*callerError](err); mine {
			return err
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if fault.CodeOf(err) != fault.Internal {
			return err
		}
		return w.client.broken(ctx, err)
	}
	return nil
}

// frames reads frames until the stream ends. A frame that is not complete is dropped: it comes again.
func (w *watch) frames(lines *lineReader) error {
	var id string
	var data []byte
	some := false
	for {
		line, err := lines.nextLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(line) == 0 {
			if some {
				if err := w.frame(id, data); err != nil {
					return err
				}
			}
			id, data, some = "", data[:0], false
			continue
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			if some {
				data = append(data, '\n')
			}
			if data, some = append(data, value...), true; len(data) > maxFrame {
				return fault.Newf(fault.TooLarge, "a frame of the stream has more than %d MiB", maxFrame>>20)
			}
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				w.pause = max(min(time.Duration(ms)*time.Millisecond, longestPause), 10*time.Millisecond)
			}
		}
	}
}

// frame hands a whole frame on, unless it has been seen.
func (w *watch) frame(id string, data []byte) error {
	var e api.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return fault.Newf(fault.RemoteError, "frame %q of the stream of execution %q cannot be read: %w", id, w.execution, err)
	}
	at := position{e.Seq, e.Part}
	if id != "" {
		var err error
		if at, err = parsePosition(id); err != nil {
			return err
		}
		e.Seq, e.Part = at.seq, at.part
	}
	if at != (position{}) && at.compare(w.last) <= 0 {
		return nil
	}
	if err := w.each(e); err != nil {
		return &callerError{err}
	}
	if at != (position{}) {
		w.last, w.over = at, Final(e.EventType)
	}
	return nil
}

// Final says whether a type of event, of either vocabulary, reports the end of an execution.
func Final(eventType string) bool {
	switch eventType {
	case "execution_completed", "execution_failed", "execution_canceled", "execution_timeout", "flow.success", "flow.failed", "flow.cancel":
		return true
	}
	return false
}

// position is a place in a stream. The zero position is before everything.
type position struct {
	seq  uint64
	part int
}

// wholeRow is the part of a position that is written without one: the whole row was seen.
const wholeRow = 1<<31 - 1

func parsePosition(s string) (position, error) {
	if s == "" {
		return position{}, nil
	}
	row, part, parted := strings.Cut(s, ".")
	p := position{part: wholeRow}
	var err error
	if p.seq, err = strconv.ParseUint(row, 10, 64); err == nil && parted {
		p.part, err = strconv.Atoi(part)
	}
	if err != nil || p.part < 0 || p.part > wholeRow {
		return position{}, fault.Newf(fault.Invalid, "position %q: write it like 17 or 17.2", s)
	}
	if p.seq == 0 {
		return position{}, nil
	}
	return p, nil
}

func (p position) String() string {
	if p.part == wholeRow {
		return strconv.FormatUint(p.seq, 10)
	}
	return fmt.Sprintf("%d.%d", p.seq, p.part)
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.seq, q.seq), cmp.Compare(p.part, q.part))
}

// lineReader reads lines that end with LF, CR LF or CR, as streams of events may.
type lineReader struct {
	in *bufio.Reader
	// read is called whenever something has come.
	read func()
	line []byte
	// afterCR says that a LF now belongs to the line before; begun says that the byte order mark at the beginning was looked for.
	afterCR, begun bool
}

// nextLine returns a line without its end, valid until the next call. A line that is not complete is dropped.
func (r *lineReader) nextLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if r.in.Buffered() == 0 {
			if _, err := r.in.Peek(1); err != nil {
				return nil, err
			}
			r.read()
		}
		b, err := r.in.ReadByte()
		if err != nil {
			return nil, err
		}
		skip := r.afterCR && b == '\n'
		r.afterCR = b == '\r'
		switch {
		case skip:
		case b == '\n', b == '\r':
			if !r.begun {
				r.begun = true
				r.line = []byte(strings.TrimPrefix(string(r.line), "\ufeff"))
			}
			return r.line, nil
		default:
			if r.line = append(r.line, b); len(r.line) > maxFrame {
				return nil, fault.Newf(fault.TooLarge, "a line of the stream has more than %d MiB", maxFrame>>20)
			}
		}
	}
}
