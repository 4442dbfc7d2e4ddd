package gateway

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what is kept of streams. What is kept is for clients whose connection broke a moment ago; others ask execution_status.
const (
	maxStreams      = 4096
	maxStreamEvents = 1000
	maxStreamBytes  = 16 << 20
	// retryAfter is how long a client shall wait before it takes a stream up again.
	retryAfter = time.Second
)

// events keeps what was sent on streams, so that a client can take one up again whose connection broke. It implements the SDK's EventStore:
// of too many streams of calls the oldest are forgotten, and of a stream with too many events its beginning. A session also has one stream
// for what belongs to no call; its id is empty, and it is kept as long as the session.
type events struct {
	mu      sync.Mutex
	streams map[streamKey]*streamEvents
	// opened are the streams of calls in their order; bytes is the size of all.
	opened []streamKey
	bytes  int
}

type streamKey struct{ session, stream string }

// streamEvents are those of one stream, without the first so many.
type streamEvents struct {
	first int
	data  [][]byte
	bytes int
}

func newEvents() *events { return &events{streams: map[streamKey]*streamEvents{}} }

// Open implements mcp.EventStore.
func (e *events) Open(_ context.Context, session, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := streamKey{session, stream}
	if e.streams[key] == nil {
		e.streams[key] = &streamEvents{}
		if stream != "" {
			e.opened = append(e.opened, key)
		}
	}
	e.bound()
	return nil
}

// Append implements mcp.EventStore. What is sent on a stream that was forgotten is not kept.
func (e *events) Append(_ context.Context, session, stream string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streams[streamKey{session, stream}]
	if s == nil {
		return nil
	}
	s.data = append(s.data, data)
	s.bytes += len(data)
	e.bytes += len(data)
	if len(s.data) > maxStreamEvents {
		size := len(s.data[0])
		s.data, s.first, s.bytes = slices.Delete(s.data, 0, 1), s.first+1, s.bytes-size
		e.bytes -= size
	}
	e.bound()
	return nil
}

// bound forgets the oldest streams when there are too many, or too much is in them. mu is held.
func (e *events) bound() {
	for len(e.opened) > 0 && (len(e.opened) > maxStreams || e.bytes > maxStreamBytes) {
		e.forget(e.opened[0])
		e.opened = e.opened[1:]
	}
}

// forget forgets a stream. mu is held.
func (e *events) forget(key streamKey) {
	if s := e.streams[key]; s != nil {
		e.bytes -= s.bytes
		delete(e.streams, key)
	}
}

// After implements mcp.EventStore.
func (e *events) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streams[streamKey{session, stream}]
	if s == nil || index >= 0 && index+1 < s.first { // an index below zero is somebody who begins to listen
		return func(yield func([]byte, error) bool) {
			yield(nil, fmt.Errorf("stream %q is no longer kept: %w", stream, mcp.ErrEventsPurged))
		}
	}
	todo := slices.Clone(s.data[min(max(index+1-s.first, 0), len(s.data)):])
	return func(yield func([]byte, error) bool) {
		for _, data := range todo {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements mcp.EventStore.
func (e *events) SessionClosed(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range e.streams { // order does not matter: all of the session are forgotten
		if key.session == session {
			e.forget(key)
		}
	}
	e.opened = slices.DeleteFunc(e.opened, func(key streamKey) bool { return key.session == session })
	return nil
}

// primed adds to the event that begins a stream when a client shall come back to it; the SDK says so only when it ends one early.
type primed struct{ http.ResponseWriter }

// Write implements io.Writer. The SDK writes an event at a time.
func (p primed) Write(data []byte) (int, error) {
	event, ok := strings.CutPrefix(string(data), "event: prime\n")
	if !ok {
		return p.ResponseWriter.Write(data)
	}
	_, err := p.ResponseWriter.Write([]byte("event: prime\nretry: " + strconv.FormatInt(retryAfter.Milliseconds(), 10) + "\n" + event))
	return len(data), err
}

// Unwrap lets the SDK flush.
func (p primed) Unwrap() http.ResponseWriter { return p.ResponseWriter }
