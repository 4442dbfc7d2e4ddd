package workflow

import (
	"slices"
	"strings"
)

// Bounds of the report on a broken shape: every crossing is an error, but only so many are looked into.
const (
	maxCrossings = 100
	maxSearches  = 100
	maxRounds    = 8
	maxCycles    = 100
)

// checkShape reports connections that cross the border of a body, and cycles that are not loops. One misplaced connection
// can spoil the bodies of all scopes around it, so the blamed ones are left out and the bodies found again, until what
// remains is sound; only then are cycles looked for. The bodies returned are those of the whole definition.
func checkShape(l *linked) (*bodies, []Problem) {
	whole := findBodies(l)
	var problems []Problem
	problems = append(problems, whole.checkNesting()...)
	problems = append(problems, whole.checkEmpty()...)
	sound := whole
	var deferred []int
	crossings, rest := 0, 0
	for range maxRounds {
		var blamed []blame
		blamed, deferred = sound.crossings()
		if len(blamed) == 0 {
			break
		}
		dropped := make([]bool, len(l.def.Connections))
		for _, bl := range blamed {
			dropped[sound.l.links[bl.link].connection] = true
			if crossings++; crossings > maxCrossings {
				rest++
				continue
			}
			problems = append(problems, sound.crossingProblem(bl))
		}
		without := *sound.l
		without.links = slices.DeleteFunc(slices.Clone(sound.l.links), func(k link) bool { return dropped[k.connection] })
		sound = findBodies(&without)
	}
	if rest > 0 {
		problems = append(problems, errorAt(ProblemCrossing, "connections",
			"%d more connections cross the border of a scope's body; correct those listed first", rest))
	}
	cycles := sound.cycles()
	problems = append(problems, cycles...)
	if len(cycles) == 0 {
		for _, i := range deferred[:min(len(deferred), maxCrossings)] {
			problems = append(problems, sound.crossingProblem(blame{link: i, owner: sound.owners[sound.sourceBody(i)-1]}))
		}
	}
	return whole, problems
}

// blame is a link that crosses the border of the body of owner, inwards or outwards.
type blame struct {
	link, owner int
	inwards     bool
	// out is, for one inwards, the link by which the body leads to the same place.
	out int
}

// crossings says which links are to blame for what crosses. A link from a body to a node outside it is itself to blame
// when that node also follows the scope (it can be reached from an exit key, or leads to the scope); otherwise the node
// belongs to the body, and the links that enter the body from outside are to blame. Links among nodes that only an
// arbitrary root leads to are deferred: the cycle there is the better report.
func (b *bodies) crossings() (blamed []blame, deferred []int) {
	s := &reachSearch{b: b, found: make(map[int32][]uint64)}
	seen := make(map[int]bool)
	entered := make(map[int]bool)
	add := func(bl blame) {
		if !seen[bl.link] {
			seen[bl.link] = true
			blamed = append(blamed, bl)
		}
	}
	for i := range b.l.links {
		if b.class[i] != linkCrossing || b.l.links[i].from == b.l.links[i].to {
			continue
		}
		if b.unrooted[b.l.links[i].to] {
			deferred = append(deferred, i)
			continue
		}
		inner := b.sourceBody(i)
		owner, left := b.owners[inner-1], -1
		target := nodeVertex(b.l.links[i].to)
		if b.dom.Dominates(target, b.sourceVertex(i)) {
			left = owner
		}
		for body := inner; left < 0 && body != b.of[b.l.links[i].to]; body = b.outer(body) {
			if set := s.from(b.exitVertex(b.owners[body-1]), b.owners[body-1]); set == nil || has(set, target) {
				left = b.owners[body-1]
			}
		}
		if left >= 0 {
			add(blame{link: i, owner: left})
			continue
		}
		if entered[owner] {
			continue
		}
		entered[owner] = true
		if entering := b.entering(owner, s); len(entering) > 0 {
			for _, e := range entering {
				add(blame{link: e, owner: owner, inwards: true, out: i})
			}
		} else {
			add(blame{link: i, owner: owner})
		}
	}
	slices.SortFunc(blamed, func(x, y blame) int { return x.link - y.link })
	return blamed, deferred
}

// entering lists the links that lead from outside into what a scope's entry key alone should lead to.
func (b *bodies) entering(owner int, s *reachSearch) []int {
	inside, after := s.from(b.entryVertex(owner), owner), s.from(b.exitVertex(owner), owner)
	if inside == nil || after == nil {
		return nil
	}
	meant := func(v int32) bool { return has(inside, v) && !has(after, v) }
	var entering []int
	for i := range b.l.links {
		if meant(nodeVertex(b.l.links[i].to)) && !meant(b.sourceVertex(i)) {
			entering = append(entering, i)
		}
	}
	return entering
}

// reachSearch finds what can be reached from a vertex without going through a scope node or back towards the start.
// There are only so many searches; then it answers nil.
type reachSearch struct {
	b     *bodies
	found map[int32][]uint64
	stack []int32
}

func (s *reachSearch) from(start int32, owner int) []uint64 {
	if set, ok := s.found[start]; ok {
		return set
	}
	if len(s.found) == maxSearches {
		return nil
	}
	set := make([]uint64, (s.b.out.Vertices()+63)/64)
	avoid := nodeVertex(owner)
	s.stack = append(s.stack[:0], start)
	set[start/64] |= 1 << (start % 64)
	for len(s.stack) > 0 {
		v := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		for _, to := range s.b.out.Of(v) {
			if to == avoid || has(set, to) || s.b.dom.Dominates(to, v) {
				continue
			}
			set[to/64] |= 1 << (to % 64)
			s.stack = append(s.stack, to)
		}
	}
	s.found[start] = set
	return set
}

func has(set []uint64, v int32) bool { return set[v/64]&(1<<(v%64)) != 0 }

func (b *bodies) crossingProblem(bl blame) Problem {
	k := b.l.links[bl.link]
	from, to, owner := b.l.def.Nodes[k.from].ID, b.l.def.Nodes[k.to].ID, b.l.def.Nodes[bl.owner].ID
	keys := b.l.scopes[bl.owner]
	path := connectionPath(k.connection)
	if bl.inwards {
		return errorAt(ProblemCrossing, path,
			"the connection from %q to %q enters the body of %q from outside; a body is entered only by the key %q of its scope node: connect %q to %q instead, or, if %q is not part of the body, remove the connection from %q to %q",
			from, to, owner, keys.Entry, from, owner, to, b.l.def.Nodes[b.l.links[bl.out].from].ID,
			b.l.def.Nodes[b.l.links[bl.out].to].ID)
	}
	exits := strings.Join(keys.Exits, "\" or \"")
	if k.entry && k.from == bl.owner {
		return errorAt(ProblemCrossing, path,
			"%q is connected to the key %q of %q and also comes after its key \"%s\"; a node is in the body or after it, not both: remove one of the connections",
			to, keys.Entry, owner, exits)
	}
	return errorAt(ProblemCrossing, path,
		"the connection from %q to %q leaves the body of %q; a body is left only through its scope node: connect %q back to %q (or to nothing), and connect %q to %q by the key \"%s\"",
		from, to, owner, from, owner, owner, to, exits)
}
