-- +goose Up

-- Questions to people. A question has a short number, n, for the tables beside it. Small columns come before the large ones, so
-- that looking at many rows reads no overflow pages. What is empty is '' or x'', what is no time is 0.

CREATE TABLE hil_interactions (
    n                 INTEGER PRIMARY KEY,
    workspace_id      TEXT NOT NULL,
    id                TEXT NOT NULL,
    workflow_id       TEXT NOT NULL,
    execution_id      TEXT NOT NULL,
    root_id           TEXT NOT NULL,
    node_id           TEXT NOT NULL,
    activation_id     TEXT NOT NULL,
    ask_id            TEXT NOT NULL,
    user_id           TEXT NOT NULL,
    interaction_type  TEXT NOT NULL,
    channel_type      TEXT NOT NULL,
    purpose           TEXT NOT NULL,
    status            TEXT NOT NULL,
    priority          INTEGER NOT NULL,
    min_approvals     INTEGER NOT NULL,
    exclude_requester INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    credential_id     TEXT NOT NULL,
    timeout_at        INTEGER NOT NULL,
    warning_sent      INTEGER NOT NULL,
    next_at           INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    version           INTEGER NOT NULL,
    arguments_hash    TEXT NOT NULL,
    approvers         TEXT NOT NULL, -- JSON array
    request_data      BLOB NOT NULL,
    response_data     BLOB NOT NULL,
    progress          BLOB NOT NULL,
    -- What listings go by: pending ones first, the oldest of them first; of the others the newest.
    ended             INTEGER NOT NULL GENERATED ALWAYS AS (status <> 'pending') VIRTUAL,
    age               INTEGER NOT NULL GENERATED ALWAYS AS (iif(status = 'pending', created_at, -created_at)) VIRTUAL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE INDEX hil_interactions_listing ON hil_interactions (workspace_id, ended, priority DESC, age);
CREATE INDEX hil_interactions_execution ON hil_interactions (workspace_id, execution_id);
CREATE INDEX hil_interactions_root ON hil_interactions (workspace_id, root_id) WHERE root_id <> execution_id;
CREATE INDEX hil_interactions_due ON hil_interactions (next_at, workspace_id) WHERE next_at <> 0;
CREATE INDEX hil_interactions_account ON hil_interactions (workspace_id, channel_type, credential_id) WHERE status = 'pending' AND credential_id <> '';

-- Whose they are: one row for each of their approvers. So what somebody has to answer is found without looking at what
-- others have, and without what was answered long ago.
CREATE TABLE hil_approvers (
    workspace_id TEXT NOT NULL,
    approver     TEXT NOT NULL,
    ended        INTEGER NOT NULL,
    interaction  INTEGER NOT NULL, -- n
    PRIMARY KEY (workspace_id, approver, ended, interaction)
) STRICT, WITHOUT ROWID;

CREATE TABLE hil_responses (
    n              INTEGER PRIMARY KEY,
    workspace_id   TEXT NOT NULL,
    id             TEXT NOT NULL,
    interaction_id TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    address        TEXT NOT NULL,
    channel_type   TEXT NOT NULL,
    dedup          TEXT NOT NULL,
    raw            TEXT NOT NULL,
    response_data  BLOB NOT NULL,
    received_at    INTEGER NOT NULL,
    relevance      TEXT NOT NULL,
    score          REAL NOT NULL,
    factors        BLOB NOT NULL,
    classification TEXT NOT NULL,
    reasoning      TEXT NOT NULL,
    accepted       INTEGER NOT NULL,
    overruled_by   TEXT NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE INDEX hil_responses_interaction ON hil_responses (workspace_id, interaction_id);
CREATE UNIQUE INDEX hil_responses_dedup ON hil_responses (workspace_id, channel_type, dedup) WHERE dedup <> '';

CREATE TABLE hil_links (
    hash           BLOB PRIMARY KEY, -- SHA-256 of the secret
    workspace_id   TEXT NOT NULL,
    interaction_id TEXT NOT NULL,
    attempt        INTEGER NOT NULL,
    recipient      TEXT NOT NULL,
    reusable       INTEGER NOT NULL,
    expires        INTEGER NOT NULL,
    used           INTEGER NOT NULL,
    created        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is to be sent, and what was.
CREATE TABLE hil_deliveries (
    n              INTEGER PRIMARY KEY,
    workspace_id   TEXT NOT NULL,
    id             TEXT NOT NULL,
    interaction_id TEXT NOT NULL,
    kind           TEXT NOT NULL,
    channel_type   TEXT NOT NULL,
    recipient      TEXT NOT NULL,
    status         TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    next_at        INTEGER NOT NULL,
    error          TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    body           BLOB NOT NULL,
    receipt        BLOB NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE INDEX hil_deliveries_interaction ON hil_deliveries (workspace_id, interaction_id);
CREATE INDEX hil_deliveries_due ON hil_deliveries (next_at, workspace_id) WHERE status = 'pending';

CREATE TABLE hil_threads (
    workspace_id   TEXT NOT NULL,
    channel_type   TEXT NOT NULL,
    thread         TEXT NOT NULL,
    interaction_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, channel_type, thread)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_execution_pauses (
    n                 INTEGER PRIMARY KEY,
    workspace_id      TEXT NOT NULL,
    id                TEXT NOT NULL,
    execution_id      TEXT NOT NULL,
    node_id           TEXT NOT NULL,
    pause_reason      TEXT NOT NULL,
    resume_conditions BLOB NOT NULL,
    pause_context     BLOB NOT NULL,
    status            TEXT NOT NULL,
    paused_at         INTEGER NOT NULL,
    resumed_at        INTEGER NOT NULL,
    resume_reason     TEXT NOT NULL,
    resume_data       BLOB NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE INDEX workflow_execution_pauses_execution ON workflow_execution_pauses (workspace_id, execution_id);
