package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/fault"
)

// copiedCache is a cache of its own with what the common one has.
func copiedCache(t *testing.T) (dir, home string) {
	t.Helper()
	p := newPool(t, Options{})
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, err := cacheName()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "cache")
	home = filepath.Join(dir, name)
	if err := os.CopyFS(home, os.DirFS(filepath.Join(cacheDir(), name))); err != nil {
		t.Fatal(err)
	}
	// What is copied is as the umask would have it.
	for _, path := range []string{dir, home} {
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, home
}

func one(ctx context.Context, dir string) error {
	p := New(Options{Dir: dir})
	defer p.Close()
	_, err := p.Run(ctx, Call{Tenant: "t", Language: Python, Source: "lambda x: x", Input: json.RawMessage("1")})
	return err
}

func compiledFile(t *testing.T, home string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(home, "wazero-*", "*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("compiled modules %q, %v", list, err)
	}
	return list[0]
}

// A prepared interpreter answers its first call at once, in every process of the machine.
func TestCache_FirstCall(t *testing.T) {
	t.Parallel()
	dir, home := copiedCache(t)
	compiled, err := os.Stat(compiledFile(t, home))
	if err != nil {
		t.Fatal(err)
	}
	if err := one(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(compiledFile(t, home)); err != nil || !os.SameFile(now, compiled) || now.ModTime() != compiled.ModTime() {
		t.Errorf("the interpreter was compiled again: %v", err)
	}
}

// An image that is damaged is made anew; the compiled module is kept.
func TestCache_DamagedImage(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("starting the interpreter anew takes long with the race detector")
	}
	dir, home := copiedCache(t)
	image := filepath.Join(home, imageName)
	for name, damage := range map[string]func() error{
		"a byte": func() error {
			f, err := os.OpenFile(image, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("damage"), 5<<20)
			return err
		},
		"cut off": func() error { return os.Truncate(image, 1<<20) },
	} {
		before, err := os.Stat(compiledFile(t, home))
		if err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := one(t.Context(), dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		if kept, sum, err := readTrailer(file); err != nil || sumOf(file, kept.length) != sum {
			t.Errorf("%s: the image is not whole again: %v", name, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if after, err := os.Stat(compiledFile(t, home)); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the interpreter was compiled again: %v", name, err)
		}
	}
}

// What is compiled is made anew if it is damaged, or if somebody else could have written it; what was left half-written goes.
func TestCache_DamagedModule(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("compiling takes a minute with the race detector")
	}
	dir, home := copiedCache(t)
	compiled := compiledFile(t, home)
	if err := os.Truncate(compiled, 100_000); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "image-1.tmp"), []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(home, "image-1.tmp"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := one(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(compiled); err != nil || info.Size() < 1<<20 {
		t.Errorf("the compiled module is %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(home, "image-1.tmp")); !os.IsNotExist(err) {
		t.Errorf("what was half-written is still there: %v", err)
	}
}

// While one process fills the cache, another waits and then uses what is there.
func TestCache_FilledOnce(t *testing.T) {
	t.Parallel()
	full, home := copiedCache(t)
	dir := filepath.Join(t.TempDir(), "cache")
	mine := filepath.Join(dir, filepath.Base(home))
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockCache(mine)
	if err != nil {
		t.Fatal(err)
	}
	done, waits := make(chan error, 1), make(chan struct{})
	p := New(Options{Dir: dir})
	defer p.Close()
	if p.Prepared() {
		t.Error("an empty cache counts as prepared")
	}
	go func() {
		_, err := p.Run(t.Context(), Call{Tenant: "t", Language: Python, Source: "lambda x: x", Waiting: func() { close(waits) }})
		done <- err
	}()
	<-waits
	// The one who has the lock fills it.
	if err := os.CopyFS(filepath.Join(mine, "new"), os.DirFS(filepath.Join(full, filepath.Base(home)))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Base(filepath.Dir(compiledFile(t, home))), imageName} {
		if err := os.Rename(filepath.Join(mine, "new", name), filepath.Join(mine, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(mine, "new")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(compiledFile(t, mine))
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(compiledFile(t, mine)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the interpreter was compiled a second time: %v", err)
	}
}

// A cache that others could write is not used.
func TestCache_OfOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := one(ctx, dir)
	if code(err) != fault.Internal || !strings.Contains(fault.From(err).Detail, "can be written by other users (mode 0770)") {
		t.Errorf("the call ended with %v, detail %q", err, fault.From(err).Detail)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := onlyOurs(link); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link: %v", err)
	}
	if err := onlyOurs(dir); err != nil {
		t.Error(err)
	}
	if os.Geteuid() == 0 { // only then can something be given to another user
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if err := onlyOurs(dir); err == nil || !strings.Contains(err.Error(), "belongs to the user 12345") {
			t.Errorf("a directory of another user: %v", err)
		}
	}
}

// The common place is in the user's cache directory, and is not used where every user could put something else in its place.
func TestCache_Machine(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", base)
	dir, err := MachineCache()
	if err != nil || !strings.HasSuffix(dir, filepath.Join("tandem", "sandbox")) {
		t.Fatalf("%s, %v", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o777, filepath.Dir(dir): 0o777, base: 0o777} {
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got, err := MachineCache(); err == nil {
			t.Errorf("%s is used although everybody can write %s", got, path)
		}
		if err := os.Chmod(path, was.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := MachineCache(); err == nil {
		t.Errorf("without a home there is %s", got)
	}
}
