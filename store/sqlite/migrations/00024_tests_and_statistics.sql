-- +goose Up

-- Definitions that no revision has, kept for the executions that test them.
CREATE TABLE drafts (
    workspace_id  TEXT NOT NULL,
    execution_id  TEXT NOT NULL,
    workflow_id   TEXT NOT NULL,
    hash          TEXT NOT NULL,
    definition    BLOB NOT NULL,
    created_by    TEXT NOT NULL,
    token_made_by TEXT NOT NULL,
    created       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, execution_id)
) STRICT;
CREATE INDEX drafts_hash ON drafts (workspace_id, workflow_id, hash);

-- What failed, so that executions that failed alike can be told together.
ALTER TABLE executions ADD COLUMN error_code TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN error_node TEXT NOT NULL DEFAULT '';

-- How executions went in some time, read without reading the executions. Nothing that has not ended is in it.
CREATE INDEX executions_ended ON executions (workspace_id, ended, workflow_id, status, trigger_type, duration_ms, created) WHERE ended > 0;
CREATE INDEX executions_user ON executions (workspace_id, user_id);
