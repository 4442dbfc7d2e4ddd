-- +goose Up

-- The records that every database has alike (package store/relational): flags are numbers, as are times; texts are compared byte by
-- byte. What the statements use and PostgreSQL does not have by itself comes first.

-- +goose StatementBegin
CREATE FUNCTION instr(whole text, part text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT strpos(whole, part)::bigint';
CREATE FUNCTION iif(condition boolean, one anycompatible, other anycompatible) RETURNS anycompatible LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE WHEN condition THEN one ELSE other END';
CREATE FUNCTION max(one bigint, other bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT greatest(one, other)';
CREATE FUNCTION json_each(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT jsonb_array_elements_text(list::jsonb)';
-- +goose StatementEnd

-- The tables that were here already become as the others are.
ALTER TABLE executions
    ALTER COLUMN final TYPE bigint USING final::int,
    ALTER COLUMN priority TYPE bigint,
    ADD COLUMN error_code text NOT NULL DEFAULT '',
    ADD COLUMN error_node text NOT NULL DEFAULT '';
CREATE INDEX executions_parent ON executions (workspace_id, parent) WHERE parent <> '';
CREATE INDEX executions_status ON executions (workspace_id, status, n);

DROP INDEX inbox_pending;
ALTER TABLE inbox ALTER COLUMN taken TYPE bigint USING taken::int;
CREATE INDEX inbox_pending ON inbox (execution, id) WHERE taken = 0;

ALTER TABLE ledger
    ALTER COLUMN open TYPE bigint USING open::int,
    ADD COLUMN profile text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX ledger_execution ON ledger (workspace_id, execution_id);
CREATE INDEX ledger_workflow ON ledger (workspace_id, workflow_id, day);
CREATE INDEX ledger_day ON ledger (workspace_id, day);
CREATE INDEX ledger_profile ON ledger (workspace_id, profile, day);
CREATE INDEX ledger_open ON ledger (open) WHERE open <> 0;

CREATE TABLE workspaces (
    workspace_id text COLLATE "C" PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    created      bigint NOT NULL,
    deleted      bigint NOT NULL DEFAULT 0
);
CREATE TABLE users (
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    email        text COLLATE "C" NOT NULL,
    roles        text COLLATE "C" NOT NULL,
    settings     bytea NOT NULL,
    disabled     bigint NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    auto_execute bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, id)
);
CREATE TABLE tokens (
    hash         bytea PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    created      bigint NOT NULL,
    expires      bigint NOT NULL,
    made_by      text COLLATE "C" NOT NULL DEFAULT '',
    scopes       text COLLATE "C" NOT NULL DEFAULT '',
    UNIQUE (workspace_id, id)
);
CREATE TABLE credentials (
    workspace_id  text COLLATE "C" NOT NULL,
    id            text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    type          text COLLATE "C" NOT NULL,
    sealed        bytea NOT NULL,
    created_by    text COLLATE "C" NOT NULL,
    created       bigint NOT NULL,
    updated       bigint NOT NULL,
    token_made_by text COLLATE "C" NOT NULL DEFAULT '',
    problem       text COLLATE "C" NOT NULL DEFAULT '',
    version       bigint NOT NULL DEFAULT 1,
    lease         text COLLATE "C" NOT NULL DEFAULT '',
    lease_until   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, name)
);
CREATE TABLE templates (
    workspace_id    text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    known_params    bytea NOT NULL,
    override_input  bytea NOT NULL,
    override_output bytea NOT NULL,
    created         bigint NOT NULL,
    updated         bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE TABLE workflows (
    workspace_id      text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    name              text COLLATE "C" NOT NULL,
    description       text COLLATE "C" NOT NULL,
    icon_url          text COLLATE "C" NOT NULL,
    tags              text COLLATE "C" NOT NULL,
    version           text COLLATE "C" NOT NULL,
    parent            text COLLATE "C" NOT NULL,
    search            text COLLATE "C" NOT NULL,
    revision          bigint NOT NULL,
    revision_hash     text COLLATE "C" NOT NULL,
    deployment_status text COLLATE "C" NOT NULL,
    deployment_error  text COLLATE "C" NOT NULL,
    created_by        text COLLATE "C" NOT NULL,
    updated_by        text COLLATE "C" NOT NULL,
    created           bigint NOT NULL,
    updated           bigint NOT NULL,
    deleted           bigint NOT NULL,
    last_status       text COLLATE "C" NOT NULL,
    last_execution    bigint NOT NULL,
    total_runs        bigint NOT NULL,
    ended_runs        bigint NOT NULL,
    total_duration_ms bigint NOT NULL,
    total_credits     double precision NOT NULL,
    last_success      bigint NOT NULL,
    token_made_by     text COLLATE "C" NOT NULL DEFAULT '',
    deployed_revision bigint NOT NULL DEFAULT 0,
    deployed_hash     text COLLATE "C" NOT NULL DEFAULT '',
    pending_revision  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX workflows_listing ON workflows (workspace_id, updated DESC, id) WHERE deleted = 0;
CREATE TABLE revisions (
    workspace_id  text COLLATE "C" NOT NULL,
    workflow_id   text COLLATE "C" NOT NULL,
    number        bigint NOT NULL,
    hash          text COLLATE "C" NOT NULL,
    definition    bytea NOT NULL,
    created_by    text COLLATE "C" NOT NULL,
    created       bigint NOT NULL,
    token_made_by text COLLATE "C" NOT NULL DEFAULT '',
    UNIQUE (workspace_id, workflow_id, number)
);
CREATE INDEX revisions_hash ON revisions (workspace_id, workflow_id, hash);
CREATE TABLE memory_scopes (
    n            bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    node_id      text COLLATE "C" NOT NULL,
    session_id   text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    part         text COLLATE "C" NOT NULL,
    version      bigint NOT NULL,
    next         bigint NOT NULL,
    removed      bigint NOT NULL,
    records      bigint NOT NULL,
    searched     bigint NOT NULL,
    bytes        bigint NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    UNIQUE (workspace_id, id)
);
CREATE INDEX memory_scopes_listing ON memory_scopes (workspace_id, updated DESC, id);
CREATE INDEX memory_scopes_user ON memory_scopes (workspace_id, user_id, updated DESC, id);
CREATE INDEX memory_scopes_execution ON memory_scopes (workspace_id, execution_id) WHERE execution_id <> '';
CREATE TABLE profiles (
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    body         bytea NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE TABLE budget_raises (
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    budget       text COLLATE "C" NOT NULL,
    tokens       bigint NOT NULL,
    cost         bigint NOT NULL,
    created      bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX budget_raises_budget ON budget_raises (workspace_id, budget);
CREATE TABLE budget_waits (
    workspace_id text COLLATE "C" NOT NULL,
    budget       text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    activation   text COLLATE "C" NOT NULL,
    node         text COLLATE "C" NOT NULL,
    since        bigint NOT NULL,
    asks         bigint NOT NULL,
    PRIMARY KEY (workspace_id, budget, execution_id, activation)
);
CREATE INDEX budget_waits_execution ON budget_waits (workspace_id, execution_id, activation);
CREATE TABLE hil_interactions (
    n                 bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id      text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    workflow_id       text COLLATE "C" NOT NULL,
    execution_id      text COLLATE "C" NOT NULL,
    root_id           text COLLATE "C" NOT NULL,
    node_id           text COLLATE "C" NOT NULL,
    activation_id     text COLLATE "C" NOT NULL,
    ask_id            text COLLATE "C" NOT NULL,
    user_id           text COLLATE "C" NOT NULL,
    interaction_type  text COLLATE "C" NOT NULL,
    channel_type      text COLLATE "C" NOT NULL,
    purpose           text COLLATE "C" NOT NULL,
    status            text COLLATE "C" NOT NULL,
    priority          bigint NOT NULL,
    min_approvals     bigint NOT NULL,
    exclude_requester bigint NOT NULL,
    attempt           bigint NOT NULL,
    credential_id     text COLLATE "C" NOT NULL,
    timeout_at        bigint NOT NULL,
    warning_sent      bigint NOT NULL,
    next_at           bigint NOT NULL,
    created_at        bigint NOT NULL,
    updated_at        bigint NOT NULL,
    version           bigint NOT NULL,
    arguments_hash    text COLLATE "C" NOT NULL,
    approvers         text COLLATE "C" NOT NULL,
    request_data      bytea NOT NULL,
    response_data     bytea NOT NULL,
    progress          bytea NOT NULL,
    ended             bigint NOT NULL GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN 0 ELSE 1 END) STORED,
    age               bigint NOT NULL GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN created_at ELSE -created_at END) STORED,
    requesters        text COLLATE "C" NOT NULL DEFAULT '[]',
    UNIQUE (workspace_id, id)
);
CREATE INDEX hil_interactions_listing ON hil_interactions (workspace_id, ended, priority DESC, age);
CREATE INDEX hil_interactions_execution ON hil_interactions (workspace_id, execution_id);
CREATE INDEX hil_interactions_root ON hil_interactions (workspace_id, root_id) WHERE root_id <> execution_id;
CREATE INDEX hil_interactions_due ON hil_interactions (next_at, workspace_id) WHERE next_at <> 0;
CREATE INDEX hil_interactions_account ON hil_interactions (workspace_id, channel_type, credential_id) WHERE status = 'pending' AND credential_id <> '';
CREATE TABLE hil_approvers (
    workspace_id text COLLATE "C" NOT NULL,
    approver     text COLLATE "C" NOT NULL,
    ended        bigint NOT NULL,
    interaction  bigint NOT NULL,
    PRIMARY KEY (workspace_id, approver, ended, interaction)
);
CREATE TABLE hil_responses (
    n              bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id   text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    interaction_id text COLLATE "C" NOT NULL,
    user_id        text COLLATE "C" NOT NULL,
    address        text COLLATE "C" NOT NULL,
    channel_type   text COLLATE "C" NOT NULL,
    dedup          text COLLATE "C" NOT NULL,
    raw            text COLLATE "C" NOT NULL,
    response_data  bytea NOT NULL,
    received_at    bigint NOT NULL,
    relevance      text COLLATE "C" NOT NULL,
    score          double precision NOT NULL,
    factors        bytea NOT NULL,
    classification text COLLATE "C" NOT NULL,
    reasoning      text COLLATE "C" NOT NULL,
    accepted       bigint NOT NULL,
    overruled_by   text COLLATE "C" NOT NULL,
    origin         bytea NOT NULL DEFAULT '',
    overruling     bytea NOT NULL DEFAULT '',
    UNIQUE (workspace_id, id)
);
CREATE INDEX hil_responses_interaction ON hil_responses (workspace_id, interaction_id);
CREATE UNIQUE INDEX hil_responses_dedup ON hil_responses (workspace_id, channel_type, dedup) WHERE dedup <> '';
CREATE TABLE hil_links (
    hash           bytea PRIMARY KEY,
    workspace_id   text COLLATE "C" NOT NULL,
    interaction_id text COLLATE "C" NOT NULL,
    attempt        bigint NOT NULL,
    recipient      text COLLATE "C" NOT NULL,
    reusable       bigint NOT NULL,
    expires        bigint NOT NULL,
    used           bigint NOT NULL,
    created        bigint NOT NULL,
    origin         bytea NOT NULL DEFAULT ''
);
CREATE TABLE hil_deliveries (
    n              bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id   text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    interaction_id text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    channel_type   text COLLATE "C" NOT NULL,
    recipient      text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    attempts       bigint NOT NULL,
    next_at        bigint NOT NULL,
    error          text COLLATE "C" NOT NULL,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    body           bytea NOT NULL,
    receipt        bytea NOT NULL,
    UNIQUE (workspace_id, id)
);
CREATE INDEX hil_deliveries_interaction ON hil_deliveries (workspace_id, interaction_id);
CREATE INDEX hil_deliveries_due ON hil_deliveries (next_at, workspace_id) WHERE status = 'pending';
CREATE TABLE hil_threads (
    workspace_id   text COLLATE "C" NOT NULL,
    channel_type   text COLLATE "C" NOT NULL,
    thread         text COLLATE "C" NOT NULL,
    interaction_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, channel_type, thread)
);
CREATE TABLE workflow_execution_pauses (
    n                 bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id      text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    execution_id      text COLLATE "C" NOT NULL,
    node_id           text COLLATE "C" NOT NULL,
    pause_reason      text COLLATE "C" NOT NULL,
    resume_conditions bytea NOT NULL,
    pause_context     bytea NOT NULL,
    status            text COLLATE "C" NOT NULL,
    paused_at         bigint NOT NULL,
    resumed_at        bigint NOT NULL,
    resume_reason     text COLLATE "C" NOT NULL,
    resume_data       bytea NOT NULL,
    UNIQUE (workspace_id, id)
);
CREATE INDEX workflow_execution_pauses_execution ON workflow_execution_pauses (workspace_id, execution_id);
CREATE TABLE mcp_servers (
    workspace_id    text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    description     text COLLATE "C" NOT NULL,
    transport       text COLLATE "C" NOT NULL,
    command         text COLLATE "C" NOT NULL,
    args            text COLLATE "C" NOT NULL,
    dir             text COLLATE "C" NOT NULL,
    env             text COLLATE "C" NOT NULL,
    url             text COLLATE "C" NOT NULL,
    headers         text COLLATE "C" NOT NULL,
    credential_id   text COLLATE "C" NOT NULL,
    timeout_seconds bigint NOT NULL,
    idle_seconds    bigint NOT NULL,
    enabled         bigint NOT NULL,
    created         bigint NOT NULL,
    updated         bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE TABLE mcp_activations (
    workspace_id  text COLLATE "C" NOT NULL,
    server_id     text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    activated     bigint NOT NULL,
    accepted_by   text COLLATE "C" NOT NULL,
    accepted      bigint NOT NULL,
    tools         bytea NOT NULL,
    token_made_by text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, server_id, user_id)
);
CREATE TABLE mcp_policies (
    workspace_id  text COLLATE "C" NOT NULL,
    server_id     text COLLATE "C" NOT NULL,
    tool          text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    policy        text COLLATE "C" NOT NULL,
    rules         text COLLATE "C" NOT NULL,
    hash          text COLLATE "C" NOT NULL,
    set_by        text COLLATE "C" NOT NULL,
    set_at        bigint NOT NULL,
    token_made_by text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, server_id, tool, user_id)
);
CREATE TABLE mcp_acceptances (
    id            bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id  text COLLATE "C" NOT NULL,
    server_id     text COLLATE "C" NOT NULL,
    tool          text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    summary       text COLLATE "C" NOT NULL,
    before        bytea NOT NULL,
    before_hash   text COLLATE "C" NOT NULL,
    after         bytea NOT NULL,
    after_hash    text COLLATE "C" NOT NULL,
    accepted_by   text COLLATE "C" NOT NULL,
    execution_id  text COLLATE "C" NOT NULL,
    accepted      bigint NOT NULL,
    token_made_by text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX mcp_acceptances_of ON mcp_acceptances (workspace_id, server_id, id);
CREATE INDEX workflows_pending ON workflows (workspace_id, id) WHERE pending_revision <> 0;
CREATE TABLE triggers (
    workspace_id text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    in_force     bigint NOT NULL,
    node_id      text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    revision     bigint NOT NULL,
    state        text COLLATE "C" NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    next_due     bigint NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    cursor       bytea NOT NULL,
    config       bytea NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, in_force, node_id)
);
CREATE INDEX triggers_due ON triggers (next_due, workspace_id) WHERE next_due <> 0 AND in_force = 1;
CREATE INDEX triggers_kind ON triggers (kind, workspace_id) WHERE in_force = 1;
CREATE TABLE trigger_deliveries (
    n            bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    node_id      text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    revision     bigint NOT NULL,
    dedup        text COLLATE "C" NOT NULL,
    received_at  bigint NOT NULL,
    decision     text COLLATE "C" NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    attempts     bigint NOT NULL,
    next_at      bigint NOT NULL,
    replay_of    text COLLATE "C" NOT NULL,
    answered_by  text COLLATE "C" NOT NULL,
    payload_blob text COLLATE "C" NOT NULL,
    payload_size bigint NOT NULL,
    answer       bytea NOT NULL,
    payload      bytea NOT NULL,
    conversation text COLLATE "C" NOT NULL DEFAULT '',
    UNIQUE (workspace_id, id)
);
CREATE UNIQUE INDEX trigger_deliveries_dedup ON trigger_deliveries (workspace_id, workflow_id, node_id, dedup) WHERE dedup <> '';
CREATE INDEX trigger_deliveries_execution ON trigger_deliveries (workspace_id, execution_id) WHERE execution_id <> '';
CREATE INDEX trigger_deliveries_workflow ON trigger_deliveries (workspace_id, workflow_id, n);
CREATE INDEX trigger_deliveries_open ON trigger_deliveries (next_at, workspace_id) WHERE decision = 'accepted';
CREATE TABLE audit (
    seq          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    time         bigint NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    means        text COLLATE "C" NOT NULL,
    address      text COLLATE "C" NOT NULL,
    agent        text COLLATE "C" NOT NULL,
    action       text COLLATE "C" NOT NULL,
    object       text COLLATE "C" NOT NULL,
    object_id    text COLLATE "C" NOT NULL,
    outcome      text COLLATE "C" NOT NULL,
    detail       text COLLATE "C" NOT NULL
);
CREATE TABLE audit_retained (
    workspace_id text COLLATE "C" NOT NULL PRIMARY KEY,
    through      bigint NOT NULL
);
CREATE TABLE token_uses (
    workspace_id text COLLATE "C" NOT NULL,
    token_id     text COLLATE "C" NOT NULL,
    used         bigint NOT NULL,
    PRIMARY KEY (workspace_id, token_id)
);
CREATE TABLE sessions (
    hash          bytea NOT NULL PRIMARY KEY,
    workspace_id  text COLLATE "C" NOT NULL,
    id            text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    method        text COLLATE "C" NOT NULL,
    token_id      text COLLATE "C" NOT NULL,
    token_made_by text COLLATE "C" NOT NULL,
    scopes        text COLLATE "C" NOT NULL,
    address       text COLLATE "C" NOT NULL,
    agent         text COLLATE "C" NOT NULL,
    created       bigint NOT NULL,
    seen          bigint NOT NULL,
    expires       bigint NOT NULL
);
CREATE UNIQUE INDEX sessions_of ON sessions (workspace_id, user_id, id);
CREATE TABLE invitations (
    hash          bytea NOT NULL PRIMARY KEY,
    workspace_id  text COLLATE "C" NOT NULL,
    id            text COLLATE "C" NOT NULL,
    email         text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    roles         text COLLATE "C" NOT NULL,
    invited_by    text COLLATE "C" NOT NULL,
    token_made_by text COLLATE "C" NOT NULL,
    created       bigint NOT NULL,
    expires       bigint NOT NULL,
    accepted      bigint NOT NULL,
    user_id       text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX invitations_of ON invitations (workspace_id, id);
CREATE TABLE logins (
    issuer       text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    created      bigint NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX trigger_deliveries_conversation ON trigger_deliveries (workspace_id, conversation, n) WHERE conversation <> '';
CREATE INDEX hil_approvers_interaction ON hil_approvers (interaction);
CREATE INDEX hil_links_interaction ON hil_links (workspace_id, interaction_id);
CREATE INDEX hil_threads_interaction ON hil_threads (workspace_id, interaction_id);
CREATE INDEX audit_of ON audit (workspace_id, seq);
CREATE INDEX audit_of_object ON audit (workspace_id, object_id, seq);
CREATE TABLE contact_channels (
    workspace_id     text COLLATE "C" NOT NULL,
    name             text COLLATE "C" NOT NULL,
    channel_type     text COLLATE "C" NOT NULL,
    credential_id    text COLLATE "C" NOT NULL,
    in_credential_id text COLLATE "C" NOT NULL,
    settings         text COLLATE "C" NOT NULL,
    created_by       text COLLATE "C" NOT NULL,
    created          bigint NOT NULL,
    updated          bigint NOT NULL,
    PRIMARY KEY (workspace_id, name)
);
CREATE TABLE address_proofs (
    workspace_id text COLLATE "C" NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    address      text COLLATE "C" NOT NULL,
    contact      text COLLATE "C" NOT NULL,
    hash         bytea NOT NULL,
    tries        bigint NOT NULL,
    created      bigint NOT NULL,
    expires      bigint NOT NULL,
    PRIMARY KEY (workspace_id, user_id, address)
);
CREATE TABLE hil_accounts (
    workspace_id  text COLLATE "C" NOT NULL,
    channel_type  text COLLATE "C" NOT NULL,
    credential_id text COLLATE "C" NOT NULL,
    interaction   bigint NOT NULL,
    PRIMARY KEY (workspace_id, channel_type, credential_id, interaction)
);
CREATE INDEX hil_accounts_interaction ON hil_accounts (interaction);
CREATE TABLE deployers (
    workspace_id text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    revision     bigint NOT NULL,
    user_id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, revision, user_id)
);
CREATE TABLE revision_sources (
    workspace_id text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    format       text COLLATE "C" NOT NULL,
    source       bytea NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, number)
);
CREATE TABLE drafts (
    workspace_id  text COLLATE "C" NOT NULL,
    execution_id  text COLLATE "C" NOT NULL,
    workflow_id   text COLLATE "C" NOT NULL,
    hash          text COLLATE "C" NOT NULL,
    definition    bytea NOT NULL,
    created_by    text COLLATE "C" NOT NULL,
    token_made_by text COLLATE "C" NOT NULL,
    created       bigint NOT NULL,
    PRIMARY KEY (workspace_id, execution_id)
);
CREATE INDEX drafts_hash ON drafts (workspace_id, workflow_id, hash);

-- Entries of the audit log are never changed, and only retention removes them.
-- +goose StatementBegin
CREATE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'entries of the audit log are never changed';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM audit_retained r WHERE r.workspace_id = OLD.workspace_id AND r.through >= OLD.seq) THEN
        RAISE EXCEPTION 'only retention removes entries of the audit log';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stays();
