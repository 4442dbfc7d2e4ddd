package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tandem/app"
	"tandem/engine"
	"tandem/host"
	"tandem/workflow"
)

// tandem is Tandem as a library, the way its command line uses it: somebody watches every execution.
type tandem struct {
	instance *app.Instance
	reader   *sql.DB
	// server says that it works on PostgreSQL.
	server bool
}

func openTandem(ctx context.Context, dir string, s shape) (_ contender, err error) {
	t := &tandem{server: s.database != ""}
	if t.instance, err = app.Open(ctx, app.Options{Dir: dir, Database: s.database}); err != nil {
		return nil, err
	}
	if t.server {
		t.reader, err = openPostgresReader(s.database)
	} else {
		t.reader, err = openReader(dir, "tandem.db")
	}
	if err != nil {
		return nil, errors.Join(err, t.instance.Close())
	}
	for _, def := range []workflow.Definition{chainOf(s.nodes), fanOutOf(s.width), waits()} {
		source, problems := workflow.Parse(workflow.Encode(&def), workflow.Options{Kinds: app.Kinds()})
		if source == nil {
			return nil, errors.Join(fmt.Errorf("workflow %q: %v", def.Metadata.ID, problems), t.close())
		}
		if _, err := t.instance.Save(ctx, app.Local(), source.Definition); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

func (t *tandem) execute(ctx context.Context, id string) error {
	p := app.Local()
	execution, err := t.instance.Start(ctx, p, id, json.RawMessage(`{}`))
	if err != nil {
		return err
	}
	stop := t.instance.Watch(p, execution, func(host.Row, []engine.Command) {})
	defer stop()
	e, err := t.instance.Wait(ctx, p, execution)
	if err == nil && e.Status != engine.StatusSuccess {
		err = fmt.Errorf("execution %q ended with the status %s: %s", execution, e.Status, e.Error)
	}
	return err
}

func (t *tandem) chain(ctx context.Context, _ string) error  { return t.execute(ctx, "chain") }
func (t *tandem) fanOut(ctx context.Context, _ string) error { return t.execute(ctx, "fan_out") }

func (t *tandem) park(ctx context.Context, _ string) error {
	_, err := t.instance.Start(ctx, app.Local(), "waits", json.RawMessage(`{}`))
	return err
}

func (t *tandem) parked(ctx context.Context) (int, error) {
	return number(ctx, t.reader, "SELECT count(*) FROM executions WHERE workflow_id = 'waits' AND status = $1", string(engine.StatusWaiting))
}

// recorded counts the facts in the journal: a row may hold several.
func (t *tandem) recorded(ctx context.Context) (int, error) {
	if t.server {
		return number(ctx, t.reader, `SELECT coalesce(sum((length(body) - length(replace(body, $1, ''))) / length($1)), 0)
			FROM (SELECT convert_from(body, 'UTF8') AS body FROM journal) AS rows`, `"node_completed"`)
	}
	return number(ctx, t.reader, `SELECT coalesce(sum((length(CAST(body AS TEXT)) - length(replace(CAST(body AS TEXT), ?1, ''))) / length(?1)), 0)
		FROM (SELECT body FROM journal UNION ALL SELECT body FROM journal_in_order)`, `"node_completed"`)
}

// synchronous is FULL for the connection that writes; package tandem/store/sqlite sets it, and a setting of a connection
// cannot be read through another one.
func (t *tandem) synchronous(ctx context.Context) (int, error) {
	if t.server {
		return durable(ctx, t.reader)
	}
	return full, nil
}

func (t *tandem) close() error { return errors.Join(t.reader.Close(), t.instance.Close()) }

func chainOf(nodes int) workflow.Definition {
	def := workflow.Definition{Metadata: workflow.Metadata{ID: "chain", Name: "chain", Description: "a chain"}}
	for i := range nodes {
		def.Nodes = append(def.Nodes, empty("n"+strconv.Itoa(i)))
		if i > 0 {
			def.Connections = append(def.Connections, workflow.Connection{FromNode: "n" + strconv.Itoa(i-1), ToNode: "n" + strconv.Itoa(i)})
		}
	}
	return def
}

func fanOutOf(width int) workflow.Definition {
	def := workflow.Definition{Metadata: workflow.Metadata{ID: "fan_out", Name: "fan-out", Description: "a fan-out and the join after it"}}
	def.Nodes = append(def.Nodes, empty("first"), empty("last"))
	for i := range width {
		id := "n" + strconv.Itoa(i)
		def.Nodes = append(def.Nodes, empty(id))
		def.Connections = append(def.Connections, workflow.Connection{FromNode: "first", ToNode: id}, workflow.Connection{FromNode: id, ToNode: "last"})
	}
	return def
}

func waits() workflow.Definition {
	return workflow.Definition{
		Metadata: workflow.Metadata{ID: "waits", Name: "waits", Description: "waits for a signal"},
		Nodes: []workflow.Node{{
			ID: "wait", Name: "wait", Description: "waits", Type: "FLOW", Subtype: "WAIT",
			Configurations: json.RawMessage(`{"wait_type": "signal", "signal_name": "go", "timeout_seconds": 86400}`),
		}},
	}
}

func empty(id string) workflow.Node {
	return workflow.Node{ID: id, Name: id, Description: "does nothing", Type: "CALL", Subtype: "EMPTY"}
}
