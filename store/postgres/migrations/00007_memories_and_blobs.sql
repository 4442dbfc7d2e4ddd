-- +goose Up

-- What memories keep. The place of a record or a vector has the number of its scope in its upper half.
CREATE TABLE memory_records (
    place        bigint PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    scope        bigint NOT NULL,
    sort         text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    source       text COLLATE "C" NOT NULL,
    target       text COLLATE "C" NOT NULL,
    weight       double precision NOT NULL,
    at           bigint NOT NULL,
    used         bigint NOT NULL,
    expires      bigint NOT NULL, -- 0: never
    version      bigint NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    searched     bigint NOT NULL, -- whether memory_text has it
    vector       bigint NOT NULL, -- the place of its vector; 0: it has none
    space        text COLLATE "C" NOT NULL, -- of its vector
    body         bytea NOT NULL
);
CREATE UNIQUE INDEX memory_records_id ON memory_records (scope, sort, id);
CREATE INDEX memory_records_order ON memory_records (scope, sort, place);
CREATE INDEX memory_records_at ON memory_records (scope, sort, at, place);
CREATE INDEX memory_records_source ON memory_records (scope, sort, source, place) WHERE source <> '';
CREATE INDEX memory_records_target ON memory_records (scope, sort, target, place) WHERE target <> '';
CREATE INDEX memory_records_expires ON memory_records (expires) WHERE expires > 0;

CREATE TABLE memory_vectors (
    place  bigint PRIMARY KEY,
    record bigint NOT NULL, -- the place of the record
    space  text COLLATE "C" NOT NULL,
    vector bytea NOT NULL -- float32, little endian, of length one
);
ALTER TABLE memory_vectors ALTER COLUMN vector SET STORAGE EXTERNAL; -- numbers that do not become smaller

-- The words come taken apart, each with the number of its scope before it: so a search looks at its own scope only. Of a long text
-- there are several rows, since what one of them takes is bounded.
CREATE TABLE memory_text (
    place bigint NOT NULL,
    part  bigint NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (place, part)
);
CREATE INDEX memory_text_words ON memory_text USING gin (words);

CREATE TABLE memory_marks (
    scope  bigint NOT NULL,
    mark   text COLLATE "C" NOT NULL,
    result bytea NOT NULL,
    time   bigint NOT NULL,
    PRIMARY KEY (scope, mark)
);
CREATE INDEX memory_marks_time ON memory_marks (time);
CREATE INDEX memory_marks_mark ON memory_marks (mark);

-- Where the process that owns the database is reached by those that wait to own it.
CREATE TABLE owners (
    epoch bigint PRIMARY KEY,
    url   text COLLATE "C" NOT NULL
);

-- Large values, by what they hold. A small one is in its row; one that is larger is in pieces, which are there before the row is.
CREATE TABLE blobs (
    workspace_id text COLLATE "C" NOT NULL,
    hash         text COLLATE "C" NOT NULL,
    size         bigint NOT NULL,
    put          bigint NOT NULL, -- when it was last put, in milliseconds
    body         bytea, -- NULL: it is in pieces
    pieces       bigint, -- the number that its pieces have in common
    PRIMARY KEY (workspace_id, hash)
);
CREATE TABLE blob_pieces (
    pieces bigint NOT NULL,
    part   bigint NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (pieces, part)
);
-- Values that are being put. Touched is when the last piece came; one that nobody goes on with is removed with its pieces.
CREATE TABLE blob_uploads (
    pieces       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    touched      bigint NOT NULL
);
