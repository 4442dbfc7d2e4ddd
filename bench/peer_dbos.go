package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

// dbosPeer is DBOS for Go. On SQLite its own pool has synchronous=NORMAL; it is given one that has FULL and is like its
// own otherwise. On PostgreSQL it has its own pool.
type dbosPeer struct {
	db     *sql.DB // nil on PostgreSQL
	reader *sql.DB
	ctx    dbos.Context
	shape  shape
}

func openDBOS(ctx context.Context, dir string, s shape) (_ contender, err error) {
	p := &dbosPeer{shape: s}
	config := dbos.Config{AppName: "bench", DatabaseURL: s.database, Logger: slog.New(slog.DiscardHandler), ApplicationVersion: "1"}
	if s.database != "" {
		if p.reader, err = openPostgresReader(s.database); err != nil {
			return nil, err
		}
	} else if config.SQLiteSystemDB, err = p.openFile(dir); err != nil {
		return nil, err
	}
	if p.ctx, err = dbos.NewContext(ctx, config); err != nil {
		return nil, errors.Join(err, p.closeFiles())
	}
	dbos.RegisterWorkflow(p.ctx, p.chainWorkflow)
	dbos.RegisterWorkflow(p.ctx, p.fanOutWorkflow)
	dbos.RegisterWorkflow(p.ctx, p.waitWorkflow)
	if err := dbos.Launch(p.ctx); err != nil {
		return nil, errors.Join(err, p.closeFiles())
	}
	return p, nil
}

func (p *dbosPeer) openFile(dir string) (db *sql.DB, err error) {
	if p.db, err = openDB(dir, "dbos.db", "foreign_keys(ON)"); err != nil {
		return nil, err
	}
	if p.reader, err = openReader(dir, "dbos.db"); err != nil {
		return nil, errors.Join(err, p.db.Close())
	}
	p.db.SetMaxOpenConns(8)
	p.db.SetMaxIdleConns(8)
	return p.db, nil
}

func (p *dbosPeer) closeFiles() error {
	err := p.reader.Close()
	if p.db != nil {
		err = errors.Join(err, p.db.Close())
	}
	return err
}

// nothing is the step of every workflow.
func nothing(context.Context) (string, error) { return "{}", nil }

func (p *dbosPeer) chainWorkflow(ctx dbos.Context, _ string) (string, error) {
	for range p.shape.nodes {
		if _, err := dbos.RunAsStep(ctx, nothing); err != nil {
			return "", err
		}
	}
	return "{}", nil
}

func (p *dbosPeer) fanOutWorkflow(ctx dbos.Context, _ string) (string, error) {
	if _, err := dbos.RunAsStep(ctx, nothing); err != nil {
		return "", err
	}
	var open []<-chan dbos.StepOutcome[string]
	for range p.shape.width {
		c, err := dbos.Go(ctx, nothing)
		if err != nil {
			return "", err
		}
		open = append(open, c)
	}
	for _, c := range open {
		if outcome := <-c; outcome.Err != nil {
			return "", outcome.Err
		}
	}
	return dbos.RunAsStep(ctx, nothing)
}

func (p *dbosPeer) waitWorkflow(ctx dbos.Context, _ string) (string, error) {
	return dbos.Recv[string](ctx, "go", 24*time.Hour)
}

func (p *dbosPeer) chain(_ context.Context, run string) error {
	return p.execute(p.chainWorkflow, "chain_"+run)
}

func (p *dbosPeer) fanOut(_ context.Context, run string) error {
	return p.execute(p.fanOutWorkflow, "fan_"+run)
}

func (p *dbosPeer) execute(w dbos.Workflow[string, string], id string) error {
	h, err := dbos.RunWorkflow(p.ctx, w, "{}", dbos.WithWorkflowID(id))
	if err != nil {
		return err
	}
	_, err = h.GetResult()
	return err
}

func (p *dbosPeer) park(_ context.Context, run string) error {
	_, err := dbos.RunWorkflow(p.ctx, p.waitWorkflow, "{}", dbos.WithWorkflowID("wait_"+run))
	return err
}

// parked counts deadlines of waits: each is recorded right before its wait.
func (p *dbosPeer) parked(ctx context.Context) (int, error) {
	return number(ctx, p.reader, "SELECT count(*) FROM "+p.outputs()+" WHERE function_name = 'DBOS.sleep'")
}

func (p *dbosPeer) recorded(ctx context.Context) (int, error) {
	return number(ctx, p.reader, "SELECT count(*) FROM "+p.outputs())
}

// outputs is the table with what steps have returned.
func (p *dbosPeer) outputs() string {
	if p.db == nil {
		return "dbos.operation_outputs"
	}
	return "operation_outputs"
}

func (p *dbosPeer) synchronous(ctx context.Context) (int, error) {
	if p.db == nil {
		return durable(ctx, p.reader)
	}
	return number(ctx, p.db, "PRAGMA synchronous")
}

// close does not wait for what is parked: it would wait for a day.
func (p *dbosPeer) close() error {
	return errors.Join(ignoreTimeout(dbos.Shutdown(p.ctx, time.Second)), p.closeFiles())
}

// ignoreTimeout passes over workflows that had not ended: the process ends with them.
func ignoreTimeout(err error) error {
	if errors.Is(err, dbos.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
