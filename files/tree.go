package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"tandem/fault"
)

// maxWalk is how many names one operation looks at.
const maxWalk = 100_000

// List lists a directory in the order of paths: what is directly in it or, recursively, all below it. Pattern, if there is
// one, is matched against the path below the directory. More than MaxEntries is too_large.
func (d *Dir) List(ctx context.Context, name string, recursive bool, pattern string) ([]Info, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, err
	}
	if err := CheckPattern(pattern); err != nil {
		return nil, err
	}
	list := []Info{}
	err = d.walk(ctx, name, recursive, func(i Info, below string) error {
		if pattern != "" && !Match(pattern, below) {
			return nil
		}
		if len(list) == MaxEntries {
			return fault.Newf(fault.TooLarge, "%q has more than %d entries; narrow it with pattern or list a directory in it", name, MaxEntries).With("limit", MaxEntries)
		}
		list = append(list, i)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// walk visits what is below a directory. Links are visited and not followed. Below is the path from the directory.
func (d *Dir) walk(ctx context.Context, name string, recursive bool, visit func(i Info, below string) error) error {
	seen := 0
	var descend func(dir string) error
	descend = func(dir string) error {
		entries, err := d.entries(ctx, dir, &seen)
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed while we were looking
			}
			if err != nil {
				return problem(at, err)
			}
			below := at
			if name != "." {
				below = strings.TrimPrefix(at, name+"/")
			}
			if err := visit(infoOf(at, info), below); err != nil {
				return err
			}
			if info.IsDir() && recursive {
				if err := descend(at); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return descend(name)
}

// entries are the names in a directory, in order, without what is reserved.
func (d *Dir) entries(ctx context.Context, dir string, seen *int) ([]fs.DirEntry, error) {
	f, err := d.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, problem(dir, err)
	}
	var list []fs.DirEntry
	for err == nil {
		var some []fs.DirEntry
		some, err = f.ReadDir(1000)
		list = append(list, some...)
		if *seen += len(some); *seen > maxWalk {
			err = fault.Newf(fault.TooLarge, "%q has more than %d entries in all; choose a directory in it", dir, maxWalk)
		}
		if ctx.Err() != nil {
			err = fault.New(fault.Canceled, "the work on files was stopped").WithCause(context.Cause(ctx))
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			err = fault.Newf(fault.InvalidInput, "%q is not a directory", dir).With("path", dir)
		}
		return nil, problem(dir, err)
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), reserved) })
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// Mkdir makes a directory, recursively with those above it; then one that exists is good too.
func (d *Dir) Mkdir(name string, recursive bool, p Place) (Info, error) {
	name, err := named(name)
	if err != nil {
		return Info{}, err
	}
	if recursive {
		if err := d.parents(name); err != nil {
			return Info{}, problem(name, err)
		}
	}
	err = d.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		i, serr := d.root.Stat(name)
		switch {
		case serr != nil:
			err = serr
		case !i.IsDir():
			err = fault.Newf(fault.Conflict, "%q exists and is not a directory", name).With("path", name)
		case recursive || p.Again:
			err = nil
		default:
			err = fault.Newf(fault.Conflict, "the directory %q exists already; set recursive to true if that is fine", name).With("path", name)
		}
	}
	if err == nil {
		err = d.syncDir(path.Dir(name))
	}
	if err != nil {
		return Info{}, problem(name, err)
	}
	return d.Stat(name)
}

// Remove removes a file, a link or a directory; one that is not empty only recursively. A link is removed, not what it
// leads to.
func (d *Dir) Remove(name string, recursive bool, p Place) error {
	name, err := named(name)
	if err != nil {
		return err
	}
	if _, err = d.root.Lstat(name); errors.Is(err, fs.ErrNotExist) && p.Again {
		return nil
	}
	switch {
	case err != nil:
	case recursive:
		err = d.root.RemoveAll(name)
	default:
		if err = d.root.Remove(name); errors.Is(err, syscall.ENOTEMPTY) && d.empty(name) {
			err = d.root.RemoveAll(name)
		}
	}
	if err == nil {
		err = d.syncDir(path.Dir(name))
	}
	return problem(name, err)
}

// empty says that a directory has nothing in it that anybody can see.
func (d *Dir) empty(name string) bool {
	seen := 0
	list, err := d.entries(context.Background(), name, &seen)
	return err == nil && len(list) == 0
}

// Move gives a file or directory another name.
func (d *Dir) Move(from, to string, p Place) (Info, error) {
	from, err := named(from)
	if err != nil {
		return Info{}, err
	}
	if to, err = named(to); err != nil {
		return Info{}, err
	}
	if err := d.move(from, to, p); err != nil {
		return Info{}, err
	}
	if err := errors.Join(d.syncDir(path.Dir(to)), gone(d.syncDir(path.Dir(from)))); err != nil {
		return Info{}, problem(to, err)
	}
	i, err := d.root.Lstat(to) // a link that was moved may lead nowhere
	if err != nil {
		return Info{}, problem(to, err)
	}
	return infoOf(to, i), nil
}

func (d *Dir) move(from, to string, p Place) error {
	if strings.HasPrefix(to+"/", from+"/") {
		return fault.Newf(fault.InvalidInput, "%q cannot be moved to %q, which is the same or inside it", from, to).With("path", to)
	}
	source, err := d.root.Lstat(from)
	if err != nil {
		if _, there := d.root.Lstat(to); errors.Is(err, fs.ErrNotExist) && p.Again && there == nil {
			return nil // the attempt before has moved it
		}
		return problem(from, err)
	}
	if err := d.parents(to); err != nil {
		return problem(to, err)
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	target, err := d.root.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist) && source.Mode().IsRegular():
		err = d.link(from, to)
	case errors.Is(err, fs.ErrNotExist):
		err = d.root.Rename(from, to)
	case err != nil:
	case p.Again && os.SameFile(source, target):
		err = d.root.Remove(from) // the attempt before had linked it and not got further
	case !p.Overwrite:
		err = fs.ErrExist
	case source.IsDir() || target.IsDir():
		return fault.Newf(fault.Conflict, "%q exists, and a directory neither replaces nor is replaced; remove it first", to).With("path", to)
	default:
		err = d.root.Rename(from, to)
	}
	return problem(to, err)
}

// Copy copies a file, or recursively a directory, into a directory that may exist. Files are complete one by one.
func (d *Dir) Copy(ctx context.Context, from, to string, recursive bool, p Place) (Info, error) {
	from, err := Clean(from)
	if err != nil {
		return Info{}, err
	}
	if to, err = named(to); err != nil {
		return Info{}, err
	}
	source, err := d.root.Stat(from)
	if err != nil {
		return Info{}, problem(from, err)
	}
	if !source.IsDir() {
		if from == to {
			return Info{}, fault.Newf(fault.InvalidInput, "%q cannot be copied onto itself", from).With("path", to)
		}
		return d.copyFile(ctx, from, to, MaxBytes, p)
	}
	switch {
	case !recursive:
		return Info{}, fault.Newf(fault.InvalidInput, "%q is a directory; set recursive to true to copy all of it", from).With("path", from)
	case from == "." || strings.HasPrefix(to+"/", from+"/"):
		return Info{}, fault.Newf(fault.InvalidInput, "%q cannot be copied into itself", from).With("path", to)
	}
	if _, err := d.root.Lstat(to); err == nil && !p.Overwrite && !p.Again {
		return Info{}, problem(to, fs.ErrExist)
	}
	entries, err := d.tree(ctx, from, "")
	if err != nil {
		return Info{}, err
	}
	if _, err := d.Mkdir(to, true, p); err != nil {
		return Info{}, err
	}
	for _, e := range entries {
		at := path.Join(to, e.below)
		if e.Type == "directory" {
			_, err = d.Mkdir(at, true, p)
		} else {
			_, err = d.copyFile(ctx, e.Path, at, MaxBytes, p)
		}
		if err != nil {
			return Info{}, err
		}
	}
	return d.Stat(to)
}

func (d *Dir) copyFile(ctx context.Context, from, to string, limit int64, p Place) (Info, error) {
	f, err := d.open(from)
	if err != nil {
		return Info{}, err
	}
	info, _, err := d.Write(ctx, to, f, limit, p)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = problem(from, cerr)
	}
	return info, err
}

// entry is a part of a tree.
type entry struct {
	Info
	below string
}

// tree lists all files and directories below a directory, within the limits. Anything else in it is refused: a link can
// lead anywhere, and leaving it out would go unnoticed.
func (d *Dir) tree(ctx context.Context, name, pattern string) ([]entry, error) {
	var list []entry
	var total int64
	err := d.walk(ctx, name, true, func(i Info, below string) error {
		switch i.Type {
		case "link":
			return fault.Newf(fault.ForbiddenPath, "%q is a link; links are neither copied nor archived", i.Path).With("path", i.Path)
		case "other":
			return fault.Newf(fault.InvalidInput, "%q is not a regular file", i.Path).With("path", i.Path)
		}
		if pattern != "" && (i.Type == "directory" || !Match(pattern, below)) {
			return nil
		}
		total += i.Size
		if len(list) == MaxEntries || total > MaxBytes {
			return fault.Newf(fault.TooLarge, "%q has more than %d entries or %d bytes; choose a part of it", name, MaxEntries, MaxBytes).With("path", name)
		}
		list = append(list, entry{i, below})
		return nil
	})
	return list, err
}
