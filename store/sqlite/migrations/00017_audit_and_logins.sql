-- +goose Up

-- The audit log: who did what, when, from where. Rows are added; none is changed, and only retention removes any.
CREATE TABLE audit (
    seq          INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    time         INTEGER NOT NULL,
    user_id      TEXT NOT NULL,
    means        TEXT NOT NULL, -- JSON, or empty
    address      TEXT NOT NULL,
    agent        TEXT NOT NULL,
    action       TEXT NOT NULL,
    object       TEXT NOT NULL,
    object_id    TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    detail       TEXT NOT NULL  -- JSON, or empty
) STRICT;
CREATE INDEX audit_of ON audit (workspace_id, seq);
CREATE INDEX audit_of_object ON audit (workspace_id, object_id, seq);

-- Up to which entry retention has removed those of a workspace.
CREATE TABLE audit_retained (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    through      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are never changed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are never replaced');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_retained r WHERE r.workspace_id = OLD.workspace_id AND r.through >= OLD.seq)
BEGIN
    SELECT RAISE(ABORT, 'only retention removes entries of the audit log');
END;
-- +goose StatementEnd

-- What a token may be used for, as a JSON list of scopes; empty: whatever its user may.
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';

-- When a token was last used, to some minutes. It is kept apart so that using a token is no change of it.
CREATE TABLE token_uses (
    workspace_id TEXT NOT NULL,
    token_id     TEXT NOT NULL,
    used         INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, token_id)
) STRICT, WITHOUT ROWID;

-- Browsers that somebody has logged in with.
CREATE TABLE sessions (
    hash         BLOB NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    method       TEXT NOT NULL, -- how they logged in: token, oidc
    token_id     TEXT NOT NULL, -- the token they logged in with
    token_made_by TEXT NOT NULL,
    scopes       TEXT NOT NULL, -- of that token
    address      TEXT NOT NULL,
    agent        TEXT NOT NULL,
    created      INTEGER NOT NULL,
    seen         INTEGER NOT NULL,
    expires      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_of ON sessions (workspace_id, user_id, id);

-- Invitations. The hash is that of the secret in the link; once it is used it says when and by whom.
CREATE TABLE invitations (
    hash         BLOB NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    id           TEXT NOT NULL,
    email        TEXT NOT NULL,
    name         TEXT NOT NULL,
    roles        TEXT NOT NULL, -- JSON list
    invited_by   TEXT NOT NULL,
    token_made_by TEXT NOT NULL,
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    accepted     INTEGER NOT NULL,
    user_id      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX invitations_of ON invitations (workspace_id, id);

-- Which user somebody is who logs in at a provider of identities.
CREATE TABLE logins (
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
