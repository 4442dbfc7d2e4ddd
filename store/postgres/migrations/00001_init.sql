-- +goose Up

-- Every row says which workspace it belongs to. Text is compared byte by byte (COLLATE "C"), as in every other driver.
-- Times are Unix milliseconds.

CREATE TABLE executions (
    n                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id     text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    workflow_id      text COLLATE "C" NOT NULL,
    workflow_name    text NOT NULL,
    workflow_version text NOT NULL,
    revision         bigint NOT NULL,
    revision_hash    text NOT NULL,
    status           text NOT NULL,
    final            boolean NOT NULL,
    priority         integer NOT NULL,
    parent           text NOT NULL,
    forked_from      text NOT NULL,
    trigger_type     text NOT NULL,
    user_id          text NOT NULL,
    started          bigint NOT NULL,
    ended            bigint NOT NULL,
    duration_ms      bigint NOT NULL,
    credits          double precision NOT NULL,
    error            text NOT NULL,
    created          bigint NOT NULL,
    updated          bigint NOT NULL,
    UNIQUE (workspace_id, id)
);

CREATE TABLE journal (
    execution    bigint NOT NULL,
    seq          bigint NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    time         bigint NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (execution, seq)
);

CREATE TABLE snapshots (
    execution    bigint PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    body         bytea NOT NULL
);

CREATE TABLE inbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    execution    bigint NOT NULL,
    dedup        text COLLATE "C", -- NULL: none
    kind         text NOT NULL,
    time         bigint NOT NULL,
    body         bytea NOT NULL,
    taken        boolean NOT NULL -- a taken item is kept, without its body, for its dedup id only
);
CREATE UNIQUE INDEX inbox_dedup ON inbox (execution, dedup) WHERE dedup IS NOT NULL;
CREATE INDEX inbox_pending ON inbox (execution, id) WHERE NOT taken;

CREATE TABLE timers (
    execution    bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    until        bigint NOT NULL,
    PRIMARY KEY (execution, id)
);
CREATE INDEX timers_until ON timers (until, workspace_id, execution_id, id);

CREATE TABLE idempotency_keys (
    workspace_id text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    request_hash text NOT NULL,
    execution_id text NOT NULL,
    created      bigint NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

CREATE TABLE logs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    execution    bigint NOT NULL,
    activation   text COLLATE "C" NOT NULL,
    node_id      text NOT NULL,
    time         bigint NOT NULL,
    level        integer NOT NULL,
    message      text NOT NULL,
    context      bytea NOT NULL
);
CREATE INDEX logs_execution ON logs (execution, id);

CREATE TABLE log_counts (
    execution    bigint NOT NULL,
    activation   text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    kept         bigint NOT NULL,
    dropped      bigint NOT NULL,
    PRIMARY KEY (execution, activation)
);

CREATE TABLE ledger (
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    day          text NOT NULL,
    tokens       bigint NOT NULL,
    cost         bigint NOT NULL,
    open         boolean NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
