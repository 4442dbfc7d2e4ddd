package blobdir

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"tandem/fault"
	"tandem/store/relational/blobnames"
)

// Workspaces names those that have values.
func (b *Dir) Workspaces() (names []string, err error) {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Each calls back for each value of a workspace, with what it takes up and when it was last put, until the function fails or the context
// ends.
func (b *Dir) Each(ctx context.Context, workspace string, each func(name string, size int64, put time.Time) error) error {
	err := fs.WalkDir(b.root.FS(), workspace, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir() && d.Name() == "tmp":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return each(strings.TrimSuffix(d.Name(), partsSuffix), info.Size(), info.ModTime())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has none, or one was removed meanwhile
	}
	return err
}

// Named finds the names of a set that stand in a value. Of values that are not JSON nothing is read but the first byte: only those of
// journals and the lists of parts name others.
func (b *Dir) Named(ctx context.Context, workspace, name string, among blobnames.Names, found func(name string)) error {
	return b.look(ctx, workspace, name, func(text []byte) { among.FindAmong(found, text) })
}

// look hands over a value that may name others, piece by piece; a name that stands in it is whole in one of them.
func (b *Dir) look(ctx context.Context, workspace, name string, each func(text []byte)) error {
	place := path.Join(workspace, name[:2], name[2:4], name)
	switch list, err := b.readParts(place, name); {
	case err == nil:
		for _, p := range list.Parts {
			each([]byte(p.Hash))
			each(p.Text)
		}
	case fault.CodeOf(err) != fault.NotFound:
		return err
	}
	f, err := b.root.Open(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(blobnames.EachPiece(ctx, f, each), f.Close())
}

// Names finds everything in a value that looks like the name of another.
func (b *Dir) Names(ctx context.Context, workspace, name string, into blobnames.Names) error {
	return b.look(ctx, workspace, name, func(text []byte) { into.Find(text) })
}

// Remove removes values that nothing names, and returns how many files are gone, with what they took up. One that was put since young
// stays: what names it may be about to be written.
func (b *Dir) Remove(workspace string, names []string, young time.Time) (removed int, bytes int64, err error) {
	b.turn.Lock()
	defer b.turn.Unlock()
	for _, name := range names {
		place := path.Join(workspace, name[:2], name[2:4], name)
		for _, file := range []string{place, place + partsSuffix} {
			info, err := b.root.Stat(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return removed, bytes, err
			}
			if info.ModTime().After(young) {
				continue
			}
			if err := b.wipe(file, info.Size()); err != nil {
				return removed, bytes, err
			}
			removed, bytes = removed+1, bytes+info.Size()
		}
		b.parts.forgetPart(workspace, name)
	}
	return removed, bytes, nil
}

// wipe overwrites a file and removes it: a file system that keeps its blocks keeps zeros.
func (b *Dir) wipe(file string, size int64) error {
	f, err := b.root.OpenFile(file, writeOnly, 0)
	if err != nil {
		return err
	}
	zeros := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return b.root.Remove(file)
}
