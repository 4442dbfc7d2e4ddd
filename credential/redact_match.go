package credential

import "slices"

// minPattern is the length of the shortest text that is looked for; see [MinSecret].
const minPattern = MinSecret

// The filter has one bit per hash of the first three bytes of a pattern.
const (
	filterBits  = 17
	filterWords = 1 << filterBits / 64
)

// matcher finds all occurrences of many patterns in one pass (Aho–Corasick): time is linear in the text, whatever the
// patterns. It never changes after it was built.
//
// Nodes are numbered breadth first, so the children of a node are neighbours and a node costs a few words however many
// bytes could follow. Text that begins no pattern, which is nearly all, is skipped by a filter on three bytes.
type matcher struct {
	nodes  []trieNode
	labels []byte // the byte that leads to each node
	root   [256]int32
	filter [filterWords]uint64
}

type trieNode struct {
	first    int32 // the first child
	children int32
	fail     int32 // the node of the longest proper suffix that begins a pattern
	depth    int32
	match    int32 // length of the longest pattern that ends here, 0 for none
}

// span is a range of bytes that belongs to a secret.
type span struct{ start, end int }

// newMatcher builds a matcher of patterns of at least minPattern bytes. It sorts its argument.
func newMatcher(patterns []string) *matcher {
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	m := &matcher{nodes: make([]trieNode, 1), labels: make([]byte, 1)}
	for _, p := range patterns {
		h := filterHash(p[0], p[1], p[2])
		m.filter[h/64] |= 1 << (h % 64)
	}
	// The patterns of a node, a range of the sorted ones, share its path.
	type group struct{ low, high int }
	groups := []group{{0, len(patterns)}}
	for at := int32(0); int(at) < len(m.nodes); at++ {
		low, high, depth := groups[at].low, groups[at].high, int(m.nodes[at].depth)
		groups[at] = group{}
		if low < high && len(patterns[low]) == depth {
			low++ // ends here; what remains is longer
		}
		m.nodes[at].first = int32(len(m.nodes))
		for low < high {
			label, end := patterns[low][depth], low+1
			for end < high && patterns[end][depth] == label {
				end++
			}
			node := trieNode{depth: int32(depth + 1)}
			if at != 0 {
				node.fail = m.next(m.nodes[at].fail, label)
			}
			node.match = m.nodes[node.fail].match
			if len(patterns[low]) == depth+1 {
				node.match = node.depth
			}
			if at == 0 {
				m.root[label] = int32(len(m.nodes))
			}
			m.nodes, m.labels, groups = append(m.nodes, node), append(m.labels, label), append(groups, group{low, end})
			m.nodes[at].children++
			low = end
		}
	}
	return m
}

func filterHash(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9E3779B1 >> (32 - filterBits)
}

// next follows one byte. Each step to a fail node shortens the path that earlier bytes made, so all steps together are
// at most two per byte.
func (m *matcher) next(state int32, label byte) int32 {
	for state != 0 {
		node := &m.nodes[state]
		labels := m.labels[node.first : node.first+node.children]
		if len(labels) > 8 {
			if i, found := slices.BinarySearch(labels, label); found {
				return node.first + int32(i)
			}
		} else {
			for i, l := range labels {
				if l == label {
					return node.first + int32(i)
				}
			}
		}
		state = node.fail
	}
	return m.root[label]
}

// scan goes on from a state and adds what it finds, with base added to positions, to spans.
func scan[T string | []byte](m *matcher, state int32, text T, base int, spans []span) (int32, []span) {
	if len(m.nodes) == 1 {
		return 0, spans
	}
	for i := 0; i < len(text); {
		if state == 0 {
			for i+2 < len(text) {
				if h := filterHash(text[i], text[i+1], text[i+2]); m.filter[h/64]&(1<<(h%64)) != 0 {
					break
				}
				i++
			}
		}
		state = m.next(state, text[i])
		i++
		if length := m.nodes[state].match; length > 0 {
			spans = cover(spans, span{base + i - int(length), base + i})
		}
	}
	return state, spans
}

// cover adds a span that ends after all others and merges it with those it overlaps or touches: of two secrets that
// overlap, no piece is left.
func cover(spans []span, s span) []span {
	for len(spans) > 0 && spans[len(spans)-1].end >= s.start {
		s.start = min(s.start, spans[len(spans)-1].start)
		spans = spans[:len(spans)-1]
	}
	return append(spans, s)
}
