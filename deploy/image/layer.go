package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who the program runs as: nobody that a machine knows, by the number that other images without a shell have for it.
const user = 65532

// epoch is the time of every file, so that the same content is the same image.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// file is one of a layer. A name that ends with a slash is a directory's.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// base are the files beside the program: who it runs as, whom it believes on the network, where it may write. Time zones are in the program
// itself.
func base() []file {
	return []file{
		{"data/", 0o700, user, nil},
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\ntandem:x:%d:\n", user)},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\ntandem:x:%d:%[1]d:tandem:/data:/sbin/nologin\n", user)},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, certificates()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
	}
}

// certificates are the roots that Mozilla trusts. Those that it trusts with conditions, which a list of certificates cannot state, are left
// out.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// program is the layer with the program alone, which is all that changes from one version to the next.
func program(binary string) ([]file, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return []file{{"usr/bin/tandem", 0o755, 0, content}}, nil
}

// layer is files as an image has them.
type layer struct {
	packed []byte
	// plain is the digest of the files before they were packed.
	plain string
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func newLayer(files []file) (l layer, err error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	sum := sha256.New()
	if err := errors.Join(writeFiles(files, io.MultiWriter(zip, sum)), zip.Close()); err != nil {
		return l, err
	}
	return layer{packed.Bytes(), "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// writeFiles writes files as a tar archive.
func writeFiles(files []file, to io.Writer) error {
	out := tar.NewWriter(to)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: epoch(),
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(f.content); err != nil {
			return err
		}
	}
	return out.Close()
}
