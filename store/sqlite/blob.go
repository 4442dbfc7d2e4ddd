package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/datadir"
)

// blobs keeps each value in a file named by its content: blobs/<workspace>/ab/cd/abcd…, or in parts (blob_parts.go). Files never
// change once they have their name. A value is written under a passing name first, so a crash leaves at most an unnamed file.
type blobs struct{ db *DB }

// sweep removes what writes that were cut off by a crash have left. Nobody writes yet.
func (b blobs) sweep() error {
	all, err := fs.ReadDir(b.db.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, workspace := range all {
		if err := b.db.root.RemoveAll(path.Join(workspace.Name(), "tmp")); err != nil {
			return err
		}
	}
	return nil
}

// blobPath finds the file of a value. Workspace and hash are checked, so neither can lead out of the directory; the root
// would not let them either.
func blobPath(p identity.Principal, hash string) (string, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return "", err
	}
	if err := identity.CheckWorkspace(workspace); err != nil {
		return "", err
	}
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != hash {
		return "", fault.Newf(fault.Invalid, "%q is no blob hash: 64 lower-case hexadecimal digits are", hash)
	}
	return path.Join(workspace, hash[:2], hash[2:4], hash), nil
}

// Put implements [store.Blobs].
func (b blobs) Put(ctx context.Context, p identity.Principal, r io.Reader) (_ store.Blob, err error) {
	if err := b.db.usable(); err != nil {
		return store.Blob{}, err
	}
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Blob{}, err
	}
	if err := identity.CheckWorkspace(workspace); err != nil {
		return store.Blob{}, err
	}
	blob, err := b.putAny(ctx, p, workspace, r)
	if err != nil && datadir.IsFull(err) {
		err = datadir.Full(b.db.dir, err)
	}
	return blob, err
}

// putAny puts a value in parts if it is at hand and made for it, else as one file.
func (b blobs) putAny(ctx context.Context, p identity.Principal, workspace string, r io.Reader) (store.Blob, error) {
	if at, ok := r.(*bytes.Reader); ok && at.Len() > minPart && at.Len() <= maxInParts {
		value := make([]byte, at.Len())
		if _, err := io.ReadFull(at, value); err != nil {
			return store.Blob{}, fmt.Errorf("write blob: %w", err)
		}
		if blob, ok, err := b.putParts(ctx, p, workspace, value); ok || err != nil {
			return blob, err
		}
		r = bytes.NewReader(value)
	}
	return b.putBlob(ctx, p, workspace, r, "")
}

// putBlob writes a file. It has the name of its content, unless it is the list of the parts of the value that is named.
func (b blobs) putBlob(ctx context.Context, p identity.Principal, workspace string, r io.Reader, partsOf string) (_ store.Blob, err error) {
	root := b.db.root
	temp := path.Join(workspace, "tmp", rand.Text())
	if err := root.MkdirAll(path.Dir(temp), 0o700); err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	named := false
	defer func() {
		if !named {
			err = errors.Join(err, root.Remove(temp))
		}
	}()
	hash := sha256.New()
	size, err := copyContext(ctx, f, r, hash)
	if err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", errors.Join(err, f.Close()))
	}
	blob := store.Blob{Hash: hex.EncodeToString(hash.Sum(nil)), Size: size}
	final, err := blobPath(p, cmp.Or(partsOf, blob.Hash))
	if err != nil {
		return store.Blob{}, errors.Join(err, f.Close())
	}
	if partsOf != "" {
		final += partsSuffix
	}
	// A file that has its name has been synced before it got it, so a value that is there costs no second sync.
	if info, err := root.Stat(final); err == nil && info.Size() == size {
		if err := f.Close(); err != nil {
			return store.Blob{}, fmt.Errorf("write blob: %w", err)
		}
		return blob, b.syncDirs(path.Dir(final))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	if err := root.MkdirAll(path.Dir(final), 0o700); err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	// Renaming over the same content changes nothing for those who read it.
	if err := root.Rename(temp, final); err != nil {
		return store.Blob{}, fmt.Errorf("write blob: %w", err)
	}
	named = true
	return blob, b.syncDirs(path.Dir(final))
}

// syncDirs makes the name of a file durable: its directory each time, since the name is new, and the directories above it
// once, since their names stay.
func (b blobs) syncDirs(dir string) error {
	db := b.db
	db.mu.Lock()
	above := !db.synced[dir]
	db.mu.Unlock()
	for d := dir; ; d = path.Dir(d) {
		if err := b.syncDir(d); err != nil {
			return fmt.Errorf("write blob: %w", err)
		}
		if !above || d == "." {
			break
		}
	}
	if above {
		db.mu.Lock()
		if len(db.synced) >= maxSynced {
			clear(db.synced)
		}
		db.synced[dir] = true
		db.mu.Unlock()
	}
	return nil
}

// maxSynced bounds the memory of directories whose way is durable.
const maxSynced = 16384

func (b blobs) syncDir(dir string) error {
	d, err := b.db.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(datadir.SyncDir(d), d.Close())
}

// copyContext copies until the end, an error, or the end of the context.
func copyContext(ctx context.Context, w io.Writer, r io.Reader, h hash.Hash) (int64, error) {
	return io.Copy(io.MultiWriter(w, h), readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(b)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// Get implements [store.Blobs].
func (b blobs) Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	name, err := b.find(ctx, p, hash)
	if err != nil {
		return nil, store.Blob{}, err
	}
	f, err := b.db.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return b.openParts(p, name, hash)
	}
	if err != nil {
		return nil, store.Blob{}, blobError(hash, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, store.Blob{}, errors.Join(blobError(hash, err), f.Close())
	}
	return f, store.Blob{Hash: hash, Size: info.Size()}, nil
}

// Stat implements [store.Blobs].
func (b blobs) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	name, err := b.find(ctx, p, hash)
	if err != nil {
		return store.Blob{}, err
	}
	info, err := b.db.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		list, err := b.readParts(name, hash)
		return store.Blob{Hash: hash, Size: list.Size}, err
	}
	if err != nil {
		return store.Blob{}, blobError(hash, err)
	}
	return store.Blob{Hash: hash, Size: info.Size()}, nil
}

func (b blobs) find(ctx context.Context, p identity.Principal, hash string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := b.db.usable(); err != nil {
		return "", err
	}
	return blobPath(p, hash)
}

func blobError(hash string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound("blob", hash)
	}
	return fmt.Errorf("read blob %q: %w", hash, err)
}
