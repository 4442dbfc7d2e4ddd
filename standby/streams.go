package standby

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"tandem/route"
)

// Streams answers those who follow executions, from the database. It must be closed, which ends what it answers.
type Streams interface {
	http.Handler
	Close() error
}

// isStream says that a request is to follow an execution.
func isStream(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, route.Prefix+"/executions/")
	if !ok || r.Method != http.MethodGet {
		return false
	}
	id, way, ok := strings.Cut(rest, "/")
	return ok && id != "" && (way == "events" || way == "stream")
}

// local answers streams here. A stream goes on when the owner is gone, and when this process owns the database.
type local struct {
	open func(context.Context) (Streams, error)
	log  *slog.Logger
	// standing ends when the server does not stand by any more.
	standing context.Context

	mu sync.Mutex
	// streams are those that are open; opening says that somebody opens them, and until is before when it is not tried again.
	streams       Streams
	opening, left bool
	until         time.Time
	all           sync.WaitGroup
}

// openTimeout is how long it may take to get ready for streams, and how long it is not tried again when that does not work. Who has
// asked first waits for it; others are forwarded meanwhile.
const openTimeout = 10 * time.Second

// serve answers a request if it is to follow an execution, and nothing keeps this server from that. What it would refuse the owner is
// asked for: that one knows who was refused how often, and writes it down.
func (l *local) serve(w http.ResponseWriter, r *http.Request) bool {
	if l.open == nil || !isStream(r) {
		return false
	}
	streams := l.enter()
	if streams == nil {
		return false
	}
	defer l.all.Done()
	held := &heldBack{ResponseWriter: w, header: http.Header{}}
	streams.ServeHTTP(held, r)
	return !held.refused
}

// enter counts a stream; nil: there are none here.
func (l *local) enter() Streams {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil && !l.left && !l.opening && !time.Now().Before(l.until) {
		l.opening = true
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(l.standing, openTimeout) // they are for others, too
		streams, err := l.open(ctx)
		cancel()
		l.mu.Lock()
		l.opening = false
		if err == nil && l.left {
			err = errors.Join(context.Cause(l.standing), streams.Close())
		}
		if err != nil {
			l.until = time.Now().Add(openTimeout)
			l.log.Info("streams are forwarded to the server that owns the database", "reason", err)
			return nil
		}
		l.streams = streams
	}
	if l.streams == nil || l.left {
		return nil
	}
	l.all.Add(1)
	return l.streams
}

// rest is what goes on when a server does not stand by any more.
type rest struct {
	streams Streams
	web     *http.Server
	ended   chan struct{}
	once    sync.Once
	err     error
}

// leave lets no request in any more. Streams go on until they end by themselves, or are ended.
func (l *local) leave(ctx context.Context, web *http.Server) *rest {
	l.mu.Lock()
	l.left = true
	t := &rest{streams: l.streams, web: web, ended: make(chan struct{})}
	l.mu.Unlock()
	go func() { // it ends with the last stream
		err := web.Shutdown(ctx)
		l.all.Wait() // those that are not the web server's any more
		t.close()
		if err != nil {
			l.log.Info("streams were broken off", "error", err)
		}
		close(t.ended)
	}()
	return t
}

func (t *rest) close() {
	t.once.Do(func() {
		if t.streams != nil {
			t.err = t.streams.Close()
		}
	})
}

// end ends all streams.
func (t *rest) end() error {
	t.close()
	select {
	case <-t.ended:
		return t.err
	case <-time.After(endTimeout):
		return errors.Join(t.err, t.web.Close())
	}
}

// heldBack keeps a refusal back, so that another can answer.
type heldBack struct {
	http.ResponseWriter
	header  http.Header
	begun   bool
	refused bool
}

// Header implements [http.ResponseWriter].
func (h *heldBack) Header() http.Header {
	if h.begun {
		return h.ResponseWriter.Header()
	}
	return h.header
}

// WriteHeader implements [http.ResponseWriter].
func (h *heldBack) WriteHeader(status int) {
	if h.begun || h.refused {
		return
	}
	if status >= http.StatusBadRequest {
		h.refused = true
		return
	}
	h.begun = true
	maps.Copy(h.ResponseWriter.Header(), h.header)
	h.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (h *heldBack) Write(body []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.refused {
		return len(body), nil
	}
	return h.ResponseWriter.Write(body)
}

// Unwrap lets an [http.ResponseController] reach the connection.
func (h *heldBack) Unwrap() http.ResponseWriter { return h.ResponseWriter }
