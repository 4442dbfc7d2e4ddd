package doctor

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/revisions"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/sqlite/blobdir"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/migrations"
)

// Upgrade is what this program will do with a data directory, and what becomes of the executions in it that have not ended.
type Upgrade struct {
	// OK says that every execution can go on.
	OK bool `json:"ok"`
	// Version is that of the database, Known the one that this program brings it to, and Changes what it does for that, in this order.
	Version int64    `json:"version"`
	Known   int64    `json:"known"`
	Changes []string `json:"changes"`
	// Copied says that a start keeps a copy of the database before it changes anything.
	Copied bool `json:"copied"`
	// Rules is the version of the engine's rules that new executions follow.
	Rules int `json:"rules"`
	// Executions is how many have not ended, and Questions how many questions wait for people.
	Executions int64          `json:"executions"`
	Questions  int64          `json:"questions"`
	Groups     []UpgradeGroup `json:"groups"`
}

// UpgradeGroup are executions that have not ended and to which the same happens.
type UpgradeGroup struct {
	Workspace string `json:"workspace"`
	Workflow  string `json:"workflow"`
	Name      string `json:"name,omitempty"`
	// Revision is the one they are pinned to, 0 for a draft or a task of an agent, and Newest that of the workflow.
	Revision int64  `json:"revision"`
	Hash     string `json:"hash"`
	Newest   int64  `json:"newest"`
	// Rules is the version of the engine's rules that they follow; 0: it cannot be read.
	Rules int `json:"rules"`
	// Executions is how many there are, by status, and One is one of them.
	Executions map[string]int64 `json:"executions"`
	One        string           `json:"one"`
	// Stays and Problems say what stays as it is for them, and what keeps them from going on.
	Stays    []string `json:"stays"`
	Problems []string `json:"problems"`
}

// Count is how many executions there are in the group.
func (g UpgradeGroup) Count() (n int64) {
	for _, of := range g.Executions {
		n += of
	}
	return n
}

// Versions of databases of SQLite from which on something can be asked for. One of PostgreSQL has all of it from postgresSince on.
const (
	journalsSince  = 3
	questionsSince = 6
	draftsSince    = 24
	postgresSince  = 7
)

// Prepare makes a revision ready to be run with the templates that executions were started with, which are pinned to both by a
// hash, and says why it cannot.
type Prepare func(r store.Revision, templates revisions.TemplateSet, pinned string) error

// records is a database that is looked at, as it is at one moment.
type records struct {
	tx                *sql.Tx
	questions, drafts bool // whether it has them
	postgres          bool
	// value opens a large value.
	value func(workspace, name string) (io.ReadCloser, error)
}

// text is a statement as the database wants it: PostgreSQL has numbers for arguments, and one table for journals.
func (r *records) text(text string) string {
	if !r.postgres {
		return text
	}
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", "$"+strconv.Itoa(n), 1)
	}
	return text
}

// ReportUpgrade says what this program would do with a data directory, or with a database of PostgreSQL at an address, without
// changing anything in it: its database stays in the version that it has. A server, also one of an earlier version, may have it
// open. Prepare makes a revision ready to be run, as a start of this program would.
func ReportUpgrade(ctx context.Context, dir, database string, prepare Prepare) (u Upgrade, err error) {
	u.Rules, u.Changes, u.Groups = engine.Semantics, []string{}, []UpgradeGroup{}
	if database != "" {
		err = u.onPostgres(ctx, database, prepare)
	} else {
		err = u.onSQLite(ctx, dir, prepare)
	}
	u.OK = err == nil && !slices.ContainsFunc(u.Groups, func(g UpgradeGroup) bool { return len(g.Problems) > 0 })
	return u, err
}

func (u *Upgrade) onSQLite(ctx context.Context, dir string, prepare Prepare) (err error) {
	if u.Known, err = migrations.Newest(); err != nil {
		return err
	}
	return datadir.Snapshot(ctx, dir, func(tx *sql.Tx, version int64) (err error) {
		u.Version, u.Copied = version, version < u.Known
		if version < journalsSince {
			return fault.Newf(fault.Unsupported, "the database has version %d, and journals can be read from version %d on; copy the data directory, start this program on the copy, and see what becomes of it", version, journalsSince)
		}
		if u.Changes, err = migrations.After(version); err != nil {
			return err
		}
		blobs, err := blobdir.OpenToRead(filepath.Join(dir, datadir.BlobDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // none was ever put
			return err
		}
		if blobs != nil {
			defer func() { err = errors.Join(err, blobs.Close()) }()
		}
		return u.readRecords(ctx, &records{tx: tx, questions: version >= questionsSince, drafts: version >= draftsSince,
			value: func(workspace, name string) (io.ReadCloser, error) {
				if blobs == nil {
					return nil, store.NotFound("blob", name)
				}
				r, _, err := blobs.Get(identity.System(workspace), name)
				return r, err
			}}, prepare)
	})
}

func (u *Upgrade) onPostgres(ctx context.Context, database string, prepare Prepare) (err error) {
	if u.Known, err = postgres.Newest(); err != nil {
		return err
	}
	return postgres.Snapshot(ctx, database, func(tx *sql.Tx, version int64) (err error) {
		u.Version = version
		if version < postgresSince {
			return fault.Newf(fault.Unsupported, "the database has version %d, and journals can be read from version %d on; copy the database, start this program on the copy, and see what becomes of it", version, postgresSince)
		}
		if u.Changes, err = postgres.ChangesAfter(version); err != nil {
			return err
		}
		return u.readRecords(ctx, &records{tx: tx, questions: true, drafts: true, postgres: true,
			value: func(workspace, name string) (io.ReadCloser, error) {
				value, err := postgres.Value(ctx, tx, workspace, name)
				return io.NopCloser(bytes.NewReader(value)), err
			}}, prepare)
	})
}

// readRecords reads what has not ended, and judges it.
func (u *Upgrade) readRecords(ctx context.Context, r *records, prepare Prepare) error {
	if err := u.group(ctx, r); err != nil {
		return err
	}
	if r.questions {
		if err := r.tx.QueryRowContext(ctx, "SELECT count(*) FROM hil_interactions WHERE status = 'pending'").Scan(&u.Questions); err != nil {
			return err
		}
	}
	for i := range u.Groups {
		if err := u.Groups[i].judge(ctx, r, prepare); err != nil {
			return err
		}
	}
	return nil
}

// group reads the executions that have not ended.
func (u *Upgrade) group(ctx context.Context, r *records) (err error) {
	first, joined := "coalesce(j.body, o.body, x'')", "LEFT JOIN journal j ON j.place = e.n << 32 | 1 LEFT JOIN journal_in_order o ON o.place = e.n << 32 | 1"
	if r.postgres {
		first, joined = "coalesce(j.body, ''::bytea)", "LEFT JOIN journal j ON j.execution = e.n AND j.seq = 1"
	}
	rows, err := r.tx.QueryContext(ctx, `SELECT e.workspace_id, e.workflow_id, e.workflow_name, e.revision, e.revision_hash, e.id, e.status, `+first+`
		FROM executions e `+joined+` WHERE e.final = 0 ORDER BY e.n`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	type key struct {
		workspace, workflow, hash string
		rules                     int
	}
	known := map[key]int{}
	for rows.Next() {
		var g UpgradeGroup
		var id, status string
		var first []byte
		if err := rows.Scan(&g.Workspace, &g.Workflow, &g.Name, &g.Revision, &g.Hash, &id, &status, &first); err != nil {
			return err
		}
		g.Rules = rulesOf(first)
		k := key{g.Workspace, g.Workflow, g.Hash, g.Rules}
		at, seen := known[k]
		if !seen {
			g.Executions, g.One, g.Stays, g.Problems = map[string]int64{}, id, []string{}, []string{}
			at, known[k] = len(u.Groups), len(u.Groups)
			u.Groups = append(u.Groups, g)
		}
		u.Groups[at].Executions[status]++
		u.Executions++
	}
	slices.SortStableFunc(u.Groups, func(a, b UpgradeGroup) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), strings.Compare(a.Workflow, b.Workflow),
			cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Rules, b.Rules))
	})
	return rows.Err()
}

// rulesOf is the version of the rules that the first row of a journal names; 0 when it cannot be read. Of one that this program
// does not know, too, the version can be read.
func rulesOf(first []byte) int {
	for _, fact := range host.ReadRow(1, 0, first).Facts {
		switch f := fact.(type) {
		case engine.ExecutionCreated:
			return f.Semantics
		case engine.ExecutionForked:
			return f.Semantics
		}
	}
	return 0
}

// judge says what becomes of the executions of a group.
func (g *UpgradeGroup) judge(ctx context.Context, r *records, prepare Prepare) error {
	switch {
	case g.Rules == 0:
		g.Problems = append(g.Problems, "the beginning of their journals cannot be read")
	case g.Rules > engine.Semantics:
		g.Problems = append(g.Problems, fmt.Sprintf("they follow rules %d of the engine and this program knows rules up to %d; use the newer program", g.Rules, engine.Semantics))
	case g.Rules < engine.Semantics:
		g.Stays = append(g.Stays, fmt.Sprintf("they go on by rules %d of the engine; new ones follow rules %d", g.Rules, engine.Semantics))
	default:
		g.Stays = append(g.Stays, fmt.Sprintf("they go on by rules %d of the engine, as new ones do", g.Rules))
	}
	err := r.tx.QueryRowContext(ctx, r.text("SELECT revision FROM workflows WHERE workspace_id = ? AND id = ?"), g.Workspace, g.Workflow).Scan(&g.Newest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	revision, err := g.definition(ctx, r)
	if errors.Is(err, sql.ErrNoRows) {
		g.Problems = append(g.Problems, "the revision that they are pinned to is not there")
		return nil
	}
	if err != nil {
		return err
	}
	templates, err := g.templates(r)
	if err != nil {
		g.Problems = append(g.Problems, "the node templates that they were started with cannot be read: "+plain(err))
		return nil
	}
	if err := prepare(revision, templates, g.Hash); err != nil {
		g.Problems = append(g.Problems, "this program cannot run what they are pinned to: "+plain(err))
		return nil
	}
	switch {
	case g.Revision == 0:
		g.Stays = append(g.Stays, "they go on with the definition they were started with")
	case g.Revision < g.Newest:
		g.Stays = append(g.Stays, fmt.Sprintf("they go on with revision %d; the newest is %d", g.Revision, g.Newest))
	default:
		g.Stays = append(g.Stays, fmt.Sprintf("they go on with revision %d, which is the newest", g.Revision))
	}
	return nil
}

// definition reads what the executions are pinned to.
func (g *UpgradeGroup) definition(ctx context.Context, r *records) (d store.Revision, err error) {
	d.WorkflowID = g.Workflow
	d.Hash, _ = revisions.SplitHash(g.Hash)
	err = r.tx.QueryRowContext(ctx, r.text("SELECT number, definition FROM revisions WHERE workspace_id = ? AND workflow_id = ? AND hash = ? ORDER BY number DESC LIMIT 1"),
		g.Workspace, g.Workflow, d.Hash).Scan(&d.Number, &d.Definition)
	if errors.Is(err, sql.ErrNoRows) && r.drafts {
		err = r.tx.QueryRowContext(ctx, r.text("SELECT definition FROM drafts WHERE workspace_id = ? AND workflow_id = ? AND hash = ? LIMIT 1"),
			g.Workspace, g.Workflow, d.Hash).Scan(&d.Definition)
	}
	return d, err
}

// templates reads the node templates that the executions were started with; none when their revision names none.
func (g *UpgradeGroup) templates(r *records) (set revisions.TemplateSet, err error) {
	_, name := revisions.SplitHash(g.Hash)
	if name == "" {
		return nil, nil
	}
	content, err := r.value(g.Workspace, name)
	if err != nil {
		return nil, err
	}
	return revisions.ReadTemplates(name, content)
}
