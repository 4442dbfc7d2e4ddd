package host

import (
	"encoding/json"
	"sync"

	"tandem/engine"
)

// Finished is an execution that has ended, cached so that later requests need not read its journal. It is shared, so the
// view must not be changed. Values are added as they are read.
type Finished struct {
	View  *View
	Start Start
	// Summary is what its reader wants to be kept with the view: something that changes only with a row.
	Summary any

	mu     sync.Mutex
	values map[engine.Ref]json.RawMessage
	size   int
	// answers are what was sent about it, ready to be sent again, and answersSize how many bytes these have. There are few readers that
	// differ.
	answers     []keptAnswer
	answersSize int
}

// keptAnswer is what readers of one kind were sent.
type keptAnswer struct {
	reader Reader
	body   []byte
}

// Reader is what an answer about an execution that has ended depends on besides the execution. It is determined for each request.
type Reader struct {
	// Detail says that the reader may see details for operators.
	Detail bool
	// About describes the execution's workflow as it is now.
	About string
}

// Answer returns the answer that readers like this one were sent, if it is kept. It must not be changed.
func (f *Finished) Answer(reader Reader) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answerTo(reader)
}

// answerTo is Answer for a caller that holds the lock.
func (f *Finished) answerTo(reader Reader) ([]byte, bool) {
	for i := range f.answers {
		if f.answers[i].reader == reader {
			return f.answers[i].body, true
		}
	}
	return nil, false
}

// KeepAnswer keeps what readers like this one are sent, unless it is large. It makes room by dropping answers for others.
func (f *Finished) KeepAnswer(reader Reader, answer []byte) {
	size := len(answer) + len(reader.About)
	if size > maxFinishedAnswers {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.answerTo(reader); there {
		return
	}
	if f.answersSize+size > maxFinishedAnswers {
		f.answers, f.answersSize = nil, 0
	}
	f.answers = append(f.answers, keptAnswer{reader, answer})
	f.answersSize += size
}

// Value returns a value by its reference, if it is in memory.
func (f *Finished) Value(ref engine.Ref) (json.RawMessage, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	value, ok := f.values[ref]
	return value, ok
}

// Add keeps values that were read, as they are shown, as far as there is room. A reference names the same value for ever.
func (f *Finished) Add(values map[engine.Ref]json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ref, value := range values { // order does not matter: what does not fit is read again
		if _, there := f.values[ref]; there || f.size+len(value) > maxFinishedValues {
			continue
		}
		if f.values == nil {
			f.values = map[engine.Ref]json.RawMessage{}
		}
		f.values[ref] = value
		f.size += len(value)
	}
}

// Give is Add for values that the caller does not use any more.
func (f *Finished) Give(values map[engine.Ref]json.RawMessage) {
	size := 0
	for _, value := range values { // order does not matter: a sum
		size += len(value)
	}
	f.mu.Lock()
	fits := f.values == nil && size <= maxFinishedValues
	if fits {
		f.values, f.size = values, size
	}
	f.mu.Unlock()
	if !fits {
		f.Add(values)
	}
}

// What a hub keeps of executions that have ended: at most this many per shard, of workflows that are not larger than this, each
// with so many failures and so many bytes of values and of answers.
const (
	maxFinished        = 16
	maxFinishedNodes   = 64
	maxFinishedErrors  = 8
	maxFinishedValues  = 8 << 10
	maxFinishedAnswers = 16 << 10
)

// recent are the executions of a shard that were asked for lately. The shard's lock guards it.
type recent struct {
	known map[Ref]*Finished
	// order are the ones in known, oldest first, and some that have left it.
	order []Ref
	// reading has what is being read now and may be kept. Publishing a row removes it.
	reading map[Ref]*readMark
	// changing counts the appends to an execution that are about to happen; nothing is kept of it meanwhile.
	changing map[Ref]int
}

// Changing drops what is cached of an execution, and nothing of it is cached until the returned function is called. Call it before a row is
// appended to an execution that has ended: from the moment that the row is on disk the state before it must not be read, although the row
// is published a little later.
func (h *Hub) Changing(ref Ref) (done func()) {
	s := h.shard(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.forget(ref)
	if s.recent.changing == nil {
		s.recent.changing = map[Ref]int{}
	}
	s.recent.changing[ref]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.recent.changing[ref]--; s.recent.changing[ref] == 0 {
			delete(s.recent.changing, ref)
		}
	}
}

// Known returns what is kept of an execution that has ended, if anything is.
func (h *Hub) Known(ref Ref) *Finished {
	s := h.shard(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.known[ref]
}

// readMark stands for one read of an execution.
type readMark struct{ _ byte } // not empty, so that each is another one

// Finished returns what is kept of an execution that has ended. When there is nothing, keep takes what was read from then on and
// returns what is to be used: it is kept if the execution has ended, unless another row has come meanwhile. Keep must be called once,
// without a view if nothing was read.
func (h *Hub) Finished(ref Ref) (known *Finished, keep func(*View, Start, any) *Finished) {
	s := h.shard(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.recent.known[ref]; f != nil {
		return f, nil
	}
	mark := &readMark{}
	if s.recent.changing[ref] == 0 {
		if s.recent.reading == nil {
			s.recent.reading = map[Ref]*readMark{}
		}
		s.recent.reading[ref] = mark
	}
	return nil, func(view *View, start Start, summary any) *Finished {
		f := &Finished{View: view, Start: start, Summary: summary}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.recent.reading[ref] != mark {
			return f
		}
		delete(s.recent.reading, ref)
		if view != nil && view.Status.Final() && len(view.Nodes) <= maxFinishedNodes && len(view.Errors) <= maxFinishedErrors {
			s.recent.put(ref, f)
		}
		return f
	}
}

// forget drops what is kept of an execution, and what is being read.
func (r *recent) forget(ref Ref) {
	delete(r.known, ref)
	delete(r.reading, ref)
}

func (r *recent) put(ref Ref, f *Finished) {
	if r.known == nil {
		r.known = map[Ref]*Finished{}
	}
	if _, there := r.known[ref]; !there {
		r.order = append(r.order, ref)
	}
	r.known[ref] = f
	for len(r.known) > maxFinished || len(r.order) > 2*maxFinished {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}
