-- +goose Up

-- Who besides user_id wants what a question is asked for, as a JSON list: those who started, retried, skipped or edited what its
-- execution came of. With exclude_requester none of them may answer.
ALTER TABLE hil_interactions ADD COLUMN requesters TEXT NOT NULL DEFAULT '[]';
