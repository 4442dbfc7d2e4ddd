// Package blobdir keeps large values as files of a directory, each under a name that is made of its content, or in parts that it has
// in common with others.
//
// It says nothing about when a store may be used and knows no database; the SQLite store imports it.
package blobdir

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
	"sync"
	"time"

	"tandem/identity"
	"tandem/store"
)

// Dir is a directory of values: <workspace>/ab/cd/abcd…, or in parts (parts.go). Files never change once they have their name. A value
// is written under a passing name first, so a crash leaves at most an unnamed file. It is safe for concurrent use.
type Dir struct {
	root *os.Root
	// flush makes the names in a directory durable.
	flush func(*os.File) error

	// turn lets many put values at the same time, and nobody while some are removed: between looking whether a value is there and saying so
	// it must not go. Nobody holds it while a value is read from elsewhere.
	turn sync.RWMutex

	mu     sync.Mutex
	synced map[string]bool // directories whose way from the root is durable
	parts  knownParts
}

// Open uses a directory, which is there, and removes what a crash has left in it. Nobody else writes to it. flush makes the names in a
// directory durable.
func Open(path string, flush func(*os.File) error) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	b := &Dir{root: root, flush: flush, synced: map[string]bool{}}
	if err := b.sweep(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return b, nil
}

// OpenToRead uses a directory that another process may have open. It removes nothing, and nothing may be put.
func OpenToRead(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root}, nil
}

// Close lets go of the directory.
func (b *Dir) Close() error { return b.root.Close() }

// sweep removes what writes that were cut off by a crash have left. Nobody writes yet.
func (b *Dir) sweep() error {
	all, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, workspace := range all {
		if err := b.root.RemoveAll(path.Join(workspace.Name(), "tmp")); err != nil {
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
	if err := store.CheckBlob(hash); err != nil {
		return "", err
	}
	return path.Join(workspace, hash[:2], hash[2:4], hash), nil
}

// Put keeps a value.
func (b *Dir) Put(ctx context.Context, p identity.Principal, r io.Reader) (store.Blob, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Blob{}, err
	}
	if err := identity.CheckWorkspace(workspace); err != nil {
		return store.Blob{}, err
	}
	return b.putAny(ctx, p, workspace, r)
}

// putAny puts a value in parts if it is at hand and made for it, else as one file.
func (b *Dir) putAny(ctx context.Context, p identity.Principal, workspace string, r io.Reader) (store.Blob, error) {
	if at, ok := r.(*bytes.Reader); ok && at.Len() > minPart && at.Len() <= maxInParts {
		b.turn.RLock()
		defer b.turn.RUnlock()
		value := make([]byte, at.Len())
		if _, err := io.ReadFull(at, value); err != nil {
			return store.Blob{}, fmt.Errorf("write blob: %w", err)
		}
		if blob, ok, err := b.putParts(ctx, p, workspace, value); ok || err != nil {
			return blob, err
		}
		return b.putBlob(ctx, p, workspace, bytes.NewReader(value), "", alone{})
	}
	return b.putBlob(ctx, p, workspace, r, "", b.turn.RLocker())
}

// alone is the lock of who holds it already.
type alone struct{}

// Lock and Unlock implement sync.Locker.
func (alone) Lock()   {}
func (alone) Unlock() {}

// writeOnly opens a file that exists, to write to it.
const writeOnly = os.O_WRONLY

// renew says that a value was put again, so that nobody takes it for one that nothing names.
func (b *Dir) renew(file string) error {
	now := time.Now()
	return b.root.Chtimes(file, now, now)
}

// putBlob writes a file. It has the name of its content, unless it is the list of the parts of the value that is named. The lock is taken
// once the value has been read.
func (b *Dir) putBlob(ctx context.Context, p identity.Principal, workspace string, r io.Reader, partsOf string,
	turn sync.Locker) (_ store.Blob, err error) {
	root := b.root
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
	turn.Lock()
	defer turn.Unlock()
	// A file that has its name has been synced before it got it, so a value that is there costs no second sync.
	if info, err := root.Stat(final); err == nil && info.Size() == size {
		if err := errors.Join(f.Close(), b.renew(final)); err != nil {
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

// syncDirs makes the name of a file durable: its directory each time, since the name is new, and those above it up to the first
// whose own way is durable, since their names stay.
func (b *Dir) syncDirs(dir string) error {
	var way []string
	for d := dir; ; d = path.Dir(d) {
		b.mu.Lock()
		durable := b.synced[d] || d == "."
		b.mu.Unlock()
		if err := b.syncDir(d); err != nil {
			return fmt.Errorf("write blob: %w", err)
		}
		if durable {
			break
		}
		way = append(way, d)
	}
	if len(way) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.synced) >= maxSynced {
		clear(b.synced)
	}
	for _, d := range way {
		b.synced[d] = true
	}
	return nil
}

// maxSynced bounds the memory of directories whose way is durable.
const maxSynced = 16384

func (b *Dir) syncDir(dir string) error {
	d, err := b.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(b.flush(d), d.Close())
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

// Get opens a value.
func (b *Dir) Get(p identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	name, err := blobPath(p, hash)
	if err != nil {
		return nil, store.Blob{}, err
	}
	f, err := b.root.Open(name)
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

// Stat says how large a value is.
func (b *Dir) Stat(p identity.Principal, hash string) (store.Blob, error) {
	name, err := blobPath(p, hash)
	if err != nil {
		return store.Blob{}, err
	}
	info, err := b.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		list, err := b.readParts(name, hash)
		return store.Blob{Hash: hash, Size: list.Size}, err
	}
	if err != nil {
		return store.Blob{}, blobError(hash, err)
	}
	return store.Blob{Hash: hash, Size: info.Size()}, nil
}

func blobError(hash string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return store.NotFound("blob", hash)
	}
	return fmt.Errorf("read blob %q: %w", hash, err)
}
