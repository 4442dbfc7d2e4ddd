-- +goose Up

-- The first row of an execution that another one has started may have its input as a value of its own from now on (host/start_given.go). Nothing
-- changes in the database itself: that it has this version keeps programs away from it that would begin such executions without their input.
SELECT 1;
