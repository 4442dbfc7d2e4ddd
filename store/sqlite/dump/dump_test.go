package dump

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tandem/backup/archive"
	"tandem/store/sqlite/datadir"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A value that is being removed while it is copied, which overwrites it first, is not damaged. If it is put again meanwhile it is copied
// again, and that is what is restored. One that stays as it is was damaged.
func TestValues_RemovedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	contents := []string{"removed", "put again", "damaged", "whole"}
	name, file := map[string]string{}, map[string]string{}
	var out bytes.Buffer
	to, err := archive.NewWriter(&out, archive.Head{Store: Store})
	check(t, err)
	put := func(of, content string) {
		t.Helper()
		check(t, errors.Join(os.MkdirAll(filepath.Dir(file[of]), 0o700), os.WriteFile(file[of], []byte(content), 0o600)))
	}
	for _, of := range contents {
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(of)))
		name[of], file[of] = "ws/"+hash, filepath.Join(dir, datadir.BlobDir, "ws", hash[:2], hash[2:4], hash)
		put(of, string(make([]byte, len(of)))) // as it is when it is about to be removed
	}
	put("whole", "whole")
	list := file["removed"] + ".parts"
	check(t, os.WriteFile(list, make([]byte, 9), 0o600))
	v, err := openValues(dir)
	check(t, err)
	defer func() { check(t, v.close()) }()
	check(t, v.copyNew(t.Context(), to))
	if n := len(to.Damaged()); n != 4 {
		t.Errorf("%d values are not what their name says", n)
	}
	check(t, errors.Join(os.Remove(file["removed"]), os.Remove(list)))
	put("put again", "put again")
	check(t, v.copyNew(t.Context(), to))
	check(t, v.settle(to))
	c, err := to.End(27, time.Now(), nil)
	check(t, err)
	if !slices.Equal(c.Damaged, []string{name["damaged"]}) || len(c.Gone) != 3 {
		t.Errorf("damaged: %q, gone: %q", c.Damaged, c.Gone)
	}
	restored := t.TempDir()
	root, err := os.OpenRoot(restored)
	check(t, err)
	defer func() { check(t, root.Close()) }()
	_, err = archive.Read(t.Context(), &out, &loader{blobs: root, damaged: c.Damaged, gone: c.Gone})
	check(t, err)
	for _, of := range contents {
		relative, err := filepath.Rel(filepath.Join(dir, datadir.BlobDir), file[of])
		check(t, err)
		b, err := os.ReadFile(filepath.Join(restored, relative))
		switch {
		case of == "removed":
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what was removed is there: %q, %v", b, err)
			}
		case of == "damaged":
			if err != nil || !bytes.Equal(b, make([]byte, len(of))) {
				t.Errorf("what was damaged is %q: %v", b, err)
			}
		case err != nil || string(b) != of:
			t.Errorf("%s is %q: %v", of, b, err)
		}
	}
}
