package llmtest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"tandem/fault"
	"tandem/llm"
)

func testCodes(t *testing.T, h Harness) {
	for _, code := range []fault.Code{fault.RateLimited, fault.RemoteError, fault.CredentialInvalid, fault.NotFound,
		fault.ContextTooLong, fault.RemoteRejected} {
		for _, stream := range []bool{true, false} {
			t.Run(string(code)+"/"+strconv.FormatBool(stream), func(t *testing.T) {
				t.Parallel()
				s := serve(t, h, tweak{}, func(x *exchange) {
					x.Header().Set("X-Should-Retry", "true") // some clients obey; retries are the engine's business
					say(Scenario{Fail: code, Message: "words of the service"})(x)
				})
				err := s.fails(h.plain(stream), code)
				if _, ok := errors.AsType[*llm.Unavailable](err); ok {
					t.Errorf("%v says when to come back, but the service did not", err)
				}
				s.only()
			})
		}
	}
}

func testRetryAfter(t *testing.T, h Harness) {
	for name, c := range map[string]struct {
		code         fault.Code
		header, text string
		least, most  time.Duration
	}{
		"Seconds": {fault.RateLimited, "Retry-After", "17", 17 * time.Second, 17 * time.Second},
		"Date": {fault.RateLimited, "Retry-After", time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat),
			5 * time.Minute, 10 * time.Minute},
		"Milliseconds": {fault.RateLimited, "Retry-After-Ms", "1500", 1500 * time.Millisecond, 1500 * time.Millisecond},
		"ServerError":  {fault.RemoteError, "Retry-After", "3", 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, h, tweak{}, func(x *exchange) {
				x.Header().Set(c.header, c.text)
				say(Scenario{Fail: c.code, Message: "come again later"})(x)
			})
			err := s.fails(h.plain(true), c.code)
			u, ok := errors.AsType[*llm.Unavailable](err)
			if !ok {
				t.Fatalf("%v (%T) does not say when to come back", err, err)
			}
			if u.RetryAfter < c.least || u.RetryAfter > c.most {
				t.Errorf("come back after %v, want %v to %v", u.RetryAfter, c.least, c.most)
			}
			s.only()
		})
	}
}

// testNotJSON: what stands between the service and us does not speak its protocol.
func testNotJSON(t *testing.T, h Harness) {
	for _, c := range []struct {
		status int
		body   string
		want   fault.Code
	}{
		{http.StatusBadGateway, "<html>Bad Gateway</html>", fault.RemoteError},
		{http.StatusServiceUnavailable, "", fault.RemoteError},
		{http.StatusGatewayTimeout, `{"error":`, fault.RemoteError},
		{http.StatusInternalServerError, `{"error":"a text"}`, fault.RemoteError},
		{http.StatusTooManyRequests, "slow down", fault.RateLimited},
		{http.StatusForbidden, "<html>", fault.CredentialInvalid},
		{http.StatusUnauthorized, "", fault.CredentialInvalid},
		{http.StatusNotFound, "404 page not found", fault.NotFound},
		{http.StatusBadRequest, "[]", fault.RemoteRejected},
		{http.StatusUnprocessableEntity, `{"detail":[{"msg":"no"}]}`, fault.RemoteRejected},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{true, false} {
				s := serve(t, h, tweak{}, page(c.status, c.body))
				s.fails(h.plain(stream), c.want)
				s.only()
			}
		})
	}
}

// testPlainCut: half an answer is not an answer.
func testPlainCut(t *testing.T, h Harness) {
	s := serve(t, h, tweak{}, func(x *exchange) {
		if reply, ok := x.encode(text("a long answer that is cut somewhere")); ok {
			body := reply.Frames[0]
			x.Header().Set("Content-Length", strconv.Itoa(len(body)))
			x.begin(reply)
			x.send(body[:len(body)/2])
			x.abort()
		}
	})
	s.fails(h.plain(false), fault.NetworkError)
	s.only()
}

func testConnectionRefused(t *testing.T, h Harness) {
	s := serve(t, h, tweak{}, say(text("nobody hears this")))
	s.server.Close()
	s.fails(h.plain(true), fault.NetworkError)
	s.fails(h.plain(false), fault.NetworkError)
}

// testEchoedSecret: services tell which key was wrong. What they say goes to people and into journals; complete looks
// for the secret in every error.
func testEchoedSecret(t *testing.T, h Harness) {
	for _, code := range []fault.Code{fault.CredentialInvalid, fault.RemoteRejected, fault.RateLimited} {
		s := serve(t, h, tweak{}, say(Scenario{Fail: code, Message: "Incorrect key provided: " + secret + ". Find yours in the console."}))
		s.fails(h.plain(true), code)
	}
	s := serve(t, h, tweak{}, page(http.StatusUnauthorized, "who is "+secret+"?"))
	s.fails(h.plain(false), fault.CredentialInvalid)
}

// hanging is a call that hangs until the client hangs up.
type hanging struct {
	arrived, gone chan struct{}
}

// hang serves one call: it does what start says, then waits for the client's end.
func hang(start func(x *exchange)) (hanging, behaviour) {
	g := hanging{make(chan struct{}), make(chan struct{})}
	return g, func(x *exchange) {
		start(x)
		close(g.arrived)
		<-x.request.Context().Done()
		close(g.gone)
	}
}

// stopped asks, ends the context once the service is hanging, and holds the provider to what it then must do.
func stopped(t *testing.T, h Harness, r llm.Request, start func(x *exchange)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, behave := hang(start)
	s := serve(t, h, tweak{}, behave)
	go func() {
		select {
		case <-g.arrived:
		case <-t.Context().Done():
		}
		cancel()
	}()
	s.canceled(ctx, r, g)
}

// canceled asks with a context that ends on the way, and holds the provider to what it then must do.
func (s *service) canceled(ctx context.Context, r llm.Request, g hanging) {
	t := s.t
	t.Helper()
	c, _, err := s.complete(ctx, r)
	open := s.open.Load()
	if err == nil {
		t.Fatalf("complete went well with %+v although its context had ended", c)
	}
	if code := fault.CodeOf(err); code != fault.Canceled {
		t.Errorf("complete: %v, want %s", err, fault.Canceled)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("complete: %v does not wrap context.Canceled", err)
	}
	if open != 0 {
		t.Errorf("%d connections are open after Complete has returned", open)
	}
	wait(t, g.gone)
	s.only()
}

// wait waits for something that comes at once if the provider is right.
func wait(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("the service still has its connection")
	}
}

func testCancelBeforeHeaders(t *testing.T, h Harness, r llm.Request) {
	stopped(t, h, r, func(*exchange) {})
}

func testCancelBeforeFirstToken(t *testing.T, h Harness, r llm.Request) {
	stopped(t, h, r, func(x *exchange) {
		if reply, ok := x.encode(text("never")); ok {
			x.begin(reply)
			if !r.Stream {
				x.send(reply.Frames[0][:1])
			}
		}
	})
}

// testCancelAsItAnswers ends the context when the answer has begun, before the provider's library looks at it.
func testCancelAsItAnswers(t *testing.T, h Harness, r llm.Request) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, behave := hang(func(x *exchange) {
		if reply, ok := x.encode(text("never")); ok {
			x.begin(reply)
			x.send(reply.Frames[0][:1])
		}
	})
	serve(t, h, tweak{answered: cancel}, behave).canceled(ctx, r, g)
}

// testCancelWithinStream ends the context while pieces keep coming, from within the sink.
func testCancelWithinStream(t *testing.T, h Harness) {
	gone := make(chan struct{})
	s := serve(t, h, tweak{}, func(x *exchange) {
		defer close(gone)
		reply, ok := x.encode(text(numbered(1000)...))
		if !ok {
			return
		}
		x.begin(reply)
		for x.request.Context().Err() == nil && x.send(reply.Frames...) { // it never ends by itself
		}
		<-x.request.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := 0
	_, err := s.provider.Complete(ctx, h.plain(true), func(llm.Delta) {
		if told++; told == 3 {
			cancel()
		}
	})
	open := s.open.Load()
	if code := fault.CodeOf(err); code != fault.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("complete: %v, want %s around context.Canceled", err, fault.Canceled)
	}
	if open != 0 {
		t.Errorf("%d connections are open after Complete has returned", open)
	}
	if told < 3 {
		t.Errorf("the sink was told %d pieces", told)
	}
	wait(t, gone)
}

func testCancelAlready(t *testing.T, h Harness, r llm.Request) {
	s := serve(t, h, tweak{}, say(text("too late")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.provider.Complete(ctx, r, func(llm.Delta) { t.Error("the sink was told something") }); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("complete: %v, want %s", err, fault.Canceled)
	}
	if s.count() != 0 {
		t.Error("the service was called")
	}
}

// testDeadline: time that runs out is told apart from a caller who gave up.
func testDeadline(t *testing.T, h Harness, r llm.Request) {
	g, behave := hang(func(*exchange) {})
	s := serve(t, h, tweak{}, behave)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := s.provider.Complete(ctx, r, func(llm.Delta) {})
	open := s.open.Load()
	if fault.CodeOf(err) != fault.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("complete: %v, want %s around context.DeadlineExceeded", err, fault.Timeout)
	}
	if s.count() == 0 {
		return // on a busy machine the time is over before the service is reached; a connection that was being made may be kept for later
	}
	if open != 0 {
		t.Errorf("%d connections are open after Complete has returned", open)
	}
	wait(t, g.gone)
}
