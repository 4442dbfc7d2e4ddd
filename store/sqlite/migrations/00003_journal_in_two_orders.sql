-- +goose Up

-- The rows of a transaction that few executions share are kept by execution, where they touch one page and no index; those
-- of a transaction that many share stay in the order in which they come. A journal is what both have of it: which table a
-- row is in says nothing but how busy the moment was. No place is in both, since only the head of a journal is written.

ALTER TABLE journal RENAME TO journal_in_order;

CREATE TABLE journal (
    place        INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    time         INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;
