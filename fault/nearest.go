package fault

import "strings"

// Bounds of a search for the nearest name: a suggestion is a courtesy and must not cost more than the check itself.
const (
	nearestLength     = 100
	nearestCandidates = 4096
)

// Nearest returns the known name most like the one that was written, or "" when none is like it: what an error offers
// after "did you mean". Letter case counts little; of equally near names the first wins.
func Nearest(name string, known []string) string {
	if name == "" || len(name) > nearestLength {
		return ""
	}
	exact, lower := []rune(name), []rune(strings.ToLower(name))
	limit := len(lower)/3 + 1
	best, lowest := "", 2*limit+2
	for _, candidate := range known[:min(len(known), nearestCandidates)] {
		if candidate == "" || candidate == name || len(candidate) > nearestLength {
			continue
		}
		d := distance(lower, []rune(strings.ToLower(candidate)), limit)
		if d > limit {
			continue
		}
		score := 2 * d
		if distance(exact, []rune(candidate), d) > d {
			score++ // alike but for letter case
		}
		if score < lowest {
			best, lowest = candidate, score
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
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
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
