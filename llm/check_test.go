package llm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"tandem/credential"
)

// A key that is taken is taken however the service lists its models, and whatever else it answers.
func TestKeyCheck_ReadsTheListAlone(t *testing.T) {
	t.Parallel()
	for answer, found := range map[string]string{
		`{"data":[{"id":"a"},{"id":"b"}]}`:                     "there are 2 models",
		`{"models":[{"name":"a"}]}`:                            "there are 1 models",
		`{"data":[{"id":"a"}],"models":[{"id":"a"},{}]}`:       "there are 2 models",
		`{"data":[{"id":"a"}],"models":{"a":{"size":1}}}`:      "there are 1 models",
		`{"data":[{"id":"a"},{"id":"b"}],"models":"see data"}`: "there are 2 models",
		`{"data":null,"models":[{"name":"a"}]}`:                "there are 1 models",
		`{"data":{"page":1},"models":[{"name":"a"}]}`:          "there are 1 models",
		`{}`: "there are 0 models",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write([]byte(answer)); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(server.Close)
		check := KeyCheck{Service: "the service", Base: server.URL, Path: "/models", Headers: func(key string) []string { return []string{"Authorization", key} }}
		got, err := check.Check(t.Context(), credential.Opened{ID: "c", Data: json.RawMessage(`{"api_key":"k"}`)}, credential.Outside{HTTP: server.Client()})
		if err != nil || got != "the key is taken; "+found {
			t.Errorf("%s is %q, %v", answer, got, err)
		}
	}
}
