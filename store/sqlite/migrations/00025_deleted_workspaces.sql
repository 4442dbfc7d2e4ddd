-- +goose Up

-- When a workspace was deleted; 0: it is there. The row of a deleted one stays, so that its id stands for nothing else and its audit log for itself.
ALTER TABLE workspaces ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
