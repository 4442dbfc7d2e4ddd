package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tandem/fault"
	"tandem/files"
)

// setup opens the files of a workspace in a fresh directory, and returns that directory too.
func setup(t testing.TB) (*files.Dir, string) {
	t.Helper()
	base := t.TempDir()
	d, err := files.New(base).Open("acme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, filepath.Join(base, "acme")
}

func write(t testing.TB, d *files.Dir, name, content string) {
	t.Helper()
	if _, _, err := d.Write(t.Context(), name, strings.NewReader(content), 0, files.Place{Overwrite: true}); err != nil {
		t.Fatalf("write %q: %v", name, err)
	}
}

func read(t testing.TB, d *files.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		t.Fatalf("open %q: %v", name, err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// onDisk lists every file below a directory that is not kept for what is under way.
func onDisk(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.Contains(p, "receipts") {
			list = append(list, strings.TrimPrefix(filepath.ToSlash(p), filepath.ToSlash(dir)+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, want string }{
		{"a.txt", "a.txt"}, {"a/b/c.txt", "a/b/c.txt"}, {"./a//b/.", "a/b"}, {".", "."}, {"报告/今天.txt", "报告/今天.txt"}, {".hidden", ".hidden"},
		{"a..b/c", "a..b/c"}, {"console.txt", "console.txt"}, {"com10", "com10"},
	} {
		got, err := files.Clean(c.path)
		if err != nil || got != c.want {
			t.Errorf("%q is %q, %v; want %q", c.path, got, err, c.want)
		}
	}
	for path, code := range map[string]fault.Code{
		"": fault.InvalidInput, "  ": fault.InvalidInput,
		"/etc/passwd": fault.ForbiddenPath, `\\host\share`: fault.ForbiddenPath, `C:\x`: fault.ForbiddenPath, "c:x": fault.ForbiddenPath,
		"..": fault.ForbiddenPath, "../x": fault.ForbiddenPath, "a/../b": fault.ForbiddenPath, `a\..\..\b`: fault.ForbiddenPath, "a/..": fault.ForbiddenPath,
		"a\x00b": fault.InvalidInput, "a\nb": fault.InvalidInput, "a\xffb": fault.InvalidInput, `a\b`: fault.InvalidInput, "ab:stream": fault.InvalidInput,
		"CON": fault.InvalidInput, "x/nul.txt": fault.InvalidInput, "Com1": fault.InvalidInput, "lpt9.log": fault.InvalidInput, "aux ": fault.InvalidInput, "COM¹": fault.InvalidInput,
		"a. ": fault.InvalidInput, "trailing.": fault.InvalidInput,
		strings.Repeat("x", 256): fault.InvalidInput, strings.Repeat("x/", 600): fault.InvalidInput,
		".tandem/drafts/x": fault.ForbiddenPath, "a/.TANDEM": fault.ForbiddenPath,
	} {
		if got, err := files.Clean(path); fault.CodeOf(err) != code {
			t.Errorf("%q is %q, %v; want %s", path, got, err, code)
		}
	}
}

// FuzzClean holds that whatever passes stays inside and means itself.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "/", ".", "a/./b", "CON.txt", ".tandem", `a\b`, "c:", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := files.Clean(name)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.ForbiddenPath && code != fault.InvalidInput {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		if !filepath.IsLocal(clean) || !fs.ValidPath(clean) || strings.ContainsAny(clean, "\x00\\:") {
			t.Fatalf("%q became %q", name, clean)
		}
		if again, err := files.Clean(clean); err != nil || again != clean {
			t.Fatalf("%q became %q and then %q, %v", name, clean, again, err)
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.txt", "a.txt", true}, {"*.txt", "d/e/a.txt", true}, {"*.txt", "a.csv", false}, {"d/*.txt", "d/a.txt", true}, {"d/*.txt", "d/e/a.txt", false},
		{"d/**", "d/e/a.txt", true}, {"**/a.txt", "a.txt", true}, {"**/a.txt", "x/y/a.txt", true}, {"d/**/a.txt", "d/a.txt", true}, {"d/**/a.txt", "e/a.txt", false},
		{strings.Repeat("**/", 40) + "x", strings.Repeat("a/", 200) + "y", false},
	} {
		if got := files.Match(c.pattern, c.name); got != c.want {
			t.Errorf("%q fits %q: %v", c.name, c.pattern, got)
		}
	}
	wantCode(t, files.CheckPattern("a/[b"), fault.InvalidConfig)
}

func TestStore_Open(t *testing.T) {
	t.Parallel()
	s := files.New(t.TempDir())
	for _, workspace := range []string{"", "..", "a/b", "Acme", "../acme"} {
		if d, err := s.Open(workspace); err == nil {
			t.Errorf("workspace %q was opened", workspace)
			_ = d.Close() // it should not be there at all
		}
	}
	a, err := s.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Open("b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
	write(t, a, "secret.txt", "mine")
	if _, err := b.Stat("secret.txt"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the other tenant sees it: %v", err)
	}
}

func TestDir_Links(t *testing.T) {
	t.Parallel()
	d, dir := setup(t)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, d, "real/a.txt", "inside")
	for name, target := range map[string]string{
		"file": outside, "dir": filepath.Dir(outside), "up": "../..", "other": "../beta", "inside": "real/a.txt", "loop": "loop", "real/back": "../real",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"file", "dir/secret.txt", "up/x", "other/x", "loop"} {
		_, err := d.Open(path)
		wantCode(t, err, fault.ForbiddenPath)
		_, err = d.Stat(path)
		wantCode(t, err, fault.ForbiddenPath)
		_, err = d.Append(path, []byte("x"))
		wantCode(t, err, fault.ForbiddenPath)
		if _, _, err = d.Hash(t.Context(), path); fault.CodeOf(err) != fault.ForbiddenPath {
			t.Errorf("hash of %q: %v", path, err)
		}
		if _, err := d.Copy(t.Context(), path, "stolen.txt", true, files.Place{}); fault.CodeOf(err) != fault.ForbiddenPath {
			t.Errorf("copy of %q: %v", path, err)
		}
	}
	for _, path := range []string{"dir/new.txt", "up/new.txt", "other/new.txt"} {
		_, _, err := d.Write(t.Context(), path, strings.NewReader("x"), 0, files.Place{Overwrite: true})
		wantCode(t, err, fault.ForbiddenPath)
		_, err = d.Mkdir(path, true, files.Place{})
		wantCode(t, err, fault.ForbiddenPath)
		_, err = d.Move("real/a.txt", path, files.Place{})
		wantCode(t, err, fault.ForbiddenPath)
	}
	// A link is never written through, not even one that stays inside.
	_, _, err := d.Write(t.Context(), "file", strings.NewReader("x"), 0, files.Place{Overwrite: true})
	wantCode(t, err, fault.Conflict)
	if got := read(t, d, "inside"); got != "inside" {
		t.Errorf("a link inside reads %q", got)
	}
	// A tree with links in it is neither copied nor packed; a list shows them and goes no further.
	_, err = d.Copy(t.Context(), "real", "copy", true, files.Place{})
	wantCode(t, err, fault.ForbiddenPath)
	_, _, err = d.Archive(t.Context(), ".", "all.zip", "", files.Place{})
	wantCode(t, err, fault.ForbiddenPath)
	list, err := d.List(t.Context(), ".", true, "")
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, i := range list {
		if i.Type == "link" {
			links = append(links, i.Path)
		}
	}
	if fmt.Sprint(links) != "[dir file inside loop other real/back up]" || len(list) != 9 {
		t.Errorf("links are %v of %d", links, len(list))
	}
	// Removing a link leaves what it leads to.
	for _, name := range []string{"file", "dir"} {
		if err := d.Remove(name, true, files.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("outside is %q, %v", got, err)
	}
	_, err = d.Sub("up")
	wantCode(t, err, fault.ForbiddenPath)
}

func TestDir_SpecialFiles(t *testing.T) {
	t.Parallel()
	d, dir := setup(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.Open("pipe") // would wait for a writer for ever
	wantCode(t, err, fault.InvalidInput)
	_, _, err = d.Write(t.Context(), "pipe", strings.NewReader("x"), 0, files.Place{Overwrite: true})
	wantCode(t, err, fault.Conflict)
	_, err = d.Open(".")
	wantCode(t, err, fault.InvalidInput)
	_, err = d.List(t.Context(), "pipe", false, "")
	wantCode(t, err, fault.InvalidInput)
}

func TestDir_Write(t *testing.T) {
	t.Parallel()
	t.Run("Whole", func(t *testing.T) {
		t.Parallel()
		d, dir := setup(t)
		info, sum, err := d.Write(t.Context(), "a/b/c.txt", strings.NewReader("hello"), 0, files.Place{})
		if err != nil || info.Path != "a/b/c.txt" || info.Size != 5 || info.Type != "file" || sum != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
			t.Fatalf("%+v %s %v", info, sum, err)
		}
		if got := fmt.Sprint(onDisk(t, dir)); got != "[a/b/c.txt]" {
			t.Errorf("on disk: %s", got)
		}
	})
	t.Run("FailsWithoutTrace", func(t *testing.T) {
		t.Parallel()
		d, dir := setup(t)
		write(t, d, "old.txt", "old")
		broken := io.MultiReader(strings.NewReader("half"), &failing{errors.New("the source broke")})
		if _, _, err := d.Write(t.Context(), "old.txt", broken, 0, files.Place{Overwrite: true}); err == nil {
			t.Error("a broken source was good enough")
		}
		_, _, err := d.Write(t.Context(), "old.txt", strings.NewReader("too much"), 4, files.Place{Overwrite: true})
		wantCode(t, err, fault.TooLarge)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = d.Write(ctx, "old.txt", strings.NewReader("x"), 0, files.Place{Overwrite: true})
		wantCode(t, err, fault.Canceled)
		_, _, err = d.Write(t.Context(), "old.txt/below", strings.NewReader("x"), 0, files.Place{})
		wantCode(t, err, fault.InvalidInput)
		if got := read(t, d, "old.txt"); got != "old" {
			t.Errorf("the file has %q", got)
		}
		if got := fmt.Sprint(onDisk(t, dir)); got != "[old.txt]" {
			t.Errorf("on disk: %s", got)
		}
	})
	t.Run("Conflict", func(t *testing.T) {
		t.Parallel()
		d, dir := setup(t)
		write(t, d, "a.txt", "one")
		place := func(content string, p files.Place) error {
			_, _, err := d.Write(t.Context(), "a.txt", strings.NewReader(content), 0, p)
			return err
		}
		wantCode(t, place("one", files.Place{}), fault.Conflict)
		wantCode(t, place("two", files.Place{Again: true}), fault.Conflict)
		if err := place("one", files.Place{Again: true}); err != nil {
			t.Errorf("the attempt before had done it: %v", err)
		}
		if err := place("two", files.Place{Overwrite: true}); err != nil || read(t, d, "a.txt") != "two" {
			t.Errorf("overwriting: %v", err)
		}
		if got := fmt.Sprint(onDisk(t, dir)); got != "[a.txt]" {
			t.Errorf("on disk: %s", got)
		}
	})
	t.Run("OneOfManyWins", func(t *testing.T) {
		t.Parallel()
		d, _ := setup(t)
		var wg sync.WaitGroup
		results := make([]error, 16)
		for i := range results {
			wg.Go(func() {
				_, _, results[i] = d.Write(t.Context(), "one.txt", strings.NewReader(fmt.Sprint(i)), 0, files.Place{})
			})
		}
		wg.Wait()
		won := -1
		for i, err := range results {
			if err == nil && won < 0 {
				won = i
			} else if fault.CodeOf(err) != fault.Conflict {
				t.Errorf("writer %d: %v", i, err)
			}
		}
		if got := read(t, d, "one.txt"); got != fmt.Sprint(won) {
			t.Errorf("the file has %q, writer %d won", got, won)
		}
	})
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestDir_Append(t *testing.T) {
	t.Parallel()
	d, _ := setup(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := d.Append("log/all.txt", fmt.Appendf(nil, "line %02d\n", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(read(t, d, "log/all.txt")), "\n")
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l] = true
	}
	if len(lines) != 20 || len(seen) != 20 {
		t.Errorf("%d lines, %d of them different", len(lines), len(seen))
	}
	_, err := d.Append("log", []byte("x"))
	wantCode(t, err, fault.InvalidInput)
}

func TestDir_Begin(t *testing.T) {
	t.Parallel()
	d, _ := setup(t)
	for i, want := range []bool{false, true, true} {
		if again, err := d.Begin("exec\x00node"); err != nil || again != want {
			t.Errorf("time %d: %v, %v", i, again, err)
		}
	}
	if again, err := d.Begin("exec\x00other"); err != nil || again {
		t.Errorf("another key: %v, %v", again, err)
	}
}

func TestDir_Tree(t *testing.T) {
	t.Parallel()
	d, _ := setup(t)
	for _, name := range []string{"b/2.txt", "b/1.csv", "a/x/deep.txt", "c.txt"} {
		write(t, d, name, name)
	}
	paths := func(list []files.Info, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range list {
			names = append(names, i.Path)
		}
		return strings.Join(names, " ")
	}
	if got := paths(d.List(t.Context(), ".", false, "")); got != "a b c.txt" {
		t.Errorf("list: %s", got)
	}
	if got := paths(d.List(t.Context(), ".", true, "*.txt")); got != "a/x/deep.txt b/2.txt c.txt" {
		t.Errorf("pattern: %s", got)
	}
	if got := paths(d.List(t.Context(), "a", true, "x/*")); got != "a/x/deep.txt" {
		t.Errorf("pattern below: %s", got)
	}
	_, err := d.List(t.Context(), "c.txt", false, "")
	wantCode(t, err, fault.InvalidInput)
	_, err = d.List(t.Context(), "gone", false, "")
	wantCode(t, err, fault.NotFound)

	_, err = d.Mkdir("b", false, files.Place{})
	wantCode(t, err, fault.Conflict)
	_, err = d.Mkdir("no/such/parent", false, files.Place{})
	wantCode(t, err, fault.NotFound)
	if _, err = d.Mkdir("new/deep/dir", true, files.Place{}); err != nil {
		t.Error(err)
	}
	_, err = d.Copy(t.Context(), "b", "b2", false, files.Place{})
	wantCode(t, err, fault.InvalidInput)
	_, err = d.Copy(t.Context(), "b", "b/inner", true, files.Place{})
	wantCode(t, err, fault.InvalidInput)
	if _, err = d.Copy(t.Context(), "b", "b2", true, files.Place{}); err != nil {
		t.Error(err)
	}
	_, err = d.Copy(t.Context(), "b", "b2", true, files.Place{})
	wantCode(t, err, fault.Conflict)
	if _, err = d.Copy(t.Context(), "b", "b2", true, files.Place{Again: true}); err != nil {
		t.Errorf("a copy that was begun before: %v", err)
	}
	_, err = d.Move("b", "b/inner", files.Place{})
	wantCode(t, err, fault.InvalidInput)
	_, err = d.Move("c.txt", "b/2.txt", files.Place{})
	wantCode(t, err, fault.Conflict)
	if i, err := d.Move("c.txt", "b/2.txt", files.Place{Overwrite: true}); err != nil || i.Path != "b/2.txt" || read(t, d, "b/2.txt") != "c.txt" {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := d.Move("c.txt", "b/2.txt", files.Place{Again: true}); err != nil {
		t.Errorf("a move that was done before: %v", err)
	}
	_, err = d.Move("c.txt", "elsewhere.txt", files.Place{})
	wantCode(t, err, fault.NotFound)
	if _, err = d.Move("b2", "moved", files.Place{}); err != nil || read(t, d, "moved/1.csv") != "b/1.csv" {
		t.Error(err)
	}
	wantCode(t, d.Remove("moved", false, files.Place{}), fault.Conflict)
	if err := d.Remove("moved", true, files.Place{}); err != nil {
		t.Error(err)
	}
	wantCode(t, d.Remove("moved", true, files.Place{}), fault.NotFound)
	if err := d.Remove("moved", true, files.Place{Again: true}); err != nil {
		t.Error(err)
	}
	wantCode(t, d.Remove(".", true, files.Place{}), fault.InvalidInput)
}

func TestDir_ListIsBounded(t *testing.T) {
	t.Parallel()
	d, dir := setup(t)
	if err := os.Mkdir(filepath.Join(dir, "many"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range files.MaxEntries + 1 {
		if err := os.Mkdir(filepath.Join(dir, "many", fmt.Sprintf("%05d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.List(t.Context(), "many", false, "")
	wantCode(t, err, fault.TooLarge)
	if list, err := d.List(t.Context(), "many", false, "0000?"); err != nil || len(list) != 10 {
		t.Errorf("%d, %v", len(list), err)
	}
}

func TestDir_Sub(t *testing.T) {
	t.Parallel()
	d, dir := setup(t)
	write(t, d, "docs/a.txt", "a")
	write(t, d, "private.txt", "p")
	if err := os.Symlink("../private.txt", filepath.Join(dir, "docs", "link.txt")); err != nil {
		t.Fatal(err)
	}
	sub, err := d.Sub("docs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	})
	_, err = sub.Open("link.txt") // inside the workspace, outside of what was given
	wantCode(t, err, fault.ForbiddenPath)
	write(t, sub, "b.txt", "b")
	if got := read(t, d, "docs/b.txt"); got != "b" {
		t.Errorf("got %q", got)
	}
	if list, err := d.List(t.Context(), "docs", true, ""); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestStore_SweepsWhatIsLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	old := filepath.Join(base, "acme", ".tandem", "drafts", "OLD")
	young := filepath.Join(base, "acme", ".tandem", "drafts", "YOUNG")
	if err := os.MkdirAll(filepath.Join(old, "tree"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	d, err := files.New(base).Open("acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is old is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what is young is gone: %v", err)
	}
}

func TestDir_Partial(t *testing.T) {
	t.Parallel()
	d, dir := setup(t)
	p, err := d.Partial(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.File().WriteString("first "); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.SetNote([]byte("n1")), p.SetNote([]byte("n2"))); err != nil {
		t.Fatal(err)
	}
	// Another attempt waits for the one that has it.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Partial(ctx, "k")
	wantCode(t, err, fault.Canceled)
	next := make(chan *files.Partial)
	go func() {
		q, err := d.Partial(t.Context(), "k")
		if err != nil {
			t.Error(err)
		}
		next <- q
	}()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = <-next
	note, err := p.Note()
	if err != nil || !bytes.Equal(note, []byte("n2")) {
		t.Fatalf("note %q, %v", note, err)
	}
	if _, err := p.File().Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if _, err := p.File().WriteString("second"); err != nil {
		t.Fatal(err)
	}
	write(t, d, "taken.txt", "x")
	_, err = p.Publish("taken.txt", "sum", files.Place{})
	wantCode(t, err, fault.Conflict)
	if _, err := p.Publish("whole.txt", "sum", files.Place{}); err != nil || read(t, d, "whole.txt") != "first second" {
		t.Fatal(err)
	}
	if err := p.Discard(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(onDisk(t, dir)); got != "[taken.txt whole.txt]" {
		t.Errorf("on disk: %s", got)
	}
}
