package llm

import (
	"strings"
	"unicode/utf8"
)

// maxSaid is how many bytes of what a service says are passed on.
const maxSaid = 1000

// Scrub keeps a key out of what a service says, and the text short. The key goes first, so that no half of it is left.
func Scrub(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "***")
	}
	if len(text) <= maxSaid {
		return text
	}
	cut := maxSaid
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
