-- +goose Up

-- Why a credential cannot be used until a person authorizes it again, how often it was changed, and who may renew its tokens until when (milliseconds):
-- a refresh token is often good for one use, so that only one process at a time may use it.
ALTER TABLE credentials ADD COLUMN problem TEXT NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE credentials ADD COLUMN lease TEXT NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 0;
