package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/api"
	"tandem/client"
)

// Large outputs are fetched for people; what only looks like the name of one stays what it is.
func TestClient_WholeOutputs(t *testing.T) {
	t.Parallel()
	whole := `"` + strings.Repeat("x", 40_000) + `"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/executions/e/values/aa") {
			fmt.Fprint(w, whole)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404,"code":"not_found","detail":"there is none"}`)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"small": `{"n":1}`, "large": whole, "looks": `{"$blob":"zz","size":3}`, "text": `"$blob"`}
	e := api.Execution{ExecutionID: "e", Outputs: map[string]json.RawMessage{
		"small": json.RawMessage(want["small"]), "looks": json.RawMessage(want["looks"]), "text": json.RawMessage(want["text"]), "large": fmt.Appendf(nil, `{"$blob":"aa","size":%d}`, len(whole)),
	}}
	if err := c.WholeOutputs(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	for id, output := range want { // order does not matter: each is for itself
		if got := string(e.Outputs[id]); got != output {
			t.Errorf("%s: %d bytes, want %d: %.60s", id, len(got), len(output), got)
		}
	}
}
