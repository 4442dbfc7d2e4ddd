package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// Taker takes what a backup holds, in the order in which it stands there.
type Taker interface {
	// Blob takes a large value, which is named WORKSPACE/NAME.
	Blob(name string, size int64, r io.Reader) error
	// File takes a file of a workspace, which is named WORKSPACE/PATH, or a directory, whose name ends with a slash.
	File(name string, size int64, r io.Reader) error
	// Row takes a row of a table.
	Row(table string, columns []string, values []any) error
}

// nobody takes everything and keeps nothing.
type nobody struct{}

// Blob implements [Taker].
func (nobody) Blob(_ string, _ int64, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// File implements [Taker].
func (n nobody) File(name string, size int64, r io.Reader) error { return n.Blob(name, size, r) }

// Row implements [Taker].
func (nobody) Row(string, []string, []any) error { return nil }

// Check reads a backup from its beginning to its end and says what it holds. One that is damaged, cut off, or of a format that is not known
// is refused.
func Check(ctx context.Context, r io.Reader) (Contents, error) { return Read(ctx, r, nobody{}) }

// Read hands over what a backup holds. It refuses as [Check] does, though perhaps late: check a backup before you act on what it says.
func Read(ctx context.Context, r io.Reader, to Taker) (c Contents, err error) {
	in := &reader{ctx: ctx, in: tar.NewReader(bufio.NewReaderSize(r, 64<<10)), sum: sha256.New(), to: to,
		have: Contents{Tables: map[string]int64{}}}
	for {
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		h, err := in.in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return c, damaged("its end is missing", nil)
		case err != nil:
			return c, damaged("it cannot be read further", err)
		case in.have.Entries == 0 && h.Name != headName:
			return c, damaged("it does not begin as one", nil)
		case h.Name == endName:
			return in.end()
		}
		if err := in.entry(h); err != nil {
			return c, err
		}
	}
}

// reader is a backup that is being read.
type reader struct {
	ctx  context.Context
	in   *tar.Reader
	sum  hash.Hash
	to   Taker
	have Contents
}

// maxHead bounds what is read of a head or an end.
const maxHead = 16 << 20

func (r *reader) entry(h *tar.Header) error {
	r.have.Entries++
	sumHeader(r.sum, h.Name, h.Size)
	content := &entryReader{in: io.TeeReader(r.in, r.sum)}
	switch {
	case h.Name == headName:
		text, err := io.ReadAll(io.LimitReader(content, maxHead))
		if err != nil {
			return content.instead(err)
		}
		if err := payload.Read(text, &r.have.Head); err != nil {
			return damaged("what it says of itself cannot be read", err)
		}
		if r.have.Format > Format {
			return fault.Newf(fault.Unsupported, "the backup has format %d and this program knows formats up to %d: it was made by a newer one, tandem %s; use that", r.have.Format, Format, r.have.Program)
		}
	case strings.HasPrefix(h.Name, blobsDir):
		r.have.Blobs, r.have.BlobBytes = r.have.Blobs+1, r.have.BlobBytes+h.Size
		if err := r.to.Blob(strings.TrimPrefix(h.Name, blobsDir), h.Size, content); err != nil {
			return content.instead(err)
		}
	case strings.HasPrefix(h.Name, filesDir):
		r.have.Files, r.have.FileBytes = r.have.Files+1, r.have.FileBytes+h.Size
		if err := r.to.File(strings.TrimPrefix(h.Name, filesDir), h.Size, content); err != nil {
			return content.instead(err)
		}
	case strings.HasPrefix(h.Name, tablesDir):
		_, table, ok := strings.Cut(h.Name, "-")
		if !ok {
			return damaged(fmt.Sprintf("it has an entry %q", h.Name), nil)
		}
		if err := r.chunk(table, content); err != nil {
			return content.instead(err)
		}
	default:
		return damaged(fmt.Sprintf("it has an entry %q", h.Name), nil)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return content.instead(err)
	}
	return nil
}

// entryReader remembers that an entry could not be read, no matter who read it.
type entryReader struct {
	in  io.Reader
	err error
}

// Read implements [io.Reader].
func (r *entryReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// instead is the error of the file, if it has one, rather than what came of it.
func (r *entryReader) instead(err error) error {
	if r.err != nil {
		return damaged("it cannot be read further", r.err)
	}
	return err
}

// chunk hands over rows of a table.
func (r *reader) chunk(table string, packed io.Reader) error {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return damaged("rows of table "+table+" cannot be unpacked", err)
	}
	in := bufio.NewReader(unpacked)
	count, err := binary.ReadUvarint(in)
	if err != nil || count == 0 || count > maxColumns {
		return damaged("rows of table "+table+" have no columns", err)
	}
	columns, values := make([]string, count), make([]any, count)
	for i := range columns {
		v, err := readValue(in)
		name, ok := v.(string)
		if err != nil || !ok {
			return damaged("the columns of table "+table+" cannot be read", err)
		}
		columns[i] = name
	}
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		for i := range values {
			if values[i], err = readValue(in); err != nil {
				return damaged("a row of table "+table+" cannot be read", err)
			}
		}
		r.have.Tables[table]++
		if err := r.to.Row(table, columns, values); err != nil {
			return err
		}
	}
}

// maxColumns is more than any table has.
const maxColumns = 1000

func readValue(in *bufio.Reader) (any, error) {
	tag, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	switch tag {
	case tagNull:
		return nil, nil
	case tagInt:
		return binary.ReadVarint(in)
	case tagFloat:
		var b [8]byte
		_, err := io.ReadFull(in, b[:])
		return math.Float64frombits(binary.BigEndian.Uint64(b[:])), err
	case tagText, tagBytes:
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		// The buffer grows with what is really there: the size may be damaged.
		var b bytes.Buffer
		if n, err := io.CopyN(&b, in, int64(min(size, math.MaxInt64))); err != nil {
			return nil, fmt.Errorf("%d of %d bytes: %w", n, size, err)
		}
		if tag == tagText {
			return b.String(), nil
		}
		if b.Len() == 0 {
			return []byte{}, nil
		}
		return b.Bytes(), nil
	}
	return nil, fmt.Errorf("a value of an unknown kind %d", tag)
}

// end compares what was read with what should have been there.
func (r *reader) end() (Contents, error) {
	text, err := io.ReadAll(io.LimitReader(r.in, maxHead))
	if err != nil {
		return r.have, damaged("its end cannot be read", err)
	}
	var said Contents
	if err := payload.Read(text, &said); err != nil {
		return r.have, damaged("its end cannot be read", err)
	}
	maps.DeleteFunc(said.Tables, func(table string, rows int64) bool { _, has := r.have.Tables[table]; return rows == 0 && !has })
	switch {
	case said.Sum != hex.EncodeToString(r.sum.Sum(nil)):
		return r.have, damaged("its sum is another than when it was made", nil)
	case said.Entries != r.have.Entries, said.Blobs != r.have.Blobs, said.BlobBytes != r.have.BlobBytes,
		said.Files != r.have.Files, said.FileBytes != r.have.FileBytes, !maps.Equal(said.Tables, r.have.Tables):
		return r.have, damaged("it does not hold what it says", nil)
	}
	return said, nil
}
