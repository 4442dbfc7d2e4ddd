// Package archive is the file that a backup is: rows of tables and large values, with a sum over all of it at the end. The file is a
// plain tar archive, so that other programs can look into it.
//
//	backup.json            what kind of file this is
//	blobs/WORKSPACE/NAME   a large value, or the list of its parts
//	files/WORKSPACE/PATH   a file of a workspace, or a directory
//	tables/NUMBER-NAME     rows of a table, compressed with gzip; a large table has many
//	end.json               what there should be, and the sum
//
// It does not know any database: a store hands over rows of plain values and takes them back. Package backup and what reads and writes the
// tables of a store import it.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"tandem/fault"
)

// Format is the version of the file format that is written.
const Format = 1

// Names of the entries.
const (
	headName  = "backup.json"
	endName   = "end.json"
	blobsDir  = "blobs/"
	filesDir  = "files/"
	tablesDir = "tables/"
)

// Head is what a backup says of itself at its beginning.
type Head struct {
	Format int `json:"format"`
	// Store is the kind of database the rows are of, Program the version of the program that wrote the file.
	Store   string `json:"store"`
	Program string `json:"program"`
	// Began is when the backup began.
	Began time.Time `json:"began"`
}

// Contents is what a backup holds. It stands at the end of the file.
type Contents struct {
	Head
	// Version is that of the tables, Taken when they were as they are in the backup.
	Version int64     `json:"version"`
	Taken   time.Time `json:"taken"`
	// Tables says how many rows there are of each table.
	Tables map[string]int64 `json:"tables"`
	// Blobs is how many large values there are, and BlobBytes what they hold.
	Blobs     int64 `json:"blobs"`
	BlobBytes int64 `json:"blob_bytes"`
	// Files is how many files and directories of workspaces there are, and FileBytes what they hold.
	Files     int64 `json:"files"`
	FileBytes int64 `json:"file_bytes"`
	// Damaged are large values that did not hold what their name says when they were read.
	Damaged []string `json:"damaged,omitempty"`
	// Gone are large values that were removed while they were read: the first entries with their names hold no values. They are
	// counted all the same.
	Gone []string `json:"gone,omitempty"`
	// AsFound are databases among the files of workspaces that could not be copied as they are at one moment. Their files were
	// copied one after the other, with those of their logs, and may not fit each other.
	AsFound []string `json:"as_found,omitempty"`
	// Keys are the ids of the master keys that the credentials are sealed with.
	Keys []string `json:"keys,omitempty"`
	// Entries is how many entries there are before the end, Sum the SHA-256 of their names, sizes and contents.
	Entries int64  `json:"entries"`
	Sum     string `json:"sum"`
}

// Moment is what rows are of.
type Moment struct {
	// Version is that of the tables, Taken when they were so.
	Version int64
	Taken   time.Time
	// Keys are the ids of the master keys that credentials are sealed with.
	Keys []string
}

// chunkSize is how many bytes of rows are kept together. One row may be longer.
const chunkSize = 1 << 20

// Writer writes a backup. Tables come one after the other.
type Writer struct {
	out  *tar.Writer
	sum  hash.Hash
	have Contents

	table   string
	columns []string
	rows    []byte
	packed  bytes.Buffer
	gzip    *gzip.Writer
}

// NewWriter begins a backup.
func NewWriter(to io.Writer, head Head) (*Writer, error) {
	head.Format = Format
	w := &Writer{out: tar.NewWriter(to), sum: sha256.New(), have: Contents{Head: head, Tables: map[string]int64{}}}
	var err error
	if w.gzip, err = gzip.NewWriterLevel(nil, gzip.BestSpeed); err != nil {
		return nil, err
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return w, w.entry(headName, text)
}

// header begins an entry.
func (w *Writer) header(name string, size int64) error {
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, ModTime: w.have.Began}
	if strings.HasSuffix(name, "/") {
		h.Mode, h.Typeflag = 0o700, tar.TypeDir
	}
	if err := w.out.WriteHeader(h); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	w.have.Entries++
	sumHeader(w.sum, name, size)
	return nil
}

func sumHeader(sum hash.Hash, name string, size int64) {
	sum.Write(fmt.Appendf(nil, "%s\n%d\n", name, size)) // a hash takes everything
}

func (w *Writer) entry(name string, content []byte) error {
	if err := w.header(name, int64(len(content))); err != nil {
		return err
	}
	w.sum.Write(content)
	if _, err := w.out.Write(content); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Blob writes a large value of so many bytes. A value that does not hold what its name says is kept as it is, and noted.
func (w *Writer) Blob(name string, size int64, r io.Reader) error {
	own := NewNamed(name)
	if err := w.copy(blobsDir+name, size, io.TeeReader(r, own)); err != nil {
		return err
	}
	w.have.Blobs, w.have.BlobBytes = w.have.Blobs+1, w.have.BlobBytes+size
	if !own.Holds() {
		w.have.Damaged = append(w.have.Damaged, name)
	}
	return nil
}

// Damaged lists the values that did not hold what their name says.
func (w *Writer) Damaged() []string { return slices.Clone(w.have.Damaged) }

// NoteGone notes that a value did not hold what its name says because it was being removed: it is not one that is damaged.
func (w *Writer) NoteGone(name string) {
	w.have.Damaged = slices.DeleteFunc(w.have.Damaged, func(n string) bool { return n == name })
	w.have.Gone = append(w.have.Gone, name)
}

// File writes a file of a workspace of so many bytes, named WORKSPACE/PATH; a name that ends with a slash is a directory's.
func (w *Writer) File(name string, size int64, r io.Reader) error {
	if err := w.copy(filesDir+name, size, r); err != nil {
		return err
	}
	w.have.Files, w.have.FileBytes = w.have.Files+1, w.have.FileBytes+size
	return nil
}

// NoteAsFound notes that the files of a database were copied one after the other.
func (w *Writer) NoteAsFound(name string) { w.have.AsFound = append(w.have.AsFound, name) }

// copy writes an entry.
func (w *Writer) copy(name string, size int64, r io.Reader) error {
	if err := w.header(name, size); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(w.out, w.sum), io.LimitReader(r, size))
	if err == nil && n < size {
		err = fmt.Errorf("it has become shorter meanwhile: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	return nil
}

// Named compares what is written to it with the name of a value.
type Named struct {
	base string
	sum  hash.Hash
	zero bool
}

// NewNamed begins to compare. The name may have a directory in front.
func NewNamed(name string) *Named {
	return &Named{base: name[strings.LastIndexByte(name, '/')+1:], sum: sha256.New()}
}

// Write implements [io.Writer].
func (n *Named) Write(b []byte) (int, error) {
	n.zero = n.zero || bytes.IndexByte(b, 0) >= 0
	return n.sum.Write(b)
}

// Holds says whether a value has the content that its name is made of. A list of parts has the name of what the parts make; it is
// text, so that one with zeros was overwritten.
func (n *Named) Holds() bool {
	if strings.Contains(n.base, ".") {
		return !n.zero
	}
	return n.base == hex.EncodeToString(n.sum.Sum(nil))
}

// Table begins a table. What is between two calls are its rows.
func (w *Writer) Table(name string, columns []string) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.table, w.columns = name, columns
	w.have.Tables[name] += 0 // also one without rows is there
	return nil
}

// Row writes a row of the table: nil, int64, float64, string or []byte for each column.
func (w *Writer) Row(values []any) error {
	if len(values) != len(w.columns) {
		return fmt.Errorf("a row of table %s has %d values for %d columns", w.table, len(values), len(w.columns))
	}
	if len(w.rows) == 0 {
		for _, c := range w.columns {
			w.rows = appendText(w.rows, tagText, c)
		}
	}
	var err error
	for i, v := range values {
		if w.rows, err = appendValue(w.rows, v); err != nil {
			return fmt.Errorf("column %s of table %s: %w", w.columns[i], w.table, err)
		}
	}
	w.have.Tables[w.table]++
	if len(w.rows) >= chunkSize {
		return w.flush()
	}
	return nil
}

// flush writes the rows that are there.
func (w *Writer) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	w.packed.Reset()
	w.gzip.Reset(&w.packed)
	_, err := w.gzip.Write(binary.AppendUvarint(nil, uint64(len(w.columns))))
	if err == nil {
		_, err = w.gzip.Write(w.rows)
	}
	if err = errors.Join(err, w.gzip.Close()); err != nil {
		return fmt.Errorf("pack rows of table %s: %w", w.table, err)
	}
	w.rows = w.rows[:0]
	return w.entry(fmt.Sprintf("%s%08d-%s", tablesDir, w.have.Entries, w.table), w.packed.Bytes())
}

// End ends the backup: it is whole from then on. The caller says of the contents which version they have, when they were taken
// and which keys they need; the rest is known.
func (w *Writer) End(version int64, taken time.Time, keys []string) (Contents, error) {
	if err := w.flush(); err != nil {
		return w.have, err
	}
	w.have.Version, w.have.Taken, w.have.Keys = version, taken, keys
	w.have.Sum = hex.EncodeToString(w.sum.Sum(nil))
	text, err := json.MarshalIndent(w.have, "", "  ")
	if err != nil {
		return w.have, err
	}
	have := w.have
	return have, errors.Join(w.entry(endName, text), w.out.Close())
}

// Tags of values.
const (
	tagNull byte = iota
	tagInt
	tagFloat
	tagText
	tagBytes
)

func appendText[T string | []byte](out []byte, tag byte, v T) []byte {
	return append(binary.AppendUvarint(append(out, tag), uint64(len(v))), v...)
}

func appendValue(out []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(out, tagNull), nil
	case int64:
		return binary.AppendVarint(append(out, tagInt), v), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(out, tagFloat), math.Float64bits(v)), nil
	case string:
		return appendText(out, tagText, v), nil
	case []byte:
		return appendText(out, tagBytes, v), nil
	}
	return out, fmt.Errorf("a backup cannot hold a %T", v)
}

// damaged is the refusal of a file that is not a whole backup.
func damaged(how string, cause error) error {
	return fault.Newf(fault.Invalid, "this is not a whole backup: %s; use another copy of it, or an earlier backup", how).WithCause(cause)
}
