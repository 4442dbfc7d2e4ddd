package credential

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive covers every byte of every occurrence of every pattern, one by one.
func naive(patterns []string, text string) string {
	covered := make([]bool, len(text))
	for _, p := range patterns {
		for i := range text {
			if strings.HasPrefix(text[i:], p) {
				for j := range p {
					covered[i+j] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := range covered {
		switch {
		case !covered[i]:
			b.WriteByte(text[i])
		case i == 0 || !covered[i-1]:
			b.WriteString(Mark)
		}
	}
	return b.String()
}

func TestMatcher_EqualsNaiveSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Two letters make patterns overlap, contain and continue each other all the time.
		patterns := rapid.SliceOfN(rapid.StringMatching(`[ab]{6,12}`), 0, 12).Draw(t, "patterns")
		pieces := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[abc]{0,9}`), rapid.SampledFrom(append([]string{""}, patterns...))), 0, 12).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		want := naive(patterns, text)
		m := newMatcher(append([]string(nil), patterns...))
		_, spans := scan(m, 0, text, 0, nil)
		if got := string(replace(nil, text, spans)); got != want {
			t.Fatalf("in %q found %q, want %q", text, got, want)
		}
		r := &Redactor{}
		r.current.Store(m)
		s := r.Stream()
		var b strings.Builder
		for _, piece := range pieces {
			b.WriteString(s.Push(piece))
			if len(s.pending) >= 12 {
				t.Fatalf("%d bytes are held back, and no pattern is that long", len(s.pending))
			}
		}
		b.WriteString(s.End())
		if b.String() != want {
			t.Fatalf("in pieces %q found %q, want %q", pieces, b.String(), want)
		}
	})
}

// What makes the search linear: a byte either deepens the state by one or makes it shallower on the way along fail links.
func TestMatcher_StepsArePaidByDepth(t *testing.T) {
	t.Parallel()
	m := newMatcher([]string{strings.Repeat("a", 1000) + "b", strings.Repeat("a", 500) + "c", strings.Repeat("aab", 200)})
	for at, node := range m.nodes {
		if at != 0 && m.nodes[node.fail].depth >= node.depth {
			t.Fatalf("node %d of depth %d falls back to depth %d", at, node.depth, m.nodes[node.fail].depth)
		}
		for child := node.first; child < node.first+node.children; child++ {
			if m.nodes[child].depth != node.depth+1 {
				t.Fatalf("node %d of depth %d has a child of depth %d", at, node.depth, m.nodes[child].depth)
			}
		}
	}
	text := strings.Repeat(strings.Repeat("a", 999)+"x", 1000) + strings.Repeat("a", 1003) + "b"
	if _, spans := scan(m, 0, text, 0, nil); len(spans) != 1 || spans[0] != (span{len(text) - 1001, len(text)}) {
		t.Errorf("found %v in %d bytes", spans, len(text))
	}
}

func TestRedactor_ForgetsLazily(t *testing.T) {
	t.Parallel()
	r := &Redactor{}
	defer r.Hold("always-held")()
	r.Hold("opened-often")()
	built := r.matcher()
	for range 3 * maxRetired {
		r.Hold("opened-often", "always-held")()
	}
	if r.matcher() != built {
		t.Error("holding what is known built the matcher again")
	}
	for i := range 3 * maxRetired {
		r.Hold(strings.Repeat(string(rune('a'+i%26)), 6+i/26))()
	}
	if len(r.held) > maxRetired+2 || r.retired != len(r.held)-1 {
		t.Errorf("%d secrets are kept, %d of them counted as retired", len(r.held), r.retired)
	}
	if got := r.Text("always-held"); got != Mark {
		t.Errorf("forgot a secret that is held: %q", got)
	}
}
