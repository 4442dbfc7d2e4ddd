// Package files is the files directory of each workspace: <data>/files/<workspace>/.
//
// Everything goes through an os.Root, so neither a path nor a link leads out of the directory of the workspace. What is
// written is written beside its place, brought to disk and then named, so a reader sees all of it or nothing. A [Dir]
// keeps a directory of its own for what is under way (see reserved); no path reaches it and no list shows it.
//
// The package holds neither the values of executions (the blobs of a store do) nor what nodes make of files. The kinds
// that work on files import it, and so does the package that puts a program together.
package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"tandem/fault"
	"tandem/identity"
)

// What a directory keeps for itself, and how long what nobody came back for stays.
const (
	reserved    = ".tandem"
	draftDir    = reserved + "/drafts"
	partialDir  = reserved + "/partial"
	receiptDir  = reserved + "/receipts"
	draftLife   = 24 * time.Hour
	partialLife = 24 * time.Hour
	receiptLife = 90 * 24 * time.Hour
	sweepEvery  = time.Hour
)

// UnderWay says of the path of a file below the directory of a workspace that it is kept only while something is under way: a copy does not
// need it.
func UnderWay(name string) bool {
	return name == draftDir || name == partialDir || strings.HasPrefix(name, draftDir+"/") || strings.HasPrefix(name, partialDir+"/")
}

// Limits of one operation on a tree or an archive.
const (
	MaxEntries = 10_000
	MaxBytes   = 1 << 30
)

// Store is the files of all workspaces. It is safe for concurrent use.
type Store struct {
	dir string

	mu       sync.Mutex
	swept    map[string]time.Time
	naming   map[string]*sync.Mutex   // by workspace
	partials map[string]chan struct{} // taken partial files, closed when they are given back
}

// New returns the store in a directory. Nothing is made before it is needed.
func New(dir string) *Store {
	return &Store{dir: dir, swept: map[string]time.Time{}, naming: map[string]*sync.Mutex{}, partials: map[string]chan struct{}{}}
}

// Remove removes all files of a workspace that is not there any more. It is not an error if there are none.
func (s *Store) Remove(workspace string) error {
	if err := identity.CheckWorkspace(workspace); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, workspace)); err != nil {
		return problem(".", err)
	}
	return nil
}

// Dir is the files of one workspace, or a part of them. The caller closes it.
type Dir struct {
	store *Store
	root  *os.Root
	name  string // of the workspace
	// turn is held while something gets its name or grows at its end: checking and doing are one step.
	turn *sync.Mutex
}

// Open opens the files of a workspace.
func (s *Store) Open(workspace string) (*Dir, error) {
	if err := identity.CheckWorkspace(workspace); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, workspace)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, problem(".", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, problem(".", err)
	}
	d := &Dir{store: s, root: root, name: workspace}
	s.mu.Lock()
	if d.turn = s.naming[workspace]; d.turn == nil {
		d.turn = &sync.Mutex{}
		s.naming[workspace] = d.turn
	}
	now := time.Now()
	due := now.Sub(s.swept[workspace]) > sweepEvery
	if due {
		s.swept[workspace] = now
	}
	s.mu.Unlock()
	if due {
		if err := d.sweep(now); err != nil {
			return nil, errors.Join(problem(".", err), root.Close())
		}
	}
	return d, nil
}

// Sub opens a directory inside as if it were all there is.
func (d *Dir) Sub(name string) (*Dir, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		if info, found := d.root.Stat(name); found == nil && !info.IsDir() {
			return nil, fault.Newf(fault.InvalidInput, "%q is a file; name a directory", name).With("path", name).WithCause(err)
		}
		return nil, problem(name, err)
	}
	return &Dir{store: d.store, root: root, name: d.name, turn: d.turn}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes what earlier processes left under way and nobody has come back for.
func (d *Dir) sweep(now time.Time) error {
	for dir, life := range map[string]time.Duration{draftDir: draftLife, partialDir: partialLife, receiptDir: receiptLife} {
		entries, err := fs.ReadDir(d.root.FS(), dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || now.Sub(info.ModTime()) < life {
				continue // gone meanwhile, or still of use
			}
			if err := d.root.RemoveAll(path.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Info is what is known of a file or directory.
type Info struct {
	// Path is relative to the directory, with slashes.
	Path string
	// Type is "file", "directory", "link" or "other".
	Type     string
	Size     int64
	Modified time.Time
}

func infoOf(name string, i fs.FileInfo) Info {
	info := Info{Path: name, Type: "other", Modified: i.ModTime().UTC()}
	switch mode := i.Mode(); {
	case mode.IsRegular():
		info.Type, info.Size = "file", i.Size()
	case mode.IsDir():
		info.Type = "directory"
	case mode&fs.ModeSymlink != 0:
		info.Type = "link"
	}
	return info
}

// Stat describes what a path leads to, following links that stay inside.
func (d *Dir) Stat(name string) (Info, error) {
	name, err := Clean(name)
	if err != nil {
		return Info{}, err
	}
	i, err := d.root.Stat(name)
	if err != nil {
		return Info{}, problem(name, err)
	}
	return infoOf(name, i), nil
}

// File is an open file.
type File struct {
	*os.File
	Info Info
}

// Open opens a regular file for reading. Anything else, such as a pipe that would block, is refused.
func (d *Dir) Open(name string) (*File, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, err
	}
	return d.open(name)
}

func (d *Dir) open(name string) (*File, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if err != nil {
		return nil, problem(name, err)
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = notAFile(name, i)
	}
	if err != nil {
		return nil, errors.Join(problem(name, err), f.Close())
	}
	return &File{f, infoOf(name, i)}, nil
}

func notAFile(name string, i fs.FileInfo) error {
	if i.IsDir() {
		return fault.Newf(fault.InvalidInput, "%q is a directory; name a file", name).With("path", name)
	}
	return fault.Newf(fault.InvalidInput, "%q is not a regular file", name).With("path", name)
}

// Hash reads a file to its end and returns its SHA-256 in hex.
func (d *Dir) Hash(ctx context.Context, name string) (sum string, info Info, err error) {
	if name, err = Clean(name); err != nil {
		return "", Info{}, err
	}
	if info, err = d.Stat(name); err != nil {
		return "", Info{}, err
	}
	sum, err = d.sumOf(ctx, name)
	return sum, info, err
}

// sumOf is Hash for a path that is known to be good.
func (d *Dir) sumOf(ctx context.Context, name string) (string, error) {
	f, err := d.open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, Reader(ctx, f))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", problem(name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Reader reads until the context ends.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, fault.New(fault.Canceled, "the work on a file was stopped").WithCause(context.Cause(r.ctx))
	}
	return r.from.Read(p)
}

// Begin notes that something is about to be done under a key, and says whether it was begun before: then what is found
// to be done already was done by the attempt before, and is not a conflict.
func (d *Dir) Begin(key string) (again bool, err error) {
	sum := sha256.Sum256([]byte(key))
	name := receiptDir + "/" + hex.EncodeToString(sum[:])
	if err := d.root.MkdirAll(receiptDir, 0o700); err != nil {
		return false, problem(".", err)
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, problem(".", err)
	}
	if err := errors.Join(f.Sync(), f.Close(), d.syncDir(receiptDir)); err != nil {
		return false, problem(".", err)
	}
	return false, nil
}

// syncDir brings the names in a directory to disk.
func (d *Dir) syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot be asked to
	}
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// parents makes the directories above a name, and brings those that are new to disk.
func (d *Dir) parents(name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	if _, err := d.root.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if err := d.syncDir(path.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}
