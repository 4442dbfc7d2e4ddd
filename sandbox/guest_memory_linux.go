//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pageSize = 4096
	// reservedMemory is address space, not memory: the largest linear memory a call may ask for, with the image.
	reservedMemory = 2 << 30
	// sparePages is how many unchanged pages may stay private between two calls. To compare such a page costs less than
	// the page fault that follows when it was given up too early.
	sparePages = 256
)

// guestMemory is all memory of the one interpreter of this process: a private mapping of the image, which the kernel
// copies page by page as the interpreter writes, and what it grew by. It belongs to the goroutine that runs calls.
type guestMemory struct {
	base    unsafe.Pointer
	size    uint64 // bytes the guest may use now
	limit   uint64 // bytes it may grow to
	image   []byte // the image, read-only, shared
	file    *os.File
	pagemap *os.File
	regions [512]pageRegion

	// The private pages as they were last seen, and the number of page faults of the process before that.
	private []int
	faults  int64
	scanned bool
}

func newGuestMemory() (*guestMemory, error) {
	base, err := unix.MmapPtr(-1, 0, nil, reservedMemory, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve address space for the interpreter: %w", err)
	}
	m := &guestMemory{base: base, limit: reservedMemory}
	// Without it every call drops all private pages: slower, just as clean.
	if m.pagemap, err = os.Open("/proc/self/pagemap"); err != nil {
		m.pagemap = nil
	}
	return m, nil
}

// Reallocate implements experimental.LinearMemory; nil is the guest's "no more memory".
func (m *guestMemory) Reallocate(size uint64) []byte {
	if size > m.limit || size > reservedMemory {
		return nil
	}
	if size > m.size {
		grown := unsafe.Slice((*byte)(unsafe.Add(m.base, m.size)), size-m.size)
		if err := unix.Mprotect(grown, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
	}
	m.size = size
	return unsafe.Slice((*byte)(m.base), size)
}

// Free implements experimental.LinearMemory. The next instance uses the same addresses, so only the contents go.
func (m *guestMemory) Free() {
	m.size, m.scanned = 0, false
	// The mapping is replaced as a whole by the next instance; that this one fails would show there.
	_, _ = unix.MmapPtr(-1, 0, m.base, reservedMemory, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
}

// adopt makes the first length bytes of file the image.
func (m *guestMemory) adopt(file *os.File, length int) error {
	image, err := unix.Mmap(int(file.Fd()), 0, length, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the interpreter's image: %w", err)
	}
	m.image, m.file = image, file
	return nil
}

// attach puts the image under a fresh instance, whatever the instance had written.
func (m *guestMemory) attach() error {
	m.scanned = false
	_, err := unix.MmapPtr(int(m.file.Fd()), 0, m.base, uintptr(len(m.image)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map the interpreter's image: %w", err)
	}
	return nil
}

// restore undoes what a call wrote inside the image, and lays l over it: each page that is private to this process gets
// its bytes back. Pages that calls have not written again for a while are given up together, so that one greedy call
// costs the next ones nothing.
func (m *guestMemory) restore(l *layer) error {
	live := unsafe.Slice((*byte)(m.base), len(m.image))
	private, err := m.privatePages()
	next, changed := 0, 0
	for _, at := range private {
		for ; next < l.length() && l.at[next] < at; next++ {
			copy(live[l.at[next]:], l.page(next))
		}
		first := m.image[at : at+pageSize]
		if next < l.length() && l.at[next] == at {
			first = l.page(next)
			next++
		}
		if page := live[at : at+pageSize]; !bytes.Equal(page, first) {
			changed++
			copy(page, first)
		}
	}
	if err != nil || len(private) > 2*changed+sparePages {
		m.scanned = false
		if err := unix.Madvise(live, unix.MADV_DONTNEED); err != nil {
			return err
		}
		l.lay(live)
		return nil
	}
	for ; next < l.length(); next++ {
		copy(live[l.at[next]:], l.page(next))
	}
	return nil
}

// layer returns what differs from the image now.
func (m *guestMemory) layer() *layer {
	live := unsafe.Slice((*byte)(m.base), len(m.image))
	l := &layer{}
	private, err := m.privatePages()
	if err != nil {
		for at := 0; at < len(live); at += pageSize {
			l.addPage(at, live, m.image)
		}
	}
	for _, at := range private {
		l.addPage(at, live, m.image)
	}
	return l
}

// privatePages returns the offsets of the pages that the kernel has copied for this process. A page becomes private by
// a page fault only, so where the process has had none since the last time, the answer is the same.
func (m *guestMemory) privatePages() ([]int, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return nil, err
	}
	faults := usage.Minflt + usage.Majflt
	if m.scanned && faults == m.faults {
		return m.private, nil
	}
	m.private, m.scanned = m.private[:0], false
	err := m.eachPrivate(func(at, length int) {
		for end := at + length; at < end; at += pageSize {
			m.private = append(m.private, at)
		}
	})
	if err != nil {
		return nil, err
	}
	m.faults, m.scanned = faults, true
	return m.private, nil
}

// eachPrivate calls f with each run of pages that the kernel has copied for this process since the image was attached.
// Kernels before 6.7 cannot tell; then, as without /proc, there is an error and the caller drops every page.
func (m *guestMemory) eachPrivate(f func(at, length int)) error {
	if m.pagemap == nil {
		return errors.ErrUnsupported
	}
	const ofFile, present, swapped = 1 << 2, 1 << 3, 1 << 4
	start, end := uint64(uintptr(m.base)), uint64(uintptr(m.base))+uint64(len(m.image))
	for at := start; at < end; {
		arg := pagemapScan{
			size: uint64(unsafe.Sizeof(pagemapScan{})), start: at, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&m.regions[0]))), vecLen: uint64(len(m.regions)),
			inverted: ofFile, mask: ofFile, anyOf: present | swapped, returned: present,
		}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, m.pagemap.Fd(), pagemapScanCall, uintptr(unsafe.Pointer(&arg)))
		if errno != 0 {
			return errno
		}
		for _, r := range m.regions[:n] {
			f(int(r.start-start), int(r.end-r.start))
		}
		at = arg.walkEnd
	}
	return nil
}

// shrink gives back what a call grew by; what the next one finds there is zero.
func (m *guestMemory) shrink() error {
	if m.size == uint64(len(m.image)) {
		return nil
	}
	_, err := unix.MmapPtr(-1, 0, unsafe.Add(m.base, len(m.image)), uintptr(m.size)-uintptr(len(m.image)), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("give back memory of the interpreter: %w", err)
	}
	m.size = uint64(len(m.image))
	return nil
}

// pagemapScanCall is PAGEMAP_SCAN.
const pagemapScanCall = 0xc0606610

// pagemapScan and pageRegion are struct pm_scan_arg and struct page_region of the kernel.
type pagemapScan struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, mask, anyOf, returned                         uint64
}

type pageRegion struct{ start, end, categories uint64 }

// tempImage makes a file for an image that is not kept: it has no name and goes with the process.
func tempImage() (*os.File, error) {
	fd, err := unix.MemfdCreate("image", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make room for the interpreter's image: %w", err)
	}
	return os.NewFile(uintptr(fd), "image"), nil
}
