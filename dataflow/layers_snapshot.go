package dataflow

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// A snapshot is the one encoding of Layers: equal Layers have equal snapshots, and whatever RestoreLayers takes is what
// Snapshot would write. It is binary, since payloads and names go into it as they are: a name need not be valid UTF-8,
// and a payload may be nested as deep as JSON may be.
//
// Numbers are unsigned varints without needless bytes. A text or payload is its length and its bytes. A table is its
// size and its entries by ascending key. A result is a number: one that was seen before is meant again; the next one is
// followed by the result itself. So a result that stands in step_results under its id and its name and whose fields
// stand in runtime_metadata is written once.
//
//	header; plan id; seq; ordinal; initial; trigger; about execution; about workflow; env
//	the number of open scopes and their paths, ascending; the root is number 0 and not listed
//	per scope, the root first: variables; runtime; steps; named; siblings
//	checksum of all before it, four bytes
//
// Layers that were edited are written in the second format, all others in the first. It has, besides:
//
//	after env: the edits, as who and fork; the edited names of initial, then of trigger, each as name and number of the edit
//	after the variables of a scope, and after a result: its edited names, likewise
//
// Anything derived is left out: a result's output and fields, what a name's value is, how many versions are held.

// snapshotHeader changes with the format. A snapshot is a shortcut, so one of another format is not converted: the
// journal is applied from its beginning.
const (
	snapshotHeader = "tandem layers 1\n"
	editedHeader   = "tandem layers 2\n"
)

// checksumSize is how many bytes the checksum at the end has.
const checksumSize = 4

// Snapshot returns the layers in their canonical encoding: the same calls in the same order give the same bytes. All
// that can be read stays readable after [RestoreLayers]; a host calls Forget first to leave out what nobody reads.
func (l *Layers) Snapshot() ([]byte, error) {
	header := snapshotHeader
	if len(l.edits) > 0 {
		header = editedHeader
	}
	w := snapshotWriter{out: append(make([]byte, 0, l.room()), header...), results: map[*result]uint64{}, scopes: map[*scope]uint64{}}
	w.text(l.planID)
	w.number(l.seq)
	w.number(l.ordinal)
	w.members(l.initial)
	w.payload(l.trigger)
	w.payload(l.about["execution"])
	w.payload(l.about["workflow"])
	w.payloads(l.env)
	if len(l.edits) > 0 {
		w.edits = make(map[*edited]uint64, len(l.edits))
		w.count(len(l.edits))
		for i, e := range l.edits {
			w.edits[e] = uint64(i)
			w.text(e.by)
			w.text(e.fork)
		}
	}
	w.marks(l.initialEdited)
	w.marks(l.triggerEdited)
	paths := slices.Sorted(maps.Keys(l.scopes)) // the root's is empty, so it comes first
	w.count(len(paths) - 1)
	for i, path := range paths {
		w.scopes[l.scopes[path]] = uint64(i)
		if i > 0 {
			w.text(path)
		}
	}
	for _, path := range paths {
		w.scope(l.scopes[path])
	}
	if w.err != nil {
		return nil, w.err
	}
	return binary.BigEndian.AppendUint32(w.out, crc32.ChecksumIEEE(w.out)), nil
}

// room guesses how many bytes a snapshot has, so that little of it is copied while it grows.
func (l *Layers) room() int {
	const each = 32 // a version with its name
	n := 1024 + len(l.trigger) + each*l.retained
	for _, m := range l.initial {
		n += len(m.Key) + len(m.Value)
	}
	for _, s := range l.scopes { // order does not matter: a sum
		for _, a := range s.steps { // order does not matter: a sum
			for _, v := range a.ok.versions {
				n += len(v.value.output)
			}
		}
	}
	return n
}

type snapshotWriter struct {
	out     []byte
	results map[*result]uint64 // the number of each that was written
	scopes  map[*scope]uint64
	edits   map[*edited]uint64 // nil: nothing was edited
	err     error              // the first
}

// marks writes which names were edited, if any were in these layers.
func (w *snapshotWriter) marks(table map[string]*edited) {
	if w.edits != nil {
		writeTable(w, table, func(_ string, e *edited) { w.number(w.edits[e]) })
	}
}

func (w *snapshotWriter) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

func (w *snapshotWriter) count(n int) { w.number(uint64(n)) }

func (w *snapshotWriter) flag(set bool) {
	if set {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *snapshotWriter) text(s string) {
	w.count(len(s))
	w.out = append(w.out, s...)
}

func (w *snapshotWriter) payload(raw json.RawMessage) {
	w.count(len(raw))
	w.out = append(w.out, raw...)
}

// members writes sorted members as a table.
func (w *snapshotWriter) members(members []payload.Member) {
	w.count(len(members))
	for _, m := range members {
		w.text(m.Key)
		w.payload(m.Value)
	}
}

func (w *snapshotWriter) payloads(table map[string]json.RawMessage) {
	writeTable(w, table, func(_ string, value json.RawMessage) { w.payload(value) })
}

// writeTable writes a map by ascending key.
func writeTable[T any](w *snapshotWriter, table map[string]T, value func(key string, value T)) {
	w.count(len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		w.text(key)
		value(key, table[key])
	}
}

func (w *snapshotWriter) result(r *result) {
	n, seen := w.results[r]
	if !seen {
		n = uint64(len(w.results))
		w.results[r] = n
	}
	w.number(n)
	if seen {
		return
	}
	w.text(r.node)
	w.text(r.name)
	w.text(r.tool)
	w.text(r.scope)
	w.text(r.activation)
	w.number(r.seq)
	w.flag(r.success)
	if !r.success {
		w.text(r.message)
	}
	w.members(r.wholeKeys())
	w.marks(r.edited)
}

// datum writes of which result a name's value is a field, and whether the name is the field's or has the node's id
// before it; the rest follows from the name.
func (w *snapshotWriter) datum(name string, d datum) {
	prefixed := name != d.field()
	if field, ok := fieldNamed(name, d.from.node, prefixed); (!ok || field != d.field()) && w.err == nil {
		w.err = fault.Newf(fault.Internal, "the value of %q in runtime_metadata is not the field %q of the result of node %q at row %d; no snapshot can hold it",
			name, d.field(), d.from.node, d.from.seq)
	}
	w.result(d.from)
	w.flag(prefixed)
}

// fieldNamed returns the field that stands in runtime_metadata under a name, which has the node's id before it or not.
func fieldNamed(name, node string, prefixed bool) (field string, ok bool) {
	if !prefixed {
		return name, true
	}
	if name, ok = strings.CutPrefix(name, node); !ok {
		return "", false
	}
	return strings.CutPrefix(name, "_")
}

func (w *snapshotWriter) scope(s *scope) {
	if s.parent != nil {
		w.payloads(s.vars)
		w.marks(s.edited)
	}
	writeTable(w, s.runtime, func(name string, h *history[datum]) {
		w.count(len(h.versions))
		for _, v := range h.versions {
			w.number(v.seq)
			w.datum(name, v.value)
		}
	})
	for _, table := range [...]map[string]*attempts{s.steps, s.named} {
		writeTable(w, table, func(_ string, a *attempts) {
			for _, h := range [...]*history[*result]{&a.ok, &a.failed} {
				w.count(len(h.versions))
				for _, v := range h.versions {
					w.number(v.seq)
					w.number(v.ordinal)
					w.result(v.value)
				}
			}
		})
	}
	writeTable(w, s.siblings, func(_ string, g *siblings) {
		w.count(len(g.open))
		for _, o := range g.open { // in their own order: those of the same index are not in the order of their paths
			w.number(w.scopes[o])
		}
		w.count(len(g.held))
		for _, h := range g.held {
			w.held(h)
		}
	})
}

func (w *snapshotWriter) held(h *heldOverlay) {
	w.count(h.low)
	w.count(h.high)
	writeTable(w, h.runtime, func(name string, d heldDatum) {
		w.count(d.index)
		w.datum(name, d.value)
	})
	entry := func(_ string, r heldResult) {
		w.count(r.index)
		w.number(r.ordinal)
		w.result(r.value)
	}
	writeTable(w, h.ok, entry)
	writeTable(w, h.failed, entry)
	writeTable(w, h.named, func(name string, pair heldPair) {
		for _, r := range [...]heldResult{pair.ok, pair.failed} {
			if w.flag(r.value != nil); r.value != nil {
				entry(name, r)
			}
		}
	})
}
