-- +goose Up

-- A workflow has a revision that is deployed, which is not always its newest one, and maybe one that is being deployed. Until now the newest one was meant.
ALTER TABLE workflows ADD COLUMN deployed_revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN deployed_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE workflows ADD COLUMN pending_revision INTEGER NOT NULL DEFAULT 0;
UPDATE workflows SET deployed_revision = revision, deployed_hash = revision_hash WHERE deployment_status = 'deployed' AND deleted = 0;
CREATE INDEX workflows_pending ON workflows (workspace_id, id) WHERE pending_revision <> 0;

-- The triggers of workflows: those in force, and those of a deployment that is being made or has failed.
CREATE TABLE triggers (
    workspace_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    in_force     INTEGER NOT NULL,
    node_id      TEXT NOT NULL,
    kind         TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    next_due     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    cursor       BLOB NOT NULL,
    config       BLOB NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, in_force, node_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX triggers_due ON triggers (next_due, workspace_id) WHERE next_due <> 0 AND in_force = 1;
CREATE INDEX triggers_kind ON triggers (kind, workspace_id) WHERE in_force = 1;

-- What has come to them. A delivery that is accepted and not started is found by one small index.
CREATE TABLE trigger_deliveries (
    n            INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    node_id      TEXT NOT NULL,
    kind         TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    dedup        TEXT NOT NULL,
    received_at  INTEGER NOT NULL,
    decision     TEXT NOT NULL,
    reason       TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    next_at      INTEGER NOT NULL,
    replay_of    TEXT NOT NULL,
    answered_by  TEXT NOT NULL,
    payload_blob TEXT NOT NULL,
    payload_size INTEGER NOT NULL,
    answer       BLOB NOT NULL,
    payload      BLOB NOT NULL,
    UNIQUE (workspace_id, id)
) STRICT;
CREATE UNIQUE INDEX trigger_deliveries_dedup ON trigger_deliveries (workspace_id, workflow_id, node_id, dedup) WHERE dedup <> '';
CREATE INDEX trigger_deliveries_execution ON trigger_deliveries (workspace_id, execution_id) WHERE execution_id <> '';
CREATE INDEX trigger_deliveries_workflow ON trigger_deliveries (workspace_id, workflow_id, n);
CREATE INDEX trigger_deliveries_open ON trigger_deliveries (next_at, workspace_id) WHERE decision = 'accepted';
