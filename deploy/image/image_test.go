package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// built writes an image of a program, and returns where it is and where its files are.
func built(t testing.TB, binary string) (image, root string) {
	t.Helper()
	dir := t.TempDir()
	image, root = filepath.Join(dir, "image.tar"), filepath.Join(dir, "root.tar")
	check(t, run(options{Binary: binary, Arch: "amd64", Version: "1.2-dirty"}, image, root))
	return image, root
}

// small is a file that stands for the program where it is not run.
func small(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	check(t, os.WriteFile(name, []byte("not a program"), 0o755))
	return name
}

// unpack unpacks a tar archive. Owners are kept where that is possible.
func unpack(t testing.TB, r io.Reader, dir string) (names []string) {
	t.Helper()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		check(t, err)
		names = append(names, h.Name)
		at := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			check(t, os.MkdirAll(at, 0o755))
		} else {
			check(t, os.MkdirAll(filepath.Dir(at), 0o755))
			content, err := io.ReadAll(in)
			check(t, err)
			check(t, os.WriteFile(at, content, 0o644))
		}
		if os.Geteuid() == 0 {
			check(t, os.Chown(at, h.Uid, h.Gid))
		}
		mode := fs.FileMode(h.Mode & 0o777)
		if h.Mode&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		check(t, os.Chmod(at, mode))
	}
}

// An independent reader of OCI images finds everything in its place: every digest, size and type is right, the layers unpack to what the
// configuration says. "docker load" reads the same file by another list.
func TestImage(t *testing.T) {
	t.Parallel()
	file, _ := built(t, small(t))
	dir := t.TempDir()
	f, err := os.Open(file)
	check(t, err)
	unpack(t, f, dir)
	check(t, f.Close())
	index, err := layout.ImageIndexFromPath(dir)
	check(t, err)
	check(t, validate.Index(index))
	list, err := index.IndexManifest()
	check(t, err)
	if len(list.Manifests) != 1 || list.Manifests[0].Platform.String() != "linux/amd64" {
		t.Fatalf("the index lists %+v", list.Manifests)
	}
	image, err := index.Image(list.Manifests[0].Digest)
	check(t, err)
	check(t, validate.Image(image))
	loaded, err := tarball.ImageFromPath(file, nil)
	check(t, err)
	check(t, validate.Image(loaded))
	for _, i := range []v1.Image{image, loaded} {
		c, err := i.ConfigFile()
		check(t, err)
		if c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/tandem"}) || c.Config.StopSignal != "SIGTERM" || len(c.Config.Volumes) != 1 ||
			c.OS != "linux" || !c.Created.Time.Equal(epoch()) {
			t.Errorf("the configuration is %+v", c)
		}
	}
	checkLayers(t, image)
}

// checkLayers looks at what is in the image: no shell, nothing that another user may change, certificates that can be read.
func checkLayers(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	check(t, err)
	var names []string
	dir := t.TempDir()
	for _, l := range layers {
		r, err := l.Uncompressed()
		check(t, err)
		names = append(names, unpack(t, r, dir)...)
		check(t, r.Close())
	}
	want := []string{"data/", "etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", "tmp/", "usr/", "usr/bin/", "usr/bin/tandem"}
	if !slices.Equal(names, want) {
		t.Errorf("the image has %q", names)
	}
	certificates, err := os.ReadFile(filepath.Join(dir, "etc", "ssl", "certs", "ca-certificates.crt"))
	check(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) || bytes.Count(certificates, []byte("BEGIN")) < 100 {
		t.Errorf("there are %d certificates", bytes.Count(certificates, []byte("BEGIN")))
	}
	for name, mode := range map[string]fs.FileMode{"data": fs.ModeDir | 0o700, "tmp": fs.ModeDir | fs.ModeSticky | 0o777, "usr/bin/tandem": 0o755, "etc/passwd": 0o644} {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s has the mode %v: %v", name, info.Mode(), err)
		}
	}
}

// The same program makes the same image.
func TestImage_Same(t *testing.T) {
	t.Parallel()
	binary := small(t)
	var before []byte
	for range 2 {
		file, root := built(t, binary)
		a, err := os.ReadFile(file)
		check(t, err)
		b, err := os.ReadFile(root)
		check(t, err)
		now := append(a, b...)
		if before != nil && !bytes.Equal(before, now) {
			t.Error("two images of one program differ")
		}
		before = now
	}
}

// A program that cannot be read leaves no file behind.
func TestImage_NoProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run(options{Binary: filepath.Join(dir, "none")}, filepath.Join(dir, "image.tar"), filepath.Join(dir, "root.tar")); err == nil {
		t.Error("there is an image of nothing")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v: %v", left, err)
	}
}

// The Dockerfile says what the image says, and its files are those of the layers.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	check(t, err)
	parsed, err := parser.Parse(bytes.NewReader(text))
	check(t, err)
	stages, _, err := instructions.Parse(parsed.AST, nil)
	check(t, err)
	if len(stages) != 1 || stages[0].BaseName != "scratch" {
		t.Fatalf("stages: %+v", stages)
	}
	got := settings{ExposedPorts: map[string]struct{}{}, Volumes: map[string]struct{}{}}
	var added []string
	for _, c := range stages[0].Commands {
		switch c := c.(type) {
		case *instructions.AddCommand:
			added = append(append(added, c.SourcePaths...), c.DestPath)
		case *instructions.EnvCommand:
			for _, e := range c.Env {
				got.Env = append(got.Env, e.Key+"="+e.Value)
			}
		case *instructions.WorkdirCommand:
			got.WorkingDir = c.Path
		case *instructions.UserCommand:
			got.User = c.User
		case *instructions.ExposeCommand:
			got.ExposedPorts[c.Ports[0]] = struct{}{}
		case *instructions.VolumeCommand:
			got.Volumes[c.Volumes[0]] = struct{}{}
		case *instructions.StopSignalCommand:
			got.StopSignal = c.Signal
		case *instructions.EntrypointCommand:
			got.Entrypoint = c.CmdLine
		case *instructions.CmdCommand:
			got.Cmd = c.CmdLine
		default:
			t.Errorf("the test does not know %s", c.Name())
		}
	}
	want := howToRun("")
	want.Labels = nil
	a, err := json.Marshal(got)
	check(t, err)
	b, err := json.Marshal(want)
	check(t, err)
	if string(a) != string(b) {
		t.Errorf("the Dockerfile says\n%s\nand the image\n%s", a, b)
	}
	if !slices.Equal(added, []string{"bin/tandem-root.tar", "/"}) {
		t.Errorf("it adds %q", added)
	}
	_, root := built(t, small(t))
	files, err := os.ReadFile(root)
	check(t, err)
	var both bytes.Buffer
	binary, err := program(small(t))
	check(t, err)
	check(t, writeFiles(append(base(), binary...), &both))
	if !bytes.Equal(files, both.Bytes()) {
		t.Error("the files are not those of the layers")
	}
}

// A layer is packed with gzip, whose head says nothing of when and where.
func TestLayer(t *testing.T) {
	t.Parallel()
	l, err := newLayer(base())
	check(t, err)
	zip, err := gzip.NewReader(bytes.NewReader(l.packed))
	check(t, err)
	if !zip.ModTime.IsZero() || zip.Name != "" {
		t.Errorf("its head is %+v", zip.Header)
	}
	content, err := io.ReadAll(zip)
	check(t, err)
	if digest(content) != l.plain || !strings.HasPrefix(l.plain, "sha256:") {
		t.Error("the digest of its files is another")
	}
}
