package sqlite

import (
	"database/sql/driver"

	"tandem/store"
	"tandem/store/relational"
	"tandem/store/sqlite/datadir"
)

// executionKey is an execution as callers name it.
type executionKey = relational.Key

// head is how far the journal of an execution goes.
type head struct {
	n   int64 // its number in the database
	seq uint64
	// summary is there once it was needed.
	summary summary
}

// maxHeads bounds how many executions are remembered, twice: the ones in use and the ones before.
const maxHeads = 8192

// heads remembers the heads of the executions used lately. It belongs to the committer. Changes within a transaction are
// undone with it.
type heads struct {
	now, before map[executionKey]*head
	undo        []headChange
	// doubt says that a head was looked up anew in the midst of a transaction, which undoing knows nothing of.
	doubt bool
}

type headChange struct {
	key     executionKey
	h       *head
	old     uint64
	summary summary // before
	created bool
	// rows is by how many it has grown, and last the last of them.
	rows int64
	last *store.Append
}

// witness is the row that a change ends with.
func (u *headChange) witness() datadir.Witness {
	return datadir.WitnessOf(place(u.h.n, u.old+uint64(u.rows)), u.last.Time, u.last.Body)
}

func (t *heads) beginBatch() { t.undo = t.undo[:0] }
func (t *heads) mark() int   { return len(t.undo) }

func (t *heads) commit() {
	clear(t.undo) // the rows may be large
	t.undo, t.doubt = t.undo[:0], false
	// Only between transactions does anything leave, so that undoing finds what it knew.
	if len(t.now) >= maxHeads {
		t.before, t.now = t.now, nil
	}
}

// rewind undoes the changes since a mark.
func (t *heads) rewind(mark int) {
	for i := len(t.undo) - 1; i >= mark; i-- {
		u := t.undo[i]
		u.h.seq, u.h.summary = u.old, u.summary
		if u.created {
			delete(t.now, u.key)
		}
	}
	t.undo = t.undo[:mark]
	if mark == 0 && t.doubt {
		t.now, t.before, t.doubt = nil, nil, false
	}
}

// known returns the head of an execution that is remembered.
func (t *heads) known(k executionKey) *head {
	if h, ok := t.now[k]; ok {
		return h
	}
	if h, ok := t.before[k]; ok {
		delete(t.before, k)
		t.put(k, h)
		return h
	}
	return nil
}

// find returns the head of an execution, or nil if there is no such execution.
func (t *heads) find(c *conn, k executionKey) (*head, error) {
	if h := t.known(k); h != nil {
		return h, nil
	}
	var row [2]driver.Value
	ok, err := c.row(row[:], `SELECT n, max(
			coalesce((SELECT max(place) FROM journal WHERE place BETWEEN n << 32 AND n << 32 | 0xffffffff), 0),
			coalesce((SELECT max(place) FROM journal_in_order WHERE place BETWEEN n << 32 AND n << 32 | 0xffffffff), 0)) & 0xffffffff
		FROM executions WHERE workspace_id = ? AND id = ?`, k.Workspace, k.ID)
	if err != nil || !ok {
		return nil, err
	}
	h := &head{n: row[0].(int64), seq: uint64(row[1].(int64))}
	t.put(k, h)
	return h, nil
}

func (t *heads) put(k executionKey, h *head) {
	if t.now == nil {
		t.now = make(map[executionKey]*head)
	}
	t.now[k] = h
}

// create enters a new execution.
func (t *heads) create(k executionKey, n int64) *head {
	h := &head{n: n}
	t.put(k, h)
	t.undo = append(t.undo, headChange{key: k, h: h, created: true})
	return h
}

// advance moves a head on by some rows.
func (t *heads) advance(k executionKey, h *head, rows []*store.Append) {
	t.undo = append(t.undo, headChange{key: k, h: h, old: h.seq, summary: h.summary, rows: int64(len(rows)), last: rows[len(rows)-1]})
	h.seq += uint64(len(rows))
}

// grown is how many rows and executions the transaction adds, and the last change that adds rows, if one does.
func (t *heads) grown() (rows, executions int64, last *headChange) {
	for i := range t.undo {
		u := &t.undo[i]
		if u.created {
			executions++
		}
		if u.rows > 0 {
			rows += u.rows
			last = u
		}
	}
	return rows, executions, last
}

// forget lets an execution be looked up again.
func (t *heads) forget(k executionKey) {
	delete(t.now, k)
	delete(t.before, k)
	t.doubt = true
}
