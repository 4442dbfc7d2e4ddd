-- +goose Up

-- Rows of a journal may name fields of their values that are kept beside them from now on (host/beside.go). Nothing changes in the
-- database itself: that it has this version keeps programs away from it that would read such values without these fields.
SELECT 1;
