-- +goose Up

-- Every row says which workspace it belongs to. Executions have a short number of their own, n, which rows of the
-- journal and its company use instead of the pair (workspace_id, id). Times are Unix milliseconds.

CREATE TABLE workspaces (
    workspace_id TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    created      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    name         TEXT NOT NULL,
    email        TEXT NOT NULL,
    roles        TEXT NOT NULL, -- JSON array
    settings     BLOB NOT NULL,
    disabled     INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    hash         BLOB PRIMARY KEY, -- SHA-256 of the secret
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    name         TEXT NOT NULL,
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    name         TEXT NOT NULL,
    type         TEXT NOT NULL,
    sealed       BLOB NOT NULL,
    created_by   TEXT NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE templates (
    workspace_id    TEXT NOT NULL,
    id              TEXT NOT NULL,
    kind            TEXT NOT NULL,
    name            TEXT NOT NULL,
    known_params    BLOB NOT NULL,
    override_input  BLOB NOT NULL,
    override_output BLOB NOT NULL,
    created         INTEGER NOT NULL,
    updated         INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflows (
    workspace_id      TEXT NOT NULL,
    id                TEXT NOT NULL,
    name              TEXT NOT NULL,
    description       TEXT NOT NULL,
    icon_url          TEXT NOT NULL,
    tags              TEXT NOT NULL, -- JSON array
    version           TEXT NOT NULL,
    parent            TEXT NOT NULL,
    search            TEXT NOT NULL, -- id, name and description in lower case
    revision          INTEGER NOT NULL,
    revision_hash     TEXT NOT NULL,
    deployment_status TEXT NOT NULL,
    deployment_error  TEXT NOT NULL,
    created_by        TEXT NOT NULL,
    updated_by        TEXT NOT NULL,
    created           INTEGER NOT NULL,
    updated           INTEGER NOT NULL,
    deleted           INTEGER NOT NULL, -- when; 0: it is not
    last_status       TEXT NOT NULL,
    last_execution    INTEGER NOT NULL,
    total_runs        INTEGER NOT NULL,
    ended_runs        INTEGER NOT NULL,
    total_duration_ms INTEGER NOT NULL,
    total_credits     REAL NOT NULL,
    last_success      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX workflows_listing ON workflows (workspace_id, updated DESC, id) WHERE deleted = 0;

CREATE TABLE revisions (
    workspace_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    number       INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    definition   BLOB NOT NULL,
    created_by   TEXT NOT NULL,
    created      INTEGER NOT NULL,
    UNIQUE (workspace_id, workflow_id, number)
) STRICT;
CREATE INDEX revisions_hash ON revisions (workspace_id, workflow_id, hash);

CREATE TABLE executions (
    n                INTEGER PRIMARY KEY,
    workspace_id     TEXT NOT NULL,
    id               TEXT NOT NULL,
    workflow_id      TEXT NOT NULL,
    workflow_name    TEXT NOT NULL,
    workflow_version TEXT NOT NULL,
    revision         INTEGER NOT NULL,
    revision_hash    TEXT NOT NULL,
    status           TEXT NOT NULL,
    final            INTEGER NOT NULL,
    priority         INTEGER NOT NULL,
    parent           TEXT NOT NULL,
    forked_from      TEXT NOT NULL,
    trigger_type     TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    started          INTEGER NOT NULL,
    ended            INTEGER NOT NULL,
    duration_ms      INTEGER NOT NULL,
    credits          REAL NOT NULL,
    error            TEXT NOT NULL,
    created          INTEGER NOT NULL,
    updated          INTEGER NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
-- The listings are in order of n, which every index ends with.
CREATE INDEX executions_listing ON executions (workspace_id);
CREATE INDEX executions_workflow ON executions (workspace_id, workflow_id);
CREATE INDEX executions_status ON executions (workspace_id, status);
CREATE INDEX executions_parent ON executions (workspace_id, parent) WHERE parent <> '';
CREATE INDEX executions_unfinished ON executions (priority) WHERE final = 0;

-- A row's place is its execution's number and its sequence number in one integer: n << 32 | seq. So a journal is one
-- range of one tree, without an index beside it.
CREATE TABLE journal (
    place        INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    time         INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;

CREATE TABLE snapshots (
    execution    INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;

CREATE TABLE inbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT NOT NULL,
    execution    INTEGER NOT NULL,
    dedup        TEXT, -- NULL: none
    kind         TEXT NOT NULL,
    time         INTEGER NOT NULL,
    body         BLOB NOT NULL,
    taken        INTEGER NOT NULL -- a taken item is kept, without its body, for its dedup id only
) STRICT;
CREATE UNIQUE INDEX inbox_dedup ON inbox (execution, dedup) WHERE dedup IS NOT NULL;
CREATE INDEX inbox_pending ON inbox (execution) WHERE taken = 0;

CREATE TABLE timers (
    execution    INTEGER NOT NULL,
    id           TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    until        INTEGER NOT NULL,
    PRIMARY KEY (execution, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_until ON timers (until, workspace_id, execution_id, id);

CREATE TABLE idempotency_keys (
    workspace_id TEXT NOT NULL,
    key          TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_age ON idempotency_keys (created);

CREATE TABLE logs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT NOT NULL,
    execution    INTEGER NOT NULL,
    activation   TEXT NOT NULL,
    node_id      TEXT NOT NULL,
    time         INTEGER NOT NULL,
    level        INTEGER NOT NULL,
    message      TEXT NOT NULL,
    context      BLOB NOT NULL
) STRICT;
CREATE INDEX logs_execution ON logs (execution);

CREATE TABLE log_counts (
    execution    INTEGER NOT NULL,
    activation   TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    kept         INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,
    PRIMARY KEY (execution, activation)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    day          TEXT NOT NULL,
    tokens       INTEGER NOT NULL,
    cost         INTEGER NOT NULL,
    open         INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_execution ON ledger (workspace_id, execution_id);
CREATE INDEX ledger_workflow ON ledger (workspace_id, workflow_id, day);
CREATE INDEX ledger_day ON ledger (workspace_id, day);
