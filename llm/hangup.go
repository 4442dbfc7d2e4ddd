package llm

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// HangUp returns a client for providers, whose libraries often decide themselves when an answer is closed. Closing an
// answer whose context has ended comes back only when the connection to the service is closed: the transport closes it
// in a goroutine of its own, and closing the answer alone does not wait for that. The given client is not changed.
func HangUp(client *http.Client) *http.Client {
	c := *client
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Transport = hangUp{c.Transport}
	return &c
}

type hangUp struct{ next http.RoundTripper }

func (h hangUp) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := h.next.RoundTrip(r)
	if err == nil {
		response.Body = &ending{ReadCloser: response.Body, ended: r.Context().Err}
		if a, ok := r.Context().Value(answersKey{}).(*answers); ok {
			a.add(response.Body)
		}
	}
	return response, err
}

// Hear returns a context for one call of a library over a client of HangUp, and a function to defer: it closes the answers
// that have come, whatever the library did with them. A library that finds its context ended as an answer arrives may
// return at once and leave the answer open.
func Hear(ctx context.Context) (context.Context, func()) {
	a := new(answers)
	return context.WithValue(ctx, answersKey{}, a), a.close
}

type answersKey struct{}

// answers are the bodies that came for one call.
type answers struct {
	mu     sync.Mutex
	bodies []io.Closer
}

func (a *answers) add(body io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bodies = append(a.bodies, body)
}

func (a *answers) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, body := range a.bodies {
		_ = body.Close() // what is wanted of it was read
	}
}

// ending is an answer that is read to its end when its context has ended. The transport lets a read fail only after it
// has closed the connection, so the last read has seen that.
type ending struct {
	io.ReadCloser
	ended func() error
}

func (e *ending) Close() error {
	if e.ended() != nil {
		_, _ = io.Copy(io.Discard, e.ReadCloser) // that it fails is the point
	}
	return e.ReadCloser.Close()
}
