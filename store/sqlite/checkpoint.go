package sqlite

import (
	"database/sql/driver"
	"fmt"
	"sync"

	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlconn"
)

// checkpointer moves pages from the log into the database file, beside the committer: a commit never does it. Its
// goroutine owns its connection. A failed attempt does no harm, since everything is in the log: it is kept for stop, and the
// next attempt comes with more log.
type checkpointer struct {
	c    *sqlconn.Conn
	wake chan struct{}
	quit chan struct{}
	wg   sync.WaitGroup
	// finish asks the committer to do the rest between two transactions. It is set before start.
	finish func()
	// acknowledged is the last commit that somebody was told of, and folded keeps that the database file has everything up
	// to a commit. Both are set before start.
	acknowledged func() int64
	folded       func(commit int64) error
	// err is the last attempt's. It belongs to the goroutine until wg is done.
	err error
}

// longLog is the number of pages (of 4 KiB) from which on the log must be brought to start anew.
const longLog = 1024

func newCheckpointer(path string) (*checkpointer, error) {
	c, err := sqlconn.Open(path, "synchronous(FULL)", "cache_size(-512)")
	if err != nil {
		return nil, err
	}
	return &checkpointer{c: c, wake: make(chan struct{}, 1), quit: make(chan struct{})}, nil
}

func (k *checkpointer) start() { k.wg.Go(k.loop) }

func (k *checkpointer) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *checkpointer) loop() {
	for {
		select {
		case <-k.quit:
			return
		case <-k.wake:
			last := k.acknowledged()
			var pages int64
			var all bool
			if pages, all, k.err = checkpoint(k.c); k.err == nil && all {
				k.err = k.folded(last)
			}
			// While rows keep coming the log never becomes empty by this alone.
			if k.err == nil && pages > longLog {
				k.finish()
			}
		}
	}
}

func (k *checkpointer) stop() error {
	close(k.quit)
	k.wg.Wait()
	if err := k.c.Close(); err != nil {
		return err
	}
	return k.err
}

// checkpoint moves what no reader stands in the way of, waits for nobody, and returns how many pages the log has and whether
// all of them have been moved.
func checkpoint(c *sqlconn.Conn) (pages int64, all bool, err error) {
	var row [3]driver.Value
	if _, err := c.Row(row[:], "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return 0, false, err
	}
	pages, _ = row[1].(int64)
	moved, _ := row[2].(int64)
	return pages, moved == pages, nil
}

// cutLog folds the log into the database and cuts its file. It waits for readers for a moment only; what it cannot do now it does the next
// time.
func (w *writer) cutLog() {
	var row [3]driver.Value
	for _, text := range []string{"PRAGMA busy_timeout = 200", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA busy_timeout = 10000"} {
		columns := row[:1]
		if text[len("PRAGMA ")] == 'w' {
			columns = row[:3]
		}
		if _, err := w.c.Row(columns, text); err != nil {
			if !datadir.IsFull(err) {
				w.fail(fmt.Errorf("checkpoint: %w", err))
			}
			return
		}
		if busy, ok := row[0].(int64); ok && len(columns) == 3 && busy == 0 {
			w.foldedTo.Store(w.mark.Commits)
			w.logCut.Store(true)
		}
	}
}

// cutLogNow has the log cut by the goroutine that leads, and says whether that was done.
func (w *writer) cutLogNow() bool {
	w.logCut.Store(false)
	w.emptyLog.Store(true)
	w.finishCheckpoint()
	return w.logCut.Load()
}
