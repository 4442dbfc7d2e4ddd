package route

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tandem/api"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// What a body may cost besides its bytes. A name costs many times the bytes it is written with: it is kept in maps, and written
// to the metadata of an execution, twice.
const (
	// MaxKeys is how many names of objects a body may have, maxDefinitionKeys how many that of a workflow.
	MaxKeys           = 100_000
	MaxDefinitionKeys = 300_000
	// maxItems is how many values a body may have in lists and objects.
	maxItems = 1_000_000
)

// Bounds of the bodies that are worked on at the same time. The first bytes of each are not counted, so ordinary requests never
// wait for large ones.
const (
	// InFlightBytes is for those who have shown a token, inFlightStrangers for pages that need none: strangers cannot keep users out.
	InFlightBytes     = 64 << 20
	InFlightStrangers = 32 << 20
	uncountedBytes    = 64 << 10
	// countStep is how much is taken at once, so that few reads have to ask.
	countStep = 256 << 10
	// bodyPatience is how long a request waits for room.
	bodyPatience = 2 * time.Second
	// busySeconds is when a request that found no room should come again.
	busySeconds = 5
)

// Bodies bounds the sum of the bytes of bodies that are worked on.
type Bodies struct {
	Users, Strangers *semaphore.Weighted
	Patience         time.Duration
}

func newBodies() *Bodies {
	return &Bodies{Users: semaphore.NewWeighted(InFlightBytes), Strangers: semaphore.NewWeighted(InFlightStrangers), Patience: bodyPatience}
}

// meter is the body of one request. It takes room as bytes arrive, not as they are announced: who announces much and sends
// nothing keeps nobody out. The room is given back with the end of the request, or before with done.
type meter struct {
	io.ReadCloser
	ctx      context.Context
	room     *semaphore.Weighted
	patience time.Duration
	// most is how much of the body is ever kept; what is read beyond it is thrown away, and not counted.
	most int64

	mu   sync.Mutex
	read int64
	held int64
	// over says that nothing is counted any more.
	over bool
	// refused is why the body was not read to its end: there was no room.
	refused error
	// broken says that the body ended before its end.
	broken bool
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read += int64(n)
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !errors.Is(err, io.EOF) && !large {
		m.broken = !isTimeout(err)
	}
	owed := min(m.read, m.most) - uncountedBytes - m.held
	if owed <= 0 || m.over {
		return n, err
	}
	step := max(owed, countStep)
	if !m.room.TryAcquire(step) {
		ctx, stop := context.WithTimeout(m.ctx, m.patience)
		defer stop()
		if m.room.Acquire(ctx, step) != nil {
			m.refused = fault.New(fault.Busy, "the server works on as many large requests as it can hold; send it again in a few seconds").With("retry_after", busySeconds)
			return 0, m.refused
		}
	}
	m.held += step
	return n, err
}

// done gives the room back: the request goes on, and its body is no longer needed.
func (m *meter) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held > 0 {
		m.room.Release(m.held)
	}
	m.held, m.over = 0, true
}

// why is the reason for which a body was not read to its end, when it is the server's.
func (m *meter) why() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// brokeOff says that the client has gone in the middle of its body.
func (m *meter) brokeOff() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

func isTimeout(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

// BodyDone says that the body of a request is not needed while it goes on: a request that waits for an execution keeps no other one out.
func BodyDone(ctx context.Context) {
	if v := visitOf(ctx); v != nil && v.meter != nil {
		v.meter.done()
	}
}

// BodyRefused is why the body of a request was not read to its end, when it is that the server had no room for it; otherwise nil.
func BodyRefused(ctx context.Context) error {
	if v := visitOf(ctx); v != nil && v.meter != nil {
		return v.meter.why()
	}
	return nil
}

// ReadBody is how every operation, call back and message comes to its body: whole, within the time that a body may take, with
// no more names than it may have.
func (s *Router) ReadBody(w http.ResponseWriter, r *http.Request, keys int) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= uncountedBytes {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	err := readInto(&body, r)
	if _, large := errors.AsType[*http.MaxBytesError](err); large || body.Len() > MaxBody {
		return nil, bodyTooLarge()
	}
	if err != nil {
		return nil, bodyFault(err)
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	if err := checkKeys(body.Bytes(), keys); err != nil {
		return nil, err
	}
	return body.Bytes(), checkJSON(body.Bytes())
}

// readInto reads a body to its end. When a part of what is announced has arrived there is room for all of it at once: to make more and more
// would take several times the memory.
func readInto(body *bytes.Buffer, r *http.Request) error {
	if announced := r.ContentLength; announced > uncountedBytes && announced <= MaxBody {
		if n, err := body.ReadFrom(io.LimitReader(r.Body, announced/announcedParts)); err != nil || n < announced/announcedParts {
			return err
		}
		body.Grow(int(announced) - body.Len() + bytes.MinRead)
	}
	_, err := body.ReadFrom(r.Body)
	return err
}

// announcedParts is how many times as much as has arrived may be announced before there is room for it.
const announcedParts = 4

// bodyFault tells why a body could not be read to its end.
func bodyFault(err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	if isTimeout(err) {
		return Refused(http.StatusRequestTimeout, fault.Timeout, text.Of("the body of the request took too long to arrive"))
	}
	// Malformed chunks, an end before the announced one, a connection that is gone.
	return Refused(http.StatusBadRequest, fault.InvalidInput, text.Of("the body of the request broke off before its end"))
}

// checkJSON refuses JSON that could not be kept: it is not UTF-8, beyond the limits or has a key twice, and the field that is wrong is
// named. What is not JSON at all is left to the handler that expects JSON.
func checkJSON(body []byte) error {
	if wrong, ok := errors.AsType[*payload.Error](payload.Check(body, payload.Door())); looksLikeJSON(body) && ok && !wrong.Syntax {
		return api.WrongField(cmp.Or(wrong.Path, "body"), "%s", wrong.Reason)
	}
	return nil
}

func looksLikeJSON(body []byte) bool {
	first := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
	return len(first) > 0 && (first[0] == '{' || first[0] == '[')
}

// checkKeys refuses JSON with more names, or more values, than a body may have. It counts what every document must have, a colon
// for each name and a comma between values, and leaves it to others whether the document is well-formed. What does not look like
// JSON is bounded by its reader.
func checkKeys(body []byte, keys int) error {
	if len(body) <= keys || !looksLikeJSON(body) {
		return nil
	}
	names, values := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case ':':
			names++
		case ',':
			values++
		}
	}
	switch {
	case names > keys:
		return fault.Newf(fault.TooLarge, "the body of the request has more than %d names in its objects; send less at once, or large data as a list or as a file", keys).With("limit", keys)
	case values >= maxItems:
		return fault.Newf(fault.TooLarge, "the body of the request has more than %d values; send less at once, or large data as a file", maxItems).With("limit", maxItems)
	}
	return nil
}
