-- +goose Up

-- Every process that opens the database takes an epoch, and every transaction checks that its epoch is still the newest: a
-- process that another has taken the place of writes nothing more.
CREATE TABLE epochs (
    epoch bigint PRIMARY KEY,
    began timestamptz NOT NULL DEFAULT now()
);
