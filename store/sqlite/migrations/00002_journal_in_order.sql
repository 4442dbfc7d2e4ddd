-- +goose Up

-- Rows of the journal are kept in the order in which they come, and found by an index. Kept by execution, as they were, a
-- commit of fifty executions would write fifty pages, nearly all of them nothing but old rows; the entries of the index
-- are small, so that those of many executions share a page.

CREATE TABLE journal_in_order (
    place        INTEGER NOT NULL,
    workspace_id TEXT NOT NULL,
    time         INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;

INSERT INTO journal_in_order (place, workspace_id, time, body) SELECT place, workspace_id, time, body FROM journal ORDER BY place;

DROP TABLE journal;

ALTER TABLE journal_in_order RENAME TO journal;

CREATE UNIQUE INDEX journal_place ON journal (place);
