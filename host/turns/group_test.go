package turns

import (
	"slices"
	"testing"
)

// TestGroup: each one that has joined is taken once, in order and no more at once than is asked for.
func TestGroup(t *testing.T) {
	t.Parallel()
	var g Group[int]
	for i := range 5 {
		g.Join(i)
	}
	first := g.Take(3)
	g.Join(5)
	if rest := g.Take(10); !slices.Equal(first, []int{0, 1, 2}) || !slices.Equal(rest, []int{3, 4, 5}) {
		t.Errorf("taken were %v and %v", first, rest)
	}
	if none := g.Take(10); len(none) > 0 {
		t.Errorf("taken again: %v", none)
	}
}
