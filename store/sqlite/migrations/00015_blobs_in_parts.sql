-- +goose Up

-- Large values are kept in parts from now on, as files beside the database. Nothing changes in the database itself: that it has this
-- version keeps programs away from it that would take such values for missing.
SELECT 1;
