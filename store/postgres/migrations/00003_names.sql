-- +goose Up

-- Who made the token that an execution was started with, if it was somebody else than who started it.
ALTER TABLE executions ADD COLUMN token_made_by text NOT NULL DEFAULT '';

-- Each user has a space of keys of their own. A key that is there belongs to who started its execution.
ALTER TABLE idempotency_keys ADD COLUMN user_id text COLLATE "C" NOT NULL DEFAULT '';
UPDATE idempotency_keys k SET user_id = e.user_id FROM executions e WHERE e.workspace_id = k.workspace_id AND e.id = k.execution_id;
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;
ALTER TABLE idempotency_keys ADD PRIMARY KEY (workspace_id, user_id, key);
