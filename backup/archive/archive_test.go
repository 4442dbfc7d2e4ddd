package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/backup/archive"
	"tandem/fault"
)

// held keeps what a backup hands over.
type held struct {
	blobs map[string]string
	rows  map[string][][]any
}

func (h *held) Blob(name string, _ int64, r io.Reader) error {
	b, err := io.ReadAll(r)
	h.blobs[name] = string(b)
	return err
}

func (h *held) File(name string, size int64, r io.Reader) error {
	return h.Blob("files/"+name, size, r)
}

func (h *held) Row(table string, _ []string, values []any) error {
	h.rows[table] = append(h.rows[table], slices.Clone(values))
	return nil
}

func nameOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// small is a backup with every kind of value.
func small(t testing.TB, rows int) (file []byte, want *held, contents archive.Contents) {
	t.Helper()
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, archive.Head{Store: "memory", Program: "1.2", Began: time.Unix(1e9, 0).UTC()})
	check(t, err)
	want = &held{blobs: map[string]string{}, rows: map[string][][]any{}}
	for _, content := range []string{"", "large value"} {
		name := "ws/" + nameOf(content)
		want.blobs[name] = content
		check(t, w.Blob(name, int64(len(content)), bytes.NewReader([]byte(content))))
	}
	want.blobs["files/ws/a/"], want.blobs["files/ws/a/b.txt"] = "", "text"
	check(t, w.File("ws/a/", 0, bytes.NewReader(nil)))
	check(t, w.File("ws/a/b.txt", 4, bytes.NewReader([]byte("text"))))
	check(t, w.Table("one", []string{"a", "b"}))
	for i := range rows {
		for _, row := range [][]any{{int64(i), strings.Repeat("text", 100)}, {int64(-1 << 63), []byte{0, 255}}, {nil, ""}, {1.5, []byte{}}} {
			want.rows["one"] = append(want.rows["one"], row)
			check(t, w.Row(row))
		}
	}
	check(t, w.Table("empty", []string{"c"}))
	contents, err = w.End(7, time.Unix(2e9, 0).UTC(), []string{"k1"})
	check(t, err)
	return out.Bytes(), want, contents
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is written is read back as it was, also in many pieces.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, 4_000} {
		file, want, contents := small(t, rows)
		got := &held{blobs: map[string]string{}, rows: map[string][][]any{}}
		c, err := archive.Read(t.Context(), bytes.NewReader(file), got)
		check(t, err)
		if !maps.Equal(got.blobs, want.blobs) || !cmp.Equal(got.rows, want.rows) {
			t.Errorf("with %d rows: something else is read than was written", rows)
		}
		delete(contents.Tables, "empty")
		if d := cmp.Diff(contents, c); d != "" || c.Tables["one"] != int64(4*rows) || c.Blobs != 2 || len(c.Damaged) > 0 {
			t.Errorf("it says\n%s", d)
		}
	}
}

// Wherever a backup is cut off it is refused.
func TestCheck_CutOff(t *testing.T) {
	t.Parallel()
	file, _, _ := small(t, 1)
	end := bytes.LastIndex(file, []byte("}")) // what follows is filled up with zeros
	for n := 0; n < end; n += 13 {
		if _, err := archive.Check(t.Context(), bytes.NewReader(file[:n])); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("cut off after %d of %d bytes it is taken: %v", n, len(file), err)
		}
	}
}

// Whichever byte of a backup is another, it is refused or says the same: some bytes are filling.
func TestCheck_Damaged(t *testing.T) {
	t.Parallel()
	file, want, _ := small(t, 1)
	refused := 0
	for at := 0; at < len(file); at += 11 {
		other := slices.Clone(file)
		other[at] ^= 0x10
		got := &held{blobs: map[string]string{}, rows: map[string][][]any{}}
		switch _, err := archive.Read(t.Context(), bytes.NewReader(other), got); {
		case err != nil:
			refused++
		case !maps.Equal(got.blobs, want.blobs) || !cmp.Equal(got.rows, want.rows):
			t.Fatalf("with byte %d changed it is taken and says something else", at)
		}
	}
	if refused < 150 {
		t.Errorf("only %d of %d changes are noticed", refused, len(file))
	}
}

// A value that does not hold what its name says is kept and named. So is nothing else.
func TestWriter_DamagedBlob(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, archive.Head{})
	check(t, err)
	check(t, w.Blob("ws/"+nameOf("a"), 1, bytes.NewReader([]byte("b"))))
	check(t, w.Blob("ws/"+nameOf("c"), 1, bytes.NewReader([]byte("c"))))
	check(t, w.Blob("ws/"+nameOf("d")+".parts", 1, bytes.NewReader([]byte("x"))))
	c, err := w.End(1, time.Now(), nil)
	if err != nil || !slices.Equal(c.Damaged, []string{"ws/" + nameOf("a")}) {
		t.Errorf("damaged: %q, %v", c.Damaged, err)
	}
}

// A file that has become shorter than it was said to be is not a value.
func TestWriter_ShortBlob(t *testing.T) {
	t.Parallel()
	w, err := archive.NewWriter(io.Discard, archive.Head{})
	check(t, err)
	if err := w.Blob("ws/x", 5, bytes.NewReader([]byte("1234"))); err == nil {
		t.Error("a value that is too short is taken")
	}
	if err := w.Table("t", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]any{{}, {int64(1), int64(2)}, {true}} {
		if err := w.Row(row); err == nil {
			t.Errorf("the row %v is taken", row)
		}
	}
}

// A backup of a newer format is refused with what to do about it, and reading ends with its context.
func TestCheck_Refused(t *testing.T) {
	t.Parallel()
	file, _, _ := small(t, 1)
	newer := bytes.Replace(file, []byte(`{"format":1,`), []byte(`{"format":9,`), 1)
	if _, err := archive.Check(t.Context(), bytes.NewReader(newer)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("a newer format: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Check(ctx, bytes.NewReader(file)); err == nil || fault.CodeOf(err) == fault.Invalid {
		t.Errorf("after the end of its context: %v", err)
	}
}

// FuzzRead hands over whatever: it is refused or read, in bounded time and memory.
func FuzzRead(f *testing.F) {
	file, _, _ := small(f, 2)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, file []byte) {
		got := &held{blobs: map[string]string{}, rows: map[string][][]any{}}
		c, err := archive.Read(t.Context(), bytes.NewReader(file), got)
		if err == nil && int64(len(got.blobs)) > c.Blobs+c.Files {
			t.Error(fmt.Sprint(c))
		}
	})
}
