package host

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"tandem/engine"
)

// Ref names an execution and the workspace it belongs to.
type Ref struct{ Workspace, Execution string }

// Chunk is output of a running attempt: text that is added to the text before, or an object that replaces the object before.
type Chunk struct {
	engine.Attempt
	Text string
	// Data is the object; nil for text.
	Data json.RawMessage
	// At is where Text begins, in bytes, if that is after all that is known: for output that another process has made.
	At int64
}

// Output is a piece of the output of an attempt, or, as a snapshot, all of it.
type Output struct {
	engine.Attempt
	// Offset is where Text begins in the text of the attempt, in bytes.
	Offset int64
	Text   string
	Data   json.RawMessage
}

// Logged says that lines of a running attempt were stored.
type Logged struct {
	engine.Attempt
	Lines int
}

// Notice is one thing that subscribers get: a row that is on disk, a piece of output, or lines that were stored. Exactly one is set. It is
// shared by all subscribers and never changed.
type Notice struct {
	Row    *Row
	Output *Output
	Logged *Logged
}

// Hub notifies subscribers of what happens to executions, in this process and from memory. A subscriber reads the journal
// first, and again whenever the hub says that it was too slow. Publishing never waits for a subscriber.
type Hub struct {
	seed   maphash.Seed
	shards [hubShards]hubShard
}

type hubShard struct {
	mu     sync.Mutex
	topics map[Ref]*topic
	// order are the attempts whose output is held, oldest first, and some that have ended; it is tidied when it is longer than limit.
	order []held
	limit int
	// recent are executions that have ended.
	recent recent
}

// held is an attempt whose output was held when it was noted; it may have ended since.
type held struct {
	topic *topic
	id    engine.Attempt
}

// What a hub keeps. An execution without subscribers and without output costs nothing.
const (
	hubShards = 64
	// A topic's ring keeps this many notices and about this many bytes; subscribers that need older ones read the journal.
	ringNotices = 1024
	ringBytes   = 2 << 20
	// MaxText is how much of an attempt's text is kept: the end of it.
	MaxText = 1 << 20
	// fewReaders are woken by the publisher; more have a goroutine that does it.
	fewReaders = 4
	// maxHeld bounds the attempts per shard whose output is held. Output ends with its attempt; the bound is for what comes
	// late from an attempt that has ended already.
	maxHeld = 1024
)

// topic is an execution that has subscribers or unfinished output. Fields are guarded by mu. A topic that is dead has left
// its shard: code that still holds it looks the execution up again.
type topic struct {
	mu   sync.RWMutex
	dead bool

	// ring are the last notices; the first of them has the number first.
	ring  []Notice
	first uint64
	bytes int

	outputs map[engine.ActivationID]*output

	readers int
	// changed is closed when there is something new, and made again by the next that waits.
	changed chan struct{}
	// poke wakes the goroutine that closes changed, so that publishing does not slow down with the number of readers. Without it,
	// while the readers are few, the publisher closes changed.
	poke chan struct{}
	stop chan struct{}

	shared map[any]any
}

// output is the output of an attempt so far.
type output struct {
	id engine.Attempt
	// text is the end of the text; the whole of it is end bytes long.
	text []byte
	end  int64
	data json.RawMessage
	// rest is the beginning of a character whose end has not come yet.
	rest string
}

// NewHub returns a hub without subscribers.
func NewHub() *Hub {
	h := &Hub{seed: maphash.MakeSeed()}
	for i := range h.shards {
		h.shards[i].topics = map[Ref]*topic{}
	}
	return h
}

func (h *Hub) shard(ref Ref) *hubShard {
	return &h.shards[maphash.Comparable(h.seed, ref)%hubShards]
}

// find returns the topic of an execution, locked; nil when there is none and none is to be made.
func (h *Hub) find(ref Ref, create bool) *topic {
	s := h.shard(ref)
	for {
		s.mu.Lock()
		t := s.topics[ref]
		if t == nil && create {
			t = &topic{}
			s.topics[ref] = t
		}
		s.mu.Unlock()
		if t == nil {
			return nil
		}
		t.mu.Lock()
		if !t.dead {
			return t
		}
		t.mu.Unlock()
	}
}

// release unlocks a topic, and removes it if it is not needed.
func (h *Hub) release(ref Ref, t *topic) {
	unused := t.readers == 0 && len(t.outputs) == 0
	t.mu.Unlock()
	if !unused {
		return
	}
	s := h.shard(ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readers == 0 && len(t.outputs) == 0 && !t.dead {
		t.dead = true
		delete(s.topics, ref)
	}
}

// Publish notifies subscribers of a row that is on disk. The owner of the execution calls it in the order of the rows;
// it is fast and never blocks. The row and what it refers to must not change any more.
func (h *Hub) Publish(ref Ref, row Row) {
	s := h.shard(ref)
	s.mu.Lock()
	s.recent.forget(ref)
	s.mu.Unlock()
	t := h.find(ref, false)
	if t == nil {
		return
	}
	t.forget(&row)
	if t.readers > 0 {
		shared := row
		shared.strip()
		t.addNotice(Notice{Row: &shared}, shared.size())
	}
	h.release(ref, t)
}

// Missed is called when rows may have been written that were not published. Subscribers read the journals again.
func (h *Hub) Missed() {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.recent = recent{changing: s.recent.changing}
		for _, t := range s.topics { // order does not matter: each is told
			t.mu.Lock()
			t.first, t.ring, t.bytes = t.first+uint64(len(t.ring))+1, nil, 0
			t.addNotice(Notice{Logged: &Logged{}}, 0)
			t.mu.Unlock()
		}
		s.mu.Unlock()
	}
}

// strip leaves out the large values, so that a row is the same whether it was published or read.
func (r *Row) strip() {
	r.stripBeside()
	if len(r.Large) == 0 || r.Seq == 1 { // what an execution begins with is needed to read the rest
		return
	}
	r.Values = slices.Clone(r.Values)
	for n := range r.Large { // order does not matter: each is left out
		r.Values[n] = nil
	}
}

func (r *Row) size() int {
	n := 512
	for _, v := range r.Values {
		n += len(v)
	}
	return n
}

// Emit publishes output while it is made. Output of an attempt after that of a later one is dropped.
func (h *Hub) Emit(ref Ref, c Chunk) {
	t := h.find(ref, true)
	o := t.outputs[c.Activation]
	if o != nil && older(c.Attempt, o.id) {
		h.release(ref, t)
		return
	}
	fresh := o == nil || o.id != c.Attempt
	if fresh {
		if t.outputs == nil {
			t.outputs = map[engine.ActivationID]*output{}
		}
		o = &output{id: c.Attempt}
		t.outputs[c.Activation] = o
	}
	piece, ok := o.addChunk(c)
	if ok && t.readers > 0 {
		t.addNotice(Notice{Output: &piece}, 256+len(piece.Text)+len(piece.Data))
	}
	h.release(ref, t)
	if fresh {
		h.note(ref, t, c.Attempt)
	}
}

// Log publishes that lines were stored without a row.
func (h *Hub) Log(ref Ref, l Logged) {
	t := h.find(ref, false)
	if t == nil {
		return
	}
	if t.readers > 0 {
		n := Notice{Logged: &l}
		t.addNotice(n, n.size())
	}
	h.release(ref, t)
}

// older says whether a is an earlier attempt than b.
func older(a, b engine.Attempt) bool {
	if a.Generation != b.Generation {
		return a.Generation < b.Generation
	}
	return a.Attempt < b.Attempt
}

// addChunk adds a chunk and returns what subscribers get; not ok when all of it is the beginning of a character.
func (o *output) addChunk(c Chunk) (Output, bool) {
	if c.At > o.end {
		o.text, o.end, o.rest = nil, c.At, ""
	}
	piece := Output{Attempt: o.id, Offset: o.end}
	if c.Data != nil {
		if len(c.Data) > MaxInline {
			c.Data = Omitted(len(c.Data))
		}
		o.data, piece.Data = c.Data, c.Data
		return piece, true
	}
	text := o.rest + c.Text
	whole := len(text) - partial(text)
	o.rest = strings.Clone(text[whole:])
	piece.Text = strings.ToValidUTF8(text[:whole], "\uFFFD")
	o.end += int64(len(piece.Text))
	o.text = append(o.text, piece.Text...)
	if len(o.text) > 2*MaxText {
		o.text = slices.Clone(tail(o.text))
	}
	return piece, piece.Text != ""
}

// tail is the last MaxText bytes of a text, beginning with a whole character.
func tail(text []byte) []byte {
	if len(text) <= MaxText {
		return text
	}
	text = text[len(text)-MaxText:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// partial is how many bytes at the end of a text are the beginning of a character.
func partial(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Omitted stands for a value of so many bytes that is too large to be sent and has no name to be fetched by.
func Omitted(size int) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"$omitted": true, "size": size})
	if err != nil {
		panic("host: a number cannot be encoded: " + err.Error())
	}
	return raw
}

// note remembers that the output of an attempt is held, and drops the oldest when there are too many.
func (h *Hub) note(ref Ref, t *topic, id engine.Attempt) {
	s := h.shard(ref)
	s.mu.Lock()
	s.order = append(s.order, held{t, id})
	var drop []held
	if len(s.order) > s.limit {
		s.order = slices.DeleteFunc(s.order, func(e held) bool { return !e.holds() })
		if n := len(s.order) - maxHeld; n > 0 {
			drop = slices.Clone(s.order[:n])
			s.order = slices.Delete(s.order, 0, n)
		}
		s.limit = 32 + 2*len(s.order)
	}
	s.mu.Unlock()
	for _, e := range drop {
		e.topic.mu.Lock()
		if o := e.topic.outputs[e.id.Activation]; o != nil && o.id == e.id {
			delete(e.topic.outputs, e.id.Activation)
		}
		e.topic.mu.Unlock()
	}
	if len(drop) > 0 {
		h.sweep(s)
	}
}

func (e held) holds() bool {
	e.topic.mu.RLock()
	defer e.topic.mu.RUnlock()
	o := e.topic.outputs[e.id.Activation]
	return !e.topic.dead && o != nil && o.id == e.id
}

// sweep removes the topics of a shard that are not needed.
func (h *Hub) sweep(s *hubShard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, t := range s.topics { // order does not matter: each is looked at by itself
		t.mu.Lock()
		if t.readers == 0 && len(t.outputs) == 0 {
			t.dead = true
			delete(s.topics, ref)
		}
		t.mu.Unlock()
	}
}

// Ended drops the output of an attempt and those before it. A published row with its end does the same.
func (h *Hub) Ended(ref Ref, a engine.Attempt) {
	if t := h.find(ref, false); t != nil {
		t.ended(a)
		h.release(ref, t)
	}
}

func (t *topic) ended(a engine.Attempt) {
	if o := t.outputs[a.Activation]; o != nil && !older(a, o.id) {
		delete(t.outputs, a.Activation)
	}
}

// forget drops the output of attempts that a row ends.
func (t *topic) forget(row *Row) {
	if len(t.outputs) == 0 {
		return
	}
	for _, fact := range row.Facts {
		switch f := fact.(type) {
		case engine.NodeCompleted:
			t.ended(f.Attempt)
		case engine.NodeFailed:
			t.ended(f.Attempt)
		}
	}
	for i := range row.Told {
		told := &row.Told[i]
		switch told.What {
		case ToldExecution:
			if told.Status.Final() {
				clear(t.outputs)
			}
		case ToldNode:
			switch told.Node {
			case engine.NodeWaitingInput, engine.NodeRunning: // the attempt goes on, or a later one will have output
			default: // a retry names the next attempt; an end names none, which means all of them
				t.ended(engine.Attempt{Activation: told.Activation, Generation: told.Generation, Attempt: told.Attempt - 1})
			}
		}
	}
}

// addNotice puts a notice into the ring.
func (t *topic) addNotice(n Notice, size int) {
	t.ring = append(t.ring, n)
	t.bytes += size
	// Half of it goes at a time, so that adding stays cheap.
	if len(t.ring) > ringNotices || t.bytes > ringBytes {
		cut := len(t.ring) / 2
		if t.bytes > ringBytes && len(t.ring) == 1 {
			cut = 1
		}
		t.first += uint64(cut)
		t.ring = slices.Clone(t.ring[cut:])
		t.bytes = 0
		for i := range t.ring {
			t.bytes += t.ring[i].size()
		}
	}
	if t.stop == nil {
		if t.changed != nil {
			close(t.changed)
			t.changed = nil
		}
		return
	}
	select {
	case t.poke <- struct{}{}:
	default: // it is awake already
	}
}

func (n *Notice) size() int {
	if n.Row != nil {
		return n.Row.size()
	}
	if n.Logged != nil {
		return 256
	}
	return 256 + len(n.Output.Text) + len(n.Output.Data)
}
