package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/summaries"
)

// executions are the summaries, and journals that are read together with them.
type executions struct {
	*summaries.Executions
	db *DB
}

// GetWithRows implements [store.Executions]. One statement reads both: first the execution, then its rows, which stand in two tables and
// are put in order here, since that costs less than to let the statement do so.
func (x executions) GetWithRows(ctx context.Context, p identity.Principal, id string) (e store.Execution,
	rows []store.Row, whole bool, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, nil, false, err
	}
	if err := x.db.usable(); err != nil {
		return store.Execution{}, nil, false, err
	}
	found := false
	err = x.db.read.Use(ctx, func(c relational.Reader) error {
		return c.Each(ctx, executionWithRows, []any{workspace, id, firstRows + 2}, func(s scanner) (bool, error) {
			if !found {
				found = true
				e, err = scanExecutionRow(s)
				rows = make([]store.Row, 0, usualRows)
				return err == nil, err
			}
			row, err := scanRow(s)
			rows = append(rows, row)
			return err == nil, err
		})
	})
	if errors.Is(err, summaries.ErrParts) {
		e, err = x.Get(ctx, p, id)
		return e, nil, false, err
	}
	if err == nil && !found {
		err = store.NotFound("execution", id)
	}
	if err != nil {
		return store.Execution{}, nil, false, err
	}
	if len(rows) > firstRows {
		return e, nil, false, nil
	}
	slices.SortFunc(rows, func(a, b store.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	return e, rows, true, nil
}

// usualRows is how many rows of an execution there is room for before more is made.
const usualRows = 8

// executionWithRows reads an execution as [summaries.Text], and behind it its rows.
const executionWithRows = `SELECT 0, credits, ` + summaries.Text + ` FROM executions WHERE workspace_id = ?1 AND id = ?2
	UNION ALL SELECT place, time, body FROM executions CROSS JOIN journal
	WHERE executions.workspace_id = ?1 AND id = ?2 AND place > n << 32 AND place < (n + 1) << 32 AND journal.workspace_id = ?1
	UNION ALL SELECT place, time, body FROM executions CROSS JOIN journal_in_order
	WHERE executions.workspace_id = ?1 AND id = ?2 AND place > n << 32 AND place < (n + 1) << 32 AND journal_in_order.workspace_id = ?1
	LIMIT ?3`

// scanExecutionRow reads the first row of [executionWithRows].
func scanExecutionRow(s scanner) (store.Execution, error) {
	var text string
	var credits float64
	var first int64
	if err := s.Scan(&first, &credits, &text); err != nil {
		return store.Execution{}, err
	}
	return summaries.OfText(text, credits)
}
