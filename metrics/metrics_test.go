package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/host"
)

// A fork begins with another fact than other executions do.
func TestMetrics_CountsForks(t *testing.T) {
	t.Parallel()
	m := New()
	m.Recorded(host.Row{Facts: []engine.Fact{engine.ExecutionForked{}}}, nil)
	m.Recorded(host.Row{Facts: []engine.Fact{engine.ExecutionStarted{}}}, nil)
	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if line := "tandem_executions_started_total 2\n"; !strings.Contains(page.Body.String(), line) {
		t.Errorf("no line %q in\n%s", line, page.Body.String())
	}
}
