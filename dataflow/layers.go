package dataflow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// Layers is the data of one execution: initial_metadata, runtime_metadata and step_results with an overlay per open
// scope. It is a fold of the journal: the same calls in the same order give the same Layers. Calls that write take the
// sequence number of the journal row they come from, which never goes down.
type Layers struct {
	planID   string
	initial  []payload.Member // sorted by key
	trigger  json.RawMessage
	fired    string                     // the id of the trigger node that has run, "" before it has
	about    map[string]json.RawMessage // execution, workflow
	env      map[string]json.RawMessage
	root     *scope
	scopes   map[string]*scope // the open ones by path, the root under ""
	seq      uint64            // of the last write
	ordinal  uint64            // counts writes of results, to tell which is newest
	retained int               // versions held, all scopes together
	// layered are the histories that may hold more than one version: what Forget has to look at.
	layered []trimmer
	// edits are who has edited something, in the order of the edits; the other two say whose the edited names are.
	edits                        []*edited
	initialEdited, triggerEdited map[string]*edited
}

// Start is what an execution begins with.
type Start struct {
	ExecutionID string
	WorkflowID  string
	PlanID      string
	// Initial is initial_metadata, an object: the trigger's data and the inputs.
	Initial json.RawMessage
	// Trigger is what {{trigger.…}} reads, an object.
	Trigger json.RawMessage
	// Kept says that both were kept before, so that they are JSON as this package has it.
	Kept bool
	// Env has the allow-listed variables only.
	Env map[string]string
}

// New makes the layers of an execution that has not run yet.
func New(s Start) (*Layers, error) {
	l := &Layers{planID: s.PlanID, scopes: map[string]*scope{}, env: map[string]json.RawMessage{}}
	l.root = newScope("", nil)
	l.scopes[""] = l.root
	initial, err := s.Initial, error(nil)
	if l.trigger = s.Trigger; !s.Kept {
		if initial, err = objectOf(s.Initial, text.As("initial_metadata")); err != nil {
			return nil, err
		}
		if l.trigger, err = objectOf(s.Trigger, text.Of("the trigger's data")); err != nil {
			return nil, err
		}
	}
	l.initial = sortMembers(payload.Members(initial))
	l.about = map[string]json.RawMessage{
		"execution": aboutID(s.ExecutionID),
		"workflow":  aboutID(s.WorkflowID),
	}
	for name, value := range s.Env { // order does not matter: one entry per name
		l.env[name] = payload.AppendText(nil, value)
	}
	return l, nil
}

// aboutID is an object that has an id.
func aboutID(id string) json.RawMessage {
	object := make([]byte, 0, len(`{"id":""}`)+len(id))
	object = payload.AppendText(append(object, `{"id":`...), id)
	return append(object, '}')
}

func objectOf(raw json.RawMessage, what text.Text) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	value, err := payload.Normalize(raw, payload.Limits{})
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%s cannot be read: %w", what, err)
	}
	switch value[0] {
	case '{':
		return value, nil
	case 'n':
		return json.RawMessage("{}"), nil
	}
	return nil, fault.Newf(fault.InvalidInput, "%s must be a JSON object", what)
}

// View is from where the layers are read: a scope, as of a journal sequence number. What was written by that row and
// before is visible, what came later is not.
type View struct {
	// Scope is the path of an open scope: "" for the top level, "each[2]", "each[2]/inner[0]".
	Scope string
	AsOf  uint64
}

// scope is the overlay of one iteration or branch, or the top level.
type scope struct {
	path   string
	parent *scope
	group  string // the scope node's part of the path
	index  int
	vars   map[string]json.RawMessage
	edited map[string]*edited // of the variables

	runtime map[string]*history[datum]
	steps   map[string]*attempts // by node id
	named   map[string]*attempts // by node name, where it differs from the id
	// siblings holds, per scope node, the iterations below this scope.
	siblings map[string]*siblings
}

// attempts are the results of one node in one scope. Failures are kept apart, so that none hides a success.
type attempts struct {
	ok, failed history[*result]
	// first is the room of the first success, which most have and no more.
	first [1]version[*result]
}

// datum is a value of runtime_metadata: a field of a result.
type datum struct {
	from *result
	// at is which of the result's fields it is. There are as many of these as there are names, so that they are small.
	at int
}

func (d datum) value() json.RawMessage { return d.from.fields[d.at].Value }
func (d datum) field() string          { return d.from.fields[d.at].Key }

func newScope(path string, parent *scope) *scope {
	s := &scope{path: path, parent: parent, runtime: map[string]*history[datum]{}, steps: map[string]*attempts{},
		named: map[string]*attempts{}, siblings: map[string]*siblings{}}
	last := path[strings.LastIndexByte(path, '/')+1:]
	s.group = last
	if open := strings.LastIndexByte(last, '['); open >= 0 && strings.HasSuffix(last, "]") {
		if n := payload.Index(last[open+1 : len(last)-1]); n >= 0 {
			s.group, s.index = last[:open], n
		}
	}
	return s
}

// advance checks a write's sequence number.
func (l *Layers) advance(seq uint64) error {
	if seq < l.seq {
		return fault.Newf(fault.Internal, "row %d was applied to data that has already seen row %d; apply the journal in order", seq, l.seq)
	}
	l.seq = seq
	return nil
}

func (l *Layers) scope(path string) (*scope, error) {
	if s, ok := l.scopes[path]; ok {
		return s, nil
	}
	return nil, fault.Newf(fault.Internal, "the scope %q is not open; data of a closed scope is read by applying the journal up to the row in question", path)
}

// OpenScope opens the overlay of an iteration or branch. The parent scope is open; siblings open in the order of their
// index (one that opens after a higher one was folded is folded over it). vars are what the scope's body reads by name: item, index and the
// iteration variable.
func (l *Layers) OpenScope(path string, seq uint64, vars map[string]json.RawMessage) error {
	parent, err := l.scope(path[:max(strings.LastIndexByte(path, '/'), 0)])
	if err != nil {
		return err
	}
	if _, open := l.scopes[path]; open {
		return fault.Newf(fault.Internal, "the scope %q is open already", path)
	}
	s := newScope(path, parent)
	s.vars = make(map[string]json.RawMessage, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value, err := payload.Normalize(vars[name], payload.Limits{})
		if err != nil {
			return fault.Newf(fault.InvalidInput, "the variable %q of scope %q cannot be read: %w", name, path, err)
		}
		s.vars[name] = value
	}
	if err := l.advance(seq); err != nil {
		return err
	}
	g := parent.siblings[s.group]
	if g == nil {
		g = &siblings{}
		parent.siblings[s.group] = g
	}
	at, _ := slices.BinarySearchFunc(g.open, s.index, func(o *scope, i int) int { return cmp.Compare(o.index, i) })
	g.open = slices.Insert(g.open, at, s)
	l.scopes[path] = s
	return nil
}

// trimmer is a history of some type.
type trimmer interface {
	// trim drops the versions that no reader sees and returns how many; more says whether several are left.
	trim(readers []uint64) (dropped int, more bool)
}

// history is the versions of one name, oldest first.
type history[T any] struct {
	versions []version[T]
	listed   bool // in Layers.layered
}

type version[T any] struct {
	seq     uint64
	ordinal uint64
	value   T
}

// at returns the version that a reader as of a sequence number sees.
func (h *history[T]) at(asOf uint64) (*version[T], bool) {
	for i := len(h.versions) - 1; i >= 0; i-- {
		if h.versions[i].seq <= asOf {
			return &h.versions[i], true
		}
		if len(h.versions)-i > 8 { // not among the newest: search
			n, _ := slices.BinarySearchFunc(h.versions, asOf, func(v version[T], s uint64) int {
				if v.seq <= s {
					return -1
				}
				return 1 // never equal: n is the first version that is too new
			})
			if n == 0 {
				return nil, false
			}
			return &h.versions[n-1], true
		}
	}
	return nil, false
}

// put adds a version. One of the same row is replaced: no reader could tell them apart.
func put[T any](l *Layers, h *history[T], seq, ordinal uint64, value T) {
	n := len(h.versions)
	if n > 0 && h.versions[n-1].seq == seq {
		h.versions[n-1] = version[T]{seq, ordinal, value}
		return
	}
	old := h.versions
	h.versions = append(h.versions, version[T]{seq, ordinal, value})
	if n > 0 && n == cap(old) {
		clear(old) // it may be part of something larger that stays
	}
	l.retained++
	if n > 0 && !h.listed {
		h.listed = true
		l.layered = append(l.layered, h)
	}
}

func (h *history[T]) trim(readers []uint64) (dropped int, more bool) {
	n := len(h.versions)
	if n < 2 {
		h.listed = false
		return 0, false
	}
	kept := h.versions[:0]
	r := 0
	for i, v := range h.versions {
		last := i == n-1
		if !last {
			// v is seen by the readers from v.seq up to, but not including, the next version's seq.
			for r < len(readers) && readers[r] < v.seq {
				r++
			}
			if r == len(readers) || readers[r] >= h.versions[i+1].seq {
				dropped++
				continue
			}
		}
		kept = append(kept, v)
	}
	clear(h.versions[len(kept):])
	h.versions = kept
	h.listed = len(kept) > 1
	return dropped, h.listed
}

// Forget drops the versions that nobody can read any more. open are the as_of of all activations that are not final,
// in any order; what activations to come will read, the newest version of every name, always stays. A host calls it now
// and then, so that a loop of millions of iterations is held in the memory of its names, also while some activation
// beside it waits for days. It returns how many versions were dropped.
func (l *Layers) Forget(open ...uint64) int {
	readers := slices.Clone(open)
	slices.Sort(readers)
	readers = slices.Compact(readers)
	total := 0
	kept := l.layered[:0]
	for _, h := range l.layered {
		dropped, more := h.trim(readers)
		total += dropped
		if more {
			kept = append(kept, h)
		}
	}
	clear(l.layered[len(kept):])
	l.layered = kept
	l.retained -= total
	return total
}

// Retained returns how many versions are held, overlays that wait to be folded included.
func (l *Layers) Retained() int { return l.retained }

// Scopes returns how many scopes are open, the top level not counted.
func (l *Layers) Scopes() int { return len(l.scopes) - 1 }

// Rebase makes the layers those of a new journal, which goes on from where this one was: everything that can be read now
// counts as written before the new journal's first row, and what only older readers could see is gone.
func (l *Layers) Rebase() {
	l.Forget()
	for _, s := range l.scopes { // order does not matter: each gets the same
		for _, h := range s.runtime { // order does not matter: as above
			h.rebase(func(d datum) { d.from.seq = 0 })
		}
		for _, table := range []map[string]*attempts{s.steps, s.named} {
			for _, a := range table { // order does not matter: as above
				a.ok.rebase(func(r *result) { r.seq = 0 })
				a.failed.rebase(func(r *result) { r.seq = 0 })
			}
		}
		for _, g := range s.siblings { // order does not matter: as above
			for _, held := range g.held {
				held.rebase()
			}
		}
	}
	l.seq = 0
}

func (h *history[T]) rebase(each func(T)) {
	for i := range h.versions { // one is left
		h.versions[i].seq = 0
		each(h.versions[i].value)
	}
}

// rebase does for iterations that have ended and wait for their neighbours what Rebase does for the rest.
func (h *heldOverlay) rebase() {
	results := make([]*result, 0, len(h.runtime)+len(h.ok)+len(h.failed)+2*len(h.named))
	for _, d := range h.runtime { // order does not matter: each gets the same
		results = append(results, d.value.from)
	}
	for _, table := range []map[string]heldResult{h.ok, h.failed} {
		for _, r := range table { // order does not matter: as above
			results = append(results, r.value)
		}
	}
	for _, pair := range h.named { // order does not matter: as above
		results = append(results, pair.ok.value, pair.failed.value)
	}
	for _, r := range results {
		if r != nil {
			r.seq = 0
		}
	}
}

func sortMembers(members []payload.Member) []payload.Member {
	slices.SortFunc(members, func(a, b payload.Member) int { return strings.Compare(a.Key, b.Key) })
	return members
}

// find looks a key up in sorted members.
func find(members []payload.Member, key string) (json.RawMessage, bool) {
	at, ok := findAt(members, key)
	if !ok {
		return nil, false
	}
	return members[at].Value, true
}

// findAt returns where a field stands among members that are sorted by key.
func findAt(members []payload.Member, key string) (int, bool) {
	return slices.BinarySearchFunc(members, key, func(m payload.Member, k string) int { return strings.Compare(m.Key, k) })
}
