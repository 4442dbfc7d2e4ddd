-- +goose Up

-- How many executions there are of each workflow with each status, kept by whoever writes executions, in the same transaction:
-- a list that says how many there are need not count them.
CREATE TABLE execution_counts (
    workspace_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    status       TEXT NOT NULL,
    count        INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, status)
) STRICT, WITHOUT ROWID;

INSERT INTO execution_counts SELECT workspace_id, workflow_id, status, count(*) FROM executions GROUP BY workspace_id, workflow_id, status;
