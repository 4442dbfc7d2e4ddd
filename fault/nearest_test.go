package fault

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"iteration", "completed", "result", "Results", "max_retries", "id"}
	for name, want := range map[string]string{
		"iteraton":               "iteration", // a letter missing
		"compelted":              "completed", // neighbours swapped
		"RESULT":                 "result",    // letter case is a small matter
		"results":                "Results",   // alike but for letter case beats a letter too many
		"max_retrys":             "max_retries",
		"idd":                    "id",
		"result":                 "Results", // what was written is never offered
		"something":              "",
		"":                       "",
		strings.Repeat("x", 200): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	kinds := []string{"HTTP_REQUEST", "RUN_CODE", "true", "false", "中文节点"}
	for name, want := range map[string]string{
		"HTTP_REQEST": "HTTP_REQUEST", "http_request": "HTTP_REQUEST", "RUNCODE": "RUN_CODE", "ture": "true", "flase": "false",
		"中文结点": "中文节点", "zzz": "",
	} {
		if got := Nearest(name, kinds); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of equally near names the first wins, got %q", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"abc", "abc", 3, 0}, {"abc", "abd", 3, 1}, {"abc", "acb", 3, 1}, {"abc", "ab", 3, 1}, {"名称", "名字", 3, 1},
		{"abcdef", "", 2, 3}, {"abcdef", "uvwxyz", 2, 3}, {"", "", 0, 0},
	} {
		if got := distance([]rune(c.a), []rune(c.b), c.limit); got != c.want {
			t.Errorf("distance(%q, %q, %d) = %d, want %d", c.a, c.b, c.limit, got, c.want)
		}
		if got := distance(slices.Clone([]rune(c.b)), []rune(c.a), c.limit); got != c.want {
			t.Errorf("distance is not symmetric for %q and %q: %d", c.a, c.b, got)
		}
	}
}
