// Package backup makes a file of everything that an instance keeps, and an instance of such a file (docs/operating.md,
// docs/decisions/0038). What the file looks like is in package archive, how a store is taken apart in a package of each store.
//
// It runs no workflows and opens no instance. The command imports it, and package console, which shows what became of it.
package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tandem/backup/archive"
	"tandem/credential"
	"tandem/fault"
	"tandem/store/postgres"
	pgdump "tandem/store/postgres/dump"
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
	// Database is the address of a database of PostgreSQL, which a process may own; empty: the database is in the data directory.
	Database string
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
	// Dir is the data directory that was made of it, and Database the database of PostgreSQL, without a password.
	Dir      string `json:"dir,omitempty"`
	Database string `json:"database,omitempty"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	archive.Contents
	// MissingKeys are the ids of keys that credentials are sealed with and that nobody has given.
	MissingKeys []string `json:"missing_keys,omitempty"`
}

// Make writes a backup. It is whole and on disk when it returns without an error; until then it has no name. The master keys are
// written to a file beside it, so that they can be kept elsewhere.
func Make(ctx context.Context, o Options) (r Result, err error) {
	r.File = o.File
	if o.Database != "" {
		// The database alone would make a backup without files and keys.
		if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
			return r, fault.Newf(fault.NotFound, "there is no data directory %q, in which the files and keys are; name the one of the server with --data", o.Dir).WithCause(err)
		}
	}
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
	head := archive.Head{Store: dump.Store, Program: o.Program, Began: time.Now().UTC().Truncate(time.Second)}
	save := func(w *archive.Writer) (archive.Moment, error) { return dump.Save(ctx, o.Dir, w) }
	if o.Database != "" {
		head.Store = pgdump.Store
		save = func(w *archive.Writer) (archive.Moment, error) { return pgdump.Save(ctx, o.Database, w) }
	}
	w, err := archive.NewWriter(f, head)
	if err != nil {
		return c, err
	}
	m, err := save(w)
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
	known, err := newest(r.Store)
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

// newest is the version that this program brings databases of a kind to.
func newest(kind string) (int64, error) {
	switch kind {
	case dump.Store:
		return migrations.Newest()
	case pgdump.Store:
		return postgres.Newest()
	}
	return 0, fault.Newf(fault.Unsupported, "the backup is of a %q database, which this program does not know; use the one that made it", kind)
}

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	// File is the backup, and Dir the data directory, which holds nothing yet.
	File, Dir string
	// Database is the address of a database of PostgreSQL, which holds nothing yet either; empty: the database is made in the
	// data directory.
	Database string
	// Key is the file with the master keys; empty: the one beside the backup, if there is one.
	Key string
	// MasterKey is the value of TANDEM_MASTER_KEY, if the keys will be given by it.
	MasterKey string
	// WithoutKey restores also when keys are missing that credentials are sealed with.
	WithoutKey bool

	// reached is told, in tests, of each point at which the process may die.
	reached func(point string)
}

// Restore makes a data directory of a backup, or a database of PostgreSQL and a data directory with what belongs to it. Nothing
// is written before the whole backup has been read and found good, and the directory is not one that can be used before all of it
// is there and on disk: a process that dies on the way leaves a directory that can be restored into again.
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
	if o.Database != "" {
		if r.Database, err = postgres.Where(o.Database); err != nil {
			return r, err
		}
	}
	return r, o.restore(ctx, r.Contents, key, f)
}

// findKey finds the keys that the credentials of the backup need, and what is to be written to the key file: nothing when the
// environment gives the keys.
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
