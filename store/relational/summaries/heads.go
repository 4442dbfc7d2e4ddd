package summaries

import (
	"tandem/store"
	"tandem/store/relational"
)

// Head is how far the journal of an execution goes.
type Head struct {
	N   int64 // its number in the database
	Seq uint64
	// Summary is there once it was needed.
	Summary Summary
}

// MaxHeads bounds how many executions are remembered, twice: the ones in use and the ones before.
const MaxHeads = 8192

// Heads remembers the heads of the executions used lately. It belongs to the goroutine that commits. Changes within a transaction are
// undone with it.
type Heads struct {
	now, before map[relational.Key]*Head
	undo        []Growth
	// doubt says that a head was looked up anew in the middle of a transaction, which cannot be undone with it.
	doubt bool
}

// Growth is what a transaction changes of a head.
type Growth struct {
	key     relational.Key
	h       *Head
	old     uint64
	summary Summary // before
	created bool
	// rows is by how many it has grown, and last the last of them.
	rows int64
	last *store.Append
}

// Last is the last row of it, and where it is: the number of the execution and that of the row.
func (u *Growth) Last() (n int64, seq uint64, row *store.Append) {
	return u.h.N, u.old + uint64(u.rows), u.last
}

// Begin begins a transaction.
func (t *Heads) Begin() { t.undo = t.undo[:0] }

// Mark is a place in the transaction, for [Heads.Rewind].
func (t *Heads) Mark() int { return len(t.undo) }

// Commit ends the transaction.
func (t *Heads) Commit() {
	clear(t.undo) // the rows may be large
	t.undo, t.doubt = t.undo[:0], false
	// Only between transactions does anything leave, so that undoing finds what it knew.
	if len(t.now) >= MaxHeads {
		t.before, t.now = t.now, nil
	}
}

// Rewind undoes the changes since a mark.
func (t *Heads) Rewind(mark int) {
	for i := len(t.undo) - 1; i >= mark; i-- {
		u := t.undo[i]
		u.h.Seq, u.h.Summary = u.old, u.summary
		if u.created {
			delete(t.now, u.key)
		}
	}
	t.undo = t.undo[:mark]
	if mark == 0 && t.doubt {
		t.now, t.before, t.doubt = nil, nil, false
	}
}

// Known returns the head of an execution that is remembered.
func (t *Heads) Known(k relational.Key) *Head {
	if h, ok := t.now[k]; ok {
		return h
	}
	if h, ok := t.before[k]; ok {
		delete(t.before, k)
		t.Put(k, h)
		return h
	}
	return nil
}

// Put enters a head that was looked up.
func (t *Heads) Put(k relational.Key, h *Head) {
	if t.now == nil {
		t.now = make(map[relational.Key]*Head)
	}
	t.now[k] = h
}

// Create enters a new execution.
func (t *Heads) Create(k relational.Key, n int64) *Head {
	h := &Head{N: n}
	t.Put(k, h)
	t.undo = append(t.undo, Growth{key: k, h: h, created: true})
	return h
}

// Advance moves a head on by some rows.
func (t *Heads) Advance(k relational.Key, h *Head, rows []*store.Append) {
	t.undo = append(t.undo, Growth{key: k, h: h, old: h.Seq, summary: h.Summary, rows: int64(len(rows)), last: rows[len(rows)-1]})
	h.Seq += uint64(len(rows))
}

// Grown is how many rows and executions the transaction adds, and the last change that adds rows, if one does.
func (t *Heads) Grown() (rows, executions int64, last *Growth) {
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

// Forget lets an execution be looked up again.
func (t *Heads) Forget(k relational.Key) {
	delete(t.now, k)
	delete(t.before, k)
	t.doubt = true
}

// Empty lets all executions be looked up again.
func (t *Heads) Empty() { t.now, t.before = nil, nil }

// Remembered is how many heads are known.
func (t *Heads) Remembered() int { return len(t.now) + len(t.before) }
