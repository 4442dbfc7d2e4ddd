package dataflow

import (
	"cmp"
	"maps"
	"slices"

	"tandem/fault"
)

// siblings are the iterations of one scope node under one parent scope.
//
// An overlay is folded into the parent in index order: only once no sibling with a lower index is open. Iterations that
// end early wait as held overlays; neighbours with no open sibling between them are merged at once, the higher index
// winning, so there is never more than one held overlay per open iteration however far ahead the others have run.
type siblings struct {
	open []*scope       // ascending by index
	held []*heldOverlay // ascending; none of them could be folded yet
}

// heldOverlay is what a run of ended neighbours leaves behind: the newest value of every name. Nobody reads it.
type heldOverlay struct {
	low, high int
	runtime   map[string]heldDatum
	ok        map[string]heldResult // by node id
	failed    map[string]heldResult
	named     map[string]heldPair // by node name
}

type heldDatum struct {
	index int
	value datum
}

type heldResult struct {
	index   int
	ordinal uint64
	value   *result
}

type heldPair struct{ ok, failed heldResult }

// FoldTrace tells what closing a scope did.
type FoldTrace struct {
	Scope string `json:"scope"`
	// Held says that a sibling with a lower index is still open, so that nothing was folded yet.
	Held bool `json:"held"`
	// Names and Steps count what was folded into the parent, earlier siblings that were waiting included.
	Names int `json:"names"`
	Steps int `json:"steps"`
	// Overwritten are the names of runtime_metadata that the parent had before, sorted.
	Overwritten []string `json:"overwritten,omitempty"`
}

// CloseScope ends an iteration or branch, whatever its end: the data of steps that finished stays readable also when
// the iteration failed or was canceled. Its overlay is folded into its parent as of seq, in index order among its
// siblings. Scopes still open inside it are closed first.
func (l *Layers) CloseScope(path string, seq uint64) (FoldTrace, error) {
	trace := FoldTrace{Scope: path}
	if path == "" {
		return trace, fault.New(fault.Internal, "the top level is not a scope that ends")
	}
	s, err := l.scope(path)
	if err != nil {
		return trace, err
	}
	if err := l.advance(seq); err != nil {
		return trace, err
	}
	for _, group := range slices.Sorted(maps.Keys(s.siblings)) {
		for _, inner := range slices.Clone(s.siblings[group].open) {
			if _, err := l.CloseScope(inner.path, seq); err != nil {
				return trace, err
			}
		}
	}
	delete(l.scopes, path)
	g := s.parent.siblings[s.group]
	g.open = slices.DeleteFunc(g.open, func(o *scope) bool { return o == s })
	l.hold(g, s)
	trace.Held = true
	for len(g.held) > 0 && (len(g.open) == 0 || g.held[0].high < g.open[0].index) {
		trace.Held = false
		l.fold(s.parent, g.held[0], seq, &trace)
		g.held = slices.Delete(g.held, 0, 1)
	}
	if len(g.open) == 0 {
		delete(s.parent.siblings, s.group)
	}
	slices.Sort(trace.Overwritten)
	return trace, nil
}

// hold puts the newest values of an ended scope among the held overlays, merging neighbours.
func (l *Layers) hold(g *siblings, s *scope) {
	h := &heldOverlay{low: s.index, high: s.index, runtime: make(map[string]heldDatum, len(s.runtime)),
		ok: make(map[string]heldResult, len(s.steps)), failed: map[string]heldResult{}, named: map[string]heldPair{}}
	for name, versions := range s.runtime { // order does not matter: one entry per name
		v, n := newest(versions)
		h.runtime[name] = heldDatum{s.index, v.value}
		l.retained -= n - 1
	}
	for id, a := range s.steps { // order does not matter: one entry per node
		if v, n := newest(&a.ok); n > 0 {
			h.ok[id] = heldResult{s.index, v.ordinal, v.value}
			l.retained -= n - 1
		}
		if v, n := newest(&a.failed); n > 0 {
			h.failed[id] = heldResult{s.index, v.ordinal, v.value}
			l.retained -= n - 1
		}
	}
	for name, a := range s.named { // order does not matter: one entry per name
		var pair heldPair
		if v, n := newest(&a.ok); n > 0 {
			pair.ok = heldResult{s.index, v.ordinal, v.value}
			l.retained -= n - 1
		}
		if v, n := newest(&a.failed); n > 0 {
			pair.failed = heldResult{s.index, v.ordinal, v.value}
			l.retained -= n - 1
		}
		h.named[name] = pair
	}
	at, _ := slices.BinarySearchFunc(g.held, s.index, func(o *heldOverlay, i int) int { return cmp.Compare(o.low, i) })
	g.held = slices.Insert(g.held, at, h)
	if at+1 < len(g.held) && !g.openBetween(h.high, g.held[at+1].low) {
		l.merge(h, g.held[at+1])
		g.held = slices.Delete(g.held, at+1, at+2)
	}
	if at > 0 && !g.openBetween(g.held[at-1].high, h.low) {
		l.merge(g.held[at-1], h)
		g.held = slices.Delete(g.held, at, at+1)
	}
}

// newest returns the last version and how many there are, and empties the history: a caller that lists it finds nothing.
func newest[T any](h *history[T]) (v version[T], n int) {
	if n = len(h.versions); n > 0 {
		v = h.versions[n-1]
	}
	h.versions = nil
	return v, n
}

func (g *siblings) openBetween(low, high int) bool {
	return slices.ContainsFunc(g.open, func(o *scope) bool { return o.index > low && o.index < high })
}

// merge puts the overlay of the higher indexes over the lower one.
func (l *Layers) merge(lower, higher *heldOverlay) {
	lower.high = higher.high
	for name, d := range higher.runtime { // order does not matter: one entry per name
		if _, had := lower.runtime[name]; had {
			l.retained--
		}
		lower.runtime[name] = d
	}
	over := func(dst map[string]heldResult, src map[string]heldResult) {
		for id, r := range src { // order does not matter: one entry per node
			if _, had := dst[id]; had {
				l.retained--
			}
			dst[id] = r
		}
	}
	over(lower.ok, higher.ok)
	over(lower.failed, higher.failed)
	for name, pair := range higher.named { // order does not matter: one entry per name
		old := lower.named[name]
		if pair.ok.value == nil {
			pair.ok = old.ok
		} else if old.ok.value != nil {
			l.retained--
		}
		if pair.failed.value == nil {
			pair.failed = old.failed
		} else if old.failed.value != nil {
			l.retained--
		}
		lower.named[name] = pair
	}
}

// fold writes a held overlay into the parent. Results keep their order: index first, then journal.
func (l *Layers) fold(parent *scope, h *heldOverlay, seq uint64, trace *FoldTrace) {
	for name, d := range h.runtime { // order does not matter: every name has its own history, the trace is sorted
		versions := parent.runtime[name]
		if versions == nil {
			versions = &history[datum]{}
			parent.runtime[name] = versions
		} else if len(versions.versions) > 0 {
			trace.Overwritten = append(trace.Overwritten, name)
		}
		l.retained--
		put(l, versions, seq, 0, d.value)
		trace.Names++
	}
	type entry struct {
		heldResult
		to func() *history[*result]
	}
	var entries []entry // made of three tables whose order does not matter: they are sorted below
	for id, r := range h.ok {
		entries = append(entries, entry{r, func() *history[*result] { return &attemptsOf(parent.steps, id).ok }})
	}
	for id, r := range h.failed {
		entries = append(entries, entry{r, func() *history[*result] { return &attemptsOf(parent.steps, id).failed }})
	}
	trace.Steps += len(entries)
	for name, pair := range h.named { // order does not matter: the entries are sorted below
		if pair.ok.value != nil {
			entries = append(entries, entry{pair.ok, func() *history[*result] { return &attemptsOf(parent.named, name).ok }})
		}
		if pair.failed.value != nil {
			entries = append(entries, entry{pair.failed, func() *history[*result] { return &attemptsOf(parent.named, name).failed }})
		}
	}
	// A result stands under its id and under its name, both times with the same ordinal.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.ordinal, b.ordinal))
	})
	for i, e := range entries {
		if i == 0 || e.value != entries[i-1].value {
			l.ordinal++
		}
		l.retained--
		put(l, e.to(), seq, l.ordinal, e.value)
	}
}

func attemptsOf(m map[string]*attempts, key string) *attempts {
	a := m[key]
	if a == nil {
		a = &attempts{}
		a.ok.versions = a.first[:0]
		m[key] = a
	}
	return a
}
