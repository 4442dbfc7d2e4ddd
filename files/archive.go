package files

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"tandem/fault"
	"tandem/text"
)

const (
	// MaxRatio is how many times larger than the archive its content may be, once it is larger than ratioFrom.
	MaxRatio  = 200
	ratioFrom = 16 << 20
	// maxNames is how many names an archive may have with the directories that its entries only imply.
	maxNames = 2 * MaxEntries
	// maxIndex is how much of a zip file is read to learn what is in it: room for MaxEntries names of some length.
	maxIndex = 4 << 20
)

// archiveFormat tells by its name what an archive is to become.
func archiveFormat(name string) (string, error) {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".zip"):
		return "zip", nil
	case strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"):
		return "tar.gz", nil
	}
	return "", fault.Newf(fault.Unsupported, "%q: archives are written as .zip and .tar.gz; name it so", name).With("path", name)
}

// Archive packs a file, or all that is in a directory, into an archive: zip or tar.gz, by its name.
func (d *Dir) Archive(ctx context.Context, from, to, pattern string, p Place) (info Info, sum string, err error) {
	if from, err = Clean(from); err != nil {
		return Info{}, "", err
	}
	if to, err = named(to); err != nil {
		return Info{}, "", err
	}
	if err := CheckPattern(pattern); err != nil {
		return Info{}, "", err
	}
	format, err := archiveFormat(to)
	if err != nil {
		return Info{}, "", err
	}
	source, err := d.Stat(from)
	if err != nil {
		return Info{}, "", err
	}
	entries := []entry{{source, path.Base(from)}}
	if source.Type == "directory" {
		if entries, err = d.tree(ctx, from, pattern); err != nil {
			return Info{}, "", err
		}
	}
	t, err := d.Draft(MaxBytes)
	if err != nil {
		return Info{}, "", err
	}
	if format == "zip" {
		err = d.writeZip(ctx, t, entries, to)
	} else {
		err = d.writeTar(ctx, t, entries, to)
	}
	if err == nil {
		sum = t.SHA256()
		info, err = t.Publish(to, p)
	}
	if err != nil {
		return Info{}, "", errors.Join(problem(to, err), t.Discard())
	}
	return info, sum, nil
}

// pack copies one file into an archive that has announced its size.
func (d *Dir) pack(ctx context.Context, into io.Writer, e entry) error {
	f, err := d.open(e.Path)
	if err != nil {
		return err
	}
	n, err := io.Copy(into, io.LimitReader(Reader(ctx, f), e.Size))
	if err == nil && n != e.Size {
		err = fault.Newf(fault.Conflict, "%q changed while it was archived", e.Path).With("path", e.Path)
	}
	return errors.Join(err, f.Close())
}

func (d *Dir) writeZip(ctx context.Context, into io.Writer, entries []entry, self string) error {
	w := zip.NewWriter(into)
	for _, e := range entries {
		if e.Path == self {
			continue // an archive does not hold its predecessor
		}
		h := &zip.FileHeader{Name: e.below, Method: zip.Deflate, Modified: e.Modified}
		if e.Type == "directory" {
			h.Name, h.Method = h.Name+"/", zip.Store
		}
		one, err := w.CreateHeader(h)
		if err == nil && e.Type != "directory" {
			err = d.pack(ctx, one, e)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func (d *Dir) writeTar(ctx context.Context, into io.Writer, entries []entry, self string) error {
	zipped := gzip.NewWriter(into)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.Path == self {
			continue
		}
		h := &tar.Header{Name: e.below, Typeflag: tar.TypeReg, Mode: 0o600, Size: e.Size, ModTime: e.Modified}
		if e.Type == "directory" {
			h.Name, h.Typeflag, h.Mode = h.Name+"/", tar.TypeDir, 0o700
		}
		err := w.WriteHeader(h)
		if err == nil && e.Type != "directory" {
			err = d.pack(ctx, w, e)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}

// extraction is an archive being unpacked into a directory that nobody sees; only when all of it is good it gets its place.
type extraction struct {
	dir     *Dir
	ctx     context.Context
	stage   string
	pattern string
	names   map[string]bool // true: a directory
	files   []string
	entries int
	written int64
	read    func() int64 // how much of the archive was needed so far
}

// Extract unpacks a zip, tar or tar.gz file into a directory and lists the files. An entry that is not a plain file or
// directory, or that would leave the directory, makes all of it fail, and nothing is kept.
func (d *Dir) Extract(ctx context.Context, from, to, pattern string, p Place) (list []Info, err error) {
	if to, err = Clean(to); err != nil {
		return nil, err
	}
	if err := CheckPattern(pattern); err != nil {
		return nil, err
	}
	f, err := d.Open(from)
	if err != nil {
		return nil, err
	}
	x := &extraction{dir: d, ctx: ctx, stage: draftDir + "/" + rand.Text(), pattern: pattern, names: map[string]bool{}}
	if err = d.root.MkdirAll(x.stage, 0o700); err == nil {
		if err = x.unpack(f); err == nil {
			list, err = x.settle(to, p)
		}
		err = errors.Join(err, d.root.RemoveAll(x.stage))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, problem(f.Info.Path, err)
	}
	return list, nil
}

// unpack tells the format by the first bytes: names lie.
func (x *extraction) unpack(f *File) error {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	head = head[:n]
	switch {
	case strings.HasPrefix(string(head), "PK"):
		x.read = func() int64 { return f.Info.Size }
		return x.unzip(f)
	case strings.HasPrefix(string(head), "\x1f\x8b"):
		counted := &counter{from: bufio.NewReader(Reader(x.ctx, f))}
		x.read = func() int64 { return counted.n }
		zipped, err := gzip.NewReader(counted)
		if err != nil {
			return damaged(f.Info.Path, err)
		}
		return x.untar(f.Info.Path, zipped)
	case len(head) == 512 && string(head[257:262]) == "ustar":
		counted := &counter{from: bufio.NewReader(Reader(x.ctx, f))}
		x.read = func() int64 { return counted.n }
		return x.untar(f.Info.Path, counted)
	}
	return fault.Newf(fault.Unsupported, "%q is neither a zip nor a tar.gz file", f.Info.Path).With("path", f.Info.Path)
}

func damaged(name string, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.Newf(fault.InvalidInput, "the archive %q is damaged or cut off", name).With("path", name).WithCause(err)
}

// counter counts what is read; it is a byte reader, so that decompression reads no further than it must.
type counter struct {
	from *bufio.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.from.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// index bounds what is read of a zip file before it is known what is in it.
type index struct {
	from io.ReaderAt
	left int64 // negative: no bound any more
}

func (i *index) ReadAt(p []byte, at int64) (int, error) {
	if i.left >= 0 {
		if i.left -= int64(len(p)); i.left < 0 {
			i.left = 0
			return 0, tooMany()
		}
	}
	return i.from.ReadAt(p, at)
}

func tooMany() error {
	return fault.Newf(fault.TooLarge, "the archive has more than %d entries, or too long names", MaxEntries).With("limit", MaxEntries)
}

// Zip opens a zip file whose list of entries is of a size that memory can hold. Its entries are not bounded.
func Zip(from io.ReaderAt, size int64) (*zip.Reader, error) {
	bounded := &index{from: from, left: maxIndex}
	r, err := zip.NewReader(bounded, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, damaged("zip", err)
	}
	bounded.left = -1
	if len(r.File) > MaxEntries {
		return nil, tooMany()
	}
	return r, nil
}

func (x *extraction) unzip(f *File) error {
	r, err := Zip(f, f.Info.Size)
	if err != nil {
		return err
	}
	for _, e := range r.File {
		mode := e.Mode()
		if e.Flags&1 != 0 {
			return fault.Newf(fault.Unsupported, "the archive %q is encrypted", f.Info.Path).With("path", f.Info.Path)
		}
		if mode.IsDir() || strings.HasSuffix(e.Name, "/") {
			mode = fs.ModeDir
		}
		err := x.entry(e.Name, mode, func(into io.Writer) error {
			content, err := e.Open()
			if err != nil {
				return err
			}
			_, err = io.Copy(into, Reader(x.ctx, content))
			return errors.Join(err, content.Close())
		})
		if err != nil {
			return damaged(f.Info.Path, err)
		}
	}
	return nil
}

func (x *extraction) untar(name string, from io.Reader) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return damaged(name, err)
		}
		var mode fs.FileMode
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse:
		case tar.TypeDir:
			mode = fs.ModeDir
		case tar.TypeXGlobalHeader:
			if x.entries++; x.entries > MaxEntries {
				return tooMany()
			}
			continue
		case tar.TypeLink, tar.TypeSymlink:
			mode = fs.ModeSymlink
		default:
			mode = fs.ModeIrregular
		}
		err = x.entry(h.Name, mode, func(into io.Writer) error {
			_, err := io.Copy(into, Reader(x.ctx, r))
			return err
		})
		if err != nil {
			return damaged(name, err)
		}
	}
}

// entry takes one entry. Its name is judged whether it is wanted or not: an archive that tries to escape is not trusted.
func (x *extraction) entry(name string, mode fs.FileMode, copyTo func(io.Writer) error) error {
	if x.entries++; x.entries > MaxEntries {
		return tooMany()
	}
	if mode&^fs.ModePerm != 0 && !mode.IsDir() {
		return fault.Newf(fault.ForbiddenPath, "the entry %q of the archive is a link or a device; only files and directories are extracted", shortName(name)).With("entry", shortName(name))
	}
	clean, err := Clean(strings.TrimSuffix(name, "/"))
	if err != nil {
		f := fault.From(err)
		return fault.Newf(f.Code, "the archive has an entry that cannot be extracted: %s", text.OfError(f)).With("entry", shortName(name))
	}
	if clean == "." && mode.IsDir() {
		return nil
	}
	twice := clean == "."
	for at, isDir := clean, mode.IsDir(); at != "."; at, isDir = path.Dir(at), true { // what is above it are directories
		wasDir, known := x.names[at]
		twice = twice || known && !(wasDir && isDir)
		x.names[at] = isDir
	}
	if len(x.names) > maxNames {
		return tooMany()
	}
	if twice {
		return fault.Newf(fault.InvalidInput, "the archive has the entry %q twice, or as a file and a directory", shortName(name)).With("entry", shortName(name))
	}
	at := path.Join(x.stage, clean)
	if mode.IsDir() {
		if x.pattern != "" {
			return nil
		}
		return problem(clean, x.dir.root.MkdirAll(at, 0o700))
	}
	if x.pattern != "" && !Match(x.pattern, clean) {
		return copyTo(x) // read, since what is not wanted can be a bomb for what follows, and counted
	}
	if err := x.dir.root.MkdirAll(path.Dir(at), 0o700); err != nil {
		return problem(clean, err)
	}
	f, err := x.dir.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return problem(clean, err)
	}
	x.files = append(x.files, clean)
	err = copyTo(io.MultiWriter(x, f))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func shortName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "…"
	}
	return name
}

// Write counts what the archive has become.
func (x *extraction) Write(p []byte) (int, error) {
	x.written += int64(len(p))
	if x.written > MaxBytes {
		return 0, tooLarge(text.Of("the content of the archive"), MaxBytes)
	}
	if x.written > ratioFrom && x.written > MaxRatio*x.read() {
		return 0, fault.Newf(fault.TooLarge, "the content of the archive is more than %d times larger than the archive", MaxRatio).With("limit", MaxRatio)
	}
	return len(p), nil
}

// settle brings what was unpacked to its place.
func (x *extraction) settle(to string, p Place) ([]Info, error) {
	d := x.dir
	if to != "." {
		if _, err := d.Mkdir(to, true, p); err != nil {
			return nil, err
		}
	}
	if !p.Overwrite && !p.Again {
		for _, name := range x.files { // before the first has its place
			if _, err := d.root.Lstat(path.Join(to, name)); !errors.Is(err, fs.ErrNotExist) {
				if err == nil {
					err = fs.ErrExist
				}
				return nil, problem(path.Join(to, name), err)
			}
		}
	}
	if x.pattern == "" {
		for name, isDir := range x.names { // in any order: each with those above it
			if isDir {
				if _, err := d.Mkdir(path.Join(to, name), true, p); err != nil {
					return nil, err
				}
			}
		}
	}
	list := []Info{}
	for _, name := range x.files {
		from, at, sum := path.Join(x.stage, name), path.Join(to, name), ""
		if p.Again && !p.Overwrite {
			var err error
			if sum, err = d.sumOf(x.ctx, from); err != nil {
				return nil, err
			}
		}
		if err := d.publish(from, at, sum, p); err != nil {
			return nil, problem(at, err)
		}
		info, err := d.Stat(at)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}
