package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tandem/credential"
	"tandem/node"
	"tandem/validation"
	"tandem/workflow"
)

// A secret that stands in a workflow is found wherever it stands, with its place and the remedy, and is not repeated.
func TestValidate_InlineSecrets(t *testing.T) {
	t.Parallel()
	canary := "ghp" + "_" + "c4narYc4narYc4narYc4narYc4narYc4narY"
	file := strings.ReplaceAll(`metadata: {id: w, name: W, description: d, settings: {}}
nodes:
  - {id: start, name: Start, description: d, type: TRIGGER, subtype: MANUAL}
  - id: call
    name: Call
    description: d
    type: ACTION
    subtype: HTTP_REQUEST
    configurations:
      method: POST
      url: "https://bob:hunter2@service.test/x"
      headers: {Authorization: "Bearer CANARY", X-Trace: "1"}
      query_params: {api_key: CANARY}
      body: {login: {password: "hunter2"}}
    input_params: {note: "CANARY"}
  - id: fine
    name: Fine
    description: d
    type: ACTION
    subtype: HTTP_REQUEST
    configurations:
      method: GET
      url: "https://service.test/{{start.result.id}}"
      headers: {Authorization: "Bearer {{start.result.token}}"}
connections:
  - {from_node: start, to_node: call, conversion_function: "def convert(data):\n  return {'k': 'CANARY'}"}
  - {from_node: start, to_node: fine}
`, "CANARY", canary)
	report := Validate("w.yaml", []byte(file))
	var got []string
	for _, p := range report.Problems {
		if p.Code != node.ProblemInlineSecret {
			continue
		}
		got = append(got, string(p.Severity)+" "+p.Path)
		if strings.Contains(p.Message, canary) || strings.Contains(p.Message, "hunter2") || !strings.Contains(p.Message, "credential") || p.Line == 0 {
			t.Errorf("%+v", p)
		}
	}
	slices.Sort(got)
	want := []string{
		"error connections[0].conversion_function", "error nodes[1].configurations.headers.Authorization", "error nodes[1].configurations.query_params.api_key", "error nodes[1].configurations.url",
		"error nodes[1].input_params.note", "warning nodes[1].configurations.body.login.password",
	}
	if !slices.Equal(got, want) || report.Valid {
		t.Errorf("found %q\nwant %q", got, want)
	}
}

// Nothing that comes with Tandem, and no definition in its documents, is taken for a secret.
func TestInlineSecrets_NoFalseAlarms(t *testing.T) {
	t.Parallel()
	looked := 0
	look := func(name string, data []byte) {
		source, _ := workflow.Parse(data, workflow.Options{Kinds: Kinds()})
		if source == nil {
			return
		}
		looked++
		for _, p := range validation.InlineSecrets(source.Definition, nil) {
			t.Errorf("%s: %s", name, p.Error())
		}
	}
	blocks := regexp.MustCompile("(?s)```(?:yaml|json)\n(.*?)```")
	for _, root := range []string{"../examples", "../docs", "../testdata", "../bench"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".yaml", ".yml", ".json":
				look(path, data)
			case ".md":
				for _, block := range blocks.FindAllSubmatch(data, -1) {
					look(path, block[1])
					for _, found := range credential.FindInline(block[1]) {
						t.Errorf("%s: %+v", path, found)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < 20 {
		t.Errorf("only %d definitions were looked at", looked)
	}
}
