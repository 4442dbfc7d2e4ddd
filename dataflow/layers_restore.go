package dataflow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// RestoreLayers makes layers of a snapshot; they read and go on as those it was taken of. It shares no memory with
// data. Data that Snapshot cannot have written is refused with the code internal; the journal, applied from its
// beginning, gives the layers without a snapshot.
func RestoreLayers(data []byte) (*Layers, error) {
	end := len(data) - checksumSize
	marked := bytes.HasPrefix(data, []byte(editedHeader))
	switch {
	case !marked && !bytes.HasPrefix(data, []byte(snapshotHeader)):
		return nil, unreadable("it does not begin like one of this format", 0)
	case end < len(snapshotHeader):
		return nil, unreadable("it ends too early", len(data))
	case binary.BigEndian.Uint32(data[end:]) != crc32.ChecksumIEEE(data[:end]):
		return nil, unreadable("its checksum is wrong", end)
	}
	l := &Layers{root: newScope("", nil), scopes: map[string]*scope{}, about: map[string]json.RawMessage{}}
	r := snapshotReader{data: data[:end], pos: len(snapshotHeader), l: l, ordinals: map[uint64]*result{}, marked: marked}
	r.layers()
	if r.err == nil && r.pos != end {
		r.fail("something follows the data")
	}
	if r.err != nil {
		return nil, r.err
	}
	return l, nil
}

func unreadable(reason string, pos int) *fault.Error {
	return fault.Newf(fault.Internal, "the snapshot of the data cannot be read: %s (byte %d); apply the journal from its beginning", reason, pos)
}

// snapshotReader reads what snapshotWriter wrote. After the first problem everything it reads is empty, so that callers
// look at err only before they follow what they have read.
type snapshotReader struct {
	data    []byte
	pos     int
	err     *fault.Error
	l       *Layers
	results []*result
	scopes  []*scope
	placed  []bool // the scopes that stand among their siblings; the root has none
	// ordinals says whose each ordinal is. An ordinal of two results would leave open which is newer.
	ordinals map[uint64]*result
	// marked says that the format is the one that tells of edits.
	marked bool
}

// marks reads which names were edited.
func (r *snapshotReader) marks() map[string]*edited {
	if !r.marked {
		return nil
	}
	var table map[string]*edited
	r.table(func(name string) {
		n := r.number()
		if !r.expect(n < uint64(len(r.l.edits)), "an edit is meant that was not told") {
			return
		}
		if table == nil {
			table = map[string]*edited{}
		}
		table[name] = r.l.edits[n]
	})
	return table
}

func (r *snapshotReader) fail(reason string) {
	if r.err == nil {
		r.err = unreadable(reason, r.pos)
	}
}

// expect fails unless what was read is as it must be, and says whether all is well so far.
func (r *snapshotReader) expect(ok bool, reason string) bool {
	if !ok {
		r.fail(reason)
	}
	return r.err == nil
}

func (r *snapshotReader) number() uint64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.data[r.pos:])
	if size <= 0 || size > 1 && r.data[r.pos+size-1] == 0 {
		r.fail("a number is broken")
		return 0
	}
	r.pos += size
	return n
}

// count reads how many bytes or entries follow. An entry has a byte at least, so a count is never more than what is left.
func (r *snapshotReader) count() int {
	n := r.number()
	if n > uint64(len(r.data)-r.pos) {
		r.fail("it ends too early")
		return 0
	}
	return int(n)
}

// index reads the index of an iteration, which has nine digits at most.
func (r *snapshotReader) index() int {
	n := r.number()
	if !r.expect(n < 1e9, "an index is too large") {
		return 0
	}
	return int(n)
}

func (r *snapshotReader) flag() bool {
	n := r.number()
	return r.expect(n <= 1, "a flag is neither set nor unset") && n == 1
}

func (r *snapshotReader) text() string {
	n := r.count()
	s := string(r.data[r.pos : r.pos+n])
	r.pos += n
	return s
}

// payload reads normalized JSON. It is checked as what comes from outside, since all readers rely on it.
func (r *snapshotReader) payload() json.RawMessage {
	n := r.count()
	if r.err != nil {
		return nil
	}
	raw := slices.Clone(r.data[r.pos : r.pos+n])
	value, err := payload.Normalize(raw, payload.Limits{})
	if err != nil {
		r.fail("a payload is broken: " + err.Error())
		return nil
	}
	if !r.expect(len(value) == n, "a payload has white space") {
		return nil
	}
	r.pos += n
	return value
}

func (r *snapshotReader) object() json.RawMessage {
	value := r.payload()
	if r.err == nil && value[0] != '{' {
		r.fail("a payload is not an object")
	}
	return value
}

// table calls entry with every key of a table; entry reads the value. It is not called after a problem.
func (r *snapshotReader) table(entry func(key string)) {
	last := ""
	for i := range r.count() {
		key := r.text()
		if !r.expect(i == 0 || key > last, "keys are not in order") {
			return
		}
		last = key
		entry(key)
	}
}

func (r *snapshotReader) members() []payload.Member {
	var members []payload.Member
	r.table(func(key string) { members = append(members, payload.Member{Key: key, Value: r.payload()}) })
	return members
}

func (r *snapshotReader) payloads() map[string]json.RawMessage {
	table := map[string]json.RawMessage{}
	r.table(func(key string) { table[key] = r.payload() })
	return table
}

func (r *snapshotReader) layers() {
	l := r.l
	l.planID = r.text()
	l.seq = r.number()
	l.ordinal = r.number()
	l.initial = r.members()
	l.trigger = r.object()
	l.about["execution"] = r.object()
	l.about["workflow"] = r.object()
	l.env = r.payloads()
	if r.marked {
		n := r.count()
		r.expect(n > 0, "it is written as if something were edited")
		for range n {
			l.edits = append(l.edits, &edited{r.text(), r.text()})
		}
	}
	l.initialEdited, l.triggerEdited = r.marks(), r.marks()
	l.scopes[""] = l.root
	r.scopes = []*scope{l.root}
	r.table(func(path string) {
		parent := l.scopes[path[:max(strings.LastIndexByte(path, '/'), 0)]]
		if !r.expect(path != "" && parent != nil, "a scope is open whose parent is not") {
			return
		}
		s := newScope(path, parent)
		l.scopes[path] = s
		r.scopes = append(r.scopes, s)
	})
	r.placed = make([]bool, len(r.scopes))
	r.placed[0] = true
	for _, s := range r.scopes {
		if r.err != nil {
			return
		}
		r.scope(s)
	}
	r.expect(!slices.Contains(r.placed, false), "a scope is not among its siblings")
}

// result reads a result by its number and returns nil after a problem.
func (r *snapshotReader) result() *result {
	n := r.number()
	switch {
	case !r.expect(n <= uint64(len(r.results)), "a result is meant that was not told"):
		return nil
	case n < uint64(len(r.results)):
		return r.results[n]
	}
	told := result{node: r.text(), name: r.text(), tool: r.text(), scope: r.text(), activation: r.text(),
		seq: r.number(), success: r.flag()}
	if !told.success {
		told.message = r.text()
	}
	keys := r.members()
	told.edited = r.marks()
	if !r.expect(told.seq <= r.l.seq, "a result is of a row that is still to come") {
		return nil
	}
	res := resultOf(keys)
	told.keys, told.output, told.fields = res.keys, res.output, res.fields
	r.results = append(r.results, &told)
	return &told
}

// datum reads what stands in runtime_metadata under a name.
func (r *snapshotReader) datum(name string) datum {
	from, prefixed := r.result(), r.flag()
	if r.err != nil {
		return datum{}
	}
	field, ok := fieldNamed(name, from.node, prefixed)
	at, has := findAt(from.fields, field)
	if r.expect(ok && has && from.success, "a name's value is not a field of its result"); r.err != nil {
		return datum{}
	}
	return datum{from: from, at: at}
}

// attempt reads an ordinal and a result, for a table of successes or of failures by id or by name.
func (r *snapshotReader) attempt(key string, named, success bool) (uint64, *result) {
	ordinal, res := r.number(), r.result()
	if r.err != nil {
		return 0, nil
	}
	if named {
		r.expect(res.name == key && res.name != res.node && res.name != "", "a result stands under a name that is not its own")
	} else {
		r.expect(res.node == key, "a result stands under an id that is not its own")
	}
	r.expect(res.success == success, "a failure stands among successes, or a success among failures")
	owner := r.ordinals[ordinal]
	r.expect(ordinal > 0 && ordinal <= r.l.ordinal && (owner == nil || owner == res), "an ordinal is wrong")
	r.ordinals[ordinal] = res
	return ordinal, res
}

// restoreHistory reads the versions of one name; value reads what follows the row's number.
func restoreHistory[T any](r *snapshotReader, h *history[T], value func() (uint64, T)) {
	for i := range r.count() {
		seq := r.number()
		ordinal, v := value()
		if !r.expect(seq <= r.l.seq && (i == 0 || seq > h.versions[i-1].seq), "versions are not in the order of their rows") {
			return
		}
		put(r.l, h, seq, ordinal, v)
	}
}

func (r *snapshotReader) scope(s *scope) {
	if s.parent != nil {
		s.vars = r.payloads()
		s.edited = r.marks()
	}
	r.table(func(name string) {
		h := &history[datum]{}
		restoreHistory(r, h, func() (uint64, datum) { return 0, r.datum(name) })
		r.expect(len(h.versions) > 0, "a name has no value")
		s.runtime[name] = h
	})
	for _, named := range [...]bool{false, true} {
		table := s.steps
		if named {
			table = s.named
		}
		r.table(func(key string) {
			a := attemptsOf(table, key)
			restoreHistory(r, &a.ok, func() (uint64, *result) { return r.attempt(key, named, true) })
			restoreHistory(r, &a.failed, func() (uint64, *result) { return r.attempt(key, named, false) })
			r.expect(len(a.ok.versions)+len(a.failed.versions) > 0, "a node has no result")
			if last := len(a.ok.versions) - 1; last >= 0 && r.err == nil {
				r.l.notice(s, a.ok.versions[last].value)
			}
		})
	}
	r.table(func(group string) {
		g := &siblings{}
		for range r.count() {
			r.sibling(s, group, g)
		}
		r.expect(len(g.open) > 0, "overlays wait for no scope")
		for range r.count() {
			h := r.held()
			if !r.expect(len(g.held) == 0 || h.low > g.held[len(g.held)-1].low, "overlays are not in order") {
				return
			}
			g.held = append(g.held, h)
		}
		s.siblings[group] = g
	})
}

// sibling reads the number of an open scope and puts it behind its siblings.
func (r *snapshotReader) sibling(parent *scope, group string, g *siblings) {
	n := r.number()
	if !r.expect(n > 0 && n < uint64(len(r.scopes)), "a sibling is not open") {
		return
	}
	s := r.scopes[n]
	last := len(g.open) - 1
	if !r.expect(s.parent == parent && s.group == group && !r.placed[n] && (last < 0 || s.index >= g.open[last].index),
		"a sibling is out of place") {
		return
	}
	g.open = append(g.open, s)
	r.placed[n] = true
}

func (r *snapshotReader) held() *heldOverlay {
	h := &heldOverlay{low: r.index(), high: r.index(), runtime: map[string]heldDatum{}, ok: map[string]heldResult{},
		failed: map[string]heldResult{}, named: map[string]heldPair{}}
	r.expect(h.low <= h.high, "an overlay ends before it begins")
	r.table(func(name string) {
		h.runtime[name] = heldDatum{index: r.index(), value: r.datum(name)}
		r.l.retained++
	})
	entry := func(key string, named, success bool) heldResult {
		e := heldResult{index: r.index()}
		e.ordinal, e.value = r.attempt(key, named, success)
		r.l.retained++
		return e
	}
	r.table(func(id string) { h.ok[id] = entry(id, false, true) })
	r.table(func(id string) { h.failed[id] = entry(id, false, false) })
	r.table(func(name string) {
		var pair heldPair
		if r.flag() {
			pair.ok = entry(name, true, true)
		}
		if r.flag() {
			pair.failed = entry(name, true, false)
		}
		r.expect(pair.ok.value != nil || pair.failed.value != nil, "a node has no result")
		h.named[name] = pair
	})
	return h
}
