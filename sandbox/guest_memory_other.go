//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	"io"
	"os"
	"unsafe"
)

const (
	pageSize = 4096
	// reservedMemory is address space, not memory: 2 GiB, and half of that where addresses have 32 bits.
	reservedMemory = 1 << (30 + ^uint(0)>>63)
)

// guestMemory is all memory of the one interpreter of this process. Where the kernel cannot tell which pages a call has
// written, the whole image is copied back: as clean as elsewhere, and slower by some milliseconds.
type guestMemory struct {
	all         []byte
	base        unsafe.Pointer
	size, limit uint64
	image       []byte
}

func newGuestMemory() (*guestMemory, error) {
	all := make([]byte, reservedMemory) // address space until it is touched
	return &guestMemory{all: all, base: unsafe.Pointer(&all[0]), limit: reservedMemory}, nil
}

// Reallocate implements experimental.LinearMemory; nil is the guest's "no more memory".
func (m *guestMemory) Reallocate(size uint64) []byte {
	if size > m.limit || size > reservedMemory {
		return nil
	}
	m.size = size
	return m.all[:size]
}

// Free implements experimental.LinearMemory. The next instance uses the same addresses, so only the contents go.
func (m *guestMemory) Free() {
	clear(m.all[:m.size])
	m.size = 0
}

// adopt makes the first length bytes of file the image.
func (m *guestMemory) adopt(file *os.File, length int) error {
	m.image = make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, int64(length)), m.image); err != nil {
		return fmt.Errorf("read the interpreter's image: %w", err)
	}
	return file.Close()
}

func (m *guestMemory) attach() error { return m.restore(nil) }

// restore puts the image back and lays l over it.
func (m *guestMemory) restore(l *layer) error {
	copy(m.all, m.image)
	l.lay(m.all)
	return nil
}

// layer returns what differs from the image now.
func (m *guestMemory) layer() *layer {
	l := &layer{}
	for at := 0; at < len(m.image); at += pageSize {
		l.add(at, m.all, m.image)
	}
	return l
}

func (m *guestMemory) shrink() error {
	clear(m.all[len(m.image):m.size])
	m.size = uint64(len(m.image))
	return nil
}

func tempImage() (*os.File, error) {
	file, err := os.CreateTemp("", "tandem-*.image")
	if err != nil {
		return nil, fmt.Errorf("make room for the interpreter's image: %w", err)
	}
	// Where an open file cannot be removed it stays behind in the temporary directory.
	_ = os.Remove(file.Name())
	return file, nil
}
