-- +goose Up

-- Who made a token: somebody else than its user has seen its secret, too. Empty: nobody knows.
ALTER TABLE tokens ADD COLUMN made_by TEXT NOT NULL DEFAULT '';

-- Who made the token that something was done with, if it was somebody else than who did it.
ALTER TABLE executions ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE workflows ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE revisions ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';

-- How a reply came and on what ground it counts, how it was overruled, and where a link went. JSON.
ALTER TABLE hil_responses ADD COLUMN origin BLOB NOT NULL DEFAULT x'';
ALTER TABLE hil_responses ADD COLUMN overruling BLOB NOT NULL DEFAULT x'';
ALTER TABLE hil_links ADD COLUMN origin BLOB NOT NULL DEFAULT x'';

-- Each user has a space of keys of their own. A key that is there belongs to who started its execution.
CREATE TABLE idempotency_keys_by_user (
    workspace_id TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    key          TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_keys_by_user (workspace_id, user_id, key, request_hash, execution_id, created)
    SELECT k.workspace_id, coalesce((SELECT e.user_id FROM executions e WHERE e.workspace_id = k.workspace_id AND e.id = k.execution_id), ''),
        k.key, k.request_hash, k.execution_id, k.created FROM idempotency_keys k;
DROP TABLE idempotency_keys;
ALTER TABLE idempotency_keys_by_user RENAME TO idempotency_keys;
CREATE INDEX idempotency_keys_age ON idempotency_keys (created);
