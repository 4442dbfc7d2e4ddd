-- +goose Up

-- Tasks of one conversation know of each other.
ALTER TABLE executions ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
CREATE INDEX executions_conversation ON executions (workspace_id, conversation) WHERE conversation <> '';

-- Whether a user lets calls of low risk run without a confirmation.
ALTER TABLE users ADD COLUMN auto_execute INTEGER NOT NULL DEFAULT 0;
