-- +goose Up

-- What memories remember. A scope has a short number, n; a record's place is that number and the order in which it came
-- into its scope in one integer, n << 32 | seq, so that the records of a scope are one range of one tree.

CREATE TABLE memory_scopes (
    n            INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: what is kept in memory goes by it
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    kind         TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    node_id      TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    part         TEXT NOT NULL,
    version      INTEGER NOT NULL,
    next         INTEGER NOT NULL, -- of the next record
    removed      INTEGER NOT NULL, -- how many vectors are gone
    records      INTEGER NOT NULL,
    searched     INTEGER NOT NULL, -- records that are in memory_text
    bytes        INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE INDEX memory_scopes_listing ON memory_scopes (workspace_id, updated DESC, id);
CREATE INDEX memory_scopes_user ON memory_scopes (workspace_id, user_id, updated DESC, id);

CREATE TABLE memory_records (
    place        INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    scope        INTEGER NOT NULL,
    sort         TEXT NOT NULL,
    id           TEXT NOT NULL,
    source       TEXT NOT NULL,
    target       TEXT NOT NULL,
    weight       REAL NOT NULL,
    at           INTEGER NOT NULL,
    used         INTEGER NOT NULL,
    expires      INTEGER NOT NULL, -- 0: never
    version      INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    searched     INTEGER NOT NULL, -- whether memory_text has it
    vector       INTEGER NOT NULL, -- the place of its vector; 0: it has none
    space        TEXT NOT NULL,    -- of its vector
    body         BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX memory_records_id ON memory_records (scope, sort, id);
CREATE INDEX memory_records_order ON memory_records (scope, sort); -- which every index ends with: the place
CREATE INDEX memory_records_at ON memory_records (scope, sort, at);
CREATE INDEX memory_records_source ON memory_records (scope, sort, source) WHERE source <> '';
CREATE INDEX memory_records_target ON memory_records (scope, sort, target) WHERE target <> '';
CREATE INDEX memory_records_expires ON memory_records (expires) WHERE expires > 0;

-- A vector has a place of its own, also in its scope, and never changes: another one of the same record is another row,
-- which comes last. So what was read once stays right, except for what is gone.
CREATE TABLE memory_vectors (
    place  INTEGER PRIMARY KEY,
    record INTEGER NOT NULL, -- the place of the record
    space  TEXT NOT NULL,
    vector BLOB NOT NULL -- float32, little endian, of length one
) STRICT;

-- The words come taken apart, each with the number of its scope before it: so a search looks at its own scope only.
CREATE VIRTUAL TABLE memory_text USING fts5(title, content, extra, content='', contentless_delete=1, tokenize='ascii');

-- The changes that were made, so that making one again changes nothing.
CREATE TABLE memory_marks (
    scope  INTEGER NOT NULL,
    mark   TEXT NOT NULL,
    result BLOB NOT NULL,
    time   INTEGER NOT NULL,
    PRIMARY KEY (scope, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_marks_time ON memory_marks (time);
