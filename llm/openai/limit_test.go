package openai

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/llm"
)

// TestProvider_EndlessAnswers: an answer without end ends, in whatever form it comes. It is inside the package to have a
// limit that is reached soon.
func TestProvider_EndlessAnswers(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]string{
		"Stream": `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 100) + `"}}]}` + "\n\n",
		"Line":   strings.Repeat("x", 1<<20),
		"Plain":  " ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				kind := "text/event-stream"
				if name == "Plain" {
					kind = "application/json"
				}
				w.Header().Set("Content-Type", kind)
				for {
					if _, err := io.WriteString(w, piece); err != nil {
						return // it was told to stop
					}
				}
			}))
			t.Cleanup(server.Close)
			p, err := New(llm.Settings{BaseURL: server.URL, HTTP: server.Client()})
			if err != nil {
				t.Fatal(err)
			}
			p.(*provider).limit = 10_000
			_, err = p.Complete(t.Context(), llm.Request{Model: "m", Stream: name != "Plain"}, func(llm.Delta) {})
			if fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("complete: %v, want %s", err, fault.TooLarge)
			}
		})
	}
}
