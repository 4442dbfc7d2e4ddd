package hosttest

import (
	"io"
	"sync"
)

// notes are a register in memory.
type notes struct {
	mu   sync.Mutex
	text []byte
}

// fusedNotes are notes as one process sees them: nothing of a dead one reaches them.
type fusedNotes struct {
	*notes
	fuse *Fuse
}

// ReadAt implements io.ReaderAt.
func (n fusedNotes) ReadAt(p []byte, at int64) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at >= int64(len(n.text)) {
		return 0, io.EOF
	}
	count := copy(p, n.text[at:])
	if count < len(p) {
		return count, io.EOF
	}
	return count, nil
}

// WriteAt implements io.WriterAt.
func (n fusedNotes) WriteAt(p []byte, at int64) (int, error) {
	if err := n.fuse.mayRead(); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if end := int(at) + len(p); end > len(n.text) {
		n.text = append(n.text, make([]byte, end-len(n.text))...)
	}
	return copy(n.text[at:], p), nil
}
