package datadir

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"tandem/fault"
	"tandem/store/sqlite/migrations"
)

// Lost is the name of the fact that marks the refusal of a directory in which something that was acknowledged is missing. It
// says what is to be done.
const Lost = "lost"

// lost is what a directory lacks, and what to do about it.
type lost struct{ what, remedy string }

func (l lost) refusal() error {
	return fault.Newf(fault.Conflict, "%s; %s", l.what, l.remedy).With(Lost, l.remedy)
}

// markedSince is the version from which on a database has a mark.
const markedSince = 11

// found is what a database says about itself, read without changing anything.
type found struct {
	version int64
	// newer says that what its tables mean is not known.
	newer bool
	// mark is what the database has counted; it has none before version 11.
	mark   Mark
	marked bool
	// since is the last commit of the epoch that the file's mark names, if the database knows that epoch.
	since      int64
	knowsEpoch bool
	// has says that the last acknowledged commit is there, hasNext that the one which was about to happen is.
	has, hasNext bool
}

// endMark is how far the database has come: what it has counted, or further by what is known of the file.
func (f found) endMark(c claim) Mark {
	m := f.mark
	for _, other := range []struct {
		has bool
		Mark
	}{{f.has, c.Mark}, {f.hasNext, c.next}} {
		if other.has && other.Epoch == m.Epoch && other.Commits > m.Commits {
			m = other.Mark
		}
	}
	return m
}

// asItIs is the address of a database as it is on disk, for one look. Not even the log is folded into it; bare leaves the
// log out.
func asItIs(path string, bare bool) string {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)"}}
	if bare {
		q.Set("immutable", "1")
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// look runs a function on a database that is only read.
func look(path string, bare bool, f func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", asItIs(path, bare))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(f(db), db.Close())
}

// rowReader is a database, or a transaction of one.
type rowReader interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func read(ctx context.Context, db rowReader, c claim) (f found, err error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").Scan(&tables); err != nil || tables == 0 {
		return f, err
	}
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&f.version); err != nil {
		return f, err
	}
	known, err := migrations.Newest()
	if f.newer = f.version > known; err != nil || f.newer || f.version < markedSince {
		return f, err
	}
	m := &f.mark
	if err := db.QueryRowContext(ctx, "SELECT m.epoch, coalesce(e.id, ''), commits, rows, executions, time FROM commit_mark m LEFT JOIN epochs e USING (epoch)").
		Scan(&m.Epoch, &m.id, &m.Commits, &m.Rows, &m.Executions, &m.Time); err != nil {
		return f, err
	}
	f.marked = true
	err = db.QueryRowContext(ctx, "SELECT coalesce((SELECT min(first) - 1 FROM epochs WHERE epoch > ?1), commits) FROM epochs, commit_mark WHERE epochs.epoch = ?1 AND id = ?2",
		c.Epoch, c.id).Scan(&f.since)
	if errors.Is(err, sql.ErrNoRows) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.knowsEpoch = true
	if f.has, err = f.attests(ctx, db, c.Mark); err == nil {
		f.hasNext, err = f.attests(ctx, db, c.next)
	}
	return f, err
}

// attests says whether a database, which knows the epoch of a commit, has the commit.
func (f found) attests(ctx context.Context, db rowReader, m Mark) (bool, error) {
	if m.Commits <= f.since || m.Witness == (Witness{}) {
		return m.Commits > 0 && m.Commits <= f.since, nil
	}
	var time int64
	var body []byte
	err := db.QueryRowContext(ctx, "SELECT time, body FROM journal WHERE place = ?1 UNION ALL SELECT time, body FROM journal_in_order WHERE place = ?1", m.Witness.place).Scan(&time, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && WitnessOf(m.Witness.place, time, body) == m.Witness, err
}

// HasCommit checks that a database has a commit, read as somebody who has not read it before.
func HasCommit(path string, m Mark) error {
	return look(path, false, func(db *sql.DB) error {
		f, err := read(context.Background(), db, claim{Mark: m, there: true})
		if err == nil && !f.has {
			err = fmt.Errorf("it lacks commit %d", m.Commits)
		}
		return err
	})
}

// examine compares a database with what was acknowledged. It returns what the database says, and the loss, if there is one,
// in words for the operator.
func examine(ctx context.Context, dir, path string) (f found, c claim, loss string, err error) {
	// The mark comes first: a process that goes on writing meanwhile can only bring the database further.
	c, err = ReadMark(dir)
	if errors.Is(err, errMarkDamaged) {
		loss, err = err.Error()+", so nobody can say whether the database has everything that was acknowledged", nil
	}
	if err != nil {
		return f, c, "", err
	}
	err = look(path, false, func(db *sql.DB) error {
		if f, err = read(ctx, db, c); err != nil || !c.there || f.newer {
			return err
		}
		if loss = behind(f, c.Mark); loss == "" {
			return nil
		}
		gone, err := missing(ctx, db, f, c.Mark)
		loss += gone
		return err
	})
	if err != nil || !c.there || f.newer || loss != "" || c.Folded >= f.endMark(c).Commits {
		return f, c, loss, err
	}
	loss, err = torn(ctx, path, f, c)
	return f, c, loss, err
}

// behind says what a database lacks of what was acknowledged.
func behind(f found, claim Mark) string {
	last := at(claim.Time)
	switch {
	case !f.marked:
		return fmt.Sprintf("the database is of version %d and older than what was acknowledged: %d commits, the last of them %s", f.version, claim.Commits, last)
	case !f.knowsEpoch && f.mark.Epoch < claim.Epoch:
		return fmt.Sprintf("the database is an older copy, of about commit %d %s, and commits up to %d, the last of them %s, were acknowledged", f.mark.Commits, at(f.mark.Time), claim.Commits, last)
	case !f.knowsEpoch:
		return fmt.Sprintf("the database is another one than that in which commits up to %d, the last of them %s, were acknowledged", claim.Commits, last)
	case f.has:
		return ""
	case f.mark.Epoch > claim.Epoch: // it has gone on elsewhere
		return fmt.Sprintf("the database is a copy that has gone another way: it lacks commit %d %s, which was acknowledged", claim.Commits, last)
	}
	return fmt.Sprintf("the database lacks commits that were acknowledged, up to commit %d %s", claim.Commits, last)
}

// missing says how much a database lacks, and names what may be affected.
func missing(ctx context.Context, db *sql.DB, f found, claim Mark) (text string, err error) {
	if f.knowsEpoch && f.mark.Epoch == claim.Epoch {
		c, err := count(ctx, db, claim)
		if err != nil {
			return "", err
		}
		text = "; it ends " + at(c.last)
		if rows := c.allRows - c.rows; rows > 0 {
			text += fmt.Sprintf("; %d rows of journals are missing", rows)
		}
		if n := c.allExecutions - c.executions; n > 0 {
			text += fmt.Sprintf("; %d executions are missing altogether", n)
		}
	}
	affected, err := unfinished(ctx, db)
	return text + affected, err
}

func at(ms int64) string {
	if ms == 0 {
		return "at an unknown time"
	}
	return "at " + time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// unfinished names executions that had not ended when the database did: these may have gone further.
func unfinished(ctx context.Context, db *sql.DB) (text string, err error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'executions'").Scan(&tables); err != nil || tables == 0 {
		return "", err
	}
	var total int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM executions WHERE final = 0").Scan(&total); err != nil || total == 0 {
		return "", err
	}
	rows, err := db.QueryContext(ctx, "SELECT id FROM executions WHERE final = 0 ORDER BY updated DESC, n DESC LIMIT 10")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	text = fmt.Sprintf("; %d executions that have not ended may have gone further: %s", total, strings.Join(ids, ", "))
	if total > len(ids) {
		text += " and others"
	}
	return text, rows.Err()
}

// torn looks for the one loss that the mark in the database does not show. The log is folded into the database page by page;
// when a process dies in the middle of that and the log is lost after it, the page with the mark may be new and another one
// old. So if the log adds nothing to the database file, and it is not known that all was folded into that, the whole file is
// read, and counted.
func torn(ctx context.Context, path string, f found, c claim) (loss string, err error) {
	var alone found
	err = look(path, true, func(db *sql.DB) error {
		alone, err = read(ctx, db, c)
		return err
	})
	if err == nil && alone.endMark(c).Commits < f.endMark(c).Commits {
		return "", nil // the log is there, and whole up to its last commit
	}
	// An error says that the file needs its log. Then the log must be whole, or what follows has an error as well.
	var problems []string
	err = look(path, false, func(db *sql.DB) error {
		if problems, err = integrity(ctx, db); err != nil {
			return err
		}
		has, err := count(ctx, db, f.endMark(c))
		if problem := has.problem(); err == nil && problem != "" {
			problems = append(problems, problem)
		}
		return err
	})
	if err != nil || len(problems) == 0 {
		return "", err
	}
	return "the log of the database is missing, and it was needed: " + problems[0], nil
}

// lossRefused is the refusal to start with a loss.
func lossRefused(dir, loss string) error {
	return lost{
		what: loss,
		remedy: fmt.Sprintf("%s was cut, damaged or removed, or %s was replaced by an older copy: put the files back as they were; if they are gone, or a copy was restored on purpose, go on without what is missing with: tandem recover --accept-loss --data %s",
			DatabaseFile+LogSuffix, DatabaseFile, dir),
	}.refusal()
}

// Sound refuses a data directory in which the database is missing or lacks something that was acknowledged. It changes
// nothing, and is right also while a process has the directory open. A directory that has never been in use is sound.
func Sound(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("open data directory %q: %w", dir, err)
	}
	there, err := hasDatabase(dir)
	if err != nil || !there {
		return err
	}
	f, _, loss, err := examine(ctx, dir, RealPath(dir))
	switch {
	case err != nil:
		return Unusable(dir, err)
	case f.version == 0:
		return databaseGone(dir, "has nothing in it", false)
	case loss != "":
		return lossRefused(dir, loss)
	}
	return nil
}
