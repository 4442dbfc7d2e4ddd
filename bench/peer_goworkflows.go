package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/history"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/core"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

// goWorkflows is go-workflows on SQLite, with the backend that wakes its worker in the same process instead of polling.
type goWorkflows struct {
	db     *sql.DB
	reader *sql.DB
	ends   *endings
	client *client.Client
	worker *worker.Worker
	stop   context.CancelFunc
	shape  shape
}

func openGoWorkflows(ctx context.Context, dir string, s shape) (_ contender, err error) {
	p := &goWorkflows{shape: s}
	if p.db, err = openDB(dir, "workflows.db"); err != nil {
		return nil, err
	}
	if p.reader, err = openReader(dir, "workflows.db"); err != nil {
		return nil, errors.Join(err, p.db.Close())
	}
	p.db.SetMaxOpenConns(1) // as its own constructor has it
	p.ends = &endings{waiting: map[string]chan struct{}{}, Backend: monoprocess.NewMonoprocessBackend(sqlite.NewSqliteBackendWithDB(p.db,
		sqlite.WithApplyMigrations(true), sqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler)))))}
	b := p.ends
	ctx, p.stop = context.WithCancel(ctx)
	options := worker.DefaultOptions
	p.worker = worker.New(b, &options)
	err = errors.Join(
		p.worker.RegisterWorkflow(chainWorkflow), p.worker.RegisterWorkflow(fanOutWorkflow), p.worker.RegisterWorkflow(waitWorkflow),
		p.worker.RegisterActivity(nothing))
	if err == nil {
		err = p.worker.Start(ctx)
	}
	if err != nil {
		p.stop()
		return nil, errors.Join(err, p.reader.Close(), p.db.Close())
	}
	p.client = client.New(b)
	return p, nil
}

func chainWorkflow(ctx workflow.Context, nodes int) (string, error) {
	for range nodes {
		if _, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, nothing).Get(ctx); err != nil {
			return "", err
		}
	}
	return "{}", nil
}

func fanOutWorkflow(ctx workflow.Context, width int) (string, error) {
	step := func() workflow.Future[string] {
		return workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, nothing)
	}
	if _, err := step().Get(ctx); err != nil {
		return "", err
	}
	var open []workflow.Future[string]
	for range width {
		open = append(open, step())
	}
	for _, f := range open {
		if _, err := f.Get(ctx); err != nil {
			return "", err
		}
	}
	return step().Get(ctx)
}

func waitWorkflow(ctx workflow.Context) (string, error) {
	v, _ := workflow.NewSignalChannel[string](ctx, "go").Receive(ctx)
	return v, nil
}

func (p *goWorkflows) chain(ctx context.Context, run string) error {
	return p.execute(ctx, "chain_"+run, chainWorkflow, p.shape.nodes)
}

func (p *goWorkflows) fanOut(ctx context.Context, run string) error {
	return p.execute(ctx, "fan_"+run, fanOutWorkflow, p.shape.width)
}

func (p *goWorkflows) execute(ctx context.Context, id string, w func(workflow.Context, int) (string, error), size int) error {
	end := p.ends.await(id)
	if _, err := p.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: id}, w, size); err != nil {
		return err
	}
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endings tells of the end of an instance as soon as it is on disk. The client's own way is to look again and again, up to
// a second apart, which would be counted as work.
type endings struct {
	backend.Backend
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

func (e *endings) await(id string) <-chan struct{} {
	c := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[id] = c
	return c
}

// CompleteWorkflowTask implements [backend.Backend].
func (e *endings) CompleteWorkflowTask(ctx context.Context, task *backend.WorkflowTask, state core.WorkflowInstanceState,
	executed, activities, timers []*history.Event, sent []*history.WorkflowEvent) error {
	if err := e.Backend.CompleteWorkflowTask(ctx, task, state, executed, activities, timers, sent); err != nil {
		return err
	}
	if state == core.WorkflowInstanceStateFinished {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.waiting[task.WorkflowInstance.InstanceID]; c != nil {
			close(c)
			delete(e.waiting, task.WorkflowInstance.InstanceID)
		}
	}
	return nil
}

func (p *goWorkflows) park(ctx context.Context, run string) error {
	_, err := p.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: "wait_" + run}, waitWorkflow)
	return err
}

// parked counts the instances whose beginning has been dealt with: until then it is an event that is pending.
func (p *goWorkflows) parked(ctx context.Context) (int, error) {
	return number(ctx, p.reader, `SELECT (SELECT count(*) FROM instances WHERE id LIKE 'wait_%') - (SELECT count(*) FROM pending_events)`)
}

func (p *goWorkflows) recorded(ctx context.Context) (int, error) {
	return number(ctx, p.reader, "SELECT count(*) FROM history WHERE event_type = ?", int(history.EventType_ActivityCompleted))
}

func (p *goWorkflows) synchronous(ctx context.Context) (int, error) {
	return number(ctx, p.db, "PRAGMA synchronous")
}

func (p *goWorkflows) close() error {
	p.stop()
	return errors.Join(p.worker.WaitForCompletion(), p.reader.Close(), p.db.Close())
}
