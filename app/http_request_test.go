package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/engine"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
)

// TestInstance_HTTPRequest calls a loopback service through the whole engine: what the guarded client says of a call
// decides whether it is made again.
func TestInstance_HTTPRequest(t *testing.T) {
	t.Parallel()
	var paid, busy atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pay":
			paid.Add(1)
			panic(http.ErrAbortHandler) // takes the request, drops the connection
		case "/busy":
			if busy.Add(1) == 1 {
				w.Header().Set("Retry-After", "0.05")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		case "/sick":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("X-Uri", r.URL.RequestURI())
		}
	}))
	t.Cleanup(service.Close)
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(t.Context(), Options{Dir: sqlitetest.Dir(t), HTTPAllow: allow})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	run := func(t *testing.T, config, inputs string, want engine.Status) (out, problem string) {
		t.Helper()
		id := strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
		i.saveText(t, `
metadata: {id: `+id+`, name: `+id+`, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: call, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: `+strings.ReplaceAll(config, "$URL", service.URL)+`}
connections:
  - {from_node: start, to_node: call}
`)
		execution := i.startText(t, id, inputs)
		e := i.ends(t, execution, want)
		outputs, err := i.Outputs(t.Context(), user, execution)
		if err != nil {
			t.Fatal(err)
		}
		return string(outputs["call"]), e.Error
	}
	t.Run("DroppedOnce", func(t *testing.T) {
		_, problem := run(t, `{method: POST, url: "$URL/pay", body: {amount: 7}, on_unknown: fail}`, `{}`, engine.StatusError)
		if !strings.Contains(problem, "nobody knows how it ended") || paid.Load() != 1 {
			t.Errorf("%v after %d payments", problem, paid.Load())
		}
	})
	t.Run("RetryAfter", func(t *testing.T) {
		run(t, `{method: POST, url: "$URL/busy"}`, `{}`, engine.StatusSuccess)
		if busy.Load() != 2 {
			t.Errorf("%d calls", busy.Load())
		}
	})
	t.Run("Variables", func(t *testing.T) {
		out, _ := run(t, `{url: "{{base}}/u/{{id}}/{id}"}`, `{"base": "`+service.URL+`", "id": "mine", "url_variables": {"id": "a/b"}}`, engine.StatusSuccess)
		if !strings.Contains(out, `"x-uri":"/u/a%2Fb/a%2Fb"`) {
			t.Errorf("got %s", out)
		}
	})
	t.Run("Blocked", func(t *testing.T) {
		if _, problem := run(t, `{url: "http://127.0.0.2/"}`, `{}`, engine.StatusError); !strings.Contains(problem, "--http-allow") {
			t.Errorf("got %v", problem)
		}
	})
	t.Run("Example", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join("..", "examples", "health_check.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		i.saveText(t, strings.Replace(string(text), "  name: health_check", "  id: health_check\n  name: health_check", 1))
		for path, want := range map[string]string{service.URL + "/": "is well: 200", service.URL + "/sick": "is unwell: 500", "http://127.0.0.2/": "is down: host"} {
			execution := i.startText(t, "health_check", `{"url": "`+path+`"}`)
			i.ends(t, execution, engine.StatusSuccess)
			outputs, err := i.Outputs(t.Context(), user, execution)
			if err != nil {
				t.Fatal(err)
			}
			said := string(outputs["well"]) + string(outputs["unwell"]) + string(outputs["down"])
			if !strings.Contains(said, want) {
				t.Errorf("%s: %s, want %q", path, said, want)
			}
		}
	})
}
