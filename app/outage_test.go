package app

import (
	"net/http"
	"strings"
	"testing"

	"tandem/store/postgres/postgrestest"
)

// napping saves a workflow that takes a second, and returns how it is started: the answer, and the id of the execution.
func (s *served) napping(inputs string) func() (status int, body, id string) {
	s.t.Helper()
	s.want(http.StatusCreated, "POST", "/api/v1/workflows", strings.Replace(napFlow, "SECONDS", "1", 1))
	return func() (int, string, string) {
		status, body := s.call(s.token, "POST", "/api/v1/workflows/nap/execute", `{"inputs":{"text":"`+inputs+`"}}`)
		_, id, _ := strings.Cut(body, `"execution_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		return status, body, id
	}
}

// recovers waits until the server is ready, and an execution has ended, once.
func (s *served) recovers(id string) {
	s.t.Helper()
	for status := 0; status != http.StatusOK; {
		status, _ = s.call("", "GET", "/readyz", "")
	}
	for {
		status, body := s.call(s.token, "GET", "/api/v1/executions/"+id, "")
		switch {
		case status != http.StatusOK || strings.Contains(body, `"status":"RUNNING"`) || strings.Contains(body, `"status":"WAITING"`):
			continue
		case !strings.Contains(body, `"status":"SUCCESS"`):
			s.t.Fatalf("it has ended otherwise: %s", body)
		}
		break
	}
	_, body := s.call(s.token, "GET", "/api/v1/executions/"+id+"/events", "")
	if strings.Count(body, "event: node_completed\n") != 3 || strings.Count(body, "event: execution_completed\n") != 1 {
		s.t.Errorf("what is told of it: %s", body)
	}
}

// A server that is parted from its database says why it is not ready, and refuses starts. What runs goes on when they reach each
// other again.
func TestOutage_Partition(t *testing.T) {
	t.Parallel()
	address, gate := postgrestest.NewGate(t, postgrestest.Start(t).Database(t))
	s := startServer(t, ServeOptions{Dir: t.TempDir(), Database: address})
	defer s.stopAndWait()
	defer gate.Open() // so that it can stop
	start := s.napping("x")
	status, body, id := start()
	if status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	gate.Close()
	if status, body := s.call("", "GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "the database") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if status, body, _ := start(); status != http.StatusServiceUnavailable || !strings.Contains(body, "not_ready") {
		t.Errorf("a start: %d %s", status, body)
	}
	gate.Open()
	s.recovers(id)
	for status = 500; status >= 300; { // the first may find connections that are lost
		status, _, id = start()
	}
	s.recovers(id)
}
