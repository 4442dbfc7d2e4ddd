package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// layer is what loading one source has made of the image: the pages that differ. It is taken before any call's input
// was seen, and never changes. The nil layer is the image itself.
type layer struct {
	at    []int // offsets, ascending
	bytes []byte
}

func (l *layer) length() int {
	if l == nil {
		return 0
	}
	return len(l.at)
}

func (l *layer) page(i int) []byte { return l.bytes[i*pageSize : (i+1)*pageSize] }

// lay puts the pages of a layer over an image that has been put back.
func (l *layer) lay(live []byte) {
	for i := range l.length() {
		copy(live[l.at[i]:l.at[i]+pageSize], l.page(i))
	}
}

// addPage takes a page into the layer if it differs from the image. Pages come in ascending order.
func (l *layer) addPage(at int, live, image []byte) {
	if page := live[at : at+pageSize]; !bytes.Equal(page, image[at:at+pageSize]) {
		l.at = append(l.at, at)
		l.bytes = append(l.bytes, page...)
	}
}

// The bounds of what a child keeps of the sources it has run.
const (
	maxPrograms     = 256
	maxProgramBytes = 16 << 20
)

// program is what a child keeps of one source, to run it again.
type program[T any] struct {
	// layer is the memory after loading, or nil where loading is part of every call: because it asked for the time,
	// for randomness or for input, printed, raised, or needed more memory than the image has.
	layer *layer
	kept  T // what the interpreter needs besides
	size  int
	used  uint64
}

// programs are the sources that were used last. They belong to the goroutine that runs calls.
type programs[T any] struct {
	by    map[[32]byte]*program[T]
	size  int
	clock uint64
}

// programKey names a source by all that decides which function is called.
func programKey(q *request) [32]byte {
	h := sha256.New()
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(q.source)))
	h.Write(length[:])
	h.Write(q.source)
	h.Write(q.entry)
	var key [32]byte
	h.Sum(key[:0])
	return key
}

func (p *programs[T]) getProgram(key [32]byte) *program[T] {
	prog := p.by[key]
	if prog != nil {
		p.clock++
		prog.used = p.clock
	}
	return prog
}

// putProgram keeps a program of size bytes beside its layer and gives up those not used for longest.
func (p *programs[T]) putProgram(key [32]byte, prog *program[T], size int) {
	if p.by == nil {
		p.by = make(map[[32]byte]*program[T])
	}
	if l := prog.layer; l != nil {
		size += len(l.bytes)
	}
	prog.size = size
	p.clock++
	prog.used = p.clock
	p.by[key] = prog
	p.size += size
	for len(p.by) > 1 && (len(p.by) > maxPrograms || p.size > maxProgramBytes) {
		oldest := key
		for k, other := range p.by {
			// The order does not matter: the smallest number is looked for, and no two are the same.
			if other.used < p.by[oldest].used {
				oldest = k
			}
		}
		p.size -= p.by[oldest].size
		delete(p.by, oldest)
	}
}
