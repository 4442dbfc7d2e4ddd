-- +goose Up

CREATE TABLE profiles (
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    body         BLOB NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;

-- What a call has used counts for the profile it went through.
ALTER TABLE ledger ADD COLUMN profile TEXT NOT NULL DEFAULT '';
CREATE INDEX ledger_profile ON ledger (workspace_id, profile, day);
CREATE INDEX ledger_open ON ledger (open) WHERE open <> 0;

-- What people have added to budgets. An id is that of the answer that did.
CREATE TABLE budget_raises (
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    budget       TEXT NOT NULL,
    tokens       INTEGER NOT NULL,
    cost         INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_raises_budget ON budget_raises (workspace_id, budget);

CREATE TABLE budget_waits (
    workspace_id  TEXT NOT NULL,
    budget        TEXT NOT NULL,
    execution_id  TEXT NOT NULL,
    activation    TEXT NOT NULL,
    node          TEXT NOT NULL,
    since         INTEGER NOT NULL,
    asks          INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, budget, execution_id, activation)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_waits_execution ON budget_waits (workspace_id, execution_id, activation);
