package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// slowQueries is a BigQuery whose query is not done before the test says so.
type slowQueries struct {
	*httptest.Server
	mu sync.Mutex
	// done says that the query is done; begun, asked and dry are how often it was begun, asked for and only looked at.
	done              bool
	begun, asked, dry int
	where             string
}

func newSlowQueries(t *testing.T) *slowQueries {
	t.Helper()
	s := &slowQueries{}
	m := http.NewServeMux()
	answer := func(pattern string, body func(r *http.Request) string) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if _, err := w.Write([]byte(body(r))); err != nil {
				t.Log(err) // who asked was killed
			}
		})
	}
	const job = `"jobReference":{"projectId":"p","jobId":"job-7","location":"EU"}`
	answer("POST /token", func(*http.Request) string { return `{"access_token":"tok","expires_in":3600,"token_type":"Bearer"}` })
	answer("POST /bigquery/v2/projects/p/jobs", func(*http.Request) string {
		s.dry++
		return `{"statistics":{"query":{"statementType":"SELECT"}}}`
	})
	answer("POST /bigquery/v2/projects/p/queries", func(*http.Request) string {
		s.begun++
		return `{"jobComplete":false,` + job + `}`
	})
	answer("GET /bigquery/v2/projects/p/queries/job-7", func(r *http.Request) string {
		s.asked++
		s.where = r.URL.Query().Get("location")
		if !s.done {
			return `{"jobComplete":false,` + job + `}`
		}
		return `{"jobComplete":true,` + job + `,"schema":{"fields":[{"name":"n","type":"INTEGER"}]},"rows":[{"f":[{"v":"42"}]}],"totalRows":"1"}`
	})
	s.Server = httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s
}

// A query that takes long is waited for without a process: when the process is killed meanwhile, the next one asks for the same query,
// and does not begin another.
func TestBigQuery_KilledWhileItWaits(t *testing.T) {
	t.Parallel()
	queries := newSlowQueries(t)
	c := newCrash(t)
	kill := c.serve()
	data, err := json.Marshal(map[string]any{"key": robotKey(), "token_uri": queries.URL + "/token", "base_url": queries.URL})
	if err != nil {
		t.Fatal(err)
	}
	id := c.startOne("GCP_ACTION", `{credential_id: CREDENTIAL, project_id: p, action_type: bigquery_query, query: select 42 as n}`,
		api.CredentialRequest{Name: "cloud", Type: "gcp_service_account", Data: data})
	c.becomes(id, engine.StatusWaiting)
	kill()
	queries.mu.Lock()
	queries.done = true
	queries.mu.Unlock()
	kill = c.serve()
	defer func() { kill() }()
	if out := c.succeeds(id); out.Get("rows.0.n").Int() != 42 || out.Get("resource_id").Str != "job-7" {
		t.Errorf("it puts out %s", out.Raw)
	}
	queries.mu.Lock()
	defer queries.mu.Unlock()
	if queries.begun != 1 || queries.dry != 1 || queries.asked == 0 || queries.where != "EU" {
		t.Errorf("begun %d times, looked at %d times, asked for %d times in %q", queries.begun, queries.dry, queries.asked, queries.where)
	}
}
