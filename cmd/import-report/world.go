package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/importer"
	"tandem/outbound"
	"tandem/workflow"
)

// runTime is how long a workflow may run.
const runTime = 20 * time.Second

// world is an instance in a directory of its own, and a service on this machine that stands for all services, models and tool servers.
type world struct {
	dir      string
	service  *httptest.Server
	instance *app.Instance
	client   *client.Client
	closeAPI func() error
	runs     int
}

// openWorld makes one.
func openWorld(ctx context.Context) (*world, error) {
	dir, err := os.MkdirTemp("", "import-report")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	services := http.NewServeMux()
	services.HandleFunc("/", stand)
	services.HandleFunc("POST /v1/chat/completions", completion)
	services.Handle("/mcp", toolServer())
	w := &world{dir: dir, service: httptest.NewServer(services)}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(w.service.URL, "http://"))
	if err != nil {
		return nil, fmt.Errorf("read the address of the fake: %w", err)
	}
	allow, err := outbound.ParseAllow(host)
	if err != nil {
		return nil, err
	}
	w.instance, err = app.Open(ctx, app.Options{Dir: dir, HTTPAllow: allow, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if w.client, w.closeAPI, err = w.instance.API(); err != nil {
		return nil, err
	}
	return w, w.equip(ctx)
}

// close removes everything.
func (w *world) close() {
	if err := w.closeAPI(); err != nil {
		fmt.Fprintln(os.Stderr, "import-report:", err)
	}
	if err := w.instance.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "import-report:", err)
	}
	w.service.Close()
	if err := os.RemoveAll(w.dir); err != nil {
		fmt.Fprintln(os.Stderr, "import-report:", err)
	}
}

// stand answers for every service: with what most of them have in their answers.
func stand(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	item := `{"id":"1","name":"one","title":"One","url":"https://example.com/1","text":"one","content":"one","email":"one@example.com"}`
	list := "[" + item + "]"
	if _, err := io.WriteString(w, `{"ok":true,"id":"1","name":"one","data":`+list+`,"items":`+list+`,"results":`+list+`,"records":`+list+`,"values":[["a"],["1"]],"files":`+list+`,"text":"one"}`); err != nil {
		return // the client has gone
	}
}

// address is that of a service. read-only
var address = regexp.MustCompile(`https?://[A-Za-z0-9.-]+(?::\d+)?`)

// run runs a workflow to its end, with every service on this machine; empty: it has got there.
func (w *world) run(ctx context.Context, imported *importer.Workflow) string {
	ctx, cancel := context.WithTimeout(ctx, runTime+10*time.Second)
	defer cancel()
	w.runs++
	def := *imported.Definition
	def.Metadata.ID = fmt.Sprintf("run-%d", w.runs)
	def.Nodes = append([]workflow.Node(nil), def.Nodes...)
	for i := range def.Nodes {
		n := &def.Nodes[i]
		var config map[string]json.RawMessage
		if err := json.Unmarshal(n.Configurations, &config); err != nil {
			return err.Error()
		}
		w.stage(n, config)
		raw, err := json.Marshal(config)
		if err != nil {
			return err.Error()
		}
		n.Configurations = raw
	}
	if err := w.provide(ctx, imported, &def); err != nil {
		return err.Error()
	}
	if _, err := w.client.KeepWorkflow(ctx, def.Metadata.ID, workflow.Encode(&def), false); err != nil {
		return err.Error()
	}
	started, err := w.client.Execute(ctx, def.Metadata.ID, api.ExecuteRequest{Inputs: inputs(&def), WaitSeconds: runTime.Seconds()}, "")
	if err != nil {
		return err.Error()
	}
	e, err := w.client.Execution(ctx, started.ExecutionID)
	if err != nil {
		return err.Error()
	}
	if e.Status == "SUCCESS" {
		return ""
	}
	if e.Error != nil {
		return fmt.Sprintf("%s at %s: %s", e.Status, e.Error.ErrorNodeID, e.Error.ErrorMessage)
	}
	if _, err := w.client.Act(ctx, started.ExecutionID, api.ActionRequest{Action: "cancel"}); err != nil {
		return fmt.Sprintf("%s, and %v", e.Status, err)
	}
	return string(e.Status)
}

// inputs are what a workflow is started with: what its trigger asks for.
func inputs(def *workflow.Definition) json.RawMessage {
	values := map[string]any{"message": "one", "conversation_id": "c"}
	for _, n := range def.Nodes {
		var config struct {
			Schema struct {
				Properties map[string]struct {
					Type string
					Enum []any
				}
			} `json:"input_schema"`
		}
		if n.Type != "TRIGGER" || json.Unmarshal(n.Configurations, &config) != nil {
			continue
		}
		for name, p := range config.Schema.Properties {
			values[name] = map[string]any{"number": 1, "boolean": true, "array": []any{"one"}, "object": map[string]any{}}[p.Type]
			if len(p.Enum) > 0 {
				values[name] = p.Enum[0]
			} else if values[name] == nil {
				values[name] = "one"
			}
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil // plain values can be written
	}
	return raw
}

// stage points a node at the fake.
func (w *world) stage(n *workflow.Node, config map[string]json.RawMessage) {
	switch n.Kind() {
	case "ACTION.HTTP_REQUEST":
		var url string
		if json.Unmarshal(config["url"], &url) == nil {
			url = address.ReplaceAllString(url, w.service.URL)
			if !strings.HasPrefix(url, "http") {
				url = w.service.URL
			}
			config["url"], _ = json.Marshal(url)
		}
		delete(config, "credential_id")
	case "ACTION.WEB_SEARCH":
		config["credential_id"], _ = json.Marshal(searchKey)
	case "FLOW.DELAY":
		config["duration_seconds"] = json.RawMessage("0")
	}
}
