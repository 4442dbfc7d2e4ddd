-- +goose Up

-- Whoever writes is for one version of the database: the transaction is refused when the database has another. A later version keeps these two functions, or
-- leaves ones in their place that refuse: programs of this version say then what has happened (TD004).
-- +goose StatementBegin
CREATE FUNCTION check_version(of_version bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    has bigint := (SELECT max(version_id) FROM goose_db_version WHERE is_applied);
BEGIN
    IF has IS DISTINCT FROM of_version THEN
        RAISE EXCEPTION 'the database has version %, and the program is for version %', has, of_version USING ERRCODE = 'TD004', DETAIL = coalesce(has, 0)::text;
    END IF;
END $$;
-- +goose StatementEnd

-- Programs before this version do not know that. What they look at in transactions beside commits has another name now, so that these fail.
ALTER TABLE epochs RENAME COLUMN shared TO with_members;

-- +goose StatementBegin
CREATE FUNCTION begin_commit(of_lock bigint, of_version bigint, of_epoch bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_lock);
    PERFORM check_version(of_version);
    IF (SELECT max(epoch) FROM epochs) <> of_epoch THEN
        RAISE EXCEPTION 'epoch % is over', of_epoch USING ERRCODE = 'TD001';
    END IF;
    IF (SELECT with_members FROM epochs WHERE epoch = of_epoch) THEN
        PERFORM take_turn(of_lock);
    END IF;
    UPDATE epochs SET commits = before + 1 WHERE epoch = of_epoch AND session = of_session AND commits = before;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'epoch % is not at commit % of session %', of_epoch, before, of_session USING ERRCODE = 'TD002';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION begin_member_commit(of_lock bigint, of_version bigint, of_member bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_lock);
    PERFORM check_version(of_version);
    IF NOT coalesce((SELECT with_members FROM epochs ORDER BY epoch DESC LIMIT 1), false) THEN
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

-- What programs before this version begin their commits with. TD001 ends them.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION begin_commit(of_lock bigint, of_epoch bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a newer version of Tandem has brought the database up to date: upgrade this process' USING ERRCODE = 'TD001';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION begin_member_commit(of_lock bigint, of_member bigint, of_session bigint, before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a newer version of Tandem has brought the database up to date: upgrade this process' USING ERRCODE = 'TD001';
END $$;
-- +goose StatementEnd

-- An owner before this version that is still there has lost the database with this.
INSERT INTO epochs (epoch, with_members) SELECT epoch + 1, with_members FROM epochs ORDER BY epoch DESC LIMIT 1;
