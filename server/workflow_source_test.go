package server

import (
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
)

// asYAML says that a body is YAML.
func asYAML(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }

// TestWorkflowSource keeps the text that an author wrote with each revision, and tells it to who asks.
func TestWorkflowSource(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const at = route.Prefix + "/workflows"
	const first = "# why this is here\nmetadata: {name: Text}\nnodes:\n- {id: go, description: d, type: TRIGGER, subtype: MANUAL, position: {x: 3, y: 4}} # by hand\nnotes:\n- {id: n, text: remember}\n"
	token := w.tokens[identity.Editor]
	saved := read[api.Saved](t, w.ask(token, http.MethodPost, at+"?id=text", strings.NewReader(first), asYAML).want(t, 201))
	if saved.Workflow.ID != "text" {
		t.Fatalf("it is called %q", saved.Workflow.ID)
	}
	put := func(body string, change func(*http.Request)) api.Saved {
		t.Helper()
		return read[api.Saved](t, w.ask(token, http.MethodPut, at+"/text", strings.NewReader(body), change).want(t, 200))
	}
	if again := put(first, asYAML); again.Created {
		t.Error("the same text makes a revision")
	}
	second := strings.Replace(first, "why this", "why all this", 1)
	if other := put(second, asYAML); !other.Created || other.Workflow.Revision != 2 || other.Workflow.RevisionHash != saved.Workflow.RevisionHash {
		t.Errorf("another comment makes %+v", other)
	}
	get := func(query string) api.Workflow {
		t.Helper()
		return read[api.Workflow](t, w.call(w.tokens[identity.Viewer], http.MethodGet, at+"/text"+query, "").want(t, 200))
	}
	for query, want := range map[string]string{"?include=source": second, "?include=source&revision=1": first, "": "", "?revision=1": ""} {
		if got := get(query); got.Source != want || (want != "") != (got.SourceFormat == "yaml") {
			t.Errorf("%s has the text %q (%s)", query, got.Source, got.SourceFormat)
		}
	}
	if got := get(""); len(got.Notes) != 1 || !strings.Contains(string(got.Notes[0]), "remember") || !strings.Contains(string(got.Nodes[0]), `"position":{"x":3,"y":4}`) {
		t.Errorf("the canvas was lost: %s %s", got.Nodes, got.Notes)
	}
	// What was read, text and all, is taken back as it is.
	whole := w.call(token, http.MethodGet, at+"/text?include=source", "").want(t, 200).body
	if back := put(whole, nil); back.Created {
		t.Error("what was read makes a revision when it is written back")
	}
	// A program's JSON is not a text that anybody wrote.
	if put(strings.Replace(whole, "remember", "forget", 1), nil); get("?include=source").Source != "" {
		t.Errorf("the text of revision 3 is %q", get("?include=source").Source)
	}
	w.call(token, http.MethodGet, at+"/text?include=everything", "").want(t, 422)
}
