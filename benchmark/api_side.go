package benchmark

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tandem/app"
	"tandem/cluster"
	"tandem/credential"
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
	// Database is where Tandem's side has its database; empty: in its directory.
	Database string `json:"database,omitempty"`
	// Rows are the bodies of the rows that an execution writes, and ExecutionBytes is how much larger the database is for one that has
	// ended. Tandem's side tells them.
	Rows           [][]byte `json:"rows,omitempty"`
	ExecutionBytes float64  `json:"execution_bytes,omitempty"`

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

// SideOptions say what a side works on.
type SideOptions struct {
	// Side is which one it is, Dir a directory of its own, Database the address of a database of its own; empty: it is in the directory.
	Side, Dir, Database string
	// Temporal is where the engine is that the executions of Tandem's side run on; nil: in its process.
	Temporal *cluster.Options
	// Executions is how many there are to begin with, Signals how many a stream takes.
	Executions, Signals int
}

// ServeAPISide serves one side until the context ends.
func ServeAPISide(ctx context.Context, o SideOptions, started func(APISide)) error {
	switch o.Side {
	case APISideTandem:
		return serveAPITandem(ctx, o, started)
	case APISideBare:
		return serveAPIBare(ctx, o, started)
	}
	return fault.Newf(fault.Invalid, "%q is not a side; there are %q and %q", o.Side, APISideTandem, APISideBare)
}

func serveAPITandem(ctx context.Context, o SideOptions, started func(APISide)) error {
	data := filepath.Join(o.Dir, "data")
	rows, size, err := fillAPI(ctx, data, o)
	if err != nil {
		return err
	}
	token := identity.NewSecret()
	serving := app.ServeOptions{
		Addr: "127.0.0.1:0", Dir: data, Database: o.Database, Token: token, Version: "bench",
		Started: func(s app.Serving) {
			started(APISide{URL: s.URL, Token: token, Database: s.Database, Rows: rows, ExecutionBytes: size})
		},
	}
	if o.Temporal == nil {
		return app.Serve(ctx, serving)
	}
	return serveOnTemporal(ctx, *o.Temporal, filepath.Join(o.Dir, "worker"), serving)
}

// serveOnTemporal serves with a worker beside it in this process, so that what is used is used by both.
func serveOnTemporal(ctx context.Context, at cluster.Options, dir string, o app.ServeOptions) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.Temporal = onItsOwnQueue(at)
	if err := copyKey(o.Dir, dir); err != nil {
		return err
	}
	worked := make(chan error, 1)
	go func() {
		defer stop() // without a worker nothing ends
		worked <- app.Work(ctx, app.WorkOptions{Addr: "127.0.0.1:0", Dir: dir, Database: o.Database, Temporal: *o.Temporal, Version: o.Version})
	}()
	err = app.Serve(ctx, o)
	stop()
	return errors.Join(err, <-worked)
}

// onItsOwnQueue is a cluster with a task queue that no other measurement and no installation uses.
func onItsOwnQueue(at cluster.Options) *cluster.Options {
	at.TaskQueue += "-bench-" + strings.ToLower(rand.Text())
	return &at
}

// copyKey gives a worker the master key of the server.
func copyKey(from, to string) (err error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if _, err := credential.CreateKeyFile(root); err != nil { // unless it is there
		return err
	}
	key, err := root.ReadFile(credential.KeyFile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, credential.KeyFile), key, 0o600)
}

// fillAPI keeps the workflows and makes executions that have ended: one is run, the others are copies of its rows. Size is by how much each
// makes the database larger.
func fillAPI(ctx context.Context, dir string, o SideOptions) (rows [][]byte, size float64, err error) {
	summary, stored, err := prepareAPI(ctx, dir, o)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range stored {
		rows = append(rows, row.Body)
	}
	before, err := onDisk(ctx, dir, o.Database)
	if err != nil {
		return nil, 0, err
	}
	if err := copyExecutions(ctx, dir, o, summary, stored); err != nil {
		return nil, 0, err
	}
	after, err := onDisk(ctx, dir, o.Database)
	return rows, float64(after-before) / float64(o.Executions), err
}

// prepareAPI keeps the workflows and runs an execution.
func prepareAPI(ctx context.Context, dir string, o SideOptions) (summary store.Execution, rows []store.Row, err error) {
	i, err := app.Open(ctx, app.Options{Dir: dir, Database: o.Database})
	if err != nil {
		return summary, nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	b := benchInstance{i}
	manual := "  - {id: start, description: begins, type: TRIGGER, subtype: MANUAL}\n"
	hook := "  - {id: start, description: begins, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /in, response_mode: sync}}\n"
	if err := errors.Join(b.save(ctx, apiDefinition(apiFlow, manual)), b.save(ctx, apiDefinition(apiHook, hook)),
		b.save(ctx, apiStreamDefinition(o.Signals)), b.deploy(ctx, apiHook)); err != nil {
		return summary, nil, err
	}
	p := app.Local()
	first, err := i.Start(ctx, p, apiFlow, json.RawMessage(apiInputs))
	if err != nil {
		return summary, nil, err
	}
	if summary, err = i.Wait(ctx, p, first); err != nil {
		return summary, nil, err
	}
	if summary.Status != engine.StatusSuccess {
		return summary, nil, fmt.Errorf("execution %q ended with the status %s: %s", first, summary.Status, summary.Error)
	}
	for row, err := range i.Stores().Journal.Rows(ctx, p, first, 0) {
		if err != nil {
			return summary, nil, err
		}
		rows = append(rows, row)
	}
	return summary, rows, nil
}

// copyExecutions makes executions with the rows of one that has ended.
func copyExecutions(ctx context.Context, dir string, o SideOptions, summary store.Execution, rows []store.Row) (err error) {
	i, err := app.Open(ctx, app.Options{Dir: dir, Database: o.Database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	const atOnce = 256
	return together(atOnce, func(worker int) error {
		for n := worker; n < o.Executions; n += atOnce {
			if err := copyExecution(ctx, i, summary, rows, apiExecution(n)); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
}

// apiExecution is the id of an execution that the measurement begins with. Ids are as long as others are.
func apiExecution(n int) string { return fmt.Sprintf("exec_bench%021d", n) }

// copyExecution appends the rows of an execution under another id.
func copyExecution(ctx context.Context, i *app.Instance, of store.Execution, rows []store.Row, id string) error {
	list := make([]*store.Append, len(rows))
	for n, row := range rows {
		list[n] = &store.Append{Execution: id, After: row.Seq - 1, Time: row.Time,
			Body: bytes.ReplaceAll(row.Body, []byte(of.ID), []byte(id))}
	}
	created := of
	created.ID, created.Status = id, engine.StatusRunning
	list[0].Create = &created
	list[len(list)-1].Change = &store.Change{Status: of.Status, Started: of.Started, Ended: of.Ended, DurationMS: of.DurationMS,
		Credits: of.Credits}
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
