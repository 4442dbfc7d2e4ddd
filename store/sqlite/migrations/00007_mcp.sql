-- +goose Up

-- Tool servers and who uses them, with their tools as these were accepted. What is empty is '', what is no time is 0.

CREATE TABLE mcp_servers (
    workspace_id    TEXT NOT NULL,
    id              TEXT NOT NULL,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    transport       TEXT NOT NULL,
    command         TEXT NOT NULL,
    args            TEXT NOT NULL, -- JSON array
    dir             TEXT NOT NULL,
    env             TEXT NOT NULL, -- JSON object
    url             TEXT NOT NULL,
    headers         TEXT NOT NULL, -- JSON object
    credential_id   TEXT NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    idle_seconds    INTEGER NOT NULL,
    enabled         INTEGER NOT NULL,
    created         INTEGER NOT NULL,
    updated         INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT;

CREATE TABLE mcp_activations (
    workspace_id TEXT NOT NULL,
    server_id    TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    activated    INTEGER NOT NULL,
    accepted_by  TEXT NOT NULL,
    accepted     INTEGER NOT NULL,
    tools        BLOB NOT NULL, -- JSON object: name to definition and hash
    PRIMARY KEY (workspace_id, server_id, user_id)
) STRICT;
