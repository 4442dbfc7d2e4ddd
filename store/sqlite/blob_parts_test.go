package sqlite_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// A value has the name and the content that it would have as one file, whatever it is made of; what it has in common with others is
// written once, also by the next process.
func TestBlobs_InParts(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	open := func() (store.Blobs, func()) {
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return db.Stores().Blobs, func() {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	blobs, close := open()
	p := identity.System("default")
	doc := `"` + strings.Repeat(`x\\`, 20_000) + strings.Repeat(`\"`, 20_000) + `"`
	list := "[" + strings.TrimSuffix(strings.Repeat(`{"a":"}]"},`, 10_000), ",") + "]"
	both := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"doc":%s,"in":{"list":%s,"m":%d},"all":[1,%s,2]}`, n, doc, list, n, doc)
	}
	parts := func(value string) int64 {
		t.Helper()
		before := filesIn(t, dir)
		sum := sha256.Sum256([]byte(value))
		want := store.Blob{Hash: hex.EncodeToString(sum[:]), Size: int64(len(value))}
		for range 2 {
			if got, err := blobs.Put(t.Context(), p, bytes.NewReader([]byte(value))); err != nil || got != want {
				t.Fatalf("put %+v, %v; want %+v", got, err, want)
			}
		}
		if stat, err := blobs.Stat(t.Context(), p, want.Hash); err != nil || stat != want {
			t.Errorf("stat %+v, %v; want %+v", stat, err, want)
		}
		content, blob, err := blobs.Get(t.Context(), p, want.Hash)
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(content)
		if err != nil || content.Close() != nil || blob != want || string(read) != value {
			t.Errorf("read %d bytes as %+v, %v; want %d", len(read), blob, err, len(value))
		}
		return filesIn(t, dir) - before
	}
	if n := parts(both(1)); n > int64(len(doc)+len(list)+2000) {
		t.Errorf("the first one wrote %d bytes", n)
	}
	if n := parts(both(2)); n > 2000 {
		t.Errorf("one that differs in a number wrote %d bytes", n)
	}
	close()
	blobs, close = open()
	defer close()
	if n := parts(both(3)); n > 2000 {
		t.Errorf("in the next process it wrote %d bytes", n)
	}
	parts(both(1)) // what was written before is read
	// What is not JSON, or has too many parts, or little in them, is one file.
	for name, value := range map[string]string{
		"Text": strings.Repeat("words ", 20_000), "Brackets": strings.Repeat("]", 50_000), "Open": `{"a":` + doc, "Quote": `{"a":"` + strings.Repeat("b", 50_000), "Itself": doc, "List": list,
		"Many": "[" + strings.TrimSuffix(strings.Repeat(doc+`,"x",`, 3), ",") + distinct(40) + "]", "Small": `{"a":` + doc + `,"b":[` + strings.Repeat("1,", 100_000) + `1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if n := parts(value); n > int64(len(value)+len(doc)+len(value)/2+4096) {
				t.Errorf("it wrote %d bytes for %d", n, len(value))
			}
		})
	}
}

// distinct are so many large texts that differ.
func distinct(count int) string {
	var b strings.Builder
	for n := range count {
		fmt.Fprintf(&b, `,"%d%s"`, n, strings.Repeat("y", 33_000))
	}
	return b.String()
}

// filesIn is the size of all blobs.
func filesIn(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
