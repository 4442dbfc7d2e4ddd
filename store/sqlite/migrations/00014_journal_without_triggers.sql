-- +goose Up

-- That a row of a journal is in one of its two tables is seen to by the committer: it knows how far each journal goes in both, and
-- reads that again whenever anybody else has written to the database (docs/decisions/0010). The triggers were about half of what
-- an insert cost.
DROP TRIGGER journal_once;
DROP TRIGGER journal_in_order_once;
