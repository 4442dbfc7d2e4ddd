package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Serve serves answers in turn, the last one again and again, and keeps the bodies of requests. It is for what one provider does
// and others do not; what all must do is tested by [Run].
func Serve(t *testing.T, answers ...func(http.ResponseWriter)) (*httptest.Server, func() []map[string]any) {
	t.Helper()
	var mu sync.Mutex
	var bodies []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var body map[string]any
		if err != nil || json.Unmarshal(data, &body) != nil {
			t.Errorf("the request %q cannot be read: %v", data, err)
		}
		mu.Lock()
		answer := answers[min(len(bodies), len(answers)-1)]
		bodies = append(bodies, body)
		mu.Unlock()
		answer(w)
	}))
	t.Cleanup(server.Close)
	return server, func() []map[string]any {
		mu.Lock()
		defer mu.Unlock()
		return bodies
	}
}

// Says answers with a body in JSON.
func Says(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has gone needs no answer
	}
}
