-- +goose Up

-- An owner may let other processes write as well: members, which own nothing. Then all transactions that write come one after the other, so that each
-- of them still looks and writes as if it were the only one.
ALTER TABLE epochs ADD COLUMN shared boolean NOT NULL DEFAULT false;

CREATE TABLE members (
    member  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    joined  timestamptz NOT NULL DEFAULT now(),
    commits bigint NOT NULL DEFAULT 0,
    session bigint NOT NULL DEFAULT 0
);
ALTER TABLE members SET (fillfactor = 50);

-- When a member has last said that it is alive, and what it has reserved in budgets: one that is gone gives nothing back.
CREATE TABLE member_signs (
    member bigint PRIMARY KEY,
    seen   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE member_calls (
    workspace_id text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    member       bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- +goose StatementBegin
CREATE FUNCTION note_member_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO member_calls (workspace_id, id, member) VALUES (NEW.workspace_id, NEW.id, current_setting('tandem.member')::bigint) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_member_call AFTER INSERT ON ledger FOR EACH ROW
    WHEN (NEW.open <> 0 AND coalesce(current_setting('tandem.member', true), '') <> '') EXECUTE FUNCTION note_member_call();

-- Whose turn it is. Who waits for long gives up with an error, to look whether somebody is gone who has it; the server itself ends who does nothing with it.
-- +goose StatementBegin
CREATE FUNCTION take_turn(of_lock bigint) RETURNS void LANGUAGE plpgsql SET lock_timeout = '3s' AS $$
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    PERFORM pg_advisory_xact_lock(of_lock + 1);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION begin_commit(of_lock bigint, of_epoch bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_lock);
    IF (SELECT max(epoch) FROM epochs) <> of_epoch THEN
        RAISE EXCEPTION 'epoch % is over', of_epoch USING ERRCODE = 'TD001';
    END IF;
    IF (SELECT shared FROM epochs WHERE epoch = of_epoch) THEN
        PERFORM take_turn(of_lock);
    END IF;
    UPDATE epochs SET commits = before + 1 WHERE epoch = of_epoch AND session = of_session AND commits = before;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'epoch % is not at commit % of session %', of_epoch, before, of_session USING ERRCODE = 'TD002';
    END IF;
END $$;
-- +goose StatementEnd

-- The same for a member. It refuses when the owner shares the database with nobody.
-- +goose StatementBegin
CREATE FUNCTION begin_member_commit(of_lock bigint, of_member bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_lock);
    IF NOT coalesce((SELECT shared FROM epochs ORDER BY epoch DESC LIMIT 1), false) THEN
        RAISE EXCEPTION 'the owner shares the database with nobody' USING ERRCODE = 'TD003';
    END IF;
    PERFORM take_turn(of_lock);
    PERFORM set_config('tandem.member', of_member::text, true);
    UPDATE members SET commits = before + 1 WHERE member = of_member AND session = of_session AND commits = before;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'member % is not at commit % of session %', of_member, before, of_session USING ERRCODE = 'TD002';
    END IF;
END $$;
-- +goose StatementEnd
