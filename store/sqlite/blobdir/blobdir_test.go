package blobdir

import (
	"os"
	"strings"
	"testing"

	"tandem/identity"
)

// A directory whose way from the root is durable is not made durable again by what is put below it; the directory that has a new name in it always is.
func TestPut_SyncsWhatIsNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flushed := 0
	open := func() *Dir {
		b, err := Open(dir, func(*os.File) error { flushed++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(b *Dir, text string) int {
		t.Helper()
		flushed = 0
		if _, err := b.Put(t.Context(), identity.System("one"), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return flushed
	}
	b := open()
	// the directory of the file, the one above, the workspace, the root
	if n := put(b, "first"); n != 4 {
		t.Errorf("the first value flushed %d directories", n)
	}
	if n := put(b, "second"); n != 3 {
		t.Errorf("a value in other directories of the workspace flushed %d", n)
	}
	if n := put(b, "second"); n != 1 {
		t.Errorf("a value that is there flushed %d", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// The process before may have ended before it had flushed anything.
	b = open()
	if n := put(b, "second"); n != 4 {
		t.Errorf("after a start %d directories were flushed", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
