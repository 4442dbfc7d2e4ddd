package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"tandem/fault"
	"tandem/text"
)

// Draft is a file that is being written and has no name yet. It belongs to one goroutine, which ends it with Publish or
// Discard.
type Draft struct {
	dir   *Dir
	file  *os.File // nil when it has ended
	name  string
	limit int64
	size  int64
	sum   hash.Hash
}

// Draft begins a file of at most limit bytes; 0 means MaxBytes.
func (d *Dir) Draft(limit int64) (*Draft, error) {
	if limit <= 0 {
		limit = MaxBytes
	}
	if err := d.root.MkdirAll(draftDir, 0o700); err != nil {
		return nil, problem(".", err)
	}
	name := draftDir + "/" + rand.Text()
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, problem(".", err)
	}
	return &Draft{dir: d, file: f, name: name, limit: limit, sum: sha256.New()}, nil
}

// Write adds to the file. More than the limit is too_large.
func (t *Draft) Write(p []byte) (int, error) {
	if t.size+int64(len(p)) > t.limit {
		return 0, tooLarge(text.Of("the file"), t.limit)
	}
	n, err := t.file.Write(p)
	t.size += int64(n)
	t.sum.Write(p[:n])
	return n, problem(".", err)
}

func tooLarge(what text.Text, limit int64) error {
	return fault.Newf(fault.TooLarge, "%s is larger than %d bytes", what, limit).With("limit", limit)
}

// SHA256 is that of what has been written, in hex.
func (t *Draft) SHA256() string { return hex.EncodeToString(t.sum.Sum(nil)) }

// Discard removes the file. After Publish it does nothing.
func (t *Draft) Discard() error {
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.file.Close(), t.dir.root.Remove(t.name))
	t.file = nil
	return problem(".", err)
}

// Place says what happens to what is there already.
type Place struct {
	Overwrite bool
	// Again says that the same was begun before: the same content in its place was put there by that attempt.
	Again bool
}

// Publish gives the file its name and returns when it is on disk.
func (t *Draft) Publish(name string, p Place) (Info, error) {
	name, err := named(name)
	if err == nil {
		err = errors.Join(t.file.Sync(), t.file.Close())
		if err == nil {
			t.file = nil
			err = t.dir.publish(t.name, name, t.SHA256(), p)
			if err != nil {
				err = errors.Join(err, gone(t.dir.root.Remove(t.name)))
			}
		}
	}
	if err != nil {
		return Info{}, problem(name, err)
	}
	return t.dir.Stat(name)
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// publish names a complete file on disk.
func (d *Dir) publish(from, name, sum string, p Place) error {
	if err := d.parents(name); err != nil {
		return err
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	there, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = d.link(from, name)
	case err != nil:
	case !there.Mode().IsRegular():
		err = fault.Newf(fault.Conflict, "%q is a %s; a file cannot take its place", name, infoOf(name, there).Type).With("path", name)
	case p.Overwrite:
		err = d.root.Rename(from, name)
	default:
		err = d.taken(from, name, sum, p)
	}
	if err != nil {
		return err
	}
	return d.syncDir(path.Dir(name))
}

// link names a file where nothing is. A link, unlike a rename, replaces nothing that another process puts there meanwhile.
func (d *Dir) link(from, name string) error {
	err := d.root.Link(from, name)
	if err == nil {
		return d.root.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.root.Rename(from, name) // not every file system has links
}

// taken is what a name that is in use means: a conflict, unless an earlier attempt of the same put the same there.
func (d *Dir) taken(from, name, sum string, p Place) error {
	if p.Again {
		there, err := d.sumOf(context.Background(), name)
		if err != nil {
			return err
		}
		if there == sum {
			return d.root.Remove(from)
		}
	}
	return fs.ErrExist
}

// Write writes a file from a reader.
func (d *Dir) Write(ctx context.Context, name string, from io.Reader, limit int64, p Place) (info Info, sum string, err error) {
	if name, err = named(name); err != nil {
		return Info{}, "", err
	}
	t, err := d.Draft(limit)
	if err != nil {
		return Info{}, "", err
	}
	if _, err = io.Copy(t, Reader(ctx, from)); err != nil {
		return Info{}, "", errors.Join(problem(name, err), t.Discard())
	}
	sum = t.SHA256()
	if info, err = t.Publish(name, p); err != nil {
		return Info{}, "", errors.Join(err, t.Discard())
	}
	return info, sum, nil
}

// Append adds to the end of a file, which is made if it does not exist, and returns when that is on disk. What could
// not be added completely is taken back.
func (d *Dir) Append(name string, content []byte) (Info, error) {
	name, err := named(name)
	if err != nil {
		return Info{}, err
	}
	if err := d.parents(name); err != nil {
		return Info{}, problem(name, err)
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return Info{}, problem(name, err)
	}
	err = appendTo(f, name, content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.syncDir(path.Dir(name))
	}
	if err != nil {
		return Info{}, problem(name, err)
	}
	return d.Stat(name)
}

func appendTo(f *os.File, name string, content []byte) error {
	i, err := f.Stat()
	if err != nil {
		return err
	}
	if !i.Mode().IsRegular() {
		return notAFile(name, i)
	}
	if _, err = f.WriteAt(content, i.Size()); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(i.Size()), f.Sync())
	}
	return nil
}

// Partial is a file that is fetched piece by piece, over several attempts. It belongs to the one who took it.
type Partial struct {
	dir  *Dir
	key  string
	name string
	file *os.File
	done chan struct{}
}

// Partial takes up what earlier attempts have left under a key, if anything. It waits for the caller that still has it.
func (d *Dir) Partial(ctx context.Context, key string) (*Partial, error) {
	sum := sha256.Sum256([]byte(key))
	p := &Partial{dir: d, key: d.name + "/" + hex.EncodeToString(sum[:]), name: partialDir + "/" + hex.EncodeToString(sum[:]),
		done: make(chan struct{})}
	for {
		d.store.mu.Lock()
		other := d.store.partials[p.key]
		if other == nil {
			d.store.partials[p.key] = p.done
		}
		d.store.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fault.New(fault.Canceled, "the fetching of a file was stopped").WithCause(context.Cause(ctx))
		}
	}
	err := d.root.MkdirAll(partialDir, 0o700)
	if err == nil {
		p.file, err = d.root.OpenFile(p.name, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		p.release()
		return nil, problem(".", err)
	}
	return p, nil
}

func (p *Partial) release() {
	p.dir.store.mu.Lock()
	delete(p.dir.store.partials, p.key)
	p.dir.store.mu.Unlock()
	close(p.done)
}

// File is what there is so far.
func (p *Partial) File() *os.File { return p.file }

// Note is what was noted about it, nil if nothing was.
func (p *Partial) Note() ([]byte, error) {
	note, err := p.dir.root.ReadFile(p.name + ".note")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return note, problem(".", err)
}

// SetNote replaces what is noted. It is for a process that comes later, so it must be whole or absent.
func (p *Partial) SetNote(note []byte) error {
	t, err := p.dir.Draft(1 << 20)
	if err != nil {
		return err
	}
	if _, err = io.Copy(t, bytes.NewReader(note)); err == nil {
		err = t.file.Sync()
	}
	if err == nil {
		err = p.dir.root.Rename(t.name, p.name+".note")
	}
	if err != nil {
		return errors.Join(problem(".", err), t.Discard())
	}
	err = t.file.Close()
	t.file = nil
	return problem(".", err)
}

// Restart forgets what there is.
func (p *Partial) Restart() error {
	_, err := p.file.Seek(0, io.SeekStart)
	return problem(".", errors.Join(err, p.file.Truncate(0), gone(p.dir.root.Remove(p.name+".note"))))
}

// Close leaves it to a later attempt.
func (p *Partial) Close() error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.file.Sync(), p.file.Close())
	p.file = nil
	p.release()
	return problem(".", err)
}

// Discard removes it. After Publish or Close it does nothing.
func (p *Partial) Discard() error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.file.Close(), p.remove())
	p.file = nil
	p.release()
	return problem(".", err)
}

func (p *Partial) remove() error {
	return errors.Join(gone(p.dir.root.Remove(p.name)), gone(p.dir.root.Remove(p.name+".note")))
}

// Publish gives it its name, as [Draft.Publish] does. Sum is the SHA-256 of its content. What fails leaves it as it was.
func (p *Partial) Publish(name, sum string, place Place) (Info, error) {
	name, err := named(name)
	if err != nil {
		return Info{}, err
	}
	if err := p.file.Sync(); err != nil {
		return Info{}, problem(name, err)
	}
	if err := p.dir.root.Chtimes(p.name, time.Time{}, time.Now()); err != nil {
		return Info{}, problem(name, err)
	}
	if err := p.dir.publish(p.name, name, sum, place); err != nil {
		return Info{}, problem(name, err)
	}
	err = errors.Join(p.file.Close(), p.remove())
	p.file = nil
	p.release()
	if err != nil {
		return Info{}, problem(name, err)
	}
	return p.dir.Stat(name)
}
