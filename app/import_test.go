package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/importer"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// imported imports a file of the importers' own tests, with SERVICE standing for an address.
func imported(t *testing.T, file, service string) *importer.Workflow {
	t.Helper()
	content, err := os.ReadFile("../importer/" + file)
	if err != nil {
		t.Fatal(err)
	}
	im := NewImporter()
	t.Cleanup(im.Close)
	got, err := im.Import(file, []byte(strings.ReplaceAll(string(content), "SERVICE", service)), "en")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Workflows) != 1 || !got.Workflows[0].Report.Valid {
		t.Fatalf("%s: %+v", file, got.Workflows[0].Report.Problems)
	}
	return &got.Workflows[0]
}

// fidelity is what became of a node of the file.
func fidelity(t *testing.T, w *importer.Workflow, name string) api.ImportedNode {
	t.Helper()
	for _, n := range w.Report.Nodes {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("the report has no node %q: %+v", name, w.Report.Nodes)
	return api.ImportedNode{}
}

// runImported saves and runs what was imported.
func runImported(t *testing.T, w *importer.Workflow, inputs string, want engine.Status) (outputs map[string]json.RawMessage, problem string) {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(t.Context(), Options{Dir: sqlitetest.Dir(t), HTTPAllow: allow, CodeCache: codeCache()})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	w.Definition.Metadata.ID = "imported"
	i.saveText(t, string(workflow.Encode(w.Definition)))
	execution := i.startText(t, "imported", inputs)
	e := i.ends(t, execution, want)
	outputs, err = i.Outputs(t.Context(), user, execution)
	if err != nil {
		t.Fatal(err)
	}
	return outputs, e.Error
}

// shop is a service with orders that takes invoices.
func shop(t *testing.T) (address string, taken func() []string) {
	var mu sync.Mutex
	var bodies []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/orders" {
			_, _ = io.WriteString(w, `{"shop": "Corner", "orders": [{"id": 1, "total": 250}, {"id": 2, "total": 50}, {"id": 3, "total": 125}]}`)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		bodies = append(bodies, string(body))
		mu.Unlock()
		_, _ = io.WriteString(w, `{"ok": true}`)
	}))
	t.Cleanup(service.Close)
	return strings.TrimPrefix(service.URL, "http://"), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bodies)
	}
}

func TestImport_N8nItems(t *testing.T) {
	t.Parallel()
	address, taken := shop(t)
	w := imported(t, "n8n/testdata/orders.json", address)
	if n := fidelity(t, w, "Fetch Orders"); len(n.Secrets) != 1 || len(w.Secrets) != 1 || !strings.Contains(string(w.Secrets[0].Data), "9f8e7d6c5b4a39281706f5e4d3c2b1a0") {
		t.Errorf("the token was not moved to a credential: %+v, %+v", n, w.Secrets)
	}
	if definition := string(workflow.Encode(w.Definition)); strings.Contains(definition, "9f8e7d6c") {
		t.Errorf("the token stands in the workflow: %s", definition)
	}
	if n := fidelity(t, w, "Odd"); n.Fidelity != "missing" || !strings.Contains(strings.Join(n.Notes, " "), "somethingElse") {
		t.Errorf("a node without a counterpart: %+v", n)
	}
	if n := fidelity(t, w, "Label"); n.Kind != "ACTION.EDIT_FIELDS" || !slices.Contains(n.NodeIDs, "label_each") {
		t.Errorf("what runs for each item: %+v", n)
	}
	if !slices.ContainsFunc(w.Report.Notes, func(s string) bool { return strings.Contains(s, `"Gone"`) }) {
		t.Errorf("a connection from a node that is not there: %q", w.Report.Notes)
	}
	if len(w.Definition.Notes) != 1 || w.Definition.Notes[0].Text != "## Orders" {
		t.Errorf("notes %+v", w.Definition.Notes)
	}
	for i := range w.Definition.Nodes { // the credential is not there
		n := &w.Definition.Nodes[i]
		n.Configurations = json.RawMessage(strings.ReplaceAll(string(n.Configurations), `"credential_id":"fetch_orders_key",`, ""))
	}
	outputs, _ := runImported(t, w, `{}`, engine.StatusSuccess)
	if got := taken(); len(got) != 2 || got[0] != `{"net":200,"text":"Order 1 of Corner"}` || got[1] != `{"net":100,"text":"Order 3 of Corner"}` {
		t.Errorf("sent %q", got)
	}
	if got := string(outputs["collect"]); !strings.Contains(got, `"sent":[{"ok":true},{"ok":true}]`) {
		t.Errorf("collected %s", got)
	}
}

func TestImport_N8nLoops(t *testing.T) {
	t.Parallel()
	w := imported(t, "n8n/testdata/single.json", "")
	outputs, _ := runImported(t, w, `{}`, engine.StatusSuccess)
	if got, want := string(outputs["merge"]), `"merged_data":[{"n":1,"day":"","twice":2},{"n":3,"day":"2026-02-01","twice":6,"size":"big"},{"n":9}]`; !sameFields(t, got, want) {
		t.Errorf("merged %s", got)
	}
}

// sameFields says that the list merged_data of an output is this one, whatever else items have.
func sameFields(t *testing.T, output, want string) bool {
	t.Helper()
	var got, wanted struct {
		Merged []map[string]any `json:"merged_data"`
	}
	if err := json.Unmarshal([]byte(output), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte("{"+want+"}"), &wanted); err != nil {
		t.Fatal(err)
	}
	if len(got.Merged) != len(wanted.Merged) {
		return false
	}
	for i := range wanted.Merged {
		for name, value := range wanted.Merged[i] {
			if got.Merged[i][name] != value {
				return false
			}
		}
	}
	return true
}

func TestImport_N8nMissing(t *testing.T) {
	t.Parallel()
	w := imported(t, "n8n/testdata/orders.json", "127.0.0.1:1")
	w.Definition.Nodes = slices.DeleteFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID != "start" && n.ID != "odd" })
	w.Definition.Connections = []workflow.Connection{{ID: "c", FromNode: "start", OutputKey: "result", ToNode: "odd"}}
	if _, problem := runImported(t, w, `{}`, engine.StatusError); !strings.Contains(problem, "Placeholder for Odd") {
		t.Errorf("a run that reaches what is missing ends with %q", problem)
	}
}

func TestImport_N8nAgent(t *testing.T) {
	t.Parallel()
	w := imported(t, "n8n/testdata/agent.json", "")
	agent := w.Definition.Nodes[slices.IndexFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID == "ai_agent" })]
	if agent.Kind() != "AI_AGENT.OPENAI_CHATGPT" || !slices.Equal(agent.AttachedNodes, []string{"memory", "adder", "lookup"}) {
		t.Errorf("the agent is %s with %q", agent.Kind(), agent.AttachedNodes)
	}
	for _, want := range []string{`"model":"gpt-4o-mini"`, `"credential_id":"OpenAI account"`, `"response_format":"schema"`, `"user_prompt":"{{chat.outputs.message}}"`, `"temperature":0.2`} {
		if !strings.Contains(string(agent.Configurations), want) {
			t.Errorf("the agent lacks %s: %s", want, agent.Configurations)
		}
	}
	if n := fidelity(t, w, "Model"); n.Fidelity != "kept" || n.Kind != "AI_AGENT.OPENAI_CHATGPT" {
		t.Errorf("the model: %+v", n)
	}
	if n := fidelity(t, w, "Other flow"); n.Fidelity != "missing" {
		t.Errorf("a tool without a counterpart: %+v", n)
	}
	if !slices.ContainsFunc(w.Report.Credentials, func(c api.ImportedCredential) bool { return c.Name == "OpenAI account" && c.Type == "openai" }) {
		t.Errorf("credentials %+v", w.Report.Credentials)
	}
	say := w.Definition.Nodes[slices.IndexFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID == "say" })]
	if !strings.Contains(string(say.Configurations), "{{ai_agent.outputs.content.answer}}") {
		t.Errorf("what the agent answers is read as %s", say.Configurations)
	}
}

// Fields that are set, kept, left out and renamed, parts of a page, a feed and a hash become kinds of ours, and do what they did.
func TestImport_N8nFields(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/feed" {
			w.Header().Set("Content-Type", "application/rss+xml")
			_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>N</title><link>https://example.com/</link><description>d</description><item><title>One</title><link>https://example.com/1</link><guid>g1</guid>`+
				`<pubDate>Mon, 02 Jan 2023 15:04:05 GMT</pubDate><description>First</description></item></channel></rss>`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"page": "<h1>Tea</h1><a href='/a'>A</a><a href='/b'>B</a>", "First Name": "Ann", "secret": 1, "shop": {"id": 7, "town": "Bern"}}`)
	}))
	t.Cleanup(service.Close)
	w := imported(t, "n8n/testdata/fields.json", strings.TrimPrefix(service.URL, "http://"))
	for name, kind := range map[string]string{"Edit": "ACTION.EDIT_FIELDS", "Some": "ACTION.EDIT_FIELDS", "Without": "ACTION.EDIT_FIELDS", "Flat": "ACTION.EDIT_FIELDS", "Rename": "ACTION.EDIT_FIELDS", "Extract": "ACTION.HTML_EXTRACTION", "Feed": "ACTION.RSS_READ"} {
		if n := fidelity(t, w, name); n.Kind != kind || n.Fidelity == "missing" {
			t.Errorf("%s is %+v; want %s", name, n, kind)
		}
	}
	outputs, _ := runImported(t, w, `{}`, engine.StatusSuccess)
	for node, want := range map[string]string{
		"edit":      `{"First Name":"Ann","new":"Bern","page":"*","secret":1,"shop":{"id":7,"name":"Corner","town":"Bern"}}`,
		"some":      `{"First Name":"Ann","shop":{"id":7},"x":1}`,
		"without":   `{"First Name":"Ann","shop":{"id":7},"y":2}`,
		"flat":      `{"shop.name":"flat"}`,
		"rename":    `{"count":1,"items":[{"name":"Ann","page":"*","secret":1,"shop":{"number":7,"town":"Bern"}}]}`,
		"extract":   `{"heading":"Tea","links":["/a","/b"]}`,
		"show_each": `{"day":"2023-01-02T15:04:05Z","id":"g1","where":"https://example.com/1"}`,
		"hash":      `[{"a":1,"sum":"7239ea2b5dc943f61f3c0a0276c20974"}]`,
	} {
		if got := canonicalOutput(t, outputs[node]); got != want {
			t.Errorf("%s has %s; want %s", node, got, want)
		}
	}
}

// canonicalOutput is an output with its fields in order, without a long page and what code says besides its result.
func canonicalOutput(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	if object, ok := v.(map[string]any); ok {
		if list, ok := object["items"].([]any); ok && len(list) > 0 {
			if one, ok := list[0].(map[string]any); ok && one["page"] != nil {
				one["page"] = "*"
			}
		}
		if object["page"] != nil {
			object["page"] = "*"
		}
		if code, ok := object["result"]; ok && object["stdout"] != nil {
			v = code
		}
		if list, ok := object["results"].([]any); ok && len(list) == 1 {
			v = list[0]
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// What an assigner has surely set is read, and not what the variable was at the beginning; templates are those of Jinja2.
func TestImport_DifyAssigned(t *testing.T) {
	t.Parallel()
	w := imported(t, "dify/testdata/assigned.yml", "")
	if n := fidelity(t, w, "Words"); n.Kind != "ACTION.JINJA_TEMPLATE" || n.Fidelity != "kept" {
		t.Errorf("a template is %+v", n)
	}
	if definition := string(workflow.Encode(w.Definition)); !strings.Contains(definition, `"topic":"{{conversation_topic.outputs.value}}"`) || !strings.Contains(definition, `"said":"{{trigger.message}}"`) {
		t.Errorf("before the assigner the variable is read, after it what was assigned: %s", definition)
	}
	w.Definition.Nodes = slices.DeleteFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID == "answer" }) // it answers a page
	w.Definition.Connections = slices.DeleteFunc(w.Definition.Connections, func(c workflow.Connection) bool { return c.ToNode == "answer" })
	outputs, _ := runImported(t, w, `{"message": "tea", "conversation_id": "c"}`, engine.StatusSuccess)
	if got := string(outputs["so_far"]); got != `{"text":"You said TEA."}` {
		t.Errorf("what the template has made and was appended is %s of %s", got, outputs)
	}
	if n := fidelity(t, w, "Note"); n.Fidelity != "kept" {
		t.Errorf("an assigner that appends is %+v", n)
	}
}

// What puts a value together with a variable reads the variable then: after an iteration and an assignment before it. What follows an
// assigner runs when all is set, and branches that may do so at the same time are told of.
func TestImport_DifyCombined(t *testing.T) {
	t.Parallel()
	w := imported(t, "dify/testdata/combined.yml", "")
	for name, want := range map[string]string{"Keep": "kept", "Twice": "kept", "Left": "approximated", "Right": "approximated"} {
		if n := fidelity(t, w, name); n.Fidelity != want {
			t.Errorf("%s is %+v, want %s", name, n, want)
		}
	}
	for _, c := range w.Definition.Connections {
		if c.ToNode == "so_far" && !slices.ContainsFunc(w.Definition.Nodes, func(n workflow.Node) bool {
			return n.ID == c.FromNode && n.Kind() == "MEMORY.KEY_VALUE_STORE" && strings.Contains(string(n.Configurations), `"set"`)
		}) {
			t.Errorf("what follows an assigner is connected to %q", c.FromNode)
		}
	}
	outputs, _ := runImported(t, w, `{"message": "tea", "conversation_id": "c"}`, engine.StatusSuccess)
	if got := string(outputs["so_far"]); got != `{"text":"a b c d e"}` {
		t.Errorf("appended is %s of %s", got, outputs)
	}
}

// What a tool of Dify returns is read as a text: that of a search, and that of a workflow.
func TestImport_DifyToolText(t *testing.T) {
	t.Parallel()
	w := imported(t, "dify/testdata/tools.yml", "")
	definition := string(workflow.Encode(w.Definition))
	for _, want := range []string{`"found":"{{look.outputs.results}}"`, `"a":"{{look_text.outputs.text}}"`, `"found":"{{other.outputs.outputs}}"`, `"b":"{{other_text.outputs.text}}"`, `"template":"{{ found | tojson }}"`} {
		if !strings.Contains(definition, want) {
			t.Errorf("%s is not in %s", want, definition)
		}
	}
	for _, want := range []string{`"from_node":"look","to_node":"look_text"`, `"from_node":"look_text","to_node":"other"`, `"from_node":"other_text","to_node":"both"`} {
		if !strings.Contains(definition, want) {
			t.Errorf("%s is not in %s", want, definition)
		}
	}
}

func TestImport_Dify(t *testing.T) {
	t.Parallel()
	w := imported(t, "dify/testdata/digest.yml", "")
	if w.Report.Missing+w.Report.Approximated != 0 || len(w.Definition.Notes) != 1 || w.Definition.Notes[0].Text != "A note" {
		t.Errorf("report %+v, notes %+v", w.Report.Nodes, w.Definition.Notes)
	}
	outputs, _ := runImported(t, w, `{"lines": "ab,cde", "mode": "long"}`, engine.StatusSuccess)
	if got := string(outputs["end"]); !strings.Contains(got, `"digest":"1. ab; 2. CDE"`) {
		t.Errorf("the end has %s of %v", got, outputs)
	}
	outputs, _ = runImported(t, imported(t, "dify/testdata/digest.yml", ""), `{"lines": "ab", "mode": "short"}`, engine.StatusSuccess)
	if got := string(outputs["short_end"]); !strings.Contains(got, `"first":["1. ab"]`) {
		t.Errorf("the other end has %s", got)
	}
}

func TestImport_DifyChat(t *testing.T) {
	t.Parallel()
	w := imported(t, "dify/testdata/chat.yml", "")
	definition := string(workflow.Encode(w.Definition))
	for _, want := range []string{
		`"subtype":"CHAT"`, `{{conversation_topic.outputs.value}}`, `{{env.SHOP}}`, `Write \\{{braces}}.`, `"user_prompt":"{{trigger.message}}"`, `"body":"It is: {{model.outputs.response}}"`, `"attached_nodes":["model_memory"]`,
		`"key":"topic","value":"{{model.outputs.response}}"`, `"credential_id":"call_key"`,
	} {
		if !strings.Contains(definition, want) {
			t.Errorf("the workflow lacks %s: %s", want, definition)
		}
	}
	if strings.Contains(definition, "0f9e8d7c") || len(w.Secrets) != 1 || !strings.Contains(string(w.Secrets[0].Data), `"name":"X-Key"`) {
		t.Errorf("the key was not moved: %+v", w.Secrets)
	}
	if n := fidelity(t, w, "Draw"); n.Fidelity != "missing" {
		t.Errorf("a tool without a counterpart: %+v", n)
	}
	if !slices.Equal(w.Report.Profiles, []string{"openai-gpt-4o"}) {
		t.Errorf("profiles %q", w.Report.Profiles)
	}
}

func TestImport_Older(t *testing.T) {
	t.Parallel()
	w := imported(t, "seed/testdata/older.json", "")
	definition := string(workflow.Encode(w.Definition))
	for _, want := range []string{`"channel":"#orders"`, `"credential_id":"n3_bot_token"`, `{{n1.outputs.total}}`, `"output_key":"true"`, `"output_key":"false"`} {
		if !strings.Contains(definition, want) {
			t.Errorf("the workflow lacks %s: %s", want, definition)
		}
	}
	for _, gone := range []string{"example-token", `"message":""`, "colour"} {
		if strings.Contains(definition, gone) {
			t.Errorf("the workflow still has %s", gone)
		}
	}
	if len(w.Secrets) != 1 || w.Secrets[0].Type != "slack_bot" {
		t.Errorf("secrets %+v", w.Secrets)
	}
	if n := fidelity(t, w, "Strange"); n.Fidelity != "missing" {
		t.Errorf("a kind that is not there: %+v", n)
	}
	if n := fidelity(t, w, "Keep"); n.Fidelity != "approximated" || !strings.Contains(strings.Join(n.Notes, " "), "jq") {
		t.Errorf("a conversion that cannot be read: %+v", n)
	}
	if n := fidelity(t, w, "Manual Start"); n.Fidelity != "approximated" || !strings.Contains(strings.Join(n.Notes, " "), "colour") {
		t.Errorf("a configuration that is not known: %+v", n)
	}
	w.Definition.Nodes = slices.DeleteFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID == "n5" })
	w.Definition.Connections = slices.DeleteFunc(w.Definition.Connections, func(c workflow.Connection) bool { return c.ToNode == "n5" })
	outputs, _ := runImported(t, w, `{"total": 7}`, engine.StatusSuccess)
	if got := string(outputs["n4"]); !strings.Contains(got, `"kept":7`) {
		t.Errorf("kept %s", got)
	}
}

func TestImport_Ends(t *testing.T) {
	t.Parallel()
	outputs, _ := runImported(t, imported(t, "seed/testdata/ends.yaml", ""), `{"x": 2}`, engine.StatusSuccess)
	if got := string(outputs["d"]); !strings.Contains(got, `"y":2`) {
		t.Errorf("the end has %s of %v", got, outputs)
	}
}

func TestImport_Steps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, inputs, branch, end string }{
		{"Number", `{"count": 9, "tags": ["a", "b"], "text": "x", "meta": {}}`, "many", "done"},
		{"Pattern", `{"count": 9, "tags": ["a"], "text": "abc", "meta": {}}`, "word", "done"},
		{"Key", `{"count": 1, "tags": [], "text": "x", "meta": {"vip": null}}`, "keyed", "done"},
		{"Default", `{"count": 1, "tags": [], "text": "x", "meta": {}}`, "otherwise", "rest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := imported(t, "seed/testdata/steps.json", "")
			if n := fidelity(t, w, "lost"); n.Fidelity != "missing" {
				t.Errorf("a step of no known type: %+v", n)
			}
			if n := fidelity(t, w, "Pick"); n.Fidelity != "approximated" || !strings.Contains(strings.Join(n.Notes, " "), "smells_like") {
				t.Errorf("a comparison that is not known: %+v", n)
			}
			w.Definition.Nodes = slices.DeleteFunc(w.Definition.Nodes, func(n workflow.Node) bool { return n.ID == "lost" })
			outputs, _ := runImported(t, w, c.inputs, engine.StatusSuccess)
			if _, ok := outputs[c.end]; !ok {
				t.Errorf("it did not end at %s: %v", c.end, outputs)
			}
		})
	}
}
