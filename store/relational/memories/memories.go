// Package memories keeps what memories remember in tables: records and their vectors. Their words are in an index of the database's
// own kind (index.go).
//
// It knows these tables and no others, and how a transaction comes about is not its concern. Stores import it.
package memories

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Memories implements [store.Memories]. Reads begin with the scope, whose row says whose it is.
type Memories struct {
	db    relational.Database
	index Index
	// vectors keeps those that were searched lately at hand.
	vectors vectorCache
}

// New keeps memories in a database, whose index finds their words.
func New(db relational.Database, index Index) *Memories { return &Memories{db: db, index: index} }

// count reads the number that a statement counts.
func count(ctx context.Context, db relational.Database, text string, args ...any) (int, error) {
	all, err := relational.Query(ctx, db, text, func(s relational.Scanner) (n int, err error) { return n, s.Scan(&n) }, args...)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[0], nil
}

// memoryScope is a scope's row.
type memoryScope struct {
	store.MemoryScope
	n, next, removed, searched int64
}

const scopeColumns = `n, workspace_id, id, user_id, kind, workflow_id, node_id, session_id, execution_id, part,
	version, next, removed, records, searched, bytes, created, updated`

func (m *memoryScope) scan(s relational.Scanner) error {
	return s.Scan(&m.n, &m.Workspace, &m.ID, &m.User, &m.Kind, &m.Workflow, &m.Node, &m.Session, &m.Execution, &m.Part,
		&m.Version, &m.next, &m.removed, &m.Records, &m.searched, &m.Bytes, &m.Created, &m.Updated)
}

// first and last are the bounds of a scope's places, both excluded and included.
func (m *memoryScope) first() int64 { return m.n << 32 }
func (m *memoryScope) last() int64  { return m.n<<32 | 0xffffffff }

// find reads the row of a scope that the principal may see.
func (x *Memories) find(ctx context.Context, p identity.Principal, id string) (*memoryScope, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	all, err := relational.Query(ctx, x.db, `SELECT `+scopeColumns+` FROM memory_scopes WHERE workspace_id = ? AND id = ?`,
		func(s relational.Scanner) (*memoryScope, error) {
			m := &memoryScope{}
			return m, m.scan(s)
		}, workspace, id)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || !p.IsSystem() && all[0].User != p.User {
		return nil, store.NotFound("memory", id)
	}
	return all[0], nil
}

// Scope implements [store.Memories].
func (x *Memories) Scope(ctx context.Context, p identity.Principal, id string) (store.MemoryScope, error) {
	m, err := x.find(ctx, p, id)
	if err != nil {
		return store.MemoryScope{}, err
	}
	return m.MemoryScope, nil
}

// Scopes implements [store.Memories].
func (x *Memories) Scopes(ctx context.Context, p identity.Principal, q store.MemoryScopeQuery) (store.MemoryScopePage, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.MemoryScopePage{}, err
	}
	user := q.User
	if !p.IsSystem() {
		if user != "" && user != p.User {
			return store.MemoryScopePage{}, nil
		}
		user = p.User
	}
	where, args := `workspace_id = ?`, []any{workspace}
	narrow := func(column, value string, always bool) {
		if value != "" || always {
			where += ` AND ` + column + ` = ?`
			args = append(args, value)
		}
	}
	narrow("user_id", user, !p.IsSystem())
	narrow("kind", q.Kind, false)
	narrow("workflow_id", q.Workflow, false)
	narrow("node_id", q.Node, false)
	narrow("session_id", q.Session, false)
	limit, offset := q.Page.Limits()
	scopes, err := relational.Query(ctx, x.db, `SELECT `+scopeColumns+` FROM memory_scopes WHERE `+where+` ORDER BY updated DESC, id LIMIT ? OFFSET ?`,
		func(s relational.Scanner) (store.MemoryScope, error) {
			var m memoryScope
			err := m.scan(s)
			return m.MemoryScope, err
		}, append(args, limit, offset)...)
	if err != nil {
		return store.MemoryScopePage{}, err
	}
	total, err := count(ctx, x.db, `SELECT count(*) FROM memory_scopes WHERE `+where, args...)
	return store.MemoryScopePage{Scopes: scopes, Total: total}, err
}

const recordColumns = `r.sort, r.id, r.place, r.source, r.target, r.weight, r.at, r.used, r.expires, r.version, r.created, r.updated, r.space, r.body`

// scanMemory reads a record, and the columns before it into more.
func scanMemory(s relational.Scanner, more ...any) (r store.MemoryRecord, err error) {
	var body []byte
	err = s.Scan(append(more, &r.Sort, &r.ID, &r.Seq, &r.Source, &r.Target, &r.Weight, &r.At, &r.Used, &r.Expires, &r.Version, &r.Created,
		&r.Updated, &r.Space, &body)...)
	r.Body = body
	r.Seq &= 0xffffffff
	return r, err
}

func scanMemoryRow(s relational.Scanner) (store.MemoryRecord, error) { return scanMemory(s) }

// Records implements [store.Memories].
func (x *Memories) Records(ctx context.Context, p identity.Principal, q store.MemoryQuery) (store.MemoryPage, error) {
	m, err := x.find(ctx, p, q.Scope)
	if err != nil {
		return store.MemoryPage{}, err
	}
	if q.Sort == "" && (q.IDs != nil || q.Sources != nil || q.Targets != nil) {
		return store.MemoryPage{}, fault.New(fault.Invalid, "memory records are found by a key among those of one sort only")
	}
	where, args := m.where(q)
	order := map[store.MemoryOrder]string{
		store.OldestFirst: `r.place`, store.NewestFirst: `r.place DESC`, store.LatestFirst: `r.at DESC, r.place`,
		store.HeaviestFirst: `r.weight DESC, r.place`, store.LeastUsedFirst: `r.used, r.place`,
	}[q.Order]
	if order == "" {
		return store.MemoryPage{}, fault.Newf(fault.Invalid, "there is no order %d of memory records", q.Order)
	}
	if q.IDs != nil || q.Sources != nil || q.Targets != nil {
		order = strings.ReplaceAll(order, `r.place`, `+r.place`) // few: found by their key, not by walking through all in order
	}
	limit := q.Limit
	if limit <= 0 {
		limit = math.MaxInt64
	}
	var page store.MemoryPage
	page.Records, err = relational.Query(ctx, x.db, `SELECT `+recordColumns+` FROM memory_records r WHERE `+where+` ORDER BY `+order+` LIMIT ? OFFSET ?`,
		scanMemoryRow, append(args, limit, max(q.Offset, 0))...)
	if err == nil && q.Count {
		page.Total, err = count(ctx, x.db, `SELECT count(*) FROM memory_records r WHERE `+where, args...)
	}
	return page, err
}

// where is a query as SQL. There are few such texts: lists are one parameter each.
func (m *memoryScope) where(q store.MemoryQuery) (string, []any) {
	where, args := `r.place > ? AND r.place <= ?`, []any{m.first(), m.last()}
	if q.Sort != "" {
		where, args = `r.scope = ? AND r.sort = ?`, []any{m.n, q.Sort}
	}
	among := func(column string, values []string) string {
		list, err := json.Marshal(values)
		if err != nil {
			list = []byte("[]") // a list of texts is always JSON
		}
		args = append(args, string(list))
		return `r.` + column + ` IN (SELECT value FROM json_each(?))`
	}
	if q.IDs != nil {
		where += ` AND ` + among("id", q.IDs)
	}
	switch {
	case q.Sources != nil && q.Targets != nil:
		// As two lookups: an index serves each, and none serves both. The places that they give are all that is looked at.
		where = strings.Replace(where, `r.scope = ? AND r.sort = ?`, `+r.scope = ? AND +r.sort = ?`, 1)
		one := `SELECT place FROM memory_records r WHERE scope = ? AND sort = ? AND `
		args = append(args, m.n, q.Sort)
		text := one + `source <> '' AND ` + among("source", q.Sources) + ` UNION ALL `
		args = append(args, m.n, q.Sort)
		where += ` AND r.place IN (` + text + one + `target <> '' AND ` + among("target", q.Targets) + `)`
	case q.Sources != nil:
		where += ` AND r.source <> '' AND ` + among("source", q.Sources)
	case q.Targets != nil:
		where += ` AND r.target <> '' AND ` + among("target", q.Targets)
	}
	if q.Since != 0 {
		where, args = where+` AND r.at >= ?`, append(args, q.Since)
	}
	if q.Until != 0 {
		where, args = where+` AND r.at <= ?`, append(args, q.Until)
	}
	if q.Now != 0 {
		where, args = where+` AND (r.expires = 0 OR r.expires > ?)`, append(args, q.Now)
	}
	return where, args
}

// Search implements [store.Memories].
func (x *Memories) Search(ctx context.Context, p identity.Principal, q store.MemorySearch) (store.MemoryFound, error) {
	m, err := x.find(ctx, p, q.Scope)
	if err != nil {
		return store.MemoryFound{}, err
	}
	found := store.MemoryFound{Documents: int(m.searched), Frequency: map[string]int{}}
	if len(q.Words) == 0 || q.Limit <= 0 {
		return found, nil
	}
	wanted := Wanted{Documents: int(m.searched), Columns: Columns{q.Title, q.Content, q.Extra}, Ranked: true}
	// A word that very many have says little, and ranking all that have it would take long: it only decides when there is no
	// other, and then for the newest.
	var common []Term
	for _, word := range q.Words {
		term := m.term(word)
		if term.Records, err = x.count(ctx, Wanted{Columns: wanted.Columns, Terms: []Term{term}}); err != nil {
			return store.MemoryFound{}, err
		}
		found.Frequency[word], found.Total = term.Records, max(found.Total, term.Records)
		switch {
		case term.Records > store.MaxMemoryCount:
			common = append(common, term)
		case term.Records > 0:
			wanted.Terms = append(wanted.Terms, term)
		}
	}
	if len(wanted.Terms) == 0 {
		wanted.Terms, wanted.Ranked = common, false
	}
	if len(wanted.Terms) == 0 {
		return found, nil
	}
	if len(wanted.Terms) > 1 && found.Total <= store.MaxMemoryCount {
		if found.Total, err = x.count(ctx, wanted); err != nil {
			return store.MemoryFound{}, err
		}
	}
	best, args := x.index.Best(wanted)
	found.Records, err = relational.Query(ctx, x.db, `SELECT `+recordColumns+` FROM (`+best+` LIMIT ?) f
		JOIN memory_records r ON r.place = f.place
		WHERE (r.sort = ? OR ? = '') AND (? = 0 OR r.expires = 0 OR r.expires > ?) ORDER BY f.rank, r.place`,
		scanMemoryRow, append(args, q.Limit, q.Sort, q.Sort, q.Now, q.Now)...)
	return found, err
}

// count counts the records that are wanted, up to a bound.
func (x *Memories) count(ctx context.Context, q Wanted) (int, error) {
	places, args := x.index.Places(q)
	return count(ctx, x.db, `SELECT count(*) FROM (`+places+` LIMIT ?) f`, append(args, store.MaxMemoryCount+1)...)
}
