package dominance

import (
	"testing"

	"pgregory.net/rapid"
)

// TestOf compares with the definition: a dominates b when b cannot be reached without a.
func TestOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "vertices")
		var all Arcs
		for range rapid.IntRange(0, 30).Draw(t, "arcs") {
			all.Add(int32(rapid.IntRange(0, n-1).Draw(t, "from")), int32(rapid.IntRange(0, n-1).Draw(t, "to")))
		}
		out, in := all.Forward(n), all.Backward(n)
		d := Of(&out, &in, n)
		reach := func(avoid int32) []bool {
			seen := make([]bool, n)
			if avoid == 0 {
				return seen
			}
			seen[0] = true
			for stack := []int32{0}; len(stack) > 0; {
				v := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for _, to := range out.Of(v) {
					if to != avoid && !seen[to] {
						seen[to] = true
						stack = append(stack, to)
					}
				}
			}
			return seen
		}
		all0 := reach(-1)
		for a := range int32(n) {
			without := reach(a)
			for b := range int32(n) {
				want := all0[a] && all0[b] && (a == b || !without[b])
				if got := d.Dominates(a, b); got != want {
					t.Fatalf("dominates(%d, %d) = %v, want %v", a, b, got, want)
				}
			}
		}
	})
}
