-- +goose Up

-- Who made the token that a decision about tools was made with, if it was somebody else than the user who decided.
ALTER TABLE mcp_policies ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE mcp_acceptances ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE mcp_activations ADD COLUMN token_made_by TEXT NOT NULL DEFAULT '';
