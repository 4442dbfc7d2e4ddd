package postgres

import (
	"context"
	"errors"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/summaries"
)

// executions are the summaries, and journals that are read together with them.
type executions struct {
	*summaries.Executions
	db relational.Database
}

// fewRows is how many rows are read together with an execution.
const fewRows = 32

// executionWithRows reads an execution, and behind it its rows, as of one moment.
const executionWithRows = `SELECT 0::bigint, 0::bigint, convert_to(` + summaries.Text + `, 'UTF8'), credits FROM executions WHERE workspace_id = ?1 AND id = ?2
	UNION ALL (SELECT seq, time, body, 0 FROM journal
	WHERE execution = (SELECT n FROM executions WHERE workspace_id = ?1 AND id = ?2) AND workspace_id = ?1 ORDER BY seq LIMIT ?3)`

// GetWithRows implements [store.Executions].
func (x executions) GetWithRows(ctx context.Context, p identity.Principal, id string) (e store.Execution, rows []store.Row, whole bool,
	err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Execution{}, nil, false, err
	}
	found := false
	err = x.db.Read(ctx, func(c relational.Reader) error {
		return c.Each(ctx, executionWithRows, []any{workspace, id, fewRows + 1}, func(s relational.Scanner) (bool, error) {
			var row store.Row
			var credits float64
			err := s.Scan(&row.Seq, &row.Time, &row.Body, &credits)
			switch {
			case err != nil:
			case !found:
				found = true
				e, err = summaries.OfText(showNUL.Replace(string(row.Body)), credits)
			default:
				rows = append(rows, row)
			}
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
	if len(rows) > fewRows {
		return e, nil, false, nil
	}
	return e, rows, true, nil
}
