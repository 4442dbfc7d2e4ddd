-- +goose Up

-- Accounts of the installation through which the people of a workspace let questions reach them.
CREATE TABLE contact_channels (
    workspace_id     TEXT NOT NULL,
    name             TEXT NOT NULL,
    channel_type     TEXT NOT NULL,
    credential_id    TEXT NOT NULL,
    in_credential_id TEXT NOT NULL, -- empty: replies come in by credential_id
    settings         TEXT NOT NULL, -- JSON, or empty
    created_by       TEXT NOT NULL,
    created          INTEGER NOT NULL,
    updated          INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;

-- Codes that were sent to addresses which users say are theirs. Only the hash of a code is kept.
CREATE TABLE address_proofs (
    workspace_id TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    address      TEXT NOT NULL,
    contact      TEXT NOT NULL, -- the name of the contact channel
    hash         BLOB NOT NULL,
    tries        INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id, address)
) STRICT, WITHOUT ROWID;

-- The accounts that replies to a pending question come in by, besides that of the question itself: those that the people who are asked have chosen.
CREATE TABLE hil_accounts (
    workspace_id  TEXT NOT NULL,
    channel_type  TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    interaction   INTEGER NOT NULL, -- n
    PRIMARY KEY (workspace_id, channel_type, credential_id, interaction)
) STRICT, WITHOUT ROWID;
CREATE INDEX hil_accounts_interaction ON hil_accounts (interaction);

-- Who has deployed a revision of a workflow: they want what its triggers start.
CREATE TABLE deployers (
    workspace_id TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    user_id      TEXT NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, revision, user_id)
) STRICT, WITHOUT ROWID;
