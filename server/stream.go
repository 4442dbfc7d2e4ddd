package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tandem/fault"
	"tandem/route"
	"tandem/story"
)

// How long a reader may take for what it is sent, and how often it is sent a sign of life.
const (
	streamWriteTimeout = 10 * time.Second
	streamKeepAlive    = 15 * time.Second
)

// openStreams are the streams that are being read. They end with the server.
type openStreams struct {
	// ctx ends with the server; what several readers share is read under it.
	ctx context.Context
	end context.CancelFunc
	// patience is how long a reader may take for what it is sent.
	patience time.Duration
	// stopping is closed when the server is about to stop: requests that wait for an execution are answered with its present state.
	stopping chan struct{}

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newOpenStreams() *openStreams {
	ctx, end := context.WithCancel(context.Background())
	return &openStreams{ctx: ctx, end: end, patience: streamWriteTimeout, stopping: make(chan struct{})}
}

// addStream counts a stream and returns its context, which ends with the request or the server.
func (o *openStreams) addStream(ctx context.Context) (_ context.Context, done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, nil, fault.New(fault.NotReady, "the server is stopping; connect again in a moment")
	}
	o.wg.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(o.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		o.wg.Done()
	}, nil
}

// Close answers all requests that wait for an execution, ends all streams and returns when they have ended; new ones are
// refused. Readers come back later, to this or to another process, and go on where they were. Call it when a listener is shut
// down, which does not end streams by itself.
func (s *Server) Close() {
	s.open.mu.Lock()
	if !s.open.closed {
		s.open.closed = true
		close(s.open.stopping)
	}
	s.open.mu.Unlock()
	if s.gateway != nil {
		s.gateway.Close() // first: it makes requests of its own
	}
	s.open.end()
	s.open.wg.Wait()
}

// streams registers the two ways to follow an execution.
func (s *Server) streams() {
	s.Stream(s.eventsOperation(), route.Readers(), s.serveEvents)
	s.Stream(webSocketOperation(), route.Readers(), s.serveWebSocket)
}

// following reads the parameters of a stream from a request.
func following(r *http.Request) (words story.Vocabulary, from story.Position, err error) {
	if words, err = story.ParseVocabulary(r.URL.Query().Get("vocabulary")); err != nil {
		return "", story.Position{}, err
	}
	// A browser that connects again repeats the address and adds the header, so the header is newer.
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		from, err = story.ParsePosition("Last-Event-ID", last)
		return words, from, err
	}
	from, err = story.ParsePosition("after", r.URL.Query().Get("after"))
	return words, from, err
}
