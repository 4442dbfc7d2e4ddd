-- +goose Up

-- Tasks of one conversation know of each other.
ALTER TABLE executions ADD COLUMN conversation text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX executions_conversation ON executions (workspace_id, conversation) WHERE conversation <> '';
