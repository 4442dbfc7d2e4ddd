package sqlite

import (
	"database/sql/driver"

	"tandem/store/relational"
	"tandem/store/relational/summaries"
	"tandem/store/sqlite/datadir"
)

// executionKey is an execution as callers name it.
type executionKey = relational.Key

// head is how far the journal of an execution goes.
type head = summaries.Head

// witness is the row that a transaction ends with.
func witness(g *summaries.Growth) datadir.Witness {
	n, seq, row := g.Last()
	return datadir.WitnessOf(place(n, seq), row.Time, row.Body)
}

// find returns the head of an execution, or nil if there is no such execution.
func (w *writer) find(k executionKey) (*head, error) {
	if h := w.heads.Known(k); h != nil {
		return h, nil
	}
	var row [2]driver.Value
	ok, err := w.c.row(row[:], `SELECT n, max(
			coalesce((SELECT max(place) FROM journal WHERE place BETWEEN n << 32 AND n << 32 | 0xffffffff), 0),
			coalesce((SELECT max(place) FROM journal_in_order WHERE place BETWEEN n << 32 AND n << 32 | 0xffffffff), 0)) & 0xffffffff
		FROM executions WHERE workspace_id = ? AND id = ?`, k.Workspace, k.ID)
	if err != nil || !ok {
		return nil, err
	}
	h := &head{N: row[0].(int64), Seq: uint64(row[1].(int64))}
	w.heads.Put(k, h)
	return h, nil
}

// settle writes the tally of a transaction.
func (w *writer) settle() error {
	changed := w.c.changed
	defer func() { w.c.changed = changed }() // statistics are nothing that anybody keeps at hand
	return w.tally.Settle(transaction{w})
}
