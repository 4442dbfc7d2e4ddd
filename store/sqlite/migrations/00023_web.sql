-- +goose Up

-- The text of a revision as its author wrote it. It is kept beside the definition, which is what runs, so that reading the one does not cost the other.
CREATE TABLE revision_sources (
    workspace_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    number       INTEGER NOT NULL,
    format       TEXT NOT NULL, -- yaml or json
    source       BLOB NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, number)
) STRICT;
