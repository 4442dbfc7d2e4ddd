-- +goose Up

-- Which executions below a root have not ended, and roots that were canceled and have not ended, for the limit of a tree: several processes start
-- executions below the same root. It is not part of the record of an execution: a database that was moved or restored counts anew.
CREATE TABLE families (
    execution    bigint PRIMARY KEY REFERENCES executions ON DELETE CASCADE,
    workspace_id text COLLATE "C" NOT NULL,
    root         text COLLATE "C" NOT NULL
);
CREATE INDEX families_root ON families (workspace_id, root);

CREATE TABLE canceled_roots (
    execution bigint PRIMARY KEY REFERENCES executions ON DELETE CASCADE
);
