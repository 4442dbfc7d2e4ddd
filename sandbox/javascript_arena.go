//go:build !386 && !arm && !mips && !mipsle

package sandbox

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// arena is the allocator under QuickJS. All that it hands out, and all that it knows itself, lies in one guestMemory,
// so putting that memory back puts the whole engine back. The first page holds the end of what was handed out and the
// heads of the free lists; a block has its class in the 16 bytes before it.
type arena struct {
	memory *guestMemory
	// refused says that the limit of the call was reached; the engine then throws its out-of-memory error.
	refused bool
}

const (
	arenaHeader  = 16
	arenaStart   = pageSize
	smallClasses = 64   // 16, 32 … 1024 bytes
	smallMost    = 1024 // then four classes to every doubling
	arenaStep    = 1 << 16
)

func newArena() (*arena, error) {
	memory, err := newGuestMemory()
	if err != nil {
		return nil, err
	}
	if memory.Reallocate(arenaStep) == nil {
		return nil, fmt.Errorf("no memory for the interpreter's first %d bytes", arenaStep)
	}
	a := &arena{memory: memory}
	*a.end() = arenaStart
	return a, nil
}

func (a *arena) at(offset uint64) unsafe.Pointer { return unsafe.Add(a.memory.base, offset) }

// end is the offset of the first byte never handed out.
func (a *arena) end() *uint64 { return (*uint64)(a.at(0)) }

// free is the head of a class's list: the offset of a block whose first bytes hold the next, or 0.
func (a *arena) free(class uint64) *uint64 { return (*uint64)(a.at(8 + 8*class)) }

// classOf returns the class of a size and how many bytes blocks of the class have.
func classOf(size uint64) (class, room uint64) {
	if size <= smallMost {
		class = (max(size, 1) - 1) / 16
		return class, (class + 1) * 16
	}
	// The step is a quarter of the power of two below size.
	shift := uint64(bits.Len64(size-1)) - 3
	step := (size - 1) >> shift // 4 to 7
	return smallClasses + (shift-8)*4 + step - 4, (step + 1) << shift
}

func (a *arena) malloc(size uint64) uintptr {
	class, room := classOf(size)
	if head := a.free(class); *head != 0 {
		block := *head
		*head = *(*uint64)(a.at(block))
		return uintptr(a.at(block))
	}
	end := a.end()
	block := *end + arenaHeader
	if !a.reach(block + room) {
		return 0
	}
	*end = block + room
	*(*uint64)(a.at(block - arenaHeader + 8)) = class
	return uintptr(a.at(block))
}

// reach makes the first n bytes usable.
func (a *arena) reach(n uint64) bool {
	if n <= a.memory.size {
		return true
	}
	if n > reservedMemory || a.memory.Reallocate((n+arenaStep-1)&^(arenaStep-1)) == nil {
		a.refused = true
		return false
	}
	return true
}

func (a *arena) release(p uintptr) {
	if p == 0 {
		return
	}
	block := uint64(p - uintptr(a.memory.base))
	head := a.free(*(*uint64)(a.at(block - 8)))
	*(*uint64)(a.at(block)) = *head
	*head = block
}

func (a *arena) realloc(p uintptr, size uint64) uintptr {
	if p == 0 {
		return a.malloc(size)
	}
	if size == 0 {
		a.release(p)
		return 0
	}
	block := uint64(p - uintptr(a.memory.base))
	old := a.room(p)
	if size <= old {
		return p
	}
	if class, room := classOf(size); block+old == *a.end() {
		// The last block grows where it is: what is built piece by piece does not leave a trail of copies.
		if !a.reach(block + room) {
			return 0
		}
		*a.end() = block + room
		*(*uint64)(a.at(block - 8)) = class
		return p
	}
	q := a.malloc(size)
	if q != 0 {
		to := a.at(uint64(q - uintptr(a.memory.base)))
		copy(unsafe.Slice((*byte)(to), old), unsafe.Slice((*byte)(a.at(block)), old))
		a.release(p)
	}
	return q
}

// room returns how many bytes a block has.
func (a *arena) room(p uintptr) uint64 {
	class := *(*uint64)(a.at(uint64(p-uintptr(a.memory.base)) - 8))
	if class < smallClasses {
		return (class + 1) * 16
	}
	class -= smallClasses
	return (class%4 + 5) << (class/4 + 8)
}
