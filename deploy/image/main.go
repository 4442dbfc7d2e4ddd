// Command image puts the program into an OCI image, without a container engine. The image has the program, root certificates and nothing
// else: no shell, no package manager, no libraries. The same program makes the same image, byte by byte.
//
// The file that it writes is a tar archive of an OCI image layout, with the list that "docker load" wants beside it; "podman load",
// "skopeo" and "crane" read it too. It pushes nothing and knows no registry. `make image` calls it.
package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Media types of the parts of an image.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

func main() {
	var o options
	flag.StringVar(&o.Binary, "binary", "bin/tandem", "the program, built for Linux without cgo")
	flag.StringVar(&o.Arch, "arch", "amd64", "the architecture it was built for")
	flag.StringVar(&o.Version, "version", "dev", "its version, which is the tag of the image")
	out := flag.String("out", "bin/tandem-image.tar", "the image to write")
	root := flag.String("root", "bin/tandem-root.tar", "where to write the files of the image alone, for the Dockerfile")
	flag.Parse()
	if err := run(o, *out, *root); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(o options, out, root string) error {
	files, err := program(o.Binary)
	if err != nil {
		return err
	}
	if err := writeTo(root, func(w io.Writer) error { return writeFiles(append(base(), files...), w) }); err != nil {
		return err
	}
	var name string
	err = writeTo(out, func(w io.Writer) error {
		name, err = write(o, files, w)
		return err
	})
	if err == nil {
		fmt.Printf("%s %s %s\n", out, tag(o.Version), name)
	}
	return err
}

// writeTo writes a file, or leaves none.
func writeTo(name string, content func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// options say what goes into the image.
type options struct{ Binary, Arch, Version string }

// settings are how the program is run. The Dockerfile says the same.
type settings struct {
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	ExposedPorts map[string]struct{}
	Volumes      map[string]struct{}
	StopSignal   string
	Labels       map[string]string
}

func howToRun(version string) settings {
	return settings{
		User:         fmt.Sprintf("%d:%[1]d", user),
		Env:          []string{"PATH=/usr/bin", "TANDEM_ADDR=0.0.0.0:8080", "TANDEM_DATA=/data"},
		Entrypoint:   []string{"/usr/bin/tandem"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/data",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		StopSignal:   "SIGTERM",
		Labels:       map[string]string{"org.opencontainers.image.title": "tandem", "org.opencontainers.image.version": version},
	}
}

// descriptor points to a part of an image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// config is the part of an image that says how it is run.
type config struct {
	platform
	Created string    `json:"created"`
	Config  settings  `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []history `json:"history"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created string `json:"created"`
	By      string `json:"created_by"`
}

type manifest struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type index struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
}

// loadable is what "docker load" reads.
type loadable struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// tag is the name of the image. A version may have characters that a tag may not.
func tag(version string) string {
	return "tandem:" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '-'
	}, version)
}

// write writes the image and returns its digest.
func write(o options, binary []file, to io.Writer) (string, error) {
	out := &imageLayout{out: tar.NewWriter(to)}
	created := epoch().Format("2006-01-02T15:04:05Z")
	c := config{platform: platform{o.Arch, "linux"}, Created: created, Config: howToRun(o.Version), RootFS: rootFS{Type: "layers"}}
	m := manifest{Schema: 2, MediaType: typeManifest}
	for _, files := range [][]file{base(), binary} {
		l, err := newLayer(files)
		if err != nil {
			return "", err
		}
		c.RootFS.DiffIDs, c.History = append(c.RootFS.DiffIDs, l.plain), append(c.History, history{created, "make image"})
		m.Layers = append(m.Layers, out.blob(typeLayer, l.packed))
	}
	m.Config = out.document(typeConfig, c)
	d := out.document(typeManifest, m)
	d.Platform = &c.platform
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": o.Version, "io.containerd.image.name": tag(o.Version)}
	out.entry("index.json", out.encode(index{2, typeIndex, []descriptor{d}}))
	out.entry("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	load := loadable{Config: blobName(m.Config.Digest), RepoTags: []string{tag(o.Version)}}
	for _, l := range m.Layers {
		load.Layers = append(load.Layers, blobName(l.Digest))
	}
	out.entry("manifest.json", out.encode([]loadable{load}))
	return d.Digest, errors.Join(out.err, out.out.Close())
}

// imageLayout is the archive that is written. It remembers the first error.
type imageLayout struct {
	out *tar.Writer
	err error
}

func (l *imageLayout) entry(name string, content []byte) {
	if l.err != nil {
		return
	}
	h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch(), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if l.err = l.out.WriteHeader(h); l.err == nil {
		_, l.err = l.out.Write(content)
	}
}

func blobName(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

func (l *imageLayout) blob(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
	l.entry(blobName(d.Digest), content)
	return d
}

func (l *imageLayout) encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil && l.err == nil {
		l.err = err
	}
	return out
}

func (l *imageLayout) document(mediaType string, v any) descriptor {
	return l.blob(mediaType, l.encode(v))
}
