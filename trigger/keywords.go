package trigger

import (
	"slices"
	"strings"
)

// Mentions says whether a text contains one of some keywords, whatever their case; if there are none, every text does.
func Mentions(text string, keywords []string) bool {
	text = strings.ToLower(text)
	return len(keywords) == 0 || slices.ContainsFunc(keywords, func(one string) bool {
		one = strings.ToLower(strings.TrimSpace(one))
		return one != "" && strings.Contains(text, one)
	})
}
