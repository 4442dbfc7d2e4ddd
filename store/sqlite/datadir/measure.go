package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"tandem/store"
)

// Measure says what a data directory takes up, without opening its database: how much of that is free is not known here.
func Measure(dir string) (s store.Space, err error) {
	path := RealPath(dir)
	for _, f := range []struct {
		path string
		into *int64
	}{{path, &s.Database}, {path + LogSuffix, &s.Log}} {
		info, err := os.Stat(f.path)
		switch {
		case err == nil:
			*f.into = info.Size()
		case !errors.Is(err, fs.ErrNotExist):
			return s, err
		}
	}
	copies, err := filepath.Glob(filepath.Join(dir, DatabaseFile+copySuffix+"*"))
	if err != nil {
		return s, err
	}
	for _, name := range copies {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s.Copies += info.Size()
	}
	err = filepath.WalkDir(filepath.Join(dir, BlobDir), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // one that is gone meanwhile
			}
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			s.Blobs += info.Size()
		}
		return err
	})
	return s, err
}
