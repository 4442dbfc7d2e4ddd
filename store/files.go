package store

import (
	"context"
	"io"

	"tandem/identity"
)

// Files stores large values of a principal, for code that handles them as files.
type Files struct {
	Blobs     Blobs
	Principal identity.Principal
}

// Keep stores a file.
func (f Files) Keep(ctx context.Context, r io.Reader) (hash string, size int64, err error) {
	blob, err := f.Blobs.Put(ctx, f.Principal, r)
	return blob.Hash, blob.Size, err
}

// Open reads one.
func (f Files) Open(ctx context.Context, hash string) (io.ReadCloser, int64, error) {
	content, blob, err := f.Blobs.Get(ctx, f.Principal, hash)
	return content, blob.Size, err
}
