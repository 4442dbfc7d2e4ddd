-- +goose Up

-- What a workspace is limited to and how long it keeps things, as JSON; a workspace without a row has no limits and keeps everything.
CREATE TABLE workspace_limits (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    body         BLOB NOT NULL,
    updated_by   TEXT NOT NULL,
    updated      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Large values that something named which was removed. Whether anything else names them is found out later, since that means reading everything.
CREATE TABLE blob_doubts (
    workspace_id TEXT NOT NULL,
    hash         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, hash)
) STRICT, WITHOUT ROWID;

-- What is yet to be done after something was removed on request: to overwrite what it has left behind in the file ('compact').
CREATE TABLE upkeep_due (
    what  TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many executions that were started on a day have been removed, so that quotas still count them. Epoch is that of the process that started and
-- removed them, which counts them itself as long as it runs; 0: they were started by an earlier one.
CREATE TABLE removed_starts (
    workspace_id TEXT NOT NULL,
    day          TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, day, epoch)
) STRICT, WITHOUT ROWID;

-- By what removing an execution finds what belongs to it, and what still needs it.
CREATE INDEX executions_forked ON executions (workspace_id, forked_from) WHERE forked_from <> '';
CREATE INDEX hil_approvers_interaction ON hil_approvers (interaction);
CREATE INDEX hil_links_interaction ON hil_links (workspace_id, interaction_id);
CREATE INDEX hil_threads_interaction ON hil_threads (workspace_id, interaction_id);
CREATE INDEX memory_scopes_execution ON memory_scopes (workspace_id, execution_id) WHERE execution_id <> '';

-- Every start leaves an entry in the audit log, so that an entry must cost little. The indexes end with the row's number by themselves. A trigger before each
-- insert was a fifth of what an entry costs, whatever it looked at: that no entry is replaced is seen to by the trigger that refuses removals, which the connection that
-- writes has fire for replacements as well (recursive_triggers).
DROP INDEX audit_of;
DROP INDEX audit_of_object;
CREATE INDEX audit_of ON audit (workspace_id);
CREATE INDEX audit_of_object ON audit (workspace_id, object_id);
DROP TRIGGER audit_is_not_replaced;
