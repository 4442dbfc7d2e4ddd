-- +goose Up

-- A message to a chat is a delivery that belongs to a conversation; the conversation is nothing but its messages.
ALTER TABLE trigger_deliveries ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
CREATE INDEX trigger_deliveries_conversation ON trigger_deliveries (workspace_id, conversation, n) WHERE conversation <> '';
