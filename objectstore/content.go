package objectstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"

	"tandem/fault"
)

// Content is what an object consists of. It can be opened more than once and is the same every time; if it is not, that
// shows.
type Content struct {
	Size int64
	Open func() (io.ReadCloser, error)
}

const (
	// minPart is up to which size content is sent at once, and how long the parts of longer content are.
	minPart = 8 << 20
	// maxParts is how many parts content is cut into at most; services take 10,000 and more.
	maxParts = 9000
)

// PartSize is how long the parts are in which content is sent. Content that is not longer is sent at once.
func PartSize(size int64) int64 {
	part := max(minPart, (size+maxParts-1)/maxParts)
	return (part + 1<<20 - 1) >> 20 << 20
}

// Measured is what is known of content before it is sent.
type Measured struct {
	SHA256 [sha256.Size]byte
	// Parts are at least one; that of empty content is empty.
	Parts []Part
}

// Hex is the SHA-256 as people write it.
func (m *Measured) Hex() string { return hex.EncodeToString(m.SHA256[:]) }

// Part is a stretch of content.
type Part struct {
	Offset, Size int64
	// Sums are those that were asked for, in that order.
	Sums [][]byte
}

// Measure reads content once and computes its SHA-256 and, of every part, the sums asked for. The services compare what
// arrives with them, so that nothing of the content has to be kept while it is sent.
func (c Content) Measure(ctx context.Context, partSize int64, sums ...func() hash.Hash) (m Measured, err error) {
	from, err := c.Open()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	whole := sha256.New()
	buffer := make([]byte, 64<<10)
	for offset := int64(0); offset < c.Size || offset == 0; offset += partSize {
		part := Part{Offset: offset, Size: min(partSize, c.Size-offset)}
		writers := []io.Writer{whole}
		var hashes []hash.Hash
		for _, make := range sums {
			h := make()
			hashes, writers = append(hashes, h), append(writers, h)
		}
		n, err := io.CopyBuffer(io.MultiWriter(writers...), io.LimitReader(&stopping{ctx, from}, part.Size), buffer)
		if err != nil {
			return m, err
		}
		if n < part.Size {
			return m, changed()
		}
		for _, h := range hashes {
			part.Sums = append(part.Sums, h.Sum(nil))
		}
		m.Parts = append(m.Parts, part)
	}
	whole.Sum(m.SHA256[:0])
	return m, nil
}

func changed() error {
	return fault.New(fault.Conflict, "the file became shorter while it was read")
}

// stopping reads until its context ends.
type stopping struct {
	ctx  context.Context
	from io.Reader
}

func (s *stopping) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, fault.New(fault.Canceled, "the reading of the file was stopped").WithCause(context.Cause(s.ctx))
	}
	return s.from.Read(p)
}

// Reader hands content out part by part. It opens the content once if the parts are asked for in their order.
//
// A transport may go on reading a body after its call is over. A part that is over, because it was closed or the next one
// was begun, reads nothing more, so that the parts never mix.
type Reader struct {
	ctx     context.Context
	content Content

	mu      sync.Mutex // held while content is read
	from    io.ReadCloser
	at      int64
	current *section
}

// Reader makes a reader. The caller closes it.
func (c Content) Reader(ctx context.Context) *Reader { return &Reader{ctx: ctx, content: c} }

// Section begins a part and ends the one before. It is read once; seeking in it is possible.
func (r *Reader) Section(offset, size int64) io.ReadSeekCloser {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = &section{reader: r, offset: offset, size: size}
	return r.current
}

// Close ends the last part and closes the content.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
	return r.reset()
}

func (r *Reader) reset() error {
	if r.from == nil {
		return nil
	}
	from := r.from
	r.from, r.at = nil, 0
	return from.Close()
}

// seek brings the content to a place. It belongs to Reader.mu.
func (r *Reader) seek(offset int64) error {
	if r.from != nil && r.at > offset {
		if err := r.reset(); err != nil {
			return err
		}
	}
	if r.from == nil {
		from, err := r.content.Open()
		if err != nil {
			return err
		}
		r.from, r.at = from, 0
	}
	if r.at == offset {
		return nil
	}
	if s, ok := r.from.(io.Seeker); ok {
		at, err := s.Seek(offset, io.SeekStart)
		r.at = at
		return err
	}
	n, err := io.CopyN(io.Discard, &stopping{r.ctx, r.from}, offset-r.at)
	r.at += n
	if err == io.EOF {
		err = changed()
	}
	return err
}

// section is one part. Its fields belong to Reader.mu.
type section struct {
	reader       *Reader
	offset, size int64
	at           int64
}

func (s *section) Read(p []byte) (int, error) {
	r := s.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.current != s:
		return 0, fault.New(fault.Canceled, "this part of the file is no longer sent")
	case s.at >= s.size:
		return 0, io.EOF
	}
	if err := r.seek(s.offset + s.at); err != nil {
		return 0, err
	}
	n, err := (&stopping{r.ctx, r.from}).Read(p[:min(int64(len(p)), s.size-s.at)])
	s.at += int64(n)
	r.at += int64(n)
	if err == io.EOF {
		if err = nil; s.at < s.size {
			err = changed()
		}
	}
	return n, err
}

// Seek moves within the part.
func (s *section) Seek(offset int64, whence int) (int64, error) {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a part")
	}
	s.at = offset
	return offset, nil
}

// Close ends the part. The content stays open for the next one.
func (s *section) Close() error {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	if s.reader.current == s {
		s.reader.current = nil
	}
	return nil
}
