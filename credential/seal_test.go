package credential_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"tandem/credential"
	"tandem/fault"
)

// key makes the text of a key that is different for every number.
func key(number byte) string {
	raw := bytes.Repeat([]byte{number, 0xA5}, 16)
	return base64.StdEncoding.EncodeToString(raw)
}

func ring(t interface {
	Helper()
	Fatal(...any)
}, text string) *credential.Keyring {
	t.Helper()
	r, err := credential.ParseKeyring(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func directory(t *testing.T) (*os.Root, string) {
	t.Helper()
	path := t.TempDir()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root, path
}

// reason is the fact that an error of Open carries.
func reason(err error) any {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code == fault.CredentialInvalid {
		return e.Details["reason"]
	}
	return err
}

func TestKeyring_SealOpens(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1))
	rapid.Check(t, func(t *rapid.T) {
		plaintext := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "plaintext")
		context := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "context")
		sealed, err := r.Seal(plaintext, context)
		if err != nil {
			t.Fatal(err)
		}
		if len(plaintext) >= 8 && bytes.Contains(sealed, plaintext) {
			t.Fatal("the plaintext stands in what was sealed")
		}
		opened, err := r.Open(sealed, context)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Fatalf("opened %x, %v; want %x", opened, err, plaintext)
		}
		again, err := r.Seal(plaintext, context)
		if err != nil || bytes.Equal(again, sealed) {
			t.Fatalf("sealing twice gave the same bytes, %v", err)
		}
	})
}

func TestKeyring_OpenRefusesEveryChangedByte(t *testing.T) {
	t.Parallel()
	r, context := ring(t, key(1)), credential.Context("main", "c1", "openai")
	sealed, err := r.Seal([]byte(`{"api_key":"sk-canary-123456"}`), context)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]int{}
	for i := range sealed {
		for _, flip := range []byte{1, 0x80, 0xFF} {
			changed := bytes.Clone(sealed)
			changed[i] ^= flip
			opened, err := r.Open(changed, context)
			if err == nil || opened != nil {
				t.Fatalf("byte %d changed by %x: opened %q", i, flip, opened)
			}
			if fault.CodeOf(err) != fault.CredentialInvalid || strings.Contains(fmt.Sprintf("%+v", err), "canary") {
				t.Fatalf("byte %d changed: %v", i, err)
			}
			seen[reason(err)]++
		}
	}
	for _, want := range []string{"format", "version", "unknown_key", "context", "damaged"} {
		if seen[want] == 0 {
			t.Errorf("no change gave the reason %q: %v", want, seen)
		}
	}
	for n := range sealed {
		if _, err := r.Open(sealed[:n], context); fault.CodeOf(err) != fault.CredentialInvalid {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := r.Open(append(bytes.Clone(sealed), 0), context); reason(err) != "damaged" {
		t.Errorf("one byte more: %v", err)
	}
}

func TestKeyring_OpenWantsTheSameContext(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1))
	sealed, err := r.Seal([]byte("secret"), credential.Context("main", "c1", "sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"other", "c1", "sql"}, {"main", "c2", "sql"}, {"main", "c1", "smtp"}, {"mainc", "1", "sql"}, {"main", "c1s", "ql"}, {"", "", ""},
	} {
		if _, err := r.Open(sealed, credential.Context(c[0], c[1], c[2])); reason(err) != "context" {
			t.Errorf("as %q it gave %v", c, err)
		}
	}
	if _, err := r.Open(sealed, nil); reason(err) != "context" {
		t.Errorf("without a context: %v", err)
	}
}

func TestKeyring_Rotation(t *testing.T) {
	t.Parallel()
	context := credential.Context("main", "c1", "sql")
	first, both, second := ring(t, key(1)), ring(t, key(1)+"\n"+key(2)), ring(t, key(2))
	old, err := first.Seal([]byte("secret"), context)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(old, context); err != nil || string(got) != "secret" {
		t.Fatalf("the old key does not open any more: %q, %v", got, err)
	}
	if _, err := second.Open(old, context); reason(err) != "unknown_key" || !strings.Contains(err.Error(), first.Keys()[0]) {
		t.Errorf("without the old key: %v", err)
	}
	fresh, err := both.Seal([]byte("new"), context)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.Open(fresh, context); err != nil || string(got) != "new" {
		t.Errorf("the newest key did not seal: %q, %v", got, err)
	}
	moved, changed, err := both.Reseal(old, context)
	if err != nil || !changed {
		t.Fatalf("reseal: changed %v, %v", changed, err)
	}
	if got, err := second.Open(moved, context); err != nil || string(got) != "secret" {
		t.Errorf("resealed: %q, %v", got, err)
	}
	if _, err := second.Open(moved, credential.Context("main", "c2", "sql")); reason(err) != "context" {
		t.Errorf("resealed and moved: %v", err)
	}
	if same, changed, err := both.Reseal(moved, context); err != nil || changed || !bytes.Equal(same, moved) {
		t.Errorf("resealing what is newest: changed %v, %v", changed, err)
	}
	if _, _, err := second.Reseal(old, context); reason(err) != "unknown_key" {
		t.Errorf("resealing without the old key: %v", err)
	}
}

func TestKeyring_SealLimitsSize(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1))
	if _, err := r.Seal(make([]byte, credential.MaxSize+1), nil); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("sealing too much: %v", err)
	}
	sealed, err := r.Seal(make([]byte, credential.MaxSize), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Open(sealed, nil); err != nil || len(got) != credential.MaxSize {
		t.Errorf("opening the largest: %d bytes, %v", len(got), err)
	}
	if _, err := r.Open(append(sealed, 0), nil); reason(err) != "damaged" {
		t.Errorf("opening more than the largest: %v", err)
	}
}

func TestParseKeyring(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xFB, 0xFF}, 16)
	want := ring(t, hex.EncodeToString(raw)).Keys()[0]
	for _, text := range []string{
		strings.ToUpper(hex.EncodeToString(raw)), base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), " " + base64.RawURLEncoding.EncodeToString(raw) + "\r\n",
		"# a comment\n" + hex.EncodeToString(raw) + " # another",
	} {
		if got := ring(t, text).Keys(); len(got) != 1 || got[0] != want {
			t.Errorf("%q gave %v, want %s", text, got, want)
		}
	}
	if got := ring(t, key(1)+", "+key(2)+"\n"+key(3)).Keys(); len(got) != 3 {
		t.Errorf("three keys gave %v", got)
	}
	for _, text := range []string{
		"", "# nothing", "canary", key(1) + " canary", hex.EncodeToString(raw[1:]), key(1) + "\n" + key(1), strings.Repeat("00", 32), key(1)[:40],
	} {
		_, err := credential.ParseKeyring(text)
		if fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), key(1)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestKeyring_PrintsNoKey(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, r); got != "keyring["+r.Keys()[0]+"]" {
			t.Errorf("%s printed %q", verb, got)
		}
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	dir, path := directory(t)
	if _, err := credential.OpenKeyFile(dir); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("opening a missing file: %v", err)
	}
	if _, err := credential.RotateKeyFile(dir); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("rotating a missing file: %v", err)
	}
	created, err := credential.CreateKeyFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(path, credential.KeyFile))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("the file has mode %v, %v", info.Mode(), err)
	}
	again, err := credential.CreateKeyFile(dir)
	if err != nil || again.Keys()[0] != created.Keys()[0] {
		t.Fatalf("creating twice: %v and %v, %v", created, again, err)
	}
	sealed, err := created.Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := credential.RotateKeyFile(dir)
	if err != nil || len(rotated.Keys()) != 2 || rotated.Keys()[0] != created.Keys()[0] {
		t.Fatalf("rotated: %v, %v", rotated, err)
	}
	opened, err := credential.OpenKeyFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := opened.Open(sealed, nil); err != nil || string(got) != "secret" {
		t.Errorf("after rotation: %q, %v", got, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v; want the key file only", entries, err)
	}
}

func TestKeyFile_MadeOnceByMany(t *testing.T) {
	t.Parallel()
	dir, _ := directory(t)
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			r, err := credential.CreateKeyFile(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = r.Keys()[0]
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("different keys: %v", ids)
		}
	}
}

func TestKeyFile_Refusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		want          fault.Code
		says          string
	}{
		{"readable by others", key(1), 0o644, fault.Forbidden, "chmod 600"},
		{"empty", "", 0o600, fault.Invalid, credential.KeyFile},
		{"no key", "canary", 0o600, fault.Invalid, "32 bytes"},
		{"huge", strings.Repeat("#", 70_000), 0o600, fault.Invalid, "larger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, path := directory(t)
			file := filepath.Join(path, credential.KeyFile)
			if err := os.WriteFile(file, []byte(c.content), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			for name, open := range map[string]func(*os.Root) (*credential.Keyring, error){
				"open": credential.OpenKeyFile, "create": credential.CreateKeyFile, "rotate": credential.RotateKeyFile,
			} {
				_, err := open(dir)
				if fault.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != c.content {
				t.Errorf("the file changed, %v", err)
			}
		})
	}
}

func FuzzKeyring_Open(f *testing.F) {
	r := ring(f, key(1)+" "+key(2))
	context := credential.Context("main", "c1", "sql")
	sealed, err := r.Seal([]byte("secret"), context)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed, context)
	f.Add(sealed[:20], context)
	f.Add([]byte("tsc\x02"), []byte{})
	f.Add([]byte{}, []byte(nil))
	f.Fuzz(func(t *testing.T, data, with []byte) {
		// Another process of the fuzzer may have sealed data, with the same keys: what opens is the one secret in its place.
		opened, err := r.Open(data, with)
		if err == nil && (string(opened) != "secret" || !bytes.Equal(with, context)) {
			t.Fatalf("opened %q as %q", opened, with)
		}
		if err != nil && fault.CodeOf(err) != fault.CredentialInvalid {
			t.Fatalf("code %q: %v", fault.CodeOf(err), err)
		}
		if _, _, again := r.Reseal(data, with); (again == nil) != (err == nil) && reason(err) != "damaged" {
			t.Fatalf("open says %v, reseal %v", err, again)
		}
	})
}
