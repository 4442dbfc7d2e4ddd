package workflow

import "strings"

// Bounds of a search for the nearest name: a suggestion is a courtesy and must not cost more than the check itself.
const (
	nearestLength     = 64
	nearestCandidates = 4096
)

// nearest returns the candidate most like name, letter case ignored, or "" when none is like it. Of equally near ones
// the first wins.
func nearest(name string, candidates []string) string {
	if name == "" || len(name) > nearestLength {
		return ""
	}
	want := []rune(strings.ToLower(name))
	best, bestDistance := "", len(want)/3+1
	for i, c := range candidates {
		if i == nearestCandidates {
			break
		}
		if len(c) > nearestLength || c == "" {
			continue
		}
		if d := distance(want, []rune(strings.ToLower(c)), bestDistance); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of single-letter insertions, deletions, replacements and swaps of neighbours that make b of a;
// anything over limit comes back as limit+1.
func distance(a, b []rune, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before := make([]int, len(b)+1)
	previous := make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		low := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			current[j] = d
			low = min(low, d)
		}
		if low > limit {
			return limit + 1
		}
		before, previous, current = previous, current, before
	}
	return min(previous[len(b)], limit+1)
}

// suggestion is the tail of a message that offers the nearest name, or else another remedy.
func suggestion(name string, candidates []string, otherwise string) string {
	if n := nearest(name, candidates); n != "" {
		return "; did you mean \"" + n + "\"?"
	}
	return "; " + otherwise
}
