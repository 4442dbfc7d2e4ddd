-- +goose Up

-- What people have decided about the tools of servers. A user_id of '' is everybody.
CREATE TABLE mcp_policies (
    workspace_id TEXT NOT NULL,
    server_id    TEXT NOT NULL,
    tool         TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    policy       TEXT NOT NULL,
    rules        TEXT NOT NULL, -- JSON array
    hash         TEXT NOT NULL, -- of the definition that it is about
    set_by       TEXT NOT NULL,
    set_at       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, server_id, tool, user_id)
) STRICT, WITHOUT ROWID;

-- Which changes of tools were accepted, by whom and for whom. A user_id of '' is everybody.
CREATE TABLE mcp_acceptances (
    id           INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    server_id    TEXT NOT NULL,
    tool         TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    kind         TEXT NOT NULL,
    summary      TEXT NOT NULL,
    before       BLOB NOT NULL,
    before_hash  TEXT NOT NULL,
    after        BLOB NOT NULL,
    after_hash   TEXT NOT NULL,
    accepted_by  TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    accepted     INTEGER NOT NULL
) STRICT;
CREATE INDEX mcp_acceptances_of ON mcp_acceptances (workspace_id, server_id, id);
