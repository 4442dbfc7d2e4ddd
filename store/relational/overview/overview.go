// Package overview tells how executions went from the summaries in the SQLite store: how many began and ended, how long they took, why they
// failed.
//
// It only reads. The SQLite store imports it.
package overview

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Overviews implements [store.Overviews].
type Overviews struct{ db relational.Database }

// New reads the executions of a database.
func New(db relational.Database) *Overviews { return &Overviews{db} }

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) { s.Overviews = New(db) }

// ofWorkflow narrows a statement to one workflow, or to none when the argument is empty.
const ofWorkflow = ` AND (?4 = '' OR workflow_id = ?4)`

const (
	countsText = `SELECT status, sum(count) FROM execution_counts WHERE workspace_id = ?1 AND (?2 = '' OR workflow_id = ?2) GROUP BY status`
	// endedText reads the index executions_ended and nothing else. One text costs less to read than five numbers.
	endedText = `SELECT concat_ws(' ', ended, created, CASE status WHEN 'SUCCESS' THEN 1 WHEN 'ERROR' THEN 2 WHEN 'TIMEOUT' THEN 2 ELSE 0 END, duration_ms) FROM executions INDEXED BY executions_ended
		WHERE workspace_id = ?1 AND ended > 0 AND ended >= ?2 AND created < ?3 AND trigger_type <> 'TEST'` + ofWorkflow
	openText = `SELECT created FROM executions INDEXED BY executions_status WHERE workspace_id = ?1 AND created >= ?2 AND created < ?3 AND trigger_type <> 'TEST'` + ofWorkflow + `
		AND status IN ('NEW', 'PENDING', 'RUNNING', 'PAUSED', 'WAITING', 'WAITING_FOR_HUMAN')`
	failuresText = `SELECT workflow_id, error_node, error_code, count(*), max(n) AS newest FROM executions INDEXED BY executions_ended
		WHERE workspace_id = ?1 AND ended > 0 AND ended >= ?2 AND ended < ?3 AND trigger_type <> 'TEST'` + ofWorkflow + `
		AND status IN ('ERROR', 'TIMEOUT') GROUP BY workflow_id, error_node, error_code ORDER BY newest DESC LIMIT ?5`
	failureText = `SELECT id, workflow_name, error, ended FROM executions WHERE n = ?1 AND workspace_id = ?2`
	runsText    = `SELECT id, status, duration_ms, created FROM executions WHERE workspace_id = ?1 AND workflow_id = ?2 AND trigger_type <> 'TEST' ORDER BY n DESC LIMIT ?3`
)

// Overview implements [store.Overviews]. All of it is as of one moment.
func (x *Overviews) Overview(ctx context.Context, p identity.Principal, q store.OverviewQuery) (out store.Overview, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return out, err
	}
	out.Counts = map[engine.Status]int64{}
	if q.Bucket > 0 {
		for start := q.Since; start < q.Until; start += q.Bucket {
			out.Buckets = append(out.Buckets, store.OverviewBucket{Start: start})
		}
	}
	err = x.db.Read(ctx, func(c relational.Reader) error {
		return c.Transaction(ctx, func() error {
			err := c.Each(ctx, countsText, []any{workspace, q.WorkflowID}, func(s relational.Scanner) (bool, error) {
				var status engine.Status
				var count int64
				err := s.Scan(&status, &count)
				if count != 0 {
					out.Counts[status] = count
				}
				return err == nil, err
			})
			if err != nil {
				return err
			}
			if err := fill(ctx, c, workspace, q, out.Buckets); err != nil {
				return err
			}
			out.Failures, err = failures(ctx, c, workspace, q)
			return err
		})
	})
	return out, err
}

// fill counts what began and ended in each part of the time.
func fill(ctx context.Context, c relational.Reader, workspace string, q store.OverviewQuery, buckets []store.OverviewBucket) error {
	if len(buckets) == 0 {
		return nil
	}
	took := make([][]int64, len(buckets))
	at := func(time int64) int {
		if time < q.Since || time >= q.Until {
			return -1
		}
		return int((time - q.Since) / q.Bucket)
	}
	err := c.Each(ctx, endedText, []any{workspace, q.Since, q.Until, q.WorkflowID}, func(s relational.Scanner) (bool, error) {
		var text string
		if err := s.Scan(&text); err != nil {
			return false, err
		}
		row, err := numbers(text)
		if err != nil {
			return false, err
		}
		if b := at(row[1]); b >= 0 {
			buckets[b].Started++
		}
		if b := at(row[0]); b >= 0 {
			switch row[2] {
			case 1:
				buckets[b].Succeeded++
				took[b] = append(took[b], row[3])
			case 2:
				buckets[b].Failed++
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	err = c.Each(ctx, openText, []any{workspace, q.Since, q.Until, q.WorkflowID}, func(s relational.Scanner) (bool, error) {
		var created int64
		err := s.Scan(&created)
		if b := at(created); b >= 0 {
			buckets[b].Started++
		}
		return err == nil, err
	})
	for i := range buckets {
		slices.Sort(took[i])
		buckets[i].P50, buckets[i].P95 = percentile(took[i], 50), percentile(took[i], 95)
	}
	return err
}

// numbers reads a row of endedText: when it ended, when it was made, 1 for a success and 2 for a failure, how long it took.
func numbers(text string) (row [4]int64, err error) {
	for i := range row {
		digits, rest, _ := strings.Cut(text, " ")
		if row[i], err = strconv.ParseInt(digits, 10, 64); err != nil {
			return row, err
		}
		text = rest
	}
	return row, nil
}

// percentile is the least value that so many of a hundred do not exceed; zero of none. The list is sorted.
func percentile(list []int64, of int) int64 {
	if len(list) == 0 {
		return 0
	}
	return list[(len(list)*of+99)/100-1]
}

func failures(ctx context.Context, c relational.Reader, workspace string, q store.OverviewQuery) (list []store.FailureGroup, err error) {
	if q.MaxFailures <= 0 {
		return nil, nil
	}
	var newest []int64
	err = c.Each(ctx, failuresText, []any{workspace, q.Since, q.Until, q.WorkflowID, int64(q.MaxFailures)},
		func(s relational.Scanner) (bool, error) {
			var f store.FailureGroup
			var n int64
			err := s.Scan(&f.WorkflowID, &f.Node, &f.Code, &f.Count, &n)
			list, newest = append(list, f), append(newest, n)
			return err == nil, err
		})
	if err != nil {
		return nil, err
	}
	for i := range list {
		f := &list[i]
		err := c.Each(ctx, failureText, []any{newest[i], workspace}, func(s relational.Scanner) (bool, error) {
			return false, s.Scan(&f.Execution, &f.WorkflowName, &f.Message, &f.Time)
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// LastRuns implements [store.Overviews].
func (x *Overviews) LastRuns(ctx context.Context, p identity.Principal, workflows []string, n int) (map[string][]store.Execution, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	runs := make(map[string][]store.Execution, len(workflows))
	err = x.db.Read(ctx, func(c relational.Reader) error {
		for _, id := range workflows {
			list, err := relational.All(ctx, c, runsText, func(s relational.Scanner) (e store.Execution, err error) {
				e.WorkflowID = id
				return e, s.Scan(&e.ID, &e.Status, &e.DurationMS, &e.Created)
			}, []any{workspace, id, int64(n)})
			if err != nil {
				return err
			}
			runs[id] = list
		}
		return nil
	})
	return runs, err
}
