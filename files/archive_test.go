package files_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/files"
)

// member is one entry of an archive made by hand.
type member struct {
	name, content, link string
	mode                fs.FileMode
}

func makeZip(t testing.TB, list ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range list {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(m.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.content+m.link); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func makeTar(t testing.TB, list ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range list {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Typeflag: tar.TypeReg, Linkname: m.link}
		switch {
		case m.mode&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
		case m.mode.IsDir():
			h.Typeflag = tar.TypeDir
		case m.mode&fs.ModeDevice != 0:
			h.Typeflag = tar.TypeChar
		case m.link != "":
			h.Typeflag = tar.TypeLink
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchive_RoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"out/all.zip", "out/all.tar.gz", "out/all.tgz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, dir := setup(t)
			for path, content := range map[string]string{"src/a.txt": "A", "src/sub/b.csv": "B", "src/报告.txt": strings.Repeat("长", 1000), "src/empty.txt": ""} {
				write(t, d, path, content)
			}
			if _, err := d.Mkdir("src/nothing", false, files.Place{}); err != nil {
				t.Fatal(err)
			}
			info, sum, err := d.Archive(t.Context(), "src", name, "", files.Place{})
			if err != nil || info.Path != name || len(sum) != 64 {
				t.Fatalf("%+v, %v", info, err)
			}
			_, _, err = d.Archive(t.Context(), "src", name, "", files.Place{})
			wantCode(t, err, fault.Conflict)
			list, err := d.Extract(t.Context(), name, "back", "", files.Place{})
			if err != nil || len(list) != 4 {
				t.Fatalf("%v, %v", list, err)
			}
			if read(t, d, "back/sub/b.csv") != "B" || read(t, d, "back/报告.txt") != strings.Repeat("长", 1000) || read(t, d, "back/empty.txt") != "" {
				t.Error("what came back is not what went in")
			}
			if i, err := d.Stat("back/nothing"); err != nil || i.Type != "directory" {
				t.Errorf("%+v, %v", i, err)
			}
			_, err = d.Extract(t.Context(), name, "back", "", files.Place{})
			wantCode(t, err, fault.Conflict)
			if _, err = d.Extract(t.Context(), name, "back", "", files.Place{Again: true}); err != nil {
				t.Errorf("an extraction that was done before: %v", err)
			}
			write(t, d, "back/a.txt", "changed")
			_, err = d.Extract(t.Context(), name, "back", "", files.Place{Again: true})
			wantCode(t, err, fault.Conflict)
			if list, err := d.Extract(t.Context(), name, "back", "*.txt", files.Place{Overwrite: true}); err != nil || len(list) != 3 || read(t, d, "back/a.txt") != "A" {
				t.Errorf("%v, %v", list, err)
			}
			if drafts, err := os.ReadDir(filepath.Join(dir, ".tandem", "drafts")); err != nil || len(drafts) > 0 {
				t.Errorf("left over: %v, %v", drafts, err)
			}
		})
	}
	t.Run("SingleFile", func(t *testing.T) {
		t.Parallel()
		d, _ := setup(t)
		write(t, d, "x/one.txt", "1")
		if _, _, err := d.Archive(t.Context(), "x/one.txt", "one.zip", "", files.Place{}); err != nil {
			t.Fatal(err)
		}
		if list, err := d.Extract(t.Context(), "one.zip", ".", "", files.Place{}); err != nil || len(list) != 1 || list[0].Path != "one.txt" {
			t.Errorf("%v, %v", list, err)
		}
		_, _, err := d.Archive(t.Context(), "x", "one.rar", "", files.Place{})
		wantCode(t, err, fault.Unsupported)
		_, err = d.Extract(t.Context(), "x/one.txt", "y", "", files.Place{})
		wantCode(t, err, fault.Unsupported)
	})
}

func TestExtract_Hostile(t *testing.T) {
	t.Parallel()
	good := member{name: "good.txt", content: "good"}
	for _, c := range []struct {
		name string
		bad  member
		code fault.Code
	}{
		{"Up", member{name: "../evil.txt", content: "x"}, fault.ForbiddenPath},
		{"UpInside", member{name: "a/../../evil.txt", content: "x"}, fault.ForbiddenPath},
		{"Absolute", member{name: "/tmp/evil.txt", content: "x"}, fault.ForbiddenPath},
		{"Drive", member{name: "C:/evil.txt", content: "x"}, fault.ForbiddenPath},
		{"Backslash", member{name: `..\evil.txt`, content: "x"}, fault.ForbiddenPath},
		{"Device", member{name: "x/CON.txt", content: "x"}, fault.InvalidInput},
		{"Reserved", member{name: ".tandem/receipts/x", content: "x"}, fault.ForbiddenPath},
		{"Symlink", member{name: "link", link: "/etc/passwd", mode: fs.ModeSymlink}, fault.ForbiddenPath},
		{"Twice", member{name: "good.txt", content: "other"}, fault.InvalidInput},
		{"BelowAFile", member{name: "good.txt/x", content: "other"}, fault.InvalidInput},
		{"LongName", member{name: strings.Repeat("x", 300), content: "x"}, fault.InvalidInput},
	} {
		for format, archive := range map[string][]byte{"zip": makeZip(t, good, c.bad), "tar": makeTar(t, good, c.bad)} {
			t.Run(c.name+"/"+format, func(t *testing.T) {
				t.Parallel()
				checkRefused(t, archive, c.code)
			})
		}
	}
	for name, archive := range map[string][]byte{
		"HardLink": makeTar(t, good, member{name: "hard", link: "good.txt"}),
		"Device":   makeTar(t, good, member{name: "dev", mode: fs.ModeDevice}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRefused(t, archive, fault.ForbiddenPath)
		})
	}
	t.Run("CutOff", func(t *testing.T) {
		t.Parallel()
		whole := makeTar(t, member{name: "a", content: strings.Repeat("abc", 5000)})
		checkRefused(t, whole[:len(whole)/2], fault.InvalidInput)
		z := makeZip(t, member{name: "a", content: "abc"})
		checkRefused(t, z[:len(z)-4], fault.InvalidInput)
		checkRefused(t, []byte("PK\x03\x04 and nothing more"), fault.InvalidInput)
	})
	t.Run("WrongChecksum", func(t *testing.T) {
		t.Parallel()
		z := makeZip(t, member{name: "a", content: strings.Repeat("abc", 50)})
		i := bytes.LastIndex(z, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(z[i+16:], 1)
		checkRefused(t, z, fault.InvalidInput)
	})
}

// checkRefused extracts an archive that must fail and leave nothing anywhere.
func checkRefused(t *testing.T, archive []byte, code fault.Code) {
	t.Helper()
	d, dir := setup(t)
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), archive, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.Extract(t.Context(), "a.bin", "out", "", files.Place{Overwrite: true})
	wantCode(t, err, code)
	if got := fmt.Sprint(onDisk(t, filepath.Dir(dir))); got != "[acme/a.bin]" {
		t.Errorf("on disk: %s", got)
	}
}

func TestExtract_Bombs(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 32<<20)
	t.Run("Zip", func(t *testing.T) {
		t.Parallel()
		checkRefused(t, makeZip(t, member{name: "bomb", content: zeros}), fault.TooLarge)
	})
	t.Run("Tar", func(t *testing.T) {
		t.Parallel()
		checkRefused(t, makeTar(t, member{name: "bomb", content: zeros}), fault.TooLarge)
	})
	t.Run("LiesAboutSize", func(t *testing.T) {
		t.Parallel()
		z := makeZip(t, member{name: "bomb", content: zeros})
		i := bytes.LastIndex(z, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(z[i+24:], 10) // "ten bytes"
		d, dir := setup(t)
		if err := os.WriteFile(filepath.Join(dir, "a.zip"), z, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Extract(t.Context(), "a.zip", "out", "", files.Place{}); err == nil {
			t.Error("it was believed")
		}
	})
	t.Run("SameBytesManyTimes", func(t *testing.T) {
		t.Parallel()
		checkRefused(t, overlapping(t, 4000, 1<<20), fault.TooLarge)
	})
	t.Run("TooManyEntries", func(t *testing.T) {
		t.Parallel()
		var list []member
		for i := range files.MaxEntries + 1 {
			list = append(list, member{name: fmt.Sprintf("%05d/", i), mode: fs.ModeDir})
		}
		checkRefused(t, makeZip(t, list...), fault.TooLarge)
		checkRefused(t, makeTar(t, list...), fault.TooLarge)
	})
	t.Run("ImpliedDirectories", func(t *testing.T) {
		t.Parallel()
		// Three hundred entries, each in a hundred directories of its own that the archive does not list.
		var list []member
		for i := range 300 {
			list = append(list, member{name: fmt.Sprintf("%03d/", i) + strings.Repeat("d/", 99) + "f", content: "x"})
		}
		checkRefused(t, makeTar(t, list...), fault.TooLarge)
	})
	t.Run("NothingButHeaders", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for range files.MaxEntries + 1 {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "x"}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, b.Bytes(), fault.TooLarge)
	})
	t.Run("EndlessIndex", func(t *testing.T) {
		t.Parallel()
		// Two hundred thousand entries, of which the end of the file admits few: the list alone would fill memory.
		var b bytes.Buffer
		const n = 200_000
		entry := make([]byte, 46+1)
		copy(entry, "PK\x01\x02")
		entry[28], entry[46] = 1, 'x'
		b.WriteString("PK")
		for range n {
			b.Write(entry)
		}
		end := make([]byte, 22)
		copy(end, "PK\x05\x06")
		count := n % 65536
		binary.LittleEndian.PutUint16(end[8:], uint16(count))
		binary.LittleEndian.PutUint16(end[10:], uint16(count))
		binary.LittleEndian.PutUint32(end[12:], uint32(n*len(entry)))
		binary.LittleEndian.PutUint32(end[16:], 2)
		b.Write(end)
		checkRefused(t, b.Bytes(), fault.TooLarge)
	})
}

// overlapping is a zip file whose entries all mean the same compressed bytes.
func overlapping(t testing.TB, entries, size int) []byte {
	t.Helper()
	one := makeZip(t, member{name: "00000", content: strings.Repeat("\x00", size)})
	at := bytes.LastIndex(one, []byte("PK\x01\x02"))
	end := bytes.LastIndex(one, []byte("PK\x05\x06"))
	central, tail := one[at:end], bytes.Clone(one[end:])
	out := bytes.Clone(one[:at])
	for i := range entries {
		e := bytes.Clone(central)
		copy(e[46:], fmt.Sprintf("%05d", i))
		out = append(out, e...)
	}
	binary.LittleEndian.PutUint16(tail[8:], uint16(entries))
	binary.LittleEndian.PutUint16(tail[10:], uint16(entries))
	binary.LittleEndian.PutUint32(tail[12:], uint32(entries*len(central)))
	return append(out, tail...)
}

// FuzzExtract holds that nothing appears outside of the directory, and nothing at all when it fails.
func FuzzExtract(f *testing.F) {
	good := member{name: "a/b.txt", content: "hello"}
	f.Add(makeZip(f, good))
	f.Add(makeTar(f, good))
	f.Add(makeZip(f, good, member{name: "../x", content: "x"}))
	f.Add(makeTar(f, good, member{name: "l", link: "../..", mode: fs.ModeSymlink}))
	f.Add(overlapping(f, 5, 100))
	f.Fuzz(func(t *testing.T, archive []byte) {
		d, dir := setup(t)
		if err := os.WriteFile(filepath.Join(dir, "a.bin"), archive, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := d.Extract(t.Context(), "a.bin", "out", "", files.Place{})
		if code := fault.CodeOf(err); err != nil && code == fault.Internal {
			t.Fatalf("not foreseen: %v %s", err, fault.From(err).Detail)
		}
		for _, name := range onDisk(t, filepath.Dir(dir)) {
			if name != "acme/a.bin" && (err != nil || !strings.HasPrefix(name, "acme/out/")) {
				t.Fatalf("%q appeared, %v", name, err)
			}
		}
	})
}
