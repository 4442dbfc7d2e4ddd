package memories

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strconv"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Change implements [store.Memories].
func (x *Memories) Change(ctx context.Context, p identity.Principal, c store.MemoryChange) (store.MemoryReceipt, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.MemoryReceipt{}, err
	}
	if c.Scope.ID == "" {
		return store.MemoryReceipt{}, fault.New(fault.Invalid, "a memory needs an id")
	}
	if !p.IsSystem() && c.Scope.User != p.User {
		return store.MemoryReceipt{}, store.NotFound("memory", c.Scope.ID)
	}
	for i := range c.Put {
		if c.Put[i].Sort == "" || c.Put[i].ID == "" {
			return store.MemoryReceipt{}, fault.New(fault.Invalid, "a memory record needs a sort and an id")
		}
	}
	c.Scope.Workspace = workspace
	var receipt store.MemoryReceipt
	err = x.db.Write(ctx, func(tx relational.Transaction) error {
		receipt = store.MemoryReceipt{}
		return writing{tx, x.index}.changeMemory(&c, &receipt)
	})
	if err != nil {
		return store.MemoryReceipt{}, err
	}
	return receipt, nil
}

// writing is a transaction that changes memories.
type writing struct {
	relational.Transaction
	index Index
}

// changeMemory makes a change. It refuses before it writes.
func (w writing) changeMemory(c *store.MemoryChange, receipt *store.MemoryReceipt) error {
	m, err := w.memoryScope(c.Scope.Workspace, c.Scope.ID)
	if err != nil {
		return err
	}
	if m != nil {
		if m.User != c.Scope.User {
			return store.NotFound("memory", c.Scope.ID)
		}
		var row [1]driver.Value
		if c.Mark != "" {
			done, err := w.Row(row[:], `SELECT result FROM memory_marks WHERE scope = ? AND mark = ?`, m.n, c.Mark)
			if err != nil {
				return err
			}
			if done {
				receipt.Repeated, receipt.Version = true, m.Version
				if raw, ok := row[0].([]byte); ok && len(raw) > 0 {
					receipt.Result = json.RawMessage(raw)
				}
				return nil
			}
		}
	}
	switch {
	case c.Expect < 0 && m != nil, c.Expect > 0 && (m == nil || m.Version != c.Expect):
		return fault.Newf(fault.Conflict, "memory %q has changed in the meantime; read it again", c.Scope.ID)
	case m != nil && m.next+2*int64(len(c.Put)) > 0xffffffff:
		return fault.Newf(fault.TooLarge, "memory %q has taken all the records that a memory can ever take; use another", c.Scope.ID)
	}
	if m == nil {
		if m, err = w.makeMemoryScope(c); err != nil {
			return err
		}
	}
	if err := w.writeMemory(m, c, receipt); err != nil {
		return err
	}
	m.Version++
	receipt.Version, receipt.Result = m.Version, c.Result
	if c.Mark != "" {
		if _, err := w.Exec(`INSERT INTO memory_marks (scope, mark, result, time) VALUES (?, ?, ?, ?)`, m.n, c.Mark, []byte(c.Result), c.Time); err != nil {
			return err
		}
	}
	_, err = w.Exec(`UPDATE memory_scopes SET version = ?, next = ?, removed = ?, records = ?, searched = ?, bytes = ?, updated = ? WHERE n = ?`,
		m.Version, m.next, m.removed, m.Records, m.searched, m.Bytes, max(m.Updated, c.Time), m.n)
	return err
}

// memoryScope reads the row of a scope, nil when there is none.
func (w writing) memoryScope(workspace, id string) (*memoryScope, error) {
	var row [9]driver.Value
	found, err := w.Row(row[:], `SELECT user_id, n, version, next, removed, records, searched, bytes, updated FROM memory_scopes
		WHERE workspace_id = ? AND id = ?`, workspace, id)
	if err != nil || !found {
		return nil, err
	}
	m := &memoryScope{n: row[1].(int64), next: row[3].(int64), removed: row[4].(int64), searched: row[6].(int64)}
	m.Workspace, m.ID, m.User = workspace, id, row[0].(string)
	m.Version, m.Records, m.Bytes, m.Updated = row[2].(int64), row[5].(int64), row[7].(int64), row[8].(int64)
	return m, nil
}

func (w writing) makeMemoryScope(c *store.MemoryChange) (*memoryScope, error) {
	s := c.Scope
	n, _, err := w.Insert(`INSERT INTO memory_scopes (workspace_id, id, user_id, kind, workflow_id, node_id, session_id, execution_id, part,
		version, next, removed, records, searched, bytes, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 0, 0, 0, 0, ?, ?) RETURNING n`,
		s.Workspace, s.ID, s.User, s.Kind, s.Workflow, s.Node, s.Session, s.Execution, s.Part, c.Time, c.Time)
	if err != nil {
		return nil, err
	}
	m := &memoryScope{MemoryScope: s, n: n, next: 1}
	m.Version, m.Records, m.Bytes = 0, 0, 0
	return m, nil
}

// writeMemory changes the records and keeps the counts.
func (w writing) writeMemory(m *memoryScope, c *store.MemoryChange, receipt *store.MemoryReceipt) error {
	if c.Clear {
		n, err := w.clearMemory(m)
		if err != nil {
			return err
		}
		receipt.Deleted += int(n)
	}
	for _, k := range c.Delete {
		old, err := w.memoryAt(m, k)
		if err != nil {
			return err
		}
		if old == nil {
			continue
		}
		if err := w.dropMemory(m, old); err != nil {
			return err
		}
		receipt.Deleted++
	}
	for i := range c.Put {
		if err := w.putMemory(m, &c.Put[i], c.Time); err != nil {
			return err
		}
	}
	for _, k := range c.Touch {
		if _, err := w.Exec(`UPDATE memory_records SET used = ? WHERE scope = ? AND sort = ? AND id = ?`, c.Time, m.n, k.Sort, k.ID); err != nil {
			return err
		}
	}
	return nil
}

// oldMemory is what has to be known of a record that is replaced or removed.
type oldMemory struct {
	place, version, created, size, vector int64
	searched                              bool
}

func (w writing) memoryAt(m *memoryScope, k store.MemoryKey) (*oldMemory, error) {
	var row [6]driver.Value
	found, err := w.Row(row[:], `SELECT place, version, created, length(body), vector, searched FROM memory_records
		WHERE scope = ? AND sort = ? AND id = ?`, m.n, k.Sort, k.ID)
	if err != nil || !found {
		return nil, err
	}
	return &oldMemory{row[0].(int64), row[1].(int64), row[2].(int64), row[3].(int64), row[4].(int64), row[5].(int64) != 0}, nil
}

// unfind takes a record out of the searches.
func (w writing) unfind(m *memoryScope, o *oldMemory) error {
	if o.searched {
		m.searched--
		if err := w.index.Remove(w, o.place); err != nil {
			return err
		}
	}
	if o.vector != 0 {
		m.removed++
		if _, err := w.Exec(`DELETE FROM memory_vectors WHERE place = ?`, o.vector); err != nil {
			return err
		}
	}
	return nil
}

func (w writing) dropMemory(m *memoryScope, o *oldMemory) error {
	if err := w.unfind(m, o); err != nil {
		return err
	}
	m.Records--
	m.Bytes -= o.size
	_, err := w.Exec(`DELETE FROM memory_records WHERE place = ?`, o.place)
	return err
}

func (w writing) putMemory(m *memoryScope, r *store.MemoryRecord, now int64) error {
	old, err := w.memoryAt(m, store.MemoryKey{Sort: r.Sort, ID: r.ID})
	if err != nil {
		return err
	}
	place, version, created := m.n<<32|m.next, int64(1), now
	if old != nil {
		place, version, created = old.place, old.version+1, old.created
		if err := w.unfind(m, old); err != nil {
			return err
		}
		m.Bytes -= old.size
	} else {
		m.next++
		m.Records++
	}
	m.Bytes += int64(len(r.Body))
	w.Grow(2*len(r.Body) + 4*len(r.Vector))
	space, vector := "", int64(0)
	if r.Vector != nil {
		space, vector = r.Space, m.n<<32|m.next
		m.next++
		if _, err := w.Exec(`INSERT INTO memory_vectors (place, record, space, vector) VALUES (?, ?, ?, ?)`, vector, place, space, packVector(r.Vector)); err != nil {
			return err
		}
	}
	searched := int64(0)
	if r.Text != nil {
		searched = 1
		m.searched++
		if err := w.index.Add(w, place, m.indexed(r.Text)); err != nil {
			return err
		}
	}
	_, err = w.Exec(`INSERT INTO memory_records (place, workspace_id, scope, sort, id, source, target, weight, at, used, expires,
		version, created, updated, searched, vector, space, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (place) DO UPDATE SET source = excluded.source, target = excluded.target, weight = excluded.weight, at = excluded.at,
		used = excluded.used, expires = excluded.expires, version = excluded.version, updated = excluded.updated, searched = excluded.searched,
		vector = excluded.vector, space = excluded.space, body = excluded.body`,
		place, m.Workspace, m.n, r.Sort, r.ID, r.Source, r.Target, r.Weight, r.At, max(r.Used, now), r.Expires,
		version, created, now, searched, vector, space, []byte(r.Body))
	return err
}

// clearMemory removes all records of a scope.
func (w writing) clearMemory(m *memoryScope) (int64, error) {
	if m.searched > 0 {
		if err := w.index.RemoveAll(w, m.first(), m.last()); err != nil {
			return 0, err
		}
	}
	vectors, err := w.Change(`DELETE FROM memory_vectors WHERE place > ? AND place <= ?`, m.first(), m.last())
	if err != nil {
		return 0, err
	}
	m.removed += vectors
	m.Records, m.searched, m.Bytes = 0, 0, 0
	return w.Change(`DELETE FROM memory_records WHERE place > ? AND place <= ?`, m.first(), m.last())
}

// Forget implements [store.Memories].
func (x *Memories) Forget(ctx context.Context, p identity.Principal, scope string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	var n int64
	err = x.db.Write(ctx, func(tx relational.Transaction) error {
		w := writing{tx, x.index}
		m, err := w.memoryScope(workspace, scope)
		if err != nil {
			return err
		}
		if m == nil || !p.IsSystem() && m.User != p.User {
			return store.NotFound("memory", scope)
		}
		n = m.n
		return w.removeScope(m)
	})
	if err == nil {
		x.vectors.forget(n)
	}
	return err
}

// RemoveOf removes the memories that belong to one execution, and, if marks says so, what is noted of the changes that it has made in
// others. It returns the numbers of those that have gone, for [Memories.Gone] once that is on disk.
func (x *Memories) RemoveOf(tx relational.Transaction, workspace, execution string, marks bool) (gone []int64, err error) {
	w := writing{tx, x.index}
	var ids []string
	if err := tx.Rows(1, func(row []driver.Value) { ids = append(ids, row[0].(string)) },
		`SELECT id FROM memory_scopes WHERE workspace_id = ? AND execution_id = ? AND execution_id <> ''`, workspace, execution); err != nil {
		return nil, err
	}
	for _, id := range ids {
		m, err := w.memoryScope(workspace, id)
		if err != nil {
			return nil, err
		}
		if err := w.removeScope(m); err != nil {
			return nil, err
		}
		gone = append(gone, m.n)
	}
	if marks { // they begin with the execution, and a character that ids do not have
		_, err = tx.Exec(`DELETE FROM memory_marks WHERE mark >= ? AND mark < ?`, execution+"\x00", execution+"\x01")
	}
	return gone, err
}

// removeScope removes a memory with everything in it.
func (w writing) removeScope(m *memoryScope) error {
	if _, err := w.clearMemory(m); err != nil {
		return err
	}
	if _, err := w.Exec(`DELETE FROM memory_marks WHERE scope = ?`, m.n); err != nil {
		return err
	}
	_, err := w.Exec(`DELETE FROM memory_scopes WHERE n = ?`, m.n)
	return err
}

// Gone says that memories have been removed, and that this is on disk.
func (x *Memories) Gone(numbers ...int64) {
	for _, n := range numbers {
		x.vectors.forget(n)
	}
}

// maxPurge bounds what one purge holds up others for.
const maxPurge = 500

// Purge implements [store.Memories].
func (x *Memories) Purge(ctx context.Context, p identity.Principal, now, marksBefore int64) (int, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return 0, err
	}
	text, args := `SELECT s.id, r.sort, r.id, s.workspace_id FROM memory_records r JOIN memory_scopes s ON s.n = r.scope
		WHERE r.expires > 0 AND r.expires <= ?`, []any{now}
	if !all {
		text, args = text+` AND r.workspace_id = ?`, append(args, workspace)
	}
	due := map[[2]string][]store.MemoryKey{}
	rows, err := relational.Query(ctx, x.db, text+` ORDER BY r.expires LIMIT `+strconv.Itoa(maxPurge), func(s relational.Scanner) (k [4]string, err error) {
		return k, s.Scan(&k[0], &k[1], &k[2], &k[3])
	}, args...)
	if err != nil {
		return 0, err
	}
	for _, k := range rows {
		at := [2]string{k[3], k[0]}
		due[at] = append(due[at], store.MemoryKey{Sort: k[1], ID: k[2]})
	}
	gone := 0
	err = x.db.Write(ctx, func(tx relational.Transaction) error {
		gone = 0
		for at, keys := range due { // order does not matter: each is a scope of its own
			n, err := writing{tx, x.index}.expireMemory(at[0], at[1], keys, now)
			if err != nil {
				return err
			}
			gone += n
		}
		marks := `DELETE FROM memory_marks WHERE (scope, mark) IN (SELECT scope, mark FROM memory_marks WHERE time < ? LIMIT ?)`
		args := []driver.Value{marksBefore, int64(maxPurge)}
		if !all {
			marks = `DELETE FROM memory_marks WHERE (scope, mark) IN (SELECT k.scope, k.mark FROM memory_marks k
				JOIN memory_scopes s ON s.n = k.scope WHERE k.time < ? AND s.workspace_id = ? LIMIT ?)`
			args = []driver.Value{marksBefore, workspace, int64(maxPurge)}
		}
		n, err := tx.Change(marks, args...)
		gone += int(n)
		return err
	})
	return gone, err
}

// expireMemory removes records that are still expired.
func (w writing) expireMemory(workspace, scope string, keys []store.MemoryKey, now int64) (int, error) {
	m, err := w.memoryScope(workspace, scope)
	if err != nil || m == nil {
		return 0, err
	}
	gone := 0
	for _, k := range keys {
		var row [1]driver.Value
		due, err := w.Row(row[:], `SELECT 1 FROM memory_records WHERE scope = ? AND sort = ? AND id = ? AND expires > 0 AND expires <= ?`, m.n, k.Sort, k.ID, now)
		if err != nil {
			return 0, err
		}
		if !due {
			continue
		}
		old, err := w.memoryAt(m, k)
		if err != nil {
			return 0, err
		}
		if err := w.dropMemory(m, old); err != nil {
			return 0, err
		}
		gone++
	}
	if gone > 0 {
		_, err = w.Exec(`UPDATE memory_scopes SET version = version + 1, removed = ?, records = ?, searched = ?, bytes = ? WHERE n = ?`,
			m.removed, m.Records, m.searched, m.Bytes, m.n)
	}
	return gone, err
}
