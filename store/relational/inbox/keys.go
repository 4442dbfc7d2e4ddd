package inbox

import (
	"context"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Keys implements [store.IdempotencyKeys].
type Keys struct{ db relational.Database }

// NewKeys are those of a database.
func NewKeys(db relational.Database) Keys { return Keys{db} }

// Find implements [store.IdempotencyKeys].
func (k Keys) Find(ctx context.Context, p identity.Principal, key string) (store.IdempotencyKey, error) {
	return relational.QueryOneIn(ctx, k.db, p, store.NotFound("idempotency key", key), `SELECT key, request_hash, execution_id, created FROM idempotency_keys WHERE workspace_id = ? AND user_id = ? AND key = ?`,
		func(s relational.Scanner) (f store.IdempotencyKey, err error) {
			return f, s.Scan(&f.Key, &f.RequestHash, &f.Execution, &f.Created)
		}, p.User, key)
}

// Expire implements [store.IdempotencyKeys].
func (k Keys) Expire(ctx context.Context, p identity.Principal, before int64) (int, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return 0, err
	}
	var gone int64
	err = k.db.Write(ctx, func(w relational.Transaction) (err error) {
		if all {
			gone, err = w.Change(`DELETE FROM idempotency_keys WHERE created < ?`, before)
		} else {
			gone, err = w.Change(`DELETE FROM idempotency_keys WHERE created < ? AND workspace_id = ?`, before, workspace)
		}
		return err
	})
	return int(gone), err
}
