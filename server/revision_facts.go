package server

import "sync"

// revisionKey names a revision of a workflow, or a node of it. A revision never changes, so neither does what was found out about it.
type revisionKey struct {
	workspace, workflow, hash, node string
}

// revisionFacts keeps what was found out about revisions. It is safe for concurrent use.
type revisionFacts[V any] struct {
	mu    sync.Mutex
	known map[revisionKey]V
}

// maxRevisionFacts is how many are kept; more are found out again when they are needed.
const maxRevisionFacts = 1000

func (f *revisionFacts[V]) get(key revisionKey) (V, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fact, known := f.known[key]
	return fact, known
}

func (f *revisionFacts[V]) put(key revisionKey, fact V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxRevisionFacts {
		f.known = map[revisionKey]V{}
	}
	f.known[key] = fact
}
