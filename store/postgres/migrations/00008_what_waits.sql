-- +goose Up

-- A start reads what runs and what is to begin, and passes over what waits, however much that is.
DROP INDEX executions_unfinished;
CREATE INDEX executions_unfinished ON executions (status, priority, n) WHERE final = 0;

-- It reads the first timers only, so that the reminders of children and of error workflows, which are due at once, stand before all others.
UPDATE timers SET until = 0 WHERE id = 'error_workflow' OR (id LIKE 'child:%' AND position('#' IN id) = 0);
