package n8n_test

import (
	"strings"
	"testing"

	"tandem/importer"
	"tandem/importer/importertest"
	"tandem/importer/n8n"
	"tandem/workflow"
)

// A service without a kind of its own is called over HTTP, as its API wants it, and the report says so.
func TestServices(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]string{
		`"n8n-nodes-base.n8n", "parameters": {"operation": "get", "workflowId": {"__rl": true, "value": "w7", "mode": "id"}}`: `"url":"{{env.N8N_URL}}/api/v1/workflows/w7"`,
		`"n8n-nodes-base.twitter", "parameters": {"text": "Hello"}`:                                                           `"body":{"text":"Hello"}`,
		`"n8n-nodes-base.vonage", "parameters": {"from": "a", "to": "b", "message": "c"}`:                                     `"body":{"from":"a","text":"c","to":"b"}`,
		`"n8n-nodes-base.airtable", "parameters": {"operation": "get", "base": "b1", "table": "t1", "id": "r1"}`:              `"url":"https://api.airtable.com/v0/b1/t1/r1"`,
	} {
		file := `{"name": "s", "nodes": [{"name": "Call", "position": [0, 0], "typeVersion": 1, "type": ` + node + `}], "connections": {}}`
		got, err := importer.Import("s.json", []byte(file), importertest.Options(n8n.System{}))
		if err != nil {
			t.Fatal(err)
		}
		w := got.Workflows[0]
		if definition := string(workflow.Encode(w.Definition)); w.Report.Approximated != 1 || !strings.Contains(definition, want) || !strings.Contains(definition, `"subtype":"HTTP_REQUEST"`) {
			t.Errorf("%s becomes %s; want %s (%+v)", node, definition, want, w.Report.Nodes)
		}
	}
}

func TestSystem(t *testing.T) {
	t.Parallel()
	importertest.Conform(t, n8n.System{}, "testdata/*")
}

func TestSystem_Hostile(t *testing.T) {
	t.Parallel()
	importertest.Hostile(t, n8n.System{}, "testdata/*")
}

func FuzzImport(f *testing.F) { importertest.Fuzz(f, n8n.System{}, "testdata/*") }
