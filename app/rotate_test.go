package app

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// rotateAt is the variable that makes a process of this test stop at a point of a rotation, and rotateIn the one that says where.
const rotateAt, rotateIn = "TANDEM_TEST_ROTATE_AT", "TANDEM_TEST_ROTATE_IN"

// sealedDir is a data directory with three credentials in two workspaces.
func sealedDir(t *testing.T) string {
	t.Helper()
	dir := sqlitetest.Dir(t)
	inDir(t, dir, func(stores store.Stores, root *os.Root) {
		ring, err := credential.CreateKeyFile(root)
		works(t, err)
		// The workspace of commands without a server has credentials and no row.
		works(t, stores.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: "other", Name: "other"}))
		for _, c := range []store.Credential{{Workspace: "default", ID: "c1", Name: "one"}, {Workspace: "default", ID: "c2", Name: "two"}, {Workspace: "other", ID: "c1", Name: "one"}} {
			known, err := knownCredentials().Find("openai")
			works(t, err)
			c.Type = known.Name
			c.Sealed, err = ring.SealData(known, c.Workspace, c.ID, fmt.Appendf(nil, `{"api_key":"secret of %s %s"}`, c.Workspace, c.ID))
			works(t, err)
			works(t, stores.Credentials.Create(t.Context(), identity.System(c.Workspace), c))
		}
	})
	return dir
}

// inDir does something with the database and the directory, and closes both.
func inDir(t *testing.T, dir string, do func(store.Stores, *os.Root)) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	works(t, err)
	root, err := os.OpenRoot(dir)
	works(t, err)
	do(db.Stores(), root)
	works(t, root.Close())
	works(t, db.Close())
}

// readable fails the test unless the keys in the directory open every credential. It returns their ids.
func readable(t *testing.T, dir string) (keys []string) {
	t.Helper()
	inDir(t, dir, func(stores store.Stores, root *os.Root) {
		ring, err := credential.OpenKeyFile(root)
		works(t, err)
		keys = ring.Keys()
		for _, place := range [][2]string{{"default", "c1"}, {"default", "c2"}, {"other", "c1"}} {
			c, err := stores.Credentials.Get(t.Context(), identity.System(place[0]), place[1])
			works(t, err)
			data, err := ring.Open(c.Sealed, credential.Context(place[0], c.ID, c.Type))
			if want := fmt.Sprintf(`{"api_key":"secret of %s %s"}`, place[0], place[1]); err != nil || string(data) != want {
				t.Errorf("credential %v: %s, %v", place, data, err)
			}
		}
	})
	return keys
}

func works(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A process that is killed at any point of a rotation leaves every credential readable, and the next one finishes. Backups open with the
// old key.
func TestRotate_KilledAnywhere(t *testing.T) {
	t.Parallel()
	original := sealedDir(t)
	before := readable(t, original)
	var points []string
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), "data")
		works(t, os.CopyFS(dir, os.DirFS(original)))
		works(t, os.Chmod(dir, 0o700))
		works(t, os.Chmod(filepath.Join(dir, credential.KeyFile), 0o600))
		point := killedAt(t, dir, n)
		keys := readable(t, dir)
		if point == "" {
			break
		}
		points = append(points, point)
		if dropped := point == "old keys dropped"; slices.Contains(keys, before[0]) == dropped {
			t.Errorf("at %q the key file has %v", point, keys)
		}
		works(t, os.WriteFile(filepath.Join(dir, credential.KeyFile+".ABCDEFGH"), []byte("left by a process that died"), 0o600))
		r, err := RotateKey(t.Context(), RotateOptions{Dir: dir})
		if after := readable(t, dir); err != nil || r.Resealed+r.Already != 3 || !r.Dropped || !slices.Equal(after, []string{r.Key}) {
			t.Errorf("after %q: %+v, %v, keys %v", point, r, err, after)
		}
		if left, err := filepath.Glob(filepath.Join(dir, credential.KeyFile+".*")); err != nil || len(left) > 0 {
			t.Errorf("%q is left, %v", left, err)
		}
		// A backup of the time before opens with the key file of that time.
		works(t, os.CopyFS(filepath.Join(dir, "backup"), os.DirFS(original)))
		works(t, os.Chmod(filepath.Join(dir, "backup", credential.KeyFile), 0o600))
		readable(t, filepath.Join(dir, "backup"))
	}
	if want := []string{"key added", "one resealed", "one resealed", "one resealed", "all resealed", "old keys dropped"}; !slices.Equal(points, want) {
		t.Errorf("killed at %q", points)
	}
}

// killedAt lets a process rotate the key of a directory and kills it at the nth point, which it returns; empty: it came to its end before.
func killedAt(t *testing.T, dir string, n int) string {
	t.Helper()
	self, err := os.Executable()
	works(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestRotate_Child$", "-test.count=1")
	child.Env = append(os.Environ(), rotateIn+"="+dir, rotateAt+"="+strconv.Itoa(n))
	out, err := child.StdoutPipe()
	works(t, err)
	child.Stderr = os.Stderr
	works(t, child.Start())
	point := ""
	for lines := bufio.NewScanner(out); point == "" && lines.Scan(); {
		point, _ = strings.CutPrefix(lines.Text(), "reached ")
		if point == lines.Text() {
			point = ""
		}
	}
	if point != "" {
		works(t, child.Process.Kill())
	}
	if err := child.Wait(); point == "" && err != nil {
		t.Fatal(err)
	}
	return point
}

// TestRotate_Child is the process that killedAt kills; by itself it does nothing.
func TestRotate_Child(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(rotateIn)
	if dir == "" {
		return
	}
	stop, err := strconv.Atoi(os.Getenv(rotateAt))
	works(t, err)
	n := 0
	_, err = RotateKey(context.Background(), RotateOptions{Dir: dir, reached: func(point string) {
		if n++; n == stop {
			fmt.Println("reached " + point)
			select {}
		}
	}})
	works(t, err)
}

func TestRotate_Keys(t *testing.T) {
	t.Parallel()
	dir := sealedDir(t)
	before := readable(t, dir)
	kept, err := RotateKey(t.Context(), RotateOptions{Dir: dir, KeepOld: true})
	if after := readable(t, dir); err != nil || kept.Dropped || kept.Resealed != 3 || !slices.Equal(after, []string{before[0], kept.Key}) {
		t.Errorf("%+v, %v, keys %v", kept, err, after)
	}
	// What no key opens is named, and nothing else is held up.
	inDir(t, dir, func(stores store.Stores, _ *os.Root) {
		list, err := stores.Audit.List(t.Context(), identity.System("other"), store.AuditQuery{Action: "key.rotate"})
		if err != nil || len(list) != 1 || list[0].ObjectID != kept.Key || list[0].User != identity.LocalUser {
			t.Errorf("that the key was changed was entered as %+v, %v", list, err)
		}
		works(t, stores.Credentials.Create(t.Context(), identity.System("other"), store.Credential{ID: "c3", Name: "broken", Type: "openai", Sealed: []byte("not sealed")}))
	})
	broken, err := RotateKey(t.Context(), RotateOptions{Dir: dir})
	if after := readable(t, dir); err != nil || broken.Dropped || len(broken.Unreadable) != 1 || broken.Unreadable[0].Name != "broken" || broken.Resealed != 3 || len(after) != 3 {
		t.Errorf("%+v, %v, keys %v", broken, err, after)
	}
	inDir(t, dir, func(stores store.Stores, _ *os.Root) {
		works(t, stores.Credentials.Delete(t.Context(), identity.System("other"), "c3"))
	})
	// Keys of the environment: the old one, then the new one.
	file, err := os.ReadFile(filepath.Join(dir, credential.KeyFile))
	works(t, err)
	const next = "6Lh0mYdXl0nKZ0zqk3rD5l3vH6sQh1O2m4Wn8B5eC7g="
	given, err := RotateKey(t.Context(), RotateOptions{Dir: dir, MasterKey: string(file) + next})
	if err != nil || given.Resealed != 3 || given.Dropped || given.File != "" {
		t.Errorf("%+v, %v", given, err)
	}
	works(t, os.WriteFile(filepath.Join(dir, credential.KeyFile), []byte(next), 0o600))
	readable(t, dir)
	if _, err := RotateKey(t.Context(), RotateOptions{Dir: dir, MasterKey: next}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "write a new one after it") {
		t.Errorf("got %v", err)
	}
	if _, err := RotateKey(t.Context(), RotateOptions{Dir: t.TempDir()}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	i, err := Open(t.Context(), Options{Dir: dir, MasterKey: next})
	works(t, err)
	if _, err := RotateKey(t.Context(), RotateOptions{Dir: dir}); err == nil {
		t.Error("the key was rotated under a running instance")
	}
	works(t, i.Close())
}
