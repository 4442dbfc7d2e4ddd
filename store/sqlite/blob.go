package sqlite

import (
	"context"
	"io"

	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/datadir"
)

// blobs keeps values as files beside the database, as long as that works.
type blobs struct{ db *DB }

// Put implements [store.Blobs].
func (b blobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	if err := b.db.usable(); err != nil {
		return store.Blob{}, err
	}
	blob, err := b.db.blobs.Put(ctx, p, r)
	if err != nil && datadir.IsFull(err) {
		err = datadir.Full(b.db.dir, err)
	}
	return blob, err
}

// Get implements [store.Blobs].
func (b blobs) Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	if err := b.readable(ctx); err != nil {
		return nil, store.Blob{}, err
	}
	return b.db.blobs.Get(p, hash)
}

// Stat implements [store.Blobs].
func (b blobs) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	if err := b.readable(ctx); err != nil {
		return store.Blob{}, err
	}
	return b.db.blobs.Stat(p, hash)
}

func (b blobs) readable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.db.usable()
}
