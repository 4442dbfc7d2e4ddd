// Package backup makes a file of everything that an instance keeps, and an instance of such a file (docs/operating.md,
// docs/decisions/0038). What the file looks like is in package archive, how a store is taken apart in a package of each store.
//
// It runs no workflows and opens no instance. The command imports it, and package console, which shows what became of it.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tandem/backup/archive"
	"tandem/credential"
	"tandem/fault"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/dump"
	"tandem/store/sqlite/migrations"
)

// KeySuffix is what the name of the key file of a backup has after that of the backup.
const KeySuffix = ".key"

// Options say what is saved, and where.
type Options struct {
	// Dir is the data directory, which a process may have open.
	Dir string
	// File is the backup, which is not there yet.
	File string
	// MasterKey is the value of TANDEM_MASTER_KEY, if the keys are given by it.
	MasterKey string
	// Program is the version of this program.
	Program string

	// reached is told, in tests, that everything is written and has no name yet.
	reached func(point string)
}

// Result is a backup that was made, checked or restored.
type Result struct {
	File string `json:"file"`
	// Key is the file with the master keys beside it; empty when there is none.
	Key string `json:"key,omitempty"`
	// Dir is the data directory that was made of it.
	Dir string `json:"dir,omitempty"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	archive.Contents
	// MissingKeys are the ids of keys that credentials are sealed with and that nobody has given.
	MissingKeys []string `json:"missing_keys,omitempty"`
}

// Make writes a backup. It is whole and on disk when it returns without an error; until then it has no name. The master keys are written to a file
// beside it, so that they can be kept elsewhere.
func Make(ctx context.Context, o Options) (r Result, err error) {
	r.File = o.File
	for _, name := range []string{o.File, o.File + KeySuffix} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return r, taken(name, err)
		}
	}
	// A name that nobody can foresee: nothing that is there is written over or followed.
	f, err := os.CreateTemp(filepath.Dir(o.File), filepath.Base(o.File)+".*.part")
	if err != nil {
		return r, unwritable(err)
	}
	part, made := f.Name(), []string{f.Name()}
	defer func() {
		if err != nil {
			for _, name := range made {
				err = errors.Join(err, removeAny(name))
			}
		}
	}()
	if r.Contents, err = write(ctx, o, f); err != nil {
		return r, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return r, unwritable(err)
	}
	r.Bytes = info.Size()
	// The keys come after the rows: a key that was added meanwhile is among them.
	ring, err := saveKey(o, &r)
	if err != nil {
		return r, err
	}
	if r.Key != "" {
		made = append(made, r.Key)
	}
	r.MissingKeys = missing(r.Keys, ring)
	if o.reached != nil {
		o.reached("all written")
	}
	if err := nameNew(part, o.File); err != nil {
		return r, err
	}
	made = append(made, o.File)
	return r, datadir.SyncPath(filepath.Dir(o.File))
}

func taken(name string, cause error) error {
	return fault.Newf(fault.Conflict, "%q is there already; name a file that is not", name).WithCause(cause)
}

// removeAny removes a file, if it is there.
func removeAny(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// nameNew gives a file its name, which nothing may have yet.
func nameNew(from, name string) error {
	switch err := os.Link(from, name); {
	case err == nil:
		if err := os.Remove(from); err != nil {
			return errors.Join(err, os.Remove(name))
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return taken(name, err)
	}
	// The file system has no links.
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return taken(name, err)
	}
	return os.Rename(from, name)
}

func unwritable(err error) error {
	return fault.Newf(fault.Invalid, "the backup cannot be written; name another file, or make room").WithCause(err)
}

func write(ctx context.Context, o Options, f *os.File) (c archive.Contents, err error) {
	w, err := archive.NewWriter(f, archive.Head{Store: dump.Store, Program: o.Program, Began: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return c, err
	}
	m, err := dump.Save(ctx, o.Dir, w)
	if err != nil {
		return c, err
	}
	// Files come after the rows: those that the rows tell of are there by then.
	if err := saveFiles(ctx, filepath.Join(o.Dir, filesDir), filepath.Dir(o.File), w); err != nil {
		return c, err
	}
	return w.End(m.Version, m.Taken, m.Keys)
}

// saveKey writes the master keys to a file of their own, unless the environment gives them, and returns them; nil when there are none.
func saveKey(o Options, r *Result) (*credential.Keyring, error) {
	if o.MasterKey != "" {
		return credential.ParseKeyring(o.MasterKey)
	}
	text, ring, err := readKey(filepath.Join(o.Dir, credential.KeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := writeNew(o.File+KeySuffix, text); err != nil {
		return nil, err
	}
	r.Key = o.File + KeySuffix
	return ring, nil
}

// readKey reads a file of master keys.
func readKey(name string) (text []byte, ring *credential.Keyring, err error) {
	if text, err = os.ReadFile(name); err != nil {
		return nil, nil, err
	}
	ring, err = credential.ParseKeyring(string(text))
	if err != nil {
		return nil, nil, fault.Newf(fault.CodeOf(err), "%s: %s", name, fault.From(err).Message)
	}
	return text, ring, nil
}

// writeNew writes a file that is not there yet, for this user alone, and waits for the disk. It leaves none that is not whole.
func writeNew(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// missing are the keys that a ring does not have.
func missing(needed []string, ring *credential.Keyring) []string {
	var have []string
	if ring != nil {
		have = ring.Keys()
	}
	return slices.DeleteFunc(slices.Clone(needed), func(id string) bool { return slices.Contains(have, id) })
}

// Check reads a backup from its beginning to its end and says what it holds. It changes nothing.
func Check(ctx context.Context, file string) (r Result, err error) {
	f, err := os.Open(file)
	if err != nil {
		return r, fault.Newf(fault.NotFound, "the backup %q cannot be read", file).WithCause(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return check(ctx, file, f)
}

func check(ctx context.Context, file string, f *os.File) (r Result, err error) {
	r.File = file
	if r.Contents, err = archive.Check(ctx, f); err != nil {
		return r, err
	}
	known, err := migrations.Newest()
	if err != nil {
		return r, err
	}
	if r.Version > known {
		return r, fault.Newf(fault.Unsupported, "the backup is of a database of version %d and this program knows versions up to %d: it was made by a newer one, tandem %s; use that, or a newer one",
			r.Version, known, r.Program)
	}
	info, err := f.Stat()
	if err == nil {
		r.Bytes = info.Size()
	}
	return r, err
}

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	// File is the backup, and Dir the data directory, which holds nothing yet.
	File, Dir string
	// Key is the file with the master keys; empty: the one beside the backup, if there is one.
	Key string
	// MasterKey is the value of TANDEM_MASTER_KEY, if the keys will be given by it.
	MasterKey string
	// WithoutKey restores also when keys are missing that credentials are sealed with.
	WithoutKey bool

	// reached is told, in tests, of each point at which the process may die.
	reached func(point string)
}

// Restore makes a data directory of a backup. Nothing is written before the whole backup has been read and found good, and the directory is not one that
// can be used before all of it is there and on disk: a process that dies on the way leaves a directory that can be restored into again.
func Restore(ctx context.Context, o RestoreOptions) (r Result, err error) {
	f, err := os.Open(o.File)
	if err != nil {
		return r, fault.Newf(fault.NotFound, "the backup %q cannot be read", o.File).WithCause(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if r, err = check(ctx, o.File, f); err != nil {
		return r, err
	}
	key, err := o.findKey(&r)
	if err != nil {
		return r, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return r, err
	}
	if o.reached == nil {
		o.reached = func(string) {}
	}
	r.Dir = o.Dir
	return r, o.restore(ctx, r.Contents, key, f)
}

// findKey finds the keys that the credentials of the backup need, and what is to be written to the key file: nothing when the environment gives the keys.
func (o RestoreOptions) findKey(r *Result) (text []byte, err error) {
	var ring *credential.Keyring
	switch beside := o.File + KeySuffix; {
	case o.MasterKey != "":
		ring, err = credential.ParseKeyring(o.MasterKey)
	case o.Key != "":
		r.Key = o.Key
		text, ring, err = readKey(o.Key)
	default:
		if text, ring, err = readKey(beside); errors.Is(err, fs.ErrNotExist) {
			err = nil
		} else {
			r.Key = beside
		}
	}
	if err != nil {
		return nil, err
	}
	if r.MissingKeys = missing(r.Keys, ring); len(r.MissingKeys) > 0 && !o.WithoutKey {
		return nil, fault.Newf(fault.Invalid, "the backup has credentials that are sealed with master key %s, which is not there; name its file with --key, or set TANDEM_MASTER_KEY; --without-key restores everything else, and these credentials have to be entered again",
			r.MissingKeys[0])
	}
	return text, nil
}

func (o RestoreOptions) restore(ctx context.Context, holds archive.Contents, key []byte, from io.Reader) (err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return datadir.Unusable(o.Dir, err)
	}
	lock, err := datadir.Lock(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, datadir.Unlock(lock)) }()
	if err := clearWay(o.Dir); err != nil {
		return err
	}
	work := filepath.Join(o.Dir, datadir.RestoreDir)
	if err := os.Mkdir(work, 0o700); err != nil {
		return datadir.Unusable(o.Dir, err)
	}
	if err := load(ctx, work, holds, from); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	if len(key) > 0 {
		if err := writeNew(filepath.Join(work, credential.KeyFile), key); err != nil {
			return errors.Join(err, os.RemoveAll(work))
		}
	}
	o.reached("all written")
	// The database comes last: without it nobody uses the directory.
	for _, name := range append(beside(), datadir.DatabaseFile) {
		err := os.Rename(filepath.Join(work, name), filepath.Join(o.Dir, name))
		if err != nil && !(name == credential.KeyFile && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err := datadir.SyncPath(o.Dir); err != nil {
			return err
		}
		o.reached(name + " is in place")
	}
	return errors.Join(os.RemoveAll(work), datadir.SyncPath(o.Dir))
}

// beside is what is in a data directory besides its database.
func beside() []string { return []string{datadir.BlobDir, filesDir, credential.KeyFile} }

// clearWay refuses a directory that holds anything, and removes what a restore that did not come to its end has left: as long as there is the directory in
// which it works, and no database, nothing else is there.
func clearWay(dir string) error {
	there, err := os.ReadDir(dir)
	if err != nil {
		return datadir.Unusable(dir, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	ours := []string{datadir.LockFile, "lost+found"}
	unfinished := has(datadir.RestoreDir) && !has(datadir.DatabaseFile)
	if unfinished {
		ours = append(append(ours, beside()...), datadir.RestoreDir)
	}
	for _, e := range there {
		if !slices.Contains(ours, e.Name()) {
			return fault.Newf(fault.Conflict, "the directory %q is not empty: it has %s; restore into an empty one, or one that does not exist yet", dir, e.Name())
		}
	}
	if !unfinished {
		return nil
	}
	// The directory in which it works goes last: it says that the others are no data.
	for _, name := range append(beside(), datadir.RestoreDir) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove what an earlier restore has left: %w", err)
		}
	}
	return nil
}
