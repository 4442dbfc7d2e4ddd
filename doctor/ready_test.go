package doctor_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/doctor"
)

// A health check asks the server and nothing else: one that is not there, one that is something else and one that drains are not well.
func TestDoctor_Ready(t *testing.T) {
	t.Parallel()
	answers := func(health string, ready int) string {
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(health)) }) // who asks reads it
		mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(ready)
			_, _ = w.Write([]byte(`{"status":"ready"}`))
		})
		s := httptest.NewServer(mux)
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	const alive = `{"status":"alive","version":"1.2"}`
	for addr, want := range map[string]string{
		answers(alive, http.StatusOK):                 "is ready",
		answers(alive, http.StatusServiceUnavailable): "is not ready",
		answers(`{}`, http.StatusOK):                  "is not an answer of Tandem",
		strings.TrimPrefix(gone.URL, "http://"):       "no server answers",
	} {
		found := doctor.Doctor{Addr: addr, Dir: "none"}.Ready(t.Context())
		if len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Message, want) || found.OK != (want == "is ready") {
			t.Errorf("want %q and it says %+v", want, found)
		}
	}
}
