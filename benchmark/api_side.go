package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tandem/app"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// The sides of the measurement of the API.
const (
	APISideTandem = "tandem"
	APISideBare   = "bare"
)

// APISide is a server that is measured, in this process or in one of its own.
type APISide struct {
	// URL is where it takes requests, Token what they carry.
	URL   string `json:"url"`
	Token string `json:"token"`
	// Rows are the bodies of the rows that an execution writes. Tandem's side tells them.
	Rows [][]byte `json:"rows,omitempty"`

	// Usage is what the process of the side has used so far, Close ends it. The one who launches a side sets them.
	Usage func() (APIUsage, error) `json:"-"`
	Close func() error             `json:"-"`
}

// APIUsage is what a process has used. Both are zero where the system does not tell.
type APIUsage struct {
	CPU        time.Duration `json:"cpu"`
	ResidentMB float64       `json:"resident_mb"`
}

// OwnUsage is what this process has used.
func OwnUsage() APIUsage { return APIUsage{processTime(), resident("VmRSS")} }

// apiSample is what the bare side has to know to do as much as Tandem's: the rows it writes per execution and the answers it
// gives. It is in a file in the side's directory.
type apiSample struct {
	Rows       [][]byte `json:"rows"`
	Execute    []byte   `json:"execute"`
	Hook       []byte   `json:"hook"`
	Get        []byte   `json:"get"`
	Summary    []byte   `json:"summary"`
	Frames     []byte   `json:"frames"`
	Executions int      `json:"executions"`
}

const apiSampleFile = "sample.json"

// The workflows of the measurement.
const (
	apiFlow   = "bench_api"
	apiStream = "bench_api_stream"
	apiHook   = "bench_api_hook"
	apiNodes  = 5
)

// ServeAPISide serves one side on a directory of its own until the context ends. Executions is how many there are to begin
// with.
func ServeAPISide(ctx context.Context, side, dir string, executions, signals int, started func(APISide)) error {
	switch side {
	case APISideTandem:
		return serveAPITandem(ctx, dir, executions, signals, started)
	case APISideBare:
		return serveAPIBare(ctx, dir, started)
	}
	return fault.Newf(fault.Invalid, "%q is not a side; there are %q and %q", side, APISideTandem, APISideBare)
}

func serveAPITandem(ctx context.Context, dir string, executions, signals int, started func(APISide)) error {
	data := filepath.Join(dir, "data")
	rows, err := fillAPI(ctx, data, executions, signals)
	if err != nil {
		return err
	}
	token := identity.NewSecret()
	return app.Serve(ctx, app.ServeOptions{
		Addr: "127.0.0.1:0", Dir: data, Token: token, Version: "bench",
		Started: func(s app.Serving) { started(APISide{URL: s.URL, Token: token, Rows: rows}) },
	})
}

// fillAPI keeps the workflows and makes executions that have ended: one is run, the others are copies of its rows.
func fillAPI(ctx context.Context, dir string, executions, signals int) (rows [][]byte, err error) {
	i, err := app.Open(ctx, app.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	b := benchInstance{i}
	manual := "  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}\n"
	hook := "  - {id: start, description: begins, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /in, response_mode: sync}}\n"
	if err := errors.Join(b.save(ctx, apiDefinition(apiFlow, manual)), b.save(ctx, apiDefinition(apiHook, hook)), b.save(ctx, apiStreamDefinition(signals)), b.deploy(ctx, apiHook)); err != nil {
		return nil, err
	}
	p := app.Local()
	first, err := i.Start(ctx, p, apiFlow, json.RawMessage(apiInputs))
	if err != nil {
		return nil, err
	}
	summary, err := i.Wait(ctx, p, first)
	if err != nil {
		return nil, err
	}
	if summary.Status != engine.StatusSuccess {
		return nil, fmt.Errorf("execution %q ended with the status %s: %s", first, summary.Status, summary.Error)
	}
	var stored []store.Row
	for row, err := range i.Stores().Journal.Rows(ctx, p, first, 0) {
		if err != nil {
			return nil, err
		}
		stored = append(stored, row)
		rows = append(rows, row.Body)
	}
	const atOnce = 256
	err = together(atOnce, func(worker int) error {
		for n := worker; n < executions; n += atOnce {
			if err := copyExecution(ctx, i, summary, stored, apiExecution(n)); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	return rows, err
}

// apiExecution is the id of an execution that the measurement begins with. Ids are as long as others are.
func apiExecution(n int) string { return fmt.Sprintf("exec_bench%021d", n) }

// copyExecution appends the rows of an execution under another id.
func copyExecution(ctx context.Context, i *app.Instance, of store.Execution, rows []store.Row, id string) error {
	list := make([]*store.Append, len(rows))
	for n, row := range rows {
		list[n] = &store.Append{Execution: id, After: row.Seq - 1, Time: row.Time, Body: bytes.ReplaceAll(row.Body, []byte(of.ID), []byte(id))}
	}
	created := of
	created.ID, created.Status = id, engine.StatusRunning
	list[0].Create = &created
	list[len(list)-1].Change = &store.Change{Status: of.Status, Started: of.Started, Ended: of.Ended, DurationMS: of.DurationMS, Credits: of.Credits}
	return i.Stores().Journal.Append(ctx, identity.System(of.Workspace), list...)
}

// apiInputs are what an execution is started with.
const apiInputs = `{"customer":"c-1042","amount":129.5,"note":"please deliver in the morning"}`

// apiRequest is the body of a start.
const apiRequest = `{"inputs":` + apiInputs + `,"wait_seconds":30}`

// deploy puts a workflow in force.
func (b benchInstance) deploy(ctx context.Context, id string) (err error) {
	c, closeAPI, err := b.API()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAPI()) }()
	_, err = c.Deploy(ctx, id)
	return err
}

// apiDefinition is a trigger and five nodes that do nothing, one after the other.
func apiDefinition(id, trigger string) []byte {
	var nodes, links strings.Builder
	before := "start"
	for n := range apiNodes {
		node := "n" + strconv.Itoa(n)
		fmt.Fprintf(&nodes, "  - {id: %s, name: %s, description: does nothing, type: CALL, subtype: EMPTY}\n", node, node)
		fmt.Fprintf(&links, "  - {from_node: %s, to_node: %s}\n", before, node)
		before = node
	}
	return []byte("metadata: {id: " + id + ", name: " + id + ", description: measured by tandem bench}\nnodes:\n" + trigger + nodes.String() + "connections:\n" + links.String())
}

// apiStreamDefinition waits for so many signals, one after the other.
func apiStreamDefinition(signals int) []byte {
	var nodes, links strings.Builder
	before, key := "start", "result"
	for n := range signals {
		id := "w" + strconv.Itoa(n)
		fmt.Fprintf(&nodes, "  - {id: %s, description: waits, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 86400}}\n", id)
		fmt.Fprintf(&links, "  - {from_node: %s, to_node: %s, output_key: %s}\n", before, id, key)
		before, key = id, "completed"
	}
	return []byte("metadata: {id: " + apiStream + ", name: " + apiStream + ", description: measured by tandem bench}\nnodes:\n" +
		"  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}\n" + nodes.String() + "connections:\n" + links.String())
}

func writeSample(dir string, s apiSample) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, apiSampleFile), body, 0o600)
}

func readSample(dir string) (s apiSample, err error) {
	body, err := os.ReadFile(filepath.Join(dir, apiSampleFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}
