package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tandem/metrics"
	"tandem/route"
	"tandem/store"
	"tandem/story"
	"tandem/story/storytest"
)

// served is a stage and a server of its execution.
type served struct {
	*storytest.Stage
	server *Server
}

func newServed(t testing.TB) *served {
	t.Helper()
	st := &served{Stage: storytest.New(t)}
	st.server = st.serve()
	return st
}

func (st *served) serve() *Server {
	s := &Server{
		o: Options{
			Stores: store.Stores{Executions: storytest.Executions{St: st.Stage}, Interactions: storytest.Interactions{}}, Source: st.Stage, Hub: st.Hub, Metrics: metrics.New(), Now: time.Now,
		},
		open: newOpenStreams(),
	}
	s.Router = route.New(route.Options{Counter: s.o.Metrics, Version: "test", Now: time.Now, Log: stageLog(st.T)})
	s.stories = &story.Library{
		Executions: s.o.Stores.Executions, Interactions: s.o.Stores.Interactions, Source: st.Stage, Hub: st.Hub, Revisions: storytest.Revisions{st.Stage}, Now: time.Now,
	}
	s.streams()
	s.root = s.Edge()
	return s
}

// web serves the stage's streams; every request is the user's.
func (st *served) web(change ...func(*httptest.Server)) *httptest.Server {
	web := httptest.NewUnstartedServer(st.server.Handler())
	web.Config.BaseContext = nil
	inside := web.Config.Handler
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.ServeHTTP(w, r.WithContext(route.As(r.Context(), storytest.User())))
	})
	for _, f := range change {
		f(web)
	}
	web.Start()
	st.T.Cleanup(func() {
		st.server.Close()
		web.Close()
	})
	return web
}

// all is everything that was told so far, in the execution vocabulary.
func (st *served) all() (frames []story.Frame) {
	st.T.Helper()
	from, err := story.ParsePosition("after", "")
	if err != nil {
		st.T.Fatal(err)
	}
	r, err := st.server.stories.Follow(context.Background(), context.Background(), storytest.User(), storytest.Execution, story.VocabularyExecution, from)
	if err != nil {
		st.T.Fatal(err)
	}
	defer r.Close()
	now := make(chan time.Time)
	close(now)
	for {
		more, err := r.Next(context.Background(), now)
		if frames = append(frames, more...); err != nil && !errors.Is(err, story.ErrFinished) {
			st.T.Fatal(err)
		}
		if err != nil || len(more) == 0 {
			return frames
		}
	}
}

func stageLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func decode[T any](t testing.TB, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}
