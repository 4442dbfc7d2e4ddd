package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tandem/backup/archive"
	"tandem/fault"
	"tandem/files"
	"tandem/identity"
	"tandem/store/sqlite/dump"
	"tandem/store/sqlite/sqlconn"
)

// filesDir is the directory of the files of workspaces in a data directory.
const filesDir = "files"

// saveFiles writes the files of all workspaces. Each is as it was when it was read: what replaces a file replaces all of it.
// Databases that workflows keep there are written in place, so a copy of one moment is made of each; one of which none can be
// made is copied with its logs, and noted.
func saveFiles(ctx context.Context, dir, temporary string, to *archive.Writer) (err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	s := &filesSaver{root: root, dir: dir, temporary: temporary, to: to, whole: map[string]bool{}}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		_, below, _ := strings.Cut(name, "/")
		switch {
		case errors.Is(err, fs.ErrNotExist), name == ".":
			return nil // removed meanwhile, or the root
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case files.UnderWay(below) && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			return to.File(name+"/", 0, strings.NewReader(""))
		case !d.Type().IsRegular():
			return nil
		}
		return s.save(ctx, name)
	})
}

// filesSaver writes files of workspaces.
type filesSaver struct {
	root           *os.Root
	dir, temporary string
	to             *archive.Writer
	// whole are the databases that were copied as they are at one moment, with what is in their logs. A database comes before its logs.
	whole map[string]bool
}

func (s *filesSaver) save(ctx context.Context, name string) (err error) {
	if database, ok := companion(name); ok && s.whole[database] {
		return nil // it is in the copy of its database
	}
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if isDatabase(s.root, name) {
		moment, err := copyDatabase(ctx, filepath.Join(s.dir, filepath.FromSlash(name)), s.temporary)
		switch code := sqlconn.Code(err); {
		case err == nil:
			s.whole[name] = true
			return errors.Join(addFile(moment, name, s.to), moment.Close(), os.Remove(moment.Name()))
		case code == sqlconn.CodeNotADB: // it only looks like one
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code == 0 || code == sqlconn.CodeFull:
			return fault.Newf(fault.Invalid, "a copy of the database %q among the files cannot be written to %q; make room there, or name a backup in another directory", name, s.temporary).WithCause(err)
		default: // it is damaged, locked, or needs what this program does not have
			s.to.NoteAsFound(name)
		}
	}
	return addFile(f, name, s.to)
}

func addFile(f *os.File, name string, to *archive.Writer) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return to.File(name, info.Size(), f)
}

// companion is the database that a file belongs to, if it has the name of such a file.
func companion(name string) (database string, ok bool) {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if database, ok := strings.CutSuffix(name, suffix); ok {
			return database, true
		}
	}
	return "", false
}

// isDatabase says whether a file begins as those of SQLite do.
func isDatabase(root *os.Root, name string) bool {
	const magic = "SQLite format 3\x00"
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return errors.Join(err, f.Close()) == nil && string(head) == magic
}

// copyDatabase makes a file of a database as it is at one moment.
func copyDatabase(ctx context.Context, from, temporary string) (_ *os.File, err error) {
	f, err := os.CreateTemp(temporary, ".tandem-backup-*") // an empty file, which is filled
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(from)}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", f.Name())
	return f, errors.Join(err, db.Close())
}

// load makes what a data directory holds of a backup.
func load(ctx context.Context, dir string, holds archive.Contents, from io.Reader) (err error) {
	return loadFiles(dir, func(file func(string, io.Reader) error) error { return dump.Load(ctx, dir, holds, from, file) })
}

// loadFiles lets a function write files of workspaces below a directory.
func loadFiles(dir string, from func(file func(name string, r io.Reader) error) error) (err error) {
	into := filepath.Join(dir, filesDir)
	if err := os.Mkdir(into, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return from(func(name string, r io.Reader) error {
		if err := loadFile(root, name, r); err != nil {
			return fmt.Errorf("write the file %s: %w", name, err)
		}
		return nil
	})
}

func loadFile(root *os.Root, name string, r io.Reader) error {
	workspace, _, _ := strings.Cut(name, "/")
	if err := identity.CheckWorkspace(workspace); err != nil {
		return fault.Newf(fault.Invalid, "the backup has a file %q, which is of no workspace", name)
	}
	if strings.HasSuffix(name, "/") {
		return root.MkdirAll(path.Clean(name), 0o700)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
