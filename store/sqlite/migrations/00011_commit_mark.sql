-- +goose Up

-- Every start of a process takes an epoch, and every transaction checks that its epoch is still the newest: a process that
-- another has taken the place of writes nothing more (docs/decisions/0010).
CREATE TABLE epochs (
    epoch INTEGER PRIMARY KEY,
    id    TEXT NOT NULL,    -- random: two copies of a database that go different ways differ in it
    began INTEGER NOT NULL,
    first INTEGER NOT NULL  -- the number of its first commit
) STRICT;

-- How far the database has come. Every transaction changes this row; the file tandem.mark says the same about what was
-- acknowledged, so that a database that lacks some of it is noticed. The counts are of all journals and all executions.
CREATE TABLE commit_mark (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    epoch      INTEGER NOT NULL,
    commits    INTEGER NOT NULL,
    rows       INTEGER NOT NULL,
    executions INTEGER NOT NULL,
    time       INTEGER NOT NULL
) STRICT;

INSERT INTO commit_mark (one, epoch, commits, rows, executions, time)
    SELECT 1, 0, 0, (SELECT count(*) FROM journal) + (SELECT count(*) FROM journal_in_order), (SELECT count(*) FROM executions), 0;

-- What an operator has gone on without.
CREATE TABLE accepted_losses (
    time    INTEGER NOT NULL,
    message TEXT NOT NULL
) STRICT;

-- A row of a journal is in one of its two tables. FAIL instead of ABORT spares every insert a journal of its own: there is
-- nothing to undo yet.

-- +goose StatementBegin
CREATE TRIGGER journal_once BEFORE INSERT ON journal
WHEN EXISTS (SELECT 1 FROM journal_in_order WHERE place = NEW.place)
BEGIN
    SELECT RAISE(FAIL, 'the journal has a row of this number');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER journal_in_order_once BEFORE INSERT ON journal_in_order
WHEN EXISTS (SELECT 1 FROM journal WHERE place = NEW.place)
BEGIN
    SELECT RAISE(FAIL, 'the journal has a row of this number');
END;
-- +goose StatementEnd
